/**
 * Reads a run from any process: its entries from the beginning, then what comes, until the reader has what it waits for.
 * When this process drives the run, notices come straight from the driver, and tokens with them.
 */

import type { Clock, Entry } from '#core';
import type { Journal } from '#journal';
import { applyEntry, nextStep, openState, type RunState } from '#state';
import type { Notice, NoticeHub } from '../loop/notices.ts';
import { readable } from './readable.ts';

/** A slow reader keeps at most this many tokens and chunks waiting; older ones are dropped, and their numbers show the gap. */
const TOKEN_BACKLOG = 4_096;

/** What waits for one reader, of the run and of all tasks below it together. */
export interface Backlog {
  tokens: number;
}

/** What is told of the tasks of a run, between the run's own entries. */
export interface Below<T> {
  /** Whether there is more to tell now. */
  readonly isPending: boolean;
  /** An entry has come of which nothing was told yet: a task of it may speak from now on. */
  hear(entry: Entry): void;
  /** What is told before the entry. */
  before(entry: Entry): AsyncGenerator<T, void>;
  /** The entry was told. `state`: with it. */
  after(entry: Entry, state: RunState): void;
  /** What has come until now. */
  pull(): AsyncGenerator<T, void>;
  close(): void;
}

export interface FollowOptions<T> {
  readonly journal: Journal;
  readonly run: string;
  readonly hub: NoticeHub;
  readonly clock: Clock;
  /** This process drives the run now. */
  readonly isDriven: () => boolean;
  /** Waits for the run on behalf of whoever reads, who may be the code of another run. */
  readonly waiting: <W>(waited: Promise<W>) => Promise<W>;
  /** Tokens and chunks are wanted, so the planner is asked to stream. */
  readonly tokens: boolean;
  /** The state of the run at an entry before those that are wanted. Absent: it is read from its first entry on. */
  readonly begin?: () => Promise<RunState>;
  /** What to yield for an entry. `before` is the state without it; absent for the first. */
  readonly onEntry: (entry: Entry, before: RunState | undefined) => readonly T[];
  /** What to yield for something that is not recorded. */
  readonly onPassing: (notice: Exclude<Notice, { type: 'entry' | 'exit' }>, state: RunState) => readonly T[];
  /** Begins to look at something else for this reader, and gives the way to stop. */
  readonly beside?: (hear: (notice: Notice) => void, state: () => RunState | undefined) => () => void;
  /** What to yield at the end, when nothing more comes. */
  readonly onOver?: (state: RunState) => readonly T[];
  /** It has read all that there is, for now. Called while this process does not drive the run. */
  readonly onCaughtUp?: (state: RunState) => void;
  /** The reader has seen all that it waits for. */
  readonly isOver: (state: RunState) => boolean;
  /** True: the reader has what is there, and waits for nothing. */
  readonly isOnlyThere?: boolean;
  /** Tells of the tasks below the run. */
  readonly below?: (backlog: Backlog, onNews: () => void) => Below<T>;
  /** For a task that is read for a reader of a run above: what waits for that reader, who is told that there is news. */
  readonly backlog?: Backlog;
  readonly onNews?: () => void;
}

export class Follower<T> {
  readonly #options: FollowOptions<T>;
  readonly #backlog: Backlog;
  readonly #below: Below<T> | undefined;
  #queue: Notice[] = [];
  /** What was said in a step that was not read yet: it is told when the journal was read. */
  #ahead: Notice[] = [];
  #stopped = false;
  /** The journal may have more than was read. */
  #dirty = true;
  #wake: (() => void) | undefined;
  #close: (() => void) | undefined;
  #state: RunState | undefined;

  constructor(options: FollowOptions<T>) {
    this.#options = options;
    this.#backlog = options.backlog ?? { tokens: 0 };
    this.#below = options.below?.(this.#backlog, () => this.#news());
  }

  /** The state as of what was yielded last. */
  get state(): RunState | undefined {
    return this.#state;
  }

  /**
   * Listens from the first `next()` on, and then reads: nothing in between is missed.
   * @throws the error that made this process let go of the run.
   */
  async *follow(): AsyncGenerator<T, void> {
    const below = this.#below;
    const leave = this.#options.beside?.(
      (notice) => this.#push(notice),
      () => this.#state,
    );
    try {
      this.open();
      while (!this.#isOver()) {
        if (this.#dirty) yield* this.#history();
        if (below === undefined) yield* this.#live();
        else yield* this.#liveWith(below);
        if (below !== undefined && this.#state?.ending === null) yield* below.pull();
        if (!this.#isOver()) await this.#more();
      }
      this.#caughtUp();
      if (!this.#stopped && this.#state !== undefined) yield* this.#options.onOver?.(this.#state) ?? [];
    } finally {
      leave?.();
      this.close();
    }
  }

  /** Begins to listen, for whoever takes what comes himself. */
  open(): void {
    if (this.#close !== undefined) return;
    const { hub, journal, run, tokens } = this.#options;
    const unlisten = hub.listen(run, (notice) => this.#push(notice), tokens);
    this.#close = unlisten;
    const unwatch = journal.watch(run, () => this.#changed());
    this.#close = () => {
      unwatch();
      unlisten();
    };
  }

  close(): void {
    this.#close?.();
    this.#close = () => {};
    this.#below?.close();
    this.#backlog.tokens -= this.#queue.filter(isToken).length;
    this.#queue = [];
  }

  /** Ends the stream although nothing is over. */
  stop(): void {
    this.#stopped = true;
    this.#wake?.();
  }

  /**
   * What there is now, until the reader has seen all that it waits for.
   * @param upTo no more than up to this position, which the journal is known to have.
   */
  async *take(upTo?: number): AsyncGenerator<T, void> {
    const below = this.#below;
    const isThere = (): boolean =>
      this.#state !== undefined && (this.#options.isOver(this.#state) || this.#state.head >= (upTo ?? Infinity));
    if (below === undefined) return;
    if (this.#state !== undefined) yield* this.#liveWith(below, isThere);
    if (upTo !== undefined && !isThere()) this.#dirty = true;
    while (!isThere() && this.#isPending) {
      if (this.#dirty) yield* this.#history(isThere);
      yield* this.#liveWith(below, isThere);
      if (!isThere()) yield* below.pull();
    }
  }

  /** Everything the journal has beyond what was read. */
  async *#history(isThere?: () => boolean): AsyncGenerator<T, void> {
    this.#dirty = false;
    const { journal, run, begin } = this.#options;
    // What is wrong with the run is found by reading it.
    if (this.#state === undefined && begin !== undefined) this.#state = await begin().catch(() => undefined);
    const below = this.#below;
    const { entries, problem } = await readable(journal, run, (this.#state?.head ?? 0) + 1);
    // What was told until now goes first: what the journal has beyond it came later.
    if (this.#state !== undefined) yield* below === undefined ? this.#live() : this.#liveWith(below, isThere);
    const heardFrom = this.#state === undefined && below === undefined ? this.#heardFrom : Infinity;
    for (const entry of entries) {
      if (entry.seq >= heardFrom) return;
      if (isThere?.() === true) {
        this.#dirty = true;
        return;
      }
      yield* below === undefined ? this.#see(entry) : this.#seeWith(below, entry);
      // A task is listened to from its start on: what it was heard to say stands between the entries that follow.
      if (below !== undefined && entry.seq === 1) yield* this.#liveWith(below, isThere);
    }
    for (const notice of this.#ahead.splice(0)) yield* this.#passes(notice);
    if (problem !== undefined) throw problem;
  }

  /** The first entry that has been heard: it is told when its notice is, behind what was said before it. */
  get #heardFrom(): number {
    return this.#queue.find((notice) => notice.type === 'entry')?.entry.seq ?? Number.POSITIVE_INFINITY;
  }

  *#live(): Generator<T, void> {
    for (const notice of this.#queue.splice(0)) yield* this.#heard(notice);
  }

  /** The same, with what is told of tasks between the entries. */
  async *#liveWith(below: Below<T>, isThere?: () => boolean): AsyncGenerator<T, void> {
    const notices = this.#queue;
    this.#queue = [];
    for (const [index, notice] of notices.entries()) {
      if (isThere?.() === true) {
        this.#queue = [...notices.slice(index), ...this.#queue];
        return;
      }
      yield* notice.type === 'entry' ? this.#seeWith(below, notice.entry) : this.#heard(notice);
    }
  }

  #heard(notice: Notice): readonly T[] {
    if (notice.type === 'entry') return this.#see(notice.entry);
    if (notice.type === 'exit') {
      if (notice.error !== undefined && this.#options.backlog === undefined) throw notice.error;
      if (this.#state === undefined || !this.#options.isOver(this.#state)) this.#dirty = true;
      return [];
    }
    if (isToken(notice)) this.#backlog.tokens -= 1;
    if (this.#state !== undefined && isAhead(notice, this.#state)) {
      this.#ahead.push(notice);
      this.#dirty = true;
      return [];
    }
    return this.#passes(notice);
  }

  #passes(notice: Notice): readonly T[] {
    if (notice.type === 'entry' || notice.type === 'exit') return [];
    // What passes by after the end has come is told to nobody.
    const state = this.#state;
    return state !== undefined && !this.#options.isOver(state) ? this.#options.onPassing(notice, state) : [];
  }

  async *#seeWith(below: Below<T>, entry: Entry): AsyncGenerator<T, void> {
    if (entry.seq !== (this.#state?.head ?? 0) + 1) return yield* this.#see(entry);
    yield* below.before(entry);
    yield* this.#see(entry);
    if (this.#state !== undefined) below.after(entry, this.#state);
  }

  /** What the history has brought already comes again from the driver, and the other way round. */
  #see(entry: Entry): readonly T[] {
    const before = this.#state;
    const next = (before?.head ?? 0) + 1;
    if (entry.seq < next) return [];
    if (entry.seq > next) {
      // Another process wrote what is missing before this one took over.
      this.#dirty = true;
      return [];
    }
    const seen = this.#told(entry, before);
    if (before === undefined) this.#state = openState(entry);
    else applyEntry(before, entry);
    return seen;
  }

  #told(entry: Entry, before: RunState | undefined): readonly T[] {
    try {
      return this.#options.onEntry(entry, before);
    } catch (error) {
      // An entry that cannot stand may yield no event: then the entry itself is the problem.
      if (before !== undefined) applyEntry(before, entry);
      throw error;
    }
  }

  #isOver(): boolean {
    if (this.#stopped) return true;
    const state = this.#state;
    return state !== undefined && !this.#dirty && this.#queue.length === 0 && this.#options.isOver(state);
  }

  get #isPending(): boolean {
    return this.#dirty || this.#queue.length > 0 || this.#below?.isPending === true;
  }

  #push(notice: Notice): void {
    const below = this.#below;
    // A reader of tasks hears their pieces from them.
    if (below !== undefined && notice.type === 'chunk' && notice.chunk.run !== this.#options.run) return;
    this.#queue.push(notice);
    if (isToken(notice)) {
      this.#backlog.tokens += 1;
      if (this.#backlog.tokens > TOKEN_BACKLOG) this.#dropOldestToken();
    }
    if (below !== undefined && notice.type === 'entry') below.hear(notice.entry);
    this.#news();
  }

  #news(): void {
    this.#wake?.();
    this.#options.onNews?.();
  }

  #changed(): void {
    if (this.#options.isDriven()) return;
    this.#dirty = true;
    this.#news();
  }

  #dropOldestToken(): void {
    const oldest = this.#queue.findIndex(isToken);
    if (oldest === -1) return;
    this.#queue.splice(oldest, 1);
    this.#backlog.tokens -= 1;
  }

  async #more(): Promise<void> {
    if (this.#isPending || this.#stopped) return;
    if (this.#options.isOnlyThere === true) return this.stop();
    this.#caughtUp();
    const news = new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    const { isDriven, waiting, clock } = this.#options;
    // The beat of what this process drives keeps it alive.
    await waiting(isDriven() ? news : keptAlive(news, clock));
    this.#wake = undefined;
  }

  #caughtUp(): void {
    if (this.#state !== undefined && !this.#options.isDriven()) this.#options.onCaughtUp?.(this.#state);
  }
}

/**
 * Whether it is of a step that comes behind those that were read. Entries and what is not recorded come by two ways from another process; and
 * whoever begins in the middle of a run hears what is said before the entries until then were read.
 */
function isAhead(notice: Notice, state: RunState): boolean {
  if (notice.type === 'delta') return notice.step > nextStep(state);
  return notice.type === 'chunk' && notice.chunk.run === state.identity.run && notice.chunk.step >= nextStep(state);
}

/** Reads until it is over, or the signal is aborted. @returns the state as of what was read. */
export async function followUntil(options: FollowOptions<never>, signal?: AbortSignal): Promise<RunState | undefined> {
  const follower = new Follower<never>(options);
  const stop = (): void => follower.stop();
  if (signal?.aborted === true) stop();
  signal?.addEventListener('abort', stop);
  try {
    for await (const _ of follower.follow());
  } finally {
    signal?.removeEventListener('abort', stop);
  }
  return follower.state;
}

/** Whether a notice is a token or a chunk. A reset is neither, and is never dropped. */
function isToken(notice: Notice): boolean {
  return notice.type === 'chunk' || (notice.type === 'delta' && notice.delta.type !== 'reset');
}

/** A process that waits for what only others can bring about has nothing else that would keep it alive. */

const FAR_MS = 2 ** 30;

/** The process does not end by itself before this has settled: a timer of its clock holds it, as long as that clock goes on. */
export async function keptAlive<T>(waited: Promise<T>, clock: Pick<Clock, 'after'>): Promise<T> {
  let cancel = (): void => {};
  const hold = (): void => {
    cancel = clock.after(FAR_MS, hold);
  };
  hold();
  try {
    return await waited;
  } finally {
    cancel();
  }
}
