/** CR-06: whatever ends or is written first, runs come to the same. `any-order.soak.test.ts` has a thousand seeds. */
import { expect, it } from 'vitest';
import type { Decision, Join } from '#core';
import { memoryJournal } from '#journal';
import { seededRandom, VirtualClock } from '#testing';
import { call, parallel, pause, script } from '../kit/decisions.ts';
import { shuffledJournal } from '../kit/journals.ts';
import { entriesOf, hasEnded, innerState, observations, outcomes, payloadOf } from '../kit/run-record.ts';
import { ANA, awaits, fails, into, PARENT, plays, spawning, spawns, thenTell } from '../kit/tasks.ts';
import { echo, make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** Tools that end in an order drawn from the seed: every turn one of those that wait goes on. */
function scheduler(seed: number) {
  const random = seededRandom(seed);
  const waiting: (() => void)[] = [];
  let ticking = false;
  const tick = (): void => {
    const next = waiting.splice(Math.floor(random() * waiting.length), 1)[0];
    next?.();
    ticking = waiting.length > 0;
    if (ticking) setImmediate(tick);
  };
  return {
    random,
    ready: () =>
      new Promise<void>((resolve) => {
        waiting.push(resolve);
        if (ticking) return;
        ticking = true;
        setImmediate(tick);
      }),
  };
}

const branches = Array.from({ length: 6 }, (_, index) => ({ tool: 'node', args: { index } }));
const joined = (join: Join): Decision => ({ kind: 'call_parallel', branches, join });

export function callsInAnyOrder(seeds: number): void {
  it(`gives the same results for joins, with ${seeds} seeds`, async () => {
    const seen = new Set<string>();
    const orders = new Set<string>();
    for (let seed = 0; seed < seeds; seed += 1) {
      const { ready } = scheduler(seed);
      const order: unknown[] = [];
      const made = world({
        planner: script(
          joined({ kind: 'all' }),
          joined({ kind: 'keyed', keys: ['a', 'b', 'c', 'd', 'e', 'f'] }),
          joined({ kind: 'n', n: 6 }),
        ),
        tools: [
          make('node', async ({ index }) => {
            await ready();
            order.push(index);
            if (index === 3) throw new Error('three');
            return index;
          }),
        ],
      });
      const run = await start(made);
      await run.result();
      const { steps } = await run.state();
      orders.add(order.slice(0, 6).join());
      const [all, keyed, unmet] = observations({ steps });
      const sorted = (unmet as { index: number }[]).toSorted((a, b) => a.index - b.index);
      seen.add(JSON.stringify([all, keyed, sorted, steps[2]?.error?.code]));
    }
    expect(seen.size).toBe(1);
    expect(orders.size).toBeGreaterThan(0.3 * seeds);
  });

  it(`first_success gives one winner and an outcome for all, with ${seeds} seeds`, async () => {
    const winners = new Set<number>();
    for (let seed = 0; seed < seeds; seed += 1) {
      const { ready } = scheduler(seed);
      const made = world({
        planner: script(joined({ kind: 'first_success' })),
        tools: [
          make('node', async ({ index }, { signal }) => {
            await ready();
            signal.throwIfAborted();
            if (Number(index) % 2 === 0) throw new Error('even');
            return index;
          }),
        ],
      });
      const run = await start(made);
      await run.result();
      const state = await run.state();
      const [observed] = observations(state) as [{ index: number }[]];
      expect(observed).toHaveLength(1);
      winners.add(observed[0]?.index ?? -1);
      expect(outcomes(state)).toHaveLength(6);
      expect(outcomes(state).every((kind) => ['value', 'error', 'cancelled'].includes(kind))).toBe(true);
    }
    expect([...winners].sort()).toEqual([1, 3, 5]);
  });

  it(`a pause that is answered twice, cancelled and written to at once has one answer, with ${seeds} seeds`, async () => {
    const endings = new Set<string>();
    for (let seed = 0; seed < seeds; seed += 1) {
      const { random, ready } = scheduler(seed);
      const made = world({ planner: script(pause, call('echo')), tools: [echo] });
      const run = await start(made);
      const acts = [
        () => run.approve(),
        () => run.reject(),
        () => run.steer('USER_MESSAGE', { message: 'm' }),
        () => run.pause(),
        ...(random() < 0.5 ? [() => run.cancel()] : []),
      ];
      const settled = await Promise.allSettled(acts.map(async (act) => ready().then(act)));
      // A pause by the operator may have come last.
      for (let result = await run.result(); result.status === 'paused'; result = await run.result()) {
        await run.resume().catch(() => {});
      }
      const entries = await made.journal.read(run.id);
      const kinds = entries.map((entry) => entry.kind);
      endings.add(String(kinds.at(-1)));
      const paused = entries.filter((entry) => entry.kind === 'paused').length;
      const resumed = entries.filter((entry) => entry.kind === 'resumed').length;
      expect(resumed).toBeLessThanOrEqual(paused);
      expect(kinds.filter((kind) => kind === 'finished')).toHaveLength(1);
      expect(kinds.at(-1)).toBe('finished');
      for (const answer of settled) {
        if (answer.status === 'rejected') expect(['pause_not_found', 'run_ended']).toContain(answer.reason.code);
      }
      expect(made.faults).toEqual([]);
    }
    expect(endings).toEqual(new Set(['finished']));
  });
}

export function groupsInAnyOrder(seeds: number): void {
  it(`a group of three and a join come to the same, with ${seeds} seeds`, async () => {
    const told = new Set<string>();
    for (let seed = 0; seed < seeds; seed += 1) {
      const clock = new VirtualClock();
      const made = world({
        planner: plays({
          q: thenTell(
            into(['well', 'badly', 'deep']),
            parallel([
              spawning('well', { kind: 'foreground' }),
              { tool: '_await_task', args: { task_id: 'p.0.2', group_id: 'g' } },
            ]),
          ),
          badly: fails,
          deep: thenTell(spawns('well', { task: 'foreground' })),
        }),
        clock,
        journal: shuffledJournal(memoryJournal({ clock }), seed),
      });
      const run = await start(made, { identity: PARENT });
      told.add(JSON.stringify(await payloadOf(run)));
      expect(outcomes(await run.state(), 1)).toEqual(['value', 'value']);
      expect(await entriesOf(made.journal, run, 'group_ended')).toHaveLength(4 - 2);
      expect(made.faults).toEqual([]);
    }
    expect(told.size).toBe(1);
  });

  it(`failFast and quorum end once, and every member ends, with ${0.3 * seeds} seeds`, async () => {
    for (let seed = 0; seed < 0.3 * seeds; seed += 1) {
      const clock = new VirtualClock();
      const isQuorum = seed % 2 === 0;
      const made = world({
        planner: plays({
          q: thenTell(
            into(['well', 'badly', 'well', 'waits'], isQuorum ? { quorum: 2 } : { fail_fast: true }),
            awaits('p.0.0', { groupId: 'g' }),
          ),
          badly: fails,
          waits: script(pause),
        }),
        clock,
        journal: shuffledJournal(memoryJournal({ clock }), seed),
      });
      const run = await start(made, { identity: PARENT });
      await until(() => hasEnded(made, 'p'));
      const told = await payloadOf(run);
      expect(told).toMatchObject(
        isQuorum ? { status: 'completed', reason: 'quorum' } : { status: 'cancelled', reason: 'fail-fast:no_path' },
      );
      expect(await entriesOf(made.journal, run, 'group_ended')).toHaveLength(1);
      for (let member = 0; member < 4; member += 1) await until(() => hasEnded(made, `p.0.${member}`));
      expect(made.faults).toEqual([]);
    }
  });
}

export function awaitsInAnyOrder(seeds: number): void {
  it(`a ring of three awaits is broken, and nobody waits for ever, with ${seeds} seeds`, async () => {
    const next: Record<string, string> = { a: 'b', b: 'c', c: 'a' };
    for (let seed = 0; seed < seeds; seed += 1) {
      const clock = new VirtualClock();
      const made = world({
        planner: (run, signal) => thenTell(awaits(next[run.query] ?? ''))(run, signal),
        clock,
        journal: shuffledJournal(memoryJournal({ clock }), seed),
      });
      const runs = await Promise.all(
        Object.keys(next).map((id) => start(made, { identity: { ...ANA, run: id }, query: id })),
      );
      const told = await Promise.all(runs.map(payloadOf));
      expect(told.length).toBe(3);
      expect(made.faults).toEqual([]);
    }
  });

  it(`several runs that await one task all have its end, once, with ${seeds} seeds`, async () => {
    for (let seed = 0; seed < seeds; seed += 1) {
      const clock = new VirtualClock();
      const made = world({
        planner: plays({ q: script(spawns('child')), child: script(call('echo')), one: thenTell(awaits('p.0.0')) }),
        tools: [echo],
        clock,
        journal: shuffledJournal(memoryJournal({ clock }), seed),
      });
      await start(made, { identity: PARENT });
      await until(async () => (await made.journal.get('p.0.0')) !== undefined);
      const runs = await Promise.all(Array.from({ length: 4 }, () => start(made, { query: 'one' })));
      for (const run of runs) {
        expect(await payloadOf(run)).toEqual({ task_id: 'p.0.0', status: 'complete', result: 'done' });
        expect((await innerState(made.journal, run)).otherEnds.length).toBeLessThanOrEqual(1);
      }
      expect(made.faults).toEqual([]);
    }
  });
}
