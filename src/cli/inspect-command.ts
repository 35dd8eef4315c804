/** `pilotage inspect`: a run's journal, told from its beginning. It looks at what is written, and waits for nothing. */

import { answerText } from '../core/answer.ts';
import type { Entry } from '../core/entry.ts';
import type { RunEvent } from '../core/event.ts';
import { eventsOf } from '../view/events.ts';
import { applyEntry, isPaused, openState, type RunState } from '../view/run-state.ts';
import { EventLines } from './event-lines.ts';
import { EXIT } from './exit-code.ts';
import { openJournal } from './open-journal.ts';
import type { Options } from './options.ts';
import type { Terminal } from './terminal.ts';
import { count, dollars, duration, harmless, jsonLine, oneLine } from './text.ts';

/** @returns the exit code. */
export async function inspectCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const journal = openJournal(options);
  let entries: Entry[];
  try {
    entries = await journal.read(id);
  } finally {
    await journal.close();
  }
  const { events, state } = replay(entries);
  if (options.json) for (const event of events) terminal.write(`${jsonLine(event)}\n`);
  else for (const line of timeline(events, state)) terminal.write(`${line}\n`);
  return EXIT.goal;
}

function replay(entries: readonly Entry[]): { events: RunEvent[]; state: RunState } {
  const events: RunEvent[] = [];
  let state: RunState | undefined;
  for (const entry of entries) {
    events.push(...eventsOf(entry, state));
    if (state === undefined) state = openState(entry);
    else applyEntry(state, entry);
  }
  if (state === undefined) throw new Error('A stored run has entries.');
  return { events, state };
}

function* timeline(events: readonly RunEvent[], state: RunState): Generator<string> {
  const { identity, startedAt, updatedAt, planner, query } = state;
  yield `run      ${identity.run}  ${statusOf(state)}`;
  yield `for      ${oneLine(`${identity.user} (tenant ${identity.tenant}, session ${identity.session})`, 200)}`;
  yield `query    ${oneLine(query, 300)}`;
  yield `planner  ${oneLine(planner, 80)}`;
  yield `started  ${new Date(startedAt).toISOString()}, last entry ${duration(updatedAt - startedAt)} later`;
  yield '';
  const lines = new EventLines({ texts: true });
  for (const event of events) {
    const at = `+${((event.occurredAt - startedAt) / 1000).toFixed(3)}`.padStart(10);
    for (const { text } of lines.of(event)) yield `${at}  ${text}`;
  }
  yield '';
  yield `totals   ${totals(state)}`;
  const { ending } = state;
  if (ending?.kind === 'finished' && ending.payload !== undefined) {
    yield '';
    yield harmless(answerText(ending.reason, ending.payload)).trimEnd();
  }
}

function statusOf(state: RunState): string {
  const { ending } = state;
  if (ending?.kind === 'finished') return `finished: ${ending.reason}`;
  if (ending?.kind === 'failed') return `failed: ${oneLine(ending.error.code, 60)}`;
  return isPaused(state) ? 'paused' : 'not ended';
}

function totals({ totals }: RunState): string {
  const { steps, calls, inputTokens, outputTokens, costMicroUsd } = totals;
  const tokens = `${inputTokens.toLocaleString('en')} tokens in, ${outputTokens.toLocaleString('en')} out`;
  return `${count(steps, 'step')}, ${count(calls, 'call')}, ${tokens}, ${dollars(costMicroUsd)}`;
}
