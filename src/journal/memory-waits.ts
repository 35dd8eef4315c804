/** The index of what waits, and the mailbox of signals, in the memory of this process. */
import { deepFreeze, type EventMessage, type Identity, type Json, type WaitChanges, type WaitRow } from '#core';
import { assertKeepable, assertNewSignal, pageSize, wholeMs } from './rules.ts';
import { eventMessage, isOver } from './waiting.ts';
import type {
  EventStore,
  KeptSignal,
  NewSignal,
  OpenWait,
  Signalled,
  SignalQuery,
  WaitIndex,
  WaitQuery,
} from './waits-port.ts';

/** What is read of a run. */
export interface WaitingRun {
  readonly identity: Identity;
  readonly agent: string;
}

interface StoredWait<Run extends WaitingRun> {
  readonly number: number;
  readonly run: Run;
  readonly row: WaitRow;
}

interface StoredSignal extends Omit<KeptSignal, 'payload'> {
  /** Absent: it was delivered. */
  payload?: Json;
  /** To how many waits it was delivered that have not given it back. */
  given: number;
}

/** The signals of one key, and those who wait for it, each in the order of their numbers. */
interface Mailbox<Run extends WaitingRun> {
  readonly signals: Map<string, StoredSignal>;
  readonly waits: Set<StoredWait<Run>>;
}

interface Access<Run> {
  readonly assertOpen: () => void;
  readonly now: () => number;
  /** Puts a signal into the inbox of a run. False: the run has had it, or has ended. */
  readonly tell: (run: Run, message: EventMessage) => boolean;
}

export class MemoryWaits<Run extends WaitingRun> {
  readonly index: WaitIndex;
  readonly events: EventStore;
  readonly #access: Access<Run>;
  /** By run, then by id. */
  readonly #byRun = new Map<Run, Map<string, StoredWait<Run>>>();
  /** In the order of their numbers: one that takes the place of another has its number, and its place. */
  readonly #all = new Map<number, StoredWait<Run>>();
  readonly #mailboxes = new Map<string, Mailbox<Run>>();
  #numbers = 0;
  /** When the time of the next signal is over. */
  #nextOver = Number.POSITIVE_INFINITY;

  constructor(access: Access<Run>) {
    this.#access = access;
    const { now } = access;
    const open = async <T>(ask: () => T): Promise<T> => {
      access.assertOpen();
      return ask();
    };
    this.index = { list: (query) => open(() => this.#list(query)) };
    this.events = {
      signal: (signal) => open(() => this.#signal(signal, now())),
      list: (query) => open(() => this.#kept(query, now())),
    };
  }

  change(run: Run, { ends, removes = [], adds = [], returns = [] }: WaitChanges, now: number): void {
    const waits = this.#byRun.get(run);
    if (ends === true) for (const wait of waits?.values() ?? []) this.#remove(wait);
    for (const id of removes) {
      const wait = waits?.get(id);
      if (wait !== undefined) this.#remove(wait);
    }
    for (const row of adds) this.#add(run, row);
    const { tenant } = run.identity;
    for (const { key, signal, payload } of returns) this.#takeBack(tenant, key, signal, payload);
    const keys = [...adds.map(({ key }) => key), ...returns.map(({ key }) => key)];
    for (const key of new Set(keys)) if (key !== undefined) this.#deliver(tenant, key, now);
  }

  /** What was told to the run, and it will not take. */
  giveBack({ identity: { tenant } }: Run, messages: readonly EventMessage[], now: number): void {
    for (const { key, signal, payload } of messages) this.#takeBack(tenant, key, signal, payload);
    for (const { key } of messages) this.#deliver(tenant, key, now);
  }

  #add(run: Run, given: WaitRow): void {
    const row = deepFreeze({ ...given });
    const before = this.#byRun.get(run)?.get(row.id);
    if (before !== undefined) this.#takeOut(before);
    else this.#numbers += 1;
    const wait: StoredWait<Run> = { number: before?.number ?? this.#numbers, run, row };
    const ofRun = this.#byRun.get(run) ?? new Map<string, StoredWait<Run>>();
    this.#byRun.set(run, ofRun.set(row.id, wait));
    this.#all.set(wait.number, wait);
    if (row.key !== undefined) this.#mailbox(run.identity.tenant, row.key).waits.add(wait);
  }

  #remove(wait: StoredWait<Run>): void {
    this.#all.delete(wait.number);
    this.#takeOut(wait);
  }

  #takeOut(wait: StoredWait<Run>): void {
    const { run, row } = wait;
    const ofRun = this.#byRun.get(run);
    ofRun?.delete(row.id);
    if (ofRun?.size === 0) this.#byRun.delete(run);
    if (row.key === undefined) return;
    const { tenant } = run.identity;
    this.#mailbox(tenant, row.key).waits.delete(wait);
    this.#dropEmpty(tenant, row.key);
  }

  #mailbox(tenant: string, key: string): Mailbox<Run> {
    const of = nameOf(tenant, key);
    const mailbox = this.#mailboxes.get(of) ?? { signals: new Map(), waits: new Set() };
    this.#mailboxes.set(of, mailbox);
    return mailbox;
  }

  #dropEmpty(tenant: string, key: string): void {
    const of = nameOf(tenant, key);
    const mailbox = this.#mailboxes.get(of);
    if (mailbox?.signals.size === 0 && mailbox.waits.size === 0) this.#mailboxes.delete(of);
  }

  #signal(signal: NewSignal, now: number): Signalled {
    assertNewSignal(signal);
    const { tenant, key, id, payload, keepMs } = signal;
    const { signals, waits } = this.#mailbox(tenant, key);
    const before = signals.get(id);
    if (before !== undefined && before.until > now) {
      return { isNew: false, runs: [], kept: before.payload !== undefined, until: before.until };
    }
    const isAwaited = [...waits].some(({ row }) => !isOver(row, now));
    if (!isAwaited) assertKeepable(key, [...signals.values()].filter(isKept(now)).length);
    this.sweep(now);
    const until = wholeMs(now + keepMs, 'keepMs');
    this.#numbers += 1;
    const stored: StoredSignal = {
      number: this.#numbers,
      key,
      id,
      payload,
      storedAt: Math.floor(now),
      until,
      given: 0,
    };
    this.#nextOver = Math.min(this.#nextOver, until);
    this.#mailbox(tenant, key).signals.set(id, stored);
    const runs = this.#deliver(tenant, key, now, stored);
    return { isNew: true, runs, kept: stored.payload !== undefined && until > now, until };
  }

  #takeBack(tenant: string, key: string, signal: string, payload: Json): void {
    const stored = this.#mailboxes.get(nameOf(tenant, key))?.signals.get(signal);
    if (stored === undefined || stored.given === 0) return;
    stored.given -= 1;
    // Somebody else has it.
    if (stored.given === 0) stored.payload = payload;
  }

  /**
   * Every signal that is kept, the oldest first, goes to all that wait then.
   * @param fresh has just come: it goes to those who wait, however short it is kept.
   * @returns the runs that have got one.
   */
  #deliver(tenant: string, key: string, now: number, fresh?: StoredSignal): string[] {
    const { signals, waits } = this.#mailbox(tenant, key);
    const told = new Set<string>();
    for (const signal of [...signals.values()].sort((one, other) => one.number - other.number)) {
      if (waits.size === 0) break;
      const { id, payload } = signal;
      if (payload === undefined || (signal !== fresh && signal.until <= now)) continue;
      for (const wait of [...waits]) {
        if (isOver(wait.row, now)) continue;
        if (!this.#access.tell(wait.run, eventMessage(wait.row, { ...signal, signal: id, payload }))) continue;
        signal.given += 1;
        told.add(wait.run.identity.run);
        this.#remove(wait);
      }
      if (signal.given > 0) delete signal.payload;
    }
    this.#dropEmpty(tenant, key);
    return [...told];
  }

  /** Forgets signals whose time is over. */
  sweep(now: number): void {
    if (now < this.#nextOver) return;
    this.#nextOver = Number.POSITIVE_INFINITY;
    for (const [name, { signals, waits }] of this.#mailboxes) {
      for (const [id, { until }] of signals) {
        if (until <= now) signals.delete(id);
        else this.#nextOver = Math.min(this.#nextOver, until);
      }
      if (signals.size === 0 && waits.size === 0) this.#mailboxes.delete(name);
    }
  }

  #list(query: WaitQuery): OpenWait[] {
    const limit = pageSize(query);
    const { after = 0 } = query;
    const found: OpenWait[] = [];
    for (const wait of this.#all.values()) {
      const { number, run, row } = wait;
      if (number <= after || !matches(wait, query)) continue;
      found.push({ ...row, ...run.identity, agent: run.agent, number });
      if (found.length === limit) break;
    }
    return found;
  }

  #kept(query: SignalQuery, now: number): KeptSignal[] {
    const limit = pageSize(query);
    const { tenant, key, after = 0 } = query;
    const found: StoredSignal[] = [];
    for (const [name, { signals }] of this.#mailboxes) {
      if (key === undefined ? !name.startsWith(nameOf(tenant, '')) : name !== nameOf(tenant, key)) continue;
      found.push(...[...signals.values()].filter(isKept(now)).filter(({ number }) => number > after));
    }
    return found
      .sort((one, other) => one.number - other.number)
      .slice(0, limit)
      .map(({ given: _, payload = null, ...signal }) => ({ ...signal, payload }));
  }
}

/** No tenant has the character 0 in its name and in the key what begins alike: the first one ends the tenant. */
function nameOf(tenant: string, key: string): string {
  return `${encodeURIComponent(tenant)}\0${key}`;
}

function isKept(now: number): (signal: StoredSignal) => boolean {
  return ({ payload, until }) => payload !== undefined && until > now;
}

function matches({ run: { identity, agent }, row }: StoredWait<WaitingRun>, query: WaitQuery): boolean {
  return (
    (query.tenant === undefined || identity.tenant === query.tenant) &&
    (query.user === undefined || identity.user === query.user) &&
    (query.session === undefined || identity.session === query.session) &&
    (query.run === undefined || identity.run === query.run) &&
    (query.agent === undefined || agent === query.agent) &&
    (query.for === undefined || row.for === query.for) &&
    (query.reason === undefined || row.reason === query.reason) &&
    (query.key === undefined || row.key === query.key) &&
    (query.untilBefore === undefined || (row.until !== undefined && row.until < query.untilBefore))
  );
}
