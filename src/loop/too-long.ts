/**
 * What becomes of a request that does not fit its model: what was learnt is recorded, the history gets shorter, and the planner is asked
 * again for the same step. When nothing gets shorter any more, the run is paused, and `resume` asks again.
 */
import {
  branchesOf,
  captureObject,
  defined,
  type EntryBody,
  type ErrorData,
  isJsonObject,
  type Json,
  type MoveNotes,
  type Overflow,
  type Overflowed,
  type Paused,
  PilotageError,
  type Shortened,
  type Shortening,
  SPAWN_TOOL,
} from '#core';
import { nextStep, type RunState } from '#state';
import { shorterValue } from '../calls/large-values.ts';
import type { Ask } from './ask.ts';
import type { DriverDeps } from './driver-deps.ts';

/** How often the request of one step may be found too long. Each is shorter than the one before; a planner that sends the same has an end here. */
const MOST_TRIES = 24;

type Notes = Pick<MoveNotes, 'usage' | 'remarks'>;

/** The entry for a fault `context_window_exceeded`. @throws PilotageError `invalid_decision` for data of another form. */
export function tooLong(ask: Ask, fault: ErrorData, { usage, remarks = [] }: Notes): EntryBody {
  const { state, deps } = ask;
  const step = nextStep(state);
  const { message, data = {} } = fault;
  const { times = 0, step: last } = state.overflows ?? {};
  if (last === step && times >= MOST_TRIES) return contextExhausted(fault, deps);
  const { model, tokens } = data;
  const overflow = overflowIn(data['overflow']);
  if (typeof model !== 'string' || typeof tokens !== 'number' || !(tokens >= 0) || overflow === undefined) {
    const text =
      'The data of a fault context_window_exceeded needs model, tokens and overflow, with its kind and counts.';
    throw new PilotageError('invalid_decision', text);
  }
  const entry: Overflowed = {
    kind: 'overflowed',
    step,
    model,
    tokens,
    overflow,
    error: { code: fault.code, message },
    ...defined({ usage }),
    ...(remarks.length === 0 ? {} : { remarks }),
  };
  return entry;
}

const COUNTS = ['limitTokens', 'sentTokens', 'wishTokens', 'mostTokens'] as const;

function overflowIn(given: Json | undefined): Overflow | undefined {
  if (!isJsonObject(given)) return undefined;
  const { kind } = given;
  if (kind !== 'input' && kind !== 'output') return undefined;
  const counts = COUNTS.filter((name) => given[name] !== undefined);
  const isRight = counts.every((name) => typeof given[name] === 'number' && (given[name] as number) > 0);
  return isRight ? { kind, ...Object.fromEntries(counts.map((name) => [name, given[name]])) } : undefined;
}

/** The pause for a fault `context_exhausted`. */
export function contextExhausted(
  { message, data = {} }: ErrorData,
  { newToken }: Pick<DriverDeps, 'newToken'>,
): Paused {
  const { usage: _, ...known } = data;
  return { kind: 'paused', token: newToken(), reason: 'context_exhausted', payload: { message, ...known } };
}

/** Stores the results of the last step that are too large, and gives their previews. @throws for a shortening of another form. */
export async function shortened(given: Shortening, tokenEstimate: number, ask: Ask): Promise<Shortened> {
  const { state, deps } = ask;
  const { calls, bytes } = captureObject<Shortening>(given, 'shorten').json;
  const last = state.steps.at(-1);
  if (last === undefined || !Array.isArray(calls) || calls.length === 0 || !(bytes > 0)) {
    throw new Error('compact shortens results, and names none');
  }
  const results: Shortened['results'][number][] = [];
  for (const call of calls) {
    const outcome = last.calls[call]?.outcome;
    if (outcome?.kind !== 'value') throw new Error(`compact shortens the result of call ${call}, which has none`);
    const shorter = await shorterValue(outcome, toolOf(state, call), bytes, state.identity, deps.artifacts);
    results.push({ call, ...shorter });
  }
  return { kind: 'shortened', step: nextStep(state), results, tokenEstimate };
}

function toolOf({ steps }: RunState, call: number): string {
  const decision = steps.at(-1)?.decision;
  const tool = decision === undefined ? undefined : branchesOf(decision)[call]?.tool;
  return tool ?? SPAWN_TOOL;
}
