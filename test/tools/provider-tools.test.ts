/** Tools of providers as they are taken, and to whom they can be offered. */
import { anthropic as anthropicTools, createAnthropic } from '@ai-sdk/anthropic';
import { createAzure } from '@ai-sdk/azure';
import { createOpenAI, openai as openaiTools } from '@ai-sdk/openai';
import { createXai } from '@ai-sdk/xai';
import { describe, expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { openaiCompatible } from '#model/openai-compatible';
import { createRuntime } from '#pilotage';
import { createCatalogue, withTools } from '#pilotage/tools';
import { react } from '#planners/react';
import { type ToolSet, toolSearch } from '#tools';

const apiKey = 'k';
const claude = createAnthropic({ apiKey })('claude-sonnet-4-5');
const gpt = createOpenAI({ apiKey });
const search = () => anthropicTools.tools.webSearch_20250305({ maxUses: 3 });
const bash = () => anthropicTools.tools.bash_20250124({ execute: async () => 'x' });
const invalid = (message: RegExp, code = 'invalid_config') =>
  expect.objectContaining({ code, message: expect.stringMatching(message) });
const made = (model: Parameters<typeof react>[0]['model'], tools: ToolSet) => () =>
  createRuntime({ planner: react({ model }), tools, journal: memoryJournal() });

describe('a tool that its provider carries out', () => {
  it('is offered by its type, and is in no list of tools that can be called', () => {
    const view = createCatalogue({ web_search: search() }).view([]);
    expect(view.list()).toEqual([]);
    expect(view.all()).toEqual([]);
    expect(view.hosted).toMatchObject([
      { name: 'web_search', provider: { id: 'anthropic.web_search_20250305', args: { maxUses: 3 }, hosted: true } },
    ]);
  });

  it('is there for whom its scopes let have it', () => {
    const tools = withTools({ web_search: search() }, { web_search: { scopes: ['web'] } });
    expect(createCatalogue(tools).view([]).hosted).toBeUndefined();
    expect(createCatalogue(tools).view(['web']).hosted).toHaveLength(1);
    expect(createCatalogue(tools).view(['web'], [], ['web_search']).hosted).toBeUndefined();
  });

  it.each([
    'effect',
    'retries',
    'handles',
    'timeoutMs',
    'reconcile',
    'loading',
  ] as const)('says nothing with %s', (key) => {
    const value = { effect: 'read', retries: 1, handles: {}, timeoutMs: 1, reconcile: () => {}, loading: 'deferred' }[
      key
    ];
    const tools = withTools({ web_search: search() }, { web_search: { [key]: value } as never });
    expect(() => createCatalogue(tools)).toThrow(
      invalid(new RegExp(`carried out by its provider, where ${key} says nothing`)),
    );
  });

  it('needs a planner that offers tools to a model', () => {
    const planner = () => ({ kind: 'finish', reason: 'goal' }) as const;
    expect(() => createRuntime({ planner, tools: { web_search: search() }, journal: memoryJournal() })).toThrow(
      invalid(/offers tools to no model/),
    );
  });
});

describe('a tool of a kind of the provider that runs here', () => {
  it('needs its function', () => {
    expect(() => createCatalogue({ memory: anthropicTools.tools.memory_20250818({} as never) })).toThrow(
      invalid(
        /memory \(anthropic\.memory_20250818\) is called by the model and carried out here/,
        'tool_without_execute',
      ),
    );
    expect(() => createCatalogue({ sql: openaiTools.tools.customTool({}) })).toThrow(
      invalid(/execute/, 'tool_without_execute'),
    );
  });

  it('needs it too where its package does not say who carries it out, as those of AI SDK 6', () => {
    const { isProviderExecuted: _, ...shell } = openaiTools.tools.shell({});
    expect(() => createCatalogue({ shell })).toThrow(invalid(/execute/, 'tool_without_execute'));
    const { isProviderExecuted: __, ...web } = openaiTools.tools.webSearch({});
    expect(createCatalogue({ web }).view([]).hosted).toHaveLength(1);
  });

  it("has its settings' description, for planners that show it to their model", () => {
    const sql = openaiTools.tools.customTool({ description: 'Runs SQL.', execute: async () => 'x' });
    expect(createCatalogue({ sql }).view([]).get('sql')).toMatchObject({ description: 'Runs SQL.' });
  });

  it('runs elsewhere where its settings say so', () => {
    const tools = {
      shell: openaiTools.tools.shell({ environment: { type: 'containerAuto' } }),
      tool_search: openaiTools.tools.toolSearch(),
    };
    expect(createCatalogue(tools).view([]).hosted).toHaveLength(2);
    expect(() => createCatalogue({ find: openaiTools.tools.toolSearch({ execution: 'client' }) })).toThrow(
      invalid(/execute/, 'tool_without_execute'),
    );
  });

  it('is another tool when its type changes, and the same when only its settings do', () => {
    const digest = (tool: object) =>
      createCatalogue({ edit: tool as never })
        .view([])
        .digests()['edit'];
    const execute = async () => 'x';
    const newer = anthropicTools.tools.textEditor_20250728({ execute });
    expect(digest(newer)).toBe(digest(anthropicTools.tools.textEditor_20250728({ execute, maxCharacters: 9 })));
    expect(digest(newer)).not.toBe(digest(anthropicTools.tools.textEditor_20250429({ execute })));
  });

  it('may have all that a tool may have', () => {
    const tools = withTools(
      { bash: bash() },
      { bash: { effect: 'read', needsApproval: true, timeoutMs: 9, costUsd: 0.5 } },
    );
    expect(createCatalogue(tools).view([]).ready('bash')).toMatchObject({
      timeoutMs: 9,
      effect: 'read',
      costMicroUsd: 500_000,
    });
  });
});

describe('the name that the provider gives a tool', () => {
  const weather = { inputSchema: { type: 'object' }, execute: () => 'sunny' };

  it.each<[string, ToolSet]>([
    ['a tool of the program', { look: search(), web_search: weather }],
    ['another tool of that type', { look: search(), find: search() }],
    ['a newer one', { look: search(), find: anthropicTools.tools.webSearch_20260209({}) }],
    ['a tool that runs here', { shell: bash(), bash: weather }],
  ])('is refused beside %s of that name', (_, tools) => {
    expect(() => createCatalogue(tools)).toThrow(invalid(/A model would call both of the tools/, 'tool_name_taken'));
  });

  it('is the program’s to give where it may have several', () => {
    const server = (serverLabel: string) => openaiTools.tools.mcp({ serverLabel, serverUrl: 'https://a.example' });
    const custom = () => openaiTools.tools.customTool({ execute: async () => 'x' });
    expect(() => createCatalogue({ a: server('a'), b: server('b'), sql: custom(), lark: custom() })).not.toThrow();
  });

  it("makes Pilotage's own tool give way", () => {
    const tools = { find: openaiTools.tools.toolSearch(), weather: { ...weather, loading: 'deferred' as const } };
    const view = createCatalogue(tools, [toolSearch]).view([]);
    expect(view.all().map(({ name }) => name)).toEqual(['pilotage_tool_search', 'weather']);
  });
});

describe('can be offered', () => {
  it.each<[string, Parameters<typeof react>[0]['model'], ToolSet]>([
    ['Anthropic', claude, { search: search(), bash: bash() }],
    ['OpenAI by Responses', gpt.responses('gpt-5.2'), { web: openaiTools.tools.webSearch({}) }],
    [
      'Azure by Responses',
      createAzure({ apiKey, resourceName: 'r' }).responses('d'),
      { web: openaiTools.tools.webSearch({}) },
    ],
    [
      'a model whose provider has a name of its own',
      createAnthropic({ apiKey, name: 'ours' })('claude'),
      { bash: bash() },
    ],
  ])('to %s', (_, model, tools) => {
    expect(made(model, tools)).not.toThrow();
  });

  it.each<[string, Parameters<typeof react>[0]['model'], ToolSet, RegExp]>([
    ['a model in text mode', { model: claude, toolCalls: 'text' }, { bash: bash() }, /calls tools in its text/],
    [
      'a model of another provider',
      gpt.responses('gpt-5.2'),
      { search: search() },
      /search .*openai\.responses does not know/,
    ],
    ['OpenAI by Chat', gpt.chat('gpt-5.2'), { web: openaiTools.tools.webSearch({}) }, /openai\.responses\(id\)/],
    [
      'a server that speaks like OpenAI',
      openaiCompatible({ baseUrl: 'http://127.0.0.1:9/v1', model: 'm' }),
      { bash: bash() },
      /bash/,
    ],
    ['one of several models', [claude, gpt.responses('gpt-5.2')], { search: search() }, /the model gpt-5\.2/],
    [
      'xAI, for a tool of OpenAI',
      createXai({ apiKey }).responses('grok-4'),
      { web: openaiTools.tools.webSearch({}) },
      /xai/,
    ],
  ])('not to %s', (_, model, tools, message) => {
    expect(made(model, tools)).toThrow(invalid(message));
  });

  it('not to a planner that takes over and whose model does not know it', () => {
    const fallback = react({ model: { model: claude, toolCalls: 'text' } });
    const planner = react({ model: claude, fallback });
    expect(() => createRuntime({ planner, tools: { bash: bash() }, journal: memoryJournal() })).toThrow(
      invalid(/calls tools in its text/),
    );
  });
});
