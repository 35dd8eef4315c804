/** What the tests of this room share. */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import type { Clock } from '../../src/core/clock.ts';
import type { SpokenDelta } from '../../src/core/planner.ts';
import type { AskOptions } from '../../src/model/attempts.ts';
import { type ModelEntry, readyModel } from '../../src/model/entry.ts';
import type { LanguageModel } from '../../src/model/language-model.ts';

export const request: LanguageModelV4CallOptions = {
  prompt: [{ role: 'user', content: [{ type: 'text', text: 'hello' }] }],
};

/** A clock whose waits are over as soon as they begin, and kept. A limit of over a minute is never reached. */
export class ImpatientClock implements Clock {
  readonly waits: number[] = [];
  #now = Date.UTC(2026, 0, 1);

  now(): number {
    return this.#now;
  }

  after(delayMs: number, wake: () => void): () => void {
    let cancelled = delayMs > 60_000;
    setImmediate(() => {
      if (cancelled) return;
      this.waits.push(delayMs);
      this.#now += delayMs;
      wake();
    });
    return () => {
      cancelled = true;
    };
  }
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

/** Lets everything happen that waits neither for a clock nor for the network. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}
