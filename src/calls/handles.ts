/**
 * The live handles of the runs that this process drives. Each is opened by the first call that needs it, shared by all calls
 * of its run, and closed when the run is let go of. The journal knows only which opening calls have used, so that a value
 * that is gone is noticed, whoever drives the run then.
 */
import { type Clock, type HandleNote, type HandleState, type Identity, LazySignal, PilotageError } from '#core';
import type { OpenStep, RunState, WaitingCall } from '#state';
import { DEFAULT_OPEN_MS, type Handle, type HandleReason, type NamedHandle } from '#tools';
import { Attempt, type Settled } from './attempt.ts';

export interface HandlePorts {
  readonly clock: Clock;
  /** Told what goes wrong when a value is closed. */
  onFault(error: unknown): void;
}

/** A call that needs handles. */
export interface HandleUser {
  readonly attempt: Attempt;
  readonly open: Pick<OpenStep, 'move' | 'kept'>;
  /** Its place in the step. */
  readonly index: number;
  readonly waiting: WaitingCall | undefined;
}

/** What a call that needs handles gets: the values, or why it gets none; neither when the call was aborted. */
export interface Handed {
  readonly values?: Readonly<Record<string, unknown>>;
  readonly error?: unknown;
  /** Notes that are recorded with the end of the call, however it ends. */
  readonly notes: readonly HandleNote[];
}

/** A live value, from the beginning of its opening on. */
interface Live {
  readonly handle: Handle;
  readonly identity: Identity;
  readonly opening: number;
  readonly attempt: Attempt;
  readonly opened: Promise<Settled<unknown>>;
  /** Set once it is open. */
  settled?: Settled<unknown>;
  /** Ends the time for which it is kept. */
  stopKeeping?: () => void;
}

interface OfRun {
  /** By name, in the order in which they were opened. */
  readonly live: Map<string, Live>;
  /** Values that were found unusable here, until the journal knows. */
  readonly gone: Map<string, HandleState>;
}

/** How long closing one value may take. */
const CLOSE_MS = 5_000;
/** A run that something was said to while it was being parked goes on at once. */
const KEEP_FOR_NEWS_MS = 5_000;

export class Handles {
  readonly #ports: HandlePorts;
  readonly #runs = new Map<string, OfRun>();
  /** Values that are being closed beside a run. */
  readonly #closing = new Set<Promise<void>>();

  constructor(ports: HandlePorts) {
    this.#ports = ports;
  }

  /** Runs of which a value is open, or being opened. */
  get size(): number {
    return this.#runs.size;
  }

  /** The values for one call, each opened if it is not open yet. Nothing of the call has begun. */
  async hand(state: RunState, user: HandleUser, wanted: readonly NamedHandle[]): Promise<Handed> {
    const values: Record<string, unknown> = {};
    const notes: HandleNote[] = [];
    for (const [key, handle] of wanted) {
      const found = this.#find(state, user, handle);
      if ('lost' in found) {
        notes.push({ name: handle.name, opening: found.lost, lost: true });
        return { notes, error: lostError(handle, found.lost) };
      }
      const settled = found.settled ?? (await waitFor(found, user.attempt));
      if (settled === undefined) return { notes };
      if (settled.kind !== 'value') return { notes, error: openError(found, settled) };
      values[key] = settled.value;
      const known = state.handles.find(({ name }) => name === handle.name);
      if (known === undefined || known.opening < found.opening)
        notes.push({ name: handle.name, opening: found.opening });
    }
    return { notes, values: Object.freeze(values) };
  }

  /** The run is driven here again: what was kept of it is kept as long as it is. */
  hold(run: string): void {
    for (const live of this.#runs.get(run)?.live.values() ?? []) {
      live.stopKeeping?.();
      delete live.stopKeeping;
    }
  }

  /**
   * The run is not driven here any more. `undefined`: nothing of it was open.
   * @param news it goes on here at once.
   */
  letGo(run: string, reason: HandleReason, news = false): Promise<void> | undefined {
    const of = this.#runs.get(run);
    if (of === undefined) return undefined;
    of.gone.clear();
    // What was opened last may need what was opened before it.
    const closed = [...of.live.values()].reverse().filter((live) => !this.#keep(run, of, live, reason, news));
    if (of.live.size === 0) this.#runs.delete(run);
    return this.#closeAll(run, of, closed, reason);
  }

  /** Closes everything that is open still. */
  async close(): Promise<void> {
    const runs = [...this.#runs];
    await Promise.all(runs.map(([run]) => this.letGo(run, 'closing')));
    await Promise.all(this.#closing);
  }

  #keep(run: string, of: OfRun, live: Live, reason: HandleReason, news: boolean): boolean {
    const { keepMs = 0 } = live.handle;
    const kept = reason === 'let_go' ? Math.max(keepMs, news ? KEEP_FOR_NEWS_MS : 0) : 0;
    if (kept === 0 || live.settled === undefined) return false;
    live.stopKeeping = this.#ports.clock.after(kept, () => this.#drop(run, of, live, 'let_go'));
    return true;
  }

  /** The value that is open or being opened, or the number of the opening that is gone. */
  #find({ identity, handles }: RunState, user: HandleUser, handle: Handle): Live | { readonly lost: number } {
    const { run } = identity;
    const { step } = user.open.move;
    const of = this.#runs.get(run) ?? { live: new Map(), gone: new Map() };
    this.#runs.set(run, of);
    const { name } = handle;
    const recorded = later(
      handles.find((each) => each.name === name),
      of.gone.get(name),
    );
    const known = goesOn(user) ? usedBefore(recorded, name, step) : recorded;
    const live = of.live.get(name);
    const isOurs = live !== undefined && isLastOpening(live, known);
    if (isOurs && this.#isOpen(live)) return live;
    const last = Math.max(live?.opening ?? 0, known?.opening ?? 0);
    if (live !== undefined) this.#drop(run, of, live, 'lost');
    const isNews = isOurs || (known !== undefined && (known.lostAt ?? step) === step);
    if (!isNews || handle.onLost !== 'fail') return this.#open(of, identity, handle, last + 1);
    of.gone.set(name, { name, opening: last, lostAt: step });
    this.#runs.set(run, of);
    return { lost: last };
  }

  #isOpen({ handle, settled }: Live): boolean {
    // A waiter is told how the value was opened.
    if (settled?.kind !== 'value') return true;
    try {
      return handle.isOpen?.(settled.value) ?? true;
    } catch {
      return false;
    }
  }

  #open(of: OfRun, identity: Identity, handle: Handle, opening: number): Live {
    const { run } = identity;
    const { timeoutMs = DEFAULT_OPEN_MS } = handle;
    const lazy = new LazySignal();
    const attempt = new Attempt(this.#ports.clock, () => {});
    const made = Promise.withResolvers<unknown>();
    const open = (): Promise<unknown> => {
      const context = {
        identity,
        opening,
        get signal() {
          return lazy.signal;
        },
      };
      made.resolve(new Promise((resolve) => resolve(handle.open(context))));
      return made.promise;
    };
    const opened = attempt.run(open, (settled) => this.#noted(of, live, settled, made.promise), {
      timeoutMs,
      signal: lazy,
    });
    const live: Live = { handle, identity, opening, attempt, opened: Promise.resolve(opened) };
    of.live.set(handle.name, live);
    this.#runs.set(run, of);
    return live;
  }

  #noted(of: OfRun, live: Live, settled: Settled<unknown>, made: Promise<unknown>): Settled<unknown> {
    live.settled = settled;
    if (settled.kind === 'value') return settled;
    this.#forget(live.identity.run, of, live);
    // What comes after it was given up is closed all the same.
    made.then(
      (value) => this.#beside(this.#closeValue(live, value, 'lost')),
      () => {},
    );
    return settled;
  }

  #forget(run: string, of: OfRun, live: Live): void {
    live.stopKeeping?.();
    if (of.live.get(live.handle.name) === live) of.live.delete(live.handle.name);
    if (of.live.size === 0 && of.gone.size === 0 && this.#runs.get(run) === of) this.#runs.delete(run);
  }

  #drop(run: string, of: OfRun, live: Live, reason: HandleReason): void {
    this.#beside(this.#closeAll(run, of, [live], reason));
  }

  #beside(work: Promise<void>): void {
    const closing: Promise<void> = work.finally(() => void this.#closing.delete(closing));
    this.#closing.add(closing);
  }

  /** Closes the handles one after another. Handles that are still being opened are given up first. */
  async #closeAll(run: string, of: OfRun, all: readonly Live[], reason: HandleReason): Promise<void> {
    for (const live of all) this.#forget(run, of, live);
    for (const live of all) {
      live.attempt.abort(new PilotageError('cancelled', 'The run was let go of.'), true);
      const settled = await live.opened;
      if (settled.kind === 'value') await this.#closeValue(live, settled.value, reason);
    }
  }

  async #closeValue({ handle, identity }: Live, value: unknown, reason: HandleReason): Promise<void> {
    const attempt = new Attempt(this.#ports.clock, () => {});
    const work = async (): Promise<void> => handle.close(value, { identity, reason });
    const settled = await attempt.run(work, (how) => how, { timeoutMs: CLOSE_MS });
    if (settled.kind === 'value') return;
    const thrown = settled.kind === 'thrown' ? settled.error : undefined;
    const why = thrown === undefined ? `close() did not end within ${CLOSE_MS} ms` : thrown.message;
    const message = `The handle ${handle.name} of the run ${identity.run} could not be closed: ${why}`;
    this.#ports.onFault(new PilotageError('handle_failed', message, { cause: thrown?.value }));
  }
}

/** Nobody has opened it again since, and no call was told that it is gone. */
function isLastOpening(live: Live, known: HandleState | undefined): boolean {
  if (known === undefined || live.opening > known.opening) return true;
  return live.opening === known.opening && known.lostAt === undefined;
}

/** In the middle of its work: an earlier attempt has used the handles, which is recorded when the call ends. */
function goesOn({ open, index, waiting }: HandleUser): boolean {
  return waiting !== undefined || open.kept?.some(({ call }) => call === index) === true;
}

/** The opening that an earlier attempt of a call of this step has used. */
function usedBefore(recorded: HandleState | undefined, name: string, step: number): HandleState {
  if (recorded !== undefined && (recorded.lostAt ?? step) === step) return recorded;
  return { name, opening: (recorded?.opening ?? 0) + 1 };
}

function later(left: HandleState | undefined, right: HandleState | undefined): HandleState | undefined {
  if (left === undefined || right === undefined) return left ?? right;
  return right.opening >= left.opening ? right : left;
}

/** Until it is open or not, or the call is given up. The opening goes on: others may wait for it. */
function waitFor(
  { opened }: Live,
  attempt: Attempt,
): Settled<unknown> | undefined | Promise<Settled<unknown> | undefined> {
  return attempt.run(
    ({ signal }) => {
      const { promise, reject } = Promise.withResolvers<never>();
      if (signal.aborted) reject(signal.reason);
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      return Promise.race([opened, promise]);
    },
    (settled) => (settled.kind === 'value' ? settled.value : undefined),
  );
}

function openError({ handle: { name, timeoutMs = DEFAULT_OPEN_MS } }: Live, settled: Settled<unknown>): unknown {
  if (settled.kind === 'thrown')
    return settled.error.value === undefined ? new Error('Opening it failed without an error.') : settled.error;
  const why = settled.kind === 'timeout' ? `within ${timeoutMs} ms` : 'before the run was let go of';
  return new PilotageError('handle_failed', `The handle ${name} was not opened ${why}. The next call tries again.`);
}

function lostError({ name }: Handle, opening: number): PilotageError {
  const message =
    `The handle ${name} that earlier calls of this run used is gone, and all that it kept. This call was not made; from the ` +
    'next step on a new one is opened, with which that work has to be done again.';
  return new PilotageError('handle_lost', message, { data: { handle: name, opening } });
}
