/** Whether an answer still has a pause to answer, when it is given: as far as the run's journal knows it then. */
import { type Control, type Entry, PilotageError, type Resumed } from '#core';
import { type Journal, pauseExpired } from '#journal';
import { foldEntries, type OpenPause } from '#state';

/** The latest of the time limits of the pauses that an answer can be for. Milliseconds since the epoch. */
export interface Limit {
  readonly expiresAt: number;
  readonly token: string;
}

/**
 * Until when the store may take this answer; `undefined`: as long as it likes. What nothing is known of is not judged here: the run
 * refuses it when it reads it, and the refusal is recorded.
 * @throws PilotageError `pause_expired`, or `pause_not_found` for a pause that was answered.
 */
export async function limitOf(
  journal: Journal,
  run: string,
  { id, type, payload }: Pick<Control, 'id' | 'type' | 'payload'>,
): Promise<Limit | undefined> {
  const entries = await journal.read(run);
  // The same control was taken before.
  if (entries.some((entry) => entry.kind === 'control' && entry.control.id === id)) return undefined;
  const token = payload?.['token'];
  const { pauses } = foldEntries(entries);
  const meant = token === undefined ? pauses : pauses.filter((pause) => pause.token === token);
  if (meant.length > 0) return latestOf(meant);
  const over = entries.findLast(
    (entry): entry is Resumed & Entry => entry.kind === 'resumed' && (token === undefined || entry.token === token),
  );
  if (over?.verdict === 'timeout') throw expired(over, entries);
  if (over === undefined || token === undefined) return undefined;
  const when = new Date(over.at).toISOString();
  const message = `The pause ${over.token} was answered with ${over.verdict} at ${when}; ${type} comes too late.`;
  throw new PilotageError('pause_not_found', message);
}

function latestOf(pauses: readonly OpenPause[]): Limit | undefined {
  const limits = pauses.flatMap(({ expiresAt, token }) => (expiresAt === undefined ? [] : [{ expiresAt, token }]));
  if (limits.length < pauses.length) return undefined;
  return limits.reduce((latest, limit) => (limit.expiresAt > latest.expiresAt ? limit : latest));
}

function expired({ token, at }: Resumed & Entry, entries: readonly Entry[]): PilotageError {
  const paused = entries.findLast((entry) => entry.kind === 'paused' && entry.token === token);
  return pauseExpired((paused?.kind === 'paused' ? paused.expiresAt : undefined) ?? at, token);
}
