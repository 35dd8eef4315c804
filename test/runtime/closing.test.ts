/** Closing a runtime: everything is let go of, and another process can go on. */
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { call, script, watched } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { kindsOf, outcomes, startedEntry } from '../kit/run-record.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { aborted, gate, quiet, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const identity = local('ana', { run: 'r' });

describe('closing', () => {
  it('RL-21 aborts what runs, returns when all is let go of, starts nothing more, and is a no-op the second time', async () => {
    const entered = gate();
    const settled: string[] = [];
    const made = world({
      planner: script(call('hold')),
      tools: [
        make('hold', async (_, { signal, identity: { run } }) => {
          if (run === 'run9') entered.open();
          await aborted(signal).catch(() => {});
          await quiet();
          settled.push(run);
          throw signal.reason;
        }),
      ],
    });
    await Promise.all(
      Array.from({ length: 10 }, (_, index) => start(made, { identity: local('ana', { run: `run${index}` }) })),
    );
    await entered.opened;
    const closed = made.runtime.close();
    expect(made.runtime.close()).toBe(closed);
    await expect(start(made)).rejects.toMatchObject({ code: 'runtime_closed' });
    expect(() => made.runtime.work()).toThrow(expect.objectContaining({ code: 'runtime_closed' }));
    expect(() => made.runtime.run('run0')).toThrow(expect.objectContaining({ code: 'runtime_closed' }));
    await closed;
    expect(settled).toHaveLength(10);
    expect(made.clock.pending).toBe(0);
    for (const record of await made.journal.list({})) expect(record).not.toHaveProperty('lease');
    await made.runtime.close();
  });

  it('gives runs back so that another process goes on where they were; a call that was cut off runs again there', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const { tool, entered, release, runs } = holding();
    const planner = watched(script(call('echo'), call('hold')));
    const first = world({ planner, tools: [echo, tool], journal, clock });
    const run = await start(first, { identity });
    const cut = expect(run.result()).rejects.toMatchObject({ code: 'runtime_closed' });
    await entered;
    await first.runtime.close();
    await cut;
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'call_ended', 'moved']);
    release();
    const second = world({ planner, tools: [echo, tool], journal, clock });
    await second.runtime.run('r').resume();
    expect(await second.runtime.run('r').result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(runs()).toBe(2);
    expect(planner.views.map((view) => view.trajectory.count)).toEqual([0, 1, 2]);
  });

  it('keeps results that landed before', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const { tool, entered, release, runs } = holding();
    let quickRuns = 0;
    const made = (closing: boolean) =>
      world({
        planner: script({
          kind: 'call_parallel',
          branches: [
            { tool: 'hold', args: {} },
            { tool: 'polite', args: {} },
          ],
        }),
        tools: [
          tool,
          make(
            'polite',
            async (_, { signal }) => {
              quickRuns += 1;
              if (closing) await aborted(signal).catch(() => {});
              return 'done';
            },
            { effect: 'once' },
          ),
        ],
        journal,
        clock,
      });
    const first = made(true);
    await start(first, { identity });
    await entered;
    await until(async () => (await journal.read('r')).some((entry) => entry.kind === 'call_began'));
    await quiet();
    await first.runtime.close();
    release();
    const second = made(false);
    const run = second.runtime.run('r');
    await run.resume();
    await run.result();
    expect(outcomes(await run.state())).toEqual(['value', 'value']);
    expect([runs(), quickRuns]).toEqual([2, 1]);
  });

  it('waits for a run that is being created, and leaves it due', async () => {
    const created = gate();
    const held = gate();
    const base = memoryJournal();
    const journal = changed(base, {
      create: async (run) => {
        created.open();
        await held.opened;
        return base.create(run);
      },
    });
    const planner = watched(script());
    const made = world({ planner, journal });
    const starting = start(made, { identity });
    await created.opened;
    const closed = made.runtime.close();
    await quiet();
    held.open();
    expect((await starting).id).toBe('r');
    await closed;
    expect(planner.views).toEqual([]);
    expect((await base.get('r'))?.lease).toBeUndefined();
    expect((await base.get('r'))?.wakeAt).toBeUndefined();
  });

  it('waits for a claim that is under way, and gives the run back', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    await base.create({ identity, priority: 0, entries: [startedEntry('r', 0)] });
    const claiming = gate();
    const held = gate();
    const journal = changed(base, {
      claimDue: async (request) => {
        const claimed = await base.claimDue(request);
        claiming.open();
        await held.opened;
        return claimed;
      },
    });
    const planner = watched(script());
    const made = world({ planner, journal, clock });
    made.runtime.work();
    await claiming.opened;
    const closed = made.runtime.close();
    await quiet();
    held.open();
    await closed;
    expect(planner.views).toEqual([]);
    expect((await base.get('r'))?.lease).toBeUndefined();
    expect(made.faults).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it('in the middle of a renewal sets no timer for the next', async () => {
    const renewing = gate();
    const held = gate();
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const journal = changed(base, {
      renew: async (leases, leaseMs) => {
        renewing.open();
        await held.opened;
        return base.renew(leases, leaseMs);
      },
    });
    const { tool, entered } = holding();
    const made = world({ planner: script(call('hold')), tools: [tool], journal, clock });
    await start(made);
    await entered;
    clock.advance(2_000);
    await renewing.opened;
    await made.runtime.close();
    held.open();
    await quiet();
    expect(clock.pending).toBe(0);
    expect(made.faults).toEqual([]);
  });

  it('leaves a journal that was passed in open', async () => {
    const made = world({ planner: script() });
    await (await start(made, { identity })).result();
    await made.runtime.close();
    expect((await made.journal.get('r'))?.status).toBe('finished');
  });

  it('can be called from inside a tool', async () => {
    const made = world({
      planner: script(call('quit')),
      tools: [
        make('quit', (_, { signal }) => {
          void made.runtime.close();
          return aborted(signal);
        }),
      ],
    });
    const run = await start(made, { identity });
    await expect(run.result()).rejects.toMatchObject({ code: 'runtime_closed' });
    await made.runtime.close();
    expect((await made.journal.get('r'))?.lease).toBeUndefined();
  });
});

describe('closing with a grace', () => {
  const GRACE_MS = 60_000;

  it('lets every call that is under way end and keeps what it gave; nothing else of the step begins, and nothing is claimed', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const [entered, goesOn] = [gate(), gate()];
    const ran: string[] = [];
    const wait = make('wait', async (args) => {
      const { name } = args as { name: string };
      ran.push(name);
      if (ran.length === 2) entered.open();
      await goesOn.opened;
      return name;
    });
    const branches = ['a', 'b', 'c'].map((name) => ({ tool: 'wait', args: { name } }));
    const planner = script({ kind: 'call_parallel', branches, concurrency: 2 });
    const first = world({ planner, tools: [wait], journal, clock });
    first.runtime.work();
    await start(first, { identity });
    await entered.opened;
    const closed = first.runtime.close({ graceMs: GRACE_MS });
    await journal.create({ identity: local('ana', { run: 'due' }), priority: 0, entries: [startedEntry('due', 0)] });
    for (let passedMs = 0; passedMs < GRACE_MS / 4; passedMs += 1_000) {
      clock.advance(1_000);
      await quiet();
    }
    expect((await journal.get('r'))?.lease).toBeDefined();
    goesOn.open();
    await closed;
    expect(ran).toEqual(['a', 'b']);
    expect((await journal.read('r')).map(({ kind }) => kind)).toEqual(['started', 'moved', 'call_ended', 'call_ended']);
    expect((await journal.get('due'))?.status).toBe('pending');
    expect((await journal.get('r'))?.lease).toBeUndefined();
    expect(clock.pending).toBe(0);
    const second = world({ planner, tools: [wait], journal, clock });
    await second.runtime.run('r').resume();
    expect(await second.runtime.run('r').result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(ran).toEqual(['a', 'b', 'c']);
  });

  it('keeps the move that the planner is making, and begins none of its calls', async () => {
    const [asked, decides] = [gate(), gate()];
    const made = world({
      planner: async ({ trajectory }) => {
        asked.open();
        await decides.opened;
        return trajectory.count === 0 ? call('echo') : { kind: 'finish', reason: 'goal' };
      },
      tools: [echo],
    });
    await start(made, { identity });
    await asked.opened;
    const closed = made.runtime.close({ graceMs: GRACE_MS });
    await quiet();
    decides.open();
    await closed;
    expect((await made.journal.read('r')).map(({ kind }) => kind)).toEqual(['started', 'moved']);
  });

  it.each([
    ['when it is over', ({ clock }: World) => clock.advance(GRACE_MS)],
    ['when it is closed again', ({ runtime }: World) => void runtime.close()],
    [
      'when it is closed again with less',
      ({ runtime, clock }: World) => {
        void runtime.close({ graceMs: 1_000 });
        void runtime.close({ graceMs: GRACE_MS });
        clock.advance(1_000);
      },
    ],
  ] as [string, (made: World) => void][])('aborts what is under way %s', async (_, goOn) => {
    const { tool, entered } = holding();
    const made = world({ planner: script(call('hold')), tools: [tool] });
    await start(made, { identity });
    await entered;
    const closed = made.runtime.close({ graceMs: GRACE_MS });
    await quiet();
    expect((await made.journal.get('r'))?.lease).toBeDefined();
    goOn(made);
    await closed;
    expect((await made.journal.get('r'))?.lease).toBeUndefined();
  });

  it('does not take it for the outcome of a call that the run which its tool waits for is given back', async () => {
    const waits = gate();
    const made = world({
      planner: (view) => (view.trajectory.count > 0 ? { kind: 'finish', reason: 'goal' } : call(view.query)),
      tools: [
        make('outer', async () => {
          const run = await start(made, { query: 'inner', identity: local('ana', { run: 'inner' }) });
          return (await run.result()).status;
        }),
        make('inner', (_, { signal }) => {
          waits.open();
          return aborted(signal);
        }),
      ],
    });
    await start(made, { query: 'outer', identity });
    await waits.opened;
    const closed = made.runtime.close({ graceMs: GRACE_MS });
    await quiet();
    made.clock.advance(GRACE_MS);
    await closed;
    expect((await made.journal.read('r')).map(({ kind }) => kind)).toEqual(['started', 'moved']);
  });

  it('is refused for a time that is none', async () => {
    const made = world({ planner: script() });
    expect(() => made.runtime.close({ graceMs: -1 })).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    expect(await (await start(made, { identity })).result()).toMatchObject({ status: 'finished' });
    await made.runtime.close();
  });
});
