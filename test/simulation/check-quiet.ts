/** What must hold at a moment at which nobody drives anything and nothing is due: what is parked can be seen as what it is. */
import type { Entry, WaitRow } from '#core';
import type { Journal, RunRecord } from '#journal';
import type { OpenWait } from '#pilotage/journal';
import { openCallWaits } from './call-waits-by-hand.ts';
import { checkWoken } from './check-background.ts';
import type { Ledger } from './ledger.ts';
import { openPauses, toldOfTasks, waitsIn } from './waits-by-hand.ts';

interface Parked {
  readonly record: RunRecord;
  readonly entries: readonly Entry[];
  /** The tokens of its open pauses. */
  readonly asks: ReadonlySet<string>;
}

/** All that waits, page by page. */
export async function everyWait(journal: Journal): Promise<readonly OpenWait[]> {
  const waits: OpenWait[] = [];
  for (let page = [...(await journal.waits.list({ limit: PAGE }))]; page.length > 0; ) {
    waits.push(...page);
    page = [...(await journal.waits.list({ limit: PAGE, after: page.at(-1)?.number ?? 0 }))];
  }
  return waits;
}

/** Few, so that there are pages. */
const PAGE = 3;
/** From a free slot to a claim, where each answer of the store takes its time. */
const CLAIMED_WITHIN_MS = 10_000;

interface Quiet {
  readonly now: number;
  readonly ledger: Ledger;
  /** Everybody's clock is the store's. */
  readonly isOnOneClock: boolean;
  /** News wakes planners. */
  readonly isWoken: boolean;
  /** Whoever wants to go on with a run can. */
  readonly isUndisturbed: boolean;
}

/** Checks nothing while some run is driven or due. */
export async function checkQuiet(journal: Journal, quiet: Quiet): Promise<void> {
  const { now, ledger, isOnOneClock, isWoken, isUndisturbed } = quiet;
  const parked = new Map<string, Parked>();
  for (const [id, { endedAt, entries, isLeftForNow }] of ledger.runs) {
    if (endedAt !== undefined) continue;
    const record = await journal.get(id);
    const isOpen =
      record === undefined ||
      record.lease !== undefined ||
      record.wakeAt === undefined ||
      (record.wakeAt !== null && (record.wakeAt <= now || isLeftForNow));
    if (isOpen) {
      for (const cancel of ledger.sessions.cancels) delete cancel.quietSince;
      return;
    }
    // Its turn has not come.
    if (record.waits === true && record.status === 'pending') {
      const cancel = ledger.sessions.cancels.find(({ run, by }) => run === id && by.alive);
      if (cancel === undefined || !isUndisturbed) continue;
      // Whoever has cancelled it may just have got a slot for it, which nobody sees from outside.
      cancel.quietSince ??= now;
      if (now - cancel.quietSince > CLAIMED_WITHIN_MS)
        ledger.violated('session', 'it waits for its turn, and was cancelled', id);
      continue;
    }
    // It begins later, and nobody has told it anything.
    if (record.status === 'pending') {
      const [first, ...others] = entries;
      const startsAt = first?.kind === 'started' ? first.startsAt : undefined;
      if (record.wakeAt !== startsAt || others.length > 0)
        ledger.violated(
          'starts',
          `it is pending until ${String(record.wakeAt)}, and begins at ${String(startsAt)}`,
          id,
        );
      continue;
    }
    const left = (await journal.inbox(id)).length;
    if (left > 0 && record.wakeAt !== null) return;
    if (left > 0) ledger.violated('wake', `it is parked for good, and ${left} messages wait`, id);
    parked.set(id, { record, entries, asks: new Set(openPauses(entries).map(({ token }) => token)) });
  }
  const index = parked.size === 0 ? new Map() : Map.groupBy(await everyWait(journal), ({ run }) => run);
  for (const [id, run] of parked) {
    checkIndex(id, run, index.get(id) ?? [], ledger);
    if (isOnOneClock) checkTimers(id, run, ledger);
    checkStatus(id, run, ledger);
    if (isWoken) checkWoken(id, run.entries, ledger);
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

/** The index of what waits says of a run what its entries say. */
function checkIndex(id: string, { entries }: Parked, rows: readonly OpenWait[], ledger: Ledger): void {
  const text = ({ id: name, for: what, key, until }: Pick<WaitRow, 'id' | 'for' | 'key' | 'until'>): string =>
    `${name} ${what} ${key ?? '-'} ${until ?? '-'}`;
  const pauses = openPauses(entries).map(({ token, expiresAt }) =>
    text({ id: token, for: 'answer' as const, ...(expiresAt === undefined ? {} : { until: expiresAt }) }),
  );
  const others = openCallWaits(entries).filter((wait) => wait.for !== 'answer');
  const waits = others.map((wait) => text({ ...wait, id: `${wait.step}.${wait.call}.${wait.wait}` }));
  const wanted = [...pauses, ...waits].sort().join('; ');
  const found = rows
    .map((row) => text(row))
    .sort()
    .join('; ');
  if (wanted !== found)
    ledger.violated('waits', `it waits for ${wanted || 'nothing'}, and the index says ${found || 'nothing'}`, id);
}

/** It goes on by itself when the time of a wait has come, unless somebody holds it. */
function checkTimers(id: string, { record: { wakeAt }, entries }: Parked, ledger: Ledger): void {
  if (openPauses(entries).some(({ step, reason }) => step === undefined || reason === 'in_doubt')) return;
  const until = Math.min(...openCallWaits(entries).map((wait) => wait.until ?? Number.POSITIVE_INFINITY));
  // The store counts the length of the wait from when it is told of it.
  const lateMs = ledger.runs.get(id)?.wokenLateMs ?? 0;
  if (until === Number.POSITIVE_INFINITY || (typeof wakeAt === 'number' && wakeAt <= until + lateMs)) return;
  ledger.violated('waits', `a wait of it is over at ${until}, and it goes on at ${String(wakeAt)}`, id);
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
