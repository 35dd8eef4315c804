/** The turns of a step with calls: the assistant's with the calls, and the one that answers them. */
import type {
  LanguageModelV4Message,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider';
import { isJsonObject, shownName, wireName } from '#core';
import { frame, userTurn } from './frame.ts';
import { callOptions, type OwnForm, type Recipient, restoreBesideText, restoreParts } from './provider-parts.ts';
import { type StepCall, toolResultOf } from './step-parts.ts';

/** The turns of a step are made for whoever is asked. */
export interface StepTurns {
  readonly messages: LanguageModelV4Message[];
  /** The reply's own parts; empty where it has no place for each of the calls. */
  readonly form: OwnForm;
  readonly calls: readonly StepCall[];
  readonly said: readonly string[];
  readonly to: Recipient;
  /** Ids of the calls that providers have carried out, as far as the request has them. */
  readonly known: Set<string>;
}

/** @param ids one for each call, unique in the request. */
export function addNativeTurns({ messages, form, calls, said, to, known }: StepTurns, ids: readonly string[]): void {
  const options = callOptions(form, to);
  // Lists of just that length: what is pushed to takes room for many more, and these are kept as long as the run goes on.
  const parts = calls.map(({ tool, args }, index): LanguageModelV4ToolCallPart => {
    // Arguments that were no object are in the journal as they came; providers refuse them in a history.
    const input = isJsonObject(args) ? args : {};
    return { type: 'tool-call', toolCallId: ids[index] as string, toolName: wireName(tool), input };
  });
  const results = calls.map(({ tool, outcome }, index): LanguageModelV4ToolResultPart => {
    const toolCallId = ids[index] as string;
    const result = {
      type: 'tool-result' as const,
      toolCallId,
      toolName: wireName(tool),
      output: toolResultOf(outcome),
    };
    const noted = options[index];
    return noted === undefined ? result : ({ ...result, providerOptions: noted } as typeof result);
  });
  const spoken = said.length === 0 ? parts : [...said.map((text) => ({ type: 'text' as const, text })), ...parts];
  const content = restoreParts(form, parts, to, known) ?? spoken;
  messages.push({ role: 'assistant', content }, { role: 'tool', content: results });
}

export function addTextTurns({ messages, form, calls, said, to, known }: StepTurns): void {
  const { parts, isWhole } = restoreBesideText(form, to, known);
  const written = { type: 'text' as const, text: [...said, callBlock(calls)].join('\n\n') };
  messages.push(
    { role: 'assistant', content: isWhole ? [...parts] : [...parts, written] },
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
