/**
 * The objects of a problem, and its facts as tables of the state. A fact `(at a b)` is the entry `a b` of the table `at`, with
 * the value `['a', 'b']`. Beside them stand tables that no file can name: for each combination of known arguments that a method
 * asks for, the facts by these arguments, and a number that tells one state from another. All of it is taken back with the state.
 */
import type { Json } from '#core';
import type { HtnState, HtnTables } from '../state.ts';
import type { Atom, HddlDomain, HddlProblem, Term } from './model.ts';

/** The objects that the variables stand for, by slot; `''` where there is none yet. */
export type Binding = string[];
export type Row = readonly string[];

export interface ObjectSet {
  /** Each object as a row of one, in the order of the files. */
  readonly rows: readonly Row[];
  has(name: string): boolean;
}

export interface World {
  ofType(type: string): ObjectSet;
  /** By the order of their objects in the files. */
  compare(left: Row, right: Row): number;
}

export function objectOf(term: Term, binding: Binding): string {
  return typeof term === 'string' ? term : (binding[term] ?? '');
}

export function objectsOf(terms: readonly Term[], binding: Binding): string[] {
  return terms.map((term) => objectOf(term, binding));
}

export function createWorld(domain: HddlDomain, problem: HddlProblem): World {
  const types = objectsByType(domain, problem);
  const order = new Map([...problem.objects.keys()].map((name, index) => [name, index]));
  const none: ObjectSet = { rows: [], has: () => false };
  return {
    ofType: (type) => types.get(type) ?? none,
    compare: (left, right) => {
      for (const [index, name] of left.entries()) {
        const difference = (order.get(name) ?? 0) - (order.get(right[index] ?? '') ?? 0);
        if (difference !== 0) return difference;
      }
      return 0;
    },
  };
}

function objectsByType(domain: HddlDomain, problem: HddlProblem): ReadonlyMap<string, ObjectSet> {
  const types = new Map<string, Set<string>>();
  for (const [name, type] of problem.objects) {
    for (const ancestor of domain.types.get(type) ?? []) {
      types.set(ancestor, (types.get(ancestor) ?? new Set()).add(name));
    }
  }
  return new Map(
    Array.from(types, ([type, names]): [string, ObjectSet] => [
      type,
      { rows: Array.from(names, (name) => [name]), has: (name) => names.has(name) },
    ]),
  );
}

export interface Fact {
  readonly predicate: string;
  readonly args: Row;
}

/** The facts with these values at the positions that were asked for, in the order of their objects in the files. */
type Select = (state: HtnState, values: readonly string[]) => readonly Row[];

interface Index {
  readonly table: string;
  readonly positions: readonly number[];
}

export interface Facts {
  select(predicate: string, positions: readonly number[]): Select;
  /** What the state begins with, once all that will be asked for has been. */
  tables(): HtnTables;
  /** What is both deleted and added holds afterwards. */
  change(state: HtnState, added: readonly Fact[], deleted: readonly Fact[]): void;
}

export function holds(state: HtnState, { predicate, args }: Atom, binding: Binding): boolean {
  return state.table(predicate).has(keyOf(args, binding));
}

function keyOf(args: readonly Term[], binding: Binding): string {
  let key = '';
  for (let index = 0; index < args.length; index += 1) {
    const name = objectOf(args[index] ?? '', binding);
    key = index === 0 ? name : `${key} ${name}`;
  }
  return key;
}

export function createFacts(domain: HddlDomain, problem: HddlProblem, world: World): Facts {
  const indexes = new Map<string, Index[]>(Array.from(domain.predicates.keys(), (predicate) => [predicate, []]));
  return {
    select: (predicate, positions) => {
      // An index without a known argument would be a copy of all facts for each change.
      if (positions.length === 0) return (state) => allRows(state, predicate).sort(world.compare);
      const table = `:${predicate} ${positions.join(' ')}`;
      const known = indexes.get(predicate) ?? [];
      if (!known.some((index) => index.table === table)) known.push({ table, positions });
      return (state, values) => rowsOf(state.table(table).get(values.join(' ')));
    },
    tables: () => {
      const tables: [string, (readonly [string, Json])[]][] = [];
      const facts: string[] = [];
      for (const [predicate, list] of indexes) {
        const init = problem.init.filter((fact) => fact.predicate === predicate);
        const rows = new Map(init.map(({ args }): [string, Row] => [args.join(' '), args]));
        tables.push([predicate, [...rows]]);
        for (const key of rows.keys()) facts.push(`${predicate} ${key}`);
        const sorted = [...rows.values()].sort(world.compare);
        for (const { table, positions } of list) tables.push([table, grouped(sorted, positions)]);
      }
      return { ...Object.fromEntries(tables), [FINGERPRINT_TABLE]: fingerprintOf(facts) };
    },
    change: (state, added, deleted) => {
      const changed: { readonly fact: string; readonly holds: boolean }[] = [];
      const write = ({ predicate, args }: Fact, isAdded: boolean): void => {
        const key = args.join(' ');
        const table = state.table(predicate);
        if (table.has(key) === isAdded) return;
        if (isAdded) table.set(key, args);
        else table.delete(key);
        for (const index of indexes.get(predicate) ?? []) changeIndex(state, index, args, isAdded, world);
        changed.push({ fact: `${predicate} ${key}`, holds: isAdded });
      };
      for (const fact of deleted) if (!added.some((other) => isSame(fact, other))) write(fact, false);
      for (const fact of added) write(fact, true);
      changeFingerprint(state, changed);
    },
  };
}

function allRows(state: HtnState, predicate: string): Row[] {
  const rows: Row[] = [];
  state.table(predicate).find((_key, row) => {
    rows.push(rowOf(row));
    return false;
  });
  return rows;
}

function grouped(rows: readonly Row[], positions: readonly number[]): [string, Row[]][] {
  const groups = new Map<string, Row[]>();
  for (const row of rows) {
    const key = keyAt(row, positions);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [row]);
    else group.push(row);
  }
  return [...groups];
}

/** A new list each time: the old one is what the state goes back to. */
function changeIndex(
  state: HtnState,
  { table: name, positions }: Index,
  row: Row,
  isAdded: boolean,
  { compare }: World,
): void {
  const table = state.table(name);
  const key = keyAt(row, positions);
  const rows = rowsOf(table.get(key));
  table.set(key, isAdded ? [...rows, row].sort(compare) : rows.filter((other) => compare(other, row) !== 0));
}

function keyAt(row: Row, positions: readonly number[]): string {
  return positions.map((position) => row[position]).join(' ');
}

function isSame(left: Fact, right: Fact): boolean {
  return left.predicate === right.predicate && left.args.every((name, index) => name === right.args[index]);
}

/** Nothing but this file writes these tables. */
function rowOf(value: Json): Row {
  return value as Row;
}

function rowsOf(value: Json | undefined): readonly Row[] {
  return (value ?? []) as readonly Row[];
}

// The fingerprint: one number for the facts that hold.

const FINGERPRINT_TABLE = ':fingerprint';
const KEY = 'facts';
/** Sums of numbers below it are exact. */
const RANGE = 2 ** 52;

function fingerprintOf(facts: Iterable<string>): [key: string, value: number][] {
  let sum = 0;
  for (const fact of facts) sum = (sum + hashOf(fact)) % RANGE;
  return [[KEY, sum]];
}

export function fingerprint(state: HtnState): number {
  return Number(state.get(FINGERPRINT_TABLE, KEY));
}

/** Facts are `predicate object …`. The order in which they came and went makes no difference. */
function changeFingerprint(
  state: HtnState,
  changes: readonly { readonly fact: string; readonly holds: boolean }[],
): void {
  let sum = fingerprint(state);
  for (const { fact, holds } of changes) sum = (sum + (holds ? hashOf(fact) : RANGE - hashOf(fact))) % RANGE;
  state.set(FINGERPRINT_TABLE, KEY, sum);
}

/** 52 bits: two multiplicative hashes of 32 bits side by side, mixed at the end. */
function hashOf(fact: string): number {
  let low = 0x9e3779b9;
  let high = 0x85ebca6b;
  for (let index = 0; index < fact.length; index += 1) {
    const code = fact.charCodeAt(index);
    low = Math.imul(low ^ code, 0x27d4eb2d);
    high = Math.imul(high ^ code, 0x165667b1);
  }
  low = Math.imul(low ^ (low >>> 15) ^ high, 0x2c1b3c6d);
  high = Math.imul(high ^ (high >>> 13) ^ low, 0x297a2d39);
  return ((high ^ (high >>> 16)) >>> 12) * 2 ** 32 + ((low ^ (low >>> 16)) >>> 0);
}
