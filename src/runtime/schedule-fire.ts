/** Starts the run of a fire time, or sends its message: that, and that the schedule has dealt with the time, are one commit. */
import { createHash } from 'node:crypto';
import { type Entry, type Identity, PilotageError, type ScheduleOrigin } from '#core';
import { hasEnded, type Journal, type RunRecord, type ScheduleMove, type StoredSchedule } from '#journal';
import { firstEntry, type Starting } from './new-run.ts';
import type { RunHost } from './run-host.ts';
import { definitionOf, startOptionsOf } from './schedule-definition.ts';
import { Sender } from './session-send.ts';
import { SCHEDULED_RUN } from './start-options.ts';

/** The id that a fire has, whoever makes it, and however often: schedules of two tenants may have one name. */
export function fireId({ tenant, id }: Pick<StoredSchedule, 'tenant' | 'id'>, at: number): string {
  const owner = createHash('sha256').update(tenant).digest('hex').slice(0, 16);
  return `${SCHEDULED_RUN}${id}_${new Date(at).toISOString()}_${owner}`;
}

export interface Fire {
  /** Which name it has: that of the fire time, or a fresh one. */
  readonly name: string;
  readonly origin: ScheduleOrigin;
  /** The fire time that comes next. */
  readonly nextAt: number | null;
}

/**
 * @returns the run that was started, or that has the message.
 * @throws PilotageError `schedule_changed` when somebody else was first, or what starting it throws.
 */
export async function fire(host: RunHost, starting: Starting, schedule: StoredSchedule, of: Fire): Promise<string> {
  const { tenant, id, mark } = schedule;
  const { session } = definitionOf(schedule);
  const move: ScheduleMove = { tenant, id, mark, nextAt: of.nextAt };
  return session === undefined ? startRun(host, starting, schedule, of, move) : say(host, starting, schedule, of, move);
}

/** The first entry of the run: what is wrong with it is found when the schedule is put. */
export function entryOf(
  starting: Starting,
  schedule: Pick<StoredSchedule, 'tenant' | 'id' | 'agent' | 'definition'>,
  of: Pick<Fire, 'name' | 'origin'>,
): Promise<Entry> {
  const { user, query } = definitionOf(schedule as StoredSchedule);
  const { tenant, id } = schedule;
  const identity: Identity = { tenant, user, session: `schedule:${id}`, run: of.name };
  const options = { ...startOptionsOf(schedule, of.origin.at), conversation: false };
  return firstEntry(starting, query, identity, options, { schedule: of.origin });
}

async function startRun(
  host: RunHost,
  starting: Starting,
  schedule: StoredSchedule,
  of: Fire,
  move: ScheduleMove,
): Promise<string> {
  const entry = await entryOf(starting, schedule, of);
  if (entry.kind !== 'started') throw new Error('A run begins with the entry started.');
  const { identity } = entry;
  const fires = { ...move, run: identity.run };
  if (!(await host.fleet.launch({ identity, priority: 0, entries: [entry], fires }))) host.fleet.wake(identity.run);
  return identity.run;
}

async function say(
  host: RunHost,
  starting: Starting,
  schedule: StoredSchedule,
  of: Fire,
  move: ScheduleMove,
): Promise<string> {
  const { tenant } = schedule;
  const { user, query, session = '' } = definitionOf(schedule);
  const scope = { tenant, user, session };
  const outgoing = {
    id: of.name,
    payload: { message: query },
    busy: 'queue',
    options: startOptionsOf(schedule, of.origin.at),
    scheduled: { origin: of.origin, move },
  } as const;
  const { run, as } = await new Sender(host, starting).send(scope, outgoing);
  // It was sent by a schedule that was deleted and made anew: the time is dealt with.
  if (as === 'known' && !(await host.deps.journal.schedules.move({ ...move, run }))) {
    throw new PilotageError('schedule_changed', 'The message was sent before, and the schedule was moved on.');
  }
  return run;
}

/** The runs of the schedule that are under way: the last one, and those beside which somebody triggered it. A run that waits for somebody is. */
export async function runsUnderWay(
  { deps: { journal } }: RunHost,
  { lastRun }: Pick<StoredSchedule, 'lastRun'>,
): Promise<string[]> {
  const last = lastRun === undefined ? undefined : await journal.get(lastRun);
  const hidden = await Promise.all((last?.schedule?.beside ?? []).map((run) => journal.get(run)));
  const underWay = await Promise.all([last, ...hidden].map((record) => runUnderWay(journal, record)));
  return [...new Set(underWay.filter((run) => run !== undefined))];
}

/** The run that is under way of this one and those that go on with what it did, if there is one. */
async function runUnderWay(journal: Journal, run: RunRecord | undefined): Promise<string | undefined> {
  for (let record = run; record !== undefined; ) {
    const { run: id } = record.identity;
    if (!hasEnded(record.status)) return id;
    const [last] = record.problem === undefined ? await journal.read(id, record.head, 1).catch(unlessGone) : [];
    const next = last?.kind === 'finished' ? last.successor?.run : undefined;
    record = next === undefined ? undefined : await journal.get(next);
  }
  return undefined;
}

/** Its session was deleted while it was looked at. */
function unlessGone(error: unknown): readonly Entry[] {
  if (PilotageError.is(error, 'run_not_found')) return [];
  throw error;
}
