/** Groups of tasks: how they come to be, when they are over, and who hears of it. */
import { describe, expect, it } from 'vitest';
import type { Decision, GroupView, PlannerFunction } from '#core';
import { call, parallel, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, hasEnded, observations, payloadOf } from '../kit/run-record.ts';
import { ANA, awaits, fails, into, PARENT, plays, spawning, spawns, thenTell } from '../kit/tasks.ts';
import { holding } from '../kit/tools.ts';
import { quiet, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

/** Waits until the group is over, however the planner sits. */
const sits: Decision = { kind: 'request_pause', reason: 'approval_required' };

async function groupOf({ runtime }: World, id = 'g'): Promise<GroupView | undefined> {
  return runtime.tasks.group(ANA, 'p', id);
}

describe('a group comes to be', () => {
  it('DV-07 with each task that names none: sealed, and of this one member', async () => {
    const made = world({ planner: plays({ q: script(spawns('child'), sits), child: script(pause) }) });
    await (await start(made, { identity: PARENT })).result();
    expect(await groupOf(made, 'group:p.0.0')).toMatchObject({
      id: 'group:p.0.0',
      status: 'sealed',
      members: [{ id: 'p.0.0', kind: 'background', description: 'does child', step: 0 }],
    });
  });

  it('DV-07, TK-19 with the first task that names it; the others join it, until it is sealed', async () => {
    const made = world({
      planner: plays({
        q: script(spawns('child', { groupId: 'g' }), sits, spawns('child', { groupId: 'g', seal: true }), sits),
        child: script(pause),
      }),
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    expect(await groupOf(made)).toMatchObject({ status: 'open', members: [{ id: 'p.0.0' }] });
    await run.approve();
    await run.result();
    expect(await groupOf(made)).toMatchObject({ status: 'sealed', members: [{ id: 'p.0.0' }, { id: 'p.2.0' }] });
    expect((await run.state()).groups).toHaveLength(1);
  });

  it('TK-20, TK-31 a sealed group, and one that is over, takes no more: the task is not made', async () => {
    for (const child of [script(pause), script()]) {
      const made = world({
        planner: plays({
          q: script(
            spawns('child', { groupId: 'g', seal: true }),
            sits,
            spawns('late', { groupId: 'g' }),
            awaits('p.2.0'),
          ),
          child,
        }),
      });
      const run = await start(made, { identity: PARENT });
      await run.result();
      await quiet();
      await run.approve();
      await run.result();
      expect(observations(await run.state()).slice(2)).toEqual([
        { error: { code: 'group_ended', message: 'The group g takes no more tasks. Use another group id.' } },
        { error: { code: 'task_not_found', message: 'There is no task "p.2.0".' } },
      ]);
      expect(await made.runtime.tasks.get(ANA, 'p.2.0')).toBeUndefined();
      expect((await groupOf(made))?.members).toHaveLength(1);
    }
  });

  it('DV-07 and is left open, as its planner is told, by a task that was to seal it and is refused', async () => {
    const last = spawns('child', { groupId: 'g', seal: true });
    const others = parallel(Array.from({ length: 15 }, () => spawning('child')));
    const planner = plays({ q: script(spawns('child', { groupId: 'g' }), others, last, sits), child: script(pause) });
    const made = world({ planner });
    const run = await start(made, { identity: PARENT });
    await run.result();
    expect(observations(await run.state()).at(-1)).toMatchObject({
      error: {
        code: 'task_limit',
        message: expect.stringMatching(/The group g is open still: seal it with a later/),
      },
    });
    expect(await groupOf(made)).toMatchObject({ status: 'open', members: [{ id: 'p.0.0' }] });
  });

  it('ID-05 the same group id in two runs, or under two tenants, is two groups', async () => {
    const made = world({ planner: plays({ q: script(spawns('child', { groupId: 'g', seal: true }), sits) }) });
    const identities = [PARENT, { ...PARENT, run: 'other' }, { ...PARENT, tenant: 'other', run: 'theirs' }];
    const runs = await Promise.all(identities.map((identity) => start(made, { identity })));
    await Promise.all(runs.map((run) => run.result()));
    for (const identity of identities) {
      await until(async () => (await made.runtime.tasks.group(identity, identity.run, 'g'))?.status === 'completed');
      const group = await made.runtime.tasks.group(identity, identity.run, 'g');
      expect(group?.members.map(({ id }) => id)).toEqual([`${identity.run}.0.0`]);
    }
  });
});

describe('a group is over', () => {
  it('TK-21 when its last member has ended: completed, also with one that failed, and told once', async () => {
    const { tool, entered, release } = holding();
    const made = world({
      planner: plays({ q: script(into(['well', 'badly', 'slow']), sits), badly: fails, slow: script(call('hold')) }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    await entered;
    await until(async () => (await run.state()).tasks.filter(({ end }) => end !== undefined).length === 2);
    expect(await groupOf(made)).toMatchObject({ status: 'sealed' });
    release();
    await until(async () => (await groupOf(made))?.status === 'completed');
    expect((await groupOf(made))?.members.map(({ end }) => end?.status)).toEqual(['complete', 'failed', 'complete']);
    await run.approve();
    await run.result();
    expect(only(await collect(run), 'task.group_resolved')).toHaveLength(1);
    expect(await entriesOf(made.journal, run, 'group_ended')).toHaveLength(1);
  });

  it('TK-21, TK-42 at once when it is sealed after all its members have ended, by an await of it', async () => {
    const made = world({
      planner: plays({ q: thenTell(spawns('child', { groupId: 'g' }), sits, awaits('p.0.0', { groupId: 'g' })) }),
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    await until(async () => (await run.state()).tasks[0]?.end !== undefined);
    expect(await groupOf(made)).toMatchObject({ status: 'open' });
    await run.approve();
    expect(await payloadOf(run)).toEqual({
      group_id: 'g',
      status: 'completed',
      members: [{ task_id: 'p.0.0', status: 'complete', result: 'child' }],
    });
  });

  it('TK-22 failFast: one failure cancels the others, with its code as the reason', async () => {
    const made = world({
      planner: plays({
        q: thenTell(into(['waits', 'badly', 'waits'], { fail_fast: true }), awaits('p.0.1', { groupId: 'g' })),
        badly: fails,
        waits: script(pause),
      }),
    });
    const run = await start(made, { identity: PARENT });
    await until(() => hasEnded(made, 'p'));
    expect(await payloadOf(run)).toMatchObject({ group_id: 'g', status: 'cancelled', reason: 'fail-fast:no_path' });
    for (const id of ['p.0.0', 'p.0.2']) {
      await until(() => hasEnded(made, id));
      expect(await made.runtime.tasks.get(ANA, id)).toMatchObject({ status: 'cancelled' });
    }
    expect(await groupOf(made)).toMatchObject({ status: 'cancelled', reason: 'fail-fast:no_path' });
  });

  it('TK-22 without failFast the others go on; a member that was cancelled is no failure', async () => {
    const made = world({
      planner: plays({
        q: script(into(['waits', 'badly'], { fail_fast: false }), into(['waits', 'stopped'], {}), sits),
        badly: fails,
        waits: script(pause),
        stopped: script({ kind: 'finish', reason: 'cancelled' }),
      }),
    });
    await (await start(made, { identity: PARENT })).result();
    await until(() => hasEnded(made, 'p.0.1'));
    await quiet();
    expect(await groupOf(made)).toMatchObject({ status: 'sealed' });
    expect(await made.runtime.tasks.get(ANA, 'p.0.0')).toMatchObject({ status: 'paused' });
  });

  it('DV-09 failFast and quorum of a task that joins are ignored: the first one says what kind of group it is', async () => {
    const made = world({
      planner: plays({
        q: script(
          spawns('waits', { groupId: 'g' }),
          spawns('badly', { groupId: 'g', failFast: true, quorum: 1 }),
          spawns('well', { groupId: 'g', failFast: true, quorum: 1 }),
          sits,
        ),
        badly: fails,
        waits: script(pause),
      }),
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    await until(async () => (await run.state()).tasks.filter(({ end }) => end !== undefined).length === 2);
    await quiet();
    expect(await groupOf(made)).toMatchObject({ status: 'open' });
    expect(await made.runtime.tasks.get(ANA, 'p.0.0')).toMatchObject({ status: 'paused' });
  });

  it('with a quorum when so many are complete: the others are cancelled', async () => {
    const made = world({
      planner: plays({
        q: thenTell(into(['well', 'waits', 'badly', 'well'], { quorum: 2 }), awaits('p.0.0', { groupId: 'g' })),
        badly: fails,
        waits: script(pause),
      }),
    });
    const run = await start(made, { identity: PARENT });
    await until(() => hasEnded(made, 'p'));
    expect(await payloadOf(run)).toMatchObject({ status: 'completed', reason: 'quorum' });
    await until(() => hasEnded(made, 'p.0.1'));
    expect(await made.runtime.tasks.get(ANA, 'p.0.1')).toMatchObject({ status: 'cancelled' });
  });

  it('with a quorum that is not reached when all have ended, without a reason', async () => {
    const made = world({
      planner: plays({
        q: thenTell(into(['well', 'badly', 'badly'], { quorum: 2 }), awaits('p.0.0', { groupId: 'g' })),
        badly: fails,
      }),
    });
    const told = await payloadOf(await start(made, { identity: PARENT }));
    expect(told).toMatchObject({ status: 'completed', members: [{}, { status: 'failed' }, { status: 'failed' }] });
    expect(told).not.toHaveProperty('reason');
  });

  it('TK-27, W24 a wait for one group is not ended by another', async () => {
    const { tool, entered, release } = holding();
    const parent = watched(
      thenTell(
        parallel([spawning('slow', { group_id: 'slow' }), spawning('fast', { group_id: 'fast' }, { seal: true })]),
        awaits('p.0.0', { groupId: 'slow' }),
      ),
    );
    const made = world({ planner: plays({ q: parent, slow: script(call('hold')) }), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    await entered;
    await until(async () => (await groupOf(made, 'fast'))?.status === 'completed');
    await quiet();
    expect(parent.views).toHaveLength(2);
    expect(await made.runtime.tasks.get(ANA, 'p')).toMatchObject({ status: 'running' });
    release();
    expect(await payloadOf(run)).toMatchObject({ group_id: 'slow', status: 'completed' });
  });

  it('an await of a group that is not there is told so', async () => {
    const made = world({ planner: plays({ q: thenTell(spawns('child'), awaits('p.0.0', { groupId: 'none' })) }) });
    expect(await payloadOf(await start(made, { identity: PARENT }))).toEqual({
      error: { code: 'task_not_found', message: 'This run has no group "none".' },
    });
  });

  it('TK-34 its planner has the result once in background, unless every member was awaited', async () => {
    const made = world({
      planner: plays({
        q: (run, signal) =>
          script(
            into(['a', 'b']),
            { kind: 'request_pause', reason: 'external_event' },
            spawns('c', { groupId: 'awaited' }),
            awaits('p.2.0', { groupId: 'awaited' }),
            { kind: 'finish', reason: 'goal', payload: run.trajectory.background.map(({ group }) => group.id) },
          )(run, signal),
      }),
    });
    const run = await start(made, { identity: PARENT });
    await until(() => hasEnded(made, 'p'));
    expect(await payloadOf(run)).toEqual(['g']);
  });
});

describe('watchGroup', () => {
  const planner: PlannerFunction = plays({
    q: script(into(['well', 'badly', 'slow']), sits),
    badly: fails,
    slow: script(pause),
  });
  const completion = {
    groupId: 'g',
    ownerTaskId: 'p',
    finalStatus: 'completed',
    resolvedAt: expect.any(Number),
    members: [
      { taskId: 'p.0.0', status: 'complete', result: 'well' },
      {
        taskId: 'p.0.1',
        status: 'failed',
        result: { why: 'no way' },
        error: { code: 'no_path', message: expect.any(String) },
      },
      { taskId: 'p.0.2', status: 'complete', result: 'done' },
    ],
  };

  async function begun(): Promise<World> {
    const made = world({ planner });
    await (await start(made, { identity: PARENT })).result();
    await until(async () => (await made.journal.get('p.0.2'))?.status === 'paused');
    return made;
  }

  it('TK-24, TK-25 each of several watchers has the one completion; so has one that comes later, at once', async () => {
    const made = await begun();
    const { tasks } = made.runtime;
    const other = world({ planner, journal: made.journal, clock: made.clock });
    const watchers = [
      tasks.watchGroup(ANA, 'p', 'g'),
      tasks.watchGroup(ANA, 'p', 'g'),
      other.runtime.tasks.watchGroup(ANA, 'p', 'g'),
    ];
    await made.runtime.run('p.0.2').approve();
    expect(await Promise.all(watchers)).toEqual([completion, completion, completion]);
    expect(await tasks.watchGroup(ANA, 'p', 'g')).toEqual(completion);
    expect(await made.runtime.run('p').result()).toMatchObject({ status: 'paused' });
  });

  it('TK-25 an unknown group, an unknown owner and those of others are not found', async () => {
    const { tasks } = (await begun()).runtime;
    for (const [scope, owner, group] of [
      [ANA, 'p', 'none'],
      [ANA, 'none', 'g'],
      [{ ...ANA, tenant: 'other' }, 'p', 'g'],
      [{ ...ANA, user: 'other' }, 'p', 'g'],
      [{ ...ANA, session: 'other' }, 'p', 'g'],
    ] as const) {
      await expect(tasks.watchGroup(scope, owner, group)).rejects.toMatchObject({ code: 'task_not_found' });
    }
  });

  it('TK-25 a watcher that leaves early leaves nothing behind', async () => {
    const made = await begun();
    let watching = 0;
    const { watch } = made.journal;
    made.journal.watch = (run, wake) => {
      watching += 1;
      const stop = watch.call(made.journal, run, wake);
      return () => {
        watching -= 1;
        stop();
      };
    };
    const leave = new AbortController();
    const left = made.runtime.tasks.watchGroup(ANA, 'p', 'g', leave.signal);
    await until(() => watching === 1);
    leave.abort(new Error('enough'));
    await expect(left).rejects.toThrow('enough');
    expect(watching).toBe(0);
    await expect(made.runtime.tasks.watchGroup(ANA, 'p', 'g', leave.signal)).rejects.toThrow('enough');
    expect(watching).toBe(0);
  });

  it('ends with an error when the owner ends before the group', async () => {
    const made = await begun();
    const watching = made.runtime.tasks.watchGroup(ANA, 'p', 'g');
    const refused = expect(watching).rejects.toMatchObject({ code: 'run_ended' });
    await made.runtime.run('p').approve();
    await refused;
  });
});
