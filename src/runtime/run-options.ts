/** The options of what is asked of a run by its handle, and their checks. */
import { type Json, type JsonObject, type Limits, type OptionShape, PilotageError } from '#core';
import { type Breakpoint, breakpointIn, type Redact } from '#state';
import type { RepairOptions } from './repair.ts';

export interface EventOptions {
  /** The journal position of the first event, from 1. Default 1. */
  readonly from?: number;
  /**
   * A function that changes every text of an event's payload before this reader gets the event; the journal keeps the text whole.
   * An error that it throws ends the stream. Tokens and chunks are left out, since a secret may be cut in two by them: the full text
   * is in the step's decision, and the full value in the end of the call.
   */
  readonly redact?: Redact;
  /**
   * True: the events of the tasks below the run come too, each with its `path`. What a task does comes behind the event that it was started by, and
   * before those of the run above that come of it: its pause, its end, the end of that run. Tasks that have ended before `from` are left
   * out; of the others all is told. Default false.
   */
  readonly tasks?: boolean;
  /** True: the stream goes on while the run is paused, until it has ended, and has no `run.paused`. Default false. */
  readonly overPauses?: boolean;
  /** False: the stream ends with what is recorded by now, and nothing comes that is not recorded. Default true. */
  readonly follow?: boolean;
  /** Ends the stream when it is aborted. */
  readonly signal?: AbortSignal;
}

/** Which recorded events a page has. */
export interface PageOptions {
  /** The journal position of the first entry, from 1. Default 1. */
  readonly from?: number;
  /** How many entries it covers at most. Default 500. */
  readonly limit?: number;
}

export interface ResultOptions {
  /** Gives the waiting up when it is aborted: the promise rejects with its reason, and the run goes on. */
  readonly signal?: AbortSignal;
}

export interface Resumption {
  /** The token of the pause; needed only when several are open. */
  readonly token?: string;
  /** A JSON object that the planner gets as the pause's outcome. */
  readonly payload?: JsonObject;
  /** New limits, to answer a pause at a limit that was reached. */
  readonly limits?: Limits;
  /**
   * Changes to a run that was paused in the middle of a plan, by the ids of nodes that have not begun: `{ args }` gives a node
   * other arguments, which may refer to nodes that it comes after; `{ skip: true }` takes the node out of the plan.
   */
  readonly nodes?: Readonly<Record<string, { readonly args: Json } | { readonly skip: true }>>;
  /** `next`: the run goes on to the next call, and stops before that begins: a single step. */
  readonly until?: 'next';
  /** True: the run goes on although its planner or tools have changed since it was started. */
  readonly acceptChanges?: boolean;
  /** Aborting it cancels the run, as with `start`. */
  readonly signal?: AbortSignal;
}

export interface RetryOptions {
  /** Ids of nodes that have failed, at least one. Default: all of them. What was skipped for them is carried out too. */
  readonly nodes?: readonly string[];
  /** True: the run goes on although its planner or tools have changed since it was started. */
  readonly acceptChanges?: boolean;
  /** Aborting it cancels the run, as with `start`. */
  readonly signal?: AbortSignal;
}

export interface SteerOptions {
  /** What is waited for: that the control is stored, and survives whatever happens, or that the run has taken it. */
  readonly until?: 'stored' | 'applied';
  /** An id of what is said, unique in the run: the same one sent again changes nothing. Default: a fresh one. */
  readonly id?: string;
}

/** An answer that is given once, however often it is sent. */
export type OnceOptions = Pick<SteerOptions, 'id'>;

export interface CancelOptions extends SteerOptions {
  readonly reason?: string;
  /** False: work in flight is allowed to end. True: it is aborted. Default true. */
  readonly hard?: boolean;
}

export interface PauseOptions extends SteerOptions {
  /** A breakpoint, in place of the next boundary: a node or a branch by its id, a tool by its name, or the next call, once. */
  readonly before?: Breakpoint;
  /** True: the breakpoint is taken away. */
  readonly clear?: boolean;
}

/** @throws PilotageError `invalid_config`. */
export function assertBreakpoint({ before, clear }: PauseOptions): void {
  if (before === undefined ? clear !== true : breakpointIn(before as Json) !== undefined) return;
  const message = `pause takes before: { node: id }, { tool: name } or "next"; it is ${JSON.stringify(before)}.`;
  throw new PilotageError('invalid_config', message);
}

/** @throws PilotageError `invalid_config`. */
export function assertStep({ until }: { readonly until?: unknown }): void {
  if (until === undefined || until === 'next') return;
  throw new PilotageError(
    'invalid_config',
    `resume goes on until "next", or as far as it comes; until is ${JSON.stringify(until)}.`,
  );
}

/** @throws PilotageError `invalid_config`. */
export function assertUntil(of: string, { until }: SteerOptions): void {
  if (until === undefined || until === 'stored' || until === 'applied') return;
  const message = `${of} waits until a control is "stored" or "applied"; until is ${JSON.stringify(until)}.`;
  throw new PilotageError('invalid_config', message);
}

export const EVENTS: OptionShape<EventOptions> = {
  from: 'whole?',
  redact: 'function?',
  tasks: 'flag?',
  overPauses: 'flag?',
  follow: 'flag?',
  signal: 'signal?',
};
export const PAGE: OptionShape<PageOptions> = { from: 'count?', limit: 'count?' };
export const RESUMPTION: OptionShape<Resumption> = {
  token: 'any?',
  payload: 'any?',
  limits: 'any?',
  nodes: 'any?',
  until: 'text?',
  acceptChanges: 'flag?',
  signal: 'signal?',
};
export const RETRY: OptionShape<RetryOptions> = { nodes: 'list?', acceptChanges: 'flag?', signal: 'signal?' };
export const REPAIR: OptionShape<RepairOptions> = { by: 'any', reason: 'text?' };
export const REPLAY: OptionShape<{ signal?: AbortSignal }> = { signal: 'signal?' };
export const STEER: OptionShape<SteerOptions> = { until: 'text?', id: 'text?' };
export const PAUSE: OptionShape<PauseOptions> = { ...STEER, before: 'any?', clear: 'flag?' };
export const RESULT: OptionShape<ResultOptions> = { signal: 'signal?' };
export const CANCEL: OptionShape<CancelOptions> = { ...STEER, reason: 'any?', hard: 'any?' };
