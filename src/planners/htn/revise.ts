/** Planning what is left: as it stands, or, when that cannot be done, with no more of it planned anew than is needed. */
import { defined, type PilotageError } from '#core';
import { type Item, methodOf } from './item.ts';
import { type HtnLimits, Search, type SearchSpec } from './search.ts';
import { type HtnTrace, traceOf } from './trace.ts';
import { type HtnWork, itemsFrom, type Notes, relinked, rootItems, rootOf } from './work.ts';

/** What a search needs beside the list of what is to be done. */
export type Means = HtnLimits &
  Pick<SearchSpec, 'state' | 'resolve' | 'leaves' | 'fingerprint' | 'isEnough' | 'choose'>;

export interface Solved {
  /** The actions, with checks among them. Absent: there is no plan. */
  readonly plan?: readonly Item[];
  /** Behind an action that was enough: what was not looked at. */
  readonly rest: readonly Item[];
  readonly trace: HtnTrace;
}

interface Found extends Solved {
  /** Where there was no going on. */
  readonly end?: Item;
  /** A branch was given up because a task came to itself. */
  readonly cycle?: PilotageError;
}

/** Nodes that are kept of a trace. */
const TRACE_NODES = 200;

/** @throws PilotageError `htn_cycle` when there is no plan, and a task that comes to itself is why. */
export async function planAnew({ items, notes }: HtnWork, means: Means, signal: AbortSignal): Promise<Solved> {
  const found = await solve(items, notes, means, signal);
  if (found.plan === undefined && found.cycle !== undefined) throw found.cycle;
  return found;
}

/**
 * Goes on with what is left. What has failed, or does not apply any more, is not tried again in the place of its own task,
 * which is planned anew; what stands behind that task stays, if it still applies. If there is no such plan, the task above
 * is planned anew, and so on up to the whole list.
 */
export async function planRest(work: HtnWork, means: Means, signal: AbortSignal, failed?: Item): Promise<Solved> {
  const { notes, top, todo } = work;
  let { items } = work;
  let stuck = failed;
  let trace: HtnTrace = { nodes: [] };
  if (stuck === undefined) {
    items = relinked(items, notes);
    const found = await solve(items, notes, means, signal);
    if (found.plan !== undefined) return found;
    stuck = oneOf(items, found.end);
    trace = found.trace;
  }
  if (stuck !== undefined) noteFailure(stuck, notes);
  for (let place = stuck?.parent; stuck !== undefined && place !== undefined; place = place.parent) {
    notes.again.set(place, true);
    const first = items[0] ?? stuck;
    const again =
      place === top
        ? rootItems(todo, rootOf(first, notes), means.resolve, top, notes)
        : relinked(replaced(items, place), notes);
    const found = await solve(again, notes, means, signal);
    if (found.plan !== undefined) return found;
    trace = found.trace;
  }
  return { rest: [], trace };
}

/** When a goal does not hold after its subgoals, the method that gave the subgoals has failed. */
function noteFailure(stuck: Item, { failed }: Notes): void {
  for (let above = stuck.parent; above !== undefined; above = above.parent) {
    const method = stuck.kind === 'check' && above === stuck.parent ? methodOf(above) : undefined;
    const what = method === undefined ? JSON.stringify(stuck.task) : byMethod(method);
    failed.set(above, new Set(failed.get(above)).add(what));
  }
}

function byMethod(name: string): string {
  return `by ${name}`;
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
  const search = new Search({ ...means, ...failuresOf(notes), todo, trace: TRACE_NODES });
  for (;;) {
    signal.throwIfAborted();
    const status = search.run();
    switch (status) {
      case 'found':
        return { plan: search.plan, rest: itemsFrom(search.rest), trace: traceOf(todo, TRACE_NODES) };
      case 'none': {
        const { end, cycle } = search;
        const why = defined({ end, cycle });
        return { rest: [], trace: traceOf(todo, TRACE_NODES), ...why };
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

/** Keeps a search from what has failed before in the place of a task. */
function failuresOf({ failed, again }: Notes): Pick<SearchSpec, 'isExcluded' | 'isBarred'> {
  if (again.size === 0) return {};
  return {
    isExcluded: ({ task, kind, parent }) => {
      if (kind === 'check') return false;
      const text = JSON.stringify(task);
      for (let above = parent; above !== undefined; above = above.parent) {
        if (again.has(above) && failed.get(above)?.has(text) === true) return true;
      }
      return false;
    },
    isBarred: (item, method) => failed.get(item)?.has(byMethod(method)) === true,
  };
}
