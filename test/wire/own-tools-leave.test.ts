/** A provider asks whether it may make a call of its own: the question is a pause of the run, and the answer goes back. */
import { createOpenAI, openai as openaiTools } from '@ai-sdk/openai';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '#core';
import { withTools } from '#pilotage/tools';
import { react } from '#planners/react';
import { createRuntime, type Run } from '#runtime';
import { scriptedModel } from '#testing';

import { temporaryFile } from '../kit/files.ts';
import { openJournal } from '../kit/sqlite.ts';
import { start, world } from '../kit/world.ts';
import { type Asked, ours } from './own/play.ts';
import { openai, says } from './own/protocols.ts';
import { whole, wire } from './pieces.ts';

const asks = (id: string, name: string, args: string): JsonObject => ({
  ...{ type: 'mcp_approval_request', id, server_label: 'files', name },
  arguments: args,
});
const called: JsonObject = {
  ...{ type: 'mcp_call', id: 'mcp_1', approval_request_id: 'mcpr_1', server_label: 'files', name: 'remove' },
  ...{ arguments: '{"path":"/a"}', output: 'gone', error: null, status: 'completed' },
};
const QUESTION = asks('mcpr_1', 'remove', '{"path":"/a"}');
const END = says.openai('Done.');

const files = () => ({
  mcp: openaiTools.tools.mcp({
    serverLabel: 'files',
    serverUrl: 'https://files.example/mcp',
    requireApproval: 'always',
  }),
});
const answersTo = (first: readonly JsonObject[], stream: boolean): Asked => ({
  protocol: openai,
  answers: [openai.answer(first, 'stop', stream), openai.answer([called, END], 'stop', stream)],
  stream,
  cut: whole,
});
const approvals = (body: JsonObject): readonly JsonObject[] =>
  (body['input'] as JsonObject[]).filter(({ type }) => type === 'mcp_approval_response');

/** Answers each of the open questions. */
async function answer(run: Run, how: 'approve' | 'reject'): Promise<void> {
  const result = await run.result();
  if (result.status !== 'paused') throw new Error('The run is not paused.');
  await Promise.all(result.pauses.map(({ token }) => (how === 'approve' ? run.approve(token) : run.reject(token))));
}

describe.each([false, true])('streamed: %s', (stream) => {
  it('is shown whole, and an approval goes back; what the provider then did is told', async () => {
    let shown: JsonObject | undefined;
    const { requests, result, events } = await ours(files(), answersTo([QUESTION], stream), async (run) => {
      const asked = await run.result();
      shown = asked.status === 'paused' ? asked.pauses[0]?.payload : undefined;
      await answer(run, 'approve');
    });
    expect(shown).toMatchObject({ tool: 'mcp', args: { tool: 'mcp.remove', input: { path: '/a' } } });
    expect(result).toMatchObject({ status: 'finished', reason: 'goal', answer: 'Done.' });
    expect(requests).toHaveLength(2);
    expect(approvals(requests[1]?.body ?? {})).toEqual([
      { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: true },
    ]);
    expect(events.filter(({ type }) => type === 'provider.completed')).toMatchObject([{ tool: 'mcp.remove' }]);
  });

  it('a rejection goes back too', async () => {
    const play = await ours(files(), answersTo([QUESTION], stream), (run) => answer(run, 'reject'));
    expect(play.result).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(approvals(play.requests[1]?.body ?? {})).toMatchObject([{ approve: false }]);
  });

  it('two questions beside a call of the program: each has its own answer', async () => {
    const made: unknown[] = [];
    const tools = {
      ...files(),
      weather: {
        inputSchema: { type: 'object', properties: {} },
        effect: 'read' as const,
        execute: (args: unknown) => {
          made.push(args);
          return 'sunny';
        },
      },
    };
    const first = [
      QUESTION,
      { type: 'function_call', id: 'fc_1', call_id: 'call_w', name: 'weather', arguments: '{}', status: 'completed' },
      asks('mcpr_2', 'make', '{"path":"/b"}'),
    ];
    const { requests, result } = await ours(tools, answersTo(first, stream), async (run) => {
      const asked = await run.result();
      if (asked.status !== 'paused') throw new Error('The run is not paused.');
      for (const { token, payload } of asked.pauses) {
        const isFirst = JSON.stringify(payload).includes('mcp.remove');
        await (isFirst ? run.reject(token, { reason: 'not that one' }) : run.approve(token));
      }
    });
    expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(made).toEqual([{}]);
    const input = (requests[1]?.body['input'] ?? []) as JsonObject[];
    expect(approvals({ input })).toEqual([
      { type: 'mcp_approval_response', approval_request_id: 'mcpr_1', approve: false },
      { type: 'mcp_approval_response', approval_request_id: 'mcpr_2', approve: true },
    ]);
    expect(input.filter(({ type }) => type === 'function_call_output')).toMatchObject([
      { call_id: 'call_w', output: 'sunny' },
    ]);
  });
});

it('the reason of a no is told to the model, for which its provider has no place', async () => {
  const { requests } = await ours(files(), answersTo([QUESTION], false), async (run) => {
    const asked = await run.result();
    if (asked.status !== 'paused') throw new Error('The run is not paused.');
    await run.reject(asked.pauses[0]?.token ?? '', { reason: 'that file is needed' });
  });
  const { content } = (requests[1]?.body['input'] as JsonObject[]).at(-1) ?? {};
  expect(content).toMatchObject([
    { text: expect.stringMatching(/not allowed[\s\S]*mcp\.remove[\s\S]*that file is needed/) },
  ]);
});

it('what only was asked for is no call of the provider: it is told and paid once, when it has been made', async () => {
  const tools = () => withTools(files(), { mcp: { costUsd: 1 } });
  const made = await ours(tools(), answersTo([QUESTION], false), (run) => answer(run, 'approve'));
  expect(made.result.usage.costMicroUsd).toBe(1_000_000);
  expect(made.events.filter(({ type }) => type === 'provider.invoked')).toMatchObject([
    { step: 1, tool: 'mcp.remove' },
  ]);
  const { answers, ...asked } = answersTo([QUESTION], false);
  const refused = await ours(
    tools(),
    { ...asked, answers: [...answers.slice(0, 1), openai.answer([END], 'stop', false)] },
    (run) => answer(run, 'reject'),
  );
  expect(refused.result.usage.costMicroUsd).toBe(0);
  expect(refused.events.filter(({ type }) => type.startsWith('provider.'))).toEqual([]);
});

it('two questions under one id are told no, since a yes to one would be a yes to the other', async () => {
  const both = [asks('mcpr_1', 'read', '{}'), asks('mcpr_1', 'remove', '{"path":"/b"}')];
  const { requests, result } = await ours(files(), answersTo(both, false));
  expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
  expect(approvals(requests[1]?.body ?? {})).toMatchObject([{ approve: false }]);
});

it('a question for a call of which nothing was told is answered with no, and nobody is asked', async () => {
  const model = scriptedModel([
    { content: [{ type: 'tool-approval-request', approvalId: 'ask_1', toolCallId: 'nowhere' }], finish: 'tool-calls' },
    { text: 'Done.' },
  ]);
  const run = await start(world({ planner: react({ model }), tools: files() }));
  expect(await run.result()).toMatchObject({ status: 'finished', answer: 'Done.' });
  const { steps } = await run.state();
  expect(steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'error', error: { code: 'tool_not_offered' } });
});

it('arguments of a question may be anything', async () => {
  let shown: JsonObject | undefined;
  await ours(files(), answersTo([asks('mcpr_1', 'remove', 'null')], false), async (run) => {
    const asked = await run.result();
    shown = asked.status === 'paused' ? asked.pauses[0]?.payload : undefined;
    await answer(run, 'approve');
  });
  expect(shown).toMatchObject({ args: { tool: 'mcp.remove', input: null } });
});

it('a rule of the program answers for people', async () => {
  const asked: unknown[] = [];
  const tools = withTools(files(), {
    mcp: {
      needsApproval: (args: { tool: string; input: Json }) => {
        asked.push(args);
        return args.tool !== 'mcp.remove';
      },
    },
  });
  const { requests, result } = await ours(tools, answersTo([QUESTION], false));
  expect(asked).toEqual([{ tool: 'mcp.remove', input: { path: '/a' } }]);
  expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
  expect(approvals(requests[1]?.body ?? {})).toMatchObject([{ approve: true }]);
});

describe('two servers of one type, since nobody says which of them asks', () => {
  const two = { one: files().mcp, other: files().mcp };
  const { fetch } = wire([], whole);
  const planner = react({ model: openai.model({ baseURL: 'http://127.0.0.1/v1', fetch }) });
  const made = (options: Parameters<typeof withTools<typeof two>>[1]) => () =>
    world({ planner, tools: withTools(two, options) });
  const rule = () => true;

  it.each<[string, Parameters<typeof made>[0]]>([
    ['a rule for one', { one: { needsApproval: rule } }],
    ['one rule for both', { one: { needsApproval: rule }, other: { needsApproval: rule } }],
    ['one that asks nobody', { one: { needsApproval: false } }],
    ['an approver for the second', { other: { needsApproval: { approver: 'another' } } }],
    ['a price for one', { other: { costUsd: 0.01 } }],
  ])('cannot have %s', (_, options) => {
    expect(made(options)).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining('openai.mcp') }),
    );
  });

  it.each<[string, Parameters<typeof made>[0]]>([
    ['nothing said of them', {}],
    [
      'the same said of both',
      {
        one: { costUsd: 0.01, needsApproval: { approver: 'another' } },
        other: { costUsd: 0.01, needsApproval: { approver: 'another' } },
      },
    ],
    ['nobody asked for either', { one: { needsApproval: false }, other: { needsApproval: false } }],
  ])('may have %s', (_, options) => {
    expect(made(options)).not.toThrow();
  });
});

it('what asks without having been offered is told no', async () => {
  const { requests, result } = await ours({}, answersTo([QUESTION], false));
  expect(result).toMatchObject({ status: 'finished', reason: 'goal' });
  expect(approvals(requests[1]?.body ?? {})).toMatchObject([{ approve: false }]);
});

it('the answer may come in another process', async () => {
  const path = temporaryFile();
  const { answers, cut } = answersTo([QUESTION], false);
  const { fetch, requests } = wire(answers, cut);
  const open = () => {
    const model = createOpenAI({ apiKey: 'k', baseURL: 'http://127.0.0.1/v1', fetch }).responses('gpt-5.2');
    return createRuntime({ planner: react({ model }), tools: files(), journal: openJournal(path) });
  };
  const first = open();
  const run = await start({ runtime: first });
  expect(await run.result()).toMatchObject({ status: 'paused' });
  await first.close();
  const second = open();
  const again = second.run(run.id);
  await answer(again, 'approve');
  expect(await again.result()).toMatchObject({ status: 'finished', reason: 'goal', answer: 'Done.' });
  await second.close();
  expect(approvals(requests[1]?.body ?? {})).toMatchObject([{ approval_request_id: 'mcpr_1', approve: true }]);
});

it('a model that calls a hosted tool as its own is told that there is none', async () => {
  const call = {
    type: 'function_call',
    id: 'fc_1',
    call_id: 'call_m',
    name: 'mcp',
    arguments: '{}',
    status: 'completed',
  };
  const { result, run } = await ours(files(), answersTo([call], false));
  expect(result).toMatchObject({ status: 'finished' });
  const { steps } = await run.state();
  expect(steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'error' });
});
