/** From a plan to a move: its steps as the branches of one call, the policy asked about each, and what earlier steps came to. */
import {
  type Branch,
  type CallParallel,
  type Decision,
  defined,
  describeThrown,
  FINISH_TOOL,
  type Json,
  MESSAGE_TOOL,
  type Move,
  type PlanFault,
  policyView,
  type RunView,
  readPolicyAnswer,
  type ToolPolicy,
} from '#core';
import { checkPlan, planInvalid } from './check-plan.ts';
import { fault } from './given-plan.ts';
import { boundToEarlier, earlierPlaces, freshPlanId, knownArgs, wholeArgs } from './outcome.ts';
import type { PlanStepType, ReadyPlan, ReadyStep } from './plan.ts';

/**
 * @param internal the tool that carries out `internal` steps.
 * @param isAnew the run has done something already, which the plan is not to do again.
 */
export function branchesOfPlan(
  { steps }: Pick<ReadyPlan, 'steps'>,
  internal?: string,
  isAnew: boolean = false,
): readonly Branch[] {
  return steps.map((step) => branchOfStep(step, internal, isAnew));
}

export function branchOfStep(step: ReadyStep, internal?: string, isAnew: boolean = false): Branch {
  const { id, after, behind = [], when, type, again } = step;
  const reuses = isAnew && again !== true && (type === 'tool' || type === 'internal');
  return {
    id,
    ...callOfStep(step, internal),
    ...(after.length === 0 ? {} : { after }),
    ...(behind.length === 0 ? {} : { behind }),
    ...(when === undefined ? {} : { when: { branch: when.step, equals: when.equals } }),
    ...(reuses ? { reuse: true } : {}),
  };
}

/** A plan that is made now finds something done. */
export function isAnew({ trajectory }: RunView): boolean {
  return trajectory.count > 0;
}

function callOfStep(step: ReadyStep, internal: string | undefined): { readonly tool: string; readonly args: Json } {
  const { id, type, toolId = '', input, meta } = step;
  switch (type) {
    case 'tool':
      return { tool: toolId, args: input ?? {} };
    case 'message':
      return { tool: MESSAGE_TOOL, args: input ?? '' };
    case 'finish':
      return { tool: FINISH_TOOL, args: input ?? null };
    case 'internal':
      return { tool: internal ?? '', args: { id, input: input ?? null, ...defined({ meta }) } };
    default:
      return type satisfies never;
  }
}

export interface PlanHow {
  /** Steps that may run at once. Default and at most 50. */
  readonly concurrency?: number;
  readonly internal?: string;
  /** The run has done something already, which the plan is not to do again. Default false. */
  readonly isAnew?: boolean;
}

export function planDecision(plan: ReadyPlan, { concurrency, internal, isAnew = false }: PlanHow = {}): CallParallel {
  return {
    kind: 'call_parallel',
    plan: plan.planId,
    branches: branchesOfPlan(plan, internal, isAnew),
    onInvalid: 'per_branch',
    ...defined({ concurrency }),
  };
}

/**
 * Asks the policy of the run, if it has one, about every call of the plan. A policy that throws, or gives no answer that counts, forbids
 * it. Message and finish steps are not calls. Faults have the code `plan_forbidden` and the order of the
 * steps.
 * @param internal the tool that carries out `internal` steps.
 */
export async function policyFaults(
  { steps }: Pick<ReadyPlan, 'steps'>,
  run: RunView,
  signal: AbortSignal,
  internal?: string,
): Promise<readonly PlanFault[]> {
  const { policy } = run.tools;
  if (policy === undefined) return [];
  const { identity, agent, context, query, goal, budget, trajectory } = run;
  const { meta = {} } = context;
  const view = policyView({ identity, agent, meta, query, goal, budget, steps: () => trajectory.steps });
  const verdicts = await Promise.all(
    steps.map((step) => {
      const { tool, args } = branchOfStep(step, internal);
      if (tool === MESSAGE_TOOL || tool === FINISH_TOOL) return undefined;
      return whyForbidden(policy, { tool, args: knownArgs(args, run) }, view, signal);
    }),
  );
  return steps.flatMap((step, index) => {
    const why = verdicts[index];
    return why === undefined ? [] : [forbidden(step, why)];
  });
}

async function whyForbidden(policy: ToolPolicy, ...asked: Parameters<ToolPolicy>): Promise<string | undefined> {
  try {
    const answer = readPolicyAnswer(await policy(...asked));
    // What has to be asked is asked when the call's turn comes.
    return answer.kind === 'deny' ? answer.why : undefined;
  } catch (cause) {
    return `the policy failed: ${describeThrown(cause)}`;
  }
}

function forbidden({ id, type, toolId }: ReadyStep, why: string): PlanFault {
  return fault('plan_forbidden', `The step ${JSON.stringify(id)} (${whatOf(type, toolId)}) is forbidden: ${why}`, id);
}

function whatOf(type: PlanStepType, toolId: string | undefined): string {
  return type === 'tool' && toolId !== undefined ? toolId : type;
}

export interface MoveRules extends PlanHow {
  readonly maxSteps?: number;
}

/** The whole plan as one move. @throws PilotageError `plan_invalid` with all that is wrong. */
export async function planMove(given: unknown, rules: MoveRules, run: RunView, signal: AbortSignal): Promise<Move> {
  const ready = await readyPlan(given, rules, run, signal, false);
  const plan = { ...ready, planId: freshPlanId(run, ready.planId) };
  return {
    decision: planDecision(plan, { ...rules, isAnew: isAnew(run) }),
    provenance: { planner: 'graph', plan: plan.planId },
  };
}

/** A step by itself. @throws PilotageError `plan_invalid`. */
export async function stepMove(
  given: unknown,
  rules: MoveRules,
  run: RunView,
  signal: AbortSignal,
  planner: string,
): Promise<Move> {
  const plan = await readyPlan({ steps: [given] }, rules, run, signal, true);
  const provenance = { planner, step: plan.steps[0]?.id ?? '' };
  return { decision: decisionOf(plan, run, rules), provenance };
}

function decisionOf(plan: ReadyPlan, run: RunView, how: PlanHow): Decision {
  const step = plan.steps[0] as ReadyStep;
  const { tool, args: written } = branchOfStep(step, how.internal);
  const args = wholeArgs(written, run);
  switch (step.type) {
    case 'tool':
    case 'internal':
      return { kind: 'call_tool', tool, args };
    case 'finish':
      return { kind: 'finish', reason: 'goal', payload: args };
    case 'message':
      // What is said to the user is recorded, and shown once: only a plan can do that.
      return planDecision({ ...plan, planId: freshPlanId(run, `step-${run.trajectory.count}`) });
    default:
      return step.type satisfies never;
  }
}

async function readyPlan(
  given: unknown,
  { internal, maxSteps }: MoveRules,
  run: RunView,
  signal: AbortSignal,
  isAlone: boolean,
): Promise<ReadyPlan> {
  // A call that stands alone has its values from the start; nobody looks them up in the store.
  const places = earlierPlaces(run, isAlone);
  const checked = checkPlan(given, {
    tools: run.tools,
    earlier: new Set(places.keys()),
    ...defined({ internal, maxSteps }),
  });
  if ('faults' in checked) throw planInvalid(checked.faults);
  const plan = boundToEarlier(checked.plan, places, run);
  const forbidden = run.tools.policy === undefined ? [] : await policyFaults(plan, run, signal, internal);
  if (forbidden.length > 0) throw planInvalid(forbidden);
  return plan;
}
