/**
 * Calls in other notations than JSON: tags, `<invoke name="f"><parameter name="a">1</parameter></invoke>` and its many cousins;
 * the lines of ReAct, `Action: name` and `Action Input: …`; and program code.
 */
import { type JsonObject, setField } from '#core';
import type { WrittenCall } from './call-shapes.ts';
import {
  CodeText,
  isLooseObject,
  type Loose,
  type LooseObject,
  type MutableLoose,
  NumberText,
  readStrictJson,
} from './loose-value.ts';
import { type ParseTool, plainName, propertiesOf, requiredOf, type ToolNames, takesAnything } from './names.ts';
import { afterSpace, createReader, lineEnd, type ParseLimits, type ParseWork, type Reader, seek } from './reader.ts';
import { type Arguments, readContainer, readValue } from './value-reader.ts';

interface TagCall {
  readonly call: WrittenCall;
  readonly end: number;
  readonly isTruncated: boolean;
}

/** A tag that names a tool. What it holds may also be JSON, which is then left to others. */
interface OpenTag {
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

// In program code, some calls are meant, and some only show or define how a call is written.

/** Puts the values of variables that the text sets before the call in their place. */
export function fillVariables(args: Arguments, variables: Variables, at: number): Arguments {
  const fill = (value: Loose): Loose => (value instanceof CodeText ? (variables(value.text, at) ?? value) : value);
  const named: MutableLoose = {};
  for (const [name, value] of Object.entries(args.named)) setField(named, name, fill(value));
  return { positional: args.positional.map(fill), named };
}

export function isEmpty(args: Arguments): boolean {
  return args.positional.length + Object.keys(args.named).length === 0;
}

/** A signature or an empty pair of brackets: `f(a, b)`, `f(a=a)` in a sentence, and `f()` where arguments are needed. */
export function isMention(args: Arguments, tool: ParseTool, opensText: boolean): boolean {
  if (isEmpty(args)) return requiredOf(tool).length > 0;
  const { positional, named } = args;
  const names = Object.entries(named);
  if (positional.length === 0 && opensText) return false;
  const properties = new Set(Object.keys(propertiesOf(tool)).map(plainName));
  return (
    positional.every(
      (value) => value instanceof CodeText && (properties.has(plainName(value.text)) || isEllipsis(value)),
    ) &&
    names.every(
      ([key, value]) => value instanceof CodeText && (plainName(value.text) === plainName(key) || isEllipsis(value)),
    )
  );
}

const STAND_IN = /(?:^|[/_\W])(?:path[/_]to[/_]|your[_-]\w|your[/_ -].{0,40}here$)|^<[\w -]{1,60}>$/i;

/** Whether an argument stands for a value that somebody is to put in, as `path/to/your/file` does: an example, no call. */
export function hasStandIn(args: Arguments): boolean {
  return args.positional.some(isStandIn) || Object.values(args.named).some(isStandIn);
}

function isStandIn(value: Loose): boolean {
  return typeof value === 'string' && value.length < 200 && STAND_IN.test(value);
}

function isEllipsis(value: CodeText): boolean {
  return value.text === '...' || value.text === '…';
}

// Variables around a call: `city = "Paris"` on a line of its own, before `f(city)`.

/** What a name stands for at a place in the text; asked for only where a call has a bare name for an argument. */
export type Variables = (name: string, before: number) => Loose | undefined;

const ASSIGNMENT =
  /(?:^|\n)[ \t]{0,80}(?:(?:const|let|var|final|[A-Z]\w{0,40}(?:<[\w, ]{0,40}>)?(?:\[\])?|int|double|float|boolean|long)[ \t]{1,4})?([A-Za-z_$][\w$]{0,80})[ \t]{0,8}(?::[ \t]?\w{1,20}[ \t]?)?=(?!=)[ \t]{0,8}(?=["'\d[{\-TtFfN])/g;
const MAX_VARIABLES = 200;

export function variablesOf(text: string, limits: Required<ParseLimits>, work: ParseWork): Variables {
  let values: Map<string, { readonly at: number; readonly value: Loose }> | undefined;
  return (name, before) => {
    values ??= readAssignments(text, limits, work);
    const found = values.get(name);
    return found !== undefined && found.at < before ? found.value : undefined;
  };
}

function readAssignments(
  text: string,
  limits: Required<ParseLimits>,
  work: ParseWork,
): Map<string, { readonly at: number; readonly value: Loose }> {
  const values = new Map<string, { readonly at: number; readonly value: Loose }>();
  work.left -= text.length;
  for (const match of text.matchAll(ASSIGNMENT)) {
    const [whole, name] = match;
    if (name === undefined || values.size >= MAX_VARIABLES || work.left <= 0) break;
    const reader = createReader(text, match.index + whole.length, limits.maxDepth, work);
    const value = readLine(reader.text, reader.at) ?? readValue(reader, 'list');
    // A name with two values stands for neither.
    if (values.has(name)) values.set(name, { at: Number.POSITIVE_INFINITY, value: null });
    else if (value !== undefined && isLiteral(value) && !reader.isTruncated)
      values.set(name, { at: match.index, value });
  }
  return values;
}

const LITERAL =
  /(?:"([^"\\\n]{0,400})"|'([^'\\\n]{0,400})'|(-?\d{1,15}(?:\.\d{1,15})?)[LlFfDd]?|([Tt]rue|[Ff]alse))[ \t]{0,8}(?:;|\n|#|\/\/|$)/y;

/** A simple literal that ends with its line. */
function readLine(text: string, at: number): Loose | undefined {
  LITERAL.lastIndex = at;
  const match = LITERAL.exec(text);
  if (match === null) return undefined;
  const quoted = match[1] ?? match[2];
  if (quoted !== undefined) return quoted;
  if (match[3] !== undefined) return Number(match[3]);
  return match[4]?.toLowerCase() === 'true';
}

function isLiteral(value: Loose): boolean {
  if (value instanceof CodeText) return false;
  if (value instanceof NumberText || typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isLiteral);
  return isLooseObject(value) && Object.values(value).every(isLiteral);
}
