/** 1,000 runs at once, 10 steps each, in memory. */
import { type Measured, median, wallMs } from './measure.ts';
import { ourPlanner, ourRuntime, runTogether } from './ours.ts';

const RUNS = 1000;
const STEPS = 10;
const ROUNDS = 5;

export async function concurrent(): Promise<Measured> {
  const passedMs: number[] = [];
  for (let round = 0; round <= ROUNDS; round += 1) {
    const runtime = ourRuntime(ourPlanner(STEPS));
    const ms = await wallMs(() => runTogether(runtime, STEPS, RUNS));
    await runtime.close();
    if (round > 0) passedMs.push(ms);
  }
  const stepsPerS = Math.round((RUNS * STEPS * 1000) / median(passedMs));
  return {
    keys: { concurrent_steps_per_s: stepsPerS },
    rows: [['1,000 runs x 10 steps at once, in memory', `${stepsPerS} steps/s`]],
  };
}
