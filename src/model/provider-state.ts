/**
 * What a provider wants back untouched: signed thinking, item ids, thought signatures. It is kept as the assistant
 * parts of the next request. The run's own calls stand in it as places, because their ids and inputs are the step's.
 */
import type { LanguageModelV4Content } from '@ai-sdk/provider';
import { asJson, type Json, type JsonObject } from '#core';

type WithOptions = { readonly providerOptions?: JsonObject };
export type StoredPart =
  | ({ readonly type: 'text' | 'reasoning'; readonly text: string } & WithOptions)
  | ({ readonly type: 'custom'; readonly kind: string } & WithOptions)
  /** The step's call with this index. */
  | ({ readonly type: 'call'; readonly call: number } & WithOptions);

/** The shape of `providerState` on a step whose move a model of this room made. */
export interface ProviderState {
  readonly parts: readonly StoredPart[];
}

/** `undefined` when no part carries anything opaque: then text and calls alone make the same message. */
export function providerStateOf(content: readonly LanguageModelV4Content[]): Json | undefined {
  if (!content.some(isOpaque)) return undefined;
  const parts: StoredPart[] = [];
  let calls = 0;
  for (const part of content) {
    switch (part.type) {
      case 'text':
      case 'reasoning':
        parts.push({ type: part.type, text: part.text, ...optionsOf(part) });
        break;
      case 'custom':
        parts.push({ type: part.type, kind: part.kind, ...optionsOf(part) });
        break;
      case 'tool-call':
        if (part.providerExecuted !== true) parts.push({ type: 'call', call: calls++, ...optionsOf(part) });
        break;
      default:
        break; // files, sources and what the provider ran itself are not sent back
    }
  }
  return asJson({ parts } satisfies ProviderState);
}

function isOpaque(part: LanguageModelV4Content): boolean {
  if (part.type === 'custom') return true;
  const replayed = part.type === 'text' || part.type === 'reasoning' || part.type === 'tool-call';
  return replayed && part.providerMetadata !== undefined;
}

function optionsOf({ providerMetadata }: { providerMetadata?: unknown }): WithOptions {
  return providerMetadata === undefined ? {} : { providerOptions: providerMetadata as JsonObject };
}
