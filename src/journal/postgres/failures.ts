/** What Postgres, or the way to it, says, as errors of ours. */
import { type ErrorCode, PilotageError } from '#core';
import { NO_TENANT } from './policies.ts';

// https://www.postgresql.org/docs/current/errcodes-appendix.html
const DEADLOCK = '40P01';
const SERIALIZATION = '40001';
const STATEMENT_TIMEOUT = '57014';
const LOCK_TIMEOUT = '55P03';
const READ_ONLY = '25006';
const NO_SUCH_TABLE = '42P01';
const NO_SUCH_COLUMN = '42703';
const NO_PRIVILEGE = '42501';
const TOO_MANY_CONNECTIONS = '53300';
const BAD_CHARACTER = '22021';
const TOO_LARGE = '54000';
const NOT_PREPARED = '26000';
const PREPARED_TWICE = '42P05';
const INTERNAL_ERROR = 'XX000';

/** The two have got into each other's way: one of them was rolled back, and may be tried again. */
export function isConflict(thrown: unknown): boolean {
  const state = stateOf(thrown);
  return state === DEADLOCK || state === SERIALIZATION;
}

/** The server has given a statement up because it took, or waited, too long. */
export function isTimeout(thrown: unknown): boolean {
  const state = stateOf(thrown);
  return state === STATEMENT_TIMEOUT || state === LOCK_TIMEOUT;
}

/** The five characters with which the server classes an error; `undefined` when it was not the server that spoke. */
export function stateOf(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error) || !('code' in thrown) || !('severity' in thrown)) return undefined;
  return typeof thrown.code === 'string' ? thrown.code : undefined;
}

/**
 * Typed errors pass through. What is about the caller is told to clients of a server too, so that it has no words of the database, which name its tables:
 * those are in the `cause`.
 */
export function postgresError(thrown: unknown): PilotageError {
  if (PilotageError.is(thrown)) return thrown;
  const why = thrown instanceof Error && thrown.message !== '' ? thrown.message : String(thrown);
  const [code, message] = isOfOthers(thrown) ? OF_OTHERS : describe(stateOf(thrown), why);
  return new PilotageError(code, message, { cause: thrown });
}

/** A row that a policy lets nobody put in is refused with the state of a missing right; what words it is said in depends on the server. */
function isOfOthers(thrown: unknown): boolean {
  return stateOf(thrown) === NO_PRIVILEGE && Reflect.get(thrown as Error, 'routine') === 'ExecWithCheckOptions';
}

const OF_OTHERS: readonly [ErrorCode, string] = [
  'scope_mismatch',
  'This journal serves one tenant, and what it was to store is of another. Nothing was written. Use a journal that serves that tenant.',
];

function describe(state: string | undefined, why: string): readonly [ErrorCode, string] {
  switch (state) {
    case undefined:
      return [
        'journal_unavailable',
        `Postgres cannot be reached (${why}). Check that it runs, and the URL of the journal.`,
      ];
    case DEADLOCK:
    case SERIALIZATION:
    case STATEMENT_TIMEOUT:
    case LOCK_TIMEOUT:
      return ['journal_busy', `Postgres could not do it in time (${why}). Nothing was written. Try again.`];
    case TOO_MANY_CONNECTIONS:
      return ['journal_unavailable', `Postgres has no connection left (${why}). Give the journals smaller pools.`];
    case READ_ONLY:
      return [
        'journal_unavailable',
        `This Postgres takes no writes (${why}): it is a standby, or was made read-only. Give the URL of the primary.`,
      ];
    case NO_SUCH_TABLE:
      return [
        'journal_corrupt',
        `A table of the journal is missing (${why}). Restore a backup, or give another schema.`,
      ];
    case NO_SUCH_COLUMN:
      return [
        'journal_corrupt',
        `The tables of the journal were changed (${why}). Put the column back, or restore a backup.`,
      ];
    case NO_PRIVILEGE:
      return [
        'journal_read_only',
        `The database user has no right to do this (${why}). Grant it, or give another user.`,
      ];
    case NO_TENANT:
      return [
        'invalid_config',
        `The tenants of this journal are separated by policies since it was opened. Open it with { rls: true }.`,
      ];
    case BAD_CHARACTER:
      return ['invalid_config', `Postgres stores no text with the character U+0000. Leave it out of names and keys.`];
    case TOO_LARGE:
      return ['invalid_config', `It is too large for Postgres. Store it as an artifact, or make names shorter.`];
    // The connection is another one than that on which it was prepared.
    case NOT_PREPARED:
    case PREPARED_TWICE:
      return [
        'journal_unavailable',
        `A pooler that gives each transaction another connection stands before Postgres (${why}). Put ?transactionPooler=true behind the URL of the journal, or give { transactionPooler: true }.`,
      ];
    default:
      return describeClass(state, why);
  }
}

function describeClass(state: string, why: string): readonly [ErrorCode, string] {
  switch (state.slice(0, 2)) {
    case '53':
      return ['journal_full', `Postgres has no room left (${why}). Nothing was written; make room and try again.`];
    // The server is shutting down or starting, has cut the connection, or has an error of its disk.
    case '08':
    case '57':
    case '58':
      return ['journal_unavailable', `Postgres cannot do it now (${why}). Try again.`];
    case '28':
    case '3D':
      return ['invalid_config', `Postgres refuses the connection (${why}). Correct the URL of the journal.`];
    case 'XX':
      // Other internal errors pass, and poolers give theirs this state too.
      if (state === INTERNAL_ERROR) return ['journal_unavailable', `Postgres could not do it (${why}). Try again.`];
      return ['journal_corrupt', `Postgres finds its data damaged (${why}). Restore a backup.`];
    default:
      return ['journal_unavailable', `Postgres refused a statement of the journal (${state}: ${why}).`];
  }
}
