/** A run that waits for somebody costs rows only. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';

const SOME = 1_000;
const ALL = 10_000;
/** A handle, a state or a driver of a run weighs several times as much. */
const MOST_BYTES_A_RUN = 200;

const folder = mkdtempSync(join(tmpdir(), 'pilotage-paused-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it('10,000 paused runs leave nothing of each in the process that paused them, and no timer', async () => {
  const child = fileURLToPath(new URL('paused-child.ts', import.meta.url));
  const args = ['--expose-gc', child, join(folder, 'paused.db'), String(SOME), String(ALL)];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { timeout: 280_000 });
  expect(stderr).toBe('');
  const { withSome, withAll, wentOn } = JSON.parse(stdout);
  expect((withAll.heapBytes - withSome.heapBytes) / (ALL - SOME)).toBeLessThan(MOST_BYTES_A_RUN);
  expect([withSome.resources, withAll.resources]).toEqual([[], []]);
  expect(wentOn).toEqual(['finished', 'finished', 'finished']);
}, 300_000);
