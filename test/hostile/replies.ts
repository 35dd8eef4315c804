/** What hostile model servers say: broken in every way in which HTTP, event streams, JSON, and the protocol above them can be. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import type { Json, JsonObject } from '#pilotage';

export interface Asked {
  readonly incoming: IncomingMessage;
  readonly response: ServerResponse;
  readonly stream: boolean;
  /** From 0 up to 1. */
  readonly random: () => number;
}

export type Misbehave = (asked: Asked) => void | Promise<void>;

const USAGE: JsonObject = { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 };
const SLOW_MS = 40;
/** Between two pieces of what never ends. */
const QUICK_MS = 4;

const pick = <T>(random: () => number, list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;

/** A reply with this message, in one piece or as a stream, whichever was asked for. */
export function say(asked: Asked, message: Json, more: JsonObject = {}): void {
  const base = { id: 'c', object: 'chat.completion', created: 1, model: 'm' };
  const finish = { index: 0, finish_reason: 'stop', ...more };
  if (!asked.stream) {
    json(asked, JSON.stringify({ ...base, choices: [{ ...finish, message }], usage: more['usage'] ?? USAGE }));
    return;
  }
  events(asked, [
    JSON.stringify({ ...base, choices: [{ index: 0, delta: message, finish_reason: null }] }),
    JSON.stringify({ ...base, choices: [{ ...finish, delta: {} }], usage: more['usage'] ?? USAGE }),
    '[DONE]',
  ]);
}

function json({ response }: Asked, text: string | Buffer, headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(200, { 'content-type': 'application/json', ...headers });
  response.end(text);
}

function events({ response }: Asked, data: readonly string[], headers: Readonly<Record<string, string>> = {}): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...headers });
  response.end(data.map((each) => `data: ${each}\n\n`).join(''));
}

/** Writes what `piece` gives until nobody listens any more. */
async function withoutEnd(
  { response }: Asked,
  headers: Readonly<Record<string, string>>,
  piece: string,
  waitMs = QUICK_MS,
): Promise<void> {
  response.writeHead(200, headers);
  while (!response.destroyed) {
    if (response.write(piece)) await sleep(waitMs);
    else
      await Promise.race([
        new Promise((resolve) => response.once('drain', resolve)),
        new Promise((resolve) => response.once('close', resolve)),
      ]);
  }
}

const SSE = { 'content-type': 'text/event-stream' } as const;
const JSON_TYPE = { 'content-type': 'application/json' } as const;
const delta = (message: Json): string =>
  JSON.stringify({ id: 'c', choices: [{ index: 0, delta: message, finish_reason: null }] });

export const call = (name: Json, args: Json, id: Json = 'call_1', index: Json = 0): JsonObject => ({
  index,
  id,
  type: 'function',
  function: { name, arguments: args },
});

function calls(asked: Asked, list: readonly Json[]): void {
  say(asked, { role: 'assistant', content: null, tool_calls: [...list] }, { finish_reason: 'tool_calls' });
}

const BOMB_BYTES = 100 << 20;
const bombs: Record<string, Buffer> = {};

/** What takes long to make is made before anybody asks. */
export function prepare(): void {
  const spaces = Buffer.alloc(BOMB_BYTES, 32);
  bombs['gzip'] = gzipSync(spaces);
  bombs['br'] = brotliCompressSync(spaces, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
}

function bomb(name: 'gzip' | 'br'): Buffer {
  return bombs[name] ?? Buffer.alloc(0);
}

const USAGES: readonly Json[] = [
  { prompt_tokens: -1e9, completion_tokens: -1, total_tokens: -1e9 },
  { prompt_tokens: '7', completion_tokens: [1], total_tokens: {} },
  { prompt_tokens: 1e308, completion_tokens: 0.5, total_tokens: 1e308 },
  { prompt_tokens: 5, prompt_tokens_details: { cached_tokens: 1e9 }, completion_tokens: 5, total_tokens: 1 },
  { prompt_tokens: null, completion_tokens: null },
  'many',
  [],
  null,
];
const RETRY_AFTER: readonly string[] = [
  '-1',
  '0',
  '1e9',
  'NaN',
  'soon',
  '0.001',
  'Wed, 21 Oct 2099 07:28:00 GMT',
  'Thu, 01 Jan 1970 00:00:00 GMT',
  '99999999999999999999',
  ' ',
];
const CONTENTS: readonly Json[] = [
  7,
  true,
  null,
  [],
  {},
  [{ type: 'text', text: 'x' }],
  [null],
  { text: 'x' },
  '\u0000\ud800',
  '',
];
const WORDS: readonly string[] = [
  '{'.repeat(300_000),
  '['.repeat(300_000),
  '{"a":'.repeat(60_000),
  '<tool_call>'.repeat(30_000),
  '<tool_call>{"name":"odd","arguments":'.repeat(8_000),
  '```json\n'.repeat(40_000),
  '"\\'.repeat(150_000),
  '<think>'.repeat(50_000),
  '</think><think>'.repeat(25_000),
  '[TOOL_CALLS]'.repeat(25_000),
  '<|tool_call|>{'.repeat(20_000),
  `${'a'.repeat(1_000)} `.repeat(400),
  '\u{1f469}\u200d'.repeat(100_000),
  `{"tool":"odd","args":${'[[1,'.repeat(60_000)}`,
  '{"steps":[{"id":"a","type":"tool","toolId":"odd"},'.repeat(6_000),
  `odd(${'x=odd('.repeat(40_000)}`,
  '\n'.repeat(300_000),
  '// '.repeat(100_000),
  "{'a':'".repeat(50_000),
];

export const misbehaviours: Readonly<Record<string, Misbehave>> = {
  'tokens without end': (asked) => withoutEnd(asked, SSE, `data: ${delta({ content: 'word '.repeat(200) })}\n\n`),
  'tokens without end, slowly': (asked) => withoutEnd(asked, SSE, `data: ${delta({ content: 'word ' })}\n\n`, SLOW_MS),
  'thoughts without end': (asked) =>
    withoutEnd(asked, SSE, `data: ${delta({ reasoning_content: 'hm '.repeat(300) })}\n\n`),
  'arguments without end': (asked) =>
    withoutEnd(asked, SSE, `data: ${delta({ tool_calls: [call('odd', '{"a":"'.padEnd(500, 'x'))] })}\n\n`),
  'calls without end': (asked) =>
    withoutEnd(
      asked,
      SSE,
      `data: ${delta({ tool_calls: [call('odd', '{}', crypto.randomUUID(), Math.floor(asked.random() * 1e6))] })}\n\n`,
    ),
  'comments without end': (asked) => withoutEnd(asked, SSE, ': still here\n\n', SLOW_MS),
  'a line without end': (asked) => withoutEnd(asked, SSE, `data: ${'x'.repeat(5_000)}`.replace('data: ', '')),
  'an event without end': (asked) => withoutEnd(asked, SSE, `data: ${'x'.repeat(5_000)}\n`),
  'spaces without end': (asked) => withoutEnd(asked, JSON_TYPE, ' '.repeat(10_000)),
  'a body without end': (asked) => withoutEnd(asked, JSON_TYPE, '[[[[[[[['.repeat(1_000)),
  'huge headers': ({ response }) =>
    void response.socket?.end(`HTTP/1.1 200 OK\r\nx-big: ${'x'.repeat(200_000)}\r\n\r\n`),
  'a huge reply': (asked) => say(asked, { role: 'assistant', content: 'word '.repeat(3_000_000) }),
  'many small pieces': (asked) => {
    const piece = delta({ content: 'a' });
    events(asked, [...Array.from({ length: 30_000 }, () => piece), '[DONE]']);
  },
  'many empty choices': (asked) => {
    const choice = { index: 0, delta: {}, message: {}, finish_reason: null };
    const text = JSON.stringify({ id: 'c', choices: Array.from({ length: 50_000 }, () => choice) });
    if (asked.stream) events(asked, [text, '[DONE]']);
    else json(asked, text);
  },
  'slow headers': async ({ response }) => {
    const { socket } = response;
    for (const letter of 'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n') {
      if (socket === null || socket.destroyed) return;
      socket.write(letter);
      await sleep(SLOW_MS);
    }
  },
  'a slow body': async (asked) => {
    const { response } = asked;
    response.writeHead(200, asked.stream ? SSE : JSON_TYPE);
    for (const letter of `data: ${delta({ content: 'slowly' })}\n\n`) {
      if (response.destroyed) return;
      response.write(letter);
      await sleep(SLOW_MS);
    }
    response.end();
  },
  'no answer': () => {},
  'nothing after the headers': ({ response }) => void response.writeHead(200, SSE).flushHeaders(),
  'closed at once': ({ response }) => void response.socket?.destroy(),
  'closed in the middle': (asked) => {
    asked.response.writeHead(200, asked.stream ? SSE : JSON_TYPE);
    asked.response.write(
      asked.stream ? `data: ${delta({ content: 'half' })}\n\ndata: {"id"` : '{"id":"c","choices":[{"ind',
    );
    setTimeout(() => asked.response.socket?.destroy(), 5);
  },
  'half closed': ({ response }) =>
    void response.socket?.end('HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99\r\n\r\n{'),
  'no http': ({ response }) => void response.socket?.end('SSH-2.0-OpenSSH_9.6\r\n'),
  'bytes that are noise': ({ response, random }) => {
    const noise = Buffer.from(Array.from({ length: 4_000 }, () => Math.floor(random() * 256)));
    response.socket?.end(Buffer.concat([Buffer.from('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n'), noise]));
  },
  'a false length': (asked) => json(asked, '{"choices":[]}', { 'content-length': '5' }),
  html: (asked) => json(asked, '<html><body>Sign in</body></html>', { 'content-type': 'text/html' }),
  'events as json': (asked) =>
    events(asked, [delta({ content: 'x' }), '[DONE]'], { 'content-type': 'application/json' }),
  'json as events': (asked) => json(asked, JSON.stringify({ choices: [{ message: { content: 'x' } }] }), SSE),
  'nothing at all': (asked) => json(asked, ''),
  'no content': ({ response }) => void response.writeHead(204).end(),
  'utf-16': (asked) => json(asked, Buffer.from(JSON.stringify({ choices: [] }), 'utf16le')),
  'a byte order mark': (asked) =>
    json(
      asked,
      `\ufeff${JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: 'x' }, finish_reason: 'stop' }] })}`,
    ),
  'split letters': async ({ response }) => {
    response.writeHead(200, SSE);
    for (const byte of Buffer.from(`data: ${delta({ content: 'née 👩‍👩‍👧' })}\r\n\r\ndata: [DONE]\r\n\r\n`))
      response.write(Buffer.from([byte]));
    response.end();
  },
  'packed that is plain': (asked) => json(asked, '{"choices":[]}', { 'content-encoding': 'gzip' }),
  'packed in an unknown way': (asked) => json(asked, '{"choices":[]}', { 'content-encoding': 'zstd, gzip, br, gzip' }),
  'a gzip bomb': (asked) => json(asked, bomb('gzip'), { 'content-encoding': 'gzip' }),
  'a brotli bomb': (asked) => json(asked, bomb('br'), { 'content-encoding': 'br' }),
  'a bomb of events': (asked) => json(asked, bomb('gzip'), { 'content-encoding': 'gzip', ...SSE }),
  'deep json': (asked) => json(asked, `${'['.repeat(200_000)}${']'.repeat(200_000)}`),
  'deep events': (asked) => events(asked, [`${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`, '[DONE]']),
  'deep arguments': (asked) => calls(asked, [call('odd', `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`)]),
  'wide arguments': (asked) =>
    calls(asked, [call('odd', JSON.stringify({ a: Array.from({ length: 100_000 }, (_, at) => at) }))]),
  'many keys as arguments': (asked) =>
    calls(asked, [
      call('odd', JSON.stringify(Object.fromEntries(Array.from({ length: 100_000 }, (_, at) => [`k${at}`, 1])))),
    ]),
  'long arguments': (asked) => calls(asked, [call('odd', JSON.stringify({ a: 'é'.repeat(2_000_000) }))]),
  'broken events': (asked) => {
    const lines = [
      'data: {',
      'data',
      'data:',
      'event: ping',
      'id: \u0000',
      'retry: -5',
      ': x',
      'data: null',
      'data: 7',
      'data: "x"',
      'data: []',
      `data: ${delta(null)}`,
      `data:${delta({ content: 'x' })}`,
      'nonsense',
      '\r',
      'data: [DONE',
      'data: [DONE] ',
    ];
    const { response, random } = asked;
    response.writeHead(200, SSE);
    response.end(
      Array.from(
        { length: 30 },
        () => `${pick(random, lines)}${pick(random, ['\n\n', '\r\n\r\n', '\n', '\r\r'])}`,
      ).join(''),
    );
  },
  'more after the end': (asked) =>
    events(asked, [delta({ content: 'x' }), '[DONE]', delta({ content: 'y' }), '{', '[DONE]', '[DONE]']),
  'an error in the stream': (asked) =>
    events(asked, [
      delta({ content: 'x' }),
      JSON.stringify({
        error: pick(asked.random, [null, 'x', 7, {}, { message: 'overloaded', code: 529 }, { message: { deep: 1 } }]),
      }),
    ]),
  'an error with status 200': (asked) =>
    json(asked, JSON.stringify({ error: pick(asked.random, [null, 'x', {}, { message: 'x', type: 'rate_limit' }]) })),
  'odd usage': (asked) => say(asked, { role: 'assistant', content: 'Done.' }, { usage: pick(asked.random, USAGES) }),
  'usage twice': (asked) =>
    json(
      asked,
      '{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1},"usage":{"prompt_tokens":-5,"prompt_tokens":9}}',
    ),
  'odd content': (asked) => say(asked, { role: 'assistant', content: pick(asked.random, CONTENTS) }),
  'an odd reason': (asked) =>
    say(
      asked,
      { role: 'assistant', content: 'x' },
      {
        finish_reason: pick<Json>(asked.random, [
          'length',
          'content_filter',
          'function_call',
          'error',
          '',
          7,
          null,
          {},
        ]),
      },
    ),
  'odd choices': (asked) =>
    json(
      asked,
      JSON.stringify({
        choices: pick<Json>(asked.random, [null, {}, 'x', [null], [7], [{}], [{ message: null }], [{ message: 'x' }]]),
      }),
    ),
  'odd calls': (asked) =>
    calls(
      asked,
      Array.from({ length: 1 + Math.floor(asked.random() * 6) }, () => oddCall(asked.random)),
    ),
  'many calls': (asked) =>
    calls(
      asked,
      Array.from({ length: 3_000 }, (_, at) => call('odd', '{}', `c${at}`, at)),
    ),
  'one id for all': (asked) =>
    calls(
      asked,
      Array.from({ length: 6 }, (_, at) => call('odd', '{}', 'same', at)),
    ),
  'an odd status': ({ response, random }) => {
    const status = pick(
      random,
      [
        400, 401, 402, 403, 404, 405, 408, 409, 413, 418, 422, 425, 429, 451, 500, 501, 502, 503, 504, 529, 599, 600,
        999,
      ],
    );
    response.writeHead(status, {
      'retry-after': pick(random, RETRY_AFTER),
      'retry-after-ms': pick(random, RETRY_AFTER),
      ...JSON_TYPE,
    });
    response.end(
      pick(random, [
        '',
        'x',
        '{"error":{"message":"no"}}',
        '{"error":null}',
        '{"error":{"message":{}}}',
        '[]',
        `{"error":{"message":"${'no '.repeat(50_000)}"}}`,
      ]),
    );
  },
  'a redirect': ({ response, incoming, random }) => {
    const target = pick(random, [
      incoming.url ?? '/',
      'http://127.0.0.2:1/v1',
      'http://localhost.invalid/',
      'file:///etc/passwd',
      'data:application/json,{}',
      '//',
      'http://[',
      '',
    ]);
    response.writeHead(pick(random, [301, 302, 303, 307, 308, 300, 304]), { location: target }).end();
  },
  'odd words': (asked) => say(asked, { role: 'assistant', content: pick(asked.random, WORDS) }),
  'odd words in pieces': (asked) => {
    const words = pick(asked.random, WORDS);
    const pieces = Array.from({ length: 200 }, (_, at) =>
      delta({ content: words.slice((at * words.length) / 200, ((at + 1) * words.length) / 200) }),
    );
    events(asked, [...pieces, '[DONE]']);
  },
};

function oddCall(random: () => number): Json {
  const name = pick<Json>(random, [
    'odd',
    'odd',
    'Odd',
    'nobody',
    '',
    '__proto__',
    'constructor',
    '_finish',
    '_spawn_task',
    null,
    7,
    {},
    'x'.repeat(100_000),
    'odd\u0000',
    'functions.odd',
  ]);
  const args = pick<Json>(random, [
    '{}',
    '',
    '{',
    'null',
    '[]',
    '7',
    '"x"',
    null,
    7,
    {},
    [],
    '{"__proto__":{"x":1}}',
    '{"a":1,"a":2}',
    '{"a":1e999}',
    '{"a":NaN}',
    `{"a":"${'\\u0000'.repeat(1_000)}"}`,
    '{"$from":"x"}',
    '\ufeff{}',
    '{}{}',
  ]);
  const id = pick<Json>(random, ['c1', 'c1', '', null, 7, 'i'.repeat(100_000), '__proto__', 'c\n2', {}]);
  const index = pick<Json>(random, [0, 0, 1, -1, 1e9, null, 'x', 0.5]);
  return pick<Json>(random, [
    call(name, args, id, index),
    call(name, args, id, index),
    call(name, args, id, index),
    { function: { name, arguments: args } },
    { id },
    null,
    7,
    [],
  ]);
}
