/** What leaves for a log or a screen may have to leave out secrets; the journal keeps what happened as it happened. */
import type { RunEvent } from '../core/event.ts';
import type { Json } from '../core/json.ts';

/** Gives the text with what must not be seen replaced. */
export type Redact = (text: string) => string;

/** Says where an event belongs and what it is; no text of a model, a tool or a person. */
const POSITION: ReadonlySet<string> = new Set(['type', 'identity', 'seq', 'occurredAt']);

/** A copy of the event in which every text of its payload, keys too, has passed through. @throws what `redact` throws. */
export function redacted(event: RunEvent, redact: Redact): RunEvent {
  const fields = Object.entries(event).map(([key, value]) => [key, POSITION.has(key) ? value : clean(value, redact)]);
  return Object.freeze(Object.fromEntries(fields)) as RunEvent;
}

function clean(value: Json, redact: Redact): Json {
  if (typeof value === 'string') return redact(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return Object.freeze(value.map((item: Json) => clean(item, redact)));
  return Object.freeze(
    Object.fromEntries(Object.entries(value).map(([key, field]) => [redact(key), clean(field, redact)])),
  );
}
