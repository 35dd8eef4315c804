/** A place in a text that is being read: how much work may be spent there, and what may be skipped. */
import { assertKnownKeys, JSON_LIMITS } from '#core';

// A parse may read so much text and give back so much, so that a hostile reply costs a bounded amount.

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
  assertKnownKeys('parse', limits, Object.keys(DEFAULT_PARSE_LIMITS));
  const bounds = { ...DEFAULT_PARSE_LIMITS, ...limits };
  return { ...bounds, maxDepth: Math.min(bounds.maxDepth, MAX_DEPTH) };
}

export interface Reader {
  readonly text: string;
  at: number;
  readonly maxDepth: number;
  readonly work: ParseWork;
  /** The closing brackets that are due, innermost last. */
  readonly closers: string[];
  /** Something was read that strict JSON does not allow. */
  isLoose: boolean;
  /** The text ended inside a value. */
  isTruncated: boolean;
  /** Brackets were nested deeper than allowed. */
  isTooDeep: boolean;
  /** The source text of containers, for when the schema wants text. */
  readonly sources: Map<object, string>;
}

export function createReader(
  text: string,
  at: number,
  maxDepth: number,
  work: ParseWork,
  sources: Map<object, string> = new Map(),
): Reader {
  return {
    text,
    at,
    maxDepth,
    work,
    closers: [],
    isLoose: false,
    isTruncated: false,
    isTooDeep: false,
    sources,
  };
}

/** Counts characters as looked at. False when the work allowed is used up. */
export function spend(reader: Reader, chars: number): boolean {
  reader.work.left -= chars;
  return reader.work.left > 0;
}

export function isSpaceCode(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13) || code === 0xa0 || code === 0xfeff || code === 0x3000;
}

export function isWordCode(code: number): boolean {
  return (
    (code >= 97 && code <= 122) ||
    (code >= 65 && code <= 90) ||
    (code >= 48 && code <= 57) ||
    code === 95 ||
    code === 36 ||
    code > 0x2e7f
  );
}

export function isWordStart(code: number): boolean {
  return isWordCode(code) && !(code >= 48 && code <= 57);
}

/** The index of the first character from `at` on that is not a space. */
export function afterSpace(text: string, at: number): number {
  let index = at;
  while (index < text.length && isSpaceCode(text.charCodeAt(index))) index += 1;
  return index;
}

/** Skips spaces and comments. */
export function skipSpace(reader: Reader): void {
  const from = reader.at;
  for (;;) {
    reader.at = afterSpace(reader.text, reader.at);
    const end = commentEnd(reader, reader.at) ?? escapedSpaceEnd(reader.text, reader.at);
    if (end === undefined) break;
    reader.at = end;
    reader.isLoose = true;
  }
  reader.work.left -= reader.at - from;
}

const FLOOR_DIVISION = /\/\/[ \t]*[\d(]/y;

/** Where the comment that begins at `at` ends, if one does. */
function commentEnd({ text, work }: Reader, at: number): number | undefined {
  const code = text.charCodeAt(at);
  if (code === 35) return lineEnd(text, at);
  if (code !== 47) return undefined;
  const next = text.charCodeAt(at + 1);
  if (next === 42) {
    const end = seek(work, text, '*/', at + 2);
    return end < 0 ? text.length : end + 2;
  }
  if (next !== 47) return undefined;
  FLOOR_DIVISION.lastIndex = at;
  return FLOOR_DIVISION.test(text) ? undefined : lineEnd(text, at);
}

/** A `\\n` between values is a line break that was escaped once too often. */
function escapedSpaceEnd(text: string, at: number): number | undefined {
  if (text.charCodeAt(at) !== 92) return undefined;
  const next = text[at + 1];
  return next === 'n' || next === 't' || next === 'r' || next === '\n' ? at + 2 : undefined;
}

export function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end;
}

const STOP = /```|<\/[A-Za-z_|]|<\|[\w]|<tool_call|<function|\[\/[A-Z_]+\]/y;

/** A fence or a tag: no value goes on past it. */
export function isHardStop(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code !== 96 && code !== 60 && code !== 91) return false;
  STOP.lastIndex = at;
  return STOP.test(text);
}
