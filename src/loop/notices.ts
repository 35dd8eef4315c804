/** Tells the readers of a run, in this process, what its driver does. Nothing is made when nobody listens. */
import type { Entry, EventPayloads, SpokenDelta } from '#core';
import { Said } from './said.ts';

export type Notice =
  | { readonly type: 'entry'; readonly entry: Entry }
  | { readonly type: 'delta'; readonly step: number; readonly delta: SpokenDelta; readonly offset: number }
  /** How a task of the run has come on. */
  | { readonly type: 'progress'; readonly progress: EventPayloads['task.progress'] }
  /** A piece of what a call of the run, or of a task below it, gives on its way. */
  | { readonly type: 'chunk'; readonly chunk: EventPayloads['tool.chunk'] }
  /** A call's result came after it had been given up. */
  | { readonly type: 'late'; readonly step: number; readonly call: number; readonly tool: string }
  /** This process does not drive the run any more. `error`: because of this. `isEnded`: nobody goes on with it. */
  | { readonly type: 'exit'; readonly error?: unknown; readonly isEnded?: boolean };

interface Listener {
  readonly hear: (notice: Notice) => void;
  readonly tokens: boolean;
  /** False: it only passes on what it hears. */
  readonly isReader: boolean;
}

/** What other processes have to do with what is told here. */
export interface Elsewhere {
  /** They read runs of this journal: any run may be read late then, and planners stream. */
  isReadElsewhere(): boolean;
  /** The run has its first reader of tokens here, or is not driven here any more and still has one. */
  onRead(run: string): void;
  /** It has none any more. */
  onUnread(run: string): void;
}

export class NoticeHub {
  readonly #listeners = new Map<string, Set<Listener>>();
  /** By runs, while their planners stream: a reader that comes in the middle gets it in few pieces. */
  readonly #said = new Map<string, Said>();
  #closed: { readonly error: unknown } | undefined;
  #elsewhere: Elsewhere | undefined;
  #isReadLate = false;

  connect(elsewhere: Elsewhere): void {
    this.#elsewhere = elsewhere;
  }

  /**
   * @param tokens whether deltas and chunks are wanted; while nobody wants them, planners do not stream.
   * @param isReader false for who passes on to other processes what it hears, and so has nobody to tell of faults.
   * @throws the error that the hub was closed with.
   */
  listen(run: string, hear: (notice: Notice) => void, tokens: boolean, isReader = true): () => void {
    if (this.#closed !== undefined) throw this.#closed.error;
    const listeners = this.#listeners.get(run) ?? new Set();
    const listener = { hear, tokens, isReader };
    const isFirst = tokens && !this.wantsTokens(run);
    this.#listeners.set(run, listeners.add(listener));
    if (tokens) this.#tellSaid(run, hear);
    if (isFirst) this.#elsewhere?.onRead(run);
    return () => {
      const isLast = listeners.delete(listener) && tokens && !this.wantsTokens(run);
      // Stopping twice must not remove another listener.
      if (listeners.size === 0 && this.#listeners.get(run) === listeners) this.#listeners.delete(run);
      if (isLast) this.#elsewhere?.onUnread(run);
    };
  }

  hasListeners(run: string): boolean {
    return this.#listeners.has(run);
  }

  /** Whether somebody in this process hears what becomes of the run. */
  hasReaders(run: string): boolean {
    const listeners = this.#listeners.get(run);
    return listeners !== undefined && [...listeners].some(({ isReader }) => isReader);
  }

  wantsTokens(run: string): boolean {
    const listeners = this.#listeners.get(run);
    return listeners !== undefined && [...listeners].some((listener) => listener.tokens);
  }

  /** Somebody wants them now, or may come from another process and want what was said until then. */
  mayWantTokens(run: string): boolean {
    return this.#isReadLate || this.wantsTokens(run) || this.#elsewhere?.isReadElsewhere() === true;
  }

  /** From now on any run may be read late: planners stream. */
  expectReaders(): void {
    this.#isReadLate = true;
  }

  /** The planner is asked for this step here. What was said of it before, here or elsewhere, is void. */
  begins(run: string, step: number): void {
    if (this.#said.get(run)?.step === step) this.#takeBack(run);
  }

  /** Nobody goes on with what was said: whoever goes on with the run asks for the step again. */
  #takeBack(run: string): void {
    const said = this.#said.get(run);
    if (said !== undefined) this.tell(run, { type: 'delta', step: said.step, delta: RESET, offset: 0 });
  }

  /** The text of the step is in its decision. */
  #decided(run: string, entry: Entry): void {
    if (entry.kind === 'moved' && this.#said.get(run)?.step === entry.step) this.#said.delete(run);
  }

  tell(run: string, notice: Notice): void {
    if (notice.type === 'delta') this.#note(run, notice);
    else if (notice.type === 'entry') this.#decided(run, notice.entry);
    else if (notice.type === 'exit') this.#takeBack(run);
    const listeners = this.#listeners.get(run);
    if (listeners === undefined) return;
    for (const listener of listeners) {
      if (listener.tokens || (notice.type !== 'delta' && notice.type !== 'chunk')) listener.hear(notice);
    }
    // Somebody else may go on with it.
    if (notice.type === 'exit' && notice.isEnded !== true && this.wantsTokens(run)) this.#elsewhere?.onRead(run);
  }

  #note(run: string, { step, delta }: Extract<Notice, { type: 'delta' }>): void {
    if (delta.type === 'reset') {
      this.#said.delete(run);
      return;
    }
    let said = this.#said.get(run);
    if (said?.step !== step) {
      said = new Said(step);
      this.#said.set(run, said);
    }
    said.add(delta);
  }

  /** A reader that has got the step's decision already drops it. */
  #tellSaid(run: string, hear: Listener['hear']): void {
    const said = this.#said.get(run);
    if (said === undefined) return;
    for (const delta of said.whole()) hear({ type: 'delta', step: said.step, delta, offset: 0 });
  }

  /** What was said of the open step so far. */
  saidOf(run: string): Said | undefined {
    return this.#said.get(run);
  }

  /** Nobody has to get what was said of the run here. */
  forget(run: string): void {
    this.#said.delete(run);
  }

  /** Nothing comes any more: also for those who wait for runs of other processes. */
  close(error: unknown): void {
    this.#closed = { error };
    for (const run of [...this.#listeners.keys()]) this.tell(run, { type: 'exit', error });
  }
}

const RESET: SpokenDelta = Object.freeze({ type: 'reset' });
