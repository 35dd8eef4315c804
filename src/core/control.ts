/** Steering messages. Each is stored in the run's inbox before it is acknowledged, and applied at a step boundary. */

import type { ArtifactRef } from './artifact.ts';
import { captureObject } from './capture.ts';
import { assertErrorData, PilotageError } from './errors.ts';
import { assertScope, type Scope } from './identity.ts';
import { isJsonObject, type Json, type JsonObject } from './json.ts';
import { assertMessageParts } from './message.ts';
import { readRemember } from './remember.ts';
import type { TaskMessage } from './task.ts';
import type { AcceptedMessage } from './turn.ts';
import type { EventMessage } from './wait.ts';

export const CONTROL_TYPES = [
  'INJECT_CONTEXT',
  'REDIRECT',
  'CANCEL',
  'CANCEL_CALL',
  'PRIORITIZE',
  'PAUSE',
  'RESUME',
  'APPROVE',
  'REJECT',
  'ANSWER',
  'SETTLE',
  'REVOKE',
  'USER_MESSAGE',
] as const;
export type ControlType = (typeof CONTROL_TYPES)[number];

/** What a sender may do. Each scope includes the scopes before it. An `admin` stands above tenants: any run of the journal is theirs to steer. */
export const CONTROL_SCOPES = ['session_user', 'owner_user', 'admin'] as const;
export type ControlScope = (typeof CONTROL_SCOPES)[number];

/** The least scope for each type. */
export const LEAST_SCOPE: Readonly<Record<ControlType, ControlScope>> = {
  INJECT_CONTEXT: 'session_user',
  USER_MESSAGE: 'session_user',
  REDIRECT: 'owner_user',
  CANCEL: 'owner_user',
  CANCEL_CALL: 'owner_user',
  PAUSE: 'owner_user',
  RESUME: 'owner_user',
  APPROVE: 'owner_user',
  REJECT: 'owner_user',
  ANSWER: 'owner_user',
  SETTLE: 'owner_user',
  REVOKE: 'owner_user',
  PRIORITIZE: 'admin',
};

/** The sender of a control, as the program that accepted it has authenticated it. */
export interface Caller {
  readonly tenant: string;
  readonly user: string;
  readonly session: string;
  readonly scope: ControlScope;
}

export interface Control {
  /** Unique in its run: a second control with the same id is ignored. */
  readonly id: string;
  readonly type: ControlType;
  readonly payload?: JsonObject;
  /** The artifact with the payload, where that is too large to stand here: only as a store has it. From a sender it is dropped. */
  readonly stored?: ArtifactRef;
  /** The sender. Absent for the program itself, which may do everything. */
  readonly from?: Caller;
  /** Set on a CANCEL of a run that undid its calls when it was given, or was cancelled and waited. Only the runtime sets it: from a sender it is dropped. */
  readonly again?: true;
  /** Set on a CANCEL by a run above that goes on itself. Only the runtime sets it: from a sender it is dropped. */
  readonly dismisses?: true;
  /**
   * Set on an INJECT_CONTEXT by which a run above passes on what it was told, and withdraws the questions of this run. Only the runtime sets
   * it: from a sender it is dropped.
   */
  readonly withdraws?: 'REDIRECT' | 'USER_MESSAGE';
  /** Set on a USER_MESSAGE that came through the run's session. Only the runtime sets it: from a sender it is dropped. */
  readonly turnMessage?: AcceptedMessage;
}

/** What a message of the user does to questions that are open: it withdraws them, or is heard when they have been answered. */
export const WHILE_ASKED = ['withdraw', 'keep'] as const;
export type WhileAsked = (typeof WHILE_ASKED)[number];

/** What an inbox holds. */
export type Message = Control | TaskMessage | EventMessage;

/** An inbox holds at most this many controls of the types below that were not taken yet. */
export const INBOX_CAP = 256;

/** What may be said again and again. What decides (a CANCEL, a new goal, the answer to a pause) is accepted also above the cap. */
const CAPPED: ReadonlySet<string> = new Set([
  'INJECT_CONTEXT',
  'USER_MESSAGE',
  'PRIORITIZE',
  'PAUSE',
] satisfies ControlType[]);

/** Whether the cap of an inbox is for this message. */
export function isCapped(message: Message): boolean {
  return CAPPED.has(message.type) && (!isControl(message) || message.withdraws === undefined);
}

const TYPES: ReadonlySet<string> = new Set(CONTROL_TYPES);

export function isControl(message: Message): message is Control {
  return TYPES.has(message.type);
}

/**
 * Checks what can be checked without the run: the type, the payload's shape, the sender. Of content, a payload has as much as any value (`JSON_LIMITS`).
 * @throws PilotageError `unknown_control_type`, `unserializable`, `payload_invalid`, `scope_invalid` or `scope_mismatch`.
 */
export function validateControl(control: Control): Control {
  const { id, type, from } = control;
  if (!TYPES.has(type)) {
    throw new PilotageError(
      'unknown_control_type',
      `${JSON.stringify(type)} is not a control. Use one of ${CONTROL_TYPES.join(', ')}.`,
    );
  }
  const sender = from === undefined ? {} : { from: validateCaller(from, type) };
  const payload = control.payload === undefined ? undefined : captureObject(control.payload, 'payload').json;
  assertShape(type, payload ?? {});
  return Object.freeze(payload === undefined ? { id, type, ...sender } : { id, type, payload, ...sender });
}

/** @throws PilotageError `identity_required` or `scope_invalid`. */
export function assertCaller({ tenant, user, session, scope }: Caller): Caller {
  assertScope({ tenant, user, session });
  if (!CONTROL_SCOPES.includes(scope)) {
    throw new PilotageError(
      'scope_invalid',
      `${JSON.stringify(scope)} is not a scope. Use one of ${CONTROL_SCOPES.join(', ')}.`,
    );
  }
  return Object.freeze({ tenant, user, session, scope });
}

function validateCaller(from: Caller, type: ControlType): Caller {
  const caller = assertCaller(from);
  const { scope } = caller;
  if (CONTROL_SCOPES.indexOf(scope) < CONTROL_SCOPES.indexOf(LEAST_SCOPE[type])) {
    throw new PilotageError('scope_mismatch', `${type} needs the scope ${LEAST_SCOPE[type]}; the sender has ${scope}.`);
  }
  return caller;
}

/**
 * Whether this sender may say such a thing to a run of this owner.
 * @throws PilotageError `identity_required`, `scope_invalid` or `scope_mismatch`.
 */
export function assertMaySend(type: ControlType, from: Caller | undefined, owner: Scope): void {
  if (from !== undefined) validateCaller(from, type);
  assertMaySteer(from, owner);
}

/** Whether this caller may know of a run of this owner. */
export function mayKnow(caller: Caller, owner: Scope): boolean {
  if (caller.scope === 'admin') return true;
  return caller.tenant === owner.tenant && caller.user === owner.user && caller.session === owner.session;
}

/** @throws PilotageError `scope_mismatch` for a sender of another tenant, user or session who is not an admin. */
function assertMaySteer(from: Caller | undefined, owner: Scope): void {
  if (from === undefined || mayKnow(from, owner)) return;
  throw new PilotageError('scope_mismatch', 'The run belongs to somebody else; only an admin may steer it.');
}

type Kind = 'string' | 'boolean' | 'integer' | 'index' | 'object' | 'any';
interface Field {
  readonly kind: Kind;
  readonly required?: boolean;
}

const REASON: Field = { kind: 'string' };
const TOKEN: Field = { kind: 'string' };
/** `payload` holds the sender's own words. Nothing in it changes the run, whatever its keys are called. */
const ANSWER: Readonly<Record<string, Field>> = { token: TOKEN, reason: REASON, payload: { kind: 'object' } };
const FIELDS: Readonly<Record<ControlType, Readonly<Record<string, Field>>>> = {
  INJECT_CONTEXT: {},
  USER_MESSAGE: { message: { kind: 'string', required: true } },
  REDIRECT: { goal: { kind: 'string', required: true } },
  CANCEL: { hard: { kind: 'boolean' }, reason: REASON },
  CANCEL_CALL: { step: { kind: 'index', required: true }, call: { kind: 'index', required: true }, reason: REASON },
  PRIORITIZE: { priority: { kind: 'integer', required: true }, task_id: { kind: 'string' } },
  APPROVE: { ...ANSWER, digest: { kind: 'string' }, remember: { kind: 'object' } },
  REJECT: { ...ANSWER, remember: { kind: 'object' } },
  PAUSE: { before: { kind: 'any' }, clear: { kind: 'boolean' } },
  RESUME: { ...ANSWER, until: { kind: 'string' }, limits: { kind: 'object' }, nodes: { kind: 'object' } },
  ANSWER: { ...ANSWER, value: { kind: 'any', required: true } },
  SETTLE: { ...ANSWER, happened: { kind: 'boolean', required: true }, error: { kind: 'object' } },
  REVOKE: { rule: { kind: 'string', required: true } },
};

/** Keys that the table does not name are the sender's own. */
function assertShape(type: ControlType, payload: JsonObject): void {
  for (const [key, { kind, required }] of Object.entries(FIELDS[type])) {
    const value = payload[key];
    if (value === undefined && required !== true) continue;
    if (value !== undefined && isOfKind(value, kind)) continue;
    const problem = value === undefined ? 'is missing' : 'has another type';
    const message = `The payload of ${type} needs ${key}, ${ARTICLES[kind]}; ${key} ${problem}.`;
    throw new PilotageError('payload_invalid', message, { data: { path: `payload.${key}` } });
  }
  if (type === 'USER_MESSAGE') assertMessageParts(payload);
  if (type === 'SETTLE' && payload['error'] !== undefined) assertErrorData(payload['error']);
  if ((type === 'APPROVE' || type === 'REJECT') && payload['remember'] !== undefined) readRemember(payload['remember']);
}

const ARTICLES: Readonly<Record<Kind, string>> = {
  string: 'a string',
  boolean: 'true or false',
  integer: 'a whole number from -1000 to 1000',
  index: 'a whole number from 0 up',
  object: 'an object',
  any: 'any JSON',
};

function isOfKind(value: Json, kind: Kind): boolean {
  if (kind === 'any') return true;
  if (kind === 'object') return isJsonObject(value);
  if (kind === 'index') return Number.isSafeInteger(value) && (value as number) >= 0;
  if (kind === 'integer') return Number.isInteger(value) && Math.abs(value as number) <= 1000;
  return typeof value === kind;
}

/** What an answer says, as a message: an answer to a question that was answered before is heard as one. */
export function messageOf({ payload = {}, ...control }: Control): Control {
  const { token: _, payload: own, ...rest } = payload;
  return Object.freeze({
    ...control,
    type: 'USER_MESSAGE',
    payload: Object.freeze({ ...(own as JsonObject), ...rest }),
  });
}

/**
 * Whether open questions are withdrawn by this message: a new goal, or words that are to be heard before anybody decides.
 * @param whileAsked of the run that hears it, also when it was said to a run above.
 */
export function withdrawsQuestions(message: Message, whileAsked: WhileAsked): boolean {
  if (!isControl(message)) return false;
  const { type, withdraws = type } = message;
  return withdraws === 'REDIRECT' || (withdraws === 'USER_MESSAGE' && whileAsked === 'withdraw');
}

/**
 * A cancel by a run above that goes on itself and does not need this run any more. It decides nothing about a call in doubt: such a call
 * still holds the run.
 */
export function isDismissal(message: Message): boolean {
  return message.type === 'CANCEL' && message.dismisses === true;
}
