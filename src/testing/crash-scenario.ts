/** What is played through crashes: a planner, its tools, and the people around it. */
import type { Clock } from '../core/clock.ts';
import type { Control } from '../core/control.ts';
import type { Entry } from '../core/entry.ts';
import type { Limits } from '../core/limits.ts';
import type { Planner, PlannerFunction } from '../core/planner.ts';
import type { Journal } from '../journal/port.ts';
import type { PauseNotice } from '../runtime/result.ts';
import type { Run } from '../runtime/run.ts';
import type { Tool, ToolContext } from '../tools/tool.ts';
import type { RunState } from '../view/run-state.ts';

export interface CrashScenario {
  readonly name: string;
  /** Must decide by the run's view alone, and end with the same reason and payload whenever the outcomes are the same. */
  readonly planner: Planner | PlannerFunction;
  /** Made anew for each process. A tool whose effect is counted calls `world.effect(context)` at the moment of it. */
  readonly tools: (world: CrashWorld) => readonly Tool[];
  readonly query: string;
  readonly limits?: Limits;
  /**
   * Opens the journal as a process does when it starts; the same `store` again is the same data. It is closed when the
   * process is over. Default: one journal in memory that outlives the processes.
   */
  readonly journal?: (clock: Clock, store: string) => Journal;
  /** Answers a pause. After a crash it may be asked again. Default: `run.resume({ token })`. */
  readonly answer?: (run: Run, pause: PauseNotice) => Promise<void>;
  /** What somebody outside says to the run when this entry has been written. */
  readonly controls?: (entry: Entry) => Control | undefined;
  /** What else must hold at the end: a sentence for each violation. */
  readonly check?: (state: RunState, entries: readonly Entry[]) => readonly string[];
}

/** The world outside the process, for the tools of a scenario. It remembers what a dead process did. */
export interface CrashWorld {
  /** The moment at which a tool does its thing: counted under the call's key. The process may die before and after. */
  effect(context: Pick<ToolContext, 'idempotencyKey'>): Promise<void>;
  /** How often the effect of this call has happened. */
  count(context: Pick<ToolContext, 'idempotencyKey'>): number;
}
