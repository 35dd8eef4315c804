/** Waiting for tasks: an await, its time limit and cycles, what wakes a wait, and results that come by themselves. */
import { describe, expect, it } from 'vitest';
import type { Planner, PlannerFunction, RunView } from '../../src/core/planner.ts';
import { memoryJournal } from '../../src/journal/memory.ts';
import type { Run } from '../../src/runtime/run.ts';
import { VirtualClock } from '../../src/testing/virtual-clock.ts';
import {
  advanceUntil,
  call,
  collect,
  echo,
  entriesOf,
  finish,
  holding,
  make,
  observations,
  only,
  parallel,
  pause,
  quiet,
  script,
  start,
  until,
  type World,
  watched,
  world,
} from './support.ts';
import {
  ANA,
  awaiting,
  awaits,
  hasEnded,
  lastOf,
  PARENT,
  payloadOf,
  plays,
  shuffledJournal,
  spawning,
  spawns,
  tellLast,
  thenTell,
} from './task-support.ts';

const waits =
  ({ journal }: World, run: string) =>
  async (): Promise<boolean> =>
    (await journal.get(run))?.status === 'waiting';

describe('await_task', () => {
  it('DV-11 gives the outcome of a task that ends later, and of one that has ended, also twice', async () => {
    const { tool, entered, release } = holding();
    const made = world({
      planner: plays({
        q: script(spawns('child'), awaits('p.0.0'), awaits('p.0.0')),
        child: script(call('hold')),
      }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT });
    await entered;
    await until(waits(made, 'p'));
    release();
    await run.result();
    const ended = { task_id: 'p.0.0', status: 'complete', result: 'done' };
    expect(observations(await run.state()).slice(1)).toEqual([ended, ended]);
  });

  it('DV-11 an empty task id is an error', async () => {
    const run = await start(world({ planner: script(awaits('')) }));
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'invalid_decision' } });
  });

  it('TK-33 an unknown task, and one of another tenant, user or session, is not found', async () => {
    const { tool, release } = holding();
    const made = world({
      planner: (run, signal) =>
        run.query === 'q' ? thenTell(awaits('other'))(run, signal) : script(call('hold'))(run, signal),
      tools: [tool],
    });
    for (const part of ['tenant', 'user', 'session', undefined] as const) {
      const id = part ?? 'none';
      const identity = { ...ANA, ...(part === undefined ? {} : { [part]: 'other' }), run: id };
      if (part !== undefined) await start(made, { identity, query: 'theirs' });
      const run = await start({ ...made }, { query: `await ${id}` });
      await run.cancel();
    }
    const theirs = world({
      planner: plays({
        q: thenTell(awaits('tenant')),
        user: thenTell(awaits('user')),
        session: thenTell(awaits('session')),
        none: thenTell(awaits('none')),
      }),
      journal: made.journal,
      clock: made.clock,
    });
    for (const [query, id] of [
      ['q', 'tenant'],
      ['user', 'user'],
      ['session', 'session'],
      ['none', 'none'],
    ] as const) {
      expect(await payloadOf(await start(theirs, { query }))).toEqual({
        error: { code: 'task_not_found', message: `There is no task "${id}".` },
      });
      expect(await made.journal.inbox(id).catch(() => [])).toEqual([]);
    }
    release();
  });

  it('a task of the same session that another run started can be awaited, also when it has ended', async () => {
    const { tool, entered, release } = holding();
    const made = world({
      planner: plays({ child: script(call('hold')), one: thenTell(awaits('p.0.0')), q: script(spawns('child')) }),
      tools: [tool],
    });
    await (await start(made, { identity: PARENT })).result();
    await entered;
    const runs: Run[] = [];
    for (let count = 0; count < 3; count += 1) runs.push(await start(made, { query: 'one' }));
    for (const run of runs) await until(waits(made, run.id));
    release();
    runs.push(await start(made, { query: 'one' }));
    for (const run of runs)
      expect(await payloadOf(run)).toEqual({ task_id: 'p.0.0', status: 'complete', result: 'done' });
  });

  it('TK-38 a run that awaits itself is told so at once', async () => {
    const made = world({ planner: thenTell(awaits('p')) });
    const payload = await payloadOf(await start(made, { identity: PARENT }));
    expect(payload).toEqual({
      error: { code: 'await_cycle', message: 'Waiting for p would never end: p → p. It was not awaited.' },
    });
  });

  it('TK-38 two runs that await each other: the later one is told, naming both', async () => {
    const made = world({
      planner: plays({ q: script(spawns('child', { task: 'foreground' })), child: thenTell(awaits('p')) }),
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    expect(observations(await run.state())).toMatchObject([
      {
        status: 'complete',
        result: { error: { code: 'await_cycle', message: expect.stringContaining('p.0.0 → p → p.0.0') } },
      },
    ]);
  });

  it('TK-38 three runs in a ring: one is told, and all end', async () => {
    const next: Record<string, string> = { a: 'b', b: 'c', c: 'a' };
    const made = world({ planner: (run, signal) => thenTell(awaits(next[run.query] ?? ''))(run, signal) });
    const runs = await Promise.all(
      Object.keys(next).map((id) => start(made, { identity: { ...ANA, run: id }, query: id })),
    );
    const told = await Promise.all(runs.map(payloadOf));
    expect(JSON.stringify(told).match(/await_cycle/g)?.length).toBeGreaterThan(0);
    for (const run of runs) expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('TK-38 a member of a group that awaits the owner which awaits the group is told so', async () => {
    const made = world({
      planner: plays({
        q: script(spawns('child', { groupId: 'g' }), awaits('p.0.0', { groupId: 'g' })),
        child: thenTell(call('hold'), awaits('p')),
      }),
      tools: [make('hold', () => until(waits(made, 'p')))],
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    expect(observations(await run.state())[1]).toMatchObject({
      status: 'completed',
      members: [{ result: { error: { code: 'await_cycle' } } }],
    });
  });

  it('TK-38 a task that awaits the run which waits for the budget it has lent that task is told so', async () => {
    const made = world({
      planner: plays({
        q: script(spawns('child', { limits: { steps: 5 } })),
        child: thenTell(call('hold'), awaits('p')),
      }),
      tools: [make('hold', () => until(waits(made, 'p')))],
    });
    const run = await start(made, { identity: PARENT, limits: { steps: 6 } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(await payloadOf(made.runtime.run('p.0.0'))).toMatchObject({ error: { code: 'await_cycle' } });
  });

  it('TK-39 an await with a time limit of 5 s ends after 5 s with an error; the task goes on', async () => {
    const { tool, entered, release } = holding();
    const made = world({
      planner: plays({
        q: script(spawns('child'), awaits('p.0.0', { timeoutMs: 5_000 })),
        child: script(call('hold')),
      }),
      tools: [tool],
    });
    made.runtime.work();
    const run = await start(made, { identity: PARENT });
    await entered;
    await until(waits(made, 'p'));
    const began = made.clock.now();
    made.clock.advance(4_900);
    await quiet();
    expect((await run.state()).open).not.toBeNull();
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(made.clock.now() - began).toBeLessThanOrEqual(7_000);
    expect(observations(await run.state())[1]).toEqual({
      error: { code: 'await_timeout', message: 'The task p.0.0 has not ended in time. It goes on.' },
    });
    expect((await made.runtime.tasks.get(ANA, 'p.0.0'))?.status).toBe('running');
    release();
    expect(await made.runtime.run('p.0.0').result()).toMatchObject({ status: 'finished' });
    await made.runtime.close();
  });

  it('TK-39 holds also in a program that takes over no due runs: it waits for its own run', async () => {
    const { tool, entered } = holding();
    const made = world({
      planner: plays({
        q: script(spawns('child'), awaits('p.0.0', { timeoutMs: 5_000 })),
        child: script(call('hold')),
      }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT });
    await entered;
    await until(waits(made, 'p'));
    const result = run.result();
    await advanceUntil(made.clock, () => hasEnded(made, 'p'));
    expect(await result).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(observations(await run.state())[1]).toMatchObject({ error: { code: 'await_timeout' } });
    await made.runtime.close();
  });

  it('TK-39 without a time limit the run’s deadline ends the wait', async () => {
    const { tool, entered } = holding();
    const made = world({
      planner: plays({ q: script(spawns('child'), awaits('p.0.0')), child: script(call('hold')) }),
      tools: [tool],
    });
    made.runtime.work();
    const run = await start(made, { identity: PARENT, limits: { deadlineAt: made.clock.now() + 9_000 } });
    await entered;
    await until(waits(made, 'p'));
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
    await made.runtime.close();
  });

  it('DV-11 an await among other branches waits alone: the others have ended', async () => {
    const { tool, entered, release } = holding();
    const made = world({
      planner: plays({
        q: thenTell(spawns('child'), parallel([awaiting('p.0.0'), spawning('other'), awaiting('none')])),
        child: script(call('hold')),
      }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT });
    await entered;
    await until(waits(made, 'p'));
    expect((await run.state()).open?.calls.map((record) => record?.outcome.kind)).toEqual([
      undefined,
      'value',
      'error',
    ]);
    release();
    expect(await payloadOf(run)).toMatchObject([
      { value: { status: 'complete', result: 'done' } },
      { value: { task_id: 'p.1.1' } },
      { error: { code: 'task_not_found' } },
    ]);
  });
});

describe('TK-40 a control during a wait', () => {
  async function waiting(kept: boolean): Promise<World & { run: Run; views: readonly RunView[]; release(): void }> {
    const { tool, entered, release } = holding();
    const parent = watched(
      kept
        ? script(spawns('child', { task: 'foreground' }), awaits('p.0.0'))
        : script(spawns('child'), awaits('p.0.0'), awaits('p.0.0')),
    );
    const made = world({ planner: plays({ q: parent, child: script(call('hold')) }), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    await entered;
    await until(waits(made, 'p'));
    return { ...made, run, views: parent.views, release };
  }

  it.each([
    ['USER_MESSAGE', { message: 'hurry' }, false],
    ['REDIRECT', { goal: 'less' }, false],
    ['INJECT_CONTEXT', { note: 'x' }, false],
    ['USER_MESSAGE', { message: 'hurry' }, true],
  ] as const)('%s wakes the planner, which hears of it and that the task goes on', async (type, payload, kept) => {
    const { run, views, release } = await waiting(kept);
    const before = views.length;
    await run.steer(type, payload);
    await until(() => views.length > before);
    expect(views[before]?.controls.map((control) => control.type)).toEqual([type]);
    expect(lastOf(views[before] as RunView)).toEqual({ task_id: 'p.0.0', status: 'running' });
    release();
    await run.result();
    expect(observations(await run.state()).at(-1)).toEqual({ task_id: 'p.0.0', status: 'complete', result: 'done' });
  });

  it('PAUSE holds the run although the task ends, and RESUME lets it go on', async () => {
    const { run, journal, release } = await waiting(false);
    await run.pause();
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ payload: { by: 'operator' } }] });
    release();
    await until(async () => (await journal.get('p.0.0'))?.status === 'finished');
    await quiet();
    expect((await run.state()).ending).toBeNull();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(observations(await run.state())[1]).toEqual({ task_id: 'p.0.0', status: 'complete', result: 'done' });
  });

  it('CANCEL ends it, and by its policy the task', async () => {
    const { run, runtime } = await waiting(false);
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    expect(await runtime.run('p.0.0').result()).toMatchObject({ reason: 'cancelled' });
  });

  it('PRIORITIZE neither wakes the planner nor ends the wait', async () => {
    const { run, views, release, journal } = await waiting(false);
    const before = views.length;
    await run.steer('PRIORITIZE', { priority: 7 });
    await quiet();
    expect(views).toHaveLength(before);
    expect((await journal.get('p'))?.priority).toBe(7);
    release();
    expect(await run.result()).toMatchObject({ reason: 'goal' });
  });
});

/** Spawns in the background, sits in a pause of its own, and ends with what it has got by then. */
function sitting(reason: 'await_input' | 'external_event' | 'approval_required' = 'external_event'): PlannerFunction {
  return (run, signal) => script(spawns('child'), { kind: 'request_pause', reason }, finish(shown(run)))(run, signal);
}

function shown({ trajectory }: RunView): never {
  return trajectory.background.map(({ atStep, group }) => ({
    atStep,
    group: group.id,
    status: group.status,
    members: group.members.map(({ id, end }) => ({ id, status: end?.status ?? null, result: end?.result ?? null })),
  })) as never;
}

const RESULT = {
  atStep: 2,
  group: 'group:p.0.0',
  status: 'completed',
  members: [{ id: 'p.0.0', status: 'complete', result: 'done' }],
};

describe('results that come by themselves', () => {
  const modes = (wakeMode: Planner['wakeMode'], next: PlannerFunction): Planner => ({
    name: 'modes',
    next,
    ...(wakeMode === undefined ? {} : { wakeMode }),
  });

  it.each([
    [undefined, 'external_event'],
    ['push', 'await_input'],
    ['hybrid', 'external_event'],
  ] as const)('TK-34, TK-37 wake a %s planner that sits in %s: it is asked once, and has them for good', async (mode, reason) => {
    const { tool, entered, release } = holding();
    const parent = watched(sitting(reason));
    const made = world({ planner: modes(mode, plays({ q: parent, child: script(call('hold')) })), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    await entered;
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason }] });
    expect(parent.views).toHaveLength(2);
    release();
    await until(() => hasEnded(made, 'p'));
    expect(await payloadOf(run)).toEqual([RESULT]);
    expect(parent.views).toHaveLength(3);
    expect(observations(await run.state())[1]).toEqual({ decision: 'resume', payload: { group_id: 'group:p.0.0' } });
    expect(await entriesOf(made.journal, run, 'group_ended')).toHaveLength(1);
    expect(only(await collect(run), 'task.group_resolved')).toMatchObject([
      { groupId: 'group:p.0.0', ownerTaskId: 'p', finalStatus: 'completed' },
    ]);
  });

  it('do not answer a pause that asks for an approval, nor wake a poll planner', async () => {
    for (const [mode, reason] of [
      ['push', 'approval_required'],
      ['poll', 'external_event'],
    ] as const) {
      const made = world({ planner: modes(mode, plays({ q: sitting(reason) })) });
      const run = await start(made, { identity: PARENT });
      await until(() => hasEnded(made, 'p.0.0'));
      await quiet();
      expect(await run.result()).toMatchObject({ status: 'paused' });
      expect((await run.state()).background).toHaveLength(1);
      await run.approve();
      expect(await run.result()).toMatchObject({ status: 'finished' });
    }
  });

  it('TK-37 one that the planner has seen before it sits down does not wake it', async () => {
    const { tool, entered, release } = holding();
    const parent = watched(script(spawns('child'), call('hold'), { kind: 'request_pause', reason: 'external_event' }));
    const made = world({ planner: plays({ q: parent }), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    await entered;
    await until(() => hasEnded(made, 'p.0.0'));
    release();
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await quiet();
    expect(await run.result()).toMatchObject({ status: 'paused' });
    expect(parent.views.map(({ trajectory }) => trajectory.background.length)).toEqual([0, 0, 1]);
  });

  it('TK-37 each of 16 comes once, in whichever order the tasks end', async () => {
    const queries = Array.from({ length: 16 }, (_, index) => `child ${index}`);
    const parent = watched((run) => {
      if (run.trajectory.count === 0) return parallel(queries.map((query) => spawning(query)));
      if (run.trajectory.background.length < queries.length) return { kind: 'request_pause', reason: 'external_event' };
      return finish(run.trajectory.background.map(({ group }) => group.id).sort());
    });
    const made = world({ planner: plays({ q: parent }), maxLiveRuns: 3 });
    const run = await start(made, { identity: PARENT });
    await until(() => hasEnded(made, 'p'));
    expect(await payloadOf(run)).toEqual(queries.map((_, index) => `group:p.0.${index}`).sort());
    for (const [index, view] of parent.views.entries()) {
      const ids = view.trajectory.background.map(({ group }) => group.id);
      expect(new Set(ids).size).toBe(ids.length);
      const before = parent.views[index - 1]?.trajectory.background ?? [];
      expect(view.trajectory.background.slice(0, before.length)).toEqual(before);
    }
  });

  it('a result that an await has given does not come again', async () => {
    const made = world({
      planner: plays({ q: (run, signal) => script(spawns('child'), awaits('p.0.0'), finish(shown(run)))(run, signal) }),
    });
    expect(await payloadOf(await start(made, { identity: PARENT }))).toEqual([]);
  });

  it('TK-35 a poll planner awaits, is not blocked for longer than the task lasts, and consumes the outcome', async () => {
    const { tool, entered, release } = holding();
    const parent = watched((run) => {
      const { groups, count } = run.trajectory;
      if (count === 0) return spawns('child', { groupId: 'g', seal: true });
      const group = groups.get('g');
      if (group?.endedAt === undefined) return awaits('p.0.0', { groupId: 'g' });
      return tellLast(run, new AbortController().signal);
    });
    const made = world({ planner: modes('poll', plays({ q: parent, child: script(call('hold')) })), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    await entered;
    await until(waits(made, 'p'));
    release();
    expect(await payloadOf(run)).toEqual({
      group_id: 'g',
      status: 'completed',
      members: [{ task_id: 'p.0.0', status: 'complete', result: 'done' }],
    });
    expect(parent.views).toHaveLength(3);
  });
});

it('W21 nothing is polled while a run waits: no timer is left, and the end of the task alone wakes it', async () => {
  const made = world({ planner: plays({ q: sitting(), child: script(pause) }) });
  const run = await start(made, { identity: PARENT });
  await run.result();
  await until(async () => (await made.journal.get('p.0.0'))?.status === 'paused');
  await until(() => made.clock.pending === 0);
  await made.runtime.run('p.0.0').approve();
  await until(() => hasEnded(made, 'p'));
  expect(await payloadOf(run)).toEqual([RESULT]);
});

describe('CR-06 whatever comes first', () => {
  const SEEDS = Array.from({ length: 5 }, (_, block) => block * 50);

  it.each(SEEDS)('a ring of three awaits is broken, and nobody waits for ever, seeds from %i on', async (from) => {
    const next: Record<string, string> = { a: 'b', b: 'c', c: 'a' };
    for (let seed = from; seed < from + 50; seed += 1) {
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

  it.each(SEEDS)('several runs that await one task all have its end, once, seeds from %i on', async (from) => {
    for (let seed = from; seed < from + 50; seed += 1) {
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
        expect((await run.state()).otherEnds.length).toBeLessThanOrEqual(1);
      }
      expect(made.faults).toEqual([]);
    }
  });
});
