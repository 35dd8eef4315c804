/** What a store may say in place of doing what it is asked for, and what whoever asked may rightly be told. */
import { PilotageError } from '#core';
import type { StoreErrorCode } from './script-world.ts';

const MESSAGES: Readonly<Record<StoreErrorCode, string>> = {
  journal_busy: 'Another process holds the store.',
  journal_full: 'The disk of the store is full.',
  journal_read_only: 'The store cannot be written.',
  journal_unavailable: 'The store cannot be reached.',
  journal_corrupt: 'The store is damaged.',
  journal_closed: 'The store was closed.',
};

export function storeFailure(code: StoreErrorCode): PilotageError {
  return new PilotageError(code, MESSAGES[code]);
}

/** Rightly told to a process that cannot go on with a run because its code is another. */
export function isOfAnotherVersion(error: unknown): boolean {
  return PilotageError.is(error, 'run_changed') || PilotageError.is(error, 'journal_entry_unknown');
}

export function isStoreError(error: unknown): boolean {
  return PilotageError.is(error) && Object.hasOwn(MESSAGES, error.code);
}
