/** The order of the steps of a plan. Steps are numbers here; `before[n]` has those that come before step n. */
import { dependentsOf } from '#core';

type Before = readonly (readonly number[])[];

interface Order {
  /** Each step behind those before it; otherwise as they were written. Means nothing when there are cycles. */
  readonly order: readonly number[];
  /** At least one cycle of each group of steps that wait for each other, in the order in which they would run. */
  readonly cycles: readonly (readonly number[])[];
}

const NEW = 0;
const OPEN = 1;
const DONE = 2;

/** A walk in depth, with a stack of its own: plans may be chains of thousands. */
export function orderAndCycles(before: Before): Order {
  const order: number[] = [];
  const cycles: number[][] = [];
  const state = new Uint8Array(before.length);
  const known = new Uint8Array(before.length);
  const path: number[] = [];
  const nextOf: number[] = [];
  const enter = (step: number): void => {
    state[step] = OPEN;
    path.push(step);
    nextOf.push(0);
  };
  for (let root = 0; root < before.length; root += 1) {
    if (state[root] === NEW) enter(root);
    while (path.length > 0) {
      const top = path.length - 1;
      const step = path[top] as number;
      const next = before[step]?.[nextOf[top] as number];
      if (next === undefined) {
        state[step] = DONE;
        order.push(step);
        path.pop();
        nextOf.pop();
        continue;
      }
      nextOf[top] = (nextOf[top] as number) + 1;
      if (state[next] === NEW) enter(next);
      else if (state[next] === OPEN) cycles.push(...cycleTo(next, path, known));
    }
  }
  return { order, cycles };
}

/** The cycle that closes at `target`, unless part of it is known already. Every step is walked over once, in all calls. */
function cycleTo(target: number, path: readonly number[], known: Uint8Array): number[][] {
  const cycle: number[] = [];
  for (let at = path.length - 1; at >= 0; at -= 1) {
    const step = path[at] as number;
    if (known[step] === 1) return [];
    known[step] = 1;
    cycle.push(step);
    if (step === target) break;
  }
  // Each step of the path waits for the one behind it, so from its end to its beginning is the order in time.
  return [[target, ...cycle]];
}

/** The steps that come after one of these, directly or through others. */
export function stepsBehind(before: Before, seeds: readonly number[]): ReadonlySet<number> {
  const after = dependentsOf(before);
  const found = new Set<number>();
  const open = [...seeds];
  for (let step = open.pop(); step !== undefined; step = open.pop()) {
    for (const next of after[step] ?? []) {
      if (found.has(next)) continue;
      found.add(next);
      open.push(next);
    }
  }
  return found;
}

export interface Pair {
  readonly step: number;
  readonly earlier: number;
}

/** Bits of a number that can be computed with. */
const BATCH = 31;

/** The pairs of which `earlier` does not come before `step`. Looks at 31 different earlier steps in one pass over the plan. */
export function pairsOutOfOrder(before: Before, order: readonly number[], pairs: readonly Pair[]): readonly Pair[] {
  if (pairs.length === 0) return [];
  const flat = flatten(before, order);
  const wanting = Map.groupBy(pairs, ({ earlier }) => earlier);
  const targets = [...wanting.keys()];
  const wrong = new Set<Pair>();
  for (let from = 0; from < targets.length; from += BATCH) {
    const batch = targets.slice(from, from + BATCH);
    const reached = reachOf(flat, batch);
    for (const [bit, target] of batch.entries()) {
      for (const pair of wanting.get(target) ?? []) {
        if (((reached[pair.step] as number) & (1 << bit)) === 0) wrong.add(pair);
      }
    }
  }
  return pairs.filter((pair) => wrong.has(pair));
}

/** The steps in their order, and the needs of all of them in a row: those of the n-th end at `ends[n]`. */
interface Flat {
  readonly order: Int32Array;
  readonly ends: Int32Array;
  readonly needs: Int32Array;
}

function flatten(before: Before, order: readonly number[]): Flat {
  const ends = new Int32Array(order.length);
  let count = 0;
  for (const [at, step] of order.entries()) {
    count += before[step]?.length ?? 0;
    ends[at] = count;
  }
  return { order: Int32Array.from(order), ends, needs: Int32Array.from(order.flatMap((step) => before[step] ?? [])) };
}

/** For each step a bit for each of the targets that come before it. */
function reachOf({ order, ends, needs }: Flat, targets: readonly number[]): Int32Array {
  const own = new Int32Array(order.length);
  for (const [bit, target] of targets.entries()) own[target] = 1 << bit;
  const reached = new Int32Array(order.length);
  let at = 0;
  for (let place = 0; place < order.length; place += 1) {
    let bits = 0;
    for (const end = ends[place] as number; at < end; at += 1) {
      const need = needs[at] as number;
      bits |= (reached[need] as number) | (own[need] as number);
    }
    reached[order[place] as number] = bits;
  }
  return reached;
}
