/** `pilotage/journal/sqlite`: a journal in a file. It stands apart because it loads SQLite. */
export { type SqliteJournalOptions, sqliteJournal } from './sqlite/journal.ts';
