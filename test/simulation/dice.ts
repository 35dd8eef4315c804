/** Choices by a seed. */
import { seededRandom } from '#testing';

export class Dice {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  /** From 0 up to 1. */
  next(): number {
    return this.#random();
  }

  /** True in this part of all cases, from 0 to 1. */
  chance(part: number): boolean {
    return this.#random() < part;
  }

  /** A whole number; both ends are possible. */
  between(from: number, to: number): number {
    return from + Math.floor(this.#random() * (to - from + 1));
  }

  /** One of them; those that stand there several times come more often. */
  pick<T>(items: readonly [T, ...T[]]): T {
    return items[Math.floor(this.#random() * items.length)] ?? items[0];
  }

  /** What `make` gives, in this part of all cases, or nothing, to be spread into an object. */
  maybe<T extends object>(part: number, make: () => T): T | Record<never, never> {
    return this.chance(part) ? make() : {};
  }

  /** A list of a random length. */
  list<T>(from: number, to: number, make: (index: number) => T): T[] {
    return Array.from({ length: this.between(from, to) }, (_, index) => make(index));
  }
}
