/** What every store checks, and the words in which it refuses. */
import { INBOX_CAP } from '../core/control.ts';
import { PilotageError } from '../core/errors.ts';
import { assertIdentity, type Scope, scopeKey } from '../core/identity.ts';
import type { Append, LeaseRequest, NewRun, RunQuery, RunStatus } from './port.ts';
import type { SessionSummary } from './session-memory.ts';

const DEFAULT_PAGE = 50;
const MAX_PAGE = 200;

/** @throws PilotageError `identity_required`, or `invalid_config` for entries that do not begin a run. */
export function assertNewRun(run: NewRun): void {
  assertIdentity(run.identity);
  if (!Number.isSafeInteger(run.priority)) {
    throw new PilotageError('invalid_config', `The priority ${run.priority} is no whole number.`);
  }
  if (run.claim !== undefined) assertLease(run.claim);
  if (run.entries[0]?.kind !== 'started') {
    throw new PilotageError('invalid_config', 'The first entry of a run must be of the kind started.');
  }
  for (const [index, entry] of run.entries.entries()) {
    if (entry.seq === index + 1) continue;
    throw new PilotageError('invalid_config', `Entry ${index + 1} of a new run has seq ${entry.seq}; count from 1.`);
  }
}

/** @throws PilotageError `invalid_config` for a length that is no positive number. */
export function assertLease(lease: Pick<LeaseRequest, 'leaseMs'>): void {
  if (Number.isFinite(lease.leaseMs) && lease.leaseMs > 0) return;
  throw new PilotageError('invalid_config', `leaseMs is ${lease.leaseMs}; give a positive number.`);
}

/** @throws PilotageError `journal_conflict` for entries that do not count on from `expected`. */
export function assertConsecutive(append: Append): void {
  for (let index = 0; index < append.entries.length; index += 1) {
    const seq = append.entries[index]?.seq;
    if (seq === append.expected + 1 + index) continue;
    throw conflict(append, `entry ${seq} does not follow ${append.expected + index}`);
  }
}

/** @throws PilotageError `lease_lost` or `journal_conflict`, when the run is not as the caller knows it. */
export function assertCurrent(append: Append, now: { readonly head: number; readonly fence: number }): void {
  if (append.fence !== now.fence) {
    throw new PilotageError(
      'lease_lost',
      `Run ${append.run} has been claimed by somebody else: fence ${append.fence} is old, ${now.fence} is current. Stop working on it.`,
      { data: { run: append.run, fence: append.fence, current: now.fence } },
    );
  }
  if (append.expected !== now.head) throw conflict(append, `its last entry is ${now.head}, not ${append.expected}`);
}

function conflict(append: Append, what: string): PilotageError {
  return new PilotageError(
    'journal_conflict',
    `Nothing was appended to run ${append.run}: ${what}. Read the run again and decide anew.`,
    { data: { run: append.run, expected: append.expected } },
  );
}

/** Where a lease or a wait ends, in whole milliseconds. @throws PilotageError `invalid_config` for no finite time. */
export function wholeMs(time: number, name: string): number {
  if (Number.isFinite(time)) return Math.max(0, Math.ceil(time));
  throw new PilotageError('invalid_config', `${name} is ${time}; give milliseconds since the epoch.`);
}

/** @throws PilotageError `invalid_config` for a page over 200 or below 1. */
export function pageSize(query: RunQuery): number {
  const limit = query.limit ?? DEFAULT_PAGE;
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return limit;
  throw new PilotageError('invalid_config', `A page of ${limit} runs cannot be listed; ask for 1 to ${MAX_PAGE}.`);
}

/** The key of what belongs to a session. @throws PilotageError `identity_required` for a scope that is not complete. */
export function ownedBy(scope: Scope): string {
  assertIdentity({ tenant: scope.tenant, user: scope.user, session: scope.session, run: '-' });
  return scopeKey(scope);
}

/** @throws PilotageError `invalid_config` for no whole number from 0 up. */
export function assertCounts(counts: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(counts)) {
    if (Number.isSafeInteger(value) && value >= 0) continue;
    throw new PilotageError('invalid_config', `${name} is ${value}; give a whole number from 0 up.`);
  }
}

/** @throws PilotageError `invalid_config` for the turn of another run, or one without a time. */
export function assertTurn({ run, turn }: Append): void {
  if (turn === undefined) return;
  assertCounts({ 'turn.at': turn.at });
  if (turn.run === run) return;
  throw new PilotageError('invalid_config', `The ending of run ${run} cannot carry the turn of run ${turn.run}.`);
}

/** @throws PilotageError `invalid_config` for numbers that cannot be. */
export function assertSummary({ covers, failures, updatedAt }: SessionSummary): void {
  assertCounts({ covers, failures, updatedAt });
}

export function hasEnded(status: RunStatus): boolean {
  return status !== 'running' && status !== 'paused';
}

export function runNotFound(run: string): PilotageError {
  return new PilotageError('run_not_found', `This journal has no run ${run}. Check the id and the journal's path.`, {
    data: { run },
  });
}

/** @throws PilotageError `run_ended` or `inbox_full`. */
export function assertTakesSignals(run: string, status: RunStatus, waiting: number): void {
  if (hasEnded(status)) {
    throw new PilotageError('run_ended', `Run ${run} has ended (${status}); it takes no more controls.`, {
      data: { run, status },
    });
  }
  if (waiting >= INBOX_CAP) {
    throw new PilotageError(
      'inbox_full',
      `${waiting} controls wait for run ${run}, the most there can be. Send it again when the run has taken some.`,
      { data: { run, cap: INBOX_CAP } },
    );
  }
}

export function journalClosed(): PilotageError {
  return new PilotageError('journal_closed', 'The journal was closed. Open it again to use it.');
}
