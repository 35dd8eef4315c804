/** What is around the runs: clocks, machines, the store, and what befalls them. */
import type { EntryKind, ErrorCode } from '#core';

export interface WorldScript {
  /** By worker: by how much its wall clock is ahead of the store's. Milliseconds; negative: behind. */
  readonly aheadMs: readonly number[];
  /** By worker: where its processes live. */
  readonly homes: readonly Home[];
  /** For how long an owner that may live may be at its calls after its run was taken over. */
  readonly graceMs: number;
  readonly journal: 'memory' | 'sqlite';
  readonly clashes: readonly Clash[];
  /** Absent: all workers have the same code. */
  readonly versions?: Versions;
}

/** Every second worker has a newer version of the planner and of the program, the others have the older one. */
export interface Versions {
  /** The newer ones take over runs of the older. */
  readonly migrates: boolean;
  /** Entries of these kinds, when a newer process has written them, are unknown to the older ones. */
  readonly unknown: readonly EntryKind[];
}

/** A machine, or a container on it: processes see each other only where all of it is the same. */
export interface Home {
  readonly host: string;
  readonly machine: number;
  readonly pidNamespace: string;
  /** Each new process gets the number of the one that died. */
  readonly reusesPids: boolean;
  /** The machine is started anew before each new process. */
  readonly reboots: boolean;
}

/** Somebody starts a run under a name that others use, or come to use, too. */
export type Clash = {
  readonly at: number;
  readonly worker: number;
  readonly tenant: string;
  readonly user: string;
  readonly session: string;
  readonly plan: string;
} & (
  | { readonly kind: 'id'; readonly run: string }
  /** As a task of the session. The same is asked for by another worker, so much later, perhaps with another plan. */
  | {
      readonly kind: 'key';
      readonly key: string;
      readonly again: { readonly worker: number; readonly afterMs: number; readonly plan: string };
    }
);

/** What a store may say in place of doing what it is asked for. */
export type StoreErrorCode = Extract<
  ErrorCode,
  'journal_busy' | 'journal_full' | 'journal_read_only' | 'journal_unavailable' | 'journal_corrupt' | 'journal_closed'
>;

/** The operations of a store that fail one by one. */
export type OperationName =
  | 'artifact'
  | 'create'
  | 'append'
  | 'claim'
  | 'renew'
  | 'release'
  | 'signal'
  | 'read'
  | 'get'
  | 'inbox';

export type WorldFault =
  /** Somebody sets the wall clock of the worker's processes. */
  | {
      readonly kind: 'clock';
      readonly worker: number;
      readonly at: number;
      readonly aheadMs: number;
      /** The process stands still for so long then. */
      readonly stallMs?: number;
    }
  /** The machine sleeps: nothing runs, and the clock that nobody sets stands still. */
  | { readonly kind: 'sleep'; readonly worker: number; readonly at: number; readonly ms: number }
  /** From the n-th of these operations on so many of them are refused, though they may have landed. */
  | {
      readonly kind: 'refuse';
      readonly worker: number;
      readonly on: OperationName;
      readonly nth: number;
      readonly times: number;
      readonly code: StoreErrorCode;
      readonly landed: boolean;
    }
  /** The n-th of these operations is done, and the process stands still for so long before it hears of it. */
  | {
      readonly kind: 'unheard';
      readonly worker: number;
      readonly on: OperationName;
      readonly nth: number;
      readonly ms: number;
    }
  /** For so long the disk under the worker takes no writes: for real where the journal is on one. */
  | {
      readonly kind: 'disk';
      readonly worker: number;
      readonly at: number;
      readonly ms: number;
      readonly trouble: 'full' | 'read_only';
    }
  /** The connection is closed under the process: all that it asks for is refused, until another process starts in its place. */
  | { readonly kind: 'cut'; readonly worker: number; readonly at: number; readonly downMs: number }
  /** For so long what it watches is told late, or twice. */
  | {
      readonly kind: 'hearing';
      readonly worker: number;
      readonly at: number;
      readonly ms: number;
      readonly how: 'late' | 'twice';
    };
