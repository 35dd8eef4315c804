/** The turns of a step with calls: the assistant's with the calls, and the one that answers them. */
import type {
  LanguageModelV4Message,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider';
import { asJson, isJsonObject, type Json, type Step, shownName } from '#core';
import type { ProviderState } from '#model';
import { assistantTurn, frame, userTurn } from './frame.ts';
import { type StepCall, toolResultOf } from './step-parts.ts';

/** @param ids one for each call, unique in the request. */
export function addNativeTurns(
  messages: LanguageModelV4Message[],
  step: Pick<Step, 'providerState'>,
  calls: readonly StepCall[],
  ids: readonly string[],
  said: readonly string[],
): void {
  const parts: LanguageModelV4ToolCallPart[] = [];
  const results: LanguageModelV4ToolResultPart[] = [];
  for (let index = 0; index < calls.length; index += 1) {
    const { tool, args, outcome } = calls[index] as StepCall;
    const toolCallId = ids[index] as string;
    const toolName = protocolName(tool);
    // Arguments that were no object are in the journal as they came; providers refuse them in a history.
    parts.push({ type: 'tool-call', toolCallId, toolName, input: isJsonObject(args) ? args : {} });
    results.push({ type: 'tool-result', toolCallId, toolName, output: toolResultOf(outcome) });
  }
  const spoken = said.length === 0 ? parts : [...said.map((text) => ({ type: 'text' as const, text })), ...parts];
  const content = restoreParts(step.providerState, parts) ?? spoken;
  messages.push({ role: 'assistant', content }, { role: 'tool', content: results });
}

export function addTextTurns(
  messages: LanguageModelV4Message[],
  step: Pick<Step, 'providerState'>,
  calls: readonly StepCall[],
  said: readonly string[],
): void {
  const restored = restoreText(step.providerState);
  messages.push(
    restored === undefined
      ? assistantTurn([...said, callBlock(calls)].join('\n\n'))
      : { role: 'assistant', content: restored },
    userTurn(calls.map((call, index) => resultFrame(call, index)).join('\n')),
  );
}

/** The calls as the text mode writes them: one object, or an array of them. */
export function callBlock(calls: readonly StepCall[]): string {
  const written = calls.map(({ tool, args }) => ({ tool: shownName(tool), args }));
  const json = JSON.stringify(written.length === 1 ? written[0] : written);
  // A fence inside a text would end the block; this escape is the same JSON.
  return `\`\`\`json\n${json.replaceAll('```', '\\u0060\\u0060\\u0060')}\n\`\`\``;
}

/** The outcome of a call, in a frame that says which call it was. @param maxChars of each text that Pilotage did not write. */
export function resultFrame({ tool, outcome }: StepCall, index: number, maxChars?: number): string {
  return frame('tool_result', toolResultOf(outcome, maxChars).value, { tool: shownName(tool), call: index + 1 });
}

/** How the ids of calls begin that no provider has named. */
export const MADE_ID = 'react.callid.';

const MAX_NAME_CHARS = 64;

/** A tool's name in a native call: providers refuse a whole request over one that their protocol does not allow. */
export function protocolName(tool: string): string {
  return /^[\w-]{1,64}$/.test(tool) ? tool : tool.slice(0, MAX_NAME_CHARS).replace(/[^\w-]/g, '_') || '_';
}

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
function restoreText(state: Json | undefined): AssistantPart[] | undefined {
  if (!isProviderState(state) || state.parts.some((part) => part.type === 'call')) return undefined;
  return restoreParts(asJson(state), []);
}

function isProviderState(state: unknown): state is ProviderState {
  return isJsonObject(state) && Array.isArray(state['parts']);
}
