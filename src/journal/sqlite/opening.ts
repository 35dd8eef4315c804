/**
 * A journal whose file could not be opened at once, because another process has the lock that is needed to make it, or to bring it to the
 * present format. Each operation waits for that lock as a write of an open file does, without holding up the event loop, and is refused
 * with `journal_busy` after the same time; the next one tries again.
 */
import { PilotageError, type Scope } from '#core';
import type { ArtifactStore, Journal, LongTermStore, SessionStore, SnapshotStore } from '../port.ts';
import type { PassingStore } from '../port-passing.ts';
import type { StreamStore } from '../port-streams.ts';
import { journalClosed } from '../rules.ts';
import type { ScheduleStore } from '../schedules-port.ts';
import type { EventStore, WaitIndex } from '../waits-port.ts';

const RETRY_MS = 20;

export class OpeningJournal implements Journal {
  /** @throws PilotageError `journal_busy` at once. */
  readonly #open: () => Journal;
  readonly #busyTimeoutMs: number;
  #opened: Journal | undefined;
  #opening: Promise<Journal> | undefined;
  /** Watches that wait for the file. */
  readonly #watches = new Set<(journal: Journal) => void>();
  #closed = false;

  constructor(open: () => Journal, busyTimeoutMs: number) {
    this.#open = open;
    this.#busyTimeoutMs = busyTimeoutMs;
  }

  readonly artifacts: ArtifactStore = {
    put: (scope, bytes, about) => this.#with(({ artifacts }) => artifacts.put(scope, bytes, about)),
    get: (scope, ref) => this.#with(({ artifacts }) => artifacts.get(scope, ref)),
    list: (scope, limit) => this.#with(({ artifacts }) => artifacts.list(scope, limit)),
    erase: (owner) => this.#with(({ artifacts }) => artifacts.erase(owner)),
  };

  readonly sessions: SessionStore = {
    get: (scope) => this.#with(({ sessions }) => sessions.get(scope)),
    list: (query) => this.#with(({ sessions }) => sessions.list(query)),
    set: (scope, facts) => this.#with(({ sessions }) => sessions.set(scope, facts)),
    delete: (scope) => this.#with(({ sessions }) => sessions.delete(scope)),
  };

  readonly schedules: ScheduleStore = {
    put: (schedule) => this.#with(({ schedules }) => schedules.put(schedule)),
    get: (tenant, id) => this.#with(({ schedules }) => schedules.get(tenant, id)),
    list: (query) => this.#with(({ schedules }) => schedules.list(query)),
    due: (agents, limit, after) => this.#with(({ schedules }) => schedules.due(agents, limit, after)),
    unfired: (...asked) => this.#with(({ schedules }) => schedules.unfired(...asked)),
    move: (move) => this.#with(({ schedules }) => schedules.move(move)),
    delete: (tenant, id) => this.#with(({ schedules }) => schedules.delete(tenant, id)),
  };

  readonly store: LongTermStore = {
    write: (writes) => this.#with(({ store }) => store.write(writes)),
    writeIf: (seen, writes) => this.#with(({ store }) => store.writeIf(seen, writes)),
    get: (namespace, key) => this.#with(({ store }) => store.get(namespace, key)),
    list: (query, after) => this.#with(({ store }) => store.list(query, after)),
    search: (query, lookup) => this.#with(({ store }) => store.search(query, lookup)),
    unindexed: (namespace, index, limit) => this.#with(({ store }) => store.unindexed(namespace, index, limit)),
    setVectors: (index, vectors) => this.#with(({ store }) => store.setVectors(index, vectors)),
    watch: (root, wake) => this.#watch(({ store }) => store.watch(root, wake), wake),
  };

  readonly waits: WaitIndex = {
    list: (query) => this.#with(({ waits }) => waits.list(query)),
  };

  readonly events: EventStore = {
    signal: (signal) => this.#with(({ events }) => events.signal(signal)),
    list: (query) => this.#with(({ events }) => events.list(query)),
  };

  readonly streams: StreamStore = {
    append: (append) => this.#with(({ streams }) => streams.append(append)),
    read: (run, name, from, limit) => this.#with(({ streams }) => streams.read(run, name, from, limit)),
    list: (run) => this.#with(({ streams }) => streams.list(run)),
  };

  readonly passing: PassingStore = {
    want: (runs, forMs) => this.#with(({ passing }) => passing.want(runs, forMs)),
    wanted: () => this.#with(({ passing }) => passing.wanted()),
    watchWanted: (wake) => this.#watch(({ passing }) => passing.watchWanted(wake), wake),
    put: (rows) => this.#with(({ passing }) => passing.put(rows)),
    read: (run, after) => this.#with(({ passing }) => passing.read(run, after)),
    watch: (run, wake) => this.#watch(({ passing }) => passing.watch(run, wake), wake),
  };

  readonly snapshots: SnapshotStore = {
    newest: (run, version) => this.#with(({ snapshots }) => snapshots.newest(run, version)),
    keep: (snapshot) => this.#with(({ snapshots }) => snapshots.keep(snapshot)),
    forget: (run) => this.#with(({ snapshots }) => snapshots.forget(run)),
  };

  create: Journal['create'] = (run) => this.#with((journal) => journal.create(run));
  startByKey: Journal['startByKey'] = (run, key) => this.#with((journal) => journal.startByKey(run, key));
  append: Journal['append'] = (append) => this.#with(async (journal) => journal.append(append));
  read: Journal['read'] = (run, from, limit) => this.#with((journal) => journal.read(run, from, limit));
  get: Journal['get'] = (run) => this.#with((journal) => journal.get(run));
  list: Journal['list'] = (query) => this.#with((journal) => journal.list(query));
  claim: Journal['claim'] = (request) => this.#with((journal) => journal.claim(request));
  claimDue: Journal['claimDue'] = (request) => this.#with((journal) => journal.claimDue(request));
  claimParked: Journal['claimParked'] = (request) => this.#with((journal) => journal.claimParked(request));
  nextDue: Journal['nextDue'] = (agents) => this.#with((journal) => journal.nextDue(agents));
  renew: Journal['renew'] = (leases, leaseMs) => this.#with((journal) => journal.renew(leases, leaseMs));
  release: Journal['release'] = (lease, park) => this.#with((journal) => journal.release(lease, park));
  signal: Journal['signal'] = (run, message, options) => this.#with((journal) => journal.signal(run, message, options));
  send: Journal['send'] = (sending) => this.#with((journal) => journal.send(sending));
  inbox: Journal['inbox'] = (run) => this.#with((journal) => journal.inbox(run));
  examine: Journal['examine'] = (run) => this.#with((journal) => journal.examine(run));
  repair: Journal['repair'] = (request) => this.#with((journal) => journal.repair(request));
  prune: Journal['prune'] = (request) => this.#with((journal) => journal.prune(request));

  watch(run: string, wake: () => void): () => void {
    return this.#watch((journal) => journal.watch(run, wake), wake);
  }

  watchSession(scope: Scope, wake: () => void): () => void {
    return this.#watch((journal) => journal.watchSession(scope, wake), wake);
  }

  watchDue(wake: () => void): () => void {
    return this.#watch((journal) => journal.watchDue(wake), wake);
  }

  watchRuns(wake: (run?: string) => void): () => void {
    return this.#watch((journal) => journal.watchRuns(wake), wake);
  }

  #watch(watch: (journal: Journal) => () => void, wake: () => void): () => void {
    if (this.#closed) throw journalClosed();
    if (this.#opened !== undefined) return watch(this.#opened);
    let stop: (() => void) | undefined;
    const begin = (journal: Journal): void => {
      stop = watch(journal);
      wake();
    };
    this.#watches.add(begin);
    return () => {
      this.#watches.delete(begin);
      stop?.();
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watches.clear();
    // Whoever waits for the file hears that the journal was closed.
    await this.#opening?.catch(() => {});
    await this.#opened?.close();
  }

  async #with<T>(use: (journal: Journal) => Promise<T>): Promise<T> {
    return use(this.#opened ?? (await this.#ready()));
  }

  /** All who wait share one look at the file. */
  #ready(): Promise<Journal> {
    this.#opening ??= this.#untilOpen().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  async #untilOpen(): Promise<Journal> {
    const since = performance.now();
    for (;;) {
      if (this.#closed) throw journalClosed();
      try {
        this.#opened = this.#open();
        break;
      } catch (error) {
        const isOver = performance.now() - since >= this.#busyTimeoutMs;
        if (isOver || !PilotageError.is(error, 'journal_busy')) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
    for (const begin of this.#watches) begin(this.#opened);
    this.#watches.clear();
    return this.#opened;
  }
}
