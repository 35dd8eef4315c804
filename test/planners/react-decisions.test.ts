import { MockLanguageModelV3, MockLanguageModelV4, simulateReadableStream } from 'ai/test';
import { describe, expect, it } from 'vitest';
import type { Move } from '#core';
import { openaiCompatible } from '#model/openai-compatible';
import { type ReactOptions, react } from '#planners/react';
import { openaiServer, runView, type ScriptedReply, scriptedModel, toolView } from '#testing';
import { ask, listen } from '../kit/ask.ts';
import { stepOfMove } from '../kit/steps.ts';

const view = runView({ tools: toolView(['search', 'read']) });

async function moveFor(reply: ScriptedReply, options: Partial<ReactOptions> = {}): Promise<Move> {
  const model = scriptedModel([reply]);
  const move = await ask(react({ model, ...options }), view);
  expect(model.calls).toHaveLength(1);
  const streamed = await listen(
    react({ model: scriptedModel([reply]), ...options }),
    runView({ ...view, streaming: true }),
  );
  expect(streamed.move).toEqual(move);
  return move;
}
const decisionFor = async (reply: ScriptedReply, options?: Partial<ReactOptions>) =>
  (await moveFor(reply, options)).decision;

describe('what a reply decides', () => {
  it('RA-08 text without calls reaches the goal', async () => {
    expect(await moveFor({ text: '42', usage: { inputTokens: 9, outputTokens: 2 } })).toEqual({
      usage: { inputTokens: 9, outputTokens: 2 },
      decision: { kind: 'finish', reason: 'goal', payload: '42', metadata: { via: 'react.reply' } },
      provenance: { model: 'scripted', finish: 'stop' },
    });
  });

  it('RA-09 nothing at all is no path, with a follow-up', async () => {
    expect(await decisionFor({})).toEqual({
      kind: 'finish',
      reason: 'no_path',
      metadata: { via: 'react.reply', followup: true },
    });
  });

  it('RA-10 one call is a call of that tool, under the id of the provider', async () => {
    const move = await moveFor({
      text: 'I look.',
      reasoning: 'must look',
      calls: [{ id: 'c1', tool: 'search', args: { q: 'x' } }],
      usage: { inputTokens: 4, outputTokens: 2 },
    });
    expect(move).toEqual({
      decision: { kind: 'call_tool', tool: 'search', args: { q: 'x' }, callId: 'c1' },
      text: 'I look.',
      reasoning: 'must look',
      usage: { inputTokens: 4, outputTokens: 2 },
      provenance: { model: 'scripted', finish: 'tool-calls' },
      providerState: expect.objectContaining({
        parts: [{ type: 'reasoning' }, { type: 'text', text: 'I look.' }, { type: 'call', call: 0 }],
      }),
    });
  });

  it('RA-11 three calls are one parallel call without a join, ids kept; one step also with parallel off', async () => {
    const calls = ['a', 'b', 'c'].map((id) => ({ id, tool: 'search', args: { id } }));
    const expected = {
      kind: 'call_parallel',
      branches: calls.map(({ id, tool, args }) => ({ tool, args, callId: id })),
      onInvalid: 'per_branch',
    };
    expect(await decisionFor({ calls })).toEqual(expected);
    expect(await decisionFor({ calls }, { parallelToolCalls: false })).toEqual({ ...expected, concurrency: 1 });
  });

  it('RA-13 _finish ends with its answer', async () => {
    expect(await decisionFor({ calls: [{ tool: '_finish', args: { answer: 'done' } }] })).toEqual({
      kind: 'finish',
      reason: 'goal',
      payload: 'done',
      metadata: { via: 'react.finish' },
    });
  });

  it.each(['{}', '"done"', '[]', '{"answer": ', ''])('RA-14 a malformed _finish is no success: %s', async (input) => {
    const decision = await decisionFor({ calls: [{ id: 'f', tool: '_finish', input }] });
    expect(decision).toMatchObject({ kind: 'call_tool', tool: '_finish', callId: 'f' });
  });

  it('RA-17 _finish beside tools is one call among them', async () => {
    const decision = await decisionFor({
      calls: [
        { id: 'f', tool: '_finish', args: { answer: 'x' } },
        { id: 's', tool: 'search', args: {} },
      ],
    });
    expect(decision).toMatchObject({ kind: 'call_parallel', branches: [{ tool: '_finish' }, { tool: 'search' }] });
  });

  it.each([
    ['length', 'length'],
    ['content-filter', 'refused'],
    ['error', 'no_path'],
    ['interrupted', 'no_path'],
  ] as const)('RA-18 %s is never the goal', async (finish, reason) => {
    const refusal = reason === 'refused' ? { refusal: { model: 'scripted' } } : {};
    const metadata = { via: 'react.reply', stop_reason: finish, ...refusal };
    const answer = { kind: 'finish', reason, payload: 'half an ans', metadata };
    expect(await decisionFor({ text: 'half an ans', finish }, { continuations: 0 })).toEqual(answer);
    const converse = await decisionFor({ text: 'half an ans', finish }, { continuations: 0, converse: true });
    expect(converse).toEqual(answer);
    // A stream that ends before anything was said is asked for again (see `attempts`).
    const nothing = await ask(react({ model: scriptedModel([{ finish }]) }), view);
    expect(nothing.decision).toEqual({ kind: 'finish', reason, metadata });
    const finished = await decisionFor({ finish, calls: [{ tool: '_finish', args: { answer: 'x' } }] });
    expect(finished).toMatchObject({ kind: 'finish', reason });
  });

  it('RA-18 a cut reply keeps its whole calls, drops the cut one and says so', async () => {
    const whole = { id: 'a', tool: 'search', args: { q: 'x' } };
    const cut = { id: 'b', tool: 'read', input: '{"path": "a' };
    const move = await moveFor({ calls: [whole, cut], finish: 'length' });
    expect(move.decision).toEqual({ kind: 'call_tool', tool: 'search', args: { q: 'x' }, callId: 'a' });
    expect(move.provenance).toEqual({ model: 'scripted', finish: 'length', droppedCall: 'read' });
    const both = await moveFor({ calls: [whole, { ...cut, input: '{}' }], finish: 'length' });
    expect(both.decision).toMatchObject({ kind: 'call_parallel' });
    expect(both.provenance).toEqual({ model: 'scripted', finish: 'length' });
    const none = await moveFor({ text: 'so far', calls: [cut], finish: 'length' });
    expect(none.fault).toMatchObject({ code: 'reply_truncated' });
    expect(none.decision).toMatchObject({ reason: 'length', payload: 'so far', metadata: { stop_reason: 'length' } });
    expect(none.provenance).toMatchObject({ droppedCall: 'read' });
  });

  it('RA-19 arguments that are not JSON are answered with an error, and the other calls are made', async () => {
    const decision = await decisionFor({
      calls: [
        { id: 'a', tool: 'search', input: '{"q": "x' },
        { id: 'b', tool: 'read', args: { path: 'p' } },
        { id: 'c', tool: 'read', input: '  ' },
        { id: 'd', tool: '', input: '{}' },
      ],
    });
    expect(decision).toEqual({
      kind: 'call_parallel',
      branches: [
        {
          tool: 'search',
          args: { q: 'x' },
          callId: 'a',
          refusal: {
            code: 'tool_invalid_args',
            message: 'The arguments of search end in the middle. Send the whole call again.',
          },
        },
        { tool: 'read', args: { path: 'p' }, callId: 'b' },
        { tool: 'read', args: {}, callId: 'c' },
        { tool: 'unnamed', args: {}, callId: 'd' },
      ],
      onInvalid: 'per_branch',
    });
  });

  it('RA-20 empty and repeated ids are replaced, in this reply and against earlier steps', async () => {
    const reply = { calls: ['a', '', 'a', 'b'].map((id) => ({ id, tool: 'search', args: {} })) };
    const model = scriptedModel([reply, reply, { calls: [{ id: 'b', tool: 'search' }] }]);
    const planner = react({ model });
    const ids = (move: Move) => JSON.stringify(move.decision).match(/(?<="callId":")[^"]*/g);
    const first = await ask(planner, view);
    expect(ids(first)).toEqual(['a', 'react.callid.0.1', 'react.callid.0.2', 'b']);
    const steps = [stepOfMove(0, first)];
    const second = await ask(planner, runView({ ...view, steps }));
    expect(ids(second)).toEqual([0, 1, 2, 3].map((branch) => `react.callid.1.${branch}`));
    const restarted = await ask(react({ model: scriptedModel([reply]) }), runView({ ...view, steps }));
    expect(restarted.decision).toEqual(second.decision);
    const third = await ask(planner, runView({ ...view, steps: [...steps, stepOfMove(1, second)] }));
    expect(ids(third)).toEqual(['react.callid.2']);
  });

  it('a conversation waits for the user after an answer', async () => {
    expect(
      await moveFor({ text: 'Which city?', usage: { inputTokens: 9, outputTokens: 2 } }, { converse: true }),
    ).toEqual({
      usage: { inputTokens: 9, outputTokens: 2 },
      decision: { kind: 'request_pause', reason: 'await_input' },
      text: 'Which city?',
      provenance: { model: 'scripted', finish: 'stop' },
    });
    expect(await decisionFor({}, { converse: true })).toMatchObject({ kind: 'finish', reason: 'no_path' });
  });

  it('has the cost when there are prices', async () => {
    const usage = { inputTokens: 1000, outputTokens: 100 };
    const move = await moveFor({ text: 'x', usage }, { prices: { input: 1, output: 2 } });
    expect(move.usage).toEqual({ ...usage, costMicroUsd: 1200 });
  });
});

describe('models of others', () => {
  const usage = {
    inputTokens: { total: 3, noCache: 3, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  const finishReason = { unified: 'tool-calls' as const, raw: 'tool_calls' };
  const call = { type: 'tool-call' as const, toolCallId: 'c1', toolName: 'search', input: '{"q":"x"}' };
  const decision = { kind: 'call_tool', tool: 'search', args: { q: 'x' }, callId: 'c1' };

  it.each([
    ['v4', MockLanguageModelV4],
    ['v3', MockLanguageModelV3],
  ] as const)('the mock models of ai/test work unchanged, plain and streamed: %s', async (_, Mock) => {
    const model = new Mock({
      doGenerate: async () => ({ content: [call], finishReason, usage, warnings: [] }),
      doStream: async () => ({
        stream: simulateReadableStream({
          chunks: [
            { type: 'stream-start' as const, warnings: [] },
            { type: 'text-start' as const, id: '1' },
            { type: 'text-delta' as const, id: '1', delta: 'Wait' },
            { type: 'text-end' as const, id: '1' },
            call,
            { type: 'finish' as const, finishReason, usage },
          ],
        }),
      }),
    });
    const planner = react({ model });
    const plain = await ask(planner, view);
    expect(plain).toMatchObject({ decision, usage: { inputTokens: 3, outputTokens: 1 } });
    const { move, deltas } = await listen(planner, runView({ ...view, streaming: true }));
    expect(move).toMatchObject({ decision, text: 'Wait' });
    expect(deltas).toEqual([{ type: 'text', text: 'Wait' }]);
    expect([model.doGenerateCalls.length, model.doStreamCalls.length]).toEqual([1, 1]);
    await ask(planner, runView({ ...view, steps: [stepOfMove(0, plain)] }));
    // The mock keeps the requests: an earlier one must not have grown with the later one.
    expect(model.doGenerateCalls.map(({ prompt }) => prompt.length)).toEqual([2, 4]);
  });

  it.each([false, true])('a strict server accepts the whole exchange, streaming %s', async (streaming) => {
    const server = await openaiServer([
      {
        text: 'Looking.',
        calls: [
          { id: '', tool: 'search', input: '{"q": "x' },
          { tool: 'read', args: { path: 'p' } },
        ],
      },
      { calls: [{ id: 'call_0_1', tool: 'read', args: { path: 'q' } }] },
      { text: '42' },
    ]);
    try {
      const planner = react({
        model: openaiCompatible({ baseUrl: server.url, model: 'small' }),
        parallelToolCalls: false,
        temperature: 0,
        maxOutputTokens: 50,
      });
      const steps = [];
      for (const index of [0, 1]) {
        const move = await ask(planner, runView({ ...view, streaming, steps: [...steps] }));
        steps.push(stepOfMove(index, move));
      }
      const last = await ask(planner, runView({ ...view, streaming, steps }));
      expect(last.decision).toMatchObject({ kind: 'finish', reason: 'goal', payload: '42' });
      expect(server.requests).toHaveLength(3);
      expect(server.requests[0]?.body).toMatchObject({ parallel_tool_calls: false, temperature: 0, max_tokens: 50 });
      expect(server.requests[0]?.body.tools?.map((tool) => tool.function.name)).toEqual(['read', 'search']);
    } finally {
      await server.close();
    }
  });
});
