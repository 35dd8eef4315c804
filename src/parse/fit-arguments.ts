/** From arguments as written to the arguments of a tool: positions to names, and values to the schema. */
import { isJsonObject, type JsonObject, setField } from '#core';
import { type Coercion, coerceFields, isPlain } from './coerce.ts';
import { type ParseIssue, pointerStep } from './issue.ts';
import {
  CodeText,
  isLooseObject,
  type Loose,
  type LooseObject,
  looseToJson,
  type MutableLoose,
} from './loose-value.ts';
import { type ParseTool, plainName, propertiesOf, schemaOf } from './names.ts';
import { fits, followReference } from './schema.ts';

export interface WrittenArguments {
  readonly named: LooseObject;
  readonly positional: readonly Loose[];
}

/** The arguments and what was done to them; the issues carry pointers into the arguments. */
export interface FittedArguments {
  readonly args: JsonObject;
  readonly issues: readonly ParseIssue[];
}

export function fitArguments(
  written: WrittenArguments,
  tool: ParseTool | undefined,
  sources: ReadonlyMap<object, string>,
): FittedArguments {
  const issues: ParseIssue[] = [];
  if (tool === undefined) return { args: looseToJson(written.named) as JsonObject, issues };
  const named = written.positional.length === 0 ? written.named : nameArguments(written, tool, issues);
  return fitNamed(named, isPlain(named), tool, sources, issues);
}

/** Fits arguments that are known to be JSON. */
export function fitJsonArguments(args: JsonObject, tool: ParseTool): FittedArguments {
  const schema = schemaOf(tool);
  return fits(args, schema, schema) ? { args, issues: NO_ISSUES } : coerceNamed(args, schema, NO_SOURCES, []);
}

export const NO_SOURCES: ReadonlyMap<object, string> = new Map();

function fitNamed(
  named: LooseObject,
  isJson: boolean,
  tool: ParseTool,
  sources: ReadonlyMap<object, string>,
  issues: ParseIssue[],
): FittedArguments {
  const schema = schemaOf(tool);
  if (isJson && fits(named as JsonObject, schema, schema)) return { args: named as JsonObject, issues };
  if (!isJson) reportVariables(named, issues);
  return coerceNamed(named, schema, sources, issues);
}

const NO_ISSUES: readonly ParseIssue[] = [];

function coerceNamed(
  named: LooseObject,
  schema: JsonObject,
  sources: ReadonlyMap<object, string>,
  issues: ParseIssue[],
): FittedArguments {
  const coercion: Coercion = { root: schema, issues, sources };
  return { args: coerceFields(named, followReference(schema, schema) ?? schema, '', coercion, 0), issues };
}

/** `f(city=city)` hands on a variable of a program. */
function reportVariables(named: LooseObject, issues: ParseIssue[]): void {
  for (const [name, value] of Object.entries(named)) {
    if (value instanceof CodeText && plainName(value.text) === plainName(name)) {
      issues.push({ code: 'unresolved', message: 'a variable of that name, not a value', path: pointerStep(name) });
    }
  }
}

/** Positions follow the order in which the schema declares its properties. */
function nameArguments(written: WrittenArguments, tool: ParseTool, issues: ParseIssue[]): LooseObject {
  const { positional, named } = written;
  const properties = propertiesOf(tool);
  const only = positional[0];
  if (isLooseObject(only) && isArgumentObject(only, positional.length, properties)) {
    if (positional.length > 1)
      issues.push({ code: 'argument_dropped', message: 'values beside the object of arguments', path: '' });
    return { ...only, ...named };
  }
  const free = Object.keys(properties).filter((name) => !Object.hasOwn(named, name));
  const result: MutableLoose = {};
  positional.forEach((value, index) => {
    const name = free[index];
    if (name !== undefined) setField(result, name, value);
    else issues.push({ code: 'argument_dropped', message: 'more arguments than the schema declares', path: '' });
  });
  for (const [name, value] of Object.entries(named)) setField(result, name, value);
  return result;
}

/** A single object in place of the arguments: `f({a: 1})`. */
function isArgumentObject(value: LooseObject, count: number, properties: JsonObject): boolean {
  const keys = Object.keys(value);
  const [first] = Object.values(properties);
  if (count > 1 && isJsonObject(first) && !fits({}, { ...first, required: [] }, {})) {
    return keys.length > 0 && keys.every((key) => Object.hasOwn(properties, key));
  }
  const declared = Object.keys(properties);
  return (
    count === 1 && (keys.length === 0 || declared.length !== 1 || keys.some((key) => Object.hasOwn(properties, key)))
  );
}
