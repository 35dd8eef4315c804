/**
 * The ids by which the messages of a chat know calls. No two calls of a chat have the same: clients find a call in the whole chat by its id alone, and the servers
 * of some models number the calls of each reply anew.
 */
import type { TaskPause } from '#core';

/** @param id the id of the call in its run. */
export function chatCallId(run: string, id: string): string {
  const own = `${run}.`;
  return id.startsWith(own) ? id : `${own}${id}`;
}

/** The id of the call that a client is to carry out. Undefined for a pause that waits for something else. */
export function clientCallId({
  run,
  reason,
  payload,
}: Pick<TaskPause, 'run' | 'reason' | 'payload'>): string | undefined {
  const id = payload?.['tool_call_id'];
  return reason === 'client_tool' && typeof id === 'string' ? chatCallId(run, id) : undefined;
}
