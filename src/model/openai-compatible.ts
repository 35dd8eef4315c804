/** A model behind any server that speaks the OpenAI chat protocol: Ollama, vLLM, LM Studio, llama.cpp, a gateway. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { knowKeysOf, knownSecrets } from '../core/known-secrets.ts';

export interface OpenAICompatibleOptions {
  /** The part before `/chat/completions`, such as `http://127.0.0.1:11434/v1`. */
  readonly baseUrl: string;
  /** The server's name of the model. */
  readonly model: string;
  /** Sent as a bearer token. */
  readonly apiKey?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export function openaiCompatible({ baseUrl, model, apiKey, headers }: OpenAICompatibleOptions): LanguageModelV4 {
  if (apiKey !== undefined) knownSecrets.add(apiKey);
  knowKeysOf(headers ?? {});
  const provider = createOpenAICompatible({
    name: 'openaiCompatible',
    baseURL: baseUrl,
    // Without it a streamed reply says nothing of its tokens.
    includeUsage: true,
    // Without it a schema is left out in silence. A server that refuses it is asked again without (see structured.ts).
    supportsStructuredOutputs: true,
    ...(apiKey === undefined ? {} : { apiKey }),
    ...(headers === undefined ? {} : { headers: { ...headers } }),
  });
  return provider(model);
}
