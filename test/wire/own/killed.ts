/** The runs whose process is killed among calls of tools that providers define: what the model says, and the tools. */
import { anthropic as anthropicTools } from '@ai-sdk/anthropic';
import { openai as openaiTools } from '@ai-sdk/openai';
import { asJson, type Json, type JsonObject } from '#core';
import { withTools } from '#pilotage/tools';
import type { Run } from '#runtime';
import type { ToolSet } from '#tools';
import type { Answer } from '../pieces.ts';
import { computerCall, largeShot } from './computer.ts';
import { anthropic, type OwnProtocol, openai, says } from './protocols.ts';

export interface KilledOwn {
  /** Of the run, and of its model's address. */
  readonly id: string;
  readonly protocol: OwnProtocol;
  readonly stream: boolean;
  readonly first: readonly JsonObject[];
  /** @param enter is asked by each call, and gives its value. */
  readonly tools: (enter: (value: Json) => Promise<Json>) => ToolSet;
  /** What a person does before the run goes on. */
  readonly answer?: (run: Run, token: string) => Promise<void>;
}

type Kind = Omit<KilledOwn, 'id' | 'stream'>;

const SHOWN = { output: [{ stdout: 'a.txt\n', stderr: '', outcome: { type: 'exit', exitCode: 0 } }] };
const searched = {
  ...{ type: 'web_search_call', id: 'ws_1', status: 'completed' },
  action: { type: 'search', query: 'sun', sources: [] },
};
const shellCall = {
  ...{ type: 'shell_call', id: 'sh_1', call_id: 'call_sh', status: 'completed' },
  action: { commands: ['ls'], timeout_ms: 1_000, max_output_length: null },
};

function shell(effect: 'read' | 'once'): Kind['tools'] {
  return (enter) =>
    withTools(
      {
        shell: openaiTools.tools.shell({ execute: (() => enter(SHOWN)) as never }),
        web_search: openaiTools.tools.webSearch({}),
      },
      { shell: { effect } },
    );
}

const KINDS: Readonly<Record<string, Kind>> = {
  bash: {
    protocol: anthropic,
    first: [
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'sun' } },
      { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [] },
      { type: 'tool_use', id: 'toolu_1', name: 'bash', input: { command: 'ls' } },
    ],
    tools: (enter) =>
      withTools(
        {
          bash: anthropicTools.tools.bash_20250124({ execute: (() => enter('a.txt')) as never }),
          look: anthropicTools.tools.webSearch_20250305({}),
        },
        { bash: { effect: 'read' } },
      ),
  },
  shell: { protocol: openai, first: [searched, shellCall], tools: shell('read') },
  freeform: {
    protocol: openai,
    first: [
      {
        ...{ type: 'custom_tool_call', id: 'ctc_1', call_id: 'call_sql', name: 'sql', status: 'completed' },
        input: 'SELECT "größe"',
      },
    ],
    tools: (enter) =>
      withTools(
        { sql: openaiTools.tools.customTool({ execute: ((sql: string) => enter(`1 row of ${sql}`)) as never }) },
        { sql: { effect: 'read' } },
      ),
  },
  computer: {
    protocol: openai,
    first: [computerCall(1)],
    tools: (enter) =>
      withTools(
        { computer: openaiTools.tools.computer({ execute: (() => enter(asJson(largeShot(1)))) as never }) },
        { computer: { effect: 'read' } },
      ),
  },
  once: {
    protocol: openai,
    first: [searched, shellCall],
    tools: shell('once'),
    answer: (run, token) => run.settle(token, { happened: true, value: SHOWN }),
  },
  leave: {
    protocol: openai,
    first: [
      {
        ...{ type: 'mcp_approval_request', id: 'mcpr_1', server_label: 'files', name: 'remove' },
        arguments: '{"path":"/a"}',
      },
    ],
    tools: () => ({
      mcp: openaiTools.tools.mcp({
        ...{ serverLabel: 'files', serverUrl: 'https://files.example/mcp', requireApproval: 'always' as const },
        headers: { authorization: 'Bearer never-recorded' },
      }),
    }),
    answer: (run, token) => run.approve(token),
  },
};

export const KILLED_OWN: readonly KilledOwn[] = Object.entries(KINDS).flatMap(([name, kind]) =>
  [false, true].map((stream) => ({ ...kind, id: `run_${name}_${stream ? 'streamed' : 'whole'}`, stream })),
);

export function answersOf({ protocol, first, stream }: KilledOwn): readonly [Answer, Answer] {
  const isAnthropic = protocol === anthropic;
  const end = isAnthropic ? says.anthropic('Done.') : says.openai('Done.');
  return [
    protocol.answer(first, isAnthropic ? 'tool_use' : 'stop', stream),
    protocol.answer([end], isAnthropic ? 'end_turn' : 'stop', stream),
  ];
}

/** Answers the one question of a run that waits, as its case says. */
export async function answerIfAsked(run: Run, { answer }: KilledOwn): Promise<void> {
  const result = await run.result();
  if (result.status !== 'paused' || answer === undefined) return;
  const [{ token } = { token: '' }] = result.pauses;
  await answer(run, token);
}
