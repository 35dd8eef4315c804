/** A text that is nothing but calls in program syntax, of tools that are not there: the model must be told so. */
import type { FoundCall } from './found-call.ts';
import type { ParseLimits, ParseWork } from './limits.ts';
import type { ToolNames } from './names.ts';
import { afterSpace, createReader } from './reader.ts';
import { endsText } from './turns.ts';
import { readArguments } from './value-reader.ts';

const OPENING = /\s{0,40}(?:```\w{0,12}\s{0,8})?\[?\s{0,40}/y;
const CALLED = /([A-Za-z_][\w.]{0,100})\((?=\s{0,8}(?:\)|[A-Za-z_]\w{0,60}\s{0,2}=[^=]))/y;
const SEPARATOR = /\s{0,40}[,;]?\s{0,40}/y;

/** The calls, when they are the whole text and all their arguments are named; else none. */
export function unknownCalls(
  text: string,
  names: ToolNames,
  limits: Required<ParseLimits>,
  work: ParseWork,
): readonly FoundCall[] {
  const calls: FoundCall[] = [];
  OPENING.lastIndex = 0;
  OPENING.test(text);
  let at = OPENING.lastIndex;
  while (at < text.length && calls.length < limits.maxCalls) {
    CALLED.lastIndex = at;
    const match = CALLED.exec(text);
    const name = match?.[1];
    if (match === null || name === undefined) break;
    if (names.resolve(name) !== undefined) return []; // a known one was seen, and found to be only mentioned
    const reader = createReader(text, at + match[0].length - 1, limits.maxDepth, work);
    const args = readArguments(reader);
    if (args === undefined || args.positional.length > 0 || reader.isTruncated) return [];
    calls.push({
      name,
      ...args,
      syntax: 'python',
      form: 'clear',
      start: at,
      end: reader.at,
      isLoose: false,
      isTruncated: false,
      sources: reader.sources,
    });
    SEPARATOR.lastIndex = reader.at;
    SEPARATOR.test(text);
    at = SEPARATOR.lastIndex;
  }
  const last = calls.at(-1);
  return last !== undefined && endsText(text, afterSpace(text, last.end)) ? calls : [];
}
