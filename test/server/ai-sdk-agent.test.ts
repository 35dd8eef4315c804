/** An agent of a runtime where the AI SDK takes one of its own. */
import { createAgentUIStream, isToolUIPart, readUIMessageStream, type UIMessage } from 'ai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { agent } from '#pilotage';
import { react } from '#planners/react';
import { createRuntime } from '#runtime';
import { asAgent } from '#server/ai-sdk';
import { scriptedModel } from '#testing';
import { scenario } from '../kit/sdk-agent.ts';
import { make } from '../kit/tools.ts';

async function lastOf(stream: ReadableStream<unknown>, message?: UIMessage): Promise<UIMessage> {
  let last: UIMessage | undefined;
  const errors: unknown[] = [];
  const read = readUIMessageStream({
    stream: stream as never,
    ...(message === undefined ? {} : { message }),
    onError: (error) => errors.push(error),
  });
  for await (const each of read) last = each;
  expect(errors).toEqual([]);
  return last as UIMessage;
}

const says = (text: string): UIMessage => ({ id: 'u1', role: 'user', parts: [{ type: 'text', text }] });

describe('asAgent', () => {
  it('agent-v1: generate and stream, with text, steps, usage, finishReason, response.messages and textStream', async () => {
    const model = scriptedModel([
      { text: 'I look.', calls: [{ tool: 'look', args: { at: 1 } }], usage: { inputTokens: 5, outputTokens: 7 } },
      { text: 'It is blue.', usage: { inputTokens: 11, outputTokens: 3 } },
    ]);
    const desk = agent({ name: 'desk', planner: react({ model }), tools: [make('look', () => ({ color: 'blue' }))] });
    const runtime = createRuntime({ agents: [desk], journal: memoryJournal() });
    onTestFinished(() => runtime.close());
    const made = asAgent(runtime, { agent: desk });
    expect([made.version, made.id, Object.keys(made.tools)]).toEqual(['agent-v1', 'desk', ['look']]);
    const { text, steps, totalUsage, finishReason, response } = await made.generate({ prompt: 'What color?' });
    expect([text, finishReason, totalUsage.inputTokens, totalUsage.outputTokens]).toEqual([
      'It is blue.',
      'stop',
      16,
      10,
    ]);
    expect(
      steps.map(({ toolCalls, toolResults, usage }) => [toolCalls.length, toolResults.length, usage.outputTokens]),
    ).toEqual([
      [1, 1, 7],
      [0, 0, 3],
    ]);
    expect((response as unknown as { messages: { role: string }[] }).messages.map(({ role }) => role)).toEqual([
      'assistant',
      'tool',
      'assistant',
    ]);
    const streamed = await scenario().agent.stream({ prompt: 'say one two' });
    const words: string[] = [];
    for await (const word of streamed.textStream) words.push(word);
    expect([words.join(''), await streamed.text]).toEqual(['one two', 'one two']);
  });

  it('agent-v1: createAgentUIStream, with an approval that comes back as a tool message', async () => {
    const { agent: made, effects } = scenario();
    const user = says('refund A-17');
    const asked = await lastOf(await createAgentUIStream({ agent: made, uiMessages: [user] }));
    const [part] = asked.parts.filter(isToolUIPart);
    expect(part).toMatchObject({ type: 'tool-refund', state: 'approval-requested', input: { amount: 90 } });
    const answered: UIMessage = {
      ...asked,
      id: 'a1',
      parts: asked.parts.map((each) =>
        isToolUIPart(each) && each.state === 'approval-requested'
          ? { ...each, state: 'approval-responded', approval: { ...each.approval, approved: true } }
          : each,
      ),
    };
    const stream = await createAgentUIStream({ agent: made, uiMessages: [user, answered] });
    const told = await lastOf(stream, structuredClone(answered));
    expect(told.id).toBe('a1');
    expect(told.parts.filter(isToolUIPart)).toMatchObject([{ state: 'output-available' }]);
    expect(told.parts.at(-1)).toMatchObject({ type: 'text', text: 'A-17 is refunded.' });
    expect(effects.count('refund')).toBe(1);
    const again = await createAgentUIStream({ agent: made, uiMessages: [user, answered] });
    expect((await lastOf(again, structuredClone(answered))).parts).toEqual(told.parts);
    expect(effects.count('refund')).toBe(1);
  });

  it('takes answers one after another, and goes on talking behind them', async () => {
    const { agent: made, effects } = scenario();
    const user = says('refund A-17 and B-18');
    const answering = (message: UIMessage, at: number, approved: boolean): UIMessage => ({
      ...message,
      id: 'a1',
      parts: message.parts.map((part) =>
        isToolUIPart(part) && part.state === 'approval-requested' && part === message.parts.filter(isToolUIPart)[at]
          ? { ...part, state: 'approval-responded', approval: { ...part.approval, approved } }
          : part,
      ),
    });
    const told = async (...uiMessages: UIMessage[]) =>
      lastOf(await createAgentUIStream({ agent: made, uiMessages }), structuredClone(uiMessages.at(-1)));
    for (const [first, second] of [
      [true, false],
      [false, true],
    ] as const) {
      const asked = await lastOf(await createAgentUIStream({ agent: made, uiMessages: [user] }));
      const half = await told(user, answering(asked, 0, first));
      const whole = await told(user, answering(half, 1, second));
      const said = `A-17 is ${first ? '' : 'not '}refunded. B-18 is ${second ? '' : 'not '}refunded.`;
      expect(whole.parts.at(-1)).toMatchObject({ type: 'text', text: said });
      const uiMessages = [user, whole, says('say thanks')];
      const next = await lastOf(await createAgentUIStream({ agent: made, uiMessages }));
      expect(next.parts.at(-1)).toMatchObject({ type: 'text', text: 'thanks' });
    }
    expect(effects.count('refund')).toBe(2);
  });

  it('knows what was said before, and stops when it is aborted', async () => {
    const heard: unknown[] = [];
    const runtime = createRuntime({
      planner: {
        name: 'hears',
        next: ({ query, history }) => {
          heard.push([query, history?.map(({ text }) => text)]);
          return { kind: 'finish', reason: 'goal', payload: 'ok' };
        },
      },
      journal: memoryJournal(),
    });
    onTestFinished(() => runtime.close());
    await asAgent(runtime).generate({
      messages: [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'two' },
        { role: 'user', content: 'three' },
      ],
    });
    expect(heard).toEqual([['three', ['one', 'two']]]);
    const left = new AbortController();
    const slow = await scenario().agent.stream({ prompt: 'slow 1000', abortSignal: left.signal });
    const types: string[] = [];
    for await (const { type } of slow.stream) {
      types.push(type);
      if (types.length === 6) left.abort();
    }
    expect(types.at(-1)).toBe('abort');
  });

  it('fails with words for a person', async () => {
    const { agent: made } = scenario();
    await expect(made.generate({ prompt: 'fail' })).rejects.toThrow('Something went wrong (planner_failed).');
  });
});
