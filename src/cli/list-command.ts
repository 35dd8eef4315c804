/** `pilotage list`. */
import { defined } from '#core';
import type { RunRecord } from '#journal';
import type { Options } from './options.ts';
import { openJournal, withJournal } from './project.ts';
import { EXIT, type Terminal } from './terminal.ts';
import { duration, shortLine, terminalJson } from './text.ts';

/** @returns the exit code. */
export async function listCommand(options: Options, terminal: Terminal): Promise<number> {
  return withJournal(await openJournal(options, 'look'), async (journal) => {
    const { status, limit, session, parent } = options;
    const records = await journal.list(defined({ status, limit, session, parent }));
    for (const record of records) terminal.write(`${options.json ? terminalJson(record) : row(record)}\n`);
    if (records.length === 0 && !options.json) terminal.note('No runs.');
    return EXIT.goal;
  });
}

function row({ identity, status, createdAt, query, problem, erased }: RunRecord): string {
  const age = `${duration(Date.now() - createdAt)} ago`;
  const about = problem === undefined ? '' : `  ⚠ ${shortLine(problem.code, 60)}: ${shortLine(problem.message, 160)}`;
  return `${shortLine(identity.run, 80).padEnd(24)}  ${status.padEnd(9)}  ${age.padEnd(16)}  ${erased === undefined ? shortLine(query, 80) : '(erased)'}${about}`;
}
