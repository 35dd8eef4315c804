/** Calls that wait for somebody before they are made: an approval that the tool's author asks for, or a login. */
import {
  assertPayloadBounds,
  describeThrown,
  type ErrorData,
  type Identity,
  type Json,
  type JsonObject,
  type PauseReason,
  PilotageError,
  Thrown,
} from '#core';
import type { ReadyTool } from '#tools';

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
 */
export async function approvalFor(
  { gate, schema: { name } }: ReadyTool,
  given: Json,
  args: unknown,
  identity: Identity,
): Promise<PauseAsk | { readonly kind: 'refused'; readonly error: ErrorData } | undefined> {
  if (gate === undefined) return undefined;
  try {
    if (gate.when !== undefined && !(await gate.when(args, { identity }))) return undefined;
  } catch (thrown) {
    const message = `The approval rule of ${name} failed: ${describeThrown(thrown)} The call was not made.`;
    return { kind: 'refused', error: { code: 'approval_failed', message } };
  }
  const because = gate.reason === undefined ? {} : { reason: gate.reason };
  return {
    kind: 'pause',
    reason: 'approval_required',
    payload: { tool: name, ...shownArgs(given), ...because },
    ...(gate.approver === 'another' ? { approver: gate.approver } : {}),
    ...(gate.onReject === 'end' ? { onReject: gate.onReject } : {}),
    ...(gate.expiresInMs === undefined ? {} : { expiresInMs: gate.expiresInMs }),
  };
}

/** Arguments over the bounds of a pause are left to the step's decision, where they stand whole. */
function shownArgs(args: Json): JsonObject {
  return isWithinBounds({ args }) ? { args } : { args_left_out: true };
}

function isWithinBounds(payload: JsonObject): boolean {
  try {
    assertPayloadBounds(payload, 'payload');
    return true;
  } catch (error) {
    if (PilotageError.is(error)) return false;
    throw error;
  }
}

/** The pause that a tool asks for by throwing a `LoginRequired`, of this copy of the package or another. */
export function loginFor(thrown: unknown, tool: string): PauseAsk | undefined {
  const { code, url, message, expiresInMs } = Thrown.of(thrown);
  if (code !== 'auth_required' || url === undefined || !isWithinBounds({ url })) return undefined;
  const note = isWithinBounds({ message }) ? { message } : {};
  const isTime = expiresInMs !== undefined && Number.isFinite(expiresInMs) && expiresInMs >= 0;
  return {
    kind: 'pause',
    reason: 'external_event',
    payload: { tool, url, ...note },
    ...(isTime ? { expiresInMs } : {}),
  };
}
