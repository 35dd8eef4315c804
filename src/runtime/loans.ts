/**
 * Slots that are lent. The code of a run, such as a tool, may wait for another run. A run that waits lends its slot to the run that it
 * waits for, or to a task below that one: else runs that wait would fill all slots, and what they wait for would never begin.
 *
 * L1 A slot is lent only to a run that is to be driven and finds no slot of its own. One run has it at a time.
 * L2 It comes back when the borrower is let go of. When nobody above the borrower does without a slot any more, it becomes free.
 * L3 A run without a slot that has stopped waiting counts again, before any other run gets a slot.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { OpenStep, RunState } from '#state';
import type { QueuedRun } from './run-queue.ts';
import type { Slot, Slots } from './slots.ts';

/** A run that is driven here. */
export interface SlotHolder {
  readonly driver: { readonly state: RunState };
  /** The slot that it has; absent while it is lent. */
  slot?: Slot | undefined;
  /** The run whose slot it was given. */
  readonly lender?: SlotHolder | undefined;
}

/** A wait of a run's code for another run. */
interface Wait {
  readonly by: SlotHolder;
  /** The step that the code belongs to. What still waits when the step is over, nobody waits for. */
  readonly during: OpenStep | number;
}

export class Loans {
  readonly #slots: Slots;
  readonly #driven: (run: string) => SlotHolder | undefined;
  /** The run whose code is carried out. It is entered once a drive and not once a call: a step costs no more. */
  readonly #code = new AsyncLocalStorage<string>();
  /** By the run that is waited for. */
  readonly #waits = new Map<string, Set<Wait>>();
  /** Driven runs whose slots are lent. */
  readonly #without = new Set<SlotHolder>();

  /** @param driven finds a run that is driven here. */
  constructor(slots: Slots, driven: (run: string) => SlotHolder | undefined) {
    this.#slots = slots;
    this.#driven = driven;
  }

  /** Carries out the code of a run. */
  within<T>(run: string, code: () => T): T {
    return this.#code.run(run, code);
  }

  /**
   * Waits. When it is the code of a run that waits here, that run's slot may be lent to the run that is waited for.
   * @param onLender called when a slot may be lent that could not be before.
   */
  async waiting<T>(run: string, waited: Promise<T>, onLender: () => void): Promise<T> {
    const waiter = this.#code.getStore();
    const by = waiter === undefined || waiter === run ? undefined : this.#driven(waiter);
    if (by === undefined) return waited;
    const wait = { by, during: stepOf(by) };
    const waits = this.#waits.get(run) ?? new Set();
    this.#waits.set(run, waits.add(wait));
    onLender();
    try {
      return await waited;
    } finally {
      waits.delete(wait);
      if (waits.size === 0 && this.#waits.get(run) === waits) this.#waits.delete(run);
    }
  }

  /** The first run that waits for a slot while another run waits for it, or for one above it: with that one's slot. */
  next(): { readonly waiting: QueuedRun; readonly slot: Slot; readonly lender: SlotHolder } | undefined {
    const { queue } = this.#slots;
    for (const [run, waits] of this.#waits) {
      const lender = lenderOf(waits);
      const slot = lender?.slot;
      const waiting = slot === undefined ? undefined : queue.firstBelow(run);
      if (lender === undefined || slot === undefined || waiting === undefined) continue;
      queue.forget(waiting.run);
      lender.slot = undefined;
      this.#without.add(lender);
      return { waiting, slot, lender };
    }
    return undefined;
  }

  /** A run is not driven any more, or could not be. Its slot goes to the nearest run above it in the chain of lenders that does without. */
  giveBack(slot: Slot, lender: SlotHolder | undefined): void {
    for (let to = lender; to !== undefined; to = to.lender) {
      if (!this.#without.delete(to)) continue;
      to.slot = slot;
      return;
    }
    this.#slots.free(slot);
  }

  /** A run is not driven any more. */
  letGo(holder: SlotHolder): void {
    this.#without.delete(holder);
    const { slot, lender } = holder;
    holder.slot = undefined;
    if (slot !== undefined) this.giveBack(slot, lender);
  }

  /** Gives runs that go on without a slot one more, also when none is free: their code is running. */
  settle(): void {
    if (this.#without.size === 0) return;
    const waiting = new Set<SlotHolder>();
    for (const waits of this.#waits.values()) for (const wait of waits) if (stands(wait)) waiting.add(wait.by);
    for (const holder of this.#without) {
      if (waiting.has(holder)) continue;
      this.#without.delete(holder);
      holder.slot = this.#slots.add(holder.driver.state.identity.tenant);
    }
  }
}

function stepOf({ driver: { state } }: SlotHolder): OpenStep | number {
  return state.open ?? state.steps.length;
}

/** Among those that wait for a run, the first one whose slot may be lent. */
function lenderOf(waits: ReadonlySet<Wait>): SlotHolder | undefined {
  for (const wait of waits) if (wait.by.slot !== undefined && stands(wait)) return wait.by;
  return undefined;
}

function stands({ by, during }: Wait): boolean {
  return stepOf(by) === during;
}
