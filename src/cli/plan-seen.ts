/** The plan of a run's step under way, as its entries come by: events know calls by their index only. */
import { branchId, type CallParallel, type EntryBody, isJsonObject, isPlan, type Json } from '#core';
import { type PlanView, planOfDecision } from '#state';
import { shortLine } from './text.ts';

export class PlanSeen {
  #plan: CallParallel | undefined;
  #step = -1;
  #growing = false;

  /** To be told of each entry before its events are. */
  note(entry: EntryBody): void {
    if (entry.kind === 'moved') {
      const { decision, rejected, step, growing } = entry;
      this.#plan = rejected === undefined && isPlan(decision) ? decision : undefined;
      this.#step = step;
      this.#growing = growing === true;
    } else if (entry.kind === 'plan_grown' && this.#plan !== undefined) {
      this.#plan = { ...this.#plan, branches: [...this.#plan.branches, ...entry.branches] };
      this.#growing = entry.done !== true;
    }
  }

  /** The plan as it was made; `undefined` when the step does not carry out a plan. */
  view(step: number): PlanView | undefined {
    if (this.#plan === undefined || step !== this.#step) return undefined;
    return planOfDecision(this.#plan, step, this.#growing);
  }

  /** The name of a node with a space behind it; '' for a call that is not a node. */
  nameOf({ step, call }: { readonly step: number; readonly call: number }): string {
    const branch = step === this.#step ? this.#plan?.branches[call] : undefined;
    return branch === undefined ? '' : `${shortLine(branchId(branch, call), 32)}  `;
  }

  /** The keys of the calls that somebody gave other arguments, with those. */
  changed(nodes: Json | undefined): readonly (readonly [call: string, args: Json])[] {
    if (!isJsonObject(nodes)) return [];
    return (this.#plan?.branches ?? []).flatMap((branch, call) => {
      const edit = nodes[branchId(branch, call)];
      const args = isJsonObject(edit) ? edit['args'] : undefined;
      return args === undefined ? [] : [[`${this.#step}.${call}`, args] as const];
    });
  }
}
