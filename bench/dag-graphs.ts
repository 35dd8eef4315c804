/** Graphs of tasks, the least time that they can take, and the time that ours takes when each task takes exactly its own. */
import { type Branch, linkBranches, type Outcome, orderOf } from '#core';
import { Schedule } from '#runtime';
import { seededRandom } from '#testing';

export interface TaskGraph {
  readonly name: string;
  readonly branches: readonly Branch[];
  /** For each branch, the indices of those before it. */
  readonly needs: readonly (readonly number[])[];
  /** For each branch, the milliseconds that it takes. */
  readonly ms: readonly number[];
}

/** As many at once as a plan may have. */
export const LIMIT: number = 50;

/** Each node draws up to three dependencies: `wide` from all before it, `deep` from the 20 before it. Each takes 1 ms. */
const SHAPES: Readonly<Record<'wide' | 'deep', number>> = { wide: Number.POSITIVE_INFINITY, deep: 20 };

export function randomGraph(shape: keyof typeof SHAPES, size: number, seed: number = 1): TaskGraph {
  const random = seededRandom(seed);
  const below = (end: number): number => Math.floor(random() * end);
  const branches = Array.from({ length: size }, (_, index): Branch => {
    const reach = Math.min(index, SHAPES[shape]);
    const drawn = Array.from({ length: reach === 0 ? 0 : below(4) }, () => `n${index - 1 - below(reach)}`);
    return { id: `n${index}`, tool: 'work', args: {}, after: [...new Set(drawn)] };
  });
  return graphOf(`${shape} ${size / 1000}k`, branches, new Array(size).fill(1));
}

export function graphOf(name: string, branches: readonly Branch[], ms: readonly number[]): TaskGraph {
  return { name, branches, needs: linkBranches(branches).needs, ms };
}

export const RANDOM_GRAPHS: readonly TaskGraph[] = [
  randomGraph('wide', 1_000),
  randomGraph('wide', 10_000),
  randomGraph('deep', 1_000),
  randomGraph('deep', 10_000),
];

/** No order of the tasks takes less: the longest path through them, or all of them in `LIMIT` lanes that are never idle. */
export function boundMs({ needs, ms }: Pick<TaskGraph, 'needs' | 'ms'>): number {
  const endsAt = new Float64Array(needs.length);
  let longest = 0;
  for (const task of orderOf(needs)) {
    let begins = 0;
    for (const need of needs[task] ?? []) begins = Math.max(begins, endsAt[need] ?? 0);
    const end = begins + (ms[task] ?? 0);
    endsAt[task] = end;
    longest = Math.max(longest, end);
  }
  return Math.max(longest, workMs(ms) / LIMIT);
}

export function workMs(ms: readonly number[]): number {
  return ms.reduce((sum, each) => sum + each, 0);
}

export const DONE: Outcome = { kind: 'value', value: null };

/** @throws when a task is started before one that it needs has ended, or is never started. */
export function virtualMs({ name, branches, needs, ms }: TaskGraph): number {
  const schedule = new Schedule({ plan: name, concurrency: LIMIT });
  schedule.grow(branches, []);
  let running: { readonly call: number; readonly endsAt: number }[] = [];
  for (let now = 0; ; ) {
    while (running.length < LIMIT) {
      const call = schedule.next(() => true);
      if (call === undefined) break;
      if (needs[call]?.some((need) => !schedule.hasEnded(need))) throw new Error(`${name}: ${call} came too early.`);
      running.push({ call, endsAt: now + (ms[call] ?? 0) });
    }
    if (running.length === 0 && schedule.open === 0) return now;
    now = Math.min(...running.map(({ endsAt }) => endsAt));
    const ends = running.filter(({ endsAt }) => endsAt === now);
    if (ends.length === 0) throw new Error(`${name}: ${schedule.open} tasks were never started.`);
    running = running.filter(({ endsAt }) => endsAt !== now);
    schedule.ended(ends.map(({ call }) => ({ call, outcome: DONE })));
  }
}
