/**
 * The folded states of runs that this process has driven or read, so that no turn of a conversation folds its whole journal. What is missing
 * is read from a snapshot, and what came since from the entries; a state that does not go with the entries is forgotten.
 *
 * Invariant: a state in here is never folded on. Whoever asks gets a copy of its own.
 */
import type { Entry } from '#core';
import type { Journal } from '#journal';
import { applyEntry, copyState, FOLD_VERSION, foldEntries, packState, type RunState, unpackState } from '#state';
import { Kept } from './kept.ts';

/** So many runs at most, with so many entries together; but the last one stays, however long it is. */
const MOST_RUNS = 64;
const MOST_ENTRIES = 50_000;
/** So many earlier states of a run: one for each of so many readers that are behind its end. */
const MOST_EARLIER = 8;
/** A snapshot is stored when a run is let go of that has so many entries more than the last one. */
const PARKED_EVERY = 500;
/** A run that goes on and on has one after so many: to make it takes time that the run would have. */
const DRIVEN_EVERY = 4_000;

interface Known {
  readonly state: RunState;
  /** Where readers have been, and where it was let go of before: readers come from there. The last one was used last. */
  earlier: readonly RunState[];
  /** Absent: it is with a driver, or there never was one. */
  kept: Kept | undefined;
}

interface Read {
  readonly state: RunState;
  readonly kept: Kept;
}

export class KnownStates {
  readonly #journal: Pick<Journal, 'read' | 'snapshots'>;
  readonly #onFault: (error: unknown) => void;
  readonly #known = new Map<string, Known>();
  readonly #storing = new Set<Promise<void>>();
  #entries = 0;

  /** @param onFault is told that a snapshot could not be stored. */
  constructor(journal: Pick<Journal, 'read' | 'snapshots'>, onFault: (error: unknown) => void = () => {}) {
    this.#journal = journal;
    this.#onFault = onFault;
  }

  /**
   * The state of the run as the journal has it, up to that entry: the caller's own.
   * @throws PilotageError of the store, or of an entry that cannot be read or cannot follow.
   */
  async of(run: string, upTo: number = Number.POSITIVE_INFINITY): Promise<RunState> {
    return (await this.#read(run, upTo)).state;
  }

  /** The same for a driver, with what the last one has kept. @param entries all entries of the run, if they were read. */
  async forDriver(run: string, entries?: readonly Entry[]): Promise<Read> {
    if (entries !== undefined && !this.#known.has(run)) return { state: foldEntries(entries), kept: new Kept() };
    const read = await this.#read(run, Number.POSITIVE_INFINITY, entries);
    const known = this.#known.get(run);
    // Two drivers of one run have nothing in common.
    if (known?.kept === read.kept) known.kept = undefined;
    return read;
  }

  /** @param state is not folded on any more. @param kept by its driver, if it had one. */
  keep(state: RunState, kept?: Kept): void {
    const { run } = state.identity;
    const before = this.#known.get(run);
    if (before !== undefined && before.state.head > state.head) {
      before.earlier = withEarlier(before.earlier, state);
      return;
    }
    this.forget(run);
    const isLater = before !== undefined && before.state.head < state.head;
    const earlier = isLater ? withEarlier(before.earlier, before.state) : (before?.earlier ?? []);
    this.#known.set(run, { state, earlier, kept: kept?.parked() ?? before?.kept });
    this.#entries += state.head;
    for (const [oldest] of this.#known) {
      if (this.#known.size === 1 || (this.#known.size <= MOST_RUNS && this.#entries <= MOST_ENTRIES)) break;
      this.forget(oldest);
    }
  }

  clear(): void {
    this.#known.clear();
    this.#entries = 0;
  }

  forget(run: string): void {
    const known = this.#known.get(run);
    if (known === undefined) return;
    this.#known.delete(run);
    this.#entries -= known.state.head;
  }

  /**
   * A run is let go of: its state stays here, and is stored for other processes when it has become much longer. An ended run that is not
   * very long is read again where somebody wants it: to keep it would cost most runs something for nothing.
   */
  letGo(state: RunState, kept: Kept, fence: number): void {
    const { ending, head, identity } = state;
    const isOver = ending !== null;
    if (isOver && head < DRIVEN_EVERY) {
      this.forget(identity.run);
      return;
    }
    this.keep(state, isOver ? undefined : kept);
    if (head - kept.stored.head >= PARKED_EVERY) this.#store(state, kept, fence);
  }

  /** A run goes on, and may do so for long. */
  goesOn(state: RunState, kept: Kept, fence: number): void {
    if (state.head - kept.stored.head >= DRIVEN_EVERY) this.#store(state, kept, fence);
  }

  /** Until everything is stored. */
  async settle(): Promise<void> {
    await Promise.all(this.#storing);
  }

  async #read(run: string, upTo: number, entries?: readonly Entry[]): Promise<Read> {
    const base = this.#knownUpTo(run, upTo) ?? (await this.#stored(run, upTo));
    const read = base && (await this.#goOn(run, base, upTo, entries));
    if (read !== undefined) return read;
    const state = foldEntries(entries ?? (await this.#journal.read(run, 1, upTo)));
    const kept = new Kept();
    this.keep(state, kept);
    return { state: copyState(state), kept };
  }

  #knownUpTo(run: string, upTo: number): Read | undefined {
    const known = this.#known.get(run);
    if (known === undefined) return undefined;
    const { state, earlier, kept = new Kept() } = known;
    if (state.head <= upTo) return { state, kept };
    let nearest: RunState | undefined;
    for (const one of earlier) if (one.head <= upTo && one.head >= (nearest?.head ?? 0)) nearest = one;
    return nearest && { state: nearest, kept: new Kept() };
  }

  async #stored(run: string, upTo: number): Promise<Read | undefined> {
    const stored = await this.#journal.snapshots.newest(run, FOLD_VERSION);
    if (stored === undefined || stored.head > upTo) return undefined;
    const state = unpackState(stored.body, stored.blocks);
    if (state?.head !== stored.head || state.identity.run !== run) return undefined;
    const kept = new Kept();
    kept.stored = { head: stored.head, blocks: stored.blocks.length };
    this.keep(state, kept);
    return { state, kept };
  }

  /** With the entries since. `undefined`: the state does not go with the entries, for the run was repaired, or is another one. */
  async #goOn(
    run: string,
    { state: base, kept }: Read,
    upTo: number,
    entries?: readonly Entry[],
  ): Promise<Read | undefined> {
    const { head, updatedAt } = base;
    const [last, ...since] = entries?.slice(head - 1) ?? (await this.#journal.read(run, head, upTo - head + 1));
    if (last?.seq !== head || last.at !== updatedAt || since.some(mayFollowRepair)) {
      this.forget(run);
      return undefined;
    }
    const state = copyState(base);
    for (const entry of since) applyEntry(state, entry);
    const known = this.#known.get(run);
    if (since.length === 0 || known === undefined) return { state, kept };
    // The reader has gone on from there.
    const wasEarlier = known.earlier.includes(base);
    if (wasEarlier) known.earlier = known.earlier.filter((one) => one !== base);
    if (wasEarlier || known.state === base) this.keep(copyState(state));
    return { state, kept };
  }

  #store(state: RunState, kept: Kept, fence: number): void {
    const { head, identity } = state;
    const packed = packState(state, kept.stored.blocks);
    kept.stored = { head, blocks: packed.from + packed.blocks.length };
    const storing: Promise<void> = this.#journal.snapshots
      .keep({ run: identity.run, fence, version: FOLD_VERSION, ...packed })
      .then(
        (isStored) => {
          // Another one is there, or blocks are missing: the next one brings them all.
          if (!isStored) kept.stored = { head, blocks: 0 };
        },
        (error: unknown) => {
          kept.stored = { head, blocks: 0 };
          this.#onFault(error);
        },
      )
      .finally(() => this.#storing.delete(storing));
    this.#storing.add(storing);
  }
}

function withEarlier(states: readonly RunState[], state: RunState): readonly RunState[] {
  return [...states.filter(({ head }) => head !== state.head), state].slice(-MOST_EARLIER);
}

/** A repair takes entries out of a run, and ends with a pause unless the run has ended. Then nothing tells of it behind the end, from which a failed run goes on. */
function mayFollowRepair(entry: Entry): boolean {
  if (entry.kind === 'paused') return entry.payload?.['by'] === 'repair';
  return entry.kind === 'repaired' || entry.kind === 'reopened';
}
