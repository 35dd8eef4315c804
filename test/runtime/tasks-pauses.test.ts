/** A task that waits for a person: who is told, and through whom it is answered. */
import { describe, expect, it } from 'vitest';
import type { PlannerFunction } from '#core';
import type { Run } from '#runtime';
import { call, parallel, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, hasEnded, observations, payloadOf } from '../kit/run-record.ts';
import { ANA, awaits, PARENT, plays, spawning, spawns, thenTell } from '../kit/tasks.ts';
import { holding, make } from '../kit/tools.ts';
import { quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const kept = (query: string): PlannerFunction => thenTell(spawns(query, { task: 'foreground' }));

async function tokenOf(run: Run, index = 0): Promise<string> {
  const result = await run.result();
  if (result.status !== 'paused') throw new Error(`The run is ${result.status}.`);
  return result.pauses[index]?.token ?? '';
}

describe('a kept task that pauses', () => {
  it('peers 7: is answered through its owner, and its first step ran once', async () => {
    let first = 0;
    const tool = make('first', () => {
      first += 1;
    });
    const child = watched(script(call('first'), { ...pause, payload: { ask: 'which?' } } as never));
    const made = world({ planner: plays({ q: kept('child'), child }), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    const paused = await run.result();
    expect(paused).toMatchObject({
      status: 'paused',
      pauses: [{ run: 'p.0.0', reason: 'external_event', payload: { ask: 'which?' } }],
    });
    expect((await made.journal.get('p'))?.status).toBe('paused');
    expect((await collect(run)).at(-1)).toMatchObject({ type: 'run.paused', pauses: [{ run: 'p.0.0' }] });
    await run.approve(await tokenOf(run), { payload: { answer: 'this one' } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect([first, child.views.length]).toEqual([1, 3]);
    const state = await made.runtime.run('p.0.0').state();
    expect(observations(state)[1]).toEqual({ decision: 'approve', payload: { answer: 'this one' } });
  });

  it('bubbles to the grandparent, which can be answered without a token', async () => {
    const made = world({ planner: plays({ q: kept('child'), child: kept('grandchild'), grandchild: script(pause) }) });
    const run = await start(made, { identity: PARENT });
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ run: 'p.0.0.0.0' }] });
    expect(await made.runtime.run('p.0.0').result()).toMatchObject({
      status: 'paused',
      pauses: [{ run: 'p.0.0.0.0' }],
    });
    for (const id of ['p', 'p.0.0', 'p.0.0.0.0']) expect((await made.journal.get(id))?.status).toBe('paused');
    await run.approve();
    expect(await payloadOf(run)).toMatchObject({ status: 'complete', result: { status: 'complete', result: 'done' } });
    const events = await collect(run);
    expect(only(events, 'task.paused').map(({ taskId }) => taskId)).toEqual(['p.0.0']);
    expect(only(events, 'task.resumed').map(({ taskId }) => taskId)).toEqual(['p.0.0']);
  });

  it('a gate of the task is answered through the owner with edited arguments, or with no', async () => {
    const paid: unknown[] = [];
    const pay = make('pay', (args) => paid.push(args), { effect: 'once', needsApproval: () => true });
    const made = world({
      planner: plays({
        q: thenTell(parallel([spawning('child', { kind: 'foreground' }), spawning('child', { kind: 'foreground' })])),
        child: thenTell(call('pay', { sum: 5 })),
      }),
      tools: [pay],
    });
    const run = await start(made, { identity: PARENT });
    await until(async () => (await run.state()).tasks.every(({ pauses }) => pauses.length === 1));
    const [one, two] = [await tokenOf(run, 0), await tokenOf(run, 1)];
    await run.approve(one, { args: { sum: 4 } });
    await until(() => hasEnded(made, 'p.0.0'));
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ token: two, run: 'p.0.1' }] });
    await run.reject(two, { reason: 'too much' });
    expect(await payloadOf(run)).toMatchObject([
      { value: { result: 1 } },
      { value: { result: { error: { code: 'tool_rejected' } } } },
    ]);
    expect(paid).toEqual([{ sum: 4 }]);
  });

  it('two wait, one is answered without a token: it must be named', async () => {
    const made = world({
      planner: plays({
        q: script(parallel([spawning('child', { kind: 'foreground' }), spawning('child', { kind: 'foreground' })])),
        child: script(pause),
      }),
    });
    const run = await start(made, { identity: PARENT });
    await until(async () => (await made.journal.get('p.0.1'))?.status === 'paused');
    await until(async () => (await run.state()).tasks.every(({ pauses }) => pauses.length === 1));
    await expect(run.approve()).rejects.toMatchObject({ code: 'pause_not_found' });
  });

  it('pauses again after the answer, and the owner with it', async () => {
    const made = world({ planner: plays({ q: kept('child'), child: script(pause, pause) }) });
    const run = await start(made, { identity: PARENT });
    const first = await tokenOf(run);
    await run.approve();
    await until(async () => (await run.state()).tasks[0]?.pauses[0]?.token !== first);
    await until(async () => (await made.journal.get('p'))?.status === 'paused');
    const second = await tokenOf(run);
    expect(second).not.toBe(first);
    await expect(run.approve(first)).rejects.toMatchObject({ code: 'pause_not_found' });
    await run.approve(second);
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('an awaited task of another run bubbles to whoever awaits it', async () => {
    const made = world({
      planner: plays({ q: script(spawns('child')), child: script(pause), other: thenTell(awaits('p.0.0')) }),
    });
    await (await start(made, { identity: PARENT })).result();
    await until(async () => (await made.journal.get('p.0.0'))?.status === 'paused');
    const other = await start(made, { query: 'other' });
    await until(async () => (await made.journal.get(other.id))?.status !== 'running');
    expect(await other.result()).toMatchObject({ status: 'paused', pauses: [{ run: 'p.0.0' }] });
    await other.approve();
    expect(await payloadOf(other)).toMatchObject({ status: 'complete' });
  });

  it('an operator’s pause of the task is one as well', async () => {
    const { tool, entered, release } = holding();
    const made = world({ planner: plays({ q: kept('child'), child: script(call('hold')) }), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    await entered;
    await made.runtime.run('p.0.0').pause();
    release();
    expect(await run.result()).toMatchObject({
      status: 'paused',
      pauses: [{ run: 'p.0.0', reason: 'external_event', payload: { by: 'operator' } }],
    });
    await run.resume({ token: await tokenOf(run) });
    await until(() => hasEnded(made, 'p'));
    expect(await payloadOf(run)).toMatchObject({ status: 'complete', result: 'done' });
  });

  it('SP-26 of 40 racing answers through the owner and the task itself exactly one wins', async () => {
    const made = world({ planner: plays({ q: kept('child'), child: script(pause) }) });
    const run = await start(made, { identity: PARENT });
    const token = await tokenOf(run);
    const handles = [run, made.runtime.run('p.0.0')];
    const answers = Array.from({ length: 40 }, (_, index) =>
      handles[index % 2]?.approve(token, { payload: { index } }),
    );
    const settled = await Promise.allSettled(answers);
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    expect(await payloadOf(run)).toMatchObject({ status: 'complete' });
    expect(await entriesOf(made.journal, made.runtime.run('p.0.0'), 'resumed')).toHaveLength(1);
  });

  it('ends with its owner’s cancel, and the pause with it', async () => {
    const made = world({ planner: plays({ q: kept('child'), child: script(pause) }) });
    const run = await start(made, { identity: PARENT });
    const token = await tokenOf(run);
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    await until(() => hasEnded(made, 'p.0.0'));
    await expect(made.runtime.run('p.0.0').approve(token)).rejects.toMatchObject({ code: 'run_ended' });
  });
});

describe('an approval in a background task', () => {
  it('blocks only that task: its owner and the others go on and end', async () => {
    let paid = 0;
    const pay = make('pay', () => (paid += 1), { effect: 'once', needsApproval: () => true });
    const parent = watched(script(spawns('pays'), spawns('other'), call('echo'), call('echo')));
    const made = world({
      planner: plays({ q: parent, pays: script(call('pay')) }),
      tools: [pay, make('echo', () => null)],
    });
    const run = await start(made, { identity: PARENT });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    await until(() => hasEnded(made, 'p.1.0'));
    await until(async () => (await made.journal.get('p.0.0'))?.status === 'paused');
    expect(parent.views).toHaveLength(5);
    const [waiting] = await made.runtime.tasks.list(ANA, { status: ['paused'] });
    expect(waiting).toMatchObject({ id: 'p.0.0' });
    await made.runtime.run('p.0.0').approve();
    expect(await made.runtime.run('p.0.0').result()).toMatchObject({ status: 'finished' });
    expect(paid).toBe(1);
  });

  it('its owner is told, its planner sees it, and the owner is not paused by it', async () => {
    const seen: number[] = [];
    const made = world({
      planner: plays({
        q: (view, signal) => {
          seen.push(view.trajectory.tasks.flatMap(({ pauses }) => pauses).length);
          return script(spawns('pays'), { ...pause, reason: 'external_event' } as never)(view, signal);
        },
        pays: script(call('pay')),
      }),
      tools: [make('pay', () => 1, { needsApproval: () => true })],
    });
    const run = await start(made, { identity: PARENT });
    await until(async () => (await run.state()).tasks[0]?.pauses.length === 1);
    const paused = await run.result();
    expect(paused).toMatchObject({ status: 'paused', pauses: [{ run: 'p', reason: 'external_event' }] });
    await made.runtime.run('p.0.0').approve();
    await until(() => hasEnded(made, 'p'));
    await quiet();
    expect(seen.at(-1)).toBe(0);
    expect(await entriesOf(made.journal, run, 'task_paused')).toHaveLength(2);
  });
});
