/** The conversation that a caller gives before a run: each form is taken over as it is, or refused by name. */
import { generateText, type ModelMessage } from 'ai';
import { describe, expect, it } from 'vitest';
import { local, type Turn } from '#core';
import { memoryJournal } from '#journal';
import { react } from '#planners/react';
import type { StartOptions } from '#runtime';
import { scriptedModel } from '#testing';
import { finish, watched } from '../kit/decisions.ts';
import { entriesOf } from '../kit/run-record.ts';
import { echo } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

type History = NonNullable<StartOptions['history']>;

const PNG = new Uint8Array([137, 80, 78, 71, 13, 10, 26, 10]);
const PDF = new Uint8Array([37, 80, 68, 70]);

const MESSAGES: ModelMessage[] = [
  { role: 'system', content: 'Answer in verse.' },
  {
    role: 'user',
    content: [
      { type: 'text', text: 'What is this?' },
      { type: 'image', image: PNG },
      { type: 'file', data: Buffer.from(PDF).toString('base64'), mediaType: 'application/pdf', filename: 'a.pdf' },
      { type: 'text', text: 'Be brief.', providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } },
    ],
  },
  {
    role: 'assistant',
    content: [
      { type: 'reasoning', text: 'I look it up.', providerOptions: { anthropic: { signature: 's' } } },
      { type: 'text', text: 'Let me see.' },
      { type: 'tool-call', toolCallId: 'c1', toolName: 'echo', input: { a: 1 } },
      { type: 'tool-call', toolCallId: 'c2', toolName: 'echo', input: { a: 2 } },
    ],
  },
  {
    role: 'tool',
    content: [
      { type: 'tool-result', toolCallId: 'c1', toolName: 'echo', output: { type: 'json', value: { a: 1 } } },
      { type: 'tool-result', toolCallId: 'c2', toolName: 'echo', output: { type: 'error-text', value: 'It is down.' } },
    ],
  },
  { role: 'assistant', content: 'A map.' },
];

async function sent(history: History, toolCalls: 'native' | 'text' = 'native') {
  const model = scriptedModel([{ text: 'done' }]);
  const made = world({ planner: react({ model: { model, toolCalls, inputs: ['image/*'] } }), tools: [echo] });
  const run = await start(made, { history, query: 'And now?' });
  expect(await run.result()).toMatchObject({ status: 'finished' });
  const [started] = await entriesOf(made.journal, run, 'started');
  return { prompt: model.calls[0]?.prompt ?? [], started };
}

/** The turns as they are recorded, and as a planner is shown them. */
async function taken(history: History) {
  const planner = watched(() => finish());
  const made = world({ planner });
  const run = await start(made, { history });
  await run.result();
  const [started] = await entriesOf(made.journal, run, 'started');
  return { recorded: started?.history, shown: planner.views[0]?.history };
}

async function refused(history: unknown): Promise<string> {
  const journal = memoryJournal();
  const made = world({ planner: () => finish(), journal });
  const error = await start(made, { history: history as History }).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'invalid_config' });
  expect(await journal.list({})).toEqual([]);
  expect((await journal.artifacts.list(local('ana'), 5)).total).toBe(0);
  return (error as Error).message;
}

describe('a history', () => {
  it('of messages of the AI SDK is sent in its own roles and parts', async () => {
    const { prompt, started } = await sent(MESSAGES);
    expect(prompt.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'user']);
    expect(prompt[0]?.content).toMatch(/\n\nAnswer in verse\.$/);
    expect(prompt[1]?.content).toMatchObject([
      { type: 'text', text: 'What is this?' },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: PNG } },
      { type: 'text', text: expect.stringContaining('An attachment of an earlier message, by reference:') },
      { type: 'text', text: 'Be brief.', providerOptions: { anthropic: { cacheControl: { type: 'ephemeral' } } } },
    ]);
    expect(prompt[2]?.content).toEqual([
      { type: 'reasoning', text: 'I look it up.', providerOptions: { anthropic: { signature: 's' } } },
      { type: 'text', text: 'Let me see.' },
      { type: 'tool-call', toolCallId: 'c1', toolName: 'echo', input: { a: 1 } },
      { type: 'tool-call', toolCallId: 'c2', toolName: 'echo', input: { a: 2 } },
    ]);
    expect(prompt[3]?.content).toEqual([
      { type: 'tool-result', toolCallId: 'c1', toolName: 'echo', output: { type: 'text', value: '{"a":1}' } },
      {
        ...{ type: 'tool-result', toolCallId: 'c2', toolName: 'echo' },
        output: { type: 'error-text', value: '<call_error>\nIt is down.\n</call_error>' },
      },
    ]);
    expect(prompt[4]?.content).toEqual([{ type: 'text', text: 'A map.' }]);
    // Bytes are artifacts of the session, and the entry has their references.
    expect(JSON.stringify(started).length).toBeLessThan(2_500);
    expect(started?.history?.[1]?.parts?.[1]).toMatchObject({
      type: 'file',
      artifactRef: expect.stringMatching(/^art_/),
    });
  });

  it('tells a model without native calls of them in its text', async () => {
    const { prompt } = await sent(MESSAGES, 'text');
    expect(prompt.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user', 'assistant', 'user']);
    expect(JSON.stringify(prompt[2]?.content)).toContain('{\\"tool\\":\\"echo\\",\\"args\\":{\\"a\\":1}}');
    expect(prompt[3]?.content).toEqual([
      {
        type: 'text',
        text: '<tool_result tool="echo" call="1">\n{"a":1}\n</tool_result>\n<tool_result tool="echo" call="2">\n<call_error>\nIt is down.\n</call_error>\n</tool_result>',
      },
    ]);
  });

  it('may be what an AI SDK call has given back', async () => {
    const { response } = await generateText({ model: scriptedModel([{ text: 'hello' }]) as never, prompt: 'hi' });
    const history: ModelMessage[] = [{ role: 'user', content: 'hi' }, ...response.messages];
    const { shown } = await taken(history);
    expect(shown?.map(({ role, text }) => [role, text])).toEqual([
      ['user', 'hi'],
      ['assistant', 'hello'],
    ]);
  });

  it('may be what a view has shown, files included', async () => {
    const { shown } = await taken(MESSAGES);
    const [again] = [await taken((shown ?? []) as readonly Turn[])];
    expect(again.shown?.map(({ role, text }) => [role, text])).toEqual(shown?.map(({ role, text }) => [role, text]));
    expect(again.recorded?.[1]?.parts).toHaveLength(4);
  });

  it('of plain texts is recorded as it is given', async () => {
    const history: Turn[] = [
      { role: 'user', text: 'a' },
      { role: 'assistant', text: 'b' },
    ];
    expect((await taken(history)).recorded).toEqual(history);
    expect(
      (
        await taken([
          { role: 'user', content: 'a' },
          { role: 'assistant', content: [{ type: 'text', text: 'b' }] },
        ])
      ).recorded,
    ).toEqual(history);
  });

  it('has results that a provider gave in the message of the model in a turn of their own', async () => {
    const { shown } = await taken([
      { role: 'user', content: 'Search.' },
      {
        role: 'assistant',
        content: [
          { type: 'tool-call', toolCallId: 'p', toolName: 'web', input: {}, providerExecuted: true },
          {
            type: 'tool-result',
            toolCallId: 'p',
            toolName: 'web',
            output: { type: 'content', value: [{ type: 'text', text: 'found' }] },
          },
          { type: 'text', text: 'There.' },
        ],
      },
    ]);
    expect(shown?.map(({ role, parts }) => [role, parts?.map(({ type }) => type)])).toEqual([
      ['user', undefined],
      ['assistant', ['tool-call']],
      ['tool', ['tool-result']],
      ['assistant', undefined],
    ]);
    expect(shown?.at(-1)?.text).toBe('There.');
  });

  it('keeps a call beside one whose provider has answered, until its own result', async () => {
    const call = (id: string) => ({ type: 'tool-call' as const, toolCallId: id, toolName: 't', input: {} });
    const result = (id: string) => ({
      ...{ type: 'tool-result' as const, toolCallId: id, toolName: 't' },
      output: { type: 'text' as const, value: id },
    });
    const { shown } = await taken([
      { role: 'user', content: 'Search.' },
      { role: 'assistant', content: [call('a'), call('b'), result('b'), { type: 'text', text: 'One moment.' }] },
      { role: 'tool', content: [result('a')] },
    ]);
    expect(shown?.map(({ role, parts }) => [role, parts?.map(({ type }) => type)])).toEqual([
      ['user', undefined],
      ['assistant', ['tool-call', 'tool-call', 'text']],
      ['tool', ['tool-result']],
      ['tool', ['tool-result']],
    ]);
  });

  it('has files of the model behind its turn and its results, where every provider takes them', async () => {
    const image = { type: 'file' as const, data: PNG, mediaType: 'image/png' };
    const call = { type: 'tool-call' as const, toolCallId: 'c', toolName: 'echo', input: {} };
    const { type: _, input: __, ...of } = call;
    const { prompt } = await sent([
      { role: 'user', content: 'Draw.' },
      { role: 'assistant', content: [image, { type: 'text', text: 'Here.' }, call] },
      { role: 'tool', content: [{ type: 'tool-result', ...of, output: { type: 'text', value: 'ok' } }] },
      { role: 'assistant', content: 'Done.' },
    ]);
    expect(prompt.map(({ role }) => role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'user',
      'assistant',
      'user',
    ]);
    expect(prompt[4]?.content).toMatchObject([
      { type: 'text', text: expect.stringContaining('Made by you in the reply before') },
      { type: 'file', mediaType: 'image/png', data: { type: 'data', data: PNG } },
    ]);
  });

  it('has no empty file, and a wrong output of a result is told in words for outputs', async () => {
    expect(await refused([{ role: 'user', content: [{ type: 'file', data: '', mediaType: 'image/png' }] }])).toContain(
      'history[0].content[0] is an empty file',
    );
    const old = { type: 'tool-result', toolCallId: 'c', toolName: 't', result: 'v' };
    expect(await refused([{ role: 'tool', content: [old] }])).toContain("such as { type: 'text', value }");
  });

  it('never has an id of a call that the run makes itself', async () => {
    const model = scriptedModel([{ calls: [{ tool: 'echo', args: {} }] }, { text: 'done' }]);
    const made = world({ planner: react({ model }), tools: [echo] });
    const call = { toolCallId: 'react.callid.0', toolName: 'echo' };
    const history: ModelMessage[] = [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: [{ type: 'tool-call', ...call, input: {} }] },
      { role: 'tool', content: [{ type: 'tool-result', ...call, output: { type: 'text', value: 'y' } }] },
    ];
    await (await start(made, { history })).result();
    const ids = (model.calls[1]?.prompt ?? []).flatMap(({ content }) =>
      typeof content === 'string'
        ? []
        : content.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : [])),
    );
    expect(ids).toHaveLength(2);
    expect(new Set(ids).size).toBe(2);
  });

  const call = { type: 'tool-call', toolCallId: 'c', toolName: 't', input: {} };
  const result = { type: 'tool-result', toolCallId: 'c', toolName: 't', output: { type: 'text', value: 'v' } };
  it.each<[string, unknown, string]>([
    [
      'another role',
      [{ role: 'developer', content: 'x' }],
      'history[0].role is "developer"; give system, user, assistant or tool.',
    ],
    ['no text', [{ role: 'user' }], 'history[0] is not a turn.'],
    ['nothing', [null], 'history[0] is null; give an object'],
    [
      'a system turn that is late',
      [
        { role: 'user', text: 'a' },
        { role: 'system', text: 'b' },
      ],
      'Put it first',
    ],
    ['a tool turn without parts', [{ role: 'tool', text: 'x' }], 'history[0] is of the role tool'],
    [
      'a part of another role',
      [{ role: 'user', content: [call] }],
      'history[0].content[0] is a part of the type "tool-call", which a turn of the role user cannot have',
    ],
    [
      'a part that nobody knows',
      [{ role: 'assistant', content: [{ type: 'custom', kind: 'x.y' }] }],
      'the type "custom"',
    ],
    [
      'an approval',
      [{ role: 'tool', content: [{ type: 'tool-approval-response', approvalId: 'a', approved: true }] }],
      'the type "tool-approval-response"',
    ],
    [
      'a URL',
      [{ role: 'user', content: [{ type: 'image', image: new URL('https://example.org/a.png') }] }],
      'What stands at a URL is not fetched',
    ],
    [
      'a broken data URL',
      [{ role: 'user', content: [{ type: 'file', data: 'data:text/plain,%E0%A4', mediaType: 'text/plain' }] }],
      'which is not base64',
    ],
    [
      'a reference of a provider',
      [{ role: 'user', content: [{ type: 'file', data: { openai: 'file-1' }, mediaType: 'image/png' }] }],
      'history[0].content[0].data cannot be stored as a file',
    ],
    [
      'a picture of which nobody knows the type',
      [{ role: 'user', content: [{ type: 'image', image: new Uint8Array([1]) }] }],
      'needs its mediaType',
    ],
    [
      'a call without its result',
      [
        { role: 'assistant', content: [call] },
        { role: 'user', text: 'x' },
      ],
      'the call "c" of t without its result',
    ],
    ['a result without its call', [{ role: 'tool', content: [result] }], 'a result of the call "c"'],
    ['two calls of one id', [{ role: 'assistant', content: [call, call] }], 'Two calls of the history have the id "c"'],
    [
      'a picture as a result',
      [
        { role: 'assistant', content: [call] },
        {
          role: 'tool',
          content: [{ ...result, output: { type: 'content', value: [{ type: 'image-data', data: '' }] } }],
        },
      ],
      'has more than texts',
    ],
    [
      'text that is none',
      [{ role: 'user', content: [{ type: 'text', text: 7 }] }],
      'history[0].content[0].text is 7; give a string.',
    ],
  ])('with %s is refused by name, and nothing is stored', async (_, history, message) => {
    expect(await refused(history)).toContain(message);
  });
});

describe('a long history', () => {
  it('loses the ends of its longest texts, and says so, where the window of the model is small', async () => {
    const model = scriptedModel([{ text: 'done' }]);
    const planner = react({ model: { model, contextTokens: 8_000 } });
    const made = world({ planner });
    const history: Turn[] = [
      { role: 'user', text: 'short' },
      { role: 'assistant', text: 'x'.repeat(60_000) },
    ];
    expect(await (await start(made, { history })).result()).toMatchObject({ status: 'finished' });
    const text = JSON.stringify(model.calls[0]?.prompt[2]?.content);
    expect(text).toMatch(/x{5000,12000}\\n<left_out>\\n4\d{4} more characters\\n<\/left_out>/);
    expect(model.calls[0]?.prompt[1]?.content).toEqual([{ type: 'text', text: 'short' }]);
  });

  it('is whole where nobody knows of a limit', async () => {
    const { prompt } = await sent([{ role: 'user', text: 'x'.repeat(60_000) }]);
    expect(prompt[1]?.content).toEqual([{ type: 'text', text: 'x'.repeat(60_000) }]);
  });
});
