import { expect, it } from 'vitest';
import { local } from '#core';
import { memoryJournal } from '#journal';
import { KEPT, looking, messagesOf, picturesIn } from './old-pictures.ts';
import { base64, pathsOf, png } from './pictures.ts';

it('of one picture a step: at most twice as many as stay, and the beginning changes only when the old ones leave', async () => {
  const { runtime, sent } = looking(memoryJournal());
  const run = await runtime.start('Watch.', { identity: local('ana'), limits: { steps: 100 } });
  expect(await run.result()).toMatchObject({ answer: 'Done.' });
  const bodies = sent.requests.map(({ body }) => body);
  const counts = bodies.map(picturesIn);
  const breaks = bodies.flatMap((body, index) => {
    const before = index === 0 ? [] : messagesOf(bodies[index - 1]);
    return messagesOf(body).slice(0, before.length).join() === before.join() ? [] : [index];
  });
  expect(Math.max(...counts)).toBe(2 * KEPT);
  expect(counts.slice(0, 18)).toEqual([...Array.from({ length: 17 }, (_, step) => step), KEPT]);
  expect(breaks).toEqual([17, 26, 35]);
  // The newest is always there, and what left is told by its reference.
  for (const [step, body] of bodies.entries())
    if (step > 0) expect(pathsOf(body, base64(png(step - 1)))).toHaveLength(1);
  expect(JSON.stringify(bodies[17])).toContain('A file of this result, by reference:');
});

it('the pictures of the newest step are all shown', async () => {
  const { runtime, sent } = looking(memoryJournal(), 20);
  const run = await runtime.start('Watch.', { identity: local('ana'), limits: { steps: 3 } });
  await run.result();
  expect(sent.requests.map(({ body }) => picturesIn(body))).toEqual([0, 20, 20]);
});
