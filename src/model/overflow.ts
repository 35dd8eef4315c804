/**
 * What a server says when a request does not fit its model's window. There is no common code for it, so that here, and nowhere else,
 * the texts of errors are read: first the fields that say it, then the sentences of each server, as they are written in `SENTENCES`.
 */
import { fieldOf as field, type Overflow, PilotageError, type Usage } from '#core';
import { httpStatusOf, layersOf } from './failure.ts';
import type { Reply } from './reply.ts';

/** Characters that are read of each text: a server says what is wrong first, and may repeat the request after it. */
const MAX_TEXT_CHARS = 4_000;
const MAX_BODY_CHARS = 65_536;
const MAX_TEXTS = 48;
const MAX_DEPTH = 8;

/** Codes, types and names of an error that is about the window and nothing else. */
const CODES: ReadonlySet<unknown> = new Set([
  'context_length_exceeded', // OpenAI, Azure, Groq, Cerebras, Fireworks, OpenRouter
  'context_window_exceeded',
  'model_context_window_exceeded', // Anthropic
  'exceed_context_size_error', // llama.cpp
  'request_too_large', // Anthropic: more bytes than are read
  'model_max_prompt_tokens_exceeded', // GitHub Copilot
  'ContextWindowExceededError', // LiteLLM
  'prompt_too_long',
]);

/** Statuses of other troubles, whatever the text says: money, keys, too many requests, a server that is gone. */
const OTHER_STATUSES: ReadonlySet<number> = new Set([402, 403, 404, 405, 408, 409, 429, 502, 503, 504, 529]);
/** Limits of a time, an account or a connection: they are waited for, and a shorter history does not raise them. */
const OTHER_LIMIT =
  /rate.?limit|too many requests|throttl|quota|\b[TR]PM\b|\b[TR]PD\b|(?:per|a) (?:minute|hour|day|second)|wait before|billing|credit balance/i;

const N = String.raw`([\d][\d,_]*)`;
const about = (source: string): RegExp => new RegExp(source.replaceAll('#', N), 'i');

/** A number in a sentence is `#`. */
const SENTENCES: readonly RegExp[] = [
  // Anthropic, also by way of Bedrock and Vertex; Fireworks
  about('prompt is too long'),
  about('input length and `?max_tokens`? exceed context limit'),
  // OpenAI and those who speak its protocol: Azure, Mistral, DeepSeek, vLLM, OpenRouter, LiteLLM, Together, Perplexity
  about('maximum (?:model |allowed )?context (?:length|window|size)(?: of| is|:|\\s*\\()(?: only)? ?\\(?#'),
  about(
    "exceeds? (?:the |this |your )?(?:available |model'?s? |model.s )?(?:maximum )?(?:context|token) ?(?:length|window|size|limit) ?(?:of|\\(|for this model)",
  ),
  about("exceeds? (?:the )?(?:model'?s )?(?:maximum |max )?context (?:length|window|size|limit)"),
  about('(?:context|context length|context window) (?:length |window )?(?:is |of )only #'),
  about("(?:longer|larger|greater) than the (?:model'?s )?(?:maximum )?(?:context|model) (?:length|window|size)"),
  about('string too long\\. Expected a string with maximum length \\d{6,}'),
  // Google, Vertex
  about('input token count.{0,40} exceeds? the maximum number of tokens'),
  about('input token count is # but (?:the )?model only supports up to #'),
  // Bedrock
  about('input is too long for (?:the )?requested model'),
  about('too many input tokens\\. Max input tokens: #'),
  about('input length.{0,30} exceeds (?:the )?(?:maximum|max) (?:allowed )?(?:input )?(?:length|tokens)'),
  // Mistral
  about('too large for model with # maximum context length'),
  // Groq, Cerebras
  about('please reduce the length of the (?:messages|input|prompt)'),
  about('current length is # while limit is #'),
  // xAI
  about('maximum prompt length is #'),
  // Cohere
  about('too many tokens: (?:size limit exceeded|total number of tokens|the total number of tokens)'),
  about('total number of tokens.{0,40}(?:cannot|must not) exceed #'),
  // Text Generation Inference, Together
  about('`?inputs`? (?:tokens|must have less than #).{0,60}(?:must be <= #|tokens\\. Given: #)'),
  // llama.cpp, llama-cpp-python
  about('exceeds? the available context size'),
  about('requested tokens \\(#\\) exceed context window'),
  // LM Studio
  about('tokens to keep from the initial prompt is greater than the context length'),
  about('trying to keep the first # tokens when context the overflows'),
  // Ollama
  about('prompt too long; exceeded (?:max )?context length'),
  about('input (?:length )?exceeds (?:the )?(?:maximum )?context length'),
  // GitHub Copilot
  about('prompt token count of # exceeds the limit of #'),
  // Moonshot, MiniMax, Alibaba, Zhipu, Volcengine, SiliconFlow
  about('exceeded model token limit'),
  about('model max length exceeded'),
  about('length of prompt_tokens \\(#\\) must be less than max_seq_len'),
  about('context window exceeds limit'),
  about('range of input length should be \\[\\d+, ?#\\]'),
  about('total tokens of (?:image and )?(?:text|input).{0,20} exceed (?:max|the max)'),
  about('prompt exceeds max(?:imum)? length'),
  // Vercel's gateway, Cloudflare and others who put it in words of their own
  about(
    '(?:input|prompt|request|conversation|messages?).{0,40} (?:is |are )?too (?:long|large) for (?:the |this )?(?:model|context)',
  ),
  about('(?:exceeded|exceeds|over) (?:this |the )?model.?s? (?:context|context window|context length) limit'),
  about('estimated number of input and maximum output tokens \\(#\\) exceeded this model context window limit \\(#\\)'),
];

/** A wish for more output than the model gives: the number that it gives is `most`. */
const WISHES: readonly RegExp[] = [
  // OpenAI and Azure
  about('max_(?:completion_|output_)?tokens is too large: #\\. This model supports at most (?<most>[\\d,]+)'),
  about(
    "invalid 'max_(?:completion_|output_)?tokens': integer above maximum value\\. Expected a value <= (?<most>[\\d,]+)",
  ),
  // Volcengine
  about(
    'parameter `?max_(?:completion_)?tokens`? .{0,60}integer above maximum value, expected a value <= (?<most>[\\d,]+)',
  ),
  // Anthropic
  about('max_tokens: # > (?<most>[\\d,]+), which is the maximum allowed number of output tokens'),
  // Bedrock
  about('maximum tokens you requested exceeds the model limit of (?<most>[\\d,]+)'),
  // Google, Vertex
  about(
    'max_?output_?tokens value of # but the supported range is from 1 \\(inclusive\\) to (?<past>[\\d,]+) \\(exclusive\\)',
  ),
  // Groq
  about('`?max_(?:completion_)?tokens`? must be less than or equal to `?(?<most>[\\d,]+)'),
  // DeepSeek, Alibaba
  about('valid range of max_tokens is \\[1, ?(?<most>[\\d,]+)\\]'),
  about('range of max_(?:completion_)?tokens should be \\[1, ?(?<most>[\\d,]+)\\]'),
  // Mistral, Cohere, xAI, Perplexity and others
  about(
    'max_?(?:new_|completion_|output_)?tokens.{0,30}(?:cannot|must not|can not) (?:exceed|be (?:greater|more|larger) than) (?<most>[\\d,]+)',
  ),
  about(
    'max_?(?:new_|completion_|output_)?tokens.{0,40}(?:exceeds|is above|is greater than).{0,40}(?:maximum|limit|max)[^\\d]{0,40}(?<most>[\\d,]+)',
  ),
];
/** vLLM: the wish is more than the whole window has left. */
const WISH_OVER_WINDOW = about(
  "'?max_(?:completion_)?tokens'?.{0,40} is too large: #\\. This model's maximum context length is (?<limit>[\\d,]+) tokens and your request has (?<sent>[\\d,]+) input tokens",
);

const LIMITS: readonly RegExp[] = [
  about('exceed context limit: # \\+ # > (?<n>[\\d,]+)'),
  about('tokens > (?<n>[\\d,]+) maximum'),
  about(
    "(?:maximum |model'?s )(?:model |allowed |maximum )?context (?:length|window|size)(?: of| is|:)?(?: only)? ?\\(?(?<n>[\\d,]+)",
  ),
  about('maximum number of tokens allowed \\(?(?<n>[\\d,]+)'),
  about('only supports up to (?<n>[\\d,]+)'),
  about('with (?<n>[\\d,]+) maximum context length'),
  about('maximum prompt length is (?<n>[\\d,]+)'),
  about('while limit is (?<n>[\\d,]+)'),
  about('(?:exceeds the limit of|must not exceed|cannot exceed|must be <=) (?<n>[\\d,]+)'),
  about('max input tokens: (?<n>[\\d,]+)'),
  about('exceeds (?:the )?maximum (?:allowed )?(?:input )?length (?:of )?\\(?(?<n>[\\d,]+)'),
  about('exceeded model token limit: (?<n>[\\d,]+)'),
  about('range of input length should be \\[\\d+, ?(?<n>[\\d,]+)\\]'),
  about('context (?:length|window|size|window limit)(?: is| of)?(?: only)?:? ?\\(?(?<n>[\\d,]+)'),
  about('must have less than (?<n>[\\d,]+) tokens'),
  about('max_seq_len \\((?<n>[\\d,]+)\\)'),
  about('max length: ?(?<n>[\\d,]+)'),
  about('maximum model length of (?<n>[\\d,]+)'),
  about('total number of tokens.{0,40}(?:cannot|must not) exceed (?<n>[\\d,]+)'),
];
const SENT: readonly RegExp[] = [
  about('exceed context limit: (?<n>[\\d,]+) \\+'),
  about('prompt is too long: (?<n>[\\d,]+)'),
  about('\\((?<n>[\\d,]+) (?:tokens )?(?:in|from) (?:the |your )?(?:messages|input|prompt)'),
  about('\\((?<n>[\\d,]+) in your prompt'),
  about('resulted in (?<n>[\\d,]+) tokens'),
  about('prompt contains (?:at least )?(?<n>[\\d,]+) (?:input )?tokens'),
  about('input token count (?:is )?\\(?(?<n>[\\d,]+)'),
  about('request contains (?<n>[\\d,]+)'),
  about('token count of (?<n>[\\d,]+)'),
  about('current length is (?<n>[\\d,]+)'),
  about('input (?:length )?\\((?<n>[\\d,]+)'),
  about('input length (?<n>[\\d,]+) exceeds'),
  about('passed (?<n>[\\d,]+) input tokens'),
  about('request has (?<n>[\\d,]+) input tokens'),
  about('keep the first (?<n>[\\d,]+)'),
  about('requested: (?<n>[\\d,]+)'),
  about('request \\((?<n>[\\d,]+) tokens\\)'),
  about('requested tokens \\((?<n>[\\d,]+)\\)'),
  about('given: (?<n>[\\d,]+)'),
  about('received (?<n>[\\d,]+)'),
  about('tokens to keep from the initial prompt \\((?<n>[\\d,]+)\\)'),
  about('prompt_tokens \\((?<n>[\\d,]+)\\)'),
  about('prompt \\(length (?<n>[\\d,]+)\\)'),
  about('(?<n>[\\d,]+) tokens from the input messages'),
];
/** Request and reply together. */
const TOTAL: readonly RegExp[] = [about('you requested (?:about )?(?<n>[\\d,]+) tokens')];
const WISHED: readonly RegExp[] = [
  about('exceed context limit: # \\+ (?<n>[\\d,]+)'),
  about('(?<n>[\\d,]+) (?:tokens )?(?:in|for|from) the (?:completion|output)'),
  about('requested (?<n>[\\d,]+) output tokens'),
  about('and (?<n>[\\d,]+) `?max_new_tokens'),
  about("tokens'? is too large: (?<n>[\\d,]+)"),
  about('max_tokens: (?<n>[\\d,]+) >'),
  about('but got (?<n>[\\d,]+)'),
  about('max_?output_?tokens value of (?<n>[\\d,]+)'),
];

/** The least room for a reply, in tokens; in a small window it is a sixteenth. */
const LEAST_REPLY = 1_024;

/**
 * What the error of a model says of the size of its request; `undefined` when it is about something else. Limits of tokens in a time,
 * and of the bytes that a proxy lets through, are something else.
 */
export function overflowOf(error: unknown): Overflow | undefined {
  const status = httpStatusOf(error);
  if (status !== undefined && OTHER_STATUSES.has(status)) return undefined;
  const said = saidBy(error);
  const text = said.texts.join('\n');
  if (OTHER_LIMIT.test(text) || said.codes.has('rate_limit_exceeded')) return undefined;
  const wish = wishIn(text);
  if (wish !== undefined) return wish;
  const isCoded = [...said.codes].some((code) => CODES.has(code));
  // A key that is refused has a status of its own; a few servers give it to a request that is too long, and say so in words.
  if (!isCoded && !SENTENCES.some((sentence) => sentence.test(text))) return undefined;
  const limitTokens = said.window ?? numberIn(text, LIMITS);
  const wishTokens = numberIn(text, WISHED);
  const total = numberIn(text, TOTAL);
  const sentTokens = said.sent ?? numberIn(text, SENT) ?? (total === undefined ? undefined : total - (wishTokens ?? 0));
  return withRoom({ kind: 'input', ...known({ limitTokens, sentTokens, wishTokens }) });
}

/** The error with what to do. Its data has the `model` and the `overflow`. */
export function overflowError(overflow: Overflow, cause: unknown, model: string, usage?: Usage): PilotageError {
  return new PilotageError('context_window_exceeded', `${whatIsWrong(overflow, model)} ${remedyFor(overflow)}`, {
    data: { model, overflow: { ...overflow }, ...(usage === undefined ? {} : { usage: { ...usage } }) },
    cause,
  });
}

function whatIsWrong({ kind, limitTokens, sentTokens, mostTokens }: Overflow, model: string): string {
  if (kind === 'output')
    return `The model ${model} gives replies of at most ${mostTokens} tokens here, and a longer one was asked for.`;
  const has = sentTokens === undefined ? '' : ` It has ${sentTokens} tokens.`;
  const takes = limitTokens === undefined ? '' : ` (${limitTokens} tokens)`;
  return `The request does not fit the window of the model ${model}${takes}.${has}`;
}

function remedyFor({ kind }: Overflow): string {
  return kind === 'output'
    ? 'Set maxOutputTokens to that, or less.'
    : 'Send less, or use a model with a larger window.';
}

/** What a reply, though it came, says of the size of its request. */
export function overflowIn({ windowFull, finish, text, reasoning, calls, usage }: Reply): Overflow | undefined {
  if (windowFull !== true && finish !== 'length') return undefined;
  const { inputTokens, outputTokens } = usage ?? {};
  const overflow: Overflow = { kind: 'input', ...known({ sentTokens: inputTokens }) };
  // Where the reply filled most of the window, a shorter request would not help.
  if (windowFull === true) return (inputTokens ?? 0) >= (outputTokens ?? 0) ? overflow : undefined;
  const isNothing = text === '' && reasoning === '' && calls.length === 0;
  return isNothing && outputTokens === 0 && (inputTokens ?? 0) >= LEAST_WINDOW ? overflow : undefined;
}

/** A request, as long as we count it and as its server has counted it. */
export interface Counted {
  readonly own: number;
  readonly server: number;
}

/** No server has a smaller window, and one that cuts off fills it to the half at least. */
const LEAST_WINDOW = 1_000;
/** A token of ours is four characters; no text has ten in each token. */
const MOST_SCALE = 2.5;
/** A server that reads all that came to a request counts at least this share of what we count. */
const LEAST_GROWTH = 0.25;

/**
 * Whether a server has cut off the beginning of a request without a word, as Ollama does: it has counted far fewer tokens than such
 * a text has, or fewer than before though the request only grew.
 * @param before the last request, when this one begins with all of it.
 */
export function silentOverflow({ own, server }: Counted, before: Counted | undefined): Overflow | undefined {
  if (server < LEAST_WINDOW) return undefined;
  const scale = before === undefined ? 1 : before.server / before.own;
  const limitTokens = Math.max(server, before?.server ?? 0);
  const overflow: Overflow = {
    kind: 'input',
    limitTokens,
    sentTokens: Math.ceil(Math.max(own * scale, limitTokens + 1)),
  };
  if (own >= server * MOST_SCALE) return overflow;
  if (before === undefined || own <= before.own || server < before.server * 0.4) return undefined;
  const growth = (own - before.own) * scale;
  const hardlyGrew = growth >= LEAST_WINDOW && server - before.server < growth * LEAST_GROWTH;
  return server < before.server || hardlyGrew ? overflow : undefined;
}

function wishIn(text: string): Overflow | undefined {
  const over = WISH_OVER_WINDOW.exec(text)?.groups;
  const wishTokens = numberIn(text, WISHED);
  if (over !== undefined) {
    const limitTokens = tokensOf(over['limit']);
    return withRoom({ kind: 'input', ...known({ limitTokens, sentTokens: tokensOf(over['sent']), wishTokens }) });
  }
  for (const wish of WISHES) {
    const groups = wish.exec(text)?.groups;
    if (groups === undefined) continue;
    const past = tokensOf(groups['past']);
    const mostTokens = past === undefined ? tokensOf(groups['most']) : past - 1;
    if (mostTokens !== undefined && mostTokens > 0) return { kind: 'output', mostTokens, ...known({ wishTokens }) };
  }
  return undefined;
}

/** A request that fits by itself, and leaves room for a reply, wishes for too long a reply. */
function withRoom(overflow: Overflow): Overflow {
  const { limitTokens, sentTokens, wishTokens } = overflow;
  if (limitTokens === undefined || sentTokens === undefined || wishTokens === undefined) return overflow;
  const roomTokens = roomFor(limitTokens, sentTokens);
  return roomTokens === undefined || roomTokens >= wishTokens
    ? overflow
    : { ...overflow, kind: 'output', mostTokens: roomTokens };
}

/**
 * How long the reply to a request may be in a window that both share: half of what the request leaves, so that the next request, which is
 * longer, has room for one too. `undefined` when that is too little.
 */
export function roomFor(windowTokens: number, sentTokens: number): number | undefined {
  const room = Math.floor((windowTokens - sentTokens) / 2);
  return room >= Math.max(1, Math.min(LEAST_REPLY, Math.floor(windowTokens / 16))) ? room : undefined;
}

function numberIn(text: string, patterns: readonly RegExp[]): number | undefined {
  for (const pattern of patterns) {
    const found = tokensOf(pattern.exec(text)?.groups?.['n']);
    if (found !== undefined) return found;
  }
  return undefined;
}

const MOST_TOKENS = 1e9;

function tokensOf(digits: unknown): number | undefined {
  const count = typeof digits === 'string' ? Number(digits.replaceAll(/[,_]/g, '')) : digits;
  return typeof count === 'number' && Number.isSafeInteger(count) && count > 0 && count < MOST_TOKENS
    ? count
    : undefined;
}

type Counts = Partial<Record<'limitTokens' | 'sentTokens' | 'wishTokens', number | undefined>>;

function known(counts: Counts): Partial<Overflow> {
  return Object.fromEntries(Object.entries(counts).filter(([, count]) => count !== undefined));
}

interface Said {
  readonly texts: string[];
  readonly codes: Set<unknown>;
  /** Numbers that stand in fields of their own. */
  window?: number | undefined;
  sent?: number | undefined;
}

/** Fields of an error that are for people. What repeats the request, such as `input`, is left out. */
const TEXT_KEYS: ReadonlySet<string> = new Set([
  'message',
  'msg',
  'error',
  'detail',
  'raw',
  'title',
  'reason',
  'param',
]);
const CODE_KEYS: readonly string[] = ['code', 'type', 'name', 'status'];

function saidBy(error: unknown): Said {
  const said: Said = { texts: [], codes: new Set() };
  for (const layer of layersOf(error)) {
    read(layer, said, 0);
    read(field(layer, 'data'), said, 0);
    const body = field(layer, 'responseBody');
    // What a proxy of its own sends is a page.
    if (typeof body === 'string' && !body.trimStart().startsWith('<')) read(parsed(body) ?? body, said, 0);
  }
  return said;
}

function read(value: unknown, said: Said, depth: number): void {
  if (depth > MAX_DEPTH || said.texts.length >= MAX_TEXTS) return;
  if (typeof value === 'string') {
    const text = value.slice(0, MAX_TEXT_CHARS);
    if (said.texts.includes(text)) return;
    // A gateway gives on what another server sent, as a text.
    const inner = parsed(value);
    if (inner === undefined) said.texts.push(text);
    else read(inner, said, depth + 1);
    return;
  }
  if (Array.isArray(value)) {
    for (const item of value.slice(0, MAX_TEXTS)) read(item, said, depth + 1);
    return;
  }
  if (typeof value !== 'object' || value === null) return;
  for (const key of CODE_KEYS) said.codes.add(field(value, key));
  for (const key of TEXT_KEYS) read(field(value, key), said, depth + 1);
  for (const key of ['metadata', 'errors', 'details']) read(field(value, key), said, depth + 1);
  // llama.cpp
  said.window ??= tokensOf(field(value, 'n_ctx'));
  said.sent ??= tokensOf(field(value, 'n_prompt_tokens'));
}

/** `undefined` for a text that is not JSON, or too long to be looked at. */
function parsed(text: string): object | undefined {
  if (!/^\s*[{[]/.test(text) || text.length > MAX_BODY_CHARS) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
