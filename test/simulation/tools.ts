/** The tools of a simulated process: how a call behaves stands in its arguments; what it did is noted outside. */

import { type Json, type JsonObject, microUsdOf, type Planner } from '#core';
import {
  type AgentTool,
  type AnyTool,
  type ApprovalGate,
  LoginRequired,
  type Reconciled,
  type Tool,
  type ToolContext,
  ToolFailure,
} from '#tools';
import { type CallArgs, ODD_AT, SECRET_SCOPE } from './call-args.ts';
import { checkAllowed, checkCall, checkIdentity } from './check-calls.ts';
import { atWork, doIt, LONGEST_WAY_MS, type ToolWorld } from './deeds.ts';
import { ODD, type Odd, oddValue } from './odd.ts';
import { whatIsKnown } from './plain-tool.ts';

const INPUT: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    ms: { type: 'number' },
    fail: { enum: ['always', 'once', 'throughout'] },
    deaf: { type: 'boolean' },
    big: { type: 'boolean' },
    heavy: { type: 'boolean' },
    note: {},
    way: { type: 'number' },
    odd: { enum: [...ODD] },
    oddAt: { enum: [...ODD_AT] },
    forbidden: { enum: ['said', 'thrown', 'late'] },
    policyMs: { type: 'number' },
  },
  required: ['id'],
  additionalProperties: false,
};

/** Over the bound from which values are stored as artifacts. */
const HEAVY = 'much '.repeat(7_000);

interface Kind extends Pick<Tool, 'effect' | 'costUsd' | 'timeoutMs' | 'concurrency' | 'scopes'> {
  readonly needsApproval?: true | ApprovalGate;
  /** Somebody is asked only for calls that are `big`; the rule takes its time. */
  readonly approveBig?: true;
  readonly login?: true;
  readonly reconcile?: true;
  /** What it asks of the world is on its way for a while, and arrives whatever becomes of the process. */
  readonly remote?: true;
}

export const TOOL_KINDS: Readonly<Record<string, Kind>> = {
  look: { effect: 'pure' },
  read: { effect: 'read' },
  brief: { effect: 'read', timeoutMs: 100 },
  put: { effect: 'keyed' },
  narrow: { effect: 'keyed', concurrency: 1 },
  send: { effect: 'once' },
  secret: { effect: 'keyed', scopes: [SECRET_SCOPE] },
  post: { effect: 'once', reconcile: true },
  wire: { effect: 'once', reconcile: true, remote: true },
  wire_blind: { effect: 'once', remote: true },
  buy: { effect: 'keyed', costUsd: 0.0001 },
  pay: { effect: 'once', costUsd: 0.00025 },
  ask_send: { effect: 'once', needsApproval: true },
  ask_buy: { effect: 'keyed', costUsd: 0.0001, approveBig: true },
  ask_other: { effect: 'once', needsApproval: { approver: 'another' } },
  ask_end: { effect: 'keyed', needsApproval: { onReject: 'end' } },
  ask_soon: { effect: 'once', needsApproval: { expiresInMs: 700 } },
  ask_big: { effect: 'once', approveBig: true },
  ask_broken: {
    effect: 'once',
    needsApproval: {
      when: () => {
        throw new Error('the rule is broken');
      },
    },
  },
  login: { effect: 'read', login: true },
  login_send: { effect: 'once', login: true },
};

/** Tools whose calls are carried out by a run that works by the plan that the arguments name. */
export const CARRIED: Readonly<Record<string, Pick<AgentTool, 'concurrency'>>> = {
  carry: {},
  carry_one: { concurrency: 1 },
};

const CARRIED_INPUT: JsonObject = {
  type: 'object',
  properties: { id: { type: 'string' }, plan: { type: 'string' } },
  required: ['id', 'plan'],
  additionalProperties: false,
};

/** The tools of a process, with those that runs of the planner carry out, which have all of them again. */
export function withCarried(tools: readonly Tool[], planner: Planner, more: readonly AnyTool[]): readonly AnyTool[] {
  const all: AnyTool[] = [...tools, ...more];
  const agent = { name: planner.name, planner, tools: all };
  for (const [name, kind] of Object.entries(CARRIED)) {
    all.push({
      ...kind,
      name,
      description: `Has ${name} done.`,
      inputSchema: CARRIED_INPUT,
      effect: 'pure',
      agent,
    });
  }
  return all;
}

export function simulatedTools(world: ToolWorld): readonly Tool[] {
  return Object.entries(TOOL_KINDS).map(([name, kind]) => simulatedTool(name, kind, world));
}

function simulatedTool(name: string, kind: Kind, world: ToolWorld): Tool {
  const { login = false, reconcile = false, needsApproval: stated, approveBig, remote: _, ...plain } = kind;
  const { process } = world;
  const rule: ApprovalGate = {
    when: async (args) => {
      const { ms = 0, big = false, odd, oddAt } = args as CallArgs;
      await process.wait(ms);
      if (odd !== undefined && oddAt === 'rule') throw oddValue(odd);
      return big;
    },
  };
  const needsApproval = approveBig ? rule : stated;
  const made = {
    ...plain,
    name,
    description: `Does ${name}.`,
    inputSchema: INPUT,
    ...(needsApproval === undefined ? {} : { needsApproval }),
    execute: (args: unknown, context: ToolContext) =>
      atWork(context, world, () => run(name, args as CallArgs, context, world, login)),
  };
  if (!reconcile) return made;
  return {
    ...made,
    reconcile: (args: unknown, context: ToolContext) => whatHappened(name, args as CallArgs, context, world),
  };
}

async function run(
  name: string,
  args: CallArgs,
  context: ToolContext,
  world: ToolWorld,
  login: boolean,
): Promise<Json> {
  const { process, ledger } = world;
  const { identity, attempt } = context;
  const { id, ms = 0, fail, deaf = false, heavy = false, odd, oddAt } = args;
  ledger.tell(process.name, () => `${identity.run}: ${name} ${id} is run, attempt ${attempt}`);
  if (login && !ledger.loggedIn && !ledger.logins.has(`${identity.run}/${id}`)) {
    throw new LoginRequired(`https://login.example/${id}`);
  }
  const { effect = 'once', costUsd = 0, needsApproval, approveBig = false, remote = false } = TOOL_KINDS[name] ?? {};
  const { run: owner } = identity;
  checkIdentity(context, ledger);
  checkCall(name, args, context, ledger, approveBig ? args.big === true : needsApproval !== undefined);
  checkAllowed(name, args, owner, ledger);
  const costMicroUsd = microUsdOf(costUsd);
  const throwsAt = (at: CallArgs['oddAt']): boolean => odd !== undefined && oddAt === at;
  const deed = { tool: name, effect, run: owner, id, args: JSON.stringify(args), costMicroUsd };
  const plain = { run: owner, tenant: identity.tenant, id };
  const value = await doIt(deed, { ms, deaf, isRemote: remote }, context, world, plain, () => {
    if (throwsAt('begin')) throw oddValue(odd as Odd);
    if (fail === 'always') throw new ToolFailure('It cannot be done.', { code: 'refused' });
    if (fail === 'throughout' || (fail === 'once' && attempt === 1)) {
      // Some ask for a time in which the call is put off.
      const asked = id.length % 2 === 0 ? { retryAfterMs: 500 + 700 * (id.charCodeAt(id.length - 1) % 8) } : {};
      throw new ToolFailure('Not now.', { code: 'busy', retryable: true, ...asked });
    }
  });
  if (throwsAt('end')) throw oddValue(odd as Odd);
  if (throwsAt('value')) return oddValue(odd as Odd) as Json;
  return heavy ? { ...value, text: HEAVY } : value;
}

/**
 * The world knows what has happened, and nothing of what is on its way. Whoever asks waits until all has arrived that was sent
 * before. Sometimes the world cannot be asked.
 */
async function whatHappened(
  name: string,
  { big, odd, oddAt }: CallArgs,
  context: ToolContext,
  world: ToolWorld,
): Promise<Reconciled> {
  const { ledger, process } = world;
  if (odd !== undefined && oddAt === 'reconcile') throw oddValue(odd);
  if (TOOL_KINDS[name]?.remote === true) {
    await process.wait(LONGEST_WAY_MS);
    if (big === true) return { status: 'unknown' };
  }
  const known = whatIsKnown(context, world);
  ledger.tell(
    process.name,
    () => `${context.identity.run}: the world says ${known.status === 'done' ? 'done' : 'not done'}`,
  );
  return known;
}
