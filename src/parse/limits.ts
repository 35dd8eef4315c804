/** How much text a parse may read and how much it may give back, so that a hostile reply costs a bounded amount. */
import { JSON_LIMITS } from '#core';

export interface ParseLimits {
  /** UTF-16 units of text that are read; what comes after is left out. Default 4,000,000. */
  readonly maxChars?: number;
  /** Levels of brackets inside brackets. A value nested deeper is not read. Default 100, at most 500. */
  readonly maxDepth?: number;
  /** Calls that are kept, the first ones. Default 50. */
  readonly maxCalls?: number;
  /**
   * Characters that may be looked at for each character of the text, with a floor for short texts. It stands in for a time
   * limit, and gives the same result on every machine. Default 4.
   */
  readonly maxWorkPerChar?: number;
}

export const DEFAULT_PARSE_LIMITS: Required<ParseLimits> = {
  maxChars: 4_000_000,
  maxDepth: 100,
  maxCalls: 50,
  maxWorkPerChar: 4,
};

/** Reading is recursive. */
const MAX_DEPTH = 500;

/** Short texts may be read over and over: a few milliseconds at most. */
const WORK_FLOOR = 400_000;

/** What one parse of one text may still do, and what it knows already. */
export interface ParseWork {
  /** Characters that may be looked at. 0 also when more was read than can be recorded. */
  left: number;
  /** Values that may be read. */
  values: number;
  /** Different keys that were read: of each the engine makes another shape. */
  readonly keys: Set<string>;
  /** Strings that were searched for and do not occur from the given index on. */
  readonly absent: Map<string, number>;
}

/** `indexOf` that counts as work, and searches for what is not there only once. */
export function seek(work: ParseWork, text: string, needle: string, from: number): number {
  if (from >= (work.absent.get(needle) ?? Number.POSITIVE_INFINITY)) return -1;
  const index = text.indexOf(needle, from);
  if (index < 0) work.absent.set(needle, from);
  work.left -= (index < 0 ? text.length : index) - from;
  return index;
}

export function workFor(text: string, limits: Required<ParseLimits>): ParseWork {
  const left = Math.max(WORK_FLOOR, text.length * limits.maxWorkPerChar);
  return { left, values: JSON_LIMITS.values, keys: new Set(), absent: new Map() };
}

/** Nothing more is read once there is more than can be recorded. */
export function countValue(work: ParseWork): void {
  work.values -= 1;
  if (work.values < 0) work.left = 0;
}

export function countKey(work: ParseWork, key: string): void {
  work.keys.add(key);
  if (work.keys.size > JSON_LIMITS.keys) work.left = 0;
}

export function withDefaults(limits: ParseLimits | undefined): Required<ParseLimits> {
  if (limits === undefined) return DEFAULT_PARSE_LIMITS;
  const bounds = { ...DEFAULT_PARSE_LIMITS, ...limits };
  return { ...bounds, maxDepth: Math.min(bounds.maxDepth, MAX_DEPTH) };
}
