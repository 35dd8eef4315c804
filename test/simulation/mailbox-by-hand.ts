/**
 * The mailbox of signals, by hand: from what landed in the store, in order, to who got which signal. What waits when a signal is accepted gets it, all of it; a
 * signal for which nobody waits is kept until its time, and goes to those who wait first; one that came too late for its wait is for the next one.
 */
import type { Entry } from '#core';
import { callWaitsIn, type WaitByHand } from './call-waits-by-hand.ts';
import { ownEntries } from './ended-run.ts';
import type { Accepted, Appended, Ledger } from './ledger.ts';

interface Mail {
  readonly number: number;
  readonly id: string;
  readonly until: number;
  /** Nobody has got it, or everybody has given it back. */
  isKept: boolean;
  given: number;
}

interface Waiting {
  readonly run: string;
  readonly place: string;
  readonly until: number;
}

interface Box {
  readonly mail: Map<string, Mail>;
  readonly waits: Map<string, Waiting>;
}

/** Who got a signal: run, wait, and id of the signal. */
export interface Delivery {
  readonly run: string;
  readonly place: string;
  readonly id: string;
}

export function checkMailbox(ledger: Ledger, kept: ReadonlyMap<string, readonly string[]>): void {
  const mailbox = new Mailbox(ledger);
  const steps = [...ledger.accepted, ...ledger.appends].sort((one, other) => one.order - other.order);
  for (const step of steps) {
    if ('signal' in step) mailbox.accept(step);
    else mailbox.append(step);
  }
  checkDelivered(mailbox.deliveries, ledger);
  for (const [tenant, ids] of kept) {
    const wanted = mailbox.keptOf(tenant, ledger.now());
    if (ids.join() !== wanted.join())
      ledger.violated(
        'signals',
        `of ${tenant} the signals ${ids.join(', ')} are kept, and it should be ${wanted.join(', ')}`,
      );
  }
}

/** Every run has taken what it got, each once, and in the order in which it came for each wait. */
function checkDelivered(deliveries: readonly Delivery[], ledger: Ledger): void {
  const byRun = Map.groupBy(deliveries, ({ run }) => run);
  for (const [run, known] of ledger.runs) {
    if (known.endedAt === undefined) continue;
    const taken = ownEntries(known).flatMap((entry) => {
      const isEvent = entry.kind === 'event_passed' || (entry.kind === 'wait_ended' && entry.ended === 'event');
      return isEvent ? [`${placeOf(entry)} ${'signal' in entry ? entry.signal : ''}`] : [];
    });
    const got = (byRun.get(run) ?? []).map(({ place, id }) => `${place} ${id}`);
    if (taken.toSorted().join() === got.toSorted().join()) continue;
    ledger.violated(
      'signals',
      `it took ${taken.join(', ') || 'nothing'}, and was to get ${got.join(', ') || 'nothing'}`,
      run,
    );
  }
}

function placeOf({
  step,
  call,
  wait,
}: {
  readonly step: number;
  readonly call: number;
  readonly wait: number;
}): string {
  return `${step}.${call}.${wait}`;
}

class Mailbox {
  readonly deliveries: Delivery[] = [];
  readonly #ledger: Ledger;
  readonly #boxes = new Map<string, Box>();
  readonly #waits = new Map<string, readonly WaitByHand[]>();
  #numbers = 0;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  keptOf(tenant: string, now: number): string[] {
    const boxes = [...this.#boxes].flatMap(([name, box]) => (name.startsWith(`${tenant} `) ? [box] : []));
    const kept = boxes.flatMap(({ mail }) => [...mail.values()]).filter(({ isKept, until }) => isKept && until > now);
    return kept.sort((one, other) => one.number - other.number).map(({ id }) => id);
  }

  accept({ at, signal: { tenant, key, id, keepMs }, answer }: Accepted): void {
    const { mail } = this.#box(tenant, key);
    const before = mail.get(id);
    const isNew = before === undefined || before.until <= at;
    if (answer.isNew !== isNew)
      this.#ledger.violated('signals', `${id} was said to be ${answer.isNew ? 'new' : 'known'}`);
    if (!isNew) return;
    this.#numbers += 1;
    const made = { number: this.#numbers, id, until: at + keepMs, isKept: true, given: 0 };
    mail.set(id, made);
    const runs = this.#deliver(tenant, key, at, made);
    if (runs.sort().join() !== [...answer.runs].sort().join())
      this.#ledger.violated('signals', `${id} went to ${answer.runs.join(', ')}, and ${runs.join(', ')} waited`);
  }

  append({ at, run, from, to }: Appended): void {
    const { entries = [] } = this.#ledger.runs.get(run) ?? {};
    const [first] = entries;
    if (first?.kind !== 'started') return;
    const { tenant } = first.identity;
    const isIn = (seq: number): boolean => seq >= from && seq <= to;
    const waits = this.#waitsOf(run, entries).filter((wait) => wait.for === 'event');
    const added = entries.slice(from - 1, to);
    for (const wait of waits) {
      if (isIn(closedAt(wait))) this.#box(tenant, wait.key ?? '').waits.delete(`${run} ${placeOf(wait)}`);
    }
    const keys = new Set<string>();
    const unfit = new Set(
      added.flatMap((entry) =>
        entry.kind === 'event_passed' && entry.error.code === 'payload_invalid' ? [placeOf(entry)] : [],
      ),
    );
    for (const wait of waits) {
      const { key = '', until = Number.POSITIVE_INFINITY } = wait;
      const isOpen = wait.from <= to && closedAt(wait) > to;
      if (!isOpen || !(isIn(wait.from) || unfit.has(placeOf(wait)))) continue;
      this.#box(tenant, key).waits.set(`${run} ${placeOf(wait)}`, { run, place: placeOf(wait), until });
      keys.add(key);
    }
    for (const entry of added) {
      if (entry.kind !== 'event_passed' || entry.error.code !== 'wait_over') continue;
      const mail = this.#box(tenant, entry.key).mail.get(entry.signal);
      keys.add(entry.key);
      if (mail === undefined || mail.given === 0) continue;
      mail.given -= 1;
      if (mail.given === 0) mail.isKept = true;
    }
    for (const key of keys) this.#deliver(tenant, key, at);
  }

  #waitsOf(run: string, entries: readonly Entry[]): readonly WaitByHand[] {
    const known = this.#waits.get(run) ?? callWaitsIn(entries);
    this.#waits.set(run, known);
    return known;
  }

  #deliver(tenant: string, key: string, now: number, fresh?: Mail): string[] {
    const { mail, waits } = this.#box(tenant, key);
    const told = new Set<string>();
    for (const one of [...mail.values()].sort((a, b) => a.number - b.number)) {
      if (!one.isKept || (one !== fresh && one.until <= now)) continue;
      for (const [name, { run, place, until }] of [...waits]) {
        if (until <= now) continue;
        waits.delete(name);
        one.given += 1;
        told.add(run);
        this.deliveries.push({ run, place, id: one.id });
      }
      if (one.given > 0) one.isKept = false;
    }
    return [...told];
  }

  #box(tenant: string, key: string): Box {
    const name = `${tenant} ${key}`;
    const box = this.#boxes.get(name) ?? { mail: new Map(), waits: new Map() };
    this.#boxes.set(name, box);
    return box;
  }
}

/** The seq of the entry with which the wait is over. */
function closedAt({ ends: [end], over }: WaitByHand): number {
  return Math.min(end?.seq ?? Number.POSITIVE_INFINITY, over);
}
