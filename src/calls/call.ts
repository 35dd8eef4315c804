/**
 * One call, from its arguments to its outcome: resolve in the authorised view, check, reserve, begin, attempt, check the
 * value, store it. Everything that goes wrong on the way becomes an outcome, never an exception.
 */

import {
  ARTIFACT_FETCH,
  type CallResult,
  capture,
  deepFreeze,
  describeThrown,
  type ErrorData,
  type HandleNote,
  type Json,
  LazySignal,
  type Outcome,
} from '#core';
import { mayGiveUp } from '#state';
import type { ReadyAgentTool, ReadyFunction, ReadyTool } from '#tools';
import { type PreparedCall, prepareCall } from './arguments.ts';
import type { Settled } from './attempt.ts';
import type { Call, DispatchPorts, HeldCall, TaskAsk } from './call-ports.ts';
import { CallContext } from './context.ts';
import { inDoubt, type Unsure, unsureOf } from './doubt.ts';
import { approvalFor, loginFor, type PauseAsk } from './gates.ts';
import type { Handed } from './handles.ts';
import { doubtOf, settleDoubt } from './look-up.ts';
import {
  abortedOutcome,
  cancelled,
  effectHeldBack,
  errorData,
  failedOutcome,
  mayRetry,
  retryDelayMs,
  valueOutcome,
} from './outcome.ts';

/** @throws the journal's refusal to let the call begin; nothing else. */
export async function dispatch(call: Call, ports: DispatchPorts): Promise<CallResult | PauseAsk | HeldCall | TaskAsk> {
  const { branch } = call;
  if (branch.refusal !== undefined) return { outcome: { kind: 'error', error: branch.refusal }, attempts: 0 };
  let prepared: PreparedCall;
  let given: Json = null;
  try {
    const resolved = ports.resolveArgs(call);
    given = resolved instanceof Promise ? await resolved : resolved;
    const checked = prepareCall(call.tools, branch.tool, given);
    prepared = checked instanceof Promise ? await checked : checked;
  } catch (thrown) {
    prepared = { error: errorData(thrown) };
  }
  if ('error' in prepared) return refused(prepared.error, call, given, ports);
  const { tool, args } = prepared;
  const earlier = branch.reuse === true && hasEffect(tool) ? await ports.earlier(call, given) : undefined;
  if (earlier?.outcome !== undefined && !call.interrupted) {
    return { outcome: earlier.outcome, attempts: 0, reuses: earlier.place };
  }
  const isCarried = 'agent' in tool;
  if (isCarried && call.begunOnce) return refused(CARRIED_NOW, call, given, ports);
  // The task is held while its owner is held.
  if (call.held && tool.effect === 'once' && !isCarried) return { outcome: effectHeldBack(tool), attempts: 0 };
  const asks = call.tools.policy !== undefined && !call.interrupted;
  const forbidden = asks ? await forbiddenBy(call, given) : undefined;
  if (forbidden !== undefined) return { outcome: { kind: 'error', error: forbidden }, attempts: 0 };
  if (tool.gate !== undefined && call.approval === undefined && !call.interrupted) {
    const asked = await approvalFor(tool, given, args, call.identity);
    if (asked?.kind === 'pause') return call.attempt.aborted ? { outcome: cancelled(), attempts: 0 } : asked;
    if (asked !== undefined) return { outcome: { kind: 'error', error: asked.error }, attempts: 0 };
  }
  if (isCarried) return askForTask(call, tool, args, ports);
  if (earlier === undefined || earlier.outcome !== undefined) return make(call, tool, args, ports, given);
  const { place: reuses } = earlier;
  const made = await make({ ...call, idempotencyKey: ports.keyOf(reuses) }, tool, args, ports, given);
  return 'kind' in made ? made : { ...made, reuses };
}

/** The task gets the arguments as a function would: with the defaults and transforms of the schema. */
function askForTask(
  call: Call,
  tool: ReadyAgentTool,
  args: unknown,
  ports: Pick<DispatchPorts, 'reserve'>,
): CallResult | HeldCall | TaskAsk {
  if (call.attempt.aborted) return { outcome: cancelled(), attempts: 0 };
  try {
    const captured = capture(args, 'args').json;
    const refused = ports.reserve(call, tool.schema, undefined);
    if (refused !== undefined) return refused;
    return { kind: 'task', tool, args: captured };
  } catch (thrown) {
    const message = `The arguments of ${tool.schema.name}, as its schema gives them, cannot be recorded: ${describeThrown(thrown)}`;
    return { outcome: { kind: 'error', error: { code: 'tool_invalid_args', message } }, attempts: 0 };
  }
}

/**
 * Why the policy does not allow the call; `undefined` when it does. A call that was cut off by a crash is looked up before the
 * policy is asked.
 */
async function forbiddenBy(
  { branch: { tool }, identity, attempt, tools: { policy } }: Call,
  args: Json,
): Promise<ErrorData | undefined> {
  if (policy === undefined) return undefined;
  return attempt.run(
    (signal) => policy({ tool, args, identity }, signal.signal),
    (settled) => {
      if (settled.kind === 'value' && settled.value === true) return undefined;
      const why = settled.kind === 'value' ? describeThrown(settled.value) : 'the policy could not be asked';
      const failed = settled.kind === 'thrown' ? `the policy failed: ${settled.error.message}` : why;
      return { code: 'policy_refused', message: `The policy does not allow this call of ${tool}: ${failed}` };
    },
  );
}

/**
 * Makes a call whose arguments fit and that needs no approval. Only the owner of the run starts an effect.
 * @throws PilotageError `lease_lost`, or the error of the store.
 */
async function make(
  call: Call,
  tool: ReadyFunction,
  args: unknown,
  ports: DispatchPorts,
  given: Json,
): Promise<CallResult | PauseAsk | HeldCall> {
  const isOnce = tool.effect === 'once' || call.begunOnce;
  const { costMicroUsd, timeoutMs } = tool;
  const cost = costMicroUsd > 0 ? costMicroUsd : undefined;
  const startedAt = call.begunAt ?? ports.clock.now();
  const result = (outcome: Outcome, attempts: number, context?: CallContext): CallResult | Promise<CallResult> =>
    listed(ended(outcome, startedAt, attempts, cost), call, ports, context);
  /** Settles a call in doubt: looks it up, tells the planner, or asks a person. */
  const settle = async (unsure: Unsure): Promise<CallResult | PauseAsk> => {
    const settled = await settleDoubt({ call, tool, args, given, since: startedAt }, unsure, ports);
    return settled.kind === 'pause' ? settled : result(settled.outcome, 1, settled.context);
  };
  if (isOnce && (call.interrupted || ports.atWork.has(call.idempotencyKey))) {
    const isAtWork = ports.atWork.has(call.idempotencyKey);
    const settled = await settle({ kind: 'unsure', why: isAtWork ? AT_WORK : CUT_OFF, otherwise: NOT_DONE, isAtWork });
    if ('kind' in settled || settled.outcome !== NOT_DONE) return settled;
  }
  if (call.attempt.aborted) return { outcome: cancelled(), attempts: 0 };
  if (call.interrupted) {
    const forbidden = await forbiddenBy(call, given);
    if (forbidden !== undefined) return result({ kind: 'error', error: forbidden }, 0);
  }
  const handed = tool.handles === undefined ? undefined : await ports.hand(call, tool.handles);
  if (handed !== undefined && handed.values === undefined) return notHanded(handed, tool, startedAt);
  // A `once` call that was cut off is known not to have happened here: others may have used up what was set aside for it.
  if (!call.interrupted || isOnce) {
    const refused = ports.reserve(call, tool.schema, cost);
    if (refused !== undefined) return refused;
  }
  if (!call.interrupted && (cost !== undefined || isOnce || isToBeKnown(call, tool))) {
    const late = await ports.begin(call, tool.schema, cost, !isOnce);
    if (late !== undefined) return late;
  }
  for (let attempt = 1; ; attempt += 1) {
    // The beginning of a first attempt was just written by the owner of the run; a repeated attempt has no such proof of the lease.
    if (isOnce && call.interrupted) await ports.lease.prove();
    // The proof is old if this process stood still since. From here on to the effect there is no await.
    while (hasEffect(tool) && !ports.lease.isCertain && !call.attempt.aborted) await ports.lease.prove();
    if (call.attempt.aborted) return ended(cancelled(), startedAt, attempt - 1, cost, handed?.notes);
    const signal = new LazySignal();
    const context = new CallContext(call, ports, signal, attempt, handed?.values);
    const run = (): unknown => tool.source.execute(args as never, context);
    const outcome = await call.attempt.run(
      isOnce ? () => ports.atWork.watch(call.idempotencyKey, run()) : run,
      (settled) => {
        context.end();
        return outcomeOf(settled, attempt, call, tool, ports);
      },
      { timeoutMs, signal, isHeardOut: isOnce },
    );
    if (outcome?.kind === 'unsure') return settle(outcome);
    if (outcome?.kind === 'pause') return outcome;
    if (outcome !== undefined) {
      return listed(ended(outcome, startedAt, attempt, cost, handed?.notes), call, ports, context);
    }
    await call.attempt.pause(retryDelayMs(tool.backoff, attempt, ports.random()));
  }
}

/** A call without its handles has not begun, and costs nothing. A call that began before a crash may have happened. */
function notHanded({ error, notes }: Handed, tool: ReadyFunction, startedAt: number): CallResult | PauseAsk {
  if (error === undefined) return ended(cancelled(), startedAt, 0, undefined, notes);
  const login = loginFor(error, tool.schema.name);
  if (login !== undefined) return login;
  // A `once` call that was cut off was looked up before, and has not happened.
  return ended({ kind: 'error', error: errorData(error, 'handle_failed') }, startedAt, 0, undefined, notes);
}

/** Adds to the result what the call found and stored. Only an attempt that ended with a value leaves something. */
function listed(
  result: CallResult,
  call: Call,
  ports: DispatchPorts,
  context?: CallContext,
): CallResult | Promise<CallResult> {
  const { outcome } = result;
  if (outcome.kind !== 'value') return withFound(result, newlyFound(call, ports, []));
  if (context?.hasSaved === true) return withSaved(result, call, ports, context);
  const names = context?.discovered ?? NO_NAMES;
  return withFound(
    result,
    newlyFound(call, ports, outcome.artifact === undefined ? names : [...names, ARTIFACT_FETCH]),
  );
}

async function withSaved(
  result: CallResult,
  call: Call,
  ports: DispatchPorts,
  context: CallContext,
): Promise<CallResult> {
  const artifacts = deepFreeze(await context.saved());
  if (artifacts.length === 0) return withFound(result, newlyFound(call, ports, context.discovered));
  return withFound({ ...result, artifacts }, newlyFound(call, ports, [...context.discovered, ARTIFACT_FETCH]));
}

const NO_NAMES: readonly string[] = [];
const NO_NOTES: readonly HandleNote[] = [];

/** The deferred tools among this tool and the given ones that were not found before, each once. */
export function newlyFound(
  { branch: { tool }, tools }: Pick<Call, 'branch' | 'tools'>,
  { found }: Pick<DispatchPorts, 'found'>,
  names: readonly string[],
): readonly string[] {
  if (names.length === 0 && tools.get(tool)?.loading !== 'deferred') return NO_NAMES;
  const before = found();
  const fresh = [tool, ...names].filter((name) => tools.get(name)?.loading === 'deferred' && !before.includes(name));
  return Object.freeze([...new Set(fresh)]);
}

function withFound(result: CallResult, discovered: readonly string[]): CallResult {
  return discovered.length === 0 ? result : { ...result, discovered };
}

function ended(
  outcome: Outcome,
  startedAt: number,
  attempts: number,
  cost: number | undefined,
  notes: readonly HandleNote[] = NO_NOTES,
): CallResult {
  const made =
    cost === undefined ? { outcome, startedAt, attempts } : { outcome, startedAt, attempts, costMicroUsd: cost };
  return notes.length === 0 ? made : { ...made, handles: notes };
}

/** The outcome of a call that is refused. If it was under way when its process died, it may have happened all the same. */
function refused(
  error: ErrorData,
  call: Call,
  given: Json,
  ports: DispatchPorts,
): CallResult | PauseAsk | Promise<CallResult> {
  const { tools, branch, begunAt } = call;
  const tool = tools.ready(branch.tool);
  const isKnown = !call.interrupted || (tool !== undefined && tool.effect !== 'once' && !call.begunOnce);
  if (isKnown) return listed({ outcome: { kind: 'error', error }, attempts: 0 }, call, ports);
  const why = `The call was under way when its process died, and cannot be looked up: ${error.message}`;
  const tells = tool !== undefined && 'source' in tool && tool.source.inDoubt === 'tell';
  const told = inDoubt(doubtOf(call, given, begunAt ?? ports.clock.now(), why, false), tells);
  return told.kind === 'pause' ? told : listed({ outcome: told, attempts: 0 }, call, ports);
}

const CUT_OFF = 'The call was under way when its process died, or stopped.';
/** The error of a call that began when its tool was still a function. */
const CARRIED_NOW: ErrorData = { code: 'not_done', message: 'The tool of this call is carried out by a planner now.' };
const AT_WORK = 'An attempt that was given up is still running.';
/** The outcome of a call that has not happened and is made now. */
const NOT_DONE: Outcome = { kind: 'error', error: { code: 'not_done', message: 'The call did not happen.' } };

/** The outcome of an attempt. `undefined`: the failure may pass, and attempts are left. */
function outcomeOf(
  settled: Settled<unknown>,
  attempt: number,
  call: Call,
  tool: ReadyFunction,
  ports: DispatchPorts,
): Outcome | PauseAsk | Unsure | Promise<Outcome> | undefined {
  if (settled.kind === 'value') {
    const { value } = settled;
    const { turns } = ports;
    return turns.read(() => valueOutcome(value, call, tool, ports, () => turns.take()));
  }
  const isStopped = call.attempt.aborted;
  const login = settled.kind === 'thrown' ? loginFor(settled.error, tool.schema.name) : undefined;
  // A call that waits for a login has not happened.
  if (login !== undefined) return isStopped ? cancelled() : login;
  const unsure = tool.effect === 'once' ? unsureOf(settled, tool, tool.timeoutMs, isStopped) : undefined;
  if (unsure !== undefined) return unsure;
  if (isStopped) return abortedOutcome(settled, tool);
  return attempt > tool.retries || !mayRetry(settled) ? failedOutcome(settled, tool, attempt) : undefined;
}

/**
 * Records that the call may have happened for a process that gives it up after a crash: otherwise a plan would make it again under
 * another key.
 */
function isToBeKnown({ open }: Call, tool: ReadyFunction): boolean {
  return tool.effect === 'keyed' && mayGiveUp(open.move.decision);
}

function hasEffect({ effect }: Pick<ReadyTool, 'effect'>): boolean {
  return effect === 'once' || effect === 'keyed';
}
