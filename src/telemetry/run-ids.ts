/** Ids of spans that follow from the journal, where a tracer makes them at random. */
import { randomBytes } from 'node:crypto';

/** What a tracer provider takes as its `idGenerator`. */
export interface IdGenerator {
  /** 32 hexadecimal digits. */
  generateTraceId(): string;
  /** 16 hexadecimal digits. */
  generateSpanId(): string;
}

interface Ids {
  readonly traceId: string;
  readonly spanId: string;
}

let next: Ids | undefined;

function random(bytes: number): string {
  const id = randomBytes(bytes);
  // All zeros are no id.
  id[0] = (id[0] as number) | 1;
  return id.toString('hex');
}

/** For the tracer provider of the program: spans of runs get the ids that follow from their journal, and all others random ones. */
export const runIds: IdGenerator = Object.freeze({
  generateTraceId: () => next?.traceId ?? random(16),
  generateSpanId: () => next?.spanId ?? random(8),
});

/** What `start` starts has these ids, if its provider asks `runIds`. */
export function withIds<T>(ids: Ids, start: () => T): T {
  next = ids;
  try {
    return start();
  } finally {
    next = undefined;
  }
}
