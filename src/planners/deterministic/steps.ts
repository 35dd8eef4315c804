/**
 * The steps of a deterministic planner, six kinds and functions: as they are written, and made ready to be asked. What can be
 * found wrong with a step before a run, is found here. What it has done is read off the run's trajectory: nothing is kept beside it.
 */
import {
  type ArtifactRef,
  type AskReason,
  assertKnownKeys,
  type Branch,
  type CallParallel,
  capture,
  captureObject,
  type Decision,
  defined,
  type ErrorData,
  errorOf,
  type Finish,
  type FinishReason,
  type Json,
  type JsonObject,
  type Move,
  type OptionShape,
  observe,
  type RunView,
  type SpawnSpec,
  type Step,
  type TaskEnd,
  type TaskKind,
  type TaskView,
  validateDecision,
} from '#core';

/**
 * A value, or a function that computes it from the run. Such functions must be pure: the same run gives the same value. For
 * the time they use `run.startedAt` and the times of the steps.
 */
export type Given<T> = T | ((run: RunView) => T | Promise<T>);

interface Common {
  /**
   * Unique in its planner, and recorded with each decision of the step. Default: the tool of a call; for other steps
   * `<parallel>`, `<spawn-and-await>`, `<watch-group>`, `<pause>`; a finish has no default.
   */
  readonly id?: string;
  /** A guard: the step is skipped when it returns false. Default: the step always claims. */
  readonly when?: (run: RunView) => boolean | Promise<boolean>;
}

interface Repeatable extends Common {
  /**
   * Claims until its decision has been carried out, with any outcome; then the steps after it have their turn. For a
   * call it is false by default: the call is made again and again while its guard holds.
   */
  readonly once?: boolean;
}

export interface CallStep extends Repeatable {
  readonly do: 'call';
  readonly tool: string;
  readonly args: Given<Json>;
}

export interface ParallelStep extends Repeatable, Pick<CallParallel, 'join' | 'onInvalid' | 'concurrency'> {
  readonly do: 'parallel';
  readonly branches: Given<readonly Branch[]>;
}

/**
 * Starts a task, waits for its group, hands the results to `onResolved` once, and is passed over from then on. A task that
 * fails is a result; one that cannot be started, or waited for, fails the step. The task is a run that asks the same
 * planner: steps before this step, whose guards know the query of the task, decide for it.
 */
export interface SpawnAndAwaitStep extends Common {
  readonly do: 'spawn_and_await';
  /** The task. `retainTurn` is false and `seal` is true by default. */
  readonly spec: Given<SpawnSpec>;
  /** The kind of the task. Default `background`. */
  readonly task?: TaskKind;
  /** The id of the group. Default: the step's id. */
  readonly groupId?: string;
  readonly onResolved: OnResolved;
}

/** Waits for a group whose tasks were spawned before, and seals it; then goes on like `spawn_and_await`. */
export interface WatchGroupStep extends Common {
  readonly do: 'watch_group';
  readonly groupId: string;
  readonly onResolved: OnResolved;
}

/** Pauses once, unless `once` is false. `lastStep(run, id)` has the answer. */
export interface PauseStep extends Repeatable {
  readonly do: 'pause';
  readonly reason: AskReason;
  readonly payload?: Given<JsonObject>;
  /** JSON Schema of the payload of whoever resumes it: one that does not fit is refused. */
  readonly schema?: JsonObject;
  readonly expiresInMs?: number;
}

export interface FinishStep extends Common {
  readonly do: 'finish';
  readonly reason: FinishReason;
  readonly payload?: Given<Json | ArtifactRef>;
  /** The run's id is added as `run_id`, unless `run_id` is given. */
  readonly metadata?: Given<JsonObject>;
}

/** A function that decides; `undefined` passes on to the next step. */
export type DecideStep = (run: RunView, signal: AbortSignal) => Decision | undefined | Promise<Decision | undefined>;

export type ObjectStep = CallStep | ParallelStep | SpawnAndAwaitStep | WatchGroupStep | PauseStep | FinishStep;
export type DeterministicStep = ObjectStep | DecideStep;

/** How a task of a group ended; JSON, so that it can be passed on as it is. `running`: the group ended without it. */
export type GroupMember = {
  readonly task_id: string;
  readonly status: TaskEnd['status'] | 'running';
  readonly result?: Json;
  readonly error?: Readonly<Pick<ErrorData, 'code' | 'message'>>;
};

/** Decides what follows from a group that has ended. It must be pure, since it may be called again after a crash. */
export type OnResolved = (run: RunView, members: readonly GroupMember[]) => Decision | Promise<Decision>;

/** The move of a step that claims; `undefined` from one that does not. */
type ClaimMove = (run: RunView, signal: AbortSignal) => Promise<Move | undefined>;
type Maker = (run: RunView) => Decision | Promise<Decision>;

export interface PreparedStep {
  /** A function has none, nor has a finish that is given none. */
  readonly id: string | undefined;
  readonly claim: ClaimMove;
}

/** @throws Error that says what is wrong with the step. */
export function readyStep(step: DeterministicStep): PreparedStep {
  if (typeof step === 'function') {
    const claim: ClaimMove = async (run, signal) => {
      const decision = await step(run, signal);
      return decision === undefined ? undefined : { decision };
    };
    return { id: undefined, claim };
  }
  assertShape(step);
  const { when } = step;
  const id = step.do === 'finish' ? step.id : idOf(step);
  const claim = claimOf(step);
  if (when === undefined) return { id, claim };
  return { id, claim: async (run, signal) => ((await when(run)) ? claim(run, signal) : undefined) };
}

/** By which the step's decisions are found again in a trajectory. */
function idOf(step: ObjectStep): string {
  if (step.id !== undefined) return step.id;
  return step.do === 'call' ? step.tool : `<${step.do.replaceAll('_', '-')}>`;
}

function claimOf(step: ObjectStep): ClaimMove {
  switch (step.do) {
    case 'call': {
      const { tool, args, once = false } = step;
      const make = maker(args, (given) => ({ kind: 'call_tool', tool, args: given }), null);
      return repeatable(idOf(step), once, make);
    }
    case 'parallel': {
      const { do: _do, id: _id, when: _when, once = false, branches, ...how } = step;
      const decision = (given: readonly Branch[]): Decision => ({ kind: 'call_parallel', branches: given, ...how });
      return repeatable(idOf(step), once, maker(branches, decision));
    }
    case 'pause': {
      const { reason, payload, once = true, schema, expiresInMs } = step;
      const more = defined({ schema, expiresInMs });
      const decision = (given: JsonObject): Decision => ({ kind: 'request_pause', reason, payload: given, ...more });
      return repeatable(idOf(step), once, maker(payload ?? {}, decision, {}));
    }
    case 'spawn_and_await':
      return spawning(step);
    case 'watch_group':
      return watching(step);
    case 'finish':
      return finishing(step);
    default:
      return step satisfies never;
  }
}

/** With `once`, the step is done when its decision stands in the trajectory. */
function repeatable(id: string, once: boolean, make: Maker): ClaimMove {
  return async (run) => {
    if (once && lastStep(run, id) !== undefined) return undefined;
    return { decision: await make(run), provenance: stepNotes(id) };
  };
}

function spawning(step: SpawnAndAwaitStep): ClaimMove {
  const { spec, task = 'background', groupId = idOf(step), onResolved } = step;
  assertFunction(onResolved, 'onResolved');
  assertText(groupId, 'groupId');
  const make = maker(
    spec,
    (given) => ({ kind: 'spawn_task', task, groupId, spec: { retainTurn: false, seal: true, ...given } }),
    { description: '', query: '-' },
  );
  const followed = { id: idOf(step), groupId, onResolved };
  return (run) => spawnAndFollow(run, followed, () => make(run));
}

function watching(step: WatchGroupStep): ClaimMove {
  const { groupId, onResolved } = step;
  assertFunction(onResolved, 'onResolved');
  assertText(groupId, 'groupId');
  const followed = { id: idOf(step), groupId, onResolved };
  return (run) => followGroup(run, followed);
}

function finishing({ id, reason, payload, metadata }: FinishStep): ClaimMove {
  const decision = (answer: Finish['payload'], notes: JsonObject): Decision => ({
    kind: 'finish',
    reason,
    ...defined({ payload: answer }),
    metadata: notes,
  });
  const answer = captured(payload, 'payload');
  const notes = captured(metadata, 'metadata');
  validateDecision(decision(isBuilder(answer) ? undefined : answer, isBuilder(notes) ? {} : (notes ?? {})));
  const mark = id === undefined ? {} : { provenance: stepNotes(id) };
  return async (run) => {
    const made = captureObject((await valueFor(notes, run)) ?? {}, 'metadata').json;
    return { decision: decision(await valueFor(answer, run), { run_id: run.identity.run, ...made }), ...mark };
  };
}

/**
 * Makes the decision of a value that is given, or made of the run. What is known now is checked now.
 * @param standIn for a value that is made of the run; without one the decision is checked only when it is made.
 */
function maker<T>(given: Given<T>, decision: (value: T) => Decision, standIn?: T): Maker {
  if (!isBuilder(given)) {
    const made = validateDecision(decision(given));
    return () => made;
  }
  if (standIn !== undefined) validateDecision(decision(standIn));
  return async (run) => decision(await given(run));
}

function isBuilder<T>(given: Given<T>): given is (run: RunView) => T | Promise<T> {
  return typeof given === 'function';
}

async function valueFor<T>(given: Given<T>, run: RunView): Promise<T> {
  return isBuilder(given) ? given(run) : given;
}

/** A copy of the given value, so that later changes by its owner do no harm. */
function captured<T>(given: Given<T> | undefined, name: string): Given<T | undefined> {
  if (given === undefined || isBuilder(given)) return given;
  return capture(given, name).json as T;
}

const COMMON = { do: 'any', id: 'any?', when: 'any?' } as const;
const KEYS: { readonly [Do in ObjectStep['do']]: OptionShape<Extract<ObjectStep, { readonly do: Do }>> } = {
  call: { ...COMMON, once: 'any?', tool: 'any', args: 'any' },
  parallel: { ...COMMON, once: 'any?', branches: 'any', join: 'any?', onInvalid: 'any?', concurrency: 'any?' },
  spawn_and_await: { ...COMMON, spec: 'any', task: 'any?', groupId: 'any?', onResolved: 'any' },
  watch_group: { ...COMMON, groupId: 'any', onResolved: 'any' },
  pause: { ...COMMON, once: 'any?', reason: 'any', payload: 'any?', schema: 'any?', expiresInMs: 'any?' },
  finish: { ...COMMON, reason: 'any', payload: 'any?', metadata: 'any?' },
};

function assertShape(step: ObjectStep): void {
  if (typeof step !== 'object' || step === null) throw new Error('the value is neither a step nor a function');
  if (!Object.hasOwn(KEYS, step.do)) throw new Error(`\`do\` must be one of ${Object.keys(KEYS).join(', ')}`);
  assertKnownKeys(`a step with do: '${step.do}'`, step, Object.keys(KEYS[step.do]));
  if (step.id !== undefined) assertText(step.id, 'id');
  if (step.when !== undefined) assertFunction(step.when, 'when');
  if ('once' in step && step.once !== undefined && typeof step.once !== 'boolean') {
    throw new Error('once must be true or false');
  }
}

function assertText(value: unknown, name: string): void {
  if (typeof value !== 'string' || value.trim() === '') throw new Error(`${name} must be a non-empty string`);
}

function assertFunction(value: unknown, name: string): void {
  if (typeof value !== 'function') throw new Error(`${name} must be a function`);
}

// Steps that wait for a group of tasks. They only decide: the runtime spawns and waits.

interface Followed {
  /** The id of the step that waits. */
  readonly id: string;
  readonly groupId: string;
  readonly onResolved: OnResolved;
}

/** Spawns, and follows the group from then on. @throws Error also when the spawn came to an error. */
async function spawnAndFollow(
  run: RunView,
  followed: Followed,
  spawn: () => Decision | Promise<Decision>,
): Promise<Move | undefined> {
  const last = lastStep(run, followed.id);
  if (last === undefined) return { decision: await spawn(), provenance: stepNotes(followed.id) };
  const error = last.decision.kind === 'spawn_task' && !isResolved(last) ? failureOf(last) : undefined;
  if (error !== undefined) throw new Error(`the task was not started, ${error.code}: ${error.message}`);
  return followGroup(run, followed);
}

/**
 * Waits for the group, also again when a message has interrupted the wait; hands its members over when it has ended.
 * `undefined` when that has been done. @throws Error for a group that cannot be waited for.
 */
async function followGroup(run: RunView, { id, groupId, onResolved }: Followed): Promise<Move | undefined> {
  const last = lastStep(run, id);
  if (last !== undefined && isResolved(last)) return undefined;
  const error = last && failureOf(last);
  const group = run.trajectory.groups.get(groupId);
  if (group === undefined) {
    throw new Error(`the run has no group ${JSON.stringify(groupId)}: nothing was spawned into it`);
  }
  if (group.status === 'completed' || group.status === 'cancelled') {
    return { decision: await onResolved(run, group.members.map(memberOf)), provenance: markOfResolved(id) };
  }
  if (error !== undefined) {
    throw new Error(`waiting for the group ${JSON.stringify(groupId)} failed, ${error.code}: ${error.message}`);
  }
  const task = group.members.find(({ end }) => end === undefined) ?? group.members[0];
  if (task === undefined) throw new Error(`the group ${JSON.stringify(groupId)} is ${group.status} and has no tasks`);
  return { decision: { kind: 'await_task', taskId: task.id, groupId }, provenance: stepNotes(id) };
}

function failureOf({ calls }: Step): ErrorData | undefined {
  const outcome = calls[0]?.outcome;
  return outcome && errorOf(outcome);
}

function memberOf({ id, end }: TaskView): GroupMember {
  if (end === undefined) return { task_id: id, status: 'running' };
  const { status, result, error } = end;
  return {
    task_id: id,
    status,
    ...defined({ result }),
    ...(error === undefined ? {} : { error: { code: error.code, message: error.message } }),
  };
}

/** The last step of the run that the planner's step `id` decided. */
export function lastStep({ trajectory }: RunView, id: string): Step | undefined {
  for (let index = trajectory.count - 1; index >= 0; index -= 1) {
    const step = trajectory.step(index);
    if (step?.provenance?.['step'] === id) return step;
  }
  return undefined;
}

/** What `lastStep` came to, as `observe` has it: a call's value, or `{ error: { code, message } }`. */
export function lastResult(run: RunView, id: string): Json | undefined {
  const step = lastStep(run, id);
  return step && observe(step);
}

/** The notes by which a step finds its decisions again. */
function stepNotes(id: string): JsonObject {
  return { step: id };
}

/** With these notes the step is done: it has handed the members of its group over. */
function markOfResolved(id: string): JsonObject {
  return { step: id, resolved: true };
}

function isResolved({ provenance }: Step): boolean {
  return provenance?.['resolved'] === true;
}
