/** Arguments without a name: an object that can only belong to one tool, which the text names elsewhere. */
import { looksLikeArguments, namelessArguments } from './call-shapes.ts';
import type { Scan } from './find-calls.ts';
import type { FoundCall } from './found-call.ts';
import { CodeText, type LooseObject } from './loose-value.ts';
import type { ParseTool } from './names.ts';
import { opensText } from './turns.ts';

/** Calls from the objects of a text in which nothing else was a call. */
export function bareCalls(scan: Scan): readonly FoundCall[] {
  const calls: FoundCall[] = [];
  let last = -1;
  for (const { value, reader, start, end } of scan.bare) {
    if (start < last || !isOwnBlock(scan, start)) continue; // inside one that was taken, or part of a sentence
    const inner = namelessArguments(value);
    const asWritten = toolFor(value, scan, start);
    const tool = asWritten ?? toolFor(inner, scan, start);
    if (tool === undefined) continue;
    last = end;
    calls.push({
      name: tool.name,
      tool,
      named: asWritten === undefined ? inner : value,
      positional: [],
      syntax: 'args',
      form: 'loose',
      start,
      end,
      isLoose: true,
      isTruncated: reader.isTruncated,
      sources: reader.sources,
    });
  }
  return calls;
}

const ASSIGNMENT = /(?:^|\n)[ \t]*\w{1,80}[ \t]?=[ \t]?$/;

/** Nothing but brackets and commas stands before it on its line, or the name of a variable. */
function isOwnBlock({ text, hasProgram }: Scan, start: number): boolean {
  if (!hasProgram && ASSIGNMENT.test(text.slice(Math.max(0, start - 120), start))) return true;
  for (let at = start - 1; at >= 0; at -= 1) {
    const char = text.charAt(at);
    if (char === '\n' || char === '}') return true;
    if (!' \t[,(>'.includes(char)) return false;
  }
  return true;
}

function toolFor(value: LooseObject, scan: Scan, start: number): ParseTool | undefined {
  const values = Object.values(value);
  if (values.every((one) => one instanceof CodeText)) return undefined; // variables of a program
  const fitting = scan.names.tools.filter((tool) => looksLikeArguments(value, tool));
  const named = fitting.filter((tool) => scan.mentioned.has(tool));
  if (named.length > 0) return named.length === 1 ? named[0] : undefined;
  return fitting.length === 1 && (values.length > 1 || opensText(scan.text, start)) ? fitting[0] : undefined;
}
