/** Which of the turns of its session a turn is told of: those of its branch, in their order, as they were when they had ended. */
import type { Started, TurnStarted } from '#core';
import { type EndedRun, endingOf, entriesOf } from './ended-run.ts';
import type { Ledger } from './ledger.ts';

export interface StoredTurn {
  readonly run: EndedRun;
  readonly first: Started;
  /** From 1. */
  readonly place: number;
}

/** @param turns all of the session, in their order. */
export function checkPath(turn: StoredTurn, turns: readonly StoredTurn[], ledger: Ledger): void {
  const [begun] = entriesOf(turn.run, 'turn_started');
  if (begun === undefined || turn.first.fork !== undefined) return;
  const { id } = turn.run;
  const wrong = (what: string): void => ledger.violated('session', what, id);
  const branch = branchBefore(turn, turns);
  const names = branch.map(({ run }) => run.id);
  const told = begun.continues.runs;
  const places = told.map(({ run }) => names.indexOf(run));
  if (places.includes(-1) || places.some((place, index) => index > 0 && place >= (places[index - 1] ?? 0)))
    wrong(`it is told of ${told.map(({ run }) => run).join()}, and its branch is ${names.toReversed().join()}`);
  for (const { run, head } of [...told, ...(begun.continues.aside ?? [])]) {
    const has = turns.find((one) => one.run.id === run)?.run.entries.length;
    if (has !== head) wrong(`it is told ${head} entries of ${run}, which has ${String(has)}`);
  }
  const besides = (begun.continues.aside ?? []).filter(({ run }) => names.includes(run));
  if (besides.length > 0) wrong(`${besides.map(({ run }) => run).join()} stand on its branch, and beside it`);
  // An older version of the program cannot read what a newer one has written: it says so in the place of the words.
  const isUnread =
    !ledger.newer.has(begun) && branch.some(({ run }) => run.entries.some((one) => ledger.newer.has(one)));
  if (isUnread) return;
  const idle = interruptedIdle(turn, branch);
  const last = branch.find(({ run }) => !idle.has(run.id));
  if (last !== undefined && told.at(-1)?.run !== last.run.id)
    wrong(`it is not told of ${last.run.id}, which is the last turn before it`);
  checkWords(turn, begun, branch, wrong);
}

/** The way back, the last turn first. */
function branchBefore(turn: StoredTurn, turns: readonly StoredTurn[]): readonly StoredTurn[] {
  const branch: StoredTurn[] = [];
  for (let at = before(turn, turn, turns); at !== undefined; at = before(at, at, turns)) {
    if (branch.includes(at)) break;
    branch.push(at);
  }
  return branch;
}

/** The turn from which one with this origin goes on that stands at this place. */
function before(
  { first: { turn: origin } }: StoredTurn,
  place: StoredTurn,
  turns: readonly StoredTurn[],
): StoredTurn | undefined {
  if (origin?.after === null) return undefined;
  if (origin?.after !== undefined) return turns.find(({ run }) => run.id === origin.after);
  const replaced = turns.find(({ run }) => run.id === origin?.replaces);
  // One that waits may be replaced by a turn that stands before it.
  if (replaced !== undefined) return before(replaced, replaced.place > place.place ? place : replaced, turns);
  return origin?.replaces === undefined ? turns[place.place - 2] : undefined;
}

/** Those that it has interrupted before they had done anything: their words are its own, and nothing else is left of them. */
function interruptedIdle({ first }: StoredTurn, branch: readonly StoredTurn[]): ReadonlySet<string> {
  const idle = new Set<string>();
  let wanted = first.turn?.interrupts;
  for (const { run, first: cut } of branch) {
    if (run.id !== wanted || !isCancelled(run)) break;
    if (!hasDone(run)) idle.add(run.id);
    wanted = cut.turn?.interrupts;
  }
  return idle;
}

/** A decision that nothing has come of is nothing that was done: an ending that the interruption has prevented, or a question without an answer. */
function hasDone(run: EndedRun): boolean {
  return entriesOf(run, 'call_ended').length + entriesOf(run, 'resumed').length > 0;
}

function isCancelled(run: EndedRun): boolean {
  const ending = endingOf(run);
  return ending?.kind === 'finished' && ending.reason === 'cancelled';
}

/** The turn that was interrupted, and such as that one was to take over. */
function cutBy(interrupts: string | undefined, branch: readonly StoredTurn[]): readonly StoredTurn[] {
  const cut: StoredTurn[] = [];
  let wanted = interrupts;
  for (const turn of branch) {
    if (turn.run.id !== wanted || !isCancelled(turn.run)) break;
    cut.push(turn);
    // What had begun has their words.
    if (entriesOf(turn.run, 'turn_started').length > 0) break;
    wanted = turn.first.turn?.interrupts;
  }
  return cut;
}

/** Of all that was interrupted for it, and its own last. */
function checkWords(
  turn: StoredTurn,
  begun: TurnStarted,
  branch: readonly StoredTurn[],
  wrong: (what: string) => void,
): void {
  const cut = cutBy(turn.first.turn?.interrupts, branch);
  if (cut.length === 0) {
    if (begun.query !== undefined) wrong(`it works by ${begun.query}, and nobody was interrupted`);
    return;
  }
  const said = cut.toReversed().map(({ run, first }) => entriesOf(run, 'turn_started')[0]?.query ?? first.query);
  const words = begun.query?.split('\n\n') ?? [];
  const isIn = said.every((text) => text.split('\n\n').every((part) => words.includes(part)));
  if (!isIn || words.at(-1) !== turn.first.query)
    wrong(`it works by ${String(begun.query)}, and was said ${[...said, turn.first.query].join(' | ')}`);
}
