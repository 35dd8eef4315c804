/**
 * Which of the earlier runs of its session a run was told of: its own user's, in the order of their starts, the last of them and those that
 * had not ended.
 */
import { isJsonObject, type Json } from '#core';
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
  if (first?.kind !== 'started' || first.fork !== undefined) return;
  const { history = [], continues, context, conversation, task } = first;
  const summary = summaryIn(context?.conversationMemory);
  const told = continues?.runs ?? [];
  if (history.length > 0) ledger.violated('session', 'it was told texts that nobody gave', id);
  if (memory === undefined || conversation === false || task !== undefined) {
    if (told.length > 0 || summary !== undefined) ledger.violated('session', 'it was told of others unasked', id);
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
  const covered = summary === undefined ? [] : [...new Set(summary.split(' '))];
  // It may have been read some time before the run was stored.
  const isRight = known.some((_, index) => isShown(runs, covered, known.slice(0, index + 1), memory, started));
  if (!isRight && !isShown(runs, covered, [], memory, started)) {
    const what = `${runs.join(' | ')}${summary === undefined ? '' : ` after ${summary}`}`;
    ledger.violated('session', `it was told ${what}; before it were ${known.map(({ run }) => run).join(', ')}`, id);
  }
  if (runs.length === 0 && summary === undefined && known.some(({ startedAt }) => startedAt < started - longAgo)) {
    ledger.violated('session', 'it was told nothing of what was before it', id);
  }
}

/** So many things happen in the world while a run is being started, at most. */
const LONG_AGO = 60;

/** @param started what had not ended then may be told of also when it is older than the window. */
function isShown(
  runs: readonly string[],
  covered: readonly string[],
  turns: readonly Turn[],
  { strategy, turns: window, failEvery }: SimulatedMemory,
  started: number,
): boolean {
  const least = Math.min(window, turns.length);
  const most = strategy === 'window' ? least : Math.min(2 * window, turns.length);
  const isSorted = runs.every((run, index) => {
    const at = turns.findIndex((turn) => turn.run === run);
    return at >= 0 && at > turns.findIndex((turn) => turn.run === runs[index - 1]);
  });
  if (!isSorted || (strategy === 'window' && covered.length > 0)) return false;
  // The longest end that is told without a gap.
  let last = 0;
  while (last < runs.length && turns.at(-1 - last)?.run === runs.at(-1 - last)) last += 1;
  if (last < least) return false;
  const beyond = turns.slice(0, turns.length - Math.min(last, most));
  const isTold = ({ run }: Turn): boolean => runs.includes(run);
  // What had not ended when it was looked at is told; what had is told beyond the window only while no summary has it.
  if (beyond.some((turn) => turn.endedAt > started && !isTold(turn))) return false;
  const missed = beyond.filter((turn) => !isTold(turn) && !covered.includes(turn.run));
  if (strategy === 'window') return beyond.every((turn) => !isTold(turn) || turn.endedAt > started - LONG_AGO);
  if (covered.some((run) => !turns.some((turn) => turn.run === run && turn.endedAt < started))) return false;
  // While summaries fail, or lag far behind, what is neither covered nor recent may be missing.
  return failEvery !== undefined || missed.length === 0 || last >= Math.min(2 * window, turns.length);
}

function summaryIn(block: Json | undefined): string | undefined {
  const text = isJsonObject(block ?? null) ? (block as { readonly summary?: Json }).summary : undefined;
  return typeof text === 'string' ? text : undefined;
}
