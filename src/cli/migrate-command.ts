/** `pilotage migrate`: the journal in the format of this version. */
import { isPostgresUrl } from '#journal';
import { type Migrated, migrateJournal } from '#journal/place';
import type { Options } from './options.ts';
import { journalPlace } from './project.ts';
import { EXIT, type Terminal, UsageError } from './terminal.ts';
import { terminalJson } from './text.ts';

/** @returns the exit code. */
export async function migrateCommand(options: Options, terminal: Terminal): Promise<number> {
  const place = await journalPlace(options);
  if (options.rls !== undefined && !isPostgresUrl(place))
    throw new UsageError('--rls is for a database: give --journal with the URL of a Postgres.');
  const moved = await migrateJournal(place, options.rls === undefined ? undefined : options.rls === 'on');
  terminal.write(`${options.json ? terminalJson(moved) : sayingOf(moved)}\n`);
  return EXIT.goal;
}

function sayingOf({ from, to, rls }: Migrated): string {
  const separated = rls === true ? ' Tenants are separated by policies.' : '';
  if (from === 0) return `The journal was made, in format ${to}.${separated}`;
  return from === to
    ? `The journal has format ${to}. Nothing was to be done.${separated}`
    : `The journal was brought from format ${from} to ${to}.${separated}`;
}
