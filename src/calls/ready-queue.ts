/** Numbers of branches in the order in which they are to start: the longest chain first, then by number. */

/** Above every number of a branch; with the longest chain in front it is far from the end of the exact numbers. */
const SPAN = 2 ** 24;

/** A binary heap of keys, each made of the length of the chain and the number. */
export class ReadyQueue {
  readonly #keys: number[] = [];

  push(call: number, chain: number): void {
    const keys = this.#keys;
    const key = chain * SPAN + (SPAN - 1 - call);
    let at = keys.length;
    keys.push(key);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = keys[parent] as number;
      if (above >= key) break;
      keys[at] = above;
      at = parent;
    }
    keys[at] = key;
  }

  /** `undefined`: it is empty. */
  pop(): number | undefined {
    const keys = this.#keys;
    const top = keys[0];
    const last = keys.pop();
    if (top === undefined || last === undefined) return undefined;
    if (keys.length > 0) this.#sink(last);
    return SPAN - 1 - (top % SPAN);
  }

  #sink(key: number): void {
    const keys = this.#keys;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= keys.length) break;
      if (child + 1 < keys.length && (keys[child + 1] as number) > (keys[child] as number)) child += 1;
      const below = keys[child] as number;
      if (below <= key) break;
      keys[at] = below;
      at = child;
    }
    keys[at] = key;
  }
}
