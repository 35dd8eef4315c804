/**
 * How a reply is waited for and read. Waits for a provider are limited: the caller's abort ends a wait at once,
 * and so does a long silence. What is there already is read in turns, so that others are not kept waiting.
 */
import { type Clock, limitTime, steadyMs } from '#core';
import { BrokenReply } from './failure.ts';

export interface WatchOptions {
  readonly signal: AbortSignal;
  readonly clock: Clock;
  /** The most milliseconds of one wait. Time in which nobody waits does not count. */
  readonly stallMs: number;
  /** The most milliseconds of all waits together. Default: no limit. */
  readonly limitMs?: number;
}

/** For one try. Whoever makes it calls `end` when the try is over. */
export class Watch {
  readonly #options: WatchOptions;
  readonly #controller = new AbortController();
  readonly #onAbort = (): void => this.#giveUp(this.#options.signal.reason);
  #fail: ((reason: unknown) => void) | undefined;
  /** By the steady clock, as all times here: a wait is as long as it is, whoever sets the other one. */
  readonly #begunAt: number;
  #waitingSince: number;
  #hasWaited = false;
  #leftAt: number;
  /** In waits that are over. */
  #waitedMs = 0;
  #cancelTimer: (() => void) | undefined;

  constructor(options: WatchOptions) {
    this.#options = options;
    options.signal.throwIfAborted();
    this.#begunAt = steadyMs(options.clock);
    this.#waitingSince = this.#begunAt;
    this.#leftAt = this.#begunAt;
    options.signal.addEventListener('abort', this.#onAbort);
  }

  /** For the provider: aborted with the caller's signal, by a stall, and when the try is left. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Milliseconds from the beginning of the try to the end of its last wait. */
  get tookMs(): number {
    return this.#leftAt - this.#begunAt;
  }

  /**
   * One wait at a time. What comes after the wait was given up goes to `late`; an error has nothing to lose by then.
   * @throws the error of `work`, the reason of the caller's signal, or a BrokenReply.
   */
  until<T>(work: T | PromiseLike<T>, late?: (value: T) => void): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#fail = reject;
      // The first wait begins with the try.
      if (this.#hasWaited) this.#waitingSince = steadyMs(this.#options.clock);
      this.#hasWaited = true;
      if (this.#cancelTimer === undefined) this.#arm(0);
      Promise.resolve(work).then(
        (value) => (this.#isLeft(reject) ? late?.(value) : resolve(value)),
        (error: unknown) => {
          if (!this.#isLeft(reject)) reject(error);
        },
      );
      if (this.#controller.signal.aborted) this.#giveUp(this.#controller.signal.reason);
    });
  }

  /** Whether the wait was given up. If it was not, the wait is over now. */
  #isLeft(reject: (reason: unknown) => void): boolean {
    if (this.#fail !== reject) return true;
    this.#fail = undefined;
    this.#leftAt = steadyMs(this.#options.clock);
    this.#waitedMs += this.#leftAt - this.#waitingSince;
    return false;
  }

  /** @param left the reply is not whole, and nobody waits for its rest. */
  end(left: boolean): void {
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    if (left) this.#controller.abort();
  }

  #giveUp(reason: unknown): void {
    const fail = this.#fail;
    this.#fail = undefined;
    this.#controller.abort(reason);
    fail?.(reason);
  }

  /** A single timer for many waits: it checks how long the present wait has taken, and all waits together. */
  #arm(silentMs: number): void {
    const { clock, stallMs, limitMs = Number.POSITIVE_INFINITY } = this.#options;
    const leftMs = Math.min(stallMs - silentMs, limitMs - this.#waitedMs - silentMs);
    if (leftMs === Number.POSITIVE_INFINITY) return;
    this.#cancelTimer = limitTime(clock, leftMs, () => {
      this.#cancelTimer = undefined;
      if (this.#fail === undefined) return;
      const waitMs = steadyMs(clock) - this.#waitingSince;
      if (this.#waitedMs + waitMs >= limitMs) {
        this.#giveUp(new BrokenReply('model_timeout', `The model was not done after ${limitMs} ms.`));
      } else if (waitMs >= stallMs) {
        this.#giveUp(new BrokenReply('model_stalled', `The model said nothing for ${stallMs} ms.`));
      } else this.#arm(waitMs);
    });
  }
}

/**
 * The work of one turn of the event loop, for all streams of a process together: this many short parts, or 64 KiB. The shortest
 * events take about 20 ms of work then.
 */
const UNITS_A_TURN = 256;
/** What is longer counts as several. */
const UNIT_CHARS = 256;

/** Says when to let the event loop go round while much is read at once. */
export class Pace {
  #left = UNITS_A_TURN;
  #nextTurn: Promise<void> | undefined;

  /**
   * Asked before so many characters or bytes, in one part, are worked on. `undefined`: at once, as nearly always for what comes bit by bit.
   */
  take(chars: number): Promise<void> | undefined {
    const units = 1 + Math.floor(chars / UNIT_CHARS);
    if (this.#left <= 0) return this.#wait(units);
    this.#left -= units;
    return undefined;
  }

  /** Who has waited longest comes first, and may leave nothing of the turn for those behind. */
  async #wait(units: number): Promise<void> {
    do {
      this.#nextTurn ??= new Promise((resolve) => {
        setImmediate(() => {
          this.#left = UNITS_A_TURN;
          this.#nextTurn = undefined;
          resolve();
        });
      });
      await this.#nextTurn;
    } while (this.#left <= 0);
    this.#left -= units;
  }
}

/** A process has one clock, and a simulated process one of its own. */
const PACES = new WeakMap<Clock, Pace>();

/** The one that all streams of the process share. */
export function paceOf(clock: Clock): Pace {
  const found = PACES.get(clock);
  if (found !== undefined) return found;
  const pace = new Pace();
  PACES.set(clock, pace);
  return pace;
}
