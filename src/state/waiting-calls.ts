/** The calls of an open step that wait in the middle of their work, as the fold keeps them. */
import type { WaitEnd, WaitPlace } from '#core';
import { type OpenStep, type WaitingCall, type WaitState, waitingCall } from './state.ts';

/** The call goes on, with what the wait has ended with. */
export function endWait(open: OpenStep, { call, wait }: Pick<WaitPlace, 'call' | 'wait'>, end: WaitEnd): void {
  const before = waitingCall(open, call);
  if (before === undefined) return;
  const waits = before.waits.map((one): WaitState => (one.wait === wait ? Object.freeze({ ...one, end }) : one));
  open.waiting = withCall(open, Object.freeze({ ...before, isParked: false, waits }));
}

/** The calls that wait, with this one in place of what it was. */
export function withCall({ waiting }: OpenStep, made: WaitingCall): readonly WaitingCall[] {
  return [...waiting.filter(({ call }) => call !== made.call), made];
}

/** A call has ended: nothing that it waited for, or had done, is needed any more. */
export function forgetWaits(open: OpenStep, call: number): void {
  if (open.waiting.length > 0) open.waiting = open.waiting.filter((one) => one.call !== call);
  if (open.kept !== undefined) open.kept = open.kept.filter((one) => one.call !== call);
}

/** The waits of the call that have not ended. */
export function openWaits({ waits }: WaitingCall): readonly WaitState[] {
  return waits.filter(({ end }) => end === undefined);
}
