/** The part of the fold that is about tasks: what a run has spawned, what it waits for, and what came back. */
import {
  type Awaiting,
  countUsage,
  deepFreeze,
  defined,
  type GroupEnded,
  type GroupView,
  type Spawned,
  type Step,
  type TaskEnd,
  type TaskEnded,
  type TaskPaused,
  type TaskShare,
  type TaskUsage,
  type TaskView,
} from '#core';
import { itemIn, membersIn, pushed, tallyOf, withItem, withItemReplaced } from './places.ts';
import { type GroupState, nextStep, type OpenStep, type RunState, type TaskState, type TaskWait } from './state.ts';

export function applySpawned(state: RunState, spawned: Spawned & { readonly at: number }, open: OpenStep): void {
  const { task: id, group, taskKind: kind, description, step, call, onCancel, reserved } = spawned;
  const task: TaskState = {
    id,
    group,
    kind,
    description,
    step,
    call,
    onCancel,
    reserved,
    pauses: [],
    consumed: false,
    pausesAsOf: 0,
    ...defined({ agentCall: spawned.agentCall }),
  };
  state.tasks = withItem(state.tasks, deepFreeze(task));
  if (spawned.agentCall === true) {
    // Its end is the call's, and no group's.
    const { atOnce, at: startedAt } = spawned;
    state.totals.calls += 1;
    open.waits.push({ call, task: id, agentCall: atOnce === undefined ? { startedAt } : { startedAt, atOnce } });
    return;
  }
  if (spawned.retained) open.waits.push({ call, task: id });
  const known = itemIn(state.groups, group);
  const { seal, failFast = false, quorum } = spawned;
  // The first task of a group says what kind of group it is.
  if (known === undefined) {
    const made: GroupState = defined({ id: group, sealed: seal, failFast, quorum });
    state.groups = withItem(state.groups, Object.freeze(made));
  } else if (seal) sealGroup(state, group);
}

export function applyAwaiting(state: RunState, awaiting: Awaiting, open: OpenStep): void {
  const { call, task, group, until } = awaiting;
  const wait: { -readonly [K in keyof TaskWait]: TaskWait[K] } = { call, task };
  if (group !== undefined) {
    wait.group = group;
    sealGroup(state, group);
  }
  if (until !== undefined) wait.until = until;
  open.waits.push(wait);
}

function sealGroup(state: RunState, id: string): void {
  const group = itemIn(state.groups, id);
  if (group?.sealed !== false) return;
  state.groups = withItemReplaced(state.groups, Object.freeze({ ...group, sealed: true }));
}

export function applyTaskEnded(state: RunState, ended: TaskEnded): void {
  const { task, status, result, stored, files, error, usage } = ended;
  const end: TaskEnd = defined({ task, status, usage, result, stored, files, error });
  const own = itemIn(state.tasks, task);
  if (own === undefined) {
    state.otherEnds = [...state.otherEnds, deepFreeze(end)];
    state.otherPauses = state.otherPauses.filter((other) => other.task !== task);
    return;
  }
  change(state, task, { end: deepFreeze(end), pauses: Object.freeze([]) });
  const { totals, beforeTurn } = state;
  const fresh = freshUsage(own, usage);
  totals.taskSteps += fresh.steps;
  // A task takes more steps than it was lent only when its user spoke to it: each message has the whole share again.
  const beyond = fresh.steps - (own.reserved.steps ?? fresh.steps);
  if (beyond > 0) state.beforeTurn = Object.freeze({ ...beforeTurn, taskSteps: beforeTurn.taskSteps + beyond });
  totals.taskCalls += fresh.calls ?? 0;
  countUsage(totals, fresh);
}

/** What of a task's usage was not counted when it had failed before. */
export function freshUsage({ counted }: Pick<TaskState, 'counted'>, usage: TaskUsage): TaskUsage {
  if (counted === undefined) return usage;
  const before: Readonly<Record<string, unknown>> = { ...counted };
  const fresh = Object.entries(usage).map(([part, amount]: [string, unknown]) => {
    const known = before[part];
    return [part, typeof amount === 'number' && typeof known === 'number' ? Math.max(0, amount - known) : amount];
  });
  return Object.fromEntries(fresh);
}

/** The calls of a step that is opened again wait for these tasks, which had failed. What they may still use is set aside again. */
export function goOnWithTasks(state: RunState, open: OpenStep, step: Step, tasks: readonly string[]): void {
  for (const id of tasks) {
    const task = itemIn(state.tasks, id);
    if (task?.end === undefined) continue;
    const { end: _, ...rest } = task;
    const { usage } = task.end;
    replaceTask(state, { ...rest, consumed: false, counted: usage, reserved: restOf(task) });
    open.waits.push({ call: task.call, task: id, agentCall: { startedAt: step.calls[task.call]?.startedAt ?? 0 } });
  }
}

/** What is left of the share of a task that has ended. */
export function restOf({ end, reserved: share, ...task }: TaskState): TaskShare {
  if (end === undefined) return share;
  const used = freshUsage(task, end.usage);
  const spent = {
    steps: used.steps,
    calls: used.calls ?? 0,
    costMicroUsd: used.costMicroUsd,
    tokens: used.inputTokens + used.outputTokens,
  };
  const left: { -readonly [K in keyof TaskShare]: TaskShare[K] } = { ...share };
  for (const axis of ['steps', 'calls', 'costMicroUsd', 'tokens'] as const) {
    if (share[axis] !== undefined) left[axis] = Math.max(0, share[axis] - spent[axis]);
  }
  return left;
}

export function applyTaskPaused(state: RunState, { task, pauses, asOf }: TaskPaused): void {
  const told = deepFreeze([...pauses]);
  const own = itemIn(state.tasks, task);
  if (own !== undefined) {
    if (asOf >= own.pausesAsOf) change(state, task, { pauses: told, pausesAsOf: asOf });
    return;
  }
  const known = state.otherPauses.find((other) => other.task === task);
  if (known !== undefined && asOf < known.asOf) return;
  const others = state.otherPauses.filter((other) => other !== known);
  state.otherPauses = [...others, Object.freeze({ task, pauses: told, asOf })];
}

/** Nobody can answer these questions any more, whether their tasks have told so or not. */
export function applyWithdrawn(state: RunState, tokens: readonly string[]): void {
  state.withdrawn = tokens;
  for (const { id, pauses } of state.tasks) {
    const open = pauses.filter(({ token }) => !tokens.includes(token));
    if (open.length < pauses.length) change(state, id, { pauses: open });
  }
}

export function applyGroupEnded(state: RunState, ended: GroupEnded, at: number): void {
  const { group: id, status, reason } = ended;
  const known = itemIn(state.groups, id);
  if (known !== undefined) {
    const end = Object.freeze(defined({ status, reason, at }));
    state.groups = withItemReplaced(state.groups, Object.freeze({ ...known, sealed: true, end }));
  }
  const members = membersIn(state.tasks, id);
  const isAwaited = state.open?.waits.some((wait) => wait.group === id) === true;
  if (isAwaited || members.every(({ consumed }) => consumed)) return;
  const group = groupView(state, id);
  if (group !== undefined) state.background = pushed(state.background, deepFreeze({ atStep: nextStep(state), group }));
}

/** Ends the wait of a call for a task: the call has its result, or does not need it any more. */
export function noteParkedCallEnded(state: RunState, open: OpenStep, call: number): void {
  if (open.waits.length === 0) return;
  const index = open.waits.findIndex((wait) => wait.call === call);
  if (index === -1) return;
  const [wait] = open.waits.splice(index, 1);
  if (wait === undefined) return;
  const { task, group } = wait;
  const one = group === undefined ? itemIn(state.tasks, task) : undefined;
  const given = group === undefined ? [one] : membersIn(state.tasks, group);
  for (const member of given) if (member?.end !== undefined) change(state, member.id, { consumed: true });
}

function change(state: RunState, id: string, fields: Partial<TaskState>): void {
  const task = itemIn(state.tasks, id);
  if (task !== undefined) replaceTask(state, { ...task, ...fields });
}

export function replaceTask(state: RunState, task: TaskState): void {
  state.tasks = withItemReplaced(state.tasks, deepFreeze(task));
}

/** `undefined` for a group that this run does not have. */
export function groupView(state: Pick<RunState, 'tasks' | 'groups'>, id: string): GroupView | undefined {
  const group = itemIn(state.groups, id);
  return group && viewOfGroup(group, state.tasks);
}

export function viewOfGroup({ id, sealed, end }: GroupState, tasks: readonly TaskView[]): GroupView {
  const members = membersIn(tasks, id);
  if (end === undefined) return { id, status: sealed ? 'sealed' : 'open', members };
  const { status, reason, at } = end;
  return defined({ id, status, members, reason, endedAt: at });
}

/** How a group is over whose end is not recorded yet; `undefined`: it is not. @param tasks of the run, with others. */
export function verdictOn(
  { id, sealed, failFast, quorum }: GroupState,
  tasks: readonly TaskState[],
): { readonly status: 'completed' | 'cancelled'; readonly reason?: string } | undefined {
  const { live, complete, failed } = tallyOf(tasks, id);
  if (failFast && failed !== undefined) {
    const code = failed.end?.error?.code;
    return { status: 'cancelled', reason: code === undefined ? 'fail-fast' : `fail-fast:${code}` };
  }
  const isOver = sealed && live === 0;
  if (quorum !== undefined && complete >= quorum) {
    return isOver ? { status: 'completed' } : { status: 'completed', reason: 'quorum' };
  }
  return isOver ? { status: 'completed' } : undefined;
}
