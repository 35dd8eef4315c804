/** From a model's text to the calls in it. */
import { type JsonObject, shownName } from '#core';
import { bareCalls } from './bare-arguments.ts';
import { type CallForm, isSureEnough } from './call-form.ts';
import { readCalls } from './call-shapes.ts';
import { exactCalls } from './exact-calls.ts';
import { findCalls } from './find-calls.ts';
import { fitArguments, NO_SOURCES } from './fit-arguments.ts';
import type { FoundCall } from './found-call.ts';
import type { ParseIssue } from './issue.ts';
import { type ParseLimits, withDefaults, workFor } from './limits.ts';
import type { Loose } from './loose-value.ts';
import { type ParseTool, type ToolNames, toolNames } from './names.ts';
import { callsMade } from './place.ts';
import { isTemplate } from './placeholders.ts';
import { type FittedCall, selectCalls } from './select-calls.ts';
import { readStrictJson } from './strict-json.ts';
import { endsText, opensText } from './turns.ts';
import { unknownCalls } from './unknown-calls.ts';

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

export const DEFAULT_STRICTNESS: CallForm = 'loose';

/**
 * The calls that a text makes of the given tools, in the order written. A text without a call gives no calls. A call of a
 * tool that was not given, or in a form less certain than `strictness` asks for, is an issue and not a call. No text makes the parser throw.
 * @throws PilotageError `invalid_config` when the tools are not a list.
 */
export function parseToolCalls(text: string, tools: readonly ParseTool[], options: ParseOptions = {}): ParsedCalls {
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
