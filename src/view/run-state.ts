/**
 * The fold: a run's state is what its entries, applied in order, add up to. The state is plain JSON data, so a snapshot
 * of it is its JSON, and `applyEntry` on a snapshot goes on where the full fold would.
 */
import { ARTIFACT_FETCH, SKILL_GET, SKILL_SEARCH } from '../core/builtin-tools.ts';
import type { RunContext } from '../core/context.ts';
import type { Control } from '../core/control.ts';
import type { Decision } from '../core/decision.ts';
import type {
  CallBegan,
  CallEnded,
  Compacted,
  Entry,
  Moved,
  Paused,
  PlanGrown,
  Resumed,
  Started,
  Turn,
} from '../core/entry.ts';
import { PilotageError } from '../core/errors.ts';
import { deepFreeze, type JsonObject } from '../core/json.ts';
import type { Limits } from '../core/limits.ts';
import { stepError } from '../core/observation.ts';
import type { Outcome, Verdict } from '../core/outcome.ts';
import { literal } from '../core/reference.ts';
import { SHOWN_SKILLS } from '../core/skills.ts';
import type { CallRecord, Step, Usage } from '../core/step.ts';
import { countsAsCall } from './budget.ts';
import { grownMove } from './growth.ts';
import { withNotes } from './handles.ts';
import { nodeEdits, REMOVED } from './plan-edits.ts';
import {
  type Approval,
  type Edit,
  hasBegun,
  nextStep,
  type OpenPause,
  type OpenStep,
  type RunState,
  type RunTotals,
} from './state.ts';
import {
  applyAwaiting,
  applyGroupEnded,
  applySpawned,
  applyTaskEnded,
  applyTaskPaused,
  noteParkedCallEnded,
} from './task-state.ts';

export type {
  Approval,
  Ending,
  GroupState,
  OpenPause,
  OpenStep,
  RunState,
  RunTotals,
  TaskState,
  TaskWait,
} from './state.ts';
export { nextStep, openBranches } from './state.ts';

/** The state of a run whose first entry is `started`. @throws PilotageError `journal_corrupt` when it is another. */
export function openState(entry: Entry): RunState {
  if (entry.kind !== 'started' || entry.seq !== 1) {
    throw new PilotageError(
      'journal_corrupt',
      `A run begins with the entry 'started' at seq 1, not '${entry.kind}' at ${entry.seq}.`,
    );
  }
  return {
    head: 1,
    ...fromStarted(entry),
    startedAt: entry.at,
    updatedAt: entry.at,
    steps: [],
    open: null,
    pauses: [],
    steering: [],
    fresh: [],
    cancel: null,
    messagesTaken: 0,
    tasks: NONE,
    groups: NONE,
    background: NONE,
    otherEnds: NONE,
    otherPauses: NONE,
    watchers: NONE,
    rejectedCall: null,
    noProgress: null,
    watchedFrom: 0,
    rejections: 0,
    handles: NONE,
    found: foundAtStart(entry),
    compaction: null,
    compactedAt: -1,
    compactionFailures: null,
    totals: { steps: 0, taskSteps: 0, calls: 0, taskCalls: 0, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 },
    ending: null,
  };
}

const NONE: readonly never[] = Object.freeze([]);
const NO_CONTEXT: RunContext = Object.freeze({});
const NO_HISTORY: readonly Turn[] = Object.freeze([]);
const NOTHING_FOUND: readonly string[] = Object.freeze([]);

/** What a run was given to read can be read from its first step on, and skills that it is not shown can be found. */
function foundAtStart({ context }: Started): readonly string[] {
  const { inputs, artifacts, skills = [] } = context ?? NO_CONTEXT;
  const reads = inputs === undefined && artifacts === undefined ? NOTHING_FOUND : [ARTIFACT_FETCH];
  return skills.length <= SHOWN_SKILLS ? reads : [...reads, SKILL_SEARCH, SKILL_GET];
}

function fromStarted(
  entry: Started,
): Pick<
  RunState,
  | 'identity'
  | 'query'
  | 'goal'
  | 'history'
  | 'context'
  | 'conversation'
  | 'planner'
  | 'limits'
  | 'scopes'
  | 'pin'
  | 'task'
  | 'fork'
  | 'renamedTools'
> {
  const { identity, query, history = NO_HISTORY, context = NO_CONTEXT, conversation = true } = entry;
  const { planner, limits, scopes, pin = null, task = null, fork = null } = entry;
  const renamedTools = {};
  return {
    identity,
    query,
    goal: query,
    history,
    context,
    conversation,
    planner,
    limits,
    scopes,
    pin,
    task,
    fork,
    renamedTools,
  };
}

/** Folds a whole journal. Entries are frozen on the way: planners and readers share their parts. */
export function foldEntries(entries: readonly Entry[]): RunState {
  const [first, ...rest] = entries;
  if (first === undefined) throw new PilotageError('journal_corrupt', 'The journal of the run is empty.');
  const state = openState(deepFreeze(first));
  for (const entry of rest) applyEntry(state, deepFreeze(entry));
  return state;
}

/**
 * Adds one entry to the state, in place. The entry is frozen, as the driver and the journals make it.
 * @throws PilotageError `journal_corrupt` for an entry that cannot follow: a gap, anything after the ending, a step or a
 * call that is not open.
 */
export function applyEntry(state: RunState, entry: Entry): void {
  if (entry.seq !== state.head + 1) throw corrupt(entry, `it follows seq ${state.head}`);
  if (state.ending !== null) throw corrupt(entry, 'the run had ended');
  state.head = entry.seq;
  state.updatedAt = entry.at;
  switch (entry.kind) {
    case 'moved':
      applyMove(state, entry, entry);
      return;
    case 'plan_grown':
      applyPlanGrown(state, entry, entry);
      return;
    case 'call_began':
      applyCallBegan(state, entry, entry);
      return;
    case 'call_ended':
      applyCallEnded(state, entry, entry);
      return;
    case 'paused':
      applyPaused(state, entry, entry);
      return;
    case 'resumed':
      applyResumed(state, entry, entry);
      return;
    case 'control':
      countMessage(state, entry);
      if (entry.applied) applyControl(state, entry.control);
      return;
    case 'spawned':
      applySpawned(state, entry, openOf(state, entry, entry.step));
      return;
    case 'awaiting':
      applyAwaiting(state, entry, openOf(state, entry, entry.step));
      return;
    case 'task_ended':
      countMessage(state, entry);
      applyTaskEnded(state, entry);
      return;
    case 'task_paused':
      countMessage(state, entry);
      applyTaskPaused(state, entry);
      return;
    case 'watched':
      countMessage(state, entry);
      if (!state.watchers.includes(entry.by)) state.watchers = [...state.watchers, entry.by];
      return;
    case 'group_ended':
      applyGroupEnded(state, entry, entry.at);
      return;
    case 'no_progress':
      state.noProgress = Object.freeze({ step: entry.step, period: entry.period, times: entry.times });
      return;
    case 'repinned':
      state.planner = entry.planner;
      state.pin = entry.pin;
      state.renamedTools = { ...state.renamedTools, ...entry.renamedTools };
      return;
    case 'compacted':
      applyCompacted(state, entry, entry);
      return;
    case 'compaction_failed':
      state.compactedAt = entry.step;
      state.compactionFailures = Object.freeze({
        times: (state.compactionFailures?.times ?? 0) + 1,
        step: entry.step,
      });
      addUsage(state.totals, entry.usage);
      return;
    case 'finished': {
      const { seq: _, at: __, ...ending } = entry;
      state.ending = ending;
      return;
    }
    case 'failed':
      state.ending = { kind: 'failed', error: entry.error };
      return;
    case 'started':
      throw corrupt(entry, 'a run starts once');
    default:
      entry satisfies never;
  }
}

/** What a fork has copied did not come through its own inbox. */
function countMessage(state: RunState, { seq }: Entry): void {
  const copied = state.task === null ? (state.fork?.entries ?? 0) : 0;
  if (seq > copied) state.messagesTaken += 1;
}

function applyMove(state: RunState, move: Moved, entry: Entry): void {
  if (state.open !== null) throw corrupt(entry, `step ${state.open.move.step} is still open`);
  if (move.step !== state.steps.length) throw corrupt(entry, `the next step is ${state.steps.length}`);
  addUsage(state.totals, move.usage);
  state.fresh = [];
  const isCarriedOut = move.rejected === undefined && move.fault === undefined;
  state.rejections = move.rejected === undefined ? 0 : state.rejections + 1;
  if (move.decision.kind === 'finish' && isCarriedOut) return;
  state.totals.steps += 1;
  const slots = isCarriedOut ? slotsOf(move.decision) : 0;
  const calls = new Array<CallRecord | null>(slots).fill(null);
  const open = { move, calls, began: [], promised: [], approvals: [], waits: [], edits: [], pending: slots };
  if (move.growing === true) open.pending += 1;
  if (slots === 0) closeStep(state, open, entry.at);
  else state.open = open;
}

function applyPlanGrown(state: RunState, grown: PlanGrown, entry: Entry): void {
  const open = openOf(state, entry, grown.step);
  if (open.move.growing !== true) throw corrupt(entry, 'the plan is whole');
  open.move = grownMove(open.move, grown);
  for (const _ of grown.branches) open.calls.push(null);
  open.pending += grown.branches.length;
  addUsage(state.totals, grown.usage);
  if (grown.done !== true) return;
  open.pending -= 1;
  if (open.pending === 0) closeStep(state, open, entry.at);
}

/** How many outcomes a decision waits for. */
function slotsOf(decision: Decision): number {
  switch (decision.kind) {
    case 'call_tool':
    case 'spawn_task':
    case 'await_task':
    case 'request_pause':
      return 1;
    case 'call_parallel':
      return decision.branches.length;
    case 'finish':
      return 0;
    default:
      return decision satisfies never;
  }
}

function applyCallBegan(state: RunState, began: CallBegan, entry: Entry): void {
  const open = openOf(state, entry, began.step);
  if (open.calls[began.call] !== null || hasBegun(open, began.call)) {
    throw corrupt(entry, `call ${began.call} cannot begin here`);
  }
  open.began.push({ call: began.call, at: entry.at, once: began.repeatable !== true });
  if (began.costMicroUsd !== undefined) open.promised.push({ call: began.call, costMicroUsd: began.costMicroUsd });
}

function applyCallEnded(state: RunState, ended: CallEnded, entry: Entry): void {
  const open = openOf(state, entry, ended.step);
  if (open.calls[ended.call] !== null) throw corrupt(entry, `call ${ended.call} cannot end here`);
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

/** Nothing has happened of the call. */
function beginAnew(open: OpenStep, call: number): void {
  const begun = open.began.findIndex((one) => one.call === call);
  if (begun !== -1) open.began.splice(begun, 1);
  takePromise(open, call);
}

/** What was set aside for a call, which is set aside no more. */
function takePromise({ promised }: OpenStep, call: number): number {
  const index = promised.findIndex((promise) => promise.call === call);
  return index === -1 ? 0 : (promised.splice(index, 1)[0]?.costMicroUsd ?? 0);
}

function applyCompacted(state: RunState, compacted: Compacted, entry: Entry): void {
  const { step, before, summary, tokenEstimate } = compacted;
  if (before > step || step !== nextStep(state)) throw corrupt(entry, `step ${nextStep(state)} is next`);
  state.compaction = Object.freeze({ summary, before, tokenEstimate });
  state.compactedAt = step;
  state.compactionFailures = null;
  addUsage(state.totals, compacted.usage);
}

function applyPaused(state: RunState, paused: Paused, entry: Entry): void {
  const { kind: _, ...asked } = paused;
  const { seq: __, at, ...pause } = asked as typeof asked & Pick<Entry, 'seq' | 'at'>;
  if (pause.step !== undefined) {
    const open = openOf(state, entry, pause.step);
    // A call that waits for a login has done nothing: it begins anew.
    if (pause.call !== undefined && pause.reason !== 'in_doubt') beginAnew(open, pause.call);
  }
  state.pauses = [...state.pauses, { ...pause, requestedAt: at }];
}

function applyResumed(state: RunState, resumed: Resumed, entry: Entry): void {
  const pause = state.pauses.find((candidate) => candidate.token === resumed.token);
  if (pause === undefined) throw corrupt(entry, `no pause ${resumed.token} is open`);
  state.pauses = state.pauses.filter((candidate) => candidate !== pause);
  const raise = resumed.payload?.['limits'];
  if (pause.step === undefined) {
    // The answer to a budget's pause: the limits it names replace the old ones.
    if (typeof raise === 'object' && raise !== null) state.limits = { ...state.limits, ...(raise as Limits) };
    state.watchedFrom = nextStep(state);
    editNodes(state, resumed, entry);
    return;
  }
  const open = openOf(state, entry, pause.step);
  if (pause.reason === 'in_doubt' && pause.call !== undefined) {
    applySettled(state, open, pause.call, resumed, entry);
    return;
  }
  const { verdict, payload } = resumed;
  if (verdict === 'settle') throw corrupt(entry, 'the pause is not in doubt');
  const outcome = pause.call === undefined ? verdictOf(verdict, payload) : refusalOf(resumed, pause);
  if (outcome !== undefined) {
    const call = pause.call ?? 0;
    if (open.calls[call] !== null) throw corrupt(entry, `call ${call} has ended`);
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

/** Of a call in doubt. `resume` says nothing of it: it is looked up again. */
function applySettled(state: RunState, open: OpenStep, call: number, resumed: Resumed, entry: Entry): void {
  const { verdict, outcome } = resumed;
  if (verdict !== 'settle') return;
  if (outcome === undefined) {
    beginAnew(open, call);
    return;
  }
  const startedAt = open.began.find((begun) => begun.call === call)?.at ?? entry.at;
  applyCallEnded(state, { kind: 'call_ended', step: open.move.step, call, outcome, startedAt, attempts: 1 }, entry);
}

/** Whoever resumes a run that was paused in the middle of a plan may have changed nodes that had not begun. */
function editNodes(state: RunState, { payload }: Resumed, entry: Entry): void {
  const { open } = state;
  if (open === null) return;
  for (const { call, args } of nodeEdits(open, payload)) {
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

function applyControl(state: RunState, control: Control): void {
  state.fresh = [...state.fresh, control];
  switch (control.type) {
    case 'CANCEL':
      state.cancel = control;
      return;
    case 'REDIRECT':
      state.goal = String(control.payload?.['goal'] ?? state.goal);
      state.steering = [...state.steering, { atStep: nextStep(state), control }];
      return;
    case 'USER_MESSAGE':
    case 'INJECT_CONTEXT':
      state.steering = [...state.steering, { atStep: nextStep(state), control }];
      return;
    default:
      return;
  }
}

function closeStep(state: RunState, { move, calls, approvals, edits }: OpenStep, endedAt: number): void {
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
  if (error !== undefined) step.error = error;
  const given = givenArgs(approvals, edits);
  if (given.length > 0) step.given = given;
  state.steps.push(Object.freeze(step));
  state.open = null;
}

/** What was approved goes before what was changed in the plan. */
function givenArgs(approvals: readonly Approval[], edits: readonly Edit[]): NonNullable<Step['given']> {
  const given = new Map(edits.map(({ call, args }) => [call, args]));
  for (const { call, args } of approvals) if (args !== undefined) given.set(call, literal(args));
  return deepFreeze(Array.from(given, ([call, args]) => ({ call, args })));
}

function addUsage(totals: RunTotals, usage: Usage | undefined): void {
  if (usage === undefined) return;
  totals.inputTokens += usage.inputTokens ?? 0;
  totals.outputTokens += usage.outputTokens ?? 0;
  totals.costMicroUsd += usage.costMicroUsd ?? 0;
}

function openOf(state: RunState, entry: Entry, step: number): OpenStep {
  if (state.open?.move.step === step) return state.open;
  throw corrupt(entry, `step ${step} is not open`);
}

function corrupt(entry: Entry, why: string): PilotageError {
  return new PilotageError(
    'journal_corrupt',
    `Entry ${entry.seq} (${entry.kind}) cannot stand in the journal: ${why}.`,
    {
      data: { seq: entry.seq, kind: entry.kind },
    },
  );
}
