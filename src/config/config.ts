/** What a configuration file says. */
import type { Planner, PlannerFunction, PlanningHints } from '#core';
import type { Journal } from '#journal';
import type { RuntimeOptions } from '#runtime';
import type { DeterministicPart, DriverPart, FinishPart, GraphPart, PipelinePart, ReactPart } from './drivers.ts';

/** Options that are passed on to the runtime unchanged. */
export type RuntimePart = Omit<RuntimeOptions, 'planner' | 'journal' | 'clock' | 'random' | 'onFault'>;

/** @typeParam Other the configuration of planners whose drivers are the program's own. */
export interface Config<Other extends DriverPart = never> extends RuntimePart {
  /** A planner, or the description of one: `{ driver, … }`. Default driver: `react`. */
  readonly planner?:
    | Planner
    | PlannerFunction
    | ReactPart
    | DeterministicPart
    | FinishPart
    | GraphPart
    | PipelinePart
    | Other;
  /** Hints for runs that are given no hints of their own. */
  readonly planningHints?: Pick<PlanningHints, 'constraints' | 'preferredTools'>;
  /** A journal, or the path of a SQLite file. */
  readonly journal?: Journal | string;
}

/** Types a configuration and gives it back. It is checked when it is made ready. */
export function defineConfig<Other extends DriverPart = never>(config: Config<NoInfer<Other>>): Config<Other> {
  return config;
}
