/** Tools that give their result piece by piece. */
import { fieldOf } from '#core';
import type { ToolContext } from './tool.ts';

/** Who hears the pieces. */
interface Hearer extends Pick<ToolContext, 'emit'> {
  /** Aborted when nobody waits for the value any more: the attempt has ended, or was given up. Without it, the generator goes on to its end. */
  readonly over?: AbortSignal;
}

/**
 * What `execute` has made. Each value that a generator yields is sent as a piece, and the last one is the value of the call; `null` when
 * there is none. A generator is asked for more as long as somebody waits for its value, also for the grace after an abort; then it is closed.
 */
export function resultOf(made: unknown, context: Hearer): unknown {
  return isAsyncIterable(made) ? lastOf(made, context) : made;
}

function isAsyncIterable(made: unknown): made is AsyncIterable<unknown> {
  return typeof made === 'object' && made !== null && typeof fieldOf(made, Symbol.asyncIterator) === 'function';
}

function lastOf(values: AsyncIterable<unknown>, context: Hearer): Promise<unknown> {
  const { over } = context;
  if (over === undefined) return drain(values, context);
  return new Promise((resolve, reject) => {
    const source = closedOnce(values);
    // What its `finally` throws is the error of an attempt that was given up.
    const leave = (): void => void source.return().then(() => reject(over.reason), reject);
    if (over.aborted) return leave();
    over.addEventListener('abort', leave);
    const unlessLeft = (settle: () => void): void => {
      over.removeEventListener('abort', leave);
      if (!over.aborted) settle();
    };
    drain({ [Symbol.asyncIterator]: () => source }, context).then(
      (value) => unlessLeft(() => resolve(value)),
      (error: unknown) => unlessLeft(() => reject(error)),
    );
  });
}

async function drain(values: AsyncIterable<unknown>, { emit, over }: Hearer): Promise<unknown> {
  let last: unknown = null;
  let pieces = 0;
  for await (last of values) {
    emit(last);
    pieces += 1;
    // A generator that never waits would let no timer of the process run, not even the one of its own time limit.
    if (pieces % PIECES_A_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
    if (over?.aborted === true) break;
  }
  return last;
}

const PIECES_A_TURN = 64;

/** The iterator of the values, which is closed once, however often it is asked to. */
function closedOnce(values: AsyncIterable<unknown>): Required<Pick<AsyncIterator<unknown>, 'next' | 'return'>> {
  const source = values[Symbol.asyncIterator]();
  let closed: Promise<IteratorResult<unknown>> | undefined;
  const close = async (): Promise<IteratorResult<unknown>> => {
    await source.return?.();
    return { done: true, value: undefined };
  };
  return {
    next: () => source.next(),
    return: () => {
      closed ??= close();
      return closed;
    },
  };
}
