/** ReAct lines: `Action: name` and `Action Input: …`. An `Action:` that stands before an object or a call is read as those. */
import type { WrittenCall } from './call-shapes.ts';
import type { ParseLimits, ParseWork } from './limits.ts';
import { isLooseObject, type Loose, type LooseObject } from './loose-value.ts';
import type { ToolNames } from './names.ts';
import { afterSpace, createReader, lineEnd, type Reader } from './reader.ts';
import { readContainer } from './value-reader.ts';

export interface ActionLine {
  readonly call: WrittenCall;
  readonly reader: Reader;
}

interface Context {
  readonly names: ToolNames;
  readonly limits: Required<ParseLimits>;
  readonly work: ParseWork;
}

const ACTION =
  /(?:Action|Tool|Function)(?:\s?\d{1,3})?\**\s?:\**[ \t]{0,8}["'`*[]{0,3}([\w$.:/\\-]{1,100})["'`*\]]{0,3}/y;
const INPUT = /\s{0,40}[*#>-]{0,3}\s?(?:Action[ _]?Input|Arguments|Args|Input|Parameters)(?:\s?\d{1,3})?\**\s?:\**/iy;

export function readActionLine(text: string, at: number, context: Context): ActionLine | undefined {
  ACTION.lastIndex = at;
  const match = ACTION.exec(text);
  const name = match?.[1]?.replaceAll('\\', '');
  if (match === null || name === undefined) return undefined;
  const tool = context.names.resolve(name)?.tool;
  const end = at + match[0].length;
  const reader = createReader(text, end, context.limits.maxDepth, context.work);
  INPUT.lastIndex = end;
  const input = INPUT.exec(text);
  if (input === null) {
    const isAlone = text.slice(end, lineEnd(text, end)).trim() === '';
    if (!isAlone || tool === undefined || text[afterSpace(text, end)] === '{') return undefined;
    return { call: { name, tool, named: {}, positional: [] }, reader };
  }
  reader.at = end + input[0].length;
  const parts = readInput(reader);
  return { call: { name, ...(tool === undefined ? {} : { tool }), ...parts }, reader };
}

/** An object of arguments, or the rest of the line as the only one. */
function readInput(reader: Reader): { named: LooseObject; positional: readonly Loose[] } {
  const { text } = reader;
  reader.at = afterSpace(text, reader.at);
  const fence = /^```\w{0,12}\s{0,8}/.exec(text.slice(reader.at, reader.at + 24))?.[0];
  if (fence !== undefined) reader.at += fence.length;
  const start = reader.at;
  if (text[start] === '{') {
    const value = readContainer(reader);
    if (isLooseObject(value)) return { named: value, positional: [] };
  }
  const end = lineEnd(text, start);
  const line = text.slice(start, end).trim();
  reader.at = end;
  const isQuoted = /^(["']).*\1$/.test(line);
  const value = isQuoted ? line.slice(1, -1) : line;
  return { named: {}, positional: value === '' || /^(?:none|null|n\/a)$/i.test(value) ? [] : [value] };
}
