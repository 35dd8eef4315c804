/** The program's rule about calls, asked about the steps of a plan before any of them runs. */
import { describeThrown, FINISH_TOOL, MESSAGE_TOOL, type PlanFault, type RunView, type ToolPolicy } from '#core';
import { branchOfStep } from './branches.ts';
import { fault } from './given-plan.ts';
import type { PlanStepType, ReadyPlan, ReadyStep } from './plan.ts';
import { knownArgs } from './references.ts';

/**
 * Asks the policy of the run, if it has one, about every call of the plan; one that throws, or gives anything but `true`,
 * forbids it. Message and finish steps are not calls. Faults have the code `plan_forbidden` and the order of the
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
  const verdicts = await Promise.all(
    steps.map((step) => {
      const { tool, args } = branchOfStep(step, internal);
      if (tool === MESSAGE_TOOL || tool === FINISH_TOOL) return undefined;
      return whyForbidden(policy, { tool, args: knownArgs(args, run), identity: run.identity }, signal);
    }),
  );
  return steps.flatMap((step, index) => {
    const why = verdicts[index];
    return why === undefined ? [] : [forbidden(step, why)];
  });
}

async function whyForbidden(policy: ToolPolicy, ...asked: Parameters<ToolPolicy>): Promise<string | undefined> {
  try {
    const verdict: unknown = await policy(...asked);
    if (verdict === true) return undefined;
    return typeof verdict === 'string' && verdict !== '' ? verdict : 'the policy does not allow it.';
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
