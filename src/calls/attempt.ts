/**
 * Something started that must not outlive its owner: a tool's attempts or a planner's move. An attempt ends with its
 * value, its error, its time limit, or, some grace after an abort that it ignores, as abandoned. What comes later is late.
 */
import { type Clock, fieldOf, LazySignal, limitTime, PilotageError, steadyMs, Thrown } from '#core';

export type Settled<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'thrown'; readonly error: Thrown }
  /** Its time limit has passed. `isAtWork`: it goes on all the same. `error`: what it threw when it was aborted. */
  | { readonly kind: 'timeout'; readonly isAtWork: boolean; readonly limit: PassedLimit; readonly error?: Thrown }
  | { readonly kind: 'abandoned' };

/** The time limit that has passed, by the name of its option. */
export interface PassedLimit {
  readonly limit: 'timeoutMs' | keyof SilenceLimits;
  readonly ms: number;
}

/** How long work may show no sign of life: that it sends a piece of its result, or writes to a stream. */
interface SilenceLimits {
  /** Until the first one. */
  readonly firstByteMs?: number;
  /** From one to the next, and until the first one where `firstByteMs` does not say. */
  readonly idleMs?: number;
}

/** How long aborted work is heard out whose result says what has happened. */
const ABORT_GRACE_MS = 1_000;
/** How long other work may take to notice that it was aborted. Nobody waits for work that does not listen. */
const NOTICE_MS = 50;

export interface AttemptOptions {
  /** Without it the attempt may take for ever. */
  readonly timeoutMs?: number;
  readonly silence?: SilenceLimits;
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
  #hearing:
    | Pick<Hearing<unknown, unknown>, 'giveUp' | 'spoke' | 'park' | 'fail' | 'stopLimit' | 'startLimit'>
    | undefined;
  /** The work that runs now has shown a sign of life. */
  #hasSpoken = false;
  #endPause: (() => void) | undefined;

  constructor(clock: Clock, onLate: () => void) {
    this.clock = clock;
    this.onLate = onLate;
  }

  /** Set once the owner has aborted; a time limit does not set it. */
  get aborted(): boolean {
    return (this.#aborted ?? this.#dismissed) !== undefined;
  }

  /** Set once not even a look-up goes on: that its result is not wanted does not stop it. */
  get isLookUpOver(): boolean {
    return this.#aborted !== undefined;
  }

  get hasSpoken(): boolean {
    return this.#hasSpoken;
  }

  /** The work shows that it goes on. */
  spoke(): void {
    this.#hasSpoken = true;
    this.#hearing?.spoke();
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
    this.#hasSpoken = false;
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
      const { timeoutMs, silence, isHeardOut = false } = options;
      const hearing = new Hearing(this, signal, isHeardOut, conclude, resolve);
      hearing.hear(made);
      if (!hearing.isOpen) return;
      if (signal.aborted) return hearing.giveUp(this.#graceMs);
      this.#hearing = hearing;
      if (timeoutMs !== undefined) hearing.limit(timeoutMs);
      if (silence !== undefined) hearing.listen(silence);
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
   * @returns false when it has ended already.
   */
  park(): boolean {
    return this.#hearing?.park() === true;
  }

  /** It waits as above, but may not be run again: it ends there with what a work of it has thrown. */
  fail(error: Thrown): void {
    this.#hearing?.fail(error);
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
      if (this.#isLookUp ? this.isLookUpOver : this.aborted) return resolve();
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
  /** How much of the work is not to be timed now. */
  #untimed = 0;
  #silence: SilenceLimits | undefined;
  #cancelSilence: (() => void) | undefined;
  /** When it began, or has last shown a sign of life: by the steady clock. */
  #spokeAt = 0;
  #awaitsFirst = true;
  /** The limit that has passed. */
  #limit: PassedLimit | undefined;
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
    const failed = (thrown: unknown): void => this.#failed(Thrown.of(thrown));
    try {
      made.then((value) => this.#end({ kind: 'value', value }), failed);
    } catch (error) {
      failed(error);
    }
  }

  /** No limit counts until each that has stopped them has started them again. The grace of one that was aborted goes on. */
  stopLimit(): void {
    this.#untimed += 1;
    if (this.#signal.aborted) return;
    this.#cancelTimer?.();
    this.#cancelSilence?.();
    this.#cancelSilence = undefined;
  }

  startLimit(): void {
    this.#untimed -= 1;
    if (this.#untimed > 0 || !this.isOpen || this.#signal.aborted) return;
    if (this.#limitMs !== undefined) this.limit(this.#limitMs);
    if (this.#silence !== undefined) this.listen(this.#silence);
  }

  /** From now on its time limit counts. */
  limit(timeoutMs: number): void {
    this.#limitMs = timeoutMs;
    const { clock } = this.#attempt;
    this.#cancelTimer = limitTime(clock, timeoutMs, () => this.#passed({ limit: 'timeoutMs', ms: timeoutMs }));
  }

  /** From now on it must show signs of life. */
  listen(silence: SilenceLimits): void {
    this.#silence = silence;
    this.#spokeAt = steadyMs(this.#attempt.clock);
    this.#hush(this.#spokeAt);
  }

  spoke(): void {
    if (this.#silence === undefined) return;
    const isFirst = this.#cancelSilence === undefined || this.#awaitsFirst;
    this.#awaitsFirst = false;
    this.#spokeAt = steadyMs(this.#attempt.clock);
    if (this.#untimed > 0) return;
    // One timer for many signs: it looks when the last one was.
    if (isFirst) this.#hush(this.#spokeAt);
  }

  #hush(now: number): void {
    this.#cancelSilence?.();
    this.#cancelSilence = undefined;
    const { firstByteMs, idleMs } = this.#silence ?? {};
    this.#awaitsFirst = !this.#attempt.hasSpoken;
    const isFirst = this.#awaitsFirst && firstByteMs !== undefined;
    const ms = isFirst ? firstByteMs : idleMs;
    if (ms === undefined) return;
    const { clock } = this.#attempt;
    this.#cancelSilence = limitTime(clock, this.#spokeAt + ms - now, () => {
      const at = steadyMs(clock);
      if (at - this.#spokeAt < ms) this.#hush(at);
      else this.#passed({ limit: isFirst ? 'firstByteMs' : 'idleMs', ms });
    });
  }

  #passed(limit: PassedLimit): void {
    if (this.#limit !== undefined) return;
    const { clock } = this.#attempt;
    this.#limit = limit;
    this.#stopTimers();
    this.#isLate = this.#isHeardOut;
    if (this.#isHeardOut) this.#cancelTimer = clock.after(ABORT_GRACE_MS, () => this.#timeOut(limit));
    else this.#timeOut(limit);
    this.#signal.abort(new PilotageError('tool_timeout', whyAborted(limit)));
  }

  #stopTimers(): void {
    this.#cancelTimer?.();
    this.#cancelSilence?.();
    this.#silence = undefined;
  }

  /** Aborts the attempt, which then has `graceMs` to end, or more when it is heard out. */
  giveUp(graceMs: number): void {
    this.#stopTimers();
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

  fail(error: Thrown): void {
    if (!this.isOpen) return;
    this.#failed(error);
    this.#signal.abort(new PilotageError('cancelled', 'A part of the work of the call failed, and the call with it.'));
  }

  #failed(error: Thrown): void {
    this.#end(
      this.#isLate && this.#limit !== undefined
        ? { kind: 'timeout', isAtWork: false, limit: this.#limit, error }
        : { kind: 'thrown', error },
    );
  }

  #timeOut(limit: PassedLimit): void {
    this.#end({ kind: 'timeout', isAtWork: true, limit });
  }

  #end(settled: Settled<T>): void {
    if (!this.isOpen) {
      // What fails after it was given up has nothing to lose.
      if (settled.kind === 'value') this.#attempt.onLate();
      return;
    }
    this.isOpen = false;
    this.#stopTimers();
    this.#attempt.heard();
    try {
      this.#resolve(this.#conclude(settled));
    } catch (error) {
      this.#resolve(Promise.reject(error));
    }
  }
}

function whyAborted(passed: PassedLimit): string {
  return passed.limit === 'timeoutMs'
    ? `The time limit of ${passed.ms} ms has passed.`
    : `The call ${whatPassed(passed)}.`;
}

/** What was not done in time, behind the name of who had to do it. */
export function whatPassed({ limit, ms }: PassedLimit): string {
  if (limit === 'idleMs') return `said nothing for ${ms} ms`;
  return limit === 'firstByteMs' ? `said nothing in its first ${ms} ms` : `did not end within ${ms} ms`;
}

/** What throws when it is asked is a value: why it cannot be kept is found out where values are read. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return (typeof value === 'object' || typeof value === 'function') && typeof fieldOf(value, 'then') === 'function';
}
