/** How a question was closed, as the entries of its run have it, and what whoever answers it later is told. */
import { branchesOf, type CallEnded, type Entry, type Json, PilotageError, type Resumed } from '#core';
import { pauseExpired } from '#journal';
import { JOIN_MET } from '../calls/schedule.ts';

type Paused = Extract<Entry, { kind: 'paused' }>;
type Ending = Extract<Entry, { kind: 'finished' | 'failed' }>;

/** A pause that is not open any more. */
export type ClosedPause = {
  readonly token: string;
  readonly expiresAt?: number;
} /** By an answer, by its time limit, or by what withdrew it. */ & (
  | { readonly with: 'answer'; readonly entry: Resumed & Entry }
  /** Its call came to an end without an answer. `winners`: the branches to which it lost a race. */
  | { readonly with: 'call'; readonly entry: CallEnded & Entry; readonly winners: readonly string[] }
  /** Its run ended. */
  | { readonly with: 'run'; readonly entry: Ending }
);

/** @param token of the pause. Absent: the pause that was closed last. `undefined`: it was never asked, or is open. */
export function closedIn(entries: readonly Entry[], token: Json | undefined): ClosedPause | undefined {
  const open = new Map<string, Paused>();
  let closed: ClosedPause | undefined;
  for (const entry of entries) {
    if (entry.kind === 'paused') {
      if (token === undefined || entry.token === token) open.set(entry.token, entry);
    } else if (entry.kind === 'resumed') {
      if (token !== undefined && entry.token !== token) continue;
      closed = { token: entry.token, with: 'answer', entry, ...limitOf(open.get(entry.token)) };
      open.delete(entry.token);
    } else if (entry.kind === 'call_ended') {
      for (const asked of open.values()) {
        if (asked.step !== entry.step || asked.call !== entry.call) continue;
        const of = { token: asked.token, ...limitOf(asked) };
        const ending = endingWith(entry, entries);
        closed = ending
          ? { ...of, with: 'run', entry: ending }
          : { ...of, with: 'call', entry, winners: winnersOver(entry, entries) };
        open.delete(asked.token);
      }
    } else if (entry.kind === 'finished' || entry.kind === 'failed') {
      for (const asked of open.values()) closed = { token: asked.token, with: 'run', entry };
      open.clear();
    }
  }
  return closed;
}

/** The end of the run that ended the call: nothing comes between but the ends of other calls. */
function endingWith({ seq, outcome }: CallEnded & Entry, entries: readonly Entry[]): Ending | undefined {
  if (lost(outcome)) return undefined;
  const next = entries.find((entry) => entry.seq > seq && entry.kind !== 'call_ended');
  return next?.kind === 'finished' || next?.kind === 'failed' ? next : undefined;
}

function lost(outcome: CallEnded['outcome']): boolean {
  return outcome.kind === 'cancelled' && outcome.error.message === JOIN_MET;
}

function limitOf(asked: Paused | undefined): { readonly expiresAt?: number } {
  return asked?.expiresAt === undefined ? {} : { expiresAt: asked.expiresAt };
}

/** The branches with a value, when the call was stopped since the join of its step needed no more. */
function winnersOver({ step, outcome, seq }: CallEnded & Entry, entries: readonly Entry[]): readonly string[] {
  if (!lost(outcome)) return [];
  const branches = entries.flatMap((entry) => {
    if (entry.kind === 'moved' && entry.step === step) return branchesOf(entry.decision);
    return entry.kind === 'plan_grown' && entry.step === step ? entry.branches : [];
  });
  return entries.flatMap((entry) => {
    if (entry.kind !== 'call_ended' || entry.step !== step || entry.seq > seq) return [];
    const branch = entry.outcome.kind === 'value' ? branches[entry.call] : undefined;
    return branch === undefined ? [] : [branch.id ?? branch.tool];
  });
}

/** Why an answer of this type to a pause that was closed comes too late. */
export function tooLate(type: string, closed: ClosedPause): PilotageError {
  const { token, entry } = closed;
  const when = new Date(entry.at).toISOString();
  if (closed.with === 'run')
    return refused('run_ended', `${token} was open still when the run ended, at ${when}; ${type} comes too late.`);
  if (closed.with === 'call') {
    if (closed.expiresAt !== undefined && closed.expiresAt <= entry.at) return pauseExpired(closed.expiresAt, token);
    return refused(
      'superseded',
      `${token} was closed at ${when} before anybody answered, since ${whyEnded(closed)}; ${type} comes too late.`,
    );
  }
  const { verdict, payload, by } = closed.entry;
  if (verdict === 'timeout') return pauseExpired(closed.expiresAt ?? entry.at, token);
  if (verdict === 'superseded') return isWithdrawn(type, token, withdrawnWords(payload));
  const who = by === undefined ? '' : ` by ${by.user}`;
  const message = `The pause ${token} was answered with ${verdict}${who} at ${when}; ${type} comes too late.`;
  return new PilotageError('pause_not_found', message);
}

function refused(code: 'run_ended' | 'superseded', what: string): PilotageError {
  return new PilotageError(code, `The question ${what}`);
}

function whyEnded({ entry: { outcome }, winners }: Extract<ClosedPause, { with: 'call' }>): string {
  if (winners.length > 0) return `another branch of its step was faster (${winners.join(', ')})`;
  if (outcome.kind === 'value') return 'its call came to its value without it';
  return outcome.kind === 'cancelled' ? 'its call was cancelled' : 'its call failed';
}

function withdrawnWords(payload: Resumed['payload']): string {
  const { control, reason } = payload ?? {};
  return typeof control === 'string'
    ? `by ${control}`
    : `since ${typeof reason === 'string' ? reason : 'the run goes on'}`;
}

/** @param how `by …` or `since …`. */
export function isWithdrawn(type: string, token: string, how: string): PilotageError {
  const message = `The question ${token} was withdrawn ${how} before it was answered; ${type} comes too late, and nothing was called. What the run asks now has another token.`;
  return new PilotageError('superseded', message);
}
