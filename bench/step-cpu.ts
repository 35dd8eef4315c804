/** CPU of a step in memory, beside the bare loop with the same model object. */
import { bareLoop } from './floor.ts';
import { cpuUs, type Measured, median, type Row, short, times, warmUp } from './measure.ts';
import { ourRuntime, runOnce } from './ours.ts';
import { SIZES, type Size, scriptedModel } from './workload.ts';

const ROUNDS = 15;
const WARM_UP_MS = 800;
const SAMPLE_MS = 80;

interface Lane {
  readonly steps: Size;
  readonly floorRuns: number;
  readonly ourRuns: number;
}
interface Sample {
  readonly floorUs: number;
  readonly ourUs: number;
}

export async function stepCpu(): Promise<Measured> {
  const lanes: Lane[] = [];
  for (const steps of SIZES) lanes.push(await warmLane(steps));
  // All sizes in every round, so that a slow minute of the machine meets them all.
  const rounds: ReadonlyMap<Size, Sample>[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const samples = new Map<Size, Sample>();
    for (const lane of lanes) samples.set(lane.steps, await sample(lane));
    rounds.push(samples);
  }
  const over = (steps: Size, value: (sample: Sample) => number): number =>
    short(median(rounds.flatMap((round) => round.get(steps) ?? []).map(value)));
  const bySize = (value: (sample: Sample) => number): Record<string, number> =>
    Object.fromEntries(SIZES.map((steps) => [String(steps), over(steps, value)]));
  const floor = bySize(({ floorUs }) => floorUs);
  const us = bySize(({ ourUs }) => ourUs);
  const ratio = bySize(({ floorUs, ourUs }) => ourUs / floorUs);
  const growth = short(
    median(rounds.map((round) => (round.get(1000)?.ourUs ?? Number.NaN) / (round.get(10)?.ourUs ?? Number.NaN))),
  );
  const rows = SIZES.map(
    (steps): Row => [
      `CPU a step in memory, N = ${steps}`,
      `${us[steps]} us`,
      `${ratio[steps]} x the bare loop's ${floor[steps]} us (at most 8, aim 4)`,
    ],
  );
  return {
    keys: { step_cpu_ratio: ratio, step_cpu_us: us, growth_1000_10: growth },
    rows: [...rows, ['growth of a step, N = 1000 over N = 10', String(growth), 'at most 1.15']],
  };
}

async function warmLane(steps: Size): Promise<Lane> {
  const model = scriptedModel(steps);
  const runtime = ourRuntime(steps);
  const floorRuns = await warmUp(() => bareLoop(model), WARM_UP_MS, SAMPLE_MS);
  const ourRuns = await warmUp(() => runOnce(runtime, steps), WARM_UP_MS, SAMPLE_MS);
  await runtime.close();
  return { steps, floorRuns, ourRuns };
}

async function sample({ steps, floorRuns, ourRuns }: Lane): Promise<Sample> {
  const model = scriptedModel(steps);
  const floor = await cpuUs(() => times(floorRuns, () => bareLoop(model)));
  // A fresh journal, so that earlier samples do not lie in the heap; one run compiles the tool's schema.
  const runtime = ourRuntime(steps);
  await runOnce(runtime, steps);
  const ours = await cpuUs(() => times(ourRuns, () => runOnce(runtime, steps)));
  await runtime.close();
  return { floorUs: floor / floorRuns / steps, ourUs: ours / ourRuns / steps };
}
