import { describe, expect, it } from 'vitest';
import {
  type Decision,
  type GroupStatus,
  type GroupView,
  local,
  type Move,
  type Outcome,
  type Planner,
  type RunView,
  type Step,
  type TaskEnd,
  type TaskView,
} from '#core';
import {
  type DeterministicStep,
  deterministic,
  type GroupMember,
  type SpawnAndAwaitStep,
} from '#planners/deterministic';
import { runView } from '#testing';
import { ask } from '../kit/ask.ts';
import { failure, stepOfMove, value } from '../kit/steps.ts';

const identity = local('ana', { run: 'r1' });
const usage = { steps: 1, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 };
const DONE: DeterministicStep = { do: 'finish', reason: 'goal' };

function task(id: string, group: string, end?: Omit<TaskEnd, 'task' | 'usage'>): TaskView {
  const made = { id, group, kind: 'background', description: 'd', step: 0, pauses: [] } as const;
  return end === undefined ? made : { ...made, end: { task: id, usage, ...end } };
}

const group = (id: string, status: GroupStatus, ...members: TaskView[]): GroupView => ({ id, status, members });

/** Uses each member's result, and notes what it was given. */
function using(): { step: SpawnAndAwaitStep; given: (readonly GroupMember[])[] } {
  const given: (readonly GroupMember[])[] = [];
  const step: SpawnAndAwaitStep = {
    do: 'spawn_and_await',
    id: 'research',
    spec: ({ goal }) => ({ description: 'Research', query: goal }),
    onResolved: (_, members) => {
      given.push(members);
      return { kind: 'call_tool', tool: 'use_result', args: members };
    },
  };
  return { step, given };
}

const spawned = (move: Move, outcome: Outcome = value({ task_id: 't1', status: 'spawned' })): Step =>
  stepOfMove(0, move, [outcome]);

const at = (steps: readonly Step[], ...groups: GroupView[]): RunView =>
  runView({ identity, steps, groups, query: 'why' });

describe('spawn_and_await', () => {
  it('DS-09, DS-10, PC-24 first decides to spawn, in a group of its own, and starts nothing itself', async () => {
    const { step } = using();
    expect(await ask(deterministic({ steps: [step, DONE] }), at([]))).toEqual({
      decision: {
        kind: 'spawn_task',
        task: 'background',
        groupId: 'research',
        spec: { description: 'Research', query: 'why', retainTurn: false, seal: true },
      },
      provenance: { step: 'research' },
    });
    const { id: _, ...unnamed } = step;
    const named: SpawnAndAwaitStep = {
      ...unnamed,
      groupId: 'mine',
      task: 'foreground',
      spec: { description: 'd', query: 'q', seal: false, quorum: 1 },
    };
    expect((await ask(deterministic({ steps: [unnamed] }), at([]))).provenance).toEqual({ step: '<spawn-and-await>' });
    expect((await ask(deterministic({ steps: [named] }), at([]))).decision).toMatchObject({
      groupId: 'mine',
      task: 'foreground',
      spec: { seal: false, quorum: 1, retainTurn: false },
    });
  });

  it('DS-10, DS-11 waits while the group is open, again after each interruption', async () => {
    const { step, given } = using();
    const planner = deterministic({ steps: [step, DONE] });
    const spawn = spawned(await ask(planner, at([])));
    const open = group('research', 'open', task('t1', 'research'));
    const wait = await ask(planner, at([spawn], open));
    expect(wait).toEqual({
      decision: { kind: 'await_task', taskId: 't1', groupId: 'research' },
      provenance: { step: 'research' },
    });
    const interrupted = stepOfMove(1, wait, [value({ task_id: 't1', status: 'running' })]);
    expect(await ask(planner, at([spawn, interrupted], { ...open, status: 'sealed' }))).toEqual(wait);
    expect(given).toEqual([]);
  });

  it('DS-11, DS-17 hands the members over once, and is passed over from then on', async () => {
    const { step, given } = using();
    const planner = deterministic({ steps: [step, DONE] });
    const spawn = spawned(await ask(planner, at([])));
    const error = { code: 'no_path', message: 'No way.', data: { secret: 1 } };
    const ended = group(
      'research',
      'completed',
      task('t1', 'research', { status: 'complete', result: { n: 1 } }),
      task('t2', 'research', { status: 'failed', error }),
      task('t3', 'research', { status: 'cancelled' }),
      task('t4', 'research'),
    );
    const members = [
      { task_id: 't1', status: 'complete', result: { n: 1 } },
      { task_id: 't2', status: 'failed', error: { code: 'no_path', message: 'No way.' } },
      { task_id: 't3', status: 'cancelled' },
      { task_id: 't4', status: 'running' },
    ];
    const resolved = await ask(planner, at([spawn], ended));
    expect(resolved).toEqual({
      decision: { kind: 'call_tool', tool: 'use_result', args: members },
      provenance: { step: 'research', resolved: true },
    });
    expect(given).toEqual([members]);
    const used = stepOfMove(1, resolved);
    expect((await ask(planner, at([spawn, used], ended))).decision.kind).toBe('finish');
    expect(given).toHaveLength(1);
  });

  it('DS-11 is passed over also when what it resolved to was itself a spawn that came to nothing', async () => {
    const { step } = using();
    const again: Decision = { kind: 'spawn_task', task: 'background', spec: { description: 'd', query: 'q' } };
    const planner = deterministic({ steps: [{ ...step, onResolved: () => again }, DONE] });
    const spawn = spawned(await ask(planner, at([])));
    const ended = group('research', 'completed', task('t1', 'research', { status: 'complete' }));
    const second = stepOfMove(1, await ask(planner, at([spawn], ended)), [failure('task_limit', 'Too many.')]);
    expect(second.decision).toEqual(again);
    expect((await ask(planner, at([spawn, second], ended))).decision.kind).toBe('finish');
  });

  it('DS-13, DS-19 128 questions over one trajectory have one answer: the state is in the trajectory alone', async () => {
    const { step } = using();
    const planner = deterministic({ steps: [step] });
    const all = async (view: RunView): Promise<Set<string>> => {
      const moves = await Promise.all(Array.from({ length: 128 }, () => ask(planner, view)));
      return new Set(moves.map((move) => JSON.stringify(move)));
    };
    expect([...(await all(at([])))]).toEqual([expect.stringContaining('spawn_task')]);
    const spawn = spawned(await ask(planner, at([])));
    // What was answered above is no spawn yet; only what the run has recorded is.
    const waiting = at([spawn], group('research', 'open', task('t1', 'research')));
    expect([...(await all(waiting))]).toEqual([expect.stringContaining('await_task')]);
    expect([...(await all(at([])))]).toEqual([expect.stringContaining('spawn_task')]);
  });

  it('DS-14 another planner object, as after a restart, goes on in the middle', async () => {
    const made = (): Planner => deterministic({ steps: [using().step, DONE] });
    const spawn = spawned(await ask(made(), at([])));
    const ended = group('research', 'completed', task('t1', 'research', { status: 'complete' }));
    const resolved = await ask(made(), at([spawn], ended));
    expect(resolved.decision).toMatchObject({ tool: 'use_result' });
    expect((await ask(made(), at([spawn, stepOfMove(1, resolved)], ended))).decision.kind).toBe('finish');
  });

  it.each([
    ['task_limit', 'completed' as const],
    ['group_ended', 'completed' as const],
    ['tasks_unavailable', undefined],
  ])('DS-16 a spawn that came to %s is a step error, whatever the group is', async (code, status) => {
    const { step, given } = using();
    const planner = deterministic({ steps: [step] });
    const spawn = spawned(await ask(planner, at([])), failure(code, 'It was refused.'));
    const groups =
      status === undefined ? [] : [group('research', status, task('t0', 'research', { status: 'complete' }))];
    await expect(ask(planner, at([spawn], ...groups))).rejects.toMatchObject({
      code: 'deterministic_step',
      message: `steps[0] (research) failed: the task was not started, ${code}: It was refused.`,
    });
    expect(given).toEqual([]);
  });

  it.each([
    'task_not_found',
    'await_cycle',
    'await_timeout',
  ])('DS-16 a wait that came to %s is a step error while the group is open, not a wait for ever', async (code) => {
    const { step } = using();
    const planner = deterministic({ steps: [step] });
    const spawn = spawned(await ask(planner, at([])));
    const open = group('research', 'open', task('t1', 'research'));
    const wait = stepOfMove(1, await ask(planner, at([spawn], open)), [failure(code, 'Why.')]);
    await expect(ask(planner, at([spawn, wait], open))).rejects.toMatchObject({
      code: 'deterministic_step',
      message: `steps[0] (research) failed: waiting for the group "research" failed, ${code}: Why.`,
      data: { index: 0, id: 'research' },
    });
    // The group has ended in the meantime: nothing is to be waited for.
    const ended = group('research', 'completed', task('t1', 'research', { status: 'complete' }));
    expect((await ask(planner, at([spawn, wait], ended))).decision).toMatchObject({ tool: 'use_result' });
  });

  it.each<[string, DeterministicStep]>([
    ['DS-02 onResolved throws', { ...using().step, onResolved: () => Promise.reject(new Error('boom')) }],
    ['DS-03 onResolved decides nothing', { ...using().step, onResolved: (() => undefined) as never }],
  ])('%s: a step error', async (_what, step) => {
    const planner = deterministic({ steps: [step] });
    const spawn = spawned(await ask(planner, at([])));
    const ended = group('research', 'completed', task('t1', 'research', { status: 'complete' }));
    await expect(ask(planner, at([spawn], ended))).rejects.toMatchObject({ code: 'deterministic_step' });
  });
});

describe('watch_group', () => {
  const given: (readonly GroupMember[])[] = [];
  const watch: DeterministicStep = {
    do: 'watch_group',
    groupId: 'crew',
    onResolved: (_, members) => {
      given.push(members);
      return { kind: 'call_tool', tool: 'use_result', args: members.length };
    },
  };
  const planner = deterministic({ steps: [watch, DONE] });

  it('DS-15 spawns nothing: waits for a member of the open group, hands over once, is passed over', async () => {
    const first = task('t1', 'crew', { status: 'complete', result: 1 });
    const open = group('crew', 'open', first, task('t2', 'crew'));
    const wait = await ask(planner, at([], open));
    expect(wait).toEqual({
      decision: { kind: 'await_task', taskId: 't2', groupId: 'crew' },
      provenance: { step: '<watch-group>' },
    });
    expect((await ask(planner, at([], group('crew', 'open', first)))).decision).toMatchObject({ taskId: 't1' });

    const ended = group('crew', 'cancelled', first, task('t2', 'crew', { status: 'cancelled' }));
    const waited = stepOfMove(0, wait, [value({ group_id: 'crew', status: 'cancelled', members: [] })]);
    const resolved = await ask(planner, at([waited], ended));
    expect(resolved).toMatchObject({ decision: { args: 2 }, provenance: { step: '<watch-group>', resolved: true } });
    expect((await ask(planner, at([waited, stepOfMove(1, resolved)], ended))).decision.kind).toBe('finish');
    expect(given).toHaveLength(1);
  });

  it('DS-17 a group that ended without members is handed over as []', async () => {
    const { decision } = await ask(planner, at([], group('crew', 'completed')));
    expect(decision).toMatchObject({ tool: 'use_result', args: 0 });
    expect(given.at(-1)).toEqual([]);
  });

  it('DS-15, DS-16 an unknown group, or an open one that can never end, is a step error', async () => {
    await expect(ask(planner, at([]))).rejects.toMatchObject({
      code: 'deterministic_step',
      message: expect.stringContaining('the run has no group "crew"'),
    });
    await expect(ask(planner, at([], group('crew', 'open')))).rejects.toMatchObject({
      code: 'deterministic_step',
      message: expect.stringContaining('has no tasks'),
    });
  });
});
