/** What must hold at a moment at which nobody drives anything and nothing is due: what is parked can be seen as what it is. */
import type { Journal, RunRecord } from '../../journal/port.ts';
import { foldEntries, type RunState } from '../../view/run-state.ts';
import type { Ledger } from './ledger.ts';

interface Parked {
  readonly record: RunRecord;
  readonly state: RunState;
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
    parked.set(id, { record, state: foldEntries(entries) });
  }
  for (const [id, run] of parked) {
    checkStatus(id, run, ledger);
    checkTold(id, run.state, parked, ledger);
  }
}

function checkStatus(id: string, { record, state }: Parked, ledger: Ledger): void {
  const asked = state.pauses.length > 0;
  // What the tasks that it waits for ask is asked of it too.
  const waits = (state.open?.waits.length ?? 0) > 0;
  const isRight = asked
    ? record.status === 'paused'
    : record.status === 'waiting' || (waits && record.status === 'paused');
  if (isRight) return;
  ledger.violated(
    'tasks',
    `it is parked with ${state.pauses.length} open pauses, and its status is ${record.status}`,
    id,
  );
}

/** A run knows what its tasks wait for: all of it, and nothing that was answered. */
function checkTold(id: string, { tasks }: RunState, parked: ReadonlyMap<string, Parked>, ledger: Ledger): void {
  for (const task of tasks) {
    if (task.end !== undefined) continue;
    const own = parked.get(task.id)?.state.pauses ?? [];
    const known = new Set(task.pauses.map(({ token }) => token));
    if (own.some(({ token }) => !known.has(token))) {
      ledger.violated('tasks', `it does not know what ${task.id} waits for`, id);
    }
    const isStale = task.pauses.some(
      ({ run, token }) => parked.get(run)?.state.pauses.some((pause) => pause.token === token) !== true,
    );
    if (isStale) ledger.violated('tasks', `it thinks that ${task.id} waits for what was answered`, id);
  }
}
