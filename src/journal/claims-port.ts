/** How a process takes a run, keeps it, and lets go of it. */
import type { Entry, ErrorData } from '#core';

export const RUN_STATUSES = ['pending', 'running', 'waiting', 'paused', 'finished', 'failed', 'cancelled'] as const;

/**
 * `pending`: no process has claimed the run yet. `waiting`: parked until a task, a time or a signal. `paused`: parked until somebody
 * answers.
 */
export type RunStatus = (typeof RUN_STATUSES)[number];

export interface LeaseRequest {
  /** The name of the process that owns the lease. */
  readonly owner: string;
  /** At most 300,000, so that a lease that ends later by the store's clock is known to be written by a clock that was ahead. */
  readonly leaseMs: number;
}

/** Who claims, and what it knows of owners before it. */
export interface Claimant extends LeaseRequest {
  /** Whether an owner whose lease ran out is known to be dead. Called only for a run that is claimed. Default: false. */
  readonly isDead?: (owner: string) => boolean;
}

export interface ClaimRequest extends Claimant {
  readonly run: string;
  /** The run is claimed although the lease of this owner is not over: the caller knows that the owner is dead. */
  readonly from?: string;
  /**
   * Claims the run also when it has failed, whatever state its lease is in. The caller then appends `reopened`, with
   * the status. `undo`: claims it when it has finished, and in no other case that it has ended; the caller then appends `unwinding`.
   */
  readonly reopens?: true | 'undo';
}

export interface DueRequest extends Claimant {
  /** Only runs of these agents, of none of these tenants, and none of these runs. */
  readonly agents?: readonly string[];
  readonly exceptTenants?: readonly string[];
  readonly exceptRuns?: readonly string[];
  /** How many at most. */
  readonly limit: number;
}

export interface ParkedRequest extends Omit<DueRequest, keyof Claimant>, LeaseRequest {
  readonly agents: readonly string[];
  /** Only these, also before their time: it has come by the caller's own clock. */
  readonly runs?: readonly string[];
}

export interface Claim {
  readonly run: string;
  readonly fence: number;
  readonly head: number;
  /** How many signals the run has ever had. */
  readonly signals: number;
  /**
   * How long ago an owner last had the run that may still be at work on its calls: its lease ran out and it was not known to be
   * dead, at this claim or an earlier one, or it said so when it gave the run back. By the store's clock; absent
   * when that never happened.
   */
  readonly workLeftMsAgo?: number;
  /** For `release`, from whoever finds that it cannot go on with the run. */
  readonly before: Standing;
  /** True: the run waits for the turns before it. It may only be ended, or given back. */
  readonly waits?: true;
  /** In how many milliseconds the time comes before which the run does not begin. Absent: it may begin. */
  readonly startsInMs?: number;
}

/** A run that was claimed, with what whoever goes on with it asks for first. */
export interface ClaimedRun {
  readonly claim: Claim;
  readonly tenant: string;
  /** All entries of the run, when they are few. Absent: `read` gives them, or says why it cannot. */
  readonly entries?: readonly Entry[];
}

/** The state of a run when it was claimed. */
interface Standing {
  readonly status: RunStatus;
  /** When the run was to become due by itself, by the store's clock: 0 at once, `null` never. */
  readonly wakeAt: number | null;
}

export interface Renewal {
  readonly run: string;
  readonly fence: number;
}

export interface Park {
  /** How long the run waits, by the store's clock. `null`: until a signal. Absent: it stays due. */
  readonly wakeInMs?: number | null;
  readonly seenSignals: number;
  readonly status?: 'waiting' | 'paused';
  /** In place of the two fields above: the run is left as the claim found it, and becomes due when it was to be due. */
  readonly asBefore?: Standing;
  /** True: a call of the run that was given up goes on in this process. */
  readonly leavesWork?: boolean;
  /** Why this process cannot go on with the run. The reason stays in the record until a process claims the run. */
  readonly problem?: ErrorData;
}
