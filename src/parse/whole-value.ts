/** A value that was written as text: the whole text is an object or a list. */
import { DEFAULT_PARSE_LIMITS, workFor } from './limits.ts';
import type { Loose } from './loose-value.ts';
import { afterSpace, createReader } from './reader.ts';
import { readStrictJson } from './strict-json.ts';
import { readValue } from './value-reader.ts';

/** The value that the whole text is, when it begins with one of `openers` and is not cut off. */
export function readWhole(text: string, openers: string): Loose | undefined {
  const at = afterSpace(text, 0);
  const first = text[at];
  if (first === undefined || !openers.includes(first)) return undefined;
  const json = readStrictJson(text, DEFAULT_PARSE_LIMITS.maxDepth);
  if (json !== undefined) return json;
  const reader = createReader(text, at, DEFAULT_PARSE_LIMITS.maxDepth, workFor(text, DEFAULT_PARSE_LIMITS));
  const value = readValue(reader, 'list');
  if (value === undefined || reader.isTruncated || afterSpace(text, reader.at) < text.length) return undefined;
  return value;
}
