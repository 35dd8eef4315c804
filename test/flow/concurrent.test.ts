import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { joinK, mapConcurrent } from '#flow';

/** Calls that end when the test says so. */
function desk(): {
  readonly open: Map<number, { resolve(value: string): void; reject(reason: unknown): void; signal: AbortSignal }>;
  call(item: number, index: number, signal: AbortSignal): Promise<string>;
} {
  const open = new Map<number, { resolve(value: string): void; reject(reason: unknown): void; signal: AbortSignal }>();
  const call = (item: number, _: number, signal: AbortSignal): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    open.set(item, { resolve, reject, signal });
    return promise;
  };
  return { open, call };
}

/** Lets everything that is ready go on. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The rejections that nobody handled while `work` ran. */
async function unhandledOf(work: () => Promise<void>): Promise<unknown[]> {
  const seen: unknown[] = [];
  const note = (reason: unknown): void => {
    seen.push(reason);
  };
  const before = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', note);
  try {
    await work();
    await settled();
    await settled();
  } finally {
    process.off('unhandledRejection', note);
    for (const listener of before) process.on('unhandledRejection', listener);
  }
  return seen;
}

/** 0, 1, 2 … up to `count`, and what was asked of it. */
function counting(count: number): { items: Iterable<number>; taken: () => number; closed: () => number } {
  let taken = 0;
  let closed = 0;
  const items: Iterable<number> = {
    [Symbol.iterator]: () => ({
      next: () => (taken < count ? { value: taken++, done: false } : { value: undefined, done: true }),
      return: () => {
        closed += 1;
        return { value: undefined, done: true };
      },
    }),
  };
  return { items, taken: () => taken, closed: () => closed };
}

describe('mapConcurrent', () => {
  it('RT-34 refuses a bound that is no whole number from 1, and takes nothing', async () => {
    for (const bound of [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, '3' as unknown as number]) {
      const { items, taken } = counting(3);
      await expect(mapConcurrent(items, bound, (item) => item)).rejects.toMatchObject({ code: 'invalid_concurrency' });
      expect(taken()).toBe(0);
    }
  });

  it('RT-34 gives the results in the order of the items, whichever ends first, and takes an item when there is room', async () => {
    const { open, call } = desk();
    const { items, taken } = counting(5);
    const all = mapConcurrent(items, 2, call);
    expect(taken()).toBe(2);
    open.get(1)?.resolve('one');
    await settled();
    expect(taken()).toBe(3);
    open.get(2)?.resolve('two');
    open.get(0)?.resolve('zero');
    await settled();
    expect([...open.keys()]).toEqual([0, 1, 2, 3, 4]);
    open.get(4)?.resolve('four');
    open.get(3)?.resolve('three');
    await expect(all).resolves.toEqual(['zero', 'one', 'two', 'three', 'four']);
  });

  it('RT-34 gives an empty list for no items, and takes what is given back at once', async () => {
    await expect(mapConcurrent([], 3, (item) => item)).resolves.toEqual([]);
    await expect(mapConcurrent('abc', 1_000_000, (letter, index) => `${letter}${index}`)).resolves.toEqual([
      'a0',
      'b1',
      'c2',
    ]);
  });

  it('RT-34 aborts the running calls with the first error, rejects with it without waiting, and begins nothing more', async () => {
    const { open, call } = desk();
    const { items, taken, closed } = counting(10);
    const all = mapConcurrent(items, 3, call);
    const first = new Error('first');
    const told: unknown[] = [];
    open.get(0)?.signal.addEventListener('abort', () => told.push(open.get(0)?.signal.reason));
    open.get(1)?.reject(first);
    await expect(all).rejects.toBe(first);
    expect(told).toEqual([first]);
    expect(closed()).toBe(1);
    const unhandled = await unhandledOf(async () => {
      open.get(0)?.reject(new Error('late'));
      open.get(2)?.resolve('late');
      await settled();
    });
    expect(unhandled).toEqual([]);
    expect(taken()).toBe(3);
    expect(closed()).toBe(1);
  });

  it('RT-34 counts a call that throws before it gives a promise', async () => {
    const calls: number[] = [];
    const unhandled = await unhandledOf(async () => {
      const all = mapConcurrent([0, 1, 2, 3], 4, (item) => {
        calls.push(item);
        if (item > 0) throw new Error(`no ${item}`);
        return item;
      });
      await expect(all).rejects.toThrow('no 1');
    });
    expect(unhandled).toEqual([]);
    expect(calls).toEqual([0, 1]);
  });

  it('RT-34 rejects with the reason of an outer signal, before and while it works', async () => {
    const reason = new Error('enough');
    const none = counting(3);
    await expect(mapConcurrent(none.items, 1, (item) => item, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(none.taken()).toBe(0);

    const outer = new AbortController();
    const { open, call } = desk();
    const { items, taken, closed } = counting(3);
    const all = mapConcurrent(items, 1, call, outer.signal);
    outer.abort(reason);
    await expect(all).rejects.toBe(reason);
    expect(open.get(0)?.signal.reason).toBe(reason);
    expect([taken(), closed()]).toEqual([1, 1]);
    open.get(0)?.resolve('late');
    await settled();
    expect(taken()).toBe(1);
  });

  it('RT-34 leaves an outer signal alone: no listener is left, and the inner signal is not aborted at the end', async () => {
    const outer = new AbortController();
    const signals: AbortSignal[] = [];
    await mapConcurrent([1, 2], 2, (_item, _index, signal) => signals.push(signal), outer.signal);
    outer.abort(new Error('too late'));
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
  });

  it('RT-34 rejects with an error of the iterable, and closes a generator that aborts while it is asked', async () => {
    const broken = (function* (): Generator<number> {
      yield 1;
      throw new Error('no more');
    })();
    await expect(mapConcurrent(broken, 2, (item) => item)).rejects.toThrow('no more');

    const outer = new AbortController();
    let closed = false;
    const aborting = (function* (): Generator<number> {
      try {
        outer.abort(new Error('from inside'));
        yield 1;
      } finally {
        closed = true;
      }
    })();
    const calls: number[] = [];
    const all = mapConcurrent(aborting, 2, (item) => calls.push(item), outer.signal);
    await expect(all).rejects.toThrow('from inside');
    expect([closed, calls]).toEqual([true, []]);
  });

  it('RT-34 property: as many at once as the bound says and never more, each item once, results in order', async () => {
    const cases = fc.record({
      items: fc.array(fc.integer({ min: 1, max: 4 }), { maxLength: 40 }),
      bound: fc.integer({ min: 1, max: 12 }),
    });
    await fc.assert(
      fc.asyncProperty(cases, async ({ items, bound }) => {
        let running = 0;
        let most = 0;
        const seen: number[] = [];
        const results = await mapConcurrent(items, bound, async (turns, index) => {
          running += 1;
          most = Math.max(most, running);
          seen.push(index);
          for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
          running -= 1;
          return [index, turns];
        });
        expect(results).toEqual(items.map((turns, index) => [index, turns]));
        expect(seen).toEqual(items.map((_, index) => index));
        expect(most).toBe(Math.min(bound, items.length));
      }),
    );
  });

  it('RT-34 property: of several errors the first counts, and none is left unhandled', async () => {
    const cases = fc.record({
      turns: fc.array(fc.nat(4), { minLength: 1, maxLength: 20 }),
      failing: fc.array(fc.nat(19), { minLength: 1, maxLength: 5 }),
      bound: fc.integer({ min: 1, max: 8 }),
    });
    const unhandled = await unhandledOf(() =>
      fc.assert(
        fc.asyncProperty(cases, async ({ turns, failing, bound }) => {
          const thrown: number[] = [];
          const all = mapConcurrent(turns, bound, async (count, index) => {
            for (let turn = 0; turn < count; turn += 1) await Promise.resolve();
            if (!failing.includes(index)) return index;
            thrown.push(index);
            throw new Error(String(index));
          });
          const expected = failing.some((index) => index < turns.length);
          const outcome = await all.then(
            () => undefined,
            (error: unknown) => (error as Error).message,
          );
          expect(outcome).toBe(expected ? String(thrown[0]) : undefined);
        }),
      ),
    );
    expect(unhandled).toEqual([]);
  });
});

describe('joinK', () => {
  it('RT-35 refuses a k that is no whole number from 1', async () => {
    for (const k of [0, -2, 2.5, Number.NaN, Number.POSITIVE_INFINITY]) {
      await expect(joinK([1, 2, 3], k)).rejects.toMatchObject({ code: 'invalid_k' });
    }
  });

  it('RT-35 gives the first k promises that resolve, in the order in which they come', async () => {
    const three = [0, 1, 2].map(() => Promise.withResolvers<string>());
    const all = joinK(
      three.map(({ promise }) => promise),
      2,
    );
    three[2]?.resolve('two');
    await settled();
    three[0]?.resolve('zero');
    await expect(all).resolves.toEqual(['two', 'zero']);
    const unhandled = await unhandledOf(async () => three[1]?.reject(new Error('late')));
    expect(unhandled).toEqual([]);
  });

  it('RT-35 rejects with the first promise that does, and handles the others', async () => {
    const unhandled = await unhandledOf(async () => {
      const promises = [Promise.reject(new Error('a')), Promise.reject(new Error('b')), Promise.resolve(1)];
      await expect(joinK(promises, 1)).rejects.toThrow('a');
    });
    expect(unhandled).toEqual([]);
  });

  it('RT-35 says how many there were when the source ends too soon', async () => {
    const short = { code: 'join_k_short_read', data: { wanted: 3, got: 2 } };
    await expect(joinK([Promise.resolve(1), 2], 3)).rejects.toMatchObject(short);
    await expect(joinK(streamOf([1, 2]).stream, 3)).rejects.toMatchObject(short);
    await expect(joinK([], 1)).rejects.toMatchObject({ data: { wanted: 1, got: 0 } });
  });

  it('RT-35 reads an AsyncIterable until it has k, and closes it', async () => {
    const { stream, state } = streamOf([1, 2, 3, 4]);
    await expect(joinK(stream, 2)).resolves.toEqual([1, 2]);
    expect(state).toEqual({ read: 2, closed: true });
  });

  it('RT-35 rejects with the error of an AsyncIterable, and of an iterable that breaks off', async () => {
    const failing = (async function* (): AsyncGenerator<number> {
      yield 1;
      throw new Error('broken');
    })();
    await expect(joinK(failing, 2)).rejects.toThrow('broken');
    const unhandled = await unhandledOf(async () => {
      const breaking = (function* (): Generator<Promise<number>> {
        yield Promise.reject(new Error('later'));
        throw new Error('broken off');
      })();
      await expect(joinK(breaking, 2)).rejects.toThrow('broken off');
    });
    expect(unhandled).toEqual([]);
  });

  it('RT-35 property: k of n results, those that come first; fewer than k is a short read', async () => {
    const cases = fc.record({ turns: fc.array(fc.nat(5), { maxLength: 15 }), k: fc.integer({ min: 1, max: 15 }) });
    await fc.assert(
      fc.asyncProperty(cases, async ({ turns, k }) => {
        const ended: number[] = [];
        const promises = turns.map(async (count, index) => {
          for (let turn = 0; turn < count; turn += 1) await Promise.resolve();
          ended.push(index);
          return index;
        });
        const outcome = await joinK(promises, k).catch((error: unknown) => (error as { data: unknown }).data);
        await Promise.all(promises);
        const enough = turns.length >= k;
        expect(outcome).toEqual(enough ? ended.slice(0, k) : { wanted: k, got: turns.length });
      }),
    );
  });
});

function streamOf(values: readonly number[]): {
  stream: AsyncIterable<number>;
  state: { read: number; closed: boolean };
} {
  const state = { read: 0, closed: false };
  async function* read(): AsyncGenerator<number> {
    try {
      for (const value of values) {
        state.read += 1;
        yield value;
      }
    } finally {
      state.closed = true;
    }
  }
  return { stream: read(), state };
}
