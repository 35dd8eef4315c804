/** The one journal as each process of the simulation sees it: far away, sometimes failing, and deadly at given moments. */

import { type Entry, type EntryKind, type Message, PilotageError } from '#core';
import type {
  Append,
  ArtifactStore,
  Claim,
  ClaimedRun,
  ClaimRequest,
  DueRequest,
  Examined,
  Journal,
  LeaseRequest,
  LongTermStore,
  NewRun,
  Park,
  ParkedRequest,
  Received,
  Renewal,
  RepairRequest,
  RunQuery,
  RunRecord,
  SignalOptions,
  SnapshotStore,
  StreamAppend,
} from '#journal';
import type { NewSignal, Signalled } from '#pilotage/journal';
import { never } from '#testing';
import type { Moment } from './approval-ledger.ts';
import { checkLanded } from './check-approvals.ts';
import { checkOwner } from './check-owners.ts';
import { noteAsked } from './held-ledger.ts';
import type { Ledger } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';
import type { OperationName, StoreErrorCode } from './script-world.ts';
import { startingByKey } from './start-ledger.ts';
import { storeFailure } from './store-errors.ts';
import { firing, type SchedulesBehind, simulatedSchedules } from './store-schedules.ts';
import { sendingIn, simulatedSessions } from './store-sessions.ts';
import { noteEnds, noteRows } from './stream-ledger.ts';
import { entryText, messageText, parkText, rowsText } from './text.ts';
import type { SimulatedTime } from './time.ts';

/** What befalls one operation. */
export type OperationFault =
  | { readonly kind: 'crash'; readonly landed: boolean }
  | { readonly kind: 'store'; readonly landed: boolean; readonly code: StoreErrorCode }
  /** It is done, and the process stands still before it hears of it. */
  | { readonly kind: 'unheard'; readonly ms: number };

export interface StoreOptions {
  readonly inner: Journal;
  /** What was asked for first lands first, whoever asked. Otherwise things have landed when `inner` says so. */
  readonly isInOrder: boolean;
  readonly process: SimulatedProcess;
  readonly time: SimulatedTime;
  readonly ledger: Ledger;
  /** How long the next way to or from the store takes; 0 for no time. */
  readonly delayMs: () => number;
  /** Asked once for each operation. */
  readonly nextFault: (name: OperationName) => OperationFault | undefined;
  /** Kinds of entries that this program does not know, when a newer one has written them. Default: none. */
  readonly unknown?: readonly EntryKind[];
  /** How a wake comes to the process. Default: at once. */
  readonly hear?: (wake: () => void) => void;
}

const JUDGED: ReadonlySet<EntryKind> = new Set(['paused', 'ruled', 'approved', 'resumed']);

export class SimulatedStore implements Journal {
  readonly artifacts: ArtifactStore;
  readonly sessions: Journal['sessions'];
  readonly schedules: Journal['schedules'];
  readonly startByKey: Journal['startByKey'];
  readonly snapshots: SnapshotStore;
  readonly store: LongTermStore;
  readonly waits: Journal['waits'];
  readonly events: Journal['events'];
  readonly streams: Journal['streams'];
  readonly passing: Journal['passing'];
  readonly #options: StoreOptions;
  readonly #behind: SchedulesBehind;

  constructor(options: StoreOptions) {
    this.#options = options;
    const { inner } = options;
    this.artifacts = {
      put: (scope, bytes, about) => this.#operation('artifact', () => inner.artifacts.put(scope, bytes, about)),
      get: (scope, artifactRef) => this.#operation('artifact', () => inner.artifacts.get(scope, artifactRef)),
      list: (scope, limit) => this.#operation('artifact', () => inner.artifacts.list(scope, limit)),
      erase: (owner) => this.#operation('artifact', () => inner.artifacts.erase(owner)),
    };
    this.store = {
      write: (writes) => this.#operation('append', () => inner.store.write(writes)),
      writeIf: (seen, writes) => this.#operation('append', () => inner.store.writeIf(seen, writes)),
      get: (namespace, key) => this.#operation('read', () => inner.store.get(namespace, key)),
      list: (query, after) => this.#operation('read', () => inner.store.list(query, after)),
      search: (query, lookup) => this.#operation('read', () => inner.store.search(query, lookup)),
      unindexed: (namespace, index, limit) =>
        this.#operation('read', () => inner.store.unindexed(namespace, index, limit)),
      setVectors: (index, vectors) => this.#operation('append', () => inner.store.setVectors(index, vectors)),
      watch: (root, wake) => inner.store.watch(root, wake),
    };
    this.waits = { list: (query) => this.#operation('read', () => inner.waits.list(query)) };
    this.events = {
      signal: (signal) => this.#signalOutside(signal),
      list: (query) => this.#operation('read', () => inner.events.list(query)),
    };
    this.#behind = {
      ...options,
      operation: (name, work) => this.#operation(name, work),
      tell: (what) => this.#tell('', what),
    };
    this.sessions = simulatedSessions(this.#behind);
    this.schedules = simulatedSchedules(this.#behind);
    this.startByKey = (run, key) => this.#operation('create', () => startingByKey(this.#behind, run, key));
    this.streams = {
      append: (append) => this.#appendRows(append),
      read: (run, name, from, limit) => this.#operation('read', () => inner.streams.read(run, name, from, limit)),
      list: (run) => this.#operation('read', () => inner.streams.list(run)),
    };
    const heard = (wake: () => void) => () => (options.hear ?? ((told) => told()))(() => options.process.deliver(wake));
    // It says nothing that counts, and meets no faults, so that histories stay what they were.
    this.passing = {
      want: (runs, forMs) => inner.passing.want(runs, forMs),
      wanted: () => inner.passing.wanted(),
      put: (rows) => inner.passing.put(rows),
      read: (run, after) => inner.passing.read(run, after),
      watchWanted: (wake) => inner.passing.watchWanted(heard(wake)),
      watch: (run, wake) => inner.passing.watch(run, heard(wake)),
    };
    this.snapshots = {
      newest: (run, version) => this.#operation('read', () => inner.snapshots.newest(run, version)),
      keep: (snapshot) => this.#operation('append', () => inner.snapshots.keep(snapshot)),
      forget: (run) => this.#operation('append', () => inner.snapshots.forget(run)),
    };
  }

  create(run: NewRun): Promise<Claim | undefined> {
    const { inner, ledger, process } = this.#options;
    return this.#operation('create', async () => {
      const before = ledger.next();
      const isNew = !ledger.runs.has(run.identity.run);
      // Noted as soon as it is done: in the same moment another process may claim it, and hear of that first.
      const claim = await firing(this.#behind, run.fires, async () => {
        const made = await inner.create(run);
        ledger.created(run, this.#landedAt(before));
        return made;
      });
      if (isNew) this.#tell(run.identity.run, () => run.entries.map(entryText).join(', '));
      if (claim !== undefined && run.claim !== undefined) {
        if (!isNew) ledger.violated('leases', 'a run that was there already was claimed by its creation', claim.run);
        ledger.claimed(claim, run.claim, process);
      }
      return claim;
    });
  }

  append(append: Append): Promise<void> {
    const { inner, isInOrder, ledger, process } = this.#options;
    return this.#operation('append', async () => {
      const before = ledger.next();
      const at = ledger.now();
      await inner.append(append);
      if (process.isNewer) for (const entry of append.entries) ledger.newer.add(entry);
      const order = this.#landedAt(before);
      this.#tell(append.run, () => append.entries.map(entryText).join(', '));
      ledger.appended(append, order, at);
      noteEnds(append, order, process, ledger);
      noteAsked(append, ledger);
      if (isInOrder) this.#judge(append, { order, at, wallMs: process.wallMs() });
    });
  }
  #appendRows(append: StreamAppend): Promise<void> {
    const { inner, ledger } = this.#options;
    return this.#operation('append', async () => {
      const before = ledger.next();
      await inner.streams.append(append);
      this.#tell(append.run, () => `rows ${rowsText(append)}`);
      noteRows(append, this.#landedAt(before), ledger);
    });
  }

  #judge({ run, entries }: Append, now: Moment): void {
    const { ledger, process } = this.#options;
    if (!entries.some(({ kind }) => JUDGED.has(kind))) return;
    checkLanded({ run, entries, all: ledger.runs.get(run)?.entries ?? [], process, now, ledger });
  }

  claim(request: ClaimRequest): Promise<Claim | undefined> {
    const { inner, ledger, process } = this.#options;
    return this.#operation('claim', async () => {
      const claim = await inner.claim(checkOwner(request, ledger));
      if (claim === undefined) return undefined;
      this.#tell(claim.run, () => `claimed under the fence ${claim.fence}`);
      ledger.claimed(claim, request, process);
      return claim;
    });
  }

  claimDue(request: DueRequest): Promise<ClaimedRun[]> {
    const { inner, ledger } = this.#options;
    return this.#claimed(request, () => inner.claimDue(checkOwner(request, ledger)));
  }

  claimParked(request: ParkedRequest): Promise<ClaimedRun[]> {
    return this.#claimed(request, () => this.#options.inner.claimParked(request));
  }

  #claimed(request: LeaseRequest, claim: () => Promise<ClaimedRun[]>): Promise<ClaimedRun[]> {
    const { ledger, process } = this.#options;
    return this.#operation('claim', async () => {
      const claimed = await claim();
      for (const { claim } of claimed) {
        this.#tell(claim.run, () => `claimed under the fence ${claim.fence}`);
        ledger.claimed(claim, request, process);
      }
      return claimed;
    });
  }

  nextDue(agents: readonly string[]): Promise<number | undefined> {
    return this.#operation('get', () => this.#options.inner.nextDue(agents));
  }

  renew(leases: readonly Renewal[], leaseMs: number): Promise<(number | undefined)[]> {
    const { inner, ledger } = this.#options;
    return this.#operation('renew', async () => {
      const counts = await inner.renew(leases, leaseMs);
      for (const [index, { run, fence }] of leases.entries()) {
        if (counts[index] !== undefined) ledger.renewed(run, fence, leaseMs);
      }
      return counts;
    });
  }

  release(lease: Renewal, park: Park): Promise<boolean> {
    const { inner, ledger } = this.#options;
    const askedAt = ledger.now();
    return this.#operation('release', async () => {
      ledger.givesBack(lease.run, lease.fence);
      const lateMs = ledger.now() - askedAt;
      const parked = await inner.release(lease, park);
      ledger.released(lease.run, lease.fence, park, lateMs);
      this.#tell(lease.run, () => `released ${parkText(park)}: ${parked}`);
      return parked;
    });
  }

  async signal(run: string, message: Message, options?: SignalOptions): Promise<boolean> {
    const { inner, ledger, process } = this.#options;
    const isNew = await this.#operation('signal', async () => {
      const before = ledger.next();
      const stored = await inner.signal(run, message, options);
      const order = this.#landedAt(before);
      this.#tell(run, () => `inbox: ${messageText(message)}${stored ? '' : ' (known)'}`);
      if (stored) ledger.stored(run, message, order);
      return stored;
    });
    if (isNew && message.type === 'CANCEL') ledger.sessions.cancels.push({ run, by: process });
    return isNew;
  }

  #signalOutside(signal: NewSignal): Promise<Signalled> {
    const { inner, ledger } = this.#options;
    return this.#operation('signal', async () => {
      const before = ledger.next();
      const at = ledger.now();
      const answer = await inner.events.signal(signal);
      const order = this.#landedAt(before);
      const to = answer.isNew
        ? answer.runs.join(', ') || (answer.kept ? 'nobody, and is kept' : 'nobody')
        : 'nobody, for it is known';
      this.#tell(signal.key, () => `signal ${signal.id} ${JSON.stringify(signal.payload)} goes to ${to}`);
      ledger.accepted.push({ order, at, signal, answer });
      return answer;
    });
  }

  read(run: string, from?: number, limit?: number): Promise<Entry[]> {
    return this.#operation('read', async () => {
      const entries = await this.#options.inner.read(run, from, limit);
      this.#assertKnown(run, entries);
      return entries;
    });
  }

  /** @throws PilotageError `journal_entry_unknown`, as where entries are decoded. */
  #assertKnown(run: string, entries: readonly Entry[]): void {
    const { unknown = [], ledger } = this.#options;
    if (unknown.length === 0) return;
    const written = ledger.runs.get(run)?.entries ?? [];
    for (const { seq, kind } of entries) {
      const entry = written[seq - 1];
      if (entry === undefined || !unknown.includes(kind) || !ledger.newer.has(entry)) continue;
      throw new PilotageError('journal_entry_unknown', `Entry ${seq} is of the unknown kind ${kind}.`, {
        data: { run, seq, kind },
      });
    }
  }

  get(run: string): Promise<RunRecord | undefined> {
    return this.#operation('get', () => this.#options.inner.get(run));
  }

  list(query: RunQuery): Promise<RunRecord[]> {
    return this.#operation('read', () => this.#options.inner.list(query));
  }

  inbox(run: string): Promise<Received[]> {
    return this.#operation('inbox', () => this.#options.inner.inbox(run));
  }

  examine(run: string): Promise<Examined> {
    return this.#operation('read', () => this.#options.inner.examine(run));
  }

  repair(request: RepairRequest): Promise<void> {
    return this.#operation('append', () => this.#options.inner.repair(request));
  }

  watch(run: string, wake: () => void): () => void {
    const { inner, process, hear = (told) => told() } = this.#options;
    return inner.watch(run, () => hear(() => process.deliver(wake)));
  }

  send: Journal['send'] = (sending) => this.#operation('create', () => sendingIn(this.#behind, sending));

  watchSession: Journal['watchSession'] = (scope, wake) => {
    const { inner, process, hear = (told) => told() } = this.#options;
    return inner.watchSession(scope, () => hear(() => process.deliver(wake)));
  };

  prune: Journal['prune'] = (request) => this.#options.inner.prune(request);

  watchDue: Journal['watchDue'] = (wake) => this.#options.inner.watchDue(wake);
  watchRuns: Journal['watchRuns'] = (wake) => this.#options.inner.watchRuns(wake);

  async close(): Promise<void> {}

  /** There, done, and back. What a process asked for before it died may still be done. */
  async #operation<T>(name: OperationName, work: () => Promise<T>): Promise<T> {
    const { process, ledger, nextFault, delayMs } = this.#options;
    if (!process.alive || ledger.isSpinning()) return never();
    const fault = nextFault(name);
    if (fault?.kind === 'crash' && !fault.landed) return this.#die();
    await this.#there(delayMs());
    if (fault?.kind === 'store' && !fault.landed) return this.#fail(name, fault.code);
    const value = await work();
    if (fault?.kind === 'crash') return this.#die();
    if (fault?.kind === 'store') return this.#fail(name, fault.code);
    if (fault?.kind === 'unheard') this.#stall(fault.ms);
    await process.wait(delayMs());
    return value;
  }

  #landedAt(asked: number): number {
    return this.#options.isInOrder ? asked : this.#options.ledger.next();
  }

  async #fail(name: OperationName, code: StoreErrorCode): Promise<never> {
    const { process, delayMs } = this.#options;
    this.#tell('', () => `the store says ${code} to ${name}`);
    await process.wait(delayMs());
    throw storeFailure(code);
  }

  #stall(ms: number): void {
    this.#tell('', () => `stalls for ${ms} ms`);
    this.#options.process.stall(ms);
  }

  #die<T>(): Promise<T> {
    const { process } = this.#options;
    if (process.alive) this.#tell('', () => 'dies');
    process.kill();
    return never();
  }

  #there(delayMs: number): Promise<void> {
    if (delayMs <= 0) return this.#options.process.wait(0);
    return new Promise((resolve) => this.#options.time.after(delayMs, resolve));
  }

  #tell(run: string, what: () => string): void {
    const { ledger, process } = this.#options;
    ledger.tell(process.name, () => (run === '' ? what() : `${run}: ${what()}`));
  }
}
