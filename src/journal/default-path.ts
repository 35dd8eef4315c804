/** The journal of a runtime that was given none; relative to the current folder. */
export const DEFAULT_JOURNAL_PATH = '.pilotage/pilotage.db';
