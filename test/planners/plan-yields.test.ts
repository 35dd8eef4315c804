import { describe, expect, it } from 'vitest';
import { type Json, local } from '#core';
import { type Plan, type PlanStep, type PlanYield, plannerState, toYields } from '#plans';
import { runView } from '#testing';
import { failure, stepOfMove, value } from '../kit/steps.ts';

const any = (id: string, more: Partial<PlanStep> = {}): PlanStep => ({ id, type: 'tool', toolId: 'any', ...more });

async function collect(source: AsyncIterable<PlanYield>): Promise<PlanYield[]> {
  const yields: PlanYield[] = [];
  for await (const one of source) yields.push(one);
  return yields;
}

const idOf = (one: PlanYield): string => ('id' in one ? one.id : Object.keys(one)[0]) ?? '';

describe('one form for what makers give', () => {
  it('AG-03 of a plan its steps, in an order that respects the edges, then finish', async () => {
    const plan: Plan = { nodes: { c: any('c'), a: any('a'), b: any('b') }, edges: { a: ['b'], b: ['c'] } };
    for (const source of [plan, Promise.resolve(plan)]) {
      const yields = await collect(toYields(source));
      expect(yields.map(idOf)).toEqual(['a', 'b', 'c', 'finish']);
      expect(yields).toEqual([
        { ...any('a'), after: [] },
        { ...any('b'), after: ['a'] },
        { ...any('c'), after: ['b'] },
        { finish: {} },
      ]);
    }
  });

  it('AG-03 a finish step of its own is the end of a plan, unless a condition may pass it over', async () => {
    const end: PlanStep = { id: 'f', type: 'finish', input: 'done' };
    expect((await collect(toYields({ steps: [any('a'), end] }))).map(idOf)).toEqual(['a', 'f']);
    const early = { ...end, when: { step: 'a', equals: 1 } };
    expect((await collect(toYields({ steps: [any('a'), early] }))).map(idOf)).toEqual(['a', 'f', 'finish']);
  });

  it('AG-03 of a single step that step', async () => {
    expect(await collect(toYields(any('a')))).toEqual([any('a')]);
    expect(await collect(toYields(Promise.resolve(any('a'))))).toEqual([any('a')]);
  });

  it('AG-03 a promise that rejects: the stream throws, when it is read', async () => {
    const cause = new Error('no plan today');
    const stream = toYields(Promise.reject(cause));
    await new Promise((resolve) => setImmediate(resolve));
    await expect(collect(stream)).rejects.toBe(cause);
  });

  it('AG-03 a stream unchanged and lazily', async () => {
    const log: string[] = [];
    async function* source(): AsyncGenerator<PlanYield> {
      try {
        for (const id of ['a', 'b', 'c']) {
          log.push(id);
          yield any(id);
        }
      } finally {
        log.push('closed');
      }
    }
    const stream = toYields(source());
    await new Promise((resolve) => setImmediate(resolve));
    expect(log).toEqual([]);
    for await (const one of stream) {
      expect(one).toEqual(any('a'));
      expect(log).toEqual(['a']);
      break;
    }
    expect(log).toEqual(['a', 'closed']);
    expect(await collect(toYields(source()))).toEqual([any('a'), any('b'), any('c')]);
  });

  it('a plan without an order throws, with what is wrong', async () => {
    const circle: Plan = { steps: [any('a', { after: ['b'] }), any('b', { after: ['a'] })] };
    await expect(collect(toYields(circle))).rejects.toMatchObject({
      code: 'plan_invalid',
      data: { faults: [{ code: 'plan_cycle', path: ['a', 'b', 'a'] }] },
    });
    await expect(collect(toYields({} as Plan))).rejects.toMatchObject({ code: 'plan_invalid' });
  });
});

describe('what a maker is told of the run', () => {
  it('AG-01 the session, the transcript, the goal, the count of steps and the limits', () => {
    const message = stepOfMove(
      1,
      {
        decision: {
          kind: 'call_parallel',
          plan: 'p',
          branches: [
            { id: 'm', tool: '_message', args: 'Half way.' },
            { id: 'x', tool: 'b', args: {} },
          ],
        },
      },
      [value('Half way.'), failure('tool_failed', 'No.')],
    );
    const steps = [
      stepOfMove(0, { decision: { kind: 'call_tool', tool: 'a', args: {} }, text: 'Let me see.' }, [value({ n: 1 })]),
      message,
    ];
    const said = (
      type: 'USER_MESSAGE' | 'REDIRECT' | 'INJECT_CONTEXT',
      payload: Record<string, Json>,
      atStep: number,
    ) => ({
      atStep,
      control: { id: `${type}-${atStep}`, type, payload },
    });
    const run = runView({
      identity: local('ana', { session: 's1' }),
      query: 'Where?',
      goal: 'There',
      history: [
        { role: 'user', text: 'Hello' },
        { role: 'assistant', text: 'Hello!' },
      ],
      context: { externalMemory: { name: 'Ana' }, conversationMemory: 'spoke before' },
      steps,
      steering: [
        said('USER_MESSAGE', { message: 'Hurry.' }, 1),
        said('REDIRECT', { goal: 'There' }, 2),
        said('INJECT_CONTEXT', { rain: true }, 2),
      ],
    });
    expect(plannerState(run)).toEqual({
      sessionId: 's1',
      goal: 'There',
      stepCount: 2,
      limits: { maxSteps: 66 },
      memorySnapshot: { external: { name: 'Ana' }, conversation: 'spoke before' },
      transcript: [
        { role: 'user', text: 'Hello' },
        { role: 'agent', text: 'Hello!' },
        { role: 'user', text: 'Where?' },
        { role: 'agent', text: 'Let me see.' },
        { role: 'tool', text: 'a: {"n":1}' },
        { role: 'user', text: 'Hurry.' },
        { role: 'agent', text: 'Half way.' },
        { role: 'tool', text: 'b: {"error":{"code":"tool_failed","message":"No."}}' },
        { role: 'user', text: 'The goal is now: There' },
        { role: 'user', text: '{"rain":true}' },
      ],
    });
  });

  it('AG-01 W107 the ceiling of costs is in millionths of a dollar, and is the whole of it', () => {
    const run = runView();
    const budget = { ...run.budget, costMicroUsdSpent: 300, costMicroUsdLeft: 700 };
    expect(plannerState({ ...run, budget }).limits).toEqual({ maxSteps: 64, costCeiling: 1_000 });
    expect(plannerState(run)).not.toHaveProperty('memorySnapshot');
  });
});
