/** `pilotage signal`: says that something has happened outside. It drives nothing. */
import { defined, type Json, Redaction } from '#core';
import { type SignalResult, sendSignal } from '#runtime';
import type { Options } from './options.ts';
import { findProject, journalOf, withJournal } from './project.ts';
import { EXIT, type Terminal, UsageError } from './terminal.ts';
import { count, shortLine, terminalJson } from './text.ts';

/** @returns the exit code. */
export async function signalCommand(key: string, text: string, options: Options, terminal: Terminal): Promise<number> {
  const payload = text === '' ? null : payloadIn(text);
  const project = options.journal === undefined ? await findProject(options) : undefined;
  const redaction = new Redaction(project?.redact);
  // What comes before the first run is kept, too: the journal is made when there is none.
  return withJournal(journalOf(options, project), async (journal) => {
    const { id, tenant, keepMs } = options;
    const result = await sendSignal({ journal, redaction }, key, payload, defined({ id, tenant, keepMs }));
    if (options.json) terminal.write(`${terminalJson({ key, ...result })}\n`);
    else terminal.write(`${outcomeOf(key, result)}\n`);
    return EXIT.goal;
  });
}

function outcomeOf(key: string, { id, isNew, runs, kept, until }: SignalResult): string {
  const name = shortLine(key, 80);
  const time = new Date(until).toISOString();
  if (!isNew) return `${name}: the signal ${shortLine(id, 80)} was there before, and nothing has changed.`;
  if (runs.length > 0) {
    const shown = runs.slice(0, MOST_SHOWN).map((run) => shortLine(run, 80));
    const more = runs.length > MOST_SHOWN ? ', …' : '';
    return `${name}: told ${count(runs.length, 'run')} (${shown.join(', ')}${more}), as ${shortLine(id, 80)}. A process that has the agent goes on with it.`;
  }
  if (kept) return `${name}: nobody waits for it; it is kept until ${time}, as ${shortLine(id, 80)}.`;
  return `${name}: nobody waits for it, and it is not kept.`;
}

const MOST_SHOWN = 5;

function payloadIn(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new UsageError(`The payload is not JSON. Put it in quotes, such as '{"paid": true}', or '"words"'.`);
  }
}
