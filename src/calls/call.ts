/**
 * One call, from its arguments to its outcome: resolve in the authorised view, check the arguments, ask policy and gate, reserve, begin,
 * attempt, check the value, store it. What goes wrong with the call becomes its outcome. Only a lost lease and a failing store reject: then
 * it is not this process that ends the call.
 */

import {
  ARTIFACT_FETCH,
  builtinName,
  type CallResult,
  capture,
  deepFreeze,
  describeThrown,
  type ErrorData,
  type HandleNote,
  isResultFile,
  type Json,
  LazySignal,
  type Outcome,
  type StoreUse,
  type Thrown,
} from '#core';
import { mayGiveUp } from '#state';
import {
  askedOf,
  type HandsOver,
  isLater,
  type ReadyAgentTool,
  type ReadyFunction,
  type ReadyTool,
  resultOf,
  successorName,
} from '#tools';
import { type PreparedCall, prepareCall } from './arguments.ts';
import type { Settled } from './attempt.ts';
import type { AwayAsk, Call, DispatchPorts, HeldCall, TaskAsk, WaitsAsk } from './call-ports.ts';
import { clientCall } from './client-call.ts';
import { CallContext } from './context.ts';
import { inDoubt, isNotSent, type Unsure, unsureOf } from './doubt.ts';
import { approvalToRepeat, loginFor, type PauseAsk } from './gates.ts';
import type { Handed } from './handles.ts';
import { valueOrWait, waitsForValue } from './later-value.ts';
import { doubtOf, settleDoubt } from './look-up.ts';
import { outcomeOfValue } from './model-output.ts';
import {
  abortedOutcome,
  cancelled,
  effectHeldBack,
  errorData,
  failedOutcome,
  LONGEST_AWAY_MS,
  mayRetry,
  retryDelayMs,
  settledError,
  waitsTooLong,
} from './outcome.ts';
import { permissionFor } from './permission.ts';

/** What a call comes to, or what it waits for. */
export type Dispatched = CallResult | PauseAsk | HeldCall | TaskAsk | AwayAsk | WaitsAsk;

/** Makes the call, or says what it waits for. Rejects when the lease is lost, and with an error of the store. */
export function dispatch(call: Call, ports: DispatchPorts): Promise<Dispatched> {
  const { refusal } = call.branch;
  if (refusal !== undefined) return Promise.resolve({ outcome: { kind: 'error', error: refusal }, attempts: 0 });
  const prepared = prepare(call, ports);
  if (prepared instanceof Promise || 'error' in prepared) return admit(call, prepared, ports);
  const { tool, args, given } = prepared;
  const asks = call.held || call.branch.reuse === true || call.tools.policy !== undefined || tool.gate !== undefined;
  return asks || 'agent' in tool || ports.aside.concerns(tool.effect)
    ? admit(call, prepared, ports)
    : make(call, tool, args, ports, given);
}

/** The arguments, resolved and checked. Whatever goes wrong is an error of the call. */
function prepare(call: Call, ports: DispatchPorts): PreparedCall | Promise<PreparedCall> {
  try {
    const given = ports.resolveArgs(call);
    return given instanceof Promise ? given.then((args) => check(call, args), unprepared) : check(call, given);
  } catch (thrown) {
    return unprepared(thrown);
  }
}

function check({ tools, branch, offered }: Call, given: Json): PreparedCall | Promise<PreparedCall> {
  try {
    const checked = prepareCall(tools, branch.tool, given, offered);
    return checked instanceof Promise ? checked.catch((thrown: unknown) => unprepared(thrown, given)) : checked;
  } catch (thrown) {
    return unprepared(thrown, given);
  }
}

function unprepared(thrown: unknown, given: Json = null): PreparedCall {
  return { error: errorData(thrown), given };
}

/** Asks whoever has a say in the call, and makes it when they allow it. */
async function admit(
  call: Call,
  prepared: PreparedCall | Promise<PreparedCall>,
  ports: DispatchPorts,
): Promise<Dispatched> {
  const { branch } = call;
  const checked = await prepared;
  if ('error' in checked) return refused(checked.error, call, checked.given, ports);
  const { tool, args, given } = checked;
  const earlier = branch.reuse === true && hasEffect(tool) ? await ports.earlier(call, given) : undefined;
  if (earlier?.outcome !== undefined && !call.interrupted) {
    return { outcome: earlier.outcome, attempts: 0, reuses: earlier.place };
  }
  const isCarried = 'agent' in tool;
  if (isCarried && call.begunOnce) return refused(CARRIED_NOW, call, given, ports);
  // The task is held while its owner is held.
  if (call.held && tool.effect === 'once' && !isCarried) return { outcome: effectHeldBack(tool), attempts: 0 };
  const asks = call.tools.policy !== undefined || tool.gate !== undefined;
  const said = asks && !call.interrupted ? await permissionFor(call, checked, ports) : undefined;
  if (said?.kind === 'pause') return call.attempt.aborted ? { outcome: cancelled(), attempts: 0 } : said;
  if (said !== undefined) {
    // Whoever was asked may not have been heard out.
    if (call.attempt.aborted) return { outcome: cancelled(), attempts: 0 };
    return { outcome: { kind: 'error', error: said.error }, attempts: 0 };
  }
  // A rule has not seen what was done on another branch.
  const hasSeen = call.approval !== undefined && call.approval.rules === undefined;
  const isAsked = !hasSeen && !call.interrupted && ports.aside.concerns(tool.effect);
  const madeIn = isAsked ? await ports.aside.find(branch.tool, given) : undefined;
  if (madeIn !== undefined) return approvalToRepeat(tool, given, madeIn, call.identity, ports.artifacts);
  if (isCarried) return askForTask(call, tool, tool.isOneCall ? given : args, ports);
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
    const query = queryFor(tool, args, captured);
    if (typeof query !== 'string') return { outcome: { kind: 'error', error: query }, attempts: 0 };
    const refused = ports.reserve(call, tool.schema, undefined);
    if (refused !== undefined) return refused;
    return { kind: 'task', tool, args: captured, query };
  } catch (thrown) {
    const message = `The arguments of ${tool.schema.name}, as its schema gives them, cannot be recorded: ${describeThrown(thrown)}`;
    return { outcome: { kind: 'error', error: { code: 'tool_invalid_args', message } }, attempts: 0 };
  }
}

/** What the task is asked, or why that cannot be said. */
function queryFor(tool: ReadyAgentTool, given: unknown, args: Json): string | ErrorData {
  try {
    return askedOf(tool, given, args);
  } catch (thrown) {
    const message = `${tool.schema.name} was not called, because what its agent is asked could not be made: ${describeThrown(thrown)}`;
    return { code: 'tool_failed', message };
  }
}

/** A call that is made: what it is, and what of it is known. */
interface Making {
  readonly call: Call;
  readonly tool: ReadyFunction;
  readonly args: unknown;
  readonly given: Json;
  readonly ports: DispatchPorts;
  readonly isOnce: boolean;
  readonly cost: number | undefined;
  readonly startedAt: number;
  handed: Handed | undefined;
  /** The context of the last attempt. */
  context: CallContext | undefined;
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
): Promise<CallResult | PauseAsk | HeldCall | AwayAsk | WaitsAsk> {
  const { handsOver } = tool.source;
  const stays = handsOver && ports.whyNotTo(successorName(handsOver));
  if (stays !== undefined) return { outcome: { kind: 'error', error: stays }, attempts: 0 };
  const isOnce = tool.effect === 'once' || call.begunOnce;
  const cost = tool.costMicroUsd > 0 ? tool.costMicroUsd : undefined;
  const startedAt = call.away?.startedAt ?? call.waiting?.startedAt ?? call.begunAt ?? ports.clock.now();
  const making: Making = {
    call,
    tool,
    args,
    given,
    ports,
    isOnce,
    cost,
    startedAt,
    handed: undefined,
    context: undefined,
  };
  if (call.waiting?.later !== undefined) {
    const come = await valueOrWait(making, ports);
    if (come?.kind === 'waits') return come;
    if (come !== undefined) return listed(ended(come, startedAt, 1, cost), call, ports);
  }
  if (tool.client !== undefined) return givenToClient(making);
  const isPlain = !isOnce && !call.interrupted && cost === undefined && tool.handles === undefined;
  const over = isPlain && !isToBeKnown(call, tool) ? place(making) : await begin(making);
  if (over !== undefined) return over;
  for (let attempt = 1 + (call.away?.attempts ?? 0); ; attempt += 1) {
    // Whoever wrote just now that the call begins owns the run. A call that an earlier process began has no such proof of the lease.
    if (isOnce && call.interrupted) await ports.prove();
    // The proof is old if this process stood still since. From here on to the call there is no await.
    while (!ports.lease.isCertain && !call.attempt.aborted) await ports.prove();
    if (call.attempt.aborted) return ended(cancelled(), startedAt, attempt - 1, cost, making.handed?.notes);
    const outcome = await attemptOnce(making, attempt);
    if (outcome.kind === 'unsure') return settle(making, outcome);
    if (outcome.kind === 'pause' || outcome.kind === 'waits') return outcome;
    if (outcome.kind !== 'passing') {
      const result = ended(outcome, startedAt, attempt, cost, making.handed?.notes);
      return listed(handsOver === undefined ? result : handingOver(result, handsOver), call, ports, making.context);
    }
    const { error, askedMs } = outcome;
    const waitMs = Math.max(retryDelayMs(tool.backoff, attempt, ports.random()), askedMs);
    if (waitMs > LONGEST_STAY_MS) return { kind: 'away', error, attempts: attempt, startedAt, waitMs };
    await call.attempt.pause(waitMs);
  }
}

function handingOver(result: CallResult, to: HandsOver): CallResult {
  if (result.outcome.kind !== 'value') return result;
  return { ...result, handsOver: { agent: successorName(to), history: to.history } };
}

async function givenToClient(making: Making): Promise<CallResult | PauseAsk | HeldCall | WaitsAsk> {
  const { call, given, ports, startedAt } = making;
  // It began when its tool was still a function.
  if (call.interrupted) return refused(CARRIED_BY_CLIENT, call, given, ports);
  const over = place(making);
  if (over !== undefined) return over;
  const come = await clientCall(making, ports);
  return come.kind === 'waits' ? come : listed(ended(come, startedAt, 1, undefined), call, ports);
}

/** Takes the place of the call in the budget. What it comes to when it is not made. */
function place({ call, tool, cost, ports }: Making): CallResult | HeldCall | undefined {
  if (call.attempt.aborted) return { outcome: cancelled(), attempts: 0 };
  return ports.reserve(call, tool.schema, cost);
}

/** All that comes before the first attempt of a call that has a cost or an effect, was cut off, or needs handles. */
async function begin(making: Making): Promise<CallResult | PauseAsk | HeldCall | WaitsAsk | undefined> {
  const { call, tool, given, ports, isOnce, cost, startedAt } = making;
  if (isOnce && (call.interrupted || ports.atWork.has(call.idempotencyKey))) {
    const isAtWork = ports.atWork.has(call.idempotencyKey);
    const why = isAtWork ? AT_WORK : CUT_OFF;
    const settled = await settle(making, { kind: 'unsure', why, otherwise: NOT_DONE, isAtWork });
    if ('kind' in settled || settled.outcome !== NOT_DONE) return settled;
  }
  if (call.attempt.aborted) return { outcome: cancelled(), attempts: 0 };
  if (call.interrupted && call.tools.policy !== undefined) {
    const said = await permissionFor(call, { tool, args: making.args, given }, ports);
    if (said?.kind === 'pause') return said;
    if (said !== undefined) return listed(ended({ kind: 'error', error: said.error }, startedAt, 0, cost), call, ports);
  }
  const handed = tool.handles === undefined ? undefined : await ports.hand(call, tool.handles);
  if (handed !== undefined && handed.values === undefined) return notHanded(handed, tool, startedAt);
  making.handed = handed;
  // A `once` call that was cut off is known not to have happened here: others may have used up what was set aside for it.
  if (!call.interrupted || isOnce) {
    const refused = ports.reserve(call, tool.schema, cost);
    if (refused !== undefined) return refused;
  }
  const isWritten = !call.interrupted && (cost !== undefined || isOnce || isToBeKnown(call, tool));
  return isWritten ? ports.begin(call, tool.schema, cost, !isOnce) : undefined;
}

/** Settles a call in doubt: looks it up, tells the planner, or asks a person. */
async function settle(making: Making, unsure: Unsure): Promise<CallResult | PauseAsk | WaitsAsk> {
  const { call, tool, args, given, ports, cost, startedAt } = making;
  const settled = await settleDoubt({ call, tool, args, given, since: startedAt }, unsure, ports);
  if (settled.kind !== 'settled') return settled;
  return listed(ended(settled.outcome, startedAt, 1, cost), call, ports, settled.context);
}

/** A failure that may pass, with attempts left. None is made before `askedMs` are over. */
interface Passing {
  readonly kind: 'passing';
  readonly error: ErrorData;
  readonly askedMs: number;
}

/** What an attempt comes to. */
type Concluded = Outcome | PauseAsk | Unsure | Passing | WaitsAsk;

function attemptOnce(making: Making, attempt: number): Concluded | Promise<Concluded> {
  const { call, tool, args, ports, isOnce, handed } = making;
  const signal = new LazySignal();
  const stops = {
    // The promise of a function that waits never settles.
    idle: () => ports.atWork.forget(call.idempotencyKey, signal),
    park: () => call.attempt.park(),
    ...(isOnce && { fail: (error: Thrown) => call.attempt.fail(error) }),
  };
  const context = new CallContext(call, ports, signal, attempt, stops, handed?.values);
  making.context = context;
  return call.attempt.run(
    () => {
      // A generator runs in the context of whoever asks it on.
      const execute = () => resultOf(tool.source.execute(args as never, context), context);
      const made = ports.tracing === undefined ? execute() : ports.tracing.within(context.place, execute);
      return isOnce ? ports.atWork.watch(call.idempotencyKey, signal, made) : made;
    },
    (settled) => {
      context.end();
      const streaming = context.untilStreamed();
      if (streaming === undefined) return concluded(settled, attempt, making, context);
      return streaming.then(() => concluded(settled, attempt, making, context));
    },
    {
      timeoutMs: tool.timeoutMs,
      signal,
      isHeardOut: isOnce || (call.mayBeUndone && tool.undo !== undefined),
      ...(tool.silence && { silence: tool.silence }),
    },
  );
}

function concluded(
  settled: Settled<unknown>,
  attempt: number,
  making: Making,
  { begunWaits: waits }: CallContext,
): Concluded | Promise<Concluded> {
  const { call, ports } = making;
  if (waits === undefined) {
    const isPutOff = settled.kind === 'value' && isLater(settled.value);
    return isPutOff ? waitsForValue(settled.value, making, ports) : outcomeOf(settled, attempt, making);
  }
  // What was stopped when it had just begun to wait ignores nothing, and is as sure as what is stopped while it is parked.
  if (call.attempt.aborted) return cancelled();
  const seen = call.waiting?.waits.filter(({ end }) => end !== undefined).length;
  return { kind: 'waits', waits, startedAt: making.startedAt, ...(seen === undefined ? {} : { seen }) };
}

/** A call without its handles has not begun, and costs nothing. A call that began before a crash may have happened. */
function notHanded({ error, notes }: Handed, tool: ReadyFunction, startedAt: number): CallResult | PauseAsk {
  if (error === undefined) return ended(cancelled(), startedAt, 0, undefined, notes);
  const login = loginFor(error, tool.schema.name);
  if (login !== undefined) return login;
  // A `once` call that was cut off was looked up before, and has not happened.
  return ended({ kind: 'error', error: errorData(error, 'handle_failed') }, startedAt, 0, undefined, notes);
}

/** Adds to the result what the call found and stored, and what it has read and written in the long-term store. */
function listed(
  result: CallResult,
  call: Call,
  ports: DispatchPorts,
  context?: CallContext,
): CallResult | Promise<CallResult> {
  const use = context?.storeUse(result.outcome.kind === 'value');
  return use === undefined ? withMade(result, call, ports, context) : withUse(use, result, call, ports, context);
}

async function withUse(
  using: Promise<StoreUse | undefined>,
  result: CallResult,
  call: Call,
  ports: DispatchPorts,
  context?: CallContext,
): Promise<CallResult> {
  const store = await using;
  const made = await withMade(result, call, ports, context);
  return store === undefined ? made : { ...made, store };
}

/** Only an attempt that ended with a value leaves something. */
function withMade(
  result: CallResult,
  call: Call,
  ports: DispatchPorts,
  context?: CallContext,
): CallResult | Promise<CallResult> {
  const { outcome } = result;
  if (outcome.kind !== 'value') return withFound(result, newlyFound(call, ports, []));
  if (context?.hasSaved === true) return withSaved(result, call, ports, context);
  const names = context?.discovered ?? NO_NAMES;
  return withFound(result, newlyFound(call, ports, isReadOn(outcome) ? [...names, ARTIFACT_FETCH] : names));
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

/** Something of it was stored that is text. */
function isReadOn({ artifact, modelOutput }: Extract<Outcome, { kind: 'value' }>): boolean {
  if (artifact !== undefined) return true;
  if (modelOutput?.type !== 'content') return false;
  return modelOutput.value.some((part) => isResultFile(part) && TEXT.test(part.mime));
}

const TEXT = /^(?:text\/|application\/json)/;

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
  const own = names.map((name) => builtinName(tools, name));
  const fresh = [tool, ...own].filter((name) => tools.get(name)?.loading === 'deferred' && !before.includes(name));
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

/** A call keeps its place for so long until its next attempt. For a longer wait it is put off. */
const LONGEST_STAY_MS = 1_000;

const CUT_OFF = 'The call was under way when its process died, or stopped.';
/** The error of a call that began when its tool was still a function. */
const CARRIED_NOW: ErrorData = { code: 'not_done', message: 'The tool of this call is carried out by a planner now.' };
const CARRIED_BY_CLIENT: ErrorData = {
  code: 'not_done',
  message: 'The tool of this call is carried out by a client now.',
};
const AT_WORK = 'An attempt that was given up is still running.';
/** The outcome of a call that has not happened and is made now. */
const NOT_DONE: Outcome = { kind: 'error', error: { code: 'not_done', message: 'The call did not happen.' } };

function outcomeOf(
  settled: Settled<unknown>,
  attempt: number,
  { call, tool, args, ports }: Making,
): Concluded | Promise<Outcome> {
  if (settled.kind === 'value') {
    const { value } = settled;
    return ports.turns.read(() => outcomeOfValue(value, { call, tool, args }, ports));
  }
  const isStopped = call.attempt.aborted;
  const login = settled.kind === 'thrown' ? loginFor(settled.error, tool.schema.name) : undefined;
  // A call that waits for a login has not happened.
  if (login !== undefined) return isStopped ? cancelled() : login;
  const unsure = tool.effect === 'once' ? unsureOf(settled, tool, isStopped) : undefined;
  if (unsure !== undefined) return unsure;
  if (isStopped) return abortedOutcome(settled, tool);
  const askedMs = settled.kind === 'thrown' ? settled.error.retryAfterMs(ports.clock.now()) : undefined;
  const error = settledError(settled, tool, askedMs);
  const { name } = tool.schema;
  const retries = isNotSent(settled) ? tool.safeRetries : tool.retries;
  if (attempt > retries || !mayRetry(settled, askedMs)) return failedOutcome(error, name, attempt);
  if (askedMs !== undefined && askedMs > LONGEST_AWAY_MS) return waitsTooLong(error, name, askedMs);
  return { kind: 'passing', error, askedMs: askedMs ?? 0 };
}

/**
 * Records that the call may have happened for a process that gives it up after a crash: otherwise a plan would make it again under
 * another key.
 */
function isToBeKnown({ open, mayBeUndone }: Call, tool: ReadyFunction): boolean {
  if (tool.effect !== 'keyed') return false;
  return (mayBeUndone && tool.undo !== undefined) || mayGiveUp(open.move.decision);
}

function hasEffect({ effect }: Pick<ReadyTool, 'effect'>): boolean {
  return effect === 'once' || effect === 'keyed';
}
