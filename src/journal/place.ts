/** Where runs are kept, as people write it: the path of a SQLite file, or the URL of a Postgres database. */
import type { Clock } from '#core';
import { isPostgresUrl } from './place-name.ts';
import { DEFAULT_JOURNAL_PATH, type Journal } from './port.ts';
import { migrateDatabase } from './postgres/connection.ts';
import { postgresJournal } from './postgres/journal.ts';
import { sqliteJournal } from './sqlite/journal.ts';
import { migrateFile } from './sqlite/schema.ts';

/** The place for whoever was given none: what `PILOTAGE_JOURNAL` says, or a file in the current folder. */
export function defaultPlace(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const named = env['PILOTAGE_JOURNAL']?.trim();
  return named === undefined || named === '' ? DEFAULT_JOURNAL_PATH : named;
}

export interface PlaceOptions {
  /** In place of the machine's clock, or of the database's. */
  readonly clock?: Clock | undefined;
  /** True: nothing is written, made, or brought to another format. */
  readonly looksOnly?: boolean;
}

/** @throws PilotageError `invalid_config` for another kind of URL, and as `sqliteJournal` and `postgresJournal` do. */
export function journalAt(place: string, { clock, looksOnly = false }: PlaceOptions = {}): Journal {
  const given = clock === undefined ? {} : { clock };
  if (isPostgresUrl(place)) return postgresJournal({ url: place }, { ...given, migrate: !looksOnly });
  return sqliteJournal({ path: place, ...given, ...(looksOnly ? { readOnly: true } : {}) });
}

/** The formats before (0: there was nothing) and after. */
export interface Migrated {
  readonly from: number;
  readonly to: number;
  /** Whether a database separates tenants by policies. A file has no such thing. */
  readonly rls?: boolean;
}

/** Brings what is there to the present format. @param rls whether a database separates tenants from now on. */
export async function migrateJournal(place: string, rls?: boolean): Promise<Migrated> {
  return isPostgresUrl(place) ? migrateDatabase({ url: place }, rls) : migrateFile(place);
}
