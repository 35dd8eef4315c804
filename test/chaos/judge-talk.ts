/**
 * The session into which a schedule sends, and people: each message that was accepted is in one turn, turns come to their effects one after the other,
 * in the order of the session, and the history of the schedule has all of its fires.
 */
import { local } from '#pilotage';
import type { Journal, RunRecord } from '#pilotage/journal';
import type { Entry } from '#pilotage/state';
import type { LedgerLine } from '../double-act/ledger.ts';
import { isOfTalk, readSubject, TALK } from './calendar.ts';

/** What was heard of the session. */
export class TalkTestimony {
  /** How many messages people have sent. */
  words = 0;
  /** Messages of people that were accepted, by id: the turn that has each. */
  readonly spoken: Map<string, string> = new Map();
  /** Turns that the store has taken. */
  readonly sent: Set<string> = new Set();
}

export interface TalkCounts {
  readonly turns: number;
  /** Messages of people that were told to a turn on its way. */
  readonly steered: number;
}

export interface TalkStored {
  /** The turns of the session, in their order. */
  readonly turns: readonly { readonly run: string; readonly entries: readonly Entry[] }[];
  /** What is listed of the schedule. */
  readonly history: readonly string[];
}

export interface TalkProblems {
  readonly lost: readonly string[];
  readonly twice: readonly string[];
  readonly wrong: readonly string[];
  readonly counts: TalkCounts;
}

const SCOPE = { tenant: local('local').tenant, user: local('local').user, session: TALK };
const PAGE = 200;

export async function talkIn(journal: Journal): Promise<TalkStored> {
  const { turns: count = 0 } = (await journal.sessions.get(SCOPE)) ?? {};
  const records: RunRecord[] = [];
  for (let before = count + 1; before > 1; before = records.at(-1)?.turn ?? 1) {
    const page = await journal.list({ ...SCOPE, beforeTurn: before, limit: PAGE });
    records.push(...page);
    if (page.length < PAGE) break;
  }
  const turns = await Promise.all(
    records.reverse().map(async ({ identity: { run } }) => ({ run, entries: await journal.read(run) })),
  );
  const history: string[] = [];
  const query = { tenant: SCOPE.tenant, schedule: TALK, limit: PAGE };
  for (let page = await journal.list(query); page.length > 0; ) {
    history.push(...page.map(({ identity }) => identity.run));
    page = await journal.list({ ...query, after: history.at(-1) ?? '' });
  }
  return { turns, history };
}

export function talkProblems(heard: TalkTestimony, ledger: readonly LedgerLine[], stored: TalkStored): TalkProblems {
  const lines = ledger.filter(isOfTalk);
  const places = placesOf(stored);
  const lost = [...heard.sent].filter((run) => !stored.turns.some((turn) => turn.run === run));
  const said = [...heard.spoken.keys()].filter((id) => !places.has(id));
  const twice = [...places].filter(([, runs]) => runs.length > 1);
  const history = [...new Set(stored.history)];
  const fired = stored.turns.filter(
    ({ entries: [first] }) => first?.kind === 'started' && first.schedule !== undefined,
  );
  const unlisted = fired.filter(({ run }) => !history.includes(run));
  return {
    lost: [
      ...lost.map((run) => `the turn ${run} was stored, and is gone`),
      ...said.map((id) => `${id} was accepted, and is in no turn`),
      ...unlisted.map(({ run }) => `${run} is missing in the history of its schedule`),
    ],
    twice: [
      ...twice.map(([id, runs]) => `${id} is in ${runs.join(' and ')}`),
      ...(history.length < stored.history.length ? ['the history of the schedule has a run twice'] : []),
    ],
    wrong: outOfOrder(lines, stored),
    counts: {
      turns: stored.turns.length,
      steered: stored.turns.flatMap(({ entries }) => entries.flatMap(steeredIn)).length,
    },
  };
}

/** By the id of each message: the turns that have it. */
function placesOf({ turns }: TalkStored): Map<string, string[]> {
  const places = new Map<string, string[]>();
  for (const { run, entries } of turns) {
    const [first] = entries;
    const own = first?.kind === 'started' ? (first.turn?.messages ?? []).map(({ id }) => id) : [];
    for (const id of [...own, ...entries.flatMap(steeredIn)]) places.set(id, [...(places.get(id) ?? []), run]);
  }
  return places;
}

function steeredIn(entry: Entry): string[] {
  if (entry.kind !== 'control' || !entry.applied || entry.control.turnMessage === undefined) return [];
  return [entry.control.turnMessage.id];
}

/** A turn comes to its effect when the one before it is over, and for the fire time that it was begun for. */
function outOfOrder(lines: readonly LedgerLine[], { turns }: TalkStored): string[] {
  const order = new Map(turns.map(({ run }, index) => [run, index]));
  const firsts = new Map(turns.map(({ run, entries: [first] }) => [run, first]));
  const done = new Set<string>();
  const entered: string[] = [];
  return lines.flatMap(({ run, what, subject }) => {
    if (what === 'done') done.add(run);
    if (what !== 'entered' || entered.includes(run)) return [];
    const before = entered.at(-1);
    entered.push(run);
    const first = firsts.get(run);
    const { id, at } = readSubject(subject);
    const fire = first?.kind === 'started' ? first.schedule : undefined;
    const problems: string[] = [];
    if ((id === TALK) !== (fire !== undefined) || (fire !== undefined && fire.at !== at))
      problems.push(`${run} acts for ${subject}, and was begun for ${JSON.stringify(fire)}`);
    if (before === undefined) return problems;
    if (!done.has(before)) problems.push(`${run} is begun in the middle of ${before}`);
    if ((order.get(run) ?? -1) < (order.get(before) ?? -1))
      problems.push(`${run} is begun after ${before}, and stands before it`);
    return problems;
  });
}
