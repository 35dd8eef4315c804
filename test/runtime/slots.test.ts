/** Which runs a runtime drives, and when: ids that exist, slots, and due runs that a worker takes. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { type Journal, memoryJournal } from '#journal';
import type { Run } from '#runtime';
import { VirtualClock } from '#testing';
import { call, finish, pause, script, watched } from '../kit/decisions.ts';
import { changed, cutJournal } from '../kit/journals.ts';
import { startedEntry } from '../kit/run-record.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { advanceUntil, type Gate, gate, quiet, turn, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const identity = local('ana', { run: 'r' });

describe('a run id that exists', () => {
  it('is the same run: nothing is stored twice, nothing is asked twice, and another query is refused', async () => {
    const planner = watched(script(call('echo')));
    const made = world({ planner, tools: [echo] });
    const [one, two] = await Promise.all([
      start(made, { identity, query: 'one' }),
      start(made, { identity, query: 'one' }),
    ]);
    expect(await two.result()).toEqual(await one.result());
    await expect(start(made, { identity, query: 'two' })).rejects.toMatchObject({
      code: 'idempotency_conflict',
      message: expect.stringContaining('another agent, query or input'),
    });
    const again = await start(made, { identity, query: 'one' });
    expect(await again.result()).toMatchObject({ status: 'finished' });
    expect((await again.state()).query).toBe('one');
    expect(planner.views).toHaveLength(2);
  });

  it.each([1, 1_000])('ID-03 of another tenant, user or session is refused (with %i slots)', async (maxLiveRuns) => {
    const { tool, entered, release } = holding();
    const made = world({ planner: script(call('hold')), tools: [tool], maxLiveRuns });
    const run = await start(made, { identity });
    await entered;
    for (const part of ['tenant', 'user', 'session'] as const) {
      const other = start(made, { identity: { ...identity, [part]: 'other' } });
      await expect(other).rejects.toMatchObject({ code: 'scope_mismatch' });
    }
    release();
    await run.result();
  });

  it('goes on when nobody drives it', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    await journal.create({ identity, priority: 0, entries: [startedEntry('r', clock.now())] });
    const run = await start(world({ planner: script(), journal, clock }), { identity });
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'done' });
  });
});

describe('slots', () => {
  it('RL-32 drives at most 10 of 1000 runs at once, and all of them in the end', async () => {
    let live = 0;
    let most = 0;
    const made = world({
      planner: script(call('busy')),
      tools: [
        make('busy', async () => {
          live += 1;
          most = Math.max(most, live);
          await turn();
          live -= 1;
        }),
      ],
      maxLiveRuns: 10,
    });
    const runs = await Promise.all(Array.from({ length: 1_000 }, () => start(made)));
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results.every((result) => result.status === 'finished')).toBe(true);
    expect(most).toBe(10);
    expect(made.faults).toEqual([]);
    await until(() => made.clock.pending === 0);
  });

  it('RL-32 holds for runs that are resumed together, too', async () => {
    let live = 0;
    let most = 0;
    const made = world({
      planner: async (run) => {
        if (run.trajectory.count === 0) return pause;
        live += 1;
        most = Math.max(most, live);
        await turn();
        live -= 1;
        return finish();
      },
      maxLiveRuns: 3,
    });
    const runs = await Promise.all(Array.from({ length: 30 }, () => start(made)));
    await Promise.all(runs.map((run) => run.result()));
    await Promise.all(runs.map((run) => run.approve()));
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results.every((result) => result.status === 'finished')).toBe(true);
    expect(most).toBe(3);
  });

  it('go to waiting runs by priority, then age', async () => {
    const order: string[] = [];
    const { tool, entered, release } = holding();
    const made = world({
      planner: (run, signal) => {
        order.push(run.query);
        return run.query === 'first' ? script(call('hold'))(run, signal) : finish();
      },
      tools: [tool],
      maxLiveRuns: 1,
    });
    const runs = [await start(made, { query: 'first' })];
    await entered;
    for (const [query, priority] of [
      ['low', -5],
      ['a', 0],
      ['high', 9],
      ['b', 0],
    ] as const) {
      runs.push(await start(made, { query, priority, identity: local('ana', { run: query }) }));
    }
    // One that is asked for again keeps its place.
    await start(made, { query: 'a', priority: 0, identity: local('ana', { run: 'a' }) });
    order.length = 0;
    release();
    await Promise.all(runs.map((run) => run.result()));
    expect(order).toEqual(['first', 'high', 'a', 'b', 'low']);
  });

  it.each([0, -1, 1.5])('refuses %s as maxLiveRuns, and as leaseMs', (value) => {
    for (const option of ['maxLiveRuns', 'leaseMs']) {
      expect(() => world({ planner: script(), [option]: value })).toThrow(
        expect.objectContaining({ code: 'invalid_config' }),
      );
    }
  });

  it('property: go to waiting runs in the order of a plain list, each to the first whose tenant may have one more', async () => {
    const step = fc.oneof(
      fc.record({ tenant: fc.constantFrom('a', 'b', 'c'), priority: fc.integer({ min: -1, max: 1 }) }),
      fc.record({ ends: fc.nat() }),
    );
    const limits = fc.record({ maxLiveRuns: fc.integer({ min: 1, max: 4 }), maxLiveRunsPerTenant: fc.nat({ max: 2 }) });
    await fc.assert(
      fc.asyncProperty(limits, fc.array(step, { maxLength: 30 }), async (given, steps) => {
        const most = { ...given, maxLiveRunsPerTenant: Math.min(1 + given.maxLiveRunsPerTenant, given.maxLiveRuns) };
        const begun: string[] = [];
        const gates = new Map<string, Gate>();
        const hold = make('hold', (_, { identity: { run } }) => {
          const held = gate();
          begun.push(run);
          gates.set(run, held);
          return held.opened;
        });
        const made = world({ planner: script(call('hold')), tools: [hold], ...most });
        const plain = plainList(most);
        const runs: Run[] = [];
        for (const [index, each] of steps.entries()) {
          if ('tenant' in each) {
            const run = `r${index}`;
            const { tenant, priority } = each;
            runs.push(await start(made, { identity: { ...local('ana', { run }), tenant }, priority }));
            plain.add({ run, tenant, priority });
          } else {
            const ending = plain.live[each.ends % Math.max(1, plain.live.length)];
            if (ending === undefined) continue;
            gates.get(ending.run)?.open();
            plain.end(ending.run);
          }
          await until(() => begun.length >= plain.begun.length);
          expect(begun).toEqual(plain.begun);
        }
        while (plain.live[0] !== undefined) {
          const { run } = plain.live[0];
          await until(() => gates.has(run));
          gates.get(run)?.open();
          plain.end(run);
        }
        await Promise.all(runs.map((run) => run.result()));
        expect(begun).toEqual(plain.begun);
        await made.runtime.close();
      }),
      { numRuns: 60 },
    );
  });

  it.each([0.5, 1_001, Number.NaN])('refuses the priority %s', async (priority) => {
    await expect(start(world({ planner: script() }), { priority })).rejects.toMatchObject({ code: 'invalid_config' });
  });
});

describe('work', () => {
  it('RL-24 starts a run that was stored and never begun, also when its process is dead', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const dying = cutJournal(journal);
    const create: Journal['create'] = async (run) => {
      const claim = await journal.create(run);
      dying.cut();
      return claim;
    };
    await start(world({ planner: script(), journal: changed(dying.journal, { create }), clock }), { identity });
    await quiet();
    expect(await journal.read('r')).toHaveLength(1);
    const { runtime, faults } = world({ planner: script(), journal, clock });
    runtime.work();
    await advanceUntil(clock, async () => (await journal.get('r'))?.status === 'finished');
    expect(faults).toEqual([]);
    await runtime.close();
  });

  it('takes due runs by priority, then age, and fills every slot that becomes free at once', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const priorities = [0, 5, -3, 5, 9, 0];
    for (const [index, priority] of priorities.entries()) {
      await journal.create({
        identity: local('ana', { run: `r${index}` }),
        priority,
        entries: [startedEntry(`r${index}`, 0)],
      });
    }
    const planner = watched(script());
    const { runtime } = world({ planner, journal, clock, maxLiveRuns: 1 });
    runtime.work();
    // Without moving the clock: it does not wait for the next sweep.
    await until(() => planner.views.length === priorities.length);
    expect(planner.views.map((view) => view.identity.run)).toEqual(['r4', 'r1', 'r3', 'r0', 'r5', 'r2']);
    await runtime.close();
  });

  it('takes nothing more when it is stopped, or replaced', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const { runtime } = world({ planner: script(), journal, clock });
    const stopFirst = runtime.work();
    const stop = runtime.work();
    await quiet();
    expect(clock.pending).toBe(1);
    stop();
    stopFirst();
    expect(clock.pending).toBe(0);
    await journal.create({ identity, priority: 0, entries: [startedEntry('r', 0)] });
    clock.advance(60_000);
    await quiet();
    expect((await journal.get('r'))?.head).toBe(1);
  });

  it('goes on after a sweep that failed, and reports once what stays so', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    let failures = 2;
    const journal = changed(base, {
      claimDue: (request) => (failures-- > 0 ? Promise.reject(new Error('locked')) : base.claimDue(request)),
    });
    await base.create({ identity, priority: 0, entries: [startedEntry('r', 0)] });
    const made = world({ planner: script(), journal, clock });
    made.runtime.work();
    await advanceUntil(clock, async () => (await base.get('r'))?.status === 'finished');
    expect(made.faults).toMatchObject([{ message: 'locked' }]);
    await made.runtime.close();
  });
});

interface Waiting {
  readonly run: string;
  readonly tenant: string;
  readonly priority: number;
}

/** What the slots are to do, by a list that is looked through from its beginning each time. */
function plainList(most: { readonly maxLiveRuns: number; readonly maxLiveRunsPerTenant: number }) {
  const waiting: Waiting[] = [];
  const live: Waiting[] = [];
  const begun: string[] = [];
  const hasRoom = ({ tenant }: Waiting): boolean =>
    live.length < most.maxLiveRuns && live.filter((each) => each.tenant === tenant).length < most.maxLiveRunsPerTenant;
  const fill = (): void => {
    for (let next = waiting.findIndex(hasRoom); next !== -1; next = waiting.findIndex(hasRoom)) {
      const [run] = waiting.splice(next, 1);
      if (run === undefined) return;
      live.push(run);
      begun.push(run.run);
    }
  };
  return {
    live,
    begun,
    add(run: Waiting): void {
      const after = waiting.findIndex(({ priority }) => priority < run.priority);
      waiting.splice(after === -1 ? waiting.length : after, 0, run);
      fill();
    },
    end(run: string): void {
      live.splice(
        live.findIndex((each) => each.run === run),
        1,
      );
      fill();
    },
  };
}
