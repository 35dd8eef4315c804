/** Breakpoints: where a run stops before a call begins. Somebody sets them with a PAUSE, and takes them away; they are part of the state. */
import { type Branch, branchId, type Control, isJsonObject, type Json, type JsonObject } from '#core';
import {
  awayCall,
  type Breakpoint,
  hasBegun,
  type OpenPause,
  type OpenStep,
  type RunState,
  waitingCall,
} from './state.ts';

/** The breakpoint that a payload names; `undefined`: it names none. */
export function breakpointIn(before: Json | undefined): Breakpoint | undefined {
  if (before === 'next') return before;
  if (!isJsonObject(before)) return undefined;
  const { node, tool } = before;
  if (isName(node) && tool === undefined) return { node };
  return isName(tool) && node === undefined ? { tool } : undefined;
}

function isName(given: Json | undefined): given is string {
  return typeof given === 'string' && given !== '';
}

/** The fold of a PAUSE that names one, and of a RESUME to the next. */
export function applyBreakpoint(state: RunState, { type, payload = {} }: Control): void {
  const before = type === 'RESUME' ? payload['until'] : payload['before'];
  const named = breakpointIn(before);
  if (named === undefined) return;
  const others = state.breakpoints.filter((one) => keyOf(one) !== keyOf(named));
  state.breakpoints = payload['clear'] === true ? others : [...others, named];
}

/** The fold of the pause itself: the next call is come to once. */
export function applyBreak(state: RunState, payload: JsonObject | undefined): void {
  if (payload?.['by'] === BREAKPOINT) state.breakpoints = state.breakpoints.filter((one) => one !== 'next');
}

/** The fold of its answer: the call that it stood before begins. */
export function applyPassed({ open }: RunState, { payload }: OpenPause): void {
  if (open === null || payload?.['by'] !== BREAKPOINT || payload['step'] !== open.move.step) return;
  if (typeof payload['call'] === 'number') open.passed = [...(open.passed ?? []), payload['call']];
}

/** What the pause tells that stands before this call; `undefined`: the call may begin. */
export function breakBefore(state: RunState, open: OpenStep, call: number, branch: Branch): JsonObject | undefined {
  if (state.breakpoints.length === 0 || open.passed?.includes(call) === true) return undefined;
  // It has begun before.
  if (hasBegun(open, call) || awayCall(open, call) !== undefined || waitingCall(open, call) !== undefined)
    return undefined;
  const node = branchId(branch, call);
  const hit = state.breakpoints.find(
    (one) => one === 'next' || ('node' in one ? one.node === node : one.tool === branch.tool),
  );
  if (hit === undefined) return undefined;
  return {
    by: BREAKPOINT,
    before: hit === 'next' ? hit : { ...hit },
    step: open.move.step,
    call,
    tool: branch.tool,
    node,
  };
}

const BREAKPOINT = 'breakpoint';

function keyOf(one: Breakpoint): string {
  return one === 'next' ? one : JSON.stringify(one);
}
