/** ReAct with tasks, through a runtime: the tasks are runs of the same planner. */
import type { LanguageModelV4Prompt } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { type ScriptedReply, scriptedModel } from '#testing';
import { lastResults, texts } from '../kit/messages.ts';
import { play } from './played.ts';
import { chatFault } from './well-formed.ts';

describe('a run with tasks', () => {
  /** Tasks answer for their query; the run itself goes by its script. */
  const forQuery = (script: readonly ScriptedReply[]) => {
    const requests: LanguageModelV4Prompt[] = [];
    const model = scriptedModel(({ prompt }): ScriptedReply => {
      const query = (texts(prompt, 'user')[0] ?? '').replace(/^<user_message>\n|\n<\/user_message>$/g, '');
      if (query.startsWith('Find ')) return { text: `I found ${query.slice(5)}.` };
      requests.push(prompt);
      return script[requests.length - 1] ?? {};
    });
    return { model, requests };
  };
  const spawn = (id: string, what: string, more: object = {}) => ({
    ...{ id, tool: '_spawn_task', args: { ...more, spec: { description: what, query: `Find ${what}` } } },
  });

  it.each([
    'native',
    'text',
  ] as const)('PC-29, RA-17 two tasks of one reply; the answer waits for both, and each result is told once: %s', async (toolCalls) => {
    const calls = [spawn('a', 'Oslo'), spawn('b', 'Rome')];
    const written = { text: `\`\`\`json\n${JSON.stringify(calls.map(({ tool, args }) => ({ tool, args })))}\n\`\`\`` };
    const { model, requests } = forQuery([
      toolCalls === 'text' ? written : { calls },
      ...['I wait.', 'I wait more.', 'Both are cities.'].map((text) => ({ text })),
      { text: 'Both are cities.' },
    ]);
    const { result, steps } = await play({ model: { model, toolCalls }, react: { tasks: true } });
    expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(steps[0]?.decision).toMatchObject({ kind: 'call_parallel', branches: [{}, {}] });
    expect(steps[0]?.calls.map(({ outcome }) => outcome)).toMatchObject([
      { kind: 'value', value: { status: 'spawned' } },
      { kind: 'value', value: { status: 'spawned' } },
    ]);
    const prompt = requests.at(-1) ?? [];
    expect(chatFault(prompt)).toBeUndefined();
    for (const found of ['I found Oslo.', 'I found Rome.']) expect(JSON.stringify(prompt).split(found)).toHaveLength(2);
    for (const [index, request] of requests.entries()) {
      const former = requests[index - 1] ?? [];
      expect(request.slice(0, former.length)).toEqual(former);
    }
  });

  it('a foreground task gives its result to the call that started it', async () => {
    const { model, requests } = forQuery([{ calls: [spawn('a', 'Oslo', { kind: 'foreground' })] }, { text: 'Oslo.' }]);
    const { result } = await play({ model, react: { tasks: true } });
    expect(result).toMatchObject({ reason: 'goal', answer: 'Oslo.' });
    expect(lastResults(requests[1] ?? [])).toMatchObject([
      { type: 'text', value: expect.stringContaining('I found Oslo.') },
    ]);
  });

  it('RA-17, RA-19 a spawn that does not fit is answered with its error, and the one beside it is carried out', async () => {
    const wrong = { id: 'b', tool: '_spawn_task', args: { spec: { description: 'no query' } } };
    const { model, requests } = forQuery([
      { calls: [spawn('a', 'Oslo', { kind: 'foreground' }), wrong] },
      { text: 'Oslo.' },
    ]);
    const { result } = await play({ model, react: { tasks: true } });
    expect(result).toMatchObject({ reason: 'goal', answer: 'Oslo.' });
    expect(lastResults(requests[1] ?? [])).toMatchObject([
      { type: 'text', value: expect.stringContaining('I found Oslo.') },
      { type: 'error-text', value: expect.stringMatching(/^<call_error>\ntool_invalid_args — .*query/) },
    ]);
  });

  it('without the option a spawn is an unknown tool, and the run goes on', async () => {
    const { model, requests } = forQuery([{ calls: [spawn('a', 'Oslo')] }, { text: 'No tasks, then.' }]);
    const { result } = await play({ model });
    expect(result).toMatchObject({ reason: 'goal', answer: 'No tasks, then.' });
    expect(lastResults(requests[1] ?? [])).toMatchObject([{ type: 'error-text' }]);
    expect(JSON.stringify(requests[1])).toContain('tool_not_found');
  });
});
