/** What must hold of approvals when a history is over: readers were told in time, as often as the terms say, and no yes that counts was turned away. */
import type { Entry } from '#core';
import { approverOf, countPeople, personName, type Question, questionOf } from './approvals-by-hand.ts';
import { type EndedRun, entriesOf, ownEntries, startOf } from './ended-run.ts';
import { asksAbout, GATED_KINDS } from './gated-tools.ts';
import type { Ledger } from './ledger.ts';
import type { SimulationScript } from './script.ts';

type Wrong = (what: string) => void;

const MOST_REMINDERS = 10;
/** So late somebody is told whose process is well, with a store that is far away. */
const LATE_MS = 4_000;

export function checkApprovals(run: EndedRun, script: SimulationScript, ledger: Ledger): void {
  const questions = entriesOf(run, 'paused').flatMap((paused) => questionOf(paused, run.entries, run.id) ?? []);
  // Where there is a place for each run: whoever waits for one waits for all that others do in it.
  const hasRoom = Math.min(script.slots, script.slotsPerTenant) >= ledger.runs.size;
  const isWell = hasRoom && script.faults.length === 0 && script.world.aheadMs.every((ms) => ms === 0);
  for (const question of questions) {
    if (!(question.tool in GATED_KINDS)) continue;
    const wrong: Wrong = (what) => ledger.violated('approvals', `${question.paused.token} ${what}`, run.id);
    checkTold(question, run, isWell && (script.calendar?.nights.length ?? 0) === 0, wrong);
    checkRefused(question, run, wrong);
  }
}

/** In order, not before its time, ten times at most; and if it was open for long, it was told. */
function checkTold({ paused, tool }: Question, run: EndedRun, isWell: boolean, wrong: Wrong): void {
  const { token, at, payload } = paused;
  const asks = asksAbout(tool, payload?.['args'] ?? null);
  const { remindAfterMs, escalate } = GATED_KINDS[tool]?.gate ?? {};
  const over = ownEntries(run).find(
    (entry) =>
      entry.seq > paused.seq &&
      ((entry.kind === 'resumed' && entry.token === token) ||
        (entry.kind === 'call_ended' && entry.step === paused.step && entry.call === paused.call)),
  );
  const openMs = (over ?? run.entries.at(-1) ?? paused).at - at;
  const reminders = entriesOf(run, 'reminded').filter((entry) => entry.token === token);
  const escalations = entriesOf(run, 'escalated').filter((entry) => entry.token === token);
  let last = at;
  for (const [index, { times, at: told, seq }] of reminders.entries()) {
    if (times !== index + 1) wrong(`was told of ${times} times, and it is the ${index + 1}. time`);
    if (remindAfterMs === undefined || told < last + remindAfterMs)
      wrong(`was told of ${told - last} ms after the last time`);
    if (over !== undefined && seq > over.seq) wrong('was told of when it had been answered');
    last = told;
  }
  if (reminders.length > MOST_REMINDERS) wrong(`was told of ${reminders.length} times`);
  if (escalations.length > 1) wrong(`was escalated ${escalations.length} times`);
  for (const { at: told, to, approver } of escalations) {
    if (escalate === undefined || told < at + escalate.afterMs) {
      wrong(`was escalated after ${told - at} ms`);
      return;
    }
    // Who asks beside the gate is not outvoted by it.
    const wanted = escalate.approver === 'anyone' && asks.length > 1 ? undefined : escalate.approver;
    if (to !== escalate.to || approver !== wanted) wrong(`was escalated to ${to}, for ${approver ?? 'all who may'}`);
  }
  if (!isWell) return;
  if (escalate !== undefined && openMs > escalate.afterMs + LATE_MS && escalations.length === 0)
    wrong(`was open for ${openMs} ms, and never escalated`);
  if (remindAfterMs !== undefined && openMs > remindAfterMs + LATE_MS && reminders.length === 0)
    wrong(`was open for ${openMs} ms, and nobody was told`);
}

/** Only whoever does not count, or has said yes already, is told so. */
function checkRefused({ paused }: Question, run: EndedRun, wrong: Wrong): void {
  const own = startOf(run)?.identity;
  if (own === undefined) return;
  const { token, approver, escalate } = paused;
  const said: Entry[] = [];
  for (const entry of ownEntries(run)) {
    const isYes = entry.kind === 'approved' || entry.kind === 'resumed';
    if (isYes && entry.token === token) said.push(entry);
    if (entry.kind === 'escalated' && entry.token === token) said.push(entry);
    if (entry.kind !== 'control' || entry.error?.code !== 'approver_refused') continue;
    const { control } = entry;
    if (control.type !== 'APPROVE' || control.payload?.['token'] !== token) continue;
    const who = control.from ?? null;
    const isTold = said.some(({ kind }) => kind === 'escalated');
    const terms = { ...(approver === undefined ? {} : { approver }), ...(escalate === undefined ? {} : { escalate }) };
    const counts = countPeople([who], approverOf(terms, isTold), own) > 0;
    const hasSaidYes = said.some((one) => one.kind === 'approved' && personName(one.by ?? null) === personName(who));
    if (counts && !hasSaidYes) wrong(`was approved by ${personName(who)}, who was turned away`);
  }
}
