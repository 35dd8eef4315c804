/** Finds the turn of a chat's message, by the id that a client names. */
import { PilotageError } from '#core';
import type { Session, TurnView } from '#runtime';
import type { Visit } from '../visit.ts';
import { runOfMessage } from './request.ts';

/** The turn of which the message is, however long ago it was said. */
export async function turnOfMessage(
  visit: Visit,
  session: Session,
  turns: readonly TurnView[],
  message: string,
): Promise<TurnView | undefined> {
  const late = await turnAmong(visit, session, turns, message);
  // Those before were not looked at.
  if (late !== undefined || (turns[0]?.number ?? 1) === 1) return late;
  return turnAmong(visit, session, await session.turns({ limit: Number.MAX_SAFE_INTEGER }), message);
}

/** The turn of which the message is: its user's, or the assistant's. */
async function turnAmong(
  visit: Visit,
  session: Session,
  turns: readonly TurnView[],
  message: string,
): Promise<TurnView | undefined> {
  const said = turns.find(({ messages }) => messages.some(({ id }) => id === message));
  const run = runOfMessage(message);
  if (said !== undefined || run === undefined) return said;
  const cut = turns.find(({ turn, interrupts = [] }) => turn === run || interrupts.includes(run));
  if (cut !== undefined) return cut;
  const found = await visit.run(run).catch((error: unknown) => {
    if (!PilotageError.is(error, 'run_not_found')) throw error;
  });
  // Other chats have turns of the same number.
  const number = found?.record.identity.session === session.id ? found.record.turn : undefined;
  return number === undefined ? undefined : turns.find((turn) => turn.number === number);
}
