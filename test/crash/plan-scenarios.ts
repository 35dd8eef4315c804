/** Plans, to be cut in two by a crash: with messages and an end, held and edited by a person, and while they are still made. */

import type { Json } from '#pilotage';
import type { Branch, CallParallel, Decision, Delta, Move, RunView, Step } from '#pilotage/planner';
import type { CrashScenario } from '#testing';
import { oneOfEach, outcomes, worker } from './scenarios.ts';

const plan = (branches: readonly Branch[], id = 'p'): CallParallel => ({
  kind: 'call_parallel',
  plan: id,
  branches,
  onInvalid: 'per_branch',
});

const DIAMOND: readonly Branch[] = [
  { id: 'a', tool: 'read', args: { n: 1 } },
  { id: 'b', tool: 'once', args: { n: 2 }, after: ['a'] },
  { id: 'c', tool: 'keyed', args: { of: { $from: 'a', path: '/n' } } },
  { id: 'say', tool: '_message', args: { text: 'half way' }, after: ['c'] },
  { id: 'd', tool: 'keyed', args: { n: 4 }, after: ['b', 'c'] },
];

const said = (run: RunView): Json => outcomes(run);

const diamond: CrashScenario = {
  name: 'a plan with a message',
  query: 'go',
  tools: oneOfEach,
  planner: (run) =>
    run.trajectory.count === 0 ? plan(DIAMOND) : { kind: 'finish', reason: 'goal', payload: said(run) },
  check: (_, entries) => {
    const told = entries.filter((entry) => entry.kind === 'call_ended' && entry.call === 3);
    return told.length === 1 ? [] : [`The message was said ${told.length} times.`];
  },
};

const ended: CrashScenario = {
  name: 'a plan with an end',
  query: 'go',
  tools: oneOfEach,
  planner: (run) => {
    const done = run.trajectory.step(0)?.calls[1]?.outcome;
    if (done?.kind === 'value') return { kind: 'finish', reason: 'goal', payload: done.value };
    return plan([
      { id: 'a', tool: 'keyed', args: { n: 1 } },
      { id: 'end', tool: '_finish', args: { answer: { $from: 'a', path: '/n' } } },
      { id: 'late', tool: 'keyed', args: { n: 2 }, after: ['end'] },
    ]);
  },
};

/** The first node waits for an approval, so that the run is sure to be held before the second. */
const edited: CrashScenario = {
  name: 'a plan that somebody changes',
  query: 'go',
  tools: (world) => [...oneOfEach(world), worker(world, 'gated', { effect: 'keyed', needsApproval: true })],
  planner: (run) =>
    run.trajectory.count === 0
      ? plan([
          { id: 'a', tool: 'gated', args: { n: 1 } },
          { id: 'b', tool: 'keyed', args: { n: 2 }, after: ['a'] },
          { id: 'c', tool: 'once', args: { n: 3 }, after: ['b'] },
        ])
      : { kind: 'finish', reason: 'goal', payload: said(run) },
  controls: (entry) =>
    entry.kind === 'paused' && entry.call !== undefined ? { id: 'hold', type: 'PAUSE' } : undefined,
  answer: async (run, { token }) => {
    const held = (await run.state()).pauses.find(({ step }) => step === undefined);
    if (held !== undefined) {
      const nodes = { b: { args: { n: 20 } }, c: { skip: true } } as const;
      await run.resume({ token: held.token, nodes });
    }
    if (held?.token !== token) await run.approve(token);
  },
  check: ({ steps }) => {
    const b = steps[0]?.calls[1]?.outcome;
    const took = b?.kind === 'value' ? JSON.stringify(b.value) : b?.kind;
    return took?.includes('"n":20') === true ? [] : [`The edit was lost: ${took}`];
  },
};

const LINES: readonly (readonly Branch[])[] = [
  [{ id: 'a', tool: 'keyed', args: { n: 1 } }],
  [{ id: 'b', tool: 'read', args: { n: { $from: 'a', path: '/n' } } }],
  [
    { id: 'c', tool: 'keyed', args: { n: 3 }, after: ['b'] },
    { id: 'd', tool: 'keyed', args: { n: 4 } },
  ],
];

function doneIn({ decision, calls }: Step): readonly string[] {
  if (decision.kind !== 'call_parallel') return [];
  return decision.branches.flatMap(({ id = '' }, index) => (calls[index]?.outcome.kind === 'value' ? [id] : []));
}

/** Gives its plan line by line, and after a crash plans what is not done. */
async function* writing(run: RunView): AsyncGenerator<Delta, Decision | Move> {
  const done = new Set(run.trajectory.steps.flatMap(doneIn));
  const left = LINES.map((line) => line.filter(({ id = '' }) => !done.has(id))).filter((line) => line.length > 0);
  if (left.length === 0) return { kind: 'finish', reason: 'goal', payload: [...done].sort() };
  const id = `p${run.trajectory.count}`;
  const free = left.map((line) =>
    line.map(({ after, args, ...branch }): Branch => {
      const needs = (after ?? []).filter((need) => !done.has(need));
      const own = done.has('a') && branch.id === 'b' ? { n: 1 } : args;
      return { ...branch, args: own, ...(needs.length === 0 ? {} : { after: needs }) };
    }),
  );
  for (const line of free) yield { type: 'branches', plan: id, branches: line };
  return { decision: plan(free.flat(), id), usage: { inputTokens: 1 } };
}

const growing: CrashScenario = {
  name: 'a plan that grows while it is carried out',
  query: 'go',
  tools: oneOfEach,
  planner: { name: 'writing', next: writing },
};

export const planScenarios: readonly CrashScenario[] = [diamond, ended, edited, growing];
