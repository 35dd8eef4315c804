/** What both stores know of waits for events. */
import { type EventMessage, type Json, PilotageError, type WaitRow } from '#core';
import type { StoredMessage } from './port.ts';
import { assertNewSignal } from './rules.ts';
import type { NewSignal } from './waits-port.ts';

interface Delivered {
  readonly number: number;
  readonly key: string;
  readonly signal: string;
  readonly payload: Json;
}

/** The message that brings a signal to a wait. A signal that is accepted again, after its time, is another one. */
export function eventMessage(
  { id, step = 0, call = 0, wait = 0 }: Pick<WaitRow, 'id' | 'step' | 'call' | 'wait'>,
  { number, key, signal, payload }: Delivered,
): EventMessage {
  return { id: `${EVENT_MESSAGE}${id}:${number}`, type: 'EVENT', at: { step, call, wait }, key, payload, signal };
}

/** With what the ids of these messages begin. */
export const EVENT_MESSAGE = 'event:';

/** Whether the time of the wait has come: what comes now comes too late for it. */
export function isOver({ until = Number.POSITIVE_INFINITY }: Pick<WaitRow, 'until'>, now: number): boolean {
  return until <= now;
}

/** The signals among messages as they are stored. What cannot be read is lost. */
export function eventsIn(messages: readonly StoredMessage[]): readonly EventMessage[] {
  return messages.flatMap(({ id, text }) => {
    if (!id.startsWith(EVENT_MESSAGE)) return [];
    try {
      return [JSON.parse(text) as EventMessage];
    } catch {
      return [];
    }
  });
}

/** @throws PilotageError as `NewSignal` demands. @returns the payload as it is stored. */
export function encodeSignal(signal: NewSignal): string {
  assertNewSignal(signal);
  return JSON.stringify(signal.payload);
}

/** A row of the index, as it is stored. @throws PilotageError `journal_corrupt`. */
export function waitIn(body: string): WaitRow {
  return parsed(body) as WaitRow;
}

/** A payload, as it is stored. @throws PilotageError `journal_corrupt`. */
export function jsonIn(body: string): Json {
  return parsed(body) as Json;
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body, (_, value: unknown) => Object.freeze(value));
  } catch (cause) {
    const message = 'A row of what waits, or of what was signalled, is not JSON. Restore the journal from a backup.';
    throw new PilotageError('journal_corrupt', message, { cause });
  }
}
