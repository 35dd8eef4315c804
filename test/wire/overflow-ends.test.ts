/** What becomes of a request that does not fit: results as previews, shorter replies, cut-off requests, other models, dead processes. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { afterEach, describe, expect, it } from 'vitest';
import { type Json, type JsonObject, PilotageError, systemClock } from '#core';
import { askModel, readyModel } from '#model';
import { pipeline } from '#planners/pipeline';
import { type ReactOptions, react } from '#planners/react';
import { tool } from '#tools';
import { temporaryFile } from '../kit/files.ts';
import { entriesOf, kindsOf } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { until } from '../kit/waiting.ts';
import { start, type WorldOptions, world } from '../kit/world.ts';
import { wireServer } from './kit.ts';
import {
  anthropic,
  chat,
  responses,
  type Said,
  type WindowOptions,
  type WindowServer,
  windowServer,
} from './window-server.ts';

const compatible = (url: string) => createOpenAICompatible({ name: 'local', apiKey: 'k', baseURL: url })('m');
const llamaCpp: WindowOptions['refuse'] = (tokens, window) => ({
  status: 400,
  body: {
    error: {
      code: 400,
      message: 'the request exceeds the available context size, try increasing it',
      type: 'exceed_context_size_error',
      n_prompt_tokens: tokens,
      n_ctx: window,
    },
  },
});

const open: WindowServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function serve(
  options: Partial<WindowOptions> & Pick<WindowOptions, 'says'>,
): Promise<WindowServer & { options: WindowOptions }> {
  const whole: WindowOptions = { protocol: chat, window: 7_000, refuse: llamaCpp, ...options };
  const server = await windowServer(whole);
  open.push(server);
  return Object.assign(server, { options: whole });
}

const page = tool({
  name: 'page',
  description: 'Reads a page.',
  effect: 'read',
  inputSchema: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
  execute: ({ n }) => `page ${String(n)} ${'word '.repeat(800)}`,
});
const reader =
  (pages: number) =>
  (index: number): Said =>
    index < pages ? { tool: 'page', args: { n: index } } : { text: 'All pages are read.' };
const WHOLE = { status: 'finished', reason: 'goal', answer: 'All pages are read.' } as const;

interface Played extends Partial<WorldOptions> {
  readonly stream?: boolean;
  readonly react?: Partial<ReactOptions>;
  readonly query?: string;
}

function made(model: ReactOptions['model'], { stream: _, query: __, react: options, ...more }: Played = {}) {
  return world({ planner: react({ model, retries: 0, ...options }), tools: [page], patienceMs: 0, ...more });
}

async function play(model: ReactOptions['model'], given: Played = {}) {
  const ready = made(model, given);
  const run = await start(ready, { query: given.query ?? 'Read the pages.' });
  if (given.stream === true) for await (const _ of run.events());
  return { run, ...ready, result: await run.result() };
}

describe('a result that is too large by itself', () => {
  const words = Array.from({ length: 5_000 }, (_, index) => `w${index}`).join(' ');
  const book = tool({ ...page, name: 'book', execute: () => words });

  it.each([false, true])('becomes a preview, and the rest is read in pages that fit, streamed: %s', async (stream) => {
    const server = await serve({
      window: 4_000,
      says: (index, text) => {
        if (index === 0) return { tool: 'book', args: { n: 1 } };
        const [, ref = ''] = /Call artifact_fetch with ref (art_\w+)/.exec(text) ?? [];
        const [, length = '0'] = /with a length of at most (\d+)/.exec(text) ?? [];
        if (index === 1) return { tool: 'artifact_fetch', args: { ref, offset: 20_000, length: Number(length) } };
        return { text: text.includes('w3600 ') ? 'All pages are read.' : 'The page is not there.' };
      },
    });
    const { result, run, journal } = await play(compatible(server.url), { stream, tools: [book] });
    expect(result).toMatchObject(WHOLE);
    expect(server.seen.filter(({ refused }) => refused)).toHaveLength(1);
    expect(server.seen.slice(0, 3).map(({ isSummary }) => isSummary)).toEqual([false, false, false]);
    const [shortened] = await entriesOf(journal, run, 'shortened');
    const [{ artifact, value } = { artifact: undefined, value: null }] = shortened?.results ?? [];
    expect(JSON.stringify(value).length).toBeLessThan(12_000);
    const stored = await journal.artifacts.get((await run.state()).identity, artifact?.artifactRef ?? '');
    expect(JSON.parse(Buffer.from(stored?.bytes ?? []).toString())).toBe(words);
  });
});

describe('a wish for too long a reply', () => {
  it.each([
    [
      'max_tokens is too large: 100000. This model supports at most 4096 completion tokens, whereas you provided 100000.',
      4_096,
    ],
    [
      "This model's maximum context length is 8192 tokens. However, you requested 100500 tokens (500 in the messages, 100000 in the completion). Please reduce the length of the messages or completion.",
      undefined,
    ],
  ])('is lowered to what the server says, and stays so: %s', async (message, most) => {
    const wishOf = (body: JsonObject): number => Number(body['max_tokens']);
    const server = await serve({
      window: 50_000,
      alsoRefuses: (body) => wishOf(body) > (most ?? 7_600),
      refuse: () => ({ status: 400, body: { error: { message, type: 'invalid_request_error', param: 'max_tokens' } } }),
      says: reader(3),
    });
    const { result, run, journal } = await play(compatible(server.url), { react: { maxOutputTokens: 100_000 } });
    expect(result).toMatchObject(WHOLE);
    expect(server.seen.map(({ refused }) => refused)).toEqual([true, false, false, false, false]);
    if (most !== undefined) expect(server.seen.slice(1).map(({ body }) => wishOf(body))).toEqual(Array(4).fill(most));
    expect(await kindsOf(journal, run)).not.toContain('compacted');
  });

  it('that is refused although it was lowered to that ends the run, with what to do', async () => {
    const message =
      'max_tokens is too large: 9. This model supports at most 4096 completion tokens, whereas you provided 9.';
    const server = await serve({
      alsoRefuses: () => true,
      refuse: () => ({ status: 400, body: { error: { message } } }),
      says: reader(1),
    });
    const { result } = await play(compatible(server.url), { react: { maxOutputTokens: 100_000 } });
    expect(result).toMatchObject({ status: 'failed', error: { code: 'context_window_exceeded' } });
    expect(JSON.stringify(result)).toContain('Set maxOutputTokens');
    expect(server.seen).toHaveLength(2);
  });
});

describe('an error inside a stream', () => {
  const tooLong = { type: 'invalid_request_error', message: 'prompt is too long: 9000 tokens > 7000 maximum' };
  it.each([
    [
      'OpenAI responses',
      responses,
      (url: string) => createOpenAI({ apiKey: 'k', baseURL: url }).responses('gpt-4o'),
      {
        type: 'error',
        sequence_number: 1,
        error: {
          type: 'invalid_request_error',
          code: 'context_length_exceeded',
          message: 'Your input exceeds the context window of this model.',
          param: 'input',
        },
      },
    ],
    [
      'Anthropic',
      anthropic,
      (url: string) => createAnthropic({ apiKey: 'k', baseURL: url })('claude-sonnet-4-5'),
      { type: 'error', error: tooLong },
    ],
    ['chat', chat, compatible, { error: { ...tooLong, code: 400 } }],
  ])('%s', async (_, protocol, model, error) => {
    const server = await serve({ protocol, refuse: () => ({ body: error as Json }), says: reader(9) });
    const { result } = await play(model(server.url), { stream: true });
    expect(result).toMatchObject(WHOLE);
    expect(server.seen.filter(({ refused }) => refused).length).toBeGreaterThan(0);
  });
});

describe('a server that cuts off the request without a word', () => {
  it.each([false, true])('is seen from what it counts, streamed: %s', async (stream) => {
    const server = await serve({ cutsOff: true, window: 8_000, says: reader(12) });
    const { result, run, journal } = await play(compatible(server.url), { stream });
    expect(result).toMatchObject({ status: 'finished', answer: 'All pages are read.' });
    const [first] = await entriesOf(journal, run, 'overflowed');
    expect(first?.overflow.limitTokens).toBeGreaterThan(6_000);
    // A reply to a part of the request is not taken.
    const cut = server.seen.filter(({ tokens }) => tokens > 8_000);
    expect(cut).toHaveLength(1);
    expect((await run.state()).steps).toHaveLength(11);
  });

  it('is seen in the first reply, where the request is far longer', async () => {
    const server = await serve({ cutsOff: true, window: 4_000, says: reader(0) });
    const { result } = await play(compatible(server.url), { query: 'word '.repeat(16_000) });
    expect(result).toMatchObject({ status: 'paused', pauses: [{ reason: 'context_exhausted' }] });
  });
});

describe('what does not fit, however short it is made', () => {
  const long = 'word '.repeat(8_000);

  it('pauses the run, which says what to do, and goes on when the window is larger', async () => {
    const server = await serve({ says: reader(2) });
    const { result, run } = await play(compatible(server.url), { query: long });
    expect(result).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'context_exhausted', payload: { model: 'm', windowTokens: 7_000 } }],
    });
    expect(JSON.stringify(result)).toContain('larger window');
    expect(server.seen).toHaveLength(1);
    // Nothing has changed: it is asked once more, and waits again.
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'context_exhausted' }] });
    expect(server.seen).toHaveLength(2);
    server.options.window = 50_000;
    await run.resume();
    expect(await run.result()).toMatchObject(WHOLE);
  });

  it('goes on with another model', async () => {
    const small = await serve({ says: reader(2) });
    const large = await serve({ window: 50_000, says: reader(2) });
    const path = temporaryFile();
    const before = made(compatible(small.url), { journal: openJournal(path) });
    const { id } = await start(before, { query: long });
    expect(await before.runtime.run(id).result()).toMatchObject({ status: 'paused' });
    await before.runtime.close();
    const after = made(compatible(large.url), { journal: openJournal(path) });
    await after.runtime.run(id).resume();
    expect(await after.runtime.run(id).result()).toMatchObject(WHOLE);
  });
});

describe('with several models', () => {
  it('the next one is asked with the whole history, unless compaction was asked for', async () => {
    const refused = async (compaction: ReactOptions['compaction'] | undefined) => {
      const small = await serve({ says: reader(12) });
      const large = await serve({ window: 50_000, says: (index) => reader(12)(index + 7) });
      const big = createOpenAICompatible({ name: 'local', apiKey: 'k', baseURL: large.url })('big');
      const { result } = await play([compatible(small.url), big], {
        react: compaction === undefined ? {} : { compaction },
      });
      expect(result).toMatchObject(WHOLE);
      expect(small.seen.filter((each) => each.refused)).toHaveLength(1);
      return { summaries: small.seen.filter(({ isSummary }) => isSummary).length, large: large.seen.length };
    };
    expect(await refused(undefined)).toEqual({ summaries: 0, large: 6 });
    const kept = await refused({ budgetTokens: 100_000 });
    expect(kept.large).toBe(0);
    expect(kept.summaries).toBeGreaterThan(0);
  });
});

describe('a process that dies', () => {
  it.each([
    ['between what did not fit and the next request', 7],
    ['later, before another request', 9],
  ])('%s, leaves the next one what was learnt', async (_, at) => {
    let hangs = true;
    let hung = 0;
    const never = new Promise<Said>(() => {});
    const server = await serve({
      says: (index) => {
        if (!hangs || index !== at) return reader(16)(index - hung);
        hung = 1;
        return never;
      },
    });
    const path = temporaryFile();
    const before = made(compatible(server.url), { journal: openJournal(path) });
    const { id } = await start(before, { query: 'Read the pages.' });
    await until(() => hung === 1);
    const overflowed = await entriesOf(before.journal, before.runtime.run(id), 'overflowed');
    expect(overflowed).toMatchObject([{ step: 7, overflow: { limitTokens: 7_000 } }]);
    await before.runtime.close();
    hangs = false;
    const after = made(compatible(server.url), { journal: openJournal(path) });
    const run = after.runtime.run(id);
    await run.resume();
    expect(await run.result()).toMatchObject(WHOLE);
    expect(server.seen.filter(({ refused }) => refused)).toHaveLength(1);
    expect(await entriesOf(after.journal, run, 'overflowed')).toEqual(overflowed);
  });
});

describe('a window that is full in the middle of a reply', () => {
  it('is too long a request: the reply is not taken, and the history gets shorter', async () => {
    const answer = (content: Json, stop: string, tokens: number) => ({
      json: {
        type: 'message',
        id: 'm',
        role: 'assistant',
        model: 'claude-x',
        content: [content],
        stop_reason: stop,
        stop_sequence: null,
        usage: { input_tokens: tokens, output_tokens: 90 },
      },
    });
    const call = (n: number) =>
      answer({ type: 'tool_use', id: `t${n}`, name: 'page', input: { n } }, 'tool_use', 1_000 * n);
    const summary = { goals: ['g'], facts: ['f'], pending: [], lastOutputDigest: 'd', note: '' };
    const server = await wireServer([
      ...[1, 2, 3].map(call),
      answer({ type: 'text', text: 'All pag' }, 'model_context_window_exceeded', 4_000),
      answer({ type: 'text', text: JSON.stringify(summary) }, 'end_turn', 900),
      answer({ type: 'text', text: WHOLE.answer }, 'end_turn', 900),
    ]);
    const claude = createAnthropic({ apiKey: 'k', baseURL: server.url })('claude-3-haiku');
    const { result, run, journal } = await play({ model: claude, structuredOutput: 'text' });
    await server.close();
    expect(result).toMatchObject(WHOLE);
    expect((await kindsOf(journal, run)).slice(-4)).toEqual(['overflowed', 'compacted', 'moved', 'finished']);
  });
});

describe('whoever asks a model', () => {
  it('is told by a planner that has no history to shorten', async () => {
    const server = await serve({ window: 1, says: reader(0) });
    const ready = world({ planner: pipeline({ model: compatible(server.url) }), tools: [page], patienceMs: 0 });
    const run = await start(ready, { query: 'Read the pages.' });
    expect(await run.result()).toMatchObject({
      reason: 'no_path',
      metadata: { faults: [{ code: 'context_window_exceeded', message: expect.stringContaining('(1 tokens)') }] },
    });
    expect(server.seen).toHaveLength(1);
  });

  it('is told in one error what does not fit, also inside a stream', async () => {
    const server = await serve({ window: 1, says: reader(0) });
    const asked = askModel({
      models: [readyModel(compatible(server.url))],
      requestFor: () => ({ prompt: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }] }),
      signal: new AbortController().signal,
      clock: systemClock,
    });
    const error = await asked.catch((thrown: unknown) => thrown);
    expect(PilotageError.is(error, 'context_window_exceeded')).toBe(true);
    expect(error).toMatchObject({ data: { model: 'm', overflow: { kind: 'input', limitTokens: 1 } } });
    expect(String(error)).toContain('use a model with a larger window');
  });
});
