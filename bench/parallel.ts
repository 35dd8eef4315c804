/** 50 calls of 5 ms in one parallel step, beside the same 50 waits under `Promise.all`. */
import { setTimeout as wait } from 'node:timers/promises';
import { createRuntime, local, memoryJournal, type PlannerFunction, tool } from '../src/index.ts';
import { type Measured, median, short, wallMs } from './measure.ts';

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

const waitTool = tool({
  name: 'wait',
  description: 'Waits 5 ms',
  input: { type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] },
  effect: 'read',
  run: async ({ id }) => {
    await wait(CALL_MS);
    return { id: Number(id) };
  },
});

export async function parallel(): Promise<Measured> {
  const runtime = createRuntime({ planner: fanOut, tools: [waitTool], journal: memoryJournal() });
  const overheadMs: number[] = [];
  for (let round = 0; round < WARM_UP_ROUNDS + ROUNDS; round += 1) {
    const floorMs = await wallMs(() => Promise.all(Array.from({ length: CALLS }, () => wait(CALL_MS))));
    const ourMs = await wallMs(async () => {
      const run = await runtime.start('Wait.', { identity: local('bench') });
      const result = await run.result();
      if (result.status !== 'finished' || result.usage.calls !== CALLS) throw new Error('The parallel run went wrong.');
    });
    if (round >= WARM_UP_ROUNDS) overheadMs.push(ourMs - floorMs);
  }
  await runtime.close();
  const overhead = short(median(overheadMs));
  return {
    keys: { parallel_50_overhead_ms: overhead },
    rows: [['50 parallel calls of 5 ms, whole run', `+${overhead} ms`, 'over the same waits under Promise.all']],
  };
}
