/** What a run was told of the earlier ones of its session: its own user's, in the order of their ends, the last of them in full. */
import { isJsonObject, type Json } from '#core';
import type { EndedRun } from './ended-run.ts';
import type { Ledger } from './ledger.ts';
import type { SimulatedMemory } from './script.ts';

interface Turn {
  readonly run: string;
  readonly texts: readonly [string, string | undefined];
  readonly endedAt: number;
}

const NO_ANSWER = '(no answer was given)';

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
    const turns = own.flatMap(turnOf).sort((a, b) => a.endedAt - b.endedAt);
    for (const run of own) checkTold(run, turns, memory, ledger, longAgo);
  }
}

function scopeOf({ entries: [first] }: EndedRun): string {
  if (first?.kind !== 'started') return '';
  const { tenant, user, session } = first.identity;
  return JSON.stringify([tenant, user, session]);
}

/** Runs that a user started in the conversation are turns of it, when they have ended. */
function turnOf({ id, entries, endedAt }: EndedRun): Turn[] {
  const [first] = entries;
  const last = entries.at(-1);
  if (first?.kind !== 'started' || endedAt === undefined || first.conversation === false) return [];
  if (first.task !== undefined || first.fork !== undefined) return [];
  const isGoal = last?.kind === 'finished' && last.reason === 'goal';
  const payload = isGoal ? last.payload : undefined;
  // What is no text is put into words somehow.
  const answer = isGoal ? (typeof payload === 'string' ? payload : undefined) : NO_ANSWER;
  return [{ run: id, texts: [first.query, answer], endedAt }];
}

function checkTold(
  { id, entries: [first], landed }: EndedRun,
  turns: readonly Turn[],
  memory: SimulatedMemory | undefined,
  ledger: Ledger,
  longAgo: number,
): void {
  if (first?.kind !== 'started' || first.fork !== undefined) return;
  const { history = [], context, conversation, task } = first;
  const summary = summaryIn(context?.conversationMemory);
  if (memory === undefined || conversation === false || task !== undefined) {
    if (history.length > 0 || summary !== undefined) ledger.violated('session', 'it was told of others unasked', id);
    return;
  }
  const started = landed[0] ?? 0;
  const known = turns.filter(({ endedAt }) => endedAt < started);
  const texts = history.map(({ text }) => text);
  // It may have been read some time before the run was stored.
  const isRight = known.some((_, index) => isShown(texts, summary, known.slice(0, index + 1), memory));
  if (!isRight && !isShown(texts, summary, [], memory)) {
    const told = `${texts.join(' | ')}${summary === undefined ? '' : ` after ${summary}`}`;
    ledger.violated('session', `it was told ${told}; before it were ${known.map(({ run }) => run).join(', ')}`, id);
  }
  if (texts.length === 0 && summary === undefined && known.some(({ endedAt }) => endedAt < started - longAgo)) {
    ledger.violated('session', 'it was told nothing of what was before it', id);
  }
}

/** So many things happen in the world while a run is being started, at most. */
const LONG_AGO = 60;

function isShown(
  texts: readonly string[],
  summary: string | undefined,
  turns: readonly Turn[],
  { strategy, turns: window, failEvery }: SimulatedMemory,
): boolean {
  const shown = turns.slice(turns.length - texts.length / 2);
  const isSame = shown.every(({ texts: [user, answer] }, index) => {
    return texts[2 * index] === user && (answer === undefined || texts[2 * index + 1] === answer);
  });
  const least = Math.min(window, turns.length);
  const most = strategy === 'window' ? least : Math.min(2 * window, turns.length);
  if (!isSame || texts.length !== 2 * shown.length || shown.length < least || shown.length > most) return false;
  if (strategy === 'window') return summary === undefined;
  const covered = summary === undefined ? [] : summary.split(' ');
  const isInOrder = covered.every((run, index) => turns[index]?.run === run);
  // While summaries fail, or lag far behind, what is neither covered nor recent may be missing.
  const isWhole = covered.length + shown.length >= turns.length || shown.length === 2 * window;
  if (covered.length + shown.length > Math.max(turns.length, least)) return false;
  return isInOrder && (failEvery !== undefined || isWhole);
}

function summaryIn(block: Json | undefined): string | undefined {
  const text = isJsonObject(block ?? null) ? (block as { readonly summary?: Json }).summary : undefined;
  return typeof text === 'string' ? text : undefined;
}
