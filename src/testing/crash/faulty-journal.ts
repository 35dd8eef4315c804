/**
 * A journal as a process that can die sees it: before and after each write is a moment at which the process may die, and
 * a dead one writes and hears nothing more. What the store has taken is noted outside.
 */
import { type Entry, type Message, PilotageError, type Scope, type StartKey } from '#core';
import type {
  Append,
  ArtifactStore,
  Claim,
  ClaimedRun,
  ClaimRequest,
  DueRequest,
  EventStore,
  Examined,
  Journal,
  LeaseRequest,
  LongTermStore,
  NewRun,
  Park,
  ParkedRequest,
  PassingStore,
  Pruned,
  PruneRequest,
  Received,
  Renewal,
  RepairRequest,
  RunQuery,
  RunRecord,
  ScheduleStore,
  Sending,
  Sent,
  SessionStore,
  SignalOptions,
  SnapshotStore,
  StartedByKey,
  StreamStore,
  WaitIndex,
} from '#journal';
import type { CrashProcess } from './process.ts';
import { type CrashRecord, taskPath } from './record.ts';

export class FaultyJournal implements Journal {
  readonly artifacts: ArtifactStore;
  readonly sessions: SessionStore;
  readonly schedules: ScheduleStore;
  readonly snapshots: SnapshotStore;
  readonly store: LongTermStore;
  readonly waits: WaitIndex;
  readonly events: EventStore;
  readonly streams: StreamStore;
  readonly passing: PassingStore;
  readonly #inner: Journal;
  readonly #process: CrashProcess;
  readonly #record: CrashRecord;
  /** The owners that died before this process began, by run. */
  readonly #dead: ReadonlyMap<string, string>;

  constructor(inner: Journal, process: CrashProcess, record: CrashRecord) {
    this.#inner = inner;
    this.#process = process;
    this.#record = record;
    this.#dead = new Map(record.owners);
    this.artifacts = {
      put: (scope, bytes, about) => this.#write('artifacts.put', () => inner.artifacts.put(scope, bytes, about)),
      get: (scope, artifactRef) => process.guard(() => inner.artifacts.get(scope, artifactRef)),
      list: (scope, limit) => process.guard(() => inner.artifacts.list(scope, limit)),
      erase: (owner) => this.#write('artifacts.erase', () => inner.artifacts.erase(owner)),
    };
    this.store = {
      write: (writes) => this.#write('store.write', () => inner.store.write(writes)),
      writeIf: (seen, writes) => this.#write('store.write', () => inner.store.writeIf(seen, writes)),
      get: (namespace, key) => process.guard(() => inner.store.get(namespace, key)),
      list: (query, after) => process.guard(() => inner.store.list(query, after)),
      search: (query, lookup) => process.guard(() => inner.store.search(query, lookup)),
      unindexed: (namespace, index, limit) => process.guard(() => inner.store.unindexed(namespace, index, limit)),
      setVectors: (index, vectors) => this.#write('store.setVectors', () => inner.store.setVectors(index, vectors)),
      watch: (root, wake) => inner.store.watch(root, () => void (process.alive && wake())),
    };
    this.streams = {
      append: (append) => this.#write('streams.append', () => inner.streams.append(append)),
      read: (run, name, from, limit) => process.guard(() => inner.streams.read(run, name, from, limit)),
      list: (run) => process.guard(() => inner.streams.list(run)),
    };
    const whileAlive = (wake: () => void) => () => void (process.alive && wake());
    // What is told to readers does not count as a write: no crash is tried at it.
    this.passing = {
      want: (runs, forMs) => process.guard(() => inner.passing.want(runs, forMs)),
      wanted: () => process.guard(() => inner.passing.wanted()),
      watchWanted: (wake) => inner.passing.watchWanted(whileAlive(wake)),
      put: (rows) => process.guard(() => inner.passing.put(rows)),
      read: (run, after) => process.guard(() => inner.passing.read(run, after)),
      watch: (run, wake) => inner.passing.watch(run, whileAlive(wake)),
    };
    this.sessions = {
      get: (scope) => process.guard(() => inner.sessions.get(scope)),
      list: (query) => process.guard(() => inner.sessions.list(query)),
      set: (scope, facts) => this.#write('sessions.set', () => inner.sessions.set(scope, facts)),
      delete: (scope) => this.#write('sessions.delete', () => inner.sessions.delete(scope)),
    };
    this.waits = { list: (query) => process.guard(() => inner.waits.list(query)) };
    this.events = {
      signal: (signal) => this.#write('events.signal', () => inner.events.signal(signal)),
      list: (query) => process.guard(() => inner.events.list(query)),
    };
    this.schedules = {
      put: (schedule) => this.#write('schedules.put', () => inner.schedules.put(schedule)),
      get: (tenant, id) => process.guard(() => inner.schedules.get(tenant, id)),
      list: (query) => process.guard(() => inner.schedules.list(query)),
      due: (agents, limit, after) => process.guard(() => inner.schedules.due(agents, limit, after)),
      unfired: (agents, lateMs, limit) => process.guard(() => inner.schedules.unfired(agents, lateMs, limit)),
      move: (move) => this.#write('schedules.move', () => inner.schedules.move(move)),
      delete: (tenant, id) => this.#write('schedules.delete', () => inner.schedules.delete(tenant, id)),
    };
    this.snapshots = {
      newest: (run, version) => process.guard(() => inner.snapshots.newest(run, version)),
      keep: (snapshot) => this.#write('snapshots.keep', () => inner.snapshots.keep(snapshot)),
      forget: (run) => this.#write('snapshots.forget', () => inner.snapshots.forget(run)),
    };
  }

  send(sending: Sending): Promise<Sent> {
    const { starts } = sending;
    if (starts?.claim !== undefined) this.#record.owners.set(starts.identity.run, starts.claim.owner);
    return this.#write('send', async () => {
      const sent = await this.#inner.send(sending);
      if (starts !== undefined && 'claim' in sent) await this.#acknowledge(starts.identity.run, starts.entries);
      return sent;
    });
  }

  create(run: NewRun): Promise<Claim | undefined> {
    if (run.claim !== undefined) this.#record.owners.set(run.identity.run, run.claim.owner);
    return this.#write('create', async () => {
      const claim = await this.#inner.create(run);
      if (claim !== undefined) await this.#acknowledge(run.identity.run, run.entries);
      return claim;
    });
  }

  startByKey(run: NewRun, key: StartKey): Promise<StartedByKey> {
    if (run.claim !== undefined) this.#record.owners.set(run.identity.run, run.claim.owner);
    return this.#write('startByKey', async () => {
      const started = await this.#inner.startByKey(run, key);
      if (started.claim !== undefined) await this.#acknowledge(run.identity.run, run.entries);
      return started;
    });
  }

  append(append: Append): Promise<void> {
    const { run, expected, entries, starts = [] } = append;
    const kinds = entries.map((entry) => entry.kind).join(' + ');
    const task = taskPath(run);
    return this.#write(`append ${kinds} at ${expected + 1}${task === '' ? '' : ` of ${task}`}`, async () => {
      await this.#inner.append(append);
      await this.#acknowledge(run, entries);
      for (const start of starts) await this.#acknowledge(start.identity.run, start.entries);
    });
  }

  signal(run: string, message: Message, options?: SignalOptions): Promise<boolean> {
    return this.#write(`signal ${message.type}`, () => this.#inner.signal(run, message, options));
  }

  release(lease: Renewal, park: Park): Promise<boolean> {
    return this.#write('release', () => this.#inner.release(lease, park));
  }

  read(run: string, from?: number, limit?: number): Promise<Entry[]> {
    return this.#process.guard(() => this.#inner.read(run, from, limit));
  }

  get(run: string): Promise<RunRecord | undefined> {
    return this.#process.guard(() => this.#inner.get(run));
  }

  list(query: RunQuery): Promise<RunRecord[]> {
    return this.#process.guard(() => this.#inner.list(query));
  }

  /** Knows, as a process on the same machine would, that the owner before it is dead. */
  claim(request: ClaimRequest): Promise<Claim | undefined> {
    const from = this.#dead.get(request.run);
    return this.#process.guard(async () => {
      const claim = await this.#inner.claim(from === undefined ? request : { from, ...request });
      if (claim !== undefined) this.#record.owners.set(claim.run, request.owner);
      return claim;
    });
  }

  claimDue(request: DueRequest): Promise<ClaimedRun[]> {
    return this.#claimed(request, () => this.#inner.claimDue(request));
  }

  claimParked(request: ParkedRequest): Promise<ClaimedRun[]> {
    return this.#claimed(request, () => this.#inner.claimParked(request));
  }

  #claimed({ owner }: LeaseRequest, claim: () => Promise<ClaimedRun[]>): Promise<ClaimedRun[]> {
    return this.#process.guard(async () => {
      const claimed = await claim();
      for (const {
        claim: { run },
      } of claimed)
        this.#record.owners.set(run, owner);
      return claimed;
    });
  }

  nextDue(agents: readonly string[]): Promise<number | undefined> {
    return this.#process.guard(() => this.#inner.nextDue(agents));
  }

  renew(leases: readonly Renewal[], leaseMs: number): Promise<(number | undefined)[]> {
    return this.#process.guard(() => this.#inner.renew(leases, leaseMs));
  }

  inbox(run: string): Promise<Received[]> {
    return this.#process.guard(() => this.#inner.inbox(run));
  }

  examine(run: string): Promise<Examined> {
    return this.#process.guard(() => this.#inner.examine(run));
  }

  repair(request: RepairRequest): Promise<void> {
    return this.#write('repair', () => this.#inner.repair(request));
  }

  prune(request: PruneRequest): Promise<Pruned> {
    return this.#write('prune', () => this.#inner.prune(request));
  }

  watch(run: string, wake: () => void): () => void {
    return this.#inner.watch(run, () => {
      if (this.#process.alive) wake();
    });
  }

  watchSession(scope: Scope, wake: () => void): () => void {
    return this.#inner.watchSession(scope, () => {
      if (this.#process.alive) wake();
    });
  }

  watchDue(wake: () => void): () => void {
    return this.#inner.watchDue(() => {
      if (this.#process.alive) wake();
    });
  }

  watchRuns(wake: (run?: string) => void): () => void {
    return this.#inner.watchRuns((run) => {
      if (this.#process.alive) wake(run);
    });
  }

  close(): Promise<void> {
    return this.#process.guard(() => this.#inner.close());
  }

  async #write<T>(what: string, write: () => Promise<T>): Promise<T> {
    await this.#process.reach(`before ${what}`);
    const value = await this.#process.guard(write);
    await this.#process.reach(`after ${what}`);
    return value;
  }

  /** Somebody else, in a process that lives, speaks to the first run. */
  async #acknowledge(run: string, entries: readonly Entry[]): Promise<void> {
    const controls = this.#record.acknowledge(run, entries);
    const [first = run] = this.#record.runs;
    for (const control of controls) {
      try {
        await this.#inner.signal(first, control);
      } catch (error) {
        if (!PilotageError.is(error, 'run_ended')) throw error;
      }
    }
  }
}
