/**
 * The turns of each session by hand, from what the store has taken, in its order: where each stands, and when its turn has come. One is in turn at a
 * time; of those that wait, what goes on with a turn stands before what comes next, and that before what was queued, each in the order of acceptance.
 */
import { type Scope, type Started, scopeKey } from '#core';
import type { NewRun } from '#journal';
import type { Ledger, LedgerRun } from './ledger.ts';

export interface TurnByHand {
  readonly id: string;
  readonly run: LedgerRun;
  readonly first: Started;
  readonly rank: number;
  /** When its turn has come. */
  cameAt: number | undefined;
  isOver: boolean;
}

const RANKS: Readonly<Record<NonNullable<NewRun['waits']>, number>> = { first: 1, next: 2, last: 3 };

type Step = { readonly order: number; readonly late: number } & (
  | { readonly does: 'store'; readonly run: LedgerRun; readonly waits: NewRun['waits'] }
  | { readonly does: 'end'; readonly run: LedgerRun }
  | { readonly does: 'forget'; readonly scope: Scope }
  | { readonly does: 'send'; readonly index: number }
  | { readonly does: 'branch'; readonly scope: Scope; readonly branch: string | null }
);

/** @param onSend is told of each message that the store has taken, with the turns of its session and the branch that was chosen just before. */
export function turnsByHand(
  ledger: Ledger,
  onSend: (index: number, turns: readonly TurnByHand[], branch: string | null) => void,
): Map<string, TurnByHand[]> {
  const sessions = new Map<string, TurnByHand[]>();
  const branches = new Map<string, string | null>();
  for (const step of stepsOf(ledger)) {
    if (step.does === 'store') store(sessions, step.run, step.waits, step.order);
    if (step.does === 'end') end(sessions, step.run, step.order);
    if (step.does === 'branch') branches.set(scopeKey(step.scope), step.branch);
    if (step.does === 'forget') for (const known of [sessions, branches]) known.delete(scopeKey(step.scope));
    if (step.does !== 'send') continue;
    const { sending, answer } = ledger.sessions.sends[step.index] ?? {};
    if (sending === undefined || answer === undefined || 'run' in answer) continue;
    const key = scopeKey(sending.scope);
    onSend(step.index, sessions.get(key) ?? [], branches.get(key) ?? null);
    // The first message that begins a turn leaves the branch that somebody has gone to.
    if (sending.starts !== undefined) branches.set(key, null);
  }
  return sessions;
}

function stepsOf({ sessions }: Ledger): Step[] {
  const steps: Step[] = [
    ...sessions.sends.map(({ order }, index): Step => ({ order, late: 0, does: 'send', index })),
    ...sessions.stored.flatMap(({ order, run, waits }): Step[] => [
      { order, late: 1, does: 'store', run, waits },
      // What an ending begins stands there before the next one has its turn.
      ...(run.endedAt === undefined ? [] : [{ order: run.endedAt, late: 2, does: 'end', run } as const]),
    ]),
    ...sessions.branches.map(({ order, scope, branch }): Step => ({ order, late: 0, does: 'branch', scope, branch })),
    ...sessions.gone.map(({ order, scope }): Step => ({ order, late: 3, does: 'forget', scope })),
  ];
  return steps.sort((one, other) => one.order - other.order || one.late - other.late);
}

function store(sessions: Map<string, TurnByHand[]>, run: LedgerRun, waits: NewRun['waits'], order: number): void {
  const [first] = run.entries;
  if (first?.kind !== 'started' || first.conversation === false || first.task !== undefined) return;
  const key = scopeKey(first.identity);
  const turns = sessions.get(key) ?? [];
  sessions.set(key, turns);
  const isFree = waits === undefined || inTurn(turns).length === 0;
  const rank = waits === undefined ? 0 : RANKS[waits];
  const turn = { id: first.identity.run, run, first, rank, cameAt: isFree ? order : undefined, isOver: false };
  const behind = turns.findIndex((other) => isWaiting(other) && isBefore(waits, other.rank));
  turns.splice(behind === -1 ? turns.length : behind, 0, turn);
}

function isBefore(waits: NewRun['waits'], rank: number): boolean {
  // What begins at once stands before all that wait.
  if (waits === undefined || waits === 'first') return true;
  return RANKS[waits] < rank;
}

function isWaiting({ cameAt, isOver }: TurnByHand): boolean {
  return cameAt === undefined && !isOver;
}

/** Those that are under way. */
export function inTurn(turns: readonly TurnByHand[]): readonly TurnByHand[] {
  return turns.filter(({ cameAt, isOver }) => cameAt !== undefined && !isOver);
}

function end(sessions: Map<string, TurnByHand[]>, run: LedgerRun, order: number): void {
  for (const turns of sessions.values()) {
    const ended = turns.find((turn) => turn.run === run);
    if (ended === undefined) continue;
    ended.isOver = true;
    const next = inTurn(turns).length === 0 ? turns.find(isWaiting) : undefined;
    if (next !== undefined) next.cameAt = order;
  }
}
