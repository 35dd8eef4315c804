/** The planner that takes over when the models gave no plan. Its plan is checked like theirs, and forbidden calls stay forbidden. */
import {
  asJson,
  type Branch,
  branchesOf,
  branchId,
  type Decision,
  type Delta,
  defined,
  FINISH_TOOL,
  type Finish,
  isPlan,
  isTaskTool,
  type JsonObject,
  MESSAGE_TOOL,
  type Move,
  type PlanFault,
  type Planner,
  type RunView,
  type SpokenDelta,
} from '#core';
import { askFallback } from '#planners';
import { checkPlan, policyFaults, type ReadyStep } from '#plans';
import type { PipelineOptions } from './options.ts';

/**
 * Its move, marked as its own. It is checked before anything of it runs, so what it says on the way is passed on, and what it
 * plans on the way is not: the move has that too.
 * @param before what led to it: remarks and usage.
 */
export async function* fallBack(
  fallback: Planner,
  before: Move,
  run: RunView,
  signal: AbortSignal,
  options: PipelineOptions,
): AsyncGenerator<SpokenDelta, Move> {
  const move = yield* spokenOnly(askFallback(fallback, before, run, signal));
  signal.throwIfAborted();
  if (move.fault !== undefined) return move;
  const invalid = planFaults(move.decision, run, options);
  if (invalid.length > 0) return { ...move, decision: refusedPlan('no_path', 'pipeline.fallback', invalid) };
  const forbidden = await forbiddenIn(move.decision, run, signal);
  if (forbidden.length === 0) return move;
  return { ...move, decision: refusedPlan('constraints_conflict', 'pipeline.policy', forbidden) };
}

async function* spokenOnly(deltas: AsyncGenerator<Delta, Move>): AsyncGenerator<SpokenDelta, Move> {
  try {
    for (;;) {
      const { value, done } = await deltas.next();
      if (done === true) return value;
      if (value.type !== 'branches') yield value;
    }
  } finally {
    await deltas.return(undefined as never);
  }
}

const MAX_FAULTS = 50;

/** A clear end, with what is wrong. */
export function refusedPlan(reason: Finish['reason'], via: string, faults: readonly PlanFault[]): Finish {
  const shown = faults.slice(0, MAX_FAULTS).map(
    ({ code, message, step, path }): JsonObject => ({
      code,
      message,
      ...defined({ step, path }),
    }),
  );
  return { kind: 'finish', reason, metadata: { via, faults: shown } };
}

/** Only for plans: the runtime tells the planner of other calls by their outcomes. */
function planFaults(
  decision: Decision,
  { tools }: RunView,
  { internal, maxSteps }: PipelineOptions,
): readonly PlanFault[] {
  if (!isPlan(decision)) return [];
  const { branches, plan: planId } = decision;
  const steps = branches.filter(isOurs).map((branch) => asJson(stepOf(branch, branches.indexOf(branch))));
  const rules = {
    tools,
    ...defined({ internal, maxSteps }),
  };
  const checked = checkPlan({ planId, steps }, rules);
  return 'faults' in checked ? checked.faults : [];
}

function forbiddenIn(decision: Decision, run: RunView, signal: AbortSignal): Promise<readonly PlanFault[]> {
  const steps = branchesOf(decision).flatMap((branch, index) => (isMade(branch) ? [stepOf(branch, index)] : []));
  return policyFaults({ steps }, run, signal);
}

/** A call that is refused already is never made. */
function isMade({ refusal }: Branch): boolean {
  return refusal === undefined;
}

/** Tasks are for the runtime to judge. */
function isOurs(branch: Branch): boolean {
  return isMade(branch) && !isTaskTool(branch.tool);
}

function stepOf(branch: Branch, index: number): ReadyStep {
  const { tool, args, after = [], behind, when } = branch;
  const id = branchId(branch, index);
  const placed = {
    id,
    input: args,
    after,
    ...defined({ behind }),
    ...(when === undefined ? {} : { when: { step: when.branch, equals: when.equals } }),
  };
  if (tool === MESSAGE_TOOL) return { ...placed, type: 'message' };
  if (tool === FINISH_TOOL) return { ...placed, type: 'finish' };
  return { ...placed, type: 'tool', toolId: tool };
}
