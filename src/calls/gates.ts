/** Calls that wait for somebody before they are made: an approval that the tool's author asks for, or a login. */
import {
  capture,
  describeThrown,
  type ErrorData,
  type Identity,
  type Json,
  type JsonObject,
  jsonEquals,
  type PauseReason,
  PilotageError,
  Thrown,
} from '#core';
import { type ArtifactStore, storeIfLarge } from '#journal';
import type { GateContext, ReadyTool } from '#tools';
import { jsonDigest } from './earlier-calls.ts';

/** A pause that a call asks for. */
export interface PauseAsk {
  readonly kind: 'pause';
  readonly reason: PauseReason;
  readonly payload: JsonObject;
  readonly approver?: 'another';
  readonly onReject?: 'end';
  readonly expiresInMs?: number;
}

/**
 * What a gated call waits for, or why it is refused; `undefined` when nobody is to be asked.
 * @param given the arguments as they will be shown; `args` as the tool gets them.
 * @throws the error of the store of artifacts.
 */
export async function approvalFor(
  { gate, schema: { name } }: ReadyTool,
  given: Json,
  args: unknown,
  about: GateContext,
  artifacts: ArtifactStore,
): Promise<PauseAsk | { readonly kind: 'refused'; readonly error: ErrorData } | undefined> {
  if (gate === undefined) return undefined;
  // Before the rule gets the arguments, since it may change them; a call that was approved is checked anew from what was given.
  const checked = checkedArgs(given, args);
  try {
    if (gate.when !== undefined && !(await gate.when(args, about))) return undefined;
  } catch (thrown) {
    const message = `The approval rule of ${name} failed: ${describeThrown(thrown)} The call was not made.`;
    return { kind: 'refused', error: { code: 'approval_failed', message } };
  }
  const because = gate.reason === undefined ? {} : { reason: gate.reason };
  return {
    kind: 'pause',
    reason: 'approval_required',
    payload: {
      tool: name,
      ...(await shownArgs(given, name, about.identity, artifacts)),
      ...checked,
      ...because,
    },
    ...(gate.approver === 'another' ? { approver: gate.approver } : {}),
    ...(gate.onReject === 'end' ? { onReject: gate.onReject } : {}),
    ...(gate.expiresInMs === undefined ? {} : { expiresInMs: gate.expiresInMs }),
  };
}

/** What a call waits for that a turn on another branch of the conversation, the run `madeIn`, has made already. */
export async function approvalToRepeat(
  { schema: { name } }: ReadyTool,
  given: Json,
  madeIn: string,
  identity: Identity,
  artifacts: ArtifactStore,
): Promise<PauseAsk> {
  const reason =
    'An equal call was made in a turn that was replaced, and what it did stays done. Approve it to do it again.';
  const shown = await shownArgs(given, name, identity, artifacts);
  return { kind: 'pause', reason: 'approval_required', payload: { tool: name, ...shown, reason, made_in: madeIn } };
}

/** Nobody approves what is not shown: arguments that are too large to stand in the pause are stored, and read by whoever shows it. */
async function shownArgs(args: Json, tool: string, identity: Identity, artifacts: ArtifactStore): Promise<JsonObject> {
  const digest = jsonDigest(args);
  const about = { fileName: `arguments-${tool}.json`, source: `approval: ${tool}` };
  const stored = await storeIfLarge(args, identity, artifacts, about);
  return stored === undefined ? { args, digest } : { args_stored: { ...stored }, digest };
}

/** What the tool gets, where its schema fills in or changes something, as far as that can be written as JSON. */
function checkedArgs(given: Json, args: unknown): JsonObject {
  try {
    const { json } = capture<Json>(args, 'args');
    return jsonEquals(json, given) ? {} : { checked_args: json };
  } catch (error) {
    if (PilotageError.is(error, 'unserializable')) return {};
    throw error;
  }
}

/** The most characters of the address of a login, and of what is said about it. */
const MAX_LOGIN_CHARS = 4_096;

/** The pause that a tool asks for by throwing a `LoginRequired`, of this copy of the package or another. */
export function loginFor(thrown: unknown, tool: string): PauseAsk | undefined {
  const { code, url, message, expiresInMs } = Thrown.of(thrown);
  if (code !== 'auth_required' || url === undefined || url.length > MAX_LOGIN_CHARS) return undefined;
  const note = message.length > MAX_LOGIN_CHARS ? {} : { message };
  const isTime = expiresInMs !== undefined && Number.isFinite(expiresInMs) && expiresInMs >= 0;
  return {
    kind: 'pause',
    reason: 'external_event',
    payload: { tool, url, ...note },
    ...(isTime ? { expiresInMs } : {}),
  };
}
