/**
 * The events of a turn as the chunks of its messages. A turn is one run, or several of which each continues the one before. The same events give the same
 * chunks: a client that reads live, one that connects late and one that loads the history have the same messages, with the same ids.
 */
import {
  AWAIT_TOOL,
  type Control,
  defined,
  type EventPayloads,
  type InputArtifact,
  isPlanTool,
  type Json,
  jsonText,
  type RunEvent,
  type Source,
  SPAWN_TOOL,
  type StreamRow,
  type TurnFile,
  UNDO_TASK,
  wordsIn,
} from '#core';
import { chatCallId } from './call-id.ts';
import { OpenWords } from './open-words.ts';
import { type ErrorWords, type ToldCall, ToldCalls } from './told-calls.ts';
import { ToldNotes } from './told-notes.ts';
import { dataChunkIn, type UIChunk, type UIFinishReason } from './ui-chunks.ts';
import type { UIMetadata } from './ui-messages.ts';

/** What the user said: the words that began the turn, or a message, an answer or a new goal while it was under way. */
export interface HeardWords {
  /** How many messages of the turn came before it. */
  readonly place: number;
  /** Absent: the words that began the turn. */
  readonly control?: Pick<Control, 'type' | 'payload' | 'turnMessage'>;
}

export interface TurnListener {
  /** @param message the id of the assistant's message to which the chunk belongs. */
  chunk(chunk: UIChunk, message: string): void;
  /** The user has said something: the chunks that follow belong to the next message. */
  heard?(said: HeardWords): void;
}

export interface TurnChunkOptions {
  readonly metadata?: UIMetadata;
  /** Makes the text about an error that the client is shown. */
  readonly errorText: ErrorWords;
  readonly fileUrl: (file: TurnFile) => string;
}

/** The state of the turn after the last event that was read. */
type Standing =
  | { readonly kind: 'open' }
  | { readonly kind: 'ended'; readonly chunk: UIChunk }
  | { readonly kind: 'paused'; readonly finishReason: UIFinishReason };

/** The events that stream what a model writes. */
type Spoken = Extract<RunEvent, { type: 'token' | 'tool.input' }>;

function isSpoken(event: RunEvent): event is Spoken {
  return event.type === 'token' || event.type === 'tool.input';
}

/** Built-in tools whose calls are not told: `data-task` tells what they do. */
const UNTOLD: ReadonlySet<string> = new Set([SPAWN_TOOL, AWAIT_TOOL, UNDO_TASK]);
/** Reasons of pauses that a client answers by giving a call its approval or its result. */
const FOR_CLIENTS: ReadonlySet<string> = new Set(['approval_required', 'client_tool']);
/** Steps that were not decided: what was said before the run was stopped, or its planner failed, stays. */
const BROKEN_OFF: ReadonlySet<string> = new Set(['cancelled', 'planner_failed']);
const OPEN: Standing = { kind: 'open' };

export class TurnChunks {
  readonly #listener: TurnListener;
  readonly #options: TurnChunkOptions;
  readonly #calls: ToldCalls;
  readonly #notes: ToldNotes;
  readonly #sources = new Set<string>();
  /** The run that is read now, and the one with which the turn began. */
  #run = '';
  #first = '';
  #places = 0;
  /** The id of the message that is being told. */
  #message: string | undefined;
  #words: OpenWords | undefined;
  /** The last step was taken back: its `start-step` stands, and the next step goes on behind it. */
  #isMarked = false;
  #lastStep = -1;
  /** The last step that was decided. */
  #decided = -1;
  #early: Spoken[] = [];
  #heardUpTo = 0;
  /** What the user has said, to be told when the open step has ended. */
  #waiting: Omit<HeardWords, 'place'>[] = [];
  /** The position of the decision that was read last, as long as its calls are not all read: they have the same position. */
  #movedAt: number | undefined;
  #files: Source[] = [];
  #standing: Standing = OPEN;
  /** The text of the decision that ends the run. */
  #ending = '';
  #carried = '';
  #lastControl: { readonly seq: number; readonly type: string } | undefined;
  #asked: EventPayloads['pause.requested'] | undefined;
  readonly #given = new Map<string, { readonly args?: Json; readonly reason?: Json; readonly verdict: string }>();

  constructor(listener: TurnListener, options: TurnChunkOptions) {
    this.#listener = listener;
    this.#options = options;
    const tell = (chunk: UIChunk, message: string): void => listener.chunk(chunk, message);
    this.#calls = new ToldCalls(tell, options.errorText);
    this.#notes = new ToldNotes((chunk) => this.#add(chunk));
  }

  get standing(): Standing {
    return this.#standing;
  }

  /** Whether the call was told and has no outcome yet. */
  isOpen(step: number, call: number): boolean {
    return this.#calls.get(this.#key(step, call))?.isOver === false;
  }

  /** Whether a call is open, so that rows of the run's streams may belong to it. */
  get hasOpenCalls(): boolean {
    return this.#calls.hasOpen;
  }

  hear(event: RunEvent): void {
    if (event.path !== undefined) {
      this.#hearTask(event);
      return;
    }
    if (this.#early.length > 0 && (isSpoken(event) || event.seq > this.#heardUpTo)) this.#speakEarly();
    this.#heardUpTo = event.seq;
    if (isSpoken(event)) {
      this.#speak(event);
      return;
    }
    if (this.#movedAt !== undefined && event.seq > this.#movedAt) this.#settleMove();
    if (this.#asked !== undefined) this.#tellAsked(event);
    this.#hearOwn(event);
  }

  /** Tells the words that came early, once what led to them was read. */
  #speakEarly(): void {
    if (this.#words !== undefined && this.#calls.hasOpenIn(this.#words)) return;
    for (const early of this.#early.splice(0)) this.#speak(early);
  }

  /** Streamed words may come before the recorded events that led to them. Then they wait in `#early`. */
  #speak(event: Spoken): void {
    const { step } = event;
    if (step > this.#decided + 1) this.#early.push(event);
    else if (step <= this.#decided) return;
    else this.#hearWords(event);
  }

  #hearWords(event: Spoken): void {
    const { step, text, offset } = event;
    this.#notes.back(this.#awayId(step));
    if (event.type === 'token') this.#open(step).say(event.channel, text, offset);
    else this.#open(step).write(this.#callId(event.callId), event.tool, text, offset);
  }

  /** A row of the run's stream `data`. */
  data(row: StreamRow): void {
    const chunk = dataChunkIn(row.value);
    if (chunk === undefined) return;
    const call = this.#calls.get(this.#key(row.step, row.call));
    if (call === undefined || call.message === this.#message) this.#add(chunk);
    else this.#listener.chunk(chunk, call.message);
  }

  /** Everything recorded so far was read: what still waits is told. */
  pause(): void {
    if (this.#asked !== undefined) this.#tellAsked(undefined);
    if (this.#movedAt !== undefined) this.#settleMove();
    this.#hearWaiting();
  }

  /** Nothing more will be told: open parts are ended. @returns the chunk that ends the stream. */
  end(): UIChunk | undefined {
    if (this.#asked !== undefined) this.#tellAsked(undefined);
    if (this.#movedAt !== undefined) this.#settleMove();
    this.#closeStep();
    const standing = this.#standing;
    if (standing.kind === 'ended') return standing.chunk;
    return standing.kind === 'paused' ? { type: 'finish', finishReason: standing.finishReason } : undefined;
  }

  #hearOwn(event: RunEvent): void {
    switch (event.type) {
      case 'run.started':
        this.#begin(event.identity.run);
        return;
      case 'token.reset':
        if (this.#words?.step === event.step) this.#words.takeBack();
        return;
      case 'planner.decision':
        this.#decide(event, event.seq);
        return;
      case 'model.away':
        if (event.retryAt === undefined) this.#notes.back(this.#awayId(event.step));
        else this.#notes.away(this.#awayId(event.step), 'model', event.retryAt);
        return;
      case 'planner.files':
        for (const file of event.files) this.#tellFile(file);
        return;
      case 'model.sources':
        this.#files.push(...event.sources);
        return;
      case 'control.applied':
        this.#hearControl(event.control, event.seq);
        return;
      case 'run.reopened':
        this.#standing = OPEN;
        return;
      case 'run.paused':
        this.#standing = {
          kind: 'paused',
          finishReason: event.pauses.some(({ reason }) => FOR_CLIENTS.has(reason)) ? 'tool-calls' : 'other',
        };
        return;
      case 'planner.finish':
        this.#finish(event);
        return;
      case 'planner.error':
        this.#calls.endAll();
        this.#notes.end();
        this.#standing = { kind: 'ended', chunk: { type: 'error', errorText: this.#options.errorText(event.error) } };
        return;
      default:
        this.#hearCall(event);
        return;
    }
  }

  #hearCall(event: RunEvent): void {
    switch (event.type) {
      case 'tool.invoked':
        this.#invoke(event);
        return;
      case 'tool.chunk': {
        const data = dataChunkIn(event.chunk);
        if (data !== undefined) {
          this.#pass({ ...data, transient: true });
          return;
        }
        if (event.run === this.#run) this.#calls.preview(this.#key(event.step, event.call), event.chunk);
        return;
      }
      case 'tool.away':
        this.#notes.away(this.#awayId(event.step, event.call), event.tool, event.retryAt);
        return;
      case 'tool.completed':
      case 'tool.failed':
      case 'tool.skipped':
        this.#notes.back(this.#awayId(event.step, event.call));
        this.#calls.end(this.#key(event.step, event.call), event.outcome);
        this.#notes.callEnded(this.#run, event.step, event.type === 'tool.failed');
        return;
      case 'provider.invoked':
        this.#invokeProvider(event);
        return;
      case 'provider.completed': {
        const call = this.#calls.get(`provider ${event.callId}`);
        if (call === undefined || call.isOver) return;
        if (!event.isError) {
          this.#calls.give(call, event.output);
          return;
        }
        this.#calls.fail(call, { code: 'provider_tool_failed', message: jsonText(event.output) });
        return;
      }
      case 'tool.approval_requested': {
        const call = this.#calls.get(this.#key(event.step, event.call));
        if (call !== undefined) this.#calls.ask(call, event.token, event.payload?.['reason']);
        return;
      }
      case 'message':
        this.#open(event.step).addText(String(event.call), jsonText(event.message));
        return;
      case 'plan.grown':
        this.#notes.planGrown(event);
        return;
      default:
        this.#hearAnswer(event);
        return;
    }
  }

  #hearAnswer(event: RunEvent): void {
    switch (event.type) {
      case 'pause.requested':
        this.#asked = event;
        return;
      case 'pause.resumed':
        this.#resume(event);
        if (event.path === undefined) this.#hearAnswered(event, event.seq);
        return;
      case 'tool.approved':
        this.#calls.approve(event.token, this.#given.get(event.token)?.args, this.#words);
        return;
      case 'tool.rejected': {
        const { verdict = '', reason } = this.#given.get(event.token) ?? {};
        this.#calls.deny(event.token, verdict, reason);
        return;
      }
      default:
        this.#notes.hear(event);
        return;
    }
  }

  /** Hears an event of a task of the run: what it asks people, and how that was answered. */
  #hearTask(event: RunEvent): void {
    const { run } = event.identity;
    switch (event.type) {
      case 'tool.chunk': {
        const data = dataChunkIn(event.chunk);
        if (data !== undefined) this.#pass({ ...data, transient: true });
        return;
      }
      case 'pause.requested':
        if (event.reason !== 'approval_required' || event.payload?.['tool'] === undefined) this.#askBeside(event);
        return;
      case 'pause.resumed':
      case 'tool.approved':
      case 'tool.rejected':
        this.#hearAnswer(event);
        return;
      case 'tool.approval_requested':
        this.#askForTask(event, run);
        return;
      case 'tool.completed':
      case 'tool.failed':
      case 'tool.skipped':
        this.#calls.end(`${run} ${event.step} ${event.call}`, event.outcome);
        return;
      default:
        return;
    }
  }

  #begin(run: string): void {
    this.#run = run;
    this.#decided = -1;
    this.#early = [];
    this.#standing = OPEN;
    if (this.#first !== '') {
      this.#closeStep();
      return;
    }
    this.#first = run;
    this.#listener.heard?.({ place: this.#places });
    this.#places += 1;
  }

  // Messages

  #messageNow(): string {
    if (this.#message === undefined) {
      const message = `${this.#first}:${this.#places}`;
      this.#places += 1;
      this.#message = message;
      const messageMetadata = { run: this.#first, ...this.#options.metadata };
      this.#listener.chunk({ type: 'start', messageId: message, messageMetadata }, message);
    }
    return this.#message;
  }

  #tell(chunk: UIChunk): void {
    this.#listener.chunk(chunk, this.#messageNow());
  }

  /** A part that stays when the words of the step are taken back. */
  #add(chunk: UIChunk): void {
    if (this.#words === undefined) this.#tell(chunk);
    else this.#words.add(chunk);
  }

  /** Tells a transient chunk, which does not become a part of a message. */
  #pass(chunk: UIChunk): void {
    if (this.#message !== undefined) this.#listener.chunk(chunk, this.#message);
  }

  #open(step: number): OpenWords {
    if (this.#words?.step === step && this.#words.run === this.#run) return this.#words;
    this.#closeStep();
    this.#hearWaiting();
    if (!this.#isMarked) this.#tell({ type: 'start-step' });
    this.#isMarked = false;
    this.#lastStep = step;
    this.#words = new OpenWords(this.#run, step, (chunk) => this.#tell(chunk));
    return this.#words;
  }

  #closeStep(): void {
    if (this.#words === undefined) return;
    this.#words.close();
    this.#words = undefined;
    this.#tell({ type: 'finish-step' });
  }

  #hearWaiting(): void {
    for (const said of this.#waiting.splice(0)) {
      this.#closeStep();
      this.#isMarked = false;
      this.#message = undefined;
      this.#listener.heard?.({ ...said, place: this.#places });
      this.#places += 1;
    }
  }

  #hearControl({ type, payload, turnMessage }: Control, seq: number): void {
    this.#lastControl = { seq, type };
    const isWords = type === 'USER_MESSAGE' || (type === 'REDIRECT' && payload?.['goal'] !== undefined);
    if (isWords) this.#waiting.push({ control: { type, ...defined({ payload, turnMessage }) } });
  }

  /** Hears the words with which somebody has resumed the run, unless they came as a message, which is heard by itself. */
  #hearAnswered({ reason, verdict, payload }: EventPayloads['pause.resumed'], seq: number): void {
    const isMessage = this.#lastControl?.type === 'USER_MESSAGE' && this.#lastControl.seq === seq - 1;
    if (reason !== 'await_input' || verdict !== 'resume' || payload === undefined || isMessage) return;
    if (wordsIn(payload) !== '') this.#waiting.push({ control: { type: 'USER_MESSAGE', payload } });
  }

  // Decisions

  #decide(move: EventPayloads['planner.decision'], seq: number): void {
    this.#decided = move.step;
    this.#notes.back(this.#awayId(move.step));
    const { step, text = '', reasoningTrace: reasoning = '', rejected, partial, decisionKind, plan } = move;
    if (rejected !== undefined && !BROKEN_OFF.has(rejected.code) && partial === undefined) {
      this.#lastStep = step;
      this.#files = [];
      if (this.#words?.step !== step) return;
      // The next step takes the place of this one.
      this.#words.takeBack();
      this.#words = undefined;
      this.#isMarked = true;
      return;
    }
    const isEnd = decisionKind === 'Finish' && partial === undefined;
    this.#ending = isEnd ? text : '';
    if (partial !== undefined) this.#carried += text;
    else if (!isEnd) this.#carried = '';
    const isSilent = text === '' && reasoning === '' && this.#files.length === 0;
    if (plan !== undefined) this.#notes.planMade(this.#run, step);
    this.#movedAt = seq;
    if (isSilent && this.#words?.step !== step) {
      // A run whose last decision has no words is ended by those of its result.
      if (isEnd) this.#closeStep();
      this.#lastStep = isEnd ? step - 1 : step;
      return;
    }
    this.#open(step).decide({ text, reasoning });
    this.#tellSources();
  }

  #settleMove(): void {
    this.#movedAt = undefined;
    this.#words?.settleInputs();
    this.#notes.showPlan();
  }

  #tellSources(): void {
    for (const source of this.#files.splice(0)) {
      const { type: _, ...told } = source;
      const key = source.type === 'url' ? source.url : JSON.stringify(told);
      if (this.#sources.has(key)) continue;
      const sourceId = `source:${this.#sources.size}`;
      this.#sources.add(key);
      if (source.type === 'url')
        this.#add({ ...{ type: 'source-url', sourceId }, ...defined({ title: source.title }), url: source.url });
      else {
        const { title, mediaType, filename } = source;
        this.#add({ type: 'source-document', sourceId, title, mediaType, ...defined({ filename }) });
      }
    }
  }

  #tellFile(file: InputArtifact): void {
    this.#add({ type: 'file', url: this.#options.fileUrl({ type: 'file', ...file }), mediaType: file.mime });
  }

  #finish({ reason, payload, metadata }: EventPayloads['planner.finish']): void {
    if (reason === 'handed_over' || reason === 'continued') {
      this.#notes.back();
      return;
    }
    const refusal = metadata?.['refusal'];
    const last = reason === 'refused' && typeof refusal === 'string' ? refusal : this.#answer(payload);
    if (last !== '') this.#open(this.#words?.step ?? this.#lastStep + 1).addText('answer', last);
    this.#calls.endAll();
    this.#notes.end();
    const finishReason =
      reason === 'goal' ? 'stop' : reason === 'length' ? 'length' : reason === 'refused' ? 'content-filter' : 'other';
    this.#standing = {
      kind: 'ended',
      chunk: reason === 'cancelled' ? { type: 'abort' } : { type: 'finish', finishReason },
    };
  }

  /** The result of the run as text, where its model has not said it already. */
  #answer(payload: Json | undefined): string {
    if (payload === undefined) return '';
    const said = this.#ending;
    if (typeof payload !== 'string') return said === '' ? JSON.stringify(payload) : '';
    return [said, this.#carried + said, said.trim()].includes(payload) ? '' : payload;
  }

  // Calls

  #key(step: number, call: number): string {
    return `${this.#run} ${step} ${call}`;
  }

  #awayId(step: number, call?: number): string {
    return `away:${this.#run}:${step}${call === undefined ? '' : `.${call}`}`;
  }

  #callId(id: string): string {
    return chatCallId(this.#run, id);
  }

  #invoke({ step, call, tool, callId, args }: EventPayloads['tool.invoked']): void {
    this.#notes.callBegan(this.#run, step);
    if (isPlanTool(tool) || UNTOLD.has(tool)) return;
    const toolCallId = this.#callId(callId ?? `${this.#run}.${step}.${call}`);
    const words = this.#open(step);
    words.call(toolCallId, tool, {
      type: 'tool-input-available',
      toolCallId,
      toolName: tool,
      input: args,
      dynamic: true,
    });
    this.#calls.add(this.#key(step, call), { toolCallId, tool, message: this.#messageNow(), step: words });
  }

  #invokeProvider({ step, callId, tool, input }: EventPayloads['provider.invoked']): void {
    const words = this.#open(step);
    const toolCallId = this.#callId(callId);
    const of = { toolCallId, toolName: tool };
    words.call(toolCallId, tool, { type: 'tool-input-available', ...of, input, dynamic: true, providerExecuted: true });
    this.#calls.add(`provider ${callId}`, { toolCallId, tool, message: this.#messageNow(), step: words });
  }

  #askForTask({ step, call, tool, token, payload }: EventPayloads['tool.approval_requested'], run: string): void {
    const told =
      this.#calls.get(`${run} ${step} ${call}`) ?? this.#addForTask(run, step, call, tool, payload?.['args']);
    this.#calls.ask(told, token, payload?.['reason']);
  }

  #addForTask(run: string, step: number, call: number, tool: string, args: Json = null): ToldCall {
    const toolCallId = `${run}.${step}.${call}`;
    const of = { toolCallId, toolName: tool, dynamic: true } as const;
    this.#add({ type: 'tool-input-start', ...of });
    this.#add({ type: 'tool-input-available', ...of, input: args });
    return this.#calls.add(`${run} ${step} ${call}`, {
      toolCallId,
      tool,
      message: this.#messageNow(),
      step: this.#words,
    });
  }

  // Questions

  /** Tells the question that was read last, unless the next event says that it is the approval of a call. */
  #tellAsked(next: RunEvent | undefined): void {
    const asked = this.#asked;
    this.#asked = undefined;
    if (asked === undefined || (next?.type === 'tool.approval_requested' && next.token === asked.token)) return;
    this.#askBeside(asked);
  }

  /** Tells a question for which clients have no part of their own. Questions that the model has put in words are told already. */
  #askBeside(asked: EventPayloads['pause.requested']): void {
    const { reason, payload, schema } = asked;
    if (reason === 'client_tool') return;
    if (reason === 'await_input' && payload === undefined && schema === undefined) return;
    this.#notes.asked(asked);
  }

  #resume({ token, verdict, args, payload }: EventPayloads['pause.resumed']): void {
    this.#given.set(token, { verdict, ...defined({ args, reason: payload?.['reason'] }) });
    this.#notes.answered(token, verdict);
  }
}
