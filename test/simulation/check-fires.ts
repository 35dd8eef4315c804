/** Every fire is in one run, which says so: a run of its own, or a turn of the session; and the history of a schedule has all of them. */
import { createHash } from 'node:crypto';
import { type Started, scopeKey } from '#core';
import { type EndedRun, startOf } from './ended-run.ts';
import type { Ledger } from './ledger.ts';
import type { ScheduleChange } from './schedule-ledger.ts';
import type { SimulatedSchedule } from './script-calendar.ts';

type Runs = ReadonlyMap<string, EndedRun>;

/** By tenant and id, in JSON: the runs that the store lists for a schedule, newest first. */
export type History = ReadonlyMap<string, readonly string[]>;

export interface FiresToCheck {
  readonly runs: Runs;
  readonly ledger: Ledger;
  readonly schedules: readonly SimulatedSchedule[];
  readonly history: History;
  readonly isInOrder: boolean;
}

export function checkFires({ runs, ledger, schedules, history, isInOrder }: FiresToCheck): void {
  for (const [name, listed] of history) checkHistory(name, listed, runs, ledger);
  for (const run of runs.values()) checkOrigin(run, schedules, ledger);
  if (!isInOrder) return;
  const fires = ledger.schedules.changes.filter(isFire);
  const counts = Map.groupBy(fires, ({ run }) => run);
  for (const run of runs.values()) {
    const { schedule, fork } = startOf(run) ?? {};
    if (schedule === undefined || fork !== undefined) continue;
    const times = counts.get(run.id)?.length ?? 0;
    // A schedule that was deleted and made anew comes to a fire time again whose message was sent.
    const made = fires.filter((fire) => fire.run === run.id && fire.order === run.landed[0]);
    if (times === 0 || made.length > 1)
      ledger.violated('schedules', `${times} changes of its schedule have begun it`, run.id);
  }
}

function isFire({ how, run }: ScheduleChange): boolean {
  return how === 'move' && run !== undefined;
}

function checkHistory(name: string, listed: readonly string[], runs: Runs, ledger: Ledger): void {
  const [tenant, id] = JSON.parse(name) as [string, string];
  const own = [...runs.values()].filter((run) => {
    const { schedule, identity } = startOf(run) ?? {};
    return schedule?.id === id && identity?.tenant === tenant;
  });
  const wanted = own.map((run) => run.id).sort();
  if (wanted.join() !== listed.toSorted().join())
    ledger.violated('schedules', `the history of ${id} is ${listed.join()}, and by hand ${wanted.join()}`);
  const times = listed.map((run) => runs.get(run)?.landed[0] ?? 0);
  if (times.some((at, index) => index > 0 && at > (times[index - 1] ?? 0)))
    ledger.violated('schedules', `the history of ${id} is not newest first: ${listed.join()}`);
}

/** It is whose the schedule says, and says what the schedule says, in the session that it names, once for each fire. */
function checkOrigin(run: EndedRun, schedules: readonly SimulatedSchedule[], ledger: Ledger): void {
  const first = startOf(run);
  if (first === undefined || first.fork !== undefined) return;
  const names = Object.keys(first.context?.meta ?? {}).filter((name) => name === 'schedule' || name === 'fire_time');
  const isNoFire = first.schedule === undefined && first.turn?.succeeds === undefined;
  if (isNoFire && names.length > 0 && first.task === undefined)
    ledger.violated('schedules', `it is no fire, and its tools are told ${names.join()}`, run.id);
  if (first.schedule === undefined) return;
  const { identity, schedule } = first;
  const wrong = (what: string): void => ledger.violated('schedules', what, run.id);
  const its = schedules.find(({ id, tenant }) => id === schedule.id && tenant === identity.tenant);
  const sessions = (its?.versions ?? []).filter(({ plan }) => plan === first.query).map(({ session }) => session);
  const session = first.turn === undefined ? undefined : identity.session;
  if (!sessions.includes(session) || identity.user !== 'ann')
    wrong(`it says ${first.query} to ${String(session)}, and its schedule does not`);
  if (first.turn === undefined) {
    if (first.conversation !== false) wrong('it is a turn of a conversation, and no message');
    return;
  }
  const { messages, replaces, interrupts } = first.turn;
  if (messages.length !== 1 || replaces !== undefined || interrupts !== undefined) wrong('it is no plain message');
  if (run.id !== turnFor(first, messages[0]?.id ?? '')) wrong(`it is not the turn of ${String(messages[0]?.id)}`);
  const isNamed = schedule.triggered === true || messages[0]?.id.includes(new Date(schedule.at).toISOString()) === true;
  if (!isNamed) wrong(`its message ${String(messages[0]?.id)} does not say for which fire time it is`);
}

/** The name of the turn follows from that of its message. */
function turnFor({ identity }: Started, message: string): string {
  const text = `${scopeKey(identity)}\n${message}`;
  return `run_${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
}
