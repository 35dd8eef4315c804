/** A journal on Postgres, through `pg`. Any number of processes on any number of machines may share it. */
import { type Entry, encodeEntry, InOrder, type Message, type Scope, type StartKey, systemClock } from '#core';
import { encodeAppend, encodeMessage, encodeRun, encodeSending, type RunText } from '../encoded.ts';
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
import { assertLease, assertPriority, isTurn, journalClosed, ownedBy, pageSize, runNotFound } from '../rules.ts';
import type { ScheduleStore } from '../schedules-port.ts';
import { encodeSignal } from '../waiting.ts';
import type { EventStore, WaitIndex } from '../waits-port.ts';
import { AppendQueue } from './appends.ts';
import { PostgresArtifacts } from './artifacts.ts';
import { PostgresClaims } from './claims.ts';
import { type OpenedPostgres, openPostgres, type PostgresConnection, type PostgresOptions } from './connection.ts';
import { type Database, type Lock, lockName, sessionLock } from './database.ts';
import { readInbox } from './inbox.ts';
import { PostgresItems } from './items.ts';
import { PostgresNews } from './news.ts';
import { PostgresPassing } from './passing.ts';
import { PostgresPrune } from './prune.ts';
import { PostgresRecords, PostgresRepairs } from './records.ts';
import { findRun } from './run-rows.ts';
import { locksOf, PostgresRuns } from './runs.ts';
import { PostgresSchedules } from './schedules.ts';
import { PostgresSnapshots } from './snapshots.ts';
import { PostgresStreams } from './streams.ts';
import { PostgresTurns } from './turns.ts';
import { PostgresWaits } from './waits.ts';

/**
 * Connects when it is first used. Each operation that finds the database gone is refused with `journal_unavailable`, and the next one tries again.
 * @throws PilotageError `invalid_config`. Of the first operation also `package_missing`, `journal_newer`, or `journal_older`.
 */
export function postgresJournal(connection: PostgresConnection, options: PostgresOptions = {}): Journal {
  return new PostgresJournal(openPostgres(connection, options));
}

const WATCH_INTERVAL_MS = 200;

class PostgresJournal implements Journal {
  readonly artifacts: ArtifactStore;
  readonly sessions: SessionStore;
  readonly schedules: ScheduleStore;
  readonly snapshots: SnapshotStore;
  readonly store: LongTermStore;
  readonly waits: WaitIndex;
  readonly events: EventStore;
  readonly streams: StreamStore;
  readonly passing: PassingStore;
  readonly #database: Database;
  readonly #news: PostgresNews;
  readonly #runs: PostgresRuns;
  readonly #claims: PostgresClaims;
  readonly #records: PostgresRecords;
  readonly #repairs: PostgresRepairs;
  readonly #turns: PostgresTurns;
  readonly #prune: PostgresPrune;
  readonly #appends: AppendQueue;
  readonly #order = new InOrder();
  #closing: Promise<void> | undefined;

  constructor({ database, options }: OpenedPostgres) {
    const { clock = systemClock, watchIntervalMs = WATCH_INTERVAL_MS, transactionPooler = false } = options;
    const news = new PostgresNews(database, {
      watchIntervalMs,
      listens: !transactionPooler,
      hidesNames: database.isIsolated,
    });
    const turns = new PostgresTurns();
    const waits = new PostgresWaits(PostgresRuns.tellKey);
    this.#database = database;
    this.#news = news;
    this.#turns = turns;
    this.#claims = new PostgresClaims(database, clock, turns, (row) => this.#runs.note(row));
    this.#runs = new PostgresRuns(database, { turns, waits, claims: this.#claims });
    this.#records = new PostgresRecords(database);
    this.#repairs = new PostgresRepairs(waits);
    this.#prune = new PostgresPrune(database, waits);
    this.#appends = new AppendQueue(database);
    this.artifacts = new PostgresArtifacts(database);
    this.schedules = new PostgresSchedules(database);
    this.snapshots = new PostgresSnapshots(database);
    this.store = new PostgresItems(database, news, options.pgvector === true);
    this.streams = new PostgresStreams(database, (run) => news.tell(run));
    this.passing = new PostgresPassing(database, news);
    this.sessions = this.#sessionStore(waits);
    this.waits = { list: (query) => database.read((sql) => waits.list(sql, query)) };
    this.events = {
      signal: async (signal) => {
        const body = encodeSignal(signal);
        const lock: Lock = ['signal', signal.tenant, signal.key];
        const signalled = await this.#inOrder([lockName(lock)], () =>
          database.write([lock], (sql, times) => waits.signal(sql, signal, body, times)),
        );
        news.tell(...signalled.runs);
        if (signalled.runs.length > 0) news.tellDue();
        return signalled;
      },
      list: (query) => database.read((sql) => waits.signals(sql, database.given, query)),
    };
  }

  #sessionStore(waits: PostgresWaits): SessionStore {
    const [database, turns] = [this.#database, this.#turns];
    return {
      get: (scope) => database.read((sql) => turns.record(sql, scope)),
      list: async (query) => {
        pageSize(query);
        return database.read((sql) => turns.list(sql, query));
      },
      set: async (scope, facts) => {
        ownedBy(scope);
        const lock = sessionLock(scope);
        await this.#inOrder([lockName(lock)], () => database.write([lock], (sql) => turns.set(sql, scope, facts)));
        this.#news.tellSession(scope);
      },
      delete: async (scope) => {
        ownedBy(scope);
        const runs = await this.#inOrder([lockName(sessionLock(scope))], () => this.#deleteSession(scope, waits));
        this.#news.tellAll();
        return runs;
      },
    };
  }

  /** Signals that come meanwhile have locks of their own: it is tried again with those. */
  async #deleteSession(scope: Scope, waits: PostgresWaits): Promise<number> {
    for (;;) {
      const signals = await this.#database.read((sql) => this.#turns.signalLocksOf(sql, scope));
      const locks = [sessionLock(scope), ...signals];
      const runs = await this.#database.write(locks, (sql, { now }) =>
        this.#turns.delete(sql, scope, now, waits, locks),
      );
      if (runs !== undefined) return runs;
    }
  }

  async create(run: NewRun): Promise<Claim | undefined> {
    const text = encodeRun(run);
    const claim = await this.#inOrder(namesOf(text), () => this.#runs.create(text));
    this.#news.tell(run.identity.run);
    if (claim === undefined) this.#news.tellDue();
    if (isTurn(text.first)) this.#news.tellSession(run.identity);
    return claim;
  }

  async startByKey(run: NewRun, key: StartKey): Promise<StartedByKey> {
    const text = encodeRun(run);
    const names = [lockName(['start', run.identity.tenant, key.kind, key.key]), ...namesOf(text)];
    const started = await this.#inOrder(names, () => this.#runs.startByKey(text, key));
    this.#news.tell(started.run);
    if (started.claim === undefined) this.#news.tellDue();
    if (isTurn(text.first)) this.#news.tellSession(run.identity);
    return started;
  }

  async send(sending: Sending): Promise<Sent> {
    const { starts, tells = [], scope } = sending;
    const text = encodeSending(sending);
    const begun = text.starts === undefined ? [] : namesOf(text.starts);
    const names = [lockName(sessionLock(scope)), ...tells.map(({ run }) => run), ...begun];
    const sent = await this.#inOrder(names, () => this.#runs.send(text));
    if (starts !== undefined) this.#news.tell(starts.identity.run);
    this.#news.tell(...tells.map(({ run }) => run));
    this.#news.tellDue();
    this.#news.tellSession(scope);
    return sent;
  }

  async append(append: Append): Promise<void> {
    const text = encodeAppend(append);
    const { run, starts = [], tells = [] } = append;
    const others = [...(text.starts ?? []).flatMap(namesOf), ...tells.map((told) => told.run)];
    await this.#inOrder([run, ...others], async () => {
      const locks = await this.#runs.locksFor(text);
      if (locks === undefined) {
        await this.#appends.append(text);
        this.#news.tellProgress(run);
        return;
      }
      const { next, told } = await this.#runs.append(text, locks);
      if (starts.length + tells.length + told.length > 0 || next !== undefined) this.#news.tellDue();
      this.#news.tell(run, ...told, ...starts.map(({ identity }) => identity.run), ...tells.map((each) => each.run));
      if (next !== undefined) await this.#hasItsTurn(next);
    });
  }

  async #hasItsTurn(run: string): Promise<void> {
    this.#news.tell(run);
    // It is a word to those who watch, who look by themselves, too.
    const scope = await this.#database.read((sql) => this.#turns.scopeOf(sql, run)).catch(() => undefined);
    if (scope !== undefined) this.#news.tellSession(scope);
  }

  async read(run: string, from: number = 1, limit: number = Number.POSITIVE_INFINITY): Promise<Entry[]> {
    const first = Math.max(from, 1);
    return this.#runs.read(run, first, first + limit);
  }

  async get(run: string): Promise<RunRecord | undefined> {
    return this.#records.get(run);
  }

  async list(query: RunQuery): Promise<RunRecord[]> {
    return this.#records.list(query, pageSize(query));
  }

  async claim(request: ClaimRequest): Promise<Claim | undefined> {
    assertLease(request);
    return this.#inOrder([request.run], () => this.#claims.claim(request));
  }

  async claimDue(request: DueRequest): Promise<ClaimedRun[]> {
    assertLease(request);
    return this.#inOrder([], () => this.#claims.claimDue(request));
  }

  async claimParked(request: ParkedRequest): Promise<ClaimedRun[]> {
    assertLease(request);
    return this.#inOrder([], () => this.#claims.claimParked(request));
  }

  now(): number {
    return this.#database.now();
  }

  async nextDue(agents: readonly string[]): Promise<number | undefined> {
    return this.#claims.nextDue(agents);
  }

  async renew(leases: readonly Renewal[], leaseMs: number): Promise<(number | undefined)[]> {
    assertLease({ leaseMs });
    return this.#claims.renew(leases, leaseMs);
  }

  async release(lease: Renewal, park: Park): Promise<boolean> {
    const isParked = await this.#inOrder([lease.run], () => this.#claims.release(lease, park));
    // It is due at once, and whoever gives it back does not go on with it.
    if (!isParked || (park.asBefore === undefined && park.wakeInMs === undefined)) this.#news.tellDue();
    return isParked;
  }

  async signal(run: string, message: Message, options: SignalOptions = {}): Promise<boolean> {
    if (options.priority !== undefined) assertPriority(options.priority);
    const text = encodeMessage(message);
    const isNew = await this.#inOrder([run], () => this.#runs.signal(run, text, options));
    if (!isNew) return false;
    this.#news.tell(run);
    this.#news.tellDue();
    return true;
  }

  async inbox(run: string): Promise<Received[]> {
    return this.#database.read(async (sql) => {
      const row = await findRun(sql, run);
      if (row === undefined) throw runNotFound(run);
      return readInbox(sql, row.key);
    });
  }

  async examine(run: string): Promise<Examined> {
    return this.#database.read((sql) => this.#repairs.examine(sql, run));
  }

  async repair(request: RepairRequest): Promise<void> {
    const bodies = request.entries.map(encodeEntry);
    const { next, told } = await this.#inOrder([request.run], async () => {
      const locks = await this.#database.read((sql) => this.#repairs.locksFor(sql, request));
      return this.#database.write(locks, async (sql, { now }) => {
        const told = await this.#repairs.repair(sql, request, bodies, now);
        return { next: await this.#turns.ended(sql, request.run), told };
      });
    });
    this.#news.tell(request.run, ...told);
    this.#news.tellDue();
    if (next !== undefined) await this.#hasItsTurn(next);
  }

  async prune(request: PruneRequest): Promise<Pruned> {
    assertPrune(request);
    const { pruned, told, sessions } = await this.#inOrder([], () => this.#prune.prune(request));
    if (request.dryRun === true) return pruned;
    this.#news.tell(...told);
    if (told.length > 0) this.#news.tellDue();
    for (const scope of sessions) this.#news.tellSession(scope);
    return pruned;
  }

  watch(run: string, wake: () => void): () => void {
    if (this.#closing !== undefined) throw journalClosed();
    return this.#news.watch(run, wake);
  }

  watchSession(scope: Scope, wake: () => void): () => void {
    if (this.#closing !== undefined) throw journalClosed();
    return this.#news.watchSession(scope, wake);
  }

  watchDue(wake: () => void): () => void {
    if (this.#closing !== undefined) throw journalClosed();
    return this.#news.watchDue(wake);
  }

  watchRuns(wake: (run?: string) => void): () => void {
    if (this.#closing !== undefined) throw journalClosed();
    return this.#news.watchRuns(wake);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  #inOrder<T>(names: readonly string[], work: () => Promise<T>): Promise<T> {
    return this.#closing === undefined ? this.#order.after(names, work) : Promise.reject(journalClosed());
  }

  async #close(): Promise<void> {
    await this.#order.settled();
    await this.#news.close();
    await this.#database.close();
  }
}

/** Under which a run that is stored stands in line. */
function namesOf(text: RunText): readonly string[] {
  return [text.run.identity.run, ...locksOf(text).map(lockName)];
}
