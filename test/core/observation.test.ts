import { describe, expect, it } from 'vitest';
import {
  type Branch,
  type CallParallel,
  type CallRecord,
  type Decision,
  type Join,
  type Outcome,
  observe,
  observeBranches,
  type Step,
  stepError,
} from '#core';

const value = (of: number): Outcome => ({ kind: 'value', value: of });
const error = (code: string, data?: { setUp: true }): Outcome => ({
  kind: 'error',
  error: { code, message: `${code}!`, ...(data === undefined ? {} : { data }) },
});

/** A step whose branches ended in the order of `seqs`. */
function step(decision: Decision, outcomes: readonly Outcome[], seqs = outcomes.map((_, index) => index)): Step {
  const calls = outcomes.map(
    (outcome, index): CallRecord => ({ outcome, endedAt: 0, attempts: 1, seq: seqs[index] ?? 0, startedAt: 0 }),
  );
  const failed = stepError(decision, calls);
  return { index: 0, decision, calls, startedAt: 0, endedAt: 0, ...(failed === undefined ? {} : { error: failed }) };
}
function parallel(count: number, join?: Join): CallParallel {
  const branches = Array.from(
    { length: count },
    (_, index): Branch => ({ tool: `t${index}`, args: {}, callId: `c${index}` }),
  );
  return { kind: 'call_parallel', branches, ...(join === undefined ? {} : { join }) };
}
const one: Decision = { kind: 'call_tool', tool: 't', args: {}, callId: 'c' };

describe('what the planner is told of a step', () => {
  it('a call gives its value, or its error', () => {
    expect(observe(step(one, [value(7)]))).toBe(7);
    expect(observe(step(one, [error('tool_failed')]))).toEqual({
      error: { code: 'tool_failed', message: 'tool_failed!' },
    });
  });

  it('a pause gives its verdict and payload', () => {
    const pause: Decision = { kind: 'request_pause', reason: 'await_input' };
    const verdict: Outcome = { kind: 'verdict', verdict: 'approve', payload: { note: 'fine' } };
    expect(observe(step(pause, [verdict]))).toEqual({ decision: 'approve', payload: { note: 'fine' } });
    expect(observe(step(pause, [{ kind: 'verdict', verdict: 'timeout' }]))).toEqual({
      decision: 'timeout',
      payload: null,
    });
  });

  it.each<[Join | undefined]>([
    [undefined],
    [{ kind: 'all' }],
    [{ kind: '' } as never],
  ])('the join %j gives all branches in index order, each with a value or an error', (join) => {
    const decision = parallel(3, join);
    expect(observe(step(decision, [value(0), error('tool_failed'), value(2)], [3, 1, 2]))).toEqual([
      { call_id: 'c0', tool: 't0', index: 0, value: 0 },
      { call_id: 'c1', tool: 't1', index: 1, error: { code: 'tool_failed', message: 'tool_failed!' } },
      { call_id: 'c2', tool: 't2', index: 2, value: 2 },
    ]);
  });

  it('first_success gives the success that came first, not the first by index', () => {
    const decided = step(parallel(3, { kind: 'first_success' }), [value(0), error('x'), value(2)], [9, 1, 2]);
    expect(observe(decided)).toEqual([{ call_id: 'c2', tool: 't2', index: 2, value: 2 }]);
    expect(decided.error).toBeUndefined();
  });

  it('n gives the first n successes in the order they came', () => {
    const decided = step(parallel(4, { kind: 'n', n: 2 }), [value(0), value(1), error('x'), value(3)], [9, 5, 1, 2]);
    expect(observe(decided)).toMatchObject([{ index: 3 }, { index: 1 }]);
  });

  it('keyed gives an object by the keys, with the error in place of a value', () => {
    const keyed = parallel(2, { kind: 'keyed', keys: ['left', '__proto__'] });
    expect(JSON.stringify(observe(step(keyed, [error('x'), value(1)])))).toBe(
      '{"left":{"error":{"code":"x","message":"x!"}},"__proto__":1}',
    );
  });

  it('every call id gets exactly one answer, whatever the join', () => {
    for (const join of [
      { kind: 'first_success' },
      { kind: 'n', n: 1 },
      { kind: 'keyed', keys: ['a', 'b', 'c'] },
    ] as Join[]) {
      const answers = observeBranches(step(parallel(3, join), [value(0), error('cancelled'), error('x')]));
      expect(answers.map(({ call_id }) => call_id)).toEqual(['c0', 'c1', 'c2']);
    }
    expect(observeBranches(step(one, [value(1)]))).toEqual([{ call_id: 'c', tool: 't', index: 0, value: 1 }]);
  });

  it('a decision that did not pass gives its error, whatever its shape', () => {
    for (const decision of [parallel(2), { kind: 'call_parallel', branches: 5 }, { kind: 'dance' }] as Decision[]) {
      const refused: Step = { ...step(one, []), decision, error: { code: 'invalid_decision', message: 'm' } };
      expect(observe(refused)).toEqual({ error: { code: 'invalid_decision', message: 'm' } });
      expect(observeBranches(refused)).toEqual([]);
    }
  });
});

describe('the error of a step', () => {
  it('first_success without a success names every failure', () => {
    const decided = step(parallel(2, { kind: 'first_success' }), [error('a'), error('b')]);
    expect(decided.error).toEqual({
      code: 'parallel_all_failed',
      message: 'None of the 2 branches succeeded.',
      data: {
        failures: [
          { index: 0, tool: 't0', code: 'a', message: 'a!' },
          { index: 1, tool: 't1', code: 'b', message: 'b!' },
        ],
      },
    });
  });

  it('n that was missed says how many were reached', () => {
    const decided = step(parallel(3, { kind: 'n', n: 2 }), [value(0), error('a'), error('b')]);
    expect(decided.error).toMatchObject({ code: 'parallel_threshold_unmet', data: { wanted: 2, reached: 1 } });
  });

  it('a refused set-up is the error of the step, but not with per_branch', () => {
    const refused: CallRecord[] = [
      {
        outcome: { kind: 'skipped', error: { code: 'branch_not_started', message: 'm' } },
        endedAt: 0,
        attempts: 0,
        seq: 1,
      },
      { outcome: error('parallel_branch_invalid_args', { setUp: true }), endedAt: 0, attempts: 0, seq: 2 },
    ];
    expect(stepError(parallel(2), refused)?.code).toBe('parallel_branch_invalid_args');
    expect(stepError({ ...parallel(2), onInvalid: 'per_branch' }, refused)).toBeUndefined();
  });

  it('RA-17 a refused branch is the error of the step, but not with per_branch: there it is one answer of several', () => {
    const refused: CallRecord[] = [
      { outcome: value(1), endedAt: 0, attempts: 1, seq: 1, startedAt: 0 },
      { outcome: error('tool_not_found'), endedAt: 0, attempts: 0, seq: 2 },
    ];
    const decision: CallParallel = { ...parallel(2), onInvalid: 'per_branch' };
    expect(stepError(decision, refused)).toBeUndefined();
    const decided: Step = { index: 0, decision, calls: refused, startedAt: 0, endedAt: 0 };
    expect(observeBranches(decided)).toEqual([
      { call_id: 'c0', tool: 't0', index: 0, value: 1 },
      { call_id: 'c1', tool: 't1', index: 1, error: { code: 'tool_not_found', message: 'tool_not_found!' } },
    ]);
  });

  it('a tool cannot make its error look like a refused set-up: it was started', () => {
    expect(stepError(parallel(1), step(parallel(1), [error('x', { setUp: true })]).calls)).toBeUndefined();
  });

  it('all and keyed have none: each failure is in its place', () => {
    expect(step(parallel(2), [error('a'), error('b')]).error).toBeUndefined();
    expect(step(parallel(1, { kind: 'keyed', keys: ['k'] }), [error('a')]).error).toBeUndefined();
  });
});
