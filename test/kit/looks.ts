/** How much of long lists is looked at: work that grows with a run shows in it, whatever the machine is doing. */

const WALKS = ['entries', 'every', 'filter', 'find', 'findLast', 'flatMap', 'map', 'some'] as const;

/**
 * How many items the lists have together on which methods of arrays that walk over them were called meanwhile.
 * @param counts says of the first item of a list whether the list counts.
 */
export async function looksAt(counts: (item: object) => boolean, work: () => Promise<void>): Promise<number> {
  let looks = 0;
  const restores = WALKS.map((name) => {
    const method = Array.prototype[name];
    const put = (value: unknown): void => {
      Object.defineProperty(Array.prototype, name, { configurable: true, writable: true, value });
    };
    put(function walk(this: readonly unknown[], ...args: readonly unknown[]): unknown {
      const first = this[0];
      if (typeof first === 'object' && first !== null && counts(first)) looks += this.length;
      return Reflect.apply(method, this, args);
    });
    return () => put(method);
  });
  try {
    await work();
  } finally {
    for (const restore of restores) restore();
  }
  return looks;
}
