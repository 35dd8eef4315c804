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
  #hearing: Pick<Hearing<unknown, unknown>, 'giveUp' | 'park' | 'stopLimit' | 'startLimit'> | undefined;
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
    let made: T | PromiseLike<T>;
    try {
      made = work(signal);
    } catch (error) {
      return conclude({ kind: 'thrown', error: Thrown.of(error) });
    }
    return isThenable(made) ? this.#hear(made, signal, conclude, options) : conclude({ kind: 'value', value: made });
  }

  #hear<T, R>(
    made: PromiseLike<T>,
    signal: LazySignal,
    conclude: (settled: Settled<T>) => R | Promise<R>,
    options: AttemptOptions,
  ): Promise<R> {
    return new Promise((resolve) => {
      const { timeoutMs, isHeardOut = false } = options;
      const hearing = new Hearing(this, signal, isHeardOut, conclude, resolve);
      hearing.hear(made);
      if (!hearing.isOpen) return;
      if (signal.aborted) return hearing.giveUp(this.#graceMs);
      this.#hearing = hearing;
      if (timeoutMs !== undefined) hearing.limit(timeoutMs);
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

  /**
   * It waits for something that takes no process: it is abandoned there, and whatever of it is under way is stopped.
   * @returns false when it has ended already, or was aborted.
   */
  park(): boolean {
    return !this.aborted && this.#hearing?.park() === true;
  }

  /** Its time limit begins anew when the work has ended: it waits for somebody meanwhile. */
  async untimed<T>(work: Promise<T>): Promise<T> {
    // It is heard only when the function that asks has returned its promise.
    await undefined;
    const hearing = this.#hearing;
    hearing?.stopLimit();
    try {
      return await work;
    } finally {
      hearing?.startLimit();
    }
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

/** Listens to work that is under way. The first of its value, its error, its time limit and the end of a grace is how it settled. */
class Hearing<T, R> {
  readonly #attempt: Attempt;
  readonly #signal: LazySignal;
  readonly #isHeardOut: boolean;
  readonly #conclude: (settled: Settled<T>) => R | Promise<R>;
  readonly #resolve: (result: R | Promise<R>) => void;
  #isLate = false;
  #cancelTimer: (() => void) | undefined;
  #limitMs: number | undefined;
  isOpen = true;

  constructor(
    attempt: Attempt,
    signal: LazySignal,
    isHeardOut: boolean,
    conclude: (settled: Settled<T>) => R | Promise<R>,
    resolve: (result: R | Promise<R>) => void,
  ) {
    this.#attempt = attempt;
    this.#signal = signal;
    this.#isHeardOut = isHeardOut;
    this.#conclude = conclude;
    this.#resolve = resolve;
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

  stopLimit(): void {
    this.#cancelTimer?.();
  }

  startLimit(): void {
    if (this.isOpen && this.#limitMs !== undefined && !this.#signal.aborted) this.limit(this.#limitMs);
  }

  /** From now on its time limit counts. */
  limit(timeoutMs: number): void {
    this.#limitMs = timeoutMs;
    const { clock } = this.#attempt;
    this.#cancelTimer = limitTime(clock, timeoutMs, () => {
      this.#isLate = this.#isHeardOut;
      if (this.#isHeardOut) this.#cancelTimer = clock.after(ABORT_GRACE_MS, () => this.#timeOut());
      else this.#timeOut();
      this.#signal.abort(new PilotageError('tool_timeout', `The time limit of ${timeoutMs} ms has passed.`));
    });
  }

  /** Aborts the attempt, which then has `graceMs` to end, or more when it is heard out. */
  giveUp(graceMs: number): void {
    this.#cancelTimer?.();
    const leftMs = this.#isHeardOut ? ABORT_GRACE_MS : graceMs;
    this.#cancelTimer = this.#attempt.clock.after(leftMs, () => this.#end({ kind: 'abandoned' }));
  }

  park(): boolean {
    if (!this.isOpen) return false;
    this.#end({ kind: 'abandoned' });
    const message = 'The call waits; its function runs again when it goes on.';
    this.#signal.abort(new PilotageError('cancelled', message, { data: { waits: true } }));
    return true;
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
    try {
      this.#resolve(this.#conclude(settled));
    } catch (error) {
      this.#resolve(Promise.reject(error));
    }
  }
}

/** What throws when it is asked is a value: why it cannot be kept is found out where values are read. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return (typeof value === 'object' || typeof value === 'function') && typeof fieldOf(value, 'then') === 'function';
}
