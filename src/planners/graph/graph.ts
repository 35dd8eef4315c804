/**
 * A planner for a plan that somebody else has made, or makes on the way: a program, a file, a planner of the agentsdk
 * contract. It holds no state of a run: the outcomes of a plan are in the run's trajectory.
 */
import {
  assertIdentity,
  assertOptions,
  capture,
  type Delta,
  defined,
  describeThrown,
  MAX_AT_ONCE,
  MAX_PLAN_BRANCHES,
  type Move,
  type OnFailedPlan,
  type OptionShape,
  PilotageError,
  type Planner,
  type RunView,
  type Step,
} from '#core';
import {
  finishOfNodes,
  finishOfPlan,
  isStep,
  isStream,
  lastPlan,
  type MoveRules,
  notesOf,
  type Plan,
  type PlanMaker,
  type PlanNode,
  type PlanSource,
  type PlanStep,
  type PlanYield,
  planMove,
  planNodes,
  plannerState,
  type StreamingPlanMaker,
  stepMove,
  stepsInOrder,
  wasInterrupted,
  wasRedirected,
} from '#plans';
import { streamedMove } from './streamed.ts';

export type PlanFunction = (
  run: RunView,
  signal: AbortSignal,
) => Plan | PlanStep | Promise<Plan | PlanStep> | AsyncIterable<PlanYield>;

export interface GraphOptions {
  /** The planner's name. Default `graph`. */
  readonly name?: string;
  /** Recorded with each run. Change it when runs that were started with another plan must not go on with this plan unasked. */
  readonly version?: string;
  /**
   * The plan, or its maker. A maker that returns a plan is asked once for each goal; a maker that returns a single step is asked
   * again when the step has ended; the steps of a maker that returns a stream are carried out as they come. Makers must be
   * pure: the same run gives the same plan.
   */
  readonly plan: Plan | PlanFunction | PlanMaker | StreamingPlanMaker;
  /** How many steps may run at once. Default and at most 50. */
  readonly concurrency?: number;
  /** The tool that carries out `internal` steps, called with `{ id, input, meta }`. Default: a plan has none. */
  readonly internal?: string;
  /** The most steps of a plan. Default 1,000, at most 10,000. */
  readonly maxSteps?: number;
  /** `pause`: when nodes of the plan have failed, the run is paused, and asks to retry them. Default `fail`. */
  readonly onFailedPlan?: OnFailedPlan;
}

const OPTIONS: OptionShape<GraphOptions> = {
  name: 'any?',
  version: 'any?',
  plan: 'any',
  concurrency: 'any?',
  internal: 'any?',
  maxSteps: 'any?',
  onFailedPlan: 'any?',
};

/**
 * Makes a planner that carries out a plan. A plan that cannot be carried out fails the run with `plan_invalid`, which lists every fault.
 * @throws PilotageError `invalid_config`, and `plan_invalid` for a plan that nothing could carry out.
 */
export function graph(options: GraphOptions): Planner {
  checkOptions(options);
  const { name = 'graph', version, plan, concurrency, internal, maxSteps, onFailedPlan } = options;
  const maker = makerOf(plan);
  const rules: MoveRules = defined({ concurrency, internal, maxSteps });
  const next: Planner['next'] = (run, signal) => nextMove(maker, rules, run, signal);
  return Object.freeze({ name, wakeMode: 'poll', whileAsked: 'keep', next, ...defined({ version, onFailedPlan }) });
}

interface Maker {
  readonly make: (run: RunView, signal: AbortSignal) => PlanSource;
  /** True: the plan is the same for every goal. */
  readonly isFixed: boolean;
}

async function* nextMove(
  maker: Maker,
  rules: MoveRules,
  run: RunView,
  signal: AbortSignal,
): AsyncGenerator<Delta, Move> {
  signal.throwIfAborted();
  const { identity, controls } = run;
  assertIdentity(identity);
  if (controls.some(({ type }) => type === 'CANCEL')) return { decision: { kind: 'finish', reason: 'cancelled' } };
  const last = lastPlan(run);
  if (last === undefined) return yield* made(maker, rules, run, signal, []);
  if (wasRedirected(run, last)) {
    return maker.isFixed ? outdated(last) : yield* made(maker, rules, run, signal, []);
  }
  const rest = interruptedBefore(run, last);
  const nodes = [...rest, ...planNodes(last)];
  if (last.error === undefined) return { decision: finishOfPlan(last, rest) };
  const finish = finishOfNodes(nodes, notesOf(last));
  if (finish.reason === 'goal') return { decision: finish };
  // The maker failed when some of its plan was under way already; now that this has ended, the run has failed.
  if (!wasInterrupted(last)) throw PilotageError.fromData(last.error);
  return yield* made(maker, rules, run, signal, nodes);
}

async function* made(
  { make }: Maker,
  rules: MoveRules,
  run: RunView,
  signal: AbortSignal,
  before: readonly PlanNode[],
): AsyncGenerator<Delta, Move> {
  const source = make(run, signal);
  if (isStream(source)) return yield* streamedMove(source, rules, run, signal, before);
  const given = await source;
  signal.throwIfAborted();
  return isStep(given) ? stepMove(given, rules, run, signal, 'graph') : planMove(given, rules, run, signal);
}

/** The nodes of earlier plans that were cut off, and of which this plan is the rest. */
function interruptedBefore({ trajectory }: RunView, { index }: Step): readonly PlanNode[] {
  const nodes: PlanNode[] = [];
  for (let at = index - 1; at >= 0; at -= 1) {
    const step = trajectory.step(at);
    if (step === undefined || !wasInterrupted(step)) break;
    nodes.unshift(...planNodes(step));
  }
  return nodes;
}

/** The decision when the plan does not cover another goal. */
function outdated(last: Step): Move {
  const { metadata } = finishOfNodes(planNodes(last), notesOf(last));
  return { decision: { kind: 'finish', reason: 'no_path', metadata: { ...metadata, redirected: true } } };
}

function makerOf(given: GraphOptions['plan']): Maker {
  if (typeof given === 'function') return { make: given, isFixed: false };
  if ('plan' in given) return { make: (run) => given.plan(plannerState(run)), isFixed: false };
  // A copy, so that later changes by its owner do no harm.
  const plan = captured(given);
  stepsInOrder(plan);
  return { make: () => plan, isFixed: true };
}

function captured(given: Plan): Plan {
  try {
    return capture<Plan>(given, 'plan').json;
  } catch (cause) {
    throw misconfigured(describeThrown(cause));
  }
}

function checkOptions(options: GraphOptions): void {
  assertOptions('graph', options, OPTIONS);
  const { name = 'graph', version, plan, concurrency, internal, maxSteps } = options;
  assertText(name, 'name');
  if (version !== undefined && typeof version !== 'string')
    throw misconfigured('The version of a planner must be a string.');
  if (internal !== undefined) assertText(internal, 'internal');
  assertCount(concurrency, 'concurrency', MAX_AT_ONCE);
  assertCount(maxSteps, 'maxSteps', MAX_PLAN_BRANCHES);
  if (typeof plan === 'function') return;
  if (typeof plan !== 'object' || plan === null) {
    throw misconfigured(
      'graph needs a plan: { steps } or { nodes, edges }, a function, or an object with plan(state).',
    );
  }
  if ('plan' in plan && typeof plan.plan !== 'function') throw misconfigured('plan.plan must be a function.');
}

function assertText(value: unknown, name: string): void {
  if (typeof value !== 'string' || value === '') throw misconfigured(`${name} must be a non-empty string.`);
}

function assertCount(value: unknown, name: string, most: number): void {
  if (value === undefined || (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= most)) return;
  throw misconfigured(`${name} must be a whole number from 1 to ${most.toLocaleString('en')}.`);
}

function misconfigured(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
