/** Whether an answer that came over a protocol holds for questions to come. */
import { isJsonObject, type Json, readRemember } from '#core';
import type { Approval } from '#runtime';

/** @param payload of the answer; its field `remember` says for what. @throws PilotageError `payload_invalid`. */
export function rememberIn(payload: Json | undefined): Pick<Approval, 'remember'> {
  const remember = isJsonObject(payload) ? payload['remember'] : undefined;
  return remember === undefined || remember === null ? {} : { remember: readRemember(remember) };
}
