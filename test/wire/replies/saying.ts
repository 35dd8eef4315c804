/** What a model says, and how a provider's protocol writes it: in one piece, and as the frames of a stream. */
import type { LanguageModelV4 } from '@ai-sdk/provider';
import type { Json, JsonObject } from '#core';

/** A part of a reply, in its order. */
export type Said =
  | { readonly text: string }
  /** Reasoning, with the signature or the encrypted content that the provider wants back. */
  | { readonly thought: string; readonly sealed?: string }
  /** A call of `weather` with this id; its arguments are text as they came, which may be nothing or half of it. */
  | { readonly call: string; readonly args: string }
  /** A search that the provider makes itself, with this id; `found` is the page that it found, when it came in the same reply. */
  | { readonly search: string; readonly found?: string };

export interface Saying {
  readonly said: readonly Said[];
  readonly stop: 'end' | 'calls' | 'length' | 'refused' | 'paused';
}

export interface Protocol {
  /** A reply in one piece. */
  readonly whole: (saying: Saying) => Json;
  /** The same as the frames of a stream: each text and each call in pieces, where the protocol has pieces of it. */
  readonly frames: (saying: Saying) => readonly Uint8Array[];
  /** Of a stream. */
  readonly mime: string;
  /** An error as it comes inside of a stream that had begun. */
  readonly failure: Uint8Array;
}

export interface At {
  readonly baseURL: string;
  readonly fetch: typeof globalThis.fetch;
}

/** What a protocol has a place for. `between`: texts and reasoning between calls. `sealed`: reasoning that is signed or encrypted. `paused`: replies that the provider interrupts. */
export type Place = 'calls' | 'thought' | 'sealed' | 'between' | 'paused';

export interface Provider extends Protocol {
  readonly name: string;
  readonly model: (at: At) => LanguageModelV4;
  readonly places: readonly Place[];
  /** The arguments of a call without arguments, as this provider sends them. */
  readonly noArgs: readonly string[];
  /** What a run says of a reply that was refused, beside the model; absent for a protocol without one. */
  readonly refusal?: JsonObject;
  /** The answer to a request that does not fit. */
  readonly tooLong: { readonly status: number; readonly json: Json };
}

/** What every reply counts: input with its cached part, output with its reasoning. */
export const COUNTS = { input: 90, cached: 40, output: 30, thought: 10 } as const;

/** The text in two pieces, of which neither ends inside of a letter. */
export function halves(text: string): readonly string[] {
  const letters = [...text];
  const middle = Math.ceil(letters.length / 2);
  return [letters.slice(0, middle).join(''), letters.slice(middle).join('')].filter((half) => half !== '');
}

/** What a protocol sends as an object. */
export function argsObject(args: string): JsonObject {
  return args.trim() === '' ? {} : (JSON.parse(args) as JsonObject);
}

/** Server-sent events. @param named the events have the name that their `type` is. */
export function events(data: readonly Json[], { named = false }: { readonly named?: boolean } = {}): Uint8Array[] {
  return data.map((event) => {
    const name = named ? `event: ${String((event as JsonObject)['type'])}\n` : '';
    return bytesOf(`${name}data: ${typeof event === 'string' ? event : JSON.stringify(event)}\n\n`);
  });
}

const encoder = new TextEncoder();

export function bytesOf(text: string): Uint8Array {
  return encoder.encode(text);
}
