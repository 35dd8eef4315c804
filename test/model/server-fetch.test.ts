/** What a model server can do to its caller: a reply without an end, one that never comes, a redirect. */
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { LanguageModelV4, LanguageModelV4StreamPart } from '@ai-sdk/provider';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { systemClock } from '#core';
import { askModel, streamModel, streamReply } from '#model';
import { openaiCompatible } from '#model/openai-compatible';
import { scriptedModel, VirtualClock } from '#testing';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { askOptions, drain } from '../kit/model.ts';
import { quiet } from '../kit/waiting.ts';

const servers: Server[] = [];
afterEach(() => {
  vi.restoreAllMocks();
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

const REPLY = JSON.stringify({
  ...{ id: 'c', object: 'chat.completion', created: 1, model: 'm' },
  choices: [{ index: 0, message: { role: 'assistant', content: 'hello' }, finish_reason: 'stop' }],
});
const good: RequestListener = (_, response) => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(REPLY);
};

function asking(baseUrl: string, maxReplyBytes?: number) {
  const limit = maxReplyBytes === undefined ? {} : { maxReplyBytes };
  const model = openaiCompatible({ baseUrl, model: 'm', apiKey: 'sk-secret', ...limit });
  return askOptions([model], new ImpatientClock(), { retries: 0 });
}

/** Goes on for as long as somebody reads. */
const endless =
  (head: string, piece: string, type: string): RequestListener =>
  (_, response) => {
    response.writeHead(200, { 'content-type': type }).write(head);
    const more = (): void => {
      while (!response.destroyed && response.write(piece));
      if (!response.destroyed) response.once('drain', more);
    };
    more();
  };

describe('a reply without an end', () => {
  it('is broken off when it comes whole, and is a failure that may pass', async () => {
    const baseUrl = await serve(endless('{"choices":"', 'x'.repeat(65_536), 'application/json'));
    await expect(askModel(asking(baseUrl, 1_000_000))).rejects.toMatchObject({
      code: 'model_unavailable',
      data: { why: 'away', tries: [{ code: 'model_reply_too_large' }] },
    });
  });

  it('is broken off when it is streamed', async () => {
    const event = `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content: 'x'.repeat(999) } }] })}\n\n`;
    const baseUrl = await serve(endless('', event, 'text/event-stream'));
    await expect(drain(streamModel(asking(baseUrl, 1_000_000)))).rejects.toMatchObject({
      data: { tries: [{ code: 'model_reply_too_large' }] },
    });
  });

  it('is broken off when it is the text of an error', async () => {
    const baseUrl = await serve((request, response) => {
      response.statusCode = 200;
      endless('', 'no! '.repeat(9_999), 'text/plain')(request, response);
    });
    await expect(askModel(asking(baseUrl, 100_000))).rejects.toMatchObject({ code: 'model_unavailable' });
  });

  it('is broken off of any model that streams', async () => {
    const text = 'x'.repeat(2_000_001);
    await expect(
      drain(streamModel(askOptions([scriptedModel([{ text }])], new ImpatientClock(), { retries: 0 }))),
    ).rejects.toMatchObject({ data: { tries: [{ code: 'model_reply_too_large' }] } });
  });

  it('is refused of any model that gives it in one piece, before anybody reads it', async () => {
    const models = [scriptedModel([{ text: 'x'.repeat(2_000_001) }])];
    await expect(askModel(askOptions(models, new ImpatientClock(), { retries: 0 }))).rejects.toMatchObject({
      data: { tries: [{ code: 'model_reply_too_large' }] },
    });
  });

  it('comes in parts when it is large, and whole, with others at work in between', async () => {
    const text = `x${'😀'.repeat(100_000)}`;
    const model = scriptedModel([{ content: [{ type: 'text', text }] }]);
    let turns = 0;
    let isOver = false;
    const beat = (): void => {
      turns += 1;
      if (!isOver) setImmediate(beat);
    };
    setImmediate(beat);
    const whole: LanguageModelV4 = {
      ...model,
      doStream: async () => ({
        stream: new ReadableStream<LanguageModelV4StreamPart>({
          start(controller) {
            controller.enqueue({ type: 'text-start', id: 't' });
            controller.enqueue({ type: 'text-delta', id: 't', delta: text });
            controller.close();
          },
        }),
      }),
    };
    const pieces: string[] = [];
    for await (const delta of streamReply(whole, { prompt: [] })) if (delta.type === 'text') pieces.push(delta.text);
    isOver = true;
    expect(pieces.length).toBeGreaterThan(2);
    expect(pieces.every((piece) => piece.isWellFormed())).toBe(true);
    expect(pieces.join('')).toBe(text);
    expect(turns).toBeGreaterThan(1);
  });

  it('one within the limit comes as it is, and a limit that is none is refused', async () => {
    const baseUrl = await serve(good);
    expect((await askModel(asking(baseUrl, REPLY.length))).reply.text).toBe('hello');
    for (const maxReplyBytes of [0, -1, 1.5, Number.NaN]) {
      expect(() => openaiCompatible({ baseUrl, model: 'm', maxReplyBytes })).toThrow('maxReplyBytes');
    }
  });
});

describe('JSON that would keep everybody waiting', () => {
  const entries = (count: number): string => Array.from({ length: count }, (_, at) => `"k${at}":1`).join();
  const keys = `{${entries(10_001)}}`;
  const values = `{"choices":[${'{},'.repeat(100_000)}{}]}`;
  const long = `{"id":"${'x'.repeat(8 * 1024 * 1024)}"}`;
  /** Only what is no stream of events may have an empty line in it. */
  const withEmptyLine = `{${entries(6_000)},\n\n${entries(10_001).slice(entries(6_000).length + 1)}}`;
  const overLines = `{${entries(10_001)}}`.replaceAll(',', ',\ndata: ');

  const body =
    (type: string, text: string): RequestListener =>
    (_, response) => {
      response.writeHead(200, { 'content-type': type }).end(text);
    };
  const refused = { data: { why: 'away', tries: [{ code: 'model_reply_too_large' }] } };

  it.each(
    Object.entries({ keys, values, long, withEmptyLine }),
  )('is refused of a reply that comes whole: %s', async (_, json) => {
    const baseUrl = await serve(body('text/event-stream', json));
    await expect(askModel(asking(baseUrl))).rejects.toMatchObject(refused);
  });

  it.each(
    Object.entries({ keys, values, long, overLines }),
  )('is refused of one event of a stream: %s', async (_, json) => {
    for (const end of ['\n\n', '\r\n\r\n']) {
      const baseUrl = await serve(body('application/json', `data: {"choices":[]}${end}data: ${json}${end}`));
      await expect(drain(streamModel(asking(baseUrl)))).rejects.toMatchObject(refused);
    }
  });

  it('is refused of the text of an error, whatever was asked for', async () => {
    const baseUrl = await serve((_, response) => {
      response.writeHead(500).end(withEmptyLine);
    });
    await expect(drain(streamModel(asking(baseUrl)))).rejects.toMatchObject(refused);
  });

  it.each(['\n', '\r\n'])('is none when many events hold as much together, each ended by %j', async (end) => {
    const events = Array.from(
      { length: 11_000 },
      (_, at) => `data: {"k${at}":[1,2,3,4,5,6],"choices":[{"index":0,"delta":{"content":"a"}}]}${end}${end}`,
    );
    const last = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}${end}${end}`;
    const baseUrl = await serve(body('text/event-stream', [...events, last].join('')));
    const { value } = await drain(streamModel(asking(baseUrl)));
    expect(value.reply).toMatchObject({ text: 'a'.repeat(11_000), finish: 'stop' });
  });

  it('is none up to the limits', async () => {
    const more = `"more":{${entries(9_000)}},"list":[${'1,'.repeat(80_000)}1]`;
    const baseUrl = await serve(body('application/json', REPLY.replace('{', `{${more},`)));
    expect((await askModel(asking(baseUrl))).reply.text).toBe('hello');
  });
});

/** Whose whole reply is there at once. */
function ready(parts: readonly LanguageModelV4StreamPart[]): LanguageModelV4 {
  const start = (controller: ReadableStreamDefaultController<LanguageModelV4StreamPart>): void => {
    for (const part of parts) controller.enqueue(part);
    controller.close();
  };
  return { ...scriptedModel([]), doStream: async () => ({ stream: new ReadableStream({ start }) }) };
}

/** How often the event loop goes round meanwhile, and how often a timer comes. */
async function turnsOf<T>(work: () => Promise<T>): Promise<{ value: T; turns: number; timers: number }> {
  let [turns, timers] = [0, 0];
  const beat = (): void => {
    turns += 1;
    next = setImmediate(beat);
  };
  let next = setImmediate(beat);
  const timer = setInterval(() => {
    timers += 1;
  }, 1);
  try {
    const value = await work();
    return { value, turns, timers };
  } finally {
    clearImmediate(next);
    clearInterval(timer);
  }
}

describe('much that is there at once', () => {
  const piece: LanguageModelV4StreamPart = { type: 'text-delta', id: 't', delta: 'a' };
  /** Between two turns: what is left of one, and all of the next. */
  const most = 2 * 256;

  it('is read with a turn for timers in between, all streams of a process together', async () => {
    const model = ready(Array.from({ length: 10_000 }, () => piece));
    const clock = new ImpatientClock();
    let [inTurn, mostInTurn] = [0, 0];
    const read = async (): Promise<string> => {
      let text = '';
      for await (const delta of streamModel(askOptions([model], clock))) {
        text += delta.type === 'text' ? delta.text : '';
        inTurn += 1;
        mostInTurn = Math.max(mostInTurn, inTurn);
      }
      return text;
    };
    const turn = (): void => {
      inTurn = 0;
      next = setImmediate(turn);
    };
    let next = setImmediate(turn);
    const { value, turns, timers } = await turnsOf(() => Promise.all([read(), read(), read(), read()]));
    clearImmediate(next);
    expect(value).toEqual(Array.from({ length: 4 }, () => 'a'.repeat(10_000)));
    expect(mostInTurn).toBeLessThanOrEqual(most);
    expect(turns).toBeGreaterThanOrEqual(40_000 / most);
    expect(timers).toBeGreaterThan(0);
  });

  it('waits for nobody when it is no more than usual', async () => {
    const model = ready(Array.from({ length: 200 }, () => piece));
    const { value, turns } = await turnsOf(() => drain(streamModel(askOptions([model], new ImpatientClock()))));
    expect(value.deltas).toHaveLength(200);
    expect(turns).toBe(0);
  });

  it('leaves turns also when the events of a server say nothing', async () => {
    const events = new TextEncoder().encode('data: {"choices":[]}\n\n'.repeat(20_000));
    const chunks = Array.from({ length: events.length / 40_000 }, (_, at) =>
      events.subarray(at * 40_000, (at + 1) * 40_000),
    );
    // How much is there at once is the network's to say, so it is said here.
    vi.spyOn(globalThis, 'fetch').mockImplementation(
      async () =>
        new Response(
          new ReadableStream({
            start(controller) {
              for (const chunk of chunks) controller.enqueue(chunk);
              controller.close();
            },
          }),
        ),
    );
    const read = (): Promise<unknown> => drain(streamModel(asking('http://127.0.0.1:1/v1'))).catch(() => undefined);
    const { turns } = await turnsOf(() => Promise.all([read(), read(), read(), read()]));
    expect(turns).toBeGreaterThanOrEqual((4 * events.length) / (2 * 65_536));
  });
});

describe('a call that takes too long', () => {
  it.each([undefined, 90_000])('is given up whole, after its limit: %s', async (callTimeoutMs) => {
    const clock = new VirtualClock();
    const limit = callTimeoutMs === undefined ? {} : { callTimeoutMs };
    const model = { model: scriptedModel([{ stall: true }]), ...limit };
    const failed = expect(askModel(askOptions([model], clock, { retries: 0 }))).rejects.toMatchObject({
      data: { why: 'away', tries: [{ code: 'model_timeout' }] },
    });
    await quiet();
    clock.advance((callTimeoutMs ?? 600_000) - 1);
    await quiet();
    expect(clock.pending).toBe(1);
    clock.advance(1);
    await failed;
    expect(clock.pending).toBe(0);
  });

  it('is given up although it says something now and then', async () => {
    const baseUrl = await serve((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const timer = setInterval(() => response.write(': still there\n\n'), 10);
      response.once('close', () => clearInterval(timer));
    });
    const model = { model: openaiCompatible({ baseUrl, model: 'm' }), callTimeoutMs: 150 };
    await expect(drain(streamModel(askOptions([model], systemClock, { retries: 0 })))).rejects.toMatchObject({
      data: { tries: [{ code: 'model_timeout' }] },
    });
  });
});

describe('a redirect', () => {
  it.each([
    301, 302, 303, 307, 308,
  ])('to another host is not followed, and the key does not go there: %i', async (status) => {
    const seen: IncomingHttpHeaders[] = [];
    const other = await serve((request, response) => {
      seen.push(request.headers);
      good(request, response);
    });
    const baseUrl = await serve((_, response) => {
      response.writeHead(status, { location: `${other}/chat/completions` }).end();
    });
    const error = await askModel(asking(baseUrl)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'model_unavailable',
      message: expect.stringContaining('Set the base URL to where the server is.'),
      data: { why: 'misdirected', tries: [{ code: 'model_redirected' }] },
    });
    expect(String(error)).not.toContain('sk-secret');
    expect(seen).toEqual([]);
  });

  it('to another path of the same host is followed as the request that it is', async () => {
    const bodies: string[] = [];
    const baseUrl = await serve((request, response) => {
      if (request.url === '/v1/chat/completions') {
        response.writeHead(308, { location: '/v2/chat/completions' }).end();
        return;
      }
      let body = '';
      request.on('data', (chunk) => {
        body += String(chunk);
      });
      request.on('end', () => {
        bodies.push(`${request.method} ${request.url} ${body.includes('"model":"m"')}`);
        good(request, response);
      });
    });
    expect((await askModel(asking(baseUrl))).reply.text).toBe('hello');
    expect(bodies).toEqual(['POST /v2/chat/completions true']);
  });

  it.each<[string, Record<string, string>]>([
    ['round in a circle', { location: '/v1/chat/completions' }],
    ['nowhere', {}],
    ['to what is no URL', { location: 'http://[' }],
    ['to a file', { location: 'file:///etc/passwd' }],
  ])('%s is refused', async (_, headers) => {
    const baseUrl = await serve((__, response) => {
      response.writeHead(307, headers).end();
    });
    await expect(askModel(asking(baseUrl))).rejects.toMatchObject({ data: { why: 'misdirected' } });
  });
});
