/** What a model's provider has carried out itself, as it stands in the `providerState` of the step whose reply told of it. */
import { isJsonObject, type Json } from './json.ts';

/** A call of the provider's own, or what came of one: that may stand in a later reply than its call. */
export type ProviderAct =
  | { readonly type: 'tool-call'; readonly toolCallId: string; readonly toolName: string; readonly input: Json }
  | {
      readonly type: 'tool-result';
      readonly toolCallId: string;
      readonly toolName: string;
      readonly output: { readonly type: string; readonly value: Json };
    };

const NONE: readonly ProviderAct[] = Object.freeze([]);

/** The acts in their order. A state of another form has none: a planner may keep there what it likes. */
export function providerActs(state: Json | undefined): readonly ProviderAct[] {
  const parts = isJsonObject(state) ? state['parts'] : undefined;
  return Array.isArray(parts) ? parts.filter(isAct) : NONE;
}

function isAct(part: unknown): part is ProviderAct {
  if (!isJsonObject(part) || typeof part['toolCallId'] !== 'string' || typeof part['toolName'] !== 'string')
    return false;
  if (part['type'] === 'tool-call') return part['input'] !== undefined;
  const { output } = part;
  return part['type'] === 'tool-result' && isJsonObject(output) && typeof output['type'] === 'string';
}
