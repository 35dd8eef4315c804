/**
 * The fold's rules: which entries can follow a state. The fold asks them of what it reads, and whoever appends asks them of
 * what is to be written. What entries change that are not applied yet is noted beside the state, so that asking costs what
 * the entries cost, however long the run is.
 */
import {
  type CallWaits,
  type Decision,
  defined,
  type EntryBody,
  isPlan,
  type Moved,
  type Paused,
  type PlanGrown,
  type Reopened,
  type Resumed,
  type Step,
  type WaitEnded,
} from '#core';
import { closedAmong } from './closed-with.ts';
import { grownMove, isMoveCarriedOut, nodeEdits } from './open-step.ts';
import { openedAgain } from './retry.ts';
import { hasBegun, nextStep, type OpenPause, type OpenStep, type RunState, waitingCall } from './state.ts';

/** The first of these entries that cannot follow, and why; `undefined` when all of them can, in this order. */
export function misfitAmong(
  state: RunState,
  bodies: readonly EntryBody[],
): { readonly body: EntryBody; readonly why: string } | undefined {
  const prospect = new Prospect(state);
  const last = bodies.at(-1);
  for (const body of bodies) {
    const why = prospect.misfit(body);
    if (why !== undefined) return { body, why };
    if (body !== last) prospect.note(body);
  }
  return undefined;
}

/** Why the entry cannot follow the state. */
export function misfit(state: RunState, body: EntryBody): string | undefined {
  return new Prospect(state).misfit(body);
}

/** How many outcomes a decision waits for. */
export function slotsOf(decision: Decision): number {
  switch (decision.kind) {
    case 'call_tool':
    case 'spawn_task':
    case 'await_task':
    case 'request_pause':
      return 1;
    case 'call_parallel':
      return decision.branches.length;
    case 'finish':
      return 0;
    default:
      return decision satisfies never;
  }
}

/** What the rules read of an open step, with what was noted. */
interface Ground {
  move: Moved;
  /** How many calls it has. */
  size: number;
  pending: number;
  /** As the state has it; `null` when it was opened since. */
  readonly stored: OpenStep | null;
  ended?: Set<number>;
  /** Begun since, or, as it was undone, not begun any more. */
  begun?: Map<number, boolean>;
  /** What calls that stay open have begun to ask since. */
  held?: readonly Pick<CallWaits, 'call' | 'waits'>[];
}

type Asked = Pick<OpenPause, 'token' | 'step' | 'call' | 'reason' | 'wait'>;

/** A state that lacks what was said would be another one. */
const NOT_WHOLE =
  'what was said in it is an artifact that was not read; wholeJournal of pilotage/journal reads it, if the store still has it';

/** A state, and what is to be written to it, entry by entry. */
export class Prospect {
  /** The index of the step that is asked for next. */
  #next: number;
  #open: Ground | null;
  #pauses: readonly Asked[];
  #ending: 'finished' | 'failed' | null;
  #unwinds: boolean;
  /** The steps of the state; empty when another step was begun since. Only a retry and a shortening look at them. */
  #steps: readonly Step[];

  constructor(state: RunState) {
    const { open, pauses, ending, steps, unwinding } = state;
    this.#next = nextStep(state);
    this.#open = open === null ? null : groundOf(open);
    this.#pauses = pauses;
    this.#ending = ending?.kind ?? null;
    this.#unwinds = unwinding !== null;
    this.#steps = steps;
  }

  /** Why the entry cannot follow now. */
  misfit(body: EntryBody): string | undefined {
    if (body.kind === 'reopened') return this.#reopenMisfit(body);
    if (body.kind === 'repaired') return this.#repairMisfit(body.begun ?? []);
    if (body.kind === 'unwinding' && this.#ending === 'finished' && !this.#unwinds) return undefined;
    if (this.#ending !== null) return 'the run had ended';
    switch (body.kind) {
      case 'started':
        return 'a run starts once';
      case 'unwinding':
        if (this.#unwinds) return 'the run unwinds already';
        return this.#open === null ? undefined : `step ${this.#open.move.step} is still open`;
      case 'moved':
        if (this.#open !== null) return `step ${this.#open.move.step} is still open`;
        if (this.#unwinds && body.undoes === undefined) return 'the run unwinds, and its planner decides nothing more';
        return body.step === this.#next ? undefined : `the next step is ${this.#next}`;
      case 'plan_grown':
        if (this.#open?.move.step !== body.step) return notOpen(body.step);
        return this.#open.move.growing === true ? undefined : 'the plan is whole';
      case 'call_began':
        return this.#callMisfit(body.step, body.call) ?? this.#beginMisfit(body.call);
      case 'call_spent':
        return body.step < this.#next ? undefined : `step ${body.step} was not taken`;
      case 'call_ended':
      case 'call_away':
      case 'call_waits':
      case 'call_kept':
      case 'ruled':
      case 'spawned':
      case 'awaiting':
        return this.#callMisfit(body.step, body.call);
      case 'wait_ended':
        return this.#callMisfit(body.step, body.call) ?? this.#waitMisfit(body);
      case 'recalled':
        return this.#next === 0 ? undefined : 'the run has taken steps';
      case 'control':
        return body.control.stored && NOT_WHOLE;
      case 'paused':
        if (body.stored !== undefined) return NOT_WHOLE;
        return body.step === undefined ? undefined : this.#callMisfit(body.step, body.call ?? 0);
      case 'resumed':
        return body.stored === undefined ? this.#answerMisfit(body) : NOT_WHOLE;
      case 'approved':
        return body.stored === undefined ? this.#pauseMisfit(body.token) : NOT_WHOLE;
      case 'reminded':
      case 'escalated':
        return this.#pauseMisfit(body.token);
      case 'shortened': {
        const calls = this.#steps.at(-1)?.calls ?? [];
        const isThere = body.results.every(({ call }) => calls[call]?.outcome.kind === 'value');
        return body.step === this.#next && this.#open === null && isThere ? undefined : 'there are no such results';
      }
      case 'answering':
      case 'overflowed':
      case 'model_away':
        if (this.#open !== null) return `step ${this.#open.move.step} is still open`;
        return body.step === this.#next ? undefined : `the next step is ${this.#next}`;
      case 'compacted':
        return body.before > body.step || body.step !== this.#next ? `step ${this.#next} is next` : undefined;
      default:
        return undefined;
    }
  }

  /** A plan may also be retried while the run is under way, when nothing of it is open. */
  #reopenMisfit({ retries }: Reopened): string | undefined {
    if (this.#ending === 'finished') return 'the run has finished';
    if (this.#unwinds) return 'the run has undone its calls';
    if (retries === undefined) return this.#ending === 'failed' ? undefined : 'the run has not failed';
    if (this.#open !== null) return `step ${this.#open.move.step} is still open`;
    const last = this.#steps.at(-1);
    if (last?.index !== retries.step || !isPlan(last.decision))
      return `step ${retries.step} is not a plan that came last`;
    const { calls, begun = [] } = retries;
    const isKnown = calls.every((call) => Number.isInteger(call) && call >= 0 && call < last.calls.length);
    if (!isKnown || calls.length === 0 || new Set(calls).size < calls.length) return 'it names no calls, or others';
    return begun.every((call) => calls.includes(call)) ? undefined : 'a call that has begun is not carried out again';
  }

  /** Also after an ending, which it leaves as it is. */
  #repairMisfit(begun: readonly number[]): string | undefined {
    const open = this.#open;
    if (begun.length > 0 && open === null) return 'no step is open';
    for (const call of begun) {
      const why = this.#callMisfit(open?.move.step ?? 0, call) ?? this.#beginMisfit(call);
      if (why !== undefined) return why;
    }
    return undefined;
  }

  #callMisfit(step: number, call: number): string | undefined {
    if (this.#open?.move.step !== step) return notOpen(step);
    return isOpen(this.#open, call) ? undefined : `call ${call} has ended, or the step has no such call`;
  }

  #waitMisfit({ call, wait }: WaitEnded): string | undefined {
    const known = this.#open?.stored && waitingCall(this.#open.stored, call)?.waits.find((one) => one.wait === wait);
    return known != null && known.end === undefined ? undefined : `call ${call} does not wait for ${wait}`;
  }

  #beginMisfit(call: number): string | undefined {
    return this.#open !== null && isBegun(this.#open, call) ? `call ${call} has begun` : undefined;
  }

  #pauseMisfit(token: string): string | undefined {
    return this.#pauses.some((pause) => pause.token === token) ? undefined : `no pause ${token} is open`;
  }

  #answerMisfit(resumed: Resumed): string | undefined {
    const pause = this.#pauses.find(({ token }) => token === resumed.token);
    if (pause === undefined) return `no pause ${resumed.token} is open`;
    if (pause.step === undefined) {
      const open = this.#open;
      const ended = this.#removed(resumed).find((call) => open === null || !isOpen(open, call));
      return ended === undefined ? undefined : `call ${ended} has ended, and cannot be taken out`;
    }
    if (this.#open?.move.step !== pause.step) return notOpen(pause.step);
    if (resumed.verdict === 'answer' && pause.call === undefined) return 'no call waits for the value';
    if (resumed.verdict === 'settle' && !isInDoubt(pause) && pause.reason !== 'client_tool') {
      return 'the pause is not in doubt';
    }
    const call = endedBy(resumed, pause);
    return call === undefined ? undefined : this.#callMisfit(pause.step, call);
  }

  /** Calls that whoever resumed the run took out of its plan. */
  #removed({ nodes }: Resumed): readonly number[] {
    return nodeEdits(this.#open, nodes).flatMap(({ call, args }) => (args === undefined ? [call] : []));
  }

  /** The entry follows. What it changes of what the rules read; the state is left as it is. */
  note(body: EntryBody): void {
    const open = this.#open;
    const closed = this.#close(body);
    switch (body.kind) {
      case 'moved':
        this.#noteMove(body);
        return;
      case 'plan_grown':
        if (open !== null) this.#noteGrowth(open, body);
        return;
      case 'call_began':
        if (open !== null) noteBegun(open, body.call, true);
        return;
      case 'call_away':
        if (open !== null) noteBegun(open, body.call, false);
        return;
      case 'call_waits':
        if (open === null) return;
        if (body.held === true) open.held = [...(open.held ?? []), body];
        else noteBegun(open, body.call, false);
        return;
      case 'call_ended':
        this.#noteEnd(body.call);
        return;
      case 'paused':
        this.#notePause(body);
        return;
      case 'resumed':
        this.#noteAnswer(body, closed);
        return;
      case 'unwinding':
        this.#unwinds = true;
        this.#ending = null;
        return;
      case 'finished':
      case 'failed':
        this.#ending = body.kind;
        return;
      case 'reopened':
        this.#ending = null;
        this.#noteRetries(body);
        return;
      case 'repaired':
        for (const call of body.begun ?? []) if (open !== null) noteBegun(open, call, true);
        return;
      default:
        return;
    }
  }

  #noteRetries({ retries }: Reopened): void {
    const last = this.#steps.at(-1);
    if (retries === undefined || last === undefined) return;
    this.#open = groundOf(openedAgain(last, retries, 0));
    this.#steps = [];
  }

  #noteMove(move: Moved): void {
    this.#steps = [];
    const isCarriedOut = isMoveCarriedOut(move);
    if (isCarriedOut && move.decision.kind === 'finish') return;
    this.#next += 1;
    const size = isCarriedOut ? slotsOf(move.decision) : 0;
    if (size === 0) return;
    const pending = size + (move.growing === true ? 1 : 0);
    this.#open = { move, size, pending, stored: null };
  }

  #noteGrowth(open: Ground, grown: PlanGrown): void {
    const { branches, done } = grown;
    open.move = grownMove(open.move, grown);
    open.size += branches.length;
    open.pending += branches.length;
    if (done !== true) return;
    open.pending -= 1;
    this.#closeWhenDone();
  }

  #notePause({ token, reason, step, call, wait }: Paused): void {
    this.#pauses = [...this.#pauses, defined({ token, reason, step, call, wait })];
    if (call !== undefined && wait === undefined && reason !== 'in_doubt' && this.#open !== null)
      noteBegun(this.#open, call, false);
  }

  /** @returns the pauses that the entry closes. */
  #close(body: EntryBody): readonly Asked[] {
    if (this.#pauses.length === 0) return [];
    const { stored = null, held = [] } = this.#open ?? {};
    const closed = closedAmong(this.#pauses, body, (call) => {
      const noted = held.flatMap((one) => (one.call === call ? one.waits : []));
      return [
        ...((stored && waitingCall(stored, call)?.waits) ?? []),
        ...noted.map(({ wait }) => ({ wait, held: true as const })),
      ];
    });
    if (closed.length > 0) this.#pauses = this.#pauses.filter((pause) => !closed.includes(pause));
    return closed;
  }

  #noteAnswer(resumed: Resumed, closed: readonly Asked[]): void {
    const pause = closed.find(({ token }) => token === resumed.token);
    if (pause === undefined) return;
    const { verdict, outcome } = resumed;
    if (pause.step === undefined) {
      for (const call of this.#removed(resumed)) this.#end(call);
      this.#closeWhenDone();
    } else if (isInDoubt(pause) && verdict === 'settle' && outcome === undefined && pause.call !== undefined) {
      if (this.#open !== null) noteBegun(this.#open, pause.call, false);
    }
    const ended = endedBy(resumed, pause);
    if (ended === undefined) return;
    this.#end(ended);
    this.#closeWhenDone();
  }

  #noteEnd(call: number): void {
    this.#end(call);
    this.#closeWhenDone();
  }

  #end(call: number): void {
    if (this.#open === null) return;
    this.#open.ended ??= new Set();
    this.#open.ended.add(call);
    this.#open.pending -= 1;
  }

  #closeWhenDone(): void {
    if (this.#open?.pending === 0) this.#open = null;
  }
}

function groundOf(open: OpenStep): Ground {
  const { move, calls, pending } = open;
  return { move, size: calls.length, pending, stored: open };
}

function noteBegun(open: Ground, call: number, has: boolean): void {
  open.begun ??= new Map();
  open.begun.set(call, has);
}

function isOpen({ stored, size, ended }: Ground, call: number): boolean {
  if (!Number.isInteger(call) || call < 0 || call >= size || ended?.has(call) === true) return false;
  return stored === null || call >= stored.calls.length || stored.calls[call] === null;
}

function isBegun({ stored, begun }: Ground, call: number): boolean {
  return begun?.get(call) ?? (stored !== null && hasBegun(stored, call));
}

function isInDoubt({ reason, call }: Pick<OpenPause, 'reason' | 'call'>): boolean {
  return reason === 'in_doubt' && call !== undefined;
}

/** The call of the step to which the answer gives its outcome. */
function endedBy(
  { verdict, outcome }: Resumed,
  pause: Pick<OpenPause, 'step' | 'call' | 'reason' | 'wait'>,
): number | undefined {
  if (pause.step === undefined || pause.wait !== undefined) return undefined;
  if (isInDoubt(pause)) return verdict === 'settle' && outcome !== undefined ? pause.call : undefined;
  if (pause.call === undefined) return 0;
  return verdict === 'approve' || verdict === 'resume' ? undefined : pause.call;
}

function notOpen(step: number): string {
  return `step ${step} is not open`;
}
