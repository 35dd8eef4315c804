/** How a simulated call behaves, as its arguments say it. */
import type { Json } from '#core';
import type { Odd } from './odd.ts';

/** The arguments of every simulated tool. */
export interface CallArgs {
  /** Unique in its run. */
  readonly id: string;
  readonly ms?: number;
  /** `once`: the first attempt fails in a way that may pass. */
  readonly fail?: 'always' | 'once' | 'throughout';
  /** Goes on when its signal is aborted. */
  readonly deaf?: boolean;
  /** Asks for an approval, where the tool's rule asks only for some. */
  readonly big?: boolean;
  /** The value is stored as an artifact. */
  readonly heavy?: boolean;
  readonly note?: Json;
  /** Which of the routes to its branch it has come. */
  readonly way?: number;
  /** Something odd is thrown or given. */
  readonly odd?: Odd;
  readonly oddAt?: (typeof ODD_AT)[number];
  /** The program's policy says no to the call: in words, by throwing, or after a while. */
  readonly forbidden?: 'said' | 'thrown' | 'late';
  /** The program's policy takes so long to allow the call. */
  readonly policyMs?: number;
}

/** Where it is thrown or given: by the call before and after it took effect, as its value, by who is asked whether it happened, by its rule. */
export const ODD_AT = ['begin', 'end', 'value', 'reconcile', 'rule'] as const;
/** Calls whose ids begin so may be made any number of times. */
export const AGAIN = 'again';
/** What a run must hold for the tool `secret`. */
export const SECRET_SCOPE = 'secrets';
