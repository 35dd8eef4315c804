/** Runs that were parked go on wherever a runtime is open that knows their agent; nobody has called `work()`. */
import { describe, expect, it } from 'vitest';
import { type Clock, type Decision, local, type Planner } from '#core';
import { type Journal, memoryJournal } from '#journal';
import type { Run } from '#runtime';
import { VirtualClock } from '#testing';
import { call, pause, script } from '../kit/decisions.ts';
import { entriesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, type WorldOptions, world } from '../kit/world.ts';

const NAP_MS = 60_000;
const nap = make('nap', async (_, context) => {
  await context.sleep({ forMs: NAP_MS });
  return 'slept';
});
const asking = { ...pause, expiresInMs: NAP_MS } as Decision;
const door: Planner = { name: 'door', next: () => ({ kind: 'finish', reason: 'goal' }) };

async function parked(decision: Decision): Promise<{ journal: Journal; clock: VirtualClock; run: string }> {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const first = world({ planner: script(decision), tools: [nap], journal, clock });
  const { id } = await start(first);
  await until(async () => ['waiting', 'paused'].includes((await journal.get(id))?.status ?? ''));
  await first.runtime.close();
  return { journal, clock, run: id };
}

/** Somebody uses the runtime for something else. */
async function opened(options: WorldOptions): Promise<ReturnType<typeof world>> {
  const made = world(options);
  await made.runtime.session('other', { identity: { tenant: 'local', user: 'ben' } as never }).turns();
  return made;
}

const hasEnded = async (run: Run): Promise<boolean> => (await run.state()).ending !== null;

describe('a run that another process has parked', () => {
  it.each([
    ['for a time', call('nap')],
    ['for an answer, whose time is over', asking],
  ] as const)('%s, goes on when its time has come', async (_, decision) => {
    const { run: id, ...shared } = await parked(decision);
    const made = await opened({ planner: script(decision), tools: [nap], ...shared });
    const begun = shared.clock.now();
    await advanceUntil(shared.clock, () => hasEnded(made.runtime.run(id)));
    const after = shared.clock.now() - begun;
    expect(after >= NAP_MS && after <= NAP_MS + 500, String(after)).toBe(true);
    expect(made.faults).toEqual([]);
  });

  it('goes on also when its time was over long before', async () => {
    const { run: id, ...shared } = await parked(call('nap'));
    shared.clock.advance(10 * NAP_MS);
    const made = await opened({ planner: script(call('nap')), tools: [nap], ...shared });
    shared.clock.advance(5);
    await until(() => hasEnded(made.runtime.run(id)));
  });

  it.each([
    ['is of another agent', { planner: door }],
    ['is not wanted here', { planner: script(call('nap')), goesOn: false }],
  ] as const)('is left alone when it %s', async (_, options) => {
    const { run: id, ...shared } = await parked(call('nap'));
    const made = await opened({ tools: [nap], ...options, ...shared });
    for (let count = 0; count < 20; count += 1) {
      shared.clock.advance(NAP_MS / 10);
      await quiet();
    }
    expect(await shared.journal.get(id)).toMatchObject({ status: 'waiting', head: 3 });
    await made.runtime.close();
  });

  it.each([
    ['in all', { maxLiveRuns: 1 }],
    ['of one tenant', { maxLiveRunsPerTenant: 1 }],
  ])('goes on as soon as there is room, when as many are due as may not be driven at once %s', async (_, limits) => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const gates = [gate(), gate(), gate()];
    let begun = 0;
    const works = make('works', async (__, context) => {
      await context.sleep({ forMs: NAP_MS });
      begun += 1;
      await gates[begun - 1]?.opened;
      return 'done';
    });
    const shared = { planner: script(call('works')), tools: [works], journal, clock };
    const first = world(shared);
    const runs = [await start(first), await start(first), await start(first)];
    for (const { id } of runs) await until(async () => (await journal.get(id))?.status === 'waiting');
    await first.runtime.close();
    await opened({ ...shared, ...limits });
    clock.advance(NAP_MS);
    let from = 0;
    for (const [index, each] of gates.entries()) {
      while (begun <= index) {
        await quiet();
        clock.advance(5);
      }
      await quiet();
      expect(begun).toBe(index + 1);
      if (index === 0) from = clock.now();
      each.open();
    }
    // It is told of room, and does not look for it now and then.
    expect(clock.now() - from).toBeLessThan(1_000);
  });

  it('that has not begun, or whose process died, is left to those who work', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const entry = { kind: 'started', agent: 'function', limits: {}, scopes: [], query: 'q', seq: 1, at: 1 } as const;
    for (const run of ['pending', 'crashed']) {
      const identity = local('ana', { run });
      const claim = run === 'crashed' ? { claim: { owner: 'dead', leaseMs: 1_000 } } : {};
      await journal.create({ identity, priority: 0, entries: [{ ...entry, identity }], ...claim });
    }
    const made = await opened({ planner: script(), journal, clock });
    for (let count = 0; count < 10; count += 1) {
      clock.advance(NAP_MS);
      await quiet();
    }
    const found = await Promise.all(['pending', 'crashed'].map(async (run) => (await journal.get(run))?.status));
    expect(found).toEqual(['pending', 'running']);
    made.runtime.work();
    await until(() => hasEnded(made.runtime.run('pending')));
  });

  it('waits for room, and goes on when there is some', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const planner = script(call('nap'));
    const first = world({ planner, tools: [nap], journal, clock });
    const runs = await Promise.all(Array.from({ length: 25 }, () => start(first)));
    for (const { id } of runs) await until(async () => (await journal.get(id))?.status === 'waiting');
    await first.runtime.close();
    clock.advance(NAP_MS);
    const made = await opened({ planner, tools: [nap], journal, clock, maxLiveRuns: 2 });
    clock.advance(5);
    for (const { id } of runs) {
      await until(async () => {
        clock.advance(1);
        return hasEnded(made.runtime.run(id));
      });
    }
    for (const { id } of runs) expect(await entriesOf(journal, made.runtime.run(id), 'wait_ended')).toHaveLength(1);
  });
});

describe('a runtime that is closed', () => {
  it('has no timer left, and looks at nothing more', async () => {
    const time = new VirtualClock();
    const timers = new Set<() => void>();
    const clock: Clock = {
      now: () => time.now(),
      after(delayMs, wake) {
        const cancel = time.after(delayMs, () => {
          timers.delete(cancel);
          wake();
        });
        timers.add(cancel);
        return () => {
          timers.delete(cancel);
          cancel();
        };
      },
    };
    const made = await opened({ planner: script(), clock: clock as never, journal: memoryJournal({ clock }) });
    await quiet();
    time.advance(10_000);
    await quiet();
    expect(timers.size).toBe(1);
    await made.runtime.close();
    expect(timers.size).toBe(0);
  });
});
