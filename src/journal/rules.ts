/** The checks of every store, and the messages of its refusals. */
import { createHash } from 'node:crypto';
import {
  assertIdentity,
  assertScope,
  assertSignal,
  assertStreamName,
  INBOX_CAP,
  jsonEquals,
  PilotageError,
  rowBytes,
  type Scope,
  type Started,
  type StoreItem,
  scopeKey,
  timeAfter,
} from '#core';
import { MAX_LEASE_MS } from './lease-watch.ts';
import type {
  Append,
  Claimant,
  ClaimRequest,
  Journal,
  LeaseRequest,
  NewRun,
  Park,
  Renewal,
  RepairRequest,
  RunQuery,
  RunRecord,
  RunStatus,
  SeenItem,
  Sending,
  SessionQuery,
  SessionRecord,
} from './port.ts';
import type { NewStreamRow } from './port-streams.ts';
import type { NewSignal, SignalQuery, WaitQuery } from './waits-port.ts';

/** Whether an item is as somebody has seen it. */
export function isAsSeen(item: StoreItem | undefined, { value }: SeenItem): boolean {
  if (item === undefined || value === undefined) return item === undefined && value === undefined;
  return jsonEquals(item.value, value);
}

const DEFAULT_PAGE = 50;
const MAX_PAGE = 200;

/**
 * @returns the first entry.
 * @throws PilotageError `identity_required`, or `invalid_config` for entries that do not begin a run.
 */
export function assertNewRun(run: NewRun): Started {
  assertIdentity(run.identity);
  assertPriority(run.priority);
  if (run.claim !== undefined) assertLease(run.claim);
  const [first] = run.entries;
  if (first?.kind !== 'started') {
    throw new PilotageError('invalid_config', 'The first entry of a run must be of the kind started.');
  }
  for (const [index, entry] of run.entries.entries()) {
    if (entry.seq === index + 1) continue;
    throw new PilotageError('invalid_config', `Entry ${index + 1} of a new run has seq ${entry.seq}; count from 1.`);
  }
  return first;
}

/** What a record tells of how the run began. */
export function beginningOf(
  first: Started,
): Pick<
  RunRecord,
  'query' | 'agent' | 'parent' | 'root' | 'conversation' | 'turnOrigin' | 'labels' | 'schedule' | 'erased'
> {
  const { query, agent, task, conversation = true, turn, labels, schedule, erased } = first;
  return {
    query,
    agent,
    ...(turn === undefined ? {} : { turnOrigin: turn }),
    ...(task === undefined ? {} : { parent: task.parent, root: task.root }),
    ...(conversation ? {} : { conversation: false }),
    ...(labels === undefined ? {} : { labels }),
    ...(schedule === undefined ? {} : { schedule }),
    ...(erased === undefined ? {} : { erased }),
  };
}

/** Whether the run is a turn of its session's conversation. */
export function isTurn({ conversation, task }: Started): boolean {
  return conversation !== false && task === undefined;
}

/** The run whose content a new run has, if there is one: when that was deleted, its words would be stored again. */
export function sourceOf({ fork, turn }: Started): string | undefined {
  return fork?.run ?? turn?.replaces;
}

/** @throws PilotageError `session_changed` when the session is not as the sender has seen it. */
export function assertSessionSeen(
  { scope: { session }, seen }: Sending,
  now: Pick<SessionRecord, 'live' | 'branch'> | undefined,
  hasTurns: () => boolean,
): void {
  const { live, branch } = now ?? {};
  const isSameTurn = (seen.live?.run ?? null) === (live?.run ?? null);
  const heardAll = seen.live?.signals === undefined || seen.live.signals === live?.signals;
  const isSameBranch = seen.branch === (branch ?? null);
  if (isSameTurn && heardAll && isSameBranch && !(seen.isNew === true && hasTurns())) return;
  throw new PilotageError(
    'session_changed',
    `Nothing was stored: the session ${session} is not as it was read. Read it again, and decide anew.`,
    { data: { session } },
  );
}

/** @throws PilotageError `session_busy` when a failed turn is reopened while another one is under way. */
export function assertMayGoOn(run: string, live: string | undefined): void {
  if (live === undefined) return;
  throw sessionBusy(
    `Run ${run} cannot go on while another turn of its session is under way (run ${live}). Wait for it, or cancel it.`,
    live,
  );
}

/** Whether these entries let a run go on that has failed. */
export function isReopening({ entries, status }: Append): boolean {
  return status !== undefined && entries[0]?.kind === 'reopened';
}

/**
 * Asked of whoever switches to another branch. @param home of which session that is a turn. The session may have been deleted since somebody looked.
 * @throws PilotageError `session_busy` while a turn is under way, `run_not_found` for a run that is not among its turns.
 */
export function assertMaySwitch(scope: Scope, branch: string, live: string | undefined, home: Scope | undefined): void {
  if (live !== undefined) {
    const message = `The session ${scope.session} has a turn under way (run ${live}). Wait for it, or cancel it, before you go to another branch.`;
    throw sessionBusy(message, live);
  }
  if (home === undefined || ownedBy(home) !== ownedBy(scope)) throw runNotFound(branch);
}

/** @throws PilotageError `scope_mismatch` when the run that a message is to begin is there already, in another session. */
export function assertOwnTurn({ scope, known: { run } }: Sending, there: Scope): void {
  if (ownedBy(there) === ownedBy(scope)) return;
  const message = `The run ${run}, which the message would begin, belongs to another session. Send the message with another id.`;
  throw new PilotageError('scope_mismatch', message, { data: { run } });
}

export function cannotDelete({ session }: Scope): string {
  return `The session ${session} was not deleted: a process has one of its runs. Cancel that run first.`;
}

/** @param run the turn that is under way. */
export function sessionBusy(message: string, run: string): PilotageError {
  return new PilotageError('session_busy', message, { data: { run } });
}

/** @throws PilotageError `invalid_config` for a priority that is not a whole number. */
export function assertPriority(priority: number): void {
  if (Number.isSafeInteger(priority)) return;
  throw new PilotageError('invalid_config', `The priority is ${priority}; give a whole number.`);
}

/** @throws PilotageError `invalid_config` for a length that is not a positive number, or too long. */
export function assertLease(lease: Pick<LeaseRequest, 'leaseMs'>): void {
  if (lease.leaseMs > 0 && lease.leaseMs <= MAX_LEASE_MS) return;
  const message = `leaseMs is ${lease.leaseMs}; give a number over 0, and up to ${MAX_LEASE_MS}.`;
  throw new PilotageError('invalid_config', message);
}

/** So many runs whose time has come, or leases that are over, are compared by their priorities, those that are due longest: a backlog is not read for each claim. */
export const MOST_COMPARED = 256;

/** So many whose time has come are looked through for those of other tenants before these are gone through one by one, which costs as much for each of them as ten runs do. */
export const MOST_PASSED = 4_096;

/** So many tenants that have something due are compared, from the one behind the last that was served. */
export const MOST_TENANTS = 32;

/** A run with more entries than this is read by itself, perhaps from a snapshot on. */
export const MOST_ENTRIES_ALONG = 64;

/** Whether the owner that a run is claimed from may go on with it: nobody knows that it is dead. */
export function mayLive(owner: string, { from, isDead }: Claimant & Pick<ClaimRequest, 'from'>): boolean {
  return owner !== from && isDead?.(owner) !== true;
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
export function assertCurrent(
  append: Append,
  now: { readonly head: number; readonly fence: number; readonly owner: string | null | undefined },
): void {
  assertFence(append, now.fence);
  if (append.leaseMs !== undefined && (now.owner ?? undefined) === undefined) {
    throw new PilotageError(
      'lease_lost',
      `The lease of run ${append.run} was given up, and cannot be renewed. Claim the run.`,
      { data: { run: append.run, fence: append.fence } },
    );
  }
  if (append.expected !== now.head) throw conflict(append, `its last entry is ${now.head}, not ${append.expected}`);
}

/** @throws PilotageError `lease_lost` when the fence is not the run's any more. */
export function assertFence({ run, fence }: Renewal, current: number): void {
  if (fence === current) return;
  throw new PilotageError(
    'lease_lost',
    `Run ${run} has been claimed by somebody else: fence ${fence} is old, ${current} is current. Stop working on it.`,
    { data: { run, fence, current } },
  );
}

/** @throws PilotageError `inbox_changed` when the run has had a signal that the caller does not know. */
export function assertSeen({ run, seenSignals }: Append, signals: number): void {
  if (seenSignals === undefined || signals <= seenSignals) return;
  throw new PilotageError(
    'inbox_changed',
    `Nothing was appended to run ${run}: it has had ${signals} signals, not ${seenSignals}. Read its inbox and decide anew.`,
    { data: { run, signals, seen: seenSignals } },
  );
}

/** What a store knows of trees of runs. */
export interface StoredTree {
  /** The owner of the run; `undefined` when no run has this id. */
  find(run: string): Owned | undefined;
  /** How many runs under this root have not ended. */
  live(root: string): number;
}

/** Whose a run is: the session's, and its parent's when it is a task. */
export type Owned = Scope & { readonly parent?: string | null | undefined };

/**
 * What is there under the id of a start must be that start itself, stored before: a task of the same parent, of the same session.
 * @throws PilotageError `task_id_taken`.
 */
export function assertOwnStarts({ run, starts = [] }: Append, tree: StoredTree): void {
  for (const start of starts) {
    const id = start.identity.run;
    const there = tree.find(id);
    if (there === undefined) continue;
    const parent = assertNewRun(start).task?.parent;
    if ((there.parent ?? undefined) === parent && ownedBy(there) === ownedBy(start.identity)) continue;
    throw new PilotageError(
      'task_id_taken',
      `Run ${run} cannot start ${id}: a run that is not one of its tasks has that id. No task was started.`,
      { data: { run, task: id } },
    );
  }
}

/** @throws PilotageError `task_limit` when with a start more than `treeLimit` runs under its root would be unfinished. */
export function assertTreeLimit({ run, starts = [], treeLimit }: Append, tree: StoredTree): void {
  if (treeLimit === undefined) return;
  const fresh = starts.filter((start) => tree.find(start.identity.run) === undefined);
  const ids = new Map(fresh.map((start) => [start.identity.run, assertNewRun(start).task?.root]));
  for (const [root, added] of Map.groupBy(ids.values(), (of) => of)) {
    if (root === undefined || tree.live(root) + added.length <= treeLimit) continue;
    throw new PilotageError(
      'task_limit',
      `Run ${run} cannot start ${added.length} more: ${tree.live(root)} runs under run ${root} have not ended, and at most ${treeLimit} may be unfinished at once.`,
      { data: { run, root, limit: treeLimit } },
    );
  }
}

/** @throws PilotageError `journal_conflict` when the run is not as it was examined, or somebody has it. */
export function assertAsExamined(
  { run, head, signals, keep, entries, erases }: RepairRequest,
  now: {
    readonly head: number;
    /** The seq of the last stored entry, whatever the run's row says. */
    readonly last: number;
    readonly signals: number;
    readonly isLeased: boolean;
  },
): void {
  assertConsecutive({ run, fence: 0, expected: keep, entries });
  const isWhole = (erases === true ? keep === 0 : keep >= 1) && keep + entries.length >= now.last;
  if (isWhole && now.head === head && now.signals === signals && !now.isLeased) return;
  const why = now.isLeased ? 'a process has the run: stop it, or wait until its lease is over' : 'the run has changed';
  throw new PilotageError(
    'journal_conflict',
    `Run ${run} was not changed: ${why}. Try again, so that the run is examined anew.`,
    {
      data: { run },
    },
  );
}

function conflict(append: Pick<Append, 'run' | 'expected'>, what: string): PilotageError {
  return new PilotageError(
    'journal_conflict',
    `Nothing was appended to run ${append.run}: ${what}. Read the run again and decide anew.`,
    { data: { run: append.run, expected: append.expected } },
  );
}

/** Where a lease or a wait ends, in whole milliseconds. @throws PilotageError `invalid_config` for no finite time. */
export function wholeMs(time: number, name: string): number {
  // A later time than there is means "never", and is the last one that there is.
  if (Number.isFinite(time)) return Math.max(0, timeAfter(time, 0));
  throw new PilotageError('invalid_config', `${name} is ${time}; give milliseconds since the epoch.`);
}

/** When a parked run is due by itself: 0 now, `null` never. @throws PilotageError `invalid_config` for no finite time. */
export function dueAt({ wakeInMs = 0, asBefore }: Pick<Park, 'wakeInMs' | 'asBefore'>, now: number): number | null {
  if (asBefore !== undefined) return asBefore.wakeAt === null ? null : wholeMs(asBefore.wakeAt, 'wakeAt');
  if (wakeInMs === null || wakeInMs <= 0) return wakeInMs === null ? null : 0;
  return wholeMs(now + wakeInMs, 'wakeInMs');
}

/** @throws PilotageError `invalid_config` for a page over 200 or below 1. */
export function pageSize(query: Pick<RunQuery | SessionQuery | WaitQuery | SignalQuery, 'limit'>): number {
  const limit = query.limit ?? DEFAULT_PAGE;
  if (Number.isInteger(limit) && limit >= 1 && limit <= MAX_PAGE) return limit;
  throw new PilotageError('invalid_config', `A page of ${limit} cannot be listed; ask for 1 to ${MAX_PAGE}.`);
}

/** The key of what belongs to a session. @throws PilotageError `identity_required` for a scope that is not complete. */
export function ownedBy(scope: Scope): string {
  assertScope(scope);
  return scopeKey(scope);
}

/** With what the keys of the scopes of a user begin. @throws PilotageError `identity_required`. */
export function ownerKey({ tenant, user }: Pick<Scope, 'tenant' | 'user'>): string {
  return ownedBy({ tenant, user, session: '-' }).slice(0, -1);
}

/** @throws PilotageError `invalid_config` for a value that is not a whole number from 0 up. */
export function assertCounts(counts: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(counts)) {
    if (Number.isSafeInteger(value) && value >= 0) continue;
    throw new PilotageError('invalid_config', `${name} is ${value}; give a whole number from 0 up.`);
  }
}

/** The agent that a run goes on with, when these entries give it another. */
export function agentAfter({ entries }: Append): string | undefined {
  for (const entry of entries) if (entry.kind === 'repinned') return entry.agent;
  return undefined;
}

export function hasEnded(status: RunStatus): boolean {
  return status === 'finished' || status === 'failed' || status === 'cancelled';
}

/** A run that has ended can be claimed only to be reopened, and only a failed run can be, or one that has reached its goal, to undo it. */
export function mayReopen(status: RunStatus, { reopens }: ClaimRequest): boolean {
  return (reopens === true && status === 'failed') || (reopens === 'undo' && status === 'finished');
}

export function runNotFound(run: string): PilotageError {
  return new PilotageError('run_not_found', `This journal has no run ${run}. Check the id and the journal's path.`, {
    data: { run },
  });
}

/** @throws PilotageError `run_ended`. */
export function assertTakesSignals(run: string, status: RunStatus): void {
  if (!hasEnded(status)) return;
  throw new PilotageError('run_ended', `Run ${run} has ended (${status}); it takes no more controls.`, {
    data: { run, status },
  });
}

/** @throws PilotageError `pause_expired`. */
export function assertInTime(
  { before = Number.POSITIVE_INFINITY }: { readonly before?: number | undefined },
  now: number,
): void {
  if (now >= before) throw pauseExpired(before);
}

/** @param expiredAt milliseconds since the epoch. */
export function pauseExpired(expiredAt: number, token?: string): PilotageError {
  const which = token === undefined ? 'The pause' : `The pause ${token}`;
  const data = token === undefined ? { expiredAt } : { expiredAt, token };
  const message = `${which} expired at ${new Date(expiredAt).toISOString()}, and takes no answer any more.`;
  return new PilotageError('pause_expired', message, { data });
}

/** @throws PilotageError `inbox_full`. */
export function assertRoom(run: string, waitingControls: number): void {
  if (waitingControls < INBOX_CAP) return;
  throw new PilotageError(
    'inbox_full',
    `${waitingControls} controls wait for run ${run}, the most there can be. Send the control again when the run has taken some.`,
    { data: { run, cap: INBOX_CAP } },
  );
}

/** So many signals of one key may wait for somebody to wait for them. */
const MAX_KEPT_SIGNALS = 1_000;

/** @throws PilotageError `identity_required`, `payload_invalid` or `invalid_config`. */
export function assertNewSignal(signal: NewSignal): void {
  const { tenant, keepMs } = signal;
  assertIdentity({ tenant, user: '-', session: '-', run: '-' });
  assertSignal(signal);
  if (Number.isFinite(keepMs) && keepMs >= 0) return;
  throw new PilotageError('invalid_config', `keepMs is ${keepMs}; give milliseconds from 0 up.`);
}

/** @throws PilotageError `signals_full`. */
export function assertKeepable(key: string, kept: number): void {
  if (kept < MAX_KEPT_SIGNALS) return;
  throw new PilotageError(
    'signals_full',
    `Nothing was stored: ${kept} signals are kept under the key ${JSON.stringify(key)}, the most there can be, and nobody waits for them. Signal again when somebody has.`,
    { data: { key, cap: MAX_KEPT_SIGNALS } },
  );
}

export function journalClosed(): PilotageError {
  return new PilotageError('journal_closed', 'The journal was closed. Open it again to use it.');
}

/** @throws PilotageError `invalid_config` for a value that is not a journal, such as the promise of one. */
export function assertJournal(given: unknown): void {
  const store: Partial<Journal> = typeof given === 'object' && given !== null ? given : {};
  if (typeof store.create === 'function' && typeof store.claim === 'function' && store.artifacts !== undefined) return;
  const message =
    'The option journal must be a journal: give sqliteJournal({ path }), memoryJournal(), or the path of a file.';
  throw new PilotageError('invalid_config', message);
}

const REF_HEX_DIGITS = 32;

interface Digest {
  readonly artifactRef: string;
  /** The whole SHA-256 in hex; the reference has its first half. */
  readonly sha256: string;
}

/** The address of an artifact, from its bytes. */
export function artifactDigest(bytes: Uint8Array): Digest {
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  return { artifactRef: `art_${sha256.slice(0, REF_HEX_DIGITS)}`, sha256 };
}

/** @throws PilotageError `journal_conflict` when two artifacts share the first half of their digests. */
export function assertSameContent(digest: Digest, storedSha256: string): void {
  if (digest.sha256 === storedSha256) return;
  throw new PilotageError(
    'journal_conflict',
    `Other bytes are stored as ${digest.artifactRef}: their SHA-256 begins alike. The new ones were not stored.`,
  );
}

/** @throws PilotageError `stream_refused`. */
export function assertStreamRow(row: NewStreamRow): void {
  assertStreamName(row.name);
  if ('value' in row) rowBytes(row.name, row.value);
}
