/**
 * The facts as tables of the state. A fact `(at a b)` is the entry `a b` of the table `at`, with the value `['a', 'b']`.
 * Beside them stand tables that no file can name: for each combination of known arguments that a method asks for, the
 * facts by these arguments, and a number that tells one state from another. All of it is taken back with the state.
 */
import type { Json } from '#core';
import type { HtnState, HtnTables } from '../state.ts';
import { changeFingerprint, FINGERPRINT_TABLE, fingerprintOf } from './fingerprint.ts';
import type { Atom, HddlDomain, HddlProblem, Term } from './model.ts';
import { type Binding, objectOf, type Row, type World } from './world.ts';

export interface Fact {
  readonly predicate: string;
  readonly args: Row;
}

/** The facts with these values at the positions that were asked for, in the order of their objects in the files. */
export type Select = (state: HtnState, values: readonly string[]) => readonly Row[];

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
