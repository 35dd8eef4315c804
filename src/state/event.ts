import type { EventPayloads, EventType, Identity, RunEvent } from '#core';

/** Makes an event of a type from an entry's position and time. */
export function event<T extends EventType>(
  type: T,
  at: { readonly seq: number; readonly at: number },
  identity: Identity,
  payload: EventPayloads[T],
): RunEvent {
  return { ...payload, type, identity, seq: at.seq, occurredAt: at.at } as RunEvent;
}
