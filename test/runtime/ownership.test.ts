/** Effects are entered by the owner of a run alone, also when a process stands still at the worst moment. */
import { describe, expect, it } from 'vitest';
import { type Control, type Effect, type JsonObject, local } from '#core';
import { type Append, type Journal, memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import type { Reconciled, Tool } from '#tools';
import { call, named, parallel, script } from '../kit/decisions.ts';
import { changed, cutJournal } from '../kit/journals.ts';
import { observations, outcomes } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const identity = local('ana', { run: 'r' });
const LEASE_MS = 5_000;
const GRACE_MS = 2 * LEASE_MS;

/** A process that can stand still: what it has asked the store for is answered when it goes on. */
class Standing {
  readonly journal: Journal;
  #goesOn: Promise<void> = Promise.resolve();
  #go = (): void => {};

  constructor(base: Journal, stopsAfter: (append: Append) => boolean = () => false) {
    this.journal = changed(base, {
      append: async (request) => {
        await base.append(request);
        if (stopsAfter(request)) this.stop();
        await this.#goesOn;
      },
      renew: async (leases, leaseMs) => {
        await this.#goesOn;
        return base.renew(leases, leaseMs);
      },
    });
  }

  stop(): void {
    const goesOn = gate();
    this.#goesOn = goesOn.opened;
    this.#go = () => goesOn.open();
  }

  go(): void {
    this.#go();
  }
}

const begins = ({ entries }: Append): boolean => entries.some(({ kind }) => kind === 'call_began');
const moves = ({ entries }: Append): boolean => entries.some(({ kind }) => kind === 'moved');

/** A tool of one process, which notes who ran it. */
function paid(ran: string[], who: string, more: Partial<Tool> = {}): Tool {
  return make(
    'pay',
    () => {
      ran.push(who);
      return `paid by ${who}`;
    },
    { effect: 'once', ...more },
  );
}

describe('a process that stands still before an effect', () => {
  const notDone = (): Reconciled => ({ status: 'not_done' });
  const planner = script(call('pay'));

  it.each([
    ['once', begins],
    ['keyed', moves],
    ['read', moves],
    ['pure', moves],
  ] as [
    Effect,
    (append: Append) => boolean,
  ][])('does not enter a %s tool when it wakes up and the run was taken', async (effect, stopsAfter) => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const standing = new Standing(journal, stopsAfter);
    const ran: string[] = [];
    const first = world({ planner, tools: [paid(ran, 'A', { effect })], journal: standing.journal, clock });
    await start(first, { identity });
    await until(async () => (await journal.get('r'))?.head === (effect === 'once' ? 3 : 2));
    const second = world({ planner, tools: [paid(ran, 'B', { effect, reconcile: notDone })], journal, clock });
    second.runtime.work();
    await advanceUntil(clock, () => ran.length === 1);
    standing.go();
    await until(() => first.faults.length === 1);
    expect(first.faults).toMatchObject([{ code: 'lease_lost' }]);
    expect(await second.runtime.run('r').result()).toMatchObject({ status: 'finished' });
    expect(ran).toEqual(['B']);
    await second.runtime.close();
  });

  it.each(['once', 'keyed', 'read'] as const)('costs a %s call nothing where no time was lost', async (effect) => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const asked = { appends: 0, renewals: 0 };
    const counting = changed(journal, {
      append: (request) => {
        asked.appends += 1;
        return journal.append(request);
      },
      renew: (leases, leaseMs) => {
        asked.renewals += 1;
        return journal.renew(leases, leaseMs);
      },
    });
    const ten = script(...Array.from({ length: 10 }, (_, n) => call('pay', { n })));
    const run = await start(world({ planner: ten, tools: [paid([], 'A', { effect })], journal: counting, clock }));
    await run.result();
    // A move, the beginning of what happens once, an outcome; and at last the move with the ending.
    expect(asked).toEqual({ appends: 10 * (effect === 'once' ? 3 : 2) + 1, renewals: 0 });
  });

  it('enters it when nobody took the run meanwhile: it has asked first', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const standing = new Standing(journal, begins);
    const ran: string[] = [];
    const first = world({ planner, tools: [paid(ran, 'A')], journal: standing.journal, clock });
    const run = await start(first, { identity });
    await until(async () => (await journal.get('r'))?.head === 3);
    clock.advance(3 * LEASE_MS);
    standing.go();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(ran).toEqual(['A']);
    expect(first.faults).toEqual([]);
  });

  it('does not run again what did not happen, when it lost the run while it asked', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const dying = cutJournal(journal);
    const entered = gate();
    const hanging = make('pay', () => new Promise(() => entered.open()), { effect: 'once' });
    await start(world({ planner, tools: [hanging], journal: dying.journal, clock }), { identity });
    await entered.opened;
    dying.cut();
    clock.advance(LEASE_MS + 1);
    const ran: string[] = [];
    let asked = 0;
    const taken = paid(ran, 'B', {
      reconcile: async () => {
        asked += 1;
        const owner = (await journal.get('r'))?.lease?.owner ?? '';
        if (asked === 2) await journal.claim({ run: 'r', owner: 'other', leaseMs: 60_000, from: owner });
        return { status: 'not_done' };
      },
    });
    const second = world({ planner, tools: [taken], journal, clock });
    await second.runtime.run('r').resume();
    await advanceUntil(clock, () => second.faults.length === 1);
    expect(second.faults).toMatchObject([{ code: 'lease_lost' }]);
    expect([asked, ran]).toEqual([2, []]);
  });

  it('holds for each of several calls whose loop stood still between their beginnings and themselves', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const ran: string[] = [];
    // The first call blocks the loop for two leases, while the second is on its way into its effect.
    const blocking = make('block', () => void clock.advance(2 * LEASE_MS), { effect: 'once' });
    const renewed: number[] = [];
    const counting = changed(journal, {
      renew: (leases, leaseMs) => {
        renewed.push(ran.length);
        return journal.renew(leases, leaseMs);
      },
    });
    const both = script(parallel(named('block', 'pay')));
    const run = await start(world({ planner: both, tools: [blocking, paid(ran, 'A')], journal: counting, clock }), {
      identity,
    });
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(ran).toEqual(['A']);
    expect(renewed).toContain(0);
  });
});

describe('the commit that begins a call', () => {
  const pays = script(call('echo'), call('pay'));

  it('renews the lease: who takes the run over counts from there, also when no renewal comes through', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const unrenewed = changed(journal, { renew: () => Promise.reject(new Error('It got lost.')) });
    const entered = gate();
    const goesOn = gate();
    const ran: string[] = [];
    const slow = make(
      'pay',
      async () => {
        entered.open();
        await goesOn.opened;
        ran.push('A');
      },
      { effect: 'once', timeoutMs: 3_600_000 },
    );
    const late = make('echo', () => void clock.advance(LEASE_MS - 71));
    const first = world({ planner: pays, tools: [slow, late], journal: unrenewed, clock, leaseMs: LEASE_MS });
    await start(first, { identity });
    await entered.opened;
    expect((await journal.get('r'))?.lease?.until).toBe(clock.now() + LEASE_MS);
    const heir = paid(ran, 'B', { reconcile: () => ({ status: 'not_done' }) });
    const second = world({ planner: pays, tools: [heir, late], journal, clock, takeoverGraceMs: 0 });
    second.runtime.work();
    for (let passed = 0; passed < LEASE_MS - 1_000; passed += 500) {
      clock.advance(500);
      await quiet();
    }
    expect([(await journal.get('r'))?.lease?.owner !== undefined, ran]).toEqual([true, []]);
    goesOn.open();
    expect(await first.runtime.run('r').result()).toMatchObject({ status: 'finished' });
    expect(ran).toEqual(['A']);
    await second.runtime.close();
  });
});

describe('what was acknowledged before a commit of the owner is known to it then', () => {
  const cancel = (payload?: JsonObject): Control => ({ id: 'c', type: 'CANCEL', ...(payload && { payload }) });

  /** Somebody in another process says it right before the owner, who hears of nothing by itself, appends such entries. */
  async function said(control: Control, before: (append: Append) => boolean, effect: Effect) {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const ran: string[] = [];
    const appended: string[] = [];
    let told = false;
    const deaf = changed(journal, {
      append: async (request) => {
        if (before(request) && !told) {
          told = true;
          await journal.signal('r', control);
        }
        await journal.append(request);
        appended.push(...request.entries.map(({ kind }) => kind));
      },
      watch: () => () => {},
    });
    const made = world({ planner: script(call('pay')), tools: [paid(ran, 'A', { effect })], journal: deaf, clock });
    const run = await start(made, { identity });
    const result = await run.result();
    expect(made.faults).toEqual([]);
    return { ran, result, appended };
  }

  it('a cancel before the decision of an owner that died then: whoever takes over makes no call of it', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const ran: string[] = [];
    const cut = cutJournal(journal);
    const dying = changed(cut.journal, {
      append: async (request) => {
        if (!moves(request)) return journal.append(request);
        await journal.signal('r', cancel());
        await journal.append(request);
        cut.cut();
        return new Promise<never>(() => {});
      },
    });
    const planner = script(call('pay'));
    await start(world({ planner, tools: [paid(ran, 'A', { effect: 'read' })], journal: dying, clock }), { identity });
    await until(async () => (await journal.get('r'))?.head === 2);
    const heir = world({ planner, tools: [paid(ran, 'B', { effect: 'read' })], journal, clock });
    heir.runtime.work();
    await advanceUntil(clock, async () => (await journal.get('r'))?.status === 'cancelled');
    expect(await heir.runtime.run('r').result()).toMatchObject({ reason: 'cancelled' });
    expect(ran).toEqual([]);
    await heir.runtime.close();
  });

  it.each([
    ['once', begins, undefined],
    ['once', begins, { hard: false }],
    ['once', moves, undefined],
    ['once', moves, { hard: false }],
    ['keyed', moves, undefined],
    ['read', moves, undefined],
    ['pure', moves, undefined],
  ] as [
    Effect,
    (append: Append) => boolean,
    JsonObject | undefined,
  ][])('a cancel of a %s call', async (effect, before, payload) => {
    const { ran, result, appended } = await said(cancel(payload), before, effect);
    expect(ran).toEqual([]);
    expect(result).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(appended).not.toContain('call_began');
  });

  it('a message stops nothing, and no move is made twice for it', async () => {
    const message: Control = { id: 'm', type: 'USER_MESSAGE', payload: { message: 'hello' } };
    for (const before of [moves, begins]) {
      const { ran, result, appended } = await said(message, before, 'once');
      expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
      expect(ran).toEqual(['A']);
      expect(appended.slice(0, 4)).toEqual(['moved', 'call_began', 'call_ended', 'control']);
    }
  });

  it('a process that stood still for longer than its lease hears of it when it asks whose the run is', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const standing = new Standing(journal, begins);
    const ran: string[] = [];
    const made = world({ planner: script(call('pay')), tools: [paid(ran, 'A')], journal: standing.journal, clock });
    const run = await start(made, { identity });
    await until(async () => (await journal.get('r'))?.head === 3);
    clock.advance(2 * LEASE_MS);
    await journal.signal('r', cancel());
    standing.go();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(ran).toEqual([]);
  });
});

describe('a run taken from a process that may live still', () => {
  /** The first process has entered `pay`, and stands still in it. */
  async function stoppedInside() {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const standing = new Standing(journal);
    const entered = gate();
    const wakes = gate();
    const world_: string[] = [];
    const slow = make(
      'pay',
      async () => {
        standing.stop();
        entered.open();
        await wakes.opened;
        world_.push('A');
        return 'paid by A';
      },
      { effect: 'once', timeoutMs: 3_600_000 },
    );
    const first = world({ planner: script(call('pay')), tools: [slow], journal: standing.journal, clock });
    await start(first, { identity });
    await entered.opened;
    const asked: number[] = [];
    const reconcile = (): Reconciled => {
      asked.push(clock.now());
      return world_.includes('A') ? { status: 'done', value: 'looked up' } : { status: 'not_done' };
    };
    const heir = (takeoverGraceMs?: number) => {
      const tools = [paid(world_, 'B', { reconcile })];
      const grace = takeoverGraceMs === undefined ? {} : { takeoverGraceMs };
      return world({ planner: script(call('pay')), tools, journal, clock, ...grace });
    };
    return { clock, journal, standing, wakes, done: world_, asked, heir, first };
  }

  it('believes that a call did not happen only when the grace is over: what it had under way counts', async () => {
    const { clock, standing, wakes, done, asked, heir } = await stoppedInside();
    clock.advance(LEASE_MS + 1);
    const second = heir();
    const run = second.runtime.run('r');
    await run.resume();
    await until(() => asked.length === 1);
    clock.advance(GRACE_MS - 1_000);
    await quiet();
    expect(asked).toHaveLength(1);
    // It wakes up: its effect takes place, and its news is refused.
    wakes.open();
    standing.go();
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(asked).toHaveLength(2);
    expect(done).toEqual(['A']);
    expect(observations(await run.state())).toEqual(['looked up']);
  });

  it('then runs the call, under the lease that it kept meanwhile', async () => {
    const { clock, done, asked, heir } = await stoppedInside();
    clock.advance(LEASE_MS + 1);
    const second = heir();
    const run = second.runtime.run('r');
    await run.resume();
    await until(() => asked.length === 1);
    const third = heir();
    third.runtime.work();
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(done).toEqual(['B']);
    expect((asked[1] ?? 0) - (asked[0] ?? 0)).toBeGreaterThanOrEqual(GRACE_MS);
    expect(asked).toHaveLength(2);
    expect(second.faults).toEqual([]);
    await third.runtime.close();
  });

  it('counts the grace from the takeover, whoever has the run by then', async () => {
    const { clock, journal, done, asked, heir } = await stoppedInside();
    clock.advance(LEASE_MS + 1);
    const takenAt = clock.now();
    const second = heir();
    await second.runtime.run('r').resume();
    await until(() => asked.length === 1);
    clock.advance(2_000);
    await second.runtime.close();
    expect((await journal.get('r'))?.lease).toBeUndefined();
    // That one gave it back, but the first one may be at it still.
    const third = heir();
    const run = third.runtime.run('r');
    await run.resume();
    await until(() => asked.length === 2);
    expect(done).toEqual([]);
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(done).toEqual(['B']);
    expect(asked[2]).toBe(takenAt + GRACE_MS);
  });

  it('counts the grace from a close that left the call at work', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const [entered, ends] = [gate(), gate()];
    const happened: string[] = [];
    const deaf = make(
      'pay',
      async () => {
        entered.open();
        await ends.opened;
        happened.push('A');
      },
      { effect: 'once' },
    );
    const first = world({ planner: script(call('pay')), tools: [deaf], journal, clock });
    await start(first, { identity });
    await entered.opened;
    let closed = false;
    void first.runtime.close().then(() => {
      closed = true;
    });
    await advanceUntil(clock, () => closed);
    expect((await journal.get('r'))?.lease).toBeUndefined();
    const asked: string[] = [];
    const reconcile = (): Reconciled => {
      asked.push(happened.join());
      return happened.length > 0 ? { status: 'done', value: 'looked up' } : { status: 'not_done' };
    };
    const second = world({ planner: script(call('pay')), tools: [paid(happened, 'B', { reconcile })], journal, clock });
    const run = second.runtime.run('r');
    await run.resume();
    await until(() => asked.length === 1);
    ends.open();
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect([happened, asked]).toEqual([['A'], ['', 'A']]);
  });

  it('is as long as the runtime says; with 0 the first answer counts', async () => {
    const { clock, done, asked, heir } = await stoppedInside();
    clock.advance(LEASE_MS + 1);
    const run = heir(0).runtime.run('r');
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect([asked.length, done]).toEqual([1, ['B']]);
  });

  it('hears a cancel in the grace: the call is in doubt, and not made', async () => {
    const { clock, done, asked, heir } = await stoppedInside();
    clock.advance(LEASE_MS + 1);
    const run = heir().runtime.run('r');
    await run.resume();
    await until(() => asked.length === 1);
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(outcomes(await run.state())).toEqual(['unknown']);
    expect([asked.length, done]).toEqual([1, []]);
  });
});
