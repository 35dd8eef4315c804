/** 50 calls of 5 ms in one parallel step, beside the same 50 waits all at once, and as many at once as really ran. */
import { setTimeout as wait } from 'node:timers/promises';
import { memoryJournal } from '#journal';
import { createRuntime, local, type Runtime, tool } from '#pilotage';
import type { PlannerFunction } from '#pilotage/planner';
import { type Measured, median, short, times, wallMs } from './measure.ts';

const CALLS = 50;
const CALL_MS = 5;
const ROUNDS = 31;
const WARM_UP_ROUNDS = 10;

const fanOut: PlannerFunction = ({ trajectory }) => {
  if (trajectory.count > 0) return { kind: 'finish', reason: 'goal' };
  return {
    kind: 'call_parallel',
    branches: Array.from({ length: CALLS }, (_, id) => ({ tool: 'wait', args: { id } })),
  };
};

export async function parallel(): Promise<Measured> {
  let running = 0;
  let peak = 0;
  const waitTool = tool({
    name: 'wait',
    description: 'Waits 5 ms',
    inputSchema: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] },
    effect: 'read',
    execute: async ({ id }) => {
      running += 1;
      peak = Math.max(peak, running);
      await wait(CALL_MS);
      running -= 1;
      return { id: Number(id) };
    },
  });
  const runtime = createRuntime({ planner: fanOut, tools: [waitTool], journal: memoryJournal() });
  await times(WARM_UP_ROUNDS, () => runFanOut(runtime));
  const overAll: number[] = [];
  const overLanes: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const allMs = await wallMs(() => waitInLanes(CALLS));
    const lanesMs = await wallMs(() => waitInLanes(peak));
    const ourMs = await wallMs(() => runFanOut(runtime));
    overAll.push(ourMs - allMs);
    overLanes.push(ourMs - lanesMs);
  }
  await runtime.close();
  const overhead = short(median(overLanes));
  return {
    keys: { parallel_50_overhead_ms: overhead },
    rows: [
      [
        '50 parallel calls of 5 ms, whole run',
        `+${overhead} ms`,
        `over the same waits ${peak} at once; +${short(median(overAll))} ms over all 50 at once`,
      ],
    ],
  };
}

async function runFanOut(runtime: Runtime): Promise<void> {
  const run = await runtime.start('Wait.', { identity: local('bench') });
  const result = await run.result();
  if (result.status !== 'finished' || result.usage.calls !== CALLS) throw new Error('The parallel run went wrong.');
}

/** All waits, `lanes` of them at a time. */
async function waitInLanes(lanes: number): Promise<void> {
  let left = CALLS;
  const lane = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await wait(CALL_MS);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}
