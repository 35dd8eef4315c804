import { expect, it } from 'vitest';
import { VirtualClock } from '#testing';

it('a virtual clock fires timers in the order of their times, each at its time', () => {
  const clock = new VirtualClock(1_000);
  const fired: [string, number][] = [];
  const note = (name: string) => () => fired.push([name, clock.now()]);
  clock.after(30, note('late'));
  clock.after(10, () => {
    note('early')();
    clock.after(5, note('nested'));
    clock.after(100, note('too late'));
  });
  clock.after(10, note('early too'));
  const cancel = clock.after(20, note('cancelled'));
  cancel();
  expect([clock.now(), fired.length]).toEqual([1_000, 0]);
  clock.advance(9);
  expect(fired).toEqual([]);
  clock.advance(41);
  expect(fired).toEqual([
    ['early', 1_010],
    ['early too', 1_010],
    ['nested', 1_015],
    ['late', 1_030],
  ]);
  expect([clock.now(), clock.pending]).toEqual([1_050, 1]);
  clock.after(-5, note('now'));
  clock.advance(0);
  expect(fired.at(-1)).toEqual(['now', 1_050]);
});
