/**
 * Whether a plan can be carried out. Everything that is wrong is told at once, and nothing but a plan in which nothing is
 * wrong is given on.
 */
import { defined, PilotageError, type PlanFault } from '#core';
import { type StepRules, stepFaults } from './check-step.ts';
import { fault, type GivenPlan, type GivenStep, readGivenPlan } from './given-plan.ts';
import { type Links, linkSteps } from './links.ts';
import { orderAndCycles, pairsOutOfOrder, stepsBehind } from './order.ts';
import type { ReadyPlan, ReadyStep } from './plan.ts';

export { PLAN_SCHEMA } from './plan-schema.ts';

/** Default of `maxSteps`. */
export const MAX_PLAN_STEPS = 1_000;

export interface PlanRules extends StepRules {
  /** Default 1,000. */
  readonly maxSteps?: number;
  /** Ids of steps of earlier plans of the run that have a value: references to them are fine. */
  readonly earlier?: ReadonlySet<string>;
  /** The id of a plan that names none. Default `plan`. */
  readonly planId?: string;
}

export type CheckedPlan = { readonly plan: ReadyPlan } | { readonly faults: readonly PlanFault[] };

const NONE: ReadonlySet<string> = new Set();

/** Never throws, for any value. The same plan gives the same faults in the same order. */
export function checkPlan(given: unknown, rules: PlanRules): CheckedPlan {
  const { maxSteps = MAX_PLAN_STEPS, earlier = NONE, planId = 'plan' } = rules;
  const read = readGivenPlan(given);
  const count = read.steps.length;
  const long = `The plan has ${count} steps; at most ${maxSteps} are allowed.`;
  const faults = count > maxSteps ? [fault('plan_too_long', long)] : [];
  const ordered = orderGiven(read, earlier);
  faults.push(...read.faults, ...read.steps.flatMap((step) => stepFaults(step, rules)), ...ordered.faults);
  return faults.length > 0 ? { faults } : { plan: { planId: read.planId ?? planId, steps: ordered.steps } };
}

/** The steps of a plan in an order in which they can be carried out. Tools are not checked. @throws PilotageError `plan_invalid`. */
export function stepsInOrder(given: unknown): readonly ReadyStep[] {
  const read = readGivenPlan(given);
  const { steps, faults } = orderGiven(read, NONE);
  if (read.faults.length + faults.length > 0) throw planInvalid([...read.faults, ...faults]);
  return steps;
}

interface Ordered {
  /** Empty when there are faults. */
  readonly steps: readonly ReadyStep[];
  readonly faults: readonly PlanFault[];
}

function orderGiven(given: GivenPlan, earlier: ReadonlySet<string>): Ordered {
  const { steps } = given;
  const links = linkSteps(given, earlier);
  const { before } = links;
  const { order, cycles } = orderAndCycles(before);
  const faults = [
    ...links.faults,
    ...cycles.map((cycle) => cycleFault(cycle, steps)),
    ...unreachable(steps, links, cycles),
    ...(cycles.length === 0 ? outOfOrder(links, order, steps) : []),
  ];
  if (faults.length > 0 || given.faults.length > 0) return { steps: [], faults };
  return { steps: order.flatMap((index) => readyStep(index, steps, links)), faults };
}

function readyStep(index: number, steps: readonly GivenStep[], links: Links): ReadyStep[] {
  const { name: _, behind: __, ...step } = steps[index] as GivenStep;
  const { id, type } = step;
  // Both are there: that they are not is a fault.
  if (id === undefined || type === undefined) return [];
  const idsOf = (needs: readonly number[]): string[] => needs.flatMap((need) => steps[need]?.id ?? []);
  const after = idsOf(strictBefore(links, index));
  const behind = idsOf(links.behind[index] ?? []);
  return [{ ...step, id, type, after, ...(behind.length === 0 ? {} : { behind }) }];
}

/** Those without which the step is not run. */
function strictBefore({ before, behind }: Links, index: number): readonly number[] {
  const loose = behind[index] ?? [];
  const all = before[index] ?? [];
  return loose.length === 0 ? all : all.filter((need) => !loose.includes(need));
}

function cycleFault(cycle: readonly number[], steps: readonly GivenStep[]): PlanFault {
  const path = cycle.map((index) => steps[index]?.name ?? '');
  const message = `The steps wait for each other in a cycle: ${path.map((id) => JSON.stringify(id)).join(' → ')}.`;
  return fault('plan_cycle', message, path[0], path);
}

/** Steps that would never have their turn: behind the end of the plan, or behind steps that wait for each other. */
function unreachable(steps: readonly GivenStep[], links: Links, cycles: readonly (readonly number[])[]): PlanFault[] {
  const { before } = links;
  const finishes = new Set(steps.flatMap(({ type }, index) => (type === 'finish' ? [index] : [])));
  const inCycle = new Set(cycles.flat());
  // A finish with a condition may be passed over: what is merely written behind it has its turn then.
  const strict = before.map((_, index) => strictBefore(links, index));
  const behind = new Set([...stepsBehind(strict, [...finishes]), ...stepsBehind(before, [...inCycle])]);
  return [...behind]
    .sort((a, b) => a - b)
    .flatMap((index) => {
      if (inCycle.has(index)) return [];
      const { id, name } = steps[index] as GivenStep;
      if (strict[index]?.some((need) => finishes.has(need)) === true) {
        return [fault('after_finish', `The step ${name} comes after a finish, which ends the plan.`, id)];
      }
      return [fault('step_unreachable', `The step ${name} is never reached: what comes before it cannot run.`, id)];
    });
}

function outOfOrder({ before, distant }: Links, order: readonly number[], steps: readonly GivenStep[]): PlanFault[] {
  return pairsOutOfOrder(before, order, distant).map(({ step, earlier }) => {
    const [name, other] = [steps[step]?.name ?? '', steps[earlier]?.name ?? ''];
    const message = `The step ${JSON.stringify(name)} refers to ${JSON.stringify(other)}, which by the edges does not come before it.`;
    return fault('reference_not_before', message, name);
  });
}

const MAX_SHOWN = 20;

/** The error of a plan that cannot be carried out; `data.faults` has the faults. */
export function planInvalid(faults: readonly PlanFault[]): PilotageError {
  const more = faults.length > MAX_SHOWN ? ` And ${faults.length - MAX_SHOWN} more.` : '';
  const shown = faults.slice(0, MAX_SHOWN);
  const message = `The plan cannot be carried out. ${shown.map(({ message: said }) => said).join(' ')}${more}`;
  const data = shown.map(({ code, message: said, step, path }) => ({
    code,
    message: said,
    ...defined({ step, path }),
  }));
  return new PilotageError('plan_invalid', message, { data: { faults: data } });
}
