/** What a deploy, a replay and a look at the list must not get wrong. */
import { describe, expect, it } from 'vitest';
import { type Decision, local, type Planner, type PlannerFunction, type RunView } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { foldEntries } from '#state';
import { VirtualClock } from '#testing';
import { agent, agentTool } from '#tools';
import { call, finish, named, parallel, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, observations, pausesOf } from '../kit/run-record.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { bookings } from '../kit/undo.ts';
import { advanceUntil, gate, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const [day, night] = [Date.UTC(2026, 0, 1, 12), Date.UTC(2026, 0, 1, 23)];

describe('old state, new code', () => {
  it('a changed prompt, a renamed tool and a removed step: stopped with the differences named, then migrated', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const done: string[] = [];
    const tool = (name: string) => make(name, () => done.push(name) && name, { effect: 'once', needsApproval: true });
    const version1 = world({
      planner: {
        name: 'clerk',
        version: '1',
        next: script(call('echo', { n: 1 }), call('send'), call('echo', { n: 2 })),
      },
      tools: [echo, tool('send')],
      journal,
      clock,
    });
    const { id } = await start(version1);
    await version1.runtime.run(id).result();
    await version1.runtime.close();

    // Its third step is gone, its version is another, and what was `send` is called `post`.
    const planner = watched(script(call('echo', { n: 1 }), call('post')));
    const code = {
      planner: { name: 'clerk', version: '2', next: planner },
      tools: [echo, tool('post')],
      journal,
      clock,
    };
    const version2 = world(code);
    // Whoever answers need not have the run's code: the answer is stored, and waits.
    await version2.runtime.run(id).approve();
    await expect(version2.runtime.run(id).resume()).rejects.toMatchObject({
      code: 'run_changed',
      message: expect.stringMatching(/planner version: 1 → 2.*tool send is gone/),
    });
    expect(done).toEqual([]);
    expect(await journal.get(id)).toMatchObject({ status: 'paused' });
    await version2.runtime.close();

    const migrated = world({ ...code, migrate: () => ({ renamedTools: { send: 'post' } }) });
    await migrated.runtime.run(id).resume();
    expect(await migrated.runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(done).toEqual(['post']);
    // It went on where it was: nothing of the first version was asked for or made again.
    expect(observations(await migrated.runtime.run(id).state())).toEqual([{ n: 1 }, 'post']);
    expect(planner.views.map(({ trajectory }) => trajectory.count)).toEqual([2]);
  });
});

describe('a deploy before a run has begun', () => {
  const planner = (version: string, next: PlannerFunction): Planner => ({ name: 'clerk', version, next });
  const asked = make('ask', () => 'yes', { needsApproval: true });

  it('a start of later, and a turn that waits behind another one, begin with the code of their time', async () => {
    const {
      runtime: old,
      journal,
      clock,
    } = world({ planner: planner('1', script(call('ask'))), tools: [asked, echo] });
    const later = await old.start('later', { identity: local('ana'), at: clock.now() + 60_000 });
    const talk = { identity: { tenant: 'shop', user: 'ana' } };
    const first = await old.session('talk', talk).send('first');
    await first.result();
    const second = await old.session('talk', talk).send('second');
    await old.close();

    clock.advance(1);
    const { runtime, faults } = world({ planner: planner('2', script()), tools: [], journal, clock });
    runtime.work();
    await runtime.run(first.turn).cancel();
    const hasEnded = async (run: string) => (await journal.get(run))?.status === 'finished';
    await advanceUntil(clock, async () => (await hasEnded(second.turn)) && (await hasEnded(later.id)));
    for (const run of [second.turn, later.id])
      expect((await journal.read(run)).filter(({ kind }) => kind === 'repinned')).toHaveLength(1);
    expect(faults).toEqual([]);
    await runtime.close();
  });

  it('one whose first move was cut off is asked for it again, by the planner of today', async () => {
    const thinking = gate();
    const thinks: PlannerFunction = (_, signal) => {
      thinking.open();
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const { runtime: old, journal, clock } = world({ planner: planner('1', thinks), tools: [echo] });
    const { id } = await old.start('q', { identity: local('ana') });
    await thinking.opened;
    await old.close({ graceMs: 0 });
    clock.advance(1);
    const { runtime } = world({ planner: planner('2', script()), tools: [], journal, clock });
    await runtime.run(id).resume();
    expect(await runtime.run(id).result()).toMatchObject({ status: 'finished', payload: 'done' });
    await runtime.close();
  });

  it('is not begun by an older process: those with the code that it was started with are there', async () => {
    const { runtime: old, journal, clock } = world({ planner: planner('1', script()) });
    await (await old.start('first', { identity: local('ana') })).result();
    clock.advance(1);
    const { runtime: newer } = world({ planner: planner('2', script()), journal, clock });
    const { id } = await newer.start('q', { identity: local('ana'), at: clock.now() + 60_000 });
    await newer.close();
    clock.advance(60_000);
    await expect(old.run(id).resume()).rejects.toMatchObject({ code: 'run_changed' });
    await old.close();
  });

  it('is not begun by another agent', async () => {
    const { runtime: old, journal, clock } = world({ planner: planner('1', script()) });
    const { id } = await old.start('q', { identity: local('ana'), at: clock.now() + 60_000 });
    await old.close();
    const { runtime } = world({ planner: { ...planner('1', script()), name: 'another' }, journal, clock });
    clock.advance(60_000);
    await expect(runtime.run(id).resume()).rejects.toMatchObject({ code: 'run_changed' });
    await runtime.close();
  });
});

describe('a cancel under other code', () => {
  const planner = (version: string, decision: Decision) => ({ name: 'clerk', version, next: script(decision) });

  it('ends a run that waits, whatever of its agent is another one or gone, and accepts nothing', async () => {
    const done: string[] = [];
    const pay = make('pay', () => done.push('pay'), { effect: 'once', needsApproval: true });
    const other: readonly Partial<Parameters<typeof world>[0]>[] = [
      { planner: planner('2', call('pay')), tools: [pay] },
      { planner: planner('1', call('pay')), tools: [] },
      { planner: { ...planner('1', call('pay')), name: 'another' }, tools: [pay] },
    ];
    for (const code of other) {
      for (const answersFirst of [false, true]) {
        const { journal, clock, runtime } = world({ planner: planner('1', call('pay')), tools: [pay] });
        const { id } = await start({ runtime });
        await runtime.run(id).result();
        await runtime.close();
        const later = world({ ...code, journal, clock });
        const run = later.runtime.run(id);
        if (answersFirst) await run.approve();
        await run.cancel();
        expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
        expect((await journal.read(id)).filter(({ kind }) => kind === 'repinned')).toEqual([]);
        await later.runtime.close();
      }
    }
    expect(done).toEqual([]);
  });

  it('ends one that died in a call, and leaves what became of it unknown', async () => {
    const journal = memoryJournal();
    const { tool, entered } = holding();
    const old = createRuntime({ planner: planner('1', call('hold')), tools: [{ ...tool, effect: 'once' }], journal });
    const { id } = await old.start('q', { identity: local('ana') });
    await entered;
    await old.close({ graceMs: 0 });
    const runtime = createRuntime({ planner: planner('2', call('hold')), tools: [], journal });
    await runtime.run(id).cancel();
    expect(await runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect((await runtime.run(id).state()).steps[0]?.calls[0]?.outcome.kind).toBe('unknown');
    await runtime.close();
  });

  it('ends a task below it too, also one that this process leaves to others', async () => {
    const [below, above] = ['1', '2'].map((version) => {
      const pay = make('pay', () => 'paid', { needsApproval: true });
      const clerk = agent({ name: 'clerk', planner: planner(version, call('pay')), tools: [pay] });
      const ask = agentTool(clerk, { description: 'Asks the clerk.' });
      return [agent({ name: 'desk', planner: planner('1', call('clerk', { input: 'q' })), tools: [ask] }), clerk];
    });
    const { runtime: old, journal, clock } = world({ agents: below ?? [] });
    const { id } = await old.start('q', { identity: local('ana'), agent: 'desk' });
    const result = await old.run(id).result();
    const [pause] = result.status === 'paused' ? result.pauses : [];
    await old.close();
    const { runtime, faults } = world({ agents: above ?? [], journal, clock });
    runtime.work();
    await runtime.run(id).approve(pause?.token);
    await advanceUntil(clock, () => faults.length > 0);
    await runtime.run(id).cancel();
    expect(await runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    await until(async () => (await runtime.list({ status: ['cancelled'] })).length === 2);
    await runtime.close();
  });

  it('leaves one that has something to undo to those who can, or to whoever accepts', async () => {
    const { tools, booked } = bookings();
    const steps = script(call('book', { what: 'hotel' }), pause);
    const first = world({ planner: { name: 'clerk', version: '1', next: steps }, tools, onFail: 'undo' });
    const { id } = await start(first);
    await first.runtime.run(id).result();
    await first.runtime.close();
    const { journal, clock } = first;
    const { runtime } = world({ planner: { name: 'clerk', version: '2', next: steps }, tools, journal, clock });
    await runtime.run(id).cancel();
    expect([(await journal.get(id))?.status, booked]).toEqual(['paused', ['hotel']]);
    await runtime.run(id).resume({ acceptChanges: true });
    expect(await runtime.run(id).result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(booked).toEqual([]);
  });
});

describe('clock and approval rule re-evaluated on replay', () => {
  it('what was recorded holds: a rule, a router and a clock that would say something else now are not asked', async () => {
    const clock = new VirtualClock(day);
    const journal = memoryJournal({ clock });
    const asked: number[] = [];
    const paid: unknown[] = [];
    // A rule that reads the clock: by day somebody is asked, by night nobody.
    const pay = make('pay', (args) => paid.push(args), {
      effect: 'once',
      needsApproval: () => {
        asked.push(clock.now());
        return clock.now() < night;
      },
    });
    // A router that reads the clock, too.
    const planner = watched(({ trajectory }: RunView): Decision => {
      if (trajectory.count > 0) return finish('done');
      return clock.now() < night ? parallel(named('echo', 'pay', 'pay')) : finish('closed');
    });
    const first = world({ planner, tools: [pay, echo], journal, clock });
    const { id } = await start(first);
    const pauses = await pausesOf(first.runtime.run(id));
    expect(pauses).toHaveLength(2);
    await first.runtime.close();
    clock.advance(night - day);

    const second = world({ planner, tools: [pay, echo], journal, clock });
    const run = second.runtime.run(id);
    const before = await journal.read(id);
    await run.approve(pauses[0]?.token);
    expect(await pausesOf(run)).toEqual([pauses[1]].map((open) => expect.objectContaining({ token: open?.token })));
    await run.approve(pauses[1]?.token);
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'done' });
    expect(asked).toEqual([day, day]);
    expect(paid).toHaveLength(2);
    expect(planner.views.map(({ startedAt }) => startedAt)).toEqual([day, day]);
    // What was there is there, to the byte, and folds to the same state as it did.
    const after = await journal.read(id);
    expect(JSON.stringify(after.slice(0, before.length))).toBe(JSON.stringify(before));
    expect(foldEntries(after.slice(0, before.length))).toEqual(foldEntries(before));
  });

  it('replay asks the planner of today, and no tool, no rule and no person; it writes nothing', async () => {
    let [rules, calls] = [0, 0];
    const pay = make('pay', () => (calls += 1), {
      effect: 'once',
      needsApproval: () => {
        rules += 1;
        return true;
      },
    });
    const planner = watched(script(call('pay'), call('echo', { n: 1 })));
    const made = world({ planner, tools: [pay, echo] });
    const run = await start(made);
    await pausesOf(run);
    await run.approve();
    await run.result();
    const before = await made.journal.read(run.id);
    made.clock.advance(86_400_000);
    expect(await run.replay()).toMatchObject({ run: run.id, compared: 3 });
    expect((await run.replay()).divergence).toBeUndefined();
    expect([rules, calls]).toEqual([1, 1]);
    expect(await made.journal.read(run.id)).toEqual(before);
    // Each view says the same as then, the clock included.
    const [then, again] = [planner.views.slice(0, 3), planner.views.slice(3, 6)];
    expect(again.map(({ startedAt, controls, budget }) => [startedAt, controls, budget])).toEqual(
      then.map(({ startedAt, controls, budget }) => [startedAt, controls, budget]),
    );
  });
});

describe('a paused run reported as completed', () => {
  it('its status, its result, its events and the list say paused, until it has ended', async () => {
    const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
    const made = world({ planner: script(call('pay'), pause), tools: [pay] });
    const { journal, runtime } = made;
    const run = await start(made);
    const statuses = async (): Promise<unknown[]> => {
      const [record, result, events, listed, done] = await Promise.all([
        journal.get(run.id),
        run.result(),
        collect(run),
        runtime.list({ status: ['paused'] }),
        runtime.list({ status: ['finished', 'failed', 'cancelled'] }),
      ]);
      return [record?.status, result.status, events.at(-1)?.type, listed.length, done.length];
    };
    for (const answer of [() => run.approve(), () => run.resume()]) {
      await run.result();
      await until(async () => (await journal.get(run.id))?.lease === undefined);
      expect(await statuses()).toEqual(['paused', 'paused', 'run.paused', 1, 0]);
      expect((await run.state()).ending).toBeNull();
      await answer();
    }
    await run.result();
    expect(await statuses()).toEqual(['finished', 'finished', 'planner.finish', 0, 1]);
  });

  it('a run that waits for one call while another is under way is neither: it runs', async () => {
    const opened = gate();
    const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
    const wait = make('wait', () => opened.opened);
    const made = world({ planner: script(parallel(named('pay', 'wait'))), tools: [pay, wait] });
    const run = await start(made);
    await until(async () => (await run.state()).pauses.length === 1);
    expect(await made.journal.get(run.id)).toMatchObject({ status: 'running' });
    expect(await made.runtime.list({ status: ['paused'] })).toEqual([]);
    opened.open();
    await run.result();
    expect(await made.journal.get(run.id)).toMatchObject({ status: 'paused' });
  });

  it('its status is paused from the entry of the pause on, not only when it is let go of', async () => {
    const made = world({ planner: script(pause) });
    const seen: (string | undefined)[] = [];
    const run = await start(made, { identity: local('ana', { run: 'r' }) });
    for await (const { type } of run.events())
      if (type === 'pause.requested') seen.push((await made.journal.get('r'))?.status);
    expect(seen).toEqual(['paused']);
  });

  it('one that was approved while it was let go of is not reported as paused for ever', async () => {
    const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
    for (let ticks = 0; ticks < 40; ticks += 1) {
      const made = world({ planner: script(call('pay')), tools: [pay] });
      const run = await start(made);
      await until(async () => (await run.state()).pauses.length === 1);
      for (let tick = 0; tick < ticks; tick += 1) await null;
      await run.approve();
      expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
      expect(await made.journal.get(run.id)).toMatchObject({ status: 'finished' });
      expect(only(await collect(run), 'planner.finish')).toHaveLength(1);
      expect(await entriesOf(made.journal, run, 'resumed')).toHaveLength(1);
    }
  });
});
