/** Messages of a session that came to a run which was ending: each begins the next turn, in the commit of the ending. */
import { type Entry, isControl, type RunLimits, SESSION_MESSAGE, TURN_RUN, type TurnMessage, wordsIn } from '#core';
import type { NewRun, Received } from '#journal';
import type { RunState } from '#state';

const NONE: readonly NewRun[] = [];

/** The turns that begin with them, before those that wait. */
export function turnsAfter(state: RunState, late: readonly Received[], at: number): readonly NewRun[] {
  if (late.length === 0) return NONE;
  return late.flatMap(({ message }): NewRun[] => {
    if (!isControl(message) || message.turnMessage === undefined) return [];
    const run = `${TURN_RUN}${message.id.slice(SESSION_MESSAGE.length)}`;
    return [turnOf(state, run, message.turnMessage, wordsIn(message.payload ?? {}), at)];
  });
}

/** It has the agent, the limits and the rights of the run that ends. */
function turnOf(state: RunState, run: string, message: TurnMessage, query: string, at: number): NewRun {
  const { agent, scopes, pin, whileAsked } = state;
  const identity = { ...state.identity, run };
  const { inputs: _, ...context } = state.context;
  const entry: Entry = {
    kind: 'started',
    identity,
    query,
    agent,
    limits: limitsFrom(state, at),
    scopes,
    ...(pin === null ? {} : { pin }),
    ...(Object.keys(context).length === 0 ? {} : { context }),
    ...(whileAsked === 'keep' ? { whileAsked } : {}),
    turn: { messages: [message] },
    seq: 1,
    at,
  };
  return { identity, priority: 0, entries: [entry], waits: 'next' };
}

/** A deadline is as far away as it was for the run itself. */
function limitsFrom({ limits, startedAt }: RunState, at: number): RunLimits {
  const { deadlineAt, ...own } = limits;
  return deadlineAt === undefined ? own : { ...own, deadlineAt: at + (deadlineAt - startedAt) };
}
