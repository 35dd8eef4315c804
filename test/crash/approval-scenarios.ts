/** Calls that people approve, of whom processes die between an answer, the rule that it sets, and the call. */
import { type Control, type Decision, type Entry, type Identity, PilotageError } from '#core';
import type { CrashScenario, CrashWorld } from '#testing';
import type { Tool } from '#tools';
import { call } from '../kit/decisions.ts';

const payer = (world: CrashWorld, name: string, needsApproval: NonNullable<Tool['needsApproval']>): Tool => ({
  name,
  description: name,
  effect: 'once',
  inputSchema: { type: 'object' },
  needsApproval,
  execute: async (_args, context) => {
    await world.effect(context);
    return name;
  },
  reconcile: (_args, context) => (world.count(context) > 0 ? { status: 'done', value: name } : { status: 'not_done' }),
});

const decides =
  (...decisions: Decision[]): CrashScenario['planner'] =>
  (run) =>
    decisions[run.trajectory.count] ?? {
      kind: 'finish',
      reason: 'goal',
      payload: run.trajectory.steps.map((step) => step.calls.map(({ outcome }) => outcome.kind)),
    };

/** After a crash the same is asked again, of somebody who may have answered. */
async function unlessAnswered(answering: Promise<void>): Promise<void> {
  await answering.catch((error: unknown) => {
    if (!PilotageError.is(error, 'approver_refused')) throw error;
  });
}

const owner = (entry: Entry): Control['from'] => {
  const { tenant, session }: Pick<Identity, 'tenant' | 'session'> = { tenant: 'local', session: 'office' };
  return entry.kind === 'paused' ? { tenant, session, user: 'bea', scope: 'admin' } : undefined;
};

const byTwo: CrashScenario = {
  name: 'two people approve, and both remember it',
  query: 'go',
  tools: (world) => [payer(world, 'pay', { approvals: 2 })],
  planner: decides(call('pay', { n: 0 }), call('pay', { n: 1 }), call('pay', { n: 2 })),
  controls: (entry) => {
    const from = owner(entry);
    if (entry.kind !== 'paused' || from === undefined) return undefined;
    const remember = { scope: 'user', match: 'tool' };
    return { id: `yes_${entry.token}`, type: 'APPROVE', payload: { token: entry.token, remember }, from };
  },
  answer: (run, { token }) => unlessAnswered(run.approve(token, { remember: { scope: 'user', match: 'tool' } })),
  check: (_, entries) => {
    const count = (kind: Entry['kind']): number => entries.filter((entry) => entry.kind === kind).length;
    const problems: string[] = [];
    if (count('paused') !== 1) problems.push(`people were asked ${count('paused')} times`);
    if (count('approved') !== 1) problems.push(`${count('approved')} of two approvals were not the last`);
    const calls = new Set(entries.flatMap((entry) => (entry.kind === 'ruled' ? [`${entry.step}.${entry.call}`] : [])));
    if (calls.size !== 2) problems.push(`rules answered for ${calls.size} calls`);
    return problems;
  },
};

const rejected: CrashScenario = {
  name: 'a no that the run remembers',
  query: 'go',
  tools: (world) => [payer(world, 'pay', true)],
  planner: decides(call('pay', { n: 0 }), call('pay', { n: 0 }), call('pay', { n: 0 })),
  answer: (run, { token }) => run.reject(token, { remember: { scope: 'run' } }),
  check: (state, entries) => {
    const asked = entries.filter(({ kind }) => kind === 'paused').length;
    const codes = state.steps.flatMap((step) =>
      step.calls.map(({ outcome }) => ('error' in outcome ? outcome.error.code : 'made')),
    );
    const isRejected = codes.length === 3 && codes.every((code) => code === 'tool_rejected');
    return [
      ...(asked === 1 ? [] : [`asked ${asked} times`]),
      ...(isRejected ? [] : [`the calls came to ${codes.join()}`]),
    ];
  },
};

export const approvalScenarios: readonly CrashScenario[] = [byTwo, rejected];
