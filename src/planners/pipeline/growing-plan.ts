/**
 * A plan of which the steps come one by one. Each is checked when it comes, and may run when all that it waits for is there.
 * Where nothing is said of order it is as in a whole plan: steps follow one another until one says what it waits for, a message
 * comes after all before it, and a finish after everything. A finish is held back until the plan is whole.
 */
import { MESSAGE_TOOL } from '../../core/builtin-tools.ts';
import type { Branch, CallParallel } from '../../core/decision.ts';
import { PilotageError } from '../../core/errors.ts';
import { isJsonObject, type Json, jsonEquals } from '../../core/json.ts';
import { referencesIn } from '../../core/reference.ts';
import type { PlanFault } from '../../core/remark.ts';
import { validateDecision } from '../../core/validate-decision.ts';
import { branchOfStep, isAnew } from '../graph/branches.ts';
import { checkPlan } from '../graph/check-plan.ts';
import type { ReadyStep } from '../graph/plan.ts';
import { policyFaults } from '../graph/policy.ts';
import { type Judging, leaveOutDone, rulesOf } from './judge.ts';

/** What one line has brought. */
export interface Grown {
  /** Branches that may start now; the order in which they are given is the order of the plan. */
  readonly ready: readonly Branch[];
  readonly faults: readonly PlanFault[];
}

interface Known {
  /** As it was given. */
  readonly given: Json;
  readonly step: ReadyStep;
}

export class GrowingPlan {
  readonly planId: string;
  readonly #judging: Judging;
  readonly #known = new Map<string, Known>();
  readonly #branches: Branch[] = [];
  readonly #given = new Set<string>();
  #waiting: ReadyStep[] = [];
  #finishes: ReadyStep[] = [];
  /** Finish steps that do not say what they come after: they come after everything. */
  readonly #loose = new Set<string>();
  /** Steps of this reply. */
  readonly #fresh = new Set<string>();
  /** Steps behind which none stands yet. */
  readonly #ends = new Set<string>();
  #last: string | undefined;
  #hasOrder = false;

  constructor(planId: string, judging: Judging) {
    this.planId = planId;
    this.#judging = judging;
  }

  /** Branches that were given so far. */
  get size(): number {
    return this.#branches.length;
  }

  /** Steps that are good, whether they were given or not. */
  get kept(): readonly Json[] {
    return [...this.#known.values()].map(({ given }) => given);
  }

  get decision(): CallParallel {
    const { concurrency } = this.#judging;
    return {
      kind: 'call_parallel',
      plan: this.planId,
      branches: [...this.#branches],
      onInvalid: 'per_branch',
      ...(concurrency === undefined ? {} : { concurrency }),
    };
  }

  async take(given: Json): Promise<Grown> {
    const checked = this.#check(given);
    if ('faults' in checked) return { ready: [], faults: checked.faults };
    const { step } = checked;
    if (step === undefined) return NOTHING;
    const { run, signal, internal, maxSteps } = this.#judging;
    if (this.#known.size >= maxSteps) return bad('plan_too_long', `The plan has more than ${maxSteps} steps.`, step.id);
    const forbidden = await policyFaults({ steps: [step] }, run, signal, internal);
    if (forbidden.length > 0) return { ready: [], faults: forbidden };
    this.#drop(step.id);
    this.#known.set(step.id, { given, step });
    this.#fresh.add(step.id);
    if (step.type === 'finish') {
      this.#finishes.push(step);
      if (!saysOrder(given)) this.#loose.add(step.id);
      return NOTHING;
    }
    for (const id of step.after) this.#ends.delete(id);
    this.#ends.add(step.id);
    this.#last = step.id;
    this.#waiting.push(step);
    return { ready: this.#release(), faults: [] };
  }

  /** Another reply begins. What waits still may be given again in it, with other content. */
  begin(): void {
    this.#fresh.clear();
  }

  /**
   * Nothing more comes for now. What is still waited for is missing; when nothing is, the finish steps are given.
   * @param isWhole nothing was wrong with what came; otherwise that is why steps are missing, and the plan goes on.
   */
  end(isWhole: boolean): Grown {
    const stuck = this.#stuck();
    if (!isWhole) return { ready: [], faults: stuck.filter(({ code }) => !MISSING.has(code)) };
    if (stuck.length > 0) return { ready: [], faults: stuck };
    if (this.#known.size === 0) return bad('plan_empty', 'The plan has no steps.');
    return { ready: this.#releaseFinishes(), faults: [] };
  }

  /** @returns no step for one that is known, or done, as it stands. */
  #check(given: Json): { readonly step: ReadyStep | undefined } | { readonly faults: readonly PlanFault[] } {
    const { work } = this.#judging;
    const id = isJsonObject(given) ? given['id'] : undefined;
    const before = typeof id === 'string' ? this.#known.get(id) : undefined;
    if (before !== undefined && jsonEquals(before.given, given)) return { step: undefined };
    if (before !== undefined && (this.#fresh.has(before.step.id) || this.#given.has(before.step.id))) {
      return bad('step_id_duplicate', `Two steps have the id ${JSON.stringify(id)}.`, before.step.id);
    }
    const named = namedBy(given);
    const rules = rulesOf(this.#judging, [...this.#known.keys(), ...named]);
    const checked = checkPlan({ planId: this.planId, steps: [alone(given)] }, rules);
    if ('faults' in checked) return checked;
    const [only] = checked.plan.steps;
    if (only === undefined) return bad('plan_shape', 'The line has no step.');
    if (named.has(only.id)) return { faults: [waitsForItself(only.id)] };
    const stated = [...named].filter((need) => this.#known.has(need) || !work.done.has(need));
    const step = this.#placed({ ...only, ...whenOf(given), after: stated }, given, named.size > 0);
    const ended = step.after.find((need) => this.#known.get(need)?.step.type === 'finish');
    if (ended !== undefined)
      return bad('after_finish', `The step ${step.id} comes after a finish, which ends the plan.`, step.id);
    const left = leaveOutDone({ planId: this.planId, steps: [step] }, this.#judging);
    if ('faults' in left) return work.done.has(step.id) && isSameAgain(left.faults) ? { step: undefined } : left;
    const [resolved = step] = left.plan.steps;
    const refused = this.#refusalOf(resolved);
    return refused === undefined ? { step: resolved } : { faults: [refused] };
  }

  /** What comes before a step that says nothing of it. */
  #placed(step: ReadyStep, given: Json, refers: boolean): ReadyStep {
    if (refers || saysOrder(given)) {
      this.#hasOrder = true;
      return step;
    }
    // Its place is known when the plan is whole.
    if (step.type === 'finish') return step;
    if (step.type === 'message') return { ...step, after: [...this.#ends] };
    return this.#hasOrder || this.#last === undefined ? step : { ...step, after: [this.#last] };
  }

  /** What the runtime would not take. Those before the step stand in by their ids alone. */
  #refusalOf(step: ReadyStep): PlanFault | undefined {
    const branch = branchOfStep(step, this.#judging.internal);
    const needs = new Set([...step.after, ...referencesIn(branch.args)]);
    const others = [...needs].map((id): Branch => ({ id, tool: MESSAGE_TOOL, args: null }));
    try {
      validateDecision({ ...this.decision, branches: [...others, branch] });
      return undefined;
    } catch (error) {
      if (!PilotageError.is(error)) throw error;
      return { code: 'plan_shape', message: error.message, step: step.id };
    }
  }

  /** A step that waits is given again: what it was before does not count. */
  #drop(id: string): void {
    if (!this.#known.delete(id)) return;
    this.#waiting = this.#waiting.filter((step) => step.id !== id);
    this.#finishes = this.#finishes.filter((step) => step.id !== id);
    this.#loose.delete(id);
  }

  /** The steps for which nothing is missing any more, and those that have waited for them. */
  #release(): readonly Branch[] {
    const ready: Branch[] = [];
    for (let before = -1; before !== ready.length; ) {
      before = ready.length;
      const still: ReadyStep[] = [];
      for (const step of this.#waiting) {
        if (step.after.every((id) => this.#given.has(id))) ready.push(this.#give(step));
        else still.push(step);
      }
      this.#waiting = still;
    }
    return ready;
  }

  #give(step: ReadyStep): Branch {
    const { run, internal } = this.#judging;
    const branch = branchOfStep(step, internal, isAnew(run));
    this.#given.add(step.id);
    this.#branches.push(branch);
    return branch;
  }

  #releaseFinishes(): readonly Branch[] {
    const finishes = this.#finishes;
    this.#finishes = [];
    return finishes.map((step) => {
      const after = this.#loose.has(step.id) ? [...new Set([...step.after, ...this.#ends])] : step.after;
      return this.#give({ ...step, after });
    });
  }

  /** What is wrong with the steps that wait for others: those are not there, or they wait for each other. */
  #stuck(): readonly PlanFault[] {
    const second = this.#secondFinish();
    if (second.length > 0) return second;
    const steps = [...this.#waiting, ...this.#finishes].map(({ id, type, after }) => ({
      id,
      ...(type === 'finish' ? { type } : { type: 'message', input: id }),
      ...(this.#loose.has(id) ? {} : { after: after.filter((need) => !this.#given.has(need)) }),
    }));
    if (steps.length === 0) return [];
    const checked = checkPlan({ planId: this.planId, steps }, rulesOf(this.#judging, this.#given));
    return 'faults' in checked ? checked.faults : [];
  }

  /** The first one stays: it was good before the others came. */
  #secondFinish(): readonly PlanFault[] {
    const [, ...others] = this.#finishes.filter(({ id }) => this.#loose.has(id));
    for (const { id } of others) this.#known.delete(id);
    this.#finishes = this.#finishes.filter((step) => !others.includes(step));
    const message = 'The plan has two ends. Give each finish step a `when`, or leave one out.';
    return others.map(({ id }) => ({ code: 'after_finish', message, step: id }));
  }
}

/** Faults of steps that wait for others which are not there. */
const MISSING: ReadonlySet<string> = new Set(['edge_unknown', 'step_unreachable']);

const NOTHING: Grown = { ready: [], faults: [] };

function bad(code: string, message: string, step?: string): Grown {
  return { ready: [], faults: [{ code, message, ...(step === undefined ? {} : { step }) }] };
}

function waitsForItself(step: string): PlanFault {
  const message = `The step ${JSON.stringify(step)} waits for itself.`;
  return { code: 'plan_cycle', message, step, path: [step, step] };
}

/** A step that is left out because it is done leaves nothing. */
function isSameAgain(faults: readonly PlanFault[]): boolean {
  return faults.every(({ code }) => code === 'plan_empty');
}

/** The steps that it says it waits for. */
function namedBy(given: Json): ReadonlySet<string> {
  const named = new Set<string>();
  if (!isJsonObject(given)) return named;
  const { after, when, input, meta, type } = given;
  for (const id of Array.isArray(after) ? (after as readonly Json[]) : []) if (typeof id === 'string') named.add(id);
  if (isJsonObject(when) && typeof when['step'] === 'string') named.add(when['step']);
  for (const id of referencesIn(input ?? null)) named.add(id);
  if (type === 'internal') for (const id of referencesIn(meta ?? null)) named.add(id);
  return named;
}

/** The step without what it says of others, which are not there when it is checked by itself. */
function alone(given: Json): Json {
  if (!isJsonObject(given)) return given;
  const { when, after, ...step } = given;
  const isWhen = isJsonObject(when) && typeof when['step'] === 'string' && when['equals'] !== undefined;
  const isAfter = Array.isArray(after) && after.every((id) => typeof id === 'string');
  return {
    ...step,
    // What has not the right shape is to be found.
    ...(when === undefined || isWhen ? {} : { when }),
    ...(after === undefined || isAfter ? {} : { after }),
  };
}

function saysOrder(given: Json): boolean {
  return isJsonObject(given) && (given['after'] !== undefined || given['when'] !== undefined);
}

function whenOf(given: Json): Pick<ReadyStep, 'when'> {
  const when = isJsonObject(given) ? given['when'] : undefined;
  if (!isJsonObject(when) || typeof when['step'] !== 'string' || when['equals'] === undefined) return {};
  return { when: { step: when['step'], equals: when['equals'] } };
}
