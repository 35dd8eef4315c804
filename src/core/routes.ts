/** The ways to a branch: what each needs, and which one is open. */
import type { Branch, Route } from './decision.ts';

/** A route, or a branch that has but one. */
type Way = Route & Pick<Branch, 'behind'>;

import { jsonEquals } from './json.ts';
import type { Outcome } from './outcome.ts';
import { referencesIn } from './reference.ts';

/** The routes of a branch; of one without routes its only way. */
export function waysOf(branch: Branch): readonly Way[] {
  return branch.routes ?? [branch];
}

/** The ids of the branches that a way needs, each once. */
export function needsOf(way: Way): ReadonlySet<string> {
  const ids = strictNeedsOf(way);
  for (const id of way.behind ?? []) ids.add(id);
  return ids;
}

/** Ids of the branches that must have a value. */
function strictNeedsOf({ after, when, args }: Route): Set<string> {
  const ids = new Set(after);
  if (when !== undefined) ids.add(when.branch);
  for (const id of referencesIn(args)) ids.add(id);
  return ids;
}

/** By the id of a branch. `undefined`: it has not ended. */
export type OutcomeOf = (id: string) => Outcome | undefined;

/** The branch because of which a way is closed; `undefined`: it is open, as far as values go. */
export function blockOf(route: Route, outcomeOf: OutcomeOf): string | undefined {
  for (const id of strictNeedsOf(route)) if (outcomeOf(id)?.kind !== 'value') return id;
  const { when } = route;
  if (when === undefined) return undefined;
  const outcome = outcomeOf(when.branch);
  return outcome?.kind === 'value' && jsonEquals(outcome.value, when.equals) ? undefined : when.branch;
}

/** The way that a branch goes when all that it needs has ended: the first open one. */
export function openRoute(branch: Branch, outcomeOf: OutcomeOf): Route | undefined {
  return waysOf(branch).find((route) => blockOf(route, outcomeOf) === undefined);
}
