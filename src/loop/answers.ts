/** Answers to pauses: which pause one is for, whether it fits, and the entry that it becomes. What is wrong with one refuses it, and changes nothing. */

import {
  type ApprovedOnce,
  allReferencesIn,
  assertRunLimits,
  type Branch,
  branchesOf,
  branchId,
  type Control,
  defined,
  type EntryBody,
  type ErrorCode,
  type ErrorData,
  isJsonObject,
  isPlan,
  isPlanTool,
  type Json,
  type JsonObject,
  type Limits,
  type Message,
  needsOf,
  type Outcome,
  type PauseVerdict,
  PilotageError,
  type Reference,
  type Remembered,
  type Resumed,
  type Retries,
  referenceFault,
  runLimitsOf,
  unescaped,
  waysOf,
} from '#core';
import { pauseExpired } from '#journal';
import {
  asksNothing,
  type ClosedPause,
  hasBegun,
  lostRaces,
  nodeEdits,
  type OpenPause,
  type OpenStep,
  type RunState,
  withdrawnBy,
  withdrawnByWord,
} from '#state';
import { misfitFor, SAY_SO, unfitFor } from './answer-kinds.ts';
import { rememberedWith, shortOf, unseenEdit } from './approvals.ts';
import { assertPriced } from './prices.ts';
import { isWithdrawn, tooLate } from './too-late.ts';

export interface TakePorts {
  /** Milliseconds since the epoch. */
  readonly now: number;
  newToken(): string;
  /** Why these arguments do not fit a tool. */
  misfit(tool: string, args: Json): Promise<ErrorData | undefined>;
  /** What a call of the tool came to whose value is said to be this. */
  outcomeOf(tool: string, value: Json): Promise<Outcome>;
  /** What of the run's failed plan is carried out once more. @throws PilotageError why it cannot be. */
  retries(nodes: readonly string[] | undefined): Promise<Retries>;
  /** Passes on to the tasks that the run waits for what withdraws their questions. @returns the tokens of these. */
  withdrawBelow(control: Control): Promise<readonly string[]>;
  /** Whether the store has the artifact that is referred to. */
  isStored(ref: Json): Promise<boolean>;
  /** How the pause with this token was closed, or the last one that was, also by entries that are `made` and not stored yet; `undefined` when it never was. */
  closedBy(token: Json | undefined, made: readonly EntryBody[]): Promise<ClosedPause | undefined>;
  /** Why the breakpoint of a PAUSE would never be met. */
  unfitBreakpoint(payload: JsonObject): PilotageError | undefined;
  /** The tool can be asked whether a call of it has happened. */
  canLookUp(tool: string): boolean;
  /** Who decides, and the models without prices that it may ask: they are for no limit of cost. */
  readonly agent: string;
  readonly unpriced: readonly string[];
}

export interface AnswerPorts extends TakePorts {
  /** When the store accepted the control: what had expired by then takes no answer, and what had not does, however late it is read. */
  readonly storedAt: number;
  /** What the planner has not heard yet, up to this message. */
  readonly fresh: RunState['fresh'];
  /** The entries of the same reading so far. */
  readonly made: readonly EntryBody[];
  /** An answer of the same reading has taken the call out of its plan. */
  isTakenOut(call: number): boolean;
}

const VERDICTS: Partial<Record<Control['type'], PauseVerdict>> = {
  RESUME: 'resume',
  APPROVE: 'approve',
  REJECT: 'reject',
  ANSWER: 'answer',
  SETTLE: 'settle',
};

/** An answer to a pause, which a call may be waiting for while others are under way. */
export function isVerdict({ type }: Pick<Message, 'type'>): boolean {
  return type in VERDICTS;
}

/** The entry of an answer, or why it is refused. */
export async function answer(
  control: Control,
  open: readonly OpenPause[],
  state: RunState,
  ports: AnswerPorts,
): Promise<Resumed | ApprovedOnce | PilotageError> {
  const { type, from, payload = {} } = control;
  const pause = pauseOf(type, payload['token'], { open, state }, ports.storedAt);
  if (PilotageError.is(pause)) return (await closedBefore(type, payload['token'], open, ports)) ?? pause;
  const withdrawn = withdrawnBy({ ...state, fresh: ports.fresh }, pause);
  if (withdrawn !== undefined) return isWithdrawn(type, pause.token, `by ${withdrawnByWord(withdrawn)}`);
  const race = lostRaces(state)(pause);
  if (race !== undefined) return tooLate(type, { token: pause.token, at: state.updatedAt, how: race });
  const unfit = unfitFor(control, pause) ?? misfitFor(control, pause);
  if (unfit !== undefined) return unfit;
  if (pause.reason === 'client_tool' && type === 'ANSWER') {
    const given = await givenOutcome(payload['value'] ?? null, pause, state, ports);
    if (PilotageError.is(given)) return given;
  }
  if (pause.wait !== undefined) return answerToCall(control, pause);
  const verdict = VERDICTS[type] ?? 'resume';
  if (pause.reason === 'in_doubt') return settlement(control, pause, state, ports);
  const { changes, words } = partsOf(control, pause);
  const refusal =
    refusalOf(control, pause, state) ??
    (type === 'APPROVE' ? unseenEdit(control, pause) : undefined) ??
    (await unseenRefusal(control, pause, ports)) ??
    (await misfitOf(changes.args, pause, state, ports)) ??
    limitsRefusal(changes.limits, state, ports) ??
    (await editRefusal(state, changes.nodes, ports));
  if (refusal !== undefined) return refusal;
  const outcome = type === 'ANSWER' ? await givenOutcome(payload['value'] ?? null, pause, state, ports) : undefined;
  if (PilotageError.is(outcome)) return outcome;
  const remember = remembered(control, pause, changes.args, state);
  if (PilotageError.is(remember)) return remember;
  const yes = { by: from, words, args: changes.args, remember };
  const short = type === 'APPROVE' ? shortOf(pause, yes, state, ports.now) : undefined;
  return (
    short ?? {
      kind: 'resumed',
      token: pause.token,
      verdict,
      ...words,
      ...recorded(changes),
      ...defined({ outcome, by: from, remember }),
    }
  );
}

function remembered(...asked: Parameters<typeof rememberedWith>): Remembered | PilotageError | undefined {
  try {
    return rememberedWith(...asked);
  } catch (error) {
    if (PilotageError.is(error)) return error;
    throw error;
  }
}

/** The answer to what a call asks in the middle of its work, or that somebody does not want to give one. */
function answerToCall({ type, from, payload = {} }: Control, { token }: OpenPause): Resumed {
  const { reason } = payload;
  const words = reason === undefined ? {} : { payload: { reason } };
  const by = defined({ by: from });
  if (type === 'SETTLE') {
    return { kind: 'resumed', token, verdict: 'settle', outcome: failure(payload['error']), ...words, ...by };
  }
  if (type !== 'ANSWER') return { kind: 'resumed', token, verdict: 'reject', ...words, ...by };
  return { kind: 'resumed', token, verdict: 'answer', value: payload['value'] ?? null, ...words, ...by };
}

/** What the call comes to of which somebody says that it has failed. That it is an error was asked when it was said. */
function failure(error: Json | undefined): Outcome {
  return { kind: 'error', error: error as unknown as ErrorData };
}

/** Nobody approves arguments that cannot be shown any more, unless they name what they saw, or give others. */
async function unseenRefusal(
  { type, payload = {} }: Control,
  { payload: asked }: OpenPause,
  { isStored }: TakePorts,
): Promise<PilotageError | undefined> {
  const stored = asked?.['args_stored'];
  if (type !== 'APPROVE' || !isJsonObject(stored) || payload['args'] !== undefined) return undefined;
  if (payload['digest'] !== undefined || (await isStored(stored))) return undefined;
  const message =
    'The arguments of the call are not in the store any more, so that nobody can see what is approved. Reject the call, approve it with args, or name the digest of what you saw.';
  return answerRefused('artifact_not_found', message);
}

/** What the call comes to whose value somebody gives in its place. */
async function givenOutcome(
  value: Json,
  { call = 0 }: OpenPause,
  { open }: RunState,
  { outcomeOf }: TakePorts,
): Promise<Outcome | PilotageError> {
  const tool = (open === null ? undefined : branchesOf(open.move.decision)[call]?.tool) ?? '';
  const outcome = await outcomeOf(tool, value);
  return outcome.kind === 'error'
    ? answerRefused('payload_invalid', `The value of ${tool} was refused: ${outcome.error.message}`)
    : outcome;
}

interface Changes extends Pick<Resumed, 'args' | 'nodes'> {
  readonly limits?: Limits;
}

/**
 * What an answer changes, and what it only says. A change has a field of its own for the kind of pause that it answers: whatever
 * a person's own `payload` calls its parts, it changes nothing.
 */
function partsOf(
  { type, payload = {} }: Pick<Control, 'type' | 'payload'>,
  pause: OpenPause,
): { readonly changes: Changes; readonly words: Pick<Resumed, 'payload'> } {
  const { token: _, digest: __, remember: ___, value: given, payload: own, ...others } = payload;
  const rest = given === undefined || type === 'ANSWER' ? others : { ...others, value: given };
  const takes = (field: keyof Changes): boolean =>
    field === 'args' ? type === 'APPROVE' && pause.call !== undefined : type === 'RESUME' && pause.step === undefined;
  const changes: Record<string, Json> = {};
  const words: Record<string, Json> = isJsonObject(own) ? { ...own } : {};
  for (const [field, value] of Object.entries(rest)) {
    if (isChange(field) && takes(field)) changes[field] = value;
    else words[field] = value;
  }
  return { changes, words: Object.keys(words).length === 0 ? {} : { payload: words } };
}

function recorded({ limits, ...same }: Changes): Pick<Resumed, keyof Changes> {
  return limits === undefined ? same : { ...same, limits: runLimitsOf(limits) };
}

function isChange(field: string): field is keyof Changes {
  return field === 'args' || field === 'limits' || field === 'nodes';
}

/** An answer of the same reading has taken the call out of the plan already. */
export function takesOut({ nodes }: Resumed, { open }: RunState, call: number): boolean {
  return nodeEdits(open, nodes).some((edit) => edit.call === call && edit.args === undefined);
}

/** The answer to a call in doubt: what became of it, or that it is to be looked up again. */
async function settlement(
  { type, from, payload = {} }: Control,
  { token, reason, call, payload: doubt = {} }: OpenPause,
  state: RunState,
  { outcomeOf, canLookUp }: TakePorts,
): Promise<Resumed | PilotageError> {
  const { open } = state;
  const { token: _, value, error, payload: words, ...said } = payload;
  const rest = { ...(isJsonObject(words) ? words : {}), ...said };
  if (reason !== 'in_doubt' || call === undefined || open === null) {
    return answerRefused('payload_invalid', 'No call is in doubt here, so that SETTLE does not answer this pause.');
  }
  const tool = branchesOf(open.move.decision)[call]?.tool ?? String(doubt['tool']);
  const given = Object.keys(rest).length === 0 ? {} : { payload: rest };
  const by = from === undefined ? {} : { by: from };
  if (type === 'RESUME') {
    if (canLookUp(tool)) return { kind: 'resumed', token, verdict: 'resume', ...given, ...by };
    return answerRefused(
      'payload_invalid',
      `${tool} has no reconcile that could say whether the call has happened. ${SAY_SO}`,
    );
  }
  if (rest['happened'] !== true) {
    if (value === undefined) return { kind: 'resumed', token, verdict: 'settle', ...given, ...by };
    return answerRefused(
      'payload_invalid',
      'A call that did not happen has no value: leave it out, or say that it happened.',
    );
  }
  if (error !== undefined) {
    return { kind: 'resumed', token, verdict: 'settle', ...given, outcome: failure(error), ...by };
  }
  const outcome = await outcomeOf(tool, value ?? null);
  if (outcome.kind === 'error') {
    return answerRefused('payload_invalid', `The value of ${tool} was refused: ${outcome.error.message}`);
  }
  return { kind: 'resumed', token, verdict: 'settle', ...given, outcome, ...by };
}

/** Whoever names no pause means the one that was open last, while none is. */
async function closedBefore(
  type: string,
  token: Json | undefined,
  open: readonly OpenPause[],
  { closedBy, made }: AnswerPorts,
): Promise<PilotageError | undefined> {
  if (token === undefined ? open.length > 0 : open.some((pause) => pause.token === token)) return undefined;
  const closed = await closedBy(token, made);
  return closed && tooLate(type, closed);
}

function pauseOf(
  type: string,
  token: Json | undefined,
  { open, state }: { readonly open: readonly OpenPause[]; readonly state: RunState },
  storedAt: number,
): OpenPause | PilotageError {
  const named = token === undefined ? open : open.filter((pause) => pause.token === token);
  const inTime = named.filter(({ expiresAt = Number.POSITIVE_INFINITY }) => storedAt < expiresAt);
  const [pause] = inTime;
  if (pause === undefined) return noneOpen(type, named, { open, state });
  if (inTime.length === 1) return pause;
  return mustName(type, inTime);
}

/** An answer without a token to more than one open pause. */
export function mustName(type: string, open: readonly Pick<OpenPause, 'token' | 'reason'>[]): PilotageError {
  const message = `${type} must name the token of its pause, as ${open.length} are open. They are ${listed(open)}.`;
  return answerRefused('pause_not_found', message);
}

/** The most open pauses that a message names. */
const MAX_NAMED = 8;

function listed(pauses: readonly Pick<OpenPause, 'token' | 'reason'>[]): string {
  const named = pauses.slice(0, MAX_NAMED).map(({ token, reason }) => `${token} (${reason})`);
  const more = pauses.length - named.length;
  return [...named, ...(more > 0 ? [`${more} more`] : [])].join(', ');
}

/** @param expired what the answer would have been for, had it come in time. */
function noneOpen(
  type: string,
  expired: readonly OpenPause[],
  { open, state }: { readonly open: readonly OpenPause[]; readonly state: RunState },
): PilotageError {
  const last = expired.at(-1);
  if (last?.expiresAt !== undefined) return pauseExpired(last.expiresAt, last.token);
  const why =
    open.length > 0
      ? `names a pause that is not open. Those that are: ${listed(open)}`
      : `was refused: ${asksNothing(state)}`;
  return answerRefused('pause_not_found', `${type} ${why}.`);
}

/** Why this answer does not fit this pause; `undefined` when it does. */
function refusalOf(
  { type, from, payload }: Control,
  pause: OpenPause,
  { identity }: RunState,
): PilotageError | undefined {
  if (type !== 'REJECT' && pause.approver === 'another' && from !== undefined) {
    if (from.user === identity.user && from.tenant === identity.tenant) {
      return answerRefused(
        'approver_refused',
        'Nobody approves what they asked for themselves: another person has to.',
      );
    }
  }
  const digest = type === 'APPROVE' ? payload?.['digest'] : undefined;
  if (digest !== undefined && digest !== pause.payload?.['digest']) {
    return answerRefused(
      'payload_invalid',
      'The question is about other arguments than those that were approved: the digest is not that of the pause. Look at the pause again.',
    );
  }
  if (pause.call !== undefined && pause.reason !== 'approval_required' && payload?.['args'] !== undefined) {
    return answerRefused(
      'payload_invalid',
      'The call waits for a login, and is made with its own arguments: answer without any.',
    );
  }
  return undefined;
}

function limitsRefusal(
  limits: Limits | undefined,
  { task }: RunState,
  { agent, unpriced, now }: TakePorts,
): PilotageError | undefined {
  if (limits === undefined) return undefined;
  if (task !== null) {
    return answerRefused(
      'payload_invalid',
      'The limits of a task are set aside by the run above it, and cannot be raised.',
    );
  }
  try {
    assertRunLimits(limits, now);
    assertPriced(agent, unpriced, limits.costUsd !== undefined);
    return undefined;
  } catch (error) {
    if (PilotageError.is(error)) return error;
    throw error;
  }
}

/** Edited arguments are checked before the pause is answered: whoever gave them can mend them. */
async function misfitOf(
  args: Json | undefined,
  { call }: OpenPause,
  { open }: RunState,
  { misfit }: TakePorts,
): Promise<PilotageError | undefined> {
  if (call === undefined || args === undefined || open === null) return undefined;
  const tool = branchesOf(open.move.decision)[call]?.tool ?? '';
  const error = await misfit(tool, args);
  return error && answerRefused('payload_invalid', `The edited arguments were refused: ${error.message}`);
}

export function answerRefused(code: ErrorCode, message: string): PilotageError {
  return new PilotageError(code, message);
}

/**
 * Why an edit is refused; `undefined` when the edit may be made, or no edit was given. Only nodes that have not begun can be changed:
 * other arguments, which may refer to what the node came after all along, or out of the plan. Those of a node with routes stand
 * in for the arguments of whichever route is open.
 * @param nodes by the id of the node, `{ args }` or `{ skip: true }`.
 */
async function editRefusal(
  { open, pauses }: RunState,
  nodes: Json | undefined,
  { misfit, isTakenOut }: Pick<AnswerPorts, 'misfit' | 'isTakenOut'>,
): Promise<PilotageError | undefined> {
  if (!isJsonObject(nodes)) return undefined;
  if (open === null || !isPlan(open.move.decision)) return cannotEdit('it has no plan that is under way');
  const branches = branchesOf(open.move.decision);
  const indexById = new Map(branches.map((branch, index) => [branchId(branch, index), index]));
  for (const [id, edit] of Object.entries(nodes)) {
    const index = indexById.get(id);
    const branch = index === undefined ? undefined : branches[index];
    if (index === undefined || branch === undefined) return cannotEdit(`the plan has no node ${JSON.stringify(id)}`);
    const isAsked = pauses.some(({ call }) => call === index);
    if (isUnderWay(open, index) || isTakenOut(index) || isAsked) {
      return cannotEdit(`the node ${JSON.stringify(id)} has begun, or has ended, and cannot be changed any more`);
    }
    if (isJsonObject(edit) && edit['skip'] === true) continue;
    const args = isJsonObject(edit) ? edit['args'] : undefined;
    if (args === undefined)
      return cannotEdit(`the edit of ${JSON.stringify(id)} is neither { args } nor { skip: true }`);
    const fault = referenceFault(args);
    if (fault !== undefined) return cannotEdit(`the arguments for ${JSON.stringify(id)}: ${fault}`);
    const foreign = foreignReference(branch, open.move.step, args);
    if (foreign !== undefined) {
      return cannotEdit(
        `${JSON.stringify(id)} would refer to ${JSON.stringify(foreign)}, which it does not come after`,
      );
    }
    // What refers to other nodes is checked when they have ended.
    const error =
      allReferencesIn(args).length === 0 && !isPlanTool(branch.tool)
        ? await misfit(branch.tool, unescaped(args))
        : undefined;
    if (error !== undefined) return cannotEdit(`the arguments for ${JSON.stringify(id)} do not fit: ${error.message}`);
  }
  return undefined;
}

/** A branch that the edited branch does not need on any of its routes: the new arguments replace the arguments of all routes. */
function foreignReference(branch: Branch, now: number, args: Json): string | undefined {
  const needs = waysOf(branch).map(needsOf);
  const isKnown = ({ $from, step }: Reference): boolean =>
    step === undefined ? needs.every((ids) => ids.has($from)) : step < now;
  return allReferencesIn(args).find((reference) => !isKnown(reference))?.$from;
}

function isUnderWay(open: OpenStep, index: number): boolean {
  const { calls, waits, away, waiting } = open;
  const isWaiting = [...waits, ...away, ...waiting].some(({ call }) => call === index);
  return calls[index] !== null || hasBegun(open, index) || isWaiting;
}

function cannotEdit(why: string): PilotageError {
  return new PilotageError('payload_invalid', `The plan was not changed, and the run stays paused: ${why}.`);
}
