/** From what a maker gave to a move: checked, allowed by the policy, and with what earlier steps came to. */
import type { Decision } from '../../core/decision.ts';
import type { Move, RunView } from '../../core/planner.ts';
import { branchOfStep, type PlanHow, planDecision } from './branches.ts';
import { checkPlan, planInvalid } from './check-plan.ts';
import { earlierValues, freshPlanId } from './outcome.ts';
import type { ReadyPlan, ReadyStep } from './plan.ts';
import { policyFaults } from './policy.ts';
import { withEarlierValues } from './references.ts';

export interface MoveRules extends PlanHow {
  readonly maxSteps?: number;
}

/** The whole plan as one move. @throws PilotageError `plan_invalid` with all that is wrong. */
export async function planMove(given: unknown, rules: MoveRules, run: RunView, signal: AbortSignal): Promise<Move> {
  const ready = await readyPlan(given, rules, run, signal);
  const plan = { ...ready, planId: freshPlanId(run, ready.planId) };
  return { decision: planDecision(plan, rules), provenance: { planner: 'graph', plan: plan.planId } };
}

/** A step by itself. @throws PilotageError `plan_invalid`. */
export async function stepMove(
  given: unknown,
  rules: MoveRules,
  run: RunView,
  signal: AbortSignal,
  planner: string,
): Promise<Move> {
  const plan = await readyPlan({ steps: [given] }, rules, run, signal);
  const provenance = { planner, step: plan.steps[0]?.id ?? '' };
  return { decision: decisionOf(plan, run, rules), provenance };
}

function decisionOf(plan: ReadyPlan, run: RunView, how: PlanHow): Decision {
  const step = plan.steps[0] as ReadyStep;
  const { tool, args } = branchOfStep(step, how.internal);
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
): Promise<ReadyPlan> {
  const values = earlierValues(run);
  const checked = checkPlan(given, {
    tools: run.tools,
    earlier: new Set(values.keys()),
    ...(internal === undefined ? {} : { internal }),
    ...(maxSteps === undefined ? {} : { maxSteps }),
  });
  if ('faults' in checked) throw planInvalid(checked.faults);
  // The policy judges what will be carried out.
  const plan = withEarlierValues(checked.plan, values);
  const forbidden = run.tools.policy === undefined ? [] : await policyFaults(plan, run, signal, internal);
  if (forbidden.length > 0) throw planInvalid(forbidden);
  return plan;
}
