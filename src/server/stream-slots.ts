/** Limits how many streams each user reads at once. */
import { RequestRefused } from './problem.ts';

interface User {
  readonly tenant: string;
  readonly user: string;
}

export class StreamSlots {
  readonly #most: number;
  readonly #taken = new Map<string, number>();

  constructor(most: number) {
    this.#most = most;
  }

  /** @returns a function that frees the slot. @throws RequestRefused `streams_full`. */
  enter({ tenant, user }: User): () => void {
    const key = JSON.stringify([tenant, user]);
    const taken = this.#taken.get(key) ?? 0;
    if (taken >= this.#most) {
      const message = `You read ${taken} streams at once, which is as many as one user may. Close one of them first.`;
      throw new RequestRefused('streams_full', message, { most: this.#most });
    }
    this.#taken.set(key, taken + 1);
    return () => {
      const left = (this.#taken.get(key) ?? 1) - 1;
      if (left === 0) this.#taken.delete(key);
      else this.#taken.set(key, left);
    };
  }
}
