import { describe, expect, it } from 'vitest';
import type { PlanTry, Remark } from '#core';
import { type PlanMetricsRow, planMetrics } from '#planners/pipeline';

const PLAN = { id: 'plan', version: 1 };

function tried(more: Partial<PlanTry> = {}): Remark<'plan.try'> {
  return {
    type: 'plan.try',
    try: 1,
    purpose: 'plan',
    model: 'a',
    template: PLAN,
    prompt: '',
    output: '',
    latencyMs: 100,
    result: 'valid',
    faults: [],
    ...more,
  };
}

const fallback: Remark<'plan.fallback'> = { type: 'plan.fallback', because: 'exhausted', faults: [] };
const none: PlanMetricsRow = {
  model: 'a',
  template: PLAN,
  tries: 0,
  valid: 0,
  unreadable: 0,
  invalid: 0,
  forbidden: 0,
  failed: 0,
  repairs: 0,
  fallbacks: 0,
  latencyMs: 0,
  inputTokens: 0,
  outputTokens: 0,
  costMicroUsd: 0,
};

describe('metrics of planning', () => {
  it('are none of runs without plans', () => {
    expect(planMetrics([])).toEqual({ rows: [], fallbacks: 0 });
    const drop: Remark = { type: 'planner.action_extra_field_dropped', field: 'thought' };
    expect(planMetrics([{}, { remarks: [drop] }])).toEqual({ rows: [], fallbacks: 0 });
  });

  it('AG-28 count each try under its result, and what failed ones cost', () => {
    const steps = [
      {
        remarks: [
          tried({ result: 'unreadable', usage: { inputTokens: 10, outputTokens: 5, costMicroUsd: 7 } }),
          tried({ result: 'invalid', purpose: 'repair', latencyMs: 50, usage: { inputTokens: 20, costMicroUsd: 3 } }),
          tried({ result: 'forbidden', purpose: 'repair' }),
          tried({ result: 'failed', latencyMs: 0 }),
        ],
      },
      {},
      { remarks: [tried({ purpose: 'rest', usage: { costMicroUsd: 1 } })] },
    ];
    expect(planMetrics(steps).rows).toEqual([
      {
        ...none,
        tries: 5,
        valid: 1,
        unreadable: 1,
        invalid: 1,
        forbidden: 1,
        failed: 1,
        repairs: 2,
        latencyMs: 350,
        inputTokens: 30,
        outputTokens: 5,
        costMicroUsd: 11,
      },
    ]);
  });

  it('have a row for each model with each version of a template, in the order of their first try', () => {
    const remarks = [
      tried({ model: 'b' }),
      tried({ model: 'a' }),
      tried({ model: 'a', template: { id: 'plan', version: 2 } }),
      tried({ model: 'b', result: 'invalid' }),
      tried({ model: 'a', template: { id: 'plan-ndjson', version: 1 } }),
    ];
    const rows = planMetrics([{ remarks }]).rows.map(({ model, template, tries }) => [model, template, tries]);
    expect(rows).toEqual([
      ['b', PLAN, 2],
      ['a', PLAN, 1],
      ['a', { id: 'plan', version: 2 }, 1],
      ['a', { id: 'plan-ndjson', version: 1 }, 1],
    ]);
  });

  it('AG-26 count a fallback for the model that was tried last', () => {
    const remarks = [tried({ model: 'a', result: 'invalid' }), tried({ model: 'b', result: 'invalid' }), fallback];
    const { rows, fallbacks } = planMetrics([{ remarks: [fallback] }, { remarks }]);
    expect(rows.map(({ model, fallbacks: count }) => [model, count])).toEqual([
      ['a', 0],
      ['b', 1],
    ]);
    expect(fallbacks).toBe(2);
  });

  it('AG-29 are the same of the steps and of the events that are read back from them', () => {
    const remarks = [tried({ result: 'unreadable' }), tried({ model: 'b', purpose: 'repair' }), fallback];
    const place = { identity: { tenant: 't', user: 'u', session: 's', run: 'r' }, occurredAt: 5 };
    const events = [
      { ...place, type: 'run.started', seq: 0 },
      ...remarks.map((remark, seq) => ({ ...place, ...remark, seq })),
    ];
    expect(planMetrics(events as never)).toEqual(planMetrics([{ remarks }]));
  });
});
