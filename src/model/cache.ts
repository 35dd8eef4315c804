/**
 * Providers' caches of prompts. Some read only what a request marks: Anthropic's models, there and behind Bedrock, Vertex and
 * gateways. Some cache by themselves, and want a key that brings requests with the same beginning to the same machine: OpenAI and
 * others. The rest need nothing.
 *
 * 1. A request has four marks at most, the user's own among them, which stay as they are.
 * 2. Marks stand in provider options beside the content: what is marked has the same bytes as without.
 * 3. Nothing that holds for one request only stands before a mark of ours.
 */
import { createHash } from 'node:crypto';
import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4Message,
  LanguageModelV4Prompt,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import { defined, type Identity } from '#core';
import type { Prices } from './usage.ts';

/** How long a provider keeps what it was told to cache, counted anew with each read: five minutes or an hour. */
export type CacheTtl = '5m' | '1h';

/** What is done so that the provider's cache is used: marks, in the provider options of this name, or a key. */
export type CacheUse =
  | { readonly kind: 'marks'; readonly in: 'anthropic' | 'bedrock'; readonly ttl: CacheTtl }
  | { readonly kind: 'key'; readonly in: string };

interface CachedModel {
  readonly model: LanguageModelV4;
  readonly cache?: false | { readonly ttl: CacheTtl };
}

/** Providers that take `promptCacheKey`, by the name of their provider options. */
const KEYED: Readonly<Record<string, string>> = {
  'openai.chat': 'openai',
  'openai.responses': 'openai',
  'azure.chat': 'azure',
  'azure.responses': 'azure',
  'mistral.chat': 'mistral',
  'moonshotai.chat': 'moonshotai',
  'xai.responses': 'xai',
};

/** Claude models that Bedrock does not cache: it refuses a request with marks for them. */
const UNCACHED_CLAUDE = /claude-(v\d|instant|3-(opus|sonnet|haiku)|3-5-sonnet)/;

/** `undefined`: nothing is done, as the provider is not known to need it, or `cache` is false. */
export function cacheUseOf({ model, cache }: CachedModel): CacheUse | undefined {
  if (cache === false) return undefined;
  const { provider, modelId } = model;
  const ttl = cache?.ttl ?? '5m';
  if (takesKey(model)) return { kind: 'key', in: KEYED[provider] as string };
  const wanted = cache !== undefined;
  if (provider === 'amazon-bedrock') {
    const known = /claude/.test(modelId) && !UNCACHED_CLAUDE.test(modelId);
    return known || wanted ? { kind: 'marks', in: 'bedrock', ttl } : undefined;
  }
  return wanted || takesMarks(provider, modelId) ? { kind: 'marks', in: 'anthropic', ttl } : undefined;
}

/** The provider caches by itself: it has no marks, and a time to live means nothing to it. */
export function takesKey({ provider }: LanguageModelV4): boolean {
  return Object.hasOwn(KEYED, provider);
}

function takesMarks(provider: string, modelId: string): boolean {
  if (provider.startsWith('bedrock.')) return provider.includes('anthropic') && !UNCACHED_CLAUDE.test(modelId);
  // Also Vertex, and gateways, which name the maker before the model.
  return /anthropic/i.test(provider) || modelId.startsWith('anthropic/');
}

export interface CacheNeeds {
  readonly identity: Identity;
  /** How many messages at the end are for this request alone. */
  readonly once: number;
}

/** The request with what makes the provider's cache read it. Messages and tools that are marked are copies. */
export function cachedRequest(
  request: LanguageModelV4CallOptions,
  use: CacheUse,
  { identity, once }: CacheNeeds,
): LanguageModelV4CallOptions {
  return use.kind === 'key' ? withKey(request, use.in, identity) : withMarks(request, use, once);
}

/**
 * The key is that of the session: its runs begin alike, the later ones with the turns of the earlier. It is a digest, since names of
 * users are nothing for a provider, and a key may have 64 characters.
 */
function withKey(
  request: LanguageModelV4CallOptions,
  name: string,
  { tenant, user, session }: Identity,
): LanguageModelV4CallOptions {
  const { providerOptions: given } = request;
  const at = name === 'azure' ? azureOptionsName(given) : name;
  if (Object.hasOwn(given?.[at] ?? {}, 'promptCacheKey')) return request;
  const promptCacheKey = createHash('sha256')
    .update(JSON.stringify([tenant, user, session]))
    .digest('base64url');
  return { ...request, providerOptions: { ...given, [at]: { ...given?.[at], promptCacheKey } } };
}

/** Options for Azure may stand under `openai` too; where `azure` is there, some of its models read nothing else. */
export function azureOptionsName(given: SharedV4ProviderOptions | undefined): 'azure' | 'openai' {
  return given?.['azure'] === undefined ? 'openai' : 'azure';
}

const MOST_MARKS = 4;
/** The place of the tools, which come before all messages. */
const TOOLS = -1;

function withMarks(
  request: LanguageModelV4CallOptions,
  use: CacheUse & { kind: 'marks' },
  once: number,
): LanguageModelV4CallOptions {
  const { prompt, tools = [] } = request;
  const users = usersMarks(request);
  // The newest first: what comes before it is the longest, and the others are there for when it is not found.
  const wanted = [
    // A mark of the whole request moves to its end by itself.
    ...(users.some(({ at }) => at === prompt.length) ? [] : [endOf(prompt, prompt.length - once)]),
    systemOf(prompt),
    endOf(prompt, lastReplyIn(prompt, prompt.length - once)),
    use.in === 'anthropic' && tools.at(-1)?.type === 'function' ? TOOLS : undefined,
  ];
  const places = [...new Set(wanted)].filter((at) => at !== undefined && !users.some((mark) => mark.at === at));
  const marked: LanguageModelV4CallOptions = { ...request, prompt: prompt.slice() };
  for (const at of (places as number[]).slice(0, Math.max(0, MOST_MARKS - users.length))) {
    const mark = markOf(use, ttlAt(at, use.ttl, users));
    if (at === TOOLS) marked.tools = tools.with(-1, withOptions(tools.at(-1) as Marked & (typeof tools)[number], mark));
    else marked.prompt[at] = withOptions(prompt[at] as LanguageModelV4Message, mark);
  }
  return marked;
}

type Marked = { readonly providerOptions?: SharedV4ProviderOptions };

function withOptions<T extends Marked>(item: T, mark: SharedV4ProviderOptions): T {
  const providerOptions: SharedV4ProviderOptions = { ...item.providerOptions };
  for (const [name, options] of Object.entries(mark)) providerOptions[name] = { ...providerOptions[name], ...options };
  return { ...item, providerOptions };
}

/** Five minutes are what providers do unasked, and some know nothing else. */
function markOf({ in: name }: CacheUse, ttl: CacheTtl): SharedV4ProviderOptions {
  const life = ttl === '5m' ? {} : { ttl };
  return name === 'bedrock'
    ? { bedrock: { cachePoint: { type: 'default', ...life } } }
    : { anthropic: { cacheControl: { type: 'ephemeral', ...life } } };
}

/** Where tools and system prompt end: the last of the system messages at the beginning. */
function systemOf(prompt: LanguageModelV4Prompt): number | undefined {
  let at = -1;
  while (prompt[at + 1]?.role === 'system') at += 1;
  return at >= 0 && prompt[at]?.content !== '' ? at : undefined;
}

/** Where the last reply of the model begins: the request that it answered ended there, so that it was written to the cache up to there. */
function lastReplyIn(prompt: LanguageModelV4Prompt, end: number): number {
  let at = end;
  while (at > 0 && prompt[at - 1]?.role !== 'assistant') at -= 1;
  while (at > 0 && prompt[at - 1]?.role === 'assistant') at -= 1;
  return at;
}

/** The last message before `end` that can be marked. */
function endOf(prompt: LanguageModelV4Prompt, end: number): number | undefined {
  for (let at = end - 1; at >= 0; at -= 1) if (canMark(prompt[at] as LanguageModelV4Message)) return at;
  return undefined;
}

/** Providers take the mark of a message as that of its last part, and refuse it on empty text and on reasoning. */
function canMark(message: LanguageModelV4Message): boolean {
  if (message.role === 'system') return message.content !== '';
  const last = message.content.at(-1);
  switch (last?.type) {
    case 'text':
      return last.text.trim() !== '';
    case 'file':
    case 'tool-call':
    case 'tool-result':
      return true;
    default:
      return false;
  }
}

interface UserMark {
  /** The index of its message, `TOOLS`, or the number of messages for a mark of the whole request. */
  readonly at: number;
  readonly ttl: CacheTtl;
}

function usersMarks({ prompt, tools = [], providerOptions }: LanguageModelV4CallOptions): readonly UserMark[] {
  const marks: UserMark[] = [];
  for (const tool of tools) {
    const ttl = tool.type === 'function' ? ttlIn(tool) : undefined;
    if (ttl !== undefined) marks.push({ at: TOOLS, ttl });
  }
  for (let at = 0; at < prompt.length; at += 1)
    for (const ttl of marksOf(prompt[at] as LanguageModelV4Message)) marks.push({ at, ttl });
  const whole = ttlIn(defined({ providerOptions }));
  if (whole !== undefined) marks.push({ at: prompt.length, ttl: whole });
  return marks;
}

/** A message is looked at once: later requests have it again. */
const seen = new WeakMap<LanguageModelV4Message, readonly CacheTtl[]>();

function marksOf(message: LanguageModelV4Message): readonly CacheTtl[] {
  let marks = seen.get(message);
  if (marks === undefined) {
    const parts: readonly Marked[] = typeof message.content === 'string' ? [] : message.content.flatMap(partsOf);
    marks = [...parts, message].flatMap((each) => ttlIn(each) ?? []);
    seen.set(message, marks);
  }
  return marks;
}

type Part = Exclude<LanguageModelV4Message['content'], string>[number];

/** A part, and what of its output may be marked. */
function partsOf(part: Part): readonly Marked[] {
  if (part.type !== 'tool-result') return [part];
  const { output } = part;
  return output.type === 'content' ? [part, ...output.value] : [part, output];
}

/** How long the user's mark holds; `undefined` when there is none. */
function ttlIn({ providerOptions }: Marked): CacheTtl | undefined {
  for (const options of Object.values(providerOptions ?? {})) {
    const mark = options['cacheControl'] ?? options['cache_control'] ?? options['cachePoint'];
    if (typeof mark === 'object' && mark !== null) return 'ttl' in mark && mark['ttl'] === '1h' ? '1h' : '5m';
  }
  return undefined;
}

/** Marks of an hour stand before those of five minutes, or the provider refuses the request: the user's own decide. */
function ttlAt(at: number, ttl: CacheTtl, users: readonly UserMark[]): CacheTtl {
  if (users.some((mark) => mark.at > at && mark.ttl === '1h')) return '1h';
  return users.some((mark) => mark.at < at && mark.ttl === '5m') ? '5m' : ttl;
}

/** Parts of the price of input that Anthropic publishes for all of its models, also elsewhere. */
const READ_SHARE = 0.1;
const WRITE_SHARE: Readonly<Record<CacheTtl, number>> = { '5m': 1.25, '1h': 2 };

/** The prices with those of the cache, where the requests of this model are marked and it is one of Anthropic's. */
export function withCachePrices(prices: Prices, cached: CachedModel): Prices {
  const use = cacheUseOf(cached);
  if (use?.kind !== 'marks' || !/claude/i.test(cached.model.modelId)) return prices;
  const { input } = prices;
  return { cachedInput: partOf(input, READ_SHARE), cacheWriteInput: partOf(input, WRITE_SHARE[use.ttl]), ...prices };
}

/** Without the rounding error of floating point. */
function partOf(price: number, share: number): number {
  return Number((price * share).toPrecision(12));
}
