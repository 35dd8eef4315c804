/**
 * The draft of a plan that a model writes line by line, perhaps in several replies. Each step is checked when it comes, and may
 * run when all that it waits for is there; what is wrong is collected, for the next reply to mend. The order is that of a whole
 * plan: each behind the line before it, unless it says `after`. A finish without a condition is held back until the plan is whole.
 */
import {
  type Branch,
  type CallParallel,
  defined,
  isJsonObject,
  type Json,
  jsonEquals,
  MESSAGE_TOOL,
  PilotageError,
  type PlanFault,
  referencesIn,
  validateDecision,
} from '#core';
import {
  branchOfStep,
  checkPlan,
  isAnew,
  isLooseFinish,
  namedBy,
  type Placeable,
  Placement,
  policyFaults,
  type ReadyStep,
  readGivenPlan,
  type StepPlace,
} from '#plans';
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

export class PlanDraft {
  readonly planId: string;
  readonly #judging: Judging;
  readonly #known = new Map<string, Known>();
  readonly #branches: Branch[] = [];
  readonly #given = new Set<string>();
  #waiting: ReadyStep[] = [];
  #finishes: ReadyStep[] = [];
  /** Finish steps that stand behind everything. */
  readonly #loose = new Map<string, Placeable<string>>();
  /** Steps of this reply. */
  readonly #fresh = new Set<string>();
  #placement = new Placement<string>();

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
      ...defined({ concurrency }),
    };
  }

  async take(given: Json): Promise<Grown> {
    const checked = this.#check(given);
    if ('faults' in checked) {
      this.#reserve(given);
      return { ready: [], faults: checked.faults };
    }
    const { step, place } = checked;
    if (step === undefined) return NOTHING;
    const { run, signal, internal, maxSteps } = this.#judging;
    if (this.#known.size >= maxSteps) return bad('plan_too_long', `The plan has more than ${maxSteps} steps.`, step.id);
    const forbidden = await policyFaults({ steps: [step] }, run, signal, internal);
    if (forbidden.length > 0) {
      this.#placement.add(place);
      return { ready: [], faults: forbidden };
    }
    this.#drop(step.id);
    this.#known.set(step.id, { given, step });
    this.#fresh.add(step.id);
    this.#placement.add(place);
    if (isLooseFinish(place)) this.#loose.set(step.id, place);
    if (step.type === 'finish' && step.when === undefined) {
      this.#finishes.push(step);
      return NOTHING;
    }
    this.#waiting.push(step);
    return { ready: this.#release(), faults: [] };
  }

  /** Another reply begins. What waits still may be given again in it, with other content. */
  begin(): void {
    this.#fresh.clear();
    if (this.#known.size === 0) this.#placement = new Placement();
    this.#placement.goOn();
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

  /** A line that cannot be used keeps its place for the mended one: what is written behind it waits for that. */
  #reserve(given: Json): void {
    const [read] = readGivenPlan({ steps: [given] }).steps;
    const { id, type = 'tool' } = read ?? {};
    // Under the id of a step that is done no line will come.
    if (id === undefined || this.#known.has(id) || this.#judging.work.done.has(id)) return;
    this.#placement.add({
      key: id,
      type: type === 'finish' ? 'finish' : 'tool',
      needs: [],
      saysAfter: saysAfter(given),
    });
  }

  /** @returns no step for one that is known, or done, as it stands. */
  #check(given: Json): Checked | { readonly faults: readonly PlanFault[] } {
    const { work } = this.#judging;
    const id = isJsonObject(given) ? given['id'] : undefined;
    const before = typeof id === 'string' ? this.#known.get(id) : undefined;
    if (before !== undefined && jsonEquals(before.given, given)) return { step: undefined, place: NOWHERE };
    if (before !== undefined && (this.#fresh.has(before.step.id) || this.#given.has(before.step.id))) {
      return bad('step_id_duplicate', `Two steps have the id ${JSON.stringify(id)}.`, before.step.id);
    }
    const [read = { name: '' }] = readGivenPlan({ steps: [given] }).steps;
    const { when, behind = [] } = read;
    const named = new Set(namedBy(read));
    const rules = rulesOf(this.#judging, [...this.#known.keys(), ...named, ...behind]);
    const checked = checkPlan({ planId: this.planId, steps: [alone(given)] }, rules);
    if ('faults' in checked) return checked;
    const [only] = checked.plan.steps;
    if (only === undefined) return bad('plan_shape', 'The line has no step.');
    if (named.has(only.id)) return { faults: [waitsForItself(only.id)] };
    const isOpen = (need: string): boolean => this.#known.has(need) || !work.done.has(need);
    const stated = [...named].filter(isOpen);
    const loose = behind.filter((need) => isOpen(need) && !named.has(need));
    const bare = { ...only, ...defined({ when }), after: stated, ...(loose.length === 0 ? {} : { behind: loose }) };
    const place = { key: bare.id, type: bare.type, needs: stated, saysAfter: saysAfter(given), ...defined({ when }) };
    const step = this.#placed(bare, place);
    const ended = step.after.find((need) => this.#known.get(need)?.step.type === 'finish');
    if (ended !== undefined)
      return bad('after_finish', `The step ${step.id} comes after a finish, which ends the plan.`, step.id);
    const left = leaveOutDone({ planId: this.planId, steps: [step] }, this.#judging);
    if ('faults' in left) return work.done.has(step.id) && isSameAgain(left.faults) ? { step: undefined, place } : left;
    const [resolved = step] = left.plan.steps;
    const refused = this.#refusalOf(resolved);
    return refused === undefined ? { step: resolved, place } : { faults: [refused] };
  }

  /** The step with what comes before it because of where it is written. */
  #placed(step: ReadyStep, placeable: Placeable<string>): ReadyStep {
    // Its place is known when the plan is whole.
    if (isLooseFinish(placeable)) return step;
    return withPlace(step, this.#placement.placeOf(placeable));
  }

  /** What the runtime would not take. Those before the step stand in by their ids alone. */
  #refusalOf(step: ReadyStep): PlanFault | undefined {
    const branch = branchOfStep(step, this.#judging.internal);
    const needs = new Set([...needsOf(step), ...referencesIn(branch.args)]);
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
        if (needsOf(step).every((id) => this.#given.has(id))) ready.push(this.#give(step));
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
      const loose = this.#loose.get(step.id);
      if (loose === undefined) return this.#give(step);
      const { after, behind } = this.#placement.placeOfEnd(loose);
      // A line that nobody has mended is not waited for.
      const isGiven = (id: string): boolean => this.#given.has(id);
      return this.#give(withPlace(step, { after: after.filter(isGiven), behind: behind.filter(isGiven) }));
    });
  }

  /** What is wrong with the steps that wait for others: those are not there, or they wait for each other. */
  #stuck(): readonly PlanFault[] {
    const second = this.#secondFinish();
    if (second.length > 0) return second;
    const steps = [...this.#waiting, ...this.#finishes].map((step) => ({
      id: step.id,
      ...(this.#finishes.includes(step) ? { type: 'finish' } : { type: 'message', input: step.id }),
      ...(this.#loose.has(step.id) ? {} : { after: needsOf(step).filter((need) => !this.#given.has(need)) }),
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
  return { ready: [], faults: [{ code, message, ...defined({ step }) }] };
}

function waitsForItself(step: string): PlanFault {
  const message = `The step ${JSON.stringify(step)} waits for itself.`;
  return { code: 'plan_cycle', message, step, path: [step, step] };
}

/** A step that is left out because it is done leaves nothing. */
function isSameAgain(faults: readonly PlanFault[]): boolean {
  return faults.every(({ code }) => code === 'plan_empty');
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

interface Checked {
  readonly step: ReadyStep | undefined;
  readonly place: Placeable<string>;
}

const NOWHERE: Placeable<string> = { key: '', type: 'tool', needs: [], saysAfter: true };

function withPlace(step: ReadyStep, { after, behind }: StepPlace<string>): ReadyStep {
  const all = [...(step.behind ?? []), ...behind];
  return { ...step, after: [...step.after, ...after], ...(all.length === 0 ? {} : { behind: all }) };
}

function needsOf({ after, behind = [] }: ReadyStep): readonly string[] {
  return [...after, ...behind];
}

function saysAfter(given: Json): boolean {
  return isJsonObject(given) && (given['after'] !== undefined || given['behind'] !== undefined);
}
