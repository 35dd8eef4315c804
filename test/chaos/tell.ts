/** Reports of rounds, for people and for programs. */
import type { ScheduleCounts } from './judge-schedules.ts';
import type { StreamCounts } from './judge-streams.ts';
import type { TalkCounts } from './judge-talk.ts';
import type { UndoCounts } from './judge-undo.ts';
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
  UndoCounts &
  StreamCounts &
  ScheduleCounts &
  TalkCounts &
  Readonly<Record<keyof Verdict, number>> & {
    readonly rounds: number;
    /** Whose start was acknowledged. */
    readonly runs: number;
    /** Of them and of those whose start was not acknowledged, although it had landed. */
    readonly ended: number;
    readonly endings: Readonly<Record<string, number>>;
    /** Of schedules. */
    readonly pauses: number;
    /** Of streams; a reader whose process dies reads on in another one. */
    readonly readings: number;
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
    leaps: deed('leaps'),
    fullDisks: deed('fullDisks'),
    ...(Object.fromEntries(KINDS.map((kind) => [kind, sum(({ verdict }) => verdict[kind].length)])) as Record<
      keyof Verdict,
      number
    >),
    unwound: sum(({ undo }) => undo.unwound),
    unwoundOn: sum(({ undo }) => undo.unwoundOn),
    fires: sum(({ schedules }) => schedules.fires),
    firesLeftOut: sum(({ schedules }) => schedules.firesLeftOut),
    triggers: sum(({ schedules }) => schedules.triggers),
    pauses: sum(({ pauses }) => pauses),
    turns: sum(({ talk }) => talk.turns),
    steered: sum(({ talk }) => talk.steered),
    rows: sum(({ streams }) => streams.rows),
    rowsCutOff: sum(({ streams }) => streams.rowsCutOff),
    readings: sum(({ readings }) => readings),
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
