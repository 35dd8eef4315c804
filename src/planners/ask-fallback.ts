/** The caller's own planner, once every model has had its tries. */
import { type Delta, isMove, type Move, type Planner, type RunView } from '../core/planner.ts';

/** The fallback planner's move, marked as its own; the remarks tell why it was asked. */
export async function* askFallback(
  fallback: Planner,
  { remarks = [], usage }: Move,
  view: RunView,
  signal: AbortSignal,
): AsyncGenerator<Delta, Move> {
  const source = fallback.next(view, signal);
  const made = Symbol.asyncIterator in source ? yield* source : await source;
  const move: Move = isMove(made) ? made : { decision: made };
  return {
    ...move,
    ...(usage === undefined || move.usage !== undefined ? {} : { usage }),
    provenance: { ...move.provenance, fallback: fallback.name },
    remarks: [...remarks, ...(move.remarks ?? [])],
  };
}
