/** A run as its readers see it: what `run.state()` gives. */
import type {
  BackgroundResult,
  CallRecord,
  Decision,
  ForkOrigin,
  GroupView,
  Identity,
  RunContext,
  RunLimits,
  Step,
  TaskOrigin,
  TaskView,
} from '#core';
import { type PlanView, planOf } from './plan-view.ts';
import type { Ending, OpenPause, RunState, RunTotals } from './state.ts';
import { isLong } from './steps.ts';
import { viewOfGroup } from './task-state.ts';

/**
 * A run at one moment: plain data that does not change while the run goes on. Every field is always there; `null` says that there is no such
 * thing. All times are milliseconds since the epoch.
 */
export interface RunSnapshot {
  /** The sequence number of the last entry that it covers. */
  readonly head: number;
  readonly identity: Identity;
  /** The name of the agent that the run is of. */
  readonly agent: string;
  /** What the run was started with. */
  readonly query: string;
  /** What it works for now: the query, or the goal of the last redirect. */
  readonly goal: string;
  /** Costs are in millionths of a US dollar. */
  readonly limits: RunLimits;
  readonly scopes: readonly string[];
  /** What it was given beside the query: attachments, memory, skills, arguments. */
  readonly context: RunContext;
  readonly startedAt: number;
  /** The time of the last entry. */
  readonly updatedAt: number;
  /** Who started the run, when it is a task. */
  readonly task: TaskOrigin | null;
  /** Which run it was forked from. */
  readonly fork: ForkOrigin | null;
  /** The steps whose calls have all ended. */
  readonly steps: readonly Step[];
  /** The step that is under way. */
  readonly open: OpenStepSnapshot | null;
  /** The plan that is carried out, or the last one. */
  readonly plan: PlanView | null;
  /** The open pauses of the run itself; those of its tasks are with `tasks`. */
  readonly pauses: readonly OpenPause[];
  /** In the order in which they were spawned. */
  readonly tasks: readonly TaskView[];
  readonly groups: readonly GroupView[];
  /** Results of groups that the run did not await. */
  readonly background: readonly BackgroundResult[];
  /** What the run has used so far, its ended tasks included. */
  readonly totals: Readonly<RunTotals>;
  /** How the run ended. */
  readonly ending: Ending | null;
}

/** A step whose calls have not all ended. */
export interface OpenStepSnapshot {
  /** Its index. */
  readonly step: number;
  readonly decision: Decision;
  /** What the model said with it. Absent: nothing. */
  readonly text?: string;
  /** One for each branch, in branch order; `null` until the branch has ended. */
  readonly calls: readonly (CallRecord | null)[];
}

/** @param state is the caller's own, and not folded on: the snapshot shares its parts. */
export function snapshotOf(state: RunState): RunSnapshot {
  const {
    head,
    identity,
    agent,
    query,
    goal,
    limits,
    scopes,
    context,
    startedAt,
    updatedAt,
    task,
    fork,
    open,
    ending,
  } = state;
  const { steps, pauses, tasks, groups, background, totals } = state;
  const seen: RunSnapshot = {
    head,
    identity,
    agent,
    query,
    goal,
    limits,
    scopes,
    context,
    startedAt,
    updatedAt,
    task,
    fork,
    steps,
    open: open && {
      step: open.move.step,
      decision: open.move.decision,
      calls: open.calls,
      ...(open.move.text === undefined ? {} : { text: open.move.text }),
    },
    plan: isLong(steps) ? null : (planOf(state) ?? null),
    pauses,
    tasks,
    groups: groups.map((group) => viewOfGroup(group, tasks)),
    background,
    totals,
    ending,
  };
  return isLong(steps) ? withStepsWhenAsked(seen, state) : seen;
}

/** Most of those who look at a long run do not look at its steps, which would have to be read. */
function withStepsWhenAsked(seen: RunSnapshot, state: RunState): RunSnapshot {
  let steps: readonly Step[] | undefined;
  let plan: PlanView | null | undefined;
  return Object.defineProperties(seen, {
    steps: {
      get: () => {
        steps ??= [...state.steps];
        return steps;
      },
    },
    plan: {
      get: () => {
        if (plan === undefined) plan = planOf(state) ?? null;
        return plan;
      },
    },
  });
}
