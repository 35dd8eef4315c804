/** The entries of a call that waits in the middle of its work. */
import { branchesOf, type CallPlace, type CallWait, defined, type EntryBody, type Paused } from '#core';
import type { OpenStep } from '#state';
import type { WaitsAsk } from './call-ports.ts';
import type { NewWait } from './waits.ts';

/** The call is parked, and each question is a pause. */
export function waitEntries(
  at: CallPlace,
  { waits, startedAt, seen, later, held }: WaitsAsk,
  { move }: OpenStep,
  { newToken }: { newToken(): string },
): EntryBody[] {
  const tool = branchesOf(move.decision)[at.call]?.tool ?? '';
  const pauses: Paused[] = [];
  const begun = waits.map(({ question, ...wait }): CallWait => {
    if (question === undefined) return wait;
    const token = newToken();
    pauses.push(pauseOf(at, wait, { tool, question }, token));
    return { ...wait, token };
  });
  return [{ kind: 'call_waits', ...at, waits: begun, startedAt, ...defined({ seen, later, held }) }, ...pauses];
}

function pauseOf(
  at: CallPlace,
  { wait, schema, until: expiresAt, again: refused }: Omit<NewWait, 'question'>,
  { tool, question }: { readonly tool: string; readonly question: NonNullable<NewWait['question']> },
  token: string,
): Paused {
  const isOfClient = 'shown' in question;
  const asked = isOfClient
    ? { tool, ...question.shown }
    : { tool, message: question.message, ...defined({ payload: question.payload, refused }) };
  return {
    kind: 'paused',
    token,
    reason: isOfClient ? question.reason : 'await_input',
    ...at,
    wait,
    payload: asked,
    ...defined({ schema, expiresAt }),
  };
}
