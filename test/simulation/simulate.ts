/**
 * A seeded simulation of whole histories: several workers on one journal in virtual time, with random planners, tools and
 * people, crashes, stalls and store faults. The same seed gives the same history.
 *
 *     const { violations } = await simulate(42);
 *     if (violations.length > 0) console.log(await shortestHistory(42));
 */
import { generateScript } from './generate.ts';
import type { Violation } from './ledger.ts';
import { play } from './play.ts';
import { shrink } from './shrink.ts';
import { historyText } from './timeline.ts';

export interface SimulatedHistory {
  readonly seed: number;
  /** What did not hold. */
  readonly violations: readonly Violation[];
  readonly runs: number;
  readonly entries: number;
}

/** Plays the history of a seed. It takes over `Math.random`, `crypto.randomUUID` and the like until it is over. */
export async function simulate(seed: number): Promise<SimulatedHistory> {
  const { violations, runs, entries } = await play(generateScript(seed));
  return { seed, violations, runs, entries };
}

/** All that happens in the history of a seed, one line for each thing. */
export async function historyOf(seed: number): Promise<string> {
  const script = generateScript(seed);
  return historyText(script, await play(script, true));
}

/** The shortest history in which the first violation of this seed comes again; `undefined` when the seed has none. */
export async function shortestHistory(seed: number): Promise<string | undefined> {
  const script = generateScript(seed);
  const [first] = (await play(script)).violations;
  if (first === undefined) return undefined;
  const shortest = await shrink(script, async (candidate) => {
    const { violations } = await play(candidate);
    return violations.some(({ invariant }) => invariant === first.invariant);
  });
  return historyText(shortest, await play(shortest, true));
}
