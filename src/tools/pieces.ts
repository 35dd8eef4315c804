/** Tools that give their result piece by piece. */
import { fieldOf, PilotageError } from '#core';
import { isLater } from './later.ts';
import type { ToolContext } from './tool.ts';

/** Who hears the pieces. */
interface Hearer extends Pick<ToolContext, 'emit'> {
  /** Aborted when nobody waits for the value any more: the attempt has ended, or was given up. Without it, the generator goes on to its end. */
  readonly over?: AbortSignal;
}

/**
 * What `execute` has made. Each value that a generator yields is sent as a piece. The value of the call is what it returns, or else the last one that it has
 * yielded; `null` when there is none. A generator is asked for more as long as somebody waits for its value, also for the grace after an abort; then it is closed.
 */
export function resultOf(made: unknown, context: Hearer): unknown {
  return isAsyncIterable(made) ? lastOf(made, context) : made;
}

function isAsyncIterable(made: unknown): made is AsyncIterable<unknown> {
  return typeof made === 'object' && made !== null && typeof fieldOf(made, Symbol.asyncIterator) === 'function';
}

function lastOf(values: AsyncIterable<unknown>, context: Hearer): Promise<unknown> {
  const { over } = context;
  const source = closedOnce(values);
  if (over === undefined) return drain(source, context);
  return new Promise((resolve, reject) => {
    // What its `finally` throws is the error of an attempt that was given up.
    const leave = (): void => void source.return().then(() => reject(over.reason), reject);
    if (over.aborted) return leave();
    over.addEventListener('abort', leave);
    const unlessLeft = (settle: () => void): void => {
      over.removeEventListener('abort', leave);
      if (!over.aborted) settle();
    };
    drain(source, context).then(
      (value) => unlessLeft(() => resolve(value)),
      (error: unknown) => unlessLeft(() => reject(error)),
    );
  });
}

async function drain(source: Source, { emit, over }: Hearer): Promise<unknown> {
  let last: unknown = null;
  let pieces = 0;
  for await (last of { [Symbol.asyncIterator]: () => source }) {
    if (isLater(last)) throw new PilotageError('invalid_config', YIELDED_LATER);
    emit(last);
    pieces += 1;
    // A generator that never waits would let no timer of the process run, not even the one of its own time limit.
    if (pieces % PIECES_A_TURN === 0) await new Promise((resolve) => setImmediate(resolve));
    if (over?.aborted === true) break;
  }
  return source.returned === undefined ? last : source.returned;
}

const YIELDED_LATER =
  'A generator has yielded later({ … }), which cannot be a piece of the result. Return it: return later({ key }) ends the attempt, and the call waits for its value.';
const PIECES_A_TURN = 64;

interface Source extends Required<Pick<AsyncIterator<unknown>, 'next' | 'return'>> {
  /** What the generator returned at its end. */
  readonly returned: unknown;
}

/** The iterator of the values, which is closed once, however often it is asked to. */
function closedOnce(values: AsyncIterable<unknown>): Source {
  const source = values[Symbol.asyncIterator]();
  let closed: Promise<IteratorResult<unknown>> | undefined;
  let returned: unknown;
  const close = async (): Promise<IteratorResult<unknown>> => {
    await source.return?.();
    return { done: true, value: undefined };
  };
  return {
    get returned() {
      return returned;
    },
    next: async () => {
      const result = await source.next();
      if (result.done === true) returned = result.value;
      return result;
    },
    return: () => {
      closed ??= close();
      return closed;
    },
  };
}
