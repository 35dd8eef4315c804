/** The turns of a step with calls: the assistant's with the calls, and the one that answers them. */
import type { LanguageModelV4Message, LanguageModelV4ToolCallPart } from '@ai-sdk/provider';
import { calledNameIn, isJsonObject, type Outcome, shownName, type ToolView, takesText } from '#core';
import { frame, userTurn } from './frame.ts';
import {
  callOptions,
  type OwnForm,
  questionsOf,
  type Recipient,
  restoreBesideText,
  restoreParts,
} from './provider-parts.ts';
import { providerForm } from './provider-results.ts';
import { filesTurn, nativeResult, type Shown, type StepFiles, textResult } from './result-files.ts';
import { type StepCall, toolResultOf } from './step-parts.ts';

/** The turns of a step are made for whoever is asked. */
export interface StepTurns {
  readonly messages: LanguageModelV4Message[];
  /** What stands behind the results. */
  readonly after: LanguageModelV4Message[];
  /** The reply's own parts; empty where it has no place for each of the calls. */
  readonly form: OwnForm;
  readonly calls: readonly StepCall[];
  readonly said: readonly string[];
  readonly to: Recipient;
  /** Ids of the calls that providers have carried out, as far as the request has them. */
  readonly known: Set<string>;
  readonly tools: Pick<ToolView, 'get'>;
  readonly files: StepFiles;
}

type ToolTurn = Extract<LanguageModelV4Message, { role: 'tool' }>;

/** @param ids one for each call, unique in the request. */
export function addNativeTurns(turns: StepTurns, ids: readonly string[]): void {
  const { messages, after, form, calls, said, to, known, files, tools } = turns;
  const options = callOptions(form, to);
  const questions = questionsOf(form, to);
  const behind: Shown[] = [];
  const refused: string[] = [];
  const apart: string[] = [];
  // Lists of just that length: what is pushed to takes room for many more, and these are kept as long as the run goes on.
  const parts = calls.map(({ tool, args }, index): LanguageModelV4ToolCallPart => {
    // Arguments that were no object are in the journal as they came; providers refuse them in a history.
    const isFit = isJsonObject(args) || (typeof args === 'string' && takesText(tools.get(tool)));
    const toolName = calledNameIn(tools, tool);
    return { type: 'tool-call', toolCallId: ids[index] as string, toolName, input: isFit ? args : {} };
  });
  const results = calls.map((call, index): ToolTurn['content'][number] => {
    const { tool, outcome } = call;
    const approvalId = questions.get(index);
    if (approvalId !== undefined) {
      if (outcome?.kind !== 'value') refused.push(refusalFrame(call, index));
      return leave(approvalId, outcome);
    }
    const formed = providerForm(outcome, tools.get(tool)?.provider, files);
    if (formed?.isWordless === true) apart.push(resultIn(call, index, textResult(call, files, behind)));
    const output = formed?.output ?? nativeResult(call, files, behind);
    const { toolCallId, toolName } = parts[index] as LanguageModelV4ToolCallPart;
    const result = { type: 'tool-result' as const, toolCallId, toolName, output };
    const noted = options[index];
    return noted === undefined ? result : ({ ...result, providerOptions: noted } as typeof result);
  });
  const spoken = said.length === 0 ? parts : [...said.map((text) => ({ type: 'text' as const, text })), ...parts];
  const content = restoreParts(form, parts, to, known, files.media) ?? spoken;
  messages.push({ role: 'assistant', content }, { role: 'tool', content: results });
  const shown = filesTurn(behind);
  if (shown !== undefined) after.push(shown);
  if (refused.length > 0) after.push(userTurn([NO_LEAVE, ...refused].join('\n')));
  if (apart.length > 0) after.push(toldApart(apart));
}

/** The answer to a provider that asks whether it may make a call. */
function leave(approvalId: string, outcome: Outcome | undefined): ToolTurn['content'][number] {
  if (outcome?.kind === 'value') return { type: 'tool-approval-response', approvalId, approved: true };
  return { type: 'tool-approval-response', approvalId, approved: false, reason: toolResultOf(outcome).value };
}

/** Providers take a no without its reason, which the model has to know. */
function refusalFrame(call: StepCall, index: number): string {
  const { tool, args } = call;
  const asked = isJsonObject(args) && typeof args['tool'] === 'string' ? args['tool'] : tool;
  return resultFrame({ ...call, tool: asked }, index);
}

/** What calls came to, in frames, whose results have no place for words. */
export function toldApart(frames: readonly string[]): LanguageModelV4Message {
  return userTurn([TOLD_APART, ...frames].join('\n'));
}

const TOLD_APART = 'What these calls of yours came to, for which there is no place in their results:';
const NO_LEAVE = 'These calls of yours were not allowed, and not made:';

export function addTextTurns({ messages, form, calls, said, to, known, files }: StepTurns): void {
  const { parts, isWhole } = restoreBesideText(form, to, known, files.media);
  const behind: Shown[] = [];
  const results = calls.map((call, index) => resultIn(call, index, textResult(call, files, behind))).join('\n');
  const written = { type: 'text' as const, text: [...said, callBlock(calls)].join('\n\n') };
  messages.push(
    { role: 'assistant', content: isWhole ? [...parts] : [...parts, written] },
    { role: 'user', content: [{ type: 'text', text: results }, ...behind] },
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
export function resultFrame(call: StepCall, index: number, maxChars?: number): string {
  return resultIn(call, index, toolResultOf(call.outcome, maxChars).value);
}

function resultIn({ tool }: StepCall, index: number, markup: string): string {
  return frame('tool_result', markup, { tool: shownName(tool), call: index + 1 });
}

/** How the ids of calls begin that no provider has named. */
export const MADE_ID = 'react.callid.';
