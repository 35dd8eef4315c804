/**
 * Something started that must not outlive its owner: a tool's attempts or a planner's move. An attempt ends with its
 * value, its error, its time limit, or, some grace after an abort that it ignores, as abandoned. What comes later is late.
 */
import { type Clock, fieldOf, PilotageError, Thrown } from '#core';

export type Settled<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'thrown'; readonly error: Thrown }
  /** Its time limit has passed. `isAtWork`: it goes on all the same. */
  | { readonly kind: 'timeout'; readonly isAtWork: boolean }
  | { readonly kind: 'abandoned' };

/** How long aborted work is heard out whose result says what has happened. */
const ABORT_GRACE_MS = 1_000;
/** How long other work may take to notice that it was aborted. Nobody waits for work that does not listen. */
const NOTICE_MS = 50;

/** A signal that is made when somebody asks for it: most tools never do, and an AbortController is not cheap. */
export class LazySignal {
  #controller: AbortController | undefined;
  #aborted: { readonly reason: unknown } | undefined;

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#aborted !== undefined) this.#controller.abort(this.#aborted.reason);
    }
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#aborted ??= { reason };
    this.#controller?.abort(reason);
  }
}

export interface AttemptOptions {
  /** Without it the attempt may take for ever. */
  readonly timeoutMs?: number;
  /** What aborts it. By default each attempt has its own, because a time limit aborts the one before. */
  readonly signal?: LazySignal;
  /** After its time limit, or an abort, it may take the whole grace to end: a value that comes by then counts. */
  readonly isHeardOut?: boolean;
  /** It finds out what has become of something: `dismiss` lets it come to its end. */
  readonly isLookUp?: boolean;
}

export class Flight {
  readonly #clock: Clock;
  readonly #onLate: () => void;
  #current: LazySignal | undefined;
  #aborted: { readonly reason: unknown } | undefined;
  #dismissed: { readonly reason: unknown } | undefined;
  #isLookUp = false;
  #isPatient = false;
  #onAbort: (() => void) | undefined;

  constructor(clock: Clock, onLate: () => void) {
    this.#clock = clock;
    this.#onLate = onLate;
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
    this.#onAbort?.();
  }

  /** @param isPatient any work has the whole grace to end: what it has done by then is kept. */
  abort(reason: unknown, isPatient = false): void {
    if (this.#aborted !== undefined) return;
    this.#aborted = { reason };
    this.#isPatient = isPatient;
    this.#current?.abort(reason);
    this.#onAbort?.();
  }

  /** Runs `work` once, and gives what `conclude` makes of how it settled. Rejects only when `conclude` throws. */
  attempt<T, R>(
    work: (signal: LazySignal) => T | PromiseLike<T>,
    conclude: (settled: Settled<T>) => R | Promise<R>,
    { timeoutMs, signal = new LazySignal(), isHeardOut = false, isLookUp = false }: AttemptOptions = {},
  ): Promise<R> {
    this.#current = signal;
    this.#isLookUp = isLookUp;
    const stopped = isLookUp ? this.#aborted : (this.#aborted ?? this.#dismissed);
    if (stopped !== undefined) signal.abort(stopped.reason);
    return new Promise((resolve, reject) => {
      let open = true;
      let isLate = false;
      let cancelTimer: (() => void) | undefined;
      const end = (settled: Settled<T>): void => {
        if (!open) {
          // What fails after it was given up has nothing to lose.
          if (settled.kind === 'value') this.#onLate();
          return;
        }
        open = false;
        cancelTimer?.();
        this.#onAbort = undefined;
        try {
          resolve(conclude(settled));
        } catch (error) {
          reject(error);
        }
      };
      const made = begin(work, signal, end);
      if (made === undefined) return;
      const failed = (error: unknown): void =>
        end(isLate ? { kind: 'timeout', isAtWork: false } : { kind: 'thrown', error: Thrown.of(error) });
      try {
        made.then((value) => end({ kind: 'value', value }), failed);
      } catch (error) {
        failed(error);
      }
      if (!open) return;
      const giveUp = (): void => {
        cancelTimer?.();
        const graceMs = isHeardOut || isLookUp || this.#isPatient ? ABORT_GRACE_MS : NOTICE_MS;
        cancelTimer = this.#clock.after(graceMs, () => end({ kind: 'abandoned' }));
      };
      if (stopped !== undefined) return giveUp();
      this.#onAbort = giveUp;
      if (timeoutMs === undefined) return;
      const timeOut = (): void => end({ kind: 'timeout', isAtWork: true });
      cancelTimer = this.#clock.after(timeoutMs, () => {
        isLate = isHeardOut;
        if (isHeardOut) cancelTimer = this.#clock.after(ABORT_GRACE_MS, timeOut);
        else timeOut();
        signal.abort(new PilotageError('tool_timeout', `The time limit of ${timeoutMs} ms has passed.`));
      });
    });
  }

  /** Waits, or until aborted. */
  pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      if (this.aborted) return resolve();
      const cancelTimer = this.#clock.after(delayMs, () => {
        this.#onAbort = undefined;
        resolve();
      });
      this.#onAbort = () => {
        cancelTimer();
        this.#onAbort = undefined;
        resolve();
      };
    });
  }
}

/** Starts the work. What ends at once is told to `end`; what goes on is returned. */
function begin<T>(
  work: (signal: LazySignal) => T | PromiseLike<T>,
  signal: LazySignal,
  end: (settled: Settled<T>) => void,
): PromiseLike<T> | undefined {
  try {
    const made = work(signal);
    if (isThenable(made)) return made;
    end({ kind: 'value', value: made });
  } catch (error) {
    end({ kind: 'thrown', error: Thrown.of(error) });
  }
  return undefined;
}

/** What throws when it is asked is a value: why it cannot be kept is found out where values are read. */
export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof value === 'object' && typeof fieldOf(value, 'then') === 'function';
}
