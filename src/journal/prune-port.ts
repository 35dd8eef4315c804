/** Retention: the part of the port that lets go of runs which ended long ago. */
import { type Entry, PilotageError, type Scope } from '#core';

export const ENDED_STATUSES: readonly ['finished', 'failed', 'cancelled'] = ['finished', 'failed', 'cancelled'];

export interface PruneRequest {
  /** Only runs that have ended, and have not changed since, for so long, by the store's clock. */
  readonly olderThanMs: number;
  /** How the runs have ended that may go. A task goes with the run above it, however it has ended itself. */
  readonly status: readonly (typeof ENDED_STATUSES)[number][];
  /** Only runs of this tenant. */
  readonly tenant?: string;
  /** True: nothing is deleted, and what would be is counted. */
  readonly dryRun?: boolean;
  /** Where the call before has stopped. Absent: from the oldest run on. */
  readonly after?: number;
}

export interface Pruned {
  /** How many runs are gone, tasks included. */
  readonly runs: number;
  /** Where to go on: a call does a part of the work. Absent: all runs were looked at. */
  readonly next?: number;
}

/** What a store has deleted, and who has to look after it. */
export interface Removed {
  readonly pruned: Pruned;
  readonly told: readonly string[];
  /** Sessions whose conversation is gone. */
  readonly sessions: readonly Scope[];
}

/** A run that is deleted, by its place in the store. */
export interface DroppedRun {
  readonly key: number;
  readonly id: string;
}

/** How many runs a call looks through at most, in the order in which they were stored. */
export const PRUNE_WINDOW = 5_000;
/** How many roots of trees a call takes up at most. */
export const PRUNE_ROOTS = 100;
/** After so many runs a call stops, for it holds others up. A tree, or a conversation, is one commit however large it is. */
export const PRUNE_RUNS = 500;

/** @throws PilotageError `invalid_config`. */
export function assertPrune({ olderThanMs, status, after = 0 }: PruneRequest): void {
  const wrong = (what: string): PilotageError => new PilotageError('invalid_config', `Nothing was deleted: ${what}`);
  if (!Number.isFinite(olderThanMs) || olderThanMs < 0) {
    throw wrong(`olderThanMs is ${olderThanMs}; give milliseconds from 0 up.`);
  }
  if (!Array.isArray(status) || status.length === 0 || !status.every((one) => ENDED_STATUSES.includes(one))) {
    throw wrong(`status is ${JSON.stringify(status)}; give one or more of ${ENDED_STATUSES.join(', ')}.`);
  }
  if (!Number.isSafeInteger(after) || after < 0) throw wrong(`after is ${after}; give next of the call before.`);
}

/** The run that goes on where this one has ended, by its last entry. */
export function successorOf(last: Entry | undefined): string | undefined {
  return last?.kind === 'finished' ? last.successor?.run : undefined;
}

/** The same, as it is stored. Who goes on with a run of which the end cannot be read, nobody knows: there is none. */
export function successorIn(body: string | null | undefined): string | undefined {
  if (body?.includes('"successor"') !== true) return undefined;
  try {
    return successorOf(JSON.parse(body) as Entry);
  } catch {
    return undefined;
  }
}
