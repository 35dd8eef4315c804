/** Calls of the open step that somebody has cancelled, while the run goes on: what they come to, and which cannot be cancelled. */
import {
  type CallEnded,
  type CallPlace,
  type Control,
  callEnded,
  type ErrorCode,
  type Outcome,
  PilotageError,
} from '#core';
import { isInDoubt } from './blocked-calls.ts';
import { liveIn } from './places.ts';
import { awayCall, type CallCancel, hasBegun, nextStep, type OpenStep, type RunState, waitingCall } from './state.ts';
import { halfDone } from './waiting-calls.ts';

/** The fold of the control. */
export function applyCallCancel({ open }: RunState, { payload = {} }: Control): void {
  const { step, call, reason } = payload;
  if (open === null || open.move.step !== step || typeof call !== 'number' || open.calls[call] !== null) return;
  const others = open.cancels?.filter((cancel) => cancel.call !== call) ?? [];
  open.cancels = [...others, typeof reason === 'string' ? { call, reason } : { call }];
}

/** The call that a control names, or why it cannot be cancelled. */
export function unfitToCancel(state: RunState, { step, call }: CallPlace): PilotageError | undefined {
  const { open, steps } = state;
  const which = `Call ${call + 1} of step ${step + 1}`;
  if (open?.move.step !== step) {
    const record = steps.find(({ index }) => index === step)?.calls[call];
    if (record !== undefined && step < nextStep(state)) return refusal('call_ended', `${which} has ended already.`);
    return refusal('call_not_found', `${which} does not exist, or has not been decided yet.`);
  }
  const record = open.calls[call];
  if (record === undefined) return refusal('call_not_found', `${which} does not exist: the step has no such call.`);
  if (record !== null) return refusal('call_ended', `${which} has ended already.`);
  if (open.move.decision.kind === 'request_pause') {
    return refusal(
      'call_not_found',
      `Step ${step + 1} is a pause of the planner, and no call: answer it, or cancel the run.`,
    );
  }
  if (!isInDoubt(state, call)) return undefined;
  return refusal(
    'call_in_doubt',
    `Nobody knows whether ${which.toLowerCase()} has happened: settle it. Then it is not made again.`,
  );
}

function refusal(code: ErrorCode, message: string): PilotageError {
  return new PilotageError(code, message);
}

/** Why somebody has cancelled the call of the open step; `undefined`: nobody has. */
export function cancelOf({ cancels }: OpenStep, call: number): CallCancel | undefined {
  return cancels?.find((cancel) => cancel.call === call);
}

/** What a call has come to that somebody has cancelled, with what became of it. */
export function cancelledBySomebody(
  { reason }: CallCancel,
  error = 'It had not begun.',
): Outcome & { kind: 'cancelled' } {
  const why = reason === undefined ? '.' : `: ${reason.endsWith('.') ? reason : `${reason}.`}`;
  return { kind: 'cancelled', error: { code: 'cancelled', message: `Somebody cancelled the call${why} ${error}` } };
}

/** The same for a `once` call that has done something: it is not known what came of that, and an equal call would do it a second time. */
export function halfDoneWhen(open: OpenStep, cancel: CallCancel): Outcome | undefined {
  const half = halfDone(open, cancel.call);
  if (half?.kind !== 'unknown') return half;
  const { message } = cancelledBySomebody(cancel, half.error.message).error;
  return { ...half, error: { ...half.error, message } };
}

export interface CancelledCalls {
  /** The ends of those that wait, or have not begun. */
  readonly entries: readonly CallEnded[];
  /** Tasks that end with them. */
  readonly tasks: readonly string[];
}

/**
 * What follows from the cancels of calls. A call that may have happened is found out first, and one that a
 * task carries out ends with it.
 */
export function cancelledCalls(state: RunState, mayLand: (call: number) => boolean): CancelledCalls {
  const { open } = state;
  const entries: CallEnded[] = [];
  const ended: string[] = [];
  if (open?.cancels === undefined) return { entries, tasks: ended };
  const { step } = open.move;
  for (const cancel of open.cancels) {
    const { call } = cancel;
    if (open.calls[call] !== null || mayLand(call) || mayHaveHappened(open, call) || isCarried(open, call)) continue;
    const isWaiting = waitingCall(open, call) !== undefined;
    const attempts = awayCall(open, call)?.attempts ?? (hasBegun(open, call) || isWaiting ? 1 : 0);
    const what = isWaiting
      ? 'It waited in the middle of its work.'
      : attempts === 0
        ? undefined
        : 'It was not tried again.';
    const outcome = halfDoneWhen(open, cancel) ?? cancelledBySomebody(cancel, what);
    entries.push(callEnded({ step, call }, { outcome, attempts }));
    for (const { id, ...task } of liveIn(state.tasks)) {
      if (task.step === step && task.call === call && isAwaited(open, call, id)) ended.push(id);
    }
  }
  return { entries, tasks: ended };
}

function mayHaveHappened({ began }: OpenStep, call: number): boolean {
  return began.some((begun) => begun.call === call && begun.once);
}

function isCarried({ waits }: OpenStep, call: number): boolean {
  return waits.some((wait) => wait.call === call && wait.agentCall !== undefined);
}

function isAwaited({ waits }: OpenStep, call: number, task: string): boolean {
  return waits.some((wait) => wait.call === call && wait.task === task);
}
