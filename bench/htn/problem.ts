/** A problem file: named tables as lists of [key, value], goals, and what is to be done. */
import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

export type Value = string | number | boolean;
export type Entry = readonly [key: string, value: Value];
/** A list of entries, an ordered set of names, or one number. */
export type Table = readonly Entry[] | readonly string[] | { readonly scalar: Value };
export type Argument = Value | { readonly goal: string };
export type Item = readonly [name: string, ...args: Argument[]];
/** An operator and its arguments. */
export type Action = readonly [operator: string, ...args: Value[]];

export interface Problem {
  readonly name: string;
  readonly domain: string;
  readonly state: Readonly<Record<string, Table>>;
  readonly goals: Readonly<Record<string, Readonly<Record<string, readonly Entry[]>>>>;
  readonly todo: readonly Item[];
}

/** All `*.json` files of a folder, in the order of their names. @throws Error with one line, for a folder or file that is none */
export function readProblems(folder: string): Problem[] {
  let names: string[];
  try {
    names = readdirSync(folder).filter((name) => name.endsWith('.json'));
  } catch (error) {
    throw new Error(`${folder}: the folder cannot be read (${reason(error)})`);
  }
  if (names.length === 0) throw new Error(`${folder}: no problem files (*.json) there`);
  return names.sort().map((name) => readProblem(join(folder, name)));
}

function readProblem(file: string): Problem {
  let given: unknown;
  try {
    given = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw new Error(`${file}: cannot be read as JSON (${reason(error)})`);
  }
  const fault = faultOf(given);
  if (fault !== undefined) throw new Error(`${file}: ${fault}`);
  const problem = given as Problem;
  return { ...problem, name: problem.name ?? basename(file, '.json'), goals: problem.goals ?? {} };
}

function faultOf(given: unknown): string | undefined {
  if (!isObject(given)) return 'expected one object';
  if (typeof given['domain'] !== 'string') return 'expected "domain", a name';
  const { state, goals = {}, todo } = given;
  if (!isObject(state) || !Object.values(state).every(isTable))
    return 'expected "state", tables of [key, value] or names';
  if (!isObject(goals) || !Object.values(goals).every((goal) => isObject(goal) && Object.values(goal).every(isTable))) {
    return 'expected "goals", tables by name';
  }
  if (!Array.isArray(todo) || !todo.every((item) => Array.isArray(item) && typeof item[0] === 'string')) {
    return 'expected "todo", a list of [name, argument, …]';
  }
  return undefined;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isTable(table: unknown): boolean {
  if (isObject(table)) return 'scalar' in table;
  if (!Array.isArray(table)) return false;
  return table.every(
    (row: unknown) => typeof row === 'string' || (Array.isArray(row) && row.length === 2 && typeof row[0] === 'string'),
  );
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
