/** Whether what a model gave is a plan that may run: its shape and logic, then what was done before, then the policy. */
import type { Branch, CallParallel } from '../../core/decision.ts';
import { PilotageError } from '../../core/errors.ts';
import { type Json, jsonEquals } from '../../core/json.ts';
import type { RunView } from '../../core/planner.ts';
import { referencesIn } from '../../core/reference.ts';
import type { PlanFault } from '../../core/remark.ts';
import { validateDecision } from '../../core/validate-decision.ts';
import { branchOfStep, planDecision } from '../graph/branches.ts';
import { checkPlan, type PlanRules } from '../graph/check-plan.ts';
import { freshPlanId, type PlanNode } from '../graph/outcome.ts';
import type { ReadyPlan, ReadyStep } from '../graph/plan.ts';
import { policyFaults } from '../graph/policy.ts';
import { withEarlierValues } from '../graph/references.ts';
import type { Work } from './phase.ts';
import type { Judged } from './tries.ts';

export interface Judging {
  readonly run: RunView;
  readonly signal: AbortSignal;
  readonly work: Work;
  readonly maxSteps: number;
  readonly internal?: string;
  readonly concurrency?: number;
}

export async function judgePlan(given: unknown, judging: Judging): Promise<Judged> {
  const { run, signal, work, internal } = judging;
  const checked = checkPlan(given, rulesOf(judging));
  if ('faults' in checked) return { result: 'invalid', faults: checked.faults };
  const left = leaveOutDone({ ...checked.plan, planId: freshPlanId(run, checked.plan.planId) }, work, internal);
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
    ...(internal === undefined ? {} : { internal }),
  };
}

/** The call that carries the plan out. */
export function decisionOf(plan: ReadyPlan, { concurrency, internal }: Judging): CallParallel {
  return planDecision(plan, {
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(internal === undefined ? {} : { internal }),
  });
}

export type Left = { readonly plan: ReadyPlan } | { readonly faults: readonly PlanFault[] };

/** The plan without steps that are done as they stand, and with the results of those in the place of references to them. */
export function leaveOutDone(plan: ReadyPlan, { done }: Work, internal: string | undefined): Left {
  if (done.size === 0) return { plan };
  const faults = plan.steps.flatMap((step) => doneFaults(step, done, internal));
  if (faults.length > 0) return { faults };
  const gone = new Set(plan.steps.flatMap(({ id }) => (done.has(id) ? [id] : [])));
  const steps = plan.steps.filter(({ id }) => !gone.has(id));
  if (steps.length === 0) {
    return { faults: [{ code: 'plan_empty', message: 'All steps of the plan are done already. Plan what is left.' }] };
  }
  const waiting = steps.map((step) => ({ ...step, after: step.after.filter((id) => !gone.has(id)) }));
  try {
    return { plan: withEarlierValues({ ...plan, steps: waiting }, valuesOf(done)) };
  } catch (error) {
    if (!PilotageError.is(error, 'reference_unresolved')) throw error;
    return { faults: [{ code: error.code, message: error.message }] };
  }
}

function valuesOf(done: Work['done']): ReadonlyMap<string, Json> {
  return new Map([...done].map(([id, { value = null }]) => [id, value]));
}

function doneFaults(step: ReadyStep, done: Work['done'], internal: string | undefined): PlanFault[] {
  const { id } = step;
  const before = done.get(id);
  if (before !== undefined) return isSame(branchOfStep(step, internal), before, done) ? [] : [reused(id)];
  const needed = step.when?.step;
  // The route was taken with the plan before; its result cannot decide again.
  if (needed !== undefined && done.has(needed)) return [decided(id, needed)];
  const large = [...referencesIn(step.input ?? null)].filter((name) => done.get(name)?.artifact !== undefined);
  return large.map((name) => tooLarge(id, name));
}

/** The same call, with its references as they were written or with what they stood for. */
function isSame({ tool, args }: Branch, { branch }: PlanNode, done: Work['done']): boolean {
  if (tool !== branch.tool) return false;
  if (jsonEquals(args, branch.args)) return true;
  const now = resolved(args, done);
  return now !== undefined && jsonEquals(now, resolved(branch.args, done));
}

function resolved(args: Json, done: Work['done']): Json | undefined {
  const step = { id: '', type: 'tool', input: args, after: [] } as const;
  try {
    return withEarlierValues({ planId: '', steps: [step] }, valuesOf(done)).steps[0]?.input;
  } catch (error) {
    if (PilotageError.is(error, 'reference_unresolved')) return undefined;
    throw error;
  }
}

function reused(id: string): PlanFault {
  const message = `The step ${JSON.stringify(id)} is done already, with other content. Give a new step an id of its own.`;
  return { code: 'step_done', message, step: id };
}

function decided(id: string, needed: string): PlanFault {
  const message = `The step ${JSON.stringify(id)} has a condition on ${JSON.stringify(needed)}, which is done: its result is known. Leave the condition out, or the step.`;
  return { code: 'step_done', message, step: id };
}

function tooLarge(id: string, needed: string): PlanFault {
  const message = `The step ${JSON.stringify(id)} refers to ${JSON.stringify(needed)}, whose result is too large to be passed on. Read it from its artifact.`;
  return { code: 'reference_unresolved', message, step: id };
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
