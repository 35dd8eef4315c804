/** Turns as messages of the AI SDK and of its clients, and back. */
import { convertToModelMessages, generateText, type ModelMessage, type UIMessage, validateUIMessages } from 'ai';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Turn } from '#core';
import { openCalls, toModelMessages, toUIMessages } from '#messages';
import type { StartOptions } from '#runtime';
import { scriptedModel } from '#testing';
import { call, finish, script, watched } from '../kit/decisions.ts';
import { anyJson } from '../kit/json-values.ts';
import { entriesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

type History = NonNullable<StartOptions['history']>;

/** The turns as they are recorded, and as a planner is shown them. */
async function taken(history: History): Promise<{ recorded: readonly Turn[]; shown: readonly Turn[] }> {
  const planner = watched(() => finish());
  const made = world({ planner });
  const run = await start(made, { history });
  await run.result();
  const [started] = await entriesOf(made.journal, run, 'started');
  return { recorded: started?.history ?? [], shown: planner.views[0]?.history ?? [] };
}

async function refused(history: unknown): Promise<string> {
  const thrown = await start(world({ planner: () => finish() }), { history: history as History }).catch(
    (error: unknown) => error,
  );
  expect(thrown).toMatchObject({ code: 'invalid_config' });
  return (thrown as Error).message;
}

const PNG = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]);
const options = { anthropic: { cacheControl: { type: 'ephemeral' } } };

const TALK: ModelMessage[] = [
  { role: 'system', content: 'Be brief.' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'What is this?', providerOptions: options },
      { type: 'file', data: PNG, mediaType: 'image/png', filename: 'a.png' },
    ],
  },
  {
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'Hm.', providerOptions: { anthropic: { signature: 's' } } },
      { type: 'text', text: 'I look.' },
      { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: { at: 1 } },
      { type: 'tool-call', toolCallId: 'c2', toolName: 'look', input: { at: 2 } },
      { type: 'tool-call', toolCallId: 'c3', toolName: 'pay', input: {} },
    ],
  },
  {
    role: 'tool',
    content: [
      { type: 'tool-result', toolCallId: 'c1', toolName: 'look', output: { type: 'json', value: { is: 'map' } } },
      { type: 'tool-result', toolCallId: 'c2', toolName: 'look', output: { type: 'error-text', value: 'Down.' } },
      {
        type: 'tool-result',
        toolCallId: 'c3',
        toolName: 'pay',
        output: { type: 'execution-denied', reason: 'Too much.' },
      },
    ],
  },
  { role: 'assistant', content: 'A map.' },
];

const words = fc.string({ maxLength: 6 });
const json = anyJson();
const output = fc.oneof(
  fc.record({ type: fc.constantFrom('text', 'error-text'), value: words }),
  fc.record({ type: fc.constantFrom('json', 'error-json'), value: json }),
  fc.constant({ type: 'execution-denied' }),
  fc.constant({ type: 'execution-denied', reason: 'no' }),
);
const file = fc
  .uint8Array({ minLength: 1, maxLength: 4 })
  .map((data) => ({ type: 'file', data, mediaType: 'text/plain', filename: 'f.txt' }));
const text = words.map((each) => ({ type: 'text', text: each }));
const user = fc.oneof(
  words.map((content) => ({ role: 'user', content })),
  fc.array(fc.oneof(text, file), { minLength: 1, maxLength: 3 }).map((content) => ({ role: 'user', content })),
);
const step = fc
  .record({
    said: fc.array(
      fc.oneof(
        text,
        words.map((each) => ({ type: 'reasoning', text: each })),
        file,
      ),
      { maxLength: 3 },
    ),
    outputs: fc.array(fc.tuple(json, output), { maxLength: 3 }),
  })
  .filter(({ said, outputs }) => said.length + outputs.length > 0);

/** Messages of a talk in the order in which it goes on; calls get ids of their own. */
const talk = fc
  .array(fc.oneof(user, step, fc.record({ role: fc.constant('assistant'), content: words })), { maxLength: 5 })
  .map((given) =>
    given.flatMap((each, index): object[] => {
      if (!('said' in each)) return [each];
      const calls = each.outputs.map(([input], at) => ({
        ...{ type: 'tool-call', toolCallId: `c${index}.${at}`, toolName: 'look' },
        input,
      }));
      const results = each.outputs.map(([, out], at) => ({
        ...{ type: 'tool-result', toolCallId: `c${index}.${at}`, toolName: 'look' },
        output: out,
      }));
      const spoken = { role: 'assistant', content: [...each.said, ...calls] };
      return results.length === 0 ? [spoken] : [spoken, { role: 'tool', content: results }];
    }),
  ) as unknown as fc.Arbitrary<History>;

describe('a round trip', () => {
  it('through messages of a model gives the same turns, with the bytes of files and with their references', async () => {
    await fc.assert(
      fc.asyncProperty(talk, async (history) => {
        const { recorded, shown } = await taken(history);
        expect((await taken(toModelMessages(shown) as History)).recorded).toEqual(recorded);
        expect((await taken(toModelMessages(recorded) as History)).recorded).toEqual(recorded);
      }),
      { numRuns: 60 },
    );
  });

  it('through messages of a client gives the same turns, also as JSON', async () => {
    await fc.assert(
      fc.asyncProperty(talk, async (history) => {
        const { recorded, shown } = await taken(history);
        for (const turns of [recorded, shown]) {
          const messages = JSON.parse(JSON.stringify(toUIMessages(turns)));
          expect((await taken(messages)).recorded).toEqual(recorded);
          if (messages.length > 0) await validateUIMessages({ messages });
        }
        const own = toUIMessages(shown, { fileUrl: () => 'https://files.example/1' });
        expect((await taken(own as History)).recorded).toEqual(recorded);
      }),
      { numRuns: 60 },
    );
  });
});

describe('messages of a model', () => {
  it('are what the AI SDK takes and gave', async () => {
    const { shown } = await taken(TALK);
    const messages: ModelMessage[] = toModelMessages(shown);
    expect(messages).toEqual(TALK);
    const model = scriptedModel([{ text: 'done' }]);
    await generateText({ model, messages: messages.slice(1), system: 'Be brief.' });
    expect(model.calls[0]?.prompt.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'assistant',
    ]);
  });

  it('name an artifact where the turn has no bytes', async () => {
    const { recorded } = await taken(TALK);
    const [, user] = toModelMessages(recorded);
    expect(user?.content).toMatchObject([{ type: 'text' }, { data: new URL(`artifact:${refOf(recorded)}?size=8`) }]);
  });
});

const refOf = (turns: readonly Turn[]): string =>
  turns.flatMap(({ parts = [] }) => parts.flatMap((part) => (part.type === 'file' ? [part.artifactRef] : [])))[0] ?? '';

describe('messages of a client', () => {
  it('have calls with their states, steps, and are what the AI SDK makes the same messages of', async () => {
    const { shown } = await taken(TALK);
    const messages: UIMessage[] = toUIMessages(shown);
    expect(messages.map(({ id, role }) => `${id} ${role}`)).toEqual([
      ...['message:0 system', 'message:1 user', 'message:2 assistant'],
    ]);
    expect(messages[2]?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'reasoning', text: 'Hm.', providerMetadata: { anthropic: { signature: 's' } } },
      { type: 'text', text: 'I look.' },
      { type: 'dynamic-tool', toolName: 'look', toolCallId: 'c1', state: 'output-available', output: { is: 'map' } },
      { type: 'dynamic-tool', toolName: 'look', toolCallId: 'c2', state: 'output-error', errorText: 'Down.' },
      { state: 'output-denied', approval: { id: 'c3', approved: false, reason: 'Too much.' } },
      { type: 'step-start' },
      { type: 'text', text: 'A map.' },
    ]);
    const validated = await validateUIMessages({ messages });
    const converted = await convertToModelMessages(validated);
    expect(converted.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'assistant']);
    const model = scriptedModel([{ text: 'done' }]);
    await generateText({ model, messages: converted.slice(1) });
    expect(model.calls).toHaveLength(1);
  });

  it('of a run have its ids, its turn and its author, and what is open: calls and approvals', async () => {
    const pay = make('pay', () => 'paid', {
      effect: 'once',
      needsApproval: () => ({ reason: 'It is much.' }) as never,
    });
    const made = world({ planner: script(call('pay', { sum: 5 }, 'c9')), tools: [pay] });
    const run = await start(made);
    const result = await run.result();
    const token = result.status === 'paused' ? result.pauses[0]?.token : '';
    const open = openCalls(await run.state());
    expect(open).toMatchObject([{ toolCallId: 'c9', toolName: 'pay', input: { sum: 5 }, approval: { id: token } }]);
    const messages = toUIMessages([
      {
        run: run.id,
        turn: 3,
        author: { name: 'Ana' },
        ids: ['mine'],
        turns: [{ role: 'user', text: 'Pay.' }],
        open,
        sources: [{ type: 'url', url: 'https://a.example/', title: 'A' }],
      },
    ]);
    await validateUIMessages({ messages });
    expect(messages).toMatchObject([
      { id: 'mine', role: 'user', metadata: { run: run.id, turn: 3, author: { name: 'Ana' } } },
      {
        id: `${run.id}:1`,
        role: 'assistant',
        metadata: { run: run.id, turn: 3 },
        parts: [
          { state: 'approval-requested', approval: { id: token } },
          { type: 'source-url', title: 'A' },
        ],
      },
    ]);
    await run.approve();
    await run.result();
    expect(openCalls(await run.state())).toEqual([]);
  });
});

describe('a history of a client', () => {
  const assistant = (...parts: object[]) => [
    { id: 'u', role: 'user', parts: [{ type: 'text', text: 'Go on.' }] },
    { id: 'a', role: 'assistant', parts },
  ];
  const tool = { type: 'tool-pay', toolCallId: 'c1', input: { sum: 1 } };

  it('is taken as the AI SDK would tell a model of it', async () => {
    const messages = assistant(
      { type: 'step-start' },
      { type: 'reasoning', text: 'Hm.', state: 'done' },
      { type: 'source-url', sourceId: 's', url: 'https://a.example/' },
      { type: 'data-plan', data: { any: 1 } },
      { ...tool, state: 'output-available', output: { ok: true } },
      { type: 'step-start' },
      { type: 'text', text: 'Paid.' },
      { type: 'steering-message', parts: [{ type: 'text', text: 'Thanks.' }] },
      { type: 'text', text: 'Gladly.' },
    ) as unknown as UIMessage[];
    const theirs = await taken(await convertToModelMessages(messages));
    const ours = await taken(messages as History);
    expect(ours.recorded).toEqual(theirs.recorded);
    expect(ours.recorded.map(({ role }) => role)).toEqual([
      ...['user', 'assistant', 'tool', 'assistant', 'user', 'assistant'],
    ]);
  });

  it.each([
    [
      { state: 'approval-requested', approval: { id: 'a1' } },
      'A call of pay waits for an approval, and is not made yet.',
    ],
    [{ state: 'approval-responded', approval: { id: 'a1', approved: true } }, 'A call of pay was approved; what'],
    [{ state: 'input-available' }, 'A call of pay has no result.'],
    [{ state: 'input-streaming' }, 'A call of pay has no result.'],
    [{ state: 'output-available', output: 1, preliminary: true }, 'A call of pay has no result.'],
  ])('tells in words of a call without an outcome: %o', async (state, says) => {
    const { recorded } = await taken(assistant({ ...tool, ...state }) as History);
    expect(recorded).toMatchObject([{ role: 'user' }, { role: 'assistant', text: expect.stringContaining(says) }]);
  });

  it('has a no as the result of its call, and an error with what the model had written', async () => {
    const { recorded } = await taken(
      assistant(
        { ...tool, state: 'approval-responded', approval: { id: 'a1', approved: false, reason: 'No.' } },
        { type: 'tool-pay', toolCallId: 'c2', state: 'output-error', rawInput: 'sum=', errorText: 'Bad input.' },
      ) as History,
    );
    expect(recorded.at(-1)?.parts).toMatchObject([
      { output: { type: 'execution-denied', reason: 'No.' } },
      { output: { type: 'error-text', value: 'Bad input.' } },
    ]);
    expect(recorded[1]?.parts?.[1]).toMatchObject({ type: 'tool-call', input: 'sum=' });
  });

  it('is refused by the place of what cannot be taken', async () => {
    expect(await refused(assistant({ type: 'text', text: 'a' }, { type: 'picture' }))).toContain('history[1].parts[1]');
    expect(await refused(assistant({ type: 'file', mediaType: 'image/png', url: 'https://a.example/a.png' }))).toMatch(
      /history\[1\]\.parts\[0\].*not fetched/,
    );
  });
});
