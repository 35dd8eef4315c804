/** Asking a model, and what is heard of its reply. */
import type { LanguageModelV4, LanguageModelV4CallOptions } from '@ai-sdk/provider';
import type { Clock, SpokenDelta } from '#core';
import { type AskOptions, generatedReply, type LanguageModel, type ModelEntry, type Reply, readyModel } from '#model';

export const request: LanguageModelV4CallOptions = {
  prompt: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }],
};

/** The reply that a model gives in one piece. */
export async function generateReply(model: LanguageModelV4, options: LanguageModelV4CallOptions): Promise<Reply> {
  return generatedReply(model, await model.doGenerate(options));
}

export function askOptions(
  models: readonly (LanguageModel | ModelEntry)[],
  clock: Clock,
  more: Partial<AskOptions> = {},
): AskOptions {
  return {
    models: models.map((model) => readyModel(model)),
    requestFor: () => request,
    signal: new AbortController().signal,
    clock,
    ...more,
  };
}

/** An error of a provider, as the AI SDK makes it. */
export function httpError(statusCode: number, responseHeaders: Record<string, string> = {}): Error {
  const isRetryable = statusCode === 408 || statusCode === 409 || statusCode === 429 || statusCode >= 500;
  return Object.assign(new Error(`status ${statusCode}`), { statusCode, isRetryable, responseHeaders });
}

export interface Drained<T> {
  readonly deltas: readonly SpokenDelta[];
  readonly value: T;
}

export async function drain<T>(stream: AsyncGenerator<SpokenDelta, T>): Promise<Drained<T>> {
  const deltas: SpokenDelta[] = [];
  for (;;) {
    const next = await stream.next();
    if (next.done === true) return { deltas, value: next.value };
    deltas.push(next.value);
  }
}

/** What somebody sees who takes back what was shown at each reset. */
export function shown(deltas: readonly SpokenDelta[]): string {
  let text = '';
  for (const delta of deltas) text = delta.type === 'reset' ? '' : text + (delta.type === 'text' ? delta.text : '');
  return text;
}
