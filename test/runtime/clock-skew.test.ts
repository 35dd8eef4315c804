import { describe, expect, it } from 'vitest';
import { type Clock, type Entry, PilotageError } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, type Planner, type Runtime, tool } from '#pilotage';
import { HeldLease, momentOf, Refusals } from '#runtime';
import { claimFirst, VirtualClock } from '#testing';
import { temporaryFile } from '../kit/files.ts';
import { changed } from '../kit/journals.ts';
import { startedEntry } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { advanceUntil, quiet, turn } from '../kit/waiting.ts';

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

/** Its wall clock can be set; timers and the steady clock go by `time`, which is that of the store. */
function settable(time: VirtualClock, ahead = 0): { readonly clock: Clock; set(aheadMs: number): void } {
  let aheadMs = ahead;
  return {
    clock: {
      now: () => time.now() + aheadMs,
      steady: () => time.now(),
      after: (delayMs, wake) => time.after(delayMs, wake),
    },
    set: (ms) => {
      aheadMs = ms;
    },
  };
}

const identity = { tenant: 't', user: 'u', session: 's', run: 'r' };
const HOUR = 3_600 * SECOND;

describe.each([
  ['behind', -HOUR],
  ['ahead of', HOUR],
])('beside a process whose clock is %s that of the store', (_, aheadMs) => {
  it('a run that it looks at again and again, and cannot go on with, wakes when it was to wake', async () => {
    const time = new VirtualClock(START_MS);
    const journal = memoryJournal({ clock: time });
    const version = (of: string, clock: Clock): Runtime =>
      createRuntime({ planner: { ...asksOnce, version: of }, journal, clock, onFault: () => {} });
    const fitting = version('1', time);
    await (await fitting.start('ask', { identity })).result();
    await fitting.close();
    const before = await journal.get('r');
    const other = version('2', settable(time, aheadMs).clock);
    for (let second = 1; second < 5; second += 1) {
      time.advance(SECOND);
      const told = await other.start('ask', { identity }).catch((error: unknown) => error);
      if (!PilotageError.is(told)) await quiet();
      expect(await journal.get('r')).toMatchObject({ status: 'paused', wakeAt: before?.wakeAt, problem: {} });
    }
    const heir = version('1', time);
    heir.work();
    await quiet();
    // It looks now and then, at most half a second apart.
    for (let half = 0; half < 3; half += 1) {
      time.advance(SECOND / 2);
      await quiet();
    }
    expect((await journal.get('r'))?.status).toBe('finished');
    for (const runtime of [other, heir]) await runtime.close();
  });

  it('a run whose owner fell silent is claimed when its lease is over, and asked for no more often than that', async () => {
    const time = new VirtualClock(START_MS);
    const journal = memoryJournal({ clock: time });
    const entry = { ...startedEntry('r', time.now()), identity, agent: 'asks' } as Entry;
    const silent = { owner: 'somebody', leaseMs: 30 * SECOND };
    await journal.create({ identity, priority: 0, entries: [entry], claim: silent });
    let claims = 0;
    const counting = changed(journal, {
      claim: (request) => {
        claims += 1;
        return journal.claim(request);
      },
    });
    const { clock } = settable(time, aheadMs);
    const runtime = createRuntime({ planner: asksOnce, journal: counting, clock, onFault: () => {} });
    await runtime.start('q', { identity });
    const begunAt = time.now();
    await advanceUntil(time, async () => (await journal.get('r'))?.status === 'paused');
    expect(time.now() - begunAt).toBeLessThan(32 * SECOND);
    expect(claims).toBeLessThan(5);
    await runtime.close();
  });

  it('a run that waits for its models tries again when its wait is over', async () => {
    const time = new VirtualClock(START_MS);
    const journal = memoryJournal({ clock: time });
    const planner: Planner = {
      name: 'away',
      next: () => {
        asked.push(time.now());
        if (asked.length > 1) return { kind: 'finish', reason: 'goal' };
        throw new PilotageError('model_unavailable', 'Nobody is there.');
      },
    };
    const asked: number[] = [];
    const first = createRuntime({ planner, journal, clock: settable(time, aheadMs).clock, onFault: () => {} });
    await first.start('ask', { identity });
    await advanceUntil(time, async () => (await journal.get('r'))?.status === 'waiting');
    await first.close();
    const { wakeAt } = (await journal.get('r')) ?? {};
    const second = createRuntime({ planner, journal, clock: time });
    second.work();
    await advanceUntil(time, async () => (await journal.get('r'))?.status === 'finished');
    expect(asked[1]).toBeGreaterThanOrEqual(wakeAt ?? Number.NaN);
    expect(asked[1]).toBeLessThan((wakeAt ?? Number.NaN) + 2 * SECOND);
    await second.close();
  });
});

describe.each([
  ['in memory', (journal: Journal) => journal],
  ['in a file', (_: Journal, clock: Clock) => openJournal(temporaryFile(), { clock })],
] as [
  string,
  (journal: Journal, clock: Clock) => Journal,
][])('a lease %s of a process whose clock was an hour ahead', (_, make) => {
  const MINUTE = 60 * SECOND;

  /** The run `r` is with `ahead`, whose lease ends in an hour and some seconds by the clock of everybody else. */
  async function leasedAhead() {
    const time = new VirtualClock(START_MS);
    const { clock, set } = settable(time);
    const journal = make(memoryJournal({ clock }), clock);
    const entry = { ...startedEntry('r', time.now()), identity, agent: 'asks' } as Entry;
    set(HOUR);
    const claim = { owner: 'ahead', leaseMs: 5 * SECOND };
    const leased = await journal.create({ identity, priority: 0, entries: [entry], claim });
    const beat = async (): Promise<void> => {
      set(HOUR);
      await journal.renew([{ run: 'r', fence: leased?.fence ?? 0 }], 5 * SECOND);
      set(0);
    };
    set(0);
    return { time, clock, journal, beat };
  }

  const asks = { owner: 'heir', leaseMs: 5 * SECOND };

  const byId = (journal: Journal, owner = 'heir') => journal.claim({ ...asks, owner, run: 'r' });
  const due = (journal: Journal, owner = 'heir') => claimFirst(journal, { ...asks, owner });
  const dueOf = (journal: Journal, owner = 'heir') => claimFirst(journal, { ...asks, owner, agents: ['asks'] });

  it.each([
    ['by its id', byId],
    ['as a due run', due],
    ['as a due run of its agent', dueOf],
  ])('is over for whoever claims the run %s when it was not renewed for the longest lease', async (_how, claim) => {
    const { time, journal } = await leasedAhead();
    for (let minute = 0; minute < 5; minute += 1) {
      expect(await claim(journal)).toBeUndefined();
      time.advance(MINUTE);
    }
    expect(await claimFirst(journal, { ...asks, agents: ['other'] })).toBeUndefined();
    expect(await claim(journal)).toMatchObject({ run: 'r', fence: 2, workLeftMsAgo: 0 });
    expect((await journal.get('r'))?.lease).toEqual({ owner: 'heir', until: START_MS + 5 * MINUTE + 5 * SECOND });
    expect(await claim(journal, 'third')).toBeUndefined();
  });

  it('stays with an owner who renews it, however far ahead', async () => {
    const { time, journal, beat } = await leasedAhead();
    for (let minute = 0; minute < 12; minute += 1) {
      expect(await claimFirst(journal, asks)).toBeUndefined();
      expect(await journal.claim({ ...asks, run: 'r' })).toBeUndefined();
      time.advance(MINUTE);
      await beat();
    }
    expect((await journal.get('r'))?.lease?.owner).toBe('ahead');
  });

  it('is waited for no longer by a runtime that goes on with the run, nor by a worker', async () => {
    for (const works of [true, false]) {
      const { time, clock, journal } = await leasedAhead();
      const runtime = createRuntime({ planner: asksOnce, journal, clock, onFault: () => {} });
      if (works) runtime.work();
      else await runtime.run('r').resume();
      const begunAt = time.now();
      await advanceUntil(time, async () => (await journal.get('r'))?.status === 'paused');
      expect(time.now() - begunAt).toBeLessThan(7 * MINUTE);
      await runtime.close();
    }
  });
});

it('a lease that is longer than any is refused', () => {
  const longest = { planner: asksOnce, leaseMs: 300_000 };
  expect(() => createRuntime(longest)).not.toThrow();
  const refusal = { code: 'invalid_config', message: 'leaseMs is 300001; give a number over 0, and up to 300000.' };
  expect(() => createRuntime({ ...longest, leaseMs: 300_001 })).toThrow(expect.objectContaining(refusal));
});

it('a deadline for which a call was cut off holds for the next owner too, whose clock is behind', async () => {
  const journal = memoryJournal();
  const clock = new VirtualClock(START_MS - 20 * SECOND);
  const asked: number[] = [];
  const planner: Planner = {
    name: 'asks',
    next: ({ trajectory }) => {
      asked.push(trajectory.count);
      return { kind: 'finish', reason: 'no_path' };
    },
  };
  const call = { kind: 'call_tool', tool: 'wait', args: {} } as const;
  const outcome = { kind: 'cancelled', error: { code: 'cancelled', message: 'It was stopped.' } } as const;
  const started = {
    ...startedEntry('r', START_MS),
    identity,
    agent: 'asks',
    limits: { deadlineAt: START_MS + SECOND },
  };
  const entries = [
    started,
    { kind: 'moved', step: 0, decision: call, seq: 2, at: START_MS },
    { kind: 'call_ended', step: 0, call: 0, outcome, attempts: 1, seq: 3, at: START_MS + SECOND },
  ] as unknown as Entry[];
  await journal.create({ identity, priority: 0, entries });
  const tools = [tool({ name: 'wait', description: 'Waits.', inputSchema: {}, effect: 'read', execute: () => null })];
  const runtime = createRuntime({ planner, tools, journal, clock });
  const run = await runtime.start('q', { identity });
  expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded' });
  expect(asked).toEqual([]);
  await runtime.close();
});

it.each([
  -HOUR,
  HOUR,
])('a run that is left to others is so for as long as it is said, though the clock is set by %i ms', (ms) => {
  const time = new VirtualClock(START_MS);
  const { clock, set } = settable(time);
  const refusals = new Refusals(clock);
  refusals.note('r');
  set(ms);
  expect(refusals.has('r')).toBe(true);
  expect(refusals.all()).toEqual(['r']);
  time.advance(2 * SECOND);
  expect(refusals.has('r')).toBe(false);
  expect(refusals.all()).toEqual([]);
});

it('a wall clock that is set forward makes nobody done with the calls that were under way', () => {
  const time = new VirtualClock(START_MS);
  const { clock, set } = settable(time);
  const deps = { journal: memoryJournal(), clock, leaseMs: SECOND, takeoverGraceMs: 10 * SECOND };
  const before = { status: 'running', wakeAt: 0 } as const;
  const claim = { run: 'r', fence: 2, head: 1, signals: 0, workLeftMsAgo: 0, before };
  const lease = new HeldLease(deps, claim, momentOf(clock));
  set(60 * SECOND);
  expect(lease.graceLeftMs).toBe(10 * SECOND);
  time.advance(4 * SECOND);
  set(-60 * SECOND);
  expect(lease.graceLeftMs).toBe(6 * SECOND);
  time.advance(6 * SECOND);
  expect(lease.graceLeftMs).toBe(0);
});
