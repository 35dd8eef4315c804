/** From the arguments text of a native call to arguments. */
import { isJsonObject, type Json, type JsonObject } from '#core';
import { isDefinition, readCalls, unwrapArguments } from './call-shapes.ts';
import { findCalls } from './find-calls.ts';
import { fitArguments, fitJsonArguments, NO_SOURCES } from './fit-arguments.ts';
import type { ParseIssue } from './issue.ts';
import { isLooseObject, type Loose, type LooseObject, readStrictJson } from './loose-value.ts';
import { type ParseTool, propertiesOf, requiredOf, toolNames } from './names.ts';
import { afterSpace, createReader, type ParseLimits, withDefaults, workFor } from './reader.ts';
import { readContainer } from './value-reader.ts';

export interface ParsedArguments {
  readonly args: JsonObject;
  readonly issues: readonly ParseIssue[];
}

/**
 * The arguments of a native call of `tool`, or `null` when the text cannot be read. An empty text means no arguments.
 * Never throws.
 */
export function parseToolArgs(text: string, tool: ParseTool, limits?: ParseLimits): ParsedArguments | null {
  const bounds = withDefaults(limits);
  if (text.length > bounds.maxChars) return null;
  const value = readStrictJson(text, bounds.maxDepth);
  if (isJsonObject(value)) return fitStrict(value, tool);
  if (text.trim() === '') return fitWritten({}, [], tool, NO_SOURCES, []);
  return parseList(value, tool) ?? parseScalar(text, tool, bounds) ?? parseLoose(text, tool, bounds);
}

function fitStrict(value: JsonObject, tool: ParseTool): ParsedArguments {
  const named = unwrapCall(value, tool);
  if (named !== value) return fitWritten(named, [], tool, NO_SOURCES, [REPAIRED]);
  return fitJsonArguments(value, tool);
}

function fitObject(
  value: LooseObject,
  tool: ParseTool,
  sources: ReadonlyMap<object, string>,
  issues: readonly ParseIssue[],
): ParsedArguments {
  return fitWritten(unwrapCall(value, tool), [], tool, sources, issues);
}

/** The common case, told apart without a list of the keys. */
function beginsDeclared(value: LooseObject, properties: JsonObject): boolean {
  for (const key in value) return Object.hasOwn(properties, key) && !Object.hasOwn(value, 'properties');
  return false;
}

/** A whole call where only its arguments belong. */
function unwrapCall(value: LooseObject, tool: ParseTool): LooseObject {
  const properties = propertiesOf(tool);
  if (beginsDeclared(value, properties)) return value;
  const args = unwrapArguments(value, tool);
  if (args !== value) return args;
  const keys = Object.keys(value);
  if (
    Object.keys(properties).length === 0 ||
    keys.length === 0 ||
    keys.length > 4 ||
    keys.some((key) => Object.hasOwn(properties, key))
  )
    return value;
  const reading = readCalls(value, toolNames([tool]));
  const call = reading.kind === 'calls' && reading.calls.length === 1 ? reading.calls[0] : undefined;
  return call?.tool === undefined ? value : call.named;
}

function fitWritten(
  named: LooseObject,
  positional: readonly Loose[],
  tool: ParseTool,
  sources: ReadonlyMap<object, string>,
  issues: readonly ParseIssue[],
): ParsedArguments {
  const fitted = fitArguments({ named, positional }, tool, sources);
  return { args: fitted.args, issues: [...issues, ...fitted.issues] };
}

const REPAIRED: ParseIssue = { code: 'repaired', message: 'the text is not well-formed' };
const TRUNCATED: ParseIssue = { code: 'truncated', message: 'the text ends inside the arguments' };

/** A list that holds nothing but the object. */
function parseList(value: Json | undefined, tool: ParseTool): ParsedArguments | null {
  const only = Array.isArray(value) && value.length === 1 ? value[0] : undefined;
  return isJsonObject(only) ? fitObject(only, tool, NO_SOURCES, [REPAIRED]) : null;
}

const SCALAR_START = /^\s*["\dtfn-]/;

/** A text that is JSON of one scalar: it holds the object as text, or is the value of the only argument. */
function parseScalar(text: string, tool: ParseTool, limits: Required<ParseLimits>): ParsedArguments | null {
  if (!SCALAR_START.test(text)) return null;
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return null;
  }
  if (value === null) return fitWritten({}, [], tool, NO_SOURCES, [REPAIRED]);
  if (typeof value === 'string' && /^\s*\{/.test(value)) {
    const inner = parseToolArgs(value, tool, limits);
    return inner === null ? null : { args: inner.args, issues: [REPAIRED, ...inner.issues] };
  }
  const name = onlyArgument(tool);
  if (name === undefined) return null;
  const single = fitWritten({ [name]: value }, [], tool, NO_SOURCES, [REPAIRED]);
  return single.issues.some(({ code }) => code === 'mismatch') ? null : single;
}

function onlyArgument(tool: ParseTool): string | undefined {
  const required = requiredOf(tool);
  const names = required.length > 0 ? required : Object.keys(propertiesOf(tool));
  return names.length === 1 ? names[0] : undefined;
}

function parseLoose(text: string, tool: ParseTool, limits: Required<ParseLimits>): ParsedArguments | null {
  const work = workFor(text, limits);
  const at = afterSpace(text, 0);
  if (text[at] === '{') {
    const reader = createReader(text, at, limits.maxDepth, work);
    const value = readContainer(reader);
    if (isLooseObject(value)) {
      const issues = [...(reader.isLoose ? [REPAIRED] : []), ...(reader.isTruncated ? [TRUNCATED] : [])];
      return fitObject(value, tool, reader.sources, issues);
    }
  }
  const scan = findCalls(text, toolNames([tool]), limits, work);
  const call = scan.found.find((one) => one.tool === tool);
  if (call !== undefined) return fitWritten(call.named, call.positional, tool, call.sources, [REPAIRED]);
  const bare = scan.bare.find(({ value }) => isArgumentsOf(value, tool));
  return bare === undefined ? null : fitObject(bare.value, tool, bare.reader.sources, [REPAIRED]);
}

function isArgumentsOf(value: LooseObject, tool: ParseTool): boolean {
  const properties = propertiesOf(tool);
  return Object.keys(value).some((key) => Object.hasOwn(properties, key)) && !isDefinition(value, tool);
}
