/** The order rules of the UI message stream: each by itself, and all of them however a turn goes. */
import { safeValidateUIMessages, UI_MESSAGE_STREAM_HEADERS, type UIMessage, type UIMessageChunk } from 'ai';
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Planner } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { createHandler } from '#server';
import { aiSdk } from '#server/ai-sdk';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { changed } from '../kit/journals.ts';
import { historyOf, serveChats } from '../kit/ui-chat.ts';
import { brokenRules, chunksIn, clientErrors, ORDER_RULES } from '../kit/ui-stream.ts';
import { chatsOf, play, stopLater, turnScript } from '../kit/ui-turns.ts';
import { gate, turn, until } from '../kit/waiting.ts';

async function served(): Promise<string> {
  const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal: memoryJournal() });
  onTestFinished(() => runtime.close());
  return serveChats(runtime);
}

function ask(url: string, text: string): Promise<Response> {
  const message = { id: `m-${text}`, role: 'user', parts: [{ type: 'text', text }] };
  return fetch(`${url}/api/chat`, { method: 'POST', body: JSON.stringify({ id: text, message }) });
}

/** A message of which all was taken back leaves its mark with who was there, which shows nothing. */
function idsOf(messages: readonly UIMessage[]): readonly string[] {
  return messages.flatMap(({ id, parts }) => (parts.some(({ type }) => type !== 'step-start') ? [id] : []));
}

const RUNS = Number(process.env['ORDER_RUNS'] ?? 20);
/** 0.1 s each on a machine that is idle, and 0.5 s on one that is busy. */
const LIMIT_MS = 120_000 + RUNS * 2_000;
const NONE = { knownCalls: new Set<string>(), knownApprovals: new Set<string>() };
const start: UIMessageChunk = { type: 'start', messageId: 'm' };
const call = { toolCallId: 'c', toolName: 't', dynamic: true } as const;
const begun: UIMessageChunk[] = [start, { type: 'start-step' }, { type: 'tool-input-start', ...call }];
const made: UIMessageChunk[] = [...begun, { type: 'tool-input-available', ...call, input: {} }];
const out: UIMessageChunk = { type: 'tool-output-available', toolCallId: 'c', output: 1 };
const finished: UIMessageChunk = { type: 'finish', finishReason: 'stop' };
const text = (type: 'text-start' | 'text-end'): UIMessageChunk => ({ type, id: 't' });
const delta: UIMessageChunk = { type: 'text-delta', id: 't', delta: 'a' };

/** For each rule a stream that breaks it and no other, and whether the client refuses that stream. */
const BROKEN: Readonly<Record<string, readonly [refused: boolean, chunks: readonly UIMessageChunk[]]>> = {
  'a stream begins with its one start': [false, [start, start, finished]],
  'a delta or an end of a text or a reasoning comes only after its start with that id': [
    true,
    [start, delta, finished],
  ],
  'the id of a text or a reasoning comes again only after its end': [
    false,
    [
      start,
      { type: 'start-step' },
      text('text-start'),
      text('text-start'),
      text('text-end'),
      { type: 'finish-step' },
      finished,
    ],
  ],
  'a text or a reasoning ends before its step does': [
    false,
    [start, { type: 'start-step' }, text('text-start'), delta, { type: 'finish-step' }, text('text-end'), finished],
  ],
  'the arguments of a call come only after its tool-input-start': [
    true,
    [start, { type: 'tool-input-delta', toolCallId: 'c', inputTextDelta: '{' }, finished],
  ],
  'a call begins once, unless its step is taken back': [
    false,
    [...made, begun[2] ?? start, out, { type: 'finish-step' }, finished],
  ],
  'results and approvals are only of calls whose arguments the message has': [true, [start, out, finished]],
  'an approval is answered only after it was asked': [
    true,
    [...made, { type: 'tool-approval-response', approvalId: 'a', approved: true }, finished],
  ],
  'a call has one result': [false, [...made, out, out, { type: 'finish-step' }, finished]],
  'steps begin and end in turn, and words are taken back only in one': [
    false,
    [start, { type: 'reset-step' }, finished],
  ],
  'a stream ends with finish, abort or error, and only an error comes behind': [
    false,
    [start, finished, { type: 'start-step' }],
  ],
};

describe('order', () => {
  const scenarios = [
    'say one two',
    'weather in Oslo',
    'refund A-17',
    'refund A-17 and B-18',
    'data',
    'pick a color',
    'fail',
  ];

  it.each(Object.keys(ORDER_RULES))('order: %s', async (rule) => {
    const check = ORDER_RULES[rule];
    const [isRefused, wrong] = BROKEN[rule] ?? [false, []];
    expect(check?.({ chunks: wrong, ...NONE })).toBeDefined();
    expect((await clientErrors(wrong)).length > 0).toBe(isRefused);
    const url = await served();
    for (const said of scenarios) {
      const chunks = await chunksIn(await (await ask(url, said)).text());
      expect([said, check?.({ chunks, ...NONE })]).toEqual([said, undefined]);
      expect(await clientErrors(chunks)).toEqual([]);
    }
  });

  it(
    'order: all rules hold, live, late and going on, whatever tools, approvals, resets, retries, client tools, pauses, failures and cancels come',
    async () => {
      await fc.assert(
        fc.asyncProperty(turnScript, fc.nat({ max: 40 }), async (script, moments) => {
          const chats = await chatsOf(script);
          const { runtime, url, checked, chatOf } = chats;
          const chat = chatOf();
          const playing = play(chat, script, chats);
          const stopping = stopLater(script, chats);
          for (let moment = 0; moment < moments; moment += 1) await turn();
          const late = chatOf(await historyOf(url));
          await late.resumeStream();
          const [played, isStopped] = await Promise.all([playing, stopping]);
          await until(
            async () =>
              !['running', 'pending', 'waiting'].includes((await runtime.session('talk').turns())[0]?.status ?? ''),
          );
          await checked.settled();
          expect(checked.broken).toEqual([]);
          const messages = await historyOf(url);
          expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
          expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length);
          expect(JSON.stringify([messages, chat.messages])).not.toContain('secret');
          if (!(isStopped || played.isStopped || played.isInPlace || played.isBeside))
            expect(idsOf(chat.messages)).toEqual(idsOf(messages));
          await runtime.close();
        }),
        // A turn that hangs is told with its seed, before the time of the test is over.
        { numRuns: RUNS, timeout: 30_000, interruptAfterTimeLimit: LIMIT_MS - 60_000, markInterruptAsFailure: true },
      );
    },
    LIMIT_MS,
  );
});

describe('chats that come together', () => {
  it('are asked of the model, all of them, before any of them is read for its stream or answered', async () => {
    const chats = ['one', 'two', 'three', 'four', 'five'];
    const seen: string[] = [];
    const base = memoryJournal();
    const journal = changed(base, {
      read: (run, from, limit) => {
        seen.push('read');
        return base.read(run, from, limit);
      },
    });
    const held = gate();
    const planner: Planner = {
      name: 'thinks',
      async *next({ query }) {
        seen.push('asked');
        await held.opened;
        yield { type: 'text', text: query };
        return { decision: { kind: 'finish', reason: 'goal', payload: query }, text: query };
      },
    };
    const runtime = createRuntime({ planner, journal });
    onTestFinished(() => runtime.close());
    const handler = createHandler({ runtime, parts: [aiSdk()] });
    const answers = chats.map(async (text) => {
      const message = { id: text, role: 'user', parts: [{ type: 'text', text }] };
      const body = JSON.stringify({ id: text, message });
      const answer = await handler(new Request('http://localhost/api/chat', { method: 'POST', body }));
      seen.push('answered');
      return answer.text();
    });
    await until(() => ['asked', 'read', 'answered'].every((one) => seen.filter((each) => each === one).length >= 5));
    expect(seen.slice(0, chats.length)).toEqual(chats.map(() => 'asked'));
    held.open();
    for (const [index, body] of (await Promise.all(answers)).entries()) {
      const deltas = (await chunksIn(body)).filter(({ type }) => type === 'text-delta');
      expect(deltas).toEqual([expect.objectContaining({ delta: chats[index] })]);
    }
  });
});

describe('the response', () => {
  it('response: status 200, the headers of the client’s own server, data: {json} each, and [DONE] at the end', async () => {
    const url = await served();
    const answer = await ask(url, 'say one');
    expect(answer.status).toBe(200);
    const { 'cache-control': _, ...headers } = UI_MESSAGE_STREAM_HEADERS;
    const said = Object.fromEntries(answer.headers);
    for (const [name, value] of Object.entries(headers))
      expect(said[name]).toContain(name === 'connection' ? '' : value);
    expect(said).toMatchObject({ 'cache-control': expect.stringContaining('no-cache'), 'x-accel-buffering': 'no' });
    const body = await answer.text();
    expect(brokenRules({ chunks: await chunksIn(body), ...NONE })).toEqual([]);
    await expect(chunksIn(body.replace('"text-delta"', '"text-bit"'))).rejects.toThrow('does not know');
  });
});
