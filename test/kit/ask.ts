/** Asking a planner by hand, without a runtime. */
import { type Delta, isMove, type Move, type Planner, type RunView } from '#core';

const never = new AbortController().signal;

export async function ask(planner: Planner, view: RunView, signal: AbortSignal = never): Promise<Move> {
  return (await listen(planner, view, signal)).move;
}

export async function listen(
  planner: Planner,
  view: RunView,
  signal: AbortSignal = never,
): Promise<{ move: Move; deltas: Delta[] }> {
  const deltas: Delta[] = [];
  let source = planner.next(view, signal);
  if (Symbol.asyncIterator in source) {
    let next = await source.next();
    for (; !next.done; next = await source.next()) deltas.push(next.value);
    source = next.value;
  }
  const made = await source;
  return { move: isMove(made) ? made : { decision: made }, deltas };
}
