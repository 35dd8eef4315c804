/** TK-36: readers of a hybrid planner's run see its tasks move. */
import { expect, it } from 'vitest';
import type { Decision, Planner, RunEvent, WakeMode } from '#core';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { call, pause, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { changed } from '../kit/journals.ts';
import { hasEnded } from '../kit/run-record.ts';
import { PARENT, plays, spawns } from '../kit/tasks.ts';
import { holding } from '../kit/tools.ts';
import { quiet, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

interface Watching extends World {
  /** How often the store was asked about the task. */
  asked(): number;
  /** Lets the task go on, to its pause. */
  releaseTask(): void;
  release(): void;
}

/** `p` holds its turn in a tool while its task is in one. */
async function working(wakeMode: WakeMode): Promise<Watching> {
  const own = holding();
  const child = holding();
  const planner: Planner = {
    name: 'modes',
    wakeMode,
    next: plays({
      q: script(spawns('child'), call('hold')),
      child: script(call('echo'), call('held'), pause),
    }),
  };
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  let asked = 0;
  const made = world({
    planner,
    tools: [own.tool, { ...child.tool, name: 'held' }, { ...child.tool, name: 'echo', execute: () => null }],
    clock,
    journal: changed(journal, {
      get: (run) => {
        if (run === 'p.0.0') asked += 1;
        return journal.get(run);
      },
    }),
  });
  await start(made, { identity: PARENT });
  await Promise.all([own.entered, child.entered]);
  await quiet();
  return {
    ...made,
    asked: () => asked,
    releaseTask: () => child.release(),
    release: () => own.release(),
  };
}

function reading({ runtime }: World): { readonly events: RunEvent[]; readonly over: Promise<void> } {
  const events: RunEvent[] = [];
  const read = async (): Promise<void> => {
    for await (const event of runtime.run('p').events()) events.push(event);
  };
  return { events, over: read() };
}

it('TK-36 a hybrid planner’s readers are told of each change of a task, once, and nothing is recorded', async () => {
  const made = await working('hybrid');
  const { events, over } = reading(made);
  await until(() => events.some(({ type }) => type === 'task.spawned'));
  made.clock.advance(1_000);
  await until(() => only(events, 'task.progress').length === 1);
  const { head } = (await made.journal.get('p.0.0')) ?? { head: 0 };
  expect(only(events, 'task.progress')).toMatchObject([{ taskId: 'p.0.0', status: 'running', entries: head }]);
  made.clock.advance(1_000);
  await quiet();
  expect(only(events, 'task.progress')).toHaveLength(1);
  made.releaseTask();
  await until(async () => (await made.journal.get('p.0.0'))?.status === 'paused');
  made.clock.advance(1_000);
  await until(() => only(events, 'task.progress').length === 2);
  expect(only(events, 'task.progress')[1]).toMatchObject({ taskId: 'p.0.0', status: 'paused' });
  made.release();
  await over;
  await until(() => hasEnded(made, 'p'));
  expect((await collect(made.runtime.run('p'))).map(({ type }) => type)).not.toContain('task.progress');
});

it('TK-36 a hybrid planner in its own pause shows its tasks until one of them wakes it; one that waits for a person ends the reading', async () => {
  const child = holding();
  const external: Decision = { kind: 'request_pause', reason: 'external_event' };
  const own = plays({ q: script(spawns('child'), external, pause), child: script(call('held')) });
  const clock = new VirtualClock();
  const made = world({
    planner: { name: 'modes', wakeMode: 'hybrid', next: own },
    tools: [{ ...child.tool, name: 'held' }],
    clock,
  });
  await start(made, { identity: PARENT });
  await child.entered;
  await until(async () => (await made.journal.get('p'))?.status === 'paused');
  const { events, over } = reading(made);
  await until(() => events.some(({ type }) => type === 'pause.requested'));
  clock.advance(1_000);
  await until(() => only(events, 'task.progress').length === 1);
  expect(only(events, 'task.progress')).toMatchObject([{ taskId: 'p.0.0', status: 'running' }]);
  expect(only(events, 'run.paused')).toEqual([]);
  child.release();
  // Woken by its task, it asks a person: there is nothing more to show.
  await over;
  expect(events.map(({ type }) => type)).toEqual(expect.arrayContaining(['task.completed', 'pause.resumed']));
  expect(events.at(-1)?.type).toBe('run.paused');
});

it('TK-36 two readers both see it, and one that leaves stops the looking', async () => {
  const made = await working('hybrid');
  const readers = [reading(made), made.runtime.run('p').events()] as const;
  const [first, second] = readers;
  await until(() => first.events.some(({ type }) => type === 'task.spawned'));
  for (let event = await second.next(); event.value?.type !== 'task.spawned'; event = await second.next());
  made.clock.advance(1_000);
  const seen: string[] = [];
  for (let event = await second.next(); ; event = await second.next()) {
    seen.push(event.value?.type ?? '');
    if (event.value?.type === 'task.progress') break;
  }
  await until(() => only(first.events, 'task.progress').length === 1);
  await second.return();
  const before = made.asked();
  made.clock.advance(1_000);
  await quiet();
  expect(made.asked() - before).toBe(1);
  made.release();
  await first.over;
});

it('TK-36 nothing is looked at while nobody listens, nor for the other wake modes', async () => {
  const quietly = await working('hybrid');
  const before = quietly.asked();
  quietly.clock.advance(10_000);
  await quiet();
  expect(quietly.asked()).toBe(before);
  quietly.release();
  for (const mode of ['push', 'poll'] as const) {
    const made = await working(mode);
    const { events, over } = reading(made);
    await until(() => events.some(({ type }) => type === 'task.spawned'));
    const asked = made.asked();
    made.clock.advance(10_000);
    await quiet();
    expect(made.asked()).toBe(asked);
    expect(only(events, 'task.progress')).toEqual([]);
    made.release();
    await over;
  }
});
