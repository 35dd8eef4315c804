/** The events of a session: those of its turns, one turn after another, in the order of their acceptance. */
import { PilotageError, type RunEvent, type Scope } from '#core';
import type { Journal, RunRecord } from '#journal';
import { keptAlive } from './follow.ts';
import { admitted, type HandleOptions } from './gate.ts';
import { followEvents } from './run-events.ts';
import type { RunHost } from './run-host.ts';

/** An event of a run with its place in the session. */
export type SessionEvent = RunEvent & {
  /**
   * Where the session's reader is with this event: it grows from entry to entry and from turn to turn. `events({ from: position + 1 })` goes on behind
   * it. Events that are recorded together come together again, until the last of them was read. Tokens and others that are not recorded, and those of
   * tasks, have the position of what the turn recorded before them.
   */
  readonly position: number;
};

export interface SessionEventOptions {
  /** The position of the first event. Default 0: from the beginning. */
  readonly from?: number;
  /** True: the events of tasks below the turns come too, as with `run.events`. They have the position of the turn's own event before them. Default false. */
  readonly tasks?: boolean;
  /** Ends the stream when it is aborted. */
  readonly signal?: AbortSignal;
}

/** Positions of one turn: as many as an entry's number can be. */
const TURN = 2 ** 32;

export function positionOf(turn: number, seq: number): number {
  return turn * TURN + seq;
}

/** The position of what was recorded last in the turns that have begun; 0 for a session without turns. */
export async function sessionPosition(
  journal: Pick<Journal, 'sessions' | 'list'>,
  { tenant, user, session }: Scope,
): Promise<number> {
  const { turns = 0, waiting = 0 } = (await journal.sessions.get({ tenant, user, session })) ?? {};
  const [last] = await journal.list({ tenant, user, session, beforeTurn: turns - waiting + 1, limit: 1 });
  return last?.turn === undefined ? 0 : positionOf(last.turn, last.head);
}

/** Goes on until the session is deleted: over pauses, and to turns that come later. */
export async function* sessionEvents(
  host: RunHost,
  scope: Scope,
  options: SessionEventOptions & Pick<HandleOptions, 'gate'>,
): AsyncGenerator<SessionEvent, void> {
  const { from = 0, signal, gate } = options;
  let turn = Math.max(1, Math.floor(from / TURN));
  let seq = from >= TURN ? from % TURN : 0;
  while (signal?.aborted !== true) {
    const record = await turnAt(host, scope, turn, signal);
    if (record === undefined) return;
    const { run } = record.identity;
    if ((await gate?.mayRead(run)) !== false) yield* admitted(turnEvents(host, record, turn, seq, options), run, gate);
    turn += 1;
    seq = 0;
  }
}

/** The turn of this number, as soon as it is there and the turn before it has ended. */
async function turnAt(
  { deps, fleet }: RunHost,
  { tenant, user, session }: Scope,
  turn: number,
  signal: AbortSignal | undefined,
): Promise<RunRecord | undefined> {
  const { journal, clock } = deps;
  let wake = (): void => {};
  const unwatch = journal.watchSession({ tenant, user, session }, () => wake());
  const stop = (): void => wake();
  signal?.addEventListener('abort', stop);
  try {
    while (signal?.aborted !== true) {
      const news = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const [record] = await journal.list({ tenant, user, session, beforeTurn: turn + 1, limit: 1 });
      if (record?.turn === turn) return record;
      // The session was deleted, and perhaps begun anew.
      if ((record?.turn ?? 0) < turn - 1) return undefined;
      await fleet.waiting(session, keptAlive(news, clock));
    }
    return undefined;
  } finally {
    signal?.removeEventListener('abort', stop);
    unwatch();
  }
}

async function* turnEvents(
  host: RunHost,
  { identity: { run } }: RunRecord,
  turn: number,
  from: number,
  { tasks = false, signal }: SessionEventOptions,
): AsyncGenerator<SessionEvent, void> {
  const places = new WeakMap<RunEvent, number>();
  // A reader has an entry when it has the last of its events.
  const onRecorded = (events: readonly RunEvent[]): void =>
    events.forEach((event, index) => void places.set(event, index < events.length - 1 ? event.seq - 1 : event.seq));
  const follower = followEvents(host, run, { from, tasks, overPauses: true, onRecorded });
  const stop = (): void => follower.stop();
  if (signal?.aborted === true) return;
  signal?.addEventListener('abort', stop);
  // A reader that comes back in the middle of an answer may hear tokens first.
  let seen = Math.max(0, from - 1);
  try {
    for await (const event of follower.follow()) {
      seen = places.get(event) ?? seen;
      yield { ...event, position: positionOf(turn, seen) };
    }
  } catch (error) {
    if (!PilotageError.is(error, 'run_not_found')) throw error;
  } finally {
    signal?.removeEventListener('abort', stop);
  }
}
