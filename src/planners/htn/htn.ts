/** A planner over a domain: operators that change a state, and methods that decompose tasks. */

import {
  type AsksModels,
  assertOptions,
  defined,
  type OptionShape,
  PilotageError,
  type Planner,
  type RunView,
} from '#core';
import type { HtnDomain, HtnTask } from './domain.ts';
import { resolverOf } from './item.ts';
import { plannerOf } from './planner.ts';
import type { ChooseMethod, FillLeaf } from './questions.ts';
import type { Observe } from './replay.ts';
import type { HtnTables } from './state.ts';
import { withTaskValues } from './task-values.ts';
import type { HtnStep } from './work.ts';

/** Default values of `depth` and `nodes` for planners. */
export const DEFAULT_DEPTH = 32;
export const DEFAULT_NODES = 1_000;

export interface HtnOptions {
  /** Default `htn`. */
  readonly name?: string;
  readonly version?: string;
  readonly domain: HtnDomain;
  /**
   * The world as it was when the run began. Asked at each decision: the effects of what was done since are added to it, so
   * it is to be the same for the whole run.
   */
  state(run: RunView): HtnTables | Promise<HtnTables>;
  /** What is to be done, in that order. Asked once for each goal of the run. */
  todo(run: RunView): readonly HtnTask[] | Promise<readonly HtnTask[]>;
  /**
   * How an action is carried out. `undefined`: it only changes the state. Its `id` can be left out. What it takes from the
   * arguments of the action are values, whatever they hold; references are what it writes itself.
   */
  step(action: HtnTask, run: RunView): HtnStep | undefined;
  /**
   * Takes what a step came to into the state, behind the effects of its action. What it finds is gone by from the next
   * decision on: after each call when `lazy`, else when the plan has ended or failed. Asked again at each decision: pure.
   */
  observe?: Observe;
  /**
   * Decides one call at a time, and decomposes no further than to the next one. Default: the whole plan ahead. Then a
   * method is never tried in vain with a call that was made already.
   */
  readonly lazy?: boolean;
  /** Levels of tasks. Default 32. */
  readonly depth?: number;
  /** Items that a search takes up. Default 1,000. */
  readonly nodes?: number;
  /**
   * Names the method to be tried first, of those that apply; asked when there is more than one. Gives the name, or
   * `{ method, usage, remarks }`: usage and remarks go into the move. The answer is recorded with the move, and the same
   * question is not asked again in the run. When it names none of them, the first is taken, and the trace tells so. When it
   * throws, the run fails.
   */
  readonly choose?: ChooseMethod & AsksModels;
  /**
   * Solves a task that has an empty list of methods, with steps in their order, perhaps none; gives them, or
   * `{ steps, usage, remarks }`. Asked once for each such task of a plan, and recorded with the move. Without it such a task
   * cannot be done. When it throws, the run fails.
   */
  readonly fill?: FillLeaf & AsksModels;
  /** The tool that carries out steps of the type `internal`, called with `{ id, input, meta }`. */
  readonly internal?: string;
}

/**
 * Finds a plan and carries it out, each action after the one before. When one fails, only the task that it is part of is
 * planned anew from the state that was come to; what is behind that task stays, if it still applies. Nothing that is done
 * is done again. Without `choose` and `fill` it is pure. When what they took leaves nothing of the run's money or tokens,
 * nothing more is chosen in that move, and a leaf behind other steps is left for the next one.
 *
 * A run fails with `htn_depth`, `htn_nodes`, `htn_cycle` (when there is no plan because a task comes to itself), `htn_invalid_decomposition`, or with `plan_invalid` for a step
 * that no tool can carry out; it finishes with `no_path` when there is no plan.
 * @throws PilotageError `invalid_config` for a limit that is not a whole number from 1 up.
 */
export function htn(options: HtnOptions): Planner {
  assertOptions('htn', options, OPTIONS);
  const {
    name = 'htn',
    version,
    domain,
    lazy = false,
    depth = DEFAULT_DEPTH,
    nodes = DEFAULT_NODES,
    internal,
  } = options;
  assertDomain(domain);
  assertLimit('depth', depth);
  assertLimit('nodes', nodes);
  const { observe, choose, fill } = options;
  return plannerOf({
    name,
    version,
    limits: { depth, nodes },
    lazy,
    internal,
    unpriced: [...(choose?.unpriced ?? []), ...(fill?.unpriced ?? [])],
    knows: (run, signal) => ({
      resolve: resolverOf(domain),
      ...defined({ fingerprint: domain.fingerprint }),
      tables: () => options.state(run),
      todo: () => options.todo(run),
      stepOf: (action) => withTaskValues(options.step(action, run), action),
      observe: observe && ((state, step) => observe.call(options, state, step)),
      choose: choose && ((task, methods) => choose.call(options, task, methods, run, signal)),
      fill: fill && ((task) => fill.call(options, task, run, signal)),
    }),
  });
}

const OPTIONS: OptionShape<HtnOptions> = {
  name: 'text?',
  version: 'text?',
  domain: 'any',
  state: 'function',
  todo: 'function',
  step: 'function',
  observe: 'function?',
  lazy: 'flag?',
  depth: 'any?',
  nodes: 'any?',
  choose: 'function?',
  fill: 'function?',
  internal: 'text?',
};

/** @throws PilotageError `invalid_config`. */
export function assertDomain(domain: HtnDomain): void {
  if (domain?.entries instanceof Map && domain.goals instanceof Map) return;
  throw new PilotageError(
    'invalid_config',
    'The option domain must be a domain: give what htnDomain or readHddl returns.',
  );
}

function assertLimit(name: string, limit: number): void {
  if (Number.isInteger(limit) && limit >= 1) return;
  throw new PilotageError('invalid_config', `The limit ${name} must be a whole number from 1 up.`);
}
