/**
 * The store's side of a run. The journal holds the truth and decides nothing: it keeps entries in order, lets one owner
 * at a time append, keeps what was said to a run until the run takes it, and knows which runs are due.
 *
 * Invariants, held by `testing/journal-conformance`:
 * J1 Entries of a run are numbered 1, 2, 3 … without gaps and never change, but by the `repair` of an operator.
 * J2 An append lands whole, or not at all, and only at `expected + 1` under the current fence.
 * J3 A signal is stored when `signal` returns, once per control id, and makes a parked run due.
 * J4 A run has at most one unexpired lease; each claim raises its fence.
 * J5 That somebody who had the lease may be at its calls still is not forgotten: each later claim says how long ago that was.
 * J6 A message has the time at which the store took it; whether it came in time is judged by that alone.
 */
import type { ArtifactRef, ArtifactRow, Entry, ErrorData, Identity, Message, Scope } from '#core';
import type { SessionMemoryStore, SessionTurn } from './session-memory.ts';

export const RUN_STATUSES = ['pending', 'running', 'waiting', 'paused', 'finished', 'failed', 'cancelled'] as const;

/**
 * `pending`: nobody has claimed it yet. `waiting`: parked until a task, a time or a signal. `paused`: parked until somebody
 * answers.
 */
export type RunStatus = (typeof RUN_STATUSES)[number];

export interface NewRun {
  readonly identity: Identity;
  /** Higher is claimed first; equal ones by age. */
  readonly priority: number;
  /** The first entries, from seq 1. */
  readonly entries: readonly Entry[];
  /** Claims the new run in the same commit. */
  readonly claim?: LeaseRequest;
}

/** Something that a run tells another in the commit that makes it true, or passes on to it. */
export interface Told {
  readonly run: string;
  readonly message: Message;
}

export interface LeaseRequest {
  /** Names the process that owns the lease. */
  readonly owner: string;
  readonly leaseMs: number;
}

export interface ClaimRequest extends LeaseRequest {
  /** Only this run; absent: the due run with the highest priority, then the oldest. */
  readonly run?: string;
  /** Claims although this owner's lease is not over: the caller knows that it is dead. */
  readonly from?: string;
  /**
   * With `run`: claims the run also when it has failed, whatever state its lease is in. The caller then appends `reopened`, with
   * the status.
   */
  readonly reopens?: true;
  /** Whether an owner whose lease ran out is known to be dead. Asked of the run that is claimed only. Default: nobody is. */
  readonly isDead?: (owner: string) => boolean;
  /** Without `run`: only runs of these agents, of none of these tenants, and none of these runs. */
  readonly agents?: readonly string[];
  readonly exceptTenants?: readonly string[];
  readonly exceptRuns?: readonly string[];
}

export interface Claim {
  readonly run: string;
  readonly fence: number;
  readonly head: number;
  /** Counts the signals that the run has ever had. */
  readonly signals: number;
  /**
   * How long ago somebody last had the run who may be at its calls still: an owner whose lease ran out and that was not known
   * to be dead, with this claim or an earlier one, or one that said so when it gave the run back. By the store's clock; absent
   * when that never happened.
   */
  readonly workLeftMsAgo?: number;
  /** For `release`, from whoever finds that it cannot go on with the run. */
  readonly before: Standing;
}

/** How a run stood when it was claimed. */
export interface Standing {
  readonly status: RunStatus;
  /** When it was to become due by itself, by the store's clock: 0 at once, `null` never. */
  readonly wakeAt: number | null;
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
  /** Refuses the append when a start would be more than so many runs under one root. */
  readonly treeLimit?: number;
  /** Stored once per message id, beside the cap; runs that have ended, or are not there, are passed over. */
  readonly tells?: readonly Told[];
  /** Refuses the append when the run has had more signals than this. */
  readonly seenSignals?: number;
  /** The run's turn in its session's memory, with its ending. A second one of the same run changes nothing. */
  readonly turn?: SessionTurn;
}

/** A message that nobody has taken yet. */
export interface Received {
  readonly message: Message;
  /** When the store accepted it, by the store's clock. Milliseconds since the epoch. */
  readonly storedAt: number;
}

export interface SignalOptions {
  /** The run has this priority from now on. */
  readonly priority?: number;
  /** Refuses the message when it is this late by the store's clock: what it answers expires then. Milliseconds since the epoch. */
  readonly before?: number;
}

export interface Renewal {
  readonly run: string;
  readonly fence: number;
}

export interface Park {
  /** How long the run waits, by the store's clock. `null`: until a signal. Absent: it stays due. */
  readonly wakeInMs?: number | null;
  readonly seenSignals: number;
  readonly status?: 'waiting' | 'paused';
  /** In place of the two above: the run is left as the claim found it, due when it was to be due. */
  readonly asBefore?: Standing;
  /** A call of the run goes on in this process although it was given up. */
  readonly leavesWork?: boolean;
  /** Why this process cannot go on with the run. It stands in the record until somebody claims the run. */
  readonly problem?: ErrorData;
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
  readonly createdAt: number;
  readonly updatedAt: number;
  /** When the store was asked for this record. All times in it are by the store's clock, which no other needs to agree with. */
  readonly readAt: number;
  readonly head: number;
  /**
   * When the run becomes due by itself, were it not leased. Absent: due now. `null`: only a signal wakes it, or nothing
   * because it has ended.
   */
  readonly wakeAt?: number | null;
  /** The owner whose lease is not over. */
  readonly lease?: { readonly owner: string; readonly until: number };
  /** What of the run cannot be read, or why whoever had it last let go of it: others may be able to go on with it. */
  readonly problem?: ErrorData;
}

export interface RunQuery {
  readonly tenant?: string;
  readonly user?: string;
  readonly session?: string;
  readonly status?: readonly RunStatus[];
  /** Only the tasks of this run. */
  readonly parent?: string;
  /** Only runs created at or after this time. Milliseconds since the epoch. */
  readonly since?: number;
  /** Newest first. Default 50, at most 200. */
  readonly limit?: number;
  /** Runs older than this one: the last of the page before. */
  readonly after?: string;
}

/** A run as it is stored, whether it can be read or not. */
export interface Examined {
  readonly head: number;
  /** Counts the signals that the run has ever had. */
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

/** What an operator sets right of a run that cannot be read, or folded. */
export interface RepairRequest {
  readonly run: string;
  /** As it was examined. */
  readonly head: number;
  readonly signals: number;
  /** Entries up to here stay. What stands after it is taken out of the run. */
  readonly keep: number;
  /** In its place, from `keep + 1` on, at least up to `head`. */
  readonly entries: readonly Entry[];
  readonly status: RunStatus;
  readonly agent: string;
  /** Messages that are taken out of the inbox. */
  readonly drops: readonly string[];
}

export interface Journal {
  /**
   * Stores a run once: a second call with the same run id changes nothing, whoever the run belongs to.
   * @returns the claim that was asked for, or `undefined` when the run was there already or none was asked for.
   * @throws PilotageError `identity_required`, or `invalid_config` for entries that do not start with `started` at seq 1.
   */
  create(run: NewRun): Promise<Claim | undefined>;

  /**
   * A lease that is over but that nobody has claimed still appends. Ids in `takes` that are not in the inbox are passed over.
   * An old fence is told before a head that moved: `journal_conflict` says that the fence is current.
   * @throws PilotageError `journal_conflict` (head moved), `lease_lost` (fence is old), `run_not_found`, `task_limit`,
   * `task_id_taken` (a start has the id of a run that is not a task of its parent), `inbox_changed`, or a store error: always as a
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
   * One run that cannot be read does not hide the others.
   * @throws PilotageError `invalid_config` for a page over 200 or below 1, `run_not_found` for an unknown `after`.
   */
  list(query: RunQuery): Promise<RunRecord[]>;

  /**
   * Takes a lease when it is free or over. With `run` it need not be due. A claimed run is due again when its lease is
   * over, until `release` parks it. A pending or waiting run is running from then on.
   * @returns `undefined` when nothing is due, somebody else has it, or the run has ended (but see `reopens`) or is not there.
   */
  claim(request: ClaimRequest): Promise<Claim | undefined>;

  /**
   * For each lease, in order: the run's count of signals, or `undefined` when the lease was released or claimed by
   * somebody else. A lease that is over but that nobody has claimed is renewed.
   */
  renew(leases: readonly Renewal[], leaseMs: number): Promise<(number | undefined)[]>;

  /**
   * Gives the lease up and parks the run for `wakeInMs` (absent: it stays due; `null`: until a signal), with the status
   * that is given, or leaves it `asBefore`, when no signal came in between.
   * @returns false when a signal came since `seenSignals`: the lease is given up, and the run stays due. A lost lease
   * releases nothing and gives true; so does a run that has ended, which is never due.
   */
  release(lease: Renewal, park: Park): Promise<boolean>;

  /**
   * Puts a message into the run's inbox and makes the run due.
   * @returns false when this control id was there before (taken or not), even if the run has ended or its inbox is full.
   * @throws PilotageError `run_not_found`, `run_ended`, `pause_expired` (it is too late), or `inbox_full` (256 waiting).
   */
  signal(run: string, message: Message, options?: SignalOptions): Promise<boolean>;

  /** Messages that nobody has taken yet, in the order in which they came. @throws PilotageError `run_not_found`. */
  inbox(run: string): Promise<Received[]>;

  /** The run as it is stored, also what of it cannot be read. For somebody who sets it right. @throws PilotageError `run_not_found`. */
  examine(run: string): Promise<Examined>;

  /**
   * Puts other entries in place of those that cannot stand: the one exception to J1, for an operator, who has kept what is taken out.
   * The run is due then, and nobody has it.
   * @throws PilotageError `journal_conflict` when the run is not as it was examined, or a process has its lease; `run_not_found`.
   */
  repair(request: RepairRequest): Promise<void>;

  /** Calls `wake` when entries or signals of the run arrive, from any process. May call it for nothing. Returns the way to stop. */
  watch(run: string, wake: () => void): () => void;

  readonly artifacts: ArtifactStore;

  readonly memory: SessionMemoryStore;

  /** Waits for what is on its way and lets go of files and timers. A second call does nothing. */
  close(): Promise<void>;
}

export interface ArtifactStore {
  /** The same bytes twice in a scope give the same reference, with the media type, name and source of the first time. */
  put(scope: Scope, bytes: Uint8Array, about: ArtifactAbout): Promise<ArtifactRef>;
  /** `undefined` for an unknown reference and for one of another tenant, user or session alike. */
  get(scope: Scope, artifactRef: string): Promise<{ readonly bytes: Uint8Array; readonly mime: string } | undefined>;
  /** What the scope holds, newest first and then by reference, without bytes. At most `limit` rows; `total` counts all. */
  list(scope: Scope, limit: number): Promise<{ readonly rows: readonly ArtifactRow[]; readonly total: number }>;
}

export interface ArtifactAbout {
  readonly mime: string;
  readonly fileName?: string;
  /** `tool: <name>`, `user`, … Default `unknown`. */
  readonly source?: string;
}
