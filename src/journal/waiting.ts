/** What both stores know of waits for events. */
import type { EventMessage, Json, WaitRow } from '#core';
import type { StoredMessage } from './port.ts';

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
