/** The only call of a step, which its driver waits for: nothing stands between them, as nearly every step is one. */
import type { Landing } from '../tasks/spawn.ts';
import type { Dispatched } from './call.ts';

export class LoneCall implements PromiseLike<Landing | Dispatched> {
  readonly flying: Promise<Dispatched>;
  /** A tool may ask before the driver has begun to wait. */
  #isLeft = false;
  #go: ((landing: Landing) => unknown) | undefined;

  constructor(flying: Promise<Dispatched>) {
    this.flying = flying;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited, and costs no promise of its own.
  then<A = Landing | Dispatched, B = never>(
    go?: ((ended: Landing | Dispatched) => A | PromiseLike<A>) | null,
    fail?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    if (this.#isLeft) return Promise.resolve<Landing | Dispatched>(NOTHING).then(go, fail);
    this.#go = go ?? undefined;
    return this.flying.then(go, fail);
  }

  /** The driver goes on, and the call stays open: it asks somebody. */
  leave(): void {
    this.#isLeft = true;
    this.#go?.(NOTHING);
  }
}

const NOTHING: Landing = Object.freeze({ entries: [] });
