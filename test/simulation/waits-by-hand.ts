/** What a run waits for, read off its entries by hand: nothing here asks the fold that it judges. */
import type { Entry, TaskPause } from '#core';
import { undoneTask } from './goals-by-hand.ts';

type Entries = readonly Entry[];
type Of<K extends Entry['kind']> = Extract<Entry, { kind: K }>;

/** Asked, and neither answered nor given up with the call. */
export function openPauses(entries: Entries): Of<'paused'>[] {
  const open = new Map<string, Of<'paused'>>();
  const held = new Set<string>();
  for (const entry of entries) {
    if (entry.kind === 'call_waits')
      for (const { wait } of entry.waits) {
        const place = `${entry.step}.${entry.call}.${wait}`;
        if (entry.held === true) held.add(place);
        else held.delete(place);
      }
    // Nobody listens any more to what an attempt has asked that is over, if its call was to stay open.
    const isOver = entry.kind === 'call_away' || (entry.kind === 'paused' && entry.reason === 'in_doubt');
    if (isOver || entry.kind === 'call_ended') {
      for (const { token, step, call, wait } of open.values())
        if (step === entry.step && (call ?? 0) === entry.call && !(isOver && !held.has(`${step}.${call}.${wait}`)))
          open.delete(token);
    }
    if (entry.kind === 'paused') open.set(entry.token, entry);
    if (entry.kind === 'resumed') open.delete(entry.token);
  }
  return [...open.values()];
}

export interface Wait {
  readonly task: string;
  /** Of a wait for a whole group. */
  readonly group?: string;
  /** The seq of the entry with which it begins. */
  readonly from: number;
  /** The seq of the entry that ends its call; none while it lasts. */
  readonly until: number;
}

export function waitsIn(entries: Entries): Wait[] {
  const ends = new Map<string, number>();
  for (const entry of entries) if (entry.kind === 'call_ended') ends.set(`${entry.step}.${entry.call}`, entry.seq);
  return entries.flatMap((entry) => {
    const undone = undoneTask(entry);
    if (undone !== undefined && entry.kind === 'moved')
      return [{ task: undone, from: entry.seq, until: ends.get(`${entry.step}.0`) ?? Number.POSITIVE_INFINITY }];
    const isWait =
      entry.kind === 'awaiting' || (entry.kind === 'spawned' && (entry.retained || entry.agentCall === true));
    if (!isWait) return [];
    const { task, seq, step, call } = entry;
    const group = entry.kind === 'awaiting' && entry.group !== undefined ? { group: entry.group } : {};
    return [{ task, ...group, from: seq, until: ends.get(`${step}.${call}`) ?? Number.POSITIVE_INFINITY }];
  });
}

/** What each task that has not ended was last said to wait for. */
export function toldOfTasks(entries: Entries): ReadonlyMap<string, readonly TaskPause[]> {
  const told = new Map<string, { readonly pauses: readonly TaskPause[]; readonly asOf: number }>();
  for (const entry of entries) {
    if (entry.kind === 'spawned') told.set(entry.task, { pauses: [], asOf: 0 });
    if (entry.kind === 'task_ended') told.delete(entry.task);
    if (entry.kind !== 'task_paused') continue;
    const before = told.get(entry.task);
    if (before !== undefined && entry.asOf >= before.asOf) told.set(entry.task, entry);
  }
  return new Map([...told].map(([task, { pauses }]) => [task, pauses]));
}

/** The groups whose end comes to the planner by itself: nobody waits for it, and not all of it was given out before. */
export function groupsThatCome(entries: Entries): { readonly group: string; readonly atStep: number }[] {
  const waits = waitsIn(entries);
  const ends = new Map(entries.flatMap((entry) => (entry.kind === 'task_ended' ? [[entry.task, entry.seq]] : [])));
  let atStep = 0;
  return entries.flatMap((entry) => {
    if (entry.kind === 'moved') atStep = entry.step + 1;
    if (entry.kind !== 'group_ended') return [];
    const { group, seq } = entry;
    if (waits.some((wait) => wait.group === group && wait.from < seq && wait.until > seq)) return [];
    const members = entries.flatMap((at) =>
      at.kind === 'spawned' && at.agentCall !== true && at.group === group && at.seq < seq ? [at.task] : [],
    );
    const isGiven = (task: string): boolean =>
      waits.some(
        (wait) =>
          (wait.group === undefined ? wait.task === task : wait.group === group) &&
          wait.until < seq &&
          (ends.get(task) ?? Number.POSITIVE_INFINITY) < wait.until,
      );
    return members.every(isGiven) ? [] : [{ group, atStep }];
  });
}
