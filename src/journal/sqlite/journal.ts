/** A journal in one SQLite file, through `node:sqlite`. Several processes may share the file. */
import type { DatabaseSync } from 'node:sqlite';
import {
  assertOptions,
  type Clock,
  type Entry,
  encodeEntry,
  type Message,
  type OptionShape,
  PilotageError,
  type Scope,
  type StartKey,
  systemClock,
} from '#core';
import { encodeAppend, encodeMessage, encodeRun, encodeSending } from '../encoded.ts';
import type {
  Append,
  ArtifactStore,
  Claim,
  ClaimedRun,
  ClaimRequest,
  DueRequest,
  Examined,
  Journal,
  LongTermStore,
  NewRun,
  Park,
  ParkedRequest,
  Received,
  Renewal,
  RepairRequest,
  RunQuery,
  RunRecord,
  Sending,
  Sent,
  SessionStore,
  SignalOptions,
  SnapshotStore,
  StartedByKey,
} from '../port.ts';
import type { PassingStore } from '../port-passing.ts';
import type { StreamStore } from '../port-streams.ts';
import { assertPrune, type Pruned, type PruneRequest } from '../prune-port.ts';
import {
  assertLease,
  assertPriority,
  dueAt,
  isTurn,
  journalClosed,
  MOST_ENTRIES_ALONG,
  pageSize,
  wholeMs,
} from '../rules.ts';
import type { ScheduleStore } from '../schedules-port.ts';
import { encodeSignal } from '../waiting.ts';
import type { EventStore, WaitIndex } from '../waits-port.ts';
import { Watchers } from '../watchers.ts';
import { SqliteDrops } from './drops.ts';
import { SqliteGuard } from './guard.ts';
import { SqliteItems } from './items.ts';
import { LogSync } from './log-sync.ts';
import { OpeningJournal } from './opening.ts';
import { SqlitePassing } from './passing.ts';
import { type RemovedPart, SqlitePrune } from './prune.ts';
import { ReadingJournal } from './reading.ts';
import { isWalked, SqliteRecords, SqliteRepairs } from './records.ts';
import { type ClaimedRow, SqliteRows } from './runs.ts';
import { SqliteSchedules } from './schedules.ts';
import { openDatabase } from './schema.ts';
import { SharedRead } from './shared-read.ts';
import { SqliteSnapshots } from './snapshots.ts';
import { SqliteStarts } from './starts.ts';
import { type PreparedStatement, prepared } from './statements.ts';
import { SqliteArtifacts, type StoreAccess } from './stores.ts';
import { SqliteStreams } from './streams.ts';
import { SqliteTurns } from './turns.ts';
import { GroupWriter } from './writer.ts';

export interface SqliteJournalOptions {
  /** The file. It and its folders are made when they do not exist. */
  readonly path: string;
  /** How durable is what was written or read. `full` (default): it survives a loss of power. `normal`: it survives the death of the process. */
  readonly synchronous?: 'full' | 'normal';
  /** The clock for leases and waits. Default: the system's clock. */
  readonly clock?: Clock;
  /**
   * Milliseconds that a write waits for another process that holds the file; so does every operation while the file is still to be made,
   * or brought to the present format. Default 5,000.
   */
  readonly busyTimeoutMs?: number;
  /** Milliseconds between looks for changes by other processes while the journal is watched. Default 200. */
  readonly watchIntervalMs?: number;
  /**
   * Opens an existing file for reading only: nothing is written, created or brought to another format, so that it works on a full disk
   * and without the right to write. Operations that would write are refused with `journal_read_only`.
   */
  readonly readOnly?: boolean;
}

const OPTIONS: OptionShape<SqliteJournalOptions> = {
  path: 'text',
  synchronous: 'text?',
  clock: 'clock?',
  busyTimeoutMs: 'whole?',
  watchIntervalMs: 'count?',
  readOnly: 'flag?',
};
const BUSY_TIMEOUT_MS = 5_000;
/** The event loop stands still for so long: others who open the file at the same time are done by then. */
const OPEN_WAIT_MS = 250;
const WATCH_INTERVAL_MS = 200;

/**
 * Opens the file, or makes it. When another process has the lock that this needs, the operations of the journal wait for it.
 * @throws PilotageError `journal_newer` (with `data.found` and `data.supported`), `journal_corrupt`, `journal_read_only`,
 * `journal_unavailable`, or `invalid_config` for a path that is not a journal of Pilotage. With `readOnly` also
 * `journal_older`: the journal must then be opened for writing once.
 */
export function sqliteJournal(options: SqliteJournalOptions): Journal {
  assertOptions('sqliteJournal', options, OPTIONS);
  assertValues(options);
  if (options.readOnly === true) return new ReadingJournal(options, (db) => new SqliteJournal(db, options));
  const { path, busyTimeoutMs = BUSY_TIMEOUT_MS } = options;
  const open = (waitMs: number): SqliteJournal => new SqliteJournal(openDatabase({ path, waitMs }), options);
  try {
    return open(OPEN_WAIT_MS);
  } catch (error) {
    if (!PilotageError.is(error, 'journal_busy')) throw error;
    return new OpeningJournal(() => open(0), busyTimeoutMs);
  }
}

function assertValues({ synchronous = 'full' }: SqliteJournalOptions): void {
  const wrong = (name: string, value: unknown, wanted: string): PilotageError =>
    new PilotageError('invalid_config', `The option ${name} of sqliteJournal is ${value}; give ${wanted}.`);
  if (synchronous !== 'full' && synchronous !== 'normal') throw wrong('synchronous', synchronous, 'full or normal');
}

export class SqliteJournal implements Journal {
  readonly artifacts: ArtifactStore;
  readonly sessions: SessionStore;
  readonly schedules: ScheduleStore;
  readonly snapshots: SnapshotStore;
  readonly store: LongTermStore;
  readonly waits: WaitIndex;
  readonly events: EventStore;
  readonly streams: StreamStore;
  readonly passing: PassingStore;
  readonly #db: DatabaseSync;
  readonly #guard: SqliteGuard;
  readonly #clock: Clock;
  readonly #watchIntervalMs: number;
  readonly #rows: SqliteRows;
  readonly #records: SqliteRecords;
  readonly #repairs: SqliteRepairs;
  readonly #turns: SqliteTurns;
  readonly #prune: SqlitePrune;
  readonly #writer: GroupWriter;
  readonly #sharedRead: SharedRead;
  /** Absent: what is committed, or read, need not be on the disk before anybody is told of it. */
  readonly #sync: LogSync | undefined;
  readonly #watchers = new Watchers();
  readonly #dataVersion: PreparedStatement;
  #poll: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;

  constructor(db: DatabaseSync, options: SqliteJournalOptions) {
    this.#db = db;
    this.#clock = options.clock ?? systemClock;
    this.#watchIntervalMs = options.watchIntervalMs ?? WATCH_INTERVAL_MS;
    const guard = new SqliteGuard(db, options.path);
    this.#guard = guard;
    this.#sharedRead = new SharedRead(db);
    this.#dataVersion = prepared(db)('PRAGMA data_version');
    const isSynced = options.synchronous !== 'normal' && options.readOnly !== true;
    this.#sync = isSynced ? new LogSync(guard.logPath, this.#dataVersion, guard.unsynced) : undefined;
    this.#writer = new GroupWriter(db, guard, this.#sync, options.busyTimeoutMs ?? BUSY_TIMEOUT_MS);
    const access: StoreAccess = {
      read: (run) => this.#read(run),
      write: (run) => this.#writer.write(() => run(this.#now())),
    };
    this.artifacts = new SqliteArtifacts(db, access);
    const starts = new SqliteStarts(db);
    const drops = new SqliteDrops(db, starts);
    const turns = new SqliteTurns(db, drops);
    const schedules = new SqliteSchedules(db, access, () => this.#now());
    this.schedules = schedules;
    this.#turns = turns;
    this.sessions = {
      get: async (scope) => this.#read(() => turns.record(scope)),
      list: async (query) => this.#read(() => turns.list(query)),
      set: async (scope, facts) => {
        await this.#writer.write(() => turns.set(scope, facts));
        this.#watchers.wakeSession(scope);
      },
      delete: async (scope) => {
        const runs = await this.#writer.write(() => turns.delete(scope, this.#now(), this.#rows.waits));
        this.#watchers.wakeAll();
        return runs;
      },
    };
    this.snapshots = new SqliteSnapshots(db, access);
    this.streams = new SqliteStreams(db, access, (run) => this.#watchers.wake(run));
    const watching = (add: () => () => void): (() => void) => this.#watching(add);
    const watch = { watchers: this.#watchers, watching };
    this.store = new SqliteItems(db, access, () => this.#now(), watch);
    this.passing = new SqlitePassing(db, access, () => this.#now(), watch);
    this.#rows = new SqliteRows(db, this.#clock, { turns, starts, schedules });
    this.#records = new SqliteRecords(db);
    this.#repairs = new SqliteRepairs(db, this.#rows.waits, starts);
    const { waits } = this.#rows;
    this.#prune = new SqlitePrune(db, drops, waits);
    this.waits = { list: async (query) => this.#read(() => waits.list(query)) };
    this.events = {
      signal: async (signal) => {
        const body = encodeSignal(signal);
        const signalled = await this.#writer.write(() => waits.signal(signal, body, this.#clock.now()));
        for (const run of signalled.runs) this.#watchers.wake(run);
        return signalled;
      },
      list: async (query) => this.#read(() => waits.signals(query, this.#now())),
    };
  }

  async create(run: NewRun): Promise<Claim | undefined> {
    const text = encodeRun(run);
    const claim = await this.#writer.write(() => this.#rows.create(text, this.#clock.now()), run.identity.run);
    this.#watchers.wake(run.identity.run);
    if (isTurn(text.first)) this.#watchers.wakeSession(run.identity);
    return claim;
  }

  async startByKey(run: NewRun, key: StartKey): Promise<StartedByKey> {
    const text = encodeRun(run);
    const started = await this.#writer.write(
      () => this.#rows.startByKey(text, key, this.#clock.now()),
      run.identity.run,
    );
    this.#watchers.wake(started.run);
    if (isTurn(text.first)) this.#watchers.wakeSession(run.identity);
    return started;
  }

  async send(sending: Sending): Promise<Sent> {
    const text = encodeSending(sending);
    const of = sending.starts?.identity.run ?? sending.scope.session;
    const sent = await this.#writer.write(() => this.#rows.send(text, this.#clock.now()), of);
    const { starts, tells = [] } = sending;
    if (starts !== undefined) this.#watchers.wake(starts.identity.run);
    for (const told of tells) this.#watchers.wake(told.run);
    this.#watchers.wakeSession(sending.scope);
    return sent;
  }

  #hasItsTurn(run: string): void {
    this.#watchers.wake(run);
    const scope = this.#turns.scopeOf(run);
    if (scope !== undefined) this.#watchers.wakeSession(scope);
  }

  async append(append: Append): Promise<void> {
    const text = encodeAppend(append);
    const { next, told = [] } = await this.#writer.write(() => this.#rows.append(text, this.#clock.now()), append.run);
    this.#watchers.wake(append.run);
    if (next !== undefined) this.#hasItsTurn(next);
    for (const run of told) this.#watchers.wake(run);
    for (const start of append.starts ?? []) this.#watchers.wake(start.identity.run);
    for (const told of append.tells ?? []) this.#watchers.wake(told.run);
  }

  async read(run: string, from: number = 1, limit: number = Number.POSITIVE_INFINITY): Promise<Entry[]> {
    const first = Math.max(from, 1);
    return this.#read(() => this.#rows.read(run, first, first + limit));
  }

  async get(run: string): Promise<RunRecord | undefined> {
    return this.#read(() => this.#records.get(run, this.#now()));
  }

  async list(query: RunQuery): Promise<RunRecord[]> {
    const limit = pageSize(query);
    if (!isWalked(query)) return this.#read(() => this.#records.list(query, limit, this.#now()));
    const found: RunRecord[] = [];
    // Others may have their turn between two parts of a long file.
    for (let part = this.#look(() => this.#records.part(query)); part !== undefined && found.length < limit; ) {
      const within = part;
      found.push(...(await this.#read(() => this.#records.list(query, limit - found.length, this.#now(), within))));
      if (found.length < limit) part = this.#look(() => this.#records.part(query, within));
    }
    return found;
  }

  async claim(request: ClaimRequest): Promise<Claim | undefined> {
    assertLease(request);
    this.#guard.look();
    const found = this.#look(() => this.#rows.findClaimable(request, this.#clock.now()));
    return found === undefined
      ? undefined
      : this.#writer.write(() => this.#rows.claim(request, this.#clock.now()), request.run);
  }

  async claimDue(request: DueRequest): Promise<ClaimedRun[]> {
    assertLease(request);
    // A look before the lock: a poller that finds nothing disturbs nobody, and hears when it looks at the wrong file.
    this.#guard.look();
    this.#passOver(request.exceptRuns);
    if (this.#look(() => this.#rows.findDue({ ...request, limit: 1 }, this.#clock.now())).length === 0) return [];
    return this.#along(await this.#writer.write(() => this.#rows.claimDue(request, this.#clock.now())));
  }

  async claimParked(request: ParkedRequest): Promise<ClaimedRun[]> {
    assertLease(request);
    const { agents, runs } = request;
    this.#passOver(request.exceptRuns);
    const dueMs = runs === undefined ? this.#look(() => this.#rows.nextDue(agents, this.#clock.now())) : 0;
    if (dueMs === undefined || dueMs > 0) return [];
    return this.#along(await this.#writer.write(() => this.#rows.claimParked(request, this.#clock.now())));
  }

  #along(claimed: readonly ClaimedRow[]): ClaimedRun[] {
    return claimed.map(({ key, claim, tenant }) => ({ claim, tenant, ...this.#alongWith(key, claim) }));
  }

  /** Nobody adds to them while the run is leased. What cannot be read is told to whoever reads it. */
  #alongWith(key: number, claim: Claim): Pick<ClaimedRun, 'entries'> {
    if (claim.head > MOST_ENTRIES_ALONG) return {};
    try {
      return { entries: this.#look(() => this.#rows.readBy(key, claim, 1, claim.head + 1)) };
    } catch {
      return {};
    }
  }

  async nextDue(agents: readonly string[]): Promise<number | undefined> {
    return this.#read(() => this.#rows.nextDue(agents, this.#clock.now()));
  }

  async renew(leases: readonly Renewal[], leaseMs: number): Promise<(number | undefined)[]> {
    assertLease({ leaseMs });
    return this.#writer.write(() => {
      const until = wholeMs(this.#clock.now() + leaseMs, 'leaseMs');
      return leases.map((lease) => this.#rows.renew(lease, until));
    });
  }

  async release(lease: Renewal, park: Park): Promise<boolean> {
    // Refused before it is tried.
    dueAt(park, this.#clock.now());
    return this.#writer.write(() => this.#rows.release(lease, park, this.#clock.now()), lease.run);
  }

  async signal(run: string, message: Message, options: SignalOptions = {}): Promise<boolean> {
    if (options.priority !== undefined) assertPriority(options.priority);
    const text = encodeMessage(message);
    const isNew = await this.#writer.write(() => this.#rows.signal(run, text, options, this.#now()), run);
    if (isNew) this.#watchers.wake(run);
    return isNew;
  }

  async inbox(run: string): Promise<Received[]> {
    return this.#read(() => this.#rows.inbox(run));
  }

  async examine(run: string): Promise<Examined> {
    return this.#read(() => this.#repairs.examine(run));
  }

  async repair(request: RepairRequest): Promise<void> {
    const bodies = request.entries.map(encodeEntry);
    const { next, told } = await this.#writer.write(() => {
      const told = this.#repairs.repair(request, bodies, this.#now());
      return { next: this.#turns.ended(request.run), told };
    });
    this.#watchers.wake(request.run);
    for (const run of told) this.#watchers.wake(run);
    if (next !== undefined) this.#hasItsTurn(next);
  }

  async prune(request: PruneRequest): Promise<Pruned> {
    assertPrune(request);
    const remove = (part: PruneRequest) => (): RemovedPart => this.#prune.prune(part, this.#now());
    if (request.dryRun === true) return (await this.#read(remove(request))).pruned;
    let runs = 0;
    for (let part = request; ; ) {
      const { pruned, told, sessions, after } = await this.#writer.write(remove(part));
      for (const run of told) this.#watchers.wake(run);
      for (const scope of sessions) this.#watchers.wakeSession(scope);
      runs += pruned.runs;
      if (after === undefined) return { ...pruned, runs };
      part = { ...request, after };
    }
  }

  watch(run: string, wake: () => void): () => void {
    return this.#watching(() => this.#watchers.add(run, wake));
  }

  watchSession(scope: Scope, wake: () => void): () => void {
    return this.#watching(() => this.#watchers.addSession(scope, wake));
  }

  watchDue(wake: () => void): () => void {
    return this.#watching(() => this.#watchers.addDue(wake));
  }

  watchRuns(wake: (run?: string) => void): () => void {
    return this.#watching(() => this.#watchers.addRuns(wake));
  }

  #watching(add: () => () => void): () => void {
    if (this.#closing !== undefined) throw journalClosed();
    const stop = add();
    this.#poll ??= this.#watchOthers();
    return () => {
      stop();
      if (this.#watchers.size === 0) this.#stopPolling();
    };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#watchers.clear();
    this.#stopPolling();
    await this.#writer.close();
    await this.#sync?.close();
    this.#sharedRead.end();
    this.#db.close();
    this.#guard.close();
  }

  /** As it is stored. Where a lease or a wait ends is reckoned with the fraction: neither is shorter than was asked for. */
  #now(): number {
    return Math.floor(this.#clock.now());
  }

  /** In no transaction, which would leave it in doubt what the table of this connection holds. */
  #passOver(runs: readonly string[] | undefined): void {
    this.#explained(() => {
      this.#sharedRead.end();
      this.#rows.passOver(runs);
    });
  }

  /** What is told of the file is on the disk. */
  async #read<T>(run: () => T): Promise<T> {
    const look = (): T => this.#look(run);
    const value = this.#sharedRead.isLong ? await this.#sharedRead.later(look) : look();
    await this.#sync?.soon();
    return value;
  }

  /** For this code alone, which does not tell it. */
  #look<T>(run: () => T): T {
    return this.#explained(() => {
      if (this.#sharedRead.begin()) this.#sync?.look();
      return run();
    });
  }

  #explained<T>(run: () => T): T {
    if (this.#closing !== undefined) throw journalClosed();
    try {
      this.#guard.assertUsable();
      return run();
    } catch (error) {
      throw this.#guard.explain(error);
    }
  }

  /** SQLite's data version changes when another connection has committed; which run it was, it does not say. */
  #watchOthers(): NodeJS.Timeout {
    let seen = this.#versionOfData();
    const look = (): void => {
      const version = this.#guard.look() ?? this.#versionOfData();
      if (version !== seen) this.#watchers.wakeAll();
      seen = version;
    };
    // A watch that somebody waits for keeps the process alive; other watches do not.
    return setInterval(look, this.#watchIntervalMs).unref();
  }

  #versionOfData(): unknown {
    try {
      return this.#dataVersion().get()?.['data_version'];
    } catch (error) {
      // A reader that is woken reads the journal, and gets the error where it can be handled.
      return error;
    }
  }

  #stopPolling(): void {
    clearInterval(this.#poll);
    this.#poll = undefined;
  }
}
