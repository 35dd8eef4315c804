/** A run that has failed goes on when somebody resumes it. */
import { rmSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { local, type Planner, type PlannerFunction } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime } from '#runtime';
import { call, finish } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { changed } from '../kit/journals.ts';
import { kindsOf } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** Fails at the step of this number as long as it is not mended. */
function failing(at = 1): { planner: PlannerFunction; mend(): void; steps: number[] } {
  let isMended = false;
  const steps: number[] = [];
  const planner: PlannerFunction = ({ trajectory: { count } }) => {
    if (count === at && !isMended) throw new Error('broken');
    steps.push(count);
    return count < 3 ? call('echo', { count }) : finish('done');
  };
  const mend = (): void => {
    isMended = true;
  };
  return { planner, steps, mend };
}

const path = `${import.meta.dirname}/.reopen-${process.pid}.db`;
let journals: Record<string, () => Journal>;
beforeEach(() => {
  journals = { memory: () => memoryJournal(), sqlite: () => sqliteJournal({ path }) };
});
afterEach(() => {
  for (const end of ['', '-wal', '-shm', '-journal']) rmSync(`${path}${end}`, { force: true });
});

describe('a run that has failed', () => {
  it.each(['memory', 'sqlite'])('goes on from where it was, and that is recorded: %s', async (kind) => {
    const journal = journals[kind]?.() as Journal;
    const { planner, mend, steps } = failing();
    const runtime = createRuntime({ planner: { name: 'p', next: planner }, tools: [echo], journal });
    const run = await runtime.start('q', { identity: local('ana') });
    expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'planner_failed' } });
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'failed' });
    mend();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'done' });
    expect(steps).toEqual([0, 1, 2, 3]);
    const kinds = (await journal.read(run.id))
      .map(({ kind: of }) => of)
      .filter((of) => /failed|reopened|finished/.test(of));
    expect(kinds).toEqual(['failed', 'reopened', 'failed', 'reopened', 'finished']);
    expect((await collect(run)).filter(({ type }) => type === 'run.reopened')).toHaveLength(2);
    expect((await journal.get(run.id))?.status).toBe('finished');
    await runtime.close();
    await journal.close();
  });

  it('goes on in another process, in the name of whoever asked', async () => {
    const journal = memoryJournal();
    const { planner, mend } = failing();
    const first = world({ planner, tools: [echo], journal });
    const run = await start(first);
    await run.result();
    await first.runtime.close();
    mend();
    const second = world({ planner, tools: [echo], journal });
    const { tenant, user, session } = local('ana');
    const as = { tenant, user, session, scope: 'owner_user' } as const;
    const stranger = { ...as, user: 'eve' };
    await expect(second.runtime.run(run.id, { as: stranger }).resume()).rejects.toMatchObject({
      code: expect.anything(),
    });
    expect((await journal.get(run.id))?.status).toBe('failed');
    const handle = second.runtime.run(run.id, { as });
    await handle.resume();
    expect(await handle.result()).toMatchObject({ answer: 'done' });
    expect((await journal.read(run.id)).find(({ kind }) => kind === 'reopened')).toMatchObject({ by: as });
  });

  it('is reopened once by two who ask at the same time', async () => {
    const { planner, mend } = failing();
    const made = world({ planner, tools: [echo] });
    const run = await start(made);
    await run.result();
    mend();
    await Promise.all([run.resume(), run.resume(), made.runtime.run(run.id).resume()]);
    expect(await run.result()).toMatchObject({ answer: 'done' });
    expect((await kindsOf(made.journal, run)).filter((kind) => kind === 'reopened')).toHaveLength(1);
  });

  it('is seen as failed by neither of two processes that ask at the same time, whoever is first', async () => {
    const journal = memoryJournal();
    const { planner, mend } = failing();
    const options = { planner: { name: 'p', next: planner }, tools: [echo] };
    const starter = createRuntime({ ...options, journal });
    const { id } = await starter.start('q', { identity: local('ana') });
    await starter.run(id).result();
    mend();
    const [otherHasIt, mayWrite] = [gate(), gate()];
    const slow = (before: () => Promise<void>): Journal =>
      changed(journal, {
        append: async (append) => {
          if (append.entries.some(({ kind }) => kind === 'reopened')) await before();
          return journal.append(append);
        },
      });
    const first = createRuntime({ ...options, journal: slow(() => otherHasIt.opened) });
    const second = createRuntime({
      ...options,
      journal: slow(() => {
        otherHasIt.open();
        return mayWrite.opened;
      }),
    });
    const resumed = [first, second].map(async (runtime) => {
      await runtime.run(id).resume();
      return runtime.run(id).result();
    });
    const told = await resumed[0];
    mayWrite.open();
    expect([told, await resumed[1]]).toEqual([
      expect.objectContaining({ answer: 'done' }),
      expect.objectContaining({ answer: 'done' }),
    ]);
    expect((await journal.read(id)).filter(({ kind }) => kind === 'reopened')).toHaveLength(1);
    await Promise.all([starter, first, second].map((runtime) => runtime.close()));
  });

  it('also when its decisions were refused too often', async () => {
    let isMended = false;
    const planner: Planner = {
      name: 'p',
      modelDriven: true,
      next: () => (isMended ? finish('done') : ({ kind: 'nonsense' } as never)),
    };
    const made = world({ planner });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'failed' });
    isMended = true;
    await run.resume();
    expect(await run.result()).toMatchObject({ answer: 'done' });
  });

  it('is heard of by its limits as before', async () => {
    const { planner, mend } = failing(2);
    const made = world({ planner, tools: [echo], limits: { steps: 2 } });
    const run = await start(made);
    const other = await start(made, { limits: { steps: 3 } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'max_steps' });
    expect(await other.result()).toMatchObject({ status: 'failed' });
    mend();
    await other.resume();
    expect(await other.result()).toMatchObject({ status: 'finished', reason: 'max_steps' });
  });

  it('takes no control and no answer before it goes on', async () => {
    const { planner } = failing();
    const made = world({ planner, tools: [echo] });
    const run = await start(made);
    await run.result();
    await expect(run.steer('USER_MESSAGE', { message: 'm' })).rejects.toMatchObject({ code: 'run_ended' });
    await expect(run.resume({ payload: { a: 1 } })).rejects.toMatchObject({ code: 'run_ended' });
    // Nor does it start anew under its id.
    await start(made, { identity: (await run.state()).identity });
    await quiet();
    expect((await made.journal.get(run.id))?.status).toBe('failed');
  });

  it('hears what became of its tasks meanwhile, and waits for none that has ended', async () => {
    let isMended = false;
    const planner: PlannerFunction = ({ task, trajectory: { count, tasks } }) => {
      if (task !== undefined) return count === 0 ? { kind: 'request_pause', reason: 'await_input' } : finish('below');
      if (count === 0) {
        const spec = { description: 'd', query: 'below' } as const;
        return { kind: 'spawn_task', task: 'background', spec, groupId: 'g' };
      }
      if (!isMended) throw new Error('broken');
      if (count === 1) return { kind: 'await_task', taskId: tasks[0]?.id ?? '' };
      return finish(tasks[0]?.end?.status ?? 'under way');
    };
    const made = world({ planner });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'failed' });
    const [task] = await made.runtime.list({ parent: run.id });
    await until(async () => (await made.journal.get(task?.identity.run ?? ''))?.status === 'cancelled');
    isMended = true;
    await run.resume();
    expect(await run.result()).toMatchObject({ answer: 'cancelled' });
  });
});

describe('what cannot be reopened', () => {
  it('is a run that finished or was cancelled', async () => {
    const made = world({ planner: () => finish('done') });
    const done = await start(made);
    await done.result();
    await expect(done.resume()).rejects.toMatchObject({ code: 'run_ended' });
    const paused = world({ planner: () => ({ kind: 'request_pause', reason: 'await_input' }) });
    const run = await start(paused);
    await run.result();
    await run.cancel({ until: 'applied' });
    await until(async () => (await run.state()).ending !== null);
    await expect(run.resume()).rejects.toMatchObject({ code: 'run_ended' });
  });

  it('is a task whose owner was told', async () => {
    const planner: PlannerFunction = ({ task, trajectory: { count } }) => {
      if (task !== undefined) throw new Error('broken');
      if (count === 0) return { kind: 'spawn_task', task: 'foreground', spec: { description: 'd', query: 'below' } };
      return finish('above');
    };
    const made = world({ planner, tools: [make('noop', () => 1)] });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ answer: 'above' });
    const [task] = await made.runtime.list({ parent: run.id });
    await expect(made.runtime.run(task?.identity.run ?? '').resume()).rejects.toMatchObject({
      code: 'run_ended',
      message: expect.stringContaining(run.id),
    });
  });
});

describe('an option of a runtime', () => {
  it('that there is not is named, with what was meant', () => {
    const planner = () => finish();
    expect(() => createRuntime({ planer: planner } as never)).toThrow('"planer". Did you mean planner?');
    expect(() => createRuntime({ planner, patience: 5 } as never)).toThrow('patienceMs');
    expect(() => createRuntime({ planner, quux: 1 } as never)).toThrow('Its options are planner, tools');
  });
});
