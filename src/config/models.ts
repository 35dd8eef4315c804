/** The models of a configuration: AI SDK models, or a server with the name of a model. */
import { defined } from '#core';
import { type LanguageModel, type ModelEntry, type ModelRegistry, type Prices, readyModel, readyModels } from '#model';
import {
  amount,
  anything,
  at,
  type ConfigShape,
  check,
  filledText,
  invalidConfig,
  isRecord,
  type OptionCheck,
  shape,
} from './shape.ts';

/** A model behind a server that speaks the OpenAI chat protocol. */
export interface ModelServer {
  /** The part before `/chat/completions`, such as `http://127.0.0.1:11434/v1`. */
  readonly baseUrl: string;
  /** The server's name of the model. */
  readonly model: string;
  /** The environment variable that holds the key, so that the key itself stands in no file. */
  readonly apiKeyEnv?: string;
}

/** What a planner knows of a model beside how to call it. */
export interface ModelEntryPart extends Omit<ModelEntry, 'model'> {
  readonly model: LanguageModel | ModelServer;
}

export type ModelPart = LanguageModel | ModelServer | ModelEntryPart;

/** A model, several models in the order in which they are tried, or a registry that ranks them. */
export type ModelsPart = ModelPart | readonly ModelPart[] | ModelRegistry;

export type Environment = Readonly<Record<string, string | undefined>>;

const SERVER: ConfigShape<ModelServer> = {
  baseUrl: check('an http or https URL', (value) => typeof value === 'string' && isHttpUrl(value)),
  model: filledText,
  apiKeyEnv: filledText,
};
const PRICES: ConfigShape<Prices> = { input: amount, cachedInput: amount, cacheWriteInput: amount, output: amount };
export const prices: OptionCheck = shape(PRICES);
/** A key with the check `anything` is checked together with the model. */
const ENTRY: ConfigShape<ModelEntryPart> = {
  model: anything,
  name: anything,
  toolCalls: anything,
  structuredOutput: anything,
  inputs: anything,
  contextTokens: anything,
  callTimeoutMs: anything,
  cache: anything,
  sendReasoning: anything,
  prices,
};
const checkServer = shape(SERVER);
const checkEntry = shape(ENTRY, Object.keys(SERVER));

/** @throws PilotageError `invalid_config` naming the path of the wrong value. */
export async function readModels(
  part: unknown,
  path: string,
  env: Environment,
): Promise<ModelEntry | readonly ModelEntry[] | ModelRegistry> {
  if (isRegistry(part)) return part;
  if (!Array.isArray(part)) return readModel(part, path, env);
  const entries = await Promise.all(part.map((each: unknown, index) => readModel(each, `${path}[${index}]`, env)));
  return at(path, () => readyModels(entries));
}

/** @throws PilotageError `invalid_config` naming the path of the wrong value. */
export async function readModel(part: unknown, path: string, env: Environment): Promise<ModelEntry> {
  const entry = isEntry(part) ? await readEntry(part, path, env) : { model: await modelOf(part, path, env) };
  return at(path, () => readyModel(entry));
}

async function readEntry(part: ModelEntryPart, path: string, env: Environment): Promise<ModelEntry> {
  checkEntry(part, path);
  return { ...part, model: await modelOf(part.model, `${path}.model`, env) };
}

async function modelOf(part: unknown, path: string, env: Environment): Promise<LanguageModel> {
  return isServer(part) ? serverModel(part, path, env) : (part as LanguageModel);
}

async function serverModel(part: ModelServer, path: string, env: Environment): Promise<LanguageModel> {
  checkServer(part, path);
  const { baseUrl, model, apiKeyEnv } = part;
  if (model === undefined)
    throw invalidConfig(`${path}.model`, 'is missing; give the name that the server has for the model.');
  const apiKey = apiKeyEnv === undefined ? undefined : env[apiKeyEnv]?.trim();
  if (apiKeyEnv !== undefined && !apiKey) {
    throw invalidConfig(
      `${path}.apiKeyEnv`,
      'names a variable that is not set. Set the variable, or name another one.',
    );
  }
  // A program that uses other models does not load this package.
  const { openaiCompatible } = await import('#model/openai-compatible');
  return openaiCompatible({ baseUrl, model, ...defined({ apiKey }) });
}

/** A model of the AI SDK may well have properties of these names. */
function isServer(part: unknown): part is ModelServer {
  return isRecord(part) && 'baseUrl' in part && !('specificationVersion' in part);
}

function isEntry(part: unknown): part is ModelEntryPart {
  return isRecord(part) && 'model' in part && !('specificationVersion' in part) && !isServer(part);
}

function isRegistry(part: unknown): part is ModelRegistry {
  return isRecord(part) && 'measures' in part && 'models' in part;
}

function isHttpUrl(value: string): boolean {
  return /^https?:\/\//i.test(value) && URL.canParse(value);
}
