/** Spawning and awaiting as calls. */
import { describe, expect, it } from 'vitest';
import {
  type Branch,
  type Decision,
  isTaskTool,
  type Json,
  PilotageError,
  taskCall,
  taskCallAt,
  taskCallsOf,
  validateDecision,
} from '#core';

const spec = { description: 'd', query: 'q' };
const spawn: Branch = { tool: '_spawn_task', args: { kind: 'foreground', spec } };
const wait: Branch = { tool: '_await_task', args: { task_id: 't', group_id: 'g', timeout_ms: 5 }, callId: 'c' };
const parallel = (...branches: readonly Branch[]): Decision => ({ kind: 'call_parallel', branches });

describe('a task call', () => {
  it('stands for the decision with the same words, in the names of decisions', () => {
    const args = {
      kind: 'foreground',
      group_id: 'g',
      spec: {
        ...spec,
        priority: 3,
        seal: true,
        quorum: 2,
        retain_turn: false,
        fail_fast: true,
        on_cancel: 'isolate',
        limits: { steps: 4 },
      },
    };
    expect(taskCall('_spawn_task', args, 'c')).toEqual({
      kind: 'spawn_task',
      task: 'foreground',
      groupId: 'g',
      callId: 'c',
      spec: {
        ...spec,
        priority: 3,
        seal: true,
        quorum: 2,
        retainTurn: false,
        failFast: true,
        onCancel: 'isolate',
        limits: { steps: 4 },
      },
    });
    expect(taskCall('_await_task', wait.args, 'c')).toEqual({
      kind: 'await_task',
      taskId: 't',
      groupId: 'g',
      timeoutMs: 5,
      callId: 'c',
    });
  });

  it('spawns in the background unless it says otherwise, and leaves out what was not said', () => {
    expect(taskCall('_spawn_task', { spec })).toEqual({ kind: 'spawn_task', task: 'background', spec });
    expect(taskCall('_await_task', { task_id: 't' })).toEqual({ kind: 'await_task', taskId: 't' });
    expect(Object.keys(taskCall('_await_task', { task_id: 't', other: 1 }))).toEqual(['kind', 'taskId']);
  });

  it('is found in a decision by its place; tools are none', () => {
    const tool: Branch = { tool: 't', args: {} };
    expect(taskCallsOf(parallel(tool, spawn, tool, wait))).toEqual([1, 3]);
    expect(taskCallAt(parallel(tool, spawn), 0)).toBeUndefined();
    expect(taskCallAt(parallel(tool, spawn), 1)).toMatchObject({ kind: 'spawn_task', task: 'foreground' });
    expect(taskCallAt(parallel(tool), 9)).toBeUndefined();
    const alone: Decision = { kind: 'await_task', taskId: 't' };
    expect([taskCallsOf(alone), taskCallAt(alone, 0)]).toEqual([[0], alone]);
    for (const other of [
      { kind: 'finish', reason: 'goal' },
      { kind: 'call_tool', tool: '_spawn_task', args: {} },
    ] as const) {
      expect(taskCallsOf(other)).toEqual([]);
    }
    expect(['_spawn_task', '_await_task', 't', '_finish'].map(isTaskTool)).toEqual([true, true, false, false]);
  });
});

describe('a task call as a branch', () => {
  it('passes with arguments that fit, and with those that are not known yet', () => {
    expect(() => validateDecision(parallel(spawn, wait))).not.toThrow();
    const later = { tool: '_await_task', args: { task_id: { $from: 'a', path: '/task_id' } } };
    expect(() => validateDecision(parallel({ ...spawn, id: 'a' }, later))).not.toThrow();
  });

  it.each<[string, string, Json, string]>([
    ['no spec', '_spawn_task', {}, 'no spec'],
    ['a spec that is text', '_spawn_task', { spec: 'q' }, 'no spec'],
    ['no arguments', '_spawn_task', null, 'no spec'],
    ['no query', '_spawn_task', { spec: { description: 'd' } }, 'spec.query'],
    ['a kind of its own', '_spawn_task', { kind: 'daemon', spec }, '"daemon"'],
    ['a priority of 1001', '_spawn_task', { spec: { ...spec, priority: 1_001 } }, 'spec.priority'],
    ['a cancel policy of its own', '_spawn_task', { spec: { ...spec, on_cancel: 'never' } }, 'spec.onCancel'],
    ['a quorum of 0', '_spawn_task', { group_id: 'g', spec: { ...spec, quorum: 0 } }, 'spec.quorum'],
    ['a quorum without a group', '_spawn_task', { spec: { ...spec, quorum: 1 } }, 'groupId'],
    ['limits below nothing', '_spawn_task', { spec: { ...spec, limits: { steps: -1 } } }, 'limits.steps'],
    ['limits that are a list', '_spawn_task', { spec: { ...spec, limits: [] } }, 'spec.limits'],
    ['a group id that is a number', '_spawn_task', { group_id: 4, spec }, 'groupId'],
    ['no task', '_await_task', {}, 'taskId'],
    ['a task that is a number', '_await_task', { task_id: 4 }, 'taskId'],
    ['a time limit below nothing', '_await_task', { task_id: 't', timeout_ms: -1 }, 'timeoutMs'],
  ])('does not pass with %s, and the decision says why', (_, tool, args, words) => {
    let thrown: unknown;
    try {
      validateDecision(parallel({ tool: 't', args: {} }, { tool, args }));
    } catch (error) {
      thrown = error;
    }
    expect(PilotageError.is(thrown, 'invalid_decision')).toBe(true);
    expect((thrown as Error).message).toContain(words);
  });
});
