/** A planner over a domain: operators that change a state, and methods that decompose tasks. */
import {
  type AsksModels,
  asLiteral,
  assertOptions,
  capture,
  defined,
  isMarked,
  type Json,
  jsonEquals,
  literal,
  type OnFailedPlan,
  type OptionShape,
  PilotageError,
  type Planner,
  type RunView,
} from '#core';
import type { HtnDomain, HtnTask } from './domain.ts';
import { resolverOf } from './item.ts';
import { plannerOf } from './planner.ts';
import type { ChooseMethod, FillLeaf } from './questions.ts';
import type { HtnTables } from './state.ts';
import type { HtnStep, Observe } from './work.ts';

/** Default values of `depth` and `nodes` for planners. */
export const DEFAULT_DEPTH = 32;
export const DEFAULT_NODES = 1_000;

export interface HtnOptions {
  /** Default `htn`. */
  readonly name?: string;
  readonly version?: string;
  /** `pause`: when an action has failed and no other way is left, the run is paused, and asks to retry it. Default `fail`. */
  readonly onFailedPlan?: OnFailedPlan;
  readonly domain: HtnDomain;
  /**
   * Returns the world as it was when the run began. It is called at each decision, and the effects of executed actions are added:
   * it must return the same state during the whole run.
   */
  state(run: RunView): HtnTables | Promise<HtnTables>;
  /** Returns the tasks to be done, in order. Called once for each goal of the run. */
  todo(run: RunView): readonly HtnTask[] | Promise<readonly HtnTask[]>;
  /**
   * Returns the step that carries an action out; `undefined` when the action only changes the state. The step's `id` can be left
   * out. Arguments of the action are passed on as values; only references that this function writes itself are resolved.
   */
  step(action: HtnTask, run: RunView): HtnStep | undefined;
  /**
   * Puts the outcome of a step into the state, after the effects of its action. The change counts from the next decision on: after
   * each call when `lazy`, otherwise when the plan has ended or failed. It must be pure, as it is called at each decision.
   */
  observe?: Observe;
  /**
   * True: one call is decided at a time, and tasks are decomposed no further than to the next call. Default: the whole plan is made
   * ahead, so that no call is made for a method that fails later.
   */
  readonly lazy?: boolean;
  /** The most levels of tasks. Default 32. */
  readonly depth?: number;
  /** The most items that a search visits. Default 1,000. */
  readonly nodes?: number;
  /**
   * Names the method to be tried first, among those that apply; called when several apply. Returns the name, or
   * `{ method, usage, remarks }`: usage and remarks go into the move. The answer is recorded with the move, and the same
   * question is not asked again in the run. When it names no method that applies, the first is taken, and the trace says so. When it
   * throws, the run fails.
   */
  readonly choose?: ChooseMethod & AsksModels;
  /**
   * Solves a task that has an empty list of methods, with steps in order, perhaps an empty list. Returns the steps, or
   * `{ steps, usage, remarks }`. Asked once for each such task of a plan, and recorded with the move. Without it such a task
   * cannot be done. When it throws, the run fails.
   */
  readonly fill?: FillLeaf & AsksModels;
  /** The tool that carries out steps of the type `internal`, called with `{ id, input, meta }`. */
  readonly internal?: string;
}

/**
 * Finds a plan and carries it out, each action after the one before. When one fails, only the task that it is part of is
 * planned anew from the present state; later tasks stay, if they still apply. Nothing that is done
 * is done again. Without `choose` and `fill` it is pure. When their usage leaves nothing of the run's money or tokens,
 * nothing more is chosen in that move, and a leaf behind other steps is left for the next one.
 *
 * A run fails with `htn_depth`, `htn_nodes`, `htn_cycle` (when no plan is found because a task leads back to itself), `htn_invalid_decomposition`, or with `plan_invalid` for a step
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
  const { observe, choose, fill, onFailedPlan } = options;
  return plannerOf({
    name,
    version,
    onFailedPlan,
    limits: { depth, nodes },
    lazy,
    internal,
    unpriced: [...(choose?.unpriced ?? []), ...(fill?.unpriced ?? [])],
    knows: (run, signal) => ({
      resolve: resolverOf(domain),
      ...defined({ fingerprint: domain.fingerprint }),
      tables: () => options.state(run),
      todo: async () => tasksOf(await options.todo(run)),
      stepOf: (action) => withTaskValues(options.step(action, run), action),
      observe: observe && ((state, step) => observe.call(options, state, step)),
      choose: choose && ((task, methods, left) => choose.call(options, task, methods, left, signal)),
      fill: fill && ((task, left) => fill.call(options, task, left, signal)),
    }),
  });
}

/** @throws PilotageError `invalid_config` for a value that is not a list. */
function tasksOf(given: readonly HtnTask[]): readonly HtnTask[] {
  if (Array.isArray(given)) return given;
  const message = `The option todo of htn gave ${String(given)}; it gives the list of tasks: [['deliver', 'p1']].`;
  throw new PilotageError('invalid_config', message);
}

const OPTIONS: OptionShape<HtnOptions> = {
  name: 'name?',
  version: 'text?',
  onFailedPlan: 'text?',
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
function assertDomain(domain: HtnDomain): void {
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

// What a step takes from the arguments of its task: these may come from a tool, through the state, and are values.

/** The step with its input escaped where an object of the task's arguments stands that could be read as a reference. */
function withTaskValues(step: HtnStep | undefined, [, ...args]: HtnTask): HtnStep | undefined {
  const marked = markedIn(args);
  if (step?.input === undefined || marked.length === 0) return step;
  return { ...step, input: escaped(capture(step.input, 'input').json, marked) };
}

function markedIn(value: Json): readonly Json[] {
  const found: Json[] = [];
  const open: Json[] = [value];
  for (let part = open.pop(); part !== undefined; part = open.pop()) {
    if (typeof part !== 'object' || part === null) continue;
    if (isMarked(part)) found.push(part);
    open.push(...Object.values(part));
  }
  return found;
}

function escaped(value: Json, marked: readonly Json[]): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (isMarked(value) && marked.some((part) => jsonEquals(part, value))) return literal(value);
  if (asLiteral(value) !== undefined) return value;
  if (Array.isArray(value)) return value.map((item) => escaped(item, marked));
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, escaped(part, marked)] as const));
}
