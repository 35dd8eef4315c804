/**
 * Writes what a driver finds out: appends, then applies, then tells. An ending sees everything that was said before it.
 *
 * Invariants:
 * L1 A fact is applied to the state, and told to listeners, only after the journal has it.
 * L2 Nothing is appended that the fold would refuse.
 * L3 A CANCEL that was stored before an ending wins over it.
 * L4 Whatever was said to the run before an append is known here when the append lands: a CANCEL that was stored before a call begins
 *    keeps it from beginning.
 */
import {
  type ApprovedOnce,
  type CallBegan,
  type CallPlace,
  deepFreeze,
  type Entry,
  type EntryBody,
  PilotageError,
  type Resumed,
  ruleWrite,
  type StoreWrite,
  Thrown,
} from '#core';
import { type Append, appendAgain, isTransientStoreError, type Received, type RunStatus } from '#journal';
import {
  applyFitting,
  drivenStatus,
  misfitAmong,
  type OpenStep,
  type RunState,
  remembering,
  ruleSetBy,
  statusAfter,
  waitChanges,
} from '#state';
import { cascading, stopTasks } from '../tasks/cancel.ts';
import { toldBy } from '../tasks/ending.ts';
import { takeUndelivered } from './controls.ts';
import type { DriverDeps } from './driver-deps.ts';
import { type HeldLease, momentOf } from './held-lease.ts';
import type { Held } from './let-go.ts';
import { runsAfter, wordsBehindCancel } from './next-turn.ts';
import type { RunTracing } from './run-tracing.ts';

/** What an append carries beside its entries. */
export type Changes = Pick<
  Append,
  'status' | 'takes' | 'tells' | 'starts' | 'treeLimit' | 'writes' | 'waits' | 'seenSignals' | 'leaseMs'
>;

const NO_CHANGES: Changes = {};

/** What the writer asks of the run's inbox. */
export interface Hearing {
  /** How many signals of the run were looked at: an append is refused when it has had more. */
  readonly signalsHeard: number;
  /** A CANCEL waits in it, hard or soft: no call that is written down may begin. */
  readonly isCancelled: boolean;
  /** Looks into it now, because the run has had so many signals. @throws PilotageError of the store. */
  hear(signals: number): Promise<void>;
  /** Marks it to be read again. */
  look(): void;
}

/** These entries end the run. */
export function isEnding(bodies: readonly EntryBody[]): boolean {
  const kind = bodies.at(-1)?.kind;
  return kind === 'finished' || kind === 'failed';
}

export class RunWriter {
  readonly #deps: DriverDeps;
  readonly #state: RunState;
  readonly #lease: HeldLease;
  readonly #inbox: () => Hearing;
  readonly #isLettingGo: () => boolean;
  readonly #tracing: RunTracing | undefined;
  #committing: Promise<void> | undefined;
  /** Why an append failed that perhaps has landed all the same. */
  #unknown: { readonly error: unknown } | undefined;

  /** @param isLettingGo the run is to be given back: then nothing is held for the store for long. */
  constructor(
    { deps, state, lease }: Held,
    inbox: () => Hearing,
    isLettingGo: () => boolean,
    tracing: RunTracing | undefined,
  ) {
    this.#tracing = tracing;
    this.#deps = deps;
    this.#state = state;
    this.#lease = lease;
    this.#inbox = inbox;
    this.#isLettingGo = isLettingGo;
  }

  /** Something is being written that the state does not know yet. */
  get isWriting(): boolean {
    return this.#committing !== undefined;
  }

  /** Until the state knows all that was given to be written. What is decided then, and committed at once, is decided on the whole. */
  async untilWritten(): Promise<void> {
    while (this.#committing !== undefined) await this.#committing.catch(() => {});
  }

  /**
   * Writes that a call begins. The same commit renews the lease, when that is due, and is refused when something was said to the run that
   * nobody has looked at here.
   * @returns false when the run is to be cancelled: then the call has not begun.
   */
  async begin(body: CallBegan): Promise<boolean> {
    const inbox = this.#inbox();
    for (;;) {
      if (inbox.isCancelled) return false;
      const { toRenew: leaseMs } = this.#lease;
      const askedAt = momentOf(this.#deps.clock);
      const renewal = leaseMs === undefined ? {} : { leaseMs };
      try {
        await this.commit([body], { seenSignals: inbox.signalsHeard, ...renewal });
        if (leaseMs !== undefined) this.#lease.renewed(askedAt);
        return true;
      } catch (error) {
        await this.#hear(error);
      }
    }
  }

  /** What was said to the run is looked at, if that is why an append was refused. @throws what else the append was refused for. */
  #hear(error: unknown): Promise<void> {
    if (!PilotageError.is(error, 'inbox_changed')) throw error;
    return this.#inbox().hear(Number(error.data?.['signals']));
  }

  /**
   * Appends, then applies, then tells. One at a time: a call may begin while another's end is being written. What the journal has
   * at once needs no waiting for: then there is no promise.
   */
  commit(bodies: readonly EntryBody[], changes: Changes = NO_CHANGES): Promise<void> | undefined {
    if (bodies.length === 0) return undefined;
    const before = this.#committing;
    if (before !== undefined) {
      const again = (): Promise<void> | undefined => this.commit(bodies, changes);
      return before.then(again, again);
    }
    const clean = bodies.map((body) => this.#deps.redaction.entry(body));
    const writing =
      isEnding(clean) || clean.at(-1)?.kind === 'unwinding' ? this.#end(clean) : this.#append(clean, changes);
    if (writing === undefined) return undefined;
    this.#committing = this.#untilDone(writing);
    return this.#committing;
  }

  async #untilDone(writing: Promise<void>): Promise<void> {
    try {
      await writing;
    } finally {
      this.#committing = undefined;
    }
  }

  /**
   * An ending sees every message that was stored before it. A cancel among them wins over an ending of another kind; the
   * other controls are not delivered.
   */
  async #end(bodies: readonly EntryBody[]): Promise<void> {
    const { run } = this.#state.identity;
    const last = bodies.at(-1);
    assertFollows(this.#state, bodies);
    const isUnwinding = last?.kind === 'unwinding';
    const isGoal = last?.kind === 'finished' && last.reason === 'goal';
    if (!isGoal && this.#state.tasks.length > 0) await this.#stopTasks();
    const early = isUnwinding ? [] : await wordsBehindCancel(this.#state, this.#deps);
    let late: readonly Received[] = [];
    for (;;) {
      // What is said to a run that is to unwind is taken on the way.
      const heard = isUnwinding ? [] : late;
      // Behind the last move, whose planner has not seen it.
      const seen = [...bodies.slice(0, -1), ...takeUndelivered(run, heard), ...bodies.slice(-1)];
      const seenSignals = this.#state.messagesTaken + late.length;
      try {
        const { unwinding } = this.#state;
        // In the order in which they came.
        const said = isUnwinding ? [] : [...early, ...(unwinding?.late ?? []), ...heard.map(({ message }) => message)];
        const trace = this.#state.trace ?? this.#tracing?.traceparent();
        const starts = runsAfter(this.#state, seen, said, trace, this.#deps);
        await this.#append(seen, {
          takes: heard.map(({ message }) => message.id),
          seenSignals,
          ...(starts.length === 0 ? {} : { starts }),
        });
        if (isUnwinding) this.#inbox().look();
        return;
      } catch (error) {
        if (!PilotageError.is(error, 'inbox_changed')) throw error;
      }
      late = await this.#deps.journal.inbox(run);
      if (this.#state.cancel !== null || !late.some(({ message }) => message.type === 'CANCEL')) continue;
      // What was made on the way counts; how it ends is for the cancel to say.
      this.#inbox().look();
      const made = bodies.slice(0, -1);
      return made.length === 0 ? undefined : this.#append(made, {});
    }
  }

  #append(bodies: readonly EntryBody[], changes: Changes): Promise<void> | undefined {
    const request = this.#request(bodies, changes);
    const appending = this.#send(request);
    if (appending !== undefined) return this.#whenAppended(request, appending, changes.seenSignals === undefined);
    this.#apply(request);
    return undefined;
  }

  #send(request: Append): Promise<void> | undefined {
    try {
      return this.#deps.journal.append(request);
    } catch (error) {
      // The journal may throw in place of rejecting.
      return Promise.reject(error);
    }
  }

  async #whenAppended(request: Append, appending: Promise<void>, hears: boolean): Promise<void> {
    try {
      await appending;
    } catch (error) {
      return this.#refused(request, error, hears);
    }
    this.#unknown = undefined;
    this.#apply(request);
  }

  /** Again, when the store could not do it now; and with `hears` when something was said to the run, which is looked at first. */
  async #refused(request: Append, first: unknown, hears: boolean): Promise<void> {
    try {
      await this.#appendAgain(request, first);
    } catch (error) {
      if (!hears) throw error;
      await this.#hear(error);
      const again = { ...request, seenSignals: this.#inbox().signalsHeard };
      return this.#whenAppended(again, Promise.resolve(this.#send(again)), hears);
    }
    this.#unknown = undefined;
    this.#apply(request);
  }

  /** What waited behind an append that failed is tried all the same: a result that is not written is perhaps made again. */
  async #appendAgain(request: Append, first: unknown): Promise<void> {
    try {
      await appendAgain(this.#deps, request, first, this.#holding(request));
    } catch (error) {
      // The one before had landed, and nobody could find out: that is what is wrong.
      if (this.#unknown !== undefined && PilotageError.is(error, 'journal_conflict')) throw this.#unknown.error;
      if (!PilotageError.is(first) || isTransientStoreError(first)) this.#unknown = { error };
      throw error;
    }
  }

  /**
   * What a call of a `once` tool has come to is known here alone, and would be doubt in any other process: it is held until the store takes
   * it, the run is given back, or another process has it.
   */
  #holding({ entries }: Append): (error: unknown) => boolean {
    const entry = entries.find((one) => isOfOnce(this.#state.open, one));
    let isTold = false;
    return (error) => {
      if (entry === undefined || this.#isLettingGo()) return false;
      if (!isTold) this.#deps.onFault(heldFor(this.#state, entry, error));
      isTold = true;
      return true;
    };
  }

  /** What is to be appended. @throws PilotageError `entry_refused`. */
  #request(bodies: readonly EntryBody[], changes: Changes): Append {
    const { identity, head } = this.#state;
    assertFollows(this.#state, bodies);
    const at = this.#deps.clock.now();
    const entries = toEntries(bodies, head, at);
    const following = this.#following(entries, changes);
    const plain = {
      run: identity.run,
      fence: this.#lease.fence,
      expected: head,
      entries,
      seenSignals: this.#inbox().signalsHeard,
    };
    return following === NO_CHANGES ? plain : { ...plain, ...following };
  }

  /** The journal has it. */
  #apply({ entries, starts, tells, waits }: Append): void {
    const { hub, woke } = this.#deps;
    const { run } = this.#state.identity;
    // That they follow was asked when the request was made, and nothing else changes the state meanwhile.
    for (const entry of entries) {
      this.#tracing?.recorded(entry);
      applyFitting(this.#state, entry);
    }
    // A signal that was kept for the event came with it, and nobody tells of that.
    if (waits?.adds?.some(({ key }) => key !== undefined)) this.#inbox().look();
    if (starts !== undefined) for (const { identity } of starts) woke(identity.run);
    if (tells !== undefined) for (const told of tells) woke(told.run);
    if (!hub.hasListeners(run)) return;
    for (const entry of entries) hub.tell(run, { type: 'entry', entry });
  }

  /** What follows from the entries beside the run itself. */
  #following(bodies: readonly Entry[], changes: Changes): Changes {
    const status = changes.status ?? statusAfter(bodies) ?? statusAfterHeld(this.#state, bodies);
    const tells = toldBy(this.#state, bodies);
    const writes = writesOf(this.#state, bodies);
    const waits = waitChanges(this.#state, bodies);
    if (status === undefined && tells.length === 0 && writes === undefined && waits === undefined) return changes;
    return {
      ...changes,
      ...(status === undefined ? {} : { status }),
      ...(tells.length === 0 ? {} : { tells }),
      ...(writes === undefined ? {} : { writes }),
      ...(waits === undefined ? {} : { waits }),
    };
  }

  #stopTasks(): Promise<void> {
    const { identity, undoStopped: stopsUndo } = this.#state;
    const reason = `The run above it, ${identity.run}, has ended.`;
    return stopTasks(this.#deps, cascading(this.#state), { by: identity.run, reason, stopsUndo });
  }
}

/**
 * A fault of ours ends the driver here, before anything is written: the run is as it was, and can be resumed.
 * @throws PilotageError `entry_refused`.
 */
function assertFollows(state: RunState, bodies: readonly EntryBody[]): void {
  const misfit = misfitAmong(state, bodies);
  if (misfit === undefined) return;
  const { body, why } = misfit;
  const { run } = state.identity;
  throw new PilotageError(
    'entry_refused',
    `Nothing was appended to run ${run}: the entry ${body.kind} cannot follow entry ${state.head}, because ${why}. This is a fault of Pilotage; the run is whole, and can be resumed.`,
    { data: { run, kind: body.kind, head: state.head } },
  );
}

/** It says what has become of a call that must not be made twice. */
function isOfOnce(open: OpenStep | null, entry: Entry): entry is Entry & CallPlace {
  if (!('call' in entry) || (entry.kind === 'paused' && entry.reason === 'in_doubt')) return false;
  return open?.began.some(({ call, once }) => once && call === entry.call) === true;
}

function heldFor({ identity: { run } }: RunState, { step, call }: CallPlace, error: unknown): PilotageError {
  const { message } = Thrown.of(error);
  return new PilotageError(
    PilotageError.is(error) ? error.code : 'journal_unavailable',
    `What call ${step}.${call} of run ${run} has come to cannot be stored: ${message} The call must not be made twice, so this process holds it, and tries again until the store takes it. Do not end the process before.`,
    { data: { run, step, call }, cause: error },
  );
}

/**
 * What these entries put into the long-term store; mostly nothing. What calls of a fork write lies in its own entries, over the store, for itself
 * alone; the rules that people set there hold for the user all the same.
 */
function writesOf(state: RunState, entries: readonly Entry[]): StoreWrite[] | undefined {
  const writes = state.fork === null ? writesIn(entries) : undefined;
  if (!entries.some(isRemembered)) return writes;
  const { identity } = state;
  const rules = entries.flatMap((entry): StoreWrite[] => {
    const set = isRemembered(entry) ? remembering(entry) : undefined;
    if (set === undefined) return [];
    const { expiresAt: _, ...rule } = ruleSetBy(set, identity.run, entry);
    const write = ruleWrite(rule, identity, set.remember.expiresInMs);
    return write === undefined ? [] : [write];
  });
  return [...(writes ?? []), ...rules];
}

function isRemembered(entry: Entry): entry is Entry & (Resumed | ApprovedOnce) {
  return (entry.kind === 'resumed' || entry.kind === 'approved') && entry.remember !== undefined;
}

/** While a call that stays open asks, the run reads as paused; with the end of that call, or of its attempt, it does no more. */
function statusAfterHeld({ pauses }: RunState, entries: readonly Entry[]): RunStatus | undefined {
  const hasAsked = pauses.some(({ wait, step, call }) => {
    if (wait === undefined) return false;
    return entries.some(
      (entry) => ENDS.has(entry.kind) && 'call' in entry && entry.call === call && entry.step === step,
    );
  });
  return hasAsked ? drivenStatus(pauses) : undefined;
}

const ENDS: ReadonlySet<Entry['kind']> = new Set(['call_ended', 'call_away']);

/** What calls that have ended have written to the long-term store; mostly nothing. */
function writesIn(bodies: readonly EntryBody[]): StoreWrite[] | undefined {
  let writes: StoreWrite[] | undefined;
  for (const body of bodies) {
    if (body.kind !== 'call_ended' || body.store?.writes === undefined) continue;
    writes ??= [];
    writes.push(...body.store.writes);
  }
  return writes;
}

function toEntries(bodies: readonly EntryBody[], head: number, at: number): readonly Entry[] {
  return bodies.map((body, index) => frozen(toEntry(body, head + 1 + index, at)));
}

/** What most steps leave has one of two shapes. Made in one piece, it is one object in memory, for as long as the run is kept. */
function toEntry(body: EntryBody, seq: number, at: number): Entry {
  if (body.kind === 'moved' && body.usage !== undefined && body.provenance !== undefined && hasKeys(body, 6)) {
    const { kind, step, decision, startedAt, usage, provenance } = body;
    return { kind, step, decision, startedAt, usage, provenance, seq, at };
  }
  if (body.kind === 'call_ended' && body.startedAt !== undefined && hasKeys(body, 6)) {
    const { kind, step, call, outcome, attempts, startedAt } = body;
    return { kind, step, call, outcome, attempts, startedAt, seq, at };
  }
  return { ...body, seq, at };
}

function hasKeys(body: EntryBody, count: number): boolean {
  let keys = 0;
  for (const _ in body) keys += 1;
  return keys === count;
}

/** Most parts were frozen when they were captured; a deep walk of every entry would look at all of them again. */
function frozen(entry: Entry): Entry {
  if (entry.kind === 'call_ended') deepFreeze(entry.outcome);
  else if (entry.kind !== 'moved' || entry.rejected !== undefined) deepFreeze(entry);
  return Object.freeze(entry);
}
