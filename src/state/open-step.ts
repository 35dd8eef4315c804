/** The part of the fold that is about the calls of the open step: they begin, and end, and with the last one the step is closed. */
import {
  type CallBegan,
  type CallEnded,
  type CallRecord,
  deepFreeze,
  type Entry,
  literal,
  PilotageError,
  type Step,
  stepError,
} from '#core';
import { countsAsCall } from './budget.ts';
import { withNotes } from './handles.ts';
import type { ApprovedCall, Edit, OpenStep, RunState } from './state.ts';
import { noteParkedCallEnded } from './task-state.ts';

export function applyCallBegan(state: RunState, began: CallBegan, entry: Entry): void {
  const open = openOf(state, entry, began.step);
  open.began.push({ call: began.call, at: entry.at, once: began.repeatable !== true });
  // A call that did not happen and is made again under the same key has been paid for.
  const isPaid = open.promised.some(({ call }) => call === began.call);
  if (began.costMicroUsd !== undefined && !isPaid) {
    open.promised.push({ call: began.call, costMicroUsd: began.costMicroUsd });
  }
}

export function applyCallEnded(state: RunState, ended: CallEnded, entry: Entry): void {
  const open = openOf(state, entry, ended.step);
  const { outcome, startedAt, attempts, discovered, artifacts, handles, reuses } = ended;
  const record: { -readonly [K in keyof CallRecord]: CallRecord[K] } = {
    outcome,
    endedAt: entry.at,
    attempts,
    seq: entry.seq,
  };
  if (startedAt !== undefined) record.startedAt = startedAt;
  if (artifacts !== undefined) record.artifacts = artifacts;
  if (handles !== undefined) {
    record.handles = handles;
    state.handles = withNotes(state.handles, handles, ended.step);
  }
  if (reuses !== undefined) record.reuses = reuses;
  if (discovered !== undefined) {
    record.discovered = discovered;
    const fresh = discovered.filter((name) => !state.found.includes(name));
    if (fresh.length > 0) state.found = [...state.found, ...fresh];
  }
  open.calls[ended.call] = Object.freeze(record);
  if (countsAsCall(open, ended)) state.totals.calls += 1;
  noteParkedCallEnded(state, open, ended.call);
  const promised = takePromise(open, ended.call);
  state.totals.costMicroUsd += ended.costMicroUsd ?? promised;
  open.pending -= 1;
  if (open.pending === 0) closeStep(state, open, entry.at);
}

/** The call has not happened. What was set aside for it stays so: an attempt may have cost it. */
export function beginAnew(open: OpenStep, call: number): void {
  const begun = open.began.findIndex((one) => one.call === call);
  if (begun !== -1) open.began.splice(begun, 1);
}

/** What was set aside for a call, which is set aside no more. */
export function takePromise({ promised }: OpenStep, call: number): number {
  const index = promised.findIndex((promise) => promise.call === call);
  return index === -1 ? 0 : (promised.splice(index, 1)[0]?.costMicroUsd ?? 0);
}

export function closeStep(state: RunState, { move, calls, approvals, edits }: OpenStep, endedAt: number): void {
  const { decision, startedAt, rejected, fault } = move;
  const ended = calls as CallRecord[];
  const error = rejected ?? fault ?? stepError(decision, ended);
  const step: { -readonly [K in keyof Step]: Step[K] } = {
    index: move.step,
    decision,
    calls: Object.freeze(ended),
    startedAt,
    endedAt,
  };
  if (move.text !== undefined) step.text = move.text;
  if (move.reasoning !== undefined) step.reasoning = move.reasoning;
  if (move.usage !== undefined) step.usage = move.usage;
  if (move.providerState !== undefined) step.providerState = move.providerState;
  if (move.provenance !== undefined) step.provenance = move.provenance;
  if (move.remarks !== undefined) step.remarks = move.remarks;
  if (move.atOnce !== undefined) step.atOnce = move.atOnce;
  if (error !== undefined) step.error = error;
  if (approvals.length > 0 || edits.length > 0) {
    const given = givenArgs(approvals, edits);
    if (given.length > 0) step.given = given;
  }
  state.steps.push(Object.freeze(step));
  state.open = null;
}

/** What was approved goes before what was changed in the plan. */
function givenArgs(approvals: readonly ApprovedCall[], edits: readonly Edit[]): NonNullable<Step['given']> {
  const given = new Map(edits.map(({ call, args }) => [call, args]));
  for (const { call, args } of approvals) if (args !== undefined) given.set(call, literal(args));
  return deepFreeze(Array.from(given, ([call, args]) => ({ call, args })));
}

export function openOf(state: RunState, entry: Entry, step: number): OpenStep {
  if (state.open?.move.step === step) return state.open;
  throw corrupt(entry, `step ${step} is not open`);
}

export function corrupt(entry: Entry, why: string): PilotageError {
  return new PilotageError(
    'journal_corrupt',
    `Entry ${entry.seq} (${entry.kind}) cannot stand in the journal: ${why}.`,
    {
      data: { seq: entry.seq, kind: entry.kind },
    },
  );
}
