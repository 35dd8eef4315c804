/** A journal in the memory of this process: for tests, and for runs that nobody has to find again. */
import { type Clock, systemClock } from '../core/clock.ts';
import type { Control } from '../core/control.ts';
import type { Entry } from '../core/entry.ts';
import { PilotageError } from '../core/errors.ts';
import type { Identity } from '../core/identity.ts';
import { MemoryArtifacts } from './memory-artifacts.ts';
import { MemorySessions } from './memory-session.ts';
import type {
  Append,
  ArtifactStore,
  Claim,
  ClaimRequest,
  Journal,
  LeaseRequest,
  NewRun,
  Renewal,
  RunQuery,
  RunRecord,
  RunStatus,
} from './port.ts';
import {
  assertConsecutive,
  assertCurrent,
  assertLease,
  assertNewRun,
  assertTakesSignals,
  assertTurn,
  hasEnded,
  journalClosed,
  pageSize,
  runNotFound,
  wholeMs,
} from './rules.ts';
import { Watchers } from './watchers.ts';

/** Nothing survives the process. Times and leases are judged by `clock` (default: the system's). */
export function memoryJournal(options: { readonly clock?: Clock } = {}): Journal {
  return new MemoryJournal(options.clock ?? systemClock);
}

interface StoredRun {
  readonly identity: Identity;
  readonly priority: number;
  /** Counts runs in the order of their creation. */
  readonly age: number;
  readonly createdAt: number;
  readonly entries: Entry[];
  readonly waiting: Map<string, Control>;
  readonly knownControls: Set<string>;
  status: RunStatus;
  updatedAt: number;
  signals: number;
  fence: number;
  /** 0: due now. `null`: only a signal wakes it. */
  wakeAt: number | null;
  owner: string | undefined;
  leaseUntil: number;
}

/** One promise for every append: on the hot path a new one would be a good part of the cost. */
const DONE: Promise<void> = Promise.resolve();

class MemoryJournal implements Journal {
  readonly artifacts: ArtifactStore;
  readonly memory: MemorySessions;
  readonly #clock: Clock;
  readonly #runs = new Map<string, StoredRun>();
  readonly #unended = new Set<StoredRun>();
  readonly #watchers = new Watchers();
  #closed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
    const assertOpen = (): void => this.#assertOpen();
    this.artifacts = new MemoryArtifacts({ assertOpen, now: () => this.#clock.now() });
    this.memory = new MemorySessions(assertOpen);
  }

  async create(run: NewRun): Promise<Claim | undefined> {
    this.#assertOpen();
    assertNewRun(run);
    const { identity, priority, entries, claim } = run;
    if (this.#runs.has(identity.run)) return undefined;
    const now = this.#clock.now();
    const stored: StoredRun = {
      identity,
      priority,
      age: this.#runs.size,
      createdAt: now,
      entries: [...entries],
      waiting: new Map(),
      knownControls: new Set(),
      status: 'running',
      updatedAt: now,
      signals: 0,
      fence: 0,
      wakeAt: 0,
      owner: undefined,
      leaseUntil: 0,
    };
    this.#runs.set(identity.run, stored);
    this.#unended.add(stored);
    this.#watchers.wake(identity.run);
    return claim && grant(stored, claim, now);
  }

  append(append: Append): Promise<void> {
    try {
      this.#append(append);
      return DONE;
    } catch (error) {
      return Promise.reject(error);
    }
  }

  #append(append: Append): void {
    const run = this.#run(append.run);
    assertConsecutive(append);
    assertTurn(append);
    assertCurrent(append, { head: run.entries.length, fence: run.fence });
    for (const entry of append.entries) run.entries.push(entry);
    if (append.takes !== undefined) for (const id of append.takes) run.waiting.delete(id);
    if (append.status !== undefined) this.#setStatus(run, append.status);
    if (append.turn !== undefined) this.memory.add(run.identity, append.turn);
    run.updatedAt = this.#clock.now();
    this.#watchers.wake(append.run);
  }

  async read(run: string, from = 1, limit = Number.POSITIVE_INFINITY): Promise<Entry[]> {
    const first = Math.max(from, 1) - 1;
    return this.#run(run).entries.slice(first, first + limit);
  }

  async get(run: string): Promise<RunRecord | undefined> {
    this.#assertOpen();
    const stored = this.#runs.get(run);
    return stored && recordOf(stored, this.#clock.now());
  }

  async list(query: RunQuery): Promise<RunRecord[]> {
    this.#assertOpen();
    const limit = pageSize(query);
    const before = query.after === undefined ? this.#runs.size : this.#run(query.after).age;
    const now = this.#clock.now();
    const newestFirst = [...this.#runs.values()].slice(0, before).reverse();
    const found = newestFirst.filter((run) => matches(run, query)).slice(0, limit);
    return found.map((run) => recordOf(run, now));
  }

  async claim(request: ClaimRequest): Promise<Claim | undefined> {
    this.#assertOpen();
    assertLease(request);
    const now = this.#clock.now();
    const free = (run: StoredRun): boolean =>
      run.owner === undefined || run.leaseUntil <= now || run.owner === request.from;
    if (request.run !== undefined) {
      const run = this.#runs.get(request.run);
      return run && !hasEnded(run.status) && free(run) ? grant(run, request, now) : undefined;
    }
    let best: StoredRun | undefined;
    for (const run of this.#unended) {
      if (run.wakeAt === null || run.wakeAt > now || !free(run)) continue;
      if (best === undefined || comesFirst(run, best)) best = run;
    }
    return best && grant(best, request, now);
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

  async release(
    lease: Renewal,
    park: { readonly wakeAt?: number | null; readonly seenSignals: number },
  ): Promise<boolean> {
    this.#assertOpen();
    const wakeAt = typeof park.wakeAt === 'number' ? wholeMs(park.wakeAt, 'wakeAt') : park.wakeAt;
    const run = this.#held(lease);
    if (run === undefined) return true;
    const news = run.signals > park.seenSignals;
    run.owner = undefined;
    run.wakeAt = news || wakeAt === undefined ? 0 : wakeAt;
    return !news || hasEnded(run.status);
  }

  async signal(run: string, control: Control): Promise<boolean> {
    const stored = this.#run(run);
    if (stored.knownControls.has(control.id)) return false;
    assertTakesSignals(run, stored.status, stored.waiting.size);
    stored.knownControls.add(control.id);
    stored.waiting.set(control.id, control);
    stored.signals += 1;
    stored.wakeAt = 0;
    stored.updatedAt = this.#clock.now();
    this.#watchers.wake(run);
    return true;
  }

  async inbox(run: string): Promise<Control[]> {
    return [...this.#run(run).waiting.values()];
  }

  watch(run: string, wake: () => void): () => void {
    this.#assertOpen();
    return this.#watchers.add(run, wake);
  }

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
    run.status = status;
    if (hasEnded(status)) this.#unended.delete(run);
    else this.#unended.add(run);
  }
}

function comesFirst(run: StoredRun, other: StoredRun): boolean {
  return run.priority === other.priority ? run.age < other.age : run.priority > other.priority;
}

/** A claimed run is due again when its lease is over, until `release` parks it. */
function grant(run: StoredRun, lease: LeaseRequest, now: number): Claim {
  run.owner = lease.owner;
  run.leaseUntil = wholeMs(now + lease.leaseMs, 'leaseMs');
  run.wakeAt = 0;
  run.fence += 1;
  return { run: run.identity.run, fence: run.fence, head: run.entries.length, signals: run.signals };
}

function matches(run: StoredRun, query: RunQuery): boolean {
  const { identity, status, createdAt } = run;
  return (
    (query.tenant === undefined || identity.tenant === query.tenant) &&
    (query.user === undefined || identity.user === query.user) &&
    (query.session === undefined || identity.session === query.session) &&
    (query.status === undefined || query.status.includes(status)) &&
    (query.since === undefined || createdAt >= query.since)
  );
}

function recordOf(run: StoredRun, now: number): RunRecord {
  const { identity, status, priority, createdAt, updatedAt, entries, owner, leaseUntil } = run;
  const first = entries[0];
  if (first?.kind !== 'started') throw new PilotageError('journal_corrupt', `Run ${identity.run} has no first entry.`);
  const wakeAt = hasEnded(status) ? null : run.wakeAt;
  return {
    identity,
    status,
    query: first.query,
    priority,
    createdAt,
    updatedAt,
    head: entries.length,
    ...(wakeAt === 0 ? {} : { wakeAt }),
    ...(owner !== undefined && leaseUntil > now ? { lease: { owner, until: leaseUntil } } : {}),
  };
}
