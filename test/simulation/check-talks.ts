/**
 * What was said in sessions, by people and by schedules: each message that was accepted is in one turn, turns have their order, none begins before its
 * turn has come, and each is told of the turns of its branch.
 */
import { isControl, type Message, scopeKey } from '#core';
import { checkPath, type StoredTurn } from './check-paths.ts';
import { type EndedRun, entriesOf, startOf } from './ended-run.ts';
import type { Ledger } from './ledger.ts';
import type { SendTaken } from './session-ledger.ts';
import type { Told } from './talkers.ts';
import { inTurn, type TurnByHand, turnsByHand } from './turns-by-hand.ts';

type Runs = ReadonlyMap<string, EndedRun>;

export interface EndOfTalks {
  readonly runs: Runs;
  readonly ledger: Ledger;
  readonly told: readonly Told[];
  /** By run: its place among the turns of its session, as the store has it. */
  readonly places: ReadonlyMap<string, number>;
  /** The store has taken things in the order in which it was asked. */
  readonly isInOrder: boolean;
}

export function checkTalks({ runs, ledger, told, places, isInOrder }: EndOfTalks): void {
  for (const send of ledger.sessions.sends) if (!('run' in send.answer)) checkAccepted(send, runs, ledger);
  checkNamesOnce(runs, ledger);
  for (const one of told) checkTold(one, runs, ledger);
  for (const turns of storedTurns(runs, places).values()) {
    checkPlaces(turns, ledger);
    for (const turn of turns) checkPath(turn, turns, ledger);
  }
  if (!isInOrder) return;
  const sessions = turnsByHand(ledger, (index, turns, branch) =>
    checkSend(ledger.sessions.sends[index], turns, branch, ledger),
  );
  for (const turns of sessions.values()) {
    for (const [index, turn] of turns.entries()) {
      const place = places.get(turn.id);
      if (place !== index + 1)
        ledger.violated('session', `it is turn ${String(place)} of its session, and by hand ${index + 1}`, turn.id);
      checkBegun(turn, ledger);
    }
  }
}

/** Nothing is decided, and nobody is told what was before, until its turn has come. */
function checkBegun({ id, run, cameAt, first }: TurnByHand, ledger: Ledger): void {
  if (first.fork !== undefined) return;
  for (const [index, { kind }] of run.entries.entries()) {
    if (kind !== 'turn_started' && kind !== 'moved') continue;
    const at = run.landed[index] ?? 0;
    if (cameAt === undefined || at < cameAt)
      ledger.violated('session', `${kind} is recorded before its turn has come`, id);
    return;
  }
}

function storedTurns(runs: Runs, places: ReadonlyMap<string, number>): Map<string, StoredTurn[]> {
  const sessions = new Map<string, StoredTurn[]>();
  for (const run of runs.values()) {
    const first = startOf(run);
    const place = places.get(run.id);
    if (first === undefined || place === undefined) continue;
    const key = scopeKey(first.identity);
    sessions.set(key, [...(sessions.get(key) ?? []), { run, first, place }]);
  }
  for (const turns of sessions.values()) turns.sort((one, other) => one.place - other.place);
  return sessions;
}

function checkPlaces(turns: readonly StoredTurn[], ledger: Ledger): void {
  const places = turns.map(({ place }) => place).join();
  const wanted = turns.map((_, index) => index + 1).join();
  if (places !== wanted) ledger.violated('session', `its turns have the places ${places}`, turns[0]?.run.id ?? '');
  for (const { run, first } of turns) {
    if (first.turn === undefined) continue;
    const begins = entriesOf(run, 'turn_started').length;
    const moves = entriesOf(run, 'moved').length;
    if (begins > 1 || (begins === 0 && moves > 0))
      ledger.violated('session', `it has ${begins} entries turn_started for ${moves} moves`, run.id);
  }
}

/** The message is where the store has put it, once; a steered one that came too late has begun a turn of its own. */
function checkAccepted({ sending, order }: SendTaken, runs: Runs, ledger: Ledger): void {
  const { scope, known, starts, tells = [] } = sending;
  const wrong = (what: string): void => ledger.violated('session', what, known.run);
  const isGone = ledger.sessions.gone.some((gone) => gone.order > order && scopeKey(gone.scope) === scopeKey(scope));
  if (isGone) return;
  const own = runs.get(known.run);
  if (starts !== undefined) {
    if (own === undefined) wrong('a message was accepted, and its turn is not there');
    return;
  }
  const heard = tells.flatMap(({ run, message }) => {
    const isIts = entriesOf(runs.get(run) ?? { entries: [] }, 'control').filter(
      ({ control, applied }) => control.id === message.id && applied,
    );
    return isIts.map(() => run);
  });
  const places = [...heard, ...(own === undefined ? [] : [own.id])];
  if (places.length !== 1)
    wrong(`a message was told to ${tells.map(({ run }) => run).join()}, and is in ${places.join(', ') || 'no turn'}`);
}

/** No message stands in two turns, but for one that somebody has answered once more. */
function checkNamesOnce(runs: Runs, ledger: Ledger): void {
  const seen = new Map<string, string>();
  for (const run of runs.values()) {
    const { identity, turn, fork } = startOf(run) ?? {};
    if (identity === undefined || turn === undefined || turn.replaces !== undefined || fork !== undefined) continue;
    const steered = entriesOf(run, 'control').flatMap(({ control, applied }) =>
      applied && control.turnMessage !== undefined ? [control.turnMessage] : [],
    );
    for (const { id } of [...turn.messages, ...steered]) {
      const name = `${scopeKey(identity)} ${id}`;
      const other = seen.get(name);
      if (other !== undefined) ledger.violated('session', `the message ${id} is in ${other} too`, run.id);
      seen.set(name, run.id);
    }
  }
}

/** Whoever was told that a message was accepted finds it there, and nobody is refused what the store has taken. */
function checkTold({ say, askedAt, order, answer }: Told, runs: Runs, ledger: Ledger): void {
  const { id, busy } = say;
  const sends = ledger.sessions.sends.filter(
    ({ sending, answer: said }) => !('run' in said) && messageOf(sending)?.id === id && sending.fires === undefined,
  );
  const accepted = sends.filter((send) => send.order < order);
  if ('code' in answer) {
    // What somebody has asked for before may come later.
    const left = sends.filter((send) => send.order < askedAt && runs.has(send.sending.known.run));
    if (left.length > 0) ledger.violated('session', `${id} was refused as ${answer.code}, and is there`);
    return;
  }
  const { turn, as } = answer;
  const its = accepted.filter(({ sending }) => [sending.known.run, ...toldIn(sending)].includes(turn));
  if (its.length === 0) {
    ledger.violated('session', `${id} was said to be in ${turn}, and nobody has put it there`, turn);
    return;
  }
  const isRight = as === 'known' || its.some(({ sending }) => kindsOf(sending).includes(as));
  const mayBe =
    as === 'known' || as === 'started' || as === 'steered' || as === (busy === 'queue' ? 'queued' : 'interrupts');
  if (!isRight || !mayBe) ledger.violated('session', `${id}, sent to ${busy}, was said to be ${as}`, turn);
}

function toldIn({ tells = [] }: SendTaken['sending']): readonly string[] {
  return tells.map(({ run }) => run);
}

/** What may be said of it: which of them depends on what was under way. */
function kindsOf({ starts, seen }: SendTaken['sending']): readonly string[] {
  if (starts === undefined) return ['steered'];
  if (seen.live === null) return ['started'];
  return [starts.waits === 'next' ? 'interrupts' : 'queued'];
}

function messageOf({ starts, tells = [] }: SendTaken['sending']): { readonly id: string } | undefined {
  const [first] = starts?.entries ?? [];
  if (first?.kind === 'started') return first.turn?.messages.at(-1);
  return tells.map(({ message }) => turnMessageOf(message)).find((found) => found !== undefined);
}

function turnMessageOf(message: Message): { readonly id: string } | undefined {
  return isControl(message) ? message.turnMessage : undefined;
}

/** The store takes only what was decided on the session as it is, and a schedule neither answers nor interrupts anybody. */
function checkSend(
  send: SendTaken | undefined,
  turns: readonly TurnByHand[],
  branch: string | null,
  ledger: Ledger,
): void {
  if (send === undefined) return;
  const { sending } = send;
  const { known, seen, starts, tells = [], fires } = sending;
  const wrong = (what: string): void => ledger.violated('session', what, known.run);
  const live = inTurn(turns).at(-1);
  if ((seen.live?.run ?? undefined) !== live?.id)
    wrong(`it was accepted by one who saw ${String(seen.live?.run)} under way, and it is ${String(live?.id)}`);
  if (turns.some(({ id }) => id === known.run)) wrong('it was there already');
  const first = starts?.entries[0];
  const origin = first?.kind === 'started' ? first.turn : undefined;
  if (fires !== undefined && (tells.length > 0 || origin?.interrupts !== undefined || starts?.waits !== 'last'))
    wrong('a schedule says something to a turn that is under way');
  if (starts === undefined && tells.some(({ run }) => run !== live?.id)) wrong('it is told to a turn that is over');
  const after = origin?.after ?? null;
  if (origin !== undefined && origin.replaces === undefined && after !== branch)
    wrong(`it goes on from ${String(after)}, and somebody has chosen ${String(branch)}`);
  if (origin?.interrupts !== undefined && !tells.some(({ run }) => run === origin.interrupts))
    wrong('it interrupts a turn that is not told so');
}
