/** Reports of rounds, for people and for programs. */
import type { Deeds, RoundReport } from './round.ts';
import { KINDS, type Verdict } from './verdict.ts';

export function isClean({ verdict }: RoundReport): boolean {
  return KINDS.every((kind) => verdict[kind].length === 0);
}

/** A line for each problem. */
export function problemLines({ seed, verdict, kept }: RoundReport): string[] {
  const lines = KINDS.flatMap((kind) => verdict[kind].map((problem) => `round of seed ${seed}: ${kind}: ${problem}`));
  return kept === undefined ? lines : [...lines, `round of seed ${seed}: its files are in ${kept}`];
}

export type Counts = Deeds &
  Readonly<Record<keyof Verdict, number>> & {
    readonly rounds: number;
    /** Whose start was acknowledged. */
    readonly runs: number;
    /** Of them and of those whose start was not acknowledged, although it had landed. */
    readonly ended: number;
    readonly endings: Readonly<Record<string, number>>;
    readonly effects: number;
    /** What the operator said. */
    readonly answers: number;
    readonly faults: Readonly<Record<string, number>>;
    /** The longest time that it took from the last hindrance until all had ended. */
    readonly healMs: number;
  };

export function countsOf(reports: readonly RoundReport[]): Counts {
  const sum = (count: (report: RoundReport) => number): number =>
    reports.reduce((total, each) => total + count(each), 0);
  const deed = (name: keyof Deeds): number => sum(({ deeds }) => deeds[name]);
  const endings = added(reports.map((each) => each.endings));
  return {
    rounds: reports.length,
    runs: sum(({ runs }) => runs),
    ended: Object.entries(endings).reduce((total, [name, count]) => total + (name === 'none' ? 0 : count), 0),
    kills: deed('kills'),
    stops: deed('stops'),
    blocks: deed('blocks'),
    jumps: deed('jumps'),
    fullDisks: deed('fullDisks'),
    ...(Object.fromEntries(KINDS.map((kind) => [kind, sum(({ verdict }) => verdict[kind].length)])) as Record<
      keyof Verdict,
      number
    >),
    effects: sum(({ effects }) => effects),
    answers: sum(({ answers }) => answers),
    endings,
    faults: added(reports.map((each) => each.faults)),
    healMs: Math.max(0, ...reports.map((each) => each.healMs)),
  };
}

function added(counts: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const all: Record<string, number> = {};
  for (const each of counts) for (const [name, count] of Object.entries(each)) all[name] = (all[name] ?? 0) + count;
  return all;
}
