/** Tools that OpenAI defines and that `own-tools.test.ts` leaves out, also behind Azure; compared in the same way. */
import { openai as openaiTools } from '@ai-sdk/openai';
import { jsonSchema } from 'ai';
import type { Json, JsonObject } from '#core';
import { type Cases, comparing, END, endOf, noting } from './own/compare.ts';
import { azure } from './own/more-protocols.ts';
import { openai, says } from './own/protocols.ts';

const weather = (made: Json[]): object => ({
  description: 'The weather.',
  inputSchema: jsonSchema({ type: 'object', properties: { city: { type: 'string' } } }),
  execute: noting(made, 'sunny'),
});
const call = (more: JsonObject = {}): JsonObject => ({
  ...{ type: 'function_call', id: 'fc_1', call_id: 'call_w', name: 'weather', status: 'completed' },
  arguments: '{"city":"Oslo"}',
  ...more,
});
const invoked = (tool: string): JsonObject => ({ type: 'provider.invoked', tool });
const completed = (tool: string): JsonObject => ({ type: 'provider.completed', tool });
const PIXEL = 'iVBORw0KGgo=';

const searched: JsonObject = {
  ...{ type: 'file_search_call', id: 'fs_1', status: 'completed', queries: ['sun'] },
  results: [{ attributes: {}, file_id: 'file_1', filename: 'a.txt', score: 0.9, text: 'It is sunny.' }],
};
const listed: JsonObject = {
  ...{ type: 'mcp_list_tools', id: 'mcpl_1', server_label: 'files' },
  tools: [{ name: 'list', description: 'Lists.', input_schema: { type: 'object' }, annotations: {} }],
};
const mcpCall = (id: string, more: JsonObject): JsonObject => ({
  ...{ type: 'mcp_call', id, server_label: 'files', name: 'list', arguments: '{"path":"/"}', status: 'completed' },
  ...{ output: null, error: null, approval_request_id: null },
  ...more,
});
const files = () =>
  openaiTools.tools.mcp({ serverLabel: 'files', serverUrl: 'https://files.example/mcp', requireApproval: 'never' });
const search = () => openaiTools.tools.fileSearch({ vectorStoreIds: ['vs_1'] });

const CASES: Cases = {
  'OpenAI: a search in files, beside a call': {
    protocol: openai,
    tools: (made) => ({ docs: search(), weather: weather(made) }),
    replies: [[[searched, call()], 'stop'], endOf.openai],
    made: [{ city: 'Oslo' }],
    acts: [invoked('docs'), completed('docs')],
  },
  'OpenAI: an image': {
    protocol: openai,
    tools: (made) => ({ image_generation: openaiTools.tools.imageGeneration({}), weather: weather(made) }),
    replies: [
      [[{ type: 'image_generation_call', id: 'ig_1', status: 'completed', result: PIXEL }, call()], 'stop'],
      endOf.openai,
    ],
    made: [{ city: 'Oslo' }],
    acts: [invoked('image_generation'), completed('image_generation')],
  },
  'OpenAI: a remote MCP server that asks no leave: one call, and one that fails': {
    protocol: openai,
    tools: (made) => ({ files: files(), weather: weather(made) }),
    replies: [
      [[listed, mcpCall('mcp_1', { output: 'a.txt' }), mcpCall('mcp_2', { error: 'No such folder.' }), call()], 'stop'],
      endOf.openai,
    ],
    made: [{ city: 'Oslo' }],
    acts: [invoked('mcp.list'), completed('mcp.list'), invoked('mcp.list'), completed('mcp.list')],
  },
  "OpenAI: a call out of the provider's program, whose output comes in the next reply": {
    protocol: openai,
    tools: (made) => ({
      programmatic_tool_calling: openaiTools.tools.programmaticToolCalling(),
      weather: { ...weather(made), providerOptions: { openai: { allowedCallers: ['programmatic'] } } },
    }),
    replies: [
      [
        [
          { type: 'program', id: 'prog_1', call_id: 'call_p', code: 'await weather()', fingerprint: 'fp' },
          call({ caller: { type: 'program', caller_id: 'call_p' } }),
        ],
        'stop',
      ],
      [
        [
          { type: 'program_output', id: 'po_1', call_id: 'call_p', result: 'sunny', status: 'completed' },
          says.openai(END),
        ],
        'stop',
      ],
    ],
    made: [{ city: 'Oslo' }],
    acts: [
      { ...invoked('programmatic_tool_calling'), step: 0, callId: 'call_p' },
      { ...completed('programmatic_tool_calling'), step: 1, callId: 'call_p' },
    ],
  },
  'OpenAI, nothing stored: all goes back whole': {
    protocol: openai,
    providerOptions: { openai: { store: false } },
    tools: (made) => ({
      programmatic_tool_calling: openaiTools.tools.programmaticToolCalling(),
      sql: openaiTools.tools.customTool({ execute: noting(made, '1 row') as never }),
      weather: { ...weather(made), providerOptions: { openai: { allowedCallers: ['programmatic'] } } },
    }),
    replies: [
      [
        [
          { type: 'program', id: 'prog_1', call_id: 'call_p', code: 'await weather()', fingerprint: 'fp' },
          call({ caller: { type: 'program', caller_id: 'call_p' } }),
        ],
        'stop',
      ],
      [
        [
          { type: 'program_output', id: 'po_1', call_id: 'call_p', result: 'sunny', status: 'completed' },
          {
            ...{ type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_sql', name: 'sql', status: 'completed' },
            input: 'SELECT "1"',
          },
        ],
        'stop',
      ],
      endOf.openai,
    ],
    made: [{ city: 'Oslo' }, 'SELECT "1"'],
    acts: [invoked('programmatic_tool_calling'), completed('programmatic_tool_calling')],
  },
  'Azure: a search in files, code, the shell and a free-form tool': {
    protocol: azure,
    tools: (made) => ({
      docs: search(),
      code_interpreter: openaiTools.tools.codeInterpreter(),
      shell: openaiTools.tools.shell({
        execute: noting(made, {
          output: [{ stdout: 'a\n', stderr: '', outcome: { type: 'exit', exitCode: 0 } }],
        }) as never,
      }),
      sql: openaiTools.tools.customTool({ execute: noting(made, '1 row') as never }),
    }),
    replies: [
      [
        [
          searched,
          {
            ...{ type: 'code_interpreter_call', id: 'ci_1', status: 'completed', container_id: 'cntr_1' },
            ...{ code: '1+1', outputs: [{ type: 'logs', logs: '2' }] },
          },
          {
            ...{ type: 'shell_call', id: 'sh_1', call_id: 'call_sh', status: 'completed' },
            action: { commands: ['ls'], timeout_ms: null, max_output_length: null },
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
    made: [{ action: { commands: ['ls'] } }, 'SELECT 1'],
    acts: [invoked('docs'), completed('docs'), invoked('code_interpreter'), completed('code_interpreter')],
  },
};

comparing(CASES);
