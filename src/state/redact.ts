/** What leaves for a log or a screen may have to leave out more than what is written does. */
import { type Json, mapTexts, type RunEvent } from '#core';

/** Gives the text with what must not be seen replaced. */
export type Redact = (text: string) => string;

/** Says where an event belongs and what it is; no text of a model, a tool or a person. */
const POSITION: ReadonlySet<string> = new Set(['type', 'identity', 'seq', 'occurredAt']);

/** A copy of the event in which every text of its payload, keys too, has passed through. @throws what `redact` throws. */
export function redacted(event: RunEvent, redact: Redact): RunEvent {
  const fields = Object.entries(event).map(([key, value]) => [
    key,
    POSITION.has(key) ? value : mapTexts(value as Json, redact),
  ]);
  return Object.freeze(Object.fromEntries(fields)) as RunEvent;
}
