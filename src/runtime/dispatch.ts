/**
 * One call, from its arguments to its outcome: resolve in the authorised view, check, reserve, begin, attempt, check the
 * value, store it. Whatever goes wrong on the way is an outcome, never an exception.
 */

import { ARTIFACT_FETCH } from '../core/builtin-tools.ts';
import type { Clock } from '../core/clock.ts';
import type { ArtifactRow } from '../core/context.ts';
import type { Branch } from '../core/decision.ts';
import { describeThrown, type ErrorData } from '../core/errors.ts';
import type { HandleNote } from '../core/handle.ts';
import type { Identity } from '../core/identity.ts';
import { type Captured, captureJson, captureObject, deepFreeze, type Json, type JsonObject } from '../core/json.ts';
import type { Outcome } from '../core/outcome.ts';
import type { SkillView } from '../core/skills.ts';
import type { CallPlace } from '../core/step.ts';
import type { ToolSchema } from '../core/tool-schema.ts';
import type { ArtifactStore } from '../journal/port.ts';
import type { AuthorisedTools, ReadyFunction, ReadyPlannerTool, ReadyTool } from '../tools/catalogue.ts';
import type { NamedHandle } from '../tools/handle.ts';
import type { Backoff, Reconciled } from '../tools/tool.ts';
import type { Approval, OpenStep } from '../view/run-state.ts';
import { CallContext, type OwnCall, type Piece } from './call-context.ts';
import { type AtWork, type Doubt, inDoubt, type Unsure, unsureOf } from './doubt.ts';
import type { Earlier } from './earlier-calls.ts';
import { type Flight, LazySignal, type Settled } from './flight.ts';
import { approvalFor, loginFor, type PauseAsk } from './gates.ts';
import type { Handed } from './handles.ts';
import { mayBeHeavy, storeHeavy } from './heavy.ts';
import type { HeldLease } from './held-lease.ts';
import { type Prepared, prepareCall } from './prepare-call.ts';

export interface CallResult {
  readonly outcome: Outcome;
  readonly startedAt?: number;
  readonly attempts: number;
  readonly costMicroUsd?: number;
  /** Deferred tools that are to be listed from now on; absent when there are none. */
  readonly discovered?: readonly string[];
  /** What the tool stored beside its value; absent when there is nothing. */
  readonly artifacts?: readonly ArtifactRow[];
  /** Live handles of which the journal is to know; absent when there are none. */
  readonly handles?: readonly HandleNote[];
  /** The equal call of an earlier step whose outcome or key this is. */
  readonly reuses?: CallPlace;
}

/** The call may be made, and a task is to carry it out. */
export interface TaskAsk {
  readonly kind: 'task';
  readonly tool: ReadyPlannerTool;
  readonly args: Json;
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
  /** The call was begun, by a process that died or by an attempt that was given up, and no result was recorded. */
  readonly interrupted: boolean;
  /** When it was begun, if it was. Milliseconds since the epoch. */
  readonly begunAt: number | undefined;
  /** Somebody has approved it. */
  readonly approval: Approval | undefined;
  /** The run is a fork whose `once` calls are not made. */
  readonly held: boolean;
}

export interface DispatchPorts {
  readonly clock: Clock;
  readonly artifacts: ArtifactStore;
  readonly atWork: AtWork;
  /** What the run was started with beside its query. */
  readonly meta: JsonObject;
  /** Those of the run. */
  readonly skills: SkillView;
  /** Tells whoever reads the run, or one above it, of a chunk. */
  tellChunk(call: OwnCall, piece: Piece): void;
  /** From 0 up to 1. */
  random(): number;
  /** Makes durable that the call begins. @throws the journal's refusal. */
  begin(call: Call, costMicroUsd: number | undefined, repeatable: boolean): Promise<void>;
  readonly lease: Pick<HeldLease, 'isCertain' | 'prove' | 'graceLeftMs'>;
  /** Opens the handles that the call needs, or gives those that are open. */
  hand(call: Pick<Call, 'open' | 'flight'>, wanted: readonly NamedHandle[]): Promise<Handed>;
  /** Takes the place of a call in the budget, and its money. An axis that has no room for it: then nothing was taken. */
  reserve(call: Pick<Call, 'open' | 'index'>, costMicroUsd: number | undefined): 'calls' | 'cost' | undefined;
  /** The deferred tools that the run has found. */
  found(): readonly string[];
  /** What an equal call of an earlier step has left. */
  earlier(call: Call, args: Json): Promise<Earlier | undefined>;
  /** The idempotency key of a call of the run. */
  keyOf(place: CallPlace): string;
  /** The arguments, as approved or with references replaced by the values of earlier branches. */
  resolveArgs(call: Call): Json | Promise<Json>;
}

/** @throws the journal's refusal to let the call begin; nothing else. */
export async function dispatch(call: Call, ports: DispatchPorts): Promise<CallResult | PauseAsk | TaskAsk> {
  const { branch } = call;
  if (branch.refusal !== undefined) return { outcome: { kind: 'error', error: branch.refusal }, attempts: 0 };
  let prepared: Prepared;
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
  const isCarried = 'carriedOutBy' in tool;
  // The task is held as its owner is.
  if (call.held && tool.effect === 'once' && !isCarried) return { outcome: heldBack(tool), attempts: 0 };
  const asks = call.tools.policy !== undefined && !call.interrupted;
  const forbidden = asks ? await forbiddenBy(call, given) : undefined;
  if (forbidden !== undefined) return { outcome: { kind: 'error', error: forbidden }, attempts: 0 };
  if (tool.gate !== undefined && call.approval === undefined && !call.interrupted) {
    const asked = await approvalFor(tool, given, args, call.identity);
    if (asked?.kind === 'pause') return call.flight.aborted ? { outcome: cancelled(), attempts: 0 } : asked;
    if (asked !== undefined) return { outcome: { kind: 'error', error: asked.error }, attempts: 0 };
  }
  if (isCarried) return askForTask(call, tool, args, ports);
  if (earlier === undefined || earlier.outcome !== undefined) return make(call, tool, args, ports, given);
  const { place: reuses } = earlier;
  const made = await make({ ...call, idempotencyKey: ports.keyOf(reuses) }, tool, args, ports, given);
  return 'kind' in made ? made : { ...made, reuses };
}

/** The task gets the arguments as a function would: with the defaults of the schema, and what it makes of them. */
function askForTask(
  call: Call,
  tool: ReadyPlannerTool,
  args: unknown,
  ports: Pick<DispatchPorts, 'reserve'>,
): CallResult | TaskAsk {
  if (call.flight.aborted) return { outcome: cancelled(), attempts: 0 };
  try {
    const captured = captureJson(args, 'args').json;
    const lacks = ports.reserve(call, undefined);
    if (lacks !== undefined) return { outcome: noRoom(tool.schema, undefined, lacks), attempts: 0 };
    return { kind: 'task', tool, args: captured };
  } catch (thrown) {
    const message = `The arguments of ${tool.schema.name}, as its schema gives them, cannot be recorded: ${describeThrown(thrown)}`;
    return { outcome: { kind: 'error', error: { code: 'tool_invalid_args', message } }, attempts: 0 };
  }
}

/** Why the program's rule does not allow the call. What happened before a crash is looked up before it is asked. */
async function forbiddenBy(
  { branch: { tool }, identity, flight, tools: { policy } }: Call,
  args: Json,
): Promise<ErrorData | undefined> {
  if (policy === undefined) return undefined;
  return flight.attempt(
    (signal) => policy({ tool, args, identity }, signal.signal),
    (settled) => {
      if (settled.kind === 'value' && settled.value === true) return undefined;
      const why = settled.kind === 'value' ? String(settled.value) : 'it could not be asked';
      const failed = settled.kind === 'thrown' ? `it failed: ${describeThrown(settled.error)}` : why;
      return { code: 'policy_refused', message: `The policy does not allow this call of ${tool}: ${failed}` };
    },
  );
}

/**
 * Makes a call whose arguments fit and that nobody has to be asked for. An effect is entered only by the owner of the run.
 * @throws PilotageError `lease_lost`, or the error of the store.
 */
async function make(
  call: Call,
  tool: ReadyFunction,
  args: unknown,
  ports: DispatchPorts,
  given: Json,
): Promise<CallResult | PauseAsk> {
  const isOnce = tool.effect === 'once';
  const { costMicroUsd, timeoutMs } = tool;
  const cost = costMicroUsd > 0 ? costMicroUsd : undefined;
  const startedAt = call.begunAt ?? ports.clock.now();
  const result = (outcome: Outcome, attempts: number, context?: CallContext): CallResult | Promise<CallResult> =>
    listed(ended(outcome, startedAt, attempts, cost), call, ports, context);
  /** Found out, told, or asked of a person. */
  const settle = async (unsure: Unsure): Promise<CallResult | PauseAsk> => {
    const { why, otherwise, isAtWork } = unsure;
    const { found, context } = await believed(call, ports, () => lookUp(call, tool, args, ports));
    if (found !== undefined && found !== 'not_done') return result(found, 1, context);
    if (found === 'not_done' && !isAtWork) return result(otherwise, 1);
    const doubt = doubtOf(call, given, startedAt, why, tool.source.reconcile !== undefined);
    const told = inDoubt(doubt, tool.source.inDoubt === 'tell');
    return told.kind === 'pause' ? told : result(told, 1);
  };
  if (isOnce && (call.interrupted || ports.atWork.has(call.idempotencyKey))) {
    const isAtWork = ports.atWork.has(call.idempotencyKey);
    const settled = await settle({ kind: 'unsure', why: isAtWork ? AT_WORK : CUT_OFF, otherwise: NOT_DONE, isAtWork });
    if ('kind' in settled || settled.outcome !== NOT_DONE) return settled;
  }
  if (call.flight.aborted) return { outcome: cancelled(), attempts: 0 };
  if (call.interrupted) {
    const forbidden = await forbiddenBy(call, given);
    if (forbidden !== undefined) return result({ kind: 'error', error: forbidden }, 0);
  }
  const handed = tool.handles === undefined ? undefined : await ports.hand(call, tool.handles);
  if (handed !== undefined && handed.values === undefined) return notHanded(handed, tool, startedAt);
  if (!call.interrupted) {
    const lacks = ports.reserve(call, cost);
    if (lacks !== undefined) return { outcome: noRoom(tool.schema, cost, lacks), attempts: 0 };
    if (cost !== undefined || isOnce) await ports.begin(call, cost, !isOnce);
  }
  for (let attempt = 1; ; attempt += 1) {
    // What is called for the first time has just been written down by its owner; what is called again is not.
    if (tool.effect === 'once' && call.interrupted) await ports.lease.prove();
    // Old news when this process stood still since. From here to the effect nothing is waited for.
    while (hasEffect(tool) && !ports.lease.isCertain && !call.flight.aborted) await ports.lease.prove();
    if (call.flight.aborted) return ended(cancelled(), startedAt, attempt - 1, cost, handed?.notes);
    const signal = new LazySignal();
    const context = new CallContext(call, ports, signal, attempt, handed?.values);
    const run = (): unknown => tool.source.run(args as never, context);
    const outcome = await call.flight.attempt(
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
    await call.flight.pause(retryDelayMs(tool.backoff, attempt, ports.random()));
  }
}

/** A call whose handles are not there has not begun, and costs nothing; one that was begun before a crash may have happened. */
function notHanded({ error, notes }: Handed, tool: ReadyFunction, startedAt: number): CallResult | PauseAsk {
  if (error === undefined) return ended(cancelled(), startedAt, 0, undefined, notes);
  const login = loginFor(error, tool.schema.name);
  if (login !== undefined) return login;
  // A `once` call that was cut off was looked up before this: it has not happened.
  return ended({ kind: 'error', error: errorData(error, 'handle_failed') }, startedAt, 0, undefined, notes);
}

/** The result with what the call made known and stored. Only an attempt that ended with a value leaves something. */
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

/** The tool itself and the given ones, as far as they are deferred and were not found before. Each once. */
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

/** A call that is refused now, but was under way when its process died, may have happened. */
function refused(
  error: ErrorData,
  call: Call,
  given: Json,
  ports: DispatchPorts,
): CallResult | PauseAsk | Promise<CallResult> {
  const { tools, branch, begunAt } = call;
  const tool = tools.ready(branch.tool);
  const isKnown = !call.interrupted || (tool !== undefined && tool.effect !== 'once');
  if (isKnown) return listed({ outcome: { kind: 'error', error }, attempts: 0 }, call, ports);
  const why = `It was under way when its process died, and cannot be looked up: ${error.message}`;
  const tells = tool !== undefined && 'source' in tool && tool.source.inDoubt === 'tell';
  const told = inDoubt(doubtOf(call, given, begunAt ?? ports.clock.now(), why, false), tells);
  return told.kind === 'pause' ? told : listed({ outcome: told, attempts: 0 }, call, ports);
}

function doubtOf({ branch, idempotencyKey }: Call, args: Json, since: number, why: string, canLookUp: boolean): Doubt {
  return { tool: branch.tool, args, key: idempotencyKey, since, why, canLookUp };
}

const CUT_OFF = 'It was under way when its process died, or stopped.';
const AT_WORK = 'An attempt that was given up is at work still.';
/** It has not happened, and is made. */
const NOT_DONE: Outcome = { kind: 'error', error: { code: 'not_done', message: 'The call did not happen.' } };

function heldBack({ schema: { name } }: ReadyTool): Outcome {
  const message = `${name} has an effect that happens once. A fork does not make such calls unless it is allowed to.`;
  return { kind: 'error', error: { code: 'effect_held_back', message } };
}

function noRoom({ name }: ToolSchema, costMicroUsd: number | undefined, axis: 'calls' | 'cost'): Outcome {
  const message =
    axis === 'calls'
      ? `The budget has no call left. ${name} was not called.`
      : `The budget has no room for ${name}, which costs ${costMicroUsd} millionths of a dollar.`;
  return { kind: 'error', error: { code: 'budget_exceeded', message, data: { axis } } };
}

/** `undefined`: it failed in a way that may pass, and there are attempts left. */
function outcomeOf(
  settled: Settled<unknown>,
  attempt: number,
  call: Call,
  tool: ReadyFunction,
  ports: DispatchPorts,
): Outcome | PauseAsk | Unsure | Promise<Outcome> | undefined {
  if (settled.kind === 'value') return valueOutcome(settled.value, call, tool, ports);
  const isStopped = call.flight.aborted;
  const login = settled.kind === 'thrown' ? loginFor(settled.error, tool.schema.name) : undefined;
  // Nothing has happened of a call that waits for a login.
  if (login !== undefined) return isStopped ? cancelled() : login;
  const unsure = tool.effect === 'once' ? unsureOf(settled, tool, tool.timeoutMs, isStopped) : undefined;
  if (unsure !== undefined) return unsure;
  if (isStopped) return abortedOutcome(settled, tool);
  return attempt > tool.retries || !mayPass(settled) ? failure(settled, tool, attempt) : undefined;
}

interface LookedUp {
  /** `undefined`: nothing says what became of it. */
  readonly found: Outcome | 'not_done' | undefined;
  readonly context: CallContext;
}

function hasEffect({ effect }: Pick<ReadyTool, 'effect'>): boolean {
  return effect === 'once' || effect === 'keyed';
}

/**
 * What a look-up finds. That the call did not happen is believed only of those who cannot be at it any more: before that, a
 * process that stood still may wake up and go on.
 */
async function believed({ flight }: Call, { lease }: DispatchPorts, ask: () => Promise<LookedUp>): Promise<LookedUp> {
  for (;;) {
    const { graceLeftMs } = lease;
    const looked = await ask();
    if (looked.found !== 'not_done' || graceLeftMs === 0) return looked;
    await flight.pause(graceLeftMs);
    if (flight.aborted) return { ...looked, found: undefined };
  }
}

/** Asks a `once` tool what became of a call in doubt, again if it fails in a way that may pass. */
async function lookUp(call: Call, tool: ReadyFunction, args: unknown, ports: DispatchPorts): Promise<LookedUp> {
  const { source, timeoutMs, lookUps, backoff } = tool;
  for (let attempt = 1; ; attempt += 1) {
    const signal = new LazySignal();
    const context = new CallContext(call, ports, signal, 1);
    if (source.reconcile === undefined) return { found: undefined, context };
    const asked = await call.flight.attempt<Reconciled, Settled<Reconciled>>(
      () => source.reconcile?.(args as never, context) as Reconciled | Promise<Reconciled>,
      (settled) => {
        context.end();
        return settled;
      },
      { timeoutMs, signal, isLookUp: true },
    );
    if (asked.kind === 'value') {
      // What a tool gives may be anything.
      const answer: Reconciled | undefined = asked.value;
      if (answer?.status === 'done') return { found: await valueOutcome(answer.value, call, tool, ports), context };
      return { found: answer?.status === 'not_done' ? 'not_done' : undefined, context };
    }
    if (attempt > lookUps || !mayPass(asked)) return { found: undefined, context };
    await call.flight.pause(retryDelayMs(backoff, attempt, ports.random()));
  }
}

/** Full jitter: a random time from 0 to the exponential bound, by default 100 ms, 200 ms, … 30 s. */
function retryDelayMs({ baseMs, multiplier, maxMs }: Required<Backoff>, attempt: number, random: number): number {
  // A power beyond all numbers times a base of 0 would be none.
  const power = Math.min(multiplier ** (attempt - 1), Number.MAX_VALUE);
  return random * Math.min(maxMs, baseMs * power);
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

function failure(settled: Settled<unknown>, tool: ReadyFunction, attempts: number): Outcome {
  const cause = settledError(settled, tool);
  if (attempts === 1) return { kind: 'error', error: cause };
  const message = `${tool.schema.name} failed ${attempts} times; the last time: ${cause.message}`;
  return { kind: 'error', error: { code: 'tool_retries_exhausted', message, data: { attempts, cause: { ...cause } } } };
}

function settledError(settled: Settled<unknown>, tool: ReadyFunction): ErrorData {
  if (settled.kind === 'thrown') return errorData(settled.error);
  const maybe = tool.effect === 'keyed' ? ' It may have happened all the same.' : '';
  return { code: 'tool_timeout', message: `${tool.schema.name} did not end within ${tool.timeoutMs} ms.${maybe}` };
}

function abortedOutcome(settled: Settled<unknown>, tool: ReadyFunction): Outcome {
  if (settled.kind !== 'abandoned') return cancelled();
  const message = `${tool.schema.name} ignored its abort signal and was abandoned.`;
  return { kind: 'cancelled', error: { code: 'tool_abandoned', message } };
}

function cancelled(): Outcome {
  return { kind: 'cancelled', error: { code: 'cancelled', message: 'The call was stopped before it ended.' } };
}

/** Whose value it is. */
type Valued = Pick<ReadyTool, 'checkValue'> & { readonly schema: Pick<ToolSchema, 'name'> };

export function valueOutcome(
  value: unknown,
  call: Pick<Call, 'identity'>,
  tool: Valued,
  ports: Pick<DispatchPorts, 'artifacts'>,
): Outcome | Promise<Outcome> {
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

async function checkAndStore(
  captured: Captured,
  call: Pick<Call, 'identity'>,
  tool: Valued,
  ports: Pick<DispatchPorts, 'artifacts'>,
): Promise<Outcome> {
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
