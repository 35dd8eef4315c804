/**
 * Calls that marks around their parts make plain: tags, `<invoke name="f"><parameter name="a">1</parameter></invoke>` and its
 * many cousins; and the lines of ReAct, `Action: name` and `Action Input: …`.
 */
import type { JsonObject } from '#core';
import type { WrittenCall } from './call-shapes.ts';
import {
  isLooseObject,
  type Loose,
  type LooseObject,
  type MutableLoose,
  readStrictJson,
  setField,
} from './loose-value.ts';
import { type ParseTool, propertiesOf, type ToolNames, takesAnything } from './names.ts';
import { afterSpace, createReader, lineEnd, type ParseLimits, type ParseWork, type Reader, seek } from './reader.ts';
import { readContainer } from './value-reader.ts';

export interface TagCall {
  readonly call: WrittenCall;
  readonly end: number;
  readonly isTruncated: boolean;
}

/** A tag that names a tool. What it holds may also be JSON, which is then left to others. */
export interface OpenTag {
  readonly element: string;
  /** The tool's name, from `<function=name>`, `<invoke name="name">` or `<name>`. */
  readonly name?: string;
  readonly bodyStart: number;
}

const OPEN_TAG =
  /<([A-Za-z_][\w.:-]{0,100})(?:=["']?([\w.:/-]{1,100})["']?)?((?:\s{1,4}[\w:-]{1,40}\s?=\s?(?:"[^"<>]{0,200}"|'[^'<>]{0,200}')){0,8})\s{0,4}>/y;
const NAME_ATTRIBUTE = /\sname\s?=\s?["']([^"']*)["']/;

export function readOpenTag(text: string, at: number): OpenTag | undefined {
  OPEN_TAG.lastIndex = at;
  const match = OPEN_TAG.exec(text);
  const element = match?.[1];
  if (match === null || element === undefined) return undefined;
  const name = match[2] ?? NAME_ATTRIBUTE.exec(match[3] ?? '')?.[1];
  return { element, ...(name === undefined ? {} : { name }), bodyStart: at + match[0].length };
}

const MAX_PARAMETERS = 200;
const MAX_DEPTH = 100;

/** The call that the tag opens, when its arguments are tags. */
export function readTagCall(text: string, tag: OpenTag, names: ToolNames, work: ParseWork): TagCall | undefined {
  const inner = tag.name === undefined ? innerName(text, tag) : undefined;
  const name = tag.name ?? inner?.name ?? tag.element;
  const tool = names.resolve(name)?.tool;
  if (tool === undefined) return undefined;
  const named: MutableLoose = {};
  let at = inner?.end ?? tag.bodyStart;
  for (let count = 0; count < MAX_PARAMETERS; count += 1) {
    at = afterSpace(text, at);
    if (text.startsWith('</', at)) {
      const end = seek(work, text, '>', at);
      const isEmpty = Object.keys(named).length === 0;
      if (!isEmpty && !isDeclared(named, tool)) return undefined;
      if (!isEmpty || end < 0 || text.startsWith(tag.element, at + 2)) {
        return {
          call: { name, tool, named, positional: [] },
          end: end < 0 ? text.length : end + 1,
          isTruncated: false,
        };
      }
      at = end + 1; // the end of a wrapper
      continue;
    }
    const next = readParameter(text, at, propertiesOf(tool), named, work);
    if (next === undefined) break;
    at = next;
  }
  if (Object.keys(named).length === 0) return undefined;
  return { call: { name, tool, named, positional: [] }, end: at, isTruncated: true };
}

/** A tool that declares its arguments gets at least one of them. */
function isDeclared(named: MutableLoose, tool: ParseTool): boolean {
  return takesAnything(tool) || Object.keys(propertiesOf(tool)).some((key) => Object.hasOwn(named, key));
}

/** Reads the tag of one argument into `named`; gives the place behind it. */
function readParameter(
  text: string,
  at: number,
  properties: JsonObject,
  named: MutableLoose,
  work: ParseWork,
): number | undefined {
  const tag = readOpenTag(text, at);
  if (tag === undefined) return undefined;
  const key = tag.name ?? tag.element;
  if (WRAPPERS.has(key) && !Object.hasOwn(properties, key)) {
    return text[afterSpace(text, tag.bodyStart)] === '<' ? tag.bodyStart : undefined;
  }
  const close = seek(work, text, `</${tag.element}`, tag.bodyStart);
  if (close < 0) return undefined;
  if (key === 'arg_key') {
    const pair = readArgumentPair(text, tag.bodyStart, close, work);
    if (pair !== undefined) setField(named, pair.key, pair.value);
    return pair?.end;
  }
  if (!NAME_ELEMENTS.has(key)) setField(named, key, parameterValue(text.slice(tag.bodyStart, close)));
  const end = seek(work, text, '>', close);
  return end < 0 ? text.length : end + 1;
}

const WRAPPERS: ReadonlySet<string> = new Set(['parameters', 'arguments', 'args', 'input', 'params']);
const NAME_ELEMENTS: ReadonlySet<string> = new Set(['name', 'tool_name', 'function_name', 'invoke_name']);
const INNER_NAME =
  /\s{0,20}(?:<(name|tool_name|function_name)>\s{0,20}([^<>\n]{1,100}?)\s{0,20}<\/\1>|([\w.:/-]{1,100})\s{0,4}(?=<arg_key>))/y;

/** `<tool_call><name>f</name>…` and `<tool_call>f<arg_key>…`. */
function innerName(text: string, tag: OpenTag): { name: string; end: number } | undefined {
  INNER_NAME.lastIndex = tag.bodyStart;
  const match = INNER_NAME.exec(text);
  const name = match?.[2] ?? match?.[3];
  return match === null || name === undefined ? undefined : { name, end: tag.bodyStart + match[0].length };
}

const ARGUMENT_VALUE = /<\/arg_key>\s{0,20}<arg_value>/y;

function readArgumentPair(
  text: string,
  keyStart: number,
  keyEnd: number,
  work: ParseWork,
): { key: string; value: Loose; end: number } | undefined {
  ARGUMENT_VALUE.lastIndex = keyEnd;
  const match = ARGUMENT_VALUE.exec(text);
  if (match === null) return undefined;
  const start = keyEnd + match[0].length;
  const end = seek(work, text, '</arg_value>', start);
  if (end < 0) return undefined;
  return { key: text.slice(keyStart, keyEnd).trim(), value: parameterValue(text.slice(start, end)), end: end + 12 };
}

/** Text, without the line breaks next to the tags; JSON where it is JSON of an object or a list. */
function parameterValue(body: string): Loose {
  const text = body.replace(/^\r?\n/, '').replace(/\r?\n[ \t]*$/, '');
  const first = text.trimStart()[0];
  if (first !== '{' && first !== '[') return text;
  return readStrictJson(text, MAX_DEPTH) ?? text;
}

// ReAct lines. An `Action:` that stands before an object or a call is read as those.

interface ActionLine {
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
