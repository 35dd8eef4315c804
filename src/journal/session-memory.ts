/**
 * The memory of a session: what it keeps of its earlier runs. It lives beside the journal, and a turn is stored with the ending of
 * its run.
 */
import type { Scope } from '#core';

/** A turn of a session: what the user asked of a run, and what the run answered. */
export interface SessionTurn {
  readonly run: string;
  readonly user: string;
  /** `null`: the run ended without an answer. */
  readonly assistant: string | null;
  /** When the run ended. Milliseconds since the epoch. */
  readonly at: number;
}

/**
 * - `healthy`: the summary is up to date.
 * - `retrying`: the last try to extend it failed, and another will follow.
 * - `degraded`: too many tries failed; turns that are neither covered nor recent are not shown until a try succeeds.
 */
export type MemoryHealth = 'healthy' | 'retrying' | 'degraded';

export interface SessionSummary {
  readonly text: string;
  /** How many of the session's first turns the text covers. */
  readonly covers: number;
  readonly health: MemoryHealth;
  /** How many tries in a row failed. */
  readonly failures: number;
  readonly updatedAt: number;
}

export interface SessionMemory {
  /** How many turns the session has had. */
  readonly count: number;
  /** The last turns, oldest first. */
  readonly turns: readonly SessionTurn[];
  readonly summary?: SessionSummary;
}

export interface SessionMemoryStore {
  /** At most `limit` turns, the newest, but for those before index `from` (default 0). An unknown session has none. */
  read(scope: Scope, limit: number, from?: number): Promise<SessionMemory>;
  /**
   * Replaces the summary if the stored one is the one that `expected` was read from: the same `updatedAt` (`undefined`:
   * none was stored). @returns false when another writer was first.
   */
  summarise(scope: Scope, expected: number | undefined, summary: SessionSummary): Promise<boolean>;
}
