/** The events of a run as a list. */
import type { EventType, RunEvent } from '#core';
import type { Run } from '#runtime';

export async function collect(run: Run, options: { from?: number } = {}): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of run.events(options)) events.push(event);
  return events;
}

export function only<T extends EventType>(events: readonly RunEvent[], type: T): Extract<RunEvent, { type: T }>[] {
  return events.filter((event): event is Extract<RunEvent, { type: T }> => event.type === type);
}
