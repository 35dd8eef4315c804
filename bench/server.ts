/**
 * The server with clients over real sockets: what a streamed word costs beside a hand-written endpoint and the AI SDK's own, a thousand readers of one
 * run, and five hundred chats that begin at once.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import { type Measured, median, short } from './measure.ts';
import { withScratch } from './scratch.ts';

const CHILD = join(import.meta.dirname, 'server-child.ts');
const STREAMS = 10;
const WORDS = 2_000;
const ROUNDS = 7;
const READERS = 1_000;
const CHATS = 500;
/** What a model takes to its first word, and from word to word. */
const FIRST_MS = 300;
const GAP_MS = 50;

export async function server(): Promise<Measured> {
  return withScratch(async (folder) => {
    const cost = await wordCost(folder);
    const readers = await manyReaders(folder);
    const chats = await manyChats(folder);
    return {
      keys: {
        sse_ratio: cost.ratio,
        sse_cpu_ratio: cost.cpuRatio,
        sse_ai_sdk_ratio: cost.aiSdkRatio,
        sse_us_per_word: cost.ours,
        readers_1000_ms: readers.lastMs,
        reader_bytes: readers.bytes,
        chats_500_first_token_ms: chats.ours,
        chats_500_ratio: chats.ratio,
      },
      rows: [
        [
          'a streamed word, over one by hand',
          `${cost.ratio} ×`,
          `${cost.ours} µs, by hand ${cost.hand} µs; at most 1.3 × is wanted`,
        ],
        ['the same, CPU of the server alone', `${cost.cpuRatio} ×`, `${STREAMS} streams of ${WORDS} words, SQLite`],
        ['`toUIMessageStreamResponse` of the AI SDK, over one by hand', `${cost.aiSdkRatio} ×`, 'without a journal'],
        [
          `${READERS} readers of one run`,
          `${readers.lastMs} ms`,
          `from the first that has the end of it to the last; ${readers.bytes} bytes each`,
        ],
        [
          `${CHATS} chats at once, first word`,
          `${chats.ours} ms`,
          `p95; by hand ${chats.hand} ms, ${chats.ratio} ×; at most 1.5 × is wanted`,
        ],
      ],
    };
  });
}

interface Usage {
  readonly cpuUs: number;
  readonly rss: number;
}

class Side {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

  private constructor(child: ChildProcess, port: number) {
    this.#child = child;
    this.port = port;
  }

  static async start(kind: 'ours' | 'hand' | 'ai-sdk', folder: string): Promise<Side> {
    const path = join(folder, `${kind}-${crypto.randomUUID()}.db`);
    const child = fork(CHILD, [kind, path], { execArgv: ['--expose-gc'] });
    const [{ port }] = (await once(child, 'message')) as [{ port: number }];
    return new Side(child, port);
  }

  async usage(): Promise<Usage> {
    this.#child.send('usage');
    const [{ cpu, rss }] = (await once(this.#child, 'message')) as [{ cpu: NodeJS.CpuUsage; rss: number }];
    return { cpuUs: cpu.user + cpu.system, rss };
  }

  /** @returns how many bytes came, and when the first word did. */
  say(query: string, chat: string = crypto.randomUUID()): Promise<Heard> {
    const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text: query }] };
    return this.#ask('POST', '/api/chat', JSON.stringify({ id: chat, messages: [message], trigger: 'submit-message' }));
  }

  read(chat: string): Promise<Heard> {
    return this.#ask('GET', `/api/chat/${chat}/stream`);
  }

  #ask(method: string, path: string, body?: string): Promise<Heard> {
    const begin = performance.now();
    return new Promise((resolve, reject) => {
      const headers = { 'content-type': 'application/json' };
      const asked = request(
        { host: '127.0.0.1', port: this.port, agent: this.#agent, method, path, headers },
        (answer) => {
          let bytes = 0;
          let firstMs = 0;
          answer.on('data', (part: Buffer) => {
            bytes += part.length;
            if (firstMs === 0 && part.includes('text-delta')) firstMs = performance.now() - begin;
          });
          answer.on('end', () =>
            resolve({ bytes, firstMs, status: answer.statusCode ?? 0, endedAt: performance.now() }),
          );
        },
      );
      asked.on('error', reject);
      asked.end(body);
    });
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    const gone = once(this.#child, 'exit');
    this.#child.disconnect();
    await gone;
  }
}

interface Heard {
  readonly bytes: number;
  readonly firstMs: number;
  readonly status: number;
  readonly endedAt: number;
}

/** The sides take turns, so that all have the same noise. */
async function wordCost(folder: string) {
  const kinds = ['ours', 'hand', 'ai-sdk'] as const;
  const sides = await Promise.all(kinds.map((kind) => Side.start(kind, folder)));
  const wall: number[][] = [[], [], []];
  const cpu: number[][] = [[], [], []];
  for (let round = 0; round <= ROUNDS; round += 1) {
    for (const [index, side] of sides.entries()) {
      const before = await side.usage();
      const begin = performance.now();
      const heard = await Promise.all(Array.from({ length: STREAMS }, () => side.say(`said ${WORDS} 0 0`)));
      const ms = performance.now() - begin;
      const after = await side.usage();
      if (heard.some(({ bytes }) => bytes < WORDS * 40)) throw new Error(`${kinds[index]} did not say all of it.`);
      // The first round warms up.
      if (round === 0) continue;
      wall[index]?.push((ms * 1_000) / (STREAMS * WORDS));
      cpu[index]?.push((after.cpuUs - before.cpuUs) / (STREAMS * WORDS));
    }
  }
  for (const side of sides) await side.stop();
  const [ours = 0, hand = 0, aiSdk = 0] = wall.map(median);
  const [cpuOurs = 0, cpuHand = 0] = cpu.map(median);
  return {
    ours: short(ours),
    hand: short(hand),
    ratio: short(ours / hand),
    cpuRatio: short(cpuOurs / cpuHand),
    aiSdkRatio: short(aiSdk / hand),
  };
}

async function manyReaders(folder: string) {
  const side = await Side.start('ours', folder);
  await side.say('said 10 0 0');
  const before = await side.usage();
  const chat = crypto.randomUUID();
  const first = side.say(`said 60 ${FIRST_MS} 100`, chat);
  await new Promise((resolve) => setTimeout(resolve, FIRST_MS));
  const readers = Array.from({ length: READERS }, () => side.read(chat));
  await new Promise((resolve) => setTimeout(resolve, 4_000));
  const during = await side.usage();
  const { endedAt, bytes } = await first;
  const heard = await Promise.all(readers);
  await side.stop();
  const ends = [endedAt, ...heard.map((each) => each.endedAt)];
  const wrong = heard.filter((each) => each.status !== 200 || Math.abs(each.bytes - bytes) > bytes / 2);
  if (wrong.length > 0) throw new Error(`${wrong.length} readers did not get it: ${JSON.stringify(wrong[0])}`);
  return {
    lastMs: Math.round(Math.max(...ends) - Math.min(...ends)),
    bytes: Math.round((during.rss - before.rss) / READERS),
  };
}

async function manyChats(folder: string) {
  const firsts: number[] = [];
  for (const kind of ['ours', 'hand'] as const) {
    const side = await Side.start(kind, folder);
    const begin = (): Promise<Heard[]> =>
      Promise.all(Array.from({ length: CHATS }, () => side.say(`said 20 ${FIRST_MS} ${GAP_MS}`)));
    // The first time warms up, as a server is that has been there for a minute.
    await begin();
    const heard = await begin();
    await side.stop();
    const sorted = heard.map(({ firstMs }) => firstMs).toSorted((a, b) => a - b);
    firsts.push(sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN);
  }
  const [ours = 0, hand = 0] = firsts;
  return { ours: Math.round(ours), hand: Math.round(hand), ratio: short(ours / hand) };
}
