/** What can be wrong with a model's reply, and which of the ladder's counters it raises. */
import { branchesOf, type ErrorData, type RepairCounter, type Step } from '#core';

export type FaultCode =
  | 'reply_empty'
  | 'reply_truncated'
  | 'reply_interrupted'
  | 'reply_unreadable'
  | 'call_unsure'
  | 'call_repeated'
  | 'answer_invalid'
  | 'finish_invalid'
  | 'call_not_alone'
  | 'too_many_calls'
  | 'tool_not_found'
  | 'tool_invalid_args'
  | 'parallel_branch_invalid_args';

/** Codes of replies that were nothing that can be carried out, and of calls that were answered without being run. */
const FAULTS: Readonly<Record<FaultCode, RepairCounter>> = {
  /** Neither text nor a call. */
  reply_empty: 'reply',
  /** The reply ended in the middle of its only call. */
  reply_truncated: 'reply',
  /** The stream ended before the model was done. */
  reply_interrupted: 'reply',
  /** Text that was meant to be a call, and that nothing could be made of. */
  reply_unreadable: 'reply',
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
  tool_invalid_args: 'args',
  parallel_branch_invalid_args: 'args',
};

/** A fault of a step. */
export interface Fault {
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
export function faultsOf(step: Step): readonly Fault[] {
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
export function madeProgress({ calls }: Step): boolean {
  return calls.some(({ outcome }) => outcome.kind !== 'error' || counterOf(outcome.error.code) === undefined);
}
