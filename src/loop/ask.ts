/** What it takes to ask the planner for a move, and what it says on the way. */

import {
  type AtOnce,
  type Branch,
  capture,
  captureObject,
  type Decision,
  type Delta,
  describeThrown,
  type EntryBody,
  isMove,
  isOwnRemark,
  type Json,
  type LazySignal,
  type LoadedInput,
  MAX_OWN_REMARKS,
  type MediaView,
  type Move,
  type MoveNotes,
  PARTIAL_REPLIES,
  type PartialReply,
  PilotageError,
  type Remark,
  type RunCache,
  readUsage,
  remarkName,
  type SpokenDelta,
  Thrown,
  type Usage,
  usageIn,
  whyNoRemark,
} from '#core';
import type { RunState } from '#state';
import type { AuthorisedTools } from '#tools';
import type { Attempt, Settled } from '../calls/attempt.ts';
import type { CallLimit, DriverDeps } from './driver-deps.ts';
import type { Before } from './earlier-turns.ts';
import type { RunTracing } from './run-tracing.ts';

export interface Ask {
  readonly deps: DriverDeps;
  readonly state: RunState;
  readonly tools: AuthorisedTools;
  readonly inputs: readonly LoadedInput[];
  /** The turns before the query, when they had to be loaded. */
  readonly before: Before | undefined;
  /** The files of the steps, when there are any. */
  readonly media: MediaView | undefined;
  /** What the planner keeps of the run. */
  readonly cache: RunCache;
  readonly attempt: Attempt;
  /** The run's own signal, the same for each of its moves. */
  readonly signal: LazySignal;
  /** Where deltas go; without it the planner need not stream. */
  readonly tell: ((delta: SpokenDelta) => void) | undefined;
  readonly tracing: RunTracing | undefined;
  /** The run is being ended, by a cancel or by its deadline, and not only given to another process. */
  readonly isEnding: () => boolean;
  /** Told when the move is a plan that the planner goes on with. */
  readonly grows: (growth: PlanGrowth) => void;
  /** Told when the budget has no room for the request of the move. */
  readonly lacks: (needs: MoveNeeds) => void;
}

/** The least that the next move takes on a limited axis, as the planner's model layer reckons. */
export interface MoveNeeds {
  readonly step: number;
  readonly axis: 'tokens' | 'cost';
  /** Tokens, or millionths of a dollar. */
  readonly amount: number;
}

/** What a streaming planner has said of the move that it is at. */
export interface StreamedText {
  text: string;
  reasoning: string;
}

/** A planner that goes on with its plan while the beginning of it is carried out. */
export interface PlanGrowth {
  /** Called when there is something to take. */
  onMore: () => void;
  /** The planner has ended, or was given up. */
  readonly settled: Promise<void>;
  /** Everything was taken, and nothing more will come. */
  readonly isOver: boolean;
  take(): readonly EntryBody[];
}

/** @throws Error for a value that is not a delta: the planner has failed. */
export function say(given: SpokenDelta, said: StreamedText, ask: Ask): void {
  const delta = readDelta(given);
  if (delta.type === 'reset') {
    said.text = '';
    said.reasoning = '';
  } else if (delta.type !== 'input') said[delta.type] += delta.text;
  ask.tell?.(delta);
}

/** A copy, so that those who watch are told what was said and never what the planner holds. */
function readDelta(given: SpokenDelta): SpokenDelta {
  const { type } = given;
  if (type === 'reset') return { type };
  const { text }: { readonly text: unknown } = given;
  if ((type === 'text' || type === 'reasoning') && typeof text === 'string') return { type, text };
  if (type === 'input') {
    const { callId, tool }: { readonly callId: unknown; readonly tool: unknown } = given;
    if ([callId, tool].every((name) => typeof name === 'string' && name !== '') && typeof text === 'string')
      return { type, callId: given.callId, tool: given.tool, text };
  }
  throw new Error(
    'next() yielded a value that is not a delta; a delta is { type: "text" | "reasoning", text }, { type: "input", callId, tool, text }, or { type: "reset" }',
  );
}

/** What a planner says beside its decision, on its way into an entry. */

export type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** What a planner gave, as a move: each of its fields is read once. @throws what reading it throws. */
export function readMove(made: Decision | Move): Move {
  if (!isMove(made)) return { decision: made };
  const { decision, text, reasoning, usage, providerState, provenance, remarks, fault, partial, offered } = made;
  // What has no field of its own is left out where it is taken.
  return { decision, text, reasoning, usage, providerState, provenance, remarks, fault, partial, offered } as Move;
}

/**
 * The notes that the move has, as frozen JSON, without empty ones.
 * @throws PilotageError `invalid_decision`, `unserializable`. The usage is taken first, as far as it is right.
 */
export function takeNotes(moved: Mutable<MoveNotes>, move: Move): void {
  const { text, reasoning, usage, providerState, provenance, remarks } = move;
  if (usage !== undefined) {
    const { usage: right, wrong } = readUsage(usage);
    moved.usage = Object.freeze(right);
    if (wrong !== undefined) throw wrongUsage('move', wrong);
  }
  if (text !== undefined && text !== '') moved.text = textOf(text, 'text');
  if (reasoning !== undefined && reasoning !== '') moved.reasoning = textOf(reasoning, 'reasoning');
  if (providerState !== undefined) moved.providerState = capture(providerState, 'move.providerState').json;
  if (remarks !== undefined) {
    const told = remarksOf(remarks);
    if (told.length > 0) moved.remarks = told;
  }
  if (provenance !== undefined) moved.provenance = captureObject(provenance, 'move.provenance').json;
}

/** @throws PilotageError `invalid_decision`. */
export function offeredIn({ offered }: Move): readonly string[] | undefined {
  if (offered === undefined) return undefined;
  const names = capture<readonly unknown[]>(offered, 'move.offered').json;
  if (Array.isArray(names) && names.every((name) => typeof name === 'string')) return names;
  throw new PilotageError('invalid_decision', 'The field offered of a move must be a list of names of tools.');
}

/** @throws PilotageError `invalid_decision`. */
export function partialIn({ partial }: Move): PartialReply | undefined {
  if (partial === undefined || PARTIAL_REPLIES.includes(partial)) return partial;
  const given = JSON.stringify(partial) ?? typeof partial;
  const message = `The field partial of a move is ${given}; give one of ${PARTIAL_REPLIES.join(', ')}, or leave it out.`;
  throw new PilotageError('invalid_decision', message);
}

function remarksOf(given: readonly Remark[]): readonly Remark[] {
  try {
    return toldOf(given);
  } catch (thrown) {
    return [dropped(undefined, describeThrown(thrown))];
  }
}

/** The valid remarks. A value that is not a remark is replaced by a remark that says so, and has no other effect on the run. */
function toldOf(given: readonly Remark[]): readonly Remark[] {
  if (!Array.isArray(given)) return [dropped(undefined, 'The remarks of a move are a list.')];
  const told: Remark[] = [];
  let others = 0;
  for (const each of given) {
    const remark = capturedRemark(each);
    const isOther = isOwnRemark(remark) || remark.type === 'planner.remark_dropped';
    if (isOther) others += 1;
    if (!isOther || others <= MAX_OWN_REMARKS) told.push(remark);
  }
  const more = others - MAX_OWN_REMARKS;
  if (more > 0)
    told.push(dropped(undefined, `${more} more: a move has ${MAX_OWN_REMARKS} remarks of its own at most.`));
  return told;
}

function capturedRemark(given: unknown): Remark {
  try {
    const { json } = capture(given, 'remark');
    const why = whyNoRemark(json);
    return why === undefined ? (json as unknown as Remark) : dropped(json, why);
  } catch (thrown) {
    return dropped(undefined, describeThrown(thrown));
  }
}

function dropped(remark: Json | undefined, why: string): Remark {
  return Object.freeze({ type: 'planner.remark_dropped', remark: remarkName(remark), why });
}

/** Nobody can say what it was in truth, and limits of cost and tokens must not go on without it. */
export function wrongUsage(of: 'move' | 'compaction', wrong: string): PilotageError {
  const message = `The usage of the planner's ${of} is not valid: ${wrong}. Give whole numbers from 0 up, or leave out what is not known.`;
  return new PilotageError('invalid_decision', message);
}

function textOf(value: unknown, name: string): string {
  if (typeof value === 'string') return value;
  throw new PilotageError(
    'invalid_decision',
    `The ${name} of the planner's move must be a string, not ${typeof value}.`,
  );
}

/** What keeps the calls of a step from running all at once. Nothing when nothing is below what holds for every step. */
export function atOnceFor(
  decision: Decision,
  tools: Pick<AuthorisedTools, 'ready'>,
  limit: CallLimit | undefined,
): { readonly atOnce?: AtOnce } {
  if (decision.kind !== 'call_parallel') return {};
  const few = fewOf(decision.branches, tools);
  if (limit === undefined && few.length === 0) return {};
  return { atOnce: { ...limit, ...(few.length === 0 ? {} : { tools: Object.fromEntries(few) }) } };
}

function fewOf(
  branches: readonly Branch[],
  tools: Pick<AuthorisedTools, 'ready'>,
): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const { tool } of branches) counts.set(tool, (counts.get(tool) ?? 0) + 1);
  return [...counts].flatMap(([tool, count]): (readonly [string, number])[] => {
    const most = tools.ready(tool)?.concurrency ?? Number.POSITIVE_INFINITY;
    return most < count ? [[tool, most]] : [];
  });
}

/** Pieces that a planner may give after it was stopped, before it is asked no more. */
const MOST_LATE = 3;

/** It is told by its signal that it was stopped. What it throws then may say what it has used. */
export async function lastWords(source: AsyncGenerator<Delta, Decision | Move>): Promise<void> {
  for (let late = 0; late < MOST_LATE; late += 1) if ((await source.next()).done === true) return;
  await source.return(undefined as never);
}

/** What a planner that was stopped says it has used. */
export function usedBy(settled: Settled<unknown>): Usage | undefined {
  return settled.kind === 'thrown' ? usageIn(Thrown.of(settled.error).data).usage : undefined;
}
