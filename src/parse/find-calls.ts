/** Goes through a text once, from left to right, and collects what can be read as a call. */
import { isDefinition, readCalls, unwrapArguments, type WrittenCall } from './call-shapes.ts';
import { CodeText, isLooseObject, type LooseObject } from './loose-value.ts';
import { type ParseTool, propertiesOf, type ToolNames } from './names.ts';
import {
  fillVariables,
  hasStandIn,
  isEmpty,
  isMention,
  readActionLine,
  readOpenTag,
  readTagCall,
  type Variables,
  variablesOf,
} from './notations.ts';
import {
  afterSpace,
  createReader,
  isWordCode,
  isWordStart,
  type ParseLimits,
  type ParseWork,
  type Reader,
} from './reader.ts';
import { answerStart, opensText, programStart, thoughtEnd, turnEnd } from './turns.ts';
import { type Arguments, readArguments, readContainer } from './value-reader.ts';

/**
 * How surely a text makes a call:
 * - `exact`: the very form that the text-mode prompt teaches, at the end of a reply that says nothing else or sets out to
 *   call. Nothing was repaired, guessed or renamed.
 * - `clear`: the tool is named together with its arguments in one of the many forms of models, in a place where a reply
 *   makes a call, behind no words or words that set out to call.
 * - `loose`: a call that the words before it show or lead up to in another way, with all required arguments; or arguments
 *   without a name, which only one tool takes.
 */
export type CallForm = 'exact' | 'clear' | 'loose';

const FORMS: readonly CallForm[] = ['exact', 'clear', 'loose'];

/** Whether a call of that form is at least as sure as asked. */
export function isSureEnough(form: CallForm, strictness: CallForm): boolean {
  return FORMS.indexOf(form) <= FORMS.indexOf(strictness);
}

/** How a call was written. `args` is an object of arguments without a name. */
type CallSyntax = 'object' | 'named' | 'python' | 'react' | 'tag' | 'args';

export interface FoundCall extends WrittenCall {
  readonly syntax: CallSyntax;
  readonly form: CallForm;
  readonly start: number;
  readonly end: number;
  /** What was read is not strict JSON, where JSON was meant. */
  readonly isLoose: boolean;
  readonly isTruncated: boolean;
  /** Why it is made although it was made before, in the model's words. */
  readonly again?: string;
  readonly sources: ReadonlyMap<object, string>;
}

export interface Scan {
  readonly text: string;
  readonly names: ToolNames;
  readonly limits: Required<ParseLimits>;
  readonly work: ParseWork;
  readonly found: FoundCall[];
  /** Objects that may be arguments whose tool is named elsewhere. */
  readonly bare: {
    readonly value: LooseObject;
    readonly reader: Reader;
    readonly start: number;
    readonly end: number;
  }[];
  /** Tools that the text defines itself: `def f(…)`. */
  readonly defined: Set<ParseTool>;
  /** Tools that the text names, in order of their first mention. */
  readonly mentioned: Set<ParseTool>;
  readonly variables: Variables;
  readonly sources: Map<object, string>;
  isTooDeep: boolean;
  /** The text repeats a definition of a tool. */
  hasEcho: boolean;
  /** A line of the text begins a program: an import, a definition. */
  hasProgram: boolean;
}

/** More are not read: the first calls are those that are kept. */
const FOUND_FACTOR = 4;

export function findCalls(text: string, names: ToolNames, limits: Required<ParseLimits>, work: ParseWork): Scan {
  const scan: Scan = {
    text,
    names,
    limits,
    work,
    found: [],
    bare: [],
    defined: new Set(),
    mentioned: new Set(),
    isTooDeep: false,
    hasEcho: false,
    hasProgram: false,
    sources: new Map(),
    variables: variablesOf(text, limits, work),
  };
  let at = answerStart(text);
  while (at < text.length && work.left > 0 && scan.found.length < limits.maxCalls * FOUND_FACTOR) {
    work.left -= 1;
    const next = step(scan, at);
    if (next === undefined) break;
    at = next;
  }
  return scan;
}

/** Reads what is at `at`; gives the place to go on, or nothing when the model's turn ends here. */
function step(scan: Scan, at: number): number | undefined {
  const { text } = scan;
  const code = text.charCodeAt(at);
  if (code === 123 || code === 91) return readBracket(scan, at);
  if (code === 40) return readTuple(scan, at);
  if (code === 60) return readTag(scan, at);
  if (isWordStart(code)) return readName(scan, at);
  if (code === 35 && scan.found.length > 0 && turnEnd(text, at)) return undefined;
  return at + 1;
}

function push(scan: Scan, calls: readonly WrittenCall[], syntax: CallSyntax, reader: Reader, start: number): void {
  for (const call of calls) {
    scan.found.push({
      ...call,
      syntax,
      form: 'clear',
      start,
      end: reader.at,
      isLoose: reader.isLoose,
      isTruncated: reader.isTruncated && call === calls.at(-1),
      sources: reader.sources,
    });
  }
}

/** What an attempt to read something costs beside the characters it looks at. */
const ATTEMPT = 200;

const CALL_AHEAD = /[[{(\s]{0,20}["'`]{0,3}[A-Za-z_$][\w$.\\:/-]{0,200}\(/y;

/** An object or a list. When it says nothing, the places inside it are tried. */
function readBracket(scan: Scan, at: number): number {
  const { text, work } = scan;
  if (text[at] === '[' && !'{["\'(`\\\u201c\u2018'.includes(text.charAt(afterSpace(text, at + 1)))) return at + 1;
  work.left -= ATTEMPT;
  CALL_AHEAD.lastIndex = at + 1;
  if (CALL_AHEAD.test(text)) return at + 1;
  const reader = createReader(text, at, scan.limits.maxDepth, work, scan.sources);
  const value = readContainer(reader);
  if (reader.isTooDeep) {
    scan.isTooDeep = true;
    return reader.at;
  }
  if (value === undefined) return at + 1;
  const reading = readCalls(value, scan.names);
  if (reading.kind === 'calls') {
    push(
      scan,
      reading.calls.map((call) => filledCall(scan, call, at)),
      'object',
      reader,
      at,
    );
    return reader.at;
  }
  if (reading.kind === 'echo') {
    scan.hasEcho = true;
    return reader.at;
  }
  if (text[at] === '{' && isLooseObject(value)) {
    scan.bare.push({ value, reader, start: at, end: reader.at });
    if (Object.keys(value).length > 0 && !reader.isLoose && !reader.isTruncated) return reader.at;
  }
  return at + 1;
}

function filledCall(scan: Scan, call: WrittenCall, at: number): WrittenCall {
  return call.tool === undefined ? call : { ...call, ...fillVariables(call, scan.variables, at) };
}

const NAMED_TUPLE = /\(\s{0,8}["'][^"'\n]{1,200}["']\s{0,8},\s{0,8}\{/y;

/** `("name", {...})`. */
function readTuple(scan: Scan, at: number): number {
  if (!'"\' '.includes(scan.text.charAt(at + 1))) return at + 1;
  NAMED_TUPLE.lastIndex = at;
  if (!NAMED_TUPLE.test(scan.text)) return at + 1;
  const reader = createReader(scan.text, at, scan.limits.maxDepth, scan.work, scan.sources);
  const value = readContainer(reader);
  if (value === undefined) return at + 1;
  const reading = readCalls(value, scan.names);
  if (reading.kind !== 'calls') return at + 1;
  push(scan, reading.calls, 'object', reader, at);
  return reader.at;
}

const TAG_START = /[A-Za-z_|]/;

function readTag(scan: Scan, at: number): number | undefined {
  const { text } = scan;
  if (!TAG_START.test(text.charAt(at + 1))) return at + 1;
  scan.work.left -= ATTEMPT;
  const skip = thoughtEnd(text, at, scan.work);
  if (skip !== undefined) return skip;
  if (scan.found.length > 0 && turnEnd(text, at)) return undefined;
  const tag = readOpenTag(text, at);
  if (tag === undefined) return at + 1;
  if (scan.found.length > 0 && text.startsWith(text.slice(at, tag.bodyStart), afterSpace(text, tag.bodyStart)))
    return undefined;
  const call = readTagCall(text, tag, scan.names, scan.work);
  if (call !== undefined) {
    scan.work.left -= call.end - at;
    const reader = createReader(text, call.end, scan.limits.maxDepth, scan.work, scan.sources);
    reader.isTruncated = call.isTruncated;
    push(scan, [call.call], 'tag', reader, at);
    return call.end;
  }
  if (tag.name === undefined) return tag.bodyStart;
  const named = readNamedObject(scan, tag.name, afterSpace(text, tag.bodyStart), at);
  return named ?? tag.bodyStart;
}

/** A word: the name of a tool before its arguments, a line of ReAct, or nothing. */
function readName(scan: Scan, at: number): number | undefined {
  const { text } = scan;
  const end = nameEnd(text, at);
  if (isLineStart(text, at)) {
    scan.hasProgram ||= programStart(text, at);
    if (scan.found.length > 0 && (turnEnd(text, at) || programStart(text, at))) return undefined;
    const action = readActionLine(text, at, scan);
    if (action !== undefined) {
      push(scan, [action.call], 'react', action.reader, at);
      return action.reader.at;
    }
  }
  if (!scan.names.mayEndWith(text.charCodeAt(end - 1))) return end;
  const written = text.slice(at, end);
  const name = written.includes('\\') ? written.replaceAll('\\', '') : written;
  const resolved = scan.names.resolve(name);
  if (resolved === undefined) return end;
  const { tool } = resolved;
  scan.work.left -= ATTEMPT;
  scan.mentioned.add(tool);
  const open = QUOTES.has(text.charAt(end)) && text[end + 1] === '(' ? end + 1 : end;
  if (text[open] === '(') {
    if (!isDefinitionOf(text, at))
      return resolved.isPartial && scan.defined.has(tool) ? end : readCall(scan, name, tool, at, open);
    scan.defined.add(tool);
    return end;
  }
  if (resolved.isPartial) return end;
  const object = objectAhead(text, end);
  return (object === undefined ? undefined : readNamedObject(scan, name, object, at)) ?? end;
}

/** The end of a dotted name. A dot at the end of a sentence is not part of the name. */
function nameEnd(text: string, at: number): number {
  let end = at + 1;
  for (; end < text.length; end += 1) {
    const code = text.charCodeAt(end);
    if (isWordCode(code)) continue;
    const isJoint = code === 46 || code === 45 || code === 47 || code === 58 || (code === 92 && text[end + 1] === '_');
    if (!isJoint || !isWordCode(text.charCodeAt(end + 1))) break;
  }
  return end;
}

function isLineStart(text: string, at: number): boolean {
  for (let index = at - 1; index >= 0 && index > at - 64; index -= 1) {
    const char = text[index];
    if (char === '\n') return true;
    if (char !== ' ' && char !== '*' && char !== '#' && char !== '>' && char !== '-' && char !== '\t') return false;
  }
  return at < 64;
}

const DEFINING =
  /\b(?:def|function|func|fn|fun|class|async|void|static|public|import|rpc)\s+$|(?:^|\n)[ \t]*(?:(?:public|private|protected|static|final|abstract|override|async|export|declare|virtual)\s+)+(?:[\w<>[\],.]{1,40}\s+){0,2}$/;
/** What follows the parameters of a function where its body begins. */
const BODY =
  /\s{0,4}(?:(?:->|:)\s?[\w<>[\],. |]{1,60}|\([\w, *.]{1,60}\)|[\w.]{1,40}|throws [\w, ]{1,60})?\s{0,4}\{\s*(?:\n|\/\/|return\b)/y;

/** All arguments are what a function or a loop around it has: `(input) => f(input)`, `for row in rows: f(row["id"])`. */
function takesParameters({ positional, named }: Arguments, text: string): boolean {
  const values = [...positional, ...Object.values(named)];
  return (
    values.length > 0 &&
    values.every((value) => {
      const variable = value instanceof CodeText ? /^[A-Za-z_]\w{0,40}(?=$|[.[])/.exec(value.text)?.[0] : undefined;
      return variable !== undefined && isParameter(variable, text);
    })
  );
}

function isParameter(variable: string, text: string): boolean {
  const name = `\\b${variable}\\b`;
  const declared = `\\([^()\\n]{0,80}${name}[^()\\n]{0,80}\\)\\s*(?:=>|:$|\\{)|${name}\\s*=>|\\bfor\\b[^\\n]{0,20}${name}[^\\n]{0,20} (?:in|of)\\b`;
  return new RegExp(declared, 'm').test(text);
}

function isDefinitionOf(text: string, at: number): boolean {
  return DEFINING.test(text.slice(Math.max(0, at - 100), at));
}

const QUOTES: ReadonlySet<string> = new Set(['"', "'", '`']);

/** In prose and programs `readFile(…)` and `list.search(…)` are of that program, not the tools `read_file` and `search`. */
function isAnotherFunction(name: string, tool: ParseTool): boolean {
  const written = name.replace(NAMESPACE, '').replaceAll(JOINTS, '_');
  return !tool.name.replaceAll(JOINTS, '_').endsWith(written);
}

/** Words that models put before the name of a tool. */
const NAMESPACE = /^(?:functions?|tools?|api|default_api|client)[.:]/i;
const JOINTS = /[./:-]/g;

/** `name(…)`. */
function readCall(scan: Scan, name: string, tool: ParseTool, at: number, open: number): number {
  const reader = createReader(scan.text, open, scan.limits.maxDepth, scan.work, scan.sources);
  const args = readArguments(reader);
  scan.isTooDeep ||= reader.isTooDeep;
  if (args === undefined || reader.isTooDeep) return Math.max(open + 1, reader.isTooDeep ? reader.at : 0);
  BODY.lastIndex = reader.at;
  if (BODY.test(scan.text)) {
    scan.defined.add(tool);
    return reader.at;
  }
  const filled = fillVariables(args, scan.variables, at);
  if (takesParameters(filled, scan.text)) return reader.at;
  if (isMention(filled, tool, opensText(scan.text, at)) || (reader.isTruncated && isEmpty(filled))) return reader.at;
  if (!opensText(scan.text, at) && (hasStandIn(filled) || isAnotherFunction(name, tool))) return reader.at;
  const only = filled.positional[0];
  if (filled.positional.length === 1 && isLooseObject(only) && isDefinition(only, tool)) return reader.at;
  push(scan, [{ name, tool, ...filled }], 'python', { ...reader, isLoose: false }, at);
  return reader.at;
}

const OBJECT_AHEAD = /["'`*]{0,3}\s{0,20}(?:[:=,]|=>|->)?\s{0,20}(?:```\w{0,12}\s{0,8})?\{/y;

function objectAhead(text: string, end: number): number | undefined {
  OBJECT_AHEAD.lastIndex = end;
  return OBJECT_AHEAD.test(text) ? OBJECT_AHEAD.lastIndex - 1 : undefined;
}

/** The name of a tool, then an object that can be its arguments. */
function readNamedObject(scan: Scan, name: string, open: number, start: number): number | undefined {
  const tool = scan.names.resolve(name)?.tool;
  if (tool === undefined || scan.text[open] !== '{') return undefined;
  const reader = createReader(scan.text, open, scan.limits.maxDepth, scan.work, scan.sources);
  const value = readContainer(reader);
  if (!isLooseObject(value) || readCalls(value, scan.names).kind !== 'none') return undefined;
  const args = unwrapArguments(value, tool);
  if (isDefinition(args, tool)) return undefined;
  const properties = propertiesOf(tool);
  const keys = Object.keys(args);
  if (keys.length > 0 && !keys.some((key) => Object.hasOwn(properties, key))) return undefined;
  push(scan, [{ name, tool, named: args, positional: [] }], 'named', reader, start);
  return reader.at;
}
