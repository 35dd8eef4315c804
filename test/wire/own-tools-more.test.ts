/** Tools that providers define, with the packages and the kinds that `own-tools.test.ts` leaves out; compared in the same way. */
import { anthropic as anthropicTools } from '@ai-sdk/anthropic';
import { google as googleTools } from '@ai-sdk/google';
import { groq as groqTools } from '@ai-sdk/groq';
import { mistral as mistralTools } from '@ai-sdk/mistral';
import { xai as xaiTools } from '@ai-sdk/xai';
import { jsonSchema, type ToolSet as SdkTools } from 'ai';
import { expect, it } from 'vitest';
import type { Json, JsonObject } from '#core';
import type { ToolSet } from '#tools';
import { type Cases, comparing, END, endOf, noting } from './own/compare.ts';
import { bedrockAnthropic, conversations, converse, groq, interactions, vertex } from './own/more-protocols.ts';
import { ours, theirs } from './own/play.ts';
import { anthropic, says, xai } from './own/protocols.ts';
import { whole } from './pieces.ts';

const weather = (made: Json[]): object => ({
  description: 'The weather.',
  inputSchema: jsonSchema({ type: 'object', properties: { city: { type: 'string' } } }),
  execute: noting(made, 'sunny'),
});
const bashCall = { type: 'tool_use', id: 'toolu_1', name: 'bash', input: { command: 'ls' } };

const CASES: Cases = {
  'Anthropic: a page that is fetched, and a fetch that fails': {
    protocol: anthropic,
    tools: (made) => ({ web_fetch: anthropicTools.tools.webFetch_20250910({ maxUses: 2 }), weather: weather(made) }),
    replies: [
      [
        [
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_fetch', input: { url: 'https://a.example/1' } },
          {
            ...{ type: 'web_fetch_tool_result', tool_use_id: 'srvtoolu_1' },
            content: {
              ...{ type: 'web_fetch_result', url: 'https://a.example/1', retrieved_at: '2026-01-01T00:00:00Z' },
              content: {
                ...{ type: 'document', title: 'One', citations: { enabled: true } },
                source: { type: 'text', media_type: 'text/plain', data: 'It is sunny.' },
              },
            },
          },
          { type: 'server_tool_use', id: 'srvtoolu_2', name: 'web_fetch', input: { url: 'https://a.example/2' } },
          {
            ...{ type: 'web_fetch_tool_result', tool_use_id: 'srvtoolu_2' },
            content: { type: 'web_fetch_tool_result_error', error_code: 'url_not_accessible' },
          },
          { type: 'tool_use', id: 'toolu_w', name: 'weather', input: { city: 'Oslo' } },
        ],
        'tool_use',
      ],
      endOf.anthropic,
    ],
    made: [{ city: 'Oslo' }],
    acts: [
      { type: 'provider.invoked', callId: 'srvtoolu_1', tool: 'web_fetch', input: { url: 'https://a.example/1' } },
      { type: 'provider.completed', callId: 'srvtoolu_1', isError: false },
      { type: 'provider.invoked', callId: 'srvtoolu_2' },
      { type: 'provider.completed', callId: 'srvtoolu_2', isError: true },
    ],
  },
  'Anthropic: a search for tools, and a call of one that it found': {
    protocol: anthropic,
    tools: (made) => ({
      find: anthropicTools.tools.toolSearchRegex_20251119(),
      weather: { ...weather(made), providerOptions: { anthropic: { deferLoading: true } } },
    }),
    replies: [
      [
        [
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'tool_search_tool_regex', input: { pattern: 'weather' } },
          {
            ...{ type: 'tool_search_tool_result', tool_use_id: 'srvtoolu_1' },
            content: {
              type: 'tool_search_tool_search_result',
              tool_references: [{ type: 'tool_reference', tool_name: 'weather' }],
            },
          },
          { type: 'tool_use', id: 'toolu_w', name: 'weather', input: { city: 'Oslo' } },
        ],
        'tool_use',
      ],
      endOf.anthropic,
    ],
    made: [{ city: 'Oslo' }],
    acts: [
      { type: 'provider.invoked', tool: 'find', input: { pattern: 'weather' } },
      { type: 'provider.completed', tool: 'find' },
    ],
  },
  'Anthropic: a remote MCP server': {
    protocol: anthropic,
    providerOptions: {
      anthropic: { mcpServers: [{ type: 'url', name: 'files', url: 'https://files.example/mcp' }] },
    },
    tools: (made) => ({ weather: weather(made) }),
    replies: [
      [
        [
          {
            ...{ type: 'mcp_tool_use', id: 'mcptoolu_1', name: 'list', server_name: 'files' },
            input: { path: '/' },
          },
          {
            ...{ type: 'mcp_tool_result', tool_use_id: 'mcptoolu_1', is_error: false },
            content: [{ type: 'text', text: 'a.txt' }],
          },
          { type: 'tool_use', id: 'toolu_w', name: 'weather', input: { city: 'Oslo' } },
        ],
        'tool_use',
      ],
      endOf.anthropic,
    ],
    made: [{ city: 'Oslo' }],
    acts: [
      { type: 'provider.invoked', callId: 'mcptoolu_1', tool: 'list', input: { path: '/' } },
      { type: 'provider.completed', callId: 'mcptoolu_1', tool: 'list', isError: false },
    ],
  },
  'Anthropic: the computer, whose results are texts': {
    protocol: anthropic,
    tools: (made) => ({
      computer: anthropicTools.tools.computer_20250124({
        displayWidthPx: 800,
        displayHeightPx: 600,
        execute: noting(made, 'moved') as never,
      }),
    }),
    replies: [
      [
        [
          {
            ...{ type: 'tool_use', id: 'toolu_1', name: 'computer' },
            input: { action: 'mouse_move', coordinate: [10, 20] },
          },
        ],
        'tool_use',
      ],
      endOf.anthropic,
    ],
    made: [{ action: 'mouse_move', coordinate: [10, 20] }],
  },
  "Anthropic: two calls out of the provider's code, whose result comes two replies later": {
    protocol: anthropic,
    tools: (made) => ({
      code_execution: anthropicTools.tools.codeExecution_20260120(),
      weather: { ...weather(made), providerOptions: { anthropic: { allowedCallers: ['code_execution_20260120'] } } },
    }),
    replies: [
      [
        [
          { type: 'server_tool_use', id: 'srvtoolu_9', name: 'code_execution', input: { code: 'loop()' } },
          {
            ...{ type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Oslo' } },
            caller: { type: 'code_execution_20260120', tool_id: 'srvtoolu_9' },
          },
        ],
        'tool_use',
      ],
      [
        [
          {
            ...{ type: 'tool_use', id: 'toolu_2', name: 'weather', input: { city: 'Bergen' } },
            caller: { type: 'code_execution_20260120', tool_id: 'srvtoolu_9' },
          },
        ],
        'tool_use',
      ],
      [
        [
          {
            ...{ type: 'code_execution_tool_result', tool_use_id: 'srvtoolu_9' },
            content: { type: 'code_execution_result', stdout: 'ok\n', stderr: '', return_code: 0, content: [] },
          },
          says.anthropic(END),
        ],
        'end_turn',
      ],
    ],
    made: [{ city: 'Oslo' }, { city: 'Bergen' }],
    acts: [
      { type: 'provider.invoked', step: 0, callId: 'srvtoolu_9' },
      { type: 'provider.completed', step: 2, callId: 'srvtoolu_9' },
    ],
  },
  "Anthropic's tools on Bedrock, by its Messages": {
    protocol: bedrockAnthropic,
    tools: (made) => ({
      bash: anthropicTools.tools.bash_20250124({ execute: noting(made, 'a') }),
      find: anthropicTools.tools.toolSearchBm25_20251119(),
    }),
    replies: [
      [
        [
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'tool_search_tool_bm25', input: { query: 'bash' } },
          {
            ...{ type: 'tool_search_tool_result', tool_use_id: 'srvtoolu_1' },
            content: { type: 'tool_search_tool_search_result', tool_references: [] },
          },
          bashCall,
        ],
        'tool_use',
      ],
      endOf.anthropic,
    ],
    made: [{ command: 'ls' }],
    acts: [{ type: 'provider.invoked', tool: 'find' }, { type: 'provider.completed' }],
  },
  "Anthropic's tools on Bedrock, by Converse": {
    protocol: converse,
    tools: (made) => ({
      bash: anthropicTools.tools.bash_20250124({ execute: noting(made, 'a') }),
      weather: weather(made),
    }),
    replies: [
      [
        [
          { text: 'I look.' },
          { toolUse: { toolUseId: 'tooluse_1', name: 'bash', input: { command: 'ls' } } },
          { toolUse: { toolUseId: 'tooluse_2', name: 'weather', input: { city: 'Oslo' } } },
        ],
        'tool_use',
      ],
      [[{ text: END }], 'end_turn'],
    ],
    made: [{ command: 'ls' }, { city: 'Oslo' }],
  },
  'Google: tools of the server, whose signed parts go back': {
    protocol: vertex,
    tools: (made) => ({ google_search: googleTools.tools.googleSearch({}), weather: weather(made) }),
    replies: [
      [
        [
          {
            toolCall: { toolType: 'GOOGLE_SEARCH_WEB', args: { queries: ['sun'] }, id: 'srv_1' },
            thoughtSignature: 'c2lnMQ==',
          },
          {
            toolResponse: { toolType: 'GOOGLE_SEARCH_WEB', response: { search_suggestions: '<b>' }, id: 'srv_1' },
            thoughtSignature: 'c2lnMg==',
          },
          { functionCall: { name: 'weather', args: { city: 'Oslo' } }, thoughtSignature: 'c2lnMw==' },
        ],
        'STOP',
      ],
      endOf.google,
    ],
    made: [{ city: 'Oslo' }],
    acts: [
      { type: 'provider.invoked', callId: 'srv_1', input: { queries: ['sun'] } },
      { type: 'provider.completed', callId: 'srv_1' },
    ],
  },
  'Google, interactions: a search and code beside a call': {
    protocol: interactions,
    tools: (made) => ({
      google_search: googleTools.tools.googleSearch({}),
      code_execution: googleTools.tools.codeExecution({}),
      weather: weather(made),
    }),
    replies: [
      [
        [
          { type: 'google_search_call', id: 'gs_1', arguments: {}, signature: 's1' },
          {
            ...{ type: 'google_search_result', call_id: 'gs_1', signature: 's2' },
            result: [{ url: 'https://a.example/1', title: 'One' }],
          },
          { type: 'code_execution_call', id: 'ce_1', arguments: { language: 'python', code: 'print(1)' } },
          { type: 'code_execution_result', call_id: 'ce_1', result: '1\n', is_error: false },
          { type: 'function_call', id: 'fc_1', name: 'weather', arguments: { city: 'Oslo' }, signature: 's3' },
        ],
        'requires_action',
      ],
      [[{ type: 'model_output', content: [{ type: 'text', text: END }] }], 'completed'],
    ],
    made: [{ city: 'Oslo' }],
    acts: [
      { type: 'provider.invoked', callId: 'gs_1', tool: 'google_search', input: {} },
      { type: 'provider.completed', callId: 'gs_1' },
      { type: 'provider.invoked', callId: 'ce_1', tool: 'code_execution' },
      { type: 'provider.completed', callId: 'ce_1', output: '1\n' },
    ],
  },
  'Groq: a search, of which its package tells nothing': {
    protocol: groq,
    tools: () => ({ browser_search: groqTools.tools.browserSearch({}) }),
    replies: [[[{ content: END }], 'stop']],
  },
  'Mistral, conversations: a search beside a call, and one under a name of the program': {
    protocol: conversations,
    tools: (made) => ({ look: mistralTools.tools.webSearch({}), weather: weather(made) }),
    replies: [
      [
        [
          {
            ...{ type: 'tool.execution', id: 'exec_1', name: 'web_search', arguments: '{"query":"sun"}' },
            info: { found: 3 },
          },
          {
            ...{ type: 'function.call', id: 'out_2', tool_call_id: 'call_w', name: 'weather' },
            arguments: '{"city":"Oslo"}',
          },
        ],
        'stop',
      ],
      [[{ type: 'message.output', content: END }], 'stop'],
    ],
    made: [{ city: 'Oslo' }],
    acts: [
      { type: 'provider.invoked', callId: 'exec_1', tool: 'look', input: { arguments: '{"query":"sun"}' } },
      { type: 'provider.completed', callId: 'exec_1', tool: 'look' },
    ],
  },
  'xAI: posts, code, files, and a remote MCP server': {
    protocol: xai,
    tools: (made) => ({
      posts: xaiTools.tools.xSearch({}),
      run: xaiTools.tools.codeExecution(),
      files: xaiTools.tools.mcpServer({ serverUrl: 'https://files.example/mcp', serverLabel: 'files' }),
      weather: weather(made),
    }),
    replies: [
      [
        [
          {
            ...{ type: 'custom_tool_call', id: 'ctc_1', call_id: 'c1', name: 'x_keyword_search', status: 'completed' },
            input: '{"query":"sun"}',
          },
          {
            ...{ type: 'code_interpreter_call', id: 'ci_1', call_id: 'c2', name: 'code_execution' },
            ...{ status: 'completed', arguments: '{"code":"print(1)"}' },
          },
          {
            ...{ type: 'mcp_call', id: 'mcp_1', name: 'list', server_label: 'files', status: 'completed' },
            ...{ arguments: '{"path":"/"}', output: 'a.txt' },
          },
          { type: 'function_call', id: 'fc_1', call_id: 'call_w', name: 'weather', arguments: '{"city":"Oslo"}' },
        ],
        'stop',
      ],
      endOf.openai,
    ],
    made: [{ city: 'Oslo' }],
    acts: [
      { type: 'provider.invoked', callId: 'ctc_1', tool: 'posts', input: { query: 'sun' } },
      { type: 'provider.invoked', callId: 'ci_1', tool: 'run', input: { code: 'print(1)' } },
      { type: 'provider.invoked', callId: 'mcp_1', tool: 'files', input: { path: '/' } },
    ],
  },
};

comparing(CASES);

it("the input of a provider's call goes back as it came, where the AI SDK leaves out what the package's schema does not know", async () => {
  const searched = [
    { type: 'google_search_call', id: 'gs_1', arguments: { queries: ['sun'] } },
    { type: 'google_search_result', call_id: 'gs_1', result: [] },
    { type: 'function_call', id: 'fc_1', name: 'weather', arguments: {} },
  ];
  const end = { type: 'model_output', content: [{ type: 'text', text: END }] };
  const answers = [
    interactions.answer(searched, 'requires_action', false),
    interactions.answer([end], 'completed', false),
  ];
  const asked = { protocol: interactions, answers, stream: false, cut: whole };
  const tools = () => ({ google_search: googleTools.tools.googleSearch({}), weather: weather([]) });
  const { requests } = await ours(tools() as ToolSet, asked);
  const their = await theirs(tools() as SdkTools, asked);
  const inputOf = (bodies: typeof their) =>
    (bodies[1]?.body['input'] as JsonObject[]).find(({ id }) => id === 'gs_1')?.['arguments'];
  expect(inputOf(requests)).toEqual({ queries: ['sun'] });
  expect(inputOf(their)).toEqual({});
});
