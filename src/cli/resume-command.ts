/** `pilotage resume`: a paused run, one whose process died, or one that has ended and only shows its answer again. */
import { type ControlType, defined, isJsonObject, type JsonObject, type Message, PilotageError } from '#core';
import { assertInTime, type Journal, MAX_LEASE_MS } from '#journal';
import {
  addressee,
  isDeadOwner,
  isVerdict,
  ownerText,
  type PauseNotice,
  type Resumption,
  type Run,
  type Runtime,
  runResultOf,
  sendControl,
  whyLate,
} from '#runtime';
import { foldEntries, planOf, type RunState } from '#state';
import { DECIDES_NOTHING, followRun, limitsOf, showPauses, withRuntime } from './follow-run.ts';
import { hint, type Options } from './options.ts';
import { needsVerdict, pauseNotices, unknownPause } from './pause-lines.ts';
import { findProject, lookUntil, setUpProject, storedJournal, whenFree, withJournal } from './project.ts';
import { EXIT, type Terminal, UsageError } from './terminal.ts';
import { shortLine } from './text.ts';

/** @returns the exit code. */
export async function resumeCommand(id: string, options: Options, terminal: Terminal): Promise<number> {
  const project = await findProject(options);
  return withJournal(storedJournal(options, project, 'write'), async (journal) => {
    const state = foldEntries(await whenFree(terminal, () => journal.read(id)));
    if (state.ending?.kind === 'finished') {
      if (isAsking(options)) throw new UsageError('The run has ended: it takes no message and no limit any more.');
      return withRuntime(DECIDES_NOTHING, journal, terminal, (runtime) =>
        followRun(runtime.run(id), state.head, { runtime, journal, options, terminal }),
      );
    }
    return withRuntime(await setUpProject(options, project, { stored: state }), journal, terminal, async (runtime) => {
      try {
        return await goOn({ runtime, journal, run: runtime.run(id), options, terminal });
      } catch (error) {
        if (!PilotageError.is(error, 'run_changed')) throw error;
        return showChanges(id, error, options, terminal);
      }
    });
  });
}

/** @returns the exit code: the run was started with other code, and waits for somebody to accept that. */
export function showChanges(
  id: string,
  { code, data }: PilotageError,
  options: Options,
  terminal: Terminal,
  command: 'resume' | 'retry' = 'resume',
): number {
  terminal.note(`pilotage: The run was started with other code than this (${code}):`, 'bad');
  const changes = data?.['changes'];
  for (const change of Array.isArray(changes) ? changes : []) {
    if (!isJsonObject(change)) continue;
    const { what, was, now } = change;
    const difference = now === undefined ? 'is gone' : `${short(was)} → ${short(now)}`;
    terminal.note(`  ${shortLine(String(what), 80)}: ${difference}`);
  }
  terminal.note(`If it may go on all the same: ${hint(command, id, options, '--accept-changes')}`, 'strong');
  return EXIT.refused;
}

/** Enough of a digest to tell two apart. */
function short(value: unknown): string {
  return shortLine(String(value), 24);
}

// How a run that has not ended is gone on with: what it waits for is answered, or shown.

export interface GoingOn {
  readonly runtime: Runtime;
  readonly journal: Journal;
  readonly run: Run;
  readonly options: Options;
  readonly terminal: Terminal;
}

/** Something is said to the run beside that it may go on. */
export function isAsking(options: Options): boolean {
  return options.token !== undefined || saysSomething(options);
}

function saysSomething({ message, payload, nodes, ...options }: Options): boolean {
  const isSaid = message !== undefined || payload !== undefined || nodes !== undefined;
  return isSaid || Object.keys(limitsOf(options)).length > 0;
}

/** @returns the exit code. */
export async function goOn(going: GoingOn): Promise<number> {
  const { run, journal, options, terminal } = going;
  await showOwner(going);
  const state = foldEntries(await journal.read(run.id));
  if (state.ending !== null) {
    if (isAsking(options)) throw new UsageError(HAS_FAILED);
    await run.resume({ acceptChanges: options.acceptChanges });
    return followRun(run, state.head + 1, going);
  }
  const pauses = waitedFor(state);
  const unread = await unreadOf(journal, state);
  const pause = await chosen(journal, state, pauses, options);
  if (pause !== undefined && isAsking(options)) assertInTime({ before: pause.expiresAt }, Date.now());
  // What has expired is recorded by whoever goes on with the run.
  const goesOn = pauses.some(isExpired);
  const from = state.head + 1;
  if (options.nodes !== undefined) assertHoldsPlan(state, pause);
  if (pause !== undefined && !isExpired(pause) && isAnswered(pause, unread, options)) {
    await answer(going, pause);
    return followRun(run, from, going);
  }
  if (pauses.length > 1 && saysSomething(options)) {
    showPauses(run.id, pauses, options, terminal);
    throw new UsageError(`Say which of ${pauses.length} open pauses is answered: --token.`);
  }
  assertIsNoAnswer(options);
  const { message } = options;
  if (message === undefined && pauses.length > 0 && unread.length === 0 && !goesOn) {
    showPauses(run.id, pauses, options, terminal);
    return EXIT.paused;
  }
  if (message !== undefined) await say(journal, run.id, 'USER_MESSAGE', { message });
  // Nobody has taken the pause that was asked for: it is answered with it.
  if (unread.some((each) => each.run === run.id && each.messages.some(({ type }) => type === 'PAUSE'))) {
    await say(journal, run.id, 'RESUME');
  }
  await drive(going, await unreadOf(journal, state));
  return followRun(run, from, going);
}

const HAS_FAILED = 'The run has failed, and asks nothing: resume it without an answer, and send it a message then.';

/** While another process has the run, which may live, it is followed from here. */
async function showOwner({ journal, run, terminal }: GoingOn): Promise<void> {
  const { lease, readAt = 0 } = (await journal.get(run.id)) ?? {};
  if (lease === undefined || isDeadOwner(lease.owner)) return;
  const silentFor = Math.max(1, Math.ceil(Math.min(lease.until - readAt, MAX_LEASE_MS) / 1_000));
  const who = shortLine(ownerText(lease.owner), 100);
  const text = `The run is with ${who}, which may still be alive. If nothing is heard of it for ${silentFor} s, this process goes on with it.`;
  terminal.note(text, 'strong');
}

function waitedFor(state: RunState): readonly PauseNotice[] {
  const result = runResultOf(state);
  return result?.status === 'paused' ? result.pauses : [];
}

function isExpired({ expiresAt = Number.POSITIVE_INFINITY }: PauseNotice): boolean {
  return expiresAt <= Date.now();
}

/** The pause that is meant: the one that is named, the one that holds the plan which is to be changed, or the only one. */
async function chosen(
  journal: Journal,
  state: RunState,
  pauses: readonly PauseNotice[],
  { token, nodes }: Options,
): Promise<PauseNotice | undefined> {
  const { run } = state.identity;
  if (token === undefined && nodes !== undefined) return pauses.find((pause) => holdsRun(pause, run));
  if (token === undefined) return pauses.length === 1 ? pauses[0] : undefined;
  const named = pauseNotices(state).find((pause) => pause.token === token);
  if (named !== undefined) return named;
  const said = { id: '', type: 'RESUME', payload: { token } } as const;
  const { run: asker } = await addressee(journal, run, said);
  throw (await whyLate(journal, asker, said)) ?? unknownPause();
}

/** Whether the options answer the pause. For most pauses, going on is an answer. */
function isAnswered(pause: PauseNotice, unread: readonly Unread[], options: Options): boolean {
  if (needsVerdict(pause)) return false;
  const hasWords = options.message !== undefined || options.payload !== undefined;
  if (pause.wait !== undefined) return options.message !== undefined;
  if (pause.reason === 'await_input') return hasWords;
  // An answer that somebody gave before comes first.
  return saysSomething(options) || !unread.some(({ messages }) => messages.some(isVerdict));
}

async function answer({ run, journal, options }: GoingOn, pause: PauseNotice): Promise<void> {
  const { message, payload, nodes, acceptChanges } = options;
  if (pause.wait !== undefined && message !== undefined) {
    if (acceptChanges) await run.resume({ acceptChanges });
    await run.answer(pause.token, { kind: 'answer', value: message });
    return untilHeard(journal, run.id, [{ run: pause.run, messages: [] }]);
  }
  const limits = limitsOf(options);
  const isOfRun = holdsRun(pause, run.id);
  if (Object.keys(limits).length > 0 && !isOfRun) throw new UsageError(LIMITS_BETWEEN_STEPS);
  // A pause that nobody's question made takes no words: they go to the planner.
  if (isOfRun && message !== undefined) await say(journal, run.id, 'USER_MESSAGE', { message });
  const words = { ...payload, ...(isOfRun || message === undefined ? {} : { message }) };
  const resumption: Resumption = {
    token: pause.token,
    acceptChanges,
    ...(Object.keys(words).length === 0 ? {} : { payload: words }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...defined({ nodes, until: options.until }),
  };
  await run.resume(resumption);
  await untilHeard(journal, run.id, [{ run: pause.run, messages: [] }]);
}

/** Nobody's step has asked for it: an operator did, or a limit. */
function holdsRun({ step, run }: PauseNotice, id: string): boolean {
  return step === undefined && run === id;
}

const LIMITS_BETWEEN_STEPS = 'Limits can be changed only while a run is paused between two steps: interrupt it first.';

function assertHoldsPlan(state: RunState, pause: PauseNotice | undefined): void {
  const isInPlan = state.open !== null && planOf(state)?.step === state.open.move.step;
  if (isInPlan && pause !== undefined && holdsRun(pause, state.identity.run)) return;
  throw new UsageError(
    '--nodes is for a run that is paused in the middle of a plan: pause it first, with pause or Ctrl-C.',
  );
}

function assertIsNoAnswer(options: Options): void {
  if (Object.keys(limitsOf(options)).length > 0) throw new UsageError(LIMITS_BETWEEN_STEPS);
  if (options.payload !== undefined) throw new UsageError('--payload is for a pause that resume can answer.');
}

/** What was said to a run, and nobody has taken. */
interface Unread {
  readonly run: string;
  readonly messages: readonly Message[];
}

/** Messages that were not taken yet, of the run and of its tasks that wait for somebody. */
async function unreadOf(journal: Journal, state: RunState): Promise<readonly Unread[]> {
  const runs = new Set([state.identity.run, ...pauseNotices(state).map(({ run }) => run)]);
  const unread = await Promise.all([...runs].map(async (run) => ({ run, messages: await messagesOf(journal, run) })));
  return unread.filter(({ messages }) => messages.length > 0);
}

async function messagesOf(journal: Journal, run: string): Promise<readonly Message[]> {
  return (await journal.inbox(run)).map(({ message }) => message);
}

/** Nothing is answered by this: what somebody has said to the run, or to a task below it, is taken. */
async function drive({ journal, run, options }: GoingOn, unread: readonly Unread[]): Promise<void> {
  await unlessOver(run.resume({ acceptChanges: options.acceptChanges }));
  await untilHeard(journal, run.id, unread);
}

/** The run may end while it is asked to go on: then its ending is shown. An expired pause needs no answer. */
async function unlessOver(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!PilotageError.is(error, 'run_ended') && !PilotageError.is(error, 'pause_expired')) throw error;
  }
}

async function say(journal: Journal, run: string, type: ControlType, payload?: JsonObject): Promise<void> {
  const id = `control_${crypto.randomUUID().replaceAll('-', '')}`;
  await sendControl(journal, run, payload === undefined ? { id, type } : { id, type, payload });
}

/** Somebody else may drive the run, and be in the middle of a step. */
const PATIENCE_MS = 6_000;

/** Waits until the messages were taken, and the run knows which of its tasks' pauses were answered by them. */
async function untilHeard(journal: Journal, id: string, said: readonly Unread[]): Promise<void> {
  await lookUntil(journal, id, PATIENCE_MS, async () => {
    const state = foldEntries(await journal.read(id));
    if (state.ending !== null) return true;
    for (const { run, messages } of said) {
      const left = new Set((await messagesOf(journal, run)).map(({ id: message }) => message));
      if (messages.some((message) => left.has(message.id))) return undefined;
      if (run !== id && !(await isUpToDate(journal, state, run))) return undefined;
    }
    return true;
  });
}

async function isUpToDate(journal: Journal, state: RunState, task: string): Promise<boolean> {
  const { pauses } = foldEntries(await journal.read(task));
  const open = new Set(pauses.map(({ token }) => token));
  return pauseNotices(state).every(({ run, token }) => run !== task || open.has(token));
}
