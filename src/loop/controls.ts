/** Takes what is in the inbox: each message becomes one entry; a control is applied or refused, and never ends a run by being wrong. */

import {
  type ApprovedOnce,
  type CallPlace,
  type Control,
  type ControlTaken,
  defined,
  type EntryBody,
  type ErrorData,
  type EventMessage,
  isControl,
  messageOf,
  messageWords,
  PilotageError,
  type Resumed,
  type TaskMessage,
  type WaitPlace,
  withdrawsQuestions,
} from '#core';
import type { Received, RunStatus } from '#journal';
import { explainSchemaError, schemaErrors } from '#schema';
import {
  breakpointIn,
  closedAmong,
  drivenStatus,
  lostRaces,
  misfitAmong,
  namedNodes,
  type OpenPause,
  Prospect,
  type RunState,
  unfitToCancel,
  waitingCall,
  withApproval,
  withdrawals,
} from '#state';
import { misfitFor } from './answer-kinds.ts';
import { type AnswerPorts, answer, answerRefused, isVerdict, type TakePorts, takesOut } from './answers.ts';

export interface TakenMessages {
  readonly entries: readonly EntryBody[];
  /** The run's status after these entries. */
  readonly status: RunStatus;
}

export async function takeMessages(
  state: RunState,
  received: readonly Received[],
  ports: TakePorts,
): Promise<TakenMessages> {
  let open: readonly OpenPause[] = state.pauses;
  let isAnswered = hasJustAnswered(state);
  let { withdrawn } = state;
  const fresh = [...state.fresh];
  const stillOpen = (): readonly OpenPause[] => {
    const withdrawal = withdrawals({ ...state, fresh });
    const lostRace = lostRaces(state);
    return open.filter((pause) => withdrawal(pause) === undefined && lostRace(pause) === undefined);
  };
  const entries: EntryBody[] = [];
  const fitting = new Fitting(state, entries);
  const isTakenOut = (call: number): boolean =>
    entries.some((entry) => entry.kind === 'resumed' && takesOut(entry, state, call));
  let isCancelled = state.cancel !== null;
  // Words of a session behind the cancel of a run that undoes its calls first: they begin a turn of their own when it ends.
  const endsBefore = ({ type, turnMessage }: Control): boolean =>
    state.undo !== null && isCancelled && type === 'USER_MESSAGE' && turnMessage !== undefined;
  for (const { message, storedAt } of received) {
    if (!isControl(message)) {
      entries.push(newsOf(message, withdrawn, state, entries));
      continue;
    }
    if (message.stored !== undefined) {
      entries.push({ kind: 'control', control: withoutContent(message), applied: false, error: contentGone(message) });
      continue;
    }
    if (state.unwinding === null ? endsBefore(message) : !isHeardOnTheWay(message)) {
      entries.push(undeliveredTo(state.identity.run, message));
      continue;
    }
    const question = message.type === 'USER_MESSAGE' ? questionIn(stillOpen(), message, storedAt) : undefined;
    if (question !== undefined) {
      entries.push({ kind: 'control', control: message, applied: true, as: 'answer' }, answerBy(message, question));
      open = open.filter((pause) => pause !== question);
      isAnswered = true;
      continue;
    }
    if (isAnswered && open.length === 0 && isFurtherMessage(message)) {
      entries.push({ kind: 'control', control: message, applied: true, as: 'message' });
      continue;
    }
    const found = await effectOf(message, open, state, { ...ports, storedAt, isTakenOut, fresh, made: entries });
    const effect = PilotageError.is(found) ? found : fitting.of(found);
    if (PilotageError.is(effect)) {
      entries.push({ kind: 'control', control: message, applied: false, error: effect.toJSON() });
      continue;
    }
    const below = withdrawsQuestions(message, state.whileAsked) ? await ports.withdrawBelow(message) : [];
    const withdrew = below.length === 0 ? undefined : below;
    withdrawn = withdrew ?? withdrawn;
    entries.push({ kind: 'control', control: message, applied: true, ...defined({ withdrew }) });
    fresh.push(message);
    isCancelled ||= message.type === 'CANCEL';
    entries.push(...effect);
    for (const entry of effect) {
      if (entry.kind === 'resumed') {
        isAnswered ||= open.some((pause) => pause.token === entry.token && isQuestion(pause));
        const closed = closedAmong(open, entry, (call) => state.open && waitingCall(state.open, call)?.waits);
        open = open.filter((pause) => !closed.includes(pause));
      } else if (entry.kind === 'approved') {
        open = open.map((pause) => (pause.token === entry.token ? withApproval(pause, entry, ports.now) : pause));
      } else if (entry.kind === 'paused') open = [...open, { ...entry, requestedAt: 0 }];
    }
  }
  return { entries, status: drivenStatus(open) };
}

// What people say to a run that asks its user: whoever comes first answers, and what comes after is heard as well.

/** The planner, or a call, has asked the user something, and words are an answer. */
export function isQuestion({ reason, step, call, wait, schema }: OpenPause): boolean {
  if (reason !== 'await_input' || step === undefined) return false;
  return wait === undefined ? call === undefined : schema === undefined || schema['type'] === 'string';
}

/** The question that the message answers. A message does not say which of several questions of calls it is for. */
function questionIn(open: readonly OpenPause[], message: Control, storedAt: number): OpenPause | undefined {
  const asked = open.filter(
    (pause) =>
      isQuestion(pause) && storedAt < (pause.expiresAt ?? Number.POSITIVE_INFINITY) && isFitting(message, pause),
  );
  return asked.length === 1 || asked[0]?.wait === undefined ? asked[0] : undefined;
}

/** Whether what the user wrote fits the schema of the question, where it has one. */
function isFitting(message: Control, pause: OpenPause): boolean {
  if (pause.wait === undefined) return pause.schema === undefined;
  const payload = { value: messageWords(message.payload ?? {}) };
  return misfitFor({ type: 'ANSWER', payload }, pause) === undefined;
}

function answerBy({ payload, from }: Control, { token, wait }: OpenPause): Resumed {
  if (wait !== undefined) {
    const value = messageWords(payload ?? {});
    return { kind: 'resumed', token, verdict: 'answer', value, ...defined({ by: from }) };
  }
  return { kind: 'resumed', token, verdict: 'resume', ...defined({ payload, by: from }) };
}

/** Whether the planner's question has its answer, and the planner has not been asked since. */
function hasJustAnswered({ open, steps }: RunState): boolean {
  const last = open === null ? steps.at(-1) : undefined;
  if (last?.decision.kind !== 'request_pause' || last.decision.reason !== 'await_input') return false;
  const outcome = last.calls[0]?.outcome;
  return outcome?.kind === 'verdict' && outcome.verdict !== 'timeout' && outcome.verdict !== 'superseded';
}

/** Whether it has words for whoever listens. An answer that names its pause is for that pause alone. */
function isFurtherMessage(control: Control): boolean {
  const { type, payload = {} } = control;
  if (type !== 'RESUME' || ['token', 'limits', 'nodes', 'until'].some((key) => payload[key] !== undefined))
    return false;
  return Object.keys(messageOf(control).payload ?? {}).length > 0;
}

const ON_THE_WAY: ReadonlySet<Control['type']> = new Set(['PAUSE', 'CANCEL', 'CANCEL_CALL', 'REVOKE']);

/** What a run hears that undoes its calls: answers to what it asks, and whoever holds or stops it, or one of its calls. */
function isHeardOnTheWay(control: Control): boolean {
  return isVerdict(control) || ON_THE_WAY.has(control.type);
}

function undeliveredTo(run: string, control: Control): ControlTaken {
  const error = { code: 'run_ended', message: `The run ${run} ended before it took the control.` };
  return { kind: 'control', control: withoutContent(control), applied: false, error, undelivered: true };
}

/** What is left in the inbox of a run that ends: controls were not delivered, news is kept. */
export function takeUndelivered(run: string, received: readonly Received[]): readonly EntryBody[] {
  return received.map(({ message }): ControlTaken | EntryBody =>
    isControl(message)
      ? undeliveredTo(run, message)
      : message.type === 'EVENT'
        ? overEntry(message)
        : newsEntry(message, []),
  );
}

function withoutContent({ stored: _, ...control }: Control): Control {
  return control;
}

function contentGone({ stored }: Control): ErrorData {
  const message = `What the control says is the artifact ${stored?.artifactRef}, which is not in the store. Say it again.`;
  return { code: 'artifact_not_found', message };
}

function newsOf(
  message: TaskMessage | EventMessage,
  withdrawn: readonly string[],
  state: RunState,
  before: readonly EntryBody[],
): EntryBody {
  return message.type === 'EVENT' ? eventEntry(message, state, before) : newsEntry(message, withdrawn);
}

/** What the signal does: it ends the wait that it was delivered to, unless that is over, or its payload does not fit. */
function eventEntry(
  { at, key, payload, signal }: EventMessage,
  state: RunState,
  before: readonly EntryBody[],
): EntryBody {
  const { open } = state;
  const passed = { kind: 'event_passed' as const, ...at, key, payload, signal };
  const waiting = open?.move.step === at.step ? waitingCall(open, at.call) : undefined;
  const wait = waiting?.waits.find((one) => one.wait === at.wait && one.end === undefined);
  const isTaken = before.some((entry) => entry.kind === 'wait_ended' && isSamePlace(entry, at));
  // What has lost a race waits no more, though its end is not recorded yet.
  if (wait === undefined || isTaken || lostRaces(state)({ ...at, reason: 'external_event' }) !== undefined) {
    return overEntry({ at, key, payload, signal });
  }
  const [misfit] = wait.schema === undefined ? [] : schemaErrors(wait.schema, payload);
  if (misfit === undefined) return { kind: 'wait_ended', ...at, ended: 'event', payload, signal };
  const message = `The payload of the signal does not fit what the call waits for: ${explainSchemaError(misfit)}.`;
  return { ...passed, error: { code: 'payload_invalid', message } };
}

type Place = Pick<WaitPlace, 'step' | 'call' | 'wait'>;

/** Thousands of signals may be taken at once, each of which is compared with those before it. */
function isSamePlace(one: Place, other: Place): boolean {
  return one.call === other.call && one.wait === other.wait && one.step === other.step;
}

/** The signal is for whoever waits for the key next. */
function overEntry({ at, key, payload, signal }: Pick<EventMessage, 'at' | 'key' | 'payload' | 'signal'>): EntryBody {
  const message = 'The wait was over when the signal came. The next that waits for the key gets it.';
  return { kind: 'event_passed', ...at, key, payload, signal, error: { code: 'wait_over', message } };
}

/** @param withdrawn tokens of questions that the task had told of before it heard that they are withdrawn. */
function newsEntry(message: TaskMessage, withdrawn: readonly string[]): EntryBody {
  switch (message.type) {
    case 'TASK_ENDED':
      return { kind: 'task_ended', ...message.end };
    case 'TASK_PAUSES': {
      const { task, asOf } = message;
      const pauses = message.pauses.filter(({ token }) => !withdrawn.includes(token));
      return { kind: 'task_paused', task, pauses, asOf };
    }
    case 'WATCH':
      return { kind: 'watched', by: message.by };
    default:
      return message satisfies never;
  }
}

/** A control is refused for what cannot stand in the journal: otherwise it would stay in the inbox, and hold the run for ever. */
class Fitting {
  readonly #state: RunState;
  readonly #before: readonly EntryBody[];
  /** What the entries before come to: each is noted once, however many controls come together. */
  #prospect: Prospect | undefined;
  #noted = 0;

  /** @param before the entries that follow from the messages before, and grow. */
  constructor(state: RunState, before: readonly EntryBody[]) {
    this.#state = state;
    this.#before = before;
  }

  of(effect: readonly EntryBody[]): readonly EntryBody[] | PilotageError {
    const [body, ...others] = effect;
    if (body === undefined) return effect;
    // Most of what is said has no effect to be checked.
    this.#prospect ??= new Prospect(this.#state);
    for (const entry of this.#before.slice(this.#noted)) this.#prospect.note(entry);
    this.#noted = this.#before.length;
    const why = this.#prospect.misfit(body);
    if (why !== undefined) return misfitting({ body, why });
    const misfit = others.length === 0 ? undefined : misfitAmong(this.#state, [...this.#before, ...effect]);
    return misfit === undefined || !others.includes(misfit.body) ? effect : misfitting(misfit);
  }
}

function misfitting({ body, why }: { readonly body: EntryBody; readonly why: string }): PilotageError {
  return answerRefused('entry_refused', `The entry ${body.kind} cannot follow from it, because ${why}.`);
}

/** The entries that follow from a control, or why it is refused. */
async function effectOf(
  control: Control,
  open: readonly OpenPause[],
  state: RunState,
  ports: AnswerPorts,
): Promise<readonly EntryBody[] | PilotageError> {
  switch (control.type) {
    case 'RESUME':
    case 'APPROVE':
    case 'REJECT':
    case 'ANSWER':
    case 'SETTLE':
      return withRetries(control, await answer(control, open, state, ports), open, ports);
    case 'PAUSE':
      if (control.payload?.['before'] !== undefined) return setBreakpoint(control, ports);
      // Paused already: nothing to add. While only some calls wait, the others are stopped by it.
      if (open.some(({ call }) => call === undefined)) return [];
      return [{ kind: 'paused', token: ports.newToken(), reason: 'external_event', payload: { by: 'operator' } }];
    case 'REVOKE':
      return revocation(control, state);
    case 'CANCEL_CALL':
      return unfitToCancel(state, placeToCancel(control)) ?? [];
    case 'CANCEL':
    case 'INJECT_CONTEXT':
    case 'REDIRECT':
    case 'USER_MESSAGE':
    case 'PRIORITIZE':
      return [];
    default:
      return control.type satisfies never;
  }
}

/** The control itself is the record. Of rules that are not the run's own the store has the only word. */
function revocation({ payload }: Control, { rules }: RunState): readonly EntryBody[] | PilotageError {
  const id = payload?.['rule'];
  if (rules.some((rule) => rule.id === id)) return [];
  return answerRefused(
    'payload_invalid',
    `The run has no rule ${JSON.stringify(id)} of its own: it was revoked, or never set.`,
  );
}

/** It stands in the state, and stops the run when a call would begin. */
function setBreakpoint({ payload = {} }: Control, ports: AnswerPorts): readonly EntryBody[] | PilotageError {
  if (breakpointIn(payload['before']) !== undefined) return ports.unfitBreakpoint(payload) ?? [];
  return answerRefused('payload_invalid', 'A breakpoint is { node: id }, { tool: name } or "next".');
}

/** The call that the control is about. Whoever accepted it has checked its shape. */
export function placeToCancel({ payload = {} }: Pick<Control, 'payload'>): CallPlace {
  return { step: Number(payload['step']), call: Number(payload['call']) };
}

/** The answer to a plan that has failed carries out once more what has failed. */
async function withRetries(
  { type, from, payload = {} }: Control,
  resumed: Resumed | ApprovedOnce | PilotageError,
  open: readonly OpenPause[],
  { retries }: Pick<TakePorts, 'retries'>,
): Promise<readonly EntryBody[] | PilotageError> {
  if (PilotageError.is(resumed)) return resumed;
  if (resumed.kind === 'approved') return [resumed];
  const { token, verdict } = resumed;
  if (open.find((pause) => pause.token === token)?.reason !== 'plan_failed') return [resumed];
  if (verdict !== 'resume') {
    return answerRefused(
      'payload_invalid',
      `${type} does not answer a plan that has failed. Retry the run, or cancel it.`,
    );
  }
  try {
    const nodes = namedNodes(payload['retry']);
    return [resumed, { kind: 'reopened', ...defined({ by: from }), retries: await retries(nodes) }];
  } catch (error) {
    if (PilotageError.is(error, 'payload_invalid') || PilotageError.is(error, 'budget_exceeded')) return error;
    throw error;
  }
}
