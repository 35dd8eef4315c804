/** What is played through crashes: a planner, its tools, and the people around it. */
import type { Clock, Control, Entry, GivenPlanner, Json, Limits, OptionShape } from '#core';
import type { Journal } from '#journal';
import type { PauseNotice, Run, RuntimeOptions } from '#runtime';
import type { RunState } from '#state';
import type { AnyTool, ToolContext } from '#tools';

export interface CrashScenario {
  readonly name: string;
  /**
   * Must decide by the run's view alone, and end with the same reason and payload whenever the outcomes are the same. The
   * tasks that it starts have it too.
   */
  readonly planner: GivenPlanner;
  /** Made anew for each process. A tool whose effect is counted calls `world.effect(context)` at the moment of it. */
  readonly tools: (world: CrashWorld) => readonly AnyTool[];
  readonly query: string;
  /** What the planner reads as `context.args`: the input of a flow. */
  readonly args?: Json;
  readonly limits?: Limits;
  /**
   * Opens the journal as a process does when it starts; the same `store` again is the same data. It is closed when the
   * process is over. Default: one journal in memory that outlives the processes.
   */
  readonly journal?: (clock: Clock, store: string) => Journal | Promise<Journal>;
  /** What the runtime of each process does about changed code, about runs that go round in circles, and about those that fail. */
  readonly options?: Pick<RuntimeOptions, 'migrate' | 'progress' | 'onFail' | 'undo'>;
  /**
   * Answers a pause of `run`: of the run, or of a task. After a crash it may be asked again. `undefined`: nobody answers,
   * as something else ends the pause. Default: `run.resume({ token })`.
   */
  readonly answer?: (run: Run, pause: PauseNotice) => Promise<void> | undefined;
  /**
   * What somebody outside says to the run when this entry has been written.
   * @param task whose entry it is: `''` for the run's own, `<step>.<call>` of the spawn for a task's, and so on down.
   */
  readonly controls?: (entry: Entry, task: string) => Control | undefined;
  /**
   * What else must hold at the end: a sentence for each violation.
   * @param tree the states of the run and all its tasks.
   */
  readonly check?: (state: RunState, entries: readonly Entry[], tree: readonly RunState[]) => readonly string[];
}

/** The world outside the process, for the tools of a scenario. It remembers what a dead process did. */
const SCENARIO: OptionShape<CrashScenario> = {
  ...({
    name: 'any',
    planner: 'any',
    tools: 'any',
    query: 'any',
    args: 'any?',
    limits: 'any?',
    journal: 'any?',
  } as const),
  ...({ options: 'any?', answer: 'any?', controls: 'any?', check: 'any?' } as const),
};
export const SCENARIO_KEYS: readonly string[] = Object.keys(SCENARIO);

export interface CrashWorld {
  /**
   * The moment at which a tool does its thing: counted under the call's key. The process may die before and after.
   * @param part of the call's work, where it has several (`context.once`): each is counted by itself.
   */
  effect(context: Pick<ToolContext, 'idempotencyKey'>, part?: string): Promise<void>;
  /** How often the effect of this call, or this part of it, has happened. */
  count(context: Pick<ToolContext, 'idempotencyKey'>, part?: string): number;
}
