/** Approvals: which yes is enough, and what an answer says of questions to come. */
import {
  type ApprovedOnce,
  type Approving,
  assertHasRules,
  type Caller,
  type Control,
  defined,
  encodedBytes,
  type Json,
  LARGE_VALUE_BYTES,
  PilotageError,
  personKey,
  type Remembered,
  type Resumed,
  readRemember,
} from '#core';
import { missingApprovals, type OpenPause, type RunState, withApproval } from '#state';
import { checkOf } from '#tools';
import { jsonDigest } from '../calls/earlier-calls.ts';

/**
 * What the answer says of questions to come; `undefined` when it says nothing.
 * @throws PilotageError `payload_invalid` why that cannot be remembered.
 */
export function rememberedWith(
  { type, payload }: Control,
  pause: OpenPause,
  args: Json | undefined,
  { identity }: RunState,
): Remembered | undefined {
  const given = payload?.['remember'];
  if (given === undefined || (type !== 'APPROVE' && type !== 'REJECT')) return undefined;
  const { scope, match, expiresInMs } = readRemember(given);
  const { tool, digest, made_in: madeIn } = pause.payload ?? {};
  const isOfGate = pause.call !== undefined && pause.reason === 'approval_required' && madeIn === undefined;
  if (!isOfGate || typeof tool !== 'string' || typeof digest !== 'string') {
    throw invalid('Only the answer to whether a call may be made can be remembered; this pause asks something else.');
  }
  if (scope !== 'run') assertHasRules(identity);
  const more = defined({ expiresInMs });
  if (match === 'tool') return { scope, tool, match, ...more };
  if (match === 'exact') {
    return { scope, tool, match: { digest: args === undefined ? digest : jsonDigest(args) }, ...more };
  }
  try {
    checkOf(match, 'The rule');
  } catch (cause) {
    if (!PilotageError.is(cause)) throw cause;
    throw invalid(`What is to be remembered is no JSON Schema: ${cause.message}`);
  }
  return { scope, tool, match: { schema: match }, ...more };
}

/** Why this yes does not count, and who gave it; `undefined` when it counts. */
export function unseenEdit(
  { payload = {} }: Control,
  { given, approved = [], payload: asked }: OpenPause,
): PilotageError | undefined {
  if (given === undefined || payload['args'] !== undefined || payload['digest'] !== undefined) return undefined;
  const who = nameOf(approved[0]?.by ?? null);
  return invalid(
    `The arguments were changed by ${who} after the call was asked about. Look at the pause again, and approve with the digest of what you saw: ${String(asked?.['digest'])}.`,
  );
}

interface Yes {
  readonly by: Caller | undefined;
  readonly words: Pick<Resumed, 'payload'>;
  readonly args: Json | undefined;
  readonly remember: Remembered | undefined;
}

/**
 * The entry of a yes that is not enough, or why it is refused; `undefined` when it is enough.
 * @param now milliseconds since the epoch.
 */
export function shortOf(
  pause: OpenPause,
  { by, words, args, remember }: Yes,
  { identity }: RunState,
  now: number,
): ApprovedOnce | PilotageError | undefined {
  const { token, approvals = 1, approved = [] } = pause;
  if (approvals === 1) return undefined;
  const who: Approving = by ?? null;
  const missing = missingApprovals(pause, identity);
  if (args === undefined && approved.some((one) => personKey(one.by) === personKey(who))) {
    const whoElse =
      by === undefined
        ? ' The program counts as one person: answer in the name of whoever approves, with runtime.run(id, { as }).'
        : '';
    const message = `${nameOf(who)} has approved already, and counts once; ${missing} more must.${whoElse}`;
    return new PilotageError('approver_refused', message);
  }
  if (args !== undefined) {
    const bytes = encodedBytes(args);
    if (bytes >= LARGE_VALUE_BYTES) {
      return invalid(
        `The edited arguments have ${bytes} bytes; of a call that several people approve they may have fewer than ${LARGE_VALUE_BYTES}.`,
      );
    }
  }
  const edit = args === undefined ? {} : { args, digest: jsonDigest(args) };
  const yes: ApprovedOnce = { kind: 'approved', token, ...words, ...edit, ...defined({ by, remember }) };
  return missingApprovals(withApproval(pause, yes, now), identity) === 0 ? undefined : yes;
}

function nameOf(who: Approving): string {
  return who === null ? 'The program' : who.user;
}

function invalid(message: string): PilotageError {
  return new PilotageError('payload_invalid', message);
}
