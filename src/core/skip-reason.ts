/** Which of the branches that were skipped were meant to be. */
import type { Outcome } from './outcome.ts';

/**
 * Whether a skipped branch was passed over: somebody took it out, a condition did not hold, or so for the branch because of
 * which it was skipped. It names that one; when that has a value, it was not the value asked for.
 * @param known what was found out before, by the branch. Added to.
 */
export function isPassedOver(
  branch: number,
  outcomeOf: (branch: number) => Outcome | undefined,
  known: Map<number, boolean>,
): boolean {
  const path: number[] = [];
  let isPassed = false;
  for (let at: number | undefined = branch; at !== undefined; ) {
    const outcome = outcomeOf(at);
    const before = known.get(at);
    isPassed = before ?? (outcome?.kind === 'value' ? path.length > 0 : isRemoved(outcome));
    if (before !== undefined || outcome?.kind !== 'skipped') break;
    known.set(at, isPassed);
    path.push(at);
    at = causeOf(outcome);
  }
  for (const each of path) known.set(each, isPassed);
  return isPassed;
}

function isRemoved(outcome: Outcome | undefined): boolean {
  return outcome?.kind === 'skipped' && outcome.error.code === 'node_removed';
}

function causeOf({ error }: Extract<Outcome, { kind: 'skipped' }>): number | undefined {
  const cause = error.data?.['branch'];
  return typeof cause === 'number' ? cause : undefined;
}
