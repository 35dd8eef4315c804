/**
 * The memory of a session: which of its runs a new one is told of, in the order in which they were started. What they said is read from
 * their entries; what is before them stands in the summary of one of them, when its planner made one.
 */
import { assertOptions, type Continued, defined, type OptionShape, PilotageError, type Scope } from '#core';
import type { Journal, RunQuery, RunRecord, RunStatus } from '#journal';
import type { KnownRun, ToldRuns, ToldSources } from '../loop/told-runs.ts';

/** How the runs of a session continue the conversation. */
export type MemoryOptions =
  | { readonly strategy: 'none' }
  /**
   * How many of the last turns are told at most. When there are more, older ones leave until half as many are told. Default 20. Runs that have not
   * ended are told of also when they are older.
   */
  | { readonly strategy: 'window'; readonly turns?: number };

export type Remembering = Exclude<MemoryOptions, { readonly strategy: 'none' }>;

type Every = { strategy: string; turns?: number };
const OPTIONS: OptionShape<Every> = { strategy: 'any', turns: 'any?' };
export const DEFAULT_TURNS = 20;
/** How many older runs that have not ended are told of at most, the newest of them. */
const OPEN_RUNS = 20;
const UNENDED: readonly RunStatus[] = ['pending', 'running', 'waiting', 'paused'];

/** @throws PilotageError `invalid_config` */
export function assertMemoryOptions(options: MemoryOptions): void {
  assertOptions('memory', options, OPTIONS);
  switch (options.strategy) {
    case 'none':
      return;
    case 'window': {
      const { turns = 1 } = options;
      if (Number.isSafeInteger(turns) && turns > 0) return;
      throw new PilotageError('invalid_config', `memory.turns is ${turns}; give a whole number from 1 up.`);
    }
    default:
      options satisfies never;
      throw new PilotageError('invalid_config', 'memory.strategy must be none or window.');
  }
}

export interface MemorySources extends ToldSources {
  readonly journal: Journal;
  readonly told: ToldRuns;
}

/** The runs that a new run of the session is told of. `undefined`: there are none. */
export async function rememberedFor(
  scope: Scope,
  { turns = DEFAULT_TURNS }: Remembering,
  sources: MemorySources,
): Promise<Continued | undefined> {
  // One more than are told shows that the window is full.
  const path = await newestRuns(sources.journal, scope, turns + 1);
  const parent = path.at(-1);
  if (parent === undefined) return undefined;
  const continued = continuedAfter(path, await sources.told.of(parent.run, parent.head, scope, sources), turns);
  const older = await openBefore(sources.journal, scope, continued.runs[0]?.run ?? parent.run);
  return { ...continued, runs: [...older, ...continued.runs] };
}

type PathRun = Continued['runs'][number];

/**
 * What a turn is told when these are the turns before it. It goes on from what the turn before it was told, so that requests begin alike: its
 * window grows to `turns`, and then half of it leaves in one go. What its parent has summed up is not told again.
 * @param path oldest first, at least `turns + 1` runs where there are as many.
 * @param parent the last of them, as it is folded.
 */
export function continuedAfter(
  path: readonly PathRun[],
  { compaction, continues }: Pick<KnownRun, 'compaction' | 'continues'>,
  turns: number,
): Continued {
  const last = path.at(-1);
  const earlier = compaction?.earlier;
  const before = continues?.runs ?? [];
  const rest = before.slice(before.findIndex(({ run }) => run === earlier) + 1);
  const summary = earlier === undefined || last === undefined ? continues?.summary : last;
  const known = new Set(rest.map(({ run }) => run));
  const start =
    continues === null ? path.length - turns : path.findIndex((each) => known.has(each.run) || each === last);
  const isFull = path.length - start > turns;
  const from = isFull ? path.length - Math.max(1, Math.floor(turns / 2)) : start;
  return { runs: path.slice(Math.max(0, from)), turns, ...defined({ summary }) };
}

const PAGE = 200;

/** The runs of the conversation, newest first, as the store ordered their starts. @param after only older runs than this one. */
async function* newestFirst(
  journal: Journal,
  { tenant, user, session }: Scope,
  query: Pick<RunQuery, 'after' | 'status'> & { readonly limit?: number } = {},
): AsyncGenerator<PathRun> {
  const { limit = PAGE, ...rest } = query;
  for (let after = query.after; ; ) {
    const page = await journal.list({ ...rest, tenant, user, session, parent: null, limit, ...defined({ after }) });
    for (const { identity, head, ...record } of page) if (isTurn(record)) yield { run: identity.run, head };
    after = page.at(-1)?.identity.run;
    if (page.length < limit) return;
  }
}

/** The newest runs of the conversation, at most so many; the oldest of them first. */
async function newestRuns(journal: Journal, scope: Scope, count: number): Promise<readonly PathRun[]> {
  const found: PathRun[] = [];
  for await (const run of newestFirst(journal, scope, { limit: Math.min(PAGE, count) })) {
    if (found.push(run) === count) break;
  }
  return found.reverse();
}

/** Runs before this one that have not ended, oldest first. */
async function openBefore(journal: Journal, scope: Scope, after: string): Promise<readonly PathRun[]> {
  const open: PathRun[] = [];
  for await (const run of newestFirst(journal, scope, { after, status: UNENDED })) {
    if (open.push(run) === OPEN_RUNS) break;
  }
  return open.reverse();
}

function isTurn({ conversation, parent }: Pick<RunRecord, 'conversation' | 'parent'>): boolean {
  return conversation !== false && parent === undefined;
}
