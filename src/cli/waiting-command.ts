/** `pilotage waiting`: all that the runs of a journal wait for. */
import { defined, OPERATOR_REASONS, PAUSE_REASONS, type PauseReason, WAITS_FOR, type WaitFor } from '#core';
import { listWaiting, type Waiting } from '#runtime';
import { notePage } from './list-command.ts';
import { wholeNumber } from './option-values.ts';
import type { Options } from './options.ts';
import { openJournal, withJournal } from './project.ts';
import { EXIT, type Terminal, UsageError } from './terminal.ts';
import { duration, shortLine, terminalJson, whoseText } from './text.ts';

/** @returns the exit code. */
export async function waitingCommand(options: Options, terminal: Terminal): Promise<number> {
  const what = whatOf(options.waitsFor);
  const reason = reasonOf(options.reason);
  const after = wholeNumber(options.after, 'after');
  return withJournal(await openJournal(options, 'look'), async (journal) => {
    const { tenant, user, session, run, agent, key, limit } = options;
    const query = { tenant, user, session, run, agent, key, limit, after, reason, for: what };
    const rows = await listWaiting(journal, defined(query));
    for (const row of rows) terminal.write(`${options.json ? terminalJson(row) : lineOf(row)}\n`);
    if (rows.length === 0 && !options.json) terminal.note('Nothing waits.');
    notePage(rows, rows.at(-1)?.number, options, terminal);
    return EXIT.goal;
  });
}

function whatOf(text: string | undefined): WaitFor | undefined {
  const what = WAITS_FOR.find((known) => known === text);
  if (text === undefined || what !== undefined) return what;
  throw new UsageError(`--for takes ${WAITS_FOR.join(', ')}.`);
}

const REASONS: readonly string[] = [...PAUSE_REASONS, ...OPERATOR_REASONS, 'client_tool'];

function reasonOf(text: string | undefined): PauseReason | undefined {
  if (text === undefined || isReason(text)) return text;
  throw new UsageError(`--reason takes ${REASONS.join(', ')}.`);
}

function isReason(text: string): text is PauseReason {
  return REASONS.includes(text);
}

function lineOf(row: Waiting): string {
  const { run, tool, requestedAt } = row;
  const of = tool === undefined ? '' : `${shortLine(tool, 40)}: `;
  const since = `${duration(Date.now() - requestedAt)} ago`;
  return `${shortLine(run, 80).padEnd(24)}  ${row.for.padEnd(6)}  ${since.padEnd(16)}  ${of}${whatFor(row)}${whoseText(row)}`;
}

function whatFor(row: Waiting): string {
  const { for: what, reason, question, token, key, until, answered } = row;
  const end = until === undefined ? '' : ` until ${new Date(until).toISOString()}`;
  if (what === 'time') return end.trim();
  if (what === 'event') return `${shortLine(key ?? '', 80)}${end}`;
  const words = question === undefined ? '' : ` ${shortLine(question, 120)}`;
  const state = answered === true ? ' answered, not taken yet' : '';
  return `${reason}${words}  (${token})${end}${state}`;
}
