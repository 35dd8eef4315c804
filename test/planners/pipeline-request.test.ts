import { describe, expect, it } from 'vitest';
import { type ModelEntry, readyModel } from '#model';
import { planRequest, readPlan } from '#planners/pipeline';
import { PLAN_SCHEMA } from '#plans';
import { userTurn } from '#prompt';
import { scriptedModel } from '#testing';
import { generateReply } from '../kit/model.ts';

const ready = (entry: Partial<ModelEntry> = {}) => readyModel({ model: scriptedModel([]), ...entry });
const PLAN = { planId: 'p1', steps: [{ id: 's1', type: 'finish' }] };

describe('the request for a plan', () => {
  it('AG-16 a model with native calls has one tool, and has to call it', () => {
    const request = planRequest({ prompt: 'Plan!', model: ready(), form: 'json' });
    expect(request).toEqual({
      prompt: [userTurn('Plan!')],
      temperature: 0,
      tools: [
        {
          type: 'function',
          name: 'submit_plan',
          description: 'Hands in the whole plan. Call it once.',
          inputSchema: PLAN_SCHEMA,
        },
      ],
      toolChoice: { type: 'required' },
    });
  });

  it.each([
    ['json_schema', { type: 'json', schema: PLAN_SCHEMA, name: 'plan' }],
    ['json_object', { type: 'json' }],
    ['text', undefined],
  ] as const)('AG-16 one without keeps to the schema by %s', (structuredOutput, responseFormat) => {
    const model = ready({ toolCalls: 'text', structuredOutput });
    expect(planRequest({ prompt: 'Plan!', model, form: 'json' })).toEqual({
      prompt: [userTurn('Plan!')],
      temperature: 0,
      ...(responseFormat === undefined ? {} : { responseFormat }),
    });
  });

  it('AG-32 lines are asked for as plain text, whatever the model can', () => {
    expect(planRequest({ prompt: 'Plan!', model: ready(), form: 'ndjson' })).toEqual({
      prompt: [userTurn('Plan!')],
      temperature: 0,
    });
  });

  it('AG-07 temperature, seed and limit are passed on, and what was said since stands at the end', () => {
    const turns = [userTurn('The reply was bad.')];
    const given = { temperature: 0.7, seed: 11, maxOutputTokens: 900 };
    expect(planRequest({ prompt: 'Plan!', turns, model: ready(), form: 'ndjson', ...given })).toEqual({
      prompt: [userTurn('Plan!'), ...turns],
      ...given,
    });
  });

  it('AG-19 what a model replies to it is read as its plan', async () => {
    const model = scriptedModel([{ calls: [{ tool: 'submit_plan', args: PLAN }] }]);
    const request = planRequest({ prompt: 'Plan!', model: readyModel(model), form: 'json' });
    expect(readPlan(await generateReply(model, request), 'json')).toEqual({ value: PLAN, repaired: [] });
  });
});
