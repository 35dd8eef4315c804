/** What goes back of a reply in its own parts, and what another provider is told of it. */
import type { LanguageModelV4Message, LanguageModelV4ToolCallPart } from '@ai-sdk/provider';
import {
  type InputArtifact,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonText,
  type MediaView,
  providerActs,
  type ReasoningReplay,
  type Step,
} from '#core';
import type { ProviderState, StoredPart } from '#model';
import { frame, quoted } from './frame.ts';

export type AssistantPart = (LanguageModelV4Message & { role: 'assistant' })['content'][number];

/** The own parts of a step's reply, and the reasoning that one of them may stand for. */
export type OwnForm = Pick<Step, 'providerState' | 'reasoning' | 'files'>;

/** Who is asked now. */
export interface Recipient {
  /** As its package calls it. Parts of another provider are told in words, or left out. */
  readonly provider?: string;
  /** False: reasoning does not go back as such, nor what the provider noted at it. Default true. */
  readonly sendReasoning?: boolean;
  /** How reasoning is told that does not go back as such. */
  readonly replay: ReasoningReplay;
}

/**
 * The reply's own parts with the calls in their places. `undefined` for a state that was made elsewhere, or that has no place for each of the calls.
 * @param known ids of the provider's own calls that the request has; a result whose call is not among them is left out.
 * @param media has the bytes of the files.
 */
export function restoreParts(
  { providerState: state, reasoning = '', files = [] }: OwnForm,
  calls: readonly LanguageModelV4ToolCallPart[],
  to: Recipient,
  known: Set<string> = new Set(),
  media?: MediaView,
): AssistantPart[] | undefined {
  if (!isProviderState(state)) return undefined;
  const isOwn = isOwnState(state, to);
  const restored: AssistantPart[] = [];
  const thoughts: string[] = [];
  let placed = 0;
  for (const part of state.parts) {
    if (part.type === 'approval' && isOwn) {
      // The question stands in the provider's own call, and its answer in the turn that follows.
      if (calls[part.call] !== undefined) placed += 1;
    } else if (part.type === 'call' || part.type === 'approval') {
      // A call that was cut off by the provider's limit was dropped, and has no place any more.
      const call = calls[part.call];
      if (call === undefined) continue;
      placed += 1;
      const options = isOwn && part.type === 'call' ? part.providerOptions : undefined;
      restored.push(options === undefined ? call : withOptions(call, options));
    } else if (part.type === 'reasoning') {
      const thought = { ...part, text: part.text ?? reasoning };
      if (isOwn && goesBack(part, to)) restored.push(thought as AssistantPart);
      else if (to.replay === 'text') thoughts.push(thought.text);
    } else if (part.type === 'file' || part.type === 'reasoning-file') {
      const goes = isOwn && (part.type === 'file' || to.sendReasoning !== false);
      const file = goes ? ownFile(part, files, media) : undefined;
      if (file !== undefined) restored.push(file);
    } else if (isOwn) {
      if (part.type === 'tool-call') known.add(part.toolCallId);
      if (part.type !== 'tool-result' || known.has(part.toolCallId)) restored.push(asSent(part));
    } else if (part.type === 'text') {
      restored.push(text(part.text));
    }
  }
  if (placed !== calls.length) return undefined;
  const told = thoughts.join('');
  if (told.trim() === '') return restored;
  const firstCall = restored.findIndex(({ type }) => type === 'tool-call');
  return restored.toSpliced(firstCall === -1 ? restored.length : firstCall, 0, text(replayed(told)));
}

/** `undefined`: its bytes are not there. */
function ownFile(
  part: StoredPart & { readonly type: 'file' | 'reasoning-file' },
  files: readonly InputArtifact[],
  media: MediaView | undefined,
): AssistantPart | undefined {
  const { type, providerOptions } = part;
  const told = providerOptions === undefined ? {} : { providerOptions };
  if ('url' in part) {
    const { url, mediaType } = part;
    return { type, mediaType, data: { type: 'url', url: new URL(url) }, ...told } as AssistantPart;
  }
  const { mime, artifactRef } = files[part.file] ?? {};
  const bytes = artifactRef === undefined ? undefined : media?.bytes.get(artifactRef);
  if (mime === undefined || bytes === undefined) return undefined;
  return { type, mediaType: mime, data: { type: 'data', data: bytes }, ...told } as AssistantPart;
}

/** The files of a reply that do not go back as its parts: the model is another provider's. */
export function filesForOthers({ providerState: state, files = [] }: OwnForm, to: Recipient): readonly InputArtifact[] {
  return files.length === 0 || (isProviderState(state) && isOwnState(state, to)) ? [] : files;
}

/** What the provider has signed goes back as it came, whatever else is told in words. */
function goesBack({ providerOptions }: StoredPart & { readonly type: 'reasoning' }, to: Recipient): boolean {
  return to.sendReasoning !== false && (providerOptions !== undefined || to.replay !== 'text');
}

/** What the provider's own parts add to a message of calls in text; all of it when its words are to go back as they came. */
export function restoreBesideText(
  step: OwnForm,
  to: Recipient,
  known: Set<string>,
  media: MediaView | undefined,
): { readonly parts: readonly AssistantPart[]; readonly isWhole: boolean } {
  const { providerState: state } = step;
  if (!isProviderState(state) || !isOwnState(state, to)) return { parts: [], isWhole: false };
  const isNative = state.parts.some(({ type }) => type === 'call');
  const restored = restoreParts(step, [], to, known, media) ?? [];
  if (!isNative && state.parts.some(isOpaque)) return { parts: restored, isWhole: true };
  return { parts: restored.filter(({ type }) => type !== 'text'), isWhole: false };
}

/** What the provider noted at each call of the run, which stands at its result too. */
export function callOptions({ providerState: state }: OwnForm, to: Recipient): readonly (JsonObject | undefined)[] {
  const options: (JsonObject | undefined)[] = [];
  if (!isProviderState(state) || !isOwnState(state, to)) return options;
  for (const part of state.parts) if (part.type === 'call') options[part.call] = part.providerOptions;
  return options;
}

/** By the index of the step's call, the ids of the questions that it answers to its provider. */
export function questionsOf({ providerState: state }: OwnForm, to: Recipient): ReadonlyMap<number, string> {
  if (!isProviderState(state) || !isOwnState(state, to)) return NO_QUESTIONS;
  const asked = state.parts.filter((part) => part.type === 'approval');
  return asked.length === 0 ? NO_QUESTIONS : new Map(asked.map(({ call, approvalId }) => [call, approvalId]));
}

const NO_QUESTIONS: ReadonlyMap<number, string> = new Map();

/** What another provider did itself in the step, as markup. `undefined`: nothing, or the parts themselves go back. */
export function actsOfProvider({ providerState: state }: OwnForm, to: Recipient): string | undefined {
  return isProviderState(state) && !isOwnState(state, to) ? actsText(state, ACT_CHARS) : undefined;
}

/** What the provider did itself, as markup. @param maxChars of each text. */
export function actsText(state: Json | undefined, maxChars: number): string | undefined {
  const acts = providerActs(state);
  const frames = acts.flatMap((act) => {
    if (act.type !== 'tool-call') return [];
    const { toolCallId, toolName, tool = toolName, input } = act;
    const result = acts.find((other) => other.type === 'tool-result' && other.toolCallId === toolCallId);
    const said = [jsonText(input), ...(result?.type === 'tool-result' ? [jsonText(result.output.value)] : [])];
    return [frame('also_done', said.map((each) => quoted(each, maxChars)).join('\n'), { what: tool })];
  });
  return frames.length === 0 ? undefined : [ACTS_OF_PROVIDER, ...frames].join('\n');
}

const ACTS_OF_PROVIDER =
  'The server of the model that was asked then did this itself in that step. There is no tool for it:';
/** A search's results are long, and mostly encrypted for the provider alone. */
const ACT_CHARS = 4_000;

/** How a model is told what it thought at a step, as a text of its own turn. */
export function replayed(reasoning: string): string {
  return `My reasoning at this step:\n${reasoning}`;
}

/** The reply is the recipient's own, in its own parts. */
export function isOwnReply({ providerState: state }: OwnForm, to: Recipient): boolean {
  return isProviderState(state) && isOwnState(state, to);
}

/** The parts of a turn that its provider has not finished, without the calls of its own that have no result. */
export function withoutOpenCalls(content: readonly AssistantPart[], known: Set<string>): AssistantPart[] {
  const results = new Set(content.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : [])));
  return content.filter((part) => {
    const isOpen = part.type === 'tool-call' && part.providerExecuted === true && !results.has(part.toolCallId);
    if (isOpen) known.delete(part.toolCallId);
    return !isOpen;
  });
}

function isOwnState({ provider }: ProviderState, to: Recipient): boolean {
  return provider === undefined || to.provider === undefined || provider === to.provider;
}

/** Whether the reply's own parts count: of one that was not accepted, what its provider did is done all the same, unless calls that were not made stand beside it. */
export function isTold({ error, providerState: state }: Pick<Step, 'error' | 'providerState'>): boolean {
  if (error === undefined) return true;
  if (!isProviderState(state) || providerActs(state).length === 0) return false;
  return state.parts.every(({ type }) => type !== 'call' && type !== 'approval');
}

/**
 * Calls of the step come out of code that the provider runs, and that goes on when it has their results: until then a request may tell
 * nothing but these, and no part of it may become a summary.
 */
export function awaitsCode({ providerState: state }: Pick<Step, 'providerState'>): boolean {
  return isProviderState(state) && state.parts.some((part) => part.type === 'call' && hasCaller(part.providerOptions));
}

function hasCaller(options: JsonObject | undefined): boolean {
  return Object.values(options ?? {}).some((noted) => {
    const caller = isJsonObject(noted) ? noted['caller'] : undefined;
    return isJsonObject(caller) && caller['type'] !== 'direct';
  });
}

/** The part as the provider takes it, without the program's name for its tool. */
function asSent(part: Exclude<StoredPart, { readonly type: 'call' | 'approval' }>): AssistantPart {
  if (!('tool' in part)) return part as AssistantPart;
  const { tool: _, ...sent } = part;
  return sent as AssistantPart;
}

/** Its text alone does not say it. */
function isOpaque(part: StoredPart): boolean {
  return (part.type !== 'text' && part.type !== 'reasoning') || part.providerOptions !== undefined;
}

function text(words: string): AssistantPart {
  return { type: 'text', text: words };
}

function withOptions(call: LanguageModelV4ToolCallPart, providerOptions: JsonObject): LanguageModelV4ToolCallPart {
  return { ...call, providerOptions } as LanguageModelV4ToolCallPart;
}

function isProviderState(state: Json | undefined): state is Json & ProviderState {
  return isJsonObject(state) && Array.isArray(state['parts']);
}
