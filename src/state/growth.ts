/** A plan that is carried out while the rest of it is made: its move, as the entries so far have it. */
import type { Entry, Moved, PlanGrown } from '#core';

/** The move with what has come since. Its notes come with the last of it. */
export function grownMove(move: Moved, { branches, done, fault, kind: _, step: __, ...rest }: PlanGrown): Moved {
  const { seq: ___, at: ____, ...notes } = rest as typeof rest & Pick<Entry, 'seq' | 'at'>;
  if (move.decision.kind !== 'call_parallel') return move;
  const decision = { ...move.decision, branches: [...move.decision.branches, ...branches] };
  const { growing, ...given } = move;
  return Object.freeze({
    ...given,
    ...notes,
    decision: Object.freeze(decision),
    ...(fault === undefined ? {} : { fault }),
    ...(growing === true && done !== true ? { growing } : {}),
  });
}

/** The move of an entry with all that later entries add to it; the first of those is at `from`. */
export function wholeMove(move: Moved, entries: readonly Entry[], from: number): Moved {
  let whole = move;
  for (let index = from; whole.growing === true && index < entries.length; index += 1) {
    const entry = entries[index];
    if (entry?.kind === 'moved') break;
    if (entry?.kind === 'plan_grown') whole = grownMove(whole, entry);
  }
  return whole;
}
