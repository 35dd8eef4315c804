/** What must hold at a moment at which nobody drives anything and nothing is due: what is parked can be seen as what it is. */
import type { Entry } from '#core';
import type { Journal, RunRecord } from '#journal';
import type { Ledger } from './ledger.ts';
import { openPauses, toldOfTasks, waitsIn } from './waits-by-hand.ts';

interface Parked {
  readonly record: RunRecord;
  readonly entries: readonly Entry[];
  /** The tokens of its open pauses. */
  readonly asks: ReadonlySet<string>;
}

/** Checks nothing while some run is driven or due. */
export async function checkQuiet(journal: Journal, now: number, ledger: Ledger): Promise<void> {
  const parked = new Map<string, Parked>();
  for (const [id, { endedAt, entries, isLeftForNow }] of ledger.runs) {
    if (endedAt !== undefined) continue;
    const record = await journal.get(id);
    if (record === undefined || record.lease !== undefined || record.wakeAt === undefined) return;
    if (record.wakeAt !== null && record.wakeAt <= now) return;
    if (record.wakeAt !== null && isLeftForNow) return;
    const left = (await journal.inbox(id)).length;
    if (left > 0 && record.wakeAt !== null) return;
    if (left > 0) ledger.violated('wake', `it is parked for good, and ${left} messages wait`, id);
    parked.set(id, { record, entries, asks: new Set(openPauses(entries).map(({ token }) => token)) });
  }
  for (const [id, run] of parked) {
    checkStatus(id, run, ledger);
    checkTold(id, run, parked, ledger);
  }
}

function checkStatus(id: string, { record, entries, asks }: Parked, ledger: Ledger): void {
  // What the tasks that it waits for ask is asked of it too.
  const waits = waitsIn(entries).some(({ until }) => until === Number.POSITIVE_INFINITY);
  const isRight =
    asks.size > 0 ? record.status === 'paused' : record.status === 'waiting' || (waits && record.status === 'paused');
  if (isRight) return;
  ledger.violated('tasks', `it is parked with ${asks.size} open pauses, and its status is ${record.status}`, id);
}

/** A run knows what its tasks wait for: all of it, and nothing that was answered. */
function checkTold(id: string, { entries }: Parked, parked: ReadonlyMap<string, Parked>, ledger: Ledger): void {
  for (const [task, pauses] of toldOfTasks(entries)) {
    const known = new Set(pauses.map(({ token }) => token));
    const isUnknown = [...(parked.get(task)?.asks ?? [])].some((token) => !known.has(token));
    if (isUnknown) ledger.violated('tasks', `it does not know what ${task} waits for`, id);
    const isStale = pauses.some(({ run, token }) => parked.get(run)?.asks.has(token) !== true);
    if (isStale) ledger.violated('tasks', `it thinks that ${task} waits for what was answered`, id);
  }
}
