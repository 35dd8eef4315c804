/** From what a maker gave to a move: checked, allowed by the policy, and with what earlier steps came to. */
import { type Decision, defined, type Move, type RunView } from '#core';
import { branchOfStep, isAnew, type PlanHow, planDecision } from './branches.ts';
import { checkPlan, planInvalid } from './check-plan.ts';
import { earlierPlaces, freshPlanId } from './outcome.ts';
import type { ReadyPlan, ReadyStep } from './plan.ts';
import { policyFaults } from './policy.ts';
import { boundToEarlier, wholeArgs } from './references.ts';

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
