/**
 * One call, from its arguments to its outcome: resolve in the authorised view, check, reserve, begin, attempt, check the
 * value, store it. Whatever goes wrong on the way is an outcome, never an exception.
 */

import type { Clock } from '../core/clock.ts';
import type { Branch } from '../core/decision.ts';
import { describeThrown, type ErrorData } from '../core/errors.ts';
import type { Identity } from '../core/identity.ts';
import { type Captured, captureJson, captureObject, type Json } from '../core/json.ts';
import type { Outcome } from '../core/outcome.ts';
import type { ArtifactStore } from '../journal/port.ts';
import type { AuthorisedTools, ReadyTool } from '../tools/catalogue.ts';
import type { ToolContext } from '../tools/tool.ts';
import type { OpenStep } from '../view/run-state.ts';
import type { Flight, LazySignal, Settled } from './flight.ts';
import { mayBeHeavy, storeHeavy } from './heavy.ts';

export interface CallResult {
  readonly outcome: Outcome;
  readonly startedAt?: number;
  readonly attempts: number;
  readonly costMicroUsd?: number;
}

export interface Call {
  /** The step that the call belongs to, and its place in it. */
  readonly open: OpenStep;
  readonly index: number;
  readonly branch: Branch;
  readonly identity: Identity;
  readonly idempotencyKey: string;
  readonly tools: AuthorisedTools;
  readonly flight: Flight;
  /** The call was begun by a process that died before it recorded a result. */
  readonly interrupted: boolean;
}

export interface DispatchPorts {
  readonly clock: Clock;
  readonly artifacts: ArtifactStore;
  /** Makes durable that the call begins. @throws the journal's refusal. */
  begin(call: Call): Promise<void>;
  /** Sets money aside for a call. False when the budget has no room for it. */
  reserve(call: Call, costMicroUsd: number): boolean;
  /** The arguments with references replaced by the values of earlier branches. */
  resolveArgs(call: Call): Json | Promise<Json>;
}

/** Arguments that are ready to be handed to a tool. */
export type Prepared = { readonly tool: ReadyTool; readonly args: unknown } | { readonly error: ErrorData };

/** Resolves the tool and checks the arguments. Nothing has been started when this gives an error. */
export function prepareCall(tools: AuthorisedTools, name: string, args: Json): Prepared | Promise<Prepared> {
  const tool = tools.ready(name);
  if (tool === undefined) return { error: unknownTool(tools, name) };
  const checked = tool.checkArgs(args);
  const finish = (result: Awaited<typeof checked>): Prepared =>
    result.ok
      ? { tool, args: result.value }
      : {
          error: {
            code: 'tool_invalid_args',
            message: `The arguments of ${name} do not fit its schema: ${result.why}.`,
          },
        };
  return checked instanceof Promise ? checked.then(finish) : finish(checked);
}

function unknownTool(tools: AuthorisedTools, name: string): ErrorData {
  const known = tools.list().map((tool) => tool.name);
  const shown = name.replace(/\p{Cc}/gu, ' ').slice(0, 64);
  return {
    code: 'tool_not_found',
    message: `There is no tool named ${JSON.stringify(shown)}. The tools are: ${known.join(', ') || 'none'}.`,
  };
}

/** @throws the journal's refusal to let the call begin; nothing else. */
export async function dispatch(call: Call, ports: DispatchPorts): Promise<CallResult> {
  let prepared: Prepared;
  try {
    const resolved = ports.resolveArgs(call);
    const args = resolved instanceof Promise ? await resolved : resolved;
    const checked = prepareCall(call.tools, call.branch.tool, args);
    prepared = checked instanceof Promise ? await checked : checked;
  } catch (thrown) {
    prepared = { error: errorData(thrown) };
  }
  if ('error' in prepared) return { outcome: refused(prepared.error, call), attempts: 0 };
  if (call.flight.aborted) return { outcome: cancelled(), attempts: 0 };
  const { tool, args } = prepared;
  const { costMicroUsd } = tool;
  const cost = costMicroUsd > 0 ? costMicroUsd : undefined;
  const startedAt = ports.clock.now();
  if (tool.effect === 'once' && call.interrupted) {
    const outcome = await reconcile(call, tool, args, ports);
    if (outcome !== undefined) return ended(outcome, startedAt, 1, cost);
  }
  if (cost !== undefined && !ports.reserve(call, cost)) return { outcome: noRoom(tool), attempts: 0 };
  if (tool.effect === 'once' && !call.interrupted) await ports.begin(call);
  for (let attempt = 1; ; attempt += 1) {
    if (call.flight.aborted) return ended(cancelled(), startedAt, attempt - 1, cost);
    const outcome = await call.flight.attempt(
      (signal) => tool.source.run(args as never, new CallContext(call, signal, attempt)),
      (settled) => outcomeOf(settled, attempt, call, tool, ports),
      tool,
    );
    if (outcome !== undefined) return ended(outcome, startedAt, attempt, cost);
    await call.flight.pause(retryDelayMs(attempt));
  }
}

function ended(outcome: Outcome, startedAt: number, attempts: number, cost: number | undefined): CallResult {
  return cost === undefined ? { outcome, startedAt, attempts } : { outcome, startedAt, attempts, costMicroUsd: cost };
}

/** A call that is refused now, but was under way when its process died, may have happened. */
function refused(error: ErrorData, call: Call): Outcome {
  if (!call.interrupted) return { kind: 'error', error };
  return {
    kind: 'unknown',
    error: {
      code: 'outcome_unknown',
      message: `The call was begun before a crash and cannot be looked up: ${error.message}`,
    },
  };
}

function noRoom(tool: ReadyTool): Outcome {
  const message = `The budget has no room for ${tool.schema.name}, which costs ${tool.costMicroUsd} millionths of a dollar.`;
  return { kind: 'error', error: { code: 'budget_exceeded', message } };
}

/** `undefined`: it failed in a way that may pass, and there are attempts left. */
function outcomeOf(
  settled: Settled<unknown>,
  attempt: number,
  call: Call,
  tool: ReadyTool,
  ports: DispatchPorts,
): Outcome | Promise<Outcome> | undefined {
  if (settled.kind === 'value') return valueOutcome(settled.value, call, tool, ports);
  if (call.flight.aborted) return abortedOutcome(settled, tool);
  return attempt > tool.retries || !mayPass(settled) ? failure(settled, tool, attempt) : undefined;
}

/** Asks a `once` tool what became of a call that was cut off. `undefined`: it did not happen, and may be run. */
async function reconcile(
  call: Call,
  tool: ReadyTool,
  args: unknown,
  ports: DispatchPorts,
): Promise<Outcome | undefined> {
  const unknown: Outcome = {
    kind: 'unknown',
    error: {
      code: 'outcome_unknown',
      message: `${tool.schema.name} was started before a crash, and nothing says whether it happened. It was not run again.`,
    },
  };
  const { source } = tool;
  if (source.reconcile === undefined) return unknown;
  const asked = await call.flight.attempt(
    (signal) => source.reconcile?.(args as never, new CallContext(call, signal, 1)),
    (settled) => settled,
    tool,
  );
  if (asked.kind !== 'value') return unknown;
  if (asked.value?.status === 'done') return valueOutcome(asked.value.value, call, tool, ports);
  return asked.value?.status === 'not_done' ? undefined : unknown;
}

/** A class and not a literal, because a literal with a getter is slow to make. */
class CallContext implements ToolContext {
  readonly idempotencyKey: string;
  readonly identity: Identity;
  readonly attempt: number;
  readonly #lazy: LazySignal;

  constructor({ idempotencyKey, identity }: Call, lazy: LazySignal, attempt: number) {
    this.idempotencyKey = idempotencyKey;
    this.identity = identity;
    this.attempt = attempt;
    this.#lazy = lazy;
  }

  get signal(): AbortSignal {
    return this.#lazy.signal;
  }
}

const FIRST_DELAY_MS = 100;
const MAX_DELAY_MS = 30_000;

/** Full jitter: a random time from 0 to the exponential bound (100 ms, 200 ms, … 30 s). */
function retryDelayMs(attempt: number): number {
  return Math.random() * Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** (attempt - 1));
}

/** Only what an error says of itself counts: its `retryable` flag or an HTTP status. Texts are never searched. */
function mayPass(settled: Settled<unknown>): boolean {
  if (settled.kind === 'timeout') return true;
  if (settled.kind !== 'thrown') return false;
  const { error } = settled;
  if (typeof error !== 'object' || error === null) return false;
  if ('retryable' in error && typeof error.retryable === 'boolean') return error.retryable;
  const status = 'status' in error ? error.status : 'statusCode' in error ? error.statusCode : undefined;
  return typeof status === 'number' && (status >= 500 || status === 429);
}

function failure(settled: Settled<unknown>, tool: ReadyTool, attempts: number): Outcome {
  const cause = settledError(settled, tool);
  if (attempts === 1) return { kind: 'error', error: cause };
  const message = `${tool.schema.name} failed ${attempts} times; the last time: ${cause.message}`;
  return { kind: 'error', error: { code: 'tool_retries_exhausted', message, data: { attempts, cause: { ...cause } } } };
}

function settledError(settled: Settled<unknown>, tool: ReadyTool): ErrorData {
  if (settled.kind === 'thrown') return errorData(settled.error);
  const maybe = tool.effect === 'once' || tool.effect === 'keyed' ? ' It may have happened all the same.' : '';
  return { code: 'tool_timeout', message: `${tool.schema.name} did not end within ${tool.timeoutMs} ms.${maybe}` };
}

function abortedOutcome(settled: Settled<unknown>, tool: ReadyTool): Outcome {
  if (settled.kind !== 'abandoned') return cancelled();
  const message = `${tool.schema.name} ignored its abort signal and was abandoned.`;
  if (tool.effect !== 'once') return { kind: 'cancelled', error: { code: 'tool_abandoned', message } };
  return { kind: 'unknown', error: { code: 'outcome_unknown', message: `${message} It may have happened.` } };
}

function cancelled(): Outcome {
  return { kind: 'cancelled', error: { code: 'cancelled', message: 'The call was stopped before it ended.' } };
}

function valueOutcome(value: unknown, call: Call, tool: ReadyTool, ports: DispatchPorts): Outcome | Promise<Outcome> {
  try {
    const captured = captureJson(value === undefined ? null : value, 'value');
    if (tool.checkValue === undefined && !mayBeHeavy(captured)) return { kind: 'value', value: captured.json };
    return checkAndStore(captured, call, tool, ports).catch((thrown: unknown) => ({
      kind: 'error',
      error: errorData(thrown),
    }));
  } catch (thrown) {
    return { kind: 'error', error: errorData(thrown) };
  }
}

async function checkAndStore(captured: Captured, call: Call, tool: ReadyTool, ports: DispatchPorts): Promise<Outcome> {
  const checked = await tool.checkValue?.(captured.json);
  if (checked?.ok === false) {
    const message = `The value of ${tool.schema.name} does not fit its output schema: ${checked.why}.`;
    return { kind: 'error', error: { code: 'tool_invalid_output', message } };
  }
  if (!mayBeHeavy(captured)) return { kind: 'value', value: captured.json };
  return storeHeavy(captured, tool.schema.name, call.identity, ports.artifacts);
}

/** The journal form of anything thrown. A tool's own string code is kept; stacks and arguments are not. */
export function errorData(thrown: unknown, fallback = 'tool_failed'): ErrorData {
  const message = describeThrown(thrown);
  const fields: { code?: unknown; data?: unknown } = typeof thrown === 'object' && thrown !== null ? thrown : {};
  const { code, data } = fields;
  const error = { code: typeof code === 'string' && code !== '' ? code : fallback, message };
  if (data === undefined) return error;
  try {
    return { ...error, data: captureObject(data, 'error.data').json };
  } catch {
    // The error itself is worth more than data that is no JSON.
    return error;
  }
}
