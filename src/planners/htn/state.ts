/**
 * The state that a search works on: named tables, one object, changed in place. Every change goes on a trail and can be
 * taken back in reverse, to the value, the presence and the place in the order of each key. Nothing is ever copied.
 */
import { type Json, PilotageError } from '#core';

/** A table's keys in the order in which they came; a key that was deleted and set again comes last. */
export interface HtnTable {
  readonly size: number;
  get(key: string): Json | undefined;
  has(key: string): boolean;
  set(key: string, value: Json): void;
  delete(key: string): void;
  /** Changes of the table during the iteration are seen, as with a Map. */
  keys(): IterableIterator<string>;
  /** The first key that the test takes. Several times faster than a loop over `keys`. */
  find(test: (key: string, value: Json) => boolean): string | undefined;
}

export interface HtnState {
  /**
   * Look a table up once and use it: a read is then one look into a Map.
   * @throws PilotageError `invalid_config` for a name it has not.
   */
  table(name: string): HtnTable;
  get(table: string, key: string): Json | undefined;
  set(table: string, key: string, value: Json): void;
  /** How many changes there are to be taken back: the same number again means the same state. */
  mark(): number;
  /** Takes back every change since that mark. */
  undo(mark: number): void;
  /** The tables as they are, by name, in the form that `htnState` takes. */
  tables(): Record<string, [string, Json][]>;
}

export type HtnTables = Readonly<Record<string, Iterable<readonly [key: string, value: Json]>>>;

/** A state with these tables and no others; a table may be empty. */
export function htnState(tables: HtnTables): HtnState {
  return new State(tables);
}

/** One key of a table, in a doubly linked list. A deleted one keeps its neighbours, which is how it finds its place again. */
class Cell {
  readonly table: Table;
  readonly key: string;
  value: Json;
  before: Cell | undefined;
  after: Cell | undefined;

  constructor(table: Table, key: string, value: Json) {
    this.table = table;
    this.key = key;
    this.value = value;
    this.before = table.last;
    this.after = undefined;
  }
}

/** What undoing a change means, in place of a value to put back. */
const ADDED: unique symbol = Symbol('added');
const DELETED: unique symbol = Symbol('deleted');
type Undo = Json | typeof ADDED | typeof DELETED;

/** Two lists of the same length: which cell was changed, and what it was before. */
interface Trail {
  readonly cells: Cell[];
  readonly before: Undo[];
}

class Table implements HtnTable {
  readonly #cells = new Map<string, Cell>();
  readonly #trail: Trail;
  #first: Cell | undefined;
  last: Cell | undefined;

  constructor(trail: Trail) {
    this.#trail = trail;
  }

  get size(): number {
    return this.#cells.size;
  }

  get(key: string): Json | undefined {
    return this.#cells.get(key)?.value;
  }

  has(key: string): boolean {
    return this.#cells.has(key);
  }

  set(key: string, value: Json): void {
    const cell = this.#cells.get(key);
    if (cell === undefined) {
      const added = new Cell(this, key, value);
      this.#link(added);
      this.#note(added, ADDED);
    } else if (cell.value !== value) {
      // What does not change the state leaves no mark: a search tells a cycle by it.
      this.#note(cell, cell.value);
      cell.value = value;
    }
  }

  delete(key: string): void {
    const cell = this.#cells.get(key);
    if (cell === undefined) return;
    this.#unlink(cell);
    this.#note(cell, DELETED);
  }

  keys(): IterableIterator<string> {
    return new Keys(this.#first);
  }

  find(test: (key: string, value: Json) => boolean): string | undefined {
    for (let cell = this.#first; cell !== undefined; cell = cell.after) {
      if (test(cell.key, cell.value)) return cell.key;
    }
    return undefined;
  }

  takeBack(cell: Cell, before: Undo): void {
    if (before === ADDED) this.#unlink(cell);
    else if (before === DELETED) this.#link(cell);
    else cell.value = before;
  }

  #note(cell: Cell, before: Undo): void {
    this.#trail.cells.push(cell);
    this.#trail.before.push(before);
  }

  #link(cell: Cell): void {
    this.#cells.set(cell.key, cell);
    if (cell.before === undefined) this.#first = cell;
    else cell.before.after = cell;
    if (cell.after === undefined) this.last = cell;
    else cell.after.before = cell;
  }

  #unlink(cell: Cell): void {
    this.#cells.delete(cell.key);
    if (cell.before === undefined) this.#first = cell.after;
    else cell.before.after = cell.after;
    if (cell.after === undefined) this.last = cell.before;
    else cell.after.before = cell.before;
  }
}

class Keys implements IterableIterator<string> {
  #cell: Cell | undefined;

  constructor(first: Cell | undefined) {
    this.#cell = first;
  }

  next(): IteratorResult<string> {
    const cell = this.#cell;
    if (cell === undefined) return { done: true, value: undefined };
    this.#cell = cell.after;
    return { done: false, value: cell.key };
  }

  [Symbol.iterator](): this {
    return this;
  }
}

function assertRows(table: string, rows: unknown): void {
  if (typeof rows === 'object' && rows !== null && Symbol.iterator in rows) return;
  throw new PilotageError('invalid_config', `The table ${JSON.stringify(table)} must be a list of [key, value] pairs.`);
}

class State implements HtnState {
  readonly #tables = new Map<string, Table>();
  readonly #trail: Trail = { cells: [], before: [] };

  constructor(tables: HtnTables) {
    if (typeof tables !== 'object' || tables === null) {
      throw new PilotageError(
        'invalid_config',
        'htnState takes an object of tables, each with pairs of key and value.',
      );
    }
    for (const [name, rows] of Object.entries(tables)) {
      assertRows(name, rows);
      const table = new Table(this.#trail);
      for (const [key, value] of rows) table.set(key, value);
      this.#tables.set(name, table);
    }
    // What it begins with is not to be taken back.
    this.#trail.cells.length = 0;
    this.#trail.before.length = 0;
  }

  table(name: string): Table {
    const table = this.#tables.get(name);
    if (table !== undefined) return table;
    const known = [...this.#tables.keys()].join(', ');
    throw new PilotageError('invalid_config', `The state has no table ${JSON.stringify(name)}; it has ${known}.`);
  }

  get(table: string, key: string): Json | undefined {
    return this.table(table).get(key);
  }

  set(table: string, key: string, value: Json): void {
    this.table(table).set(key, value);
  }

  mark(): number {
    return this.#trail.cells.length;
  }

  undo(mark: number): void {
    const { cells, before } = this.#trail;
    while (cells.length > mark) {
      const cell = cells.pop();
      const old = before.pop();
      if (cell !== undefined && old !== undefined) cell.table.takeBack(cell, old);
    }
  }

  tables(): Record<string, [string, Json][]> {
    const tables: Record<string, [string, Json][]> = {};
    for (const [name, table] of this.#tables) {
      tables[name] = Array.from(table.keys(), (key) => [key, table.get(key) ?? null]);
    }
    return tables;
  }
}
