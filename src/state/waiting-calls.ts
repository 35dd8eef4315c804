/** The calls of an open step that wait in the middle of their work, as the fold keeps them. */
import { branchesOf, type Outcome, type WaitEnd, type WaitPlace } from '#core';
import { type OpenStep, type RunState, type WaitingCall, type WaitState, waitingCall } from './state.ts';

/** The call goes on, with what the wait has ended with: `question`, where it asked somebody. */
export function endWait(
  open: OpenStep,
  { call, wait }: Pick<WaitPlace, 'call' | 'wait'>,
  ended: Pick<WaitState, 'question'> & { readonly end: WaitEnd },
): void {
  const before = waitingCall(open, call);
  if (before === undefined) return;
  const waits = before.waits.map((one): WaitState => (one.wait === wait ? Object.freeze({ ...one, ...ended }) : one));
  open.waiting = withCall(open, Object.freeze({ ...before, isParked: false, waits }), before);
}

/** The calls that wait, with this one in place of what it was; `undefined`: it has not waited before. */
export function withCall(
  { waiting }: OpenStep,
  made: WaitingCall,
  before: WaitingCall | undefined,
): readonly WaitingCall[] {
  return [...(before === undefined ? waiting : without(waiting, before)), made];
}

/** Thousands of calls of a step may wait: it is looked for once, and the rest is copied as it is. */
function without(waiting: readonly WaitingCall[], one: WaitingCall): readonly WaitingCall[] {
  return waiting.toSpliced(waiting.indexOf(one), 1);
}

/** A call has ended: nothing that it waited for, or had done, is needed any more. */
export function forgetWaits(open: OpenStep, call: number): void {
  const before = waitingCall(open, call);
  if (before !== undefined) open.waiting = without(open.waiting, before);
  if (open.kept !== undefined) open.kept = open.kept.filter((one) => one.call !== call);
}

/** The waits of the call that have not ended. */
export function openWaits({ waits }: WaitingCall): readonly WaitState[] {
  return waits.filter(({ end }) => end === undefined);
}

/**
 * What a `once` call comes to that has done something, when nobody waits for its end any more; `undefined`: it has done nothing of which this is
 * known. It was not cancelled: an equal call would do the same a second time.
 */
export function halfDone(open: OpenStep, call: number): Outcome | undefined {
  const waiting = waitingCall(open, call);
  const kept = open.kept?.filter((one) => one.call === call && one.once === true) ?? [];
  const isMade = waiting?.once === true && waiting.later !== undefined;
  if (!isMade && kept.length === 0) return undefined;
  const tool = branchesOf(open.move.decision)[call]?.tool ?? '';
  const done = kept.map(({ name }) => name).join(', ');
  const message = isMade
    ? `${tool} was called, and its value was not waited for to its end. What has come of it is not known.`
    : `${tool} was given up in the middle of its work. Done of it: ${done}.`;
  return { kind: 'unknown', error: { code: 'outcome_unknown', message } };
}

/** Whether a call of the run waits for an event, which any process may signal. */
export function waitsForEvent({ open }: Pick<RunState, 'open'>): boolean {
  return open?.waiting.some((one) => openWaits(one).some(({ for: what }) => what === 'event')) === true;
}

/** The keys that calls of the run wait for, as an operator is told who gave an answer that nothing asks for. */
function awaitedKeys({ open }: Pick<RunState, 'open'>): readonly string[] {
  return open?.waiting.flatMap((one) => openWaits(one).flatMap(({ key }) => key ?? [])) ?? [];
}

/** Why an answer has nothing to answer: what the run waits for comes by signals, or nothing does. */
export function asksNothing(state: Pick<RunState, 'open'>): string {
  const keys = awaitedKeys(state).slice(0, MOST_KEYS);
  if (keys.length === 0) return 'the run is not paused';
  const named = keys.map((key) => JSON.stringify(key)).join(', ');
  return `the run is not paused, and asks nobody. It waits for ${named}, which a signal brings: runtime.signal(key, payload), or pilotage signal`;
}

const MOST_KEYS = 8;
