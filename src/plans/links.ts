/**
 * What comes before what in a plan: by edges, `after`, `when` and references; and in a list, where a step does not say `after`,
 * by how it is written.
 */
import { defined, type PlanFault } from '#core';
import { fault, type GivenPlan, type GivenStep, referencesOf, shownStep } from './given-plan.ts';
import type { Pair } from './order.ts';
import type { PlanStep } from './plan.ts';

export interface Links {
  /** For each step, those before it, each once. */
  readonly before: readonly (readonly number[])[];
  /** The steps of `before` that may be skipped without skipping this step. */
  readonly behind: readonly (readonly number[])[];
  /** References, in a plan with edges, that no edge leads to directly: they are to be found on a longer way. */
  readonly distant: readonly Pair[];
  readonly faults: readonly PlanFault[];
}

/** @param earlier steps that have ended well before this plan: nothing waits for them. */
export function linkSteps(given: GivenPlan, earlier: ReadonlySet<string>): Links {
  const { steps, edges } = given;
  const linker = new Linker(steps, earlier);
  for (const [from, to] of edges ?? []) linker.addEdge(from, to);
  for (const index of steps.keys()) linker.addStated(index);
  const distant = linker.addReferences(edges !== undefined && edges.length > 0);
  if (given.isList && edges === undefined) linker.placeList();
  else linker.placeRest(edges === undefined);
  const { before, behind, faults } = linker;
  return { before: before.map((set) => [...set]), behind, distant, faults };
}

class Linker {
  readonly before: readonly Set<number>[];
  readonly behind: (readonly number[])[];
  readonly faults: PlanFault[] = [];
  readonly #steps: readonly GivenStep[];
  readonly #earlier: ReadonlySet<string>;
  readonly #indexById = new Map<string, number>();
  /** Steps of which an edge, an `after` or a `when` says where they stand. */
  readonly #placed = new Set<number>();

  constructor(steps: readonly GivenStep[], earlier: ReadonlySet<string>) {
    this.#steps = steps;
    this.#earlier = earlier;
    this.before = steps.map(() => new Set<number>());
    this.behind = steps.map(() => []);
    for (const [index, { id }] of steps.entries()) {
      if (id === undefined) continue;
      if (!this.#indexById.has(id)) this.#indexById.set(id, index);
      else this.faults.push(fault('step_id_duplicate', `Two steps have the id ${JSON.stringify(id)}.`, id));
    }
  }

  addEdge(from: string, to: string): void {
    const [source, target] = [this.#indexById.get(from), this.#indexById.get(to)];
    if (target !== undefined) this.#placed.add(target);
    if (source !== undefined && target !== undefined) {
      this.before[target]?.add(source);
    } else if (target === undefined || !this.#earlier.has(from)) {
      const [edge, missing] = [`${JSON.stringify(from)} to ${JSON.stringify(to)}`, source === undefined ? from : to];
      const message = `An edge leads from ${edge}: there is no step ${JSON.stringify(missing)}.`;
      this.faults.push(fault('edge_unknown', message));
    }
  }

  /** What the step says itself that it comes after. */
  addStated(index: number): void {
    const step = this.#steps[index] as GivenStep;
    const { after, behind, when } = step;
    if (after === undefined && behind === undefined && when === undefined) return;
    this.#placed.add(index);
    this.#addNeeds(index, after ?? []);
    this.behind[index] = this.#addNeeds(index, behind ?? []);
    if (when === undefined) return;
    const found = this.#indexById.get(when.step);
    if (found !== undefined) this.before[index]?.add(found);
    else this.#unknown('edge_unknown', step, 'has a condition on', when.step);
  }

  #addNeeds(index: number, ids: readonly string[]): readonly number[] {
    return ids.flatMap((id) => {
      const found = this.#indexById.get(id);
      if (found !== undefined) this.before[index]?.add(found);
      else if (!this.#earlier.has(id))
        this.#unknown('edge_unknown', this.#steps[index] as GivenStep, 'comes after', id);
      return found === undefined ? [] : [found];
    });
  }

  /** A reference makes an edge, unless edges are given: then it is to follow those, and is returned when it skips some. */
  addReferences(hasEdges: boolean): Pair[] {
    const distant: Pair[] = [];
    const found: Pair[] = [];
    for (const [index, step] of this.#steps.entries()) {
      for (const id of referencesOf(step)) {
        const earlier = this.#indexById.get(id);
        if (earlier !== undefined) found.push({ step: index, earlier });
        else if (!this.#earlier.has(id)) this.#unknown('reference_unknown', step, 'refers to', id);
      }
    }
    for (const pair of found) {
      const before = this.before[pair.step];
      if (!hasEdges) before?.add(pair.earlier);
      else if (before?.has(pair.earlier) === false) distant.push(pair);
    }
    return distant;
  }

  /** Each step behind the one before it, unless it says `after`; the end of the plan behind all. */
  placeList(): void {
    const placement = new Placement<number>();
    const hung = new Set(this.before.flatMap((set) => [...set]));
    const ends: Placeable<number>[] = [];
    for (const [key, { type = 'tool', after, behind, when }] of this.#steps.entries()) {
      const needs = [...(this.before[key] as Set<number>)];
      const saysAfter = after !== undefined || behind !== undefined;
      const step = { key, type, needs, saysAfter, ...defined({ when }) };
      // One on which another step hangs stays where it is.
      if (isLooseFinish(step) && !hung.has(key)) ends.push(step);
      else {
        this.#place(key, placement.placeOf(step));
        placement.add(step);
      }
    }
    const [end, ...others] = ends;
    for (const { key } of others) this.#secondFinish(this.#steps[key]?.id);
    if (end !== undefined) this.#place(end.key, placement.placeOfEnd(end));
  }

  #place(index: number, { after, behind }: StepPlace<number>): void {
    for (const need of [...after, ...behind]) this.before[index]?.add(need);
    if (behind.length > 0) this.behind[index] = behind;
  }

  /**
   * What people see has its place also when it names none: a message comes after all that is written before it, and a
   * finish, which ends the plan, after everything. One on which another step hangs stays where it is.
   */
  placeRest(placeMessages: boolean): void {
    const hung = new Set(this.before.flatMap((set) => [...set]));
    /** Those so far behind which nothing comes yet. */
    const ends = new Set<number>();
    let finish: number | undefined;
    for (const [index, { type, id }] of this.#steps.entries()) {
      const before = this.before[index] as Set<number>;
      const isLoose = !this.#placed.has(index) && !hung.has(index);
      if (type === 'finish') {
        if (isLoose && finish !== undefined) this.#secondFinish(id);
        else if (isLoose) finish = index;
        continue;
      }
      if (type === 'message' && placeMessages && isLoose && before.size === 0) {
        for (const end of ends) before.add(end);
      }
      for (const need of before) ends.delete(need);
      ends.add(index);
    }
    if (finish !== undefined) for (const end of ends) this.before[finish]?.add(end);
  }

  #secondFinish(id: string | undefined): void {
    const message = 'The plan has two ends. Give each finish step a `when`, or leave one out.';
    this.faults.push(fault('after_finish', message, id));
  }

  #unknown(code: string, step: GivenStep, verb: string, id: string): void {
    const message = `The step ${shownStep(step)} ${verb} ${JSON.stringify(id)}: there is no such step.`;
    this.faults.push(fault(code, message, step.id));
  }
}

// Where the steps of a list stand, one after the other as they are written: behind the one before, unless they say `after`. A list
// that comes in parts has the same order as one that is there at once, for nothing is looked at but what was written before.

/** The part of a step that decides its place, under the key that it is known by. */
export interface Placeable<K> extends Pick<PlanStep, 'type' | 'when'> {
  readonly key: K;
  /** True: the step has `after`, whatever it names. */
  readonly saysAfter: boolean;
  /** What it names in `after`, `when` and references, of the same list. */
  readonly needs: readonly K[];
}

export interface StepPlace<K> {
  /** Beside what the step names. */
  readonly after: readonly K[];
  /**
   * The same, of steps that may be passed over, for their conditions or those of steps that they need; then it goes on all the
   * same.
   */
  readonly behind: readonly K[];
}

/** Whether the step ends the plan without saying where: it then comes after all others, wherever it is written. */
export function isLooseFinish({
  type,
  when,
  saysAfter,
}: Pick<Placeable<unknown>, 'type' | 'when' | 'saysAfter'>): boolean {
  return type === 'finish' && when === undefined && !saysAfter;
}

export class Placement<K> {
  /** Behind what each step stands because of where it is written. */
  readonly #chains = new Map<K, readonly K[]>();
  /** Steps behind which none stands yet. */
  readonly #ends = new Set<K>();
  readonly #passable = new Set<K>();
  #last: K | undefined;
  #lastStep: K | undefined;

  /** Where the step stands when it is the next one; one that was written before keeps its place. */
  placeOf(step: Placeable<K>): StepPlace<K> {
    const chain = this.#chainOf(step).filter((key) => key !== step.key && !step.needs.includes(key));
    return {
      after: chain.filter((key) => !this.#passable.has(key)),
      behind: chain.filter((key) => this.#passable.has(key)),
    };
  }

  /** The end of the plan, when all is written: behind all others. */
  placeOfEnd(step: Placeable<K>): StepPlace<K> {
    this.#chains.set(step.key, [...this.#ends]);
    return this.placeOf(step);
  }

  add(step: Placeable<K>): void {
    const { key, type, when, needs } = step;
    if (isLooseFinish(step)) return;
    const chain = this.#chainOf(step);
    const isNew = !this.#chains.has(key);
    this.#chains.set(key, chain);
    if (when !== undefined || needs.some((need) => this.#passable.has(need))) this.#passable.add(key);
    else this.#passable.delete(key);
    for (const need of [...needs, ...chain]) this.#ends.delete(need);
    if (!isNew) return;
    this.#last = key;
    if (type === 'finish' && when === undefined) return;
    this.#lastStep = key;
    this.#ends.add(key);
  }

  /** More is written later: what was the end of the plan is its end still. */
  goOn(): void {
    this.#last = this.#lastStep;
  }

  #chainOf(step: Placeable<K>): readonly K[] {
    if (step.saysAfter) return [];
    const known = this.#chains.get(step.key);
    if (known !== undefined) return known;
    if (isLooseFinish(step)) return [];
    // What is said to the user comes after all that is written before it.
    if (step.type === 'message') return [...this.#ends];
    return this.#last === undefined ? [] : [this.#last];
  }
}
