/** The caller's own planner, once every model has had its tries. */
import {
  addUsage,
  type Decision,
  type Delta,
  defined,
  isMove,
  type Move,
  PilotageError,
  type Planner,
  type RunView,
  readUsage,
  type Usage,
} from '#core';
import { usageOfError } from '#model';

/**
 * The fallback planner's move, marked as its own; the remarks tell why it was asked. What the models have used before counts
 * with what it uses, also when its own models are away.
 */
export async function* askFallback(
  fallback: Planner,
  { remarks = [], usage, decision }: Move,
  view: RunView,
  signal: AbortSignal,
): AsyncGenerator<Delta, Move> {
  const move = yield* moveOf(fallback, decision, view, signal);
  const used = usedWith(usage, move.usage);
  return {
    ...move,
    ...defined({ usage: used }),
    provenance: { ...move.provenance, fallback: fallback.name },
    remarks: [...remarks, ...(move.remarks ?? [])],
  };
}

/** In a sum, a number that cannot be would be hidden from the runtime, which refuses it. */
function usedWith(before: Usage | undefined, own: Usage | undefined): Usage | undefined {
  if (own === undefined) return before;
  return readUsage(own).wrong === undefined ? addUsage(before, own) : own;
}

async function* moveOf(
  fallback: Planner,
  otherwise: Decision,
  view: RunView,
  signal: AbortSignal,
): AsyncGenerator<Delta, Move> {
  try {
    const source = fallback.next(view, signal);
    const made = Symbol.asyncIterator in source ? yield* source : await source;
    return isMove(made) ? made : { decision: made };
  } catch (error) {
    signal.throwIfAborted();
    if (!PilotageError.is(error, 'model_unavailable')) throw error;
    const used = usageOfError(error);
    return { decision: otherwise, fault: error.toJSON(), ...defined({ usage: used }) };
  }
}
