/** `pilotage inspect`: a run's journal, told from its beginning. It looks at what is written, and waits for nothing. */

import { answerText } from '../core/answer.ts';
import type { Message } from '../core/control.ts';
import type { Entry } from '../core/entry.ts';
import type { RunEvent } from '../core/event.ts';
import { eventsOf } from '../view/events.ts';
import { applyEntry, openState, type RunState } from '../view/run-state.ts';
import { isPaused } from '../view/waits.ts';
import { EventLines } from './event-lines.ts';
import { EXIT } from './exit-code.ts';
import { sections } from './inspect-sections.ts';
import { openJournal, withJournal } from './open-journal.ts';
import type { Options } from './options.ts';
import type { Terminal } from './terminal.ts';
import { count, dollars, duration, harmless, jsonLine, oneLine } from './text.ts';

/** @returns the exit code. */
export async function inspectCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const { entries, inbox } = await withJournal(await openJournal(options), async (journal) => ({
    entries: await journal.read(id),
    inbox: await journal.inbox(id),
  }));
  const { events, state } = replay(entries);
  if (options.json) for (const event of events) terminal.write(`${jsonLine(event)}\n`);
  else for (const line of report(events, state, inbox, options)) terminal.write(`${line}\n`);
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

function* report(
  events: readonly RunEvent[],
  state: RunState,
  inbox: readonly Message[],
  options: Options,
): Generator<string> {
  yield* heading(state);
  yield '';
  const lines = new EventLines({ texts: true });
  for (const event of events) {
    const at = `+${((event.occurredAt - state.startedAt) / 1000).toFixed(3)}`.padStart(10);
    for (const { text } of lines.of(event)) yield `${at}  ${text}`;
  }
  yield '';
  yield* sections(state, inbox, options);
  yield `totals   ${totals(state)}`;
  const { ending } = state;
  if (ending?.kind === 'finished' && ending.payload !== undefined) {
    yield '';
    yield harmless(answerText(ending.reason, ending.payload)).trimEnd();
  }
}

function* heading(state: RunState): Generator<string> {
  const { identity, startedAt, updatedAt, planner, query, goal, task, fork } = state;
  yield `run      ${identity.run}  ${statusOf(state)}`;
  yield `for      ${oneLine(`${identity.user} (tenant ${identity.tenant}, session ${identity.session})`, 200)}`;
  if (task !== null) yield `task of  ${oneLine(task.parent, 80)}: ${oneLine(task.description, 160)}`;
  if (fork !== null)
    yield `fork of  ${oneLine(fork.run, 80)}, from step ${fork.step + 1} on, once calls ${fork.effects}`;
  yield `query    ${oneLine(query, 300)}`;
  if (goal !== query) yield `goal     ${oneLine(goal, 300)}`;
  yield `planner  ${oneLine(planner, 80)}`;
  yield `started  ${new Date(startedAt).toISOString()}, last entry ${duration(updatedAt - startedAt)} later`;
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
