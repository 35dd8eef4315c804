/**
 * What a planner does when its time is up, how much it may ask a person to read, and many runs of one planner
 * object at once.
 */
import assert from 'node:assert/strict';
import { type Identity, type Json, local, PilotageError, type Planner, type RunView } from '#core';
import type { Journal } from '#journal';
import type { Run } from '#runtime';
import type { Tool } from '#tools';
import { type ScriptedModel, type ScriptedReply, type ScriptedRequest, scriptedModel } from '../models.ts';
import { runView } from '../run-view.ts';
import { seededRandom } from '../time-and-chance.ts';
import {
  assertAsked,
  callNext,
  calls,
  caseFailure,
  checkedMove,
  decidedMove,
  hasTool,
  inRuntime,
  LOOK_UP,
  lookUp,
  ordinary,
  type PlannerAndModel,
  type PlannerBench,
  type PlannerCase,
  requestText,
  shownError,
  untilEnded,
  watched,
  within,
} from './kit.ts';
import { firstDifference, leavesOf } from './traces.ts';
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

/** More than any value may have. A planner that shows it in a pause has to cut it. */
const HUGE = 'A very long request. '.repeat(200_000);
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
  const large: readonly [string, RunView][] = [
    ['a very long request', runView({ query: HUGE, tools: TOOLS })],
    ['a goal that is very long', runView({ goal: HUGE, tools: TOOLS })],
    ['a result that is nested deeply', runView({ steps: [lookUpStep(0, 'x', value(DEEP))], tools: TOOLS })],
    ['a result of many rows', runView({ steps: [lookUpStep(0, 'x', value(WIDE))], tools: TOOLS })],
  ];
  for (const [when, view] of large) await decidedMove((await bench.make()).planner, view, when);
  await pauseAndResume(bench);
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
  about: 'what a pause shows is small enough to be kept and listed',
  wants: 'Pause at the first step, with the payload that a person would be shown; when it is answered, anything.',
  script: () => ({ text: 'What do you mean?' }),
  needs: { capability: 'canPause', without: 'the planner does not pause' },
  run: runPauseBounds,
};

const RUNS = 64;
/** In the query of one run and of no other; and so the parts of its identity. */
const word = (run: number): string => `word-${run}-end`;
const WORDS = /(?<=(?:word|run|user|session)-)\d+(?=-end)/g;
const OWN_WORD = /word-\d+-end/g;

function identityOf(run: number): Identity {
  return local(`user-${run}-end`, { session: `session-${run}-end`, run: `run-${run}-end` });
}

async function runConcurrentReuse(bench: PlannerBench): Promise<void> {
  const made = await bench.make(slow(scriptedModel(echo)));
  const before = partsOf(made);
  await askAllAtOnce(made.planner);
  await inRuntime(made.planner, [slowLookUp()], async ({ runtime, journal }) => {
    const runs = await Promise.all(
      Array.from({ length: RUNS }, (_, index) =>
        runtime.start(`What is ${word(index)}?`, {
          identity: identityOf(index),
        }),
      ),
    );
    await Promise.all(runs.map((run, index) => assertOwn(run, index, journal, bench.capabilities.modelDriven)));
  });
  assertAsked(bench, made);
  const changed = firstDifference(before, partsOf(made));
  assert.equal(changed, undefined, `the planner object was changed by its runs: this${changed}`);
}

/** Each is in the middle of `next` when the others begin, whatever it awaits there: what it kept outside is another's by then. */
async function askAllAtOnce(planner: Planner): Promise<void> {
  const steps = [lookUpStep(0, 'the weather')];
  const views = Array.from({ length: RUNS }, (_, run) =>
    runView({
      identity: identityOf(run),
      query: `What is ${word(run)}?`,
      tools: TOOLS,
      ...(run % 2 === 0 ? {} : { steps }),
    }),
  );
  const made = await Promise.all(
    views.map((view, run) => decidedMove(planner, view, `asked for run ${run} of ${RUNS} at once`)),
  );
  for (const [run, move] of made.entries())
    assertOwnWords(move, run, `asked for run ${run} of ${RUNS} at once, it decided`);
}

function assertOwnWords(said: unknown, run: number, where: string): void {
  const found = [...new Set(JSON.stringify(said).match(WORDS))].filter((number) => number !== String(run));
  assert.deepEqual(found, [], `${where} with something of another run in it`);
}

async function assertOwn(run: Run, index: number, journal: Journal, modelDriven: boolean): Promise<void> {
  const result = await within(run.result(), `run ${index} of ${RUNS} did not end`);
  const error = result.status === 'failed' ? result.error.message : '';
  assert.notEqual(result.status, 'failed', `run ${index} of ${RUNS} failed: ${error}`);
  assertOwnWords(await journal.read(run.id), index, `run ${index} ended`);
  if (!modelDriven) return;
  const said = (result.status === 'finished' ? result.answer : undefined) ?? JSON.stringify(result);
  assert.ok(said.includes(word(index)), `run ${index} did not get its own model's answer`);
}

/** Names each word of the request, so that a stranger's would be seen. */
function echo(request: ScriptedRequest): ScriptedReply {
  const words = [...new Set(requestText(request).match(OWN_WORD))].join(' ');
  if (hasTool(request, LOOK_UP) && !requestText(request).includes('looked up')) return calls(LOOK_UP, { about: words });
  return { text: `This is all about ${words}.` };
}

/** Lets others go first: each time another number of turns of the event loop. */
function turns(): () => Promise<void> {
  const random = seededRandom(RUNS);
  return async () => {
    for (let left = Math.ceil(random() * 8); left > 0; left -= 1) {
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
  };
}

/** Values come back out of order. */
function slowLookUp(): Tool {
  const wait = turns();
  return {
    ...lookUp,
    execute: async (args, context) => {
      await wait();
      return lookUp.execute(args, context);
    },
  };
}

/** Replies come out of order. */
function slow(model: ScriptedModel): ScriptedModel {
  const wait = turns();
  return {
    ...model,
    doGenerate: async (request) => {
      await wait();
      return model.doGenerate(request);
    },
    doStream: async (request) => {
      await wait();
      return model.doStream(request);
    },
  };
}

/** What can be seen of the object from outside, however deep; the model of the scenario is not its own. */
function partsOf({ planner, model }: PlannerAndModel): ReadonlyMap<string, unknown> {
  return leavesOf(planner, (part) => part === model);
}

export const concurrentReuse: PlannerCase = {
  name: 'concurrent reuse',
  about: `one planner object drives ${RUNS} runs at once`,
  wants: 'Any decisions, best with something of the run in them, such as its query; then the end.',
  script: echo,
  run: runConcurrentReuse,
};
