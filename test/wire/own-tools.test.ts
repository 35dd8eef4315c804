/**
 * Tools that providers define, with their packages: those that the provider carries out itself, and those that run here. Our agent beside the
 * AI SDK's own loop on the same bytes, in one piece and in a stream that is cut anywhere: the same calls, the same requests.
 */
import { anthropic as anthropicTools } from '@ai-sdk/anthropic';
import { google as googleTools } from '@ai-sdk/google';
import { openai as openaiTools } from '@ai-sdk/openai';
import { xai as xaiTools } from '@ai-sdk/xai';
import { jsonSchema } from 'ai';
import type { JsonObject } from '#core';
import { type Cases, comparing, END, endOf, noting } from './own/compare.ts';
import { anthropic, google, openai, says, xai } from './own/protocols.ts';

const FOUND = [
  {
    ...{ type: 'web_search_result', url: 'https://a.example/1', title: 'One', page_age: null },
    encrypted_content: 'ZW5jcnlwdGVk',
  },
];
const SEARCHED: readonly JsonObject[] = [
  { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'sun' } },
  { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: FOUND },
];

const CASES: Cases = {
  'Anthropic: a search, and the answer in the same reply': {
    protocol: anthropic,
    tools: () => ({ web_search: anthropicTools.tools.webSearch_20250305({ maxUses: 2 }) }),
    replies: [[[says.anthropic('I search.'), ...SEARCHED, says.anthropic(END)], 'end_turn']],
    acts: [
      { type: 'provider.invoked', callId: 'srvtoolu_1', tool: 'web_search', input: { query: 'sun' } },
      { type: 'provider.completed', callId: 'srvtoolu_1', tool: 'web_search', isError: false },
    ],
    answer: `I search.${END}`,
  },
  'Anthropic: a search beside a call of bash, under a name of the program': {
    protocol: anthropic,
    tools: (made) => ({
      look: anthropicTools.tools.webSearch_20250305({}),
      bash: anthropicTools.tools.bash_20250124({ execute: noting(made, 'total 0\n') }),
    }),
    replies: [
      [[...SEARCHED, { type: 'tool_use', id: 'toolu_1', name: 'bash', input: { command: 'ls -l' } }], 'tool_use'],
      endOf.anthropic,
    ],
    made: [{ command: 'ls -l' }],
    acts: [
      { type: 'provider.invoked', tool: 'look' },
      { type: 'provider.completed', tool: 'look' },
    ],
  },
  'Anthropic: the text editor and the memory': {
    protocol: anthropic,
    tools: (made) => ({
      str_replace_based_edit_tool: anthropicTools.tools.textEditor_20250728({ execute: noting(made, '1: a') }),
      memory: anthropicTools.tools.memory_20250818({ execute: noting(made, 'nothing yet') }),
    }),
    replies: [
      [
        [
          {
            ...{ type: 'tool_use', id: 'toolu_1', name: 'str_replace_based_edit_tool' },
            input: { command: 'view', path: '/a.txt' },
          },
          { type: 'tool_use', id: 'toolu_2', name: 'memory', input: { command: 'view', path: '/memories' } },
        ],
        'tool_use',
      ],
      endOf.anthropic,
    ],
    made: [
      { command: 'view', path: '/a.txt' },
      { command: 'view', path: '/memories' },
    ],
  },
  "Anthropic: code of the provider's that calls a tool of the program": {
    protocol: anthropic,
    tools: (made) => ({
      code_execution: anthropicTools.tools.codeExecution_20260120(),
      price: {
        description: 'The price of a thing.',
        inputSchema: jsonSchema({ type: 'object', properties: { of: { type: 'string' } } }),
        providerOptions: { anthropic: { allowedCallers: ['code_execution_20260120'] } },
        execute: noting(made, 12),
      },
    }),
    replies: [
      [
        [
          { type: 'server_tool_use', id: 'srvtoolu_9', name: 'code_execution', input: { code: 'print(price("tea"))' } },
          {
            ...{ type: 'tool_use', id: 'toolu_9', name: 'price', input: { of: 'tea' } },
            caller: { type: 'code_execution_20260120', tool_id: 'srvtoolu_9' },
          },
        ],
        'tool_use',
      ],
      [
        [
          {
            ...{ type: 'code_execution_tool_result', tool_use_id: 'srvtoolu_9' },
            content: { type: 'code_execution_result', stdout: '12\n', stderr: '', return_code: 0, content: [] },
          },
          says.anthropic(END),
        ],
        'end_turn',
      ],
    ],
    made: [{ of: 'tea' }],
    acts: [
      { type: 'provider.invoked', callId: 'srvtoolu_9', tool: 'code_execution' },
      { type: 'provider.completed', callId: 'srvtoolu_9', tool: 'code_execution', isError: false },
    ],
  },
  'OpenAI: a search, code, and the answer in the same reply': {
    protocol: openai,
    tools: () => ({
      web_search: openaiTools.tools.webSearch({ searchContextSize: 'low' }),
      code_interpreter: openaiTools.tools.codeInterpreter(),
    }),
    replies: [
      [
        [
          {
            type: 'web_search_call',
            id: 'ws_1',
            status: 'completed',
            action: { type: 'search', query: 'sun', sources: [] },
          },
          {
            ...{ type: 'code_interpreter_call', id: 'ci_1', status: 'completed', container_id: 'cntr_1' },
            ...{ code: '1+1', outputs: [{ type: 'logs', logs: '2' }] },
          },
          says.openai(END),
        ],
        'stop',
      ],
    ],
    acts: [
      { type: 'provider.invoked', callId: 'ws_1', tool: 'web_search' },
      { type: 'provider.completed', callId: 'ws_1', tool: 'web_search' },
      { type: 'provider.invoked', callId: 'ci_1', tool: 'code_interpreter' },
      { type: 'provider.completed', callId: 'ci_1', tool: 'code_interpreter' },
    ],
  },
  'OpenAI: the shell and a free-form tool, beside a search': {
    protocol: openai,
    tools: (made) => ({
      shell: openaiTools.tools.shell({
        execute: noting(made, {
          output: [{ stdout: 'a\n', stderr: '', outcome: { type: 'exit', exitCode: 0 } }],
        }) as never,
      }),
      sql: openaiTools.tools.customTool({ description: 'Runs SQL.', execute: noting(made, '1 row') as never }),
      web_search: openaiTools.tools.webSearch({}),
    }),
    replies: [
      [
        [
          {
            type: 'web_search_call',
            id: 'ws_1',
            status: 'completed',
            action: { type: 'search', query: 'sun', sources: [] },
          },
          {
            ...{ type: 'shell_call', id: 'sh_1', call_id: 'call_sh', status: 'completed' },
            action: { commands: ['ls'], timeout_ms: 1_000, max_output_length: null },
          },
          {
            ...{ type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_sql', name: 'sql', status: 'completed' },
            input: 'SELECT 1',
          },
        ],
        'stop',
      ],
      endOf.openai,
    ],
    made: [{ action: { commands: ['ls'], timeoutMs: 1_000 } }, 'SELECT 1'],
    acts: [
      { type: 'provider.invoked', callId: 'ws_1' },
      { type: 'provider.completed', callId: 'ws_1' },
    ],
  },
  'OpenAI: the local shell': {
    protocol: openai,
    tools: (made) => ({
      local_shell: openaiTools.tools.localShell({ execute: noting(made, { output: 'a\n' }) as never }),
    }),
    replies: [
      [
        [
          {
            ...{ type: 'local_shell_call', id: 'lsh_1', call_id: 'call_lsh', status: 'completed' },
            action: { type: 'exec', command: ['ls'], env: {} },
          },
        ],
        'stop',
      ],
      endOf.openai,
    ],
    made: [{ action: { type: 'exec', command: ['ls'], env: {} } }],
  },
  'OpenAI: a patch': {
    protocol: openai,
    tools: (made) => ({
      apply_patch: openaiTools.tools.applyPatch({
        execute: noting(made, { status: 'completed', output: 'ok' }) as never,
      }),
    }),
    replies: [
      [
        [
          {
            ...{ type: 'apply_patch_call', id: 'apc_1', call_id: 'call_ap', status: 'completed' },
            operation: { type: 'delete_file', path: 'a.txt' },
          },
        ],
        'stop',
      ],
      endOf.openai,
    ],
    made: [{ callId: 'call_ap', operation: { type: 'delete_file', path: 'a.txt' } }],
  },
  "OpenAI: a search for tools, whose name is that of Pilotage's own": {
    protocol: openai,
    tools: (made) => ({
      tool_search: openaiTools.tools.toolSearch(),
      weather: {
        description: 'The weather.',
        inputSchema: jsonSchema({ type: 'object', properties: { city: { type: 'string' } } }),
        providerOptions: { openai: { deferLoading: true } },
        execute: noting(made, 'sunny'),
      },
    }),
    replies: [
      [
        [
          {
            ...{ type: 'tool_search_call', id: 'tsc_1', call_id: null, execution: 'server', status: 'completed' },
            arguments: { paths: ['weather'] },
          },
          {
            type: 'tool_search_output',
            id: 'tso_1',
            call_id: null,
            execution: 'server',
            status: 'completed',
            tools: [],
          },
          {
            ...{ type: 'function_call', id: 'fc_1', call_id: 'call_w', name: 'weather', status: 'completed' },
            arguments: '{"city":"Oslo"}',
          },
        ],
        'stop',
      ],
      endOf.openai,
    ],
    made: [{ city: 'Oslo' }],
    acts: [
      { type: 'provider.invoked', tool: 'tool_search' },
      { type: 'provider.completed', tool: 'tool_search' },
    ],
  },
  'xAI: a search': {
    protocol: xai,
    tools: () => ({ web_search: xaiTools.tools.webSearch() }),
    replies: [
      [
        [
          {
            ...{ type: 'web_search_call', id: 'ws_1', name: 'web_search', status: 'completed' },
            ...{ arguments: '{"query":"sun"}', call_id: 'c', action: { type: 'search', query: 'sun', sources: [] } },
          },
          says.openai(END),
        ],
        'stop',
      ],
    ],
    acts: [
      { type: 'provider.invoked', callId: 'ws_1', tool: 'web_search', input: { query: 'sun' } },
      { type: 'provider.completed', callId: 'ws_1', tool: 'web_search' },
    ],
  },
  'Google: a search beside a call, and code': {
    protocol: google,
    tools: (made) => ({
      google_search: googleTools.tools.googleSearch({}),
      code_execution: googleTools.tools.codeExecution({}),
      weather: {
        description: 'The weather.',
        inputSchema: jsonSchema({ type: 'object', properties: { city: { type: 'string' } } }),
        execute: noting(made, 'sunny'),
      },
    }),
    replies: [
      [
        [
          { executableCode: { language: 'PYTHON', code: 'print(1)' } },
          { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1\n' } },
          { functionCall: { name: 'weather', args: { city: 'Oslo' } }, thoughtSignature: 'c2ln' },
        ],
        'STOP',
      ],
      endOf.google,
    ],
    made: [{ city: 'Oslo' }],
    acts: [
      { type: 'provider.invoked', tool: 'code_execution' },
      { type: 'provider.completed', tool: 'code_execution' },
    ],
  },
};

comparing(CASES);
