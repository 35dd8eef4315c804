/** A store that cannot write for a while, or at all. */
import { describe, expect, it } from 'vitest';
import { local, PilotageError } from '#core';
import { type Append, type Journal, memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { call, script, watched } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { kindsOf, observations } from '../kit/run-record.ts';
import { holding, make } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const identity = local('ana', { run: 'r' });

describe('a store that cannot write now', () => {
  /** Refuses the first `times` appends that `holds` for. */
  function refusing(base: Journal, times: number, holds: (append: Append) => boolean, landed = false): Journal {
    let left = times;
    return changed(base, {
      append: async (request) => {
        if (left === 0 || !holds(request)) return base.append(request);
        left -= 1;
        if (landed) await base.append(request);
        throw new PilotageError('journal_busy', 'The file is locked.');
      },
    });
  }
  const ends = ({ entries }: Append): boolean => entries[0]?.kind === 'call_ended';

  it('keeps the result, and appends it later: the call runs once', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const { tool, release, runs } = holding();
    release();
    const made = world({ planner: script(call('hold')), tools: [tool], journal: refusing(base, 4, ends), clock });
    const run = await start(made);
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(runs()).toBe(1);
    expect(observations(await run.state())).toEqual(['run 1']);
    expect(made.faults).toEqual([]);
  });

  it('keeps a heavy result, and an artifact that cannot be stored at all is an outcome', async () => {
    for (const [effect, refusals, outcome] of [
      ['pure', 3, { kind: 'value', artifact: { sizeBytes: 40_002 } }],
      ['pure', 100, { kind: 'error', error: { code: 'journal_full' } }],
      // Its code says that it has happened: a plan made anew goes by that.
      ['once', 100, { kind: 'error', error: { code: 'unserializable' } }],
    ] as const) {
      const clock = new VirtualClock();
      const base = memoryJournal({ clock });
      let left: number = refusals;
      let runs = 0;
      const journal = changed(base, {
        artifacts: {
          get: (scope, ref) => base.artifacts.get(scope, ref),
          list: (scope, limit) => base.artifacts.list(scope, limit),
          erase: (owner) => base.artifacts.erase(owner),
          put: (scope, bytes, about) => {
            left -= 1;
            if (left >= 0) return Promise.reject(new PilotageError('journal_full', 'The disk is full.'));
            return base.artifacts.put(scope, bytes, about);
          },
        },
      });
      const big = (): string => {
        runs += 1;
        return 'x'.repeat(40_000);
      };
      const tools = [make('big', big, { effect })];
      const run = await start(world({ planner: script(call('big')), tools, journal, clock }));
      await advanceUntil(clock, async () => (await run.state()).ending !== null);
      expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject(outcome);
      expect(runs).toBe(1);
    }
  });

  it('RL-31 writes the ending later', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const planner = watched(script());
    const journal = refusing(base, 5, ({ entries }) => entries.at(-1)?.kind === 'finished');
    const run = await start(world({ planner, journal, clock }));
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(await run.result()).toMatchObject({ payload: 'done' });
    expect(planner.views).toHaveLength(1);
  });

  it('takes an append that landed although it was said to have failed for what it is', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const { tool, release, runs } = holding();
    release();
    const made = world({ planner: script(call('hold')), tools: [tool], journal: refusing(base, 1, ends, true), clock });
    const run = await start(made);
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(runs()).toBe(1);
    expect(await kindsOf(base, run)).toEqual(['started', 'moved', 'call_ended', 'moved', 'finished']);
    expect(made.faults).toEqual([]);
  });

  it('does not take an append for landed that finds its lease lost when it is tried again', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    let refused = false;
    const journal = changed(base, {
      append: async (request) => {
        if (refused || request.entries[0]?.kind !== 'call_began') return base.append(request);
        refused = true;
        const owner = (await base.get('r'))?.lease?.owner ?? '';
        await base.claim({ run: 'r', owner: 'other', leaseMs: 60_000, from: owner });
        throw new PilotageError('journal_unavailable', 'The store cannot be reached.');
      },
    });
    const { tool, release, runs } = holding();
    release();
    const made = world({ planner: script(call('hold')), tools: [{ ...tool, effect: 'once' }], journal, clock });
    const run = await start(made, { identity });
    const told: string[] = [];
    void (async () => {
      for await (const { type } of run.events()) told.push(type);
    })();
    await advanceUntil(clock, () => made.faults.length > 0);
    expect(made.faults).toMatchObject([{ code: 'lease_lost' }]);
    await quiet();
    expect(runs()).toBe(0);
    expect(told).toEqual(['run.started', 'planner.decision', 'tool.invoked']);
    expect(await kindsOf(base, run)).toEqual(['started', 'moved']);
  });

  it('takes an append for landed only when the very entries are there', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    let refused = false;
    const journal = changed(base, {
      append: async (request) => {
        if (refused || !ends(request)) return base.append(request);
        refused = true;
        // The store has something else there: it was restored, or somebody writes beside it.
        const entries = request.entries.map((entry) => ({ ...entry, at: entry.at + 1 }));
        await base.append({ ...request, entries });
        throw new PilotageError('journal_unavailable', 'The store cannot be reached.');
      },
    });
    const { tool, release } = holding();
    release();
    const made = world({ planner: script(call('hold')), tools: [tool], journal, clock });
    const run = await start(made, { identity });
    const result = expect(run.result()).rejects.toMatchObject({ code: 'journal_conflict' });
    await advanceUntil(clock, async () => (await base.get('r'))?.lease === undefined);
    await result;
    expect(await kindsOf(base, run)).toEqual(['started', 'moved', 'call_ended']);
  });

  it.each([
    'journal_corrupt',
    'journal_unavailable',
  ] as const)('says why it does not know whether an append landed, not that the next one found it there: %s', async (code) => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const [first, second] = [holding(), holding()];
    const tried: string[] = [];
    let isLanded = false;
    let isDamaged = false;
    const journal = changed(base, {
      append: async (request) => {
        const [entry] = request.entries;
        tried.push(entry?.kind ?? '');
        if (entry?.kind !== 'call_began' || entry.call !== 1) return base.append(request);
        if (isLanded && isDamaged) return base.append(request);
        if (!isLanded) await base.append(request);
        isLanded = true;
        throw new PilotageError('journal_unavailable', 'The store cannot be reached.');
      },
      read: async (...of) => {
        if (isDamaged) throw new PilotageError('journal_corrupt', 'The store is damaged.');
        return base.read(...of);
      },
    });
    const tools = [first, second].map(({ tool }, at) => ({ ...tool, name: `hold_${at}`, effect: 'once' as const }));
    const branches = tools.map(({ name }) => ({ tool: name, args: {} }));
    const made = world({ planner: script({ kind: 'call_parallel', branches }), tools, journal, clock });
    const run = await start(made, { identity });
    const result = expect(run.result()).rejects.toMatchObject({ code });
    await until(() => isLanded && first.runs() === 1);
    // What this call came to waits for its turn to be written.
    first.release();
    await quiet();
    isDamaged = code === 'journal_corrupt';
    await advanceUntil(clock, async () => (await base.get('r'))?.lease === undefined);
    await result;
    expect(second.runs()).toBe(0);
    expect(tried.at(-1)).toBe('call_ended');
    expect((await base.get('r'))?.problem).toMatchObject({ code });
    expect(await kindsOf(base, run)).toEqual(['started', 'moved', 'call_began', 'call_began']);
  });

  it('writes what waited behind an append that failed, when that has not landed', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const [first, second] = [holding(), holding()];
    const began = ({ entries: [entry] }: Append): boolean => entry?.kind === 'call_began' && entry.call === 1;
    const tools = [first, second].map(({ tool }, at) => ({ ...tool, name: `hold_${at}`, effect: 'once' as const }));
    const branches = tools.map(({ name }) => ({ tool: name, args: {} }));
    const planner = script({ kind: 'call_parallel', branches });
    const made = world({ planner, tools, journal: refusing(base, 6, began), clock });
    const run = await start(made, { identity });
    const result = expect(run.result()).rejects.toMatchObject({ code: 'journal_busy' });
    await until(() => first.runs() === 1);
    first.release();
    await quiet();
    await advanceUntil(clock, async () => (await base.get('r'))?.lease === undefined);
    await result;
    expect(second.runs()).toBe(0);
    expect(await kindsOf(base, run)).toEqual(['started', 'moved', 'call_began', 'call_ended']);
  });

  it('RL-31 lets go after some tries with the store’s own error; resuming goes on from what is written', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const { tool, release, runs } = holding();
    release();
    const made = world({ planner: script(call('hold')), tools: [tool], journal: refusing(base, 6, ends), clock });
    const run = await start(made);
    const broken = expect(run.result()).rejects.toMatchObject({ code: 'journal_busy' });
    await advanceUntil(clock, async () => (await base.get(run.id))?.lease === undefined);
    await broken;
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(runs()).toBe(2);
    expect(observations(await run.state())).toEqual(['run 2']);
  });

  it('is tried again by a worker after a while, not in a hot loop', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    let tries = 0;
    const journal = changed(base, {
      append: (request) => {
        tries += 1;
        return tries <= 3 ? Promise.reject(new Error('bad disk')) : base.append(request);
      },
    });
    const made = world({ planner: script(), journal, clock });
    const run = await start(made, { identity });
    made.runtime.work();
    await until(() => made.faults.length > 0);
    await quiet();
    expect(tries).toBe(1);
    const before = clock.now();
    await advanceUntil(clock, async () => (await base.get('r'))?.status === 'finished');
    expect(clock.now() - before).toBeGreaterThanOrEqual(10_000);
    expect(made.faults).toHaveLength(3);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    await made.runtime.close();
  });

  it('tells of a renewal that failed, and the run goes on', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    let failures = 1;
    const journal = changed(base, {
      renew: (leases, leaseMs) => (failures-- > 0 ? Promise.reject(new Error('locked')) : base.renew(leases, leaseMs)),
    });
    const { tool, entered, release } = holding();
    const made = world({ planner: script(call('hold')), tools: [tool], journal, clock });
    const run = await start(made);
    await entered;
    for (let beat = 0; beat < 8; beat += 1) {
      clock.advance(1_000);
      await quiet();
    }
    release();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(made.faults).toMatchObject([{ message: 'locked' }]);
  });

  it('leaves the run free to be resumed at once', async () => {
    const base = memoryJournal();
    let failures = 1;
    const journal = changed(base, {
      append: (request) => (failures-- > 0 ? Promise.reject(new Error('bad disk')) : base.append(request)),
    });
    const made = world({ planner: script(), journal });
    const run = await start(made);
    await expect(run.result()).rejects.toThrow('bad disk');
    expect((await base.get(run.id))?.lease).toBeUndefined();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('is a failure that readers get when the journal itself is broken', async () => {
    const made = world({ planner: script() });
    made.journal.append = () => Promise.reject(new PilotageError('journal_corrupt', 'The file is no journal.'));
    const run = await start(made);
    await expect(run.result()).rejects.toMatchObject({ code: 'journal_corrupt' });
    await made.runtime.close();
    expect(made.clock.pending).toBe(0);
  });
});
