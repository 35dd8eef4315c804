/** What the store has taken of sessions: messages, runs in their order, branches, and sessions that are gone. */
import type { Scope } from '#core';
import type { NewRun, Sending, Sent } from '#journal';
import type { LedgerRun } from './ledger.ts';
import type { SimulatedProcess } from './process.ts';

export interface SendTaken {
  readonly order: number;
  readonly at: number;
  readonly sending: Sending;
  readonly answer: Sent;
}

/** A run that was stored, and where it stands among those that wait. */
export interface RunStored {
  readonly order: number;
  readonly run: LedgerRun;
  readonly waits: NewRun['waits'];
}

/** `null`: nobody has chosen a branch any more. */
export interface BranchChosen {
  readonly order: number;
  readonly scope: Scope;
  readonly branch: string | null;
}

export interface SessionGone {
  readonly order: number;
  readonly scope: Scope;
  readonly runs: ReadonlyMap<string, LedgerRun>;
}

export interface Cancelled {
  readonly run: string;
  readonly by: SimulatedProcess;
  /** Since when nobody has driven anything, and it has not ended. */
  quietSince?: number;
}

export class SessionLedger {
  readonly sends: SendTaken[] = [];
  readonly stored: RunStored[] = [];
  readonly branches: BranchChosen[] = [];
  readonly gone: SessionGone[] = [];
  /** Those that somebody knows to be stored. */
  readonly cancels: Cancelled[] = [];

  /** A run that is gone with its session, the last one of that name. */
  goneRun(id: string): { readonly run: LedgerRun; readonly at: number } | undefined {
    const gone = this.gone.findLast(({ runs }) => runs.has(id));
    const run = gone?.runs.get(id);
    return gone === undefined || run === undefined ? undefined : { run, at: gone.order };
  }
}
