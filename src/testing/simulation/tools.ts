/** The tools of a simulated process: how a call behaves stands in its arguments; what it did is noted outside. */

import { branchesOf, branchId, type Decision } from '../../core/decision.ts';
import type { Entry } from '../../core/entry.ts';
import { atPointer, isJsonObject, type Json, type JsonObject, jsonEquals } from '../../core/json.ts';
import type { Outcome } from '../../core/outcome.ts';
import type { Planner } from '../../core/planner.ts';
import { allReferencesIn, asReference } from '../../core/reference.ts';
import { openRoute, waysOf } from '../../core/routes.ts';
import { dependenciesOf } from '../../core/validate-decision.ts';
import {
  type AnyTool,
  type ApprovalGate,
  LoginRequired,
  type PlannerTool,
  type Reconciled,
  type Tool,
  type ToolContext,
  ToolFailure,
} from '../../tools/tool.ts';
import { wholeMove } from '../../view/growth.ts';
import { foldEntries, type RunState } from '../../view/run-state.ts';
import { never } from '../crash-process.ts';
import type { Ledger } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';

/** The arguments of every simulated tool. */
export interface CallArgs {
  /** Unique in its run. */
  readonly id: string;
  readonly ms?: number;
  /** `once`: the first attempt fails in a way that may pass. */
  readonly fail?: 'always' | 'once' | 'throughout';
  /** Goes on when its signal is aborted. */
  readonly deaf?: boolean;
  /** Asks for an approval, where the tool's rule asks only for some. */
  readonly big?: boolean;
  /** The value is stored as an artifact. */
  readonly heavy?: boolean;
  readonly note?: Json;
  /** Which of the routes to its branch it has come. */
  readonly way?: number;
}

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
  },
  required: ['id'],
  additionalProperties: false,
};

/** Over the bound from which values are stored as artifacts. */
const HEAVY = 'much '.repeat(7_000);

interface Kind extends Pick<Tool, 'effect' | 'costMicroUsd' | 'timeoutMs' | 'concurrency'> {
  readonly approve?: 'always' | ApprovalGate;
  /** Somebody is asked only for calls that are `big`; the rule takes its time. */
  readonly approveBig?: true;
  readonly login?: true;
  readonly reconcile?: true;
}

export const TOOL_KINDS: Readonly<Record<string, Kind>> = {
  look: { effect: 'pure' },
  read: { effect: 'read' },
  brief: { effect: 'read', timeoutMs: 100 },
  put: { effect: 'keyed' },
  narrow: { effect: 'keyed', concurrency: 1 },
  send: { effect: 'once' },
  post: { effect: 'once', reconcile: true },
  buy: { effect: 'keyed', costMicroUsd: 100 },
  pay: { effect: 'once', costMicroUsd: 250 },
  ask_send: { effect: 'once', approve: 'always' },
  ask_buy: { effect: 'keyed', costMicroUsd: 100, approveBig: true },
  ask_other: { effect: 'once', approve: { approver: 'another' } },
  ask_end: { effect: 'keyed', approve: { onReject: 'end' } },
  ask_soon: { effect: 'once', approve: { expiresInMs: 700 } },
  ask_big: { effect: 'once', approveBig: true },
  ask_broken: {
    effect: 'once',
    approve: {
      when: () => {
        throw new Error('the rule is broken');
      },
    },
  },
  login: { effect: 'read', login: true },
  login_send: { effect: 'once', login: true },
};

/** Tools whose calls are carried out by a run that works by the plan that the arguments name. */
export const CARRIED: Readonly<Record<string, Pick<PlannerTool, 'concurrency'>>> = {
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
export function withCarried(tools: readonly Tool[], planner: Planner): readonly AnyTool[] {
  const all: AnyTool[] = [...tools];
  const carriedOutBy = { planner, tools: all };
  for (const [name, kind] of Object.entries(CARRIED)) {
    all.push({ ...kind, name, description: `Has ${name} done.`, input: CARRIED_INPUT, effect: 'pure', carriedOutBy });
  }
  return all;
}

export interface ToolWorld {
  readonly process: SimulatedProcess;
  readonly ledger: Ledger;
  /** The process may die in the call with this number, before it takes effect or after. */
  mayDie(call: number, landed: boolean): void;
  /** The process may stand still in the call with this number, before it takes effect. */
  mayFreeze(call: number): void;
  readonly graceMs: number;
  /** Counts the calls of this process and of those that were in its place before. */
  nextCall(): number;
}

export function simulatedTools(world: ToolWorld): readonly Tool[] {
  return Object.entries(TOOL_KINDS).map(([name, kind]) => simulatedTool(name, kind, world));
}

function simulatedTool(name: string, kind: Kind, world: ToolWorld): Tool {
  const { login = false, reconcile = false, approve: stated, approveBig, ...plain } = kind;
  const { process } = world;
  const rule: ApprovalGate = {
    when: async (args) => {
      const { ms = 0, big = false } = args as CallArgs;
      await process.wait(ms);
      return big;
    },
  };
  const approve = approveBig ? rule : stated;
  const made = {
    ...plain,
    name,
    description: `Does ${name}.`,
    input: INPUT,
    ...(approve === undefined ? {} : { approve }),
    run: async (args: unknown, context: ToolContext) => {
      const { idempotencyKey: key } = context;
      const atWork = world.ledger.atWork.get(key) ?? new Set();
      world.ledger.atWork.set(key, atWork.add(process));
      try {
        return await run(name, args as CallArgs, context, world, login);
      } finally {
        atWork.delete(process);
      }
    },
  };
  if (!reconcile) return made;
  return { ...made, reconcile: (_: unknown, context: ToolContext) => whatHappened(context, world) };
}

async function run(
  name: string,
  args: CallArgs,
  context: ToolContext,
  world: ToolWorld,
  login: boolean,
): Promise<Json> {
  const { process, ledger } = world;
  const { identity, idempotencyKey: key, signal, attempt } = context;
  const { id, ms = 0, fail, deaf = false, heavy = false } = args;
  ledger.tell(process.name, () => `${identity.run}: ${name} ${id} is run, attempt ${attempt}`);
  if (login && !ledger.loggedIn && !ledger.logins.has(`${identity.run}/${id}`)) {
    throw new LoginRequired(`https://login.example/${id}`);
  }
  const { effect = 'once', costMicroUsd = 0, approve, approveBig = false } = TOOL_KINDS[name] ?? {};
  const { run: owner } = identity;
  checkIdentity(context, ledger);
  checkCall(name, args, owner, ledger, approveBig ? args.big === true : approve !== undefined);
  ledger.attempted({ tool: name, effect, key, run: owner, id, args: JSON.stringify(args), costMicroUsd }, process);
  const call = world.nextCall();
  await pause(ms / 2, process, deaf ? undefined : signal);
  world.mayDie(call, false);
  if (!process.alive) return never();
  world.mayFreeze(call);
  await process.wait(0);
  if (fail === 'always') throw new ToolFailure('It cannot be done.', { code: 'refused' });
  if (fail === 'throughout' || (fail === 'once' && attempt === 1)) {
    throw new ToolFailure('Not now.', { code: 'busy', retryable: true });
  }
  ledger.effect(key, owner, process, world.graceMs);
  ledger.tell(process.name, () => `${owner}: ${name} ${id} takes effect`);
  world.mayDie(call, true);
  if (!process.alive) return never();
  await pause(ms / 2, process, deaf ? undefined : signal);
  const value = { run: owner, tenant: identity.tenant, id };
  return heavy ? { ...value, text: HEAVY } : value;
}

function pause(ms: number, process: SimulatedProcess, signal: AbortSignal | undefined): Promise<void> {
  if (ms === 0) return Promise.resolve();
  if (signal === undefined) return process.wait(ms);
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const cancel = process.clock.after(ms, resolve);
    signal.addEventListener('abort', () => {
      cancel();
      reject(signal.reason);
    });
  });
}

/** The world knows what has happened, and nothing of what is on its way. */
function whatHappened({ idempotencyKey: key, identity }: ToolContext, { ledger, process }: ToolWorld): Reconciled {
  const done = ledger.effects.has(key);
  ledger.tell(process.name, () => `${identity.run}: the world says ${done ? 'done' : 'not done'}`);
  if (done) return { status: 'done', value: { run: identity.run, tenant: identity.tenant, id: 'done' } };
  ledger.notDone(key);
  return { status: 'not_done' };
}

function checkIdentity({ identity }: ToolContext, ledger: Ledger): void {
  const first = ledger.runs.get(identity.run)?.entries[0];
  if (first?.kind === 'started' && JSON.stringify(first.identity) === JSON.stringify(identity)) return;
  ledger.violated('no foreign data', `a tool was given the identity ${JSON.stringify(identity)}`, identity.run);
}

/** A call is made with its own arguments, or with those of its approval, and only when it was approved. */
function checkCall(tool: string, args: CallArgs, run: string, ledger: Ledger, gated: boolean): void {
  const entries = ledger.runs.get(run)?.entries ?? [];
  const place = placeOf(entries, args.id);
  if (place === undefined) {
    ledger.violated('no foreign data', `no call of the run has the id ${args.id}`, run);
    return;
  }
  checkOrder(entries, place, args, run, ledger);
  if (!gated) return;
  const { step, call } = place;
  const tokens = entries.flatMap((entry) =>
    entry.kind === 'paused' && entry.step === step && entry.call === call ? [entry.token] : [],
  );
  const approval = entries.find(
    (entry) => entry.kind === 'resumed' && entry.verdict === 'approve' && tokens.includes(entry.token),
  );
  if (approval?.kind !== 'resumed') {
    ledger.violated('gates', `${tool} ${args.id} ran without an approval`, run);
    return;
  }
  if (approval.args !== undefined && !jsonEquals(approval.args, args as unknown as Json)) {
    ledger.violated('gates', `${tool} ${args.id} ran with other arguments than were approved`, run);
  }
}

/** All that the branch comes after has ended with a value; of one with routes all has ended, and the first open one is gone. */
function checkOrder(entries: readonly Entry[], place: Place, args: CallArgs, run: string, ledger: Ledger): void {
  const { step, call, decision } = place;
  const branch = branchesOf(decision)[call];
  if (branch === undefined) return;
  const needs = dependenciesOf(branch);
  const earlier = waysOf(branch).flatMap((way) => allReferencesIn(way.args));
  if (needs.length === 0 && earlier.length === 0) return;
  const state = foldEntries(entries);
  const { id } = args;
  const missing = needs.find((need) => outcomeIn(state, step, need) === undefined);
  if (missing !== undefined) ledger.violated('order', `${id} ran before ${missing} had ended`, run);
  const gone = openRoute(branch, (need) => outcomeIn(state, step, need));
  if (gone === undefined) ledger.violated('order', `${id} ran, and not all that it needs has the value asked for`, run);
  else checkWay(gone.args, step, args, run, state, ledger);
}

/** The arguments are those of the way that is open, with the value that they refer to; but for those that somebody changed. */
function checkWay(
  given: Json,
  step: number,
  { id, way, note }: CallArgs,
  run: string,
  state: RunState,
  ledger: Ledger,
): void {
  if (note === 'edited' || !isJsonObject(given)) return;
  if (given['way'] !== way) ledger.violated('order', `${id} came another way than the first open one`, run);
  const reference = asReference(given['note'] ?? null);
  const outcome = reference && outcomeIn(state, reference.step ?? step, reference.$from);
  if (outcome?.kind !== 'value') return;
  // Of a value that is kept as an artifact its preview has the id too.
  const value = outcome.artifact === undefined ? outcome.value : atPointer(outcome.value, '/preview');
  const wanted = value === undefined ? undefined : atPointer(value, reference?.path ?? '');
  if (!jsonEquals(wanted, note)) ledger.violated('order', `${id} was given something else than it refers to`, run);
}

function outcomeIn({ open, steps }: RunState, step: number, id: string): Outcome | undefined {
  const at = open?.move.step === step ? { decision: open.move.decision, calls: open.calls } : steps[step];
  const index =
    at === undefined ? -1 : branchesOf(at.decision).findIndex((branch, place) => branchId(branch, place) === id);
  return at?.calls[index]?.outcome;
}

interface Place {
  readonly step: number;
  readonly call: number;
  readonly decision: Decision;
}

function placeOf(entries: readonly Entry[], id: string): Place | undefined {
  for (let index = entries.length - 1; index >= 0; index -= 1) {
    const entry = entries[index];
    if (entry?.kind !== 'moved') continue;
    const { decision } = wholeMove(entry, entries, index + 1);
    const call = branchesOf(decision).findIndex((branch) =>
      waysOf(branch).some(({ args }) => isJsonObject(args) && args['id'] === id),
    );
    if (call !== -1) return { step: entry.step, call, decision };
  }
  return undefined;
}
