/** Reports of plays, for people and for programs. */
import { type CutName, cuts } from './cuts.ts';
import type { Made, PlayReport } from './play.ts';
import { scenarios } from './scenarios.ts';
import type { Problems } from './verdict.ts';

const KINDS = ['twice', 'unasked', 'lost', 'denied', 'other'] as const satisfies (keyof Problems)[];

export function isClean({ problems }: PlayReport): boolean {
  return KINDS.every((kind) => problems[kind].length === 0);
}

/** The run came by the place where it was to be cut. */
export function isCut({ made }: PlayReport): boolean {
  return Object.keys(made).length > 0;
}

/** A line for each problem, with what is needed to play it again. */
export function problemLines({ scenario, cut, seed, problems }: PlayReport): string[] {
  return KINDS.flatMap((kind) =>
    problems[kind].map((problem) => `--scenario "${scenario}" --cut ${cut} --seed ${seed}: ${kind}: ${problem}`),
  );
}

export interface Counts {
  readonly plays: number;
  /** Processes that were killed. */
  readonly kills: number;
  /** Processes that were stopped. */
  readonly stops: number;
  /** Event loops that stood still. */
  readonly blocked: number;
  readonly limits: number;
  readonly aborts: number;
  readonly hostile: number;
  readonly effects: number;
  /** Calls in doubt that somebody settled. */
  readonly settled: number;
  readonly effectsTwice: number;
  readonly effectsUnasked: number;
  /** Effects that were wanted, and never happened in a run that says that it is done. */
  readonly effectsLost: number;
  /** Effects of which the journal says that they did not happen. */
  readonly effectsDenied: number;
  readonly otherProblems: number;
}

export function countsOf(reports: readonly PlayReport[]): Counts {
  const sum = (count: (report: PlayReport) => number): number =>
    reports.reduce((total, each) => total + count(each), 0);
  const made = (...acts: readonly (keyof Made)[]): number =>
    sum((each) => acts.reduce((total, act) => total + (each.made[act] ?? 0), 0));
  const stopped = (cut: CutName): number => sum((each) => (each.cut === cut && isCut(each) ? 1 : 0));
  return {
    plays: reports.length,
    kills: made('kill'),
    stops: made('stop'),
    blocked: made('block'),
    limits: stopped('limit'),
    aborts: stopped('abort'),
    hostile: made('say'),
    effects: sum(({ effects }) => effects),
    settled: sum(({ settled }) => settled),
    effectsTwice: sum(({ problems }) => problems.twice.length),
    effectsUnasked: sum(({ problems }) => problems.unasked.length),
    effectsLost: sum(({ problems }) => problems.lost.length),
    effectsDenied: sum(({ problems }) => problems.denied.length),
    otherProblems: sum(({ problems }) => problems.other.length),
  };
}

/** A row for each scenario, a column for each cut: how many plays were cut, and in how many something was wrong. */
export function table(reports: readonly PlayReport[]): string {
  const rows = scenarios.map(({ name }) => [
    name,
    ...cuts.map((cut) => {
      const own = reports.filter((each) => each.scenario === name && each.cut === cut);
      const wrong = own.filter((each) => !isClean(each)).length;
      const made = own.filter(isCut).length;
      return wrong === 0 ? String(made) : `${made} (${wrong} wrong)`;
    }),
  ]);
  return [['', ...cuts], ...rows]
    .map((row) =>
      row
        .map((cell) => cell.padEnd(18))
        .join('')
        .trimEnd(),
    )
    .join('\n');
}
