/** The turns of a session as its readers see them: each is computed from the entries of its run. */
import {
  type AcceptedMessage,
  type Control,
  commonAuthor,
  defined,
  messageFiles,
  messageWords,
  PilotageError,
  type Scope,
  type TurnOrigin,
} from '#core';
import { type Journal, type RunRecord, type RunStatus, runNotFound, type SessionRecord } from '#journal';
import type { UserMessage } from '#messages';
import { turnsOf } from '#state';
import type { DriverDeps } from '../loop/driver-deps.ts';
import type { KnownRun } from '../loop/told-runs.ts';
import { positionOf } from './session-events.ts';
import type { MemorySources } from './session-memory.ts';
import { turnsBefore, wayBack } from './session-path.ts';

/** A turn of a session: what the user said, and what came of it. */
export interface TurnView {
  /** The id of the turn, which is the id of its run. */
  readonly turn: string;
  /** Its place in the session, from 1. That of a turn that waits may still grow. */
  readonly number: number;
  /** The position of its first event, or of that of a turn whose messages it has taken over: `events({ from: position })` begins with it. */
  readonly position: number;
  readonly status: RunStatus;
  /** True: it waits until the turns before it have ended. */
  readonly waits?: true;
  /** The agent that has it. */
  readonly agent: string;
  /** The ids of its messages, in the order of acceptance; those of a turn that it has interrupted first. Empty for a run of `runtime.start`. */
  readonly messages: readonly AcceptedMessage[];
  /** What the user said, and what was said to it; several when the run asked its user, or was written to while it was at work. */
  readonly exchanges: readonly { readonly user: string; readonly assistant: string | null }[];
  /** The turn in whose place it stands. */
  readonly replaces?: string;
  /** The run with which the turn began, when another run goes on with it: the conversation was handed over, or the run was continued. */
  readonly succeeds?: string;
  /** The turns that it has interrupted, and whose messages it has taken over. */
  readonly interrupts?: readonly string[];
  readonly createdAt: number;
}

export interface SessionBranch {
  /** The last turn of the branch: its name for `switchTo`. */
  readonly turn: string;
  /** The first turn of it that no branch before it has; `null` for the first branch. */
  readonly from: string | null;
  /** True: new messages go on from here. */
  readonly active: boolean;
}

/** The last turn of the branch on which the session is. */
export async function activeTurn(
  journal: Pick<Journal, 'get' | 'list'>,
  { branch, turns, ...scope }: SessionRecord,
): Promise<RunRecord | undefined> {
  if (branch !== undefined) return journal.get(branch);
  for await (const last of turnsBefore(journal, scope, turns + 1, 1)) return last;
  return undefined;
}

/** The records of the turns of the active branch, oldest first; at most the last `limit` of them. */
export async function activeRecords(journal: Journal, scope: Scope, limit: number): Promise<readonly RunRecord[]> {
  const session = await journal.sessions.get(scope);
  const last = session && (await activeTurn(journal, session));
  if (last?.turn === undefined) return [];
  const { turns } = await wayBack(journal, scope, { turn: last.turn, origin: last.turnOrigin, limit: limit - 1 });
  return [last, ...turns].reverse();
}

/** @throws PilotageError `run_not_found` for a turn that the session has not; `invalid_config` for an id that must be a string. */
export async function turnOf(journal: Journal, { tenant, user, session }: Scope, turn: string): Promise<RunRecord> {
  if (typeof turn !== 'string')
    throw new PilotageError(
      'invalid_config',
      'A turn is named by its id, a string such as `turn` of what `send` gives.',
    );
  const record = await journal.get(turn);
  const is = record?.identity;
  if (record?.turn === undefined || is?.tenant !== tenant || is.user !== user || is.session !== session)
    throw runNotFound(turn);
  return record;
}

/** The run with which a turn began that other runs have gone on with. */
async function beginningOfTurn(journal: Journal, record: RunRecord): Promise<RunRecord> {
  const before = record.turnOrigin?.succeeds;
  const found = before === undefined ? undefined : await journal.get(before);
  return found === undefined ? record : beginningOfTurn(journal, found);
}

/** The same, or the turn that it has interrupted, and whose messages it has. */
export async function whollyReplaced(journal: Journal, record: RunRecord): Promise<string> {
  const first = await beginningOfTurn(journal, record);
  const cut = await takenOverBy(journal, first);
  return cut === undefined ? first.identity.run : whollyReplaced(journal, cut);
}

/** The turn that it has interrupted, and whose messages it has. A turn of another branch, such as one behind the turn that it replaces, is only stopped. */
async function takenOverBy(
  journal: Journal,
  { identity, turn = 0, turnOrigin: origin }: RunRecord,
): Promise<RunRecord | undefined> {
  if (origin?.interrupts === undefined) return undefined;
  const [before] = (await wayBack(journal, identity, { turn, origin, limit: 1 })).turns;
  return before?.identity.run === origin.interrupts && before.status === 'cancelled' ? before : undefined;
}

/** All that its user has said in a turn, also on its way and before an interruption, as one message; and the ids that it has. */
export async function saidInTurn(
  { journal, states }: Pick<DriverDeps, 'journal' | 'states'>,
  record: RunRecord,
): Promise<UserMessage & Partial<Pick<TurnOrigin, 'messages'>>> {
  const first = await beginningOfTurn(journal, record);
  const { query, context, author, notice } = await states.of(first.identity.run);
  const messages = [...(await cutMessages(journal, first)), ...(first.turnOrigin?.messages ?? [])];
  const texts = [query];
  const inputs = [...(context.inputs ?? [])];
  for (const { turnMessage, payload = {} } of await heardIn(journal, record)) {
    messages.push(turnMessage);
    texts.push(messageWords(payload));
    inputs.push(...messageFiles(payload));
  }
  return {
    text: texts.filter((text) => text !== '').join('\n\n'),
    inputs,
    notice: notice && messages.length === 1,
    ...defined({
      author: commonAuthor([author, ...messages.map((message) => message.author)]),
      messages: first.turnOrigin === undefined ? undefined : messages,
    }),
  };
}

type Heard = Control & Required<Pick<Control, 'turnMessage'>>;

/** The messages that the runs of a turn were told on their way, oldest first. */
async function heardIn(journal: Journal, { identity, turnOrigin }: RunRecord): Promise<readonly Heard[]> {
  const own = (await journal.read(identity.run)).flatMap((entry) => {
    if (entry.kind !== 'control' || !entry.applied) return [];
    const { control } = entry;
    const { turnMessage } = control;
    return turnMessage === undefined ? [] : [{ ...control, turnMessage }];
  });
  const before = turnOrigin?.succeeds === undefined ? undefined : await journal.get(turnOrigin.succeeds);
  return before === undefined ? own : [...(await heardIn(journal, before)), ...own];
}

async function cutMessages(journal: Journal, record: RunRecord): Promise<TurnOrigin['messages']> {
  const cut = await takenOverBy(journal, record);
  if (cut === undefined) return [];
  return [...(await cutMessages(journal, cut)), ...(cut.turnOrigin?.messages ?? [])];
}

/** The turns of the active branch, oldest first; at most the last `limit` of them, each with all of its runs. */
export async function sessionTurns(sources: MemorySources, scope: Scope, limit: number): Promise<readonly TurnView[]> {
  const turns = await runsOfTurns(sources.journal, scope, limit);
  return Promise.all(
    turns.map(async (runs) => {
      const views = await Promise.all(runs.map((record) => turnView(sources, record)));
      return views.reduce((before, view) =>
        before.turn === view.succeeds ? goingOn(view, before) : takingOver(view, before),
      );
    }),
  );
}

/** The runs of each of the last turns: those that go on with one, and those that have interrupted it and have its messages. */
async function runsOfTurns(journal: Journal, scope: Scope, limit: number): Promise<readonly (readonly RunRecord[])[]> {
  for (let wanted = limit; ; wanted *= 2) {
    const records = await activeRecords(journal, scope, wanted);
    const turns = byTurn(records);
    const [first] = turns[0] ?? [];
    const { interrupts, succeeds } = first?.turnOrigin ?? {};
    const isWhole = turns.length > limit || (interrupts ?? succeeds) === undefined;
    // What was read may begin in the middle of a turn, or be fewer turns than runs.
    if (records.length < wanted || (turns.length >= limit && isWhole))
      return turns.slice(Math.max(0, turns.length - limit));
  }
}

function byTurn(records: readonly RunRecord[]): readonly (readonly RunRecord[])[] {
  const turns: RunRecord[][] = [];
  for (const record of records) {
    const { succeeds, interrupts } = record.turnOrigin ?? {};
    const last = turns.at(-1);
    const before = last?.at(-1);
    const run = before?.identity.run;
    const isSame = run !== undefined && (run === succeeds || (before?.status === 'cancelled' && run === interrupts));
    if (isSame) last?.push(record);
    else turns.push([record]);
  }
  return turns;
}

function goingOn(view: TurnView, before: TurnView): TurnView {
  const last = before.exchanges.at(-1);
  const [first, ...more] = view.exchanges;
  // The run that goes on works for the same words.
  const isRepeated = last !== undefined && first !== undefined && last.user === first.user;
  const merged = isRepeated ? [...before.exchanges.slice(0, -1), joined(last, first)] : [...before.exchanges, first];
  const exchanges = [...merged.filter((one) => one !== undefined), ...more];
  const { turn, status, agent } = view;
  return { ...before, turn, status, agent, exchanges, messages: [...before.messages, ...view.messages] };
}

type Exchange = TurnView['exchanges'][number];

function joined({ user, assistant: before }: Exchange, { assistant }: Exchange): Exchange {
  const said = [before, assistant].filter((text) => text !== null);
  return { user, assistant: said.length === 0 ? null : said.join('\n\n') };
}

function takingOver(view: TurnView, cut: TurnView): TurnView {
  return {
    ...view,
    position: cut.position,
    messages: [...cut.messages, ...view.messages],
    interrupts: [...(cut.interrupts ?? []), cut.turn],
  };
}

async function turnView(sources: MemorySources, record: RunRecord): Promise<TurnView> {
  const { identity, turn = 0, status, waits, agent, turnOrigin, createdAt, head } = record;
  const { told, heard } = await sources.told.of(identity.run, head, identity, sources);
  return {
    turn: identity.run,
    number: turn,
    position: positionOf(turn, 1),
    status,
    ...defined({ waits }),
    agent,
    messages: [...(turnOrigin?.messages ?? []), ...heard],
    exchanges: exchangesOf(told),
    ...defined({ succeeds: turnOrigin?.succeeds, replaces: turnOrigin?.replaces }),
    createdAt,
  };
}

/** The branches of the session, in the order in which they were begun. */
export async function branchesOfSession(journal: Journal, scope: Scope): Promise<readonly SessionBranch[]> {
  const session = await journal.sessions.get(scope);
  if (session === undefined) return [];
  const active = (await activeTurn(journal, session))?.identity.run;
  const records: RunRecord[] = [];
  for await (const record of turnsBefore(journal, scope, session.turns + 1)) records.push(record);
  const parents = new Map<string, string | null>();
  const branches: { turn: string; from: string | null }[] = [];
  let previous: string | null = null;
  for (const {
    identity: { run },
    turnOrigin: origin,
  } of records.reverse()) {
    // A turn that stands behind it waited when it was replaced, and would have gone on from the turn before.
    const replaced = origin?.replaces === undefined ? undefined : parents.get(origin.replaces);
    const { after = replaced === undefined ? previous : replaced } = origin ?? {};
    parents.set(run, after);
    const continued: { turn: string; from: string | null } | undefined = branches.find(({ turn }) => turn === after);
    if (continued !== undefined) continued.turn = run;
    else branches.push({ turn: run, from: branches.length === 0 ? null : run });
    previous = run;
  }
  return branches.map(({ turn, from }) => ({ turn, from, active: turn === active }));
}

/** What was said on both sides. A reply beside calls is said, too. */
function exchangesOf(told: KnownRun['told']): TurnView['exchanges'] {
  const exchanges: { user: string; assistant: string | null }[] = [];
  const { answer, text, unanswered } = told.end;
  const last = (unanswered === undefined ? answer : text) ?? '';
  const spoken = turnsOf(told)
    .slice(0, -1)
    .map(({ role, text: words }) => ({ role, words }));
  for (const { role, words } of [...spoken, { role: 'assistant' as const, words: last }]) {
    const now = exchanges.at(-1);
    if (role === 'user') exchanges.push({ user: words, assistant: null });
    else if (role === 'assistant' && words !== '' && now !== undefined) {
      now.assistant = now.assistant === null ? words : `${now.assistant}\n\n${words}`;
    }
  }
  return exchanges;
}
