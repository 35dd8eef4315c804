/** Calls that wait for somebody before they are made: an approval that the tool's author asks for, or a login. */
import { type ApprovalTerms, type Identity, type Json, type JsonObject, type PauseReason, Thrown } from '#core';
import { type ArtifactStore, storeIfLarge } from '#journal';
import type { ReadyTool } from '#tools';
import { jsonDigest } from './earlier-calls.ts';

/** A pause that a call asks for. */
export interface PauseAsk extends ApprovalTerms {
  readonly kind: 'pause';
  readonly reason: PauseReason;
  readonly payload: JsonObject;
  readonly onReject?: 'end';
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
export async function shownArgs(
  args: Json,
  tool: string,
  identity: Identity,
  artifacts: ArtifactStore,
): Promise<JsonObject> {
  const digest = jsonDigest(args);
  const about = { fileName: `arguments-${tool}.json`, source: `approval: ${tool}` };
  const stored = await storeIfLarge(args, identity, artifacts, about);
  return stored === undefined ? { args, digest } : { args_stored: { ...stored }, digest };
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
