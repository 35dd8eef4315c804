/** `pilotage/journal/postgres`: a journal in a Postgres database. It needs the package `pg`. */
export type { PostgresConnection, PostgresOptions } from './postgres/connection.ts';
export { postgresJournal } from './postgres/journal.ts';
