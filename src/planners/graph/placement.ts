/**
 * Where the steps of a list stand, one after the other as they are written: behind the one before, unless they say `after`. A list
 * that comes in parts has the same order as one that is there at once, for nothing is looked at but what was written before.
 */
import type { PlanStep } from './plan.ts';

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
