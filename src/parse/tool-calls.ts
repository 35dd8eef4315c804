/** From a model's text to the calls in it. */
import { assertOptions, type JsonObject, jsonEquals, type OptionShape, shownName } from '#core';
import { looksLikeArguments, namelessArguments, readCalls } from './call-shapes.ts';
import { exactCalls } from './exact-calls.ts';
import { type CallForm, type FoundCall, findCalls, isSureEnough, type Scan } from './find-calls.ts';
import { type FittedArguments, fitArguments, NO_SOURCES } from './fit-arguments.ts';
import type { ParseIssue } from './issue.ts';
import { CodeText, type Loose, type LooseObject, readStrictJson } from './loose-value.ts';
import { type ParseTool, type ToolNames, toolNames } from './names.ts';
import { callsMade, isSameList } from './place.ts';
import { isTemplate } from './placeholders.ts';
import { afterSpace, createReader, type ParseLimits, type ParseWork, withDefaults, workFor } from './reader.ts';
import { endsText, opensText } from './turns.ts';
import { readArguments } from './value-reader.ts';

export interface ParsedCall {
  /** The declared name of the tool. */
  readonly tool: string;
  readonly args: JsonObject;
  /** How certain it is that the text makes this call. */
  readonly form: CallForm;
  /** The id that the model gave the call, if it gave one. */
  readonly callId?: string;
  /** With `exact`: why the call is made although an equal one was made before, in the model's words. */
  readonly again?: string;
}

export interface ParsedCalls {
  readonly calls: ParsedCall[];
  readonly issues: ParseIssue[];
}

export interface ParseOptions extends ParseLimits {
  /** The least certain form of a call that is taken. Default `loose`: every form. */
  readonly strictness?: CallForm;
}

const OPTIONS: OptionShape<ParseOptions> = {
  ...({ maxChars: 'any?', maxDepth: 'any?', maxCalls: 'any?', maxWorkPerChar: 'any?', strictness: 'any?' } as const),
};

export const DEFAULT_STRICTNESS: CallForm = 'loose';

/**
 * The calls that a text makes of the given tools, in the order written. A text without a call gives no calls. A call of a
 * tool that was not given, or in a form less certain than `strictness` asks for, is an issue and not a call. No text makes the parser throw.
 * @throws PilotageError `invalid_config` when the tools are not a list.
 */
export function parseToolCalls(text: string, tools: readonly ParseTool[], options: ParseOptions = {}): ParsedCalls {
  assertOptions('parseToolCalls', options, OPTIONS);
  const { strictness = DEFAULT_STRICTNESS, ...limits } = options;
  return readToolCalls(text, toolNames(tools), withDefaults(limits), strictness);
}

/** Like `parseToolCalls`, with the parts that are the same for every text of a stream. */
export function readToolCalls(
  text: string,
  names: ToolNames,
  bounds: Required<ParseLimits>,
  strictness: CallForm,
): ParsedCalls {
  const issues: ParseIssue[] = [];
  const read = text.length > bounds.maxChars ? text.slice(0, bounds.maxChars) : text;
  if (read !== text) issues.push({ code: 'limit', message: `only the first ${bounds.maxChars} characters were read` });
  const found =
    exactCalls(read, names, bounds) ?? findStrict(read, names, bounds) ?? findLoose(read, names, bounds, issues);
  const fitted = found.map(
    (call): FittedCall => ({ found: call, fitted: fitArguments(call, call.tool, call.sources) }),
  );
  return present(fitted, read, bounds, strictness, issues);
}

/** The whole text is JSON that says calls. */
function findStrict(text: string, names: ToolNames, limits: Required<ParseLimits>): FoundCall[] | undefined {
  const value = readStrictJson(text, limits.maxDepth);
  if (value === undefined) return undefined;
  const reading = readCalls(value as Loose, names);
  if (reading.kind !== 'calls') return undefined;
  const calls = reading.calls.map(
    (call): FoundCall => ({
      ...call,
      syntax: 'object',
      form: 'clear',
      start: 0,
      end: text.length,
      isLoose: false,
      isTruncated: false,
      sources: NO_SOURCES,
    }),
  );
  return calls.filter((call) => !isTemplate(call, true));
}

function findLoose(
  text: string,
  names: ToolNames,
  limits: Required<ParseLimits>,
  issues: ParseIssue[],
): readonly FoundCall[] {
  const work = workFor(text, limits);
  const scan = findCalls(text, names, limits, work);
  if (work.left <= 0)
    issues.push({ code: 'limit', message: 'the text takes too much work to read; the rest was left out' });
  if (scan.isTooDeep)
    issues.push({ code: 'limit', message: `brackets are nested deeper than ${limits.maxDepth} levels` });
  const known = scan.found.filter(({ tool }) => tool !== undefined);
  if (known.length > 0) return callsMade(text, known, scan.defined);
  const bare = callsMade(text, bareCalls(scan), scan.defined);
  if (bare.length > 0 || scan.hasEcho) return bare;
  const emphatic = scan.found.filter((call) => isEmphatic(call, text));
  return emphatic.length > 0 ? emphatic : unknownCalls(text, names, limits, work);
}

/** A call of a tool that is not there counts only where it is all that the text is about. */
function isEmphatic(call: FoundCall, text: string): boolean {
  return call.syntax === 'react' || opensText(text, call.start) || endsText(text, call.end);
}

function present(
  fitted: readonly FittedCall[],
  text: string,
  limits: Required<ParseLimits>,
  strictness: CallForm,
  issues: ParseIssue[],
): ParsedCalls {
  const { kept: selected, repeated, unknown } = selectCalls(fitted, text);
  const kept = selected.filter(({ found }) => isSureEnough(found.form, strictness));
  for (const { found } of selected) {
    if (isSureEnough(found.form, strictness)) continue;
    issues.push({
      code: 'not_taken',
      message: `a call of ${shownName(found.name)} in a form that is too uncertain to be made`,
    });
  }
  for (const name of new Set(unknown.slice(0, limits.maxCalls).map(({ found }) => shownName(found.name))))
    issues.push({ code: 'unknown_tool', message: `there is no tool named ${name}` });
  if (kept.length > limits.maxCalls)
    issues.push({ code: 'limit', message: `only the first ${limits.maxCalls} calls were kept` });
  const calls: ParsedCall[] = [];
  for (const { found, fitted } of kept.slice(0, limits.maxCalls)) {
    const call = calls.length;
    calls.push({
      tool: found.tool?.name ?? found.name,
      args: fitted.args,
      form: found.form,
      ...(found.callId === undefined ? {} : { callId: found.callId }),
      ...(found.again === undefined ? {} : { again: found.again }),
    });
    for (const issue of callIssues(found)) issues.push({ ...issue, call });
    for (const issue of fitted.issues) issues.push({ ...issue, call });
  }
  for (const { found } of repeated) {
    issues.push({
      code: 'duplicate_dropped',
      message: `the same call of ${shownName(found.name)} was written again`,
    });
  }
  return { calls, issues };
}

function callIssues(found: FoundCall): ParseIssue[] {
  const issues: ParseIssue[] = [];
  const name = shownName(found.name);
  if (found.tool?.name !== found.name) issues.push({ code: 'renamed', message: `the tool was written as ${name}` });
  if (found.isLoose) issues.push({ code: 'repaired', message: 'the text is not well-formed' });
  if (found.isTruncated) issues.push({ code: 'truncated', message: 'the text ends inside the call' });
  for (const field of found.extraFields ?? []) {
    const name = shownName(field);
    issues.push({ code: 'extra_field_dropped', message: `${name} beside the tool and its arguments`, field: name });
  }
  return issues;
}

// A text that is nothing but calls in program syntax, of tools that are not there: the model must be told so.

const OPENING = /\s{0,40}(?:```\w{0,12}\s{0,8})?\[?\s{0,40}/y;
const CALLED = /([A-Za-z_][\w.]{0,100})\((?=\s{0,8}(?:\)|[A-Za-z_]\w{0,60}\s{0,2}=[^=]))/y;
const SEPARATOR = /\s{0,40}[,;]?\s{0,40}/y;

/** The calls, when they are the whole text and all their arguments are named; else none. */
function unknownCalls(
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

// Arguments without a name: an object that can only belong to one tool, which the text names elsewhere.

/** Calls from the objects of a text in which nothing else was a call. */
function bareCalls(scan: Scan): readonly FoundCall[] {
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

// Which of the calls that were found are meant: those of tools that were given, each once, the final version.

interface FittedCall {
  readonly found: FoundCall;
  readonly fitted: FittedArguments;
}

interface Selection {
  readonly kept: readonly FittedCall[];
  readonly repeated: readonly FittedCall[];
  /** Calls of tools that are not there, told only where no other call is, or in one list with it. */
  readonly unknown: readonly FittedCall[];
}

function selectCalls(calls: readonly FittedCall[], text: string): Selection {
  const known = calls.filter(({ found }) => found.tool !== undefined);
  const whole = known.filter(({ found }) => !found.isTruncated);
  const ready = whole.filter(({ fitted }) => !fitted.issues.some(({ code }) => code === 'unresolved'));
  const groups = dropVariants(groupCalls(ready.length > 0 ? ready : whole.length > 0 ? whole : known, text), text);
  return { ...dropRepeats(groups), unknown: calls.filter((call) => isToldUnknown(call.found, known.length)) };
}

function isToldUnknown({ tool, form }: FoundCall, known: number): boolean {
  return tool === undefined && (known === 0 || form === 'exact');
}

type Group = readonly FittedCall[];

/** Calls with only commas, brackets and spaces between them are one list. */
function groupCalls(calls: readonly FittedCall[], text: string): readonly Group[] {
  const groups: FittedCall[][] = [];
  let last: FittedCall | undefined;
  for (const call of calls) {
    const group = groups.at(-1);
    if (last !== undefined && group !== undefined && isSameList(last.found.end, call.found.start, text))
      group.push(call);
    else groups.push([call]);
    last = call;
  }
  return groups;
}

const VARIANT =
  /\b(?:for example|for instance|e\.g\.|alternatively|(?:if|in case) you (?:want|need|prefer|would like|wish)|you (?:can|could) also)\b/i;
const INTRODUCTION_CHARS = 300;

/** Behind the answer, calls that the text introduces as an example or an alternative are not meant. */
function dropVariants(groups: readonly Group[], text: string): readonly Group[] {
  return groups.filter((group, index) => {
    const before = groups[index - 1]?.at(-1)?.found.end;
    const start = group[0]?.found.start;
    if (before === undefined || start === undefined) return true;
    return !VARIANT.test(text.slice(Math.max(before, start - INTRODUCTION_CHARS), start));
  });
}

/** An equal call is the same call, unless the model gave the two calls different ids. */
function dropRepeats(groups: readonly Group[]): Pick<Selection, 'kept' | 'repeated'> {
  const kept: FittedCall[] = [];
  const repeated: FittedCall[] = [];
  for (const call of groups.flat()) (kept.some((other) => isSameCall(other, call)) ? repeated : kept).push(call);
  return { kept, repeated };
}

function isSameCall(left: FittedCall, right: FittedCall): boolean {
  return (
    left.found.tool === right.found.tool &&
    (left.found.callId === right.found.callId || left.found.callId === undefined || right.found.callId === undefined) &&
    jsonEquals(left.fitted.args, right.fitted.args)
  );
}
