import { describe, expect, it } from 'vitest';
import type { Decision, Entry, EntryBody, Json, Outcome } from '#core';
import { compareRuns, foldEntries, type RunState, sameDecision } from '#state';

interface Taken {
  readonly decision: Decision;
  readonly outcomes?: readonly Outcome[];
  readonly costMicroUsd?: number;
  readonly rejected?: { readonly code: string; readonly message: string };
}

const value = (json: Json): Outcome => ({ kind: 'value', value: json });
const failure = (code: string): Outcome => ({ kind: 'error', error: { code, message: 'm' } });
const call = (tool: string, args: Json = {}, callId?: string): Decision => ({
  kind: 'call_tool',
  tool,
  args,
  ...(callId === undefined ? {} : { callId }),
});
const took = (decision: Decision, ...outcomes: readonly Outcome[]): Taken => ({ decision, outcomes });
const GOAL: EntryBody = { kind: 'finished', reason: 'goal', payload: 'done', metadata: { run: 'its own' } };

/** A run of these steps, each with the same usage. */
function runOf(run: string, taken: readonly Taken[], ending?: EntryBody): RunState {
  const identity = { tenant: 't', user: 'u', session: 's', run };
  const bodies: EntryBody[] = [
    { kind: 'started', identity, query: 'q', agent: `agent of ${run}`, limits: {}, scopes: [] },
  ];
  for (const [step, { decision, outcomes = [], costMicroUsd = 0, rejected }] of taken.entries()) {
    const usage = { inputTokens: 10, outputTokens: 2, costMicroUsd: 3 };
    bodies.push({ kind: 'moved', step, decision, startedAt: 0, usage, ...(rejected && { rejected }) });
    for (const [index, outcome] of outcomes.entries()) {
      bodies.push({ kind: 'call_ended', step, call: index, outcome, attempts: 1, costMicroUsd });
    }
  }
  if (ending !== undefined) bodies.push(ending);
  return foldEntries(bodies.map((body, index): Entry => ({ ...body, seq: index + 1, at: index })));
}

describe('compareRuns', () => {
  it('finds nothing between a run and another that did the same under other call ids', () => {
    const a = runOf('a', [took(call('x', { n: 1, m: 2 }, 'call_1'), value(1))], GOAL);
    const b = runOf('b', [took(call('x', { m: 2, n: 1 }, 'call_9'), value(1))], {
      ...GOAL,
      metadata: { run: 'of b' },
    } as EntryBody);
    const compared = compareRuns(a, b);
    expect(compared.steps.map(({ verdict }) => verdict)).toEqual(['same']);
    expect(compared).toMatchObject({ sameEnding: true, a: { run: 'a' }, b: { run: 'b', agent: 'agent of b' } });
    expect(compared).not.toHaveProperty('firstDivergence');
  });

  it('says what of a step has changed, and names the first', () => {
    const shared = took(call('x'), value(1));
    const a = runOf('a', [shared, took(call('y'), value(1)), took(call('z'), value(1))], GOAL);
    const b = runOf('b', [shared, took(call('y'), failure('late')), took(call('w'), value(1))], GOAL);
    const compared = compareRuns(a, b);
    expect(compared.steps.map(({ verdict, changes }) => [verdict, changes])).toEqual([
      ['same', []],
      ['changed', ['outcome']],
      ['changed', ['decision']],
    ]);
    expect(compared.firstDivergence).toBe(1);
    expect(compared.steps[1]).toMatchObject({
      a: { kind: 'call_tool', tools: ['y'], outcomes: [{ kind: 'value' }] },
      b: { outcomes: [{ kind: 'error', error: { code: 'late' } }] },
    });
  });

  it('pairs a step that only one run has with nothing', () => {
    const one = took(call('x'), value(1));
    const longer = runOf('b', [one, one]);
    expect(compareRuns(runOf('a', [one]), longer)).toMatchObject({
      firstDivergence: 1,
      steps: [{ verdict: 'same' }, { index: 1, verdict: 'only_b', b: { tools: ['x'] } }],
    });
    const reversed = compareRuns(longer, runOf('a', [one]));
    expect(reversed.steps[1]).toMatchObject({ verdict: 'only_a' });
    expect(reversed.steps[1]).not.toHaveProperty('b');
  });

  it('tells runs apart that differ only in how they ended', () => {
    const one = took(call('x'), value(1));
    const failed: EntryBody = { kind: 'failed', error: { code: 'c', message: 'm' } };
    for (const ending of [undefined, failed, { ...GOAL, payload: 'else' } as EntryBody]) {
      expect(compareRuns(runOf('a', [one], GOAL), runOf('b', [one], ending))).toMatchObject({
        sameEnding: false,
        firstDivergence: 1,
      });
    }
  });

  it('gives what each step and each run has cost', () => {
    const priced: Taken = { ...took(call('x'), value(1)), costMicroUsd: 100 };
    const compared = compareRuns(runOf('a', [priced, priced]), runOf('b', [priced]));
    expect(compared.steps[0]?.a).toMatchObject({ inputTokens: 10, outputTokens: 2, costMicroUsd: 3 });
    expect(compared.a.totals).toMatchObject({ steps: 2, calls: 2, inputTokens: 20, costMicroUsd: 206 });
    expect(compared.b.totals).toMatchObject({ steps: 1, calls: 1, inputTokens: 10, costMicroUsd: 103 });
  });

  it('takes a task of one run for that of the other, when they were spawned at the same place', () => {
    const awaits = (task: string): Taken =>
      took(
        { kind: 'await_task', taskId: task },
        value({ task_id: task, group_id: `group:${task}`, status: 'complete' }),
      );
    const verdict = (a: string, b: string): unknown =>
      compareRuns(runOf('a', [awaits(a)]), runOf('b', [awaits(b)])).steps[0]?.verdict;
    expect(verdict('a.0.0', 'b.0.0')).toBe('same');
    // A fork knows the tasks of its first steps by the names that they have in the other run.
    expect(verdict('a.0.0', 'a.0.0')).toBe('same');
    expect(verdict('a.0.0.2.1', 'b.0.0.2.1')).toBe('same');
    expect(verdict('a.0.0', 'b.0.1')).toBe('changed');
    // Any other text is what it is.
    expect(verdict('a.b', 'b.b')).toBe('changed');
    expect(verdict('a', 'b')).toBe('changed');
  });

  it('shows decisions that did not pass, whatever shape they have', () => {
    const rejected = { code: 'invalid_decision', message: 'm' };
    const odd = (decision: unknown): Taken => ({ decision: decision as Decision, rejected });
    const compared = compareRuns(
      runOf('a', [
        odd({ kind: 'call_parallel', branches: 5 }),
        odd({ kind: 'call_parallel', branches: [null, { tool: '\u001b[2Jx' }] }),
      ]),
      runOf('b', [odd({ kind: 'call_parallel', branches: 6 }), odd({ kind: 'no_such' })]),
    );
    expect(compared.steps.map(({ changes }) => changes)).toEqual([['decision'], ['decision']]);
    expect(compared.steps[1]?.a).toMatchObject({ tools: [' [2Jx'], error: 'invalid_decision', outcomes: [] });
  });
});

describe('sameDecision', () => {
  const pair = (one: string, other: string, id: string): Decision => ({
    kind: 'call_parallel',
    branches: [
      { tool: one, args: {}, callId: `${id}1` },
      { tool: other, args: {}, callId: `${id}2` },
    ],
  });

  it('looks at everything but the ids of calls', () => {
    expect(sameDecision(call('x', {}, 'a'), call('x', {}, 'b'))).toBe(true);
    expect(sameDecision(call('x', {}, 'a'), call('x', {}))).toBe(true);
    expect(sameDecision(call('x', { callId: 'a' }), call('x', { callId: 'b' }))).toBe(false);
    expect(sameDecision(pair('x', 'y', 'a'), pair('x', 'y', 'b'))).toBe(true);
    expect(sameDecision(pair('x', 'y', 'a'), pair('y', 'x', 'a'))).toBe(false);
  });
});
