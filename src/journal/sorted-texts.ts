/** A map whose keys are in the order of their bytes, as databases sort texts: a page begins where it is asked for, without a look at what stands before. */
import { compareTexts } from '#core';

export class SortedTexts<V> {
  readonly #values = new Map<string, V>();
  readonly #texts: string[] = [];

  get size(): number {
    return this.#texts.length;
  }

  get(text: string): V | undefined {
    return this.#values.get(text);
  }

  set(text: string, value: V): void {
    if (!this.#values.has(text)) this.#texts.splice(this.#place(text), 0, text);
    this.#values.set(text, value);
  }

  delete(text: string): void {
    if (this.#values.delete(text)) this.#texts.splice(this.#place(text), 1);
  }

  /** Those of this text and behind it. Nothing may be set or deleted meanwhile. */
  *from(text: string): Generator<readonly [text: string, value: V], void> {
    for (let at = this.#place(text); at < this.#texts.length; at += 1) {
      const own = this.#texts[at] ?? '';
      const value = this.#values.get(own);
      if (value !== undefined) yield [own, value];
    }
  }

  /** Where the first text stands that is this one or behind it. */
  #place(text: string): number {
    let [low, high] = [0, this.#texts.length];
    // Most come in their order.
    if (high > 0 && compareTexts(this.#texts[high - 1] ?? '', text) < 0) return high;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (compareTexts(this.#texts[middle] ?? '', text) < 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
