/** Streams of a run: rows that its tools write while they work, numbered in each stream, and read from any row on in any process. */
import { PilotageError } from './errors.ts';
import { encodedBytes, type Json, LARGE_VALUE_BYTES } from './json.ts';

/** A row as it was written once. It never changes. */
export interface StreamRow {
  /** Its number in the stream, from 1, without gaps. */
  readonly index: number;
  readonly value: Json;
  /** The call that has written it, and which of its attempts. */
  readonly step: number;
  readonly call: number;
  readonly attempt: number;
  /** When it was stored, by the store's clock. Milliseconds since the epoch. */
  readonly at: number;
}

/** What a tool has of a stream. */
export interface StreamWriter {
  /**
   * Adds a row, which is stored with others a moment later, and in any case before the end of the call is recorded. Wait for it where a tool
   * writes much: then it writes no faster than the store takes it.
   * Rejects with PilotageError `stream_refused` for a value that is not JSON, or too large; `cancelled` after the call has ended.
   */
  write(value: unknown): Promise<void>;
  /** Nothing more comes: readers that have all rows end. Whoever writes to the stream after that opens it again. */
  close(): Promise<void>;
}

const NAME_CHARS = 128;

/** @throws PilotageError `stream_refused` for a name that no stream can have. */
export function assertStreamName(given: unknown): asserts given is string {
  const isFit = typeof given === 'string' && given !== '' && given.length <= NAME_CHARS;
  if (isFit && given.isWellFormed() && !given.includes('\0')) return;
  const message = `The name of a stream is a text of 1 to ${NAME_CHARS} characters, such as 'log'.`;
  throw new PilotageError('stream_refused', message);
}

/** How many bytes of JSON the value of a row has. @throws PilotageError `stream_refused` for too many. */
export function rowBytes(name: string, value: Json): number {
  const bytes = encodedBytes(value);
  if (bytes < LARGE_VALUE_BYTES) return bytes;
  const message = `A row of the stream ${JSON.stringify(name)} has ${bytes} bytes of JSON; a row has fewer than ${LARGE_VALUE_BYTES}. Store what is larger with saveArtifact, and write its reference.`;
  throw new PilotageError('stream_refused', message);
}
