/** What a conversation is to a client of the AI SDK (`useChat`): messages with parts, one of the user and one of the assistant at a time. */
import {
  type Author,
  assertOptions,
  defined,
  type Json,
  type JsonObject,
  type OptionShape,
  type Source,
  type Turn,
  type TurnCall,
  type TurnFile,
  type TurnPart,
  type TurnResult,
} from '#core';
import { assertTurns, isListOfObjects, refusal } from './assert-turns.ts';
import { artifactUrl, dataUrl, OURS } from './file-url.ts';

type Metadata = Record<string, Record<string, Json>>;

interface Provided {
  providerMetadata?: Metadata;
}

interface CallPart {
  type: 'dynamic-tool';
  toolName: string;
  toolCallId: string;
  input: Json;
  callProviderMetadata?: Metadata;
  /** The provider of the model has carried it out. */
  providerExecuted?: true;
}

interface Approval {
  id: string;
  requestReason?: string;
}

type Granted = Approval & { approved: true; reason?: string };

/** A call with its state. Tools are called by their names, which no client has to know. */
export type UICall = CallPart &
  (
    | { state: 'input-available' }
    | { state: 'approval-requested'; approval: Approval }
    | { state: 'approval-responded'; approval: Approval & { approved: boolean; reason?: string } }
    | {
        state: 'output-available';
        output: Json;
        preliminary?: true;
        approval?: Granted;
        resultProviderMetadata?: Metadata;
      }
    | { state: 'output-error'; errorText: string; approval?: Granted; resultProviderMetadata?: Metadata }
    | { state: 'output-denied'; approval: Approval & { approved: false; reason?: string } }
  );

/** The same while it is put together. */
export interface StreamedCall extends CallPart {
  state: UICall['state'];
  approval?: Approval & { approved?: boolean; reason?: string };
}

export type UIPart =
  | ({ type: 'text'; text: string; state: 'done' } & Provided)
  | ({ type: 'reasoning'; id?: string; text: string; state: 'done' } & Provided)
  | ({ type: 'file'; mediaType: string; url: string; filename?: string } & Provided)
  | { type: 'step-start' }
  | { type: 'source-url'; sourceId: string; url: string; title?: string }
  | { type: 'source-document'; sourceId: string; title: string; mediaType: string; filename?: string }
  /** What the program tells beside: a plan, a task, a pause, and what its tools report. */
  | { type: `data-${string}`; id?: string; data: Json }
  | UICall;

export interface UIMetadata {
  /** The run that the message is of. */
  run?: string;
  /** The number of the run's turn in its session. */
  turn?: number;
  author?: Author;
}

export interface TurnUIMessage {
  id: string;
  role: 'system' | 'user' | 'assistant';
  metadata?: UIMetadata;
  parts: UIPart[];
}

/** A call of the open step, which has no outcome yet. */
export interface OpenCall extends Pick<TurnCall, 'toolCallId' | 'toolName' | 'input'> {
  /** Set while the call waits for an approval: the token of the pause is its `id`. */
  readonly approval?: Approval;
  /** Set while a client is to carry the call out: the token of the pause, by which it says what the call came to. */
  readonly token?: string;
}

/** The turns of one run, with what is known of them beside. */
export interface RunTurns extends UIMetadata {
  readonly turns: readonly Turn[];
  /** Ids of the messages of the user, in order, as their clients gave them. */
  readonly ids?: readonly string[];
  /** Calls that have no outcome yet, as `openCalls` gives them. */
  readonly open?: readonly OpenCall[];
  /** What replies were written from. */
  readonly sources?: readonly Source[];
}

export interface UIOptions {
  /** The address under which clients read a file. Default: its bytes as a data URL, or `artifact:` with its reference. */
  readonly fileUrl?: (file: TurnFile) => string;
}

const OPTIONS: OptionShape<UIOptions> = { fileUrl: 'function?' };

/**
 * Messages for a client. All that the model says and does between two messages of the user is one message, with `step-start` between the steps; its id
 * is made of the run and its place in the run, so that it is the same wherever it is made. What providers are told of a whole message is left out.
 * @throws PilotageError `invalid_config`.
 */
export function toUIMessages(given: readonly (Turn | RunTurns)[], options: UIOptions = {}): TurnUIMessage[] {
  assertOptions('toUIMessages', options, OPTIONS);
  if (!isListOfObjects(given)) throw refusal('toUIMessages needs a list of turns, or of { run, turns }.');
  const messages: TurnUIMessage[] = [];
  let loose: Turn[] = [];
  const close = (): void => {
    assertTurns('toUIMessages', loose);
    if (loose.length > 0) messages.push(...new Messages({ turns: loose }, options, messages.length).made);
    loose = [];
  };
  for (const each of given) {
    if (!('turns' in each)) {
      loose.push(each);
      continue;
    }
    close();
    assertTurns('toUIMessages', each.turns);
    messages.push(...new Messages(each, options, 0).made);
  }
  close();
  return messages;
}

class Messages {
  readonly made: TurnUIMessage[] = [];
  readonly #from: RunTurns;
  readonly #options: UIOptions;
  readonly #offset: number;
  #users = 0;

  constructor(from: RunTurns, options: UIOptions, offset: number) {
    this.#from = from;
    this.#options = options;
    this.#offset = offset;
    const results = resultsOf(from.turns);
    for (const turn of from.turns) this.#add(turn, results);
    const { open = [], sources = [] } = from;
    if (open.length > 0) this.#reply().parts.push(...open.map(openPart));
    if (sources.length > 0) this.#reply().parts.push(...sources.map(sourcePart));
  }

  #add({ role, text, parts }: Turn, results: ReadonlyMap<string, TurnResult>): void {
    if (role === 'tool') return;
    const said = (parts ?? []).flatMap((part) => this.#partOf(part, results));
    // A client refuses a message without parts.
    const shown = said.length > 0 ? said : [textPart({ type: 'text', text })];
    if (role === 'assistant') this.#reply().parts.push({ type: 'step-start' }, ...shown);
    else this.made.push(this.#message(role, shown));
  }

  /** The message of the assistant that goes on, or a new one. */
  #reply(): TurnUIMessage {
    const last = this.made.at(-1);
    if (last?.role === 'assistant') return last;
    const message = this.#message('assistant', []);
    this.made.push(message);
    return message;
  }

  #message(role: TurnUIMessage['role'], parts: UIPart[]): TurnUIMessage {
    const { run, turn, author, ids = [] } = this.#from;
    const given = role === 'user' ? ids[this.#users++] : undefined;
    const place = this.#offset + this.made.length;
    const metadata = defined({ run, turn, author: role === 'user' ? author : undefined });
    return {
      id: given ?? `${run ?? 'message'}:${place}`,
      role,
      ...(Object.keys(metadata).length === 0 ? {} : { metadata }),
      parts,
    };
  }

  #partOf(part: TurnPart, results: ReadonlyMap<string, TurnResult>): UIPart[] {
    switch (part.type) {
      case 'text':
      case 'reasoning':
        return [textPart(part)];
      case 'file':
        return [this.#filePart(part)];
      case 'tool-call':
        return [callPart(part, results.get(part.toolCallId))];
      case 'tool-result':
        return [];
      default:
        return part satisfies never;
    }
  }

  #filePart(file: TurnFile): UIPart {
    const { mime, fileName, bytes, artifactRef, sizeBytes, providerOptions } = file;
    const { fileUrl } = this.#options;
    const url = fileUrl?.(file) ?? (bytes === undefined ? artifactUrl(file) : dataUrl(file, bytes));
    // An address of the program's own does not say which artifact it stands for.
    const noted = fileUrl === undefined ? providerOptions : { ...providerOptions, [OURS]: { artifactRef, sizeBytes } };
    return { type: 'file', mediaType: mime, url, ...defined({ filename: fileName }), ...metadataOf(noted) };
  }
}

function resultsOf(turns: readonly Turn[]): ReadonlyMap<string, TurnResult> {
  const results = turns.flatMap(({ parts = [] }) => parts.filter((part) => part.type === 'tool-result'));
  return new Map(results.map((result) => [result.toolCallId, result]));
}

function textPart({ type, text, providerOptions }: Extract<TurnPart, { type: 'text' | 'reasoning' }>): UIPart {
  return { type, text, state: 'done', ...metadataOf(providerOptions) };
}

function callPart(call: TurnCall, result: TurnResult | undefined): UICall {
  const { toolCallId, toolName, input } = call;
  const meta = call.providerOptions === undefined ? {} : { callProviderMetadata: call.providerOptions as Metadata };
  const part: CallPart = { type: 'dynamic-tool', toolName, toolCallId, input, ...meta };
  if (result === undefined) return { ...part, state: 'input-available' };
  const { output, providerOptions = {} } = result;
  switch (output.type) {
    case 'text':
      return { ...part, state: 'output-available', output: output.value, ...resultNote(providerOptions) };
    case 'json': {
      // A text would come back as one.
      const note = typeof output.value === 'string' ? { output: 'json' } : undefined;
      return { ...part, state: 'output-available', output: output.value, ...resultNote(providerOptions, note) };
    }
    case 'error-text':
      return { ...part, state: 'output-error', errorText: output.value, ...resultNote(providerOptions) };
    case 'error-json': {
      const errorText = JSON.stringify(output.value);
      return { ...part, state: 'output-error', errorText, ...resultNote(providerOptions, { output: 'error-json' }) };
    }
    case 'execution-denied': {
      const approval = { id: toolCallId, approved: false, ...defined({ reason: output.reason }) } as const;
      return { ...part, state: 'output-denied', approval };
    }
    default:
      return output satisfies never;
  }
}

function resultNote(options: JsonObject, ours?: JsonObject): { resultProviderMetadata?: Metadata } {
  const all = { ...options, ...(ours === undefined ? {} : { [OURS]: ours }) };
  return Object.keys(all).length === 0 ? {} : { resultProviderMetadata: all as Metadata };
}

function openPart({ toolCallId, toolName, input, approval }: OpenCall): UICall {
  const part: CallPart = { type: 'dynamic-tool', toolName, toolCallId, input };
  return approval === undefined
    ? { ...part, state: 'input-available' }
    : { ...part, state: 'approval-requested', approval: { ...approval } };
}

function sourcePart(source: Source, index: number): UIPart {
  const sourceId = `source:${index}`;
  if (source.type === 'url')
    return { type: 'source-url', sourceId, url: source.url, ...defined({ title: source.title }) };
  const { title, mediaType, filename } = source;
  return { type: 'source-document', sourceId, title, mediaType, ...defined({ filename }) };
}

function metadataOf(options: JsonObject | undefined): Provided {
  return options === undefined ? {} : { providerMetadata: options as Metadata };
}
