/** Starts a run once under a key of the caller's own: the same request again finds the run, and another one is refused. */
import { createHash } from 'node:crypto';
import { assertScope, captureObject, type JsonObject, local, PilotageError, type StartRequest } from '#core';
import type { Journal } from '#journal';
import { jsonDigest } from '../calls/earlier-calls.ts';
import type { Run } from './run.ts';
import type { StartOptions } from './start-options.ts';

/** A run that was asked for under a key, and whether it was there before. */
export interface StartedOnce {
  readonly run: Run;
  readonly reused: boolean;
}

/**
 * @param id follows from the key.
 * @throws PilotageError `idempotency_conflict`, and what `start` throws.
 */
export async function startOnce(
  journal: Pick<Journal, 'get' | 'read'>,
  id: string,
  request: JsonObject,
  start: (asked: StartRequest) => Promise<Run>,
): Promise<StartedOnce> {
  const asked: StartRequest = { digest: jsonDigest(request), by: crypto.randomUUID() };
  assertSameRequest(await askedFor(journal, id), request);
  const run = await start(asked);
  // When several callers ask at once, one of them is first.
  const stored = await askedFor(journal, id);
  assertSameRequest(stored, request);
  return { run, reused: stored?.by !== asked.by };
}

/** @throws PilotageError `idempotency_conflict`, `identity_required`, and what `start` throws. */
export async function startByIdempotencyKey(
  journal: Pick<Journal, 'get' | 'read'>,
  query: string,
  { idempotencyKey = '', identity = local('local'), ...rest }: StartOptions,
  start: (own: StartOptions, asked: StartRequest) => Promise<Run>,
): Promise<Run> {
  assertScope(identity);
  const { tenant, user, session } = identity;
  const run = `run_${jsonDigest([tenant, user, idempotencyKey]).slice(0, 22)}`;
  const own = { ...rest, identity: { tenant, user, session, run } };
  const request = requestOf(query, { ...rest, session });
  return (await startOnce(journal, run, request, (asked) => start(own, asked))).run;
}

/** `undefined` when the run does not exist yet. */
async function askedFor(journal: Pick<Journal, 'get' | 'read'>, run: string): Promise<StartRequest | undefined> {
  if ((await journal.get(run)) === undefined) return undefined;
  const [first] = await journal.read(run, 1, 1);
  return first?.kind === 'started' ? first.asked : undefined;
}

/** Everything in the request of a run; attachments by their bytes. */
export function requestOf(
  query: string,
  { inputs = [], ...rest }: Omit<StartOptions, 'identity' | 'idempotencyKey'> & { readonly session?: string },
): JsonObject {
  const attached = inputs.map((input) =>
    'bytes' in input ? { ...input, bytes: createHash('sha256').update(input.bytes).digest('base64url') } : input,
  );
  const { priority = 0, scopes = [], limits = {}, signal: _, ...others } = rest;
  return captureObject({ query, priority, scopes, limits, ...others, inputs: attached }, 'request').json;
}

/**
 * Digests that the journal may hold for the request. Journals before format 8 have it in their own words: the agent was a planner, and
 * that of a flow had `flow:` before its name.
 */
function digestsOf({ agent, ...others }: JsonObject): readonly string[] {
  if (typeof agent !== 'string') return [jsonDigest(others)];
  return [{ agent }, { planner: agent }, { planner: `flow:${agent}` }].map((by) => jsonDigest({ ...others, ...by }));
}

function assertSameRequest(stored: StartRequest | undefined, request: JsonObject): void {
  if (stored === undefined || digestsOf(request).includes(stored.digest)) return;
  throw new PilotageError(
    'idempotency_conflict',
    'The idempotency key was used for another request. Use another key, or ask for the same again.',
  );
}
