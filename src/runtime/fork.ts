/**
 * A fork: a new run that has taken the first steps of another run, with their outcomes, and goes its own way from there.
 * Those steps are not carried out again, and their usage counts.
 */

import {
  ARTIFACT_FETCH,
  asJson,
  assertIdentity,
  assertOptions,
  assertRunLimits,
  branchesOf,
  type CallPlace,
  callEnded,
  capture,
  deepFreeze,
  type Entry,
  type EntryBody,
  type ForkOrigin,
  type Identity,
  isWholeValue,
  type Json,
  jsonEquals,
  type Limits,
  newRunId,
  type OptionShape,
  type Outcome,
  type Paused,
  PilotageError,
  type Pin,
  type RunLimits,
  readOptions,
  runLimitsOf,
  type Scope,
  type Started,
  type Step,
  type TaskEnded,
  type TurnOrigin,
  validateControl,
} from '#core';
import type { ArtifactStore } from '#journal';
import {
  begunBefore,
  callsToRetry,
  failedPlan,
  foldEntries,
  onceBegun,
  openWaitsOf,
  type RunState,
  reachedLimit,
} from '#state';
import { mayBeLarge, storeLargeValue } from '../calls/large-values.ts';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { assertPriced } from '../loop/prices.ts';
import { pinOf } from '../tasks/spawn.ts';
import { foldable } from './readable.ts';
import { assertFreeId } from './start-options.ts';

export interface ForkOptions {
  /** The identity of the fork, with the run's own tenant, user and session. Default: those, with a fresh run id. */
  readonly identity?: Identity;
  /**
   * The first step of the fork's own. Default: the step after the last one that was carried out and has ended; a plan with which the run
   * has failed goes on, without a new goal: what has a value keeps it, and what has failed is carried out once more.
   */
  readonly step?: number;
  /** A result for a call of the last step before the fork's own, in place of the recorded one. */
  readonly result?: ForkResult;
  /** The goal of the fork from there on. Default: the goal of the run. */
  readonly goal?: string;
  /** Limits that replace the run's own, one by one. The run's deadline is not taken over. */
  readonly limits?: Limits;
  /**
   * What the fork does with effects. `held`: it calls no `once` tool; such a call ends as `effect_held_back`. `allowed`: it calls
   * them. A `keyed` tool is called in any case, with keys of the fork's own. Default `held`.
   */
  readonly effects?: ForkOrigin['effects'];
  /** Aborting it cancels the fork, as with `start`. */
  readonly signal?: AbortSignal;
}

export interface ForkResult {
  /** The value: JSON, as large as a tool's. From 32,768 bytes on it is stored as an artifact, as a tool's is. */
  readonly value: Json;
  /** The index of the call in a parallel step, from 0. The other calls stay as they were, also those that were given the old value. */
  readonly call?: number;
}

const OPTIONS: OptionShape<ForkOptions> = {
  identity: 'any?',
  step: 'any?',
  result: 'object?',
  goal: 'any?',
  limits: 'object?',
  effects: 'any?',
  signal: 'signal?',
};
const RESULT: OptionShape<ForkResult> = { value: 'any', call: 'any?' };

/** @throws PilotageError `invalid_config`. */
export function readForkOptions(given: ForkOptions): ForkOptions {
  const options = readOptions('fork', given, OPTIONS);
  assertEffects(options.effects);
  if (options.result !== undefined) assertOptions('the result of fork', options.result, RESULT);
  return options;
}

function assertEffects(effects: string = 'held'): void {
  if (effects === 'held' || effects === 'allowed') return;
  const message = `The option effects of fork is ${JSON.stringify(effects)}; give held or allowed, or leave it out.`;
  throw new PilotageError('invalid_config', message);
}

/** Everything that a fork is made of beside the run's entries. */
export interface ForkPlan extends Omit<ForkOptions, 'identity' | 'effects' | 'signal'> {
  readonly identity: Identity;
  readonly effects: ForkOrigin['effects'];
  /** The name of the agent that goes on with the fork. */
  readonly agent: string;
  readonly pin: Pin;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

/** The runtime that goes on with the fork. Its planner and tools may differ from those of the run. */
export type ForkDeps = Pick<
  DriverDeps,
  'journal' | 'artifacts' | 'clock' | 'agent' | 'planner' | 'toolsOf' | 'unpriced' | 'redaction'
>;

/**
 * Stores the fork of a run, due at once. The run may be under way, paused or ended, and is not touched.
 * @returns the identity of the fork.
 * @throws PilotageError `run_not_found`; `scope_mismatch` for an identity of somebody else; `idempotency_conflict` for a run
 * id that another run has; `price_missing`; `invalid_config` for a step that was not taken, a result without a call, or limits that leave
 * the fork no step; `unserializable`; or a store error.
 */
export async function forkRun(deps: ForkDeps, run: string, options: ForkOptions = {}): Promise<Identity> {
  const { identity: given, effects = 'held', ...rest } = options;
  // A run that cannot be read to its end is read as far as it can be.
  const { entries } = await foldable(deps.journal, run);
  const { identity: owner, scopes } = foldEntries(entries.slice(0, 1));
  const identity = given === undefined ? { ...owner, run: newRunId() } : identityOf(given, owner);
  const { journal, clock, agent, planner } = deps;
  await assertFreeId(journal, identity.run);
  const pin = pinOf(planner, deps.toolsOf(scopes, []));
  const at = clock.now();
  const plan: ForkPlan = { ...rest, effects, identity, agent, pin, at };
  // The goal and the result are said anew, and what is copied may be from before a secret was known.
  const made = forkEntries(entries, plan);
  const stored = plan.result === undefined ? made : await withStoredResult(made, identity, deps.artifacts);
  const forked = stored.map((entry) => deps.redaction.entry(entry));
  assertPriced(agent, deps.unpriced, foldEntries(forked.slice(0, 1)).limits.costMicroUsd !== undefined);
  assertHasRoom(forked);
  const openWaits = openWaitsOf(foldEntries(forked));
  await journal.create({ identity, priority: 0, entries: forked, ...(openWaits.length === 0 ? {} : { openWaits }) });
  const there = await journal.read(identity.run, 1, forked.length);
  // Asking for the same fork twice makes one fork.
  if (forked.every((entry, index) => jsonEquals(withoutTime(entry), withoutTime(there[index])))) return identity;
  throw new PilotageError(
    'idempotency_conflict',
    `Another run has the id ${identity.run}. Leave the identity out, and a fresh one is made.`,
  );
}

function identityOf(given: Identity, owner: Scope): Identity {
  assertIdentity(given);
  const { tenant, user, session, run } = given;
  if (tenant === owner.tenant && user === owner.user && session === owner.session) {
    return { tenant, user, session, run };
  }
  throw new PilotageError('scope_mismatch', 'A fork belongs to the tenant, user and session of its run.');
}

function withoutTime(entry: Entry | undefined): Json {
  return asJson({ ...entry, at: 0 });
}

function assertHasRoom(forked: readonly Entry[]): void {
  const state = foldEntries(forked);
  if (state.limits.onCeiling === 'pause') return;
  const { axis, reserve } = reachedLimit(state) ?? {};
  // What is kept back for a last move is there for the fork too.
  if (axis === undefined || reserve === true) return;
  throw new PilotageError(
    'invalid_config',
    `The steps before step ${state.steps.length} have used up the limit on ${axis}: the fork would end at once. Give limits, or an earlier step.`,
    { data: { axis } },
  );
}

/**
 * The first entries of the fork, frozen.
 * @throws PilotageError as `forkRun`, except errors of the store; `journal_corrupt` for entries that are not a run.
 */
export function forkEntries(all: readonly Entry[], plan: ForkPlan): Entry[] {
  const entries = beforeUnwinding(all);
  const { steps } = foldEntries(entries);
  const { step = ownStep(steps), result } = plan;
  if (!Number.isInteger(step) || step < 0 || step > steps.length) {
    throw invalid(`The step ${step} cannot be a fork's first: the run has taken ${steps.length}. Count from 0.`);
  }
  const [first, ...before] = entries.slice(0, cutBefore(entries, step));
  if (first?.kind !== 'started') throw invalid('A run begins with the entry started.');
  const kept = before.filter(staysWith(before));
  const changed = result === undefined ? kept : withResult(kept, step - 1, result, steps[step - 1]);
  const { at } = plan;
  const taken = foldEntries([first, ...changed].map((entry, index) => ({ ...entry, seq: index + 1 })));
  const retried = plan.step === undefined && plan.goal === undefined ? retry(taken, entries) : [];
  const added: Entry[] = [...leftBehind(kept), ...redirect(plan), ...retried].map((body) => ({ ...body, seq: 0, at }));
  const copied = changed.map(copyOf(changed));
  // What was said to the run, and is copied, was never in the fork's inbox.
  const fork = { run: first.identity.run, step, effects: plan.effects, entries: 1 + copied.length + added.length };
  const limits = limitsOf(foldEntries(entries.slice(0, 1 + before.length)).limits, plan);
  const forked = [{ ...startOf(first, plan), limits, fork }, ...copied, ...added];
  return forked.map((entry, index) => deepFreeze({ ...entry, seq: index + 1 }));
}

/** A fork goes on from what was done, and not from its undoing. */
function beforeUnwinding(entries: readonly Entry[]): readonly Entry[] {
  const from = entries.findIndex(({ kind }) => kind === 'unwinding');
  if (from === -1) return entries;
  // The move that was to end the run.
  const last = entries[from - 1];
  return entries.slice(0, last?.kind === 'moved' && last.decision.kind === 'finish' ? from - 1 : from);
}

/** Unusable replies at the end are not copied: the fork asks again. */
function ownStep(steps: readonly Step[]): number {
  return steps.findLastIndex(({ calls }) => calls.length > 0) + 1;
}

/** A run that failed and went on has more behind its failure. */
function cutBefore(entries: readonly Entry[], step: number): number {
  const move = entries.findIndex((entry) => entry.kind === 'moved' && entry.step === step);
  if (move !== -1) return move;
  const last = entries.at(-1);
  return last?.kind === 'finished' || last?.kind === 'failed' ? entries.length - 1 : entries.length;
}

function startOf(first: Started & Entry, { identity, agent, pin }: ForkPlan): Started & Entry {
  // It begins at once, neither a schedule nor the request that its trace names has started it, and its time is not that of the run.
  const { task: _, startsAt: __, schedule: ___, trace: ____, turn, ...others } = first;
  const started = turn === undefined ? others : { ...others, turn: withoutDeadline(turn) };
  return { ...started, identity, agent, pin, conversation: false };
}

function withoutDeadline({ deadlineMs: _, ...turn }: TurnOrigin): TurnOrigin {
  return turn;
}

/** The run's limits at that step, raised or not, without its deadline, which was for the run. */
function limitsOf(
  { deadlineAt: _, ...own }: RunLimits,
  { limits: given = {}, at }: Pick<ForkPlan, 'limits' | 'at'>,
): RunLimits {
  assertRunLimits(given, at);
  return { ...own, ...runLimitsOf(given) };
}

/** The entries between the start and the cut that the fork takes over. */
function staysWith(before: readonly Entry[]): (entry: Entry, index: number) => boolean {
  const answered = new Set(before.flatMap((entry) => (entry.kind === 'resumed' ? [entry.token] : [])));
  // No step is open at the cut: what is not answered is a pause of the whole run.
  const isOpen = (entry: Entry | undefined): boolean => {
    return entry?.kind === 'paused' && entry.step === undefined && !answered.has(entry.token);
  };
  return (entry, index) => {
    switch (entry.kind) {
      case 'control':
        return entry.applied && entry.control.type !== 'CANCEL' && !(isPause(entry) && isOpen(before[index + 1]));
      case 'paused':
        return !isOpen(entry);
      // What was carried out once more is part of the step.
      case 'reopened':
        return entry.retries !== undefined;
      // The runs that wait are told of the other ending, and whoever watches the progress looks anew.
      case 'watched':
      case 'no_progress':
      // What it went on from.
      case 'failed':
      // The fork starts with the planner and the tools of today.
      case 'repinned':
      case 'repaired':
        return false;
      default:
        return true;
    }
  };
}

function isPause(entry: Entry): boolean {
  return entry.kind === 'control' && entry.control.type === 'PAUSE';
}

/** Copies entries without the parts that would have an effect in the fork, beyond saying what happened. */
function copyOf(kept: readonly Entry[]): (entry: Entry) => Entry {
  const ofSteps = new Set(kept.flatMap((entry) => (isOfStep(entry) ? [entry.token] : [])));
  return (entry) => {
    // The task is not the fork's to cancel.
    if (entry.kind === 'spawned') return { ...entry, onCancel: 'isolate' };
    if (entry.kind === 'paused') {
      // The rejection that ended the run is, in the fork, what the call came to.
      const { onReject: _, ...pause } = entry;
      return pause;
    }
    if (entry.kind !== 'resumed' || ofSteps.has(entry.token)) return entry;
    // The raise is in the limits that the fork starts with.
    const { limits: _, ...kept } = entry;
    return kept;
  };
}

function isOfStep(entry: Entry): entry is Paused & Entry {
  return entry.kind === 'paused' && entry.step !== undefined;
}

function withResult(kept: readonly Entry[], step: number, result: ForkResult, taken: Step | undefined): Entry[] {
  const { call = 0 } = result;
  if (result.call === undefined && (taken?.calls.length ?? 0) > 1) {
    throw invalid(`Step ${step} has ${taken?.calls.length} calls: say with result.call which of them is changed.`);
  }
  const index = kept.findIndex(endsCall(kept, step, call));
  const ended = kept[index];
  if (ended === undefined) {
    const which = step < 0 ? 'there is no step before it' : `step ${step} has no call ${call} with a result`;
    throw invalid(`The fork's result cannot stand in for another: ${which}.`);
  }
  const outcome: Outcome = { kind: 'value', value: capture(result.value, 'result.value').json };
  return kept.with(
    index,
    ended.kind === 'call_ended'
      ? { ...ended, outcome }
      : { ...callEnded({ step, call }, { outcome, attempts: 0 }), seq: ended.seq, at: ended.at },
  );
}

/** Finds the entry that gave the call its outcome: its end, or that it was refused to begin. */
function endsCall(kept: readonly Entry[], step: number, call: number): (entry: Entry) => boolean {
  // The answer to what a call asks in the middle of its work does not end it.
  const isAsked = (entry: Entry): boolean =>
    isOfStep(entry) && entry.step === step && entry.call === call && entry.wait === undefined;
  const gates = new Set(kept.flatMap((entry) => (isAsked(entry) && entry.kind === 'paused' ? [entry.token] : [])));
  return (entry) => {
    if (entry.kind === 'call_ended') return entry.step === step && entry.call === call;
    if (entry.kind !== 'resumed' || !gates.has(entry.token)) return false;
    return entry.verdict !== 'approve' && entry.verdict !== 'resume' && entry.verdict !== 'settle';
  };
}

/** What a run has recorded is small already: what is large is the result that was given. */
function withStoredResult(entries: readonly Entry[], scope: Scope, artifacts: ArtifactStore): Promise<Entry[]> {
  return Promise.all(
    entries.map(async (entry): Promise<Entry> => {
      if (entry.kind !== 'call_ended' || entry.outcome.kind !== 'value') return entry;
      const value = capture(entry.outcome.value, 'result.value');
      if (!isWholeValue(entry.outcome) || !mayBeLarge(value)) return entry;
      const outcome = await storeLargeValue(value, toolOf(entries, entry), scope, artifacts);
      if (outcome.artifact === undefined) return entry;
      return { ...entry, outcome, discovered: [...new Set(entry.discovered).add(ARTIFACT_FETCH)] };
    }),
  );
}

function toolOf(entries: readonly Entry[], { step, call }: CallPlace): string {
  const move = entries.find((entry) => entry.kind === 'moved' && entry.step === step);
  return (move?.kind === 'moved' ? branchesOf(move.decision)[call]?.tool : undefined) ?? 'unknown';
}

/** The tasks that were under way go on for the run that spawned them; the fork hears nothing of them. */
function leftBehind(kept: readonly Entry[]): TaskEnded[] {
  const ended = new Set(kept.flatMap((entry) => (entry.kind === 'task_ended' ? [entry.task] : [])));
  const usage = { steps: 0, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 };
  const error = { code: 'cancelled', message: 'The run was forked while the task was under way: it was left behind.' };
  return kept.flatMap((entry) => {
    if (entry.kind !== 'spawned' || ended.has(entry.task)) return [];
    return [{ kind: 'task_ended', task: entry.task, status: 'cancelled', error, usage } satisfies TaskEnded];
  });
}

/**
 * The fork of a run that has failed with its plan carries out once more what has failed. What may have happened was done for the run, which
 * alone can say what became of it: that stays unknown in the fork.
 */
function retry(taken: RunState, entries: readonly Entry[]): EntryBody[] {
  const plan = entries.at(-1)?.kind === 'failed' ? failedPlan(taken) : undefined;
  if (plan === undefined) return [];
  const again = callsToRetry(plan, undefined).filter((call) => plan.calls[call]?.outcome.kind !== 'unknown');
  const happened = begunBefore(plan, again, onceBegun(entries, plan.index));
  const calls = again.filter((call) => !happened.includes(call));
  return calls.length === 0 ? [] : [{ kind: 'reopened', retries: { step: plan.index, calls } }];
}

/** The id is the fork's only control of its kind, and no random one: the same fork has the same entries. */
function redirect({ goal }: ForkPlan): EntryBody[] {
  if (goal === undefined) return [];
  const control = validateControl({ id: 'fork_goal', type: 'REDIRECT', payload: { goal } });
  return [{ kind: 'control', control, applied: true }];
}

function invalid(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
