/** Bytes of the journal's file that a step costs, in runs of 100 and of 1,000 steps. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { sqliteJournal } from '#journal/sqlite';
import type { Measured, Row } from './measure.ts';
import { ourPlanner, ourRuntime, runTogether } from './ours.ts';
import { withScratch } from './scratch.ts';

// The same number of steps for both, so that the last page of the file weighs the same.
const TOTAL_STEPS = 2000;

export async function disk(): Promise<Measured> {
  return withScratch(async (folder) => {
    const bytes: Record<string, number> = {};
    for (const steps of [100, 1000]) {
      const empty = await fileBytes(join(folder, `empty-${steps}.db`), steps, 0);
      const full = await fileBytes(join(folder, `full-${steps}.db`), steps, TOTAL_STEPS / steps);
      bytes[steps] = Math.round((full - empty) / TOTAL_STEPS);
    }
    const rows = Object.entries(bytes).map(
      ([steps, size]): Row => [`bytes on disk a step, N = ${steps}`, String(size), 'no more at 1000 than at 100'],
    );
    return { keys: { bytes_per_step: bytes }, rows };
  });
}

/** Size of a journal with `runs` runs of `steps` steps, after it was closed and its write-ahead log is in the file. */
async function fileBytes(path: string, steps: number, runs: number): Promise<number> {
  const journal = sqliteJournal({ path, synchronous: 'normal' });
  const runtime = ourRuntime(ourPlanner(steps), journal);
  await runTogether(runtime, steps, runs);
  await runtime.close();
  await journal.close();
  return statSync(path).size;
}
