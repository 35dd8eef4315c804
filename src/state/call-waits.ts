/** The part of the fold that is about calls that wait in the middle of their work. */
import type { CallKept, CallWaits, Entry } from '#core';
import { beginAnew, openOf, takePromise } from './open-step.ts';
import { type OpenStep, type RunState, type WaitState, waitingCall } from './state.ts';
import { withCall } from './waiting-calls.ts';

export function applyCallWaits(
  state: RunState,
  { step, call, waits, startedAt, later, held }: CallWaits,
  entry: Entry,
): void {
  const open = openOf(state, entry, step);
  if (held !== true) parkCall(open, call, later === undefined);
  const before = waitingCall(open, call);
  const begun = waits.map((wait): WaitState => Object.freeze({ ...wait, requestedAt: entry.at }));
  const made = {
    call,
    startedAt,
    isParked: held !== true,
    waits: later === undefined ? [...(before?.waits ?? []), ...begun] : begun,
  };
  open.waiting = withCall(open, Object.freeze(later === undefined ? made : { ...made, later }));
}

/**
 * The call has passed its gate. What is done before it waits is done, and nothing of it is under way: it begins anew when it goes on. One that
 * has been made costs what was set aside for it.
 */
function parkCall(open: OpenStep, call: number, isToBeMade: boolean): void {
  beginAnew(open, call);
  if (isToBeMade) takePromise(open, call);
  if (!open.approvals.some((approval) => approval.call === call)) open.approvals.push({ call });
  if (open.away.length > 0) open.away = open.away.filter((one) => one.call !== call);
}

export function applyCallKept(state: RunState, { step, call, name, value, stored }: CallKept, entry: Entry): void {
  const open = openOf(state, entry, step);
  const kept = stored === undefined ? { call, name, value } : { call, name, value, stored };
  open.kept = [...(open.kept ?? []), Object.freeze(kept)];
}
