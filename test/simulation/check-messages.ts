/** What was said to a run: each message is taken once, each pause has one answer, and who may not speak is not heard. */
import type { Control, Entry, Paused, Resumed } from '#core';
import { type EndedRun, endingOf, entriesOf, isBeforeTime, startOf } from './ended-run.ts';
import type { Ledger, StoredMessage } from './ledger.ts';

export function checkMessages(run: EndedRun, ledger: Ledger): void {
  if (endingOf(run) === undefined) return;
  checkControls(run, ledger);
  checkWords(run, ledger);
  checkNews(run, ledger);
  checkVerdicts(run, ledger);
  checkCancel(run, ledger);
}

function checkControls(run: EndedRun, ledger: Ledger): void {
  const taken = Map.groupBy(entriesOf(run, 'control'), ({ control }) => control.id);
  for (const { message } of ledger.controlsOf(run)) {
    const times = taken.get(message.id)?.length ?? 0;
    if (times !== 1)
      ledger.violated('controls', `${message.type} ${message.id} was stored, and taken ${times} times`, run.id);
  }
  for (const [id, [entry]] of taken) {
    if (entry === undefined) continue;
    if (!run.messages.has(id))
      ledger.violated('controls', `${entry.control.type} ${id} was taken, but never stored`, run.id);
    if (entry.applied === (entry.error !== undefined)) {
      ledger.violated('controls', `${entry.control.type} ${id} is neither applied nor refused`, run.id);
    }
    if (entry.applied && !mayBeHeard(entry.control, run)) {
      ledger.violated('no foreign data', `${entry.control.type} of somebody who may not was applied`, run.id);
    }
  }
}

/** What a guest of the session may say, and what only an admin may; everything else is for the owner, and for admins too. */
const FOR_GUESTS: readonly string[] = ['INJECT_CONTEXT', 'USER_MESSAGE'];
const FOR_ADMINS: readonly string[] = ['PRIORITIZE'];

function mayBeHeard({ from, type }: Control, { entries: [first] }: EndedRun): boolean {
  if (from === undefined || from.scope === 'admin') return true;
  if (first?.kind !== 'started' || FOR_ADMINS.includes(type)) return false;
  const { tenant, user, session } = first.identity;
  const isTheirs = from.tenant === tenant && from.user === user && from.session === session;
  return isTheirs && (from.scope === 'owner_user' || FOR_GUESTS.includes(type));
}

/** What people say is heard in the order in which the store took it. */
function checkWords(run: EndedRun, ledger: Ledger): void {
  let last = 0;
  for (const { control, undelivered } of entriesOf(run, 'control')) {
    const order = run.messages.get(control.id)?.order;
    if (order === undefined || undelivered === true || !WORDS.includes(control.type)) continue;
    if (order < last)
      ledger.violated('controls', `${control.type} ${control.id} was taken after what was said later`, run.id);
    last = order;
  }
}

const WORDS: readonly string[] = ['INJECT_CONTEXT', 'USER_MESSAGE', 'REDIRECT'];

/** What runs tell each other is taken once too. */
function checkNews(run: EndedRun, ledger: Ledger): void {
  const counts = new Map<string, number>();
  for (const { message } of run.messages.values()) {
    const name = newsName(message.type);
    if (name !== undefined) counts.set(name, (counts.get(name) ?? 0) + 1);
    const times = run.taken.get(message.id) ?? 0;
    if (times !== 1) ledger.violated('wake', `${message.type} ${message.id} was taken ${times} times`, run.id);
  }
  for (const kind of ['task_ended', 'task_paused', 'watched'] as const) {
    const taken = entriesOf(run, kind).length;
    const stored = counts.get(kind) ?? 0;
    if (taken !== stored)
      ledger.violated('wake', `${stored} messages were stored for ${taken} entries ${kind}`, run.id);
  }
}

function newsName(type: string): 'task_ended' | 'task_paused' | 'watched' | undefined {
  if (type === 'TASK_ENDED') return 'task_ended';
  if (type === 'TASK_PAUSES') return 'task_paused';
  return type === 'WATCH' ? 'watched' : undefined;
}

function checkVerdicts(run: EndedRun, ledger: Ledger): void {
  const pauses = new Map(entriesOf(run, 'paused').map((paused) => [paused.token, paused]));
  for (const [token, answers] of Map.groupBy(entriesOf(run, 'resumed'), (resumed) => resumed.token)) {
    const pause = pauses.get(token);
    if (answers.length > 1)
      ledger.violated('one verdict', `the pause ${token} was answered ${answers.length} times`, run.id);
    const [answer] = answers;
    if (pause === undefined || answer === undefined) continue;
    const { expiresAt = Number.POSITIVE_INFINITY } = pause;
    if (answer.verdict === 'timeout' && isBeforeTime(answer, expiresAt, run.id, ledger)) {
      ledger.violated('one verdict', `the pause ${token} was over before its time`, run.id);
    }
    const isOfNobody = pause.reason === 'constraints_conflict' && answer.payload?.['control'] === undefined;
    if (answer.verdict === 'superseded' && isOfNobody) checkUnneeded(answer, run, ledger);
    else if (answer.verdict === 'superseded') checkWithdrawn(answer, pause, run, ledger);
    else if (answer.verdict !== 'timeout' && storedAtOf(answer, run) >= expiresAt) {
      ledger.violated('one verdict', `the pause ${token} was answered after its time`, run.id);
    }
    if (pause.step !== undefined && pause.reason !== 'in_doubt') checkOrder(answer, pause, run, ledger);
    if (answer.verdict === 'timeout') checkInTime(answer, expiresAt, run, ledger);
    const own = startOf(run)?.identity;
    const isOwn = answer.by !== undefined && answer.by.user === own?.user && answer.by.tenant === own.tenant;
    const isOpenToAll = entriesOf(run, 'escalated').some(
      (told) => told.token === token && told.approver === 'anyone' && told.seq < answer.seq,
    );
    if (pause.approver === 'another' && !isOpenToAll && answer.verdict === 'approve' && isOwn) {
      ledger.violated('gates', `${token} was approved by whoever asked for it`, run.id);
    }
  }
}

/** The control whose entry is right before that of the answer; the end of a group is no control, and what was refused answers nothing. */
function saidBy({ seq }: Entry, run: EndedRun): StoredMessage | undefined {
  const before = run.entries[seq - 2];
  return before?.kind === 'control' && before.applied ? run.messages.get(before.control.id) : undefined;
}

function storedAtOf(answer: Entry, run: EndedRun): number {
  return saidBy(answer, run)?.at ?? 0;
}

/** Nobody need raise a limit for calls that are not wanted any more: none of the step is made behind it. */
function checkUnneeded({ seq, token }: Resumed & Entry, run: EndedRun, ledger: Ledger): void {
  const step = entriesOf(run, 'moved').findLast((moved) => moved.seq < seq)?.step;
  const made = entriesOf(run, 'call_ended').some(
    (ended) => ended.step === step && ended.seq > seq && !['cancelled', 'skipped'].includes(ended.outcome.kind),
  );
  if (made) ledger.violated('one verdict', `the raise ${token} was withdrawn, and its step went on`, run.id);
}

/** A question is withdrawn before its time is over, by something that its planner has not heard; the call is not made. */
function checkWithdrawn(answer: Resumed & Entry, pause: Paused & Entry, run: EndedRun, ledger: Ledger): void {
  const { step, call, wait, token, expiresAt = Number.POSITIVE_INFINITY } = pause;
  const askedAt = entriesOf(run, 'moved').findLast((moved) => moved.step === step)?.seq ?? 0;
  const first = startOf(run);
  const by = entriesOf(run, 'control').filter(({ seq, applied, control: { type, withdraws = type } }) => {
    const withdrawing = withdraws === 'REDIRECT' || (withdraws === 'USER_MESSAGE' && first?.whileAsked !== 'keep');
    // Who calls off a run that undoes what it has done asks nothing more.
    const unwinding = withdraws === 'CANCEL' && entriesOf(run, 'unwinding').some((entry) => entry.seq > answer.seq);
    return (withdrawing || unwinding) && applied && seq > askedAt && seq < answer.seq;
  });
  if (by.length === 0) ledger.violated('one verdict', `${token} was withdrawn, and nobody had said anything`, run.id);
  // What was heard in time withdraws it, though a slow store keeps that back.
  if (answer.at >= expiresAt && !by.some(({ at }) => at < expiresAt))
    ledger.violated('one verdict', `${token} was withdrawn after its time`, run.id);
  // A call that asks in the middle of its work goes on without an answer.
  if (call === undefined || wait !== undefined) return;
  const isMade = entriesOf(run, 'call_began').some(
    (began) => began.step === step && began.call === call && began.seq > answer.seq,
  );
  if (isMade) ledger.violated('gates', `the call of ${token} was made although its question was withdrawn`, run.id);
}

/** A question of a goal that was changed has no answer that came later. */
function checkOrder(answer: Resumed & Entry, pause: Paused & Entry, run: EndedRun, ledger: Ledger): void {
  const said = saidBy(answer, run);
  if (answer.verdict === 'superseded' || answer.verdict === 'timeout' || said === undefined) return;
  const askedAt = run.landed[pause.seq - 1] ?? 0;
  const before = ledger
    .controlsOf(run)
    .find(({ message, order }) => message.type === 'REDIRECT' && order > askedAt && order < said.order);
  if (before === undefined) return;
  ledger.violated(
    'one verdict',
    `${pause.token} was answered after the goal was changed by ${before.message.id}`,
    run.id,
  );
}

/** What the store had taken in time, and before the pause was said to be over, is an answer: it may be wrong, but not late. */
function checkInTime(timeout: Resumed & Entry, expiresAt: number, run: EndedRun, ledger: Ledger): void {
  const overAt = run.landed[timeout.seq - 1] ?? 0;
  for (const { control, error } of entriesOf(run, 'control')) {
    const stored = run.messages.get(control.id);
    if (stored === undefined || control.payload?.['token'] !== timeout.token) continue;
    const isLate = error?.code === 'pause_expired' || error?.code === 'pause_not_found';
    if (!isLate || stored.at >= expiresAt || stored.order > overAt) continue;
    ledger.violated('one verdict', `${control.type} ${control.id} was in time for the pause ${timeout.token}`, run.id);
  }
}

/** A CANCEL that was stored before the ending is what the run ends with. */
function checkCancel(run: EndedRun, ledger: Ledger): void {
  const cancel = ledger.controlsOf(run).find(({ message }) => message.type === 'CANCEL');
  if (cancel === undefined || run.endedAt === undefined || cancel.order > run.endedAt) return;
  const ending = endingOf(run);
  if (ending?.kind === 'finished' && ending.reason === 'cancelled') return;
  // How it ends was recorded before it began to undo its calls.
  const begun = entriesOf(run, 'unwinding')[0];
  if (begun !== undefined && cancel.order > (run.landed[begun.seq - 1] ?? 0)) return;
  ledger.violated('cancel wins', `CANCEL ${cancel.message.id} was stored, and the run ended otherwise`, run.id);
}
