/**
 * The store's side of a run. The journal holds the truth and decides nothing: it keeps entries in order, lets one owner
 * at a time append, keeps what was said to a run until the run takes it, and knows which runs are due.
 *
 * Invariants, held by `testing/journal-conformance`:
 * J1 Entries of a run are numbered 1, 2, 3 … without gaps and never change, but by the `repair` of an operator, and as `startByKey` says.
 * J2 An append is written whole or not at all, and only at `expected + 1` under the current fence.
 * J3 A signal is stored when `signal` returns, once per control id, and makes a parked run due.
 * J4 A run has at most one unexpired lease; each claim raises its fence.
 * J5 If a former owner may still be at work on the run's calls, each later claim says how long ago it had the lease.
 * J6 A message has the time at which the store accepted it; that time alone decides whether it came in time.
 * J7 What `waits` lists is what the entries say, less the waits to which a signal was delivered that their run has not taken yet.
 * J8 A signal is accepted once per tenant, key and id, goes to all that wait for its key, or is kept, in order, until somebody does.
 */
import type {
  ArtifactRef,
  ArtifactRow,
  Entry,
  ErrorData,
  Identity,
  Labels,
  Message,
  ScheduleOrigin,
  Scope,
  StartKey,
  StoreWrite,
  TurnOrigin,
  WaitChanges,
  WaitRow,
} from '#core';
import type {
  Claim,
  ClaimedRun,
  ClaimRequest,
  DueRequest,
  LeaseRequest,
  Park,
  ParkedRequest,
  Renewal,
  RunStatus,
} from './claims-port.ts';
import type { LongTermStore } from './port-items.ts';
import type { PassingStore } from './port-passing.ts';
import type { StreamStore } from './port-streams.ts';
import type { Pruned, PruneRequest } from './prune-port.ts';
import type { ScheduleMove, ScheduleStore } from './schedules-port.ts';
import type { EventStore, WaitIndex } from './waits-port.ts';

export {
  type Claim,
  type Claimant,
  type ClaimedRun,
  type ClaimRequest,
  type DueRequest,
  type LeaseRequest,
  type Park,
  type ParkedRequest,
  type Renewal,
  RUN_STATUSES,
  type RunStatus,
} from './claims-port.ts';

export type { LongTermStore, RevisedItem, SeenItem, StoreLookup, StoreQuery } from './port-items.ts';
export { ENDED_STATUSES, type Pruned, type PruneRequest } from './prune-port.ts';

/** The journal of a runtime that was given none; relative to the current folder. */
export const DEFAULT_JOURNAL_PATH = '.pilotage/pilotage.db';

export interface NewRun {
  readonly identity: Identity;
  /** A higher priority is claimed first; equal priorities by age. */
  readonly priority: number;
  /** The first entries, from seq 1. */
  readonly entries: readonly Entry[];
  /** Claims the new run in the same commit, unless it waits for its turn. */
  readonly claim?: LeaseRequest;
  /**
   * The run is a turn of its session that waits until the turns before it have ended: behind all of them (`last`), before those that were put
   * last and wait too (`next`), or before all of them (`first`). Absent: it waits for nobody, and stands before those that wait.
   */
  readonly waits?: 'last' | 'next' | 'first';
  /** What the first entries wait for, of a run that has taken over some of another one. */
  readonly openWaits?: readonly WaitRow[];
  /** The schedule of which the run is a fire moves on in the same commit. */
  readonly fires?: ScheduleMove;
  /** Set when the store decides the run's time: how long it may take from then on, and until when at the latest. */
  readonly deadline?: { readonly ms: number; readonly at?: number };
}

/** What became of a start under a key. */
export interface StartedByKey {
  /** The run that was stored, or the one that was there under the key. */
  readonly run: string;
  /** The claim that was asked for, when the run was stored and begins at once. */
  readonly claim?: Claim;
}

/** A message from one run to another, stored in the commit that makes it true. */
export interface Told {
  readonly run: string;
  readonly message: Message;
}

export interface Append {
  readonly run: string;
  readonly fence: number;
  /** The seq of the last entry that the caller knows. */
  readonly expected: number;
  readonly entries: readonly Entry[];
  /** The run's new status, when these entries change it. */
  readonly status?: RunStatus;
  /** Ids of controls that these entries take out of the inbox. */
  readonly takes?: readonly string[];
  /** Runs that these entries start. A run that exists already as a task of the same parent is left as it is. */
  readonly starts?: readonly NewRun[];
  /** Refuses the append when with a start more than this number of runs under one root would be unfinished. */
  readonly treeLimit?: number;
  /**
   * Messages to other runs, stored once per message id and not counted against the cap. Messages to runs that have ended or do not
   * exist are dropped.
   */
  readonly tells?: readonly Told[];
  /** What calls that end with these entries have written to the long-term store, in order. */
  readonly writes?: readonly StoreWrite[];
  /** What these entries change in what the run waits for. A signal that is kept for a wait that begins is put into the run's inbox. */
  readonly waits?: WaitChanges;
  /** Refuses the append when the run has had more signals than this. */
  readonly seenSignals?: number;
  /** Renews the lease in the same commit, from the time of the store's clock on, also when it is over. Refused for one that was released. */
  readonly leaseMs?: number;
}

/** A message that the run has not taken yet. */
export interface Received {
  readonly message: Message;
  /** When the store accepted it, by the store's clock. Milliseconds since the epoch. */
  readonly storedAt: number;
}

export interface SignalOptions {
  /** The new priority of the run. */
  readonly priority?: number;
  /**
   * The time from which on the store refuses the message, by the store's clock: the pause that it answers expires then.
   * Milliseconds since the epoch.
   */
  readonly before?: number;
}

export interface RunRecord {
  readonly identity: Identity;
  readonly status: RunStatus;
  readonly query: string;
  readonly priority: number;
  /** The agent's name, as the run has recorded it last. */
  readonly agent: string;
  /** The run of which this run is a task, and the root of the tree. */
  readonly parent?: string;
  readonly root?: string;
  /** False for a run that is not a turn of its session's conversation, such as a task. */
  readonly conversation?: false;
  /** Its place among the turns of its session's conversation, from 1. That of a turn that waits may still grow. */
  readonly turn?: number;
  /** The messages that began it, and which turn it goes on from. */
  readonly turnOrigin?: TurnOrigin;
  /** True: it waits until the turns before it have ended, and is not due. */
  readonly waits?: true;
  readonly labels?: Labels;
  /** The schedule that started it. */
  readonly schedule?: ScheduleOrigin;
  /** When the content of the run was erased. Milliseconds since the epoch. */
  readonly erased?: number;
  readonly createdAt: number;
  readonly updatedAt: number;
  /**
   * When the store was asked for this record. All times in the record are by the store's clock, and need not agree with any other
   * clock.
   */
  readonly readAt: number;
  readonly head: number;
  /**
   * When the run becomes due by itself, if it is not leased. Absent: it is due now. `null`: only a signal makes it due, or it has
   * ended.
   */
  readonly wakeAt?: number | null;
  /** The owner whose lease is not over. */
  readonly lease?: { readonly owner: string; readonly until: number };
  /** Which part of the run cannot be read, or why its last owner gave it back: another process may be able to go on with it. */
  readonly problem?: ErrorData;
}

export interface RunQuery {
  readonly tenant?: string;
  readonly user?: string;
  readonly session?: string;
  readonly status?: readonly RunStatus[];
  /** Only the tasks of this run. `null`: only runs that are no tasks. */
  readonly parent?: string | null;
  /** Only runs created at or after this time. Milliseconds since the epoch. */
  readonly since?: number;
  /** Only runs of the agent of this name. */
  readonly agent?: string;
  /** Only runs that have all of these labels. */
  readonly labels?: Labels;
  /** Only runs that the schedule of this id has started; ids of schedules are those of a tenant. */
  readonly schedule?: string;
  /** Only runs with this text in their query, in any case. */
  readonly text?: string;
  /** With `tenant`, `user` and `session`: only turns of the conversation before this one, the last of them first. */
  readonly beforeTurn?: number;
  /** How many runs a page has, newest first. Default 50, at most 200. */
  readonly limit?: number;
  /** The last run of the page before: only older runs are listed. */
  readonly after?: string;
}

/** A run as it is stored, readable or not. */
export interface Examined {
  readonly head: number;
  /** How many signals the run has ever had. */
  readonly signals: number;
  /** The entries in the order of their seq. A missing entry up to `head` is left out. */
  readonly entries: readonly StoredText[];
  readonly inbox: readonly StoredMessage[];
}

export interface StoredText {
  readonly seq: number;
  readonly text: string;
}

export interface StoredMessage {
  readonly id: string;
  readonly text: string;
}

/** A repair by an operator of a run that cannot be read or folded. */
export interface RepairRequest {
  readonly run: string;
  /** As it was examined. */
  readonly head: number;
  readonly signals: number;
  /** Entries up to this seq stay. Entries after it are taken out of the run. */
  readonly keep: number;
  /** Entries in their place, from `keep + 1` on, at least up to `head`. */
  readonly entries: readonly Entry[];
  readonly status: RunStatus;
  readonly agent: string;
  /** Messages that are taken out of the inbox. A signal among them is for whoever else waits for its key. */
  readonly drops: readonly string[];
  /** What the run waits for then. */
  readonly waits: readonly WaitRow[];
  /** True: a person's content is erased, so that also the first entry is replaced: `keep` is 0. */
  readonly erases?: true;
}

/** A message of a conversation: it begins a turn, is told to the turn that is under way, or both. */
export interface Sending {
  readonly scope: Scope;
  /** The run and the control that exist when the message was accepted before. */
  readonly known: { readonly run: string; readonly control: string };
  /** What the caller has seen, and decided on. */
  readonly seen: {
    /** The turn that is under way; `null`: none. With `signals`, it has had no more of them. */
    readonly live: { readonly run: string; readonly signals?: number } | null;
    /** As `SessionRecord.branch`. */
    readonly branch: string | null;
    /** The session has no turn: the message begins the first one, which has nothing before it. */
    readonly isNew?: true;
  };
  readonly starts?: NewRun;
  readonly tells?: readonly Told[];
  /** The schedule of which the message is a fire moves on in the same commit, unless the message was accepted before. */
  readonly fires?: ScheduleMove;
}

/** What became of a message. `run`: where it was accepted before, in which case nothing has changed. */
export type Sent = { readonly run: string } | { readonly claim: Claim | undefined };

export interface Journal {
  /**
   * Stores a run once. A second call with the same run id changes nothing, also when the run belongs to somebody else; but what it `fires`
   * moves on. A run with a time in `startsAt` that is to come is `pending` and not due until then, and is not claimed.
   * The fork of a run that is not there (its session was deleted meanwhile) is refused, as it would go on with what nobody can read, and so is a
   * turn in the place of one that is not there, which may have the words that were deleted.
   * @returns the claim that was asked for, or `undefined` when the run was there already or none was asked for.
   * @throws PilotageError `identity_required`, or `invalid_config` for entries that do not start with `started` at seq 1; `schedule_changed`;
   * `run_not_found` of the run that is forked or replaced.
   */
  create(run: NewRun): Promise<Claim | undefined>;

  /**
   * Stores a run, or not, by what was started under the key before, in one commit. A run with this id that is there already changes nothing.
   * A run that waits for its time has it in `startsAt` of its first entry. Of `debounce`, the first entry of a run that waits and was told nothing
   * is replaced by that of the new one: the one change of an entry beside a repair.
   * @throws PilotageError `rate_limited`, with the time from which on it is allowed as `data.allowedAt`; `scope_mismatch` when the run to be
   * replaced belongs to another session; and as `create`.
   */
  startByKey(run: NewRun, key: StartKey): Promise<StartedByKey>;

  /**
   * A lease that is over but that nobody has claimed still appends, and is renewed only with `leaseMs`. Ids in `takes` that are not in the inbox are ignored.
   * An old fence is reported before a head that moved: `journal_conflict` says that the fence is current.
   * @throws PilotageError `journal_conflict` (head moved), `lease_lost` (fence is old), `run_not_found`, `task_limit`,
   * `task_id_taken` (a start has the id of a run that is not a task of its parent), `inbox_changed`, `session_busy` (a failed turn is
   * reopened while another one is under way), or a store error: always as a
   * rejection. A store that has the entries at once gives nothing, and then nobody waits.
   */
  append(append: Append): Promise<void> | undefined;

  /**
   * Entries from seq `from` (default 1), in order, at most `limit` (default: all).
   * @throws PilotageError `run_not_found`; `journal_corrupt` and the like for entries that cannot be read.
   */
  read(run: string, from?: number, limit?: number): Promise<Entry[]>;

  /** A run whose beginning cannot be read has its `problem`, and an empty query. */
  get(run: string): Promise<RunRecord | undefined>;

  /**
   * Lists stored runs. A run that cannot be read does not hide the others.
   * @throws PilotageError `invalid_config` for a page over 200 or below 1, `run_not_found` for an unknown `after`.
   */
  list(query: RunQuery): Promise<RunRecord[]>;

  /**
   * Takes the lease of a run when it is free or over, or ends later than any lease can and was not renewed for 5 minutes. The run need not be due, unless nobody has begun it or told it anything: a start under its key may still take its place. A claimed run is due again when its lease is
   * over, until `release` parks it; so is a turn that waits for the turns before it, which is to be looked at then. A pending or waiting run is running from then on.
   * @returns `undefined` when another owner has the run, or the run has ended (but see `reopens`) or does not exist.
   */
  claim(request: ClaimRequest): Promise<Claim | undefined>;

  /**
   * Takes the leases of runs that are due, those with the highest priority first, then the oldest; and when none is, of one whose lease ends later
   * than any lease can. Of runs whose time has come, and leases that are over, a store may compare those alone that are due longest: some hundreds. All
   * in one commit, however many they are.
   */
  claimDue(request: DueRequest): Promise<ClaimedRun[]>;

  /**
   * Takes the leases of runs that were parked, `waiting` or `paused`, and whose time has come or that were told something since; those that are due
   * longest come first. Never one that nobody has begun, or that its owner has not parked. All in one commit, however many they are.
   */
  claimParked(request: ParkedRequest): Promise<ClaimedRun[]>;

  /**
   * In how many milliseconds, by the store's clock, the first run of these agents is due that was parked and that nobody has: 0 or less when one is.
   * `undefined`: none is before it is told something.
   */
  nextDue(agents: readonly string[]): Promise<number | undefined>;

  /** The time by the store's clock, as far as this process knows it, without asking. Absent: that clock is the one of the machine. */
  now?(): number;

  /**
   * For each lease, in order: the run's count of signals, or `undefined` when the lease was released or claimed by
   * somebody else. A lease that is over but that nobody has claimed is renewed.
   */
  renew(leases: readonly Renewal[], leaseMs: number): Promise<(number | undefined)[]>;

  /**
   * Gives the lease up and parks the run for `wakeInMs` (absent: it stays due; `null`: until a signal), with the status
   * that is given, or leaves it `asBefore`, when no signal came in between.
   * @returns false when a signal came since `seenSignals`: the lease is given up, and the run stays due. A lost lease
   * releases nothing and gives true; so does a run that has ended, which is never due. A turn that waits for the turns before it is
   * `pending` again, whatever is given, and not due before its turn has come.
   */
  release(lease: Renewal, park: Park): Promise<boolean>;

  /**
   * Puts a message into the run's inbox and makes the run due.
   * @returns false when this control id was there before (taken or not), even if the run has ended or its inbox is full.
   * @throws PilotageError `run_not_found`, `run_ended`, `pause_expired` (it is too late), or `inbox_full` (256 waiting).
   */
  signal(run: string, message: Message, options?: SignalOptions): Promise<boolean>;

  /**
   * Stores a message of a conversation once, with all that follows from it, in one commit. The branch that somebody has switched to is left by a
   * message that begins a turn.
   * @throws PilotageError `session_changed` when the session is not as the caller has seen it; `schedule_changed`; `scope_mismatch` when the run that it is to begin is
   * there already, in another session; `inbox_full`, and as `create`.
   */
  send(sending: Sending): Promise<Sent>;

  /** Messages that the run has not taken yet, in the order in which they came. @throws PilotageError `run_not_found`. */
  inbox(run: string): Promise<Received[]>;

  /**
   * The run as it is stored, including parts that cannot be read, for an operator who repairs it.
   * @throws PilotageError `run_not_found`.
   */
  examine(run: string): Promise<Examined>;

  /**
   * Replaces entries that cannot stand, or whose content is to be erased: the one exception to J1, for an operator who has kept the entries
   * that are taken out, or wants them gone. The run's snapshot is forgotten.
   * The run is then due and without an owner.
   * @throws PilotageError `journal_conflict` when the run is not as it was examined, or a process has its lease; `run_not_found`.
   */
  repair(request: RepairRequest): Promise<void>;

  /**
   * Deletes runs that ended long ago, with all that hangs on them: entries, inbox, streams, snapshots, labels, keys under which they were
   * started (but those that still count), and what their session has beside them, artifacts included, when it has no run any more. A run goes
   * with its tasks, and a turn with all runs of its session, or not at all: nothing that a run which is left goes on from
   * is touched. The lease under which a run has ended holds nothing. A call does a part of the work, so that nobody waits long: call it again with `after` while it gives `next`.
   * @throws PilotageError `invalid_config`.
   */
  prune(request: PruneRequest): Promise<Pruned>;

  /**
   * Calls `wake` when entries, signals or rows of streams of the run arrive, from any process. It may be called without news. Returns a function
   * that stops the watch.
   */
  watch(run: string, wake: () => void): () => void;

  /** The same for turns that are added to a session, and such that have come to their turn. */
  watchSession(scope: Scope, wake: () => void): () => void;

  /**
   * Calls `wake` when runs may have become due by what another process did: one was stored, told something, or given back. It may be called
   * without news, and news may be lost: whoever carries out runs looks by itself now and then. Returns a function that stops the watch.
   */
  watchDue(wake: () => void): () => void;

  /**
   * Calls `wake` with the id of each run that has news as `watch` means them, whichever run it is and from any process; without an id when any run may have
   * some. News may be lost. Returns a function that stops the watch.
   */
  watchRuns(wake: (run?: string) => void): () => void;

  readonly artifacts: ArtifactStore;

  readonly sessions: SessionStore;

  readonly schedules: ScheduleStore;

  readonly snapshots: SnapshotStore;

  readonly store: LongTermStore;

  readonly waits: WaitIndex;

  readonly events: EventStore;
  readonly streams: StreamStore;
  readonly passing: PassingStore;

  /** Waits for work under way, and closes files and timers. A second call does nothing. */
  close(): Promise<void>;
}

export interface ArtifactStore {
  /** Stores bytes. The same bytes twice in a scope give the same reference, with the media type, name and source of the first time. */
  put(scope: Scope, bytes: Uint8Array, about: ArtifactAbout): Promise<ArtifactRef>;
  /** `undefined` for an unknown reference and for one of another tenant, user or session alike. */
  get(scope: Scope, artifactRef: string): Promise<{ readonly bytes: Uint8Array; readonly mime: string } | undefined>;
  /** The artifacts of the scope, newest first and then by reference, without bytes. At most `limit` rows; `total` counts all, up to 1,000 and what is given. */
  list(scope: Scope, limit: number): Promise<{ readonly rows: readonly ArtifactRow[]; readonly total: number }>;
  /** Deletes what is stored in all sessions of a user. @returns how many artifacts there were. */
  erase(owner: Pick<Scope, 'tenant' | 'user'>): Promise<number>;
}

export interface ArtifactAbout {
  readonly mime: string;
  readonly fileName?: string;
  /** `tool: <name>`, `user`, … Default `unknown`. */
  readonly source?: string;
}

/** A session as the store counts it. What was said in it stands in the entries of its runs. */
export interface SessionRecord extends Scope {
  readonly title?: string;
  /** The turn whose branch somebody has switched to. Absent: the newest turn's. */
  readonly branch?: string;
  /** How many turns it has, those that wait included. */
  readonly turns: number;
  /** How many turns wait for the one that is under way. */
  readonly waiting: number;
  /** The newest of the turns that are under way, with the number of signals that it has had. */
  readonly live?: { readonly run: string; readonly status: RunStatus; readonly signals: number };
  /** When its first and its last turn were created, by the store's clock. Milliseconds since the epoch. */
  readonly createdAt: number;
  readonly updatedAt: number;
}

export interface SessionQuery {
  readonly tenant: string;
  readonly user?: string;
  /** Only sessions whose last turn was created at or after this time. Milliseconds since the epoch. */
  readonly since?: number;
  /** Only sessions whose name or title has this text, in any case. */
  readonly text?: string;
  /** How many sessions a page has, those with the newest turns first. Default 50, at most 200. */
  readonly limit?: number;
  /** The last session of the page before. */
  readonly after?: Pick<SessionRecord, 'user' | 'session' | 'updatedAt'>;
}

export interface SessionStore {
  /** `undefined` for a session without turns. */
  get(scope: Scope): Promise<SessionRecord | undefined>;
  /** @throws PilotageError `invalid_config` for a page over 200 or below 1. */
  list(query: SessionQuery): Promise<SessionRecord[]>;
  /**
   * `null` takes the title, or the branch, away. A session without turns keeps no title.
   * @throws PilotageError `session_busy` for a branch while a turn is under way, `run_not_found` for a run that is not among its turns.
   */
  set(scope: Scope, facts: { readonly title?: string | null; readonly branch?: string | null }): Promise<void>;
  /**
   * Removes the session with all its runs, tasks included, and its artifacts.
   * @returns how many runs there were.
   * @throws PilotageError `session_busy` while a process has one of them.
   */
  delete(scope: Scope): Promise<number>;
}

// Snapshots save time alone: they say what the entries say. A store may lose them, and forgets those of a run that it repairs.

/** What a run's first entries come to, in bytes that only their reader knows. */
export interface StoredSnapshot {
  /** The seq of the last entry that it covers. */
  readonly head: number;
  readonly body: Uint8Array;
  /** Parts that do not change any more, which all later snapshots of the run share. */
  readonly blocks: readonly Uint8Array[];
}

export interface NewSnapshot extends StoredSnapshot {
  readonly run: string;
  /** That of the lease under which the entries were written. */
  readonly fence: number;
  /** The version of the code that has made it, and can read it. */
  readonly version: number;
  /** How many blocks are stored already: `blocks` are those behind them. */
  readonly from: number;
}

export interface SnapshotStore {
  /** The newest snapshot of the run that code of this version has made, with all of its blocks. */
  newest(run: string, version: number): Promise<StoredSnapshot | undefined>;
  /**
   * Stores the snapshot in place of the one before.
   * @returns false when it is not stored: the fence is not the run's any more, a snapshot of this version covers as many entries, or the
   * first `from` blocks are not there.
   */
  keep(snapshot: NewSnapshot): Promise<boolean>;
  /** The run has no snapshot any more. */
  forget(run: string): Promise<void>;
}
