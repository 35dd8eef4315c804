/**
 * Ids of events, by which a reader goes on: the position of the entry, and which of its events this is, such as `12.1`. A plain `12` stands for all events
 * of that entry. Events of the run that goes on where this one has ended have its id before them. What is not recorded, and what tasks do, has none.
 */
import { isRecorded, type RunEvent } from '#core';
import { RequestRefused } from '../problem.ts';

export interface EventPlace {
  /** Another run than the one that is read. */
  readonly run?: string;
  readonly seq: number;
  /** How many events of the entry were read. Absent: all. */
  readonly part?: number;
}

export interface NumberedEvent {
  readonly event: RunEvent;
  readonly id?: string;
}

/** @throws RequestRefused `request_invalid`. */
export function placeIn(id: string | undefined): EventPlace {
  if (id === undefined) return { seq: 0 };
  const [, run, seq, part] = /^(?:(.+):)?(\d{1,15})(?:\.(\d{1,9}))?$/s.exec(id) ?? [];
  if (seq === undefined)
    throw new RequestRefused('request_invalid', `${JSON.stringify(id.slice(0, 64))} is not the id of an event.`);
  return {
    seq: Number(seq),
    ...(run === undefined ? {} : { run }),
    ...(part === undefined ? {} : { part: Number(part) }),
  };
}

/** Where a reader begins to read who has had this. */
export function fromOf({ seq, part }: EventPlace): number {
  return Math.max(1, part === undefined ? seq + 1 : seq);
}

/** The events behind the place, with their ids. @param own the run whose events need no name before them. */
export async function* numbered(
  events: AsyncIterable<RunEvent>,
  own: string,
  after: EventPlace,
): AsyncGenerator<NumberedEvent, void> {
  let last = '';
  let part = 0;
  for await (const event of events) {
    const { identity, seq, path } = event;
    if (!isRecorded(event) || path !== undefined) {
      yield { event };
      continue;
    }
    const entry = identity.run === own ? `${seq}` : `${identity.run}:${seq}`;
    part = entry === last ? part + 1 : 1;
    last = entry;
    const isFirstRead = identity.run === (after.run ?? own) && seq === after.seq;
    if (!isFirstRead || part > (after.part ?? Infinity)) yield { event, id: `${entry}.${part}` };
  }
}
