/**
 * The loop's judgement, pure: what a run in this state needs now. The driver carries it out, the entries that come of it
 * change the state, and the question is asked again. After a crash the same question gives the same answer.
 */
import type { Clock } from '../core/clock.ts';
import type { CallEnded, EntryBody, Finished, Paused } from '../core/entry.ts';
import { type BudgetAxis, DEFAULT_STEP_LIMIT, reachedLimit } from '../core/limits.ts';
import type { Outcome } from '../core/outcome.ts';
import { nextStep, type RunState } from '../view/run-state.ts';

export type Next =
  | { readonly do: 'end' }
  /** Facts that follow from the state. */
  | { readonly do: 'record'; readonly entries: readonly EntryBody[] }
  | { readonly do: 'plan' }
  /** The open step has calls to start or to wait for. */
  | { readonly do: 'calls' }
  /** Nothing to do until an answer, or this time. `null`: no time. */
  | { readonly do: 'park'; readonly wakeAt: number | null };

/** How often in a row a model may give a decision that does not pass before the run is failed. */
export const MAX_REJECTIONS = 3;

const PLAN: Next = { do: 'plan' };
const CALLS: Next = { do: 'calls' };
const END: Next = { do: 'end' };

/**
 * @param clock is read only when something depends on the time.
 * @param newToken gives a fresh pause token.
 */
export function next(state: RunState, clock: Pick<Clock, 'now'>, newToken: () => string): Next {
  if (state.ending !== null) return END;
  if (state.cancel !== null) return record([...abandonCalls(state), cancelled(state)]);
  const { limits, open } = state;
  const overdue = limits.deadlineAt !== undefined && clock.now() >= limits.deadlineAt;
  if (overdue && limits.onCeiling !== 'pause') return record([...abandonCalls(state), ceiling(state, 'deadline')]);
  if (open !== null) {
    switch (open.move.decision.kind) {
      case 'request_pause':
        return waitFor(state, clock.now());
      case 'spawn_task':
      case 'await_task':
        return record([withoutTasks(open.move.step)]);
      default:
        return CALLS;
    }
  }
  if (state.pauses.length > 0) return waitFor(state, clock.now());
  if (state.rejections >= MAX_REJECTIONS) return record([rejectedTooOften(state)]);
  const reached = overdue ? 'deadline' : reachedLimit(limits, state.totals);
  if (reached === undefined) return PLAN;
  return record([limits.onCeiling === 'pause' ? askForRaise(state, reached, newToken()) : ceiling(state, reached)]);
}

function record(entries: readonly EntryBody[]): Next {
  return { do: 'record', entries };
}

/** Waits for the first pause to expire, or the deadline; a pause that has expired is answered with `timeout`. */
function waitFor({ pauses, limits }: RunState, now: number): Next {
  const expired = pauses.find((pause) => pause.expiresAt !== undefined && pause.expiresAt <= now);
  if (expired !== undefined) return record([{ kind: 'resumed', token: expired.token, verdict: 'timeout' }]);
  const times = pauses.flatMap((pause) => pause.expiresAt ?? []);
  if (limits.deadlineAt !== undefined && limits.onCeiling !== 'pause') times.push(limits.deadlineAt);
  return { do: 'park', wakeAt: times.length === 0 ? null : Math.min(...times) };
}

/** Outcomes for the calls that have none when the run ends: exactly one for each, as for all others. */
function abandonCalls(state: RunState): CallEnded[] {
  const { open } = state;
  if (open === null || open.move.decision.kind === 'request_pause') return [];
  return open.calls.flatMap((ended, call): CallEnded[] => {
    if (ended !== null) return [];
    const outcome: Outcome = open.began.includes(call)
      ? {
          kind: 'unknown',
          error: {
            code: 'outcome_unknown',
            message: 'The run ended while the call was under way; it may have happened.',
          },
        }
      : { kind: 'cancelled', error: { code: 'cancelled', message: 'The run ended before the call did.' } };
    return [{ kind: 'call_ended', step: open.move.step, call, outcome, attempts: 0 }];
  });
}

function cancelled(state: RunState): Finished {
  const reason = state.cancel?.payload?.['reason'];
  const metadata = { steering: 'cancelled', run_id: state.identity.run };
  const paused = state.pauses.length > 0 ? { cancel_while_paused: true } : {};
  return {
    kind: 'finished',
    reason: 'cancelled',
    metadata: typeof reason === 'string' ? { ...metadata, ...paused, reason } : { ...metadata, ...paused },
  };
}

function ceiling(state: RunState, axis: BudgetAxis): Finished {
  if (axis === 'deadline') return { kind: 'finished', reason: 'deadline_exceeded', metadata: { budget: axis } };
  const steps = {
    max_steps_exceeded: true,
    max_steps: state.limits.steps ?? DEFAULT_STEP_LIMIT,
    steps_observed: state.totals.steps,
  };
  return {
    kind: 'finished',
    reason: 'no_path',
    metadata: axis === 'steps' ? { budget: axis, ...steps } : { budget: axis },
  };
}

function askForRaise(state: RunState, axis: BudgetAxis, token: string): Paused {
  const { limits, totals } = state;
  const payload = {
    steps: { limit: limits.steps ?? DEFAULT_STEP_LIMIT, used: totals.steps },
    cost: { limit: limits.costMicroUsd ?? null, used: totals.costMicroUsd },
    tokens: { limit: limits.tokens ?? null, used: totals.inputTokens + totals.outputTokens },
    deadline: { limit: limits.deadlineAt ?? null, used: null },
  }[axis];
  return { kind: 'paused', token, reason: 'constraints_conflict', payload: { budget: axis, ...payload } };
}

function withoutTasks(step: number): CallEnded {
  const error = { code: 'tasks_unavailable', message: 'This runtime has no tasks: nothing was spawned or awaited.' };
  return { kind: 'call_ended', step, call: 0, outcome: { kind: 'error', error }, attempts: 0 };
}

function rejectedTooOften(state: RunState): EntryBody {
  const last = state.steps.at(-1)?.error;
  const message = `Step ${nextStep(state) - 1}: ${state.rejections} decisions in a row did not pass. The last: ${last?.message ?? ''}`;
  return { kind: 'failed', error: { code: last?.code ?? 'invalid_decision', message } };
}
