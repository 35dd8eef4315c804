/** Says something to a run, from any process: checked, and durable when it returns. Drives nothing. */

import {
  assertCaller,
  assertMaySend,
  type Caller,
  type Control,
  defined,
  type Entry,
  type Message,
  mayKnow,
  PilotageError,
  Redaction,
  type Resumed,
  type TaskPause,
  validateControl,
} from '#core';
import { hasEnded, type Journal, pauseExpired, type RunRecord, runNotFound, type SignalOptions } from '#journal';
import { foldEntries, type OpenPause, type RunState } from '#state';
import { isVerdict } from '../loop/controls.ts';
import type { DriverDeps } from '../loop/driver-deps.ts';
import type { Notice } from '../loop/notices.ts';

/** The redaction of a process that has no rules of its own. */
const PLAIN = new Redaction();

/**
 * Stores a control in the inbox of the run that it is for.
 * @returns the run as it was before. The same control id again changes nothing.
 * @throws PilotageError `run_not_found`, `run_ended`, `inbox_full`, `unknown_control_type`, `payload_invalid`,
 * `scope_invalid` or `scope_mismatch`; of an answer also `pause_expired`, with when it did, or `pause_not_found`: nothing was stored.
 */
export async function sendControl(
  journal: Journal,
  run: string,
  control: Control,
  redaction: Redaction = PLAIN,
): Promise<RunRecord> {
  const checked = redaction.control(validateControl(control));
  const record = await journal.get(run);
  if (record === undefined) throw runNotFound(run);
  assertMaySend(checked.type, checked.from, record.identity);
  const limit = isVerdict(checked) && !hasEnded(record.status) ? await limitOf(journal, run, checked) : undefined;
  const priority = checked.type === 'PRIORITIZE' ? Number(checked.payload?.['priority']) : undefined;
  const options: SignalOptions = {
    ...(limit === undefined ? {} : { before: limit.expiresAt }),
    ...defined({ priority }),
  };
  await journal.signal(run, checked satisfies Message, options).catch((error: unknown) => {
    throw limit !== undefined && PilotageError.is(error, 'pause_expired')
      ? pauseExpired(limit.expiresAt, limit.token)
      : error;
  });
  return record;
}

/**
 * Whoever may not know of a run is told what is told of runs that do not exist.
 * @throws PilotageError `run_not_found`, `identity_required` or `scope_invalid`.
 */
export async function assertKnown(journal: Journal, run: string, caller: Caller): Promise<void> {
  const record = await journal.get(run);
  const known = assertCaller(caller);
  if (record === undefined || !mayKnow(known, record.identity)) throw runNotFound(run);
}

/** Where a control goes. */
export interface Addressee {
  readonly run: string;
  /** The pause of a task that it answers. */
  readonly token?: string;
}

/**
 * The run that a control sent to `run` is for: an answer goes to the task that waits for it, a priority to the task that
 * it names.
 * @throws PilotageError `run_not_found`, or `task_not_found` for a task that is not one of the run's.
 */
export async function addressee(journal: Journal, run: string, { type, payload }: Control): Promise<Addressee> {
  if (type === 'PRIORITIZE') {
    const task = payload?.['task_id'];
    if (typeof task !== 'string' || task === run) return { run };
    const record = await journal.get(task);
    if (record?.parent === run) return { run: task };
    throw new PilotageError('task_not_found', `The run ${run} has no task ${JSON.stringify(task)}.`);
  }
  if (!isVerdict({ type })) return { run };
  // A run that has spawned nothing, and is paused itself, is asked for its own answers; most are.
  if (await isAlone(journal, run)) return { run };
  const state = foldEntries(await journal.read(run));
  const token = payload?.['token'];
  const waiting = pausesBelow(state);
  const named = token === undefined ? undefined : waiting.find((pause) => pause.token === token);
  const [only] = state.pauses.length === 0 && waiting.length === 1 ? waiting : [];
  const pause = token === undefined ? only : named;
  return pause === undefined ? { run } : { run: pause.run, token: pause.token };
}

async function isAlone(journal: Journal, run: string): Promise<boolean> {
  const record = await journal.get(run);
  if (record?.status !== 'paused') return false;
  const [task] = await journal.list({ parent: run, limit: 1 });
  if (task !== undefined) return false;
  // The run may wait for the task of another run, as one of its last entries says.
  const last = await journal.read(run, Math.max(1, record.head - LAST_ENTRIES));
  return last.some((entry) => entry.kind === 'paused') && !last.some((entry) => entry.kind === 'task_paused');
}

const LAST_ENTRIES = 8;

/** Every pause of a task, its own or another's, that a run has been told of. */
export function pausesBelow({ tasks, otherPauses }: RunState): readonly TaskPause[] {
  return [...tasks, ...otherPauses].flatMap(({ pauses }) => pauses);
}

// Whether an answer still has a pause to answer, when it is given: as far as the run's journal knows it then.

/** The latest of the time limits of the pauses that an answer can be for. Milliseconds since the epoch. */
interface Limit {
  readonly expiresAt: number;
  readonly token: string;
}

/**
 * Until when the store may take this answer; `undefined`: as long as it likes. What nothing is known of is not judged here: the run
 * refuses it when it reads it, and the refusal is recorded.
 * @throws PilotageError `pause_expired`, or `pause_not_found` for a pause that was answered.
 */
async function limitOf(
  journal: Journal,
  run: string,
  { id, type, payload }: Pick<Control, 'id' | 'type' | 'payload'>,
): Promise<Limit | undefined> {
  const entries = await journal.read(run);
  // The same control was taken before.
  if (entries.some((entry) => entry.kind === 'control' && entry.control.id === id)) return undefined;
  const token = payload?.['token'];
  const { pauses } = foldEntries(entries);
  const meant = token === undefined ? pauses : pauses.filter((pause) => pause.token === token);
  if (meant.length > 0) return latestOf(meant);
  const over = entries.findLast(
    (entry): entry is Resumed & Entry => entry.kind === 'resumed' && (token === undefined || entry.token === token),
  );
  if (over?.verdict === 'timeout') throw expired(over, entries);
  if (over === undefined || token === undefined) return undefined;
  const when = new Date(over.at).toISOString();
  const message = `The pause ${over.token} was answered with ${over.verdict} at ${when}; ${type} comes too late.`;
  throw new PilotageError('pause_not_found', message);
}

function latestOf(pauses: readonly OpenPause[]): Limit | undefined {
  const limits = pauses.flatMap(({ expiresAt, token }) => (expiresAt === undefined ? [] : [{ expiresAt, token }]));
  if (limits.length < pauses.length) return undefined;
  return limits.reduce((latest, limit) => (limit.expiresAt > latest.expiresAt ? limit : latest));
}

function expired({ token, at }: Resumed & Entry, entries: readonly Entry[]): PilotageError {
  const paused = entries.findLast((entry) => entry.kind === 'paused' && entry.token === token);
  return pauseExpired((paused?.kind === 'paused' ? paused.expiresAt : undefined) ?? at, token);
}

/** Waits until a run has taken a control, without a look at what it did before. */

interface Wait {
  /** @throws why the control was refused, `run_ended`, or why this process let go of the run. */
  readonly done: Promise<void>;
  stop(): void;
}

/** Listens from now on for the entry that takes the control. @param head entries up to here cannot have taken it. */
export function untilTaken(
  { journal, hub }: Pick<DriverDeps, 'journal' | 'hub'>,
  run: string,
  control: string,
  head: number,
): Wait {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let seen = head;
  /** The driver here tells every entry, and nothing that others wrote before is missing. */
  let isTold = false;
  const see = (entry: Entry): void => {
    seen = Math.max(seen, entry.seq);
    if (entry.kind === 'control' && entry.control.id === control) {
      if (entry.error === undefined) resolve();
      else reject(PilotageError.fromData(entry.error));
    } else if (entry.kind === 'finished' || entry.kind === 'failed') {
      reject(new PilotageError('run_ended', `The run ${run} ended before it took the control.`));
    }
  };
  const look = (): void => {
    journal.read(run, seen + 1).then((entries) => {
      for (const entry of entries) see(entry);
    }, reject);
  };
  const hear = (notice: Notice): void => {
    if (notice.type === 'entry') {
      // Another process wrote what is missing before this one took over.
      isTold = notice.entry.seq <= seen + 1;
      if (isTold) see(notice.entry);
      else look();
    } else if (notice.type === 'exit') {
      isTold = false;
      if (notice.error === undefined) look();
      else reject(notice.error);
    }
  };
  const unlisten = hub.listen(run, hear, false);
  const unwatch = journal.watch(run, () => {
    if (!isTold) look();
  });
  const stop = (): void => {
    unlisten();
    unwatch();
  };
  const done = promise.finally(stop);
  // The sender awaits the control only when it is stored.
  done.catch(() => {});
  return { done, stop };
}
