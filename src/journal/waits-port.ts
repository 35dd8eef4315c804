/** The part of a store that is about what all runs wait for, and about what happens outside. Invariants J7 and J8 of `port.ts`. */
import type { Json, PauseReason, Scope, WaitFor, WaitRow } from '#core';

/** A row of the index, with the run that waits. */
export interface OpenWait extends Scope, WaitRow {
  readonly run: string;
  /** The run's agent, as the run has recorded it last. */
  readonly agent: string;
  /** Its place in the index, which is in the order of the commits in which waits began. */
  readonly number: number;
}

export interface WaitQuery {
  readonly tenant?: string;
  readonly user?: string;
  readonly session?: string;
  readonly run?: string;
  readonly agent?: string;
  readonly for?: WaitFor;
  readonly reason?: PauseReason;
  readonly key?: string;
  /** Only waits whose time is over before this. Milliseconds since the epoch. */
  readonly untilBefore?: number;
  /** How many waits a page has, oldest first. Default 50, at most 200. */
  readonly limit?: number;
  /** The number of the last wait of the page before. */
  readonly after?: number;
}

/** All that waits, written in the same commits as the entries that say so. */
export interface WaitIndex {
  /** @throws PilotageError `invalid_config` for a page over 200 or below 1. */
  list(query: WaitQuery): Promise<OpenWait[]>;
}

/** Something has happened outside. */
export interface NewSignal {
  readonly tenant: string;
  /** What it is called by whoever waits for it. */
  readonly key: string;
  /** The same signal again has the same id. */
  readonly id: string;
  readonly payload: Json;
  /** How long it is kept when nobody waits, and its id known, by the store's clock. */
  readonly keepMs: number;
}

export interface Signalled {
  /** False: this signal was there before, and nothing has changed. */
  readonly isNew: boolean;
  /** The runs to which it was delivered now. */
  readonly runs: readonly string[];
  /** True: it waits for somebody to wait for it. */
  readonly kept: boolean;
  /** Until when it is kept, and its id known, by the store's clock. Milliseconds since the epoch. */
  readonly until: number;
}

/** A signal that nobody has waited for yet. */
export interface KeptSignal {
  /** Counts signals in the order in which they were accepted. */
  readonly number: number;
  readonly key: string;
  readonly id: string;
  readonly payload: Json;
  /** By the store's clock, as `until`. Milliseconds since the epoch. */
  readonly storedAt: number;
  readonly until: number;
}

export interface SignalQuery {
  readonly tenant: string;
  readonly key?: string;
  /** How many signals a page has, oldest first. Default 50, at most 200. */
  readonly limit?: number;
  /** The number of the last signal of the page before. */
  readonly after?: number;
}

/** The mailbox of what comes from outside, by the keys under which runs wait for it. */
export interface EventStore {
  /**
   * Accepts a signal in one commit. It is put into the inbox of every run of the tenant that waits for its key now, as an `EVENT` message, and
   * their waits leave the index. A wait whose `until` has come by the store's clock does not get it.
   * @throws PilotageError `payload_invalid`, `identity_required` without a tenant, or `signals_full` (1,000 kept under this key).
   */
  signal(signal: NewSignal): Promise<Signalled>;
  /** What is kept. @throws PilotageError `invalid_config` for a page over 200 or below 1. */
  list(query: SignalQuery): Promise<KeptSignal[]>;
}
