/** `pilotage approve`, `reject`, `answer`, `settle`, `cancel`, `send`, `redirect`, `pause`: says something to a run, and drives nothing. */
import {
  asksOpenly,
  type Caller,
  type Control,
  type ControlType,
  defined,
  type ErrorData,
  type Identity,
  isJsonObject,
  type Json,
  type JsonObject,
  PilotageError,
} from '#core';
import type { Journal } from '#journal';
import {
  addressee,
  callMeant,
  type PauseNotice,
  type Speaker,
  sendControl,
  speakerOn,
  wholePauses,
  whyLate,
} from '#runtime';
import { asksNothing, foldEntries, type RunState } from '#state';
import type { ControlName } from './help.ts';
import { hint, type Options } from './options.ts';
import { commandsFor, ownAnswer, pauseLines, pauseNotices, unknownPause } from './pause-lines.ts';
import { openJournal, withJournal } from './project.ts';
import { NOT_TAKEN, type Receipt, receiptsOf, type StoredControl } from './receipts.ts';
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
      return askWhich(said, await wholePauses(pauses, state.identity, { journal }), options, terminal);
    }
    const meant = pauses.find(({ token }) => options.token === undefined || options.token === token);
    const control = controlOf(said, state.identity, meant === undefined ? options : saidTo(meant, said, options));
    if (options.cancels !== undefined)
      return cancelCall(said, control, options.cancels, { journal, state, options, terminal });
    const { run: to } = await addressee(journal, said.run, control);
    const receipt = await sent(journal, to, control, isAnswer(said) ? state : undefined);
    return tell(said, to, control, receipt, options, terminal);
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

/** @returns the exit code: refused when one was. Each answer counts by itself; all are stored before anybody waits for what becomes of them. */
async function answerAll(
  said: ControlCommand,
  answers: JsonObject,
  { journal, state, options, terminal }: Answering,
): Promise<number> {
  const given = Object.entries(answers).map(([token, answer]) => answerFor(token, answer, state.identity, options));
  const speaker = speakerOn(journal);
  const stored: StoredControl[] = [];
  for (const { control } of given) {
    const { run: to } = await addressee(journal, said.run, control, speaker.states);
    stored.push(await storedAt(journal, to, control, state, speaker));
  }
  const receipts = await receiptsOf(journal, stored);
  const codes = given.map(({ command, control }, index) => {
    const { to = said.run, receipt = NOT_TAKEN } = receipts[index] ?? {};
    return tell({ ...said, command }, to, control, receipt, options, terminal);
  });
  return codes.find((code) => code !== EXIT.goal) === undefined ? EXIT.goal : EXIT.refused;
}

/** @throws UsageError, before any of the answers is given. */
function answerFor(
  token: string,
  answer: Json,
  identity: Identity,
  options: Options,
): { readonly command: ControlName; readonly control: Control } {
  const { kind, ...parts } = isJsonObject(answer) ? answer : {};
  const command = typeof kind === 'string' ? OF_KIND[kind] : undefined;
  if (command === undefined) {
    const kinds = Object.keys(OF_KIND).join(', ');
    throw new UsageError(
      `--all takes { "<token>": { "kind": … } }, with one of the kinds ${kinds}; ${shortLine(token, 80)} has another.`,
    );
  }
  const from = senderOf(identity, options);
  const id = `control_${crypto.randomUUID().replaceAll('-', '')}`;
  const type = kind === 'payload' ? 'RESUME' : TYPES[command];
  return { command, control: { id, type, payload: { ...parts, token }, ...defined({ from }) } };
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
  let receipt: Receipt;
  const { run } = said;
  const named: Control = { ...control, type: 'CANCEL_CALL' };
  try {
    const place = placeNamed(state, cancels);
    receipt = await sent(journal, run, { ...named, payload: { ...named.payload, ...place } });
  } catch (error) {
    if (!isRefusal(error)) throw error;
    receipt = { state: 'refused', error: error.toJSON() };
  }
  return tell(said, run, named, receipt, options, terminal);
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
  if (command !== 'answer' || !asksOpenly(pause)) return options;
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
async function sent(journal: Journal, to: string, control: Control, asked?: RunState): Promise<Receipt> {
  const [one] = await receiptsOf(journal, [await storedAt(journal, to, control, asked)]);
  return one?.receipt ?? NOT_TAKEN;
}

async function storedAt(
  journal: Journal,
  to: string,
  control: Control,
  asked?: RunState,
  speaker?: Speaker,
): Promise<StoredControl> {
  try {
    if (asked !== undefined && asked.ending === null) await assertIsAsked(journal, to, asked, control);
    const { head } = await sendControl(journal, to, control, speaker);
    return { to, control: control.id, from: head + 1 };
  } catch (error) {
    if (isRefusal(error)) return { to, refused: error.toJSON() };
    throw error;
  }
}

/** @param to whose question the control answers: the run itself, or a task below it. */
async function assertIsAsked(journal: Journal, to: string, state: RunState, control: Control): Promise<void> {
  const { type, payload } = control;
  const token = payload?.['token'];
  const pauses = pauseNotices(state);
  const pause = token === undefined ? pauses[0] : pauses.find((open) => open.token === token);
  if (pause === undefined) {
    const nothing = new PilotageError('pause_not_found', `Nothing was answered: ${asksNothing(state)}.`);
    throw (await whyLate(journal, to, control)) ?? (token === undefined ? nothing : unknownPause());
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
  receipt: Receipt,
  options: Options,
  terminal: Terminal,
): number {
  const { run } = said;
  const next = receipt.state === 'stored' && !receipt.isDriven ? hint('resume', run, options) : undefined;
  const error = 'error' in receipt ? receipt.error : undefined;
  if (options.json) {
    const task = to === run ? {} : { task: to };
    const more = defined({ error, next });
    terminal.write(`${terminalJson({ run, ...task, control: control.type, state: receipt.state, ...more })}\n`);
  } else if (error !== undefined) terminal.note(refusalText(error), 'bad');
  else terminal.write(`${doneText(said, to, receipt, next)}\n`);
  return error === undefined ? EXIT.goal : EXIT.refused;
}

function refusalText({ code, message }: ErrorData): string {
  return `Refused: ${shortLine(message, 500)} (${shortLine(code, 60)})`;
}

function doneText({ command }: ControlCommand, to: string, receipt: Receipt, next: string | undefined): string {
  if (receipt.state === 'applied') return `${DONE[command]}: ${shortLine(to, 80)}.`;
  if (next !== undefined) return `Stored; nobody drives the run now. Go on with: ${next}`;
  return 'Stored; the process that drives the run takes it at its next step.';
}
