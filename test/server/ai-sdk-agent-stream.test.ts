/** The stream of an agent of the AI SDK, and the forms in which it is read. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAgentUIStream, readUIMessageStream, type TextStreamPart, type ToolSet, type UIMessage } from 'ai';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Move, SpokenDelta } from '#core';
import { memoryJournal } from '#journal';
import { agent } from '#pilotage';
import { createRuntime } from '#runtime';
import { asAgent } from '#server/ai-sdk';
import { call, finish } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';

type Part = TextStreamPart<ToolSet>;
type Step = readonly (SpokenDelta | Move)[];

const text = (words: string): SpokenDelta => ({ type: 'text', text: words });
const input = (callId: string, json: string): SpokenDelta => ({ type: 'input', callId, tool: 'look', text: json });
const reset: SpokenDelta = { type: 'reset' };
const says = (words: string): Move => ({ decision: finish(words), text: words });
const uiMessages: UIMessage[] = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'go' }] }];

/** An agent that says and does this, a list for each step. */
function speaking(...steps: readonly Step[]) {
  const planner = {
    name: 'speaks',
    async *next({ trajectory: { count } }: { readonly trajectory: { readonly count: number } }) {
      for (const each of steps[count] ?? []) {
        if ('decision' in each) return each;
        yield each;
      }
      return { decision: finish() };
    },
  };
  const tools = [make('look', () => 'seen')];
  const runtime = createRuntime({ agents: [agent({ name: 'a', planner, tools })], journal: memoryJournal() });
  onTestFinished(() => runtime.close());
  return { runtime, made: asAgent(runtime, { agent: 'a' }) };
}

async function all<T>(stream: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = [];
  for await (const each of stream) read.push(each);
  return read;
}

/** Checks the order in which parts may begin and end. @returns the texts, by the ids of their parts. */
function wordsOf(parts: readonly Part[]): Record<string, string> {
  const open = new Set<string>();
  const said: Record<string, string> = {};
  for (const part of parts) {
    if (part.type === 'text-start' || part.type === 'reasoning-start') {
      expect([part.id, open.has(part.id) || part.id in said]).toEqual([part.id, false]);
      open.add(part.id);
      said[part.id] = '';
    } else if (part.type === 'text-delta' || part.type === 'reasoning-delta') {
      expect([...open]).toContain(part.id);
      said[part.id] += part.text;
    } else if (part.type === 'text-end' || part.type === 'reasoning-end') expect(open.delete(part.id)).toBe(true);
    else if (part.type === 'finish-step') expect([...open]).toEqual([]);
  }
  return said;
}

async function messageOf(made: ReturnType<typeof asAgent>): Promise<UIMessage> {
  const stream = await createAgentUIStream({ agent: made, uiMessages });
  const read = await all(
    readUIMessageStream({ stream: stream as never, onError: (error) => expect(error).toBeUndefined() }),
  );
  return read.at(-1) as UIMessage;
}

describe('the stream of an agent of the AI SDK', () => {
  it('words that are taken back end their part; what counts comes in its own, and alone in the result', async () => {
    const { made } = speaking([text('wrong '), text('words'), reset, text('ri'), text('ght'), says('right')]);
    const result = await made.stream({ prompt: 'go' });
    expect(Object.values(wordsOf(await all(result.stream)))).toEqual(['wrong words', 'right']);
    expect((await all(result.textStream)).join('')).toBe('wrong wordsright');
    expect([await result.text, (await result.content).length]).toEqual(['right', 1]);
    expect(await result.responseMessages).toEqual([{ role: 'assistant', content: [{ type: 'text', text: 'right' }] }]);
    expect(await all(result.partialOutputStream)).toEqual(['wrong ', 'wrong words', 'ri', 'right']);
    expect((await messageOf(made)).parts).toMatchObject([
      { type: 'step-start' },
      { type: 'text', text: 'wrong words', state: 'done' },
      { type: 'text', text: 'right', state: 'done' },
    ]);
  });

  it('words that are taken back for good, and again and again, leave no part open', async () => {
    const steps: Step[] = [
      [
        { type: 'reasoning', text: 'hm' },
        text('a'),
        reset,
        text('b'),
        reset,
        text('c'),
        reset,
        { decision: call('look') },
      ],
      [text('what'), reset, text('what'), says('whatever')],
    ];
    const { made } = speaking(...steps);
    const result = await made.stream({ prompt: 'go' });
    expect(Object.values(wordsOf(await all(result.stream)))).toEqual(['hm', 'a', 'b', 'c', 'what', 'whatever']);
    expect([await result.text, (await result.steps).map((step) => step.text)]).toEqual(['whatever', ['', 'whatever']]);
  });

  it('words and calls that come again behind a call that was not made are not told twice', async () => {
    const { made } = speaking([
      text('I look.'),
      input('c1', '{"at":1}'),
      input('c2', '{"at"'),
      { decision: call('look', { at: 1 }, 'c1'), text: 'I look.' },
    ]);
    const result = await made.stream({ prompt: 'go' });
    const parts = await all(result.stream);
    expect(Object.values(wordsOf(parts))).toEqual(['I look.']);
    expect((await result.toolCalls).map(({ input: args }) => args)).toEqual([{ at: 1 }]);
    const told = parts.flatMap((part) =>
      part.type === 'tool-input-start' || part.type === 'tool-input-end' || part.type === 'tool-call'
        ? [part.type]
        : [],
    );
    expect(told.toSorted()).toEqual([
      'tool-call',
      'tool-call',
      'tool-input-end',
      'tool-input-end',
      'tool-input-start',
      'tool-input-start',
    ]);
    // Nobody waits for the call that was not made.
    const states = (await messageOf(made)).parts.flatMap((part) =>
      'state' in part && 'toolCallId' in part ? [part.state] : [],
    );
    expect(states).toEqual(['output-available', 'output-error']);
    expect(JSON.stringify(await result.responseMessages)).not.toContain('.c2');
  });

  it('files that the model has made, in steps and at the end', async () => {
    const [red, blue] = [new Uint8Array([1, 2, 3]), new Uint8Array([4, 5])];
    const { made, runtime } = speaking(
      [{ decision: call('look'), made: [{ bytes: red, mime: 'image/png' }] }],
      [text('Here.'), { ...says('Here.'), made: [{ bytes: blue, mime: 'image/webp' }] }],
    );
    const result = await made.stream({ prompt: 'go' });
    const parts = (await all(result.stream)).flatMap((part) => (part.type === 'file' ? [part.file.mediaType] : []));
    expect(parts).toEqual(['image/png', 'image/webp']);
    expect((await result.files).map(({ uint8Array, base64 }) => [...uint8Array, base64])).toEqual([
      [1, 2, 3, 'AQID'],
      [4, 5, 'BAU='],
    ]);
    expect((await made.generate({ prompt: 'go' })).files).toHaveLength(2);
    const message = await messageOf(made);
    expect(message.parts.filter(({ type }) => type === 'file')).toMatchObject([
      { mediaType: 'image/png', url: 'data:image/png;base64,AQID' },
      { mediaType: 'image/webp', url: 'data:image/webp;base64,BAU=' },
    ]);
    // They are part of the conversation that goes on.
    const messages = [...(await result.responseMessages), { role: 'user' as const, content: 'again' }];
    await made.generate({ messages });
    await all(await createAgentUIStream({ agent: made, uiMessages: [...uiMessages, message, ...uiMessages] }));
    expect(await runtime.list()).toHaveLength(5);
  });

  it('each form that the type of a result of streamText has, and of generateText', async () => {
    const { made } = speaking(
      [text('I look.'), { decision: call('look'), text: 'I look.' }],
      [text('It is '), text('blue.'), says('It is blue.')],
    );
    const result = await made.stream({ prompt: 'go' });
    const [content, calls, results] = [await result.content, await result.toolCalls, await result.toolResults];
    expect([content.map(({ type }) => type), calls.length, results.length]).toEqual([
      ['text', 'tool-call', 'tool-result', 'text'],
      1,
      1,
    ]);
    const types = (await all(result.toUIMessageStream())).map(({ type }) => type);
    expect([types[0], types.at(-1)]).toEqual(['start', 'finish']);
    const served = result.toUIMessageStreamResponse({ headers: { 'x-own': '1' }, sendReasoning: false });
    expect([served.headers.get('x-own'), served.headers.get('content-type')]).toEqual(['1', 'text/event-stream']);
    expect(await served.text()).toContain('data: [DONE]');
    expect(await result.toTextStreamResponse({ status: 201 }).text()).toBe('I look.It is blue.');
    expect(await all(result.experimental_partialOutputStream)).toEqual(['I look.', 'It is ', 'It is blue.']);
    expect(() => result.elementStream).toThrow('Read textStream');
    await result.consumeStream();
    const server = createServer((request, response) => {
      if (request.url === '/ui') void result.pipeUIMessageStreamToResponse(response, { status: 202 });
      else void result.pipeTextStreamToResponse(response);
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    const at = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const [ui, words] = [await fetch(`${at}/ui`), await fetch(`${at}/text`)];
    expect([ui.status, (await ui.text()).includes('"It is "'), await words.text()]).toEqual([
      202,
      true,
      'I look.It is blue.',
    ]);
    const whole = await made.generate({ prompt: 'go' });
    expect([whole.text, whole.toolCalls.length, whole.dynamicToolResults.length, whole.content.length]).toEqual([
      'It is blue.',
      1,
      1,
      4,
    ]);
    expect(whole.response).toMatchObject({ modelId: 'a', messages: whole.responseMessages });
  });
});
