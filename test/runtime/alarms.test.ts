/** Runs go on by themselves when their time has come, wherever a runtime is open that knows of them; nobody has called `work()`. */
import { describe, expect, it } from 'vitest';
import { type Clock, type Decision, local } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime, type Run } from '#runtime';
import { VirtualClock } from '#testing';
import { call, pause, script } from '../kit/decisions.ts';
import { entriesOf, pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const LIMIT_MS = 60_000;
const gated = make('gated', () => 'made', { needsApproval: { expiresInMs: LIMIT_MS } });
const asking = { ...pause, expiresInMs: LIMIT_MS } as Decision;

async function ended(run: Run): Promise<void> {
  await until(async () => (await run.state()).ending !== null);
}

describe('a run that was started here, and waits', () => {
  it.each([
    ['a question', asking],
    ['a gate', call('gated')],
  ] as const)('SP-44 goes on when the time of %s is over', async (_, decision) => {
    const made = world({ planner: script(decision), tools: [gated] });
    const run = await start(made);
    await pausesOf(run);
    made.clock.advance(LIMIT_MS - 1);
    await quiet();
    expect(await entriesOf(made.journal, run, 'resumed')).toEqual([]);
    made.clock.advance(1);
    await ended(run);
    expect(await entriesOf(made.journal, run, 'resumed')).toMatchObject([{ verdict: 'timeout' }]);
    expect(made.faults).toEqual([]);
    expect(made.clock.pending).toBe(0);
  });

  it('ends at its deadline, although it is paused without a time limit', async () => {
    const made = world({ planner: script(pause) });
    const run = await start(made, { limits: { deadlineAt: made.clock.now() + LIMIT_MS } });
    await pausesOf(run);
    made.clock.advance(LIMIT_MS);
    await ended(run);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
  });

  it('goes on in the process that has answered it, and was closed in the one that has started it', async () => {
    const made = world({ planner: script(pause, asking) });
    const first = await start(made);
    await pausesOf(first);
    await made.runtime.close();
    const other = world({ planner: script(pause, asking), journal: made.journal, clock: made.clock });
    const run = other.runtime.run(first.id);
    await run.approve();
    await until(async () => (await run.state()).pauses[0]?.step === 1);
    await until(async () => (await made.journal.get(run.id))?.lease === undefined);
    made.clock.advance(LIMIT_MS);
    await ended(run);
  });

  it('is left alone when it was answered before', async () => {
    const made = world({ planner: script(asking, pause) });
    const run = await start(made);
    await pausesOf(run);
    await run.approve();
    await until(async () => (await run.state()).pauses[0]?.step === 1);
    made.clock.advance(2 * LIMIT_MS);
    await quiet();
    expect(await entriesOf(made.journal, run, 'resumed')).toMatchObject([{ verdict: 'approve' }]);
    expect(made.clock.pending).toBe(0);
  });
});

describe('a run that is followed here', () => {
  it.each(['result', 'events'] as const)('goes on here when its process has ended: by its %s', async (way) => {
    const made = world({ planner: script(asking) });
    const { id } = await start(made);
    await pausesOf(made.runtime.run(id));
    await made.runtime.close();
    const other = world({ planner: script(asking), journal: made.journal, clock: made.clock });
    const run = other.runtime.run(id);
    if (way === 'result') await run.result();
    else for await (const _ of run.events());
    made.clock.advance(LIMIT_MS);
    await ended(run);
  });

  it('is not touched by a process that does not know its planner', async () => {
    const made = world({ planner: script(asking) });
    const { id } = await start(made);
    await pausesOf(made.runtime.run(id));
    await made.runtime.close();
    const other = world({ planner: { name: 'other', next: script() }, journal: made.journal, clock: made.clock });
    await other.runtime.run(id).result();
    made.clock.advance(LIMIT_MS);
    await quiet();
    expect(await made.journal.get(id)).toMatchObject({ status: 'paused' });
    expect(other.faults).toEqual([]);
  });

  it('is left to the living process that has it', async () => {
    const made = world({ planner: script(asking) });
    const run = await start(made);
    await pausesOf(run);
    await until(async () => (await made.journal.get(run.id))?.lease === undefined);
    await made.journal.claim({ run: run.id, owner: 'another', leaseMs: 5 * LIMIT_MS });
    made.clock.advance(LIMIT_MS);
    await quiet();
    expect(await entriesOf(made.journal, run, 'resumed')).toEqual([]);
    expect(made.clock.pending).toBe(0);
  });
});

describe('clocks that are set', () => {
  /** The wall clock can be set; timers go by the other one. */
  function settable(): { readonly clock: Clock; readonly timers: VirtualClock; set(aheadMs: number): void } {
    const timers = new VirtualClock();
    let aheadMs = 0;
    return {
      clock: {
        now: () => timers.now() + aheadMs,
        after: (delayMs, wake) => timers.after(delayMs, wake),
        steady: () => timers.now(),
      },
      timers,
      set: (ms) => {
        aheadMs = ms;
      },
    };
  }

  it.each([
    ['a pause expires', { planner: script({ ...pause, expiresInMs: 3_600_000 } as Decision) }, 'goal'],
    ['a paused run reaches its deadline', { planner: script(pause), deadline: 3_600_000 }, 'deadline_exceeded'],
    [
      'a call is under way at the deadline',
      { planner: script(call('hold')), deadline: 3_600_000 },
      'deadline_exceeded',
    ],
  ] as const)('after a jump forward it is noticed within seconds that %s', async (_, { planner, ...more }, reason) => {
    const { clock, timers, set } = settable();
    const hold = make('hold', (_args, { signal }) => new Promise((_, no) => signal.addEventListener('abort', no)), {
      timeoutMs: 10_000_000,
    });
    const runtime = createRuntime({ planner, tools: [hold], journal: memoryJournal({ clock }), clock });
    const limits = 'deadline' in more ? { deadlineAt: clock.now() + more.deadline } : {};
    const run = await runtime.start('q', { identity: local('ana'), limits });
    await until(async () => (await run.state()).open !== null);
    await quiet();
    set(3_600_000);
    for (let seconds = 0; seconds < 11; seconds += 1) {
      timers.advance(1_000);
      await quiet();
    }
    expect(await run.result()).toMatchObject({ status: 'finished', reason });
  });

  it('after a jump back nothing expires early, and time limits of tools are as long as they are', async () => {
    const { clock, timers, set } = settable();
    const slow = make('slow', () => new Promise(() => {}), { timeoutMs: 5_000, retries: 0 });
    const runtime = createRuntime({
      planner: script(call('slow'), asking),
      tools: [slow],
      journal: memoryJournal({ clock }),
      clock,
    });
    const run = await runtime.start('q', { identity: local('ana') });
    await until(async () => (await run.state()).open !== null);
    await quiet();
    set(-3_600_000);
    timers.advance(6_000);
    await pausesOf(run);
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'tool_timeout' } });
    set(-7_200_000);
    timers.advance(LIMIT_MS + 10_000);
    await quiet();
    expect((await run.state()).ending).toBe(null);
    timers.advance(3_600_000);
    await ended(run);
  });
});

/** Knows all timers, and not only those for which a process stays alive. */
class CountedClock extends VirtualClock {
  readonly timers = new Set<() => void>();

  override after(delayMs: number, wake: () => void, options?: { readonly holds?: boolean }): () => void {
    const fire = (): void => {
      this.timers.delete(fire);
      wake();
    };
    this.timers.add(fire);
    const cancel = super.after(delayMs, fire, options);
    return () => {
      this.timers.delete(fire);
      cancel();
    };
  }
}

describe('hundreds of parked runs', () => {
  it('wait with one timer, and each goes on at its own time', async () => {
    const clock = new CountedClock();
    const made = world({
      planner: ({ query, trajectory: { count } }) =>
        count > 0 ? { kind: 'finish', reason: 'goal' } : ({ ...pause, expiresInMs: Number(query) } as Decision),
      clock,
    });
    const runs: Run[] = [];
    for (let index = 0; index < 200; index += 1) {
      const run = await start(made, { query: String(LIMIT_MS + (index % 4) * LIMIT_MS) });
      await run.result();
      runs.push(run);
    }
    await quiet();
    // The other one is for what other processes park.
    expect(clock.timers.size).toBe(2);
    for (const share of [0, 1, 2, 3]) {
      clock.advance(share === 0 ? LIMIT_MS : LIMIT_MS - 5_000);
      const isDue = (_: Run, index: number): boolean => index % 4 === share;
      for (const run of runs.filter(isDue)) {
        while ((await run.state()).ending === null) {
          await quiet();
          clock.advance(10);
        }
      }
      const open = runs.filter((_, index) => index % 4 > share);
      for (const run of open.slice(0, 20)) expect((await run.state()).ending).toBe(null);
    }
    expect(clock.pending).toBe(0);
    expect(made.faults).toEqual([]);
  });
});
