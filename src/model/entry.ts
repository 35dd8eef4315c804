/** A model with what a planner knows about it. */
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { defined, type OutputMode, PilotageError } from '#core';
import { asLanguageModel, type LanguageModel } from './language-model.ts';
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
  readonly prices?: Prices;
}

/** A checked entry with every default filled in. It can be used as an entry itself. */
export interface ReadyModel {
  readonly model: LanguageModelV4;
  readonly name: string;
  readonly toolCalls: 'native' | 'text';
  readonly structuredOutput: OutputMode;
  readonly inputs: readonly string[];
  readonly contextTokens?: number;
  readonly callTimeoutMs?: number;
  readonly prices?: Prices;
}

export interface ModelDefaults {
  /** Prices for entries without prices of their own. */
  readonly prices?: Prices;
}

const CALL_WAYS: ReadonlySet<unknown> = new Set(['native', 'text'] satisfies ReadyModel['toolCalls'][]);
const OUTPUT_MODES: ReadonlySet<unknown> = new Set(['json_schema', 'json_object', 'text'] satisfies OutputMode[]);

/** @throws PilotageError `invalid_config` for a value that is not a model, or naming the field that is wrong. */
export function readyModel(given: LanguageModel | ModelEntry, defaults: ModelDefaults = {}): ReadyModel {
  const entry: ModelEntry = isEntry(given) ? given : { model: given };
  const model = asLanguageModel(entry.model);
  const { name = model.modelId, toolCalls = 'native', structuredOutput = 'json_schema' } = entry;
  const { inputs = defaultInputs(model), contextTokens, callTimeoutMs, prices = defaults.prices } = entry;
  if (typeof name !== 'string' || name === '') throw refusal('name', name, 'give a text that is not empty');
  if (!CALL_WAYS.has(toolCalls)) throw refusal('toolCalls', toolCalls, "use 'native' or 'text'");
  if (!OUTPUT_MODES.has(structuredOutput)) {
    throw refusal('structuredOutput', structuredOutput, "use 'json_schema', 'json_object' or 'text'");
  }
  if (!Array.isArray(inputs) || !inputs.every(isMediaType)) {
    throw refusal('inputs', inputs, "list media types such as 'image/*'");
  }
  for (const [field, value] of Object.entries({ contextTokens, callTimeoutMs })) {
    if (value === undefined || (Number.isSafeInteger(value) && value > 0)) continue;
    throw refusal(field, value, 'give a whole number above 0');
  }
  if (prices !== undefined) assertPrices(prices);
  return Object.freeze({
    model,
    name,
    toolCalls,
    structuredOutput,
    inputs: Object.freeze(inputs.map((type) => type.toLowerCase())),
    ...defined({ contextTokens, callTimeoutMs, prices }),
  });
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

/** Whether the model takes a file of this media type. A pattern for all types does not count: no model takes them all. */
export function takesMedia({ inputs }: ReadyModel, mime: string): boolean {
  const [full = ''] = mime.toLowerCase().split(';');
  const type = full.trim();
  const slash = type.indexOf('/');
  if (slash <= 0) return false;
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
  const shown = typeof value === 'string' || typeof value === 'number' ? JSON.stringify(value) : typeof value;
  return new PilotageError('invalid_config', `The ${field} of a model is ${shown}; ${remedy}.`);
}
