/** The conversation before a run, as its planner is shown it: what the caller gave, or the transcripts of the session's runs. */
import {
  type Continued,
  deepFreeze,
  type EarlierRun,
  type EarlierRuns,
  keptFrom,
  type Scope,
  type Turn,
  type TurnPart,
} from '#core';
import type { ArtifactStore } from '#journal';
import { type RunState, summaryText, turnsOf } from '#state';
import { loadInputs } from './inputs.ts';
import type { KnownRun, ToldRuns, ToldSources } from './told-runs.ts';

export interface TurnSources extends ToldSources {
  readonly told: ToldRuns;
}

/** What came before a run. */
export interface Before {
  readonly history: readonly Turn[];
  /** Absent: the caller gave the history, or there is none. */
  readonly earlier?: EarlierRuns;
}

/** What the first turn of a session is told. */
export const NOTHING_BEFORE: Before = Object.freeze({
  history: Object.freeze([]),
  earlier: Object.freeze({ runs: Object.freeze([]) }),
});

/** Whether there is something to load before the planner can be asked. */
export function hasEarlierTurns({ continues, history }: Pick<RunState, 'continues' | 'history'>): boolean {
  if (continues !== null && (history.length > 0 || !goesOnFromNothing(continues))) return true;
  return history.some(({ parts }) => parts?.some(isFile));
}

function goesOnFromNothing({ runs, summary, aside }: Continued): boolean {
  return runs.length === 0 && summary === undefined && aside === undefined;
}

/**
 * The turns with the bytes of their files, frozen. The same entries always give the same turns.
 * @throws PilotageError of a store that cannot be read for now.
 */
export async function earlierTurns(
  { continues, history, identity }: Pick<RunState, 'continues' | 'history' | 'identity'>,
  sources: TurnSources,
): Promise<Before> {
  const given = await Promise.all(history.map((turn) => withFiles(turn, identity, sources.artifacts)));
  if (continues === null) return { history: deepFreezeTurns(given) };
  const earlier = await earlierRuns(continues, identity, sources);
  const { runs, summary, aside } = earlier;
  const before: Turn[] = summary === undefined ? [] : [{ role: 'assistant', text: summaryText(summary.summary) }];
  const turns = deepFreezeTurns([...given, ...before, ...runs.flatMap(turnsOf)]);
  if (given.length === 0) return { history: turns, earlier };
  // What was given stands before the runs, and is told as turns with them.
  return aside === undefined ? { history: turns } : { history: turns, earlier: { runs: [], aside } };
}

/** Bytes cannot be frozen. */
function deepFreezeTurns(turns: readonly Turn[]): readonly Turn[] {
  for (const turn of turns) {
    for (const part of turn.parts ?? []) if (part.type !== 'file') deepFreeze(part);
    Object.freeze(turn.parts);
    Object.freeze(turn);
  }
  return Object.freeze(turns);
}

/**
 * The transcripts that the run is told, oldest first. A run whose planner summed up what was before it tells the rest: the newest summary stands for
 * all that it covers.
 */
async function earlierRuns(continues: Continued, scope: Scope, sources: TurnSources): Promise<EarlierRuns> {
  const known = await Promise.all(continues.runs.map(({ run, head }) => sources.told.of(run, head, scope, sources)));
  const last = known.findLast(hasSummedUp);
  const told =
    last === undefined
      ? known
      : known.slice(known.findIndex(({ told: { run } }) => run === last.compaction?.earlier) + 1);
  const runs = Object.freeze(lastExchanges(told, continues.turns));
  const summary = last === undefined ? await summaryOf(continues, scope, sources) : last.compaction;
  // Where steps of its own are summed up with them, the summary stands in their place.
  const isInside = last !== undefined && (last.compaction?.before ?? 0) > 0;
  const aside = await runsAside(continues.aside, scope, sources);
  return Object.freeze(summary === null || isInside ? { runs, ...aside } : { runs, summary, ...aside });
}

async function runsAside(
  aside: Continued['aside'],
  scope: Scope,
  sources: TurnSources,
): Promise<Pick<EarlierRuns, 'aside'>> {
  if (aside === undefined) return {};
  const known = await Promise.all(aside.map(({ run, head }) => sources.told.of(run, head, scope, sources)));
  return { aside: Object.freeze(known.map(({ told }) => told)) };
}

function hasSummedUp({ compaction }: Pick<KnownRun, 'compaction'>): boolean {
  return compaction?.earlier !== undefined;
}

async function summaryOf({ summary }: Continued, scope: Scope, sources: TurnSources): Promise<KnownRun['compaction']> {
  return summary === undefined ? null : (await sources.told.of(summary.run, summary.head, scope, sources)).compaction;
}

/** Each run as far as it is told: of all exchanges with the user the last ones, and of each run at least its last one. */
function lastExchanges(known: readonly KnownRun[], turns: number): readonly EarlierRun[] {
  const ones = known.flatMap(({ exchanges }) => exchanges.map(() => 1));
  let left = keptFrom(ones, turns);
  return known.map(({ told, exchanges }) => {
    const skipped = Math.min(left, exchanges.length - 1);
    left -= Math.min(left, exchanges.length);
    const from = exchanges[skipped] ?? 0;
    // What was summed up is short as it is.
    return from === 0 || told.trajectory.compaction !== undefined ? told : Object.freeze({ ...told, from });
  });
}

async function withFiles(turn: Turn, scope: Scope, artifacts: ArtifactStore): Promise<Turn> {
  const files = turn.parts?.filter(isFile) ?? [];
  if (turn.parts === undefined || files.length === 0) return turn;
  const loaded = await loadInputs(files, scope, artifacts);
  let next = 0;
  return { ...turn, parts: turn.parts.map((part) => (isFile(part) ? (loaded[next++] as typeof part) : part)) };
}

function isFile(part: TurnPart): part is Extract<TurnPart, { type: 'file' }> {
  return part.type === 'file';
}
