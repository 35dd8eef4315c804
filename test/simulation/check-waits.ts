/** What calls have waited for, when a history is over: each wait has one end, of a reason that the entries show, and none is left. */
import { type Entry, isJsonObject, type Json } from '#core';
import { callWaitsIn, endedCall, type WaitByHand } from './call-waits-by-hand.ts';
import { type EndedRun, endingOf, entriesOf, isBeforeTime, ownEntries, startOf } from './ended-run.ts';
import { HELD_KINDS } from './held-kinds.ts';
import type { Ledger } from './ledger.ts';
import { isFitting, shapeOf } from './wait-args.ts';
import { LATER_KINDS, partKey, WAITING_KINDS } from './waiting-tools.ts';

type Of<K extends Entry['kind']> = Extract<Entry, { kind: K }>;

export function checkWaits(run: EndedRun, ledger: Ledger): void {
  if (!run.entries.some(({ kind }) => kind === 'call_waits' || kind === 'call_kept')) return;
  const waits = callWaitsIn(run.entries);
  for (const wait of waits) checkWait(wait, run, ledger);
  const ended = waits.reduce((sum, { ends }) => sum + ends.length, 0);
  const asked = new Set(
    run.entries.flatMap((entry) => (entry.kind === 'paused' && entry.wait !== undefined ? [entry.token] : [])),
  );
  const said = run.entries.filter(
    (entry) => entry.kind === 'wait_ended' || (entry.kind === 'resumed' && asked.has(entry.token)),
  );
  if (said.length !== ended)
    ledger.violated('waits', `${said.length} entries end waits, and ${ended} waits have ended`, run.id);
  const left = waits.filter(({ ends, over }) => ends.length === 0 && over === Number.POSITIVE_INFINITY);
  if (endingOf(run) !== undefined && left.length > 0)
    ledger.violated('waits', `it has ended, and ${left.length} calls wait`, run.id);
  checkValues(run, waits, ledger);
  checkKeptOnce(run, ledger);
}

function nameOf({ step, call, wait }: WaitByHand): string {
  return `wait ${step}.${call}.${wait}`;
}

function checkWait(wait: WaitByHand, run: EndedRun, ledger: Ledger): void {
  const { ends, askedUntil: until = wait.until ?? Number.POSITIVE_INFINITY } = wait;
  const wrong = (what: string): void => ledger.violated('waits', `${nameOf(wait)} ${what}`, run.id);
  if (ends.length > 1) wrong(`has ended ${ends.length} times`);
  if (wait.for === 'answer') checkQuestion(wait, run, wrong);
  const [end] = ends;
  const entry = end && run.entries[end.seq - 1];
  if (end === undefined || entry === undefined) return;
  const isOfItsKind = KINDS[wait.for].includes(end.how);
  if (!isOfItsKind) wrong(`is for ${wait.for}, and has ended with ${end.how}`);
  if ((end.how === 'time' || end.how === 'timeout') && isBeforeTime(entry, until, run.id, ledger))
    wrong(`was over at ${entry.at}, and its time is ${until}`);
  if (end.how === 'superseded' && !isWithdrawn(wait, entry, run)) wrong('was given up, and nobody had said anything');
  if (end.value !== undefined && !isFitting(shapeOf(wait.schema), end.value))
    wrong(`has ended with ${JSON.stringify(end.value)}, which does not fit`);
  if (entry.kind === 'wait_ended' && entry.ended === 'event') {
    const tenant = startOf(run)?.identity.tenant;
    const { signal: id, payload } = entry;
    const accepted = ledger.accepted.some(
      ({ signal, answer }) =>
        answer.isNew &&
        signal.tenant === tenant &&
        signal.key === wait.key &&
        signal.id === id &&
        isSame(signal.payload, payload),
    );
    if (!accepted) wrong(`has got ${id}, which nobody has signalled so`);
  }
}

const KINDS: Readonly<Record<WaitByHand['for'], readonly string[]>> = {
  answer: ['answer', 'declined', 'timeout', 'superseded'],
  time: ['time', 'timeout', 'superseded'],
  event: ['event', 'timeout', 'superseded'],
};

/** Its pause says what the wait says, and stands beside it. */
function checkQuestion(
  { token, step, call, wait, schema, until, from }: WaitByHand,
  run: EndedRun,
  wrong: (what: string) => void,
): void {
  const paused = run.entries.find((entry): entry is Of<'paused'> => entry.kind === 'paused' && entry.token === token);
  const isIts =
    paused?.step === step && paused.call === call && paused.wait === wait && paused.reason === 'await_input';
  if (!isIts || !isSame(paused.schema, schema) || paused.expiresAt !== until)
    wrong('is a question of which no pause tells');
  else if (run.landed[paused.seq - 1] !== run.landed[from - 1]) wrong('was not stored with its pause');
}

/** Something that was said since the step was decided, and that is to be heard before its calls have waited to their ends. */
function isWithdrawn({ step }: WaitByHand, end: Entry, run: EndedRun): boolean {
  const move = run.entries.findLast(
    (entry): entry is Of<'moved'> => entry.kind === 'moved' && entry.step === step && entry.seq < end.seq,
  );
  if (move === undefined) return false;
  const keeps = startOf(run)?.whileAsked === 'keep';
  return run.entries.some((entry) => {
    if (entry.kind !== 'control' || !entry.applied || entry.seq < firstOf(move, run) || entry.seq > end.seq)
      return false;
    const { type, withdraws = type } = entry.control;
    return withdraws === 'REDIRECT' || (withdraws === 'USER_MESSAGE' && !keeps);
  });
}

/** What is taken with a move came when the planner had been asked. */
function firstOf(move: Entry, run: EndedRun): number {
  return run.entries.find(({ seq }) => run.landed[seq - 1] === run.landed[move.seq - 1])?.seq ?? move.seq;
}

function isSame(left: Json | undefined, right: Json | undefined): boolean {
  return JSON.stringify(left) === JSON.stringify(right);
}

/** The value of a call that waited tells what each of its waits came to, in order; one that came later is what came, or what a poll found. */
function checkValues(run: EndedRun, waits: readonly WaitByHand[], ledger: Ledger): void {
  const tools = toolsOf(run.entries);
  for (const entry of entriesOf(run, 'call_ended')) {
    const tool = tools.get(`${entry.step}.${entry.call}`) ?? '';
    const own = waits.filter(
      ({ step, call, over }) => step === entry.step && call === entry.call && over === entry.seq,
    );
    const { outcome, reuses } = entry;
    // What an earlier call has come to is judged there.
    if (reuses !== undefined) continue;
    if (
      outcome.kind === 'value' &&
      (tool in WAITING_KINDS || tool in HELD_KINDS) &&
      isJsonObject(outcome.value) &&
      'got' in outcome.value
    ) {
      const ends = own.map(({ ends: [end] }) => endText(end));
      const got = (outcome.value['got'] as Json[]).map((one) => JSON.stringify(one));
      if (got.join() !== ends.join())
        ledger.violated(
          'waits',
          `call ${entry.step}.${entry.call} has got ${got.join()}, and its waits ended with ${ends.join()}`,
          run.id,
        );
    }
    if (tool in LATER_KINDS) checkLater(entry, own, run, ledger);
  }
}

function endText(end: WaitByHand['ends'][number] | undefined): string {
  if (end === undefined) return 'nothing';
  const { seq: _, ...said } = end;
  return JSON.stringify(said);
}

function checkLater(entry: Of<'call_ended'>, waits: readonly WaitByHand[], run: EndedRun, ledger: Ledger): void {
  const { step, call, outcome } = entry;
  const last = waits.at(-1);
  const end = last?.ends[0];
  if (last === undefined || end === undefined) return;
  const parked = run.entries[last.from - 1];
  const expiresAt = (parked?.kind === 'call_waits' ? parked.later?.expiresAt : undefined) ?? Number.POSITIVE_INFINITY;
  const wrong = (what: string): void =>
    ledger.violated('waits', `call ${step}.${call}, whose value came later, ${what}`, run.id);
  if (
    end.how === 'event' &&
    outcome.kind === 'value' &&
    outcome.artifact === undefined &&
    !isSame(outcome.value, end.value)
  )
    wrong('has another value than came');
  const isPolled = outcome.kind === 'value' && isJsonObject(outcome.value) && outcome.value['polled'] === true;
  if (end.how !== 'event' && outcome.kind === 'value' && !isPolled) wrong('has a value, and nothing came');
  if (
    outcome.kind === 'error' &&
    outcome.error.code === 'result_expired' &&
    isBeforeTime(entry, expiresAt, run.id, ledger)
  )
    wrong('was over before its time');
  if (outcome.kind === 'value' && end.how === 'superseded') wrong('was given up, and has a value');
}

/** By step and call. */
export function toolsOf(entries: readonly Entry[]): ReadonlyMap<string, string> {
  const tools = new Map<string, string>();
  const counts = new Map<number, number>();
  const note = (step: number, tool: string): void => {
    const call = counts.get(step) ?? 0;
    counts.set(step, call + 1);
    tools.set(`${step}.${call}`, tool);
  };
  for (const entry of entries) {
    if (entry.kind === 'plan_grown') for (const { tool } of entry.branches) note(entry.step, tool);
    if (entry.kind !== 'moved' || entry.rejected !== undefined) continue;
    const { decision, step } = entry;
    if (decision.kind === 'call_tool') note(step, decision.tool);
    if (decision.kind === 'call_parallel') for (const { tool } of decision.branches) note(step, tool);
  }
  return tools;
}

/** A part of a call's work is recorded once, each time that the call is made. */
function checkKeptOnce(run: EndedRun, ledger: Ledger): void {
  const kept = new Set<string>();
  const own = ownEntries(run);
  for (const entry of own) {
    const ended = endedCall(entry, own);
    if (ended !== undefined)
      for (const name of kept) if (name.startsWith(`${ended.step}.${ended.call} `)) kept.delete(name);
    if (entry.kind !== 'call_kept') continue;
    const name = `${entry.step}.${entry.call} ${entry.name}`;
    // What a process that was held up records at last, whoever asks the world may have recorded too.
    const isFound = isJsonObject(entry.value) && entry.value['found'] === true;
    if (kept.has(name) && !isFound)
      ledger.violated('waits', `${entry.name} of call ${entry.step}.${entry.call} is recorded twice`, run.id);
    kept.add(name);
  }
}

/** A part of a `once` call is done once, and a call of which something was done is not said to be cancelled. */
export function checkParts(runs: ReadonlyMap<string, EndedRun>, ledger: Ledger): void {
  const byKey = Map.groupBy(ledger.parts, ({ key, part }) => partKey(key, part));
  for (const [name, entered] of byKey) {
    const [first] = entered;
    if (first?.effect !== 'once') continue;
    const { id, part, run, key } = first;
    const allowed = 1 + (ledger.refuted.get(name) ?? 0);
    if (entered.length > allowed) ledger.violated('once', `${part} of ${id} was entered ${entered.length} times`, run);
    const happened = (ledger.effects.get(name) ?? 0) - (ledger.lateEffects.get(name) ?? 0);
    if (happened > 1) ledger.violated('once', `${part} of ${id} happened twice`, run);
    const ended = runs.get(run);
    if (happened < 1 || ended === undefined) continue;
    const place = key.slice(key.lastIndexOf('/') + 1);
    const outcome = entriesOf(ended, 'call_ended').find((entry) => `${entry.step}.${entry.call}` === place)?.outcome;
    if (outcome?.kind !== 'cancelled' && outcome?.kind !== 'skipped') continue;
    ledger.violated('once', `${part} of ${id} happened, and its call came to ${outcome.kind}`, run);
  }
}
