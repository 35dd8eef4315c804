/** A model behind any server that speaks the OpenAI chat protocol: Ollama, vLLM, LM Studio, llama.cpp, a gateway. */

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { assertOptions, defined, knowKey, knowKeysOf, type OptionShape, PilotageError } from '#core';
import { MAX_REPLY_BYTES, serverFetch } from './server-fetch.ts';

export interface OpenAICompatibleOptions {
  /** The part before `/chat/completions`, such as `http://127.0.0.1:11434/v1`. */
  readonly baseUrl: string;
  /** The server's name of the model. */
  readonly model: string;
  /** The key, sent as a bearer token. */
  readonly apiKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * The most bytes of a reply. A longer reply is broken off, as a failure that may pass. Default 67,108,864 (64 MiB). One JSON
   * text in it may have 8 MiB.
   */
  readonly maxReplyBytes?: number;
}

const OPTIONS: OptionShape<OpenAICompatibleOptions> = {
  baseUrl: 'any',
  model: 'text',
  apiKey: 'text?',
  headers: 'object?',
  maxReplyBytes: 'any?',
};

/**
 * A server that redirects to another host is not followed: the key would go with the request.
 * @throws PilotageError `invalid_config`
 */
export function openaiCompatible(options: OpenAICompatibleOptions): LanguageModelV4 {
  assertOptions('openaiCompatible', options, OPTIONS);
  const { baseUrl, model, apiKey, headers, maxReplyBytes = MAX_REPLY_BYTES } = options;
  if (!Number.isSafeInteger(maxReplyBytes) || maxReplyBytes < 1) {
    const message = `maxReplyBytes is ${maxReplyBytes}; give a whole number from 1 up.`;
    throw new PilotageError('invalid_config', message);
  }
  assertBaseUrl(baseUrl);
  if (apiKey !== undefined) knowKey(apiKey);
  knowKeysOf(headers ?? {});
  const asking = (isStream: boolean): LanguageModelV4 =>
    createOpenAICompatible({
      name: 'openaiCompatible',
      baseURL: baseUrl,
      fetch: serverFetch(maxReplyBytes, isStream),
      // Without it a streamed reply says nothing of its tokens.
      includeUsage: true,
      // Without it a schema is left out in silence. A server that refuses it is asked again without (see structured.ts).
      supportsStructuredOutputs: true,
      ...defined({ apiKey }),
      ...(headers === undefined ? {} : { headers: { ...headers } }),
    })(model);
  const whole = asking(false);
  const streamed = asking(true);
  const { specificationVersion, provider, modelId, supportedUrls } = whole;
  return {
    ...{ specificationVersion, provider, modelId, supportedUrls },
    doGenerate: (request) => whole.doGenerate(request),
    doStream: (request) => streamed.doStream(request),
  };
}

/**
 * `fetch` reports a wrong address in the same way as a server that is away, and a run would wait for it: so the address is checked
 * here.
 */
function assertBaseUrl(baseUrl: unknown): asserts baseUrl is string {
  if (typeof baseUrl !== 'string') {
    throw new PilotageError(
      'invalid_config',
      'baseUrl must be a string: give an address such as http://127.0.0.1:11434/v1.',
    );
  }
  const url = URL.canParse(baseUrl) ? new URL(baseUrl) : undefined;
  if (url !== undefined && (url.username !== '' || url.password !== '')) {
    throw new PilotageError(
      'invalid_config',
      'baseUrl must not hold a user or a password. Give the key as apiKey, or in headers.',
    );
  }
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return;
  throw new PilotageError(
    'invalid_config',
    `baseUrl is ${JSON.stringify(baseUrl)}; give an address that begins with http:// or https://, such as http://127.0.0.1:11434/v1.`,
  );
}
