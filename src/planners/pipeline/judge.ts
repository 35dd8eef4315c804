/** Whether what a model gave is a plan that may run: its shape and logic, then what was done before, then the policy. */
import {
  type Branch,
  type CallParallel,
  defined,
  jsonEquals,
  mapReferences,
  PilotageError,
  type PlanFault,
  type Reference,
  type RunView,
  validateDecision,
} from '#core';
import {
  boundToEarlier,
  branchOfStep,
  checkPlan,
  freshPlanId,
  isAnew,
  knownArgs,
  type PlanNode,
  type PlanRules,
  placesOf,
  planDecision,
  policyFaults,
  type ReadyPlan,
  type ReadyStep,
} from '#plans';
import type { GoalProgress } from './phase.ts';
import type { Judged } from './tries.ts';

export interface Judging {
  readonly run: RunView;
  readonly signal: AbortSignal;
  readonly work: GoalProgress;
  readonly maxSteps: number;
  readonly internal?: string;
  readonly concurrency?: number;
}

export async function judgePlan(given: unknown, judging: Judging): Promise<Judged> {
  const { run, signal, internal } = judging;
  const checked = checkPlan(given, rulesOf(judging));
  if ('faults' in checked) return { result: 'invalid', faults: checked.faults };
  const left = leaveOutDone({ ...checked.plan, planId: freshPlanId(run, checked.plan.planId) }, judging);
  if ('faults' in left) return { result: 'invalid', faults: left.faults };
  const { plan } = left;
  const refused = refusalOf(plan, judging);
  if (refused !== undefined) return { result: 'invalid', faults: [refused] };
  const forbidden = await policyFaults(plan, run, signal, internal);
  return forbidden.length > 0 ? { result: 'forbidden', faults: forbidden } : { result: 'valid', faults: [], plan };
}

/** The rules by which a plan, or one step of it, is checked. @param known steps of the same plan that are known already. */
export function rulesOf({ run, work, maxSteps, internal }: Judging, known: Iterable<string> = []): PlanRules {
  return {
    tools: run.tools,
    maxSteps,
    earlier: new Set([...work.done.keys(), ...known]),
    ...defined({ internal }),
  };
}

/** The call that carries the plan out. */
export function decisionOf(plan: ReadyPlan, { run, concurrency, internal }: Judging): CallParallel {
  return planDecision(plan, {
    isAnew: isAnew(run),
    ...defined({ concurrency, internal }),
  });
}

export type Left = { readonly plan: ReadyPlan } | { readonly faults: readonly PlanFault[] };

/** The plan without steps that are done as they stand; references to those are bound to where their results are. */
export function leaveOutDone(plan: ReadyPlan, judging: Judging): Left {
  const { run, work } = judging;
  const { done } = work;
  if (done.size === 0) return { plan };
  const again = new Set(plan.steps.flatMap((step) => (step.again === true ? [step.id] : [])));
  const faults = plan.steps.flatMap((step) => doneFaults(step, again, judging));
  if (faults.length > 0) return { faults };
  const gone = new Set(plan.steps.flatMap(({ id }) => (done.has(id) && !again.has(id) ? [id] : [])));
  const steps = plan.steps.filter(({ id }) => !gone.has(id));
  if (steps.length === 0) {
    return { faults: [{ code: 'plan_empty', message: 'All steps of the plan are done already. Plan what is left.' }] };
  }
  const waiting = steps.map(({ behind, ...step }): ReadyStep => {
    const left = behind?.filter((id) => !gone.has(id)) ?? [];
    const after = step.after.filter((id) => !gone.has(id));
    return { ...step, after, ...(left.length === 0 ? {} : { behind: left }) };
  });
  try {
    return { plan: boundToEarlier({ ...plan, steps: waiting }, placesOf(done.values()), run) };
  } catch (error) {
    if (!PilotageError.is(error, 'reference_unresolved')) throw error;
    return { faults: [{ code: error.code, message: error.message }] };
  }
}

/** @param again steps that are to be done once more. */
function doneFaults(
  step: ReadyStep,
  again: ReadonlySet<string>,
  { run, work: { done }, internal }: Judging,
): PlanFault[] {
  const { id } = step;
  const before = again.has(id) ? undefined : done.get(id);
  if (before !== undefined) return isSame(branchOfStep(step, internal), before, done, run) ? [] : [reused(id)];
  const needed = step.when?.step;
  // The route was taken with the plan before; its result cannot decide again.
  return needed !== undefined && done.has(needed) && !again.has(needed) ? [decided(id, needed)] : [];
}

/** Whether two calls are the same, with references as they were written or with their values. */
function isSame(
  { tool, args }: Branch,
  { branch, step, index }: PlanNode,
  done: GoalProgress['done'],
  run: RunView,
): boolean {
  if (tool !== branch.tool) return false;
  if (jsonEquals(args, branch.args)) return true;
  // What a person has put in their place is what the model is shown.
  const given = run.trajectory.step(step)?.given?.find(({ call }) => call === index);
  if (given !== undefined && jsonEquals(args, given.args)) return true;
  try {
    const now = mapReferences(args, (reference) => boundTo(reference, done.get(reference.$from)?.step));
    const then = mapReferences(branch.args, (reference) => boundTo(reference, step));
    return jsonEquals(knownArgs(now, run), knownArgs(then, run));
  } catch (error) {
    if (PilotageError.is(error, 'reference_unresolved')) return false;
    throw error;
  }
}

function boundTo(reference: Reference, step: number | undefined): Reference {
  return reference.step !== undefined || step === undefined ? reference : { ...reference, step };
}

function reused(id: string): PlanFault {
  const message = `The step ${JSON.stringify(id)} is done already, with other content. Give a new step an id of its own.`;
  return { code: 'step_done', message, step: id };
}

function decided(id: string, needed: string): PlanFault {
  const message = `The step ${JSON.stringify(id)} has a condition on ${JSON.stringify(needed)}, which is done: its result is known. Leave the condition out, or the step.`;
  return { code: 'step_done', message, step: id };
}

/** What the runtime would not take. */
function refusalOf(plan: ReadyPlan, judging: Judging): PlanFault | undefined {
  try {
    validateDecision(decisionOf(plan, judging));
    return undefined;
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    return { code: 'plan_shape', message: error.message };
  }
}
