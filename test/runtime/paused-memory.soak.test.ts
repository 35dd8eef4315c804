/** A run that waits for somebody costs rows only. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';

const EVERY = 1_000;
const ALL = 10_000;
/** A handle, a state or a driver of a run weighs several times as much. */
const MOST_BYTES_A_RUN = 200;

interface Report {
  readonly holds: readonly { readonly heapBytes: number; readonly resources: readonly string[] }[];
  readonly wentOn: readonly string[];
}

const folder = mkdtempSync(join(tmpdir(), 'pilotage-paused-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('10,000 paused runs leave nothing of each in the process that paused them, and no timer', async () => {
  const child = fileURLToPath(new URL('paused-child.ts', import.meta.url));
  const args = ['--expose-gc', child, join(folder, 'paused.db'), String(EVERY), String(ALL)];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { timeout: 280_000 });
  expect(stderr).toBe('');
  const { holds, wentOn }: Report = JSON.parse(stdout);
  expect(holds).toHaveLength(ALL / EVERY);
  // What each run leaves is in every difference; code that V8 compiles or throws away is in one or two.
  const growths = holds.slice(1).map(({ heapBytes }, before) => heapBytes - (holds[before]?.heapBytes ?? Number.NaN));
  const usual = growths.toSorted((left, right) => left - right)[growths.length >> 1];
  expect(usual).toBeLessThan(MOST_BYTES_A_RUN * EVERY);
  expect(holds.flatMap(({ resources }) => resources)).toEqual([]);
  expect(wentOn).toEqual(['finished', 'finished', 'finished']);
}, 300_000);
