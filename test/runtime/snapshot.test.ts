import { describe, expect, it } from 'vitest';
import { asJson, type Decision } from '#core';
import { call, finish, script } from '../kit/decisions.ts';
import { holding } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const FIELDS = [
  'head',
  'identity',
  'agent',
  'query',
  'goal',
  'limits',
  'scopes',
  'context',
  'startedAt',
  'updatedAt',
  'task',
  'fork',
  'steps',
  'open',
  'plan',
  'pauses',
  'tasks',
  'groups',
  'background',
  'totals',
  'ending',
];

describe('the state of a run, as its readers see it', () => {
  it('has every field at every moment, and nothing else; what was given does not change while the run goes on', async () => {
    const { tool, entered, release } = holding();
    const plan: Decision = { kind: 'call_parallel', plan: 'p', branches: [{ id: 'one', tool: 'hold', args: {} }] };
    const planner = script(call('echo'), plan, finish('done'));
    const made = world({ planner, tools: [tool] });
    const run = await start(made, { query: 'what is asked' });
    await entered;
    const during = await run.state();
    const before = structuredClone(during);
    expect(Object.keys(during)).toEqual(FIELDS);
    expect(during).toMatchObject({
      query: 'what is asked',
      goal: 'what is asked',
      steps: [{ index: 0 }],
      open: { step: 1, calls: [null], decision: { kind: 'call_parallel' } },
      plan: { nodes: [{ id: 'one', status: 'ready' }] },
      ending: null,
      task: null,
      fork: null,
    });
    release();
    await run.result();
    const after = await run.state();
    expect(Object.keys(after)).toEqual(FIELDS);
    expect(after).toMatchObject({ open: null, plan: { nodes: [{ status: 'done' }] }, ending: { kind: 'finished' } });
    expect(after.steps).toHaveLength(2);
    expect(during).toEqual(before);
    expect(JSON.parse(JSON.stringify(after))).toEqual(asJson(after));
  });
});
