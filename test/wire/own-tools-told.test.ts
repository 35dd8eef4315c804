/** What a provider has done itself is told under the program's names, and is never lost: not with a reply that was not taken, nor with a summary. */
import { anthropic as anthropicTools } from '@ai-sdk/anthropic';
import { google as googleTools } from '@ai-sdk/google';
import { openai as openaiTools } from '@ai-sdk/openai';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { defined, type Json, type JsonObject } from '#core';
import { withTools } from '#pilotage/tools';
import { react } from '#planners/react';
import { scriptedModel } from '#testing';
import type { ToolSet } from '#tools';
import { start, world } from '../kit/world.ts';
import { interactions } from './own/more-protocols.ts';
import { ours } from './own/play.ts';
import { anthropic, openai, says } from './own/protocols.ts';
import { base64, png } from './pictures.ts';
import { anywhere, jsonAnswer, whole, wire } from './pieces.ts';

const found = (encrypted_content: string): readonly JsonObject[] => [
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'sun' } },
  {
    ...{ type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1' },
    content: [
      {
        ...{ type: 'web_search_result', url: 'https://a.example/1', title: 'One', page_age: null },
        encrypted_content,
      },
    ],
  },
];
const SEARCHED = found('ZW5jcnlwdGVk');
const bashCall = { type: 'tool_use', id: 'toolu_1', name: 'bash', input: { command: 'ls' } };
const search = () => anthropicTools.tools.webSearch_20250305({});
const messagesOf = (body: JsonObject | undefined) => (body?.['messages'] ?? []) as readonly JsonObject[];

/** Claude's replies to an agent with these tools. */
function claude(tools: ToolSet, replies: readonly (readonly [readonly JsonObject[], string])[], stream = false) {
  const answers = replies.map(([blocks, stop]) => anthropic.answer(blocks, stop, stream));
  return ours(tools, { protocol: anthropic, answers, stream, cut: anywhere(5) });
}
const END = [[says.anthropic('Done.')], 'end_turn'] as const;

describe.each([false, true])('streamed: %s', (stream) => {
  it("a tool is called by its provider's name, and has the program's everywhere else", async () => {
    const made: unknown[] = [];
    const execute = async (input: unknown) => {
      made.push(input);
      return 'a.txt';
    };
    const tools = {
      'web.suche': search(),
      größe: anthropicTools.tools.bash_20250124({ execute: execute as never }),
    };
    const { result, events, requests, run } = await claude(tools, [[[...SEARCHED, bashCall], 'tool_use'], END], stream);
    expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(made).toEqual([{ command: 'ls' }]);
    expect(events.filter(({ type }) => type.startsWith('provider.'))).toMatchObject([
      { tool: 'web.suche' },
      { tool: 'web.suche' },
    ]);
    expect((await run.state()).steps[0]?.decision).toMatchObject({ tool: 'größe' });
    const [, told] = messagesOf(requests[1]?.body);
    expect(told).toMatchObject({ content: [...SEARCHED, bashCall] });
  });

  it('a reply of nothing but calls of the provider is not empty: they go back, and are told', async () => {
    const { result, events, requests } = await claude({ look: search() }, [[SEARCHED, 'end_turn'], END], stream);
    expect(result).toMatchObject({ status: 'finished', answer: 'Done.' });
    expect(messagesOf(requests[1]?.body)[1]).toMatchObject({ role: 'assistant', content: SEARCHED });
    expect(events.filter(({ type }) => type.startsWith('provider.'))).toHaveLength(2);
  });
});

it('an answer that does not fit its schema keeps the search that it came of', async () => {
  const answers = [
    anthropic.answer([...SEARCHED, says.anthropic('{"sun": "high"}')], 'end_turn', false),
    anthropic.answer([says.anthropic('{"sun": 3}')], 'end_turn', false),
  ];
  const { fetch, requests } = wire(answers, whole);
  const answerSchema = { type: 'object', properties: { sun: { type: 'number' } }, required: ['sun'] };
  const model = {
    model: anthropic.model({ baseURL: 'http://127.0.0.1/v1', fetch }),
    structuredOutput: 'text' as const,
  };
  const run = await start(world({ planner: react({ model, answerSchema }), tools: { look: search() } }));
  expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', payload: { sun: 3 } });
  expect(messagesOf(requests[1]?.body)[1]).toMatchObject({ content: [...SEARCHED, { type: 'text' }] });
});

it('the price of a tool counts under whatever name its provider has for it', async () => {
  const steps = [
    { type: 'google_search_call', id: 'gs_1', arguments: {} },
    { type: 'google_search_result', call_id: 'gs_1', result: [] },
    { type: 'model_output', content: [{ type: 'text', text: 'Done.' }] },
  ];
  const tools = withTools({ look: googleTools.tools.googleSearch({}) }, { look: { costUsd: 1 } });
  const answers = [interactions.answer(steps, 'completed', false)];
  const { result, events } = await ours(tools, { protocol: interactions, answers, stream: false, cut: whole });
  expect(result.usage.costMicroUsd).toBe(1_000_000);
  expect(events).toContainEqual(expect.objectContaining({ type: 'provider.invoked', tool: 'look' }));
});

it('results of a provider may be larger than what a model writes', async () => {
  const large = found('A'.repeat(2_500_000));
  const bash = anthropicTools.tools.bash_20250124({ execute: async () => 'a.txt' });
  const { result, requests } = await claude({ look: search(), bash }, [[[...large, bashCall], 'tool_use'], END]);
  expect(result).toMatchObject({ status: 'finished', usage: { steps: 1 } });
  expect(messagesOf(requests[1]?.body)[1]).toMatchObject({ content: [...large, bashCall] });
});

it('a model that has only tools of its provider is not told that there are none', async () => {
  const { requests } = await claude({ look: search() }, [END]);
  const system = JSON.stringify(requests[0]?.body['system']);
  expect(system).not.toContain('No tools are available');
  expect(system).toContain('tool_usage');
});

it('whoever sums up the steps reads what the provider did in them', async () => {
  const step = (n: number): readonly JsonObject[] => [
    {
      ...{ type: 'web_search_call', id: `ws_${n}`, status: 'completed' },
      action: { type: 'search', query: `question ${n}`, sources: [] },
    },
    {
      ...{ type: 'function_call', id: `fc_${n}`, call_id: `call_${n}`, name: 'weather', status: 'completed' },
      arguments: `{"n":${n}}`,
    },
  ];
  const at = (fetch: typeof globalThis.fetch) => openai.model({ baseURL: 'http://127.0.0.1/v1', fetch });
  const { fetch } = wire(
    [0, 1, 2]
      .map((n) => openai.answer(step(n), 'stop', false))
      .concat(openai.answer([says.openai('Done.')], 'stop', false)),
    whole,
  );
  const summary = { goals: ['It is done.'], facts: ['It was found.'], pending: [], lastOutputDigest: 'Sun.', note: '' };
  const summaries = wire([openai.answer([says.openai(JSON.stringify(summary))], 'stop', false)], whole);
  const planner = react({
    model: at(fetch),
    compaction: { budgetTokens: 600, summariser: at(summaries.fetch) },
  });
  const weather = { inputSchema: { type: 'object' }, effect: 'read' as const, execute: () => 'sunny '.repeat(600) };
  const run = await start(world({ planner, tools: { look: openaiTools.tools.webSearch({}), weather } }));
  expect(await run.result()).toMatchObject({ status: 'finished', answer: 'Done.' });
  const asked = JSON.stringify(summaries.requests[0]?.body['input']);
  expect(asked).toMatch(/also_done what=[\s\S]*look[\s\S]*question 0/);
});

it('no setting of a tool is recorded or told, also when its provider refuses it', async () => {
  const refusal = jsonAnswer(
    { error: { message: 'Nobody is vault-never-recorded-1.', type: 'invalid_request_error', code: 'bad' } },
    400,
  );
  const headers = { authorization: 'Bearer vault-never-recorded-1' };
  const mcp = openaiTools.tools.mcp({ serverLabel: 'files', serverUrl: 'https://files.example/mcp', headers });
  const { fetch, requests } = wire([refusal], whole);
  const model = openai.model({ baseURL: 'http://127.0.0.1/v1', fetch });
  const made = world({ planner: react({ model }), tools: { mcp } });
  const run = await start(made);
  const told: unknown[] = [await run.result(), await run.state()];
  for await (const event of run.events()) told.push(event);
  told.push(await made.journal.read(run.id, 1), made.faults.map(String));
  expect(JSON.stringify(requests[0]?.body)).toContain('never-recorded');
  expect(JSON.stringify(told)).not.toContain('never-recorded');
});

it('a result that is nothing, against its type, is no failure of the model', async () => {
  const nothing = { type: 'tool-result', toolCallId: 'p', toolName: 'web_search', result: undefined } as never;
  const asked = { type: 'tool-call', toolCallId: 'p', toolName: 'web_search', input: 'null' } as const;
  const content = [{ ...asked, providerExecuted: true }, nothing, { type: 'text', text: 'Done.' } as const];
  const model = scriptedModel([{ content, finish: 'stop' }]);
  const run = await start(world({ planner: react({ model }), tools: { web_search: search() } }));
  expect(await run.result()).toMatchObject({ status: 'finished', answer: 'Done.' });
});

describe("while code of the provider's waits for results", () => {
  const caller = { type: 'code_execution_20260120', tool_id: 'srvtoolu_9' };
  const asks = (id: string, n: Json): JsonObject => ({
    ...{ type: 'tool_use', id, name: 'price', input: { n } },
    caller,
  });
  const begun = { type: 'server_tool_use', id: 'srvtoolu_9', name: 'code_execution', input: { code: 'loop()' } };
  const ran = {
    ...{ type: 'code_execution_tool_result', tool_use_id: 'srvtoolu_9' },
    content: { type: 'code_execution_result', stdout: 'ok', stderr: '', return_code: 0, content: [] },
  };
  const replies = [
    [[begun, asks('toolu_1', 1)], 'tool_use'],
    [[asks('toolu_2', 2)], 'tool_use'],
    [[ran, { type: 'tool_use', id: 'toolu_3', name: 'price', input: { n: 3 } }], 'tool_use'],
    END,
  ] as const;
  const tools = (execute: (args: JsonObject) => unknown, more: object = {}): ToolSet => ({
    code_execution: anthropicTools.tools.codeExecution_20260120(),
    price: {
      inputSchema: { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] },
      effect: 'read',
      providerOptions: { anthropic: { allowedCallers: ['code_execution_20260120'] } },
      execute: execute as never,
      ...more,
    },
  });
  const answering = (summariser?: LanguageModelV4) => {
    const answers = replies.map(([blocks, stop]) => anthropic.answer(blocks, stop, false));
    const { fetch, requests } = wire(answers, whole);
    const compaction = summariser && { budgetTokens: 600, summariser };
    const model = anthropic.model({ baseURL: 'http://127.0.0.1/v1', fetch });
    return { planner: react({ model, ...defined({ compaction }) }), requests };
  };
  /** The types of the blocks of the last turn. */
  const lastOf = (body: JsonObject | undefined) =>
    ((messagesOf(body).at(-1)?.['content'] ?? []) as readonly JsonObject[]).map(({ type }) => type);

  it('a request has nothing but these in its last turn; what came in is told behind what the code gave', async () => {
    const { planner, requests } = answering();
    const execute = (): string => {
      if (requests.length === 1) void run.steer('USER_MESSAGE', { message: 'Hurry.' });
      return 'x'.repeat(10);
    };
    const made = world({ planner, tools: tools(execute) });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'Done.' });
    expect(requests.map(({ body }) => lastOf(body))).toEqual([
      ['text'],
      ['tool_result'],
      ['tool_result'],
      ['tool_result', 'text'],
    ]);
    expect(JSON.stringify(messagesOf(requests[3]?.body).at(-1))).toContain('Hurry.');
  });

  it('nor the picture of a result that is an error', async () => {
    const { planner, requests } = answering();
    const failed = { content: [{ type: 'image', data: base64(png()), mimeType: 'image/png' }], isError: true };
    const toModelOutput = ({ output }: { output: typeof failed }) => inContent(output.content);
    const price = () => (requests.length === 1 ? failed : { content: [] });
    const run = await start(world({ planner, tools: tools(price, { toModelOutput }) }));
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'Done.' });
    expect(requests.map(({ body }) => lastOf(body))).toEqual([
      ['text'],
      ['tool_result'],
      ['tool_result'],
      ['tool_result', 'text', 'text', 'image'],
    ]);
  });

  it('none of its steps becomes a summary', async () => {
    const summary = { goals: ['Do it.'], facts: ['Prices.'], pending: [], lastOutputDigest: 'Prices.', note: '' };
    const summariser = scriptedModel(() => ({ text: JSON.stringify(summary) }));
    const { planner, requests } = answering(summariser);
    const run = await start(world({ planner, tools: tools(() => 'long '.repeat(600)) }));
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'Done.' });
    for (const { body } of requests.slice(1, 3)) expect(JSON.stringify(body)).toContain('"id":"srvtoolu_9"');
    // When the code has ended, all of it goes at once.
    const [, , , end] = requests.map(({ body }) => JSON.stringify(messagesOf(body)));
    expect(end?.includes('"id":"srvtoolu_9"')).toBe(end?.includes('"tool_use_id":"srvtoolu_9"'));
  });
});

/** As a client of MCP tells it. */
function inContent(content: readonly { readonly data: string; readonly mimeType: string }[]): object {
  return {
    type: 'content',
    value: content.map(({ data, mimeType }) => ({ type: 'file', mediaType: mimeType, data: { type: 'data', data } })),
  };
}
