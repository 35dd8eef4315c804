/** What stands outside all processes: what the store has taken, in order, and what the tools did to the world. */

import {
  type Clock,
  type Control,
  type Effect,
  type Entry,
  isControl,
  type Json,
  type Message,
  type Scope,
  scopeKey,
} from '#core';
import type { Append, Claim, Claimant, ClaimRequest, NewRun, Park } from '#journal';
import type { NewSignal, Signalled } from '#pilotage/journal';
import { ApprovalLedger } from './approval-ledger.ts';
import { checkClaim, checkEntered } from './check-owners.ts';
import { isToUndo } from './goals-by-hand.ts';
import { HeldLedger } from './held-ledger.ts';
import type { SimulatedProcess } from './process.ts';
import { ScheduleLedger } from './schedule-ledger.ts';
import { SessionLedger } from './session-ledger.ts';
import type { StartAsked } from './start-ledger.ts';
import { StreamLedger } from './stream-ledger.ts';

export const INVARIANTS = [
  'one ending',
  'no lost entry',
  'the fold',
  'once',
  'one verdict',
  'controls',
  'cancel wins',
  'gates',
  'order',
  'wake',
  'waits',
  'signals',
  'schedules',
  'undo',
  'streams',
  'approvals',
  'starts',
  'groups',
  'tasks',
  'cascade',
  'budget',
  'no foreign data',
  'leases',
  'replay',
  'session',
  'progress',
  'forks',
  'ids',
  'flows',
  'errands',
  'watchers',
  'no hang',
  'no fault',
] as const;
export type Invariant = (typeof INVARIANTS)[number];

export interface Violation {
  readonly invariant: Invariant;
  /** Absent when it is not about one run. */
  readonly run?: string;
  readonly what: string;
}

/** How long a process has been at a call. */
interface Stay {
  readonly enteredAt: number;
  /** For so long whoever takes over a run waits for one that may be at its calls. */
  readonly graceMs: number;
}

/** One entry into a tool. */
export interface Attempt {
  readonly order: number;
  readonly tool: string;
  readonly effect: Effect;
  readonly key: string;
  readonly run: string;
  readonly id: string;
  /** JSON text. */
  readonly args: string;
  readonly costMicroUsd: number;
  /** It waits in the middle of its work: whenever something of that has ended, it is run again from its start. */
  readonly waits?: true;
}

/** One entry into a part of a call's work that is recorded when it is done. */
export interface PartEntered extends Pick<Attempt, 'run' | 'id' | 'key' | 'effect'> {
  readonly part: string;
}

/** A signal that the store has taken, and what it said. */
export interface Accepted {
  readonly order: number;
  readonly at: number;
  readonly signal: NewSignal;
  readonly answer: Signalled;
}

/** Entries that landed together. */
export interface Appended {
  readonly order: number;
  /** By the store's clock. */
  readonly at: number;
  readonly run: string;
  readonly from: number;
  readonly to: number;
}

/** Somebody has set a process's wall clock. */
export interface ClockSet {
  /** By the store's clock. */
  readonly at: number;
  /** What it showed until then. */
  readonly shown: number;
}

export interface StoredMessage {
  readonly order: number;
  readonly at: number;
  readonly message: Message;
}

/** A run as the store has acknowledged it. */
export interface LedgerRun {
  readonly entries: Entry[];
  readonly messages: Map<string, StoredMessage>;
  /** How often each message was taken out of the inbox. */
  readonly taken: Map<string, number>;
  /** The order in which entries landed, by seq. */
  readonly landed: number[];
  /** Who claimed it last, and has not given it back. */
  holder: SimulatedProcess | undefined;
  /** When each process lost it to another, each time. */
  readonly lostAt: Map<SimulatedProcess, number[]>;
  endedAt: number | undefined;
  /** Whoever holds it has written something since it was claimed. */
  isDriven: boolean;
  fence: number;
  leaseUntil: number;
  /** Its holder has asked the store to take it back, and has not heard of that: perhaps it was claimed since. */
  isGivenBack: boolean;
  /** Let go of as it was, after a fault of the store: nothing is due of it before its time. */
  isLeftForNow: boolean;
  /** So long after its time it goes on by itself: the store has heard of its wait so late. */
  wokenLateMs: number;
  /** When that was. */
  readonly leftAt: number[];
  /** Each claim: how many entries there were, and what time it was by the clock of whoever claimed. */
  readonly claims: { readonly head: number; readonly wallMs: number }[];
  /** When it was claimed from somebody who had not given it back. */
  readonly takenOverAt: number[];
}

function tenantOf({ entries: [first] }: LedgerRun): string {
  return first?.kind === 'started' ? first.identity.tenant : '';
}

export interface TimelineLine {
  readonly at: number;
  readonly who: string;
  readonly what: string;
}

/**
 * Operations on the store at one moment of virtual time. A schedule that makes up for a night fires a hundred times and more at once, each with
 * about thirty of them.
 */
const MOST_AT_ONCE = 20_000;

export class Ledger {
  readonly violations: Violation[] = [];
  readonly runs: Map<string, LedgerRun> = new Map();
  readonly attempts: Attempt[] = [];
  /** What calls that took effect give, by key. */
  readonly values: Map<string, Json> = new Map();
  readonly effects: Map<string, number> = new Map();
  /** Effects, by key, of those who had lost the run for longer than anybody waits for them. */
  readonly lateEffects: Map<string, number> = new Map();
  /** Entries that a newer version of the program wrote. */
  readonly newer: WeakSet<Entry> = new WeakSet();
  /** By the name under which each process claims runs. */
  readonly owners: Map<string, SimulatedProcess> = new Map();
  /** The processes that have a call under way, by its key, and how many parts of it. */
  readonly atWork: Map<string, Map<SimulatedProcess, number>> = new Map();
  /** Requests on their way to the world, by key: whoever sent them may be dead. */
  readonly underWay: Map<string, number> = new Map();
  readonly refuted: Map<string, number> = new Map();
  /** By those who had the run then. */
  readonly parts: PartEntered[] = [];
  /** By key. */
  readonly #readyAt = new Map<string, number>();
  readonly #polls = new Map<string, number>();
  readonly accepted: Accepted[] = [];
  readonly appends: Appended[] = [];
  readonly clocksSet: ClockSet[] = [];
  readonly schedules: ScheduleLedger = new ScheduleLedger();
  readonly sessions: SessionLedger = new SessionLedger();
  readonly streams: StreamLedger = new StreamLedger();
  readonly held: HeldLedger = new HeldLedger();
  readonly starts: StartAsked[] = [];
  readonly approvals: ApprovalLedger = new ApprovalLedger();
  readonly timeline: TimelineLine[] = [];
  /** Absent: nothing is known of what a process drives, for it may be cut off in the middle of anything. */
  slotsPerTenant: number | undefined;
  /** Everybody has logged in by now. */
  loggedIn = false;
  readonly logins: Set<string> = new Set();
  readonly #clock: Pick<Clock, 'now'>;
  readonly #recording: boolean;
  #order = 0;
  #operations = { at: 0, count: 0 };

  constructor(clock: Pick<Clock, 'now'>, recording: boolean) {
    this.#clock = clock;
    this.#recording = recording;
  }

  /** A number that grows with everything that happens. */
  next(): number {
    this.#order += 1;
    return this.#order;
  }

  /** Counts an operation on the store. True when there is no end of them although no time passes. */
  isSpinning(): boolean {
    const now = this.#clock.now();
    if (this.#operations.at !== now) this.#operations = { at: now, count: 0 };
    this.#operations.count += 1;
    if (this.#operations.count === MOST_AT_ONCE) this.violated('no hang', 'processes go round and round without end');
    return this.#operations.count >= MOST_AT_ONCE;
  }

  /** @param what is made only when somebody will read it. */
  tell(who: string, what: () => string): void {
    if (this.#recording) this.timeline.push({ at: this.#clock.now(), who, what: what() });
  }

  violated(invariant: Invariant, what: string, run?: string): void {
    this.tell('', () => `!! ${invariant}: ${what}`);
    this.violations.push(run === undefined ? { invariant, what } : { invariant, what, run });
  }

  created({ identity, entries, waits }: NewRun, order: number): LedgerRun {
    const known = this.runs.get(identity.run);
    if (known !== undefined) return known;
    const run: LedgerRun = {
      entries: [...entries],
      messages: new Map(),
      taken: new Map(),
      landed: entries.map(() => order),
      holder: undefined,
      lostAt: new Map(),
      endedAt: undefined,
      isDriven: false,
      fence: 0,
      leaseUntil: 0,
      isGivenBack: false,
      isLeftForNow: false,
      wokenLateMs: 0,
      leftAt: [],
      takenOverAt: [],
      claims: [],
    };
    this.runs.set(identity.run, run);
    this.sessions.stored.push({ order, run, waits });
    return run;
  }

  /** A session is gone, with all that was in it: what happened under the ids of its runs is no matter of others that may have them. */
  forget(key: string, scope: Scope, order: number): ReadonlyMap<string, LedgerRun> {
    // What the store took behind it stays, also when that was noted before the store had answered.
    const isIts = ({ entries: [first], landed: [stored = 0] }: LedgerRun): boolean =>
      first?.kind === 'started' && scopeKey(first.identity) === key && stored < order;
    const runs = new Map([...this.runs].filter(([, run]) => isIts(run)));
    this.sessions.gone.push({ order, scope, runs });
    for (const [id, run] of runs) {
      if (run.holder !== undefined) noteLoss(run, run.holder, this.#clock.now());
      this.runs.delete(id);
    }
    const gone = this.attempts.filter(({ run }) => runs.has(run));
    for (const { key } of gone) for (const known of [this.effects, this.lateEffects, this.refuted]) known.delete(key);
    const left = this.attempts.filter(({ run }) => !runs.has(run));
    this.attempts.splice(0, this.attempts.length, ...left);
    return runs;
  }

  /** Also one that is gone with its session: whoever stood still meanwhile is in the middle of it. */
  everRun(id: string): LedgerRun | undefined {
    return this.runs.get(id) ?? this.sessions.goneRun(id)?.run;
  }

  claimed(claim: Claim, request: Claimant & Pick<ClaimRequest, 'from' | 'reopens'>, process: SimulatedProcess): void {
    const run = this.runs.get(claim.run);
    if (run === undefined) return;
    const now = this.#clock.now();
    this.owners.set(request.owner, process);
    // Nobody holds what has ended.
    if (request.reopens === 'undo' && run.endedAt !== undefined) run.leaseUntil = 0;
    checkClaim(claim, request, run, process, { now, ledger: this });
    if (run.holder !== undefined && run.holder !== process) noteLoss(run, run.holder, now);
    if (run.holder !== undefined) run.takenOverAt.push(this.next());
    run.holder = process;
    run.claims.push({ head: run.entries.length, wallMs: process.wallMs() });
    run.isDriven = false;
    run.fence = claim.fence;
    run.leaseUntil = now + request.leaseMs;
    run.isLeftForNow = false;
    run.isGivenBack = false;
  }

  /** The store is asked to take the run back: which comes first, that or a claim, is known when both have been heard of. */
  givesBack(run: string, fence: number): void {
    const known = this.runs.get(run);
    if (known?.fence === fence) known.isGivenBack = true;
  }

  /** A process drives no more runs of one tenant at once than it may. */
  #noteDriven(id: string, run: LedgerRun): void {
    run.isDriven = run.endedAt === undefined;
    if (this.slotsPerTenant === undefined || !run.isDriven) return;
    const { holder } = run;
    const tenant = tenantOf(run);
    const others = [...this.runs.values()].filter((other) => other.isDriven && other.holder === holder);
    const count = others.filter((other) => tenantOf(other) === tenant).length;
    if (count <= this.slotsPerTenant) return;
    this.violated('leases', `${holder?.name} drives ${count} runs of the tenant ${tenant}`, id);
  }

  renewed(run: string, fence: number, leaseMs: number): void {
    const known = this.runs.get(run);
    if (known?.fence === fence) known.leaseUntil = this.#clock.now() + leaseMs;
  }

  /** @param lateMs so long it was on its way to the store. */
  released(run: string, fence: number, { status, wakeInMs }: Park, lateMs: number): void {
    const known = this.runs.get(run);
    if (known?.fence !== fence) return;
    if (typeof wakeInMs === 'number') known.wokenLateMs = lateMs;
    known.isGivenBack = false;
    known.leaseUntil = 0;
    known.isDriven = false;
    // What it leaves behind has its time from here on.
    if (known.holder !== undefined) noteLoss(known, known.holder, this.#clock.now());
    known.holder = undefined;
    known.isLeftForNow = status === undefined;
    if (known.isLeftForNow) known.leftAt.push(this.next());
  }

  /** @param order taken before the store was asked, as `at`: the store does it at once. */
  appended(append: Append, order: number, at: number): void {
    const run = this.runs.get(append.run);
    const [first] = append.entries;
    if (first !== undefined) {
      const { run: name, entries } = append;
      this.appends.push({ order, at, run: name, from: first.seq, to: first.seq + entries.length - 1 });
    }
    if (run === undefined) {
      this.violated('no lost entry', 'an append landed in a run that is not there', append.run);
      return;
    }
    if (append.fence !== run.fence) {
      this.violated('leases', `an append under the fence ${append.fence} landed; ${run.fence} is current`, append.run);
    }
    const goesOn = run.endedAt !== undefined && isToUndo(run, append, this.runs);
    if (goesOn) run.endedAt = undefined;
    if (run.endedAt !== undefined) this.violated('one ending', 'an append landed after the ending', append.run);
    for (const entry of append.entries) {
      if (entry.seq !== run.entries.length + 1) {
        this.violated('no lost entry', `entry ${entry.seq} landed after ${run.entries.length} entries`, append.run);
      }
      run.entries.push(entry);
      run.landed.push(order);
      if (entry.kind === 'finished' || entry.kind === 'failed') run.endedAt = order;
    }
    if (append.leaseMs !== undefined) run.leaseUntil = this.#clock.now() + append.leaseMs;
    // Whoever has a task undo what it did only says so.
    if (!goesOn) this.#noteDriven(append.run, run);
    for (const id of append.takes ?? []) run.taken.set(id, (run.taken.get(id) ?? 0) + 1);
    for (const start of append.starts ?? []) this.created(start, order);
    for (const { run: to, message } of append.tells ?? []) this.stored(to, message, order);
  }

  stored(to: string, message: Message, order: number): void {
    const run = this.runs.get(to);
    if (run === undefined || run.endedAt !== undefined || run.messages.has(message.id)) return;
    run.messages.set(message.id, { order, at: this.#clock.now(), message });
  }

  controlsOf(run: LedgerRun): (StoredMessage & { readonly message: Control })[] {
    return [...run.messages.values()].flatMap((stored) => {
      const { message } = stored;
      return isControl(message) ? [{ ...stored, message }] : [];
    });
  }

  attempted(attempt: Omit<Attempt, 'order'>, process: SimulatedProcess): void {
    const run = this.runs.get(attempt.run);
    if (run !== undefined) checkEntered(attempt, run, process, { now: this.#clock.now(), ledger: this });
    this.attempts.push({ ...attempt, order: this.next() });
  }

  /** A living process is in the call under this key, or what it asked for is on its way. */
  isAtWork(key: string): boolean {
    if ((this.underWay.get(key) ?? 0) > 0) return true;
    return [...(this.atWork.get(key)?.keys() ?? [])].some(({ alive }) => alive);
  }

  /** The world has said that the call under this key did not happen. */
  notDone(key: string): void {
    this.refuted.set(key, (this.refuted.get(key) ?? 0) + 1);
  }

  partEntered({ run, id, key, effect }: Omit<PartEntered, 'part'>, part: string): void {
    this.parts.push({ run, id, key, effect, part });
  }

  /** The world has said that the part of a call under this key did not happen, if anybody has been at it. */
  partNotDone(key: string): void {
    const times = this.parts.filter((entered) => `${entered.key}#${entered.part}` === key).length;
    if (times > (this.refuted.get(key) ?? 0)) this.refuted.set(key, times);
  }

  /** Parts of the work of the call under this key that have happened. */
  partsDone(key: string): string[] {
    const prefix = `${key}#`;
    return [...this.effects.keys()].flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : []));
  }

  /** Whoever has looked at the world says that what has not happened of the call did not. */
  partsNotDone(key: string): void {
    const names = new Set(this.parts.filter((entered) => entered.key === key).map(({ part }) => `${key}#${part}`));
    for (const name of names) if (!this.effects.has(name)) this.partNotDone(name);
  }

  /** When the value of a call that comes later is there for whoever looks: so long after somebody has asked first. */
  isReadyAt(key: string, readyMs: number): number {
    const at = this.#readyAt.get(key) ?? this.#clock.now() + readyMs;
    this.#readyAt.set(key, at);
    return at;
  }

  /** How often somebody has looked whether the value of the call is there, with this time. */
  polled(key: string): number {
    const times = (this.#polls.get(key) ?? 0) + 1;
    this.#polls.set(key, times);
    return times;
  }

  now(): number {
    return this.#clock.now();
  }

  /** What a process has asked of the world, and what happens whatever becomes of it. Returns what is to be done when it does. */
  request(key: string, run: string, process: SimulatedProcess, stay: Stay): () => void {
    this.#noteIfLate(key, run, process, stay);
    this.underWay.set(key, (this.underWay.get(key) ?? 0) + 1);
    return () => {
      this.underWay.set(key, (this.underWay.get(key) ?? 0) - 1);
      this.effects.set(key, (this.effects.get(key) ?? 0) + 1);
    };
  }

  /** A process that has claimed the run again may still be at a call from before it lost it. */
  #noteIfLate(key: string, run: string, process: SimulatedProcess, { enteredAt, graceMs }: Stay): void {
    const known = this.runs.get(run);
    const losses = known?.lostAt.get(process) ?? [];
    const lostAt = losses.find((at) => at >= enteredAt) ?? (known?.holder === process ? undefined : losses.at(-1));
    if (lostAt === undefined || this.#clock.now() - lostAt < graceMs) return;
    this.lateEffects.set(key, (this.lateEffects.get(key) ?? 0) + 1);
  }
}

function noteLoss({ lostAt }: LedgerRun, process: SimulatedProcess, now: number): void {
  lostAt.set(process, [...(lostAt.get(process) ?? []), now]);
}
