/** The list of what is still to be done, as a search works on it: each item knows the one after it and the task it came from. */
import { PilotageError } from '#core';
import { GOAL, type HtnDomain, type HtnEntry, type HtnTask } from './domain.ts';

/** Why a search could not go on at an item. */
export type DeadEnd =
  | 'precondition'
  | 'no_method'
  | 'goal_not_reached'
  | 'excluded'
  | 'repeated'
  | 'cycle'
  | 'recursion';

export interface FailedMethod {
  readonly name: string;
  /** Where it led nowhere; absent: it did not apply. */
  readonly end?: Item;
  readonly why?: DeadEnd;
  /** What it gave: goes on to the `next` of its task. */
  readonly first?: Item | undefined;
  /** What the method said itself, when it failed with an error. */
  readonly message?: string;
}

/**
 * An item is shared by all branches of a search in which the same is left to do. What changes in it belongs to the one
 * branch that is being looked at: whoever goes back to an earlier choice takes the items behind it up anew.
 */
export class Item {
  readonly task: HtnTask;
  /** A `check` stands behind the subgoals of a goal, which has to hold there. */
  readonly kind: HtnEntry['kind'] | 'check';
  readonly entry: HtnEntry;
  readonly parent: Item | undefined;
  readonly next: Item | undefined;
  /** 1 at the top. */
  readonly depth: number;
  /** The mark of the state when it was taken up. */
  mark = 0;
  /** Actions before it when it was taken up; -1: it was not. */
  at = -1;
  /** Which method was tried last; the number of methods when none is left. */
  method = -1;
  /** Further lists of that method, when it is a generator. */
  lists: Iterator<unknown> | undefined = undefined;
  /** The methods in another order than the listed one. */
  order: readonly number[] | undefined = undefined;
  /** What was said when a method was to be chosen, and is the name of none that applies. */
  answer: string | undefined = undefined;
  /** A method of it has applied since it was taken up. */
  applied = false;
  /** The first of what the last of these gave, which goes on to this item's own `next`. */
  first: Item | undefined = undefined;
  /** The same number for the same tasks to be done from here on; 0: not yet asked for. */
  tail = 0;
  /** Only when a trace is kept, as is `why`. */
  failed: FailedMethod[] | undefined = undefined;
  why: DeadEnd | undefined = undefined;

  constructor(
    task: HtnTask,
    kind: Item['kind'],
    entry: HtnEntry,
    parent: Item | undefined,
    next: Item | undefined,
    depth: number = parent === undefined ? 1 : parent.depth + 1,
  ) {
    this.task = task;
    this.kind = kind;
    this.entry = entry;
    this.parent = parent;
    this.next = next;
    this.depth = depth;
  }
}

/** What a task is. `undefined`: nobody knows it. */
export type Resolve = (task: HtnTask) => HtnEntry | undefined;

const NO_METHODS: HtnEntry = { kind: 'goal', methods: [] };

export function resolverOf({ entries, goals }: HtnDomain): Resolve {
  return (task) => {
    const name = task[0];
    // A goal that no method reaches may hold all the same.
    return name === GOAL ? (goals.get(task[1] as string) ?? NO_METHODS) : entries.get(name);
  };
}

/**
 * The items of a list of tasks, in front of `next`.
 * @throws PilotageError `htn_invalid_decomposition` for a task that the domain does not have, or a value that is not a task.
 */
export function itemsOf(tasks: readonly HtnTask[], resolve: Resolve, parent?: Item, next?: Item): Item | undefined {
  let head = next;
  for (let index = tasks.length - 1; index >= 0; index -= 1) {
    const task = tasks[index];
    const entry = Array.isArray(task) && typeof task[0] === 'string' ? resolve(task as HtnTask) : undefined;
    if (entry === undefined) throw unknownTask(task, parent);
    head = new Item(task as HtnTask, entry.kind, entry, parent, head);
  }
  return head;
}

function unknownTask(task: unknown, parent: Item | undefined): PilotageError {
  const what =
    Array.isArray(task) && typeof task[0] === 'string'
      ? `${task[0]}, which the domain does not have`
      : 'a value that is not a task';
  const help = 'A task is a list that begins with the name of an operator or a task of the domain, or with goal.';
  return badDecomposition(parent, `returned ${what}. ${help}`);
}

/** An error about what the domain's function for this item did. No item: about the list that the search began with. */
export function badDecomposition(item: Item | undefined, problem: string, cause?: unknown): PilotageError {
  const data = item === undefined ? {} : { data: { task: item.task[0] } };
  return new PilotageError('htn_invalid_decomposition', `${functionOf(item)} ${problem}`, { ...data, cause });
}

function functionOf(item: Item | undefined): string {
  if (item === undefined) return 'The todo list';
  const { kind, task } = item;
  if (kind === 'action') return `The operator ${task[0]}`;
  const what = task[0] === GOAL ? `the goal ${String(task[1])}` : `the task ${task[0]}`;
  const method = methodOf(item);
  return method === undefined ? `A method of ${what}` : `The method ${method} of ${what}`;
}

/** The name of the method that was tried last. */
export function methodOf({ entry, order, method }: Item): string | undefined {
  return entry.methods[order?.[method] ?? method]?.name;
}
