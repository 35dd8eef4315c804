/**
 * A regular expression that comes from a model or a user may take exponential time on an unlucky text, and JavaScript
 * cannot stop one from outside. `node:vm` with a time limit can, also when the work was made outside of it.
 */
import { type Context, createContext, runInContext } from 'node:vm';

export class TimeLimit {
  readonly #timeMs: number;
  readonly #context: Context;
  #work: () => void = () => {};

  /** @param timeMs for one piece of work. */
  constructor(timeMs: number) {
    this.#timeMs = timeMs;
    this.#context = createContext({ work: () => this.#work() });
  }

  /** False when the work took too long and was stopped on the way. @throws what the work throws. */
  run(work: () => void): boolean {
    this.#work = work;
    try {
      runInContext('work()', this.#context, { timeout: this.#timeMs });
      return true;
    } catch (error) {
      if (typeof error === 'object' && error !== null && 'code' in error && error.code === TOO_SLOW) return false;
      throw error;
    }
  }
}

const TOO_SLOW = 'ERR_SCRIPT_EXECUTION_TIMEOUT';
