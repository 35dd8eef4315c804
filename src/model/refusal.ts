/**
 * What a provider says when it, or its model, does not want to answer: as the end of a reply, or as an error in place of one. It is no
 * failure: the same request to the same model comes to the same.
 */
import { defined, fieldOf as field, PilotageError, type Usage } from '#core';
import { layersOf, providerWordsOf } from './failure.ts';

export interface ModelRefusal {
  /** What it is about, or what has refused, in the provider's own word. */
  readonly category?: string;
  /** Why, in the provider's words. */
  readonly message?: string;
}

const MAX_CATEGORY_CHARS = 200;
const MAX_MESSAGE_CHARS = 1_000;

/** Words for a refused reply that packages leave without a meaning: of Cohere, of Zhipu, of Vertex, and those that a gateway passes through. */
const WORDS: ReadonlySet<string | undefined> = new Set([
  'refusal',
  'content_filter',
  'content_filtered',
  'guardrail_intervened',
  'ERROR_TOXIC',
  'sensitive',
  'SAFETY',
  'RECITATION',
  'PROHIBITED_CONTENT',
  'BLOCKLIST',
  'SPII',
  'MODEL_ARMOR',
  'IMAGE_SAFETY',
  'IMAGE_PROHIBITED_CONTENT',
  'IMAGE_RECITATION',
]);

/** @param raw why a reply ended, in the provider's word. */
export function meansRefusal(raw: string | undefined): boolean {
  return WORDS.has(raw);
}

/** Words that say that it was refused, and nothing more. */
const BARE: ReadonlySet<string> = new Set(['refusal', 'content_filter', 'content_filtered', 'stop', 'completed']);

/** What is said beside a reply that was refused. @param metadata by the names of providers. */
export function refusalIn(
  raw: string | undefined,
  metadata: Readonly<Record<string, unknown>> | undefined,
): ModelRefusal {
  for (const said of Object.values(metadata ?? {})) {
    const stopped = field(said, 'stopDetails'); // Anthropic
    const prompt = field(said, 'promptFeedback'); // Google, as the next two
    const rated = field(said, 'safetyRatings');
    const blocked = Array.isArray(rated) ? rated.find((each) => field(each, 'blocked') === true) : undefined;
    const guard = field(field(said, 'trace'), 'guardrail'); // Bedrock
    const category = first(field(stopped, 'category'), field(prompt, 'blockReason'), field(blocked, 'category'));
    const message = first(
      field(stopped, 'explanation'),
      field(prompt, 'blockReasonMessage'),
      field(said, 'finishMessage'),
      field(guard, 'actionReason'),
    );
    if (category !== undefined || message !== undefined) return refusal(category ?? wordOf(raw), message);
  }
  return refusal(wordOf(raw), undefined);
}

function wordOf(raw: string | undefined): string | undefined {
  return raw === undefined || BARE.has(raw) ? undefined : raw;
}

/** Codes of requests that are refused for what they say. */
const CODES: ReadonlySet<unknown> = new Set([
  'content_filter', // Azure, Moonshot
  'content_policy_violation', // OpenAI, LiteLLM
  'moderation_blocked',
  'ResponsibleAIPolicyViolation',
  'data_inspection_failed', // Alibaba
  'DataInspectionFailed',
]);
/** OpenAI gives this code also to a request that is malformed. */
const PROMPT_CODE = 'invalid_prompt';
const ABOUT_SAFETY = /usage polic|safety reasons/i;
/** DeepSeek and xAI give codes of other errors, and say it in words. */
const SENTENCES = /^Content Exists Risk$|^Content violates usage guidelines/;

/** The refusal that an error of a model is; `undefined` for any other error. */
export function refusalOf(error: unknown): ModelRefusal | undefined {
  const words = providerWordsOf(error);
  const texts = textsOf(error);
  const isPrompt = words.includes(PROMPT_CODE) && texts.some((text) => ABOUT_SAFETY.test(text));
  const isRefused = isPrompt || words.some((word) => CODES.has(word)) || texts.some((text) => SENTENCES.test(text));
  return isRefused ? refusal(filteredIn(error), texts[0]) : undefined;
}

/** The error, whose data has the `model` and the `refusal`. */
export function refusalError(
  refused: ModelRefusal,
  cause: unknown,
  model: string,
  usage: Usage | undefined,
): PilotageError {
  const data = { model, refusal: { ...refused }, ...(usage === undefined ? {} : { usage: { ...usage } }) };
  return new PilotageError('model_refused', refusalText(refused, model), { data, cause });
}

/** In one sentence, for people and planners. */
export function refusalText({ category, message }: ModelRefusal, model: string): string {
  const about = category === undefined ? '' : ` (${category})`;
  return `The model ${model}, or its provider, refused the request${about}${message === undefined ? '.' : `: ${message}`}`;
}

/** What people are told comes first; xAI has it in place of the error's object. */
function textsOf(error: unknown): readonly string[] {
  return layersOf(error).flatMap((layer) => {
    const said = field(layer, 'data');
    const inner = field(said, 'error');
    return [field(inner, 'message'), inner, field(said, 'message'), field(layer, 'message')].filter(
      (text) => typeof text === 'string' && text !== '',
    ) as string[];
  });
}

/** Azure tells of each of its filters whether it was the one. */
function filteredIn(error: unknown): string | undefined {
  for (const layer of layersOf(error)) {
    const body = parsed(field(layer, 'responseBody')) ?? field(layer, 'data');
    const results = field(field(field(body, 'error'), 'innererror'), 'content_filter_result');
    if (typeof results !== 'object' || results === null) continue;
    const filtered = Object.keys(results).filter((name) => field(field(results, name), 'filtered') === true);
    if (filtered.length > 0) return filtered.join(', ');
  }
  return undefined;
}

const MAX_BODY_CHARS = 16_384;

function parsed(body: unknown): unknown {
  if (typeof body !== 'string' || body.length > MAX_BODY_CHARS) return undefined;
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}

function first(...values: readonly unknown[]): string | undefined {
  return values.find((value) => typeof value === 'string' && value !== '') as string | undefined;
}

function refusal(category: string | undefined, message: string | undefined): ModelRefusal {
  return defined({
    category: category?.slice(0, MAX_CATEGORY_CHARS).toWellFormed(),
    message: message?.slice(0, MAX_MESSAGE_CHARS).toWellFormed(),
  });
}
