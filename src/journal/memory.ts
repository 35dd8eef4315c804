/** A journal in the memory of this process: for tests, and for runs that need not survive the process. */
import {
  assertOptions,
  assertStoreWrite,
  type Clock,
  type Entry,
  type EventMessage,
  encodeEntry,
  isCapped,
  type Message,
  type OptionShape,
  type Scope,
  SESSION_MESSAGE,
  type Started,
  type StartKey,
  scopeKey,
  systemClock,
} from '#core';
import { LeaseWatch } from './lease-watch.ts';
import { MemoryItems } from './memory-items.ts';
import { StoredRuns } from './memory-order.ts';
import { MemoryPassing } from './memory-passing.ts';
import { type PrunedTrees, prunable } from './memory-prune.ts';
import {
  claimDue,
  claimParked,
  countCapped,
  eventsAmong,
  firstDue,
  fitsQuery,
  grant,
  letGo,
  memoryRecord,
  putMessage,
  type StoredRun,
  storedRun,
} from './memory-runs.ts';
import { MemoryKeys, MemorySchedules } from './memory-schedules.ts';
import { MemoryArtifacts, MemorySnapshots } from './memory-stores.ts';
import { MemoryStreams } from './memory-streams.ts';
import { MemoryTurns } from './memory-turns.ts';
import { MemoryWaits } from './memory-waits.ts';
import type {
  Append,
  Claim,
  ClaimedRun,
  ClaimRequest,
  DueRequest,
  Examined,
  Journal,
  NewRun,
  Park,
  ParkedRequest,
  Received,
  Renewal,
  RepairRequest,
  RunQuery,
  RunRecord,
  RunStatus,
  Sending,
  Sent,
  SessionStore,
  SignalOptions,
  StartedByKey,
  Told,
} from './port.ts';
import { assertPrune, type Pruned, type PruneRequest } from './prune-port.ts';
import {
  agentAfter,
  assertAsExamined,
  assertConsecutive,
  assertCurrent,
  assertInTime,
  assertLease,
  assertMayGoOn,
  assertNewRun,
  assertOwnStarts,
  assertOwnTurn,
  assertPriority,
  assertRoom,
  assertSeen,
  assertSessionSeen,
  assertTakesSignals,
  assertTreeLimit,
  cannotDelete,
  dueAt,
  hasEnded,
  isReopening,
  isTurn,
  journalClosed,
  mayReopen,
  type Owned,
  ownedBy,
  pageSize,
  runNotFound,
  type StoredTree,
  sessionBusy,
  sourceOf,
  wholeMs,
} from './rules.ts';
import { beginningAt, decideStart, firstWake, inPlaceOf, isYetToBegin, type KeyedRuns } from './start-rules.ts';
import type { EventStore, WaitIndex } from './waits-port.ts';
import { Watchers } from './watchers.ts';

const OPTIONS: OptionShape<{ clock?: Clock }> = { clock: 'clock?' };

/** Nothing survives the process. Times and leases are judged by `clock` (default: the system's). */
export function memoryJournal(options: { readonly clock?: Clock } = {}): Journal {
  assertOptions('memoryJournal', options, OPTIONS);
  return new MemoryJournal(options.clock ?? systemClock);
}

class MemoryJournal implements Journal {
  readonly artifacts: MemoryArtifacts;
  readonly sessions: SessionStore;
  readonly schedules: MemorySchedules;
  readonly snapshots: MemorySnapshots;
  readonly store: MemoryItems;
  readonly waits: WaitIndex;
  readonly events: EventStore;
  readonly #keys = new MemoryKeys();
  readonly streams: MemoryStreams;
  readonly passing: MemoryPassing;
  readonly #clock: Clock;
  readonly #runs = new StoredRuns();
  readonly #unended = new Set<StoredRun>();
  /** How many runs there ever were. */
  #born = 0;
  /** How many unfinished runs each root has under it. */
  readonly #trees = new Map<string, number>();
  readonly #turns = new MemoryTurns<StoredRun>();
  /** In which runs messages of sessions were heard, by their sessions and the ids of their controls. */
  readonly #messages = new Map<string, string>();
  readonly #waits: MemoryWaits<StoredRun>;
  readonly #watchers = new Watchers();
  readonly #leaseWatch: LeaseWatch<StoredRun>;
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#leaseWatch = new LeaseWatch(clock);
    const assertOpen = (): void => this.#assertOpen();
    this.artifacts = new MemoryArtifacts({ assertOpen, now: () => this.#clock.now() });
    this.store = new MemoryItems({ assertOpen, now: () => this.#clock.now(), watchers: this.#watchers });
    this.schedules = new MemorySchedules({ assertOpen, now: () => Math.floor(this.#clock.now()) });
    this.snapshots = new MemorySnapshots((run) => this.#run(run).fence);
    const tell = ({ identity }: StoredRun, message: EventMessage): boolean =>
      this.#tell({ run: identity.run, message }, this.#clock.now());
    this.#waits = new MemoryWaits({ assertOpen, now: () => this.#clock.now(), tell });
    this.waits = this.#waits.index;
    this.events = this.#waits.events;
    this.streams = new MemoryStreams({
      fenceOf: (run) => this.#run(run).fence,
      now: () => this.#clock.now(),
      wake: (run) => this.#watchers.wake(run),
    });
    const fenceOf = (run: string): number | undefined => this.#runs.get(run)?.fence;
    this.passing = new MemoryPassing({ assertOpen, fenceOf, now: () => clock.now(), watchers: this.#watchers });
    this.sessions = {
      get: async (scope) => {
        assertOpen();
        return this.#turns.record(scope);
      },
      list: async (query) => {
        assertOpen();
        return this.#turns.list(query);
      },
      set: async (scope, facts) => {
        assertOpen();
        this.#turns.set(scope, facts);
      },
      delete: async (scope) => this.#deleteSession(scope),
    };
  }

  async create(run: NewRun): Promise<Claim | undefined> {
    this.#assertOpen();
    const first = assertNewRun(run);
    if (run.fires !== undefined) this.schedules.assertAsRead(run.fires);
    const claim = this.#create(run, first, this.#clock.now());
    if (run.fires !== undefined) this.schedules.apply(run.fires);
    return claim;
  }

  async startByKey(given: NewRun, key: StartKey): Promise<StartedByKey> {
    this.#assertOpen();
    assertNewRun(given);
    const now = this.#clock.now();
    const { tenant, run: id } = given.identity;
    if (this.#runs.has(id)) return { run: id };
    const decision = decideStart(key, this.#keys.rows(tenant, key), this.#keyedRuns(now), Math.ceil(now));
    if (decision.do === 'join') return { run: decision.run };
    if (decision.do === 'replace') {
      this.#replace(this.#run(decision.run), given, decision.startsAt, now);
      return { run: decision.run };
    }
    const run = beginningAt(given, decision.startsAt);
    const claim = this.#create(run, assertNewRun(run), now);
    this.#keys.add(tenant, key, id, decision);
    return { run: id, ...(claim === undefined ? {} : { claim }) };
  }

  #keyedRuns(now: number): KeyedRuns {
    const has = (run: string, test: (stored: StoredRun) => boolean): boolean => {
      const stored = this.#runs.get(run);
      return stored !== undefined && test(stored);
    };
    return {
      isUnderWay: (run) => has(run, ({ status }) => !hasEnded(status)),
      isYetToBegin: (run) => has(run, (stored) => isYetToBegin(stored, now)),
    };
  }

  #replace(stored: StoredRun, given: NewRun, startsAt: number, now: number): void {
    const { identity, entries } = stored;
    const { first } = inPlaceOf(given, { identity, at: entries[0]?.at ?? 0 }, startsAt);
    stored.first = first;
    stored.agent = first.agent;
    stored.priority = given.priority;
    entries.splice(0, 1, first);
    stored.wakeAt = firstWake(first, now);
    stored.updatedAt = now;
    this.#watchers.wake(identity.run);
  }

  #create(run: NewRun, first: Started, now: number): Claim | undefined {
    const { identity, claim, waits, openWaits } = run;
    if (this.#runs.has(identity.run)) return undefined;
    const source = sourceOf(first);
    if (source !== undefined) this.#run(source);
    const stored = storedRun(run, first, this.#born, now);
    this.#born += 1;
    if (isTurn(first)) this.#turns.add(stored, waits);
    this.#runs.add(stored);
    this.#unended.add(stored);
    this.#countLive(stored, 1);
    this.#watchers.wake(identity.run);
    if (stored.turn > 0) this.#watchers.wakeSession(identity);
    if (openWaits !== undefined) this.#waits.change(stored, { adds: openWaits }, now);
    return claim && stored.waits !== true && stored.wakeAt === 0 ? grant(stored, claim, now) : undefined;
  }

  async send({ scope, known, seen, starts, tells = [], fires }: Sending): Promise<Sent> {
    this.#assertOpen();
    const first = starts && assertNewRun(starts);
    const before = this.#acceptedIn({ scope, known, seen });
    if (before !== undefined) return { run: before };
    assertSessionSeen({ scope, known, seen }, this.#turns.record(scope), () => this.#turns.record(scope) !== undefined);
    for (const { run, message } of tells) if (isCapped(message)) assertRoom(run, countCapped(this.#run(run).inbox));
    if (fires !== undefined) this.schedules.assertAsRead(fires);
    const now = this.#clock.now();
    const claim = starts && first && this.#create(starts, first, now);
    if (starts !== undefined) this.#turns.set(scope, { branch: null });
    for (const told of tells) this.#tell(told, now);
    if (fires !== undefined) this.schedules.apply(fires);
    return { claim };
  }

  #acceptedIn(sending: Sending): string | undefined {
    const { run, control } = sending.known;
    const there = this.#runs.get(run);
    if (there === undefined) return this.#messages.get(messageKey(sending.scope, control));
    assertOwnTurn(sending, there.identity);
    return run;
  }

  async #deleteSession(scope: Scope): Promise<number> {
    this.#assertOpen();
    ownedBy(scope);
    const now = this.#clock.now();
    const runs = [...this.#runs.ofSession(scope)];
    for (const { identity, owner, leaseUntil, status } of runs) {
      if (hasEnded(status) || owner === undefined || leaseUntil <= now) continue;
      throw sessionBusy(cannotDelete(scope), identity.run);
    }
    for (const run of runs) if (!hasEnded(run.status)) this.#setStatus(run, 'cancelled');
    this.#drop(runs, now);
    this.#keys.forget(new Set(runs.map(({ identity }) => identity.run)));
    this.#turns.delete(scope);
    this.artifacts.delete(scope);
    this.#watchers.wakeAll();
    return runs.length;
  }

  /** Removes runs that have ended. Signals that they have not taken go to whoever else waits for them. */
  #drop(runs: readonly StoredRun[], now: number): void {
    // First, so that none of them gets what another one gives back.
    for (const run of runs) this.#waits.change(run, { ends: true }, now);
    for (const run of runs) {
      const { identity, told } = run;
      this.#runs.delete(run);
      for (const id of told) this.#messages.delete(messageKey(identity, id));
      for (const rows of [this.snapshots, this.streams, this.passing]) rows.drop(identity.run);
    }
    for (const run of runs) this.#waits.giveBack(run, eventsAmong(run.inbox.values()), now);
  }

  async prune(request: PruneRequest): Promise<Pruned> {
    this.#assertOpen();
    assertPrune(request);
    const now = this.#clock.now();
    const { trees, next } = prunable(this.#runs, request, now);
    const runs = trees.reduce((sum, tree) => sum + tree.runs.length, 0);
    const pruned = { runs, ...(next === undefined ? {} : { next }) };
    if (request.dryRun === true) return pruned;
    for (const tree of trees) this.#prune(tree, now, now - request.olderThanMs);
    this.#waits.sweep(now);
    return pruned;
  }

  #prune({ root, runs }: PrunedTrees, now: number, before: number): void {
    this.#drop(runs, now);
    this.#keys.forget(new Set(runs.map(({ identity }) => identity.run)), now);
    const { tenant, user, session } = root.identity;
    const scope = { tenant, user, session };
    if (root.turn > 0) {
      this.#turns.delete(scope);
      this.#watchers.wakeSession(scope);
    }
    if (this.#runs.ofSession(scope).size === 0) this.artifacts.delete(scope, before);
  }

  /** At once: a promise would be a good part of the cost. */
  append(append: Append): Promise<void> | undefined {
    try {
      this.#append(append);
      return undefined;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #append(append: Append): void {
    const run = this.#run(append.run);
    assertConsecutive(append);
    if (append.leaseMs !== undefined) assertLease({ leaseMs: append.leaseMs });
    assertCurrent(append, { head: run.entries.length, fence: run.fence, owner: run.owner });
    assertSeen(append, run.signals);
    if (append.writes !== undefined) for (const write of append.writes) assertStoreWrite(write);
    if (isReopening(append)) assertMayGoOn(append.run, this.#turns.otherInTurn(run));
    const starts = append.starts === undefined ? undefined : this.#mayStart(append, append.starts);
    // From here on nothing is refused.
    const now = this.#clock.now();
    for (const entry of append.entries) run.entries.push(entry);
    if (append.takes !== undefined) for (const id of append.takes) run.inbox.delete(id);
    run.agent = agentAfter(append) ?? run.agent;
    // Before this run ends: the turn that comes next may be one of them.
    if (starts !== undefined) for (const [start, first] of starts) this.#create(start, first, now);
    if (append.status !== undefined) this.#setStatus(run, append.status);
    if (append.leaseMs !== undefined) run.leaseUntil = wholeMs(now + append.leaseMs, 'leaseMs');
    run.updatedAt = now;
    this.#watchers.wake(append.run);
    if (append.tells !== undefined) for (const told of append.tells) this.#tell(told, now);
    if (append.writes !== undefined) this.store.apply(append.writes);
    if (append.waits !== undefined) this.#waits.change(run, append.waits, now);
  }

  #mayStart(append: Append, starts: readonly NewRun[]): [NewRun, Started][] {
    const checked = starts.map((start): [NewRun, Started] => [start, assertNewRun(start)]);
    const tree: StoredTree = { find: (run) => this.#owned(run), live: (root) => this.#liveUnder(root) };
    assertOwnStarts(append, tree);
    assertTreeLimit(append, tree);
    return checked;
  }

  #owned(run: string): Owned | undefined {
    const stored = this.#runs.get(run);
    return stored && { ...stored.identity, parent: stored.first.task?.parent };
  }

  #liveUnder(root: string): number {
    return this.#trees.get(root) ?? 0;
  }

  #tell({ run, message }: Told, now: number): boolean {
    const target = this.#runs.get(run);
    if (target === undefined || hasEnded(target.status) || target.told.has(message.id)) return false;
    this.#put(target, message, now);
    return true;
  }

  async read(run: string, from = 1, limit = Number.POSITIVE_INFINITY): Promise<Entry[]> {
    const first = Math.max(from, 1) - 1;
    return this.#run(run).entries.slice(first, first + limit);
  }

  async get(run: string): Promise<RunRecord | undefined> {
    this.#assertOpen();
    const stored = this.#runs.get(run);
    return stored && memoryRecord(stored, this.#clock.now());
  }

  async list(query: RunQuery): Promise<RunRecord[]> {
    this.#assertOpen();
    const limit = pageSize(query);
    const now = this.#clock.now();
    const found: RunRecord[] = [];
    for (const run of this.#newestFirst(query)) {
      if (fitsQuery(run, query)) found.push(memoryRecord(run, now));
      if (found.length === limit) break;
    }
    return found;
  }

  *#newestFirst(query: RunQuery): Generator<StoredRun, void> {
    const { after, beforeTurn, tenant = '', user = '', session = '' } = query;
    if (beforeTurn !== undefined) {
      const turns = this.#turns.of({ tenant, user, session });
      // Not a copy of all for a page of them.
      for (let at = Math.min(turns.length, beforeTurn - 1); at > 0; at -= 1) yield turns[at - 1] as StoredRun;
      return;
    }
    yield* this.#runs.newestFirst(query, after === undefined ? Number.POSITIVE_INFINITY : this.#run(after).age);
  }

  async claim(request: ClaimRequest): Promise<Claim | undefined> {
    this.#assertOpen();
    assertLease(request);
    const now = this.#clock.now();
    const run = this.#runs.get(request.run);
    if (run === undefined || isYetToBegin(run, now)) return undefined;
    const mayHave = hasEnded(run.status) ? mayReopen(run.status, request) : this.#isFree(run, now, request.from);
    if (hasEnded(run.status) && mayHave) assertMayGoOn(run.identity.run, this.#turns.otherInTurn(run));
    return mayHave ? grant(run, request, now) : undefined;
  }

  #isFree(run: StoredRun, now: number, from?: string): boolean {
    const { owner, fence, leaseUntil: until } = run;
    return owner === undefined || until <= now || owner === from || this.#leaseWatch.isOver(run, { fence, until }, now);
  }

  async claimDue(request: DueRequest): Promise<ClaimedRun[]> {
    this.#assertOpen();
    assertLease(request);
    const now = this.#clock.now();
    return claimDue(this.#unended, request, now, (run) => this.#isFree(run, now));
  }

  async claimParked(request: ParkedRequest): Promise<ClaimedRun[]> {
    this.#assertOpen();
    assertLease(request);
    const named = request.runs?.flatMap((run) => this.#runs.get(run) ?? []);
    return claimParked(named ?? this.#unended, request, this.#clock.now());
  }

  async nextDue(agents: readonly string[]): Promise<number | undefined> {
    this.#assertOpen();
    return firstDue(this.#unended, agents, this.#clock.now());
  }

  async renew(leases: readonly Renewal[], leaseMs: number): Promise<(number | undefined)[]> {
    this.#assertOpen();
    assertLease({ leaseMs });
    const until = wholeMs(this.#clock.now() + leaseMs, 'leaseMs');
    return leases.map((lease) => {
      const run = this.#held(lease);
      if (run === undefined) return undefined;
      run.leaseUntil = until;
      return run.signals;
    });
  }

  async release(lease: Renewal, park: Park): Promise<boolean> {
    this.#assertOpen();
    const wakeAt = dueAt(park, this.#clock.now());
    const run = this.#held(lease);
    if (run === undefined) return true;
    return letGo(run, park, { wakeAt, now: this.#clock.now() });
  }

  async signal(run: string, message: Message, options: SignalOptions = {}): Promise<boolean> {
    const stored = this.#run(run);
    const { priority } = options;
    if (priority !== undefined) assertPriority(priority);
    if (stored.told.has(message.id)) return false;
    assertTakesSignals(run, stored.status);
    const now = this.#clock.now();
    assertInTime(options, now);
    if (isCapped(message)) assertRoom(run, countCapped(stored.inbox));
    if (priority !== undefined) stored.priority = priority;
    this.#put(stored, message, now);
    return true;
  }

  #put(run: StoredRun, message: Message, now: number): void {
    putMessage(run, message, now);
    if (message.id.startsWith(SESSION_MESSAGE))
      this.#messages.set(messageKey(run.identity, message.id), run.identity.run);
    this.#watchers.wake(run.identity.run);
  }

  async inbox(run: string): Promise<Received[]> {
    return [...this.#run(run).inbox.values()];
  }

  async examine(id: string): Promise<Examined> {
    const { entries, signals, inbox } = this.#run(id);
    return {
      head: entries.length,
      signals,
      entries: entries.map((entry, index) => ({ seq: index + 1, text: encodeEntry(entry) })),
      inbox: [...inbox].map(([id, { message }]) => ({ id, text: JSON.stringify(message) })),
    };
  }

  async repair(request: RepairRequest): Promise<void> {
    const run = this.#run(request.run);
    const now = this.#clock.now();
    const isLeased = !hasEnded(run.status) && run.owner !== undefined && run.leaseUntil > now;
    assertAsExamined(request, {
      head: run.entries.length,
      last: run.entries.length,
      signals: run.signals,
      isLeased,
    });
    const [first] = request.entries;
    if (first?.kind === 'started') run.first = first;
    run.entries.length = request.keep;
    run.entries.push(...request.entries);
    const dropped = [...run.inbox.values()].filter(({ message }) => request.drops.includes(message.id));
    for (const id of request.drops) run.inbox.delete(id);
    this.snapshots.drop(request.run);
    if (request.erases === true) this.#keys.forget(new Set([request.run]));
    if (request.erases === true) for (const rows of [this.streams, this.passing]) rows.drop(request.run);
    const { agent } = request;
    Object.assign(run, {
      agent,
      owner: undefined,
      fence: run.fence + 1,
      wakeAt: 0,
      problem: undefined,
      updatedAt: now,
    });
    this.#setStatus(run, request.status);
    this.#waits.change(run, { ends: true, adds: request.waits }, now);
    this.#waits.giveBack(run, eventsAmong(dropped), now);
    this.#watchers.wake(request.run);
  }

  watch(run: string, wake: () => void): () => void {
    this.#assertOpen();
    return this.#watchers.add(run, wake);
  }

  watchSession(scope: Scope, wake: () => void): () => void {
    this.#assertOpen();
    return this.#watchers.addSession(scope, wake);
  }

  /** No other process has it. */
  watchDue = (): (() => void) => () => undefined;
  watchRuns: Journal['watchRuns'] = (wake) => this.#watchers.addRuns(wake);

  async close(): Promise<void> {
    this.#closed = true;
    this.#watchers.clear();
  }

  #assertOpen(): void {
    if (this.#closed) throw journalClosed();
  }

  #run(id: string): StoredRun {
    this.#assertOpen();
    const run = this.#runs.get(id);
    if (run === undefined) throw runNotFound(id);
    return run;
  }

  #held(lease: Renewal): StoredRun | undefined {
    const run = this.#runs.get(lease.run);
    return run !== undefined && run.owner !== undefined && run.fence === lease.fence ? run : undefined;
  }

  #setStatus(run: StoredRun, status: RunStatus): void {
    const had = this.#unended.size;
    run.status = status;
    if (hasEnded(status)) this.#unended.delete(run);
    else this.#unended.add(run);
    if (this.#unended.size === had) return;
    this.#countLive(run, this.#unended.size - had);
    if (run.turn > 0) this.#turnOver(run);
  }

  #turnOver(run: StoredRun): void {
    const next = hasEnded(run.status) ? this.#turns.ended(run) : this.#turns.reopened(run);
    if (next !== undefined) this.#watchers.wake(next.identity.run);
    this.#watchers.wakeSession(run.identity);
  }

  #countLive({ first }: StoredRun, change: number): void {
    const root = first.task?.root;
    if (root !== undefined) this.#trees.set(root, this.#liveUnder(root) + change);
  }
}

function messageKey(scope: Scope, control: string): string {
  return `${scopeKey(scope)}/${control}`;
}
