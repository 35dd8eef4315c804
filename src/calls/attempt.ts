/**
 * Something started that must not outlive its owner: a tool's attempts or a planner's move. An attempt ends with its
 * value, its error, its time limit, or, some grace after an abort that it ignores, as abandoned. What comes later is late.
 */
import { type Clock, fieldOf, LazySignal, limitTime, PilotageError, Thrown } from '#core';

export type Settled<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'thrown'; readonly error: Thrown }
  /** Its time limit has passed. `isAtWork`: it goes on all the same. `error`: what it threw when it was aborted. */
  | { readonly kind: 'timeout'; readonly isAtWork: boolean; readonly error?: Thrown }
  | { readonly kind: 'abandoned' };

/** How long aborted work is heard out whose result says what has happened. */
const ABORT_GRACE_MS = 1_000;
/** How long other work may take to notice that it was aborted. Nobody waits for work that does not listen. */
const NOTICE_MS = 50;

export interface AttemptOptions {
  /** Without it the attempt may take for ever. */
  readonly timeoutMs?: number;
  /** What aborts it. By default each attempt has its own, because a time limit aborts the one before. */
  readonly signal?: LazySignal;
  /** After its time limit, or an abort, it may take the whole grace to end: a value that comes by then counts. */
  readonly isHeardOut?: boolean;
  /** True: the attempt finds out the outcome of an earlier one, so that `dismiss` lets it end. */
  readonly isLookUp?: boolean;
}

export class Attempt {
  readonly clock: Clock;
  /** Called for a value that comes after it was given up. */
  readonly onLate: () => void;
  #current: LazySignal | undefined;
  #aborted: { readonly reason: unknown } | undefined;
  #dismissed: { readonly reason: unknown } | undefined;
  #isLookUp = false;
  #isPatient = false;
  #hearing: { giveUp(graceMs: number): void } | undefined;
  #endPause: (() => void) | undefined;

  constructor(clock: Clock, onLate: () => void) {
    this.clock = clock;
    this.onLate = onLate;
  }

  /** Set once the owner has aborted; a time limit does not set it. */
  get aborted(): boolean {
    return (this.#aborted ?? this.#dismissed) !== undefined;
  }

  /** Its result is not wanted any more. */
  dismiss(reason: unknown): void {
    if (this.aborted) return;
    this.#dismissed = { reason };
    if (this.#isLookUp) return;
    this.#current?.abort(reason);
    this.#giveUp();
  }

  /** @param isPatient any work has the whole grace to end: what it has done by then is kept. */
  abort(reason: unknown, isPatient = false): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = { reason };
    this.#isPatient = isPatient;
    this.#current?.abort(reason);
    this.#giveUp();
  }

  /**
   * Runs `work` once, and gives what `conclude` makes of how it settled: at once, when the work was over at once. Throws, or
   * rejects, only when `conclude` throws.
   */
  run<T, R>(
    work: (signal: LazySignal) => T | PromiseLike<T>,
    conclude: (settled: Settled<T>) => R | Promise<R>,
    options: AttemptOptions = NO_OPTIONS,
  ): R | Promise<R> {
    const { signal = new LazySignal(), isLookUp = false } = options;
    this.#current = signal;
    this.#isLookUp = isLookUp;
    const stopped = isLookUp ? this.#aborted : (this.#aborted ?? this.#dismissed);
    if (stopped !== undefined) signal.abort(stopped.reason);
    const begun = begin(work, signal);
    if ('kind' in begun) return conclude(begun);
    return new Promise((resolve, reject) => {
      const hearing = new Hearing(this, { options, signal, conclude, resolve, reject });
      hearing.hear(begun.made);
      if (!hearing.isOpen) return;
      if (stopped !== undefined) return hearing.giveUp(this.#graceMs);
      this.#hearing = hearing;
      if (options.timeoutMs !== undefined) hearing.limit(options.timeoutMs);
    });
  }

  /** What was heard has settled. */
  heard(): void {
    this.#hearing = undefined;
  }

  #giveUp(): void {
    if (this.#hearing === undefined) this.#endPause?.();
    else this.#hearing.giveUp(this.#graceMs);
  }

  get #graceMs(): number {
    return this.#isLookUp || this.#isPatient ? ABORT_GRACE_MS : NOTICE_MS;
  }

  /** Waits, or until aborted. */
  pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.aborted) return resolve();
      const cancelTimer = this.clock.after(delayMs, () => {
        this.#endPause = undefined;
        resolve();
      });
      this.#endPause = () => {
        cancelTimer();
        this.#endPause = undefined;
        resolve();
      };
    });
  }
}

const NO_OPTIONS: AttemptOptions = {};

/** A wait for work that is under way: its options, and who waits. */
interface Wait<T, R> {
  readonly options: AttemptOptions;
  readonly signal: LazySignal;
  readonly conclude: (settled: Settled<T>) => R | Promise<R>;
  readonly resolve: (result: R | Promise<R>) => void;
  readonly reject: (error: unknown) => void;
}

/** Listens to work that is under way. The first of its value, its error, its time limit and the end of a grace is how it settled. */
class Hearing<T, R> {
  readonly #attempt: Attempt;
  readonly #wait: Wait<T, R>;
  #isLate = false;
  #cancelTimer: (() => void) | undefined;
  isOpen = true;

  constructor(attempt: Attempt, wait: Wait<T, R>) {
    this.#attempt = attempt;
    this.#wait = wait;
  }

  hear(made: PromiseLike<T>): void {
    const failed = (thrown: unknown): void => {
      const error = Thrown.of(thrown);
      this.#end(this.#isLate ? { kind: 'timeout', isAtWork: false, error } : { kind: 'thrown', error });
    };
    try {
      made.then((value) => this.#end({ kind: 'value', value }), failed);
    } catch (error) {
      failed(error);
    }
  }

  /** From now on its time limit counts. */
  limit(timeoutMs: number): void {
    const { options, signal } = this.#wait;
    const { isHeardOut = false } = options;
    const { clock } = this.#attempt;
    this.#cancelTimer = limitTime(clock, timeoutMs, () => {
      this.#isLate = isHeardOut;
      if (isHeardOut) this.#cancelTimer = clock.after(ABORT_GRACE_MS, () => this.#timeOut());
      else this.#timeOut();
      signal.abort(new PilotageError('tool_timeout', `The time limit of ${timeoutMs} ms has passed.`));
    });
  }

  /** Aborts the attempt, which then has `graceMs` to end, or more when it is heard out. */
  giveUp(graceMs: number): void {
    this.#cancelTimer?.();
    const leftMs = this.#wait.options.isHeardOut === true ? ABORT_GRACE_MS : graceMs;
    this.#cancelTimer = this.#attempt.clock.after(leftMs, () => this.#end({ kind: 'abandoned' }));
  }

  #timeOut(): void {
    this.#end({ kind: 'timeout', isAtWork: true });
  }

  #end(settled: Settled<T>): void {
    if (!this.isOpen) {
      // What fails after it was given up has nothing to lose.
      if (settled.kind === 'value') this.#attempt.onLate();
      return;
    }
    this.isOpen = false;
    this.#cancelTimer?.();
    this.#attempt.heard();
    const { conclude, resolve, reject } = this.#wait;
    try {
      resolve(conclude(settled));
    } catch (error) {
      reject(error);
    }
  }
}

/** Starts the work: how it ended at once, or what goes on. */
function begin<T>(
  work: (signal: LazySignal) => T | PromiseLike<T>,
  signal: LazySignal,
): Settled<T> | { readonly made: PromiseLike<T> } {
  try {
    const made = work(signal);
    return isThenable(made) ? { made } : { kind: 'value', value: made };
  } catch (error) {
    return { kind: 'thrown', error: Thrown.of(error) };
  }
}

/** What throws when it is asked is a value: why it cannot be kept is found out where values are read. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return (typeof value === 'object' || typeof value === 'function') && typeof fieldOf(value, 'then') === 'function';
}
