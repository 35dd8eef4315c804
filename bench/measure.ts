/** How things are timed: CPU of the whole process, in turns with the thing that it is compared with. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const gc = runInNewContext('gc') as () => void;

/** A row of the table: what, how much, and what to read it against. */
export type Row = readonly [what: string, value: string, note?: string];

export interface Measured {
  /** Parts of the object that `--json` prints. */
  readonly keys: Readonly<Record<string, number | Readonly<Record<string, number>>>>;
  readonly rows: readonly Row[];
}

export type Work = () => Promise<unknown>;

/** Bytes of the heap that are in use after a collection. */
export function heapBytes(): number {
  gc();
  return process.memoryUsage().heapUsed;
}

/** Milliseconds that passed in `work`. No collection is forced before: it would throw away optimised code. */
export async function wallMs(work: Work): Promise<number> {
  const before = performance.now();
  await work();
  return performance.now() - before;
}

/**
 * Runs `work` for at least `warmUpMs`, so that it is compiled, and twice at least.
 * @returns how many runs of it make a sample of about `sampleMs`, judged by the second half.
 */
export async function warmUp(work: Work, warmUpMs: number, sampleMs: number): Promise<number> {
  await runFor(work, warmUpMs / 2);
  const perRunMs = await runFor(work, warmUpMs / 2);
  return Math.max(1, Math.round(sampleMs / perRunMs));
}

async function runFor(work: Work, forMs: number): Promise<number> {
  const begin = performance.now();
  let runs = 0;
  let passedMs = 0;
  do {
    await work();
    runs += 1;
    passedMs = performance.now() - begin;
  } while (passedMs < forMs);
  return passedMs / runs;
}

export async function times(count: number, work: Work): Promise<void> {
  for (let done = 0; done < count; done += 1) await work();
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

/** `value` with three significant digits. */
export function short(value: number): number {
  return Number(value.toPrecision(3));
}
