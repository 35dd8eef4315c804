/**
 * A cache of prompts by the rules that Anthropic publishes, and a loopback server that speaks its protocol in front of it.
 *
 * 1. Blocks come in the order tools, system, messages; an entry is a beginning of them, known by its bytes without marks.
 * 2. Entries are written at marks alone, of which there are four at most, and from 1,024 tokens on.
 * 3. From each mark 20 blocks are looked at, itself the first; the longest entry that is found is read.
 * 4. An entry lives for five minutes (an hour, if its mark says so) from when it was written or read.
 *
 * Where the rules say nothing, the worse is taken: a read keeps alive the entry that is read and no shorter one. A token is four
 * characters of JSON.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

const MOST_MARKS = 4;
const LEAST_TOKENS = 1024;
const LOOK_BACK = 20;
const LIFE_MS = { '5m': 300_000, '1h': 3_600_000 } as const;
const CHARS_PER_TOKEN = 4;

interface Block {
  readonly cache_control?: { readonly type: string; readonly ttl?: '5m' | '1h' };
  readonly type?: string;
  readonly text?: string;
}

export interface MessagesBody {
  readonly tools?: readonly (Block & { readonly name: string })[];
  readonly system?: readonly Block[];
  readonly messages: readonly { readonly role: string; readonly content: readonly Block[] }[];
}

/** Tokens of one request, or the sum of many. */
export interface InputTokens {
  /** Neither read nor written. */
  readonly plain: number;
  readonly read: number;
  readonly written: number;
}

/** The beginning of a request up to a block. */
interface Prefix {
  readonly key: string;
  readonly tokens: number;
  readonly mark: Block['cache_control'];
}

export class PromptCache {
  /** When each entry ends. */
  readonly #entries = new Map<string, { readonly lifeMs: number; readonly endsAt: number }>();

  /** @throws Error with what the provider refuses. */
  take(body: MessagesBody, nowMs: number): InputTokens {
    const prefixes = prefixesOf(body);
    const marks = prefixes.flatMap(({ mark }, index) => (mark === undefined ? [] : [index]));
    refuseWrong(marks.map((index) => prefixes[index]?.mark?.ttl ?? '5m'));
    const all = prefixes.at(-1)?.tokens ?? 0;
    const found = Math.max(-1, ...marks.map((mark) => this.#lookBack(prefixes, mark, nowMs)));
    const read = prefixes[found]?.tokens ?? 0;
    this.#refresh(prefixes[found]?.key, nowMs);
    let end = read;
    for (const index of marks) {
      const { key, tokens, mark } = prefixes[index] as Prefix;
      if (index <= found || tokens < LEAST_TOKENS) continue;
      const lifeMs = LIFE_MS[mark?.ttl ?? '5m'];
      this.#entries.set(key, { lifeMs, endsAt: nowMs + lifeMs });
      end = tokens;
    }
    return { plain: all - end, read, written: end - read };
  }

  /** The last of the blocks looked at from a mark on that is the end of an entry; -1: none. */
  #lookBack(prefixes: readonly Prefix[], mark: number, nowMs: number): number {
    for (let index = mark; index > mark - LOOK_BACK && index >= 0; index -= 1) {
      const entry = this.#entries.get(prefixes[index]?.key ?? '');
      if (entry !== undefined && entry.endsAt > nowMs) return index;
    }
    return -1;
  }

  #refresh(key: string | undefined, nowMs: number): void {
    const entry = key === undefined ? undefined : this.#entries.get(key);
    if (key !== undefined && entry !== undefined) this.#entries.set(key, { ...entry, endsAt: nowMs + entry.lifeMs });
  }
}

function prefixesOf({ tools = [], system = [], messages }: MessagesBody): Prefix[] {
  const blocks = [
    ...tools.map((block) => ['tool', block] as const),
    ...system.map((block) => ['system', block] as const),
    ...messages.flatMap(({ role, content }) => content.map((block) => [role, block] as const)),
  ];
  const hash = createHash('sha256');
  let chars = 0;
  return blocks.map(([place, { cache_control: mark, ...block }]) => {
    if (mark !== undefined && (block.type === 'thinking' || block.text === ''))
      throw new Error('A mark cannot stand here.');
    const text = JSON.stringify([place, block]);
    chars += text.length;
    return { key: hash.update(text).copy().digest('hex'), tokens: Math.ceil(chars / CHARS_PER_TOKEN), mark };
  });
}

function refuseWrong(ttls: readonly ('5m' | '1h')[]): void {
  if (ttls.length > MOST_MARKS) throw new Error(`A request has ${ttls.length} marks; ${MOST_MARKS} are the most.`);
  if (ttls.lastIndexOf('1h') > ttls.indexOf('5m') && ttls.includes('5m')) {
    throw new Error('A mark of an hour stands behind one of five minutes.');
  }
}

export interface CachingServer {
  readonly url: string;
  /** What each request had, oldest first. */
  readonly taken: readonly InputTokens[];
  /** Lets time go by. */
  pass(ms: number): void;
  close(): Promise<void>;
}

/** @param reply the content of the reply to a request. @param stepMs how much time passes with each. */
export async function cachingServer(
  reply: (body: MessagesBody) => readonly object[],
  stepMs: number,
): Promise<CachingServer> {
  const cache = new PromptCache();
  const taken: InputTokens[] = [];
  let nowMs = 0;
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const body = JSON.parse(text) as MessagesBody;
    response.setHeader('content-type', 'application/json');
    nowMs += stepMs;
    try {
      const tokens = cache.take(body, nowMs);
      taken.push(tokens);
      response.end(JSON.stringify(messageOf(reply(body), tokens)));
    } catch (error) {
      response.statusCode = 400;
      response.end(JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: String(error) } }));
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    taken,
    pass: (ms) => {
      nowMs += ms;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function messageOf(content: readonly object[], { plain, read, written }: InputTokens): object {
  const usage = {
    input_tokens: plain,
    cache_read_input_tokens: read,
    cache_creation_input_tokens: written,
    output_tokens: Math.ceil(JSON.stringify(content).length / CHARS_PER_TOKEN),
  };
  const isCall = content.some((block) => 'name' in block);
  const end = { stop_reason: isCall ? 'tool_use' : 'end_turn', stop_sequence: null };
  return { type: 'message', id: 'msg', role: 'assistant', model: 'simulated', content, ...end, usage };
}
