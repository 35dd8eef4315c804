/** What a planner knows of its world: operators that change the state, and methods that say how a task is done. */

import { assertOptions, type Json, type OptionShape, PilotageError } from '#core';
import type { HtnState } from './state.ts';

/** The name of an operator or of a task with its arguments; `['goal', table, key, value]` wants that entry to have that value. */
export type HtnTask = readonly [name: string, ...args: Json[]];

/** Tests whether it applies, and then changes the state. `false`: it does not apply; what it had changed is taken back. */
export type Operator = (state: HtnState, ...args: never[]) => boolean;

/**
 * What is to be done instead, in that order. `undefined` or `false`: it does not apply. It changes nothing. A generator
 * gives several such lists: the next one is asked for when the one before has led nowhere and the state is as it was.
 */
export type Method = (
  state: HtnState,
  ...args: never[]
) => readonly HtnTask[] | Iterator<readonly HtnTask[], void, void> | false | undefined;

/**
 * In the order in which they are tried. A method of a list is called by the name of its function, or `method 1` and so on.
 * An empty list: the task is a leaf, which is left to the `fill` of the planner.
 */
export type Methods = Method | readonly Method[] | Readonly<Record<string, Method>>;

export interface HtnDomainSpec {
  readonly operators: Readonly<Record<string, Operator>>;
  readonly tasks?: Readonly<Record<string, Methods>>;
  /** By table: how an entry of it gets a value. The methods are given key and value. */
  readonly goals?: Readonly<Record<string, Methods>>;
  /**
   * Tells states apart. With it a search that comes to the same tasks in the same state again gives up there, so moves
   * that can be taken back do not go on for ever. What a method gives must then depend on state and arguments alone.
   */
  readonly fingerprint?: (state: HtnState) => string | number;
}

/** The word that makes a goal of a task. */
export const GOAL = 'goal';

/** As a search calls it: what it gives is looked at before it is used. */
export type DomainFunction = (state: HtnState, ...args: readonly Json[]) => unknown;

interface NamedMethod {
  readonly name: string;
  readonly run: DomainFunction;
}

/** What a name stands for. Only an action has an operator, only a task and a goal have methods. */
export interface HtnEntry {
  readonly kind: 'action' | 'task' | 'goal' | 'leaf';
  readonly operator?: DomainFunction;
  readonly methods: readonly NamedMethod[];
}

export interface HtnDomain {
  /** Operators and tasks by name. */
  readonly entries: ReadonlyMap<string, HtnEntry>;
  /** By table. */
  readonly goals: ReadonlyMap<string, HtnEntry>;
  readonly fingerprint?: (state: HtnState) => string | number;
}

const SPEC: OptionShape<HtnDomainSpec> = {
  operators: 'object',
  tasks: 'object?',
  goals: 'object?',
  fingerprint: 'function?',
};

/** @throws PilotageError `invalid_config` for a name that is used twice, or a value that is not a function. */
export function htnDomain(spec: HtnDomainSpec): HtnDomain {
  assertOptions('htnDomain', spec, SPEC);
  const { operators, tasks = {}, goals = {}, fingerprint } = spec;
  const entries = new Map<string, HtnEntry>();
  for (const [name, run] of Object.entries(operators)) {
    assertFunction(run, `The operator ${name}`);
    add(entries, name, { kind: 'action', operator: run as DomainFunction, methods: [] });
  }
  for (const [name, given] of Object.entries(tasks)) {
    const methods = namedMethods(given, `The task ${name}`);
    add(entries, name, { kind: methods.length === 0 ? 'leaf' : 'task', methods });
  }
  const byTable = Object.entries(goals).map(([table, given]): [string, HtnEntry] => {
    return [table, { kind: 'goal', methods: namedMethods(given, `The goal ${table}`) }];
  });
  const told = fingerprint === undefined ? {} : { fingerprint };
  return Object.freeze({ entries, goals: new Map(byTable), ...told });
}

function add(entries: Map<string, HtnEntry>, name: string, entry: HtnEntry): void {
  if (name === GOAL) throw misconfigured(`No operator or task can have the name ${GOAL}: it marks goals.`);
  if (entries.has(name)) throw misconfigured(`${name} is both an operator and a task. Give each a name of its own.`);
  entries.set(name, entry);
}

function namedMethods(given: Methods, what: string): readonly NamedMethod[] {
  const methods = listed(given).map(([name, run]) => {
    assertFunction(run, `${what}: its ${name}`);
    return { name, run: run as DomainFunction };
  });
  const names = new Set(methods.map(({ name }) => name));
  if (names.size === methods.length) return methods;
  throw misconfigured(`${what} has two methods of one name. Give each a name of its own: they are told apart by it.`);
}

function listed(given: Methods): readonly (readonly [name: string, run: Method])[] {
  if (typeof given !== 'object' && typeof given !== 'function') return [['method 1', given]];
  if (typeof given === 'function') return [[given.name || 'method 1', given]];
  if (!Array.isArray(given)) return Object.entries(given as Readonly<Record<string, Method>>);
  return given.map((run: Method | undefined, index) => [run?.name || `method ${index + 1}`, run as Method]);
}

function assertFunction(value: unknown, what: string): void {
  if (typeof value !== 'function') throw misconfigured(`${what} must be a function.`);
}

function misconfigured(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
