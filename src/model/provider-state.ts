/**
 * What a provider wants back untouched: signed thinking, item ids, thought signatures. It is kept as the assistant
 * parts of the next request. The run's own calls stand in it as places, because their ids and inputs are the step's.
 */
import type { LanguageModelV4Content, LanguageModelV4Message, LanguageModelV4ToolCallPart } from '@ai-sdk/provider';
import { isJsonObject, type Json, type JsonObject } from '../core/json.ts';

export type AssistantPart = (LanguageModelV4Message & { role: 'assistant' })['content'][number];

/** `undefined` when no part carries anything opaque: then text and calls alone make the same message. */
export function providerStateOf(content: readonly LanguageModelV4Content[]): Json | undefined {
  if (!content.some(isOpaque)) return undefined;
  const parts: JsonObject[] = [];
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
  return { parts };
}

function isOpaque(part: LanguageModelV4Content): boolean {
  if (part.type === 'custom') return true;
  const replayed = part.type === 'text' || part.type === 'reasoning' || part.type === 'tool-call';
  return replayed && part.providerMetadata !== undefined;
}

function optionsOf({ providerMetadata }: { providerMetadata?: unknown }): JsonObject {
  return providerMetadata === undefined ? {} : { providerOptions: providerMetadata as JsonObject };
}

/** The provider's parts with the calls in their places. `undefined` for a state that was made elsewhere. */
export function restoreParts(
  state: Json | undefined,
  calls: readonly LanguageModelV4ToolCallPart[],
): AssistantPart[] | undefined {
  if (!isJsonObject(state ?? null)) return undefined;
  const { parts } = state as JsonObject;
  if (!Array.isArray(parts)) return undefined;
  const restored: AssistantPart[] = [];
  let placed = 0;
  for (const part of parts as readonly JsonObject[]) {
    if (part['type'] !== 'call') {
      restored.push(part as unknown as AssistantPart);
      continue;
    }
    // A call that was cut off by the provider's limit was dropped, and has no place any more.
    const call = calls[part['call'] as number];
    if (call === undefined) continue;
    placed += 1;
    const { providerOptions } = part;
    restored.push(providerOptions === undefined ? call : ({ ...call, providerOptions } as LanguageModelV4ToolCallPart));
  }
  return placed === calls.length ? restored : undefined;
}
