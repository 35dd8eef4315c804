/** The program's rule about calls, asked about the steps of a plan before any of them runs. */
import { FINISH_TOOL, MESSAGE_TOOL } from '../../core/builtin-tools.ts';
import type { Branch } from '../../core/decision.ts';
import type { RunView } from '../../core/planner.ts';
import type { ToolPolicy } from '../../core/policy.ts';
import { branchOfStep } from '../graph/branches.ts';
import type { PlanPolicy } from '../graph/check-plan.ts';

/** What a step says, and how a plan ends, is no call. @param internal the tool that carries out `internal` steps. */
export function planPolicy(policy: ToolPolicy, signal: AbortSignal, internal?: string): PlanPolicy {
  return (step, run) => verdictOn(branchOfStep(step, internal), policy, run, signal);
}

function verdictOn(
  { tool, args }: Branch,
  policy: ToolPolicy,
  { identity }: RunView,
  signal: AbortSignal,
): ReturnType<ToolPolicy> {
  if (tool === MESSAGE_TOOL || tool === FINISH_TOOL) return true;
  return policy({ tool, args, identity }, signal);
}
