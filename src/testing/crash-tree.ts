/** What must hold of a run and its tasks together, after crashes. Each check gives a sentence for each violation. */
import { type Entry, jsonEquals, type TaskEnd } from '#core';
import type { Journal } from '#journal';
import { taskEndOf } from '#runtime';
import type { RunState } from '#state';

/** The ids of the run and of all runs below it, as the journal has them. */
export async function treeOf(journal: Journal, run: string): Promise<string[]> {
  const tasks = await journal.list({ parent: run, limit: 200 });
  const below = await Promise.all(tasks.map(({ identity }) => treeOf(journal, identity.run)));
  return [run, ...below.flat()];
}

/** What a run was told of its tasks is what became of them, told once. */
export function taskProblems(entries: readonly Entry[], state: RunState, tree: readonly RunState[]): string[] {
  const runs = new Map(tree.map((each) => [each.identity.run, each]));
  const ends = entries.filter((entry) => entry.kind === 'task_ended');
  const groups = entries.flatMap((entry) => (entry.kind === 'group_ended' ? [entry.group] : []));
  return [
    ...twice(ends.map(({ task }) => task)).map((task) => `The end of the task ${task} came twice.`),
    ...twice(groups).map((group) => `The group ${group} ended twice.`),
    ...state.tasks.filter(({ id }) => !runs.has(id)).map(({ id }) => `The task ${id} was spawned and is not there.`),
    ...ends.flatMap((end) => falseNews(end, runs.get(end.task))),
    ...orphanProblems(state, runs),
  ];
}

function twice(names: readonly string[]): string[] {
  return names.filter((name, index) => names.indexOf(name) < index);
}

function falseNews({ task, ...told }: TaskEnd, run: RunState | undefined): string[] {
  const end = run && taskEndOf(run);
  if (end === undefined) return [`The task ${task} is said to have ended, and has not.`];
  const same =
    end.status === told.status &&
    end.error?.code === told.error?.code &&
    jsonEquals(end.result ?? null, told.result ?? null);
  return same ? [] : [`The task ${task} is said to be ${told.status}, and is ${end.status}, or has another result.`];
}

function orphanProblems({ identity, task }: RunState, runs: ReadonlyMap<string, RunState>): string[] {
  if (task === null) return [];
  const owner = runs.get(task.parent);
  return owner?.tasks.some(({ id }) => id === identity.run) === true
    ? []
    : [`The run ${identity.run} is there, and no journal says that it was spawned.`];
}
