/** A real server on loopback that fails in the ways of real ones. */
import { afterEach, describe, expect, it } from 'vitest';
import { type AskOptions, askModel, streamModel } from '#model';
import { openaiCompatible } from '#model/openai-compatible';
import { type OpenAIServer, openaiServer, type ServerReply, VirtualClock } from '#testing';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { askOptions, drain, shown } from '../kit/model.ts';

let server: OpenAIServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

const TEXT = 'The answer, which is longer than a few pieces of twelve characters.';
const good: ServerReply = { text: TEXT, usage: { inputTokens: 9, outputTokens: 4 } };

async function asking(script: readonly ServerReply[], more: Partial<AskOptions> = {}): Promise<AskOptions> {
  server = await openaiServer(script);
  return askOptions([openaiCompatible({ baseUrl: server.url, model: 'small' })], new ImpatientClock(), more);
}

const WAYS: Record<string, (options: AskOptions) => ReturnType<typeof askModel>> = {
  plain: askModel,
  streamed: async (options) => (await drain(streamModel(options))).value,
};

describe.each(Object.entries(WAYS))('a real server, %s', (_, ask) => {
  it('503 and then 200 gives the reply', async () => {
    const asked = await ask(await asking([{ error: { status: 503, message: 'loading' } }, good]));
    expect(asked.reply.text).toBe(TEXT);
    expect(asked.remarks).toEqual([
      { type: 'model.fallback', from: 'small', to: 'small', error: { code: 'http_503', message: 'loading' } },
    ]);
    expect(server?.requests.length).toBe(2);
  });

  it('429 with Retry-After is left alone for that long', async () => {
    const clock = new ImpatientClock();
    server = await openaiServer([{ error: { status: 429, message: 'slow down', retryAfter: '2' } }, good]);
    await ask(askOptions([openaiCompatible({ baseUrl: server.url, model: 'small' })], clock));
    expect(clock.waits).toEqual([2_000]);
  });

  it('400 is thrown after one request', async () => {
    const options = await asking([{ error: { status: 400, message: 'no such model' } }, good]);
    await expect(ask(options)).rejects.toMatchObject({ statusCode: 400, message: 'no such model' });
    expect(server?.requests.length).toBe(1);
  });

  it('a server that is not there may be there later', async () => {
    const gone = await openaiServer([]);
    await gone.close();
    const absent = openaiCompatible({ baseUrl: gone.url, model: 'absent' });
    server = await openaiServer([good]);
    const present = openaiCompatible({ baseUrl: server.url, model: 'present' });
    const asked = await ask(askOptions([absent, present], new ImpatientClock()));
    expect(asked.model.name).toBe('present');
    expect(asked.remarks.map((remark) => 'error' in remark && remark.error.code)).toEqual(
      new Array(3).fill('ECONNREFUSED'),
    );
  });
});

describe('bug 14, over a real connection', () => {
  const overloaded = { message: 'Overloaded', type: 'overloaded_error' };

  it.each<[string, ServerReply, boolean]>([
    ['an error event first', { text: TEXT, errorEvent: { ...overloaded, afterEvents: 0 } }, false],
    ['an error event after three tokens', { text: TEXT, errorEvent: { ...overloaded, afterEvents: 4 } }, true],
    ['a gateway error with its status', { text: TEXT, errorEvent: { ...overloaded, code: 502, afterEvents: 4 } }, true],
    ['a connection that is reset in the middle', { text: TEXT, breakAfterEvents: 4 }, true],
    ['a connection that is reset before the first event', { text: TEXT, breakAfterEvents: 0 }, false],
  ])('%s: the whole reply comes, once', async (_, failing, showed) => {
    const { deltas, value } = await drain(streamModel(await asking([failing, good])));
    expect(value.reply).toMatchObject({ text: TEXT, finish: 'stop', usage: { inputTokens: 9 } });
    expect(value.remarks.length).toBe(1);
    expect(shown(deltas)).toBe(TEXT);
    expect(deltas.filter((delta) => delta.type === 'reset').length).toBe(showed ? 1 : 0);
  });

  it('an error event that says that the request is wrong is thrown', async () => {
    const options = await asking([
      { text: TEXT, errorEvent: { message: 'too long', code: 400, afterEvents: 2 } },
      good,
    ]);
    await expect(drain(streamModel(options))).rejects.toMatchObject({
      message: 'too long',
      cause: { cause: { code: 400 } },
    });
    expect(server?.requests.length).toBe(1);
  });

  it('a stall after three tokens is given up, and its connection closed', async () => {
    const clock = new VirtualClock();
    const options = await asking([{ text: TEXT, stallAfterEvents: 4 }, good], { clock, random: () => 0 });
    const stream = streamModel(options);
    const deltas = [];
    for (let token = 0; token < 3; token += 1) deltas.push((await stream.next()).value);
    const next = stream.next();
    clock.advance(120_000);
    deltas.push((await next).value);
    expect(deltas.at(-1)).toEqual({ type: 'reset' });
    const { deltas: rest, value } = await drain(stream);
    expect(shown(rest)).toBe(TEXT);
    expect(value.remarks).toMatchObject([{ error: { code: 'model_stalled' } }]);
    expect(clock.pending).toBe(0);
    await expect.poll(() => server?.openStreams).toBe(0);
  });

  it('an abort in the middle closes the connection', async () => {
    const controller = new AbortController();
    const options = await asking([{ text: TEXT, stallAfterEvents: 4 }], { signal: controller.signal });
    const stream = streamModel({ ...options, clock: new VirtualClock() });
    await stream.next();
    const reason = new Error('stop');
    controller.abort(reason);
    await expect(drain(stream)).rejects.toMatchObject({ code: 'cancelled', cause: reason });
    await expect.poll(() => server?.openStreams).toBe(0);
  });
});
