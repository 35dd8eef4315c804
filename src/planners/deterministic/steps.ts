/** The steps of a deterministic planner: six kinds of steps, and functions. */
import type {
  ArtifactRef,
  AskReason,
  Branch,
  CallParallel,
  Decision,
  ErrorData,
  FinishReason,
  Json,
  JsonObject,
  RunView,
  SpawnSpec,
  TaskEnd,
  TaskKind,
} from '#core';

/**
 * A value, or a function that computes it from the run. Such functions must be pure: the same run gives the same value. For
 * the time they use `run.startedAt` and the times of the steps.
 */
export type Given<T> = T | ((run: RunView) => T | Promise<T>);

interface Common {
  /**
   * Unique in its planner, and recorded with each decision of the step. Default: the tool of a call; for other steps
   * `<parallel>`, `<spawn-and-await>`, `<watch-group>`, `<pause>`; a finish has no default.
   */
  readonly id?: string;
  /** A guard: the step is skipped when it returns false. Default: the step always claims. */
  readonly when?: (run: RunView) => boolean | Promise<boolean>;
}

interface Repeatable extends Common {
  /**
   * Claims until its decision has been carried out, with any outcome; then the steps after it have their turn. For a
   * call it is false by default: the call is made again and again while its guard holds.
   */
  readonly once?: boolean;
}

export interface CallStep extends Repeatable {
  readonly do: 'call';
  readonly tool: string;
  readonly args: Given<Json>;
}

export interface ParallelStep extends Repeatable, Pick<CallParallel, 'join' | 'onInvalid' | 'concurrency'> {
  readonly do: 'parallel';
  readonly branches: Given<readonly Branch[]>;
}

/**
 * Starts a task, waits for its group, hands the results to `onResolved` once, and is passed over from then on. A task that
 * fails is a result; one that cannot be started, or waited for, fails the step. The task is a run that asks the same
 * planner: steps before this step, whose guards know the query of the task, decide for it.
 */
export interface SpawnAndAwaitStep extends Common {
  readonly do: 'spawn_and_await';
  /** The task. `retainTurn` is false and `seal` is true by default. */
  readonly spec: Given<SpawnSpec>;
  /** The kind of the task. Default `background`. */
  readonly task?: TaskKind;
  /** The id of the group. Default: the step's id. */
  readonly groupId?: string;
  readonly onResolved: OnResolved;
}

/** Waits for a group whose tasks were spawned before, and seals it; then goes on like `spawn_and_await`. */
export interface WatchGroupStep extends Common {
  readonly do: 'watch_group';
  readonly groupId: string;
  readonly onResolved: OnResolved;
}

/** Pauses once, unless `once` is false. `lastStep(run, id)` has the answer. */
export interface PauseStep extends Repeatable {
  readonly do: 'pause';
  readonly reason: AskReason;
  readonly payload?: Given<JsonObject>;
  readonly expiresInMs?: number;
}

export interface FinishStep extends Common {
  readonly do: 'finish';
  readonly reason: FinishReason;
  readonly payload?: Given<Json | ArtifactRef>;
  /** The run's id is added as `run_id`, unless `run_id` is given. */
  readonly metadata?: Given<JsonObject>;
}

/** A function that decides; `undefined` passes on to the next step. */
export type DecideStep = (run: RunView, signal: AbortSignal) => Decision | undefined | Promise<Decision | undefined>;

export type ObjectStep = CallStep | ParallelStep | SpawnAndAwaitStep | WatchGroupStep | PauseStep | FinishStep;
export type DeterministicStep = ObjectStep | DecideStep;

/** How a task of a group ended; JSON, so that it can be passed on as it is. `running`: the group ended without it. */
export type GroupMember = {
  readonly task_id: string;
  readonly status: TaskEnd['status'] | 'running';
  readonly result?: Json;
  readonly error?: Readonly<Pick<ErrorData, 'code' | 'message'>>;
};

/** Decides what follows from a group that has ended. It must be pure, since it may be called again after a crash. */
export type OnResolved = (run: RunView, members: readonly GroupMember[]) => Decision | Promise<Decision>;
