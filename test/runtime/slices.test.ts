import { describe, expect, it } from 'vitest';
import { local, type PilotageError } from '#core';
import type { Runtime } from '#runtime';
import { VirtualClock } from '#testing';
import { agent, clientTool, handoff } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { observations } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { echo, make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, type WorldOptions, world } from '../kit/world.ts';

const STEPS = 20;
/** A runtime that goes on with nothing by itself, as in a function that is called for each request. */
const lone = (options: WorldOptions) => world({ goesOn: false, ...options });
const codeOf = (error: unknown): string => (error as PilotageError).code;
const twenty = script(...Array.from({ length: STEPS }, (_, n) => call('work', { n })), finish('all'));

describe('a run that is advanced in slices', () => {
  it('is carried out by processes in turn, each effect once', async () => {
    const path = temporaryFile();
    const clock = new VirtualClock();
    const done: string[] = [];
    const process = (name: string): Runtime => {
      const work = make(
        'work',
        ({ n }) => {
          done.push(`${n}`);
          clock.advance(100);
          return name;
        },
        { effect: 'once' },
      );
      return lone({ planner: twenty, tools: [work], journal: openJournal(path, { clock }), clock }).runtime;
    };
    const runtimes = [process('a'), process('b')];
    const run = await start({ runtime: runtimes[0] as Runtime }, { identity: local('ana', { run: 'r' }) });
    const slices: string[] = [];
    for (let turn = 0; slices.at(-1) !== 'finished' && turn < 100; turn += 1) {
      const { status } = await (runtimes[turn % 2] as Runtime).advance('r', { forMs: 500, graceMs: 150 });
      slices.push(status);
    }
    expect(slices).toEqual([...slices.slice(0, -1).map(() => 'pending'), 'finished']);
    expect(slices.length).toBeGreaterThan(4);
    expect(done).toEqual(Array.from({ length: STEPS }, (_, n) => `${n}`));
    expect(new Set(observations(await run.state()))).toEqual(new Set(['a', 'b']));
    for (const runtime of runtimes) await runtime.close();
  });

  it('lets a once call that is under way at the end go on to its end', async () => {
    const work = gate<string>();
    let begun = 0;
    const tool = make('work', () => {
      begun += 1;
      return work.opened;
    });
    const made = lone({ planner: script(call('work'), call('work')), tools: [tool] });
    const run = await start(made);
    const slice = made.runtime.advance(run.id, { forMs: 10_000, graceMs: 5_000 });
    await until(() => begun === 1);
    made.clock.advance(6_000);
    await quiet();
    work.open('done');
    expect(await slice).toEqual({ run: run.id, status: 'pending' });
    expect([begun, observations(await run.state())]).toEqual([1, ['done']]);
    // Nobody has it, and nothing here goes on with it.
    expect((await made.journal.get(run.id))?.lease).toBeUndefined();
    made.clock.advance(600_000);
    await quiet();
    expect(begun).toBe(1);
    expect(await made.runtime.advance(run.id, { forMs: 1_000 })).toMatchObject({ status: 'finished' });
  });

  it('aborts what does not end in its grace, and what can be done again is', async () => {
    let begun = 0;
    const tool = make(
      'look',
      (_, { signal }) => {
        begun += 1;
        return begun === 1 ? aborted(signal) : 'seen';
      },
      { effect: 'read' },
    );
    const made = lone({ planner: script(call('look')), tools: [tool] });
    const run = await start(made);
    let over: unknown;
    const slice = made.runtime.advance(run.id, { forMs: 10_000 }).then((how) => {
      over = how;
    });
    await until(() => begun === 1);
    await advanceUntil(made.clock, () => over !== undefined);
    await slice;
    expect(over).toEqual({ run: run.id, status: 'pending' });
    expect(await made.runtime.advance(run.id, { forMs: 10_000 })).toEqual({ run: run.id, status: 'finished' });
    expect(observations(await run.state())).toEqual(['seen']);
  });

  it('returns at once when it waits for somebody', async () => {
    const pick = clientTool({ name: 'pick', description: 'x', inputSchema: { type: 'object' }, timeoutMs: 60_000 });
    const gated = make('gated', () => 'made', { needsApproval: true });
    const made = lone({ planner: script(call('gated'), call('pick')), tools: [gated, pick] });
    const run = await start(made);
    for (const _ of [1, 2]) {
      expect(await made.runtime.advance(run.id, { forMs: 60_000 })).toEqual({ run: run.id, status: 'paused' });
    }
    await run.approve();
    const wakeAt = made.clock.now() + 60_000;
    expect(await made.runtime.advance(run.id, { forMs: 50_000 })).toEqual({ run: run.id, status: 'paused', wakeAt });
    await run.answer(undefined, { kind: 'answer', value: 'red' });
    expect(await made.runtime.advance(run.id, { forMs: 60_000 })).toMatchObject({ status: 'finished' });
  });

  it('says until when it waits', async () => {
    const rest = make('rest', async (_, { sleep }) => {
      await sleep({ forMs: 90_000 });
      return 'woke';
    });
    const made = lone({ planner: script(call('rest')), tools: [rest] });
    const run = await start(made);
    const wakeAt = made.clock.now() + 90_000;
    expect(await made.runtime.advance(run.id, { forMs: 60_000 })).toEqual({ run: run.id, status: 'waiting', wakeAt });
    made.clock.advance(90_000);
    await quiet();
    expect((await run.state()).ending).toBeNull();
    expect(await made.runtime.advance({ forMs: 60_000 })).toEqual({
      runs: [{ run: run.id, status: 'finished' }],
      more: false,
    });
  });

  it('takes its tasks with it, and leaves none behind', async () => {
    const work = [gate<string>(), gate<string>()];
    let begun = 0;
    const tool = make('work', () => {
      begun += 1;
      return work[begun - 1]?.opened;
    });
    const below = script(call('work'), call('work'));
    const above = script({ kind: 'spawn_task', task: 'foreground', spec: { query: 'below', description: 'below' } });
    const made = lone({
      planner: (run, signal) => (run.query === 'below' ? below : above)(run, signal),
      tools: [tool],
    });
    const run = await start(made);
    const first = made.runtime.advance(run.id, { forMs: 10_000, graceMs: 5_000 });
    await until(() => begun === 1);
    made.clock.advance(6_000);
    work[0]?.open('one');
    expect(await first).toEqual({ run: run.id, status: 'pending' });
    await quiet();
    expect(begun).toBe(1);
    work[1]?.open('two');
    expect(await made.runtime.advance(run.id, { forMs: 10_000 })).toEqual({ run: run.id, status: 'finished' });
  });

  it('takes the next turn of its session with it', async () => {
    const made = lone({ planner: script(call('echo')), tools: [echo] });
    const session = made.runtime.session('s');
    const [one, two] = [await session.send('one'), await session.send('two')];
    expect(await made.runtime.advance(one.turn, { forMs: 10_000 })).toEqual({ run: one.turn, status: 'finished' });
    expect(await made.journal.get(two.turn)).toMatchObject({ status: 'finished' });
  });

  it('is how the run stands that goes on where it has ended', async () => {
    const hands = handoff('other', { name: 'to_other', description: 'Hands over.' });
    const one = agent({
      name: 'one',
      planner: { name: 'one', next: script(call('to_other', { input: 'x' })) },
      tools: [hands],
    });
    const other = agent({ name: 'other', planner: { name: 'other', next: script(call('echo')) }, tools: [echo] });
    const made = lone({ agents: [one, other] });
    const run = await start(made);
    const { run: last, status } = await made.runtime.advance(run.id, { forMs: 10_000 });
    expect([last === run.id, status]).toEqual([false, 'finished']);
  });

  it('waits for a place here, and for no longer than its time', async () => {
    const work = gate<string>();
    let begun = 0;
    const tool = make('work', () => {
      begun += 1;
      return work.opened;
    });
    const made = lone({ planner: script(call('work')), tools: [tool], maxLiveRuns: 1 });
    const first = await start(made);
    await until(() => begun === 1);
    const second = await start(made, { identity: local('bo') });
    const slice = made.runtime.advance(second.id, { forMs: 4_000 });
    await quiet();
    made.clock.advance(4_000);
    expect(await slice).toEqual({ run: second.id, status: 'pending' });
    work.open('x');
    await first.result();
    await quiet();
    expect(begun).toBe(1);
    expect(await made.runtime.advance(second.id, { forMs: 4_000 })).toMatchObject({ status: 'finished' });
  });

  it('may be advanced twice at once', async () => {
    const made = lone({ planner: twenty, tools: [make('work', ({ n }) => n)] });
    const run = await start(made);
    const both = [1, 2].map(() => made.runtime.advance(run.id, { forMs: 10_000 }));
    expect(await Promise.all(both)).toEqual([1, 2].map(() => ({ run: run.id, status: 'finished' })));
  });

  it('and that another process has is left to it', async () => {
    const path = temporaryFile();
    const clock = new VirtualClock();
    const work = gate<string>();
    let begun = 0;
    const tool = make('work', () => {
      begun += 1;
      return work.opened;
    });
    const [one, other] = [1, 2].map(() =>
      lone({ planner: script(call('work')), tools: [tool], journal: openJournal(path, { clock }), clock }),
    ) as [ReturnType<typeof lone>, ReturnType<typeof lone>];
    const run = await start(one);
    await until(() => begun === 1);
    const status = (await other.runtime.advance(run.id, { forMs: 10_000 })).status;
    // Two runtimes of one process: the lease of the first is one of a living owner.
    expect(status).toBe('running');
    work.open('x');
    await run.result();
    await one.runtime.close();
    await other.runtime.close();
  });

  it('is not cut by a process that works', async () => {
    const work = gate<string>();
    let begun = 0;
    const tool = make('work', () => {
      begun += 1;
      return work.opened;
    });
    const made = world({ planner: script(call('work'), call('work')), tools: [tool] });
    made.runtime.work();
    const run = await start(made);
    const slice = made.runtime.advance(run.id, { forMs: 10_000 });
    await until(() => begun === 1);
    made.clock.advance(10_000);
    expect(await slice).toEqual({ run: run.id, status: 'running' });
    work.open('x');
    expect(await run.result()).toMatchObject({ status: 'finished' });
    await made.runtime.close();
  });

  it('is refused when there is none, when its code is another, and with options that are none', async () => {
    const made = lone({ planner: script(call('echo')), tools: [echo] });
    const { runtime } = made;
    expect(await runtime.advance('nobody', { forMs: 1_000 }).catch(codeOf)).toBe('run_not_found');
    for (const options of [
      {},
      { forMs: 0 },
      { forMs: 10, graceMs: 10 },
      { forMs: 10, limit: 1 },
      { forMs: 10, for: 1 },
    ]) {
      expect(await runtime.advance('r', options as never).catch(codeOf)).toBe('invalid_config');
    }
  });
});

describe('what is due, advanced in slices', () => {
  it('is carried out until nothing is, or the limit is met', async () => {
    const path = temporaryFile();
    const clock = new VirtualClock();
    const journal = openJournal(path, { clock });
    const planner = script(call('echo'));
    const first = lone({ planner, tools: [echo], journal, clock });
    for (const name of ['a', 'b', 'c']) {
      await start(first, { identity: local(name, { run: name }), at: clock.now() + 1_000 });
    }
    await first.runtime.close();
    const { runtime } = lone({ planner, tools: [echo], journal, clock });
    expect(await runtime.advance({ forMs: 10_000 })).toEqual({ runs: [], more: false });
    clock.advance(1_000);
    const some = await runtime.advance({ forMs: 10_000, limit: 2 });
    expect([some.runs.map(({ status }) => status), some.more]).toEqual([['finished', 'finished'], true]);
    const rest = await runtime.advance({ forMs: 10_000 });
    expect([rest.runs.map(({ status }) => status), rest.more]).toEqual([['finished'], false]);
    await runtime.close();
  });

  it('has the fires of schedules in it', async () => {
    const clock = new VirtualClock();
    const made = lone({ planner: script(call('echo')), tools: [echo], clock });
    await made.runtime.schedules.put({
      id: 'hourly',
      everyMs: 3_600_000,
      query: 'q',
      identity: { tenant: 'local', user: 'ana' },
    });
    await made.runtime.close();
    const { runtime } = lone({ planner: script(call('echo')), tools: [echo], clock, journal: made.journal });
    expect(await runtime.advance({ forMs: 10_000 })).toMatchObject({ more: false });
    clock.advance(3_700_000);
    await runtime.advance({ forMs: 10_000 });
    expect((await runtime.list()).map(({ status }) => status)).toEqual(['finished']);
    await runtime.close();
  });

  it('ends when its runtime is closed', async () => {
    const clock = new VirtualClock();
    const entered = gate();
    const tool = make(
      'work',
      (_, { signal }) => {
        entered.open();
        return aborted(signal);
      },
      { effect: 'read' },
    );
    const made = lone({ planner: script(call('work')), tools: [tool], clock });
    const run = await start(made, { at: clock.now() + 1 });
    clock.advance(1);
    const slice = made.runtime.advance({ forMs: 60_000 });
    await entered.opened;
    let isClosed = false;
    void made.runtime.close().then(() => {
      isClosed = true;
    });
    await advanceUntil(clock, () => isClosed);
    expect(await slice).toMatchObject({ runs: [{ run: run.id, status: 'pending' }] });
  });

  it('stops when the time is over, and says so', async () => {
    const clock = new VirtualClock();
    const tool = make('work', () => {
      clock.advance(100);
      return 'x';
    });
    const made = lone({ planner: twenty, tools: [tool], clock });
    const run = await start(made, { at: clock.now() + 1 });
    clock.advance(1);
    const slice = await made.runtime.advance({ forMs: 500, graceMs: 150 });
    expect(slice).toEqual({ runs: [{ run: run.id, status: 'pending' }], more: true });
  });
});
