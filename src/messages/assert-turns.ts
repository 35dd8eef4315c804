/** What is given as turns is checked before it is read: these functions are called by programs. */
import { PilotageError } from '#core';

const ROLES: readonly unknown[] = ['system', 'user', 'assistant', 'tool'];

/** @throws PilotageError `invalid_config` for anything but a list of turns, naming what stands there. */
export function assertTurns(of: string, given: unknown): void {
  if (!Array.isArray(given)) throw refusal(`${of} needs a list of turns, such as [{ role: 'user', text }].`);
  for (const [index, turn] of given.entries()) {
    const { role, text, parts }: Fields = typeof turn === 'object' && turn !== null ? (turn as Fields) : {};
    const isTurn = ROLES.includes(role) && typeof text === 'string' && (parts === undefined || isListOfObjects(parts));
    if (!isTurn) {
      throw refusal(`${of}: [${index}] is not a turn. Give { role, text, parts? }, as a view or a session shows it.`);
    }
  }
}

type Fields = Readonly<Record<string, unknown>>;

export function isListOfObjects(given: unknown): given is readonly object[] {
  return Array.isArray(given) && given.every((each) => typeof each === 'object' && each !== null);
}

export function refusal(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
