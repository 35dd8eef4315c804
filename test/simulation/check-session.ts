/**
 * Which of the earlier runs of its session a run was told of: its own user's, in the order of their starts, the last of them and those that
 * had not ended.
 */
import type { EndedRun } from './ended-run.ts';
import type { Ledger } from './ledger.ts';
import type { SimulatedMemory } from './script.ts';

interface Turn {
  readonly run: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly entries: number;
}

/** @param standsStill a process may stand still between its look at the session and the start that it stores. */
export function checkSessions(
  runs: ReadonlyMap<string, EndedRun>,
  memory: SimulatedMemory | undefined,
  ledger: Ledger,
  standsStill: boolean,
): void {
  const longAgo = standsStill ? Number.POSITIVE_INFINITY : LONG_AGO;
  const byScope = Map.groupBy(runs.values(), scopeOf);
  for (const own of byScope.values()) {
    const turns = own.flatMap(turnOf).sort((a, b) => a.startedAt - b.startedAt);
    for (const run of own) checkTold(run, turns, memory, ledger, longAgo);
  }
}

function scopeOf({ entries: [first] }: EndedRun): string {
  if (first?.kind !== 'started') return '';
  const { tenant, user, session } = first.identity;
  return JSON.stringify([tenant, user, session]);
}

/** Runs that a user started in the conversation are turns of it. */
function turnOf({ id, entries, landed, endedAt = Number.POSITIVE_INFINITY }: EndedRun): Turn[] {
  const [first] = entries;
  if (first?.kind !== 'started' || first.conversation === false) return [];
  if (first.task !== undefined || first.fork !== undefined) return [];
  return [{ run: id, startedAt: landed[0] ?? 0, endedAt, entries: entries.length }];
}

function checkTold(
  { id, entries: [first], landed }: EndedRun,
  turns: readonly Turn[],
  memory: SimulatedMemory | undefined,
  ledger: Ledger,
  longAgo: number,
): void {
  // What a message is told is decided when its turn has come.
  if (first?.kind !== 'started' || first.fork !== undefined || first.turn !== undefined) return;
  const { history = [], continues, conversation, task } = first;
  const told = continues?.runs ?? [];
  if (history.length > 0) ledger.violated('session', 'it was told texts that nobody gave', id);
  if (memory === undefined || conversation === false || task !== undefined) {
    if (told.length > 0) ledger.violated('session', 'it was told of others unasked', id);
    return;
  }
  const started = landed[0] ?? 0;
  const known = turns.filter(({ startedAt }) => startedAt < started);
  const runs = told.map(({ run }) => run);
  for (const { run, head } of told) {
    const turn = known.find((one) => one.run === run);
    if (turn !== undefined && (head < 1 || head > turn.entries))
      ledger.violated('session', `it was told ${head} entries of ${run}, which has ${turn.entries}`, id);
  }
  // It may have been read some time before the run was stored.
  const isRight = known.some((_, index) => isShown(runs, known.slice(0, index + 1), memory, started));
  if (!isRight && !isShown(runs, [], memory, started)) {
    const what = runs.join(' | ');
    ledger.violated('session', `it was told ${what}; before it were ${known.map(({ run }) => run).join(', ')}`, id);
  }
  if (runs.length === 0 && known.some(({ startedAt }) => startedAt < started - longAgo)) {
    ledger.violated('session', 'it was told nothing of what was before it', id);
  }
}

/** So many things happen in the world while a run is being started, at most. */
const LONG_AGO = 60;

/** @param started what had not ended then is told of also when it is older than the window. */
function isShown(
  runs: readonly string[],
  turns: readonly Turn[],
  { turns: window }: SimulatedMemory,
  started: number,
): boolean {
  // A full window leaves with its older half.
  const least = Math.min(Math.max(1, Math.floor(window / 2)), turns.length);
  const isSorted = runs.every((run, index) => {
    const at = turns.findIndex((turn) => turn.run === run);
    return at >= 0 && at > turns.findIndex((turn) => turn.run === runs[index - 1]);
  });
  if (!isSorted) return false;
  // The longest end that is told without a gap.
  let last = 0;
  while (last < runs.length && turns.at(-1 - last)?.run === runs.at(-1 - last)) last += 1;
  if (last < least) return false;
  const beyond = turns.slice(0, turns.length - Math.min(last, window));
  const isTold = ({ run }: Turn): boolean => runs.includes(run);
  // What had not ended when it was looked at is told.
  if (beyond.some((turn) => turn.endedAt > started && !isTold(turn))) return false;
  return beyond.every((turn) => !isTold(turn) || turn.endedAt > started - LONG_AGO);
}
