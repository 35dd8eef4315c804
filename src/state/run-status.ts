/** A run's status, as a journal lists it: of a run that has ended, of one that is driven, and of one that is given back. */
import type { EntryBody, Failed, Finished, Paused } from '#core';
import { isPaused, pausesOfTasks } from './blocked-calls.ts';
import type { RunState } from './state.ts';

export function endedStatus(ending: Pick<Finished, 'kind' | 'reason'> | Pick<Failed, 'kind'>): EndedStatus {
  if (ending.kind === 'failed') return 'failed';
  return ending.reason === 'cancelled' ? 'cancelled' : 'finished';
}

type EndedStatus = 'finished' | 'failed' | 'cancelled';

/** While one call waits the others go on: for its pause a run counts as paused only when it is given back. */
function pausesRun({ call }: Pick<Paused, 'call'>): boolean {
  return call === undefined;
}

/** Of a run that is driven, with these pauses open. */
export function drivenStatus(pauses: readonly Pick<Paused, 'call'>[]): 'running' | 'paused' {
  return pauses.some(pausesRun) ? 'paused' : 'running';
}

/** The status that the last of these entries leaves the run in, if they change it. */
export function statusAfter(bodies: readonly EntryBody[]): EndedStatus | 'running' | 'paused' | undefined {
  const last = bodies.at(-1);
  if (last?.kind === 'finished' || last?.kind === 'failed') return endedStatus(last);
  if (last?.kind === 'paused') return pausesRun(last) ? 'paused' : undefined;
  return last?.kind === 'resumed' ? 'running' : undefined;
}

/** Of a run that is given back because nothing here can move it. */
export function parkedStatus(state: RunState): 'waiting' | 'paused' {
  return isPaused(state) ? 'paused' : 'waiting';
}

/** Of a run that would end, but for calls in doubt: whatever else it waits for is not needed any more. */
export function unsettledStatus(state: RunState): 'waiting' | 'paused' {
  return state.pauses.length > 0 || pausesOfTasks(state).length > 0 ? 'paused' : 'waiting';
}
