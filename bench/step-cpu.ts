/**
 * CPU of a step in memory, beside the bare loop with the same model. Each side has a process of its own, and they take
 * turns: neither pays for the other's garbage, and no collection is forced, which would throw away optimised code that a
 * process at work keeps.
 */
import { fileURLToPath } from 'node:url';
import { type Measured, median, type Row, short } from './measure.ts';
import { sample, startSide } from './sides.ts';
import { SIZES, type Size } from './workload.ts';

const ROUNDS = 15;
const CHILD = fileURLToPath(new URL('step-cpu-child.ts', import.meta.url));

interface Sides {
  readonly floorUs: number[];
  readonly ourUs: number[];
}

export async function stepCpu(): Promise<Measured> {
  const sides = new Map<Size, Sides>();
  for (const steps of SIZES) sides.set(steps, await sampleSides(steps));
  const bySize = (value: (sides: Sides) => number): Record<string, number> =>
    Object.fromEntries([...sides].map(([steps, both]) => [String(steps), short(value(both))]));
  const floor = bySize(({ floorUs }) => median(floorUs));
  const us = bySize(({ ourUs }) => median(ourUs));
  const ratio = bySize(({ floorUs, ourUs }) =>
    median(ourUs.map((value, round) => value / (floorUs[round] ?? Number.NaN))),
  );
  const growth = short((us['1000'] ?? Number.NaN) / (us['10'] ?? Number.NaN));
  const rows = SIZES.map(
    (steps): Row => [
      `CPU a step in memory, N = ${steps}`,
      `${us[steps]} us`,
      `${ratio[steps]} x the bare loop's ${floor[steps]} us (${steps === 10 ? 'at most 24, aim 16' : 'at most 16, aim 12'})`,
    ],
  );
  return {
    keys: { step_cpu_ratio: ratio, step_cpu_us: us, growth_1000_10: growth },
    rows: [...rows, ['growth of a step, N = 1000 over N = 10', String(growth), 'at most 1.15']],
  };
}

async function sampleSides(steps: Size): Promise<Sides> {
  const floor = await startSide(CHILD, ['floor', String(steps)]);
  const ours = await startSide(CHILD, ['ours', String(steps)]);
  const sides: Sides = { floorUs: [], ourUs: [] };
  try {
    for (let round = 0; round < ROUNDS; round += 1) {
      sides.floorUs.push((await sample(floor)) / steps);
      sides.ourUs.push((await sample(ours)) / steps);
    }
  } finally {
    floor.kill();
    ours.kill();
  }
  return sides;
}
