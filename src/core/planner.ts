/** The seam: a planner is asked for one decision, and knows nothing of how it is carried out. */
import type { Compaction, CompactionAttempt, CompactionFailures } from './compaction.ts';
import type { LoadedInput, RunContext } from './context.ts';
import type { Control } from './control.ts';
import type { Branch, Decision } from './decision.ts';
import type { Turn } from './entry.ts';
import { type ErrorData, PilotageError } from './errors.ts';
import type { Identity } from './identity.ts';
import type { SkillView } from './skills.ts';
import type { MoveNotes, Step } from './step.ts';
import type { BackgroundResult, GroupView, TaskOrigin, TaskView } from './task.ts';
import type { ToolView } from './tool-schema.ts';

export type WakeMode = 'push' | 'poll' | 'hybrid';

export interface Move extends MoveNotes {
  readonly decision: Decision;
  /**
   * The model's reply was nothing that can be carried out. The move is recorded and the planner asked again; `decision`
   * is what it would end with now. It counts as a step. Whoever sets it bounds how often. One with the code
   * `model_unavailable` is no step: the run waits, and the planner is asked again; so it is when the planner throws an error of
   * that code, or one of an AI SDK model (`AI_APICallError`, `AI_RetryError`) that calls itself retryable.
   */
  readonly fault?: ErrorData;
}

/** A piece of what a planner says on the way to its move. */
export type SpokenDelta =
  | { readonly type: 'text' | 'reasoning'; readonly text: string }
  /** What was said of this move so far does not count: it begins anew. */
  | { readonly type: 'reset' };

/** What a streaming planner yields on the way to its move. */
export type Delta =
  | SpokenDelta
  /**
   * Nodes of a plan that may start while the planner goes on. The move that comes in the end is a `call_parallel` of the
   * same plan, and its first branches are all those that were given so, in that order. What fails after the first of them
   * closes the plan as it is then, and is the error of the step. A branch refers only to those given with it or before it.
   * The `concurrency` of the first counts.
   */
  | {
      readonly type: 'branches';
      readonly plan: string;
      readonly branches: readonly Branch[];
      readonly concurrency?: number;
    };

/** A message that came in while the run was going, at the step that was next then. */
export interface SteeringTurn {
  readonly atStep: number;
  readonly control: Control;
}

/** The steps so far. Only the runtime adds to them. */
export interface Trajectory {
  readonly count: number;
  step(index: number): Step | undefined;
  /** A frozen copy of all steps; `step` is cheaper. */
  readonly steps: readonly Step[];
  readonly steering: readonly SteeringTurn[];
  /** What this run has spawned, in order. */
  readonly tasks: readonly TaskView[];
  readonly groups: ReadonlyMap<string, GroupView>;
  /** Groups whose results came by themselves, in the order in which they came; each once, and then for good. */
  readonly background: readonly BackgroundResult[];
  /** The last summary of the first steps, if there is one. All steps are still here. */
  readonly compaction?: Compaction;
  /** What has failed since then; absent when nothing has. */
  readonly compactionFailures?: CompactionFailures;
}

/** What is left of the run's budget; an absent part has no limit. */
export interface BudgetView {
  readonly stepsLeft: number;
  /** Calls of tools. With none left the run may still finish. */
  readonly callsLeft?: number;
  readonly deadlineAt?: number;
  readonly costMicroUsdSpent: number;
  readonly costMicroUsdLeft?: number;
  readonly tokensLeft?: number;
}

/** Everything a planner may look at: frozen, and made afresh for each step. */
export interface RunView {
  readonly identity: Identity;
  readonly query: string;
  /** What the run is to reach now: the query, until a REDIRECT replaces it. */
  readonly goal: string;
  readonly history: readonly Turn[];
  /** What the run was given beside its query. */
  readonly context: RunContext;
  /** The attachments of the query, in order, with their bytes. */
  readonly inputs: readonly LoadedInput[];
  readonly trajectory: Trajectory;
  /** Controls applied since the last step, in order. */
  readonly controls: readonly Control[];
  readonly tools: ToolView;
  /** Those of `context.skills`. */
  readonly skills: SkillView;
  readonly budget: BudgetView;
  /** When the run started, as recorded: the only clock a planner may read. Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Decisions in a row, just before this one, that did not pass validation. */
  readonly rejections: number;
  /** Tasks can be spawned and awaited: the run stands high enough in its tree. */
  readonly tasks: boolean;
  /** What this run is, if it is a task of another. */
  readonly task?: Pick<TaskOrigin, 'kind' | 'depth' | 'description'>;
  /** The last steps were the same `period` steps over and over, `times` times: another way is wanted. */
  readonly noProgress?: { readonly period: number; readonly times: number };
  /** Somebody listens for tokens. */
  readonly streaming: boolean;
}

export type MoveSource = Decision | Move | Promise<Decision | Move> | AsyncGenerator<Delta, Decision | Move>;

/** What may ask models. */
export interface AsksModels {
  /** Those that have no prices, by their names. With any of them a limit of cost is refused, as it could not hold. */
  readonly unpriced?: readonly string[];
}

export interface Planner extends AsksModels {
  readonly name: string;
  /** Changes when a run that was started before is not to go on unasked: recorded with each run. */
  readonly version?: string;
  /** What wakes the planner when a task it started has ended. Default `push`. */
  readonly wakeMode?: WakeMode;
  /**
   * Its moves cost nothing: a limit of money or tokens that is reached ends no run of it. Calls that would spend more are
   * refused all the same.
   */
  readonly costless?: true;
  /** A model makes the decisions: an invalid one is given back to it before the run is failed. */
  readonly modelDriven?: boolean;
  /** @throws the signal's reason when it is aborted. */
  next(run: RunView, signal: AbortSignal): MoveSource;
  /**
   * Asked before `next`, once a step: shortens the history when the request has become too long. `undefined`: it fits, or
   * it is too early to try again.
   * @throws the signal's reason when it is aborted; PilotageError `model_unavailable` when there is no going on without a summary.
   * It reports every other failure.
   */
  compact?(run: RunView, signal: AbortSignal): Promise<CompactionAttempt | undefined>;
}

export type PlannerFunction = (run: RunView, signal: AbortSignal) => MoveSource;

/** A plain function is a planner. @throws PilotageError `no_planner`, or `invalid_config` for a bad name or wake mode. */
export function asPlanner(planner: Planner | PlannerFunction): Planner {
  if (typeof planner === 'function') return { name: planner.name || 'function', next: planner };
  if (typeof planner?.next === 'function') {
    if (typeof planner.name !== 'string' || planner.name === '') {
      throw new PilotageError('invalid_config', 'The planner has no name. Give it one: every run records it.');
    }
    resolveWakeMode(planner);
    return planner;
  }
  throw new PilotageError(
    'no_planner',
    'The planner is missing. Give a function, or an object with next(run, signal).',
  );
}

/** @throws PilotageError `invalid_config` for a word that is no wake mode. */
export function resolveWakeMode(planner: Planner): WakeMode {
  const mode: string = planner.wakeMode ?? 'push';
  if (mode === 'push' || mode === 'poll' || mode === 'hybrid') return mode;
  throw new PilotageError(
    'invalid_config',
    `The planner ${planner.name} has the wake mode ${JSON.stringify(mode)}; use push, poll or hybrid.`,
  );
}

export function isMove(value: Decision | Move): value is Move {
  return typeof value === 'object' && value !== null && 'decision' in value;
}
