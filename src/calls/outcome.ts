/** What a call comes to, from how its attempts settled. */

import {
  ARTIFACT_FETCH,
  builtinName,
  type CallEnded,
  type CallPlace,
  type Captured,
  callEnded,
  capture,
  type Effect,
  type ErrorCode,
  type ErrorData,
  type Identity,
  type InputArtifact,
  type Json,
  type JsonObject,
  type Outcome,
  type TaskEnd,
  Thrown,
  type ToolSchema,
  type ToolView,
  UNDO_TASK,
  usdOf,
} from '#core';
import { type ArtifactStore, isTransientStoreError, storedJson } from '#journal';
import { undoCounts } from '#state';
import type { Backoff, ReadyFunction, ReadyTool } from '#tools';
import { type PassedLimit, type Settled, whatPassed } from './attempt.ts';
import { NOT_SENT, OUTCOME_UNKNOWN } from './doubt.ts';
import { mayBeLarge, storeLargeValue } from './large-values.ts';

interface Owned {
  readonly identity: Identity;
  /** The run's tools, among them what reads on in a large value. */
  readonly tools?: Pick<ToolView, 'get'>;
}
interface Stores {
  readonly artifacts: ArtifactStore;
}

export function effectHeldBack({ schema: { name } }: ReadyTool): Outcome {
  const message = `${name} has an effect that happens once. To make such calls too, fork with effects set to allowed.`;
  return { kind: 'error', error: { code: 'effect_held_back', message } };
}

export function noRoom({ name }: ToolSchema, costMicroUsd: number | undefined, axis: 'calls' | 'cost'): Outcome {
  const message =
    axis === 'calls'
      ? `The budget has no call left. ${name} was not called.`
      : `The budget has no room for ${name}, which costs ${usdOf(costMicroUsd ?? 0)} US dollars.`;
  return { kind: 'error', error: { code: NO_ROOM, message, data: { axis } } };
}

/** A budget does not grow while a call waits: what it refuses does not pass. */
const NO_ROOM: ErrorCode = 'budget_exceeded';

/** Full jitter: a random time from 0 to the exponential bound, by default 100 ms, 200 ms, … 30 s. */
export function retryDelayMs(
  { baseMs, multiplier, maxMs }: Required<Backoff>,
  attempt: number,
  random: number,
): number {
  // A power beyond all numbers times a base of 0 would be none.
  const power = Math.min(multiplier ** (attempt - 1), Number.MAX_VALUE);
  return random * Math.min(maxMs, baseMs * power);
}

/**
 * Only what an error says of itself counts: its `retryable` flag, an HTTP status, how long it asks to wait, or that our store could not
 * take something. Texts are never searched.
 */
export function mayRetry(settled: Settled<unknown>, askedMs: number | undefined): boolean {
  if (settled.kind === 'timeout') return true;
  if (settled.kind !== 'thrown') return false;
  const { code, retryable, status } = settled.error;
  if (code === NOT_SENT || code === OUTCOME_UNKNOWN || isTransientStoreError(settled.error)) return true;
  return retryable ?? (askedMs !== undefined || (status !== undefined && (status >= 500 || status === 429)));
}

/** A call waits at most so long for its next attempt. What asks for more is not coming back for this run. */
export const LONGEST_AWAY_MS: number = 24 * 60 * 60_000;

/** An attempt has failed, and there is no other. A refusal by the budget keeps its code: the call did not fail for want of attempts. */
export function failedOutcome(error: ErrorData, tool: string, attempts: number): Outcome {
  if (attempts === 1 || error.code === NO_ROOM) return { kind: 'error', error };
  const message = `${tool} failed ${attempts} times; the last time: ${error.message}`;
  return { kind: 'error', error: { code: 'tool_retries_exhausted', message, data: { attempts, cause: { ...error } } } };
}

export function waitsTooLong(error: ErrorData, tool: string, askedMs: number): Outcome {
  const [asked, most] = [askedMs, LONGEST_AWAY_MS].map((ms) => `${Math.ceil(ms / 1_000)} s`);
  const message = `${tool} failed, and asks to be left alone for ${asked}. A call waits for at most ${most}: ${error.message}`;
  return { kind: 'error', error: { code: 'tool_wait_too_long', message, data: { cause: { ...error } } } };
}

/** @param askedMs how long whoever failed asks to be left alone. */
export function settledError(settled: Settled<unknown>, tool: ReadyFunction, askedMs: number | undefined): ErrorData {
  if (settled.kind === 'thrown') {
    const { data, ...error } = errorData(settled.error);
    const isKnown = askedMs !== undefined && Number.isFinite(askedMs);
    const kept = isKnown ? { ...data, retryAfterMs: askedMs } : data;
    const also = settled.error.code === OUTCOME_UNKNOWN ? maybeHappened(tool) : '';
    const told = { ...error, message: `${error.message}${also}` };
    return kept === undefined ? told : { ...told, data: kept };
  }
  const passed: PassedLimit = settled.kind === 'timeout' ? settled.limit : { limit: 'timeoutMs', ms: tool.timeoutMs };
  const message = `${tool.schema.name} ${whatPassed(passed)}.${maybeHappened(tool)}`;
  return passed.limit === 'timeoutMs'
    ? { code: 'tool_timeout', message }
    : { code: 'tool_timeout', message, data: { ...passed } };
}

export function abortedOutcome(settled: Settled<unknown>, tool: ReadyFunction): Outcome {
  const [code, what] =
    settled.kind === 'abandoned'
      ? ['tool_abandoned', `${tool.schema.name} ignored its abort signal and was abandoned.`]
      : ['cancelled', STOPPED];
  return { kind: 'cancelled', error: { code, message: `${what}${maybeHappened(tool)}` } };
}

/** The outcome of a call that was under way and whose result is not known. */
function maybeHappened({ effect }: ReadyFunction): string {
  return effect === 'keyed' ? ' The call may have happened all the same.' : '';
}

const STOPPED = 'The call was stopped before it ended.';

export function cancelled(): Outcome {
  return { kind: 'cancelled', error: { code: 'cancelled', message: STOPPED } };
}

/** The end of a call that came to this error before it was made. */
export function failed(at: CallPlace, error: ErrorData): CallEnded[] {
  return [callEnded(at, { outcome: { kind: 'error', error }, attempts: 0 })];
}

/** Whose value it is. */
type Valued = Pick<ReadyTool, 'checkValue'> & { readonly schema: Pick<ToolSchema, 'name'>; readonly effect?: Effect };

/** @param isLarge is told of a value that took long to read. */
export function valueOutcome(
  value: unknown,
  call: Owned,
  tool: Valued,
  ports: Stores,
  isLarge?: () => void,
): Outcome | Promise<Outcome> {
  try {
    const captured = capture(value === undefined ? null : value, 'value');
    if (mayBeLarge(captured)) isLarge?.();
    if (tool.checkValue === undefined && !mayBeLarge(captured)) return { kind: 'value', value: captured.json };
    return checkAndStore(captured, call, tool, ports).catch((thrown: unknown) => valueLost(errorData(thrown), tool));
  } catch (thrown) {
    isLarge?.();
    return valueLost(errorData(thrown), tool);
  }
}

/**
 * The call was made; whoever reads only that it failed would make it again. Its code says so too, whatever error the value threw when
 * it was read, or the store when it was kept.
 */
export function valueLost({ message, ...error }: ErrorData, { effect }: Valued): Outcome {
  if (effect !== 'once' && effect !== 'keyed') return { kind: 'error', error: { ...error, message } };
  const code = error.code === 'tool_invalid_output' ? error.code : 'unserializable';
  const told = `The call has happened, and is not to be made again; its value cannot be used: ${message}`;
  return { kind: 'error', error: { ...error, code, message: told } };
}

/** `undefined`: the value fits its tool's output schema. */
export async function misfitOf(value: Json, tool: Valued): Promise<Outcome | undefined> {
  const checked = await tool.checkValue?.(value);
  if (checked?.ok !== false) return undefined;
  const message = `The value of ${tool.schema.name} does not fit its output schema: ${checked.why}.`;
  return valueLost({ code: 'tool_invalid_output', message }, tool);
}

async function checkAndStore(captured: Captured, call: Owned, tool: Valued, ports: Stores): Promise<Outcome> {
  const misfit = await misfitOf(captured.json, tool);
  if (misfit !== undefined) return misfit;
  if (!mayBeLarge(captured)) return { kind: 'value', value: captured.json };
  const reader = call.tools && builtinName(call.tools, ARTIFACT_FETCH);
  return storeLargeValue(captured, tool.schema.name, call.identity, ports.artifacts, reader);
}

/** The journal form of anything thrown. A tool's own string code is kept; stacks and arguments are not. */
export function errorData(thrown: unknown, fallback = 'tool_failed'): ErrorData {
  const { code = fallback, message, data } = Thrown.of(thrown);
  return data === undefined ? { code, message } : { code, message, data };
}

/**
 * What the end of a task is as the outcome of the call that it has carried out.
 *
 * @param tool whose call it is. Absent: somebody has accepted that it is gone, and nothing checks its value.
 */
export async function outcomeOfTask(
  end: TaskEnd,
  name: string,
  tool: ReadyTool | undefined,
  ports: Owned & Stores,
): Promise<Outcome> {
  if (name === UNDO_TASK) return outcomeOfUndo(end);
  const {
    status,
    stored,
    files,
    // Files alone are an answer too, and a plan has no other way to them.
    result = files === undefined ? null : { files: files.map(fileRef) },
    error = { code: status, message: `The task ended as ${status}.` },
  } = end;
  if (status !== 'complete') {
    if (error.data?.['in_doubt'] !== undefined) return { kind: 'unknown', error };
    return { kind: status === 'cancelled' ? 'cancelled' : 'error', error };
  }
  const { identity, artifacts } = ports;
  try {
    const value = stored === undefined ? result : await storedJson(result, identity, artifacts);
    const outcome = await valueOutcome(value, ports, tool ?? { schema: { name }, checkValue: undefined }, ports);
    return files === undefined || outcome.kind !== 'value'
      ? outcome
      : withFiles(outcome, files, end.result === undefined);
  } catch (thrown) {
    return { kind: 'error', error: errorData(thrown) };
  }
}

function fileRef({ artifactRef, mime, sizeBytes }: InputArtifact): JsonObject {
  return { artifactRef, mime, sizeBytes };
}

/** A model is shown the files that the model of the task has made. */
function withFiles(
  outcome: Extract<Outcome, { kind: 'value' }>,
  files: readonly InputArtifact[],
  isFilesAlone: boolean,
): Outcome {
  const parts = files.map((file) => ({ ...file, type: 'file' as const }));
  return { ...outcome, modelOutput: { type: 'content', value: isFilesAlone ? parts : [{ type: 'value' }, ...parts] } };
}

/** What a task that was to undo what it did has come to. */
function outcomeOfUndo({ task, error }: TaskEnd): Outcome {
  const report = error?.data?.['undo'];
  const counts = undoCounts(error?.data);
  if (report !== undefined && counts !== undefined && counts.failed + counts.left === 0)
    return { kind: 'value', value: report };
  const message = `The task ${task} has not undone all that it did.`;
  return {
    kind: 'error',
    error: { code: 'undo_failed', message, ...(report === undefined ? {} : { data: { undo: report } }) },
  };
}
