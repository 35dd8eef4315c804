/** The part of the fold that is about pauses: who waits for whose answer, and what the answer makes of it. */
import {
  callEnded,
  deepFreeze,
  type Entry,
  type JsonObject,
  type Outcome,
  type Paused,
  type Resumed,
  type Verdict,
} from '#core';
import { applyCallEnded, beginAnew, closeStep, corrupt, openOf, takePromise } from './open-step.ts';
import { nodeEdits, REMOVED } from './plan-edits.ts';
import { nextStep, type OpenPause, type OpenStep, type RunState } from './state.ts';

export function applyPaused(state: RunState, paused: Paused, entry: Entry): void {
  const { kind: _, ...asked } = paused;
  const { seq: __, at, ...pause } = asked as typeof asked & Pick<Entry, 'seq' | 'at'>;
  if (pause.step !== undefined) {
    const open = openOf(state, entry, pause.step);
    // A call that waits for a login has done nothing: it begins anew.
    if (pause.call !== undefined && pause.reason !== 'in_doubt') {
      beginAnew(open, pause.call);
      takePromise(open, pause.call);
    }
  }
  state.pauses = [...state.pauses, { ...pause, requestedAt: at }];
}

export function applyResumed(state: RunState, resumed: Resumed, entry: Entry): void {
  const pause = state.pauses.find((candidate) => candidate.token === resumed.token);
  if (pause === undefined) throw corrupt(entry, `no pause ${resumed.token} is open`);
  state.pauses = state.pauses.filter((candidate) => candidate !== pause);
  if (pause.step === undefined) {
    // The answer to a budget's pause: the limits it names replace the old ones.
    if (resumed.limits !== undefined) state.limits = { ...state.limits, ...resumed.limits };
    state.watchedFrom = nextStep(state);
    // Resuming a run restarts the time that it waits for its models.
    state.modelAway = null;
    editNodes(state, resumed, entry);
    return;
  }
  const open = openOf(state, entry, pause.step);
  if (pause.reason === 'in_doubt' && pause.call !== undefined) {
    applySettled(state, open, pause.call, resumed, entry);
    return;
  }
  const { verdict, payload } = resumed;
  // Only of a call in doubt, say the rules.
  if (verdict === 'settle') return;
  const outcome = pause.call === undefined ? verdictOf(verdict, payload) : refusalOf(resumed, pause);
  if (outcome !== undefined) {
    const call = pause.call ?? 0;
    open.calls[call] = deepFreeze({ outcome, endedAt: entry.at, attempts: 0, seq: entry.seq });
    if (pause.onReject === 'end' && resumed.verdict === 'reject') state.rejectedCall = pause.token;
    open.pending -= 1;
    if (open.pending === 0) closeStep(state, open, entry.at);
  } else if (pause.call !== undefined && !open.approvals.some(({ call }) => call === pause.call)) {
    // A call that waited for a login has passed its gate too.
    const { args } = resumed;
    open.approvals.push(args === undefined ? { call: pause.call } : { call: pause.call, args });
  }
}

/** The answer to a pause for a call in doubt. `resume` says nothing about the call: it is looked up again. */
function applySettled(state: RunState, open: OpenStep, call: number, resumed: Resumed, entry: Entry): void {
  const { verdict, outcome } = resumed;
  if (verdict !== 'settle') return;
  if (outcome === undefined) {
    beginAnew(open, call);
    return;
  }
  const startedAt = open.began.find((begun) => begun.call === call)?.at ?? entry.at;
  applyCallEnded(state, callEnded({ step: open.move.step, call }, { outcome, startedAt, attempts: 1 }), entry);
}

/** A person who resumes a run in the middle of a plan may have changed nodes that had not begun. */
function editNodes(state: RunState, { nodes }: Resumed, entry: Entry): void {
  const { open } = state;
  if (open === null) return;
  for (const { call, args } of nodeEdits(open, nodes)) {
    if (args === undefined) {
      open.calls[call] = deepFreeze({ outcome: REMOVED, endedAt: entry.at, attempts: 0, seq: entry.seq });
      open.pending -= 1;
      continue;
    }
    const earlier = open.edits.findIndex((edit) => edit.call === call);
    if (earlier !== -1) open.edits.splice(earlier, 1);
    open.edits.push({ call, args });
  }
  if (open.pending === 0) closeStep(state, open, entry.at);
}

function verdictOf(verdict: Verdict, payload: JsonObject | undefined): Outcome {
  return payload === undefined ? { kind: 'verdict', verdict } : { kind: 'verdict', verdict, payload };
}

/** The outcome of a call that is not to be made; `undefined`: it is made. */
function refusalOf({ verdict, payload }: Resumed, { reason }: OpenPause): Outcome | undefined {
  if (verdict === 'timeout') {
    const what = reason === 'approval_required' ? 'Nobody approved the call' : 'Nobody logged in';
    return { kind: 'error', error: { code: 'approval_timeout', message: `${what} in time. It was not made.` } };
  }
  if (verdict !== 'reject') return undefined;
  const why = payload?.['reason'];
  const because = typeof why === 'string' && why !== '' ? `: ${why}` : '.';
  return { kind: 'error', error: { code: 'tool_rejected', message: `The call was rejected, and not made${because}` } };
}
