import { existsSync } from 'node:fs';
import { PilotageError } from '../core/errors.ts';
import type { Journal } from '../journal/port.ts';
import { sqliteJournal } from '../journal/sqlite.ts';
import type { Options } from './options.ts';

/** The journal of a command that looks for runs: one that does not exist is not made. */
export function openJournal({ journal: path }: Options): Journal {
  if (existsSync(path)) return sqliteJournal({ path });
  throw new PilotageError('journal_unavailable', `There is no journal ${path}. Start a run first, or give --journal.`);
}
