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
  readonly from?: number;
  readonly limit?: number;
}

/** The way back from a turn. @param from no turn up to this one is looked for. @param limit how many turns are wanted at most. */
export async function wayBack(
  journal: Pick<Journal, 'list'>,
  scope: Scope,
  { turn, origin, from = 0, limit = Number.POSITIVE_INFINITY }: WayBack,
): Promise<Way> {
  const turns: RunRecord[] = [];
  const beside: RunRecord[] = [];
  let wanted = wantedBy(origin);
  for await (const record of turnsBefore(journal, scope, turn)) {
    const { identity, turn: at = 0, turnOrigin } = record;
    const isSought = typeof wanted === 'object' && 'before' in wanted;
    if (wanted === undefined || turns.length >= limit || (at <= from && !isSought)) break;
    if (wanted === 'any' || ('run' in wanted && wanted.run === identity.run)) {
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
  const way = await wayBack(journal, identity, { turn, origin: origin ?? undefined, from: toldFrom(turn, window) });
  const [before] = way.turns;
  const cut = await interruptedBy(origin?.interrupts, way.turns, journal);
  const idle = new Set(cut.filter(hasDoneNothing).map(({ identity: { run } }) => run));
  const told = way.turns.filter((record) => !idle.has(record.identity.run));
  const runs = told.map(({ identity: { run }, head }) => ({ run, head })).reverse();
  const known = before === undefined ? [] : await asideOf(before.identity.run, journal);
  const passed = way.beside.map(({ identity: { run }, head }) => ({ run, head })).reverse();
  const aside = [...known.filter(({ run }) => passed.every((turn) => turn.run !== run)), ...passed];
  return {
    kind: 'turn_started',
    continues: { runs, turns: 2 * window, ...(aside.length === 0 ? {} : { aside }) },
    ...(cut.length === 0 ? {} : withInterrupted(cut, { query, inputs: context.inputs })),
  };
}

/** The turn that was interrupted; and, when it was before its turn had come, also those whose messages it was to take over. Oldest first. */
async function interruptedBy(
  interrupts: string | undefined,
  turns: readonly RunRecord[],
  journal: TurnJournal,
): Promise<readonly RunState[]> {
  const cut: RunState[] = [];
  let wanted = interrupts;
  for (const { identity, status, turnOrigin } of turns) {
    if (identity.run !== wanted || status !== 'cancelled') break;
    const state = foldEntries(await journal.read(identity.run));
    cut.unshift(state);
    wanted = state.continues === null ? turnOrigin?.interrupts : undefined;
  }
  return cut;
}

function hasDoneNothing({ steps, open }: RunState): boolean {
  return steps.length === 0 && open === null;
}

function withInterrupted(
  cut: readonly RunState[],
  own: { readonly query: string; readonly inputs: readonly InputArtifact[] | undefined },
): Pick<TurnStarted, 'query' | 'inputs'> {
  const said = cut.flatMap(exchangesOf).map(({ user }) => user);
  const inputs = [...cut.flatMap(({ context }) => context.inputs ?? []), ...(own.inputs ?? [])];
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
