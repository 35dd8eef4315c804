/** The result of a run, as far as the run has come. */
import { answerText, defined, type ErrorData, type FinishReason, type Json, type JsonObject } from '#core';
import { isPaused, type OpenPause, pausesOfTasks, type RunState, type RunTotals } from '#state';

export type RunResult =
  | {
      readonly status: 'finished';
      readonly reason: FinishReason;
      /** The answer in words, for a person. Absent when the run gave no words; `reason` and `metadata` say how it ended. */
      readonly answer?: string;
      readonly payload?: Json;
      /** The payload is the reference of the artifact that holds it; `Run.payload` gives the whole. */
      readonly stored?: true;
      readonly metadata?: JsonObject;
      readonly usage: Readonly<RunTotals>;
    }
  | { readonly status: 'failed'; readonly error: ErrorData; readonly usage: Readonly<RunTotals> }
  | {
      readonly status: 'paused';
      readonly pauses: readonly PauseNotice[];
      readonly usage: Readonly<RunTotals>;
    };

export interface PauseNotice extends Omit<OpenPause, 'requestedAt'> {
  /** The run that waits: this run, or a task that it waits for. An answer can be given through either of them. */
  readonly run: string;
  /** Absent for a task's. */
  readonly requestedAt?: number;
  /** The text of the planner's model when it asked, if there was one. */
  readonly text?: string;
}

/** The result of a run that has ended or is paused; `undefined` while it is going. */
export function runResultOf(state: RunState): RunResult | undefined {
  const { ending, totals } = state;
  const usage = { ...totals };
  if (ending?.kind === 'failed') return { status: 'failed', error: ending.error, usage };
  if (ending?.kind === 'finished') {
    const { reason, payload, stored, metadata } = ending;
    const answer = answerText(payload);
    return {
      status: 'finished',
      reason,
      ...defined({ answer }),
      usage,
      ...defined({ payload, stored, metadata }),
    };
  }
  if (!isPaused(state)) return undefined;
  const text = state.open?.move.text;
  const { run } = state.identity;
  const own = state.pauses.map(
    (pause): PauseNotice =>
      text === undefined || pause.step === undefined ? { ...pause, run } : { ...pause, run, text },
  );
  return { status: 'paused', pauses: [...own, ...pausesOfTasks(state)], usage };
}
