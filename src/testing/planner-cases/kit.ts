/** What the planner cases are written with: asking a planner by hand, and driving it in a real runtime. */
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import {
  asJson,
  type Decision,
  type Delta,
  defined,
  describeThrown,
  isMove,
  type Json,
  type Move,
  PilotageError,
  type Planner,
  type RunView,
  resolveWakeMode,
  validateDecision,
  whyNoRemark,
} from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime, type Runtime } from '#runtime';
import { foldEntries, type RunState } from '#state';
import { type Tool, tool } from '#tools';
import type { ScriptedModel, ScriptedReply, ScriptedRequest } from '../models.ts';

export type PlannerScenarioName =
  | 'decision kinds'
  | 'wake mode'
  | 'closed union'
  | 'top prompts'
  | 'malformed output'
  | 'parallel shape'
  | 'wake round trip'
  | 'past deadline'
  | 'pause payload bounds'
  | 'steering drain'
  | 'concurrent reuse'
  | 'same decision'
  | 'untouched view'
  | 'no timers';

/** What a planner says that it can do. What it cannot do is skipped, and said to be. */
export interface PlannerCapabilities {
  /** A model makes its decisions: the one that `make` was given. */
  readonly modelDriven: boolean;
  readonly canPause: boolean;
  /** The planner spawns a task and goes on with its result. */
  readonly wakeRoundTrip: boolean;
  /** The planner stops when its signal is aborted. */
  readonly honoursCancel: boolean;
}

/** What a planner is made for. */
export interface PlannerScenario {
  readonly name: PlannerScenarioName;
  /** What is wanted of a planner without a model. */
  readonly wants: string;
  /** Says what the scenario needs, through native calls. */
  readonly model: ScriptedModel;
  /** Names of the tools that runs of the kit have: `lookUp` takes `{ about }`, `work` ends when the run's tasks have. */
  readonly tools: { readonly lookUp: string; readonly work: string };
}

export interface PlannerAndModel {
  readonly planner: Planner;
  readonly model: ScriptedModel;
}

export interface PlannerBench {
  readonly capabilities: PlannerCapabilities;
  /** A fresh planner. Default: with a model that says what the case's script has. */
  make(model?: ScriptedModel): Promise<PlannerAndModel>;
}

export interface PlannerCase {
  readonly name: PlannerScenarioName;
  /** What it checks, in a few words. */
  readonly about: string;
  readonly wants: string;
  readonly script: (request: ScriptedRequest, index: number) => ScriptedReply;
  readonly needs?: { readonly capability: keyof PlannerCapabilities; readonly without: string };
  run(bench: PlannerBench): Promise<void>;
}

export const LOOK_UP = 'look_up';
export const WORK = 'work';

/** Longest wait for one decision, or for anything that a runtime is to come to; a planner that conforms needs a small part of it. */
export const BOUND_MS = 10_000;
/** More than any planner has to say before it decides. */
const MOST_DELTAS = 100_000;

/** The bound of the case that is under way. */
export const bound: AsyncLocalStorage<number> = new AsyncLocalStorage();

const NEVER: AbortSignal = new AbortController().signal;

/** The planner was asked, and neither decided nor failed. */
export class Unsettled extends assert.AssertionError {}

/** One call of `next`, with everything that it yields on the way. @throws Unsettled, or what the planner throws. */
export function callNext(planner: Planner, view: RunView, signal: AbortSignal = NEVER): Promise<unknown> {
  const late = (): Unsettled =>
    new Unsettled({ message: `the planner never settled: next() neither decided nor failed within ${boundText()}` });
  return beforeBound(decisionOf(planner, view, signal), late);
}

async function decisionOf(planner: Planner, view: RunView, signal: AbortSignal): Promise<unknown> {
  const source = planner.next(view, signal);
  if (typeof source !== 'object' || source === null || !(Symbol.asyncIterator in source)) return await source;
  for (let deltas = 0; deltas < MOST_DELTAS; deltas += 1) {
    const { value, done } = await source.next();
    if (done === true) return value;
    assertDelta(value);
  }
  throw new Unsettled({ message: `the planner never settled: ${MOST_DELTAS} deltas came, and no decision` });
}

function assertDelta(delta: Delta): void {
  const isText = (delta?.type === 'text' || delta?.type === 'reasoning') && typeof delta.text === 'string';
  const isPlan = delta?.type === 'branches' && typeof delta.plan === 'string' && Array.isArray(delta.branches);
  const isInput =
    delta?.type === 'input' && [delta.callId, delta.tool, delta.text].every((part) => typeof part === 'string');
  assert.ok(
    isText || isInput || isPlan || delta?.type === 'reset',
    `the planner yielded ${shown(delta)}, which is not a delta`,
  );
}

/** The planner's move, which must be whole and valid. @param when what it was asked, for the message. */
export async function decidedMove(planner: Planner, view: RunView, when: string, signal?: AbortSignal): Promise<Move> {
  let made: unknown;
  try {
    made = await callNext(planner, view, signal);
  } catch (cause) {
    throw caseFailure(`${when}: the planner threw ${shownError(cause)}`, cause);
  }
  return checkedMove(made, when);
}

/** The move that `made` is, if every part of it can be recorded. */
export function checkedMove(made: unknown, when: string): Move {
  assert.ok(
    typeof made === 'object' && made !== null,
    `${when}: the planner gave ${shown(made)} in place of a decision`,
  );
  const move = isMove(made as Decision | Move) ? (made as Move) : { decision: made as Decision };
  const { text = '', reasoning = '', remarks = [] } = move;
  assert.ok(
    typeof text === 'string' && typeof reasoning === 'string',
    `${when}: the text or the reasoning of the move is not a string`,
  );
  assert.ok(Array.isArray(remarks), `${when}: the remarks of the move are not a list`);
  const wrong = remarks.map((remark) => whyNoRemark(asJson(remark))).find((why) => why !== undefined);
  assert.ok(wrong === undefined, `${when}: a remark of the move is not valid. ${wrong}`);
  try {
    return { ...move, decision: validateDecision(move.decision) };
  } catch (cause) {
    throw caseFailure(`${when}: ${shownError(cause)}`, cause);
  }
}

export function caseFailure(message: string, cause?: unknown): assert.AssertionError {
  const error = new assert.AssertionError({ message });
  if (cause !== undefined) error.cause = cause;
  return error;
}

export function shownError(thrown: unknown): string {
  const code = PilotageError.is(thrown) ? `${thrown.code}: ` : '';
  return `${code}${describeThrown(thrown)}`;
}

function shown(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 200) ?? String(value);
}

/** The same planner to everybody else, asked through `next`. */
function around(planner: Planner, next: Planner['next']): Planner {
  const { name, version, modelDriven, costless } = planner;
  return {
    name,
    wakeMode: resolveWakeMode(planner),
    ...defined({ version, modelDriven, costless }),
    ...(planner.compact === undefined ? {} : { compact: planner.compact.bind(planner) }),
    next,
  };
}

export interface AskedMove {
  readonly view: RunView;
  readonly move: Move;
}

export interface WatchedPlanner {
  readonly planner: Planner;
  /** What it was asked, and what it decided. */
  readonly asked: readonly AskedMove[];
  /** @throws AssertionError for the first answer that was no valid move; a runtime makes a failed run of it. */
  check(): void;
}

/** @param instead makes a move in the planner's place; `undefined` leaves it to the planner. */
export function watched(
  planner: Planner,
  instead?: (view: RunView) => Decision | undefined | Promise<Decision | undefined>,
): WatchedPlanner {
  const asked: AskedMove[] = [];
  let problem: unknown;
  const next: Planner['next'] = async (view, signal) => {
    const ours = await instead?.(view);
    if (ours !== undefined) return ours;
    try {
      const move = await decidedMove(planner, view, `step ${view.trajectory.count}`, signal);
      asked.push({ view, move });
      return move;
    } catch (error) {
      if (!signal.aborted) problem ??= error;
      throw error;
    }
  };
  const check = (): void => {
    if (problem !== undefined) throw problem;
  };
  return { planner: around(planner, next), asked, check };
}

export interface RuntimeAndJournal {
  readonly runtime: Runtime;
  readonly journal: Journal;
}

/** A runtime of this planner on a journal of its own, for as long as `use` takes. */
export async function inRuntime<T>(
  planner: Planner,
  tools: readonly Tool[],
  use: (world: RuntimeAndJournal) => Promise<T>,
): Promise<T> {
  const journal = memoryJournal();
  const faults: unknown[] = [];
  const onFault = (error: unknown): void => {
    faults.push(error);
  };
  const runtime = createRuntime({ planner, tools, journal, onFault, maxLiveRuns: 100, maxLiveRunsPerTenant: 100 });
  const close = async (): Promise<void> => {
    await within(runtime.close(), 'the runtime did not close, for the planner that it asked did not settle');
    await journal.close();
  };
  let result: T;
  try {
    result = await use({ runtime, journal });
    assert.deepEqual(faults, [], 'the runtime reported faults');
  } catch (error) {
    // What went wrong first is what is told.
    await close().catch(() => {});
    throw error;
  }
  await close();
  return result;
}

/** Waits for a promise of the planner's or the runtime's. @throws AssertionError when it takes too long. */
export function within<T>(promise: Promise<T>, what: string): Promise<T> {
  return beforeBound(promise, () => caseFailure(`${what} within ${boundText()}`));
}

async function beforeBound<T>(promise: Promise<T>, late: () => Error): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(late()), boundMs());
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    clearTimeout(timer);
  }
}

function boundMs(): number {
  return bound.getStore() ?? BOUND_MS;
}

function boundText(): string {
  return `${boundMs() / 1_000} s`;
}

/** Waits until the run is in the state that `found` looks for. */
export function until<T>(
  journal: Journal,
  run: string,
  found: (state: RunState) => T | undefined | Promise<T | undefined>,
  what: string,
): Promise<T> {
  let stop: (() => void) | undefined;
  const reached = new Promise<T>((resolve, reject) => {
    const look = async (): Promise<void> => {
      const value = await found(foldEntries(await journal.read(run)));
      if (value !== undefined) resolve(value);
    };
    const lookNow = (): void => void look().catch(reject);
    stop = journal.watch(run, lookNow);
    lookNow();
  });
  return within(reached, what).finally(() => stop?.());
}

/** Waits until the run has ended, however often it is parked until then. */
export function untilEnded(journal: Journal, run: string): Promise<RunState> {
  return until(journal, run, (state) => (state.ending === null ? undefined : state), 'the run did not end');
}

export const lookUp: Tool = tool({
  name: LOOK_UP,
  description: 'Looks something up.',
  effect: 'read',
  inputSchema: { type: 'object', properties: { about: { type: 'string' } }, required: ['about'] },
  execute: ({ about }) => `looked up: ${String(about)}`,
});

/** All that the request says. */
export function requestText({ prompt }: ScriptedRequest): string {
  return JSON.stringify(prompt);
}

export function hasTool({ tools }: ScriptedRequest, name: string): boolean {
  return tools?.some((declared) => declared.name === name) === true;
}

export function calls(name: string, args: Json): ScriptedReply {
  return { calls: [{ tool: name, args }] };
}

export const ANSWER: ScriptedReply = { text: 'This is the answer.' };

/** Looks something up if it can and has not yet, then answers. */
export function ordinary(request: ScriptedRequest): ScriptedReply {
  const isDone = requestText(request).includes('looked up');
  return hasTool(request, LOOK_UP) && !isDone ? calls(LOOK_UP, { about: 'the weather' }) : ANSWER;
}

/** @throws AssertionError for a model-driven planner that has a model of its own: the scenario was not played. */
export function assertAsked({ capabilities }: PlannerBench, { model }: PlannerAndModel): void {
  if (!capabilities.modelDriven) return;
  assert.ok(model.calls.length > 0, 'the planner did not ask the model that `make` was given');
}
