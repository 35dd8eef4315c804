/** One message of a chat as a client is sent it, from its start or from an answer on: what is recorded, and then what comes. */
import { type RunEvent, PilotageError, type StreamRow } from '#core';
import { type Heard, TurnChunks, type TurnChunkOptions, type TurnListener, type UIChunk } from '#messages';
import type { Run } from '#runtime';
import type { ServerEvent } from '../event-stream.ts';

/** Which message of a turn. */
export type Target =
  /** The one that follows these words of the user: the id of a message, or that with which the turn began. */
  | { readonly after: string }
  /** This one, from the moment on in which one of the questions was answered, or from this position of the journal. */
  | { readonly message: string; readonly goesOnAt: { readonly tokens: ReadonlySet<string>; readonly from: number } }
  /** This one, from its start. */
  | { readonly message: string };

export interface FeedOptions extends TurnChunkOptions {
  /** The run with which the turn began. */
  readonly run: Run;
  /** The message with which it began. */
  readonly begunBy: string | undefined;
  /** How far the run was when the request came. */
  readonly head: number;
  /** The same run, or one that goes on with it, by its id. */
  readonly runOf: (id: string) => Run;
  readonly target: Target;
  /** Told at the end, as an error. */
  readonly conflict?: string;
}

/** The stream of a run whose rows are parts of its messages. */
const DATA = 'data';
const DONE: ServerEvent = { data: '[DONE]' };

/** What is under way at the same time: the next event, and the next row. */
type Next = { readonly event: IteratorResult<RunEvent, void> } | { readonly row: IteratorResult<StreamRow, void> };

export class Feed implements TurnListener {
  readonly #options: FeedOptions;
  readonly #chunks: TurnChunks;
  /** The message that is sent, as soon as it is known. */
  #message: string | undefined;
  #isReached = false;
  #isBegun = false;
  #isMuted: boolean;
  #isOver = false;
  /** What is to be sent now, in the form of the stream. */
  #out = '';
  readonly #rows: StreamRow[] = [];
  #rowsSeen = 0;
  #rowsKnownUpTo = 0;
  #run: string;

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#run = options.run.id;
    const { target } = options;
    this.#message = 'message' in target ? target.message : undefined;
    this.#isMuted = 'goesOnAt' in target;
    this.#chunks = new TurnChunks(this, options);
  }

  /** Whether anything was found to be sent. */
  get isBegun(): boolean {
    return this.#isBegun;
  }

  chunk(chunk: UIChunk, message: string): void {
    if (this.#message === undefined) {
      if (!this.#isReached) return;
      this.#message = message;
    }
    if (message !== this.#message) return;
    this.#isBegun = true;
    if (!this.#isMuted) this.#send(chunk);
  }

  heard({ place, control }: Heard): void {
    const { target, begunBy, run } = this.#options;
    if (this.#isBegun) this.#isOver = true;
    const id = control === undefined ? begunBy : control.turnMessage?.id;
    if ('after' in target && target.after === (id ?? `${run.id}:${place}`)) this.#isReached = true;
  }

  /** @param signal is aborted when the reader is gone. */
  async *events(signal: AbortSignal): AsyncGenerator<ServerEvent, void> {
    const { run } = this.#options;
    const events = run.events({ tasks: true, signal });
    try {
      for await (const batch of this.#batches(events, signal)) yield batch;
    } finally {
      await events.return();
    }
    if (signal.aborted) return;
    this.#end();
    yield* this.#taken();
    yield DONE;
  }

  async *#batches(events: AsyncGenerator<RunEvent, void>, signal: AbortSignal): AsyncGenerator<ServerEvent, void> {
    let rows: { readonly reader: AsyncGenerator<StreamRow, void>; next: Promise<Next>; stop(): void } | undefined;
    let next: Promise<IteratorResult<RunEvent, void>> | undefined;
    try {
      while (!this.#isOver) {
        next ??= events.next();
        let result: IteratorResult<RunEvent, void>;
        if (this.#needsRows && rows === undefined) rows = this.#rowReader(signal);
        if (rows !== undefined && this.#needsRows) {
          const came = await Promise.race([next.then((event) => ({ event })), rows.next]);
          if ('row' in came) {
            if (came.row.done === true) {
              rows.stop();
              rows = undefined;
              this.#rowsEnded = true;
            } else {
              this.#take(came.row.value);
              rows.next = rows.reader.next().then((row) => ({ row }));
            }
            yield* this.#taken();
            continue;
          }
          result = came.event;
        } else {
          rows?.stop();
          rows = undefined;
          result = await next;
        }
        next = undefined;
        if (result.done === true) return;
        await this.#hear(result.value);
        yield* this.#taken();
      }
    } finally {
      rows?.stop();
    }
  }

  #rowsEnded = false;
  #head = 0;

  /** Calls are under way that may write rows, and all that was recorded before is read. */
  get #needsRows(): boolean {
    return this.#chunks.hasOpenCalls && !this.#rowsEnded && this.#head >= this.#options.head;
  }

  #rowReader(signal: AbortSignal): { reader: AsyncGenerator<StreamRow, void>; next: Promise<Next>; stop(): void } {
    const left = new AbortController();
    const reader = this.#options
      .runOf(this.#run)
      .stream(DATA, { from: this.#rowsSeen + 1, signal: AbortSignal.any([signal, left.signal]) });
    const next = reader.next().then((row) => ({ row }));
    next.catch(() => {});
    return { reader, next, stop: () => left.abort() };
  }

  async #hear(event: RunEvent): Promise<void> {
    if (event.path === undefined) {
      this.#head = event.seq;
      if (event.identity.run !== this.#run) this.#nextRun(event.identity.run);
      if (event.type === 'tool.completed' || event.type === 'tool.failed') await this.#rowsOf(event);
    }
    if (this.#isMuted) this.#maybeGoOn(event);
    this.#chunks.hear(event);
  }

  #nextRun(run: string): void {
    for (const row of this.#rows.splice(0)) this.#chunks.data(row);
    this.#run = run;
    this.#rowsSeen = 0;
    this.#rowsKnownUpTo = 0;
    this.#rowsEnded = false;
  }

  /** From here on the client does not know what comes of its answer. */
  #maybeGoOn(event: RunEvent): void {
    const { target } = this.#options;
    if (!('goesOnAt' in target)) return;
    const { tokens, from } = target.goesOnAt;
    const isAnswer = event.type === 'pause.resumed' && tokens.has(event.token);
    if (!isAnswer && (tokens.size > 0 || event.path !== undefined || event.seq < from)) return;
    this.#isMuted = false;
    this.#start(target.message);
  }

  #start(messageId: string): void {
    const { run, metadata } = this.#options;
    this.#send({ type: 'start', messageId, messageMetadata: { run: run.id, ...metadata } });
  }

  /** Rows of a call are stored before its end is. */
  async #rowsOf({ seq, step, call }: Extract<RunEvent, { type: 'tool.completed' | 'tool.failed' }>): Promise<void> {
    if (seq > this.#rowsKnownUpTo) {
      const upTo = Math.max(seq, this.#rowsKnownUpTo === 0 ? this.#options.head : 0);
      for await (const row of this.#options.runOf(this.#run).stream(DATA, { from: this.#rowsSeen + 1, follow: false }))
        this.#take(row);
      this.#rowsKnownUpTo = upTo;
    }
    for (const row of this.#rows.filter((each) => each.step === step && each.call === call)) {
      this.#rows.splice(this.#rows.indexOf(row), 1);
      this.#chunks.data(row);
    }
  }

  #take(row: StreamRow): void {
    if (row.index <= this.#rowsSeen) return;
    this.#rowsSeen = row.index;
    if (this.#chunks.isOpen(row.step, row.call)) this.#chunks.data(row);
    else this.#rows.push(row);
  }

  #end(): void {
    const { conflict } = this.#options;
    if (this.#isOver) {
      this.#send({ type: 'finish', finishReason: 'stop' });
    } else {
      for (const row of this.#rows.splice(0)) this.#chunks.data(row);
      const last = this.#chunks.end();
      const { target } = this.#options;
      // Nothing has come of the answers: the client still has to hear that it is not to wait.
      if (this.#isMuted && 'goesOnAt' in target) this.#start(target.message);
      if (last !== undefined) this.#send(last);
    }
    if (conflict !== undefined) this.#send({ type: 'error', errorText: conflict });
  }

  #send(chunk: UIChunk): void {
    const json = JSON.stringify(chunk);
    this.#out = this.#out === '' ? json : `${this.#out}\n\ndata: ${json}`;
  }

  *#taken(): Generator<ServerEvent, void> {
    if (this.#out === '') return;
    const data = this.#out;
    this.#out = '';
    yield { data };
  }
}

/** Reads on until the run has heard a message of its user, or has ended. @returns whether it has heard it. */
export async function untilHeard(run: Run, message: string, signal: AbortSignal): Promise<boolean> {
  try {
    for await (const event of run.events({ overPauses: true, signal })) {
      const control = 'control' in event ? event.control : undefined;
      if (control?.turnMessage?.id === message && event.type !== 'control.received')
        return event.type === 'control.applied';
    }
  } catch (error) {
    if (!PilotageError.is(error, 'run_not_found')) throw error;
  }
  return false;
}
