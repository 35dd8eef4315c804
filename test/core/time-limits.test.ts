/** Time limits share one timer. Each must be reached at its own time, whatever the others do when theirs are reached. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { limitTime, systemClock } from '#core';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

it('a limit that is set again when it is reached does not put off the limits of others', () => {
  const reached: string[] = [];
  limitTime(systemClock, 50, () => {
    reached.push('first');
    limitTime(systemClock, 60_000, () => reached.push('again'));
  });
  limitTime(systemClock, 150, () => reached.push('other'));

  vi.advanceTimersByTime(200);
  expect(reached).toEqual(['first', 'other']);
  vi.advanceTimersByTime(60_000);
  expect(reached).toEqual(['first', 'other', 'again']);
});

it('a limit of no time at all that sets itself again lets others have their turn', () => {
  let turns = 0;
  const again = (): void => {
    turns += 1;
    if (turns < 1000) limitTime(systemClock, 0, again);
  };
  limitTime(systemClock, 0, again);
  vi.advanceTimersToNextTimer();
  expect(turns).toBe(1);
  vi.runAllTimers();
});

it('a limit whose listener throws leaves the limits of others in force', () => {
  const reached: string[] = [];
  limitTime(systemClock, 50, () => {
    throw new Error('a listener of somebody');
  });
  limitTime(systemClock, 150, () => reached.push('other'));

  expect(() => vi.advanceTimersByTime(100)).toThrow('a listener of somebody');
  vi.advanceTimersByTime(100);
  expect(reached).toEqual(['other']);
});

it('an earlier limit is reached first, a lifted one never, and a very long one not at once', () => {
  const reached: string[] = [];
  const lift = limitTime(systemClock, 20, () => reached.push('lifted'));
  limitTime(systemClock, 2 ** 31 + 1000, () => reached.push('very long'));
  limitTime(systemClock, 100, () => reached.push('later'));
  limitTime(systemClock, 10, () => reached.push('earlier'));
  lift();

  vi.advanceTimersByTime(100);
  expect(reached).toEqual(['earlier', 'later']);
  vi.advanceTimersByTime(2 ** 31 + 1000);
  expect(reached).toEqual(['earlier', 'later', 'very long']);
});

it('a limit that was lifted holds nothing of what it would have woken, whoever keeps the function that lifted it', async () => {
  const limited = (): { readonly lift: () => void; readonly step: WeakRef<object> } => {
    const step = { of: 'a run' };
    return { lift: limitTime(systemClock, 60_000, () => expect(step).toBeUndefined()), step: new WeakRef(step) };
  };
  const { lift, step } = limited();
  lift();
  // What a turn of the event loop has looked at stays until it has ended.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect(step.deref()).toBeUndefined();
  lift();
});
