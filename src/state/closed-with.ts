/** How questions are closed, as the fold finds it: which of them an entry closes, and with what. */
import {
  type Branch,
  BranchEnds,
  branchesOf,
  type Caller,
  type CallOver,
  type CallParallel,
  type CallRecord,
  ceilingOf,
  defined,
  type Entry,
  type EntryBody,
  type Failed,
  FINISH_TOOL,
  type Finished,
  isWokenByTasks,
  type Outcome,
  type PauseVerdict,
  type Resumed,
  winnersOf,
} from '#core';
import { type OpenPause, type OpenStep, type RunState, type WaitState, waitingCall } from './state.ts';

/** With what a question was closed. */
export type HowClosed =
  /** Absent `by`: the program itself has answered. */
  | { readonly with: 'answer'; readonly verdict: PauseVerdict; readonly by?: Caller }
  /** Its time was over. `expiresAt`: milliseconds since the epoch. */
  | { readonly with: 'time'; readonly expiresAt: number }
  /** `control`: the type of the control that has withdrawn it. `why`: a clause. */
  | { readonly with: 'withdrawal'; readonly control?: string; readonly why: string }
  /** Its step needed no more of its call. `winners`: the branches with a value, where these were enough. */
  | { readonly with: 'race'; readonly over: CallOver; readonly winners: readonly string[] }
  /** The attempt of its call that had asked is over, and another one is made later. */
  | { readonly with: 'away' }
  /** Nobody knows whether its call has happened. */
  | { readonly with: 'doubt' }
  /** Its call came to its end without an answer. `isCancelled`: somebody has cancelled the call. */
  | { readonly with: 'call'; readonly ended: Outcome['kind']; readonly isCancelled: boolean }
  /** Its run ended. `isDismissed`: the run above it did not need it any more. `undoes`: it undoes what it has done first. */
  | {
      readonly with: 'end';
      readonly ending: Finished | Failed;
      readonly isDismissed: boolean;
      readonly undoes: boolean;
    };

/** The open pauses that this entry closes; the fold takes them out of its state. A run that ends closes none: whoever opens it again finds them as they were. */
export function closedWith({ pauses, open }: RunState, entry: Entry): readonly OpenPause[] {
  if (pauses.length === 0) return NONE;
  return closedAmong(pauses, entry, (call) => open && waitingCall(open, call)?.waits);
}

type Asked = Pick<OpenPause, 'token' | 'reason' | 'step' | 'call' | 'wait'>;
type Waits = readonly Pick<WaitState, 'wait' | 'held'>[];

/** The same among pauses of which no more is known. @param waitsOf what the call has waited for. */
export function closedAmong<P extends Asked>(
  pauses: readonly P[],
  body: EntryBody,
  waitsOf: (call: number) => Waits | null | undefined,
): readonly P[] {
  const ofCall = ({ step, call }: Pick<Asked, 'step' | 'call'>): readonly P[] =>
    pauses.filter((pause) => pause.step === step && pause.call === call);
  // Nobody listens to what a call has asked while it stayed open, and that is not under way any more: it asks anew when it is made again. What it
  // has asked to be parked waits on, for whichever attempt comes next.
  const heldOf = (at: Pick<Asked, 'step' | 'call'>): readonly P[] => {
    const held = (at.call === undefined ? null : waitsOf(at.call))?.filter((one) => one.held === true) ?? [];
    return ofCall(at).filter((pause) => held.some(({ wait }) => wait === pause.wait));
  };
  switch (body.kind) {
    case 'resumed': {
      const answered = pauses.find(({ token }) => token === body.token);
      if (answered === undefined) return NONE;
      const endsCall = answered.reason === 'in_doubt' && body.verdict === 'settle' && body.outcome !== undefined;
      return endsCall ? ofCall(answered) : [answered];
    }
    case 'call_ended':
      return ofCall(body);
    case 'call_away':
      return heldOf(body);
    case 'paused':
      return body.reason === 'in_doubt' ? heldOf(body) : NONE;
    default:
      return NONE;
  }
}

const NONE: readonly never[] = Object.freeze([]);

/** With what the entry closes this pause. @param before the state without the entry. */
export function howClosed({ open }: RunState, entry: Entry, pause: OpenPause): HowClosed {
  if (entry.kind === 'resumed' && entry.token === pause.token) return howAnswered(entry, pause);
  const { expiresAt } = pause;
  if (expiresAt !== undefined && expiresAt <= entry.at) return { with: 'time', expiresAt };
  if (entry.kind === 'call_away') return { with: 'away' };
  if (entry.kind === 'paused') return { with: 'doubt' };
  const { kind: ended = 'unknown' } = ('outcome' in entry && entry.outcome) || {};
  const race = open === null ? undefined : raceIn(open);
  if (race !== undefined) return race;
  const isCancelled =
    open !== null && pause.call !== undefined && open.cancels?.some(({ call }) => call === pause.call) === true;
  return { with: 'call', ended, isCancelled };
}

function howAnswered(resumed: Resumed & Entry, { expiresAt = resumed.at }: OpenPause): HowClosed {
  const { verdict, payload = {}, by } = resumed;
  if (verdict === 'timeout') return { with: 'time', expiresAt };
  if (isWokenByTasks(resumed))
    return { with: 'withdrawal', why: 'tasks of the run have ended, for which it waited too' };
  if (verdict !== 'superseded') return { with: 'answer', verdict, ...defined({ by }) };
  const { control, reason } = payload;
  const why = typeof reason === 'string' ? reason : 'the run goes on';
  return { with: 'withdrawal', why, ...(typeof control === 'string' ? { control } : {}) };
}

/**
 * Says of an open question which race its call has lost, though the end of the call is not recorded yet: nobody is to answer it. The branches are looked
 * through once for all questions.
 */
export function lostRaces({ open }: Pick<RunState, 'open'>): (pause: Asking) => HowClosed | undefined {
  let race: HowClosed | null | undefined;
  return ({ step, call, reason }) => {
    if (open === null || call === undefined || step !== open.move.step || reason === 'in_doubt') return undefined;
    if (race === undefined) race = raceIn(open) ?? null;
    return race ?? undefined;
  };
}

type Asking = Pick<OpenPause, 'step' | 'call' | 'reason'>;

function raceIn({ move, calls }: OpenStep): HowClosed | undefined {
  const { decision } = move;
  const over = decision.kind === 'call_parallel' ? overIn(decision, calls) : undefined;
  if (over === undefined) return undefined;
  const winners = branchesOf(decision).flatMap((branch, call) =>
    calls[call]?.outcome.kind === 'value' ? [branch.id ?? branch.tool] : [],
  );
  return { with: 'race', over, winners: over === 'join_met' ? winners : [] };
}

/** Why nothing more is wanted of the calls that have not ended; `undefined`: something is. */
export function overIn(decision: CallParallel, calls: readonly (CallRecord | null)[]): CallOver | undefined {
  if (!mayEndEarly(decision)) return undefined;
  const ends = new BranchEnds(decision);
  for (const [call, branch] of decision.branches.entries()) {
    const outcome = calls[call]?.outcome;
    if (outcome !== undefined) ends.note(branch, outcome);
  }
  return ends.over;
}

/** Whether anything but the end of its last branch ends it. Thousands of branches may be open, and it is asked at every turn. */
export function mayEndEarly({ join, plan, failFast, branches }: CallParallel): boolean {
  if (failFast === true || winnersOf(join) !== undefined) return true;
  return plan !== undefined && hasFinish(branches);
}

/** Branches never change. */
const finishes = new WeakMap<readonly Branch[], boolean>();

function hasFinish(branches: readonly Branch[]): boolean {
  const known = finishes.get(branches) ?? branches.some(({ tool }) => tool === FINISH_TOOL);
  finishes.set(branches, known);
  return known;
}

const OVER: Readonly<Record<CallOver, string>> = {
  join_met: 'its step had what it needed',
  join_missed: 'too few branches of its step were left for what it needs',
  plan_ended: 'its plan had come to its end',
  failed_fast: 'another branch of its step had failed, which stops the others',
};

/** What closed a question that nobody has answered: a clause. */
export function whyClosed(how: Exclude<HowClosed, { readonly with: 'answer' | 'time' }>): string {
  switch (how.with) {
    case 'withdrawal':
      return how.why;
    case 'race':
      return how.winners.length > 0
        ? `another branch of its step was faster (${how.winners.join(', ')})`
        : OVER[how.over];
    case 'away':
      return 'the attempt of its call that had asked it has failed, and the call is made again later, and asks anew if it has to';
    case 'doubt':
      return 'its call is in doubt: somebody has to say first whether it has happened';
    case 'call':
      return how.isCancelled ? 'somebody cancelled its call' : CALL_ENDED[how.ended];
    case 'end':
      return endedSince(how);
    default:
      return how satisfies never;
  }
}

const CALL_ENDED: Readonly<Record<Outcome['kind'], string>> = {
  value: 'its call came to its value without it',
  error: 'its call failed',
  unknown: 'its call ended, and nobody knows whether it has happened',
  cancelled: 'its call was cancelled',
  skipped: 'its call was not made',
  verdict: 'its step was over',
};

function endedSince({ undoes, ...how }: Extract<HowClosed, { readonly with: 'end' }>): string {
  return undoes ? `${endOf(how)}, and undoes what it has done` : endOf(how);
}

function endOf({
  ending,
  isDismissed,
}: Pick<Extract<HowClosed, { readonly with: 'end' }>, 'ending' | 'isDismissed'>): string {
  if (ending.kind === 'failed') return `the run failed (${ending.error.code})`;
  const { reason, successor } = ending;
  if (isDismissed) return 'the run above it needed it no more';
  if (successor !== undefined) return `the run goes on in another one, ${successor.run}`;
  if (reason === 'cancelled') return 'the run was cancelled';
  return `the run ${ceilingOf(reason) === undefined ? 'came to its end' : 'reached a limit'} (${reason})`;
}
