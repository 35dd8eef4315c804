/** Planning what is left: as it stands, or, when that cannot be done, with no more of it planned anew than is needed. */
import type { Item } from './item.ts';
import { type HtnLimits, Search, type SearchSpec } from './search.ts';
import { type HtnTrace, traceOf } from './trace.ts';
import { listed, type Notes, relinked, rootItems, rootOf, type Work } from './work.ts';

/** What a search needs beside the list of what is to be done. */
export type Means = HtnLimits &
  Pick<SearchSpec, 'state' | 'resolve' | 'leaves' | 'fingerprint' | 'isEnough' | 'choose'>;

export interface Solved {
  /** What is to be done; behind an action that was enough also tasks. Absent: there is no plan. */
  readonly items?: readonly Item[];
  readonly trace: HtnTrace;
}

interface Found extends Solved {
  /** Where there was no going on. */
  readonly end?: Item;
}

/** Nodes that are kept of a trace. */
const TRACE_NODES = 200;

export function planAnew({ items, notes }: Work, means: Means, signal: AbortSignal): Promise<Solved> {
  return solve(items, notes, means, signal);
}

/**
 * Goes on with what is left. What has failed, or does not apply any more, is not tried again in the place of its own task,
 * which is planned anew; what stands behind that task stays, if it still applies. If there is no such plan, the task above
 * is planned anew, and so on up to the whole list.
 */
export async function planRest(work: Work, means: Means, signal: AbortSignal, failed?: Item): Promise<Solved> {
  const { notes, top, todo } = work;
  let { items } = work;
  let stuck = failed;
  let trace: HtnTrace = { nodes: [] };
  if (stuck === undefined) {
    items = relinked(items, notes);
    const found = await solve(items, notes, means, signal);
    if (found.items !== undefined) return found;
    stuck = oneOf(items, found.end);
    trace = found.trace;
  }
  for (let place = stuck?.parent; stuck !== undefined && place !== undefined; place = place.parent) {
    notes.failed.set(place, new Set(notes.failed.get(place)).add(JSON.stringify(stuck.task)));
    const first = items[0] ?? stuck;
    const again =
      place === top
        ? rootItems(todo, rootOf(first, notes), means.resolve, top, notes)
        : relinked(replaced(items, place), notes);
    const found = await solve(again, notes, means, signal);
    if (found.items !== undefined) return found;
    trace = found.trace;
  }
  return { trace };
}

/** The item, or the one above it, that is in the list. */
function oneOf(items: readonly Item[], item: Item | undefined): Item | undefined {
  const given = new Set(items);
  let at = item;
  while (at !== undefined && !given.has(at)) at = at.parent;
  return at;
}

/** The list with the task itself in place of what is left under it. */
function replaced(items: readonly Item[], place: Item): readonly Item[] {
  const from = items.findIndex((item) => isUnder(item, place));
  const to = items.findLastIndex((item) => isUnder(item, place));
  return [...items.slice(0, from), place, ...items.slice(to + 1)];
}

function isUnder(item: Item, place: Item): boolean {
  let above = item.parent;
  while (above !== undefined && above !== place) above = above.parent;
  return above === place;
}

async function solve(items: readonly Item[], notes: Notes, means: Means, signal: AbortSignal): Promise<Found> {
  const [todo] = items;
  const isExcluded = excluder(notes);
  const search = new Search({
    ...means,
    todo,
    trace: TRACE_NODES,
    ...(isExcluded === undefined ? {} : { isExcluded }),
  });
  for (;;) {
    signal.throwIfAborted();
    const status = search.run();
    switch (status) {
      case 'found':
        return { items: [...search.plan, ...listed(search.rest)], trace: traceOf(todo, TRACE_NODES) };
      case 'none': {
        const { end } = search;
        return { trace: traceOf(todo, TRACE_NODES), ...(end === undefined ? {} : { end }) };
      }
      case 'asked':
        search.answer(await search.asked);
        break;
      case 'more':
        // A long search lets others go on, and hears the signal.
        await new Promise((resolve) => setImmediate(resolve));
        break;
      default:
        status satisfies never;
    }
  }
}

/** Tells what has failed before in the place of a task that is above. */
function excluder({ failed }: Notes): SearchSpec['isExcluded'] {
  if (failed.size === 0) return undefined;
  return ({ task, kind, parent }) => {
    if (kind === 'check') return false;
    const text = JSON.stringify(task);
    for (let above = parent; above !== undefined; above = above.parent) {
      if (failed.get(above)?.has(text) === true) return true;
    }
    return false;
  };
}
