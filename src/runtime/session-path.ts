/**
 * The way through a session to one of its turns. A session is a tree: each turn goes on from another one, which is the turn before it, or
 * the one that its sender has chosen. What a turn is told of the turns before it is decided when its turn has come.
 */
import { defined, type InputArtifact, type Scope, type TurnOrigin, type TurnStarted } from '#core';
import type { Journal, RunRecord } from '#journal';
import { exchangesOf, foldEntries, type RunState } from '#state';

type TurnJournal = Pick<Journal, 'get' | 'list' | 'read'>;

/** How many turns are told whole at least, where there are so many; there may be twice as many. */
export const WINDOW_TURNS = 20;
const PAGE = 50;
/** The turn's own entry stands among its first, behind what was said to it while it waited. */
const FIRST_ENTRIES = 300;

/** Which turn comes next on the way back: this one, any, the one that this one goes on from, or none. */
type Wanted = { readonly run: string } | { readonly before: string } | 'any' | undefined;

function wantedBy({ after, replaces }: Partial<TurnOrigin> = {}): Wanted {
  if (after !== undefined) return after === null ? undefined : { run: after };
  return replaces === undefined ? 'any' : { before: replaces };
}

/** The turns of a session before one, the last of them first. */
export async function* turnsBefore(
  journal: Pick<Journal, 'list'>,
  { tenant, user, session }: Scope,
  turn: number,
): AsyncGenerator<RunRecord, void> {
  for (let before = turn; before > 1; ) {
    const page = await journal.list({ tenant, user, session, beforeTurn: before, limit: PAGE });
    yield* page;
    if (page.length < PAGE) return;
    before = page.at(-1)?.turn ?? 0;
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
  readonly window?: number;
  readonly limit?: number;
}

/** The way back from a turn. @param window as for `toldFrom`, by the turn that it goes on from. @param limit how many turns are wanted at most. */
export async function wayBack(
  journal: Pick<Journal, 'list'>,
  scope: Scope,
  { turn, origin, window = Number.POSITIVE_INFINITY, limit = Number.POSITIVE_INFINITY }: WayBack,
): Promise<Way> {
  const turns: RunRecord[] = [];
  const beside: RunRecord[] = [];
  let wanted = wantedBy(origin);
  let from = 0;
  for await (const record of turnsBefore(journal, scope, turn)) {
    const { identity, turn: at = 0, turnOrigin } = record;
    const isSought = typeof wanted === 'object' && 'before' in wanted;
    if (wanted === undefined || turns.length >= limit || (at <= from && !isSought)) break;
    if (wanted === 'any' || ('run' in wanted && wanted.run === identity.run)) {
      if (turns.length === 0) from = toldFrom(at + 1, window);
      turns.push(record);
      wanted = wantedBy(turnOrigin);
      continue;
    }
    beside.push(record);
    if ('before' in wanted && wanted.before === identity.run) wanted = wantedBy(turnOrigin);
  }
  return { turns, beside };
}

/** The first turn that is told, so that the beginning of what is told moves once in `window` turns. */
function toldFrom(turn: number, window: number): number {
  if (window === Number.POSITIVE_INFINITY) return 0;
  return Math.max(0, (Math.ceil(turn / window) - 2) * window);
}

/**
 * The entry with which a turn begins whose turn has come.
 * @throws PilotageError of a store that cannot be read for now.
 */
export async function turnStarted(
  { identity, turn: origin, query, context }: RunState,
  journal: TurnJournal,
  window: number = WINDOW_TURNS,
): Promise<TurnStarted> {
  const { turn = 1 } = (await journal.get(identity.run)) ?? {};
  const way = await wayBack(journal, identity, { turn, origin: origin ?? undefined, window });
  const [before] = way.turns;
  const interrupted = before?.identity.run === origin?.interrupts ? before : undefined;
  const cut =
    interrupted?.status === 'cancelled' ? foldEntries(await journal.read(interrupted.identity.run)) : undefined;
  const told = cut !== undefined && hasDoneNothing(cut) ? way.turns.slice(1) : way.turns;
  const runs = told.map(({ identity: { run }, head }) => ({ run, head })).reverse();
  const known = before === undefined ? [] : await asideOf(before.identity.run, journal);
  const passed = way.beside.map(({ identity: { run }, head }) => ({ run, head })).reverse();
  const aside = [...known.filter(({ run }) => passed.every((turn) => turn.run !== run)), ...passed];
  return {
    kind: 'turn_started',
    continues: { runs, turns: 2 * window, ...(aside.length === 0 ? {} : { aside }) },
    ...(cut === undefined ? {} : withInterrupted(cut, { query, inputs: context.inputs })),
  };
}

function hasDoneNothing({ steps, open }: RunState): boolean {
  return steps.length === 0 && open === null;
}

function withInterrupted(
  cut: RunState,
  own: { readonly query: string; readonly inputs: readonly InputArtifact[] | undefined },
): Pick<TurnStarted, 'query' | 'inputs'> {
  const said = exchangesOf(cut).map(({ user }) => user);
  const inputs = [...(cut.context.inputs ?? []), ...(own.inputs ?? [])];
  const query = [...said, own.query].filter((text) => text !== '').join('\n\n');
  return { query, ...defined({ inputs: inputs.length === 0 ? undefined : inputs }) };
}

type Aside = NonNullable<TurnStarted['continues']['aside']>;

/** What the turn before was told of, as it was then. */
async function asideOf(run: string, journal: TurnJournal): Promise<Aside> {
  const entries = await journal.read(run, 1, FIRST_ENTRIES);
  const started = entries.find((entry) => entry.kind === 'turn_started');
  return started?.continues.aside ?? [];
}
