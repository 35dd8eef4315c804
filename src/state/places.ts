/**
 * Where the items of a list stand that grows with the run, so that nothing walks over all that there ever was: the tasks of a run, and their
 * groups. It is not a part of the state: it is made from the list when somebody asks for it, and goes on with the list as the fold changes it.
 *
 * Invariant: a list that is frozen is never changed. Somebody was shown it, or another state has it too.
 */
import type { TaskEnd } from '#core';

interface Item {
  readonly id: string;
  /** The group that a task is a member of. */
  readonly group?: string;
  /** Absent: it goes on. */
  readonly end?: { readonly status: TaskEnd['status'] | 'completed' };
}

/** The members of a group in this list. */
interface Members {
  readonly places: number[];
  ended: number;
  complete: number;
  /** The place of the first that has failed. */
  failed: number | undefined;
}

class Places {
  readonly byId = new Map<string, number>();
  /** Where those stand that go on, in their order. */
  readonly live = new Set<number>();
  readonly members = new Map<string, Members>();

  add({ id, group, end }: Item, place: number): void {
    this.byId.set(id, place);
    if (end === undefined) this.live.add(place);
    if (group === undefined) return;
    const members = this.members.get(group);
    if (members === undefined) {
      this.members.set(group, { places: [place], ended: 0, complete: 0, failed: undefined });
    } else members.places.push(place);
    if (end !== undefined) this.#count(group, end, place);
  }

  end({ group, end }: Item, place: number): void {
    this.live.delete(place);
    if (group !== undefined && end !== undefined) this.#count(group, end, place);
  }

  #count(group: string, { status }: NonNullable<Item['end']>, place: number): void {
    const members = this.members.get(group);
    if (members === undefined) return;
    members.ended += 1;
    if (status === 'complete') members.complete += 1;
    if (status === 'failed') members.failed = Math.min(place, members.failed ?? place);
  }
}

const KNOWN = new WeakMap<readonly Item[], Places>();

function placesIn(list: readonly Item[]): Places {
  const known = KNOWN.get(list);
  if (known !== undefined) return known;
  const made = new Places();
  for (const [place, item] of list.entries()) made.add(item, place);
  KNOWN.set(list, made);
  return made;
}

export function itemIn<T extends Item>(list: readonly T[], id: string): T | undefined {
  if (list.length === 0) return undefined;
  const place = placesIn(list).byId.get(id);
  return place === undefined ? undefined : list[place];
}

/** Those that have not ended, in their order. */
export function liveIn<T extends Item>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? NONE : at(list, placesIn(list).live);
}

export function membersIn<T extends Item>(list: readonly T[], group: string): readonly T[] {
  return list.length === 0 ? NONE : at(list, placesIn(list).members.get(group)?.places ?? NONE);
}

/** How the members of a group stand. */
export function tallyOf<T extends Item>(
  list: readonly T[],
  group: string,
): { readonly live: number; readonly complete: number; readonly failed: T | undefined } {
  const members = list.length === 0 ? undefined : placesIn(list).members.get(group);
  if (members === undefined) return { live: 0, complete: 0, failed: undefined };
  const { places, ended, complete, failed } = members;
  return { live: places.length - ended, complete, failed: failed === undefined ? undefined : list[failed] };
}

const NONE: readonly never[] = Object.freeze([]);

function at<T>(list: readonly T[], places: Iterable<number>): readonly T[] {
  const found: T[] = [];
  for (const place of places) found.push(list[place] as T);
  return found;
}

/** The list with the item behind the others. @param item is frozen. */
export function withItem<T extends Item>(list: readonly T[], item: T): readonly T[] {
  const own = ownList(list);
  own.push(item);
  KNOWN.get(own)?.add(item, own.length - 1);
  return own;
}

/** The list with the item in the place of the one with its id. @param item is frozen. */
export function withItemReplaced<T extends Item>(list: readonly T[], item: T): readonly T[] {
  const place = placesIn(list).byId.get(item.id);
  const before = place === undefined ? undefined : list[place];
  if (place === undefined || before === undefined) return list;
  const own = ownList(list);
  own[place] = item;
  if (before.end === undefined && item.end !== undefined) KNOWN.get(own)?.end(item, place);
  // It goes on again, which is rare.
  else if (before.end !== item.end) KNOWN.delete(own);
  return own;
}

/** A list that may be changed: this one, or a copy, with which its places go on. */
function ownList<T extends Item>(list: readonly T[]): T[] {
  const own = changeable(list);
  const places = own === list ? undefined : KNOWN.get(list);
  if (places !== undefined) {
    KNOWN.delete(list);
    KNOWN.set(own, places);
  }
  return own;
}

/** The list with the value behind the others. */
export function pushed<T>(list: readonly T[], value: T): readonly T[] {
  const own = changeable(list);
  own.push(value);
  return own;
}

/** This list, or, when it is frozen, a copy. */
function changeable<T>(list: readonly T[]): T[] {
  return Object.isFrozen(list) ? [...list] : (list as T[]);
}
