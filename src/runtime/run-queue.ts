/**
 * Runs that are to be driven here and wait for a slot: by priority, then by age. A burst may hold 100,000 of them, so no look goes through all:
 * those whose tenant is full stand aside until one of its slots is free.
 */
import { Heap, spawnerOf } from '#core';

export interface QueuedRun {
  readonly run: string;
  readonly tenant: string;
  readonly priority: number;
  /** Drive it also when the code has changed since it started. Default false. */
  readonly acceptChanges?: boolean;
  /** How often in a row it could not be claimed. Default 0. */
  readonly tries?: number;
}

interface Place {
  waiting: QueuedRun;
  readonly number: number;
  /** The run waits no more, or has another place. A heap drops such a place when it comes to its top. */
  isLeft: boolean;
}

export class RunQueue {
  readonly #places = new Map<string, Place>();
  readonly #ready = new PlaceHeap();
  /** By tenant: those that were first while the tenant was full. */
  readonly #aside = new Map<string, PlaceHeap>();
  /** By the run that all of them are below, or are. */
  readonly #byRoot = new Map<string, Set<Place>>();
  #number = 0;

  /** A run that waits already keeps its place, unless its priority is another one now. */
  enqueue(waiting: QueuedRun): void {
    const { run } = waiting;
    const known = this.#places.get(run);
    const acceptChanges = known?.waiting.acceptChanges === true || waiting.acceptChanges === true;
    const wanted = { ...waiting, acceptChanges };
    if (known?.waiting.priority === waiting.priority) {
      known.waiting = wanted;
      return;
    }
    this.forget(run);
    const place = { waiting: wanted, number: this.#number, isLeft: false };
    this.#number += 1;
    this.#places.set(run, place);
    this.#ready.push(place);
    const root = rootOf(run);
    const family = this.#byRoot.get(root);
    if (family === undefined) this.#byRoot.set(root, new Set([place]));
    else family.add(place);
  }

  /** The first run that does not stand aside. */
  first(): QueuedRun | undefined {
    return this.#ready.first()?.waiting;
  }

  /** The tenant of the first run is full. */
  setFirstAside(): void {
    const place = this.#ready.pop();
    if (place === undefined) return;
    const { tenant } = place.waiting;
    const aside = this.#aside.get(tenant) ?? new PlaceHeap();
    aside.push(place);
    this.#aside.set(tenant, aside);
  }

  /** The tenant has room for one more. */
  readmit(tenant: string): void {
    const aside = this.#aside.get(tenant);
    if (aside === undefined) return;
    const place = aside.pop();
    if (place === undefined) this.#aside.delete(tenant);
    else this.#ready.push(place);
  }

  /** The first one that is this run, or a task below it. */
  firstBelow(run: string): QueuedRun | undefined {
    let first: Place | undefined;
    for (const place of this.#byRoot.get(rootOf(run)) ?? [])
      if (isBelow(place.waiting.run, run) && (first === undefined || comesBefore(place, first))) first = place;
    return first?.waiting;
  }

  isWaiting(run: string): boolean {
    return this.#places.has(run);
  }

  /** The run waits no more. */
  forget(run: string): void {
    const place = this.#places.get(run);
    if (place === undefined) return;
    place.isLeft = true;
    this.#places.delete(run);
    const root = rootOf(run);
    const family = this.#byRoot.get(root);
    family?.delete(place);
    if (family?.size === 0) this.#byRoot.delete(root);
    // It may be the one that was let in again when its tenant had room.
    this.readmit(place.waiting.tenant);
  }

  /** Nobody waits any more. */
  clear(): void {
    for (const run of this.#places.keys()) this.forget(run);
  }
}

/** What has left counts until it comes to the top. */
class PlaceHeap {
  readonly #heap = new Heap<Place>(comesBefore);

  push(place: Place): void {
    this.#heap.push(place);
  }

  first(): Place | undefined {
    while (this.#heap.first?.isLeft === true) this.#heap.pop();
    return this.#heap.first;
  }

  pop(): Place | undefined {
    this.first();
    return this.#heap.pop();
  }
}

function comesBefore(left: Place, right: Place): boolean {
  const [first, second] = [left.waiting.priority, right.waiting.priority];
  return first === second ? left.number < right.number : first > second;
}

function rootOf(run: string): string {
  let root = run;
  for (let above = spawnerOf(root); above !== undefined; above = spawnerOf(root)) root = above;
  return root;
}

function isBelow(run: string, other: string): boolean {
  for (let id: string | undefined = run; id !== undefined; id = spawnerOf(id)) if (id === other) return true;
  return false;
}
