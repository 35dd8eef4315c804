/** Journals of runs that are longer than a test could drive. */
import { deepFreeze, type Entry, type EntryBody, local } from '#core';

/** A run of so many steps, each of which has called one tool. */
export function longJournal(steps: number, run: string = 'long'): readonly Entry[] {
  const identity = local('ana', { run });
  const bodies: EntryBody[] = [{ kind: 'started', identity, query: 'q', agent: 'finish', limits: {}, scopes: [] }];
  for (let step = 0; step < steps; step += 1) {
    bodies.push(
      { kind: 'moved', step, decision: { kind: 'call_tool', tool: 'note', args: { n: step } }, startedAt: step },
      { kind: 'call_ended', step, call: 0, outcome: { kind: 'value', value: `noted ${step}` }, attempts: 1 },
    );
  }
  return bodies.map((body, index) => deepFreeze({ ...body, seq: index + 1, at: index }));
}
