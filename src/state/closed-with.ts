/** Questions that no entry of their own closes. */
import type { Entry } from '#core';
import { withoutHeld } from './open-step.ts';
import { type OpenPause, type RunState, waitingCall } from './state.ts';

/** Those of a call that ends with this entry; those that its attempt has asked and stayed open for, when the call is in doubt or put off. */
export function closedWith({ pauses, open }: RunState, entry: Entry): readonly OpenPause[] {
  if (pauses.length === 0 || open === null) return [];
  if (entry.kind === 'call_ended') return pauses.filter(({ step, call }) => step === entry.step && call === entry.call);
  const isOver = entry.kind === 'call_away' || (entry.kind === 'paused' && entry.reason === 'in_doubt');
  if (!isOver || entry.call === undefined) return [];
  const waits = waitingCall(open, entry.call)?.waits ?? [];
  const isHeld = (wait: number): boolean => waits.some((one) => one.wait === wait && one.held === true);
  const left = new Set(withoutHeld(pauses, entry, isHeld));
  return pauses.filter((pause) => !left.has(pause));
}
