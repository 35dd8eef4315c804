import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/core/clock.ts';
import { createRuntime, type Planner } from '../../src/index.ts';
import { memoryJournal } from '../../src/journal/memory.ts';
import { HeldLease, momentOf } from '../../src/runtime/held-lease.ts';
import { VirtualClock } from '../../src/testing/index.ts';
import { turn } from './support.ts';

const SECOND = 1_000;
const START_MS = Date.UTC(2026, 0, 1);

const asksOnce: Planner = {
  name: 'asks',
  next: ({ trajectory }) =>
    trajectory.count === 0
      ? { kind: 'request_pause', reason: 'await_input', expiresInMs: 5 * SECOND }
      : { kind: 'finish', reason: 'goal' },
};

describe.each([
  ['behind', -20 * SECOND],
  ['ahead of', 20 * SECOND],
])('a process whose clock is %s the clock of the store', (_, aheadMs) => {
  it('lets a parked run wait as long as it is to wait, and claims it no sooner', async () => {
    const [stores, own] = [new VirtualClock(START_MS), new VirtualClock(START_MS + aheadMs)];
    const journal = memoryJournal({ clock: stores });
    let claims = 0;
    const { claim } = journal;
    journal.claim = async (request) => {
      const made = await claim.call(journal, request);
      if (made !== undefined) claims += 1;
      return made;
    };
    const runtime = createRuntime({ planner: asksOnce, journal, clock: own });
    const identity = { tenant: 't', user: 'u', session: 's', run: 'r' };
    await runtime.start('ask', { identity });
    runtime.work();
    const pass = async (ms: number): Promise<void> => {
      for (let passed = 0; passed < ms; passed += 100) {
        stores.advance(100);
        own.advance(100);
        for (let turns = 0; turns < 20; turns += 1) await turn();
      }
    };
    await pass(4 * SECOND);
    expect((await journal.get('r'))?.status).toBe('paused');
    expect(claims).toBe(0);
    await pass(3 * SECOND);
    expect((await journal.get('r'))?.status).toBe('finished');
    expect(claims).toBeLessThanOrEqual(2);
    await runtime.close();
  });
});

it('a wall clock that is set forward makes nobody done with the calls that were under way', () => {
  const time = new VirtualClock(START_MS);
  let aheadMs = 0;
  const clock: Clock = {
    now: () => time.now() + aheadMs,
    steady: () => time.now(),
    after: (delayMs, wake) => time.after(delayMs, wake),
  };
  const deps = { journal: memoryJournal(), clock, leaseMs: SECOND, takeoverGraceMs: 10 * SECOND };
  const claim = { run: 'r', fence: 2, head: 1, signals: 0, workLeftMsAgo: 0 };
  const lease = new HeldLease(deps, claim, momentOf(clock));
  aheadMs = 60 * SECOND;
  expect(lease.graceLeftMs).toBe(10 * SECOND);
  time.advance(4 * SECOND);
  aheadMs = -60 * SECOND;
  expect(lease.graceLeftMs).toBe(6 * SECOND);
  time.advance(6 * SECOND);
  expect(lease.graceLeftMs).toBe(0);
});
