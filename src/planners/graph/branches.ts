/** A plan as the one parallel call that carries it out. */
import { type Branch, type CallParallel, defined, FINISH_TOOL, type Json, MESSAGE_TOOL, type RunView } from '#core';
import type { ReadyPlan, ReadyStep } from './plan.ts';

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
