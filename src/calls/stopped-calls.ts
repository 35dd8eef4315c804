/** Calls that somebody cancels while they are under way here. The control stands in the inbox then, and is taken before their ends are recorded. */
import { type CallPlace, type CallResult, PilotageError } from '#core';
import {
  type CallCancel,
  cancelledBySomebody,
  cancelOf,
  halfDone,
  halfDoneWhen,
  type OpenStep,
  type RunState,
} from '#state';
import type { Attempt } from './attempt.ts';

interface InFlight {
  readonly call: number;
  readonly attempt: Attempt;
}

export class StoppedCalls {
  readonly #state: Pick<RunState, 'open'>;
  readonly #inFlight: readonly InFlight[];
  /** Those that were stopped in the step, whatever the journal says yet. */
  #stopped: { readonly step: number; readonly cancels: CallCancel[] } | undefined;

  constructor(state: Pick<RunState, 'open'>, inFlight: readonly InFlight[]) {
    this.#state = state;
    this.#inFlight = inFlight;
  }

  /** Stops the call, if it is under way. What may have happened is still looked up. */
  stop({ step, call }: CallPlace, reason: unknown): void {
    const flying = this.#inFlight.find((one) => one.call === call);
    if (flying === undefined || this.#state.open?.move.step !== step) return;
    if (this.#stopped?.step !== step) this.#stopped = { step, cancels: [] };
    this.#stopped.cancels.push(typeof reason === 'string' ? { call, reason } : { call });
    flying.attempt.dismiss(why());
  }

  /** Stops what is under way and has been cancelled in the journal. */
  stopAll(open: OpenStep): void {
    if (open.cancels === undefined) return;
    for (const { call, attempt } of this.#inFlight) if (cancelOf(open, call) !== undefined) attempt.dismiss(why());
  }

  /** Some were stopped in the open step. */
  get any(): boolean {
    return this.#stopped !== undefined && this.#stopped.step === this.#state.open?.move.step;
  }

  /** A call that was stopped because somebody has cancelled it says so; and one that has done a part of its work, that it has. */
  told(open: OpenStep, call: number, result: CallResult): CallResult {
    const { outcome, attempts } = result;
    const cancel = outcome.kind === 'cancelled' ? this.#cancelOf(open, call) : undefined;
    const done = cancel === undefined ? halfDone(open, call) : halfDoneWhen(open, cancel);
    const half = outcome.kind === 'cancelled' ? done : undefined;
    if (half !== undefined) return { ...result, outcome: half, attempts: Math.max(1, attempts) };
    if (outcome.kind !== 'cancelled' || cancel === undefined) return result;
    return { ...result, outcome: cancelledBySomebody(cancel, outcome.error.message) };
  }

  #cancelOf(open: OpenStep, call: number): CallCancel | undefined {
    const own = this.#stopped?.step === open.move.step ? this.#stopped.cancels : [];
    return own.find((cancel) => cancel.call === call) ?? cancelOf(open, call);
  }
}

function why(): PilotageError {
  return new PilotageError('cancelled', 'Somebody cancelled the call.');
}

/** Why the result of a call is not wanted any more. */
export function notWanted(): PilotageError {
  return new PilotageError(
    'cancelled',
    'The join has what it needed, the plan has ended, another branch has failed, or the run is to end.',
  );
}
