/** A single planner object with many runs at once: nothing of one run leaks into another. */
import assert from 'node:assert/strict';
import { type Identity, local, type Planner } from '#core';
import type { Journal } from '#journal';
import type { Run } from '#runtime';
import type { Tool } from '#tools';
import { runView } from '../run-view.ts';
import { type ScriptedModel, type ScriptedReply, type ScriptedRequest, scriptedModel } from '../scripted-model.ts';
import { seededRandom } from '../seeded-random.ts';
import {
  assertAsked,
  calls,
  decidedMove,
  hasTool,
  inRuntime,
  LOOK_UP,
  lookUp,
  type PlannerAndModel,
  type PlannerBench,
  type PlannerCase,
  requestText,
  within,
} from './kit.ts';
import { firstDifference, leavesOf } from './leaves.ts';
import { lookUpStep, TOOLS } from './views.ts';

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
