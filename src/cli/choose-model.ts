/** Which model a command means, from its options and from the environment. */
import type { Environment } from '#config';
import type { Prices } from '#model';
import { UsageError } from './exit-code.ts';

export interface ModelOptions {
  readonly model?: string;
  readonly baseUrl?: string;
  readonly apiKeyEnv?: string;
}

export interface ModelChoice {
  readonly model: string;
  readonly baseUrl: string;
  readonly apiKey?: string;
}

const OPENAI_URL = 'https://api.openai.com/v1';
const OLLAMA_PORT = '11434';

/**
 * `undefined` when none is named. The key of OPENAI_API_KEY goes to the server that the environment names, never to one
 * that is named by an option; for that one the option says which key to send.
 * @throws UsageError when what is given does not name a model and its server.
 */
export function chooseModel(options: ModelOptions, env: Environment): ModelChoice | undefined {
  const servers = serversOf(options, env);
  const [first] = servers;
  if (first === undefined && options.model !== undefined) {
    throw new UsageError('--model needs a server: --base-url, or OPENAI_BASE_URL, OPENAI_API_KEY or OLLAMA_HOST.');
  }
  const server = options.model === undefined ? servers.find(({ model }) => model !== undefined) : first;
  const model = options.model ?? server?.model;
  if (server === undefined || model === undefined) {
    if (options.baseUrl === undefined) return undefined;
    throw new UsageError('--base-url needs a model: give --model, or set OPENAI_MODEL.');
  }
  const apiKey = options.apiKeyEnv === undefined ? server.apiKey : keyNamed(options.apiKeyEnv, env);
  return apiKey === undefined ? { model, baseUrl: server.url } : { model, baseUrl: server.url, apiKey };
}

interface Server {
  readonly url: string;
  readonly apiKey: string | undefined;
  /** The model that the environment names for it. */
  readonly model: string | undefined;
}

function serversOf({ baseUrl }: ModelOptions, env: Environment): Server[] {
  const model = filled(env, 'OPENAI_MODEL');
  if (baseUrl !== undefined) return [{ url: checkedUrl(baseUrl, '--base-url'), apiKey: undefined, model }];
  const servers: Server[] = [];
  const apiKey = filled(env, 'OPENAI_API_KEY');
  const url = filled(env, 'OPENAI_BASE_URL');
  if (url !== undefined || apiKey !== undefined) {
    servers.push({ url: checkedUrl(url ?? OPENAI_URL, 'OPENAI_BASE_URL'), apiKey, model });
  }
  const host = filled(env, 'OLLAMA_HOST');
  if (host !== undefined) {
    servers.push({ url: ollamaUrl(host), apiKey: undefined, model: filled(env, 'OLLAMA_MODEL') ?? model });
  }
  return servers;
}

/** OLLAMA_HOST may be a host, a host with a port, or a URL; 0.0.0.0 is where the server listens, not where it is. */
function ollamaUrl(host: string): string {
  const hasScheme = /^https?:\/\//i.test(host);
  const url = new URL(checkedUrl(hasScheme ? host : `http://${host}`, 'OLLAMA_HOST'));
  if (!hasScheme && url.port === '') url.port = OLLAMA_PORT;
  if (url.hostname === '0.0.0.0') url.hostname = '127.0.0.1';
  url.pathname = `${url.pathname.replace(/\/$/, '')}/v1`;
  return url.href;
}

function checkedUrl(text: string, from: string): string {
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return text;
  // The value is not repeated: it may hold a password.
  throw new UsageError(`${from} is not an http or https URL. Give a URL such as http://127.0.0.1:11434/v1.`);
}

function keyNamed(name: string, env: Environment): string {
  const key = filled(env, name);
  if (key !== undefined) return key;
  throw new UsageError('--api-key-env names a variable that is not set. Set the variable, or name another one.');
}

function filled(env: Environment, name: string): string | undefined {
  const value = env[name]?.trim();
  return value === '' ? undefined : value;
}

/** `--prices in,out`: dollars for a million input and output tokens. @throws UsageError */
export function readPrices(text: string): Prices {
  const parts = text.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  const [input, output] = parts;
  if (parts.length !== 2 || input === undefined || output === undefined || !(input >= 0) || !(output >= 0)) {
    throw new UsageError('--prices takes two numbers, such as 2.5,10: dollars for a million input and output tokens.');
  }
  return { input, output };
}
