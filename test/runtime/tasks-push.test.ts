/** Results of tasks that come to their owner by themselves: push, poll and hybrid planners. */
import { describe, expect, it } from 'vitest';
import type { Planner, PlannerFunction, RunView } from '#core';
import { call, finish, parallel, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, hasEnded, isWaiting, observations, payloadOf } from '../kit/run-record.ts';
import { awaits, PARENT, plays, spawning, spawns, tellLast } from '../kit/tasks.ts';
import { holding } from '../kit/tools.ts';
import { quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

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
    await until(() => isWaiting(made, 'p'));
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
