/** Starting a flow in a runtime, and waiting for its output. */
import {
  capture,
  type ErrorCode,
  type Identity,
  type Json,
  type JsonObject,
  type Limits,
  type OptionShape,
  PilotageError,
  type Planner,
  readOptions,
} from '#core';
import type { ValueCheck } from '#tools';
import { FlowError, flowError } from './error.ts';

export interface FlowOptions {
  readonly identity: Identity;
  /** Data that every node may read as `context.meta`. The key `route_policy` holds what routers must pick, by their names. */
  readonly meta?: JsonObject;
  /** Limits beside the flow's own budget. The smaller value counts on each axis. */
  readonly limits?: Limits;
  /** Scopes that the user holds. Default none. */
  readonly scopes?: readonly string[];
  /** -1000 to 1000; higher is driven first. Default 0. */
  readonly priority?: number;
  /** True: the run is a turn of its session's conversation. Default false. */
  readonly conversation?: boolean;
}

const OPTIONS: OptionShape<FlowOptions> = {
  ...({
    identity: 'any',
    meta: 'any?',
    limits: 'any?',
    scopes: 'any?',
    priority: 'any?',
    conversation: 'any?',
  } as const),
};

/** The options with which a runtime starts a flow. */
export interface FlowStart extends Omit<FlowOptions, 'meta'> {
  readonly agent: string;
  readonly context: { readonly args: Json; readonly meta?: JsonObject };
}

/** A runtime that knows the flow. */
export interface FlowRuntime<R> {
  start(query: string, options: FlowStart): Promise<R>;
}

/** The part of a run that a flow uses. */
export interface FlowRun {
  readonly id: string;
  result(): Promise<FlowResult>;
  /** The payload that the run finished with, read in full when it was stored. */
  payload(): Promise<Json | undefined>;
}

type FlowResult =
  | Parameters<typeof flowError>[0]
  | { readonly status: 'paused'; readonly pauses: readonly { readonly token: string; readonly reason: string }[] };

/** The parts of a flow that are needed to run it. */
export interface Runnable {
  readonly name: string;
  readonly planner: Planner;
  readonly checkInput: ValueCheck;
  readonly checkOutput?: ValueCheck;
}

/**
 * Starts a run of the flow, which goes on by itself.
 * @throws FlowError `validation_failed` for an input that does not fit: nothing is stored. PilotageError `agent_unknown`
 * when the runtime does not know the flow.
 */
export async function startFlow<R>(
  flow: Runnable,
  runtime: FlowRuntime<R>,
  input: unknown,
  given: FlowOptions,
): Promise<R> {
  const { meta, ...options } = readOptions(`start of the flow ${flow.name}`, given, OPTIONS);
  // Its schema is asked by the runtime, as of every run that is started with the flow.
  const args = asJson(input, { flow, identity: options.identity, where: 'input' });
  return runtime.start(flow.name, {
    conversation: false,
    ...options,
    agent: flow.name,
    context: meta === undefined ? { args } : { args, meta },
  });
}

/**
 * What a run of the flow is given, after the input schema.
 * @throws FlowError `validation_failed` for an input that does not fit, or for none.
 */
export async function readInput(flow: Runnable, args: Json | undefined, identity: Identity): Promise<Json> {
  const place = { flow, identity, where: 'input' } as const;
  if (args !== undefined) return checkedBy(flow.checkInput, args, place);
  throw unfit(place, 'is missing: give context.args, or start it with start or run of the flow.');
}

/**
 * Runs the flow to its end.
 * @returns the output, as JSON, after the flow's output schema.
 * @throws FlowError that says why the flow gave no output; `run_paused` when somebody has to answer first.
 */
export async function runFlow(
  flow: Runnable,
  runtime: FlowRuntime<FlowRun>,
  input: unknown,
  options: FlowOptions,
): Promise<Json> {
  const run = await startFlow(flow, runtime, input, options);
  const identity = { ...options.identity, run: run.id };
  const result = await run.result();
  if (result.status === 'paused') throw paused(flow.name, identity, result.pauses);
  if (result.status === 'failed' || result.reason !== 'goal') throw flowError(result, identity, flow.name);
  const output = (await run.payload()) ?? null;
  return flow.checkOutput === undefined
    ? output
    : checkedBy(flow.checkOutput, output, { flow, identity, where: 'output' });
}

interface Place {
  readonly flow: Runnable;
  readonly identity: Identity;
  readonly where: 'input' | 'output';
}

/** The value after the schema's transforms, as JSON. */
async function checkedBy(check: ValueCheck, given: unknown, place: Place): Promise<Json> {
  const checked = await check(asJson(given, place));
  if (!checked.ok) throw unfit(place, `does not fit its schema: ${checked.why}`);
  return asJson(checked.value, place);
}

function asJson(value: unknown, place: Place): Json {
  try {
    return capture(value, place.where).json;
  } catch (cause) {
    if (!PilotageError.is(cause)) throw cause;
    throw unfit(place, `is not JSON: ${cause.message}`, cause);
  }
}

function unfit({ flow: { name }, identity, where }: Place, what: string, cause?: PilotageError): FlowError {
  return failedWith(
    'validation_failed',
    `The ${where} of the flow ${name} ${what}`,
    { identity, flow: name },
    { where },
    cause,
  );
}

function paused(
  flow: string,
  identity: Identity,
  pauses: readonly { readonly token: string; readonly reason: string }[],
): FlowError {
  const reasons = pauses.map(({ reason }) => reason).join(', ');
  const message =
    `The flow ${flow} waits for somebody to answer (${reasons}). The run ${identity.run} goes on when it is resumed; ` +
    'start flows that pause with start, which gives the run.';
  const asked = pauses.map(({ token, reason }) => ({ token, reason }));
  return failedWith('run_paused', message, { identity, flow }, { run: identity.run, pauses: asked });
}

function failedWith(
  code: ErrorCode,
  message: string,
  { identity, flow }: Pick<FlowError, 'identity' | 'flow'>,
  data: JsonObject,
  cause?: PilotageError,
): FlowError {
  const parts = { identity, flow, attempts: 0, data: { ...data, flow } };
  return new FlowError(code, message, cause === undefined ? parts : { ...parts, cause });
}
