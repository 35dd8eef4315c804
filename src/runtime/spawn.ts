/** Starting a task: the entries of its owner, and the new run that is stored with them. Pure. */
import type { SpawnTask } from '../core/decision.ts';
import type { CallEnded, Entry, EntryBody, Spawned } from '../core/entry.ts';
import type { ErrorCode } from '../core/errors.ts';
import { deepFreeze } from '../core/json.ts';
import { MAX_LIVE_TASKS, MAX_TASK_DEPTH, type TaskOrigin } from '../core/task.ts';
import type { NewRun } from '../journal/port.ts';
import { shareFor } from '../view/budget.ts';
import type { RunState } from '../view/run-state.ts';

/** Entries to append, and what is stored in the same commit. */
export interface Landing {
  readonly entries: readonly EntryBody[];
  readonly starts?: readonly NewRun[];
}

interface CallAt {
  readonly step: number;
  readonly call: number;
}

/** @param taken money that calls beside it have been promised. */
export function spawn(
  state: RunState,
  at: CallAt,
  { task: kind, spec, groupId }: SpawnTask,
  now: number,
  taken: number,
): Landing {
  const share = shareFor(state, spec.limits, taken);
  const refusal = spawnRefusal(state, groupId, share !== undefined);
  if (refusal !== undefined || share === undefined) {
    return { entries: [refused(at, ...(refusal ?? (['budget_exceeded', NOTHING_LEFT] as const)))] };
  }
  const { onCancel = 'cascade', retainTurn = kind === 'foreground', description, failFast, quorum } = spec;
  const id = `${state.identity.run}.${at.step}.${at.call}`;
  const group = groupId ?? `group:${id}`;
  const origin: TaskOrigin = {
    parent: state.identity.run,
    root: state.task?.root ?? state.identity.run,
    depth: (state.task?.depth ?? 0) + 1,
    kind,
    description,
    group,
    onCancel,
  };
  const spawned: Spawned = {
    kind: 'spawned',
    ...at,
    task: id,
    group,
    taskKind: kind,
    description,
    onCancel,
    retained: retainTurn,
    reserved: share.reserved,
    seal: spec.seal ?? groupId === undefined,
    ...(failFast === undefined ? {} : { failFast }),
    ...(quorum === undefined ? {} : { quorum }),
  };
  const first: Entry = deepFreeze({
    kind: 'started',
    seq: 1,
    at: now,
    identity: { ...state.identity, run: id },
    query: spec.query,
    conversation: false,
    planner: state.planner,
    // A pause for a raise would leave what the owner has set aside.
    limits: { ...share.limits, onCeiling: 'finish' },
    scopes: state.scopes,
    ...(state.pin === null ? {} : { pin: state.pin }),
    task: origin,
    ...(state.fork === null ? {} : { fork: state.fork }),
  });
  const run: NewRun = { identity: first.identity, priority: spec.priority ?? 0, entries: [first] };
  if (retainTurn) return { entries: [spawned], starts: [run] };
  const outcome = { kind: 'value' as const, value: { task_id: id, kind, status: 'spawned' } };
  return { entries: [spawned, { kind: 'call_ended', ...at, outcome, attempts: 0 }], starts: [run] };
}

const NOTHING_LEFT = 'The budget has nothing left that a task could get. No task was started.';

function spawnRefusal(state: RunState, groupId: string | undefined, hasRoom: boolean): [ErrorCode, string] | undefined {
  const depth = (state.task?.depth ?? 0) + 1;
  if (depth > MAX_TASK_DEPTH) {
    return ['task_limit', `A task here would be at depth ${depth}; the cap is ${MAX_TASK_DEPTH}. No task was started.`];
  }
  const live = state.tasks.filter(({ end }) => end === undefined).length;
  if (live >= MAX_LIVE_TASKS) {
    return ['task_limit', `${live} tasks of this run are under way, the most there can be. Await some first.`];
  }
  const group = state.groups.find(({ id }) => id === groupId);
  if (group !== undefined && (group.sealed || group.end !== undefined)) {
    return ['group_ended', `The group ${group.id} takes no more tasks. Use another group id.`];
  }
  return hasRoom ? undefined : ['budget_exceeded', NOTHING_LEFT];
}

/** The outcome of a task call that could not be made. */
export function refused(at: CallAt, code: ErrorCode, message: string): CallEnded {
  return { kind: 'call_ended', ...at, outcome: { kind: 'error', error: { code, message } }, attempts: 0 };
}
