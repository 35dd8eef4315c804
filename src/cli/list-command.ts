/** `pilotage list`. */
import { defined } from '#core';
import type { RunRecord } from '#journal';
import type { Options } from './options.ts';
import { openJournal, withJournal } from './project.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { duration, shortLine, terminalJson, whoseText } from './text.ts';

/** @returns the exit code. */
export async function listCommand(options: Options, terminal: Terminal): Promise<number> {
  return withJournal(await openJournal(options, 'look'), async (journal) => {
    const { status, limit, tenant, user, session, parent, labels, agent, text, since, schedule, after } = options;
    const records = await journal.list(
      defined({ status, limit, tenant, user, session, parent, labels, agent, text, since, schedule, after }),
    );
    for (const record of records) terminal.write(`${options.json ? terminalJson(record) : row(record)}\n`);
    if (records.length === 0 && !options.json) terminal.note('No runs.');
    notePage(records, records.at(-1)?.identity.run, options, terminal);
    return EXIT.goal;
  });
}

/** There may be more behind a full page. @param last what the next page begins behind. */
export function notePage(
  page: readonly unknown[],
  last: unknown,
  { limit = 50, json }: Options,
  terminal: Terminal,
): void {
  if (page.length === limit && !json) terminal.note(`There may be more: the next page has --after ${last}.`, 'quiet');
}

function row({ identity, status, createdAt, readAt, wakeAt, query, problem, erased, labels = {} }: RunRecord): string {
  const age = `${duration(Date.now() - createdAt)} ago`;
  const about = problem === undefined ? '' : `  ⚠ ${shortLine(problem.code, 60)}: ${shortLine(problem.message, 160)}`;
  const later = status === 'pending' && typeof wakeAt === 'number' && wakeAt > readAt;
  const begins = later ? `  begins ${new Date(wakeAt).toISOString()}` : '';
  const named = Object.entries(labels).map(([name, value]) => `  ${shortLine(`${name}=${value}`, 60)}`);
  return `${shortLine(identity.run, 80).padEnd(24)}  ${status.padEnd(9)}  ${age.padEnd(16)}  ${erased === undefined ? shortLine(query, 80) : '(erased)'}${begins}${named.join('')}${whoseText(identity)}${about}`;
}
