/** A plan as the one parallel call that carries it out. */
import { FINISH_TOOL, MESSAGE_TOOL } from '../../core/builtin-tools.ts';
import type { Branch, CallParallel } from '../../core/decision.ts';
import type { Json } from '../../core/json.ts';
import type { ReadyPlan, ReadyStep } from './plan.ts';

/** @param internal the tool that carries out `internal` steps. */
export function branchesOfPlan({ steps }: Pick<ReadyPlan, 'steps'>, internal?: string): readonly Branch[] {
  return steps.map((step) => branchOfStep(step, internal));
}

export function branchOfStep(step: ReadyStep, internal?: string): Branch {
  const { id, after, when } = step;
  return {
    id,
    ...callOfStep(step, internal),
    ...(after.length === 0 ? {} : { after }),
    ...(when === undefined ? {} : { when: { branch: when.step, equals: when.equals } }),
  };
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
      return { tool: internal ?? '', args: { id, input: input ?? null, ...(meta === undefined ? {} : { meta }) } };
    default:
      return type satisfies never;
  }
}

export interface PlanHow {
  /** Steps that may run at once. Default 8, at most 50. */
  readonly concurrency?: number;
  readonly internal?: string;
}

export function planDecision(plan: ReadyPlan, { concurrency, internal }: PlanHow = {}): CallParallel {
  return {
    kind: 'call_parallel',
    plan: plan.planId,
    branches: branchesOfPlan(plan, internal),
    onInvalid: 'per_branch',
    ...(concurrency === undefined ? {} : { concurrency }),
  };
}
