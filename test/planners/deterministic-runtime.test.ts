/** The deterministic planner in a runtime: its decisions carried out, over one journal and over several processes. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Decision, type Entry, local, type Moved } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { type DeterministicStep, deterministic, type GroupMember, lastResult } from '#planners/deterministic';
import { createRuntime, type Runtime, type RuntimeOptions } from '#runtime';
import type { Tool } from '#tools';
import { temporaryFile } from '../kit/files.ts';
import { openJournal } from '../kit/sqlite.ts';
import { echo, make } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';

/** What a task of these runs is asked; its own steps come first, for it is a run of the same planner. */
const TASK = 'research';
const taskSteps: DeterministicStep[] = [
  { do: 'call', tool: 'look_up', args: {}, once: true, when: ({ query }) => query === TASK },
  { do: 'finish', reason: 'goal', payload: 'found', when: ({ query }) => query === TASK },
];

function steps(onResolved: (members: readonly GroupMember[]) => void = () => undefined): DeterministicStep[] {
  return [
    ...taskSteps,
    {
      do: 'spawn_and_await',
      spec: { description: 'Research', query: TASK },
      onResolved: (_, members) => {
        onResolved(members);
        const [first] = members;
        return {
          kind: 'call_tool',
          tool: 'use_result',
          args: { task_id: first?.task_id ?? '', status: first?.status ?? '' },
        };
      },
    },
    { do: 'finish', reason: 'goal', payload: ({ identity }) => identity.run },
  ];
}

const useResult = make('use_result', (args) => args);
const lookUp = make('look_up', () => 'a page');

function runtimeOn(journal: Journal, tools: Tool[], more: { onResolved?: () => void } = {}): Runtime {
  return open({ planner: deterministic({ steps: steps(more.onResolved) }), tools, journal });
}

function open(options: RuntimeOptions): Runtime {
  const runtime = createRuntime(options);
  onTestFinished(() => runtime.close());
  return runtime;
}

const moves = (entries: readonly Entry[]): Entry[] => entries.filter(({ kind }) => kind === 'moved');
const spawns = (entries: readonly Entry[]): Entry[] => entries.filter(({ kind }) => kind === 'spawned');

describe('deterministic in a runtime', () => {
  it('DS-12 spawns, awaits, uses the result and finishes: four decisions over one trajectory', async () => {
    const journal = memoryJournal();
    const runtime = runtimeOn(journal, [useResult, lookUp]);
    const run = await runtime.start('write', { identity: local('ana') });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    const made = moves(await journal.read(run.id));
    expect(made).toMatchObject([
      { step: 0, decision: { kind: 'spawn_task' } },
      { step: 1, decision: { kind: 'await_task', groupId: '<spawn-and-await>' } },
      { step: 2, decision: { kind: 'call_tool', tool: 'use_result', args: { status: 'complete' } } },
      { step: 3, decision: { kind: 'finish', reason: 'goal' } },
    ]);
    expect(made).toHaveLength(4);
    const [spawned] = spawns(await journal.read(run.id));
    expect(made[2]).toMatchObject({ decision: { args: { task_id: (spawned as { task: string }).task } } });
  });

  // The runtime asks a run's planner one question at a time, so "128 calls, one spawn" is, with us: of 128 runs that one
  // planner object decides for at once, each spawns once, and none takes another's spawn for its own.
  it('DS-13, CR-01 128 runs at once on one planner object spawn once each', async () => {
    const journal = memoryJournal();
    let resolved = 0;
    const runtime = open({
      planner: deterministic({
        steps: steps(() => {
          resolved += 1;
        }),
      }),
      tools: [useResult, lookUp],
      journal,
    });
    const ids = Array.from({ length: 128 }, (_, index) => `r${index}`);
    const runs = await Promise.all(
      ids.map((run, index) =>
        runtime.start('write', { identity: local(`user ${index % 8}`, { run, session: `s${index % 3}` }) }),
      ),
    );
    const results = await Promise.all(runs.map((run) => run.result()));
    for (const [index, result] of results.entries()) {
      expect(result).toMatchObject({ status: 'finished', payload: ids[index] });
    }
    for (const id of ids) {
      const entries = await journal.read(id);
      expect(spawns(entries)).toMatchObject([{ task: `${id}.0.0` }]);
      expect(moves(entries)).toHaveLength(4);
    }
    expect(resolved).toBe(128);
  });

  it('DS-14 goes on in another process, over SQLite, where the first one stopped: nothing is spawned again', async () => {
    const path = temporaryFile();
    const looking = gate();
    const never = make('look_up', async (_, { signal }) => {
      looking.open();
      await new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    });
    const first = openJournal(path);
    const stopped = runtimeOn(first, [useResult, never]);
    const run = await stopped.start('write', { identity: local('ana') });
    await looking.opened;
    await until(async () => moves(await first.read(run.id)).length === 2);
    await stopped.close();
    await first.close();

    const second = openJournal(path);
    let resolved = 0;
    const runtime = runtimeOn(second, [useResult, lookUp], {
      onResolved: () => {
        resolved += 1;
      },
    });
    runtime.work();
    expect(await runtime.run(run.id).result()).toMatchObject({ status: 'finished', payload: run.id });
    const entries = await second.read(run.id);
    expect(spawns(entries)).toHaveLength(1);
    expect(moves(entries)).toMatchObject(
      ['spawn_task', 'await_task', 'call_tool', 'finish'].map((kind) => ({ decision: { kind } })),
    );
    expect(resolved).toBe(1);
  });

  it('DS-11, DS-15 waits again when a message interrupts it, and hands over the tasks of a group that others started', async () => {
    const entered = gate();
    const held = gate();
    const slow = make('look_up', async () => {
      entered.open();
      await held.opened;
      return 'a page';
    });
    const journal = memoryJournal();
    const spawn = (query: string): Decision => ({
      kind: 'spawn_task',
      task: 'background',
      groupId: 'crew',
      spec: { description: query, query },
    });
    const runtime = open({
      planner: deterministic({
        steps: [
          ...taskSteps,
          { do: 'finish', reason: 'no_path', when: ({ query }) => query === 'give up' },
          ({ trajectory }) => [spawn(TASK), spawn('give up')][trajectory.count],
          {
            do: 'watch_group',
            groupId: 'crew',
            onResolved: (_, members) => ({ kind: 'finish', reason: 'goal', payload: members }),
          },
        ],
      }),
      tools: [slow],
      journal,
    });
    const run = await runtime.start('write', { identity: local('ana', { run: 'r1' }) });
    await entered.opened;
    await until(async () => (await run.state()).open?.decision.kind === 'await_task');
    await run.steer('USER_MESSAGE', { message: 'hurry' });
    await until(async () => moves(await journal.read(run.id)).length === 4);
    held.open();
    expect(await run.result()).toMatchObject({
      status: 'finished',
      payload: [
        { task_id: 'r1.0.0', status: 'complete', result: 'found' },
        { task_id: 'r1.1.0', status: 'failed', error: { code: 'no_path' } },
      ],
    });
    expect(moves(await journal.read(run.id)).map((entry) => (entry as Moved).decision.kind)).toEqual([
      'spawn_task',
      'spawn_task',
      'await_task',
      'await_task',
      'finish',
    ]);
  });

  it('SP-40, DS-08 a pause without any guard pauses once, and its answer is read back', async () => {
    const journal = memoryJournal();
    const runtime = open({
      planner: deterministic({
        steps: [
          { do: 'pause', reason: 'approval_required', payload: { cost: 3 } },
          { do: 'finish', reason: 'goal', payload: (run) => lastResult(run, '<pause>') ?? null },
        ],
      }),
      journal,
    });
    const run = await runtime.start('write', { identity: local('ana') });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await run.approve(undefined, { payload: { by: 'bo' } });
    expect(await run.result()).toMatchObject({
      status: 'finished',
      payload: { decision: 'approve', payload: { by: 'bo' } },
    });
    const entries = await journal.read(run.id);
    expect(entries.filter(({ kind }) => kind === 'paused')).toHaveLength(1);
  });

  it('DS-02 a step that throws fails the run with an error that names both steps', async () => {
    const runtime = open({
      planner: deterministic({
        steps: [
          { do: 'call', tool: 'echo', args: {}, once: true },
          {
            do: 'call',
            id: 'render',
            tool: 'echo',
            args: () => {
              throw new Error('no page');
            },
          },
        ],
      }),
      tools: [echo],
      journal: memoryJournal(),
    });
    const run = await runtime.start('write', { identity: local('ana') });
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: {
        code: 'deterministic_step',
        message: 'steps[1] (render) failed: no page',
        data: { step: 1, index: 1, id: 'render' },
      },
    });
  });

  it('DS-04 a run for which no step claims ends with no_path', async () => {
    const runtime = open({
      planner: deterministic({ steps: [() => undefined] }),
      journal: memoryJournal(),
    });
    const run = await runtime.start('write', { identity: local('ana', { run: 'r1' }) });
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'no_path',
      metadata: { deterministic: 'no_step_matched', run_id: 'r1' },
    });
  });
});
