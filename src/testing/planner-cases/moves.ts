/** What a planner decides on an ordinary day, and what its parallel calls look like. */
import assert from 'node:assert/strict';
import { type Branch, branchesOf, type CallParallel, local, type Move } from '#core';
import {
  ANSWER,
  assertAsked,
  decidedMove,
  inRuntime,
  LOOK_UP,
  lookUp,
  ordinary,
  type PlannerBench,
  type PlannerCase,
  requestText,
  untilEnded,
  watched,
} from './kit.ts';
import { ORDINARY } from './views.ts';

async function runTopPrompts(bench: PlannerBench): Promise<void> {
  for (const { when, view } of ORDINARY) {
    const made = await bench.make();
    await decidedMove(made.planner, view, when);
    assertAsked(bench, made);
  }
}

export const topPrompts: PlannerCase = {
  name: 'top prompts',
  about: 'a valid decision for what people ask every day',
  wants: 'Any decision, for the usual goals, histories and tools.',
  script: ordinary,
  run: runTopPrompts,
};

async function runParallelShape(bench: PlannerBench): Promise<void> {
  const made = await bench.make();
  const { planner, asked, check } = watched(made.planner);
  const state = await inRuntime(planner, [lookUp], async ({ runtime, journal }) => {
    const { id } = await runtime.start('Compare the weather in three cities', { identity: local('kit') });
    return untilEnded(journal, id);
  });
  check();
  assertAsked(bench, made);
  const parallel = asked.flatMap(({ move: { decision } }) => (decision.kind === 'call_parallel' ? [decision] : []));
  assert.ok(parallel.length > 0, 'the planner made no parallel call; if it never makes one, say so in `skip`');
  for (const call of parallel) assertShape(call, bench.capabilities.modelDriven);
  assertUniqueIds(asked.map(({ move }) => move));
  for (const { decision, calls } of state.steps) {
    if (decision.kind !== 'call_parallel') continue;
    assert.equal(calls.length, decision.branches.length, 'a branch has no outcome');
    const values = calls.filter(({ outcome }) => outcome.kind === 'value').length;
    assert.ok(values > 0, 'no branch of a parallel call could be carried out');
  }
  assert.equal(state.ending?.kind, 'finished', 'the run did not finish after a parallel call');
}

/** The decision is valid by now; this is what validation cannot know. */
function assertShape({ branches }: CallParallel, modelDriven: boolean): void {
  assert.ok(branches.length > 1, 'a parallel call of one branch is a call: use call_tool');
  if (!modelDriven) return;
  const asked = branches.filter(({ tool }) => tool === LOOK_UP).length;
  assert.equal(asked, MODEL_CALLS.length, `the model made ${MODEL_CALLS.length} calls, and ${asked} were decided`);
  // Each of the model's calls is owed an answer under its id.
  assert.ok(branches.every(hasId), "a branch of a model's parallel call has no callId");
}

function hasId({ callId }: Branch): boolean {
  return callId !== undefined && callId !== '';
}

function assertUniqueIds(moves: readonly Move[]): void {
  const ids = moves.flatMap(({ decision }) => branchesOf(decision).flatMap(({ callId }) => callId ?? []));
  const twice = ids.filter((id, index) => ids.indexOf(id) !== index);
  assert.deepEqual(twice, [], 'these call ids are used more than once in the run');
}

/** Two providers' bad habits: an id twice, and an empty one. */
const MODEL_CALLS = [
  { id: 'same', tool: LOOK_UP, args: { about: 'Lisbon' } },
  { id: 'same', tool: LOOK_UP, args: { about: 'Porto' } },
  { id: '', tool: LOOK_UP, args: { about: 'Faro' } },
];

export const parallelShape: PlannerCase = {
  name: 'parallel shape',
  about: 'parallel calls have ids, joins and an outcome each',
  wants: 'Several calls of the tool `lookUp` at once, then the end.',
  script: (request) => (requestText(request).includes('looked up') ? ANSWER : { calls: MODEL_CALLS }),
  run: runParallelShape,
};
