/** Starting a task: the entries of its owner, and the new run that is stored with them. Pure. */
import {
  type CallEnded,
  type CallPlace,
  callEnded,
  deepFreeze,
  defined,
  type Entry,
  type EntryBody,
  type ErrorCode,
  type Json,
  type JsonObject,
  MAX_LIVE_TASKS,
  MAX_TASK_DEPTH,
  type Pin,
  type Planner,
  type Repinned,
  type RunContext,
  runLimitsOf,
  runUndoOf,
  type Spawned,
  type SpawnTask,
  type TaskOrigin,
  type TaskShare,
  taskId,
  type UndoOptions,
} from '#core';
import type { NewRun } from '#journal';
import { type Amounts, itemIn, liveIn, type RunState, type ShareAxis, shareFor, withheldTools } from '#state';
import type { AuthorisedTools } from '#tools';
import type { ReadyAgent } from '../loop/driver-deps.ts';
import { type Beside, limitsWithin, splitWith } from './budget-share.ts';

/** Entries to append, and what is stored in the same commit. */
export interface Landing {
  readonly entries: readonly EntryBody[];
  readonly starts?: readonly NewRun[];
  /** Set when nothing was started because nothing is left on this axis of the budget; the entries refuse the call. */
  readonly lacks?: ShareAxis;
}

/**
 * @param taken the part of the budget that calls beside it take.
 * @param other the agent that the planner has named; absent: the run's own.
 */
export function spawn(
  state: RunState,
  at: CallPlace,
  { task: kind, spec, groupId }: SpawnTask,
  now: number,
  taken: Amounts,
  other?: ReadyAgent,
): Landing {
  const share = shareFor(state, limitsWithin(runLimitsOf(spec.limits ?? {}), other?.limits, now), taken);
  const refusal = tooDeep(state) ?? tooMany(state) ?? groupRefusal(state, groupId);
  const left = isLeftOpen(state, groupId, spec.seal)
    ? ` The group ${groupId} is open still: seal it with a later task, or await it.`
    : '';
  if (refusal !== undefined) return { entries: [refused(at, refusal[0], `${refusal[1]}${left}`)] };
  if ('lacks' in share) return { entries: [nothingLeft(at, share.lacks, left)], lacks: share.lacks };
  const { onCancel = 'cascade', retainTurn = kind === 'foreground', description, failFast, quorum } = spec;
  const { query, priority = 0 } = spec;
  const { agent, pin, planner } =
    other === undefined ? { ...ownAgent(state), planner: undefined } : agentOf(state, other);
  const about = { kind, description, onCancel, group: groupId ?? groupOf(taskIn(state, at)) };
  const context = withTheSameHints(state);
  const given = { query, agent, pin, priority, limits: share.limits, context, ...defined({ planner }) };
  const run = newTask(state, at, now, { ...about, ...given });
  const { run: id } = run.identity;
  const spawned: Spawned = {
    kind: 'spawned',
    ...at,
    task: id,
    group: about.group,
    taskKind: kind,
    description,
    onCancel,
    retained: retainTurn,
    reserved: share.reserved,
    seal: spec.seal ?? groupId === undefined,
    ...defined({ failFast, quorum }),
  };
  if (retainTurn) return { entries: [spawned], starts: [run] };
  const outcome = { kind: 'value' as const, value: { task_id: id, kind, status: 'spawned' } };
  return { entries: [spawned, callEnded(at, { outcome, attempts: 0 })], starts: [run] };
}

function ownAgent({ agent, pin }: RunState): Pick<NewTask, 'agent' | 'pin'> {
  return { agent, pin };
}

function agentOf(
  { scopes }: RunState,
  { agent, planner, toolsOf }: ReadyAgent,
): Required<Pick<NewTask, 'agent' | 'pin' | 'planner'>> {
  return { agent, planner, pin: pinOf(planner, toolsOf(scopes, [])) };
}

/** A call of a tool that a task is to carry out. */
export interface AgentCall {
  readonly tool: string;
  readonly args: Json;
  /** What the task is asked. */
  readonly query: string;
  readonly agent: ReadyAgent;
  /** The call ends at once with the id of the task. */
  readonly background: boolean;
  /** How many calls of the tool may be under way at once; `Infinity` for any number. */
  readonly atOnce: number;
  /** What may be started while it is under way. */
  beside(): Beside;
}

/**
 * The task gets what its agent's limits ask for, as far as it is left. On the other axes it gets what is left,
 * without what calls beside it may need.
 * @param taken the part of the budget that calls beside it take.
 */
export function spawnAgentCall(
  state: RunState,
  at: CallPlace,
  called: AgentCall,
  now: number,
  taken: Amounts,
): Landing {
  const { tool, args, query, agent, atOnce, background } = called;
  const share = shareFor(
    state,
    limitsWithin({}, agent.limits, now),
    taken,
    splitWith(() => called.beside()),
  );
  const refusal = tooDeep(state) ?? (background ? tooMany(state) : undefined);
  if (refusal !== undefined) return { entries: [refused(at, ...refusal)] };
  if ('lacks' in share) return { entries: [nothingLeft(at, share.lacks)], lacks: share.lacks };
  const group = groupOf(taskIn(state, at));
  const kind = background ? ('background' as const) : ('foreground' as const);
  const about = { kind, description: tool, group, onCancel: 'cascade' } as const;
  const { meta } = state.context;
  const { limits, reserved } = share;
  const pin = pinOf(agent.planner, agent.toolsOf(state.scopes, []));
  const given = meta === undefined ? { args } : { args, meta };
  // A tool that must not be used and a node of a flow may have one name by chance, and no agent works below a flow.
  const context = agent.isFlow ? given : withTheSameHints(state, given);
  const run = newTask(state, at, now, {
    ...about,
    query,
    agent: agent.agent,
    planner: agent.planner,
    undoing: agent.undoing,
    pin,
    priority: 0,
    limits,
    context,
  });
  const spawned: Spawned = {
    kind: 'spawned',
    ...at,
    task: run.identity.run,
    group,
    taskKind: about.kind,
    description: tool,
    onCancel: about.onCancel,
    ...(background ? { retained: false } : { retained: true, agentCall: true }),
    ...(Number.isFinite(atOnce) && !background ? { atOnce } : {}),
    reserved,
    seal: true,
  };
  if (!background) return { entries: [spawned], starts: [run] };
  const outcome = { kind: 'value' as const, value: { task: run.identity.run } };
  return { entries: [spawned, callEnded(at, { outcome, startedAt: now, attempts: 1 })], starts: [run] };
}

/** What the owner must not do, its tasks do not do for it. */
function withTheSameHints(state: RunState, own?: RunContext): RunContext | undefined {
  const disallowedTools = withheldTools(state);
  return disallowedTools === undefined ? own : { ...own, hints: { disallowedTools } };
}

interface NewTask extends Pick<TaskOrigin, 'kind' | 'description' | 'group' | 'onCancel'> {
  readonly query: string;
  readonly agent: string;
  /** Absent: the same as its owner's. */
  readonly planner?: Planner;
  /** What that agent says of calls of runs that fail. */
  readonly undoing?: UndoOptions;
  readonly pin: Pin | null;
  readonly priority: number;
  readonly limits: TaskShare;
  readonly context: RunContext | undefined;
}

function newTask(state: RunState, at: CallPlace, now: number, task: NewTask): NewRun {
  const {
    kind,
    description,
    group,
    onCancel,
    query,
    agent,
    planner,
    pin,
    priority,
    limits,
    context,
    undoing = {},
  } = task;
  const { identity, scopes, fork, whileAsked } = state;
  const undo = runUndoOf([undoOfOwner(state), undoing], limits.costMicroUsd);
  const { run: parent } = identity;
  const { root = parent, depth = 0 } = state.task ?? {};
  const first: Entry = deepFreeze({
    kind: 'started',
    seq: 1,
    at: now,
    identity: { ...identity, run: taskIn(state, at) },
    query,
    conversation: false,
    ...defined({ context }),
    agent,
    // A pause for a raise would leave what the owner has set aside.
    limits: { ...limits, onCeiling: 'finish', ...defined({ stepsPer: state.limits.stepsPer }) },
    scopes,
    ...(pin === null ? {} : { pin }),
    task: { parent, root, depth: depth + 1, kind, description, group, onCancel },
    ...(fork === null ? {} : { fork }),
    ...(undo === undefined ? {} : { undo }),
    ...(state.trace === null ? {} : { trace: state.trace }),
    ...(whileAsked === 'keep' || planner?.whileAsked === 'keep' ? { whileAsked: 'keep' } : {}),
  });
  return { identity: first.identity, priority, entries: [first] };
}

/** A task of a run that undoes its calls does so too, unless its agent says otherwise. */
function undoOfOwner({ undo }: RunState): UndoOptions {
  return undo === null ? {} : { onFail: 'undo', undo: { calls: undo.calls, timeoutMs: undo.timeoutMs } };
}

function taskIn({ identity, tasks, open }: RunState, { step, call }: CallPlace): string {
  const isAgain = open?.again?.includes(call) === true;
  const before = isAgain ? tasks.filter((task) => task.step === step && task.call === call).length : 0;
  return taskId(identity.run, step, call, before);
}

/** The group of a task that shares no group with others. */
function groupOf(task: string): string {
  return `group:${task}`;
}

const NOTHING_LEFT = 'The budget has nothing left that a task could get. No task was started.';

function nothingLeft(at: CallPlace, axis: ShareAxis, left = ''): CallEnded {
  return refused(at, 'budget_exceeded', `${NOTHING_LEFT}${left}`, { axis });
}

/** The task was to be the last of a group, which has others. */
function isLeftOpen({ groups }: RunState, groupId: string | undefined, seal = false): boolean {
  const group = seal && groupId !== undefined ? itemIn(groups, groupId) : undefined;
  return group !== undefined && !group.sealed && group.end === undefined;
}

type Refusal = readonly [ErrorCode, string];

function tooDeep({ task }: RunState): Refusal | undefined {
  const depth = (task?.depth ?? 0) + 1;
  if (depth <= MAX_TASK_DEPTH) return undefined;
  return ['task_limit', `A task here would be at depth ${depth}; the cap is ${MAX_TASK_DEPTH}. No task was started.`];
}

function tooMany({ tasks }: RunState): Refusal | undefined {
  const live = liveIn(tasks).filter(({ agentCall }) => agentCall === undefined).length;
  if (live < MAX_LIVE_TASKS) return undefined;
  return ['task_limit', `${live} tasks of this run are under way, the most there can be. Await some first.`];
}

function groupRefusal({ groups }: RunState, groupId: string | undefined): Refusal | undefined {
  const group = groupId === undefined ? undefined : itemIn(groups, groupId);
  if (group === undefined || (!group.sealed && group.end === undefined)) return undefined;
  return ['group_ended', `The group ${group.id} takes no more tasks. Use another group id.`];
}

/** The outcome of a task call that could not be made. */
export function refused(at: CallPlace, code: ErrorCode, message: string, data?: JsonObject): CallEnded {
  const error = { code, message, ...defined({ data }) };
  return callEnded(at, { outcome: { kind: 'error', error }, attempts: 0 });
}

/** What a run of the agent is pinned to: the version of its planner and the digests of its tools. */
export function pinOf({ version }: Planner, tools: AuthorisedTools): Repinned['pin'] {
  return version === undefined ? { tools: tools.digests() } : { version, tools: tools.digests() };
}
