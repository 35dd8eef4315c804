/** The program's rule about calls, asked about the steps of a plan before any of them runs. */
import { FINISH_TOOL, MESSAGE_TOOL } from '../../core/builtin-tools.ts';
import type { ToolPolicy } from '../../core/policy.ts';
import { branchOfStep } from './branches.ts';
import type { PlanPolicy } from './check-plan.ts';

/** What a step says, and how a plan ends, is no call. @param internal the tool that carries out `internal` steps. */
export function planPolicy(policy: ToolPolicy, signal: AbortSignal, internal?: string): PlanPolicy {
  return (step, { identity }) => {
    const { tool, args } = branchOfStep(step, internal);
    return tool === MESSAGE_TOOL || tool === FINISH_TOOL ? true : policy({ tool, args, identity }, signal);
  };
}
