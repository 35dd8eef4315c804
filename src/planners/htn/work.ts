/**
 * What is still to be done in a run, with the tree of tasks above it, and the form in which it is written down with each
 * move. A planner keeps nothing between two moves: it reads all this, and what was done, back from the trajectory.
 */
import {
  asJson,
  defined,
  isJsonObject,
  type Json,
  type JsonObject,
  PilotageError,
  type RunView,
  type Step,
} from '#core';
import { type PlanNode, type PlanStep, planNodes } from '#plans';
import type { HtnEntry, HtnTask } from './domain.ts';
import { Item, itemsOf, methodOf, type Resolve } from './item.ts';
import { applyAction } from './search.ts';
import type { HtnState } from './state.ts';
import { RECORD } from './trace.ts';

/**
 * What an action comes to: a step of a plan. Without an id it is given one. With `again` it is carried out each time it is
 * planned; otherwise a task that is planned anew takes what an equal call of a `once` or `keyed` tool has come to.
 */
export type HtnStep = Omit<PlanStep, 'id' | 'after' | 'when'> & { readonly id?: string };

export interface HtnWork {
  /** The goal of the run when the list was made. */
  readonly goal: string;
  readonly todo: readonly HtnTask[];
  /** Stands above the tasks of the list. */
  readonly top: Item;
  /** In their order. */
  readonly items: readonly Item[];
  readonly notes: Notes;
  /** How many ids were given to steps. */
  readonly ids: number;
}

/** What is known of items beside what a search knows. */
export interface Notes {
  /** Which task of the list it is, of those right under the top. */
  readonly roots: Map<Item, number>;
  /** What has failed on the way to a task: tasks as JSON, methods of it as `by name`. */
  readonly failed: Map<Item, ReadonlySet<string>>;
  /** Tasks that were planned anew: what has failed is not tried there again. */
  readonly again: Map<Item, true>;
  /** How a leaf was filled in. */
  readonly fills: Map<Item, readonly HtnStep[]>;
  /** What was answered, by what was asked: which method, or another text when it was none of those. */
  readonly choices: Map<string, string>;
  /** The ids of the steps of the last decision. None: the item only changes the state. */
  readonly steps: Map<Item, readonly string[]>;
}

const ABOVE_ALL: HtnEntry = { kind: 'task', methods: [] };

/** @param old what was to be done until now: its choices are kept, and its ids not used again. */
export function newWork(goal: string, todo: readonly HtnTask[], resolve: Resolve, old?: HtnWork): HtnWork {
  const top = topOf();
  const notes = newNotes(old?.notes.choices ?? new Map());
  if (old !== undefined) notes.again.set(top, true);
  return { goal, todo, top, items: rootItems(todo, 0, resolve, top, notes), notes, ids: old?.ids ?? 0 };
}

function newNotes(choices: Notes['choices']): Notes {
  return { roots: new Map(), failed: new Map(), again: new Map(), fills: new Map(), choices, steps: new Map() };
}

function topOf(): Item {
  return new Item([''], 'task', ABOVE_ALL, undefined, undefined, 0);
}

/** The tasks of the list from that one on. */
export function rootItems(
  todo: readonly HtnTask[],
  from: number,
  resolve: Resolve,
  top: Item,
  { roots }: Pick<Notes, 'roots'>,
): readonly Item[] {
  const items = itemsFrom(itemsOf(todo.slice(from), resolve, top));
  for (const [index, item] of items.entries()) roots.set(item, from + index);
  return items;
}

export function itemsFrom(first: Item | undefined): readonly Item[] {
  const items: Item[] = [];
  for (let item = first; item !== undefined; item = item.next) items.push(item);
  return items;
}

/** The items as a list that a search can begin with: new ones, of which the same is known. */
export function relinked(items: readonly Item[], notes: Notes): readonly Item[] {
  const copies: Item[] = [];
  let next: Item | undefined;
  for (const item of items.toReversed()) {
    next = new Item(item.task, item.kind, item.entry, item.parent, next);
    copyNote(notes.roots, item, next);
    copyNote(notes.failed, item, next);
    copyNote(notes.again, item, next);
    copyNote(notes.fills, item, next);
    copies.push(next);
  }
  return copies.reverse();
}

function copyNote<T>(notes: Map<Item, T>, from: Item, to: Item): void {
  const note = notes.get(from);
  if (note !== undefined) notes.set(to, note);
}

/** Which task of the list an item belongs to. */
export function rootOf(item: Item, { roots }: Notes): number {
  let at: Item | undefined = item;
  while (at !== undefined) {
    const root = roots.get(at);
    if (root !== undefined) return root;
    at = at.parent;
  }
  return 0;
}

/** A task on the way up from what is left; `of` is the index of the task above it; the first task has none. */
interface PlaceRow {
  readonly task: HtnTask;
  readonly of?: number;
  readonly root?: number;
  /** By which it is being done. */
  readonly method?: string;
  readonly failed?: readonly string[];
  readonly again?: true;
}

interface ItemRow {
  readonly task: HtnTask;
  readonly of: number;
  readonly root?: number;
  readonly check?: true;
  readonly steps?: readonly string[];
  readonly fill?: readonly HtnStep[];
}

interface WorkRecord {
  readonly goal: string;
  readonly ids: number;
  readonly todo: readonly HtnTask[];
  /** Each behind the one above it. */
  readonly places: readonly PlaceRow[];
  readonly items: readonly ItemRow[];
  readonly choices?: Readonly<Record<string, string>>;
}

export function recordOf({ goal, ids, todo, top, items, notes }: HtnWork): JsonObject {
  const places: PlaceRow[] = [];
  const indexes = new Map<Item, number>();
  const placeOf = (item: Item): number => {
    // The way up may be long.
    const missing: Item[] = [];
    for (let at: Item | undefined = item; at !== undefined && !indexes.has(at); at = at.parent) missing.push(at);
    for (const place of missing.reverse()) {
      indexes.set(place, places.length);
      places.push(placeRow(place, place.parent && indexes.get(place.parent), notes));
    }
    return indexes.get(item) ?? 0;
  };
  placeOf(top);
  const rows = items.map((item) => itemRow(item, placeOf(item.parent ?? top), notes));
  const record: WorkRecord = {
    goal,
    ids,
    todo,
    places,
    items: rows,
    ...(notes.choices.size === 0 ? {} : { choices: Object.fromEntries(notes.choices) }),
  };
  return asJson(record);
}

function placeRow(place: Item, of: number | undefined, { roots, failed, again }: Notes): PlaceRow {
  const root = roots.get(place);
  const tried = failed.get(place);
  const method = methodOf(place);
  return {
    task: place.task,
    ...defined({ of, root, method }),
    ...(tried === undefined ? {} : { failed: [...tried] }),
    ...(again.has(place) ? { again: true } : {}),
  };
}

function itemRow(item: Item, of: number, { roots, steps, fills }: Notes): ItemRow {
  const root = roots.get(item);
  const ids = steps.get(item);
  const fill = fills.get(item);
  return {
    task: item.task,
    of,
    ...defined({ root }),
    ...(item.kind === 'check' ? { check: true } : {}),
    ...defined({ steps: ids, fill }),
  };
}

/** The record of a step that such a planner has decided. */
function recordIn({ provenance }: Step): Json | undefined {
  const record = provenance?.[RECORD];
  return isJsonObject(record) && Array.isArray(record['items']) && Array.isArray(record['places']) ? record : undefined;
}

/** @throws PilotageError `htn_invalid_decomposition` for a task that the domain does not know any more. */
function readWork(record: Json, resolve: Resolve): HtnWork {
  const { goal, ids, todo, places, items, choices = {} } = record as unknown as WorkRecord;
  const notes = newNotes(new Map(Object.entries(choices)));
  const above = places.reduce<Item[]>((made, row) => {
    made.push(placeItem(row, made, resolve, notes));
    return made;
  }, []);
  const top = above[0] ?? topOf();
  let next: Item | undefined;
  const left: Item[] = [];
  for (const row of items.toReversed()) {
    const entry = knownEntry(row.task, resolve);
    next = new Item(row.task, row.check === true ? 'check' : entry.kind, entry, above[row.of], next);
    if (row.root !== undefined) notes.roots.set(next, row.root);
    if (row.fill !== undefined) notes.fills.set(next, row.fill);
    if (row.steps !== undefined) notes.steps.set(next, row.steps);
    left.push(next);
  }
  return { goal, todo, top, items: left.reverse(), notes, ids };
}

function placeItem(row: PlaceRow, above: readonly Item[], resolve: Resolve, { roots, failed, again }: Notes): Item {
  const place = row.of === undefined ? topOf() : taskItem(row, above[row.of], resolve);
  if (row.root !== undefined) roots.set(place, row.root);
  if (row.failed !== undefined) failed.set(place, new Set(row.failed));
  if (row.again === true) again.set(place, true);
  return place;
}

function taskItem({ task, method }: PlaceRow, parent: Item | undefined, resolve: Resolve): Item {
  const entry = knownEntry(task, resolve);
  const item = new Item(task, entry.kind, entry, parent, undefined);
  item.method = entry.methods.findIndex(({ name }) => name === method);
  return item;
}

function knownEntry(task: HtnTask, resolve: Resolve): HtnEntry {
  const entry = resolve(task);
  if (entry !== undefined) return entry;
  throw new PilotageError(
    'htn_invalid_decomposition',
    `The run has ${task[0]} in its plan, which the domain does not know any more. Give the planner a new version when the domain changes.`,
  );
}

// What the run has done: the effects of its actions on the state, the values of its steps, and what is left.

/** A step that has ended well. */
export interface DoneStep {
  readonly id: string;
  /** Where in the run its value is: the index of the run's step, and the branch of that. */
  readonly step: number;
  readonly branch: string;
  /** What it was a step of. */
  readonly action: HtnTask;
  readonly tool: string;
  readonly value: Json;
}

export type Observe = (state: HtnState, step: DoneStep) => void;

export interface Past {
  /** The list of the last decision; absent before the first one. */
  readonly work?: HtnWork;
  /** The last step of the planner's own. */
  readonly step?: Step;
  /** The items of the list that are not done. */
  readonly left: readonly Item[];
  /** The first of these that has a step which did not end well, and that step. */
  readonly failed?: { readonly item: Item; readonly id: string; readonly node: PlanNode };
  /** By id of the step, of the whole run. */
  readonly done: ReadonlyMap<string, DoneStep>;
}

/** @param state as it was at the start of the run; it is changed to what it is now. */
export function replay({ trajectory }: RunView, state: HtnState, resolve: Resolve, observe?: Observe): Past {
  const done = new Map<string, DoneStep>();
  let past: Past = { left: [], done };
  for (let index = 0; index < trajectory.count; index += 1) {
    const step = trajectory.step(index);
    const record = step && recordIn(step);
    if (step === undefined || record === undefined) continue;
    past = replayStep(step, readWork(record, resolve), state, done, observe);
  }
  return past;
}

function replayStep(step: Step, work: HtnWork, state: HtnState, done: Map<string, DoneStep>, observe?: Observe): Past {
  const { items, notes } = work;
  const nodes = planNodes(step).values();
  // What has no step is done with the one behind it: when that fails, or there is none, it is looked at again.
  let until = 0;
  for (const [index, item] of items.entries()) {
    const ids = notes.steps.get(item);
    if (ids === undefined) break;
    const own = ids.flatMap((id) => {
      const { value: node } = nodes.next();
      return node === undefined ? [] : [{ node, id }];
    });
    const bad = own.find(({ node }) => node.status !== 'done');
    if (bad !== undefined) return { work, step, left: items.slice(until), failed: { item, ...bad }, done };
    if (own.length === 0) continue;
    for (const passed of items.slice(until, index + 1)) applyAction(passed, state);
    until = index + 1;
    for (const { node, id } of own) {
      const { step: at, id: branch, value = null } = node;
      const ended = { id, step: at, branch, action: item.task, tool: node.branch.tool, value };
      done.set(id, ended);
      observe?.(state, ended);
    }
  }
  return { work, step, left: items.slice(until), done };
}
