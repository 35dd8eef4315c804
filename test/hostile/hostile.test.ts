/** Some of the cases of `node scripts/hostile.ts`, which plays 10,000. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { planOf } from './cases.ts';
import { type Block, pulse } from './pulse.ts';
import { misbehaviours } from './replies.ts';
import type { Outcome } from './season.ts';
import { behaviours } from './tools.ts';

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

it('draws every server and every tool, and the same ones for the same seed', () => {
  const plans = Array.from({ length: 3_000 }, (_, seed) => planOf(seed));
  expect(new Set(plans.map(({ server }) => server))).toEqual(new Set(Object.keys(misbehaviours)));
  expect(new Set(plans.map(({ tool }) => tool))).toEqual(new Set(Object.keys(behaviours)));
  expect(plans).toEqual(plans.map(({ seed }) => planOf(seed)));
});

it('tells a loop that works for long from one that only waits', async () => {
  const blocks: Block[] = [];
  const stop = pulse(100, (block) => blocks.push(block));
  await sleep(30);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  await sleep(30);
  expect(blocks).toEqual([]);
  const until = process.threadCpuUsage().user + 200_000;
  while (process.threadCpuUsage().user < until);
  await sleep(30);
  stop();
  expect(blocks).toHaveLength(1);
  expect(blocks[0]?.cpuMs).toBeGreaterThan(150);
});
