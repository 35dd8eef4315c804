/**
 * The way through a session to one of its turns. A session is a tree: each turn goes on from another one, which is the turn before it, or
 * the one that its sender has chosen. What a turn is told of the turns before it is decided when its turn has come.
 */
import {
  type Continued,
  commonAuthor,
  defined,
  type InputArtifact,
  queryWords,
  type Scope,
  type TurnOrigin,
  type TurnStarted,
} from '#core';
import type { Journal, RunRecord } from '#journal';
import { type RunState, turnsOf } from '#state';
import type { KnownRun } from '../loop/told-runs.ts';
import { continuedAfter, DEFAULT_TURNS, type MemorySources } from './session-memory.ts';

const PAGE = 50;

/** Which turn comes next on the way back: this one, any, the one that this one goes on from, or none. */
type Wanted = { readonly run: string } | { readonly before: string } | 'any' | undefined;

function wantedBy({ after, replaces }: Partial<TurnOrigin> = {}): Wanted {
  if (after !== undefined) return after === null ? undefined : { run: after };
  return replaces === undefined ? 'any' : { before: replaces };
}

/**
 * The turns of a session before one, the last of them first.
 * @param first how many are read at first, of which each costs something: as many as are likely to be wanted.
 */
export async function* turnsBefore(
  journal: Pick<Journal, 'list'>,
  { tenant, user, session }: Scope,
  turn: number,
  first: number = PAGE,
): AsyncGenerator<RunRecord, void> {
  let limit = Math.min(PAGE, first);
  for (let before = turn; before > 1; limit = PAGE) {
    const page = await journal.list({ tenant, user, session, beforeTurn: before, limit });
    yield* page;
    if (page.length < limit) return;
    before = page.at(-1)?.turn ?? 0;
  }
}

/** The turns of a session behind one, the first of them first. */
export async function* turnsBehind(
  journal: Pick<Journal, 'list'>,
  { tenant, user, session }: Scope,
  turn: number,
): AsyncGenerator<RunRecord, void> {
  for (let last = turn; ; last += PAGE) {
    const page = await journal.list({ tenant, user, session, beforeTurn: last + PAGE + 1, limit: PAGE });
    const behind = page.filter((record) => (record.turn ?? 0) > last);
    yield* behind.reverse();
    if (behind.length < PAGE) return;
  }
}

interface Way {
  /** The turns on the way, the last of them first. */
  readonly turns: readonly RunRecord[];
  /** Those that were passed by, the last of them first. */
  readonly beside: readonly RunRecord[];
}

interface WayBack {
  readonly turn: number;
  readonly origin: TurnOrigin | undefined;
  readonly limit?: number;
}

/**
 * The way back from a turn.
 * @param limit how many turns are wanted at most; one that was handed over, or goes on in a further run, is one turn.
 */
export async function wayBack(
  journal: Pick<Journal, 'list' | 'get'>,
  scope: Scope,
  { turn, origin, limit = Number.POSITIVE_INFINITY }: WayBack,
): Promise<Way> {
  const turns: RunRecord[] = [];
  const beside: RunRecord[] = [];
  let wanted = await wantedAt(journal, turn, origin);
  let succeeds = origin?.succeeds;
  let count = 0;
  if (wanted === undefined || (limit < 1 && succeeds === undefined)) return { turns, beside };
  for await (const record of turnsBefore(journal, scope, turn, limit)) {
    const { identity, turnOrigin } = record;
    const isWanted = wanted === 'any' || ('run' in wanted && wanted.run === identity.run);
    if (isWanted && identity.run !== succeeds) count += 1;
    if (count > limit) break;
    // Nothing is left of a turn whose content was erased.
    if (record.erased === undefined) (isWanted ? turns : beside).push(record);
    if (isWanted) succeeds = turnOrigin?.succeeds;
    if (isWanted || (typeof wanted === 'object' && 'before' in wanted && wanted.before === identity.run)) {
      wanted = await wantedAt(journal, record.turn ?? 0, turnOrigin);
    }
    // Before the next page is read.
    if (wanted === undefined || (count >= limit && succeeds === undefined)) break;
  }
  return { turns, beside };
}

/** A turn that waits may be replaced by one that stands before it, and goes on from where that one would have. */
async function wantedAt(
  journal: Pick<Journal, 'get'>,
  turn: number,
  origin: Partial<TurnOrigin> | undefined,
): Promise<Wanted> {
  const wanted = wantedBy(origin);
  if (typeof wanted !== 'object' || !('before' in wanted)) return wanted;
  const replaced = await journal.get(wanted.before);
  return (replaced?.turn ?? 0) > turn ? wantedAt(journal, turn, replaced?.turnOrigin) : wanted;
}

/** Without the runs that have ended to go on in a fresh one of the same agent: what that one needs it has been given. */
function withoutContinued(turns: readonly RunRecord[]): readonly RunRecord[] {
  return turns.filter(({ identity, agent }, index) => {
    const later = turns[index - 1];
    return later?.turnOrigin?.succeeds !== identity.run || later.agent !== agent;
  });
}

/**
 * The entry with which a turn begins whose turn has come.
 * @param options `turns`: how many are told at most. `afresh`: whatever the turn before was told, the last turns of the branch are named.
 * @throws PilotageError of a store that cannot be read for now.
 */
export async function turnStarted(
  { identity, turn: origin, query, author, notice, context }: RunState,
  sources: MemorySources,
  { turns: window = DEFAULT_TURNS, afresh = false }: { readonly turns?: number; readonly afresh?: boolean } = {},
): Promise<TurnStarted> {
  const { way, turns, before, cut, idle } = await comingFrom({ identity, turn: origin }, sources, window);
  const isLeft = ({ run }: Runs[number]): boolean => !idle.has(run);
  const path = turns.map(({ identity: { run }, head }) => ({ run, head })).reverse();
  const begun = path.length - before.length + 1;
  const base = before.at(-1)?.known;
  // What it has summed up is its own.
  const upToBegun = base?.compaction === null ? path.slice(0, begun).filter(isLeft) : path.slice(0, begun);
  const continued =
    base === undefined ? { runs: [], turns: window } : continuedAfter(upToBegun, afresh ? AFRESH : base, window);
  const runs = [...continued.runs, ...path.slice(begun)].filter(isLeft);
  const aside = withAside(base?.continues?.aside ?? [], await doneBeside(way.beside, identity, sources));
  return {
    kind: 'turn_started',
    continues: { ...continued, runs, ...(aside.length === 0 ? {} : { aside }) },
    ...(cut.length === 0 ? {} : withInterrupted(cut, { query, author, notice, inputs: context.inputs })),
  };
}

/** The same of the first turn of a session, which goes on from nothing: `undefined` where turns of one's own, which `load` gives, may stand before it. */
export function firstTurnStarted(
  { turns = DEFAULT_TURNS }: { readonly turns?: number } = {},
  load?: unknown,
): TurnStarted | undefined {
  return load === undefined ? { kind: 'turn_started', continues: { runs: [], turns } } : undefined;
}

/** A turn that was interrupted before it had done anything leaves nothing but its messages, and takes no other turn's place among so many. */
async function comingFrom(
  { identity, turn: origin }: Pick<RunState, 'identity' | 'turn'>,
  sources: MemorySources,
  window: number,
) {
  const { journal } = sources;
  const { turn = 1 } = (await journal.get(identity.run)) ?? {};
  for (let limit = window + 1; ; ) {
    const way = await wayBack(journal, identity, { turn, origin: origin ?? undefined, limit });
    const turns = withoutContinued(way.turns);
    const before = await rightBefore(turns, identity, sources);
    const cut = interruptedBy(origin?.interrupts, before);
    const idle = await idleAmong(turns, origin?.interrupts, identity, sources);
    if (way.turns.length < limit || limit >= window + 1 + idle.size) return { way, turns, before, cut, idle };
    limit = Math.max(window + 1 + idle.size, 2 * limit);
  }
}

const AFRESH = { compaction: null, continues: null };

interface Before {
  readonly record: RunRecord;
  readonly known: KnownRun;
}

/** The turns right before, back to the one that had begun: the others were cancelled while they waited, and were told nothing. The last of them first. */
async function rightBefore(
  turns: readonly RunRecord[],
  scope: Scope,
  sources: MemorySources,
): Promise<readonly Before[]> {
  const found: Before[] = [];
  for (const record of turns) {
    const known = await sources.told.of(record.identity.run, record.head, scope, sources);
    found.push({ record, known });
    if (known.continues !== null || record.status !== 'cancelled') break;
  }
  return found;
}

/** The turn that was interrupted; and, when it was while it waited, also those whose messages it was to take over. Oldest first. */
function interruptedBy(interrupts: string | undefined, before: readonly Before[]): readonly KnownRun[] {
  const cut: KnownRun[] = [];
  let wanted = interrupts;
  for (const { record, known } of before) {
    if (record.identity.run !== wanted || record.status !== 'cancelled') break;
    cut.unshift(known);
    wanted = record.turnOrigin?.interrupts;
  }
  return cut;
}

/** Those of the turns, the last of them first, that the next one has interrupted before they had done anything: it has their words. */
async function idleAmong(
  turns: readonly RunRecord[],
  interrupts: string | undefined,
  scope: Scope,
  sources: MemorySources,
): Promise<ReadonlySet<string>> {
  const idle = new Set<string>();
  let wanted = interrupts;
  for (const { identity, head, status, turnOrigin } of turns) {
    const isCut = identity.run === wanted && status === 'cancelled';
    if (isCut && hasDoneNothing(await sources.told.of(identity.run, head, scope, sources))) idle.add(identity.run);
    wanted = turnOrigin?.interrupts;
  }
  return idle;
}

function hasDoneNothing({ told: { trajectory } }: KnownRun): boolean {
  return trajectory.count === 0;
}

function withInterrupted(
  cut: readonly KnownRun[],
  own: Pick<RunState, 'query' | 'author' | 'notice'> & { readonly inputs: readonly InputArtifact[] | undefined },
): Pick<TurnStarted, 'query' | 'inputs' | 'author'> {
  const said = cut.flatMap(({ told }) => turnsOf(told)).flatMap(({ role, text }) => (role === 'user' ? [text] : []));
  const before = cut.flatMap(({ told }) => told.inputs.map(({ bytes: _, ...input }) => input));
  const inputs = [...before, ...(own.inputs ?? [])];
  const query = [...said, queryWords(own)].filter((text) => text !== '').join('\n\n');
  const author = own.notice
    ? undefined
    : commonAuthor([own.author, ...cut.flatMap(({ told, heard }) => [told, ...heard].map((one) => one.author))]);
  return { query, ...defined({ author, inputs: inputs.length === 0 ? undefined : inputs }) };
}

type Runs = Continued['runs'];

/** Those that have done something, oldest first: the others would be named in every turn that comes, and have nothing to tell. @param beside the last of them first. */
async function doneBeside(beside: readonly RunRecord[], scope: Scope, sources: MemorySources): Promise<Runs> {
  const done: Runs[number][] = [];
  for (const { identity, head } of beside) {
    const known = await sources.told.of(identity.run, head, scope, sources);
    if (!hasDoneNothing(known)) done.push({ run: identity.run, head });
  }
  return done.reverse();
}

/** What the turn before was told of other branches, and what was passed by since. */
function withAside(known: Runs, passed: Runs): Runs {
  return [...known.filter(({ run }) => passed.every((turn) => turn.run !== run)), ...passed];
}
