/** Says something to a run, from any process: checked, and durable when it returns. Drives nothing. */

import { createHash } from 'node:crypto';
import {
  assertMaySend,
  type Control,
  type ControlTaken,
  defined,
  type Entry,
  isControl,
  type Message,
  PilotageError,
  Redaction,
  validateControl,
  withdrawsQuestions,
} from '#core';
import {
  hasEnded,
  isJournalGone,
  isTransientStoreError,
  type Journal,
  pauseExpired,
  type Received,
  type RunRecord,
  runNotFound,
  type SignalOptions,
} from '#journal';
import {
  type ClosedPause,
  closedIn,
  isUndoUnderWay,
  lostRaces,
  type OpenPause,
  type RunState,
  withdrawnBy,
  withdrawnByWord,
} from '#state';
import { misfitFor, unfitFor } from '../loop/answer-kinds.ts';
import { answerRefused, isVerdict } from '../loop/answers.ts';
import { isQuestion } from '../loop/controls.ts';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { KnownStates } from '../loop/known-states.ts';
import { isWithdrawn, tooLate } from '../loop/too-late.ts';
import { withdrawBelow } from '../tasks/withdraw.ts';

/** What a process has of its own for what it says. */
export type Speaker = Pick<DriverDeps, 'redaction' | 'states'>;

/** For a process that drives nothing. */
export function speakerOn(journal: Journal): Speaker {
  return { redaction: new Redaction(), states: new KnownStates(journal) };
}

/**
 * Stores a control in the inbox of the run that it is for.
 * @returns the run as it was before. The same control id again changes nothing.
 * @throws PilotageError `run_not_found`, `run_ended`, `inbox_full`, `unknown_control_type`, `payload_invalid`,
 * `scope_invalid` or `scope_mismatch`; of an answer also `pause_expired`, with when it did, `superseded` or `pause_not_found`: nothing was stored.
 */
export async function sendControl(
  journal: Journal,
  run: string,
  control: Control,
  { redaction, states }: Speaker = speakerOn(journal),
): Promise<RunRecord> {
  const checked = redaction.control(validateControl(control));
  const record = await journal.get(run);
  if (record === undefined) throw runNotFound(run);
  assertMaySend(checked.type, checked.from, record.identity);
  const answer =
    isVerdict(checked) && !hasEnded(record.status) ? await answerTo(journal, record, checked, states) : undefined;
  const { limit, control: said = checked.type === 'CANCEL' ? await asCancel(checked, record, states) : checked } =
    answer ?? {};
  const priority = checked.type === 'PRIORITIZE' ? Number(checked.payload?.['priority']) : undefined;
  const options: SignalOptions = {
    ...(limit === undefined ? {} : { before: limit.expiresAt }),
    ...defined({ priority }),
  };
  await journal.signal(run, said satisfies Message, options).catch(async (error: unknown) => {
    if (limit !== undefined && PilotageError.is(error, 'pause_expired'))
      throw pauseExpired(limit.expiresAt, limit.token);
    if (isVerdict(said) && PilotageError.is(error, 'run_ended')) throw await answerToEnded(journal, run, said, error);
    throw error;
  });
  await withdrawFrom(journal, record, said, states);
  return record;
}

/** A second cancel stops what the first one has led to. One of a run that cannot be folded is stored as well. */
async function asCancel(control: Control, { identity, status }: RunRecord, states: KnownStates): Promise<Control> {
  const state = await states.of(identity.run).catch(() => undefined);
  const isParked = status === 'paused' || status === 'waiting';
  return state !== undefined && isUndoUnderWay(state, isParked) ? { ...control, again: true } : control;
}

/** An answer to a question of a task that is stored after this comes too late, whichever run it is given through. */
async function withdrawFrom(
  journal: Journal,
  { identity: { run } }: RunRecord,
  control: Control,
  states: KnownStates,
): Promise<void> {
  // Most runs have no tasks. What a run tells of itself is read only where it may matter.
  if (control.type !== 'REDIRECT' && control.type !== 'USER_MESSAGE') return;
  const [task] = await journal.list({ parent: run, limit: 1 });
  if (task === undefined) return;
  const state = await states.of(run);
  if (withdrawsQuestions(control, state.whileAsked)) await withdrawBelow({ journal }, state, control);
}

/** What is stored is taken by a process with the run's own code. To go on is asked of this process, which says why it cannot. */
export function isForOthers({ type }: Pick<Control, 'type'>, error: unknown): boolean {
  return type !== 'RESUME' && PilotageError.is(error, 'run_changed');
}

// Whether an answer still has a pause to answer, when it is given: as far as the run's journal knows it then.

/** The latest of the time limits of the pauses that an answer can be for. Milliseconds since the epoch. */
interface Limit {
  readonly expiresAt: number;
  readonly token: string;
}

interface GivenAnswer {
  /** Names the pause that it is for, where only one can be meant. */
  readonly control: Control;
  /** Absent: the store may take it as long as it likes. */
  readonly limit?: Limit;
}

/**
 * The answer as it is stored. What nothing is known of is not judged here: the run refuses it when it reads it, and the refusal is recorded.
 * @throws PilotageError `pause_expired`, `superseded`, or `pause_not_found` for a pause that was answered.
 */
async function answerTo(
  journal: Journal,
  { identity: { run }, readAt = 0 }: RunRecord,
  control: Control,
  states: KnownStates,
): Promise<GivenAnswer> {
  const { id, type, payload } = control;
  const before = await journal.inbox(run);
  if (before.some(({ message }) => message.id === id)) return { control };
  const token = payload?.['token'];
  const state = await states.of(run);
  const { pauses } = state;
  const meant = token === undefined ? pauses : pauses.filter((pause) => pause.token === token);
  const [only] = meant;
  if (only === undefined) {
    const entries = await journal.read(run);
    const closed = wasTaken(entries, id) ? undefined : closedIn(entries, token);
    if (closed === undefined || (token === undefined && !isNews(closed))) return { control };
    throw tooLate(type, closed);
  }
  const isOver = only.expiresAt !== undefined && only.expiresAt <= readAt;
  // To go on is asked of the run itself, which says what has changed before it says what it waits for.
  const isJudged = meant.length === 1 && !isOver && (type !== 'RESUME' || token !== undefined);
  const unfit = isJudged
    ? (lostTo(before, state, only, type) ?? unfitFor(control, only) ?? misfitFor(control, only))
    : undefined;
  if (unfit !== undefined) {
    if (wasTaken(await journal.read(run), id)) return { control };
    throw unfit;
  }
  // Words without a token are for whoever listens, also when somebody else has answered.
  const isForOne = meant.length === 1 && type !== 'RESUME';
  const named = isForOne ? { ...control, payload: { ...payload, token: only.token } } : control;
  return { control: named, ...defined({ limit: latestOf(meant) }) };
}

/** The same control was taken before: nothing is said twice, and nothing is wrong with it. */
function wasTaken(entries: readonly Entry[], id: string): boolean {
  return takenAs(entries, id) !== undefined;
}

/** Whether the run has taken a control of this id. @throws PilotageError why it was refused then. */
export async function wasSaid(journal: Journal, run: string, id: string): Promise<boolean> {
  const taken = takenAs(await journal.read(run), id);
  if (taken?.error !== undefined) throw PilotageError.fromData(taken.error);
  return taken !== undefined;
}

/** The entry that has taken the control, if one has. */
function takenAs(entries: readonly Entry[], id: string): ControlTaken | undefined {
  for (const entry of entries) if (entry.kind === 'control' && entry.control.id === id) return entry;
  return undefined;
}

/** The id of a control. @param given the sender's own, of which the same one is sent once; absent: a fresh one. */
export function controlId(given: string | undefined): string {
  if (given === undefined) return `control_${crypto.randomUUID().replaceAll('-', '')}`;
  return `control_${createHash('sha256').update(given).digest('hex').slice(0, 32)}`;
}

/** What was stored for the run before, and it has not taken yet, has withdrawn the question or answers it. `undefined`: nothing has. */
function lostTo(
  before: readonly Received[],
  state: RunState,
  pause: OpenPause,
  type: string,
): PilotageError | undefined {
  const race = lostRaces(state)(pause);
  if (race !== undefined) return tooLate(type, { token: pause.token, at: state.updatedAt, how: race });
  const fresh = [...state.fresh];
  let isOpen = withdrawnBy(state, pause) === undefined;
  for (const { message } of before) {
    if (!isControl(message)) continue;
    if (isOpen && isAnswerTo(message, pause) && closes(message, pause)) {
      const of = message.from === undefined ? '' : ` of ${message.from.user}`;
      const words = `An answer to the pause ${pause.token} is stored already (${message.type}${of}), and is taken when the run goes on; ${type} comes too late.`;
      return answerRefused('pause_not_found', words);
    }
    fresh.push(message);
    isOpen &&= withdrawnBy({ ...state, fresh: [message] }, pause) === undefined;
  }
  const withdrawn = withdrawnBy({ ...state, fresh }, pause);
  return withdrawn && isWithdrawn(type, pause.token, `by ${withdrawnByWord(withdrawn)}`);
}

/**
 * Why answers that were stored are refused, or will be: those of somebody else were stored just before them.
 * @param ids of controls of the run, which is read once for all of them.
 * @returns by their ids, those against which something speaks.
 */
export async function whyRefused(
  { journal, states }: { readonly journal: Journal; readonly states: Pick<KnownStates, 'of'> },
  run: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, PilotageError>> {
  const stored = await journal.inbox(run);
  const indexes = new Map(stored.map(({ message }, index) => [message.id, index]));
  const entries = ids.every((id) => indexes.has(id)) ? [] : await journal.read(run);
  const state = ids.some((id) => (indexes.get(id) ?? 0) > 0) ? await states.of(run) : undefined;
  const refused = new Map<string, PilotageError>();
  for (const id of ids) {
    const index = indexes.get(id);
    const late = index === undefined ? refusalIn(entries, id) : state && lateIn(stored, index, state);
    if (late !== undefined) refused.set(id, late);
  }
  return refused;
}

function refusalIn(entries: readonly Entry[], id: string): PilotageError | undefined {
  const error = takenAs(entries, id)?.error;
  return error && PilotageError.fromData(error);
}

function lateIn(stored: readonly Received[], index: number, state: RunState): PilotageError | undefined {
  const message = stored[index]?.message;
  if (index < 1 || message === undefined || !isControl(message) || !isVerdict(message)) return undefined;
  const pause = state.pauses.find(({ token }) => token === message.payload?.['token']);
  return pause && lostTo(stored.slice(0, index), state, pause, message.type);
}

/** Those of these pauses that somebody has answered already, or withdrawn, which no process has taken yet. */
export async function answeredOf(
  { journal, states }: { readonly journal: Journal; readonly states: Pick<KnownStates, 'of'> },
  run: string,
  tokens: readonly string[],
): Promise<readonly string[]> {
  // A run of which something cannot be read hides none of the others.
  const before = await journal.inbox(run).catch((error: unknown) => {
    if (isTransientStoreError(error) || isJournalGone(error)) throw error;
    return [];
  });
  if (!before.some(({ message }) => isControl(message))) return [];
  const state = await states.of(run).catch(() => undefined);
  const asked = state?.pauses.filter(({ token }) => tokens.includes(token));
  if (state === undefined || asked === undefined) return [];
  return asked.flatMap((pause) => (lostTo(before, state, pause, 'ANSWER') === undefined ? [] : [pause.token]));
}

/** A question that a run asks, or something else that it waits for, which has no token. */
interface Asked {
  readonly run: string;
  readonly token?: string;
}

export interface MayBeAnswered {
  /** True: somebody has answered, or withdrawn the question, and no process has taken that yet. Another answer would come too late. */
  readonly answered?: true;
}

/** The same, with what is answered already. */
export async function withAnswered<Row extends Asked>(
  ports: Parameters<typeof answeredOf>[0],
  rows: readonly Row[],
): Promise<(Row & MayBeAnswered)[]> {
  const asking = Map.groupBy(
    rows.filter(({ token }) => token !== undefined),
    ({ run }) => run,
  );
  const answered = new Set<string>();
  for (const [run, asked] of asking) {
    const tokens = asked.flatMap(({ token }) => token ?? []);
    for (const token of await answeredOf(ports, run, tokens)) answered.add(token);
  }
  return rows.map((row) => (row.token !== undefined && answered.has(row.token) ? { ...row, answered: true } : row));
}

/** When several people have to approve, an approval leaves room for others. Whether it does is judged when the run reads it. */
function closes({ type }: Control, { approvals = 1 }: OpenPause): boolean {
  return type !== 'APPROVE' || approvals === 1;
}

function isAnswerTo({ type, payload }: Control, pause: OpenPause): boolean {
  if (type === 'USER_MESSAGE') return isQuestion(pause);
  return (
    isVerdict({ type }) &&
    payload?.['token'] === pause.token &&
    unfitFor({ type, ...defined({ payload }) }, pause) === undefined
  );
}

/** Why an answer comes too late: what became of the question that it names, or of the last one, when nobody has answered that. `undefined`: nothing is known of it. */
export async function whyLate(
  journal: Journal,
  run: string,
  { type, payload }: Pick<Control, 'type' | 'payload'>,
): Promise<PilotageError | undefined> {
  const token = payload?.['token'];
  const closed = closedIn(await journal.read(run), token);
  return closed !== undefined && (token !== undefined || isNews(closed)) ? tooLate(type, closed) : undefined;
}

/** An answer to a run that has ended: whoever gives it is told what became of the question. */
export async function answerToEnded(
  journal: Journal,
  run: string,
  control: Control,
  ended: PilotageError,
): Promise<PilotageError> {
  const late = await whyLate(journal, run, control).catch((error: unknown) => {
    // What cannot be read of it says nothing more.
    if (PilotageError.is(error, 'journal_corrupt')) return undefined;
    throw error;
  });
  if (late === undefined || late.code === 'superseded') return late ?? ended;
  const words = late.code === 'run_ended' ? late.message : `${ended.message} ${late.message}`;
  return new PilotageError('run_ended', words, { cause: late, ...defined({ data: ended.data }) });
}

/** Whoever names no pause is told how the last one was closed, when nobody has answered it. */
function isNews({ how }: ClosedPause): boolean {
  return how.with !== 'answer';
}

function latestOf(pauses: readonly OpenPause[]): Limit | undefined {
  const limits = pauses.flatMap(({ expiresAt, token }) => (expiresAt === undefined ? [] : [{ expiresAt, token }]));
  if (limits.length < pauses.length) return undefined;
  return limits.reduce((latest, limit) => (limit.expiresAt > latest.expiresAt ? limit : latest));
}
