/**
 * The repair ladder, as a fold over the steps: how often in a row the model's replies were faulty, which reminder is due,
 * which model is to be asked, and whether there is nobody left to ask. Nothing of it is stored.
 */

import {
  branchesOf,
  type ErrorData,
  type Finish,
  isRefusedReply,
  type Move,
  type PilotageError,
  type Remark,
  type RepairCounter,
  type Step,
  type Trajectory,
} from '#core';
import { type ReadyModel, usageOfError } from '#model';

/** What can be wrong with a model's reply. */
type FaultCode =
  | 'reply_empty'
  | 'reply_truncated'
  | 'reply_interrupted'
  | 'reply_unreadable'
  | 'reply_refused'
  | 'call_unsure'
  | 'call_repeated'
  | 'answer_invalid'
  | 'finish_invalid'
  | 'call_not_alone'
  | 'too_many_calls'
  | 'tool_not_found'
  | 'tool_not_offered'
  | 'tool_invalid_args'
  | 'parallel_branch_invalid_args';

/**
 * Codes of replies that were nothing that can be carried out, and of calls that were answered without being run, with the counter of
 * the ladder that each raises.
 */
const FAULTS: Readonly<Record<FaultCode, RepairCounter>> = {
  /** Neither text nor a call. */
  reply_empty: 'reply',
  /** The reply ended in the middle of its only call. */
  reply_truncated: 'reply',
  /** The stream ended before the model was done. */
  reply_interrupted: 'reply',
  /** Text that was meant to be a call, and that nothing could be made of. */
  reply_unreadable: 'reply',
  /** The model, or its provider, does not want to answer. It is not asked again, and the next model is. */
  reply_refused: 'reply',
  /** A call that changes something, in a form that may be mere talk of it. */
  call_unsure: 'reply',
  /** A call that was made before, without a reason to make it again. */
  call_repeated: 'reply',
  /** The answer does not fit the schema that was asked for. */
  answer_invalid: 'finish',
  finish_invalid: 'finish',
  call_not_alone: 'multi_action',
  too_many_calls: 'multi_action',
  tool_not_found: 'args',
  tool_not_offered: 'args',
  tool_invalid_args: 'args',
  parallel_branch_invalid_args: 'args',
};

/** A fault of a step. */
interface Fault {
  readonly counter: RepairCounter;
  /** The tool, for a call. */
  readonly tool?: string;
  readonly message: string;
}

export function faultData(code: FaultCode, message: string): ErrorData {
  return { code, message };
}

const NONE: readonly Fault[] = Object.freeze([]);

/** What was wrong with the reply that made this step. A tool that ran and failed is not a fault of the reply. */
function faultsOf(step: Step): readonly Fault[] {
  const { calls, error, decision } = step;
  if (calls.length === 0) return error === undefined ? NONE : [replyFault(error)];
  let faults: Fault[] | undefined;
  for (let index = 0; index < calls.length; index += 1) {
    const outcome = calls[index]?.outcome;
    if (outcome?.kind !== 'error') continue;
    const counter = counterOf(outcome.error.code);
    if (counter === undefined) continue;
    const branch = branchesOf(decision)[index];
    if (branch === undefined) continue;
    faults ??= [];
    faults.push({ counter, tool: branch.tool, message: outcome.error.message });
  }
  return faults ?? NONE;
}

/** A decision that the runtime refused is a reply that could not be carried out, too. */
function replyFault({ code, message }: ErrorData): Fault {
  return { counter: counterOf(code) ?? 'reply', message };
}

function counterOf(code: string): RepairCounter | undefined {
  return Object.hasOwn(FAULTS, code) ? FAULTS[code as FaultCode] : undefined;
}

/** Something of the step was carried out. */
function madeProgress({ calls }: Step): boolean {
  return calls.some(({ outcome }) => outcome.kind !== 'error' || counterOf(outcome.error.code) === undefined);
}

type Counters = Readonly<Record<RepairCounter, number>>;

export interface Rung {
  /** Names of the models that have had their tries: each has `reasks + 1`. */
  readonly spent: readonly string[];
  /** The model that is being asked again. It keeps its turn even if its rank has changed. */
  readonly current: string | undefined;
  /** What the model is to be reminded of. */
  readonly counters: Counters;
  /** The faults of the steps in a row, up to now, whose replies could not be used; oldest first. */
  readonly failed: number;
  readonly faults: readonly Fault[];
}

/** Nothing was wrong with the last replies. */
export const CALM: Rung = Object.freeze({
  spent: Object.freeze([]),
  current: undefined,
  counters: Object.freeze({ finish: 0, args: 0, multi_action: 0, reply: 0 }),
  failed: 0,
  faults: Object.freeze([]),
});

/** @param reasks tries after the first on each model. */
export function rungOf(trajectory: Trajectory, reasks: number): Rung {
  const { count } = trajectory;
  let first = count;
  for (let partly = 0; first > 0 && partly < LOOK_BACK; first -= 1) {
    const step = trajectory.step(first - 1);
    // The beginning of a reply is neither a fault nor the end of one: how often there is one is bounded.
    if (step?.partial !== undefined) continue;
    if (step === undefined || !isFaulty(step)) break;
    if (madeProgress(step)) partly += 1;
  }
  if (first === count) return CALM;
  const climb = new Climb(reasks);
  for (let index = first; index < count; index += 1) climb.add(trajectory.step(index) as Step);
  return climb.rung();
}

/** A fallback planner's step is where the model's faults end. */
function isFaulty(step: Step): boolean {
  return step.provenance?.['fallback'] === undefined && faultsOf(step).length > 0;
}

/**
 * Steps that were carried out in part are looked at no further back: counters matter up to three, and a run that goes on so
 * must not look at all of itself in each step. Steps of which nothing was carried out are few, for the ladder has an end.
 */
const LOOK_BACK = 8;

/** Walks up the ladder, fault by fault. */
class Climb {
  readonly #reasks: number;
  readonly #spent: string[] = [];
  #current: string | undefined;
  #failed = 0;
  /** Tries of this model that came to nothing, by what was wrong: two kinds that take turns are not one that repeats. */
  #tries = new Map<RepairCounter, number>();
  #counts = { finish: 0, multi_action: 0, reply: 0 };
  #argsByTool = new Map<string, number>();
  readonly #faults: Fault[] = [];

  constructor(reasks: number) {
    this.#reasks = reasks;
  }

  add(step: Step): void {
    this.#current = modelOf(step);
    // Who has begun a reply goes on with it.
    if (step.partial !== undefined) return;
    const faults = faultsOf(step);
    this.#count(faults);
    if (madeProgress(step)) {
      this.#tries.clear();
      this.#failed = 0;
      this.#faults.length = 0;
      return;
    }
    this.#failed += 1;
    this.#faults.push(...faults);
    if (isRefusedReply(step)) {
      this.#nextModel();
      return;
    }
    for (const counter of new Set(faults.map((fault) => fault.counter))) {
      this.#tries.set(counter, (this.#tries.get(counter) ?? 0) + 1);
    }
    if (Math.max(...this.#tries.values()) > this.#reasks) this.#nextModel();
  }

  #count(faults: readonly Fault[]): void {
    const counters = new Set(faults.map((fault) => fault.counter));
    for (const counter of counters) if (counter !== 'args') this.#counts[counter] += 1;
    const tools = new Set(faults.flatMap((fault) => (fault.counter === 'args' ? (fault.tool ?? '') : [])));
    for (const tool of this.#argsByTool.keys()) if (!tools.has(tool)) this.#argsByTool.delete(tool);
    for (const tool of tools) this.#argsByTool.set(tool, (this.#argsByTool.get(tool) ?? 0) + 1);
  }

  /** The next model has not been reminded of anything. */
  #nextModel(): void {
    if (this.#current !== undefined) this.#spent.push(this.#current);
    this.#current = undefined;
    this.#tries.clear();
    this.#counts = { finish: 0, multi_action: 0, reply: 0 };
    this.#argsByTool.clear();
  }

  rung(): Rung {
    // The first bad call of a tool is answered by its error alone; the reminder comes when the same tool fails again.
    const args = Math.max(0, ...[...this.#argsByTool.values()].map((times) => times - 1));
    const counters = { ...this.#counts, args };
    return { spent: this.#spent, current: this.#current, counters, failed: this.#failed, faults: this.#faults };
  }
}

/** The models that are left, in the order in which to ask them. */
export function modelsLeft(ranked: readonly ReadyModel[], { spent, current }: Rung): readonly ReadyModel[] {
  if (spent.length === 0 && current === undefined) return ranked;
  const left = ranked.filter(({ name }) => !spent.includes(name));
  return [...left.filter(({ name }) => name === current), ...left.filter(({ name }) => name !== current)];
}

/** The name, in the pool, of the model that made a step. */
function modelOf({ provenance }: Step): string | undefined {
  const name = provenance?.['modelName'] ?? provenance?.['model'];
  return typeof name === 'string' ? name : undefined;
}

const MAX_CHAIN_CHARS = 1_024;
const MAX_REASON_CHARS = 256;

/** The floor of the ladder: a valid end that says why. */
export function exhausted({ failed, faults }: Rung): Move {
  const argFailures = faults.filter(({ counter }) => counter === 'args').length;
  const move = ending(
    failed,
    argFailures,
    faults.map(({ message }) => message),
  );
  // A run that the fallback planner keeps was told of when it took over.
  return failed > 0 ? move : { decision: move.decision };
}

/** No model could be asked: the run waits for them, unless a fallback planner takes over. */
export function unavailable(error: PilotageError, before: readonly Remark[], hasFallback: boolean): Move {
  const usage = usageOfError(error);
  const { tries } = error.data ?? {};
  const { remarks: told = [] } = ending(Array.isArray(tries) ? tries.length : 1, 0, [error.message]);
  const remarks = hasFallback ? [...before, ...told] : before;
  const move = { decision: NO_PATH, remarks, fault: error.toJSON() };
  return usage === undefined ? move : { ...move, usage };
}

const NO_PATH: Finish = { kind: 'finish', reason: 'no_path', metadata: { via: 'react.ladder' } };

function ending(attempts: number, argFailures: number, messages: readonly string[]): Move {
  const reasons = messages.map((message) => cut(message, MAX_REASON_CHARS));
  const decision: Finish = {
    kind: 'finish',
    reason: 'no_path',
    metadata: {
      via: 'react.ladder',
      repair_exhausted: true,
      followup: true,
      repair_attempts: attempts,
      repair_consecutive_arg_failures: argFailures,
      repair_chain: cut(reasons.join(' → '), MAX_CHAIN_CHARS),
      repair_error: reasons.at(-1) ?? '',
    },
  };
  const remark: Remark = {
    type: 'planner.repair_exhausted',
    attempts,
    consecutiveArgFailures: argFailures,
    reasons,
  };
  return { decision, remarks: [remark] };
}

function cut(text: string, chars: number): string {
  return text.length <= chars ? text : `${text.slice(0, chars - 1)}…`;
}
