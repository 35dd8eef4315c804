/** What a call may do to the world, and what becomes of it when its process dies. */
import { describe, expect, it } from 'vitest';
import type { Effect } from '#core';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import type { Reconciled, Tool } from '#tools';
import { call, script, watched } from '../kit/decisions.ts';
import { cutJournal } from '../kit/journals.ts';
import { kindsOf, observations, outcomes } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** Starts a call, lets the process die in the middle of it, and carries the run on in a second one. */
async function crashInCall(effect: Effect, more: Partial<Tool> = {}) {
  const clock = new VirtualClock();
  const shared = memoryJournal({ clock });
  const dying = cutJournal(shared);
  const keys: string[] = [];
  const attempts: number[] = [];
  const entered = gate();
  const hang = gate();
  const act = make(
    'act',
    async (_, context) => {
      keys.push(context.idempotencyKey);
      attempts.push(context.attempt);
      if (keys.length > 1) return 'done again';
      entered.open();
      await hang.opened;
      return 'never recorded';
    },
    { effect, ...more },
  );
  const first = world({ planner: script(call('act', { n: 1 })), tools: [act], journal: dying.journal, clock });
  const { id } = await start(first);
  await entered.opened;
  dying.cut();
  clock.advance(5_001);
  const planner = watched(script(call('act', { n: 1 })));
  const second = world({ planner, tools: [act], journal: shared, clock });
  const run = second.runtime.run(id);
  await run.resume();
  await advanceUntil(clock, async () => {
    const { ending, pauses } = await run.state();
    return ending !== null || pauses.length > 0;
  });
  const result = await run.result();
  return { run, result, state: await run.state(), keys, attempts, planner, journal: shared };
}

describe('RL-33 a process that dies in the middle of a call', () => {
  it.each(['pure', 'read', 'keyed'] as const)('runs a %s tool again, with the same idempotency key', async (effect) => {
    const { result, keys, state, journal, run } = await crashInCall(effect);
    expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(observations(state)).toEqual(['done again']);
    expect(keys).toHaveLength(2);
    expect(keys[0]).toBe(keys[1]);
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'call_ended', 'moved', 'finished']);
  });

  it('never runs a once tool again that tells: its outcome is unknown, and the planner is told', async () => {
    const { result, keys, state, planner, journal, run } = await crashInCall('once', { inDoubt: 'tell' });
    expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(keys).toHaveLength(1);
    expect(outcomes(state)).toEqual(['unknown']);
    expect(planner.views[0]?.trajectory.step(0)?.calls[0]?.outcome).toMatchObject({
      kind: 'unknown',
      error: { code: 'outcome_unknown' },
    });
    expect(await kindsOf(journal, run)).toEqual(['started', 'moved', 'call_began', 'call_ended', 'moved', 'finished']);
  });

  it('takes once for the effect of a tool that states none', async () => {
    const { keys, result } = await crashInCall('once', { effect: undefined as never });
    expect(keys).toHaveLength(1);
    expect(result).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt' }] });
  });

  it.each([
    ['done', { status: 'done', value: { sent: true } }, { kind: 'value', value: { sent: true } }, 1],
    ['not_done', { status: 'not_done' }, { kind: 'value', value: 'done again' }, 2],
    ['unknown', { status: 'unknown' }, { kind: 'unknown' }, 1],
    ['nonsense', undefined as never, { kind: 'unknown' }, 1],
  ] as [string, Reconciled, object, number][])('asks a once tool’s reconcile: %s', async (_, says, outcome, runs) => {
    const asked: unknown[] = [];
    const { state, keys } = await crashInCall('once', {
      inDoubt: 'tell',
      reconcile: (args, { idempotencyKey }) => {
        asked.push([args, idempotencyKey]);
        return says;
      },
    });
    // That it did not happen is asked once more when the process before can be at it no longer.
    const times = says?.status === 'not_done' ? 2 : 1;
    expect(asked).toEqual(Array.from({ length: times }, () => [{ n: 1 }, keys[0]]));
    expect(new Set(keys).size).toBe(1);
    expect(keys).toHaveLength(runs);
    expect(state.steps[0]?.calls[0]?.outcome).toMatchObject(outcome);
  });

  it('takes a reconcile that throws for unknown', async () => {
    const { state, keys } = await crashInCall('once', {
      inDoubt: 'tell',
      reconcile: () => {
        throw new Error('cannot ask');
      },
    });
    expect(keys).toHaveLength(1);
    expect(outcomes(state)).toEqual(['unknown']);
  });

  it('does not know either when the tool is gone', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const entered = gate();
    const act = make(
      'act',
      () => {
        entered.open();
        return new Promise(() => {});
      },
      { effect: 'once' },
    );
    const { id } = await start(world({ planner: script(call('act')), tools: [act], journal: dying.journal, clock }));
    await entered.opened;
    dying.cut();
    clock.advance(5_001);
    const run = world({ planner: script(call('act')), journal: shared, clock }).runtime.run(id);
    await run.resume({ acceptChanges: true });
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt', step: 0, call: 0 }] });
    await run.settle(undefined, { happened: true, value: 'by hand' });
    await run.result();
    expect(observations(await run.state())).toEqual(['by hand']);
  });

  it('tells siblings apart: those that ended stay ended, those that never began run once', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const ran: string[] = [];
    const entered = gate();
    const tools = (hang: boolean): Tool[] => [
      make('note', ({ id }) => {
        ran.push(String(id));
        return id;
      }),
      make(
        'hang',
        ({ id }) => {
          ran.push(String(id));
          entered.open();
          return hang ? new Promise(() => {}) : id;
        },
        { effect: 'once', concurrency: 1 },
      ),
    ];
    const planner = script({
      kind: 'call_parallel',
      branches: [
        { tool: 'note', args: { id: 'a' } },
        { tool: 'hang', args: { id: 'b' } },
        { tool: 'hang', args: { id: 'c' } },
      ],
    });
    const { id } = await start(world({ planner, tools: tools(true), journal: dying.journal, clock }));
    await entered.opened;
    await until(async () => (await shared.read(id)).some((entry) => entry.kind === 'call_ended'));
    dying.cut();
    clock.advance(5_001);
    const run = world({ planner, tools: tools(false), journal: shared, clock }).runtime.run(id);
    await run.resume();
    await run.result();
    expect(ran).toEqual(['a', 'b', 'c']);
    expect((await run.state()).open?.calls.map((ended) => ended?.outcome.kind)).toEqual(['value', undefined, 'value']);
    await run.settle(undefined, { happened: true });
    await run.result();
    expect(ran).toEqual(['a', 'b', 'c']);
    expect(outcomes(await run.state())).toEqual(['value', 'value', 'value']);
  });

  it('RL-23 goes on at the next step, and asks nothing again, when it dies between two steps', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const ran: unknown[] = [];
    const note = make('note', ({ n }) => ran.push(n));
    const asked = gate();
    const steps = script(call('note', { n: 0 }), call('note', { n: 1 }), call('note', { n: 2 }));
    const first = world({
      planner: (run, signal) => {
        if (run.trajectory.count < 2) return steps(run, signal);
        asked.open();
        return new Promise(() => {});
      },
      tools: [note],
      journal: dying.journal,
      clock,
    });
    const { id } = await start(first);
    await asked.opened;
    dying.cut();
    clock.advance(5_001);
    const planner = watched(steps);
    const run = world({ planner, tools: [note], journal: shared, clock }).runtime.run(id);
    await run.resume();
    await run.result();
    expect(ran).toEqual([0, 1, 2]);
    expect(planner.views.map((view) => view.trajectory.count)).toEqual([2, 3]);
  });

  it('does not start a once call when its beginning cannot be written', async () => {
    const ran: unknown[] = [];
    const made = world({ planner: script(call('act')), tools: [make('act', () => ran.push(1), { effect: 'once' })] });
    const append = made.journal.append.bind(made.journal);
    made.journal.append = (request) =>
      request.entries[0]?.kind === 'call_began' ? Promise.reject(new Error('disk is gone')) : append(request);
    const run = await start(made);
    await expect(run.result()).rejects.toThrow('disk is gone');
    expect(ran).toEqual([]);
    expect(await kindsOf(made.journal, run)).toEqual(['started', 'moved']);
  });

  it('does not start a once call that is cancelled while its beginning is written', async () => {
    const ran: unknown[] = [];
    const made = world({ planner: script(call('act')), tools: [make('act', () => ran.push(1), { effect: 'once' })] });
    const append = made.journal.append.bind(made.journal);
    const begins = gate();
    const held = gate();
    made.journal.append = async (request) => {
      if (request.entries[0]?.kind === 'call_began') {
        begins.open();
        await held.opened;
      }
      await append(request);
    };
    const run = await start(made);
    await begins.opened;
    const cancelled = run.cancel();
    await quiet();
    held.open();
    await cancelled;
    await run.result();
    expect(ran).toEqual([]);
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({ attempts: 0, outcome: { kind: 'cancelled' } });
  });

  it('writes that a once call begins before it starts, and nothing of the kind for other tools', async () => {
    const seen: string[][] = [];
    const made = world({
      planner: script(call('once'), call('keyed')),
      tools: (['once', 'keyed'] as const).map((effect) =>
        make(effect, async () => seen.push((await made.journal.read('r')).map((entry) => entry.kind)), { effect }),
      ),
    });
    const run = await start(made, { identity: { tenant: 't', user: 'u', session: 's', run: 'r' } });
    await run.result();
    expect(seen).toEqual([
      ['started', 'moved', 'call_began'],
      ['started', 'moved', 'call_began', 'call_ended', 'moved'],
    ]);
  });
});
