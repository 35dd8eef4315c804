/** What the end of a run does to the tasks below it. */
import { describe, expect, it } from 'vitest';
import type { Decision, OnCancel, PlannerFunction } from '#core';
import { call, finish, pause, script, watched } from '../kit/decisions.ts';
import { entriesOf, hasEnded, outcomes } from '../kit/run-record.ts';
import { ANA, PARENT, plays, spawns } from '../kit/tasks.ts';
import { holding, make } from '../kit/tools.ts';
import { aborted, gate, quiet, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

/** Nothing but a person ends it. */
const sits: Decision = { kind: 'request_pause', reason: 'approval_required' };
const CHILD = 'p.0.0';
const GRANDCHILD = 'p.0.0.0.0';

/** `p`, its child and its grandchild, all waiting for an answer. */
async function threeDeep(
  child: OnCancel,
  grandchild: OnCancel,
  childThen: PlannerFunction = script(spawns('grandchild', { onCancel: grandchild }), sits),
): Promise<World> {
  const made = world({
    planner: plays({
      q: script(spawns('child', { onCancel: child }), sits),
      child: childThen,
      grandchild: script(pause),
    }),
  });
  await (await start(made, { identity: PARENT })).result();
  await until(async () => (await made.journal.get(GRANDCHILD))?.status === 'paused');
  return made;
}

async function statuses({ runtime }: World): Promise<(string | undefined)[]> {
  const tasks = await Promise.all(['p', CHILD, GRANDCHILD].map((id) => runtime.tasks.get(ANA, id)));
  return tasks.map((task) => task?.status);
}

/** What a task's cancel says of where it came from. */
async function cancelOf({ journal, runtime }: World, run: string): Promise<unknown> {
  const taken = await entriesOf(journal, runtime.run(run), 'control');
  return taken.find(({ control }) => control.type === 'CANCEL')?.control.payload;
}

describe('cancel', () => {
  it('TK-10 goes down to the last task, and those below know that it came from above', async () => {
    const made = await threeDeep('cascade', 'cascade');
    await made.runtime.tasks.cancel(ANA, 'p', 'enough');
    await until(() => hasEnded(made, GRANDCHILD));
    expect(await statuses(made)).toEqual(['cancelled', 'cancelled', 'cancelled']);
    expect(await cancelOf(made, 'p')).toEqual({ reason: 'enough' });
    expect(await cancelOf(made, CHILD)).toMatchObject({ cascaded: true });
    expect(await cancelOf(made, GRANDCHILD)).toMatchObject({ cascaded: true });
  });

  it.each([
    ['isolate', 'cascade', ['cancelled', 'paused', 'paused']],
    ['isolate', 'isolate', ['cancelled', 'paused', 'paused']],
    ['cascade', 'isolate', ['cancelled', 'cancelled', 'paused']],
  ] as const)('TK-10, TK-11 each task’s own rule decides: %s above %s', async (child, grandchild, after) => {
    const made = await threeDeep(child, grandchild);
    await made.runtime.run('p').cancel();
    await quiet();
    expect(await statuses(made)).toEqual(after);
    await made.runtime
      .run(GRANDCHILD)
      .approve()
      .catch(() => {});
    await made.runtime
      .run(CHILD)
      .approve()
      .catch(() => {});
    await until(() => hasEnded(made, GRANDCHILD));
    await until(() => hasEnded(made, CHILD));
    expect(await statuses(made)).toEqual(after.map((status) => (status === 'paused' ? 'complete' : status)));
  });

  it.each([
    ['complete', finish('early')],
    ['failed', { kind: 'finish', reason: 'no_path' } as const],
  ])('TK-11, W27 goes through a task that has ended as %s to those below it', async (status, ending) => {
    const below = script(spawns('grandchild', { onCancel: status === 'complete' ? 'cascade' : 'isolate' }), ending);
    const made = await threeDeep('cascade', 'cascade', below);
    await until(() => hasEnded(made, CHILD));
    await made.runtime.run('p').cancel();
    await quiet();
    const left = status === 'complete' ? 'cancelled' : 'paused';
    expect(await statuses(made)).toEqual(['cancelled', status, left]);
  });

  it('TK-11 but not below an ended task that is isolated itself', async () => {
    const made = await threeDeep('isolate', 'cascade', script(spawns('grandchild'), finish('early')));
    await until(() => hasEnded(made, CHILD));
    await made.runtime.run('p').cancel();
    await quiet();
    expect(await statuses(made)).toEqual(['cancelled', 'complete', 'paused']);
  });

  it('TK-13 of a running task aborts what is in flight, and no further move is made', async () => {
    const entered = gate();
    let reason: unknown;
    const tool = make('hold', async (_, { signal }) => {
      entered.open();
      try {
        await aborted(signal);
      } catch (error) {
        reason = error;
        throw error;
      }
    });
    const child = watched(script(call('hold')));
    const made = world({ planner: plays({ q: script(spawns('child'), sits), child }), tools: [tool] });
    await (await start(made, { identity: PARENT })).result();
    await entered.opened;
    expect(await made.runtime.tasks.cancel(ANA, CHILD)).toBe(true);
    const task = made.runtime.run(CHILD);
    expect(await task.result()).toMatchObject({ status: 'finished', reason: 'cancelled', usage: { steps: 1 } });
    expect(reason).toMatchObject({ code: 'cancelled' });
    expect(outcomes(await task.state())).toEqual(['cancelled']);
    expect(child.views).toHaveLength(1);
    expect(await made.runtime.tasks.get(ANA, 'p')).toMatchObject({ status: 'paused' });
  });

  it('of a task that is kept is what its owner is told', async () => {
    const made = world({
      planner: plays({ q: script(spawns('child', { task: 'foreground' })), child: script(pause) }),
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    await made.runtime.tasks.cancel(ANA, CHILD);
    await until(() => hasEnded(made, 'p'));
    const value = (await run.state()).steps[0]?.calls[0]?.outcome;
    expect(value).toMatchObject({ value: { task_id: CHILD, status: 'cancelled', error: { code: 'cancelled' } } });
  });

  it('that comes while the owner is between a spawn and its end reaches the task all the same', async () => {
    const { tool, entered } = holding();
    const made = world({
      planner: plays({ q: script(spawns('child'), call('hold')), child: script(pause) }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT });
    await entered;
    await run.cancel();
    await until(() => hasEnded(made, CHILD));
    expect(await made.runtime.tasks.get(ANA, CHILD)).toMatchObject({ status: 'cancelled' });
  });
});

describe('another ending', () => {
  it.each([
    ['goal', 'paused'],
    ['no_path', 'cancelled'],
    ['constraints_conflict', 'cancelled'],
    ['deadline_exceeded', 'cancelled'],
  ] as const)('a finish with %s leaves the task %s', async (reason, status) => {
    const made = world({
      planner: plays({ q: script(spawns('child'), { kind: 'finish', reason }), child: script(pause) }),
    });
    await (await start(made, { identity: PARENT })).result();
    await until(async () => (await made.runtime.tasks.get(ANA, CHILD))?.status === status);
    await quiet();
    expect((await made.runtime.tasks.get(ANA, CHILD))?.status).toBe(status);
  });

  it('a failure cancels it', async () => {
    const made = world({
      planner: plays({ q: script(spawns('child'), { kind: 'nonsense' } as never), child: script(pause) }),
    });
    expect(await (await start(made, { identity: PARENT })).result()).toMatchObject({ status: 'failed' });
    await until(() => hasEnded(made, CHILD));
    expect(await made.runtime.tasks.get(ANA, CHILD)).toMatchObject({ status: 'cancelled' });
  });

  it('with goal is not told of tasks that end afterwards, and they end all the same', async () => {
    const made = world({ planner: plays({ q: script(spawns('child')), child: script(pause) }) });
    const run = await start(made, { identity: PARENT });
    await run.result();
    const before = await made.journal.read('p');
    await until(async () => (await made.journal.get(CHILD))?.status === 'paused');
    await made.runtime.run(CHILD).approve();
    expect(await made.runtime.run(CHILD).result()).toMatchObject({ reason: 'goal' });
    await quiet();
    expect(await made.journal.read('p')).toEqual(before);
    expect(made.faults).toEqual([]);
  });
});
