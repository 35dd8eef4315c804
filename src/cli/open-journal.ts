/** The journal that a command works on. */
import { existsSync } from 'node:fs';
import { PilotageError } from '#core';
import { DEFAULT_JOURNAL_PATH, type Journal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import type { Options } from './options.ts';
import { findProject, type Project } from './project.ts';

/** Made when it does not exist. */
export function journalOf(options: Options, project: Project | undefined): Journal {
  const place = placeOf(options, project);
  return typeof place === 'string' ? sqliteJournal({ path: place }) : place;
}

/** What a command does with the journal: one that only looks changes nothing, on a full disk as well. */
export type Use = 'look' | 'write';

/**
 * Opens the journal for a command that looks for runs: a journal that does not exist is not made.
 * @throws PilotageError `journal_unavailable`
 */
export function storedJournal(options: Options, project: Project | undefined, use: Use): Journal {
  const place = placeOf(options, project);
  if (typeof place !== 'string') return place;
  if (existsSync(place)) return sqliteJournal({ path: place, readOnly: use === 'look' });
  throw new PilotageError('journal_unavailable', `There is no journal ${place}. Start a run first, or give --journal.`);
}

/** For a command that needs nothing else of the configuration. */
export async function openJournal(options: Options, use: Use): Promise<Journal> {
  return storedJournal(options, options.journal === undefined ? await findProject(options) : undefined, use);
}

/** Uses the journal, and closes it in every case. */
export async function withJournal<T>(journal: Journal, use: (journal: Journal) => Promise<T>): Promise<T> {
  try {
    return await use(journal);
  } finally {
    await journal.close();
  }
}

function placeOf({ journal }: Options, project: Project | undefined): Journal | string {
  return journal ?? project?.journal ?? DEFAULT_JOURNAL_PATH;
}
