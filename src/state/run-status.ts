/** The status of a run, as a journal lists it: for a run that has ended, is driven, or is given back. */
import type { EntryBody, Failed, Finished, Paused } from '#core';
import { isPaused, pausesOfTasks } from './blocked-calls.ts';
import type { RunState } from './state.ts';

export function endedStatus(ending: Pick<Finished, 'kind' | 'reason'> | Pick<Failed, 'kind'>): EndedStatus {
  if (ending.kind === 'failed') return 'failed';
  return ending.reason === 'cancelled' ? 'cancelled' : 'finished';
}

type EndedStatus = 'finished' | 'failed' | 'cancelled';

/** While one call waits, the others go on: a pause of one call makes the run paused only when the run is given back. */
function pausesRun({ call }: Pick<Paused, 'call'>): boolean {
  return call === undefined;
}

/** The status of a run that is driven, with these pauses open. */
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

/** The status of a run that is given back because this process cannot move it on. */
export function parkedStatus(state: RunState): 'waiting' | 'paused' {
  return isPaused(state) ? 'paused' : 'waiting';
}

/** The status of a run that would end but for calls in doubt. Nothing else that it waits for is needed any more. */
export function unsettledStatus(state: RunState): 'waiting' | 'paused' {
  return state.pauses.length > 0 || pausesOfTasks(state).length > 0 ? 'paused' : 'waiting';
}
