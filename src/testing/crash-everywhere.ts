/**
 * Proves that a run survives crashes: plays it once to learn every moment at which its process can die, then once for
 * each such moment, with a new process that goes on from the journal.
 *
 *     const report = await crashEverywhere({ name: 'orders', planner, query: 'Order it', tools: (world) => [order(world)] });
 *     assertCrashProof(report);
 *
 * The moments are before and after each write to the journal, each entry into a tool, each effect that a tool reports to
 * its `world`, and each return from a tool.
 */
import { AssertionError } from 'node:assert';
import { type Played, play } from './crash-play.ts';
import type { CrashScenario } from './crash-scenario.ts';
import { seededRandom } from './seeded-random.ts';

export interface CrashOptions {
  /** How many runs crash a second time, at random points of the recovery. Default 20. */
  readonly doubles?: number;
  /** The seed that chooses those points. Default 1. */
  readonly seed?: number;
}

export interface CrashViolation {
  /** Where the processes died; empty for the run without a crash. */
  readonly at: readonly string[];
  readonly what: string;
}

export interface CrashReport {
  readonly scenario: string;
  /** The points at which the first process was killed, one run each. */
  readonly points: readonly string[];
  /** How many runs crashed twice. */
  readonly doubles: number;
  readonly seed: number;
  readonly violations: readonly CrashViolation[];
}

/** Never rejects because of a violation: the report lists them. When the run without a crash has violations, no other run is played. */
export async function crashEverywhere(scenario: CrashScenario, options: CrashOptions = {}): Promise<CrashReport> {
  const { doubles = 20, seed = 1 } = options;
  const violations: CrashViolation[] = [];
  const points: string[] = [];
  const clean = await play(scenario, []);
  note(violations, clean);
  const reference = clean.states;
  if (violations.length > 0 || reference === undefined) {
    return { scenario: scenario.name, points, doubles: 0, seed, violations };
  }
  const pairs: (readonly [number, number])[] = [];
  for (const index of (clean.lives[0] ?? []).keys()) {
    const crashed = await play(scenario, [index], reference);
    note(violations, crashed);
    const [at] = crashed.deaths;
    if (at !== undefined) points.push(`${index}: ${at}`);
    for (const second of (crashed.lives[1] ?? []).keys()) pairs.push([index, second]);
  }
  const chosen = sample(pairs, doubles, seed);
  for (const pair of chosen) note(violations, await play(scenario, pair, reference));
  return { scenario: scenario.name, points, doubles: chosen.length, seed, violations };
}

/** @throws AssertionError with every violation of the reports, and when a report has no crash point. */
export function assertCrashProof(...reports: readonly CrashReport[]): void {
  const lines = reports.flatMap(({ scenario, points, violations }) => [
    ...(points.length === 0 ? [`${scenario}: no crash point was reached.`] : []),
    ...violations.map(({ at, what }) => `${scenario}, ${at.length === 0 ? 'no crash' : at.join(', then ')}: ${what}`),
  ]);
  if (lines.length > 0) throw new AssertionError({ message: lines.join('\n') });
}

function note(violations: CrashViolation[], { deaths, problems }: Played): void {
  for (const what of problems) violations.push({ at: deaths, what });
}

/** `count` different items, chosen by the seed. */
function sample<T>(items: readonly T[], count: number, seed: number): T[] {
  const random = seededRandom(seed);
  const left = [...items];
  const chosen: T[] = [];
  while (chosen.length < count && left.length > 0) {
    chosen.push(...left.splice(Math.floor(random() * left.length), 1));
  }
  return chosen;
}
