/** One problem planned and timed, in turns with the floor where there is one. */
import { FLOORS, floorPlan } from './floor.ts';
import { digestOf, planner } from './planning.ts';
import type { Problem } from './problem.ts';
import { faultOfPlan } from './validate.ts';

/** Null: no plan was found. */
export interface HtnMeasured {
  readonly name: string;
  readonly planLength: number | null;
  readonly planSha256_16: string | null;
  readonly cpuMs: number;
  readonly valid: boolean;
}

export interface HtnRow {
  readonly measured: HtnMeasured;
  /** What is wrong with the plan. */
  readonly fault?: string;
  readonly floorMs?: number;
}

export const ROUNDS = 15;
const WARM_UP_MS = 60;
/** A sample repeats a run until it has taken so long, as the clock of CPU time is coarse. */
const SAMPLE_MS = 4;

/** CPU times are the best of `ROUNDS` samples, each run on a fresh state, building that included. */
export function measureProblem(problem: Problem): HtnRow {
  const plan = planner(problem);
  const actions = plan();
  const fault = actions === undefined ? 'no plan' : faultOfPlan(problem, actions);
  const sides = FLOORS[problem.domain] === undefined ? [plan] : [plan, () => floorPlan(problem)];
  const [cpuMs = Number.NaN, floorMs] = bestMs(sides);
  const measured = {
    name: problem.name,
    planLength: actions?.length ?? null,
    planSha256_16: actions === undefined ? null : digestOf(actions),
    cpuMs,
    valid: fault === undefined,
  };
  return { measured, ...(fault === undefined ? {} : { fault }), ...(floorMs === undefined ? {} : { floorMs }) };
}

function bestMs(sides: readonly (() => unknown)[]): number[] {
  const runs = sides.map(warmUp);
  const best = sides.map(() => Number.POSITIVE_INFINITY);
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [index, side] of sides.entries()) {
      const count = runs[index] ?? 1;
      best[index] = Math.min(best[index] ?? 0, cpuMsOf(count, side) / count);
    }
  }
  return best.map((ms) => Number(ms.toPrecision(3)));
}

/** @returns how many runs make a sample. */
function warmUp(side: () => unknown): number {
  const begin = performance.now();
  let runs = 0;
  do {
    side();
    runs += 1;
  } while (performance.now() - begin < WARM_UP_MS);
  return Math.max(1, Math.ceil((runs * SAMPLE_MS) / (performance.now() - begin)));
}

function cpuMsOf(count: number, side: () => unknown): number {
  const before = process.cpuUsage();
  for (let run = 0; run < count; run += 1) side();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
