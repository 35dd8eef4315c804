/**
 * A model with what a planner knows about it. Every AI SDK language model is one; their types alone are imported,
 * so that no vendor's code is loaded.
 */
import type {
  LanguageModelV3,
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4ToolResultPart,
  SharedV4ProviderOptions,
} from '@ai-sdk/provider';
import { assertKnownKeys, defined, isJsonObject, type OptionShape, type OutputMode, PilotageError } from '#core';
import { azureOptionsName, type CacheTtl, takesKey, withCachePrices } from './cache.ts';
import { assertPrices, type Prices } from './usage.ts';

export interface ModelEntry {
  readonly model: LanguageModel;
  /** The model's name in provenance, events and measures; unique in a pool. Default: the model's own id. */
  readonly name?: string;
  /** `text`: the model has no native tool calls; calls are read from its text. Default `native`. */
  readonly toolCalls?: 'native' | 'text';
  /** The best way in which the model produces output by a schema. Default `json_schema`. */
  readonly structuredOutput?: OutputMode;
  /**
   * Media types that the model takes as file parts, such as `image/*` or `application/pdf`. Default: `image/*` and the types in
   * its `supportedUrls`, when those are known without waiting.
   */
  readonly inputs?: readonly string[];
  /** The context window: tokens of a request and its reply together. Absent: not known. */
  readonly contextTokens?: number;
  /**
   * The time limit of one call, streamed or not, in milliseconds; after it the call counts as a failure that may pass. Default
   * 600,000.
   */
  readonly callTimeoutMs?: number;
  /** False: the model's reasoning does not go back to it with later requests. Default true: its provider's package decides what the server gets. */
  readonly sendReasoning?: boolean;
  /**
   * How long the provider keeps what its cache is told to keep; requests are marked then also for a provider that is not known to
   * take marks. `false`: nothing is done for the cache. Default: marks of five minutes, or a key, for the providers that are known to want them.
   */
  readonly cache?: false | { readonly ttl: CacheTtl };
  /** Prices of the cache that are not given are, for a Claude model whose requests are marked, the shares of `input` that its maker publishes. */
  readonly prices?: Prices;
}

/** A checked entry with every default filled in. It can be used as an entry itself. */
export interface ReadyModel {
  readonly model: LanguageModelV4;
  readonly name: string;
  readonly toolCalls: 'native' | 'text';
  readonly structuredOutput: OutputMode;
  readonly inputs: readonly string[];
  readonly sendReasoning: boolean;
  readonly contextTokens?: number;
  readonly callTimeoutMs?: number;
  readonly cache?: false | { readonly ttl: CacheTtl };
  readonly prices?: Prices;
}

export interface ModelDefaults {
  /** Prices for entries without prices of their own. */
  readonly prices?: Prices;
}

const ENTRY: OptionShape<ModelEntry> = {
  ...({ model: 'any', name: 'any?', toolCalls: 'any?', structuredOutput: 'any?', inputs: 'any?' } as const),
  ...({ contextTokens: 'any?', callTimeoutMs: 'any?', sendReasoning: 'any?', cache: 'any?', prices: 'any?' } as const),
};
const CALL_WAYS: ReadonlySet<unknown> = new Set(['native', 'text'] satisfies ReadyModel['toolCalls'][]);
const OUTPUT_MODES: ReadonlySet<unknown> = new Set(['json_schema', 'json_object', 'text'] satisfies OutputMode[]);

/** @throws PilotageError `invalid_config` for a value that is not a model, or naming the field that is wrong. */
export function readyModel(given: LanguageModel | ModelEntry, defaults: ModelDefaults = {}): ReadyModel {
  const entry: ModelEntry = isEntry(given) ? given : { model: given };
  assertKnownKeys('An entry of a model', entry, Object.keys(ENTRY));
  const model = asLanguageModel(entry.model);
  const { name = model.modelId, toolCalls = 'native', structuredOutput = 'json_schema' } = entry;
  const { inputs = defaultInputs(model), sendReasoning = true, contextTokens, callTimeoutMs } = entry;
  const { cache, prices = defaults.prices } = entry;
  if (typeof name !== 'string' || name === '') throw refusal('name', name, 'give a text that is not empty');
  if (!CALL_WAYS.has(toolCalls)) throw refusal('toolCalls', toolCalls, "use 'native' or 'text'");
  if (!OUTPUT_MODES.has(structuredOutput)) {
    throw refusal('structuredOutput', structuredOutput, "use 'json_schema', 'json_object' or 'text'");
  }
  if (!Array.isArray(inputs) || !inputs.every(isMediaType)) {
    throw refusal('inputs', inputs, "list media types such as 'image/*'");
  }
  if (typeof sendReasoning !== 'boolean') throw refusal('sendReasoning', sendReasoning, 'use true or false');
  for (const [field, value] of Object.entries({ contextTokens, callTimeoutMs })) {
    if (value === undefined || (Number.isSafeInteger(value) && value > 0)) continue;
    throw refusal(field, value, 'give a whole number above 0');
  }
  if (cache !== undefined) assertCache(cache, model);
  if (prices !== undefined) assertPrices(prices);
  return Object.freeze({
    model,
    name,
    toolCalls,
    structuredOutput,
    sendReasoning,
    inputs: Object.freeze(inputs.map((type) => type.toLowerCase())),
    ...defined({ contextTokens, callTimeoutMs, cache }),
    ...(prices === undefined ? {} : { prices: withCachePrices(prices, { model, ...defined({ cache }) }) }),
  });
}

const TTLS: ReadonlySet<unknown> = new Set(['5m', '1h'] satisfies CacheTtl[]);

function assertCache(cache: NonNullable<ModelEntry['cache']>, model: LanguageModelV4): void {
  if (cache === false) return;
  if (typeof cache !== 'object' || cache === null) {
    throw refusal('cache', cache, "use false, { ttl: '5m' } or { ttl: '1h' }");
  }
  assertKnownKeys('The cache of a model', cache, ['ttl']);
  if (!TTLS.has(cache.ttl)) throw refusal('cache.ttl', cache.ttl, "use '5m' or '1h'");
  if (!takesKey(model)) return;
  throw new PilotageError(
    'invalid_config',
    `The cache of a model has a ttl, but ${model.provider} takes no marks. Leave it out; what that provider takes stands in providerOptions.`,
  );
}

/**
 * A pool, in the order given.
 * @throws PilotageError `invalid_config` also for an empty list and for a name that is there twice.
 */
export function readyModels(
  given: readonly (LanguageModel | ModelEntry)[],
  defaults: ModelDefaults = {},
): readonly ReadyModel[] {
  if (!Array.isArray(given) || given.length === 0) {
    throw new PilotageError('invalid_config', 'A list of models with at least one model is needed.');
  }
  const models = given.map((each) => readyModel(each, defaults));
  const names = new Set<string>();
  for (const { name } of models) {
    if (names.has(name)) {
      throw new PilotageError(
        'invalid_config',
        `Two models of one pool are called ${JSON.stringify(name)}. Give one of them a name: { model, name }.`,
      );
    }
    names.add(name);
  }
  return Object.freeze(models);
}

/** No model takes these, and a request with one is refused. Whose does names the type. */
const NO_PICTURES: ReadonlySet<string> = new Set(['image/svg+xml', 'image/tiff', 'image/bmp', 'image/x-icon']);

/** Whether the model takes a file of this media type. A pattern for all types does not count: no model takes them all. */
export function takesMedia({ inputs }: ReadyModel, mime: string): boolean {
  const [full = ''] = mime.toLowerCase().split(';');
  const type = full.trim();
  const slash = type.indexOf('/');
  if (slash <= 0) return false;
  if (NO_PICTURES.has(type)) return inputs.includes(type);
  const family = `${type.slice(0, slash)}/*`;
  return family !== '*/*' && (inputs.includes(type) || inputs.includes(family));
}

function isEntry(given: LanguageModel | ModelEntry): given is ModelEntry {
  return typeof given === 'object' && given !== null && 'model' in given && !('specificationVersion' in given);
}

function defaultInputs({ supportedUrls }: LanguageModelV4): readonly string[] {
  const known: object = supportedUrls ?? {};
  // Nobody waits for an answer that comes later, not even for its failure.
  if ('then' in known) Promise.resolve(supportedUrls).catch(() => undefined);
  const named = 'then' in known ? [] : Object.keys(known).filter(isMediaType);
  return [...new Set(['image/*', ...named])];
}

function isMediaType(type: unknown): type is string {
  return typeof type === 'string' && /^[^/\s;]+\/[^/\s;]+$/.test(type);
}

function refusal(field: string, value: unknown, remedy: string): PilotageError {
  const isPlain = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  const shown = isPlain ? JSON.stringify(value) : value === undefined ? 'missing' : typeof value;
  return new PilotageError('invalid_config', `The ${field} of a model is ${shown}; ${remedy}.`);
}

export type LanguageModel = LanguageModelV4 | LanguageModelV3;

/**
 * The model in version 4: the model itself, or a wrapper of a model of version 3.
 * @throws PilotageError `invalid_config` for anything else, saying what to pass.
 */
export function asLanguageModel(model: LanguageModel): LanguageModelV4 {
  const given: unknown = model;
  if (typeof given === 'string') {
    throw notAModel(`${JSON.stringify(given)} is the id of a model, not a model`);
  }
  if (typeof given !== 'object' || given === null) {
    throw notAModel(
      given === undefined ? 'No model was given' : `A model cannot be ${given === null ? 'null' : typeof given}`,
    );
  }
  const { specificationVersion, doGenerate, doStream } = given as Partial<Record<keyof LanguageModelV4, unknown>>;
  if (specificationVersion !== 'v4' && specificationVersion !== 'v3') {
    throw notAModel(
      specificationVersion === undefined
        ? 'The object given as model has no specificationVersion'
        : `The model has specification ${JSON.stringify(specificationVersion)}; v3 and v4 are understood, so use a newer version of its provider package`,
    );
  }
  if (typeof doGenerate !== 'function' || typeof doStream !== 'function') {
    throw notAModel('The object given as model lacks doGenerate or doStream');
  }
  return specificationVersion === 'v3' ? asVersion4(given as LanguageModelV3) : (given as LanguageModelV4);
}

function notAModel(what: string): PilotageError {
  return new PilotageError(
    'invalid_config',
    `${what}. Pass an AI SDK language model, such as openai('gpt-5.2') of @ai-sdk/openai, or openaiCompatible({ baseUrl, model }).`,
  );
}

// Wraps a model of version 3 as one of version 4. Of what is used here, only files have another shape; those of replies are read in both.

function asVersion4(model: LanguageModelV3): LanguageModelV4 {
  // The rest is the same, so that its results are taken as they are.
  const same = model as unknown as LanguageModelV4;
  return {
    specificationVersion: 'v4',
    provider: model.provider,
    modelId: model.modelId,
    get supportedUrls() {
      return model.supportedUrls;
    },
    doGenerate: (options) => same.doGenerate(withPlainFiles(options)),
    doStream: (options) => same.doStream(withPlainFiles(options)),
  };
}

function withPlainFiles(options: LanguageModelV4CallOptions): LanguageModelV4CallOptions {
  if (!options.prompt.some(hasFile)) return options;
  return { ...options, prompt: options.prompt.map((message) => (hasFile(message) ? plainFiles(message) : message)) };
}

type MessagePart = Exclude<LanguageModelV4Message['content'], string>[number];
type ResultContent = Extract<LanguageModelV4ToolResultPart['output'], { type: 'content' }>;

function hasFile({ content }: LanguageModelV4Message): boolean {
  return typeof content !== 'string' && content.some((part) => part.type === 'file' || filesIn(part) !== undefined);
}

/** What a result has beside texts. */
function filesIn(part: MessagePart): ResultContent | undefined {
  if (part.type !== 'tool-result' || part.output.type !== 'content') return undefined;
  return part.output.value.some(({ type }) => type === 'file') ? part.output : undefined;
}

function plainFiles(message: LanguageModelV4Message): LanguageModelV4Message {
  if (typeof message.content === 'string') return message;
  const content = message.content.map((part: MessagePart) => {
    if (part.type === 'file') return { ...part, data: plainData(part) };
    const output = filesIn(part);
    return output === undefined ? part : { ...part, output: { ...output, value: output.value.map(plainInResult) } };
  });
  return { ...message, content } as unknown as LanguageModelV4Message;
}

/** Version 3 takes bytes, base64 text or a URL. A reference is a provider's own, and none of version 3 has made one. */
function plainData({ data }: LanguageModelV4FilePart): unknown {
  switch (data.type) {
    case 'data':
      return data.data;
    case 'url':
      return data.url;
    case 'text':
      return new TextEncoder().encode(data.text);
    case 'reference':
      return data.reference;
    default:
      return data satisfies never;
  }
}

/** In results version 3 has a type for each kind of file, and bytes as base64. */
function plainInResult(part: ResultContent['value'][number]): object {
  if (part.type !== 'file') return part;
  const { data, ...about } = part;
  const kind = about.mediaType.startsWith('image/') ? 'image' : 'file';
  switch (data.type) {
    case 'data':
      return { ...about, type: `${kind}-data`, data: base64Of(data.data) };
    case 'url':
      return { ...about, type: `${kind}-url`, url: data.url.href };
    case 'text':
      return { ...about, type: `${kind}-data`, data: base64Of(new TextEncoder().encode(data.text)) };
    case 'reference':
      return { ...about, type: 'file-id', fileId: data.reference };
    default:
      return data satisfies never;
  }
}

function base64Of(data: Uint8Array | string): string {
  if (typeof data === 'string') return data;
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64');
}

/**
 * Asks the provider for at most one call a reply, which the AI SDK has no common option for. `undefined` for a provider whose own
 * word for it is not known. @param given the user's options.
 */
export function oneCallAtATime(
  model: LanguageModelV4,
  given?: SharedV4ProviderOptions,
): SharedV4ProviderOptions | undefined {
  const [provider] = model.provider.split('.');
  switch (provider) {
    case 'openai':
    case 'groq':
    case 'mistral':
      return { [provider]: { parallelToolCalls: false } };
    case 'azure':
      return { [azureOptionsName(given)]: { parallelToolCalls: false } };
    case 'anthropic':
      return { anthropic: { disableParallelToolUse: true } };
    case 'openaiCompatible':
      return { openaiCompatible: { parallel_tool_calls: false } };
    default:
      return undefined;
  }
}

/** What Anthropic's package gives thoughts that are wanted without saying how long they may be. */
const THOUGHT_TOKENS = 1_024;

/**
 * How many tokens a reply may have beside its `maxOutputTokens`: for Claude models with a budget of thoughts these are for the answer alone, and
 * the packages that ask them add that budget.
 */
export function thoughtTokens(
  { provider, modelId }: LanguageModelV4,
  { providerOptions = {} }: Pick<LanguageModelV4CallOptions, 'providerOptions'>,
): number {
  if (!/anthropic|claude/i.test(`${provider} ${modelId}`)) return 0;
  const { bedrock, amazonBedrock = bedrock, anthropic } = providerOptions;
  const own = providerOptions[provider.split('.')[0] as string] ?? anthropic;
  const given = provider === 'amazon-bedrock' ? amazonBedrock?.['reasoningConfig'] : own?.['thinking'];
  if (!isJsonObject(given) || given['type'] !== 'enabled') return 0;
  const budget = given['budgetTokens'] ?? THOUGHT_TOKENS;
  return typeof budget === 'number' && budget > 0 ? budget : 0;
}
