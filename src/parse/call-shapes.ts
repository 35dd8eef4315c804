/** Which values are calls of tools: the many ways to write a name and its arguments as an object or a list. */
import { setField } from '#core';
import { field, isLooseList, isLooseObject, type Loose, type LooseObject, type MutableLoose } from './loose-value.ts';
import { type ParseTool, propertiesOf, requiredOf, type ToolNames, takesAnything } from './names.ts';
import { readWhole } from './value-reader.ts';

/** A call as written, before its arguments are fitted to the tool. */
export interface WrittenCall {
  /** The name as the model wrote it. */
  readonly name: string;
  /** The tool that is meant, when it is one of those given. */
  readonly tool?: ParseTool;
  readonly named: LooseObject;
  readonly positional: readonly Loose[];
  readonly callId?: string;
  /** Fields beside the tool and the arguments. */
  readonly extraFields?: readonly string[];
}

/** What a value says: calls, a definition of tools that the model repeats, or nothing. */
export type ValueReading =
  | { readonly kind: 'calls'; readonly calls: readonly WrittenCall[] }
  | { readonly kind: 'echo' }
  | { readonly kind: 'none' };

const NAME_KEYS: readonly string[] = [
  'tool',
  'name',
  'tool_name',
  'toolName',
  'function_name',
  'functionName',
  'function',
  'func',
  'func_name',
  'action',
  'recipient_name',
  'api',
  'api_name',
  'method',
  'tool_call',
  'function_call',
  'call',
];
const ARGUMENT_KEYS: readonly string[] = [
  'args',
  'arguments',
  'parameters',
  'params',
  'input',
  'action_input',
  'actionInput',
  'tool_input',
  'toolInput',
  'tool_args',
  'tool_arguments',
  'function_args',
  'function_arguments',
  'inputs',
  'kwargs',
  'parameter',
  'argument',
  'param',
];
const WRAPPER_KEYS: readonly string[] = [
  'tool_calls',
  'toolCalls',
  'tool_call',
  'function_calls',
  'functionCalls',
  'function_call',
  'functions',
  'function',
  'calls',
  'actions',
  'action',
  'tools',
  'tool_uses',
  'tool_use',
];
const ID_KEYS: readonly string[] = ['callId', 'call_id', 'tool_call_id', 'id'];
const NO_READING: ValueReading = { kind: 'none' };
const ECHO: ValueReading = { kind: 'echo' };
const MAX_WRAPPERS = 4;

export function readCalls(value: Loose, names: ToolNames, depth: number = 0): ValueReading {
  if (depth > MAX_WRAPPERS) return NO_READING;
  if (isLooseList(value)) return readListCalls(value, names, depth);
  return isLooseObject(value) ? readObjectCalls(value, names, depth) : NO_READING;
}

function readListCalls(list: readonly Loose[], names: ToolNames, depth: number): ValueReading {
  const calls: WrittenCall[] = [];
  let hasEcho = false;
  for (let index = 0; index < list.length; index += 1) {
    const item = list[index];
    const next = list[index + 1];
    if (typeof item === 'string' && isLooseObject(next)) {
      const call = namedCall(item, next, names);
      if (call !== undefined) {
        calls.push(call);
        index += 1;
      }
      continue;
    }
    const reading = item === undefined ? NO_READING : readCalls(item, names, depth + 1);
    if (reading.kind === 'calls') calls.push(...reading.calls);
    hasEcho ||= reading.kind === 'echo';
  }
  if (calls.length > 0) return { kind: 'calls', calls };
  return hasEcho ? ECHO : NO_READING;
}

/** `["name", {...}]`. */
function namedCall(name: string, value: LooseObject, names: ToolNames): WrittenCall | undefined {
  const tool = names.resolve(name)?.tool;
  if (tool === undefined) return undefined;
  const args = unwrapArguments(value, tool);
  return isDefinition(args, tool) ? undefined : { name, tool, named: args, positional: [] };
}

function readObjectCalls(value: LooseObject, names: ToolNames, depth: number): ValueReading {
  const call = readNamedObject(value, names);
  if (call !== undefined) return call;
  const keyed = readKeyedObject(value, names);
  if (keyed !== undefined) return keyed;
  for (const key of WRAPPER_KEYS) {
    const inner = field(value, key);
    if (inner === undefined || typeof inner !== 'object') continue;
    const reading = readCalls(inner, names, depth + 1);
    if (reading.kind === 'none') continue;
    if (reading.kind === 'calls' && reading.calls.length === 1)
      return { kind: 'calls', calls: reading.calls.map((one) => withId(one, value)) };
    return reading;
  }
  return NO_READING;
}

/** An object with a field for the name, and one for the arguments or the arguments beside it. */
function readNamedObject(value: LooseObject, names: ToolNames): ValueReading | undefined {
  let unknown: WrittenCall | undefined;
  let hasEcho = false;
  for (const nameKey of NAME_KEYS) {
    const name = field(value, nameKey);
    if (typeof name !== 'string' || name === '') continue;
    const tool = names.resolve(name)?.tool;
    const argumentsKey = ARGUMENT_KEYS.find((key) => key !== nameKey && Object.hasOwn(value, key));
    if (tool === undefined && argumentsKey === undefined) continue;
    const several =
      tool === undefined || argumentsKey === undefined ? [] : argumentSets(writtenArguments(value, argumentsKey), tool);
    if (tool !== undefined && several.length > 0) {
      return { kind: 'calls', calls: several.map((named) => ({ name, tool, named, positional: [] })) };
    }
    const call =
      argumentsKey === undefined
        ? flatCall(value, nameKey, name, tool)
        : argumentCall(value, nameKey, name, argumentsKey, tool);
    if (call === undefined) hasEcho = true;
    else if (tool !== undefined) return { kind: 'calls', calls: [call] };
    else unknown ??= call;
  }
  if (hasEcho) return ECHO;
  return unknown === undefined ? undefined : { kind: 'calls', calls: [unknown] };
}

/** The arguments, also where they were written as text. */
function writtenArguments(value: LooseObject, argumentsKey: string): Loose {
  const args = field(value, argumentsKey) ?? null;
  return typeof args === 'string' ? (readWhole(args, '{[') ?? args) : args;
}

/** `[{…}, {…}]` in place of the arguments: one call for each. */
function argumentSets(args: Loose, tool: ParseTool): readonly LooseObject[] {
  if (!isLooseList(args) || args.length < 2 || !args.every(isLooseObject)) return [];
  return args.every((one) => looksLikeArguments(one, tool)) ? args : [];
}

function argumentCall(
  value: LooseObject,
  nameKey: string,
  name: string,
  argumentsKey: string,
  tool: ParseTool | undefined,
): WrittenCall | undefined {
  const written = writtenArguments(value, argumentsKey);
  const args = isLooseObject(written) && tool !== undefined ? unwrapArguments(written, tool) : written;
  if ((isLooseObject(args) && isDefinition(args, tool)) || isRecord(value, tool)) return undefined;
  const extraFields = Object.keys(value).filter(
    (key) => key !== nameKey && key !== argumentsKey && !isIdKey(key) && key !== 'type',
  );
  const parts = argumentParts(args, tool);
  // A declared argument that slipped out of the arguments is put back.
  const properties = tool === undefined ? {} : propertiesOf(tool);
  const stray = extraFields.filter((key) => Object.hasOwn(properties, key) && !Object.hasOwn(parts.named, key));
  const named: MutableLoose = { ...parts.named };
  for (const key of stray) setField(named, key, field(value, key) ?? null);
  return withId(
    {
      name,
      ...(tool === undefined ? {} : { tool }),
      named,
      positional: parts.positional,
      extraFields: extraFields.filter((key) => !stray.includes(key)),
    },
    value,
  );
}

function argumentParts(args: Loose, tool: ParseTool | undefined): Pick<WrittenCall, 'named' | 'positional'> {
  if (isLooseObject(args)) return { named: tool === undefined ? args : unwrapArguments(args, tool), positional: [] };
  if (isLooseList(args)) {
    const first = args[0];
    if (args.length === 1 && isLooseObject(first)) return { named: first, positional: [] };
    return { named: {}, positional: args };
  }
  return { named: {}, positional: args === null || args === '' ? [] : [args] };
}

/** `{name: tool, a: 1}`. */
function flatCall(
  value: LooseObject,
  nameKey: string,
  name: string,
  tool: ParseTool | undefined,
): WrittenCall | undefined {
  const named: MutableLoose = {};
  const extraFields: string[] = [];
  const properties = tool === undefined ? {} : propertiesOf(tool);
  for (const key of Object.keys(value)) {
    if (key === nameKey || (isIdKey(key) && !Object.hasOwn(properties, key))) continue;
    if (Object.hasOwn(properties, key) || !NOTE_KEYS.has(key)) setField(named, key, field(value, key) ?? null);
    else extraFields.push(key);
  }
  const args = tool === undefined ? named : unwrapArguments(named, tool);
  if (isDefinition(args, tool) || isRecord(value, tool) || (tool !== undefined && !mayBeArguments(args, tool)))
    return undefined;
  if (Object.keys(args).length === 0 && DESCRIBING.some((key) => Object.hasOwn(value, key))) return undefined;
  return withId({ name, ...(tool === undefined ? {} : { tool }), named: args, positional: [], extraFields }, value);
}

const NOTE_KEYS: ReadonlySet<string> = new Set([
  'reasoning',
  'thought',
  'thoughts',
  'type',
  'description',
  'explanation',
]);

/** `{toolName: {…}}`, also with several tools. */
function readKeyedObject(value: LooseObject, names: ToolNames): ValueReading | undefined {
  const calls: WrittenCall[] = [];
  let hasEcho = false;
  for (const key of Object.keys(value)) {
    const resolved = names.resolve(key);
    if (resolved === undefined || resolved.isPartial) continue;
    const args = field(value, key) ?? null;
    const { tool } = resolved;
    const objects = isLooseList(args) && args.length > 0 && args.every(isLooseObject) ? args : [args];
    for (const one of objects) {
      if (isLooseObject(one) && isDefinition(one, tool)) hasEcho = true;
      else if (isLooseList(one) || (isLooseObject(one) && mayBeArguments(one, tool)))
        calls.push({ name: key, tool, ...argumentParts(one, tool) });
    }
  }
  if (calls.length > 0) return { kind: 'calls', calls };
  return hasEcho ? ECHO : undefined;
}

const DESCRIBING: readonly string[] = ['description', 'summary', 'doc', 'docs', 'title'];
const OUTCOMES: readonly string[] = [
  'result',
  'results',
  'output',
  'outcome',
  'status',
  'response',
  'error',
  'observation',
  'returned',
  'duration',
  'timestamp',
  'ts',
  'level',
  'event',
];

/** What a call came to stands beside it: an entry of a log, and not a call. */
function isRecord(value: LooseObject, tool: ParseTool | undefined): boolean {
  const properties = tool === undefined ? {} : propertiesOf(tool);
  return OUTCOMES.some((key) => Object.hasOwn(value, key) && !Object.hasOwn(properties, key));
}

/** Whether the call names a declared argument, or no argument where none is required. */
function mayBeArguments(value: LooseObject, tool: ParseTool): boolean {
  const keys = Object.keys(unwrapArguments(value, tool));
  const properties = Object.keys(propertiesOf(tool));
  return keys.length === 0 || takesAnything(tool) || keys.some((key) => properties.includes(key));
}

/**
 * The arguments inside `{"arguments": {…}}`, when the tool has no argument of that name; also inside a schema whose
 * properties were filled with values.
 */
export function unwrapArguments(value: LooseObject, tool: ParseTool): LooseObject {
  const filled = field(value, 'properties');
  if (isLooseObject(filled) && isFilledIn(filled, tool)) return filled;
  const keys = Object.keys(value);
  const key = keys[0];
  if (keys.length !== 1 || key === undefined || !ARGUMENT_KEYS.some((name) => name === key)) return value;
  const inner = field(value, key);
  const declared = propertiesOf(tool);
  if (!isLooseObject(inner) || Object.hasOwn(declared, key)) return value;
  const names = Object.keys(inner);
  const isMeant =
    names.length === 0 ? Object.keys(declared).length > 0 : names.some((one) => Object.hasOwn(declared, one));
  return isMeant ? inner : value;
}

function isFilledIn(values: LooseObject, tool: ParseTool): boolean {
  const keys = Object.keys(values);
  const declared = propertiesOf(tool);
  return (
    keys.length > 0 &&
    !Object.hasOwn(declared, 'properties') &&
    keys.every((key) => Object.hasOwn(declared, key)) &&
    !Object.values(values).some((value) => isLooseObject(value) && Object.hasOwn(value, 'type'))
  );
}

/**
 * A definition of arguments, not arguments: a JSON Schema, or a type and a description for each one. Unless the tool
 * really takes such things.
 */
export function isDefinition(args: LooseObject, tool: ParseTool | undefined): boolean {
  const declared = tool === undefined ? {} : propertiesOf(tool);
  const isDeclared = (key: string): boolean => Object.hasOwn(declared, key);
  if (isLooseObject(field(args, 'properties')) && !isDeclared('properties')) return true;
  if (Object.hasOwn(args, 'description') && isLooseObject(field(args, 'parameters')) && !isDeclared('parameters'))
    return true;
  const values = Object.values(args);
  return values.length > 0 && values.every(isParameterDefinition);
}

const TYPE_NAMES: ReadonlySet<string> = new Set([
  'string',
  'str',
  'integer',
  'int',
  'number',
  'float',
  'boolean',
  'bool',
  'array',
  'list',
  'tuple',
  'object',
  'dict',
  'any',
  'null',
]);

function isParameterDefinition(value: Loose): boolean {
  if (!isLooseObject(value)) return false;
  const type = field(value, 'type');
  if (typeof type !== 'string' || !TYPE_NAMES.has(type.toLowerCase())) return false;
  return (
    Object.keys(value).length === 1 ||
    ['description', 'items', 'properties', 'enum', 'default', 'required'].some((key) => Object.hasOwn(value, key))
  );
}

function isIdKey(key: string): boolean {
  return ID_KEYS.some((name) => name === key);
}

function withId(call: WrittenCall, value: LooseObject): WrittenCall {
  if (call.callId !== undefined) return call;
  for (const key of ID_KEYS) {
    const id = field(value, key);
    if (typeof id === 'string' && id !== '') return { ...call, callId: id };
  }
  return call;
}

/** An object without a name, with what stands beside its arguments put back among them. */
export function namelessArguments(value: LooseObject): LooseObject {
  const key = ARGUMENT_KEYS.find((name) => isLooseObject(field(value, name)));
  const inner = key === undefined ? undefined : field(value, key);
  if (key === undefined || !isLooseObject(inner)) return value;
  const { [key]: _arguments, ...beside } = value;
  return { ...beside, ...inner };
}

/** Whether an object can be the arguments of the tool: it names only declared ones, and all that are required. */
export function looksLikeArguments(value: LooseObject, tool: ParseTool): boolean {
  const keys = Object.keys(value);
  const properties = propertiesOf(tool);
  return (
    keys.every((key) => Object.hasOwn(properties, key)) &&
    requiredOf(tool).every((key) => Object.hasOwn(value, key)) &&
    !isDefinition(value, tool)
  );
}
