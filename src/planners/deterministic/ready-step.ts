/** From a step as it was written to one that can be asked. What can be found wrong with it before a run, is found here. */
import {
  type Branch,
  capture,
  captureObject,
  type Decision,
  defined,
  type Finish,
  type JsonObject,
  type Move,
  type RunView,
  validateDecision,
} from '#core';
import { followGroup, spawnAndFollow } from './groups.ts';
import { lastStep, stepNotes } from './recorded.ts';
import type { DeterministicStep, FinishStep, Given, ObjectStep, SpawnAndAwaitStep, WatchGroupStep } from './steps.ts';

/** The move of a step that claims; `undefined` from one that does not. */
export type ClaimMove = (run: RunView, signal: AbortSignal) => Promise<Move | undefined>;
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
      const { reason, payload, once = true, expiresInMs } = step;
      const expires = expiresInMs === undefined ? {} : { expiresInMs };
      const decision = (given: JsonObject): Decision => ({ kind: 'request_pause', reason, payload: given, ...expires });
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

const COMMON = ['do', 'id', 'when'];
const KEYS: Readonly<Record<ObjectStep['do'], readonly string[]>> = {
  call: [...COMMON, 'once', 'tool', 'args'],
  parallel: [...COMMON, 'once', 'branches', 'join', 'onInvalid', 'concurrency'],
  spawn_and_await: [...COMMON, 'spec', 'task', 'groupId', 'onResolved'],
  watch_group: [...COMMON, 'groupId', 'onResolved'],
  pause: [...COMMON, 'once', 'reason', 'payload', 'expiresInMs'],
  finish: [...COMMON, 'reason', 'payload', 'metadata'],
};

function assertShape(step: ObjectStep): void {
  if (typeof step !== 'object' || step === null) throw new Error('the value is neither a step nor a function');
  if (!Object.hasOwn(KEYS, step.do)) throw new Error(`\`do\` must be one of ${Object.keys(KEYS).join(', ')}`);
  const unknown = Object.keys(step).filter((key) => !KEYS[step.do].includes(key));
  if (unknown.length > 0)
    throw new Error(`a step of this kind has no key ${unknown.join(', ')}; the keys are ${KEYS[step.do].join(', ')}`);
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
