/** What a model's provider has carried out itself, as it stands in the `providerState` of the step whose reply told of it. */
import { isJsonObject, type Json } from './json.ts';

/** A call of the provider's own, or what came of one: that may stand in a later reply than its call. */
export type ProviderAct = {
  readonly toolCallId: string;
  /** As the provider calls it. */
  readonly toolName: string;
  /** The program's name for it, where that is another one. */
  readonly tool?: string;
} & (
  | { readonly type: 'tool-call'; readonly input: Json }
  | { readonly type: 'tool-result'; readonly output: { readonly type: string; readonly value: Json } }
);

const NONE: readonly ProviderAct[] = Object.freeze([]);

/**
 * The acts in their order. A call for which the provider asks leave is left out, since it has not been made. A state of another form has no
 * acts: a planner may keep there what it likes.
 */
export function providerActs(state: Json | undefined): readonly ProviderAct[] {
  const parts = isJsonObject(state) ? state['parts'] : undefined;
  if (!Array.isArray(parts)) return NONE;
  const acts = parts.filter(isAct);
  if (acts.length === 0) return NONE;
  const asked = new Set(
    parts.flatMap((part) => (isJsonObject(part) && part['type'] === 'approval' ? [part['toolCallId']] : [])),
  );
  return asked.size === 0
    ? acts
    : acts.filter(({ type, toolCallId }) => type !== 'tool-call' || !asked.has(toolCallId));
}

function isAct(part: unknown): part is ProviderAct {
  if (!isJsonObject(part) || typeof part['toolCallId'] !== 'string' || typeof part['toolName'] !== 'string')
    return false;
  if (part['type'] === 'tool-call') return part['input'] !== undefined;
  const { output } = part;
  return part['type'] === 'tool-result' && isJsonObject(output) && typeof output['type'] === 'string';
}
