/** Streams one message of a chat to a client, from its start or from an answer on: first what is recorded, then what happens. */
import { isRecorded, PilotageError, type RunEvent, type StreamRow } from '#core';
import { type HeardWords, type TurnChunkOptions, TurnChunks, type TurnListener, type UIChunk } from '#messages';
import { DATA_STREAM, type Run } from '#runtime';
import type { ServerEvent } from '../event-stream.ts';
import { type HeldCalls, MissedCalls } from './missed-calls.ts';

/** Selects a message of a turn. */
export type Target =
  /** The answer to a message of the user, by its id. */
  | { readonly after: string }
  /** This message, from the answer to one of the questions on; without questions, from this position of the journal on. */
  | { readonly message: string; readonly goesOnAt: GoesOnAt }
  /** This message, from its start. */
  | { readonly message: string };

interface GoesOnAt {
  readonly tokens: ReadonlySet<string>;
  readonly from: number;
  readonly held: HeldCalls;
}

export interface FeedOptions extends TurnChunkOptions {
  /** The run with which the turn began. */
  readonly run: Run;
  /** The id of the message with which the turn began. */
  readonly begunBy: string | undefined;
  /** The last position of the run when the request came. */
  readonly head: number;
  /** Gives a handle of this run, or of a run that continues it, by its id. */
  readonly runOf: (id: string) => Run;
  readonly target: Target;
  /** Told at the end of the stream, as an error. */
  readonly conflict?: string;
}

const DONE: ServerEvent = { data: '[DONE]' };
/** Ends a stream in which nothing is told. */
export const NOTHING_TOLD: UIChunk = { type: 'finish', finishReason: 'other' };

const ROW = 'row' as const;
interface RowReader {
  readonly reader: AsyncGenerator<StreamRow, void>;
  next: Promise<{ readonly row: IteratorResult<StreamRow, void> }>;
  stop(): void;
}

export class Feed implements TurnListener {
  readonly #options: FeedOptions;
  readonly #chunks: TurnChunks;
  /** The id of the message that is sent, once it is known. */
  #message: string | undefined;
  #isReached = false;
  #isBegun = false;
  #isMuted: boolean;
  #isOver = false;
  readonly #missed: MissedCalls | undefined;
  /** The chunks that are to be sent next, in the form of the stream. */
  #out = '';
  readonly #rows: StreamRow[] = [];
  #rowsSeen = 0;
  #rowsKnownUpTo = 0;
  /** The run that is read now. */
  #run = '';

  constructor(options: FeedOptions) {
    this.#options = options;
    const { target } = options;
    this.#message = 'message' in target ? target.message : undefined;
    this.#isMuted = 'goesOnAt' in target;
    this.#missed = 'goesOnAt' in target ? new MissedCalls(target.goesOnAt.held) : undefined;
    this.#chunks = new TurnChunks(this, options);
  }

  /** Whether a chunk of the message has come. */
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
    else this.#missed?.hear(chunk);
  }

  heard({ place, control }: HeardWords): void {
    const { target, begunBy, run } = this.#options;
    if (this.#isBegun) this.#isOver = true;
    const id = control === undefined ? begunBy : control.turnMessage?.id;
    if ('after' in target && target.after === (id ?? `${run.id}:${place}`)) this.#isReached = true;
  }

  /**
   * Makes one promise for each batch of chunks and no more, since there are many tokens.
   * @param signal is aborted when the reader is gone.
   */
  events(signal: AbortSignal): AsyncIterableIterator<ServerEvent> {
    const iterator: AsyncIterableIterator<ServerEvent> = {
      next: () => this.#next(signal),
      return: async () => {
        this.#rowsNow?.stop();
        await this.#events?.return();
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]: () => iterator,
    };
    return iterator;
  }

  async #next(signal: AbortSignal): Promise<IteratorResult<ServerEvent, undefined>> {
    while (this.#out === '' && !this.#isDone) {
      const result = this.#isOver ? undefined : await this.#nextEvent(signal);
      if (result === ROW) continue;
      if (result === undefined || result.done === true) {
        if (signal.aborted) return { done: true, value: undefined };
        this.#isDone = true;
        this.#end();
      } else {
        const heard = this.#hear(result.value);
        if (heard !== undefined) await heard;
      }
    }
    if (this.#out !== '') {
      const data = this.#out;
      this.#out = '';
      return { done: false, value: { data } };
    }
    if (this.#isClosed) return { done: true, value: undefined };
    this.#isClosed = true;
    this.#rowsNow?.stop();
    void this.#events?.return();
    return { done: false, value: DONE };
  }

  #nextEvent(signal: AbortSignal): Promise<IteratorResult<RunEvent, void> | typeof ROW> {
    // Most runs have no tasks, and reading them without is cheaper.
    this.#events ??= this.#options.run.events({ tasks: this.#hasTasks, signal });
    this.#coming ??= this.#events.next();
    if (this.#needsRows) return this.#eventOrRow(this.#coming, signal);
    const coming = this.#coming;
    this.#coming = undefined;
    return coming;
  }

  async #eventOrRow(coming: Promise<IteratorResult<RunEvent, void>>, signal: AbortSignal) {
    this.#rowsNow ??= this.#rowReader(signal);
    const came = await Promise.race([coming.then((event) => ({ event })), this.#rowsNow.next]);
    if ('event' in came) {
      this.#coming = undefined;
      return came.event;
    }
    if (came.row.done === true) {
      this.#rowsNow.stop();
      this.#rowsNow = undefined;
      this.#rowsEnded = true;
    } else {
      this.#take(came.row.value);
      this.#rowsNow.next = this.#rowsNow.reader.next().then((row) => ({ row }));
      this.#rowsNow.next.catch(() => {});
    }
    return ROW;
  }

  #events: AsyncGenerator<RunEvent, void> | undefined;
  #coming: Promise<IteratorResult<RunEvent, void>> | undefined;
  #rowsNow: RowReader | undefined;
  #hasTasks = false;
  #isDone = false;
  #isClosed = false;
  #rowsEnded = false;
  #head = 0;
  #knownUpTo = 0;
  /** Runs of the turn that other runs have continued. */
  readonly #runs = new Set<string>();

  /** Whether calls are open that may write rows, once all that was recorded before is read. */
  get #needsRows(): boolean {
    return this.#chunks.hasOpenCalls && !this.#rowsEnded && this.#head >= this.#options.head;
  }

  #rowReader(signal: AbortSignal): RowReader {
    const left = new AbortController();
    const reader = this.#options
      .runOf(this.#run)
      .stream(DATA_STREAM, { from: this.#rowsSeen + 1, signal: AbortSignal.any([signal, left.signal]) });
    const next = reader.next().then((row) => ({ row }));
    next.catch(() => {});
    return { reader, next, stop: () => left.abort() };
  }

  /** @returns a promise when something has to be asked or read first. */
  #hear(event: RunEvent): Promise<void> | undefined {
    if (event.type === 'token' && event.path === undefined) {
      this.#chunks.hear(event);
      return undefined;
    }
    if (event.path === undefined) {
      if (this.#isKnown(event)) return undefined;
      if (event.identity.run !== this.#run) {
        this.#nextRun(event.identity.run);
      }
      return this.#hearOwn(event);
    }
    this.#tell(event);
    return undefined;
  }

  #hearOwn(event: RunEvent): Promise<void> | undefined {
    this.#head = event.seq;
    if (event.type === 'task.spawned' && !this.#hasTasks) this.#readTasks();
    if (event.type === 'tool.completed' || event.type === 'tool.failed')
      return this.#rowsOf(event).then(() => this.#tell(event));
    this.#tell(event);
    return undefined;
  }

  #tell(event: RunEvent): void {
    if (this.#isMuted) this.#maybeGoOn(event);
    this.#chunks.hear(event);
    if (!this.#chunks.hasOpenCalls) {
      this.#rowsNow?.stop();
      this.#rowsNow = undefined;
    }
  }

  /** From now on events of tasks are read too: the run is read from its beginning, and the events that were heard are skipped. */
  #readTasks(): void {
    this.#hasTasks = true;
    void this.#events?.return();
    this.#events = undefined;
    this.#coming = undefined;
    this.#knownUpTo = this.#head;
  }

  #isKnown(event: RunEvent): boolean {
    const { seq, identity } = event;
    if (this.#runs.has(identity.run)) return true;
    return identity.run === this.#run && seq <= this.#knownUpTo && isRecorded(event);
  }

  #nextRun(run: string): void {
    if (this.#head > 0) this.#runs.add(this.#run);
    this.#knownUpTo = 0;
    for (const row of this.#rows.splice(0)) this.#chunks.data(row);
    this.#run = run;
    this.#rowsSeen = 0;
    this.#rowsKnownUpTo = 0;
    this.#rowsEnded = false;
  }

  /** Begins to send where the client's answer was heard: it has what came before. */
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
    for (const chunk of this.#missed?.take() ?? []) this.#send(chunk);
  }

  /** Tells the rows of a call before its end, since they were stored before it. */
  async #rowsOf({ seq, step, call }: Extract<RunEvent, { type: 'tool.completed' | 'tool.failed' }>): Promise<void> {
    if (seq > this.#rowsKnownUpTo) {
      const upTo = Math.max(seq, this.#rowsKnownUpTo === 0 ? this.#options.head : 0);
      const run = this.#options.runOf(this.#run);
      for await (const row of run.stream(DATA_STREAM, { from: this.#rowsSeen + 1, follow: false })) this.#take(row);
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
      // A turn without an end goes on with a run that may not be read.
      const last = this.#chunks.end() ?? NOTHING_TOLD;
      const { target } = this.#options;
      // Nothing has come of the answers. The client must still hear that the stream has ended.
      if (this.#isMuted && 'goesOnAt' in target) this.#start(target.message);
      if (last !== undefined) this.#send(last);
    }
    if (conflict !== undefined) this.#send({ type: 'error', errorText: conflict });
  }

  #send(chunk: UIChunk): void {
    const json = JSON.stringify(chunk);
    this.#out = this.#out === '' ? json : `${this.#out}\n\ndata: ${json}`;
  }
}

/** Reads on until the run has heard a message of its user, or has ended. @returns whether the message was heard. */
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
