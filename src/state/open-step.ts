/** The part of the fold that is about the open step: its plan grows and is edited, its calls begin, pause and end; with the last one it is closed. */
import {
  addUsage,
  answerFiles,
  type Branch,
  branchId,
  type CallAway,
  type CallBegan,
  type CallEnded,
  type CallRecord,
  type CallSpent,
  callEnded,
  deepFreeze,
  defined,
  type Entry,
  type HandleNote,
  type HandleState,
  isJsonObject,
  isPlan,
  isWokenByTasks,
  type Json,
  type JsonObject,
  literal,
  type Moved,
  type Outcome,
  type Paused,
  PilotageError,
  type PlanGrown,
  type Resumed,
  resultFilesOf,
  type Step,
  stepError,
  type Usage,
  type Verdict,
  type WaitEnd,
} from '#core';
import { addRule, noteApproved, remembering } from './approvals.ts';
import { withdrawUnneeded } from './blocked-calls.ts';
import { applyBreak, applyPassed } from './breakpoints.ts';
import { countsAsCall } from './budget.ts';
import { givenArgs, nextStep, type OpenPause, type OpenStep, type RunState } from './state.ts';
import { noteParkedCallEnded } from './task-state.ts';
import { endWait, forgetWaits } from './waiting-calls.ts';

export function applyCallBegan(state: RunState, began: CallBegan, entry: Entry): void {
  const open = openOf(state, entry, began.step);
  open.began.push({ call: began.call, at: entry.at, once: began.repeatable !== true });
  // A call that did not happen and is made again under the same key has been paid for.
  const isPaid = open.promised.some(({ call }) => call === began.call);
  if (began.costMicroUsd !== undefined && !isPaid) {
    open.promised.push({ call: began.call, costMicroUsd: began.costMicroUsd });
  }
}

/** What was set aside for the call stays so: an attempt may have cost it. It has passed its gate. */
export function applyCallAway(state: RunState, away: CallAway, entry: Entry): void {
  const open = openOf(state, entry, away.step);
  const { call, attempts, error, startedAt, failedAt, retryAt } = away;
  beginAnew(open, call);
  if (!open.approvals.some((approval) => approval.call === call)) open.approvals.push({ call });
  const others = open.away.filter((other) => other.call !== call);
  open.away = [...others, Object.freeze({ call, attempts, error, startedAt, failedAt, retryAt })];
}

export function applyCallEnded(state: RunState, ended: CallEnded, entry: Entry): void {
  const open = openOf(state, entry, ended.step);
  const { outcome, startedAt, attempts, discovered, artifacts, handles, reuses, handsOver, store } = ended;
  const { at: endedAt, seq } = entry;
  const record: { -readonly [K in keyof CallRecord]: CallRecord[K] } =
    startedAt === undefined ? { outcome, endedAt, attempts, seq } : { outcome, endedAt, attempts, seq, startedAt };
  if (artifacts !== undefined) record.artifacts = artifacts;
  if (handles !== undefined) {
    record.handles = handles;
    state.handles = withNotes(state.handles, handles, ended.step);
  }
  if (reuses !== undefined) record.reuses = reuses;
  if (store !== undefined) record.store = store;
  if (handsOver !== undefined) state.handsOver = { ...handsOver, step: ended.step, call: ended.call };
  if (discovered !== undefined) {
    record.discovered = discovered;
    const fresh = discovered.filter((name) => !state.found.includes(name));
    if (fresh.length > 0) state.found = [...state.found, ...fresh];
  }
  const usage = open.spent === undefined ? undefined : usedBy(open, ended.call);
  if (usage !== undefined) record.usage = deepFreeze(usage);
  open.calls[ended.call] = Object.freeze(record);
  if (countsAsCall(open, ended)) state.totals.calls += 1;
  noteParkedCallEnded(state, open, ended.call);
  if (open.away.length > 0) open.away = open.away.filter(({ call }) => call !== ended.call);
  forgetWaits(open, ended.call);
  if (open.waits.length > 0) withdrawUnneeded(state, open, ended.call);
  const promised = takePromise(open, ended.call);
  state.totals.costMicroUsd += ended.costMicroUsd ?? promised;
  open.pending -= 1;
  if (open.pending === 0) closeStep(state, open, entry.at);
}

/** A call that has ended, or was given up, may still use something: that is part of the run's totals alone. */
export function applyCallSpent({ open }: RunState, { step, call, usage }: CallSpent): void {
  if (open?.move.step !== step || open.calls[call] !== null) return;
  const others = open.spent?.filter((one) => one.call !== call) ?? [];
  open.spent = [...others, { call, usage: addUsage(usedBy(open, call), usage) }];
}

function usedBy({ spent }: OpenStep, call: number): Usage | undefined {
  return spent?.find((one) => one.call === call)?.usage;
}

/** What is known after a call of this step has ended with these notes. */
function withNotes(known: readonly HandleState[], notes: readonly HandleNote[], step: number): readonly HandleState[] {
  return notes.reduce((before, note) => (isNews(before, note) ? noted(before, note, step) : before), known);
}

function noted(known: readonly HandleState[], { name, opening, lost }: HandleNote, step: number): HandleState[] {
  const others = known.filter((each) => each.name !== name);
  return [...others, lost === true ? { name, opening, lostAt: step } : { name, opening }];
}

/** Calls side by side note the same. */
export function isNews(known: readonly HandleState[], { name, opening, lost }: HandleNote): boolean {
  const before = known.find((each) => each.name === name);
  if (before === undefined || opening > before.opening) return true;
  return lost === true && opening === before.opening && before.lostAt === undefined;
}

/** The call has not happened. What was set aside for it stays so: an attempt may have cost it. */
export function beginAnew(open: OpenStep, call: number): void {
  const begun = open.began.findIndex((one) => one.call === call);
  if (begun !== -1) open.began.splice(begun, 1);
}

/** What was set aside for a call, which is set aside no more. */
export function takePromise({ promised }: OpenStep, call: number): number {
  if (promised.length === 0) return 0;
  const index = promised.findIndex((promise) => promise.call === call);
  return index === -1 ? 0 : (promised.splice(index, 1)[0]?.costMicroUsd ?? 0);
}

/** Whether the decision of the move is done. What a planner's model could not be understood in, or has not said to its end, is not. */
export function isMoveCarriedOut({ rejected, fault, partial }: Moved): boolean {
  return rejected === undefined && fault === undefined && partial === undefined;
}

export function closeStep(state: RunState, { move, calls, approvals, edits }: OpenStep, endedAt: number): void {
  const { step: index, decision, startedAt, rejected, fault, partial, usage, provenance } = move;
  const ended = Object.freeze(calls as CallRecord[]);
  const error = rejected ?? fault ?? stepError(decision, ended);
  const made = { index, decision, calls: ended, startedAt, endedAt };
  // Most steps have both: in one piece each is one object in memory, for as long as the run is.
  const step: { -readonly [K in keyof Step]: Step[K] } =
    usage === undefined || provenance === undefined
      ? made
      : { index, decision, calls: ended, startedAt, endedAt, usage, provenance };
  if (move.text !== undefined) step.text = move.text;
  if (move.reasoning !== undefined) step.reasoning = move.reasoning;
  if (usage !== undefined) step.usage = usage;
  if (move.files !== undefined) step.files = move.files;
  if (move.providerState !== undefined) step.providerState = move.providerState;
  if (provenance !== undefined) step.provenance = provenance;
  if (move.remarks !== undefined) step.remarks = move.remarks;
  if (move.atOnce !== undefined) step.atOnce = move.atOnce;
  if (move.undoes !== undefined) step.undoes = move.undoes;
  if (error !== undefined) step.error = error;
  if (partial !== undefined) step.partial = partial;
  if (approvals.length > 0 || edits.length > 0) {
    // What was approved is a value, also where it looks like a reference.
    const plain = approvals.map(({ call, args }) => (args === undefined ? { call } : { call, args: literal(args) }));
    const given = givenArgs({ approvals: plain, edits });
    if (given.size > 0) step.given = deepFreeze(Array.from(given, ([call, args]) => ({ call, args })));
  }
  if (state.filesFrom === null && hasFiles(step)) state.filesFrom = index;
  state.steps.push(Object.freeze(step));
  state.open = null;
}

/** Nearly no step has any. */
function hasFiles(step: Step): boolean {
  return step.files !== undefined || resultFilesOf(step).length > 0 || answerFiles(step).length > 0;
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

// The part of the fold that is about pauses: who waits for whose answer, and what the answer makes of it.

export function applyPaused(state: RunState, paused: Paused, entry: Entry): void {
  const { kind: _, ...asked } = paused;
  const { seq: __, at, ...pause } = asked as typeof asked & Pick<Entry, 'seq' | 'at'>;
  if (pause.step !== undefined) {
    const open = openOf(state, entry, pause.step);
    // A call that waits for a login has done nothing: it begins anew.
    if (pause.call !== undefined && pause.reason !== 'in_doubt' && pause.wait === undefined) {
      beginAnew(open, pause.call);
      takePromise(open, pause.call);
    }
  }
  if (pause.step === undefined) applyBreak(state, pause.payload);
  state.pauses = [...state.pauses, { ...pause, requestedAt: at }];
}

const NO_LIMITS: readonly never[] = Object.freeze([]);

export function applyResumed(state: RunState, resumed: Resumed, entry: Entry): void {
  const pause = state.pauses.find((candidate) => candidate.token === resumed.token);
  if (pause === undefined) throw corrupt(entry, `no pause ${resumed.token} is open`);
  const set = remembering(resumed);
  if (set !== undefined) addRule(state, set, entry);
  if (pause.step === undefined) {
    // The answer to a budget's pause: the limits it names replace the old ones.
    if (resumed.limits !== undefined) state.limits = { ...state.limits, ...resumed.limits };
    state.watchedFrom = nextStep(state);
    applyPassed(state, pause);
    // Resuming a run restarts the time that it waits for its models.
    state.modelAway = null;
    // Whoever resumes says that something is other than it was: a larger window, another model.
    if (pause.reason === 'context_exhausted') {
      state.contextLimits = NO_LIMITS;
      state.overflows = null;
      state.compactionFailures = null;
    }
    editNodes(state, resumed, entry);
    return;
  }
  const open = openOf(state, entry, pause.step);
  if (pause.reason === 'in_doubt' && pause.call !== undefined) {
    applySettled(state, open, pause.call, resumed, entry);
    return;
  }
  if (pause.wait !== undefined && pause.call !== undefined) {
    const asked = pause.payload?.['message'];
    const question = typeof asked === 'string' ? asked : undefined;
    endWait(open, { call: pause.call, wait: pause.wait }, { end: endOfQuestion(resumed), ...defined({ question }) });
    return;
  }
  const { verdict, payload } = resumed;
  // Only of a call in doubt, say the rules.
  if (verdict === 'settle' || (verdict === 'answer' && pause.call === undefined)) return;
  if (pause.reason === 'await_input' && pause.call === undefined && isSaid(resumed)) beginTurn(state);
  const isPlanners = pause.call === undefined && verdict !== 'answer';
  const outcome = isPlanners ? verdictOf(verdict, payload) : refusalOf(resumed, pause);
  if (outcome !== undefined) {
    const call = pause.call ?? 0;
    open.calls[call] = deepFreeze({ outcome, endedAt: entry.at, attempts: 0, seq: entry.seq });
    if (pause.onReject === 'end' && resumed.verdict === 'reject') state.rejectedCall = pause.token;
    open.pending -= 1;
    if (open.pending === 0) closeStep(state, open, entry.at);
  } else noteApproved(open, pause, resumed);
}

function endOfQuestion({ verdict, value = null, payload, outcome }: Resumed): WaitEnd {
  if (outcome?.kind === 'error') return { ended: 'failed', error: outcome.error };
  if (verdict === 'timeout' || verdict === 'superseded') return { ended: verdict };
  if (verdict === 'answer') return { ended: 'answer', value };
  const reason = payload?.['reason'];
  return typeof reason === 'string' ? { ended: 'declined', reason } : { ended: 'declined' };
}

/** Whether somebody answered, and not the time limit or the end of a task. */
function isSaid({ verdict, payload }: Resumed): boolean {
  return verdict !== 'timeout' && verdict !== 'superseded' && !isWokenByTasks({ verdict, payload });
}

/** The user has spoken: what the run did before does not count against limits of steps, nor as a repetition. */
export function beginTurn(state: RunState): void {
  const { steps, taskSteps } = state.totals;
  state.beforeTurn = Object.freeze({ steps, taskSteps });
  state.watchedFrom = nextStep(state);
  if (state.answering?.axis === 'steps') state.answering = null;
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

/** The outcome of a call that is not made; `undefined`: it is made. */
function refusalOf({ verdict, payload, outcome }: Resumed, { reason }: OpenPause): Outcome | undefined {
  if (outcome !== undefined) return outcome;
  if (verdict === 'timeout') {
    const what = reason === 'approval_required' ? 'Nobody approved the call' : 'Nobody logged in';
    return { kind: 'error', error: { code: 'approval_timeout', message: `${what} in time. It was not made.` } };
  }
  if (verdict === 'superseded') {
    const { reason: why = 'its question was withdrawn', control = null } = payload ?? {};
    return {
      kind: 'skipped',
      error: { code: 'superseded', message: `The call was not made: ${why}.`, data: { control } },
    };
  }
  if (verdict !== 'reject') return undefined;
  const why = payload?.['reason'];
  const because = typeof why === 'string' && why !== '' ? `: ${why}` : '.';
  return { kind: 'error', error: { code: 'tool_rejected', message: `The call was rejected, and not made${because}` } };
}

/** The move with what has come since. Its notes come with the last of it. */
export function grownMove(move: Moved, { branches, done, fault, kind: _, step: __, ...rest }: PlanGrown): Moved {
  const { seq: ___, at: ____, ...notes } = rest as typeof rest & Pick<Entry, 'seq' | 'at'>;
  if (move.decision.kind !== 'call_parallel') return move;
  const decision = { ...move.decision, branches: [...move.decision.branches, ...branches] };
  const { growing, ...given } = move;
  return Object.freeze({
    ...given,
    ...notes,
    decision: Object.freeze(decision),
    ...(fault === undefined ? {} : { fault }),
    ...(growing === true && done !== true ? { growing } : {}),
  });
}

/** The move of an entry with all that later entries add to it; the first of those is at `from`. */
export function wholeMove(move: Moved, entries: readonly Entry[], from: number): Moved {
  let whole = move;
  for (let index = from; whole.growing === true && index < entries.length; index += 1) {
    const entry = entries[index];
    if (entry?.kind === 'moved') break;
    if (entry?.kind === 'plan_grown') whole = grownMove(whole, entry);
  }
  return whole;
}

interface NodeEdit {
  readonly call: number;
  readonly branch: Branch;
  /** The arguments in place of its own. Absent: it was taken out. */
  readonly args?: Json;
}

/** The edits of an answer, in the order of the branches. Only of a plan; the runtime has judged them. */
export function nodeEdits(open: Pick<OpenStep, 'move'> | null, nodes: JsonObject | undefined): readonly NodeEdit[] {
  if (nodes === undefined || open === null || !isPlan(open.move.decision)) return [];
  return open.move.decision.branches.flatMap((branch, call): NodeEdit[] => {
    const edit = nodes[branchId(branch, call)];
    if (!isJsonObject(edit)) return [];
    if (edit['skip'] === true) return [{ call, branch }];
    return edit['args'] === undefined ? [] : [{ call, branch, args: edit['args'] }];
  });
}

export const REMOVED: Outcome = {
  kind: 'skipped',
  error: { code: 'node_removed', message: 'Somebody took it out of the plan.' },
};
