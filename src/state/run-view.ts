/** What a planner sees of a run: a fresh frozen object for each step over the state's own frozen parts. */
import {
  type BackgroundResult,
  type BudgetView,
  CEILING_REASONS,
  type Compaction,
  type CompactionFailures,
  type ContextLimit,
  DEFAULT_STEP_LIMIT,
  deepFreeze,
  type EarlierRuns,
  type GroupView,
  type LoadedInput,
  MAX_TASK_DEPTH,
  type MediaView,
  RunCache,
  type RunView,
  SPAWN_TOOL,
  type SteeringTurn,
  type Step,
  skillView,
  type TaskOrigin,
  type TaskView,
  type ToolView,
  type Trajectory,
  type Turn,
} from '#core';
import { leftOn, stepsCounted } from './budget.ts';
import { reserveOn } from './reserve.ts';
import { type GroupState, nextStep, type RunState, withheldTools } from './state.ts';
import { viewOfGroup } from './task-state.ts';

const NO_INPUTS: readonly LoadedInput[] = Object.freeze([]);

/**
 * @param inputs the attachments of the query, with their bytes; they are not part of the state.
 * @param history the turns before the query, with the bytes of their files.
 * @param cache what planners have kept of the run.
 * @param media the files of the steps, with their bytes.
 * @param earlier the runs that `history` is made of.
 */
export function viewOf(
  state: RunState,
  tools: ToolView,
  streaming: boolean,
  inputs: readonly LoadedInput[] = NO_INPUTS,
  history: readonly Turn[] = state.history,
  cache: RunCache = new RunCache(),
  media?: MediaView,
  earlier?: EarlierRuns,
): RunView {
  const noProgress = noProgressAt(state);
  const view: { -readonly [K in keyof RunView]: RunView[K] } = {
    identity: state.identity,
    agent: state.agent,
    query: state.query,
    goal: state.goal,
    history,
    context: state.context,
    inputs,
    trajectory: new StepsSoFar(state),
    controls: shown(state.fresh),
    tools,
    skills: skillView(state.context.skills),
    budget: budgetOf(state),
    startedAt: state.startedAt,
    rejections: state.rejections,
    tasks: (state.task?.depth ?? 0) < MAX_TASK_DEPTH && withheldTools(state)?.includes(SPAWN_TOOL) !== true,
    streaming,
    cache,
  };
  if (state.recalled !== null) view.recalled = state.recalled;
  if (media !== undefined) view.media = media;
  if (earlier !== undefined) view.earlier = earlier;
  if (state.author !== null) view.author = state.author;
  if (state.notice) view.notice = true;
  if (state.task !== null) view.task = originOf(state.task);
  if (noProgress !== undefined) view.noProgress = noProgress;
  if (state.answering !== null) view.lastMove = { reason: CEILING_REASONS[state.answering.axis] };
  return Object.freeze(view);
}

function originOf({ kind, depth, description }: TaskOrigin): NonNullable<RunView['task']> {
  return Object.freeze({ kind, depth, description });
}

function noProgressAt(state: RunState): RunView['noProgress'] {
  const { noProgress } = state;
  if (noProgress === null || noProgress.step !== nextStep(state)) return undefined;
  return { period: noProgress.period, times: noProgress.times };
}

export function budgetOf(state: RunState): BudgetView {
  const { limits, totals } = state;
  const budget: { -readonly [K in keyof BudgetView]: BudgetView[K] } = {
    stepsLeft:
      leftOn(state, 'steps') ?? Math.max(0, DEFAULT_STEP_LIMIT - stepsCounted(state) - reserveOn(state, 'steps')),
    costMicroUsdSpent: totals.costMicroUsd,
  };
  const calls = leftOn(state, 'calls');
  const money = leftOn(state, 'costMicroUsd');
  const tokens = leftOn(state, 'tokens');
  if (calls !== undefined) budget.callsLeft = calls;
  if (limits.deadlineAt !== undefined) budget.deadlineAt = limits.deadlineAt;
  if (money !== undefined) budget.costMicroUsdLeft = money;
  if (tokens !== undefined) budget.tokensLeft = tokens;
  return Object.freeze(budget);
}

const NONE: readonly never[] = Object.freeze([]);

/** A list that a planner is shown is never changed. */
function shown<T>(list: readonly T[]): readonly T[] {
  return list.length === 0 ? NONE : Object.freeze(list);
}

/** The steps so far, with all that came in between. */
export function stepsSoFar(state: RunState): Trajectory {
  return new StepsSoFar(state);
}

/** The first `count` steps of a list that only grows: no copy a step, and later steps stay out of sight. */
class StepsSoFar implements Trajectory {
  readonly count: number;
  readonly steering: readonly SteeringTurn[];
  readonly tasks: readonly TaskView[];
  readonly background: readonly BackgroundResult[];
  declare readonly compaction?: Compaction;
  declare readonly compactionFailures?: CompactionFailures;
  declare readonly contextLimits?: readonly ContextLimit[];
  readonly #steps: readonly Step[];
  readonly #groups: readonly GroupState[];

  constructor(state: RunState) {
    this.#steps = state.steps;
    this.#groups = shown(state.groups);
    this.count = state.steps.length;
    this.steering = shown(state.steering);
    this.tasks = shown(state.tasks);
    this.background = shown(state.background);
    if (state.compaction !== null) this.compaction = state.compaction;
    if (state.compactionFailures !== null) this.compactionFailures = state.compactionFailures;
    if (state.contextLimits.length > 0) this.contextLimits = state.contextLimits;
    Object.freeze(this);
  }

  step(index: number): Step | undefined {
    return index < this.count ? this.#steps[index] : undefined;
  }

  get steps(): readonly Step[] {
    return Object.freeze(this.#steps.slice(0, this.count));
  }

  get groups(): ReadonlyMap<string, GroupView> {
    return new Map(this.#groups.map((group) => [group.id, deepFreeze(viewOfGroup(group, this.tasks))]));
  }
}
