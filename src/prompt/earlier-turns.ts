/** The conversation before a run as messages of its request. Calls and results are native ones where the model has such. */
import type {
  LanguageModelV4FilePart,
  LanguageModelV4Message,
  LanguageModelV4TextPart,
  LanguageModelV4ToolCallPart,
  LanguageModelV4ToolResultPart,
} from '@ai-sdk/provider';
import {
  calledNameIn,
  isJsonObject,
  type RunView,
  shownName,
  type ToolView,
  type Turn,
  type TurnPart,
  type TurnResult,
  takesText,
} from '#core';
import { callBlock, MADE_ID, toldApart } from './call-turns.ts';
import type { AttachmentRules } from './file-rules.ts';
import { type CallMode, enclose, encloseJson, frame, note, quoted, quotedJson, type UserWords } from './frame.ts';
import type { AssistantPart } from './provider-parts.ts';
import { inFormOf } from './provider-results.ts';
import { filePart } from './user-turn.ts';

export interface EarlierTurnsOptions {
  readonly mode: CallMode;
  readonly rules: AttachmentRules;
  /** How a user's own words are written. */
  readonly write: UserWords;
  /**
   * How many characters all texts may have together. Longer ones lose their ends until they fit, the longest first, and say how much was
   * left out. Default: as many as there are.
   */
  readonly maxChars?: number;
}

/** What the system turns at the beginning of the history say. */
export function systemWords(history: readonly Turn[]): readonly string[] {
  return history.flatMap(({ role, text }) => (role === 'system' && text !== '' ? [text] : []));
}

/** @param callIds the ids of calls, which are taken from then on. */
export function earlierMessages(
  { history, tools }: Pick<RunView, 'history' | 'tools'>,
  { mode, rules, write, maxChars = Number.POSITIVE_INFINITY }: EarlierTurnsOptions,
  callIds: Set<string>,
): LanguageModelV4Message[] {
  const turns = history.filter(({ role, text, parts }) => role !== 'system' && (text !== '' || parts !== undefined));
  const cut = cutTo(textSizes(turns), maxChars);
  const ids = new CallIds(callIds);
  const file = (part: File, to: AttachmentRules = rules): LanguageModelV4TextPart | LanguageModelV4FilePart =>
    withOptions(part, filePart(part, to, tools, 'an earlier message'));
  const attached = { takes: rules.takes };
  return turns.flatMap((turn, index): LanguageModelV4Message[] => {
    const { role, parts = [{ type: 'text', text: turn.text }] } = turn;
    const made = turns[index + 1]?.role === 'tool' ? [] : filesMade(turns, index);
    const after: LanguageModelV4Message[] = made.length === 0 ? [] : [madeTurn(made.map((part) => file(part)))];
    if (role === 'user') {
      const content = parts.flatMap((part): (LanguageModelV4TextPart | LanguageModelV4FilePart)[] => {
        if (part.type === 'file') return [file(part, attached)];
        return part.type === 'text' ? [withOptions(part, textPart(cutShort(part.text, cut, write)))] : [];
      });
      return [withOptions(turn, { role, content })];
    }
    if (role === 'assistant') {
      const content = parts.flatMap((part): AssistantPart[] => {
        switch (part.type) {
          case 'text':
            return [withOptions(part, textPart(cutShort(part.text, cut, (text) => text)))];
          case 'reasoning':
            return [withOptions(part, { type: 'reasoning', text: part.text })];
          case 'tool-call':
            return [withOptions(part, mode === 'native' ? nativeCall(part, ids, tools) : textPart(writtenCall(part)))];
          default:
            return [];
        }
      });
      return [...(content.length === 0 ? [] : [withOptions(turn, { role, content })]), ...after];
    }
    const results = parts.filter((part) => part.type === 'tool-result');
    if (mode === 'text')
      return [withOptions(turn, { role: 'user', content: [textPart(resultFrames(results, cut))] }), ...after];
    const apart: string[] = [];
    const content = results.map((part) => nativeResult(part, ids, tools, cut, apart));
    return [withOptions(turn, { role: 'tool', content }), ...(apart.length === 0 ? [] : [toldApart(apart)]), ...after];
  });
}

type File = Extract<TurnPart, { type: 'file' }>;

/** Files that a model has made, in a message of their own. */
export function madeTurn(
  files: readonly (LanguageModelV4TextPart | LanguageModelV4FilePart)[],
): LanguageModelV4Message {
  return { role: 'user', content: [textPart(note(FILES_MADE)), ...files] };
}

const FILES_MADE = 'Made by you in the reply before:';

/**
 * The files of the model's reply that ends with this turn. Most providers take none in a reply, and some leave them out in silence, so that they
 * stand in a message of their own behind it; between a call and its results nothing may stand.
 */
function filesMade(turns: readonly Turn[], index: number): readonly File[] {
  const last = turns[index];
  const reply = last?.role === 'tool' ? turns.slice(0, index).findLast(({ role }) => role !== 'tool') : last;
  if (reply?.role !== 'assistant') return [];
  return (reply.parts ?? []).filter((part) => part.type === 'file');
}

/** Ids of calls that are unique in the request, and none of which the run makes itself. */
class CallIds {
  readonly #taken: Set<string>;
  readonly #given = new Map<string, string>();

  constructor(taken: Set<string>) {
    this.#taken = taken;
  }

  of(id: string): string {
    const known = this.#given.get(id);
    if (known !== undefined) return known;
    const own = id === '' || id.startsWith(MADE_ID) ? `history.callid.${this.#given.size}` : id;
    this.#given.set(id, own);
    this.#taken.add(own);
    return own;
  }
}

type Call = Extract<TurnPart, { type: 'tool-call' }>;

function nativeCall(
  { toolCallId, toolName, input }: Call,
  ids: CallIds,
  tools: Pick<ToolView, 'get'>,
): LanguageModelV4ToolCallPart {
  const id = ids.of(toolCallId);
  return {
    type: 'tool-call',
    toolCallId: id,
    toolName: calledNameIn(tools, toolName),
    input: isJsonObject(input) || (typeof input === 'string' && takesText(tools.get(toolName))) ? input : {},
  };
}

function writtenCall({ toolName, input }: Call): string {
  return callBlock([{ tool: toolName, args: input, callId: undefined, outcome: undefined }]);
}

/** @param apart is given what stands behind the results. */
function nativeResult(
  result: TurnResult,
  ids: CallIds,
  tools: Pick<ToolView, 'get'>,
  cut: number,
  apart: string[],
): LanguageModelV4ToolResultPart {
  const { toolCallId, toolName, output: given } = result;
  const type = given.type === 'text' || given.type === 'json' ? 'text' : 'error-text';
  const whole = given.type === 'json' && resultText(given).length <= cut ? given.value : undefined;
  const told = { type, value: resultMarkup(given, cut) } as const;
  const { output, isWordless } = inFormOf(tools.get(toolName)?.provider, told, whole);
  if (isWordless) apart.push(frame('tool_result', told.value, { tool: shownName(toolName) }));
  return withOptions(result, {
    type: 'tool-result',
    toolCallId: ids.of(toolCallId),
    toolName: calledNameIn(tools, toolName),
    output,
  });
}

function resultFrames(results: readonly TurnResult[], cut: number): string {
  const frames = results.map(({ toolName, output }, index) =>
    frame('tool_result', resultMarkup(output, cut), { tool: shownName(toolName), call: index + 1 }),
  );
  return frames.join('\n');
}

function resultMarkup(output: TurnResult['output'], cut: number): string {
  const text = resultText(output);
  if (output.type === 'text') return quoted(text, cut);
  if (output.type === 'json') return text.length > cut ? quoted(text, cut) : quotedJson(text);
  return output.type === 'error-json' && text.length <= cut
    ? encloseJson('call_error', text)
    : enclose('call_error', text, {}, cut);
}

function resultText(output: TurnResult['output']): string {
  if (output.type === 'execution-denied')
    return `The call was denied${output.reason === undefined ? '.' : `: ${output.reason}`}`;
  return output.type === 'text' || output.type === 'error-text' ? output.value : JSON.stringify(output.value);
}

function textPart(text: string): LanguageModelV4TextPart {
  return { type: 'text', text };
}

function withOptions<T extends object>({ providerOptions }: Pick<Turn, 'providerOptions'>, made: T): T {
  return providerOptions === undefined ? made : { ...made, providerOptions };
}

/** The beginning of a text, and how much of it was left out. */
export function cutShort(text: string, cut: number, write: (text: string) => string): string {
  if (text.length <= cut) return write(text);
  return `${write(text.slice(0, cut).toWellFormed())}\n${frame('left_out', `${text.length - cut} more characters`)}`;
}

function textSizes(turns: readonly Turn[]): number[] {
  return turns.flatMap(({ text, parts = [{ type: 'text', text }] }) =>
    parts.flatMap((part) => {
      if (part.type === 'tool-result') return [resultText(part.output).length];
      return part.type === 'text' ? [part.text.length] : [];
    }),
  );
}

/** A text that is cut off keeps at least this many characters. */
export const LEAST_CHARS = 200;

/** The greatest length to which all of them fit when the longer ones are cut down to it. */
function cutTo(sizes: readonly number[], maxChars: number): number {
  let room = maxChars;
  const ascending = sizes.toSorted((one, other) => one - other);
  for (const [index, size] of ascending.entries()) {
    const share = room / (ascending.length - index);
    if (size > share) return Math.max(LEAST_CHARS, Math.floor(share));
    room -= size;
  }
  return Number.POSITIVE_INFINITY;
}
