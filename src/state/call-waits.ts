/** The part of the fold that is about calls that wait in the middle of their work. */
import { type CallKept, type CallWaits, defined, type Entry } from '#core';
import { beginAnew, openOf, takePromise } from './open-step.ts';
import { type OpenStep, type RunState, type WaitState, waitingCall } from './state.ts';
import { withCall } from './waiting-calls.ts';

export function applyCallWaits(
  state: RunState,
  { step, call, waits, startedAt, seen = 0, later, held }: CallWaits,
  entry: Entry,
): void {
  const open = openOf(state, entry, step);
  const before = waitingCall(open, call);
  const once = before?.once ?? isOnce(open, call);
  if (held !== true) parkCall(open, call, later === undefined);
  const begun = waits.map((wait): WaitState => Object.freeze({ ...wait, requestedAt: entry.at, ...defined({ held }) }));
  // What has ended while the call was under way has not come to it.
  const known = later === undefined ? (before?.waits ?? []) : [];
  const isParked = held !== true && known.filter(({ end }) => end !== undefined).length <= seen;
  const made = {
    call,
    startedAt,
    isParked,
    waits: withBegun(known, begun),
    ...defined({ once }),
  };
  open.waiting = withCall(open, Object.freeze(later === undefined ? made : { ...made, later }), before);
}

/** What did not fit is waited for once more, under its number. */
function withBegun(known: readonly WaitState[], begun: readonly WaitState[]): readonly WaitState[] {
  const again = (number: number): WaitState | undefined => begun.find(({ wait }) => wait === number);
  const others = begun.filter(({ wait }) => known.every((one) => one.wait !== wait));
  return [...known.map((one) => again(one.wait) ?? one), ...others];
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

function isOnce({ began }: OpenStep, call: number): true | undefined {
  return began.some((begun) => begun.call === call && begun.once) || undefined;
}

export function applyCallKept(state: RunState, { step, call, name, value, stored }: CallKept, entry: Entry): void {
  const open = openOf(state, entry, step);
  const kept = { call, name, value, ...defined({ stored, once: isOnce(open, call) }) };
  open.kept = [...(open.kept ?? []), Object.freeze(kept)];
}
