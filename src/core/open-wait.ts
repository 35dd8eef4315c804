/** What waits in the whole journal, as its index has it, and the signals that come from outside. */
import type { Approver } from './approval.ts';
import type { PauseReason } from './decision.ts';
import { PilotageError } from './errors.ts';
import { encodedBytes, type Json, type JsonObject } from './json.ts';
import type { WaitFor } from './wait.ts';

/** One thing that a run waits for: somebody's answer, a time, or an event. */
export interface WaitRow {
  /** The token of the pause that asks, or else the id of the wait (`waitId`). Unique in its run. */
  readonly id: string;
  readonly for: WaitFor;
  /** Milliseconds since the epoch, by the clock of the process that began to wait; `until` too. */
  readonly requestedAt: number;
  /** When the time has come, or when nobody answers or signals any more. */
  readonly until?: number;
  /** The call that waits, and the number of its wait when it waits in the middle of its work. A call has a step; a pause of the whole run has none. */
  readonly step?: number;
  readonly call?: number;
  readonly wait?: number;
  /** The tool of the call. */
  readonly tool?: string;
  /** Set when somebody is asked: why, what is shown to them, and who may approve. */
  readonly reason?: PauseReason;
  readonly payload?: JsonObject;
  readonly approver?: Approver;
  /** Set for an event: whoever signals it names it so. */
  readonly key?: string;
  /** JSON Schema of the answer, or of the payload of the event. */
  readonly schema?: JsonObject;
  /** What is too large for the index, and stands in the run's entries alone. */
  readonly omits?: readonly ('payload' | 'schema')[];
}

/** What entries change in what their run waits for, in this order. */
export interface WaitChanges {
  /** True: the run waits for nothing any more. */
  readonly ends?: true;
  /** Ids of waits that are over. */
  readonly removes?: readonly string[];
  /** What it waits for now, in place of rows with the same id. */
  readonly adds?: readonly WaitRow[];
  /** Signals that came for waits that were over. */
  readonly returns?: readonly ReturnedSignal[];
}

/** A signal that nobody has used: it is for whoever waits for its key. */
export interface ReturnedSignal {
  readonly key: string;
  /** The id of the signal. */
  readonly signal: string;
  readonly payload: Json;
}

/** What the index has of one value at the most. */
const MAX_SHOWN_BYTES = 8_192;

/** The row without what is too large for the index. */
export function boundedWait(row: WaitRow): WaitRow {
  const { payload, schema, ...rest } = row;
  const omits: ('payload' | 'schema')[] = [];
  if (payload !== undefined && encodedBytes(payload) > MAX_SHOWN_BYTES) omits.push('payload');
  if (schema !== undefined && encodedBytes(schema) > MAX_SHOWN_BYTES) omits.push('schema');
  if (omits.length === 0) return row;
  return {
    ...rest,
    ...(payload === undefined || omits.includes('payload') ? {} : { payload }),
    ...(schema === undefined || omits.includes('schema') ? {} : { schema }),
    omits,
  };
}

export const MAX_KEY_CHARS = 512;
export const MAX_QUESTION_CHARS = 4_096;
/** A signal belongs to no session, so that its payload cannot lie among a session's artifacts. */
const MAX_SIGNAL_BYTES = 262_144;

/** @throws PilotageError `payload_invalid` for a key that no event can have. */
function assertEventKey(key: unknown, what: string = 'The key of an event'): asserts key is string {
  if (isEventKey(key)) return;
  throw new PilotageError(
    'payload_invalid',
    `${what} must be a text of 1 to ${MAX_KEY_CHARS} characters, such as order-17, without the character 0.`,
  );
}

/** @throws PilotageError `payload_invalid` for an id or a payload that no signal can have. */
export function assertSignal({ key, id, payload }: { key: unknown; id: unknown; payload: Json }): void {
  assertEventKey(key, 'The key of a signal');
  assertEventKey(id, 'The id of a signal');
  const bytes = encodedBytes(payload);
  if (bytes <= MAX_SIGNAL_BYTES) return;
  throw new PilotageError(
    'payload_invalid',
    `The payload of the signal ${JSON.stringify(key)} has ${bytes} bytes of JSON; the most is ${MAX_SIGNAL_BYTES}. Store what is large elsewhere, and signal where it is.`,
  );
}

/** Whether an event can be signalled under this key: text that is stored and compared as it is. */
export function isEventKey(given: unknown): given is string {
  if (typeof given !== 'string' || given.trim() === '' || given.length > MAX_KEY_CHARS) return false;
  return given.isWellFormed() && !given.includes('\0');
}
