/** Tools whose calls people decide on: by a gate, by the program's policy, or by both. What they do is noted outside, as of any tool. */
import { type ApprovalTerms, isJsonObject, type Json, type JsonObject, type PolicyAnswer } from '#core';
import type { ApprovalGate, Tool, ToolContext } from '#tools';
import { checkEntered } from './check-approvals.ts';
import { checkCall, checkIdentity } from './check-calls.ts';
import { atWork, doIt, type ToolWorld } from './deeds.ts';
import { type GatedArgs, POLICY_WORDS } from './script-approvals.ts';

interface Kind extends Pick<Tool, 'effect'> {
  /** Absent: only the policy may ask. */
  readonly gate?: ApprovalGate;
}

export const GATED_KINDS: Readonly<Record<string, Kind>> = {
  gate_one: { effect: 'keyed', gate: {} },
  gate_two: { effect: 'once', gate: { approvals: 2 } },
  gate_other: { effect: 'once', gate: { approver: 'another' } },
  gate_both: { effect: 'keyed', gate: { approvals: 2, approver: 'another' } },
  gate_told: {
    effect: 'keyed',
    gate: { approvals: 2, remindAfterMs: 1_000, escalate: { afterMs: 1_500, to: 'bosses' } },
  },
  gate_up: {
    effect: 'once',
    gate: { approver: 'another', escalate: { afterMs: 1_200, to: 'all', approver: 'anyone' } },
  },
  gate_down: {
    effect: 'keyed',
    gate: { remindAfterMs: 1_300, escalate: { afterMs: 1_000, to: 'others', approver: 'another' } },
  },
  gate_brief: { effect: 'once', gate: { approvals: 2, expiresInMs: 900 } },
  gate_last: { effect: 'keyed', gate: { onReject: 'end' } },
  gate_free: { effect: 'keyed' },
};

const INPUT: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    ms: { type: 'number' },
    sum: { type: 'number' },
    policy: { enum: [...POLICY_WORDS] },
  },
  required: ['id', 'sum'],
  additionalProperties: false,
};

/** What the policy of these histories says, for a tool of these. */
export function policySays(args: Json): PolicyAnswer {
  const { policy, sum } = isJsonObject(args) ? args : {};
  const isBig = typeof sum === 'number' && sum > 100;
  switch (policy) {
    case 'deny':
      return { deny: 'Never.' };
    case 'deny_big':
      return isBig ? { deny: 'Too much.' } : 'allow';
    case 'ask':
      return { ask: 'Look at it.' };
    case 'ask_two':
      return { ask: 'Two have to.', approvals: 2 };
    case 'ask_other':
      return { ask: 'Somebody else has to.', approver: 'another' };
    case 'ask_two_big':
      return isBig ? { ask: 'Two have to, for so much.', approvals: 2 } : 'allow';
    default:
      return 'allow';
  }
}

export interface Asks {
  readonly of: 'gate' | 'policy';
  readonly terms: ApprovalTerms;
}

/** Who asks about a call, by hand: each of them has to be content. */
export function asksAbout(tool: string, args: Json): readonly Asks[] {
  const gate = GATED_KINDS[tool]?.gate;
  const said = policySays(args);
  const byPolicy: Asks[] = typeof said === 'object' && 'ask' in said ? [{ of: 'policy', terms: said }] : [];
  return gate === undefined ? byPolicy : [{ of: 'gate', terms: gate }, ...byPolicy];
}

export function isDenied(args: Json): boolean {
  const said = policySays(args);
  return typeof said === 'object' && 'deny' in said;
}

export function gatedTools(world: ToolWorld): readonly Tool[] {
  return Object.entries(GATED_KINDS).map(([name, { effect, gate }]) => ({
    ...(effect === undefined ? {} : { effect }),
    ...(gate === undefined ? {} : { needsApproval: Object.keys(gate).length === 0 ? true : gate }),
    name,
    description: `Does ${name}.`,
    inputSchema: INPUT,
    execute: (args: unknown, context: ToolContext) =>
      atWork(context, world, () => run(name, args as GatedArgs, context, world)),
  }));
}

async function run(tool: string, args: GatedArgs, context: ToolContext, world: ToolWorld): Promise<Json> {
  const { process, ledger } = world;
  const { identity, attempt } = context;
  const { id, ms = 0 } = args;
  const { run: owner, tenant } = identity;
  ledger.tell(process.name, () => `${owner}: ${tool} ${id} is run, attempt ${attempt}`);
  checkIdentity(context, ledger);
  checkCall(tool, args, context, ledger, false);
  checkEntered(tool, { ...args }, context, ledger);
  const { effect = 'once' } = GATED_KINDS[tool] ?? {};
  const deed = { tool, effect, run: owner, id, args: JSON.stringify(args), costMicroUsd: 0 };
  return doIt(deed, { ms, deaf: false, isRemote: false }, context, world, { run: owner, tenant, id }, () => {});
}
