import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { planOf } from './cases.ts';
import { type Block, pulse } from './pulse.ts';
import { misbehaviours } from './replies.ts';
import { behaviours } from './tools.ts';

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
