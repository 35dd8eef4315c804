/** Some of the cases of `node scripts/hostile.ts`, which plays 10,000. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { Outcome } from './season.ts';

const PROGRAM = join(import.meta.dirname, '../../scripts/hostile.ts');

it('every run ends or waits with a cause that has a code, and nothing grows', async () => {
  const child = spawn(process.execPath, [PROGRAM, '--cases', '120', '--seed', '1'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
  });
  const [code] = await once(child, 'close');
  const outcome = JSON.parse(text.trimEnd().split('\n').at(-1) ?? '') as Outcome;
  expect(outcome, text).toMatchObject({ cases: 120, problems: 0, grownBytes: 0 });
  // How long it blocks is measured by the program: beside other tests the same work takes several times as long.
  expect(code).toBe(outcome.blocks === 0 ? 0 : 1);
  expect(Object.values(outcome.endings).reduce((sum, count) => sum + count)).toBe(120);
}, 300_000);
