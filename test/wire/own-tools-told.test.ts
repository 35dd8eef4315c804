/** What a provider has done itself is told under the program's names, and is never lost: not with a reply that was not taken, nor with a summary. */
import { anthropic as anthropicTools } from '@ai-sdk/anthropic';
import { google as googleTools } from '@ai-sdk/google';
import { openai as openaiTools } from '@ai-sdk/openai';
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '#core';
import { withTools } from '#pilotage/tools';
import { react } from '#planners/react';
import { scriptedModel } from '#testing';
import type { ToolSet } from '#tools';
import { start, world } from '../kit/world.ts';
import { interactions } from './own/more-protocols.ts';
import { ours } from './own/play.ts';
import { anthropic, openai, says } from './own/protocols.ts';
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
  const refusal = jsonAnswer({ error: { message: 'Bad tool.', type: 'invalid_request_error', code: 'bad' } }, 400);
  const headers = { authorization: 'Bearer never-recorded' };
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
