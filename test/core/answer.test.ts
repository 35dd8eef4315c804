import { describe, expect, it } from 'vitest';
import { answerEnvelope, answerText, type Decision, FINISH_REASONS, type Json, type Step } from '#core';
import { foldEntries } from '#state';
import { tool } from '#tools';
import { call } from '../kit/decisions.ts';
import { record } from '../kit/recorded.ts';

const ok = tool({ name: 't', description: 'd', inputSchema: { type: 'object' }, effect: 'pure', execute: () => 1 });
const three: Decision = { kind: 'call_parallel', branches: Array(3).fill({ tool: 't', args: {} }) };

async function stepsOf(script: readonly Decision[], modelDriven = false): Promise<readonly Step[]> {
  const { entries } = await record(script, { tools: [ok], modelDriven });
  return foldEntries(entries).steps;
}

describe('answerText', () => {
  it.each<[string, Json | undefined, string | undefined]>([
    ['a string as it is', 'Oslo: 4°', 'Oslo: 4°'],
    ['an empty string as it is', '', ''],
    ["a map's string answer", { answer: 'yes', sources: [] }, 'yes'],
    ['a map without one', { a: 1 }, '{"a":1}'],
    ['a map whose answer is no string', { answer: 42 }, '{"answer":42}'],
    ['a list', [1, 'b'], '[1,"b"]'],
    ['a number', 0, '0'],
    ['false', false, 'false'],
    ['nothing for nothing', undefined, undefined],
    ['nothing for null', null, undefined],
  ])('DV-17 gives %s', (_, payload, text) => {
    expect(answerText(payload)).toBe(text);
  });

  // In place of a continued run another one ends.
  it.each(
    FINISH_REASONS.filter((reason) => reason !== 'continued'),
  )('DV-17 an ending as %s in which nothing was said has no answer', async (reason) => {
    const { result } = await record([{ kind: 'finish', reason, metadata: { via: 'test' } }]);
    expect(result).toMatchObject({ status: 'finished', reason });
    expect(result).not.toHaveProperty('answer');
  });

  it('DV-17 is what the result of a run says', async () => {
    const finish = { kind: 'finish', reason: 'no_path', payload: { answer: 'none' } } as const;
    const { result } = await record([finish]);
    expect(result).toMatchObject({
      status: 'finished',
      reason: 'no_path',
      answer: 'none',
      payload: { answer: 'none' },
    });
  });
});

describe('answerEnvelope', () => {
  it('DV-16 is these bytes', () => {
    expect(answerEnvelope('goal', 'it is 4°', [])).toBe(
      '{"answer":"it is 4°","finish_reason":"goal","tool_calls_seen":0,"tool_calls":0}',
    );
  });

  it('DV-16 counts steps in tool_calls_seen', async () => {
    expect(answerEnvelope('goal', { answer: 'a "quoted" one' }, await stepsOf([call('t'), call('t')]))).toBe(
      '{"answer":"a \\"quoted\\" one","finish_reason":"goal","tool_calls_seen":2,"tool_calls":2}',
    );
  });

  it('DV-23 two steps of which one is a call of three are 2 and 4', async () => {
    expect(answerEnvelope('goal', undefined, await stepsOf([call('t'), three]))).toBe(
      '{"finish_reason":"goal","tool_calls_seen":2,"tool_calls":4}',
    );
  });

  it('DV-23 a decision that did not pass is a step, and no call, whatever its shape', async () => {
    const bad = { kind: 'call_parallel', branches: 'x' } as unknown as Decision;
    const steps = await stepsOf([call('t'), bad], true);
    expect(steps).toHaveLength(2);
    expect(answerEnvelope('goal', 'a', steps)).toBe(
      '{"answer":"a","finish_reason":"goal","tool_calls_seen":2,"tool_calls":1}',
    );
  });
});
