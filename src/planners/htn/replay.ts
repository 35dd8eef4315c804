/** What a run has done so far: the effects of its actions on the state, the values of its steps, and what is left. */
import type { Json, RunView, Step } from '#core';
import { type PlanNode, planNodes } from '#plans';
import type { HtnTask } from './domain.ts';
import type { Item, Resolve } from './item.ts';
import { applyAction } from './search.ts';
import type { HtnState } from './state.ts';
import { type HtnWork, readWork, recordIn } from './work.ts';

/** A step that has ended well. */
export interface DoneStep {
  readonly id: string;
  /** Where in the run its value is: the index of the run's step, and the branch of that. */
  readonly step: number;
  readonly branch: string;
  /** What it was a step of. */
  readonly action: HtnTask;
  readonly tool: string;
  readonly value: Json;
}

export type Observe = (state: HtnState, step: DoneStep) => void;

export interface Past {
  /** The list of the last decision; absent before the first one. */
  readonly work?: HtnWork;
  /** The last step of the planner's own. */
  readonly step?: Step;
  /** The items of the list that are not done. */
  readonly left: readonly Item[];
  /** The first of these that has a step which did not end well, and that step. */
  readonly failed?: { readonly item: Item; readonly id: string; readonly node: PlanNode };
  /** By id of the step, of the whole run. */
  readonly done: ReadonlyMap<string, DoneStep>;
}

/** @param state as it was at the start of the run; it is changed to what it is now. */
export function replay({ trajectory }: RunView, state: HtnState, resolve: Resolve, observe?: Observe): Past {
  const done = new Map<string, DoneStep>();
  let past: Past = { left: [], done };
  for (let index = 0; index < trajectory.count; index += 1) {
    const step = trajectory.step(index);
    const record = step && recordIn(step);
    if (step === undefined || record === undefined) continue;
    past = replayStep(step, readWork(record, resolve), state, done, observe);
  }
  return past;
}

function replayStep(step: Step, work: HtnWork, state: HtnState, done: Map<string, DoneStep>, observe?: Observe): Past {
  const { items, notes } = work;
  const nodes = planNodes(step).values();
  // What has no step is done with the one behind it: when that fails, or there is none, it is looked at again.
  let until = 0;
  for (const [index, item] of items.entries()) {
    const ids = notes.steps.get(item);
    if (ids === undefined) break;
    const own = ids.flatMap((id) => {
      const { value: node } = nodes.next();
      return node === undefined ? [] : [{ node, id }];
    });
    const bad = own.find(({ node }) => node.status !== 'done');
    if (bad !== undefined) return { work, step, left: items.slice(until), failed: { item, ...bad }, done };
    if (own.length === 0) continue;
    for (const passed of items.slice(until, index + 1)) applyAction(passed, state);
    until = index + 1;
    for (const { node, id } of own) {
      const { step: at, id: branch, value = null } = node;
      const ended = { id, step: at, branch, action: item.task, tool: node.branch.tool, value };
      done.set(id, ended);
      observe?.(state, ended);
    }
  }
  return { work, step, left: items.slice(until), done };
}
