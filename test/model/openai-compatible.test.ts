import { afterEach, describe, expect, it } from 'vitest';
import type { SpokenDelta } from '#core';
import { streamReply } from '#model';
import { openaiCompatible } from '#model/openai-compatible';
import { type OpenAIServer, openaiServer } from '#testing';
import { generateReply } from '../kit/model.ts';

let server: OpenAIServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});

const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hello' }] }];
const reply = {
  reasoning: 'A thought of some length.',
  text: 'Two look-ups — with ümlauts and 🙂 in them.',
  calls: [
    { id: 'c1', tool: 'search', args: { q: 'something longer than one piece' } },
    { id: 'c2', tool: 'read', args: {} },
  ],
  usage: { inputTokens: 40, outputTokens: 9, cachedInputTokens: 30 },
};
const expected = {
  reasoning: reply.reasoning,
  text: reply.text,
  calls: [
    { callId: 'c1', tool: 'search', input: '{"q":"something longer than one piece"}' },
    { callId: 'c2', tool: 'read', input: '{}' },
  ],
  finish: 'tool-calls',
  providerFinish: 'tool_calls',
  modelId: 'small',
  usage: reply.usage,
  // A stream begins with the reasoning, a reply in one piece with the text.
  providerState: {
    provider: expect.any(String),
    parts: expect.arrayContaining([
      { type: 'reasoning' },
      { type: 'text', text: reply.text },
      { type: 'call', call: 0 },
      { type: 'call', call: 1 },
    ]),
  },
};

describe('an address of a model server', () => {
  it.each([
    'localhost:11434/v1',
    'localhost',
    '127.0.0.1:11434/v1',
    'htp://127.0.0.1/v1',
    'file:///v1',
    '/v1',
    '',
  ])('that no request can go to is refused at once, and not waited for: %j', (baseUrl) => {
    expect(() => openaiCompatible({ baseUrl, model: 'm' })).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining('http://') }),
    );
  });

  it('takes no user and no password, which are not repeated', () => {
    const given = (): unknown => openaiCompatible({ baseUrl: 'https://ana:geheim@models.example/v1', model: 'm' });
    expect(given).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    expect(given).not.toThrow(/geheim/);
  });
});

describe('an OpenAI-compatible server over HTTP', () => {
  it('answers a plain request; key and headers are sent', async () => {
    server = await openaiServer([reply]);
    const headers = { 'x-team': 'a' };
    const model = openaiCompatible({ baseUrl: server.url, model: 'small', apiKey: 'k', headers });
    expect(await generateReply(model, { prompt })).toEqual(expected);
    const [request] = server.requests;
    expect(request?.headers).toMatchObject({ authorization: 'Bearer k', 'x-team': 'a' });
    expect(request?.body).toMatchObject({ model: 'small', messages: [{ role: 'user', content: 'hello' }] });
    expect(request?.body.stream).toBeUndefined();
  });

  it('streams the same reply, with its usage', async () => {
    server = await openaiServer([reply]);
    const stream = streamReply(openaiCompatible({ baseUrl: server.url, model: 'small' }), { prompt });
    const deltas: SpokenDelta[] = [];
    let next = await stream.next();
    for (; !next.done; next = await stream.next()) deltas.push(next.value);
    expect(next.value).toEqual(expected);
    expect(deltas.length).toBeGreaterThan(3);
    expect(deltas.map((delta) => (delta.type === 'text' ? delta.text : '')).join('')).toBe(reply.text);
    expect(server.requests[0]?.headers.authorization).toBeUndefined();
    expect(server.requests[0]?.body).toMatchObject({ stream: true, stream_options: { include_usage: true } });
  });

  it('gives the error of the server', async () => {
    server = await openaiServer([{ error: { status: 400, message: 'no such model' } }]);
    const model = openaiCompatible({ baseUrl: server.url, model: 'small' });
    await expect(generateReply(model, { prompt })).rejects.toThrow('no such model');
  });

  it('a stream that breaks off after it began is an error, not an answer', async () => {
    server = await openaiServer([{ text: 'The answer is long enough for pieces', breakAfterEvents: 3 }]);
    const stream = streamReply(openaiCompatible({ baseUrl: server.url, model: 'small' }), { prompt });
    const drain = async () => {
      for await (const _ of stream);
    };
    await expect(drain()).rejects.toThrow();
  });
});
