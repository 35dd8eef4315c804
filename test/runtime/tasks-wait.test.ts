/** Waiting for tasks: an await, its time limit and cycles, and what wakes a wait. */
import { describe, expect, it } from 'vitest';
import type { RunView } from '#core';
import { memoryJournal } from '#journal';
import type { Run } from '#runtime';
import { VirtualClock } from '#testing';
import { call, parallel, script, watched } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { hasEnded, isWaiting, observations, payloadOf } from '../kit/run-record.ts';
import { ANA, awaiting, awaits, lastOf, PARENT, plays, spawning, spawns, thenTell } from '../kit/tasks.ts';
import { holding, make } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

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
    await until(() => isWaiting(made, 'p'));
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
    for (const run of runs) await until(() => isWaiting(made, run.id));
    release();
    runs.push(await start(made, { query: 'one' }));
    for (const run of runs)
      expect(await payloadOf(run)).toEqual({ task_id: 'p.0.0', status: 'complete', result: 'done' });
  });

  it('TK-38 a run that awaits itself is told so at once', async () => {
    const made = world({ planner: thenTell(awaits('p')) });
    const payload = await payloadOf(await start(made, { identity: PARENT }));
    expect(payload).toEqual({
      error: { code: 'await_cycle', message: 'Waiting for p would never end: p → p. The task was not awaited.' },
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
      tools: [make('hold', () => until(() => isWaiting(made, 'p')))],
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
      tools: [make('hold', () => until(() => isWaiting(made, 'p')))],
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
    await until(() => isWaiting(made, 'p'));
    const began = made.clock.now();
    made.clock.advance(4_900);
    await quiet();
    expect((await run.state()).open).not.toBeNull();
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(made.clock.now() - began).toBeLessThanOrEqual(7_000);
    expect(observations(await run.state())[1]).toEqual({
      error: { code: 'await_timeout', message: 'The task p.0.0 has not ended in time, and goes on.' },
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
    await until(() => isWaiting(made, 'p'));
    const result = run.result();
    await advanceUntil(made.clock, () => hasEnded(made, 'p'));
    expect(await result).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(observations(await run.state())[1]).toMatchObject({ error: { code: 'await_timeout' } });
    await made.runtime.close();
  });

  it('TK-39 an await whose time is over while somebody has paused the run waits for them, and nobody takes it up', async () => {
    const { tool, entered, release } = holding();
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    let claims = 0;
    const journal = changed(base, {
      claimDue: async (request) => {
        const claimed = await base.claimDue(request);
        claims += claimed.filter(({ claim }) => claim.run === 'p').length;
        return claimed;
      },
    });
    const child = script(call('hold'));
    const planner = plays({ q: script(spawns('child'), awaits('p.0.0', { timeoutMs: 5_000 })), child });
    const made = world({ planner, tools: [tool], journal, clock });
    made.runtime.work();
    const run = await start(made, { identity: PARENT });
    await entered;
    await until(() => isWaiting(made, 'p'));
    await run.pause();
    await run.result();
    const before = claims;
    for (let second = 0; second < 8; second += 1) {
      clock.advance(1_000);
      await quiet();
    }
    expect(claims).toBe(before);
    expect(await made.journal.get('p')).toMatchObject({ status: 'paused', wakeAt: null });
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(observations(await run.state())[1]).toMatchObject({ error: { code: 'await_timeout' } });
    release();
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
    await until(() => isWaiting(made, 'p'));
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
    await until(() => isWaiting(made, 'p'));
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
    await until(() => isWaiting(made, 'p'));
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
