/** One planner object, many runs at once: nothing of one is in another. */
import assert from 'node:assert/strict';
import { local } from '../../core/identity.ts';
import type { Planner } from '../../core/planner.ts';
import type { Journal } from '../../journal/port.ts';
import type { Run } from '../../runtime/run.ts';
import type { Tool } from '../../tools/tool.ts';
import { type ScriptedModel, type ScriptedReply, type ScriptedRequest, scriptedModel } from '../scripted-model.ts';
import { seededRandom } from '../seeded-random.ts';
import {
  assertAsked,
  calls,
  hasTool,
  inRuntime,
  LOOK_UP,
  lookUp,
  type PlannerBench,
  type PlannerCase,
  saidIn,
  within,
} from './kit.ts';

const RUNS = 64;
/** In the query of one run and of no other. */
const word = (run: number): string => `word-${run}-end`;
const WORDS = /word-\d+-end/g;

async function runConcurrentReuse(bench: PlannerBench): Promise<void> {
  const made = await bench.make(slow(scriptedModel(echo)));
  const before = partsOf(made.planner);
  await inRuntime(made.planner, [slowLookUp()], async ({ runtime, journal }) => {
    const runs = await Promise.all(
      Array.from({ length: RUNS }, (_, index) =>
        runtime.start(`What is ${word(index)}?`, {
          identity: local(`user-${index}`, { session: `session-${index}`, run: `run-${index}` }),
        }),
      ),
    );
    await Promise.all(runs.map((run, index) => assertOwn(run, index, journal, bench.capabilities.modelDriven)));
  });
  assertAsked(bench, made);
  assert.deepEqual(partsOf(made.planner), before, 'the planner object was changed by its runs');
}

async function assertOwn(run: Run, index: number, journal: Journal, modelDriven: boolean): Promise<void> {
  const result = await within(run.result(), `run ${index} of ${RUNS} did not end`);
  const error = result.status === 'failed' ? result.error.message : '';
  assert.notEqual(result.status, 'failed', `run ${index} of ${RUNS} failed: ${error}`);
  const found = new Set(JSON.stringify(await journal.read(run.id)).match(WORDS));
  assert.deepEqual([...found], [word(index)], `run ${index} has something of another run in it`);
  if (!modelDriven) return;
  const said = result.status === 'finished' ? result.answer : JSON.stringify(result);
  assert.ok(said.includes(word(index)), `run ${index} did not get its own model's answer`);
}

/** Names each word of the request, so that a stranger's would be seen. */
function echo(request: ScriptedRequest): ScriptedReply {
  const words = [...new Set(saidIn(request).match(WORDS))].join(' ');
  if (hasTool(request, LOOK_UP) && !saidIn(request).includes('looked up')) return calls(LOOK_UP, { about: words });
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
    run: async (args, context) => {
      await wait();
      return lookUp.run(args, context);
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

/** What can be seen of the object from outside. */
function partsOf(planner: Planner): Readonly<Record<string, unknown>> {
  return { ...planner };
}

export const concurrentReuse: PlannerCase = {
  name: 'concurrent reuse',
  about: `one planner object drives ${RUNS} runs at once`,
  wants: 'Any decisions, best with something of the run in them, such as its query; then the end.',
  script: echo,
  run: runConcurrentReuse,
};
