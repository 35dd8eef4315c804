/** A SQLite journal that is only looked at: nothing is written, made, claimed or brought to another format. */
import { resolve } from 'node:path';
import type { DatabaseSync } from 'node:sqlite';
import { PilotageError, type Scope } from '#core';
import type { ArtifactStore, Journal, LongTermStore, RunQuery, SessionStore, SnapshotStore } from '../port.ts';
import type { PassingStore } from '../port-passing.ts';
import type { StreamStore } from '../port-streams.ts';
import { journalClosed } from '../rules.ts';
import type { ScheduleStore } from '../schedules-port.ts';
import type { EventStore, WaitIndex } from '../waits-port.ts';
import { itemsKey, passingKey, Watchers } from '../watchers.ts';
import { footprintOf, openStill, type Still } from './still.ts';

const WATCH_INTERVAL_MS = 200;

interface ReadingOptions {
  readonly path: string;
  readonly watchIntervalMs?: number;
}

/** Somebody begins to write just while it is read from a file that was taken for one that does not change. */
const MOST_TRIES = 5;

interface Opened {
  readonly still: Still;
  readonly journal: Journal;
  /** What stood at the path when it was opened. */
  readonly footprint: string;
}

export class ReadingJournal implements Journal {
  readonly #options: ReadingOptions;
  readonly #path: string;
  readonly #over: (db: DatabaseSync) => Journal;
  readonly #watchers = new Watchers();
  #opened: Opened | undefined;
  #poll: NodeJS.Timeout | undefined;
  #closed = false;

  /** @param over gives the journal that reads through a connection, and closes it. */
  constructor(options: ReadingOptions, over: (db: DatabaseSync) => Journal) {
    this.#options = options;
    this.#over = over;
    this.#path = resolve(options.path);
    this.#opened = this.#open();
    if (this.#opened.still.isBehind) {
      process.emitWarning(
        `The log of the journal ${options.path} cannot be read here: what was written last is not seen. Make room in the folder for temporary files.`,
      );
    }
  }

  readonly artifacts: ArtifactStore = {
    put: () => this.#refuse(),
    get: (scope, ref) => this.#read((journal) => journal.artifacts.get(scope, ref)),
    list: (scope, limit) => this.#read((journal) => journal.artifacts.list(scope, limit)),
    erase: () => this.#refuse(),
  };

  readonly sessions: SessionStore = {
    get: (scope) => this.#read((journal) => journal.sessions.get(scope)),
    list: (query) => this.#read((journal) => journal.sessions.list(query)),
    set: () => this.#refuse(),
    delete: () => this.#refuse(),
  };

  readonly schedules: ScheduleStore = {
    put: () => this.#refuse(),
    get: (tenant, id) => this.#read(({ schedules }) => schedules.get(tenant, id)),
    list: (query) => this.#read(({ schedules }) => schedules.list(query)),
    due: (agents, limit, after) => this.#read(({ schedules }) => schedules.due(agents, limit, after)),
    unfired: (...asked) => this.#read(({ schedules }) => schedules.unfired(...asked)),
    move: () => this.#refuse(),
    delete: () => this.#refuse(),
  };

  readonly store: LongTermStore = {
    write: () => this.#refuse(),
    writeIf: () => this.#refuse(),
    get: (namespace, key) => this.#read(({ store }) => store.get(namespace, key)),
    list: (query, after) => this.#read(({ store }) => store.list(query, after)),
    search: (query, lookup) => this.#read(({ store }) => store.search(query, lookup)),
    unindexed: (namespace, index, limit) => this.#read(({ store }) => store.unindexed(namespace, index, limit)),
    setVectors: () => this.#refuse(),
    watch: (root, wake) => this.#watch(() => this.#watchers.add(itemsKey(root), wake)),
  };

  readonly waits: WaitIndex = {
    list: (query) => this.#read(({ waits }) => waits.list(query)),
  };

  readonly events: EventStore = {
    signal: () => this.#refuse(),
    list: (query) => this.#read(({ events }) => events.list(query)),
  };

  readonly streams: StreamStore = {
    append: () => this.#refuse(),
    read: (run, name, from, limit) => this.#read(({ streams }) => streams.read(run, name, from, limit)),
    list: (run) => this.#read(({ streams }) => streams.list(run)),
  };

  /** Nobody can say here that a run is read: what passes is seen as long as somebody else reads it. */
  readonly passing: PassingStore = {
    want: () => this.#refuse(),
    wanted: () => this.#read(({ passing }) => passing.wanted()),
    watchWanted: () => () => undefined,
    put: () => this.#refuse(),
    read: (run, after) => this.#read(({ passing }) => passing.read(run, after)),
    watch: (run, wake) => this.#watch(() => this.#watchers.add(passingKey(run), wake)),
  };

  readonly snapshots: SnapshotStore = {
    newest: (run, version) => this.#read((journal) => journal.snapshots.newest(run, version)),
    keep: () => this.#refuse(),
    forget: () => this.#refuse(),
  };

  read: Journal['read'] = (run, from, limit) => this.#read((journal) => journal.read(run, from, limit));
  get: Journal['get'] = (run) => this.#read((journal) => journal.get(run));
  list: Journal['list'] = (query: RunQuery) => this.#read((journal) => journal.list(query));
  inbox: Journal['inbox'] = (run) => this.#read((journal) => journal.inbox(run));
  examine: Journal['examine'] = (run) => this.#read((journal) => journal.examine(run));
  nextDue: Journal['nextDue'] = (agents) => this.#read((journal) => journal.nextDue(agents));
  create: Journal['create'] = () => this.#refuse();
  startByKey: Journal['startByKey'] = () => this.#refuse();
  append: Journal['append'] = () => this.#refuse();
  claim: Journal['claim'] = () => this.#refuse();
  claimDue: Journal['claimDue'] = () => this.#refuse();
  claimParked: Journal['claimParked'] = () => this.#refuse();
  renew: Journal['renew'] = () => this.#refuse();
  release: Journal['release'] = () => this.#refuse();
  signal: Journal['signal'] = () => this.#refuse();
  repair: Journal['repair'] = () => this.#refuse();
  prune: Journal['prune'] = (request) =>
    request.dryRun === true ? this.#read((journal) => journal.prune(request)) : this.#refuse();
  send: Journal['send'] = () => this.#refuse();

  watch(run: string, wake: () => void): () => void {
    return this.#watch(() => this.#watchers.add(run, wake));
  }

  watchSession(scope: Scope, wake: () => void): () => void {
    return this.#watch(() => this.#watchers.addSession(scope, wake));
  }

  /** Nobody carries out runs here. */
  watchDue(): () => void {
    return () => undefined;
  }

  watchRuns(wake: (run?: string) => void): () => void {
    return this.#watch(() => this.#watchers.addRuns(wake));
  }

  #watch(add: () => () => void): () => void {
    if (this.#closed) throw journalClosed();
    const stop = add();
    this.#poll ??= this.#watchOthers();
    return () => {
      stop();
      if (this.#watchers.size > 0) return;
      clearInterval(this.#poll);
      this.#poll = undefined;
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#watchers.clear();
    clearInterval(this.#poll);
    await this.#letGo();
  }

  #watchOthers(): NodeJS.Timeout {
    let seen = footprintOf(this.#path);
    return setInterval(() => {
      const now = footprintOf(this.#path);
      if (now !== seen) this.#watchers.wakeAll();
      seen = now;
    }, this.#options.watchIntervalMs ?? WATCH_INTERVAL_MS);
  }

  #open(): Opened {
    const footprint = footprintOf(this.#path);
    const still = openStill(this.#path);
    return { still, journal: this.#over(still.db), footprint };
  }

  async #letGo(): Promise<void> {
    const opened = this.#opened;
    this.#opened = undefined;
    await opened?.journal.close();
    opened?.still.dispose();
  }

  #current(): Opened {
    if (this.#opened !== undefined && !this.#isCurrent(this.#opened)) void this.#letGo();
    this.#opened ??= this.#open();
    return this.#opened;
  }

  /** Again, when the file has changed that was taken for one that does not. */
  async #read<T>(look: (journal: Journal) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      if (this.#closed) throw journalClosed();
      const opened = this.#current();
      const seen = await look(opened.journal).then(
        (value) => ({ value }),
        (error: unknown) => ({ error }),
      );
      if (this.#isCurrent(opened) || tries === MOST_TRIES) {
        if ('error' in seen) throw seen.error;
        return seen.value;
      }
    }
  }

  /** What is read through the index that others share is as they leave it, as long as the file is the same. */
  #isCurrent({ still, footprint }: Opened): boolean {
    const now = footprintOf(this.#path);
    if (!still.isShared) return now === footprint;
    return fileOf(now) === fileOf(footprint);
  }

  #refuse(): Promise<never> {
    const message = `The journal ${this.#options.path} was opened for reading only: nothing was written.`;
    return Promise.reject(new PilotageError('journal_read_only', message, { data: { path: this.#options.path } }));
  }
}

/** Device and number of the file and of its log. */
function fileOf(footprint: string): string {
  return footprint
    .split(' ')
    .map((mark) => mark.split(':').slice(0, 2).join(':'))
    .join(' ');
}
