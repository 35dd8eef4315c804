/**
 * The calls of a run that may have changed something, by what they were. They are looked up by tool and arguments, so that a
 * model which speaks of a call has not made it once more. It is a cache of the steps, which are read once each.
 */
import {
  isJsonObject,
  type Json,
  type JsonObject,
  type Outcome,
  PerRun,
  type RunView,
  type Step,
  type ToolView,
} from '#core';
import { callsOf, isAct, mayHaveHappened } from '#prompt';

export interface MadeCall {
  /** The index of its step. */
  readonly step: number;
  readonly outcome: Outcome;
}

export class MadeCalls {
  readonly #runs = new PerRun<CallsOfRun>();

  /** The last call like this one that was made, or may have been made, in the run. A call that failed was not made. */
  find(view: RunView, tool: string, args: Json): MadeCall | undefined {
    let calls = this.#runs.get(view);
    if (calls?.isPastOf(view) !== true) {
      calls = new CallsOfRun();
      this.#runs.set(view, calls);
    }
    calls.extend(view);
    return calls.made.get(keyOf(tool, args, view.tools));
  }
}

class CallsOfRun {
  readonly made = new Map<string, MadeCall>();
  #steps = 0;
  #last: Step | undefined;

  isPastOf({ trajectory }: RunView): boolean {
    return this.#steps <= trajectory.count && trajectory.step(this.#steps - 1) === this.#last;
  }

  extend({ trajectory, tools }: RunView): void {
    for (; this.#steps < trajectory.count; this.#steps += 1) {
      const step = trajectory.step(this.#steps) as Step;
      for (const { tool, args, outcome } of callsOf(step)) {
        if (outcome === undefined || !mayHaveHappened(outcome) || !isAct(tool, tools)) continue;
        this.made.set(keyOf(tool, args, tools), { step: step.index, outcome });
      }
      this.#last = step;
    }
  }
}

function keyOf(tool: string, args: Json, tools: ToolView): string {
  return `${tool}\n${canonical(declaredOf(args, tools.get(tool)?.inputSchema))}`;
}

/** Without the keys that the tool says nothing of: a call does not become another one by a word added to it. */
function declaredOf(args: Json, schema: JsonObject | undefined): Json {
  const { properties, additionalProperties: others, patternProperties: patterns } = schema ?? {};
  const isOpen = others === true || isJsonObject(others) || patterns !== undefined;
  if (!isJsonObject(args) || !isJsonObject(properties) || isOpen) return args;
  return Object.fromEntries(Object.entries(args).filter(([key]) => Object.hasOwn(properties, key)));
}

/** JSON text in which the order of keys does not count. */
function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const fields = Object.keys(value).sort();
  return `{${fields.map((key) => `${JSON.stringify(key)}:${canonical(value[key] as Json)}`).join()}}`;
}
