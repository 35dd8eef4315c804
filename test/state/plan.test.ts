import { describe, expect, it } from 'vitest';
import {
  type Branch,
  type CallParallel,
  type Decision,
  type EntryBody,
  type ErrorData,
  type Json,
  local,
  type Outcome,
} from '#core';
import {
  foldEntries,
  type PlanNodeStatus,
  type PlanView,
  planOf,
  planOfDecision,
  planOfStep,
  type RunState,
} from '#state';

const started: EntryBody = {
  kind: 'started',
  identity: { ...local('ana'), run: 'run_1' },
  query: 'q',
  agent: 'plans',
  limits: {},
  scopes: [],
};

function stateAfter(...bodies: readonly EntryBody[]): RunState {
  return foldEntries([started, ...bodies].map((body, index) => ({ ...body, seq: index + 1, at: 100 + index })));
}

const node = (id: string, after: readonly string[] = [], more: Partial<Branch> = {}): Branch => ({
  id,
  tool: `does-${id}`,
  args: {},
  after,
  ...more,
});
const planned = (...branches: Branch[]): CallParallel => ({ kind: 'call_parallel', plan: 'p', branches });
const moved = (decision: Decision, step = 0): EntryBody => ({ kind: 'moved', step, decision, startedAt: 1 });
const ended = (call: number, outcome: Outcome, step = 0): EntryBody => ({
  kind: 'call_ended',
  step,
  call,
  outcome,
  attempts: 1,
});
const value = (call: number, json: Json = 1, step = 0): EntryBody => ended(call, { kind: 'value', value: json }, step);
const error: ErrorData = { code: 'tool_failed', message: 'no' };
const pause: EntryBody = { kind: 'paused', token: 'pause_1', reason: 'approval_required', step: 0, call: 1 };

function planIn(...bodies: readonly EntryBody[]): PlanView {
  const plan = planOf(stateAfter(...bodies));
  if (plan === undefined) throw new Error('There is no plan.');
  return plan;
}

function statuses({ nodes }: PlanView): Record<string, PlanNodeStatus> {
  return Object.fromEntries(nodes.map(({ id, status }) => [id, status]));
}

/** a before b and c, which are both before d. */
const diamond = planned(node('a'), node('b', ['a']), node('c', ['a']), node('d', ['b', 'c']));

describe('the plan of a run', () => {
  it('is none when no step carries one out', () => {
    expect(planOf(stateAfter())).toBeUndefined();
    const calls: Decision = { kind: 'call_parallel', branches: [node('a')] };
    expect(planOf(stateAfter(moved(calls)))).toBeUndefined();
    expect(planOf(stateAfter(moved(calls), value(0)))).toBeUndefined();
    const refused: EntryBody = { kind: 'moved', step: 0, decision: diamond, startedAt: 1, rejected: error };
    expect(planOf(stateAfter(refused))).toBeUndefined();
  });

  it('AG-41 has a status for each node, from the entries alone', () => {
    const plan = planIn(moved(diamond));
    expect(plan).toMatchObject({ plan: 'p', step: 0, growing: false });
    expect(statuses(plan)).toEqual({ a: 'ready', b: 'waiting', c: 'waiting', d: 'waiting' });
    const open = [moved(diamond), value(0)];
    expect(statuses(planIn(...open))).toEqual({ a: 'done', b: 'ready', c: 'ready', d: 'waiting' });
    const began: EntryBody = { kind: 'call_began', step: 0, call: 2 };
    expect(statuses(planIn(...open, pause, began))).toEqual({ a: 'done', b: 'paused', c: 'running', d: 'waiting' });
    const approved: EntryBody = { kind: 'resumed', token: 'pause_1', verdict: 'approve', args: { n: 2 } };
    const answered = planIn(...open, pause, approved);
    expect(statuses(answered)).toMatchObject({ b: 'ready' });
    expect(answered.nodes[1]?.args).toEqual({ n: 2 });
  });

  it('AG-42 tells what ended without a value, and why, also when the step is closed', () => {
    const skipped: ErrorData = {
      code: 'branch_not_started',
      message: 'The branch needs branch 1.',
      data: { branch: 1 },
    };
    const entries = [
      moved(diamond),
      value(0),
      ended(1, { kind: 'error', error }),
      ended(3, { kind: 'skipped', error: skipped }),
    ];
    const open = planIn(...entries);
    expect(statuses(open)).toEqual({ a: 'done', b: 'failed', c: 'ready', d: 'skipped' });
    expect(open.nodes[1]?.error).toEqual(error);
    const state = stateAfter(...entries, ended(2, { kind: 'unknown', error }));
    const closed = planOf(state);
    expect(closed && statuses(closed)).toEqual({ a: 'done', b: 'failed', c: 'unknown', d: 'skipped' });
    const [step] = state.steps;
    expect(step && planOfStep(step)).toEqual(closed);
  });

  it('shows the open plan, else the last one', () => {
    const next = { ...planned(node('x')), plan: 'second' };
    const first = [moved(planned(node('a'))), value(0)];
    expect(planIn(...first)).toMatchObject({ plan: 'p', step: 0 });
    const between: EntryBody[] = [...first, moved({ kind: 'call_tool', tool: 't', args: {} }, 1)];
    expect(planIn(...between)).toMatchObject({ plan: 'p', step: 0 });
    expect(planIn(...between, value(0, 1, 1), moved(next, 2))).toMatchObject({ plan: 'second', step: 2 });
  });

  it('AG-43 names what a node comes after once: by order, condition and reference', () => {
    const last = node('c', ['a'], { args: { n: { $from: 'a' }, m: { $from: 'b', path: '/x' } } });
    const when = { branch: 'b', equals: true };
    const [, , c, d] = planIn(moved(planned(node('a'), node('b'), last, node('d', [], { when })))).nodes;
    expect(c?.after).toEqual(['a', 'b']);
    expect(d).toMatchObject({ after: ['b'], when });
  });

  it('has the routes of a node, and the arguments of the one that it goes when all that they need has ended', () => {
    const routes = [{ args: { $from: 'b' } }, { args: { x: 1 }, after: ['a'] }];
    const merge: Branch = { id: 'm', tool: 't', args: null, routes };
    const decision = moved(planned(node('a'), node('b'), merge));
    const open = { after: ['b', 'a'], routes, args: null, status: 'waiting' };
    expect(planIn(decision).nodes[2]).toMatchObject(open);
    expect(planIn(decision, value(0)).nodes[2]).toMatchObject(open);
    expect(planIn(decision, value(0), ended(1, { kind: 'error', error })).nodes[2]).toMatchObject({
      args: { x: 1 },
      status: 'ready',
    });
    const failed = ended(0, { kind: 'error', error });
    expect(planIn(decision, failed, ended(1, { kind: 'error', error })).nodes[2]).toMatchObject(open);
    expect(planIn(decision, failed, value(1)).nodes[2]).toMatchObject({ args: { $from: 'b' }, status: 'ready' });
  });

  it('grows while the planner goes on', () => {
    const growing: EntryBody = {
      kind: 'moved',
      step: 0,
      decision: planned(node('a')),
      startedAt: 1,
      growing: true,
    };
    expect(planIn(growing, value(0))).toMatchObject({ growing: true, nodes: [{ id: 'a', status: 'done' }] });
    const more: EntryBody = { kind: 'plan_grown', step: 0, branches: [node('b', ['a'])] };
    expect(planIn(growing, value(0), more)).toMatchObject({ growing: true, nodes: [{}, { id: 'b', status: 'ready' }] });
    const done: EntryBody = { kind: 'plan_grown', step: 0, branches: [], done: true };
    expect(planIn(growing, value(0), more, done)).toMatchObject({ growing: false, nodes: [{}, { status: 'ready' }] });
  });

  it('has the arguments that somebody gave to a node that had not begun, and not the node that was taken out', () => {
    const held: EntryBody = { kind: 'paused', token: 'pause_2', reason: 'external_event' };
    const nodes = { b: { args: { n: 3 } }, c: { skip: true } };
    const edited: EntryBody = { kind: 'resumed', token: 'pause_2', verdict: 'resume', nodes };
    const plan = planIn(moved(diamond), held, edited);
    expect(statuses(plan)).toEqual({ a: 'ready', b: 'waiting', c: 'skipped', d: 'waiting' });
    expect(plan.nodes[1]?.args).toEqual({ n: 3 });
  });

  it('is made of a decision before anything is run', () => {
    expect(planOfDecision({ kind: 'finish', reason: 'goal' })).toBeUndefined();
    const plan = planOfDecision(diamond, 4);
    expect(plan).toMatchObject({ step: 4, growing: false });
    expect(plan && statuses(plan)).toEqual({ a: 'ready', b: 'waiting', c: 'waiting', d: 'waiting' });
  });

  it('is looked at in one pass: 10,000 nodes in a chain, each after the first as well', () => {
    const chain = Array.from({ length: 10_000 }, (_, index) =>
      node(String(index), index === 0 ? [] : [String(index - 1), '0']),
    );
    const { nodes } = planIn(moved(planned(...chain)), value(0));
    expect(nodes.filter(({ status }) => status === 'waiting')).toHaveLength(9_998);
    expect(nodes[1]?.status).toBe('ready');
  });
});
