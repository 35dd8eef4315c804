/** What a planner does when its time is up, and how much it may ask a person to read. */
import assert from 'node:assert/strict';
import {
  type Json,
  type JsonObject,
  local,
  PAYLOAD_BOUNDS,
  PilotageError,
  type RequestPause,
  type RunView,
  validateDecision,
} from '#core';
import { runView } from '../run-view.ts';
import {
  assertAsked,
  callNext,
  caseFailure,
  checkedMove,
  decidedMove,
  inRuntime,
  lookUp,
  ordinary,
  type PlannerBench,
  type PlannerCase,
  shownError,
  untilEnded,
  watched,
  within,
} from './kit.ts';
import { lookUpStep, TOOLS, value } from './views.ts';

const HOUR_MS = 3_600_000;

async function runPastDeadline(bench: PlannerBench): Promise<void> {
  const deadlineAt = Date.now() - HOUR_MS;
  await runLate(bench, deadlineAt);
  await askLate(bench, deadlineAt);
}

/** The runtime decides before the planner is asked. */
async function runLate(bench: PlannerBench, deadlineAt: number): Promise<void> {
  const { planner: own, model } = await bench.make();
  const { planner, asked } = watched(own);
  const { ending } = await inRuntime(planner, [lookUp], async ({ runtime, journal }) => {
    const { id } = await runtime.start('Too late', { identity: local('kit'), limits: { deadlineAt } });
    return untilEnded(journal, id);
  });
  const reason = ending?.kind === 'finished' ? ending.reason : ending?.error.code;
  assert.equal(reason, 'deadline_exceeded', 'a run past its deadline came to something else');
  assert.equal(asked.length + model.calls.length, 0, 'something was asked for a run past its deadline');
}

/** A planner that is asked all the same, with the signal that says so. */
async function askLate(bench: PlannerBench, deadlineAt: number): Promise<void> {
  const { planner, model } = await bench.make();
  const reason = new DOMException('The deadline has passed.', 'TimeoutError');
  const base = runView({ query: 'Too late', tools: TOOLS });
  const view: RunView = Object.freeze({ ...base, budget: Object.freeze({ ...base.budget, deadlineAt }) });
  const when = 'asked an hour after the deadline';
  let answer: unknown;
  try {
    answer = await callNext(planner, view, AbortSignal.abort(reason));
  } catch (error) {
    if (error !== reason && !PilotageError.is(error))
      throw caseFailure(`${when}: the planner threw ${shownError(error)}`, error);
    assert.equal(model.calls.length, 0, `${when}: the planner asked its model`);
    return;
  }
  const { decision } = checkedMove(answer, when);
  const ended = decision.kind === 'finish' ? decision.reason : decision.kind;
  assert.equal(ended, 'deadline_exceeded', `${when}: its decision was another`);
  assert.equal(model.calls.length, 0, `${when}: the planner asked its model`);
}

export const pastDeadline: PlannerCase = {
  name: 'past deadline',
  about: 'nothing is begun when the time is up',
  wants: 'Any decision; none is to be made once the signal is aborted.',
  script: ordinary,
  run: runPastDeadline,
};

/** More than a pause can show. A planner that shows it has to cut it. */
const HUGE = 'A very long request. '.repeat(2_000);
const DEEP: Json = Array.from({ length: 20 }).reduce<Json>((inner) => ({ inner }), 'the bottom');
const WIDE: Json = Array.from({ length: 500 }, (_, row) => ({ row, text: `row ${row}` }));

async function runPauseBounds(bench: PlannerBench): Promise<void> {
  const made = await bench.make();
  const fresh = await decidedMove(made.planner, runView({ query: 'May I?', tools: TOOLS }), 'a short request');
  assertAsked(bench, made);
  const { decision } = fresh;
  if (decision.kind !== 'request_pause') {
    assert.fail(`the planner was to pause, and decided ${decision.kind}; see what the scenario wants`);
  }
  assertRefusedBeyond(decision);
  const large: readonly [string, RunView][] = [
    ['a very long request', runView({ query: HUGE, tools: TOOLS })],
    ['a goal that is very long', runView({ goal: HUGE, tools: TOOLS })],
    ['a result that is nested deeply', runView({ steps: [lookUpStep(0, 'x', value(DEEP))], tools: TOOLS })],
    ['a result of many rows', runView({ steps: [lookUpStep(0, 'x', value(WIDE))], tools: TOOLS })],
  ];
  for (const [when, view] of large) await decidedMove((await bench.make()).planner, view, when);
  await pauseAndResume(bench);
}

/** Each bound by itself, on the planner's own pause. */
function assertRefusedBeyond(pause: RequestPause): void {
  const { depth, keys, items, stringChars, bytes } = PAYLOAD_BOUNDS;
  const beyond: Readonly<Record<string, JsonObject>> = {
    depth: { deep: Array.from({ length: depth }).reduce<Json>((inner) => [inner], 'x') },
    keys: Object.fromEntries(Array.from({ length: keys + 1 }, (_, key) => [`key ${key}`, true])),
    items: { list: Array.from({ length: items + 1 }, () => 0) },
    stringChars: { text: 'x'.repeat(stringChars + 1) },
    bytes: { list: Array.from({ length: items }, () => 'x'.repeat(bytes / items)) },
  };
  for (const [bound, payload] of Object.entries(beyond)) {
    assert.throws(
      () => validateDecision({ ...pause, payload }),
      (error) => PilotageError.is(error, 'invalid_decision'),
      `a payload beyond the bound ${bound} was not refused`,
    );
  }
}

/** The runtime can show the pause, and the planner goes on with the answer. */
async function pauseAndResume(bench: PlannerBench): Promise<void> {
  const { planner, asked, check } = watched((await bench.make()).planner);
  await inRuntime(planner, [lookUp], async ({ runtime }) => {
    const run = await runtime.start('May I?', { identity: local('kit') });
    const first = await within(run.result(), 'the run did not pause');
    assert.equal(first.status, 'paused', 'the run did not pause');
    await run.resume({ payload: { message: 'Go on.' } });
    await within(run.result(), 'the run did not go on after its pause was answered');
  });
  check();
  assert.ok(asked.length > 1, 'the planner was not asked again after its pause was answered');
}

export const pausePayloadBounds: PlannerCase = {
  name: 'pause payload bounds',
  about: 'what a pause shows is small enough to list',
  wants: 'Pause at the first step, with the payload that a person would be shown; when it is answered, anything.',
  script: () => ({ text: 'What do you mean?' }),
  needs: { capability: 'canPause', without: 'the planner does not pause' },
  run: runPauseBounds,
};
