/** `pilotage approve`, `reject`, `answer`, `settle`, `cancel`, `send`, `redirect`, `pause`: says something to a run, and drives nothing. */
import {
  type Caller,
  type Control,
  type ControlType,
  defined,
  type Entry,
  type ErrorData,
  type Identity,
  isJsonObject,
  type JsonObject,
  PilotageError,
} from '#core';
import type { Journal } from '#journal';
import { addressee, callMeant, isDeadOwner, type PauseNotice, sendControl, wholePauses } from '#runtime';
import { asksNothing, foldEntries, type RunState } from '#state';
import type { ControlName } from './help.ts';
import { hint, type Options } from './options.ts';
import { commandsFor, isOwnQuestion, ownAnswer, pauseLines, pauseNotices } from './pause-lines.ts';
import { lookUntil, openJournal, withJournal } from './project.ts';
import { EXIT, isRefusal, type Terminal, UsageError } from './terminal.ts';
import { shortLine, terminalJson } from './text.ts';

const TYPES: Readonly<Record<ControlName, ControlType>> = {
  approve: 'APPROVE',
  reject: 'REJECT',
  answer: 'ANSWER',
  settle: 'SETTLE',
  cancel: 'CANCEL',
  send: 'USER_MESSAGE',
  redirect: 'REDIRECT',
  pause: 'PAUSE',
};

const DONE: Readonly<Record<ControlName, string>> = {
  approve: 'Approved',
  reject: 'Rejected',
  answer: 'Answered',
  settle: 'Settled',
  cancel: 'Cancelled',
  send: 'Delivered',
  redirect: 'Redirected',
  pause: 'Paused',
};

export interface ControlCommand {
  readonly command: ControlName;
  readonly run: string;
  /** The message of `send`, the goal of `redirect`. */
  readonly text: string;
}

/** @returns the exit code. */
export async function controlCommand(said: ControlCommand, options: Options, terminal: Terminal): Promise<number> {
  return withJournal(await openJournal(options, 'write'), async (journal) => {
    const state = foldEntries(await journal.read(said.run));
    const pauses = state.ending === null ? pauseNotices(state) : [];
    const answers = options.allApprovals ? sameForAll(said, pauses, options) : options.all;
    if (answers !== undefined) return answerAll(said, answers, { journal, state, options, terminal });
    if (isAnswer(said) && options.token === undefined && pauses.length > 1) {
      return askWhich(said, await wholePauses(pauses, state.identity, journal.artifacts), options, terminal);
    }
    const meant = pauses.find(({ token }) => options.token === undefined || options.token === token);
    const control = controlOf(said, state.identity, meant === undefined ? options : saidTo(meant, said, options));
    if (options.cancels !== undefined)
      return cancelCall(said, control, options.cancels, { journal, state, options, terminal });
    const { run: to } = await addressee(journal, said.run, control);
    const delivery = await sent(journal, to, control, isAnswer(said) ? state : undefined);
    return tell(said, to, control, delivery, options, terminal);
  });
}

/** Each call that waits for an approval has the same answer, for the arguments that it has now. */
function sameForAll({ command }: ControlCommand, pauses: readonly PauseNotice[], options: Options): JsonObject {
  const { token, args, digest, reason, payload, remember } = options;
  if (token !== undefined || args !== undefined || digest !== undefined) {
    throw new UsageError('--all answers every call alike: leave out --token, --args and --digest.');
  }
  const asked = pauses.filter((pause) => pause.reason === 'approval_required');
  if (asked.length === 0) throw new UsageError('The run has no call that waits for an approval.');
  return Object.fromEntries(
    asked.map((pause): [string, JsonObject] => {
      const seen = command === 'approve' ? pause.payload?.['digest'] : undefined;
      return [pause.token, { kind: command, ...defined({ reason, payload, remember, digest: seen }) }];
    }),
  );
}

interface Answering {
  readonly journal: Journal;
  readonly state: RunState;
  readonly options: Options;
  readonly terminal: Terminal;
}

/** @returns the exit code: refused when one was. Each answer counts by itself. */
async function answerAll(
  said: ControlCommand,
  answers: JsonObject,
  { journal, state, options, terminal }: Answering,
): Promise<number> {
  let code: number = EXIT.goal;
  for (const [token, answer] of Object.entries(answers)) {
    const { kind, ...parts } = isJsonObject(answer) ? answer : {};
    const command = typeof kind === 'string' ? OF_KIND[kind] : undefined;
    if (command === undefined) {
      const kinds = Object.keys(OF_KIND).join(', ');
      throw new UsageError(
        `--all takes { "<token>": { "kind": … } }, with one of the kinds ${kinds}; ${shortLine(token, 80)} has another.`,
      );
    }
    const from = senderOf(state.identity, options);
    const id = `control_${crypto.randomUUID().replaceAll('-', '')}`;
    const type = kind === 'payload' ? 'RESUME' : TYPES[command];
    const control: Control = { id, type, payload: { ...parts, token }, ...defined({ from }) };
    const { run: to } = await addressee(journal, said.run, control);
    const delivery = await sent(journal, to, control, state);
    if (tell({ ...said, command }, to, control, delivery, options, terminal) !== EXIT.goal) code = EXIT.refused;
  }
  return code;
}

const OF_KIND: Readonly<Record<string, ControlName>> = {
  approve: 'approve',
  reject: 'reject',
  answer: 'answer',
  payload: 'answer',
  settle: 'settle',
};

/** `cancel --call`: the run goes on. */
async function cancelCall(
  said: ControlCommand,
  control: Control,
  cancels: string,
  { journal, state, options, terminal }: Answering,
): Promise<number> {
  let delivery: Delivery;
  const { run } = said;
  const named: Control = { ...control, type: 'CANCEL_CALL' };
  try {
    const place = placeNamed(state, cancels);
    delivery = await sent(journal, run, { ...named, payload: { ...named.payload, ...place } });
  } catch (error) {
    if (!isRefusal(error)) throw error;
    delivery = { state: 'refused', error: error.toJSON() };
  }
  return tell(said, run, named, delivery, options, terminal);
}

function isAnswer({ command }: Pick<ControlCommand, 'command'>): boolean {
  return command === 'approve' || command === 'reject' || command === 'answer' || command === 'settle';
}

function askWhich(
  { command, run }: ControlCommand,
  pauses: readonly PauseNotice[],
  options: Options,
  terminal: Terminal,
): number {
  if (!options.json) {
    for (const { text, tone } of pauseLines(run, pauses, commandsFor(run, options))) terminal.note(text, tone);
    throw new UsageError(`${command} must say which of ${pauses.length} open pauses is meant: --token.`);
  }
  const message = `Name one of ${pauses.length} open pauses by its token.`;
  terminal.write(`${terminalJson({ run, state: 'refused', error: { code: 'pause_not_found', message }, pauses })}\n`);
  return EXIT.usage;
}

/** What is given to the planner's own question is what that asks for, and is checked by its schema before it is stored. */
function saidTo(pause: PauseNotice, { command }: ControlCommand, options: Options): Options {
  if (command !== 'answer' || !isOwnQuestion(pause)) return options;
  const named = { ...options, token: pause.token };
  const { value, ...others } = named;
  // Both are refused as wrong use.
  return value === undefined || options.payload !== undefined ? named : { ...others, payload: ownAnswer(pause, value) };
}

function controlOf({ command, text }: ControlCommand, identity: Identity, options: Options): Control {
  const from = senderOf(identity, options);
  const payload = payloadOf(command, text, options);
  return {
    id: `control_${crypto.randomUUID().replaceAll('-', '')}`,
    // A payload is what the planner has asked for.
    type: command === 'answer' && options.value === undefined ? 'RESUME' : TYPES[command],
    ...(Object.keys(payload).length === 0 ? {} : { payload }),
    ...defined({ from }),
  };
}

/** @throws PilotageError `call_not_found`, `call_ended`, `call_in_doubt`. */
function placeNamed(state: RunState, cancels: string): JsonObject {
  const [, step, call] = /^(\d+)\.(\d+)$/.exec(cancels) ?? [];
  // People count from 1.
  const named = step === undefined ? cancels : { step: Number(step) - 1, call: Number(call) - 1 };
  return { ...callMeant(state, named) };
}

/** A person who has the journal may do everything; in the name of a user, only what that user may do. */
function senderOf({ tenant, session }: Identity, { as: user, admin }: Options): Caller | undefined {
  if (user !== undefined) return { tenant, session, user, scope: admin ? 'admin' : 'owner_user' };
  if (admin) throw new UsageError('--admin goes with --as.');
  return undefined;
}

function payloadOf(command: ControlName, text: string, options: Options): JsonObject {
  const { payload, args, token, reason, soft, happened, value, remember, digest } = options;
  if (command === 'settle' && happened === undefined) {
    throw new UsageError('settle must say what became of the call: --happened or --did-not-happen.');
  }
  if (command === 'answer' && (value === undefined) === (payload === undefined)) {
    throw new UsageError('answer takes --value for a call, --payload for what the planner asks, or --all.');
  }
  // To a pause that is answered they are somebody's own words; other controls have them as they are.
  const isToPause = isAnswer({ command });
  return {
    ...(isToPause && payload !== undefined ? { payload } : payload),
    ...defined({ args, happened, value, token, reason, remember, digest }),
    ...(soft ? { hard: false } : {}),
    ...defined({ before: options.before }),
    ...(options.clear ? { clear: true } : {}),
    ...(command === 'send' ? { message: text } : {}),
    ...(command === 'redirect' ? { goal: text } : {}),
  };
}

/** @param asked the run as it is, when the control answers one of its pauses: an answer to none is not stored. */
async function sent(journal: Journal, to: string, control: Control, asked?: RunState): Promise<Delivery> {
  try {
    if (asked !== undefined && asked.ending === null) assertIsAsked(asked, control);
    const { head } = await sendControl(journal, to, control);
    return await deliveryOf(journal, { run: to, control: control.id, from: head + 1 });
  } catch (error) {
    if (isRefusal(error)) return { state: 'refused', error: error.toJSON() };
    throw error;
  }
}

function assertIsAsked(state: RunState, { type, payload }: Control): void {
  const token = payload?.['token'];
  const pauses = pauseNotices(state);
  if (pauses.length === 0) {
    throw new PilotageError('pause_not_found', `Nothing was answered: ${asksNothing(state)}.`);
  }
  const pause = token === undefined ? pauses[0] : pauses.find((open) => open.token === token);
  if (pause === undefined) {
    throw new PilotageError('pause_not_found', 'No pause with this token is open: it was answered, or never existed.');
  }
  const isDoubt = pause.reason === 'in_doubt';
  if (isDoubt === (type === 'SETTLE')) return;
  const isOfClient = pause.reason === 'client_tool';
  const what = isOfClient
    ? 'A client carries the call out: say with answer what it came to, or reject it.'
    : isDoubt
      ? 'A call is in doubt: say with settle whether it has happened.'
      : 'Nothing is in doubt: answer with approve or reject, or with resume.';
  throw new PilotageError('pause_not_found', what);
}

function tell(
  said: ControlCommand,
  to: string,
  control: Control,
  delivery: Delivery,
  options: Options,
  terminal: Terminal,
): number {
  const { run } = said;
  const next = delivery.state === 'stored' && !delivery.isDriven ? hint('resume', run, options) : undefined;
  const error = 'error' in delivery ? delivery.error : undefined;
  if (options.json) {
    const task = to === run ? {} : { task: to };
    const more = defined({ error, next });
    terminal.write(`${terminalJson({ run, ...task, control: control.type, state: delivery.state, ...more })}\n`);
  } else if (error !== undefined) terminal.note(refusalText(error), 'bad');
  else terminal.write(`${doneText(said, to, delivery, next)}\n`);
  return error === undefined ? EXIT.goal : EXIT.refused;
}

function refusalText({ code, message }: ErrorData): string {
  return `Refused: ${shortLine(message, 500)} (${shortLine(code, 60)})`;
}

function doneText({ command }: ControlCommand, to: string, delivery: Delivery, next: string | undefined): string {
  if (delivery.state === 'applied') return `${DONE[command]}: ${shortLine(to, 80)}.`;
  if (next !== undefined) return `Stored; nobody drives the run now. Go on with: ${next}`;
  return 'Stored; the process that drives the run takes it at its next step.';
}

// What became of a control that was stored: looked at for some seconds, while a process drives the run.

type Delivery =
  | { readonly state: 'applied' }
  | { readonly state: 'refused' | 'undelivered'; readonly error: ErrorData }
  /** Nobody has taken it yet. */
  | { readonly state: 'stored'; readonly isDriven: boolean };

/** The driver looks into the inbox every third of its lease, and then at its next step. */
const PATIENCE_MS = 8_000;
/** Between two drivers of one process the run is nobody's for a moment. */
const GAP_MS = 300;

interface SentControl {
  readonly run: string;
  /** Its id. */
  readonly control: string;
  /** The first journal position at which it can have been taken. */
  readonly from: number;
}

async function deliveryOf(journal: Journal, sent: SentControl): Promise<Delivery> {
  let drivenAt = performance.now();
  const seen = await lookUntil(journal, sent.run, PATIENCE_MS, async (): Promise<Delivery | undefined> => {
    const taken = (await journal.read(sent.run, sent.from)).find((entry) => isAbout(entry, sent));
    if (taken?.kind === 'control') return deliveryIn(taken);
    const now = performance.now();
    if (await hasDriver(journal, sent.run)) drivenAt = now;
    return now - drivenAt > GAP_MS ? { state: 'stored', isDriven: false } : undefined;
  });
  return seen ?? { state: 'stored', isDriven: true };
}

function isAbout(entry: Entry, { control }: SentControl): boolean {
  return entry.kind === 'control' && entry.control.id === control;
}

function deliveryIn({ error, undelivered }: Extract<Entry, { kind: 'control' }>): Delivery {
  if (error === undefined) return { state: 'applied' };
  return { state: undelivered === true ? 'undelivered' : 'refused', error };
}

/** A process that holds the run's lease and, as far as this machine knows, lives. */
async function hasDriver(journal: Journal, run: string): Promise<boolean> {
  const lease = (await journal.get(run))?.lease;
  return lease !== undefined && !isDeadOwner(lease.owner);
}
