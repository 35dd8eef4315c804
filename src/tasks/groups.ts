/** When a group of tasks is over. Pure. */
import type { EntryBody } from '#core';
import type { GroupState, RunState, TaskState } from '#state';

/** The entry that ends a group whose time has come, and the members that are told to stop. */
export function endGroup(
  state: RunState,
): { readonly entries: readonly EntryBody[]; readonly cancels: readonly string[] } | undefined {
  for (const group of state.groups) {
    if (group.end !== undefined) continue;
    const members = state.tasks.filter((task) => task.group === group.id);
    const verdict = verdictOn(group, members);
    if (verdict === undefined) continue;
    const cancels = members.filter(({ end }) => end === undefined).map(({ id }) => id);
    return { entries: [{ kind: 'group_ended', group: group.id, ...verdict }], cancels };
  }
  return undefined;
}

function verdictOn(
  { sealed, failFast, quorum }: GroupState,
  members: readonly TaskState[],
): { readonly status: 'completed' | 'cancelled'; readonly reason?: string } | undefined {
  const failed = members.find(({ end }) => end?.status === 'failed');
  if (failFast && failed !== undefined) {
    const code = failed.end?.error?.code;
    return { status: 'cancelled', reason: code === undefined ? 'fail-fast' : `fail-fast:${code}` };
  }
  const complete = members.filter(({ end }) => end?.status === 'complete').length;
  const isOver = sealed && members.every(({ end }) => end !== undefined);
  if (quorum !== undefined && complete >= quorum) {
    return isOver ? { status: 'completed' } : { status: 'completed', reason: 'quorum' };
  }
  return isOver ? { status: 'completed' } : undefined;
}
