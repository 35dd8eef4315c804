/**
 * The planner without a model: an ordered list of steps, of which the first that claims decides. It holds no state of a
 * run: what a step has done stands in the run's trajectory, so a restart changes nothing.
 */

import {
  assertIdentity,
  assertOptions,
  defined,
  describeThrown,
  type JsonObject,
  type Move,
  type OptionShape,
  PilotageError,
  type Planner,
  type RunView,
  validateDecision,
} from '#core';
import { type DeterministicStep, type PreparedStep, readyStep } from './steps.ts';

export interface DeterministicOptions {
  /** Default `deterministic`. */
  readonly name?: string;
  /** Change it when runs that were started with other steps are not to go on with these unasked. */
  readonly version?: string;
  /** Asked in order, anew for each decision; the first that claims wins. When none does, the run ends with `no_path`. */
  readonly steps: readonly DeterministicStep[];
}

const OPTIONS: OptionShape<DeterministicOptions> = { name: 'any?', version: 'any?', steps: 'any' };

/**
 * A step that throws, or returns a value that is not a decision, fails the run with `deterministic_step`, which names it.
 * @throws PilotageError `invalid_config` for no steps, for two with one id, and for what is wrong with one of them.
 */
export function deterministic(options: DeterministicOptions): Planner {
  assertOptions('deterministic', options, OPTIONS);
  const { name = 'deterministic', version } = options;
  if (typeof name !== 'string' || name === '') throw misconfigured('The name of a planner must be a non-empty string.');
  if (version !== undefined && typeof version !== 'string')
    throw misconfigured('The version of a planner must be a string.');
  const steps = readySteps(options.steps);
  const planner: Planner = {
    name,
    wakeMode: 'poll',
    whileAsked: 'keep',
    next: (run, signal) => firstClaim(steps, run, signal),
  };
  return Object.freeze(version === undefined ? planner : { ...planner, version });
}

async function firstClaim(steps: readonly PreparedStep[], run: RunView, signal: AbortSignal): Promise<Move> {
  signal.throwIfAborted();
  const { identity, controls } = run;
  assertIdentity(identity);
  if (controls.some(({ type }) => type === 'CANCEL')) {
    return {
      decision: { kind: 'finish', reason: 'cancelled', metadata: { steering: 'cancelled', run_id: identity.run } },
    };
  }
  for (const [index, step] of steps.entries()) {
    const move = await ask(step, index, run, signal);
    if (move !== undefined) return move;
  }
  const metadata = { deterministic: 'no_step_matched', run_id: identity.run };
  return { decision: { kind: 'finish', reason: 'no_path', metadata } };
}

async function ask(
  { id, claim }: PreparedStep,
  index: number,
  run: RunView,
  signal: AbortSignal,
): Promise<Move | undefined> {
  try {
    const move = await claim(run, signal);
    return move && { ...move, decision: validateDecision(move.decision) };
  } catch (cause) {
    signal.throwIfAborted();
    const name = id === undefined ? `steps[${index}]` : `steps[${index}] (${id})`;
    const code: JsonObject = PilotageError.is(cause) ? { cause: cause.code } : {};
    throw new PilotageError('deterministic_step', `${name} failed: ${describeThrown(cause)}`, {
      data: { index, ...defined({ id }), ...code },
      cause,
    });
  }
}

function readySteps(given: readonly DeterministicStep[]): readonly PreparedStep[] {
  if (!Array.isArray(given) || given.length === 0) {
    throw misconfigured('A deterministic planner needs a list of steps, with at least one.');
  }
  // Array.from sees holes too.
  const steps = Array.from(given as readonly DeterministicStep[], readyAt);
  const seen = new Map<string, number>();
  for (const [index, { id }] of steps.entries()) {
    const other = id === undefined ? undefined : seen.get(id);
    if (other !== undefined) {
      throw misconfigured(`steps[${other}] and steps[${index}] have the same id, ${id}. Give each an id of its own.`);
    }
    if (id !== undefined) seen.set(id, index);
  }
  return steps;
}

function readyAt(step: DeterministicStep | undefined, index: number): PreparedStep {
  if (step === undefined || step === null) throw misconfigured(`steps[${index}] is empty.`);
  try {
    return readyStep(step);
  } catch (cause) {
    throw misconfigured(`steps[${index}] cannot be used: ${describeThrown(cause).replace(/\.$/, '')}.`, cause);
  }
}

function misconfigured(message: string, cause?: unknown): PilotageError {
  return new PilotageError('invalid_config', message, { cause });
}
