/** Entries to events. Pure: the same journal gives the same events, with the same numbers, at any time. */
import {
  type ApprovedOnce,
  type Awaiting,
  type Branch,
  branchesOf,
  branchId,
  type CallEnded,
  CEILING_REASONS,
  type ControlTaken,
  callEnded,
  DECISION_NAMES,
  DEFAULT_STEP_LIMIT,
  defined,
  type Entry,
  type EventPayloads,
  type EventType,
  type Finished,
  type GroupEnded,
  type Identity,
  type InputArtifact,
  type Json,
  type JsonObject,
  MESSAGE_TOOL,
  type Moved,
  type MoveNotes,
  mapTexts,
  type Paused,
  type PlanGrown,
  providerActs,
  type Reopened,
  type Resumed,
  type RunEvent,
  type Spawned,
  type TaskEnded,
  type TaskPaused,
  type TaskView,
  type Watched,
} from '#core';
import { missingApprovals, remembering, ruleSetBy, withApproval } from './approvals.ts';
import { stepsCounted } from './budget.ts';
import { closedWith, howClosed, whyClosed } from './closed-with.ts';
import { grownMove, isNews, nodeEdits, REMOVED } from './open-step.ts';
import { itemIn, membersIn } from './places.ts';
import { heldBack } from './plan-view.ts';
import { nextStep, type OpenPause, openBranches, type RunState } from './state.ts';
import { undoCounts } from './undo-report.ts';

/** Makes an event of a type from an entry's position and time. */
export function event<T extends EventType>(
  type: T,
  at: { readonly seq: number; readonly at: number },
  identity: Identity,
  payload: EventPayloads[T],
): RunEvent {
  return { ...payload, type, identity, seq: at.seq, occurredAt: at.at } as RunEvent;
}

/** The events of one entry. `before` is the state without it; a `started` entry has none. */
export function eventsOf(entry: Entry, before: RunState | undefined): RunEvent[] {
  const own = ownEvents(entry, before);
  if (before === undefined || before.pauses.length === 0) return own;
  const answered = entry.kind === 'resumed' ? entry.token : undefined;
  const closed = closedWith(before, entry).filter(({ token }) => token !== answered);
  return closed.length === 0 ? own : [...closed.map((pause) => closedEvent(entry, pause, before)), ...own];
}

/** A question was closed that nobody answers any more, without an entry of its own, as when its call has lost a race. */
function closedEvent(entry: Entry, pause: OpenPause, before: RunState): RunEvent {
  const how = howClosed(before, entry, pause);
  const { token, reason } = pause;
  const about = { token, reason };
  if (how.with === 'answer' || how.with === 'time')
    return event('pause.resumed', entry, before.identity, { ...about, verdict: 'timeout' });
  const payload = { reason: whyClosed(how) };
  return event('pause.resumed', entry, before.identity, { ...about, verdict: 'superseded', payload });
}

function ownEvents(entry: Entry, before: RunState | undefined): RunEvent[] {
  if (entry.kind === 'started') {
    const { query, agent, author, erased } = entry;
    const started = event('run.started', entry, entry.identity, { query, agent, ...defined({ author }) });
    return erased === undefined
      ? [started]
      : [started, event('run.erased', entry, entry.identity, { erasedAt: erased })];
  }
  if (before === undefined) return [];
  const { identity } = before;
  switch (entry.kind) {
    case 'moved':
      return moveEvents(entry, entry, identity);
    case 'plan_grown':
      return grownEvents(entry, entry, before);
    case 'call_began':
      return [];
    case 'call_spent': {
      const { step, call, usage, model } = entry;
      return [event('tool.spent', entry, identity, { step, call, usage, ...defined({ model }) })];
    }
    case 'call_ended':
      return callEvents(entry, entry, before);
    case 'call_away': {
      const { step, call, error, attempts, retryAt } = entry;
      const tool = openBranches(before)[call]?.tool ?? '';
      return [event('tool.away', entry, identity, { step, call, tool, error, attempts, retryAt })];
    }
    case 'call_waits': {
      const { step, call, waits } = entry;
      return [event('call.waiting', entry, identity, { step, call, tool: toolOf(before, call), waits })];
    }
    case 'wait_ended': {
      const { kind: _, seq: __, at: ___, step, call, ...end } = entry;
      return [event('call.waited', entry, identity, { step, call, tool: toolOf(before, call), ...end })];
    }
    case 'event_passed': {
      const { step, call, key, signal, error } = entry;
      return [event('event.passed', entry, identity, { step, call, key, signal, error })];
    }
    case 'call_kept':
      return [];
    case 'paused':
      return pauseEvents(entry, entry, before);
    case 'resumed':
      return [...resumeEvents(entry, entry, before), ...ruleEvents(entry, entry, identity)];
    case 'approved':
      return [...approvedEvents(entry, entry, before), ...ruleEvents(entry, entry, identity)];
    case 'reminded': {
      const { token, times } = entry;
      return [event('approval.reminder', entry, identity, { token, times, ...askedIn(before, token) })];
    }
    case 'escalated': {
      const { token, to, approver } = entry;
      const told = { token, to, ...defined({ approver }), ...askedIn(before, token) };
      return [event('approval.escalated', entry, identity, told)];
    }
    case 'ruled': {
      const { step, call, verdict, rules } = entry;
      const tool = openBranches(before)[call]?.tool ?? '';
      return [event('rule.applied', entry, identity, { step, call, tool, verdict, rules })];
    }
    case 'control':
      return [...controlEvents(entry, entry, identity), ...withdrawnEvents(entry, entry, before)];
    case 'spawned':
    case 'awaiting':
    case 'task_ended':
    case 'task_paused':
    case 'watched':
    case 'group_ended':
      return taskEvents(entry, entry, before);
    case 'turn_started': {
      const { query = before.query, continues } = entry;
      const { messages = [], replaces, succeeds, interrupts } = before.turn ?? {};
      const runs = continues.runs.map(({ run }) => run);
      const ids = messages.map(({ id }) => id);
      const place = defined({ replaces, succeeds, interrupts });
      return [event('turn.started', entry, identity, { query, continues: runs, messages: ids, ...place })];
    }
    case 'no_progress': {
      const { step, period, times } = entry;
      return [event('planner.no_progress', entry, identity, { step, period, times })];
    }
    case 'recalled': {
      const { profile, items } = entry;
      return [event('memory.recalled', entry, identity, { items, ...defined({ profile }) })];
    }
    case 'repinned': {
      const { agent, renamedTools } = entry;
      return [event('run.repinned', entry, identity, { agent, ...defined({ renamedTools }) })];
    }
    case 'compacted': {
      const { tokenEstimate } = entry;
      const steps = before.steps.length;
      return [
        event('trajectory.compressed', entry, identity, { stepsBefore: steps, stepsAfter: steps, tokenEstimate }),
      ];
    }
    case 'compaction_failed': {
      const { error, tokenEstimate } = entry;
      const failure = { stepsObserved: before.steps.length, tokenEstimate, errorCode: error.code };
      return [
        event('trajectory.compression_failed', entry, identity, { ...failure, errorMessage: shortened(error.message) }),
      ];
    }
    case 'overflowed': {
      const { step, model, tokens, overflow, error, usage } = entry;
      const told = { step, model, tokens, overflow, error, ...defined({ usage }) };
      return [...remarkEvents(entry, entry, identity), event('model.overflowed', entry, identity, told)];
    }
    case 'shortened': {
      const { step, results, tokenEstimate } = entry;
      const rows = results.map(({ call, artifact: { artifactRef, sizeBytes } }) => ({ call, artifactRef, sizeBytes }));
      return [event('trajectory.shortened', entry, identity, { step: step - 1, results: rows, tokenEstimate })];
    }
    case 'model_away': {
      const { step, error, retryAt, usage } = entry;
      const told = defined({ retryAt, usage });
      return [...remarkEvents(entry, entry, identity), event('model.away', entry, identity, { step, error, ...told })];
    }
    case 'reopened':
      return [event('run.reopened', entry, identity, defined({ by: entry.by, retries: retried(entry, before) }))];
    case 'repaired': {
      const { by, reason, problem } = entry;
      return [event('run.repaired', entry, identity, { by, ...defined({ reason }), problem })];
    }
    case 'answering':
      return [event('planner.last_move', entry, identity, { step: entry.step, reason: CEILING_REASONS[entry.budget] })];
    case 'unwinding': {
      const { ending, until } = entry;
      const how =
        ending.kind === 'failed' ? { reason: 'failed' as const, code: ending.error.code } : { reason: ending.reason };
      return [event('undo.started', entry, identity, { ...how, until })];
    }
    case 'finished':
      return [...undoneEvents(entry, entry.metadata, before), ...finishEvents(entry, entry, before)];
    case 'failed':
      return [
        ...undoneEvents(entry, entry.error.data, before),
        event('planner.error', entry, identity, { error: entry.error }),
      ];
    default:
      return entry satisfies never;
  }
}

/** What came of undoing stands in what the run ended with. */
function undoneEvents(at: Entry, told: JsonObject | undefined, { unwinding, identity }: RunState): RunEvent[] {
  const counts = unwinding === null ? undefined : undoCounts(told);
  return counts === undefined ? [] : [event('undo.ended', at, identity, counts)];
}

function toolOf(before: RunState, call: number): string {
  return openBranches(before)[call]?.tool ?? '';
}

function moveEvents(entry: Entry, move: Moved, identity: Identity): RunEvent[] {
  const { decision, reasoning, text, usage, step, partial, undoes } = move;
  if (undoes !== undefined && decision.kind === 'call_tool') {
    const { tool } = decision;
    return [
      event('undo.call', entry, identity, { step, tool, undoes }),
      ...invokedEvents(entry, step, branchesOf(decision), 0, identity),
    ];
  }
  const rejected = move.rejected ?? move.fault;
  const events: RunEvent[] = [
    ...remarkEvents(entry, move, identity),
    event('planner.decision', entry, identity, {
      step,
      // A decision that did not pass may be of a kind that nobody knows.
      decisionKind: DECISION_NAMES[decision.kind] ?? 'unknown',
      reasoningChars: reasoning === undefined ? 0 : [...reasoning].length,
      latencyMs: since(move.startedAt, entry.at),
      ...(decision.kind === 'call_tool' && typeof decision.tool === 'string' ? { tool: decision.tool } : {}),
      ...defined({ plan: planIn(move), reasoningTrace: reasoning, text, usage, rejected, partial }),
    }),
  ];
  events.push(...providerEvents(entry, move, identity));
  if (rejected !== undefined) return events;
  return [
    ...events,
    ...filesEvents(entry, step, move.files, identity),
    ...invokedEvents(entry, step, branchesOf(decision), 0, identity),
    ...heldEvents(entry, move, identity),
  ];
}

function planIn({ decision, rejected, fault }: Moved): string | undefined {
  if (decision.kind !== 'call_parallel' || (rejected ?? fault) !== undefined) return undefined;
  return decision.plan;
}

function providerEvents(entry: Entry, { step, providerState }: Moved, identity: Identity): RunEvent[] {
  return providerActs(providerState).map((act) => {
    const { toolCallId: callId, toolName, tool = toolName } = act;
    if (act.type === 'tool-call')
      return event('provider.invoked', entry, identity, { step, callId, tool, input: act.input });
    const { type, value: output } = act.output;
    return event('provider.completed', entry, identity, {
      step,
      callId,
      tool,
      output,
      isError: type.startsWith('error'),
    });
  });
}

function filesEvents(
  entry: Entry,
  step: number,
  files: readonly InputArtifact[] | undefined,
  identity: Identity,
): RunEvent[] {
  return files === undefined ? [] : [event('planner.files', entry, identity, { step, files })];
}

function heldEvents(entry: Entry, move: Moved, identity: Identity): RunEvent[] {
  // For a growing plan, the event comes when the plan is whole.
  if (move.growing === true) return [];
  return heldBack(move).map((held) => event('tool.held_back', entry, identity, { step: move.step, ...held }));
}

function remarkEvents(entry: Entry, { remarks = [] }: MoveNotes, identity: Identity): RunEvent[] {
  return remarks.map(({ type, ...payload }) => event(type, entry, identity, payload as EventPayloads[typeof type]));
}

/** @param first the index of the first of these branches. */
function invokedEvents(
  entry: Entry,
  step: number,
  branches: readonly Branch[],
  first: number,
  identity: Identity,
): RunEvent[] {
  return branches.map(({ tool, args, callId }, index) => {
    const id = callId === undefined ? {} : { callId };
    return event('tool.invoked', entry, identity, { step, call: first + index, tool, args, ...id });
  });
}

function grownEvents(entry: Entry, grown: PlanGrown, before: RunState): RunEvent[] {
  const { step, branches, done = false, fault, usage } = grown;
  const { identity } = before;
  const known = openBranches(before).length;
  return [
    ...remarkEvents(entry, grown, identity),
    event('plan.grown', entry, identity, {
      step,
      nodes: known + branches.length,
      done,
      ...defined({ error: fault, usage }),
    }),
    ...invokedEvents(entry, step, branches, known, identity),
    ...(before.open === null || !done ? [] : heldEvents(entry, grownMove(before.open.move, grown), identity)),
  ];
}

function callEvents(entry: Entry, ended: CallEnded, before: RunState): RunEvent[] {
  const { step, call, outcome } = ended;
  const completed = callEvent(entry, ended, before);
  if (ended.handles !== undefined) return [...handleEvents(entry, ended, before), completed];
  if (outcome.kind !== 'value' || openBranches(before)[call]?.tool !== MESSAGE_TOOL) return [completed];
  return [completed, event('message', entry, before.identity, { step, call, message: outcome.value })];
}

/** That a handle is gone is told once: when a call is refused for it, or when it is opened again. */
function handleEvents(entry: Entry, ended: CallEnded, { handles, identity }: RunState): RunEvent[] {
  const { step, call, handles: notes = [] } = ended;
  return notes
    .filter((note) => isNews(handles, note))
    .flatMap(({ name, opening, lost }) => {
      const of = { step, call, handle: name };
      const gone = (which: number) => event('handle.lost', entry, identity, { ...of, opening: which });
      if (lost === true) return [gone(opening)];
      const wasTold = handles.some((each) => each.name === name && each.lostAt !== undefined);
      const opened = event('handle.opened', entry, identity, { ...of, opening });
      return opening === 1 || wasTold ? [opened] : [gone(opening - 1), opened];
    });
}

function callEvent(entry: Entry, ended: CallEnded, before: RunState): RunEvent {
  const { step, call, outcome, attempts, reuses, store } = ended;
  const decision = before.open?.move.decision;
  const tool = openBranches(before)[call]?.tool ?? decision?.kind ?? '';
  const latencyMs = since(ended.startedAt ?? entry.at, entry.at);
  const type =
    outcome.kind === 'value' ? 'tool.completed' : outcome.kind === 'skipped' ? 'tool.skipped' : 'tool.failed';
  return event(type, entry, before.identity, {
    ...{ step, call, tool, outcome, latencyMs, attempts },
    ...defined({ reuses, store }),
  });
}

function approvedEvents(entry: Entry, approved: ApprovedOnce, { pauses, identity }: RunState): RunEvent[] {
  const { token, by, args } = approved;
  const pause = pauses.find((open) => open.token === token);
  if (pause === undefined) return [];
  const missing = missingApprovals(withApproval(pause, approved, entry.at), identity);
  return [event('approval.given', entry, identity, { token, missing, ...defined({ by, args }) })];
}

function ruleEvents(entry: Entry, answer: Resumed | ApprovedOnce, identity: Identity): RunEvent[] {
  const set = remembering(answer);
  return set === undefined ? [] : [event('rule.set', entry, identity, { rule: ruleSetBy(set, identity.run, entry) })];
}

function askedIn({ pauses }: RunState, token: string): { readonly payload?: JsonObject } {
  return defined({ payload: pauses.find((pause) => pause.token === token)?.payload });
}

function pauseEvents(
  entry: Entry,
  { token, reason, payload, schema, expiresAt, step, call, approvals }: Paused,
  before: RunState,
): RunEvent[] {
  const told = defined({ payload });
  const requested = event('pause.requested', entry, before.identity, {
    token,
    reason,
    ...told,
    ...defined({ schema, expiresAt, approvals }),
  });
  if (step === undefined || call === undefined || reason !== 'approval_required') return [requested];
  const tool = openBranches(before)[call]?.tool ?? '';
  return [requested, event('tool.approval_requested', entry, before.identity, { step, call, tool, token, ...told })];
}

function resumeEvents(entry: Entry, resumed: Resumed, before: RunState): RunEvent[] {
  const { token, verdict, payload, args, limits, nodes, by, outcome, value } = resumed;
  const pause = before.pauses.find((candidate) => candidate.token === token);
  const { reason = 'external_event', step, call, wait } = pause ?? {};
  const answered = event('pause.resumed', entry, before.identity, {
    token,
    reason,
    verdict,
    ...defined({ payload, args, limits, nodes, value, by }),
  });
  if (step === undefined) return [answered, ...removedEvents(entry, before, nodes)];
  // A call that waits in the middle of its work ends with an entry of its own.
  if (call !== undefined && outcome !== undefined && wait === undefined) {
    const startedAt = before.open?.began.find((begun) => begun.call === call)?.at ?? entry.at;
    const made = verdict === 'answer' ? { attempts: 0 } : { startedAt, attempts: 1 };
    return [answered, callEvent(entry, callEnded({ step, call }, { outcome, ...made }), before)];
  }
  if (call === undefined || reason !== 'approval_required') return [answered];
  const tool = openBranches(before)[call]?.tool ?? '';
  const type = verdict === 'approve' ? 'tool.approved' : 'tool.rejected';
  return [answered, event(type, entry, before.identity, { step, call, tool, token })];
}

/** Nodes of a plan that whoever resumed the run took out of it. */
function removedEvents(entry: Entry, { open, identity }: RunState, nodes: JsonObject | undefined): RunEvent[] {
  const step = open?.move.step ?? 0;
  const removed = nodeEdits(open, nodes).filter(({ args }) => args === undefined);
  return removed.map(({ call, branch: { tool } }) =>
    event('tool.skipped', entry, identity, { step, call, tool, outcome: REMOVED, latencyMs: 0, attempts: 0 }),
  );
}

function controlEvents(entry: Entry, { control, error, undelivered }: ControlTaken, identity: Identity): RunEvent[] {
  const received = event('control.received', entry, identity, { control });
  if (undelivered === true) return [received, event('control.undelivered', entry, identity, { control })];
  if (error === undefined) return [received, event('control.applied', entry, identity, { control })];
  return [received, event('control.rejected', entry, identity, { control, error })];
}

/** What tasks still ask once the control has withdrawn some of it. */
function withdrawnEvents(entry: Entry, { withdrew = [] }: ControlTaken, { identity, tasks }: RunState): RunEvent[] {
  return tasks.flatMap(({ id: taskId, pauses }) => {
    const open = pauses.filter(({ token }) => !withdrew.includes(token));
    if (open.length === pauses.length) return [];
    return open.length === 0
      ? event('task.resumed', entry, identity, { taskId })
      : event('task.paused', entry, identity, { taskId, pauses: open });
  });
}

const MAX_MESSAGE_CHARS = 256;

function shortened(message: string): string {
  return message.length <= MAX_MESSAGE_CHARS ? message : `${message.slice(0, MAX_MESSAGE_CHARS - 3)}...`;
}

/** A clock that was set back between the two gives 0. */
function since(startedAt: number, endedAt: number): number {
  return Math.max(0, endedAt - startedAt);
}

function finishEvents(entry: Entry, finished: Finished, before: RunState): RunEvent[] {
  const { reason, payload, metadata, files } = finished;
  const made = filesEvents(entry, nextStep(before), files, before.identity);
  const ending = event('planner.finish', entry, before.identity, {
    reason,
    ...defined({ payload, metadata }),
  });
  if (metadata?.['max_steps_exceeded'] !== true) return [...made, ending];
  const last = before.steps.at(-1);
  const lastTool = last === undefined || last.calls.length === 0 ? undefined : branchesOf(last.decision).at(-1)?.tool;
  const exceeded = event('planner.max_steps_exceeded', entry, before.identity, {
    maxSteps: Number(metadata['max_steps'] ?? before.limits.steps ?? DEFAULT_STEP_LIMIT),
    stepsObserved: Number(metadata['steps_observed'] ?? stepsCounted(before)),
    ...defined({ lastTool }),
  });
  return [...made, exceeded, ending];
}

function taskEvents(
  at: Entry,
  entry: Spawned | Awaiting | TaskEnded | TaskPaused | Watched | GroupEnded,
  { identity, tasks }: RunState,
): RunEvent[] {
  switch (entry.kind) {
    case 'spawned': {
      const { step, call, task: taskId, group: groupId, taskKind: kind, description } = entry;
      return [event('task.spawned', at, identity, { step, call, taskId, groupId, kind, description })];
    }
    case 'task_ended': {
      const { task: taskId, status, result, error } = entry;
      if (status === 'cancelled') return [event('task.cancelled', at, identity, { taskId })];
      if (status === 'failed') return [event('task.failed', at, identity, { taskId, code: error?.code ?? 'failed' })];
      return [event('task.completed', at, identity, { taskId, ...defined({ result }) })];
    }
    case 'task_paused': {
      const { task: taskId, pauses } = entry;
      if (pauses.length > 0) return [event('task.paused', at, identity, { taskId, pauses })];
      // The task may go on after a pause of which this run was not told.
      const was = itemIn(tasks, taskId);
      return was === undefined || was.pauses.length === 0 ? [] : [event('task.resumed', at, identity, { taskId })];
    }
    case 'group_ended': {
      const { group, status, reason } = entry;
      const members = membersIn(tasks, group).map(memberOf);
      const resolved = { groupId: group, ownerTaskId: identity.run, finalStatus: status, resolvedAt: at.at, members };
      return [event('task.group_resolved', at, identity, { ...resolved, ...defined({ reason }) })];
    }
    case 'awaiting':
    case 'watched':
      return [];
    default:
      return entry satisfies never;
  }
}

function memberOf({ id, end }: TaskView): EventPayloads['task.group_resolved']['members'][number] {
  if (end === undefined) return { taskId: id, status: 'running' };
  const { status, result, error } = end;
  return {
    taskId: id,
    status,
    ...defined({ result, error }),
  };
}

// What leaves for a log or a screen may have to leave out more than what is written does.

/** Gives the text with what must not be seen replaced. */
export type Redact = (text: string) => string;

/** Says where an event belongs and what it is; no text of a model, a tool or a person. */
const POSITION: ReadonlySet<string> = new Set(['type', 'identity', 'seq', 'occurredAt', 'path']);

/** A copy of the event in which every text of its payload, keys too, has passed through. @throws what `redact` throws. */
export function redacted(event: RunEvent, redact: Redact): RunEvent {
  const fields = Object.entries(event).map(([key, value]) => [
    key,
    POSITION.has(key) ? value : mapTexts(value as Json, redact),
  ]);
  return Object.freeze(Object.fromEntries(fields)) as RunEvent;
}

function retried({ retries }: Reopened, { steps }: RunState): EventPayloads['run.reopened']['retries'] {
  const { decision } = steps.at(-1) ?? {};
  if (retries === undefined || decision === undefined) return undefined;
  const branches = branchesOf(decision);
  const nodes = retries.calls.flatMap((call) => {
    const branch = branches[call];
    return branch === undefined ? [] : [branchId(branch, call)];
  });
  return { step: retries.step, nodes };
}
