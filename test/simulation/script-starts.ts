/** What is played of starts under keys, and of starts at a time. */
import type { StartKey } from '#core';

export interface KeyedStart {
  readonly at: number;
  readonly run: string;
  readonly worker: number;
  readonly user: string;
  readonly session: string;
  readonly plan: string;
  /** Absent: it begins at a time. */
  readonly key?: StartKey;
  /** Without a key: so much later it begins. */
  readonly inMs?: number;
  /** Another worker asks for the same, so much later. */
  readonly twin?: { readonly worker: number; readonly afterMs: number };
}

/** Begin with it: the runs that are started so. */
export const KEYED = 'start';
