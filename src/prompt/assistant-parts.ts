/** The parts of an assistant message as the provider made them, from the state that was kept on the step. */
import type { LanguageModelV4Message, LanguageModelV4ToolCallPart } from '@ai-sdk/provider';
import { asJson, isJsonObject, type Json } from '#core';
import type { ProviderState } from '#model';

export type AssistantPart = (LanguageModelV4Message & { role: 'assistant' })['content'][number];

/** The provider's parts with the calls in their places. `undefined` for a state that was made elsewhere. */
export function restoreParts(
  state: Json | undefined,
  calls: readonly LanguageModelV4ToolCallPart[],
): AssistantPart[] | undefined {
  if (!isProviderState(state)) return undefined;
  const restored: AssistantPart[] = [];
  let placed = 0;
  for (const part of state.parts) {
    if (part.type !== 'call') {
      restored.push(part as AssistantPart);
      continue;
    }
    // A call that was cut off by the provider's limit was dropped, and has no place any more.
    const call = calls[part.call];
    if (call === undefined) continue;
    placed += 1;
    const { providerOptions } = part;
    restored.push(providerOptions === undefined ? call : ({ ...call, providerOptions } as LanguageModelV4ToolCallPart));
  }
  return placed === calls.length ? restored : undefined;
}

/** The provider's parts of a reply that made its calls in its text. `undefined` when they stood beside it, or for no state. */
export function restoreText(state: Json | undefined): AssistantPart[] | undefined {
  if (!isProviderState(state) || state.parts.some((part) => part.type === 'call')) return undefined;
  return restoreParts(asJson(state), []);
}

function isProviderState(state: unknown): state is ProviderState {
  return isJsonObject(state) && Array.isArray(state['parts']);
}
