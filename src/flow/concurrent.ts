/** Two helpers for what runs inside a node: many at once with a bound, and the first of many. */
import { PilotageError } from '#core';

/**
 * Calls `fn` for each item, at most `concurrency` at once, and gives the results in the order of the items. An item is
 * taken when there is room for it, so an iterable may be long, or be made on the way.
 *
 * With the first error (of `fn` or of the iterable) nothing more is taken, the signal that `fn` gets is aborted with it, and
 * the promise rejects with it, without waiting for the calls that still run; what these come to is not looked at. An abort
 * of `signal` does the same with its reason.
 * @throws PilotageError `invalid_concurrency` unless `concurrency` is a whole number from 1.
 */
export async function mapConcurrent<T, R>(
  items: Iterable<T>,
  concurrency: number,
  fn: (item: T, index: number, signal: AbortSignal) => R | Promise<R>,
  signal?: AbortSignal,
): Promise<R[]> {
  if (!isCount(concurrency)) {
    const message = `mapConcurrent: the concurrency is ${String(concurrency)}; give a whole number from 1.`;
    throw new PilotageError('invalid_concurrency', message);
  }
  signal?.throwIfAborted();
  const { promise: failed, reject } = Promise.withResolvers<never>();
  const stop = new AbortController();
  const fail = (reason: unknown): void => {
    if (stop.signal.aborted) return;
    stop.abort(reason);
    reject(reason);
  };
  const onAbort = (): void => fail(signal?.reason);
  signal?.addEventListener('abort', onAbort);
  try {
    return await Promise.race([runAll(items, concurrency, fn, { signal: stop.signal, fail }), failed]);
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

interface Stop {
  readonly signal: AbortSignal;
  fail(reason: unknown): void;
}

/** Never rejects: errors go to `fail`. After one it may never end. */
function runAll<T, R>(
  items: Iterable<T>,
  concurrency: number,
  fn: (item: T, index: number, signal: AbortSignal) => R | Promise<R>,
  stop: Stop,
): Promise<R[]> {
  const { promise, resolve } = Promise.withResolvers<R[]>();
  const results: R[] = [];
  const source = takingFrom(items, stop);
  let running = 0;
  let taken = 0;
  const run = async (item: T, index: number): Promise<void> => {
    try {
      results[index] = await fn(item, index, stop.signal);
    } catch (thrown) {
      stop.fail(thrown);
    }
    running -= 1;
    fill();
  };
  const fill = (): void => {
    while (running < concurrency) {
      const next = source();
      if (next === undefined) break;
      running += 1;
      void run(next.item, taken++);
    }
    if (running === 0 && !stop.signal.aborted) resolve(results);
  };
  fill();
  return promise;
}

/** Returns the next item; nothing at the end, or when everything is to stop: then the iterable is closed. */
function takingFrom<T>(items: Iterable<T>, stop: Stop): () => { readonly item: T } | undefined {
  let source: Iterator<T> | undefined;
  let ended = false;
  const close = (): void => {
    if (ended) return;
    ended = true;
    try {
      source?.return?.();
    } catch {
      // As in `for … of`: the error that made it stop counts, not one of closing.
    }
  };
  let taking = false;
  // A generator cannot be closed while it runs: then it is done below.
  stop.signal.addEventListener('abort', () => {
    if (!taking) close();
  });
  const take = (): { readonly item: T } | undefined => {
    source ??= items[Symbol.iterator]();
    const next = source.next();
    if (next.done === true) ended = true;
    else if (!stop.signal.aborted) return { item: next.value };
    return undefined;
  };
  return () => {
    if (ended) return undefined;
    taking = true;
    try {
      return take();
    } catch (thrown) {
      ended = true;
      stop.fail(thrown);
      return undefined;
    } finally {
      taking = false;
      if (stop.signal.aborted) close();
    }
  };
}

/**
 * The first `k` results in the order in which they come. An `AsyncIterable` is read one by one, and closed when there are
 * `k`; of an iterable of promises, all are waited for at once. The first rejection before that rejects; what comes after the
 * k-th is not looked at.
 * @throws PilotageError `invalid_k` unless `k` is a whole number from 1; `join_k_short_read` with data `{ wanted, got }` when
 * the source has ended with fewer.
 */
export async function joinK<T>(source: AsyncIterable<T> | Iterable<T | PromiseLike<T>>, k: number): Promise<T[]> {
  if (!isCount(k)) {
    throw new PilotageError('invalid_k', `joinK: k is ${String(k)}; give a whole number from 1.`);
  }
  const results = isAsync(source) ? await readFirst(source, k) : await settleFirst(source, k);
  if (results.length === k) return results;
  const message = `joinK: the source has ended with ${results.length} of the ${k} results wanted.`;
  throw new PilotageError('join_k_short_read', message, { data: { wanted: k, got: results.length } });
}

function isAsync<T>(source: AsyncIterable<T> | Iterable<T | PromiseLike<T>>): source is AsyncIterable<T> {
  return typeof source === 'object' && Symbol.asyncIterator in source;
}

async function readFirst<T>(source: AsyncIterable<T>, k: number): Promise<T[]> {
  const results: T[] = [];
  for await (const result of source) {
    results.push(result);
    if (results.length === k) break;
  }
  return results;
}

function settleFirst<T>(source: Iterable<T | PromiseLike<T>>, k: number): Promise<T[]> {
  const { promise, resolve, reject } = Promise.withResolvers<T[]>();
  const results: T[] = [];
  const take = (result: T): void => {
    if (results.length < k) results.push(result);
    if (results.length === k) resolve(results);
  };
  const all: Promise<void>[] = [];
  try {
    for (const each of source) all.push(Promise.resolve(each).then(take, reject));
  } catch (thrown) {
    reject(thrown);
  }
  // None of these rejects: a rejection of the source went to `reject`.
  void Promise.all(all).then(() => resolve(results));
  return promise;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1;
}
