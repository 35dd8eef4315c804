/**
 * What a reader of a run sees. Events are derived from entries, so that they can be read again at any time with the same
 * numbers; only `token`, `tool.input`, `token.reset`, `tool.chunk`, `tool.late`
 * and `task.progress` are not recorded, and `run.paused` marks the end of what a reader of a paused run gets.
 */
import type { Approver } from './approval.ts';
import type { AppliedRule, ApprovalRule } from './approval-rule.ts';
import type { InputArtifact } from './artifact.ts';
import type { Overflow } from './compaction.ts';
import type { Caller, Control } from './control.ts';
import type { FinishReason, PauseReason } from './decision.ts';
import type { ErrorData } from './errors.ts';
import type { Identity } from './identity.ts';
import type { Json, JsonObject } from './json.ts';
import type { CeilingReason, RunLimits, Usage } from './limits.ts';
import type { Recalled } from './memory.ts';
import type { Author } from './message.ts';
import type { Outcome, PauseVerdict } from './outcome.ts';
import type { RemarkPayloads } from './remark.ts';
import type { CallPlace, HeldBack, PartialReply } from './step.ts';
import type { StoreUse } from './store.ts';
import type { TaskEnd, TaskKind, TaskPause, TaskStatus } from './task.ts';
import type { CallWait, WaitEnd } from './wait.ts';

interface CallEndedPayload {
  readonly step: number;
  readonly call: number;
  readonly tool: string;
  readonly outcome: Outcome;
  readonly latencyMs: number;
  readonly attempts: number;
  /** The earlier, equal call whose outcome this call took. With attempts, this call was made under the key of that call. */
  readonly reuses?: CallPlace;
  /** What it has read from the long-term store, and written to it. */
  readonly store?: StoreUse;
}

export interface EventPayloads extends RemarkPayloads {
  'run.started': { readonly query: string; readonly agent: string; readonly author?: Author };
  /** The content of the run was erased: what follows are the skeletons of its entries. Comes right behind its start. */
  'run.erased': { readonly erasedAt: number };
  /**
   * The turn of a run of a session has come. `continues`: the runs that it is told of, the last of which is the turn that it goes on from; `messages`:
   * the ids of the messages that it answers.
   */
  'turn.started': {
    readonly query: string;
    readonly continues: readonly string[];
    readonly messages: readonly string[];
    /** The turn in whose place it stands, on a branch of its own. */
    readonly replaces?: string;
    /** The run with which the turn began, when this run goes on with it. */
    readonly succeeds?: string;
    /** The turn that was cancelled for it. */
    readonly interrupts?: string;
  };
  /** A piece of the model's answer. `offset` counts characters of this kind in this step, so that a gap shows. */
  token: {
    readonly step: number;
    readonly channel: 'text' | 'reasoning';
    readonly text: string;
    readonly offset: number;
  };
  /**
   * A piece of the arguments of a call, as JSON text, while the model writes them: the first may be empty. `offset` counts characters of
   * this call's arguments. A call that is made has the same `callId` in its `tool.invoked`; one that is refused, or dropped, has none.
   * The event is not recorded.
   */
  'tool.input': {
    readonly step: number;
    readonly callId: string;
    readonly tool: string;
    readonly text: string;
    readonly offset: number;
  };
  /**
   * The answer begins again, as the model failed on the way or somebody else asks it: a reader takes back what it has shown of this step,
   * `tool.input` included.
   */
  'token.reset': { readonly step: number };
  'planner.decision': {
    readonly step: number;
    readonly decisionKind: string;
    /** Only for a single call. */
    readonly tool?: string;
    /** The id of the plan that the calls of the step carry out. */
    readonly plan?: string;
    /** Length of the reasoning, in code points. */
    readonly reasoningChars: number;
    readonly reasoningTrace?: string;
    readonly text?: string;
    readonly usage?: Usage;
    readonly latencyMs: number;
    readonly rejected?: ErrorData;
    /** The reply is not whole, and goes on in the next step. */
    readonly partial?: PartialReply;
  };
  /** The model has made these files. They are artifacts of the session. */
  'planner.files': { readonly step: number; readonly files: readonly InputArtifact[] };
  /**
   * Like the four events that end or skip a call, this event comes also for the nodes `_message` and `_finish` of a plan, which no
   * tool carries out.
   */
  'tool.invoked': {
    readonly step: number;
    readonly call: number;
    readonly tool: string;
    readonly callId?: string;
    readonly args: Json;
  };
  /**
   * Calls of a step are held back: of `calls` that could run at once, `limit` do, because of the setting `by`; with `tool`, only
   * calls of that tool.
   */
  'tool.held_back': { readonly step: number } & HeldBack;
  /** An attempt of the call has failed, and the call waits for its next attempt. */
  'tool.away': {
    readonly step: number;
    readonly call: number;
    readonly tool: string;
    readonly error: ErrorData;
    /** How often it was tried so far. */
    readonly attempts: number;
    /** When the next attempt is made. Milliseconds since the epoch. */
    readonly retryAt: number;
  };
  'tool.completed': CallEndedPayload;
  /** An error, a cancelled call, or one whose outcome is unknown. */
  'tool.failed': CallEndedPayload;
  /** A branch that never started: because of another branch, or because somebody took it out of its plan. */
  'tool.skipped': CallEndedPayload;
  /**
   * A tool's live handle was opened. `opening` is 1 for the first time in the run; a higher number means a new value, and everything
   * that the value before it kept is gone. The event comes with the end of the first call that used the handle.
   */
  'handle.opened': { readonly step: number; readonly call: number; readonly handle: string; readonly opening: number };
  /** The value of a handle that earlier calls used is gone: after a crash, in another process, or while the run waited. */
  'handle.lost': { readonly step: number; readonly call: number; readonly handle: string; readonly opening: number };
  /** A call has used something beside its own price: the model that its tool has asked, or what the tool has said. */
  'tool.spent': { readonly step: number; readonly call: number; readonly usage: Usage; readonly model?: string };
  /** A result came after its call had been given up, and was dropped. */
  'tool.late': { readonly step: number; readonly call: number; readonly tool: string };
  /**
   * A piece of a call's result, given while the call runs. Pieces of tasks below the run that carry out its calls come too: `run` is
   * the run whose call gave the piece. `index` counts from 1 in each attempt. The event is not recorded.
   */
  'tool.chunk': {
    readonly run: string;
    readonly step: number;
    readonly call: number;
    readonly tool: string;
    readonly attempt: number;
    readonly index: number;
    readonly chunk: Json;
  };
  /** A tool call waits for somebody's approval; a `pause.requested` with the same token comes with it. */
  'tool.approval_requested': {
    readonly step: number;
    readonly call: number;
    readonly tool: string;
    readonly token: string;
    readonly payload?: JsonObject;
  };
  'tool.approved': { readonly step: number; readonly call: number; readonly tool: string; readonly token: string };
  'tool.rejected': { readonly step: number; readonly call: number; readonly tool: string; readonly token: string };
  /** Somebody has approved the call; `missing` more people have to. With `args`, it is these that they have to approve. */
  'approval.given': { readonly token: string; readonly missing: number; readonly by?: Caller; readonly args?: Json };
  /** Nobody has answered yet: readers are told for the `times`-th time. */
  'approval.reminder': { readonly token: string; readonly times: number; readonly payload?: JsonObject };
  /** Nobody has answered for so long that it is to be told to somebody else, who is named in the program's own words. */
  'approval.escalated': {
    readonly token: string;
    readonly to: string;
    /** Who may approve from now on, if that has changed. */
    readonly approver?: Approver;
    readonly payload?: JsonObject;
  };
  /** The answer to a question holds for others like it. */
  'rule.set': { readonly rule: ApprovalRule };
  /** Rules have answered for a call what people would have been asked. */
  'rule.applied': {
    readonly step: number;
    readonly call: number;
    readonly tool: string;
    readonly verdict: 'approve' | 'reject';
    readonly rules: readonly AppliedRule[];
  };
  /** A node of a plan says this to the user. */
  message: { readonly step: number; readonly call: number; readonly message: Json };
  /** A plan that is carried out while it is made has more nodes, or, with `done`, is whole. */
  'plan.grown': {
    readonly step: number;
    readonly nodes: number;
    readonly done: boolean;
    readonly error?: ErrorData;
    readonly usage?: Usage;
  };
  /** A task was started, and is stored. */
  'task.spawned': {
    readonly step: number;
    readonly call: number;
    readonly taskId: string;
    readonly groupId: string;
    readonly kind: TaskKind;
    readonly description: string;
  };
  /** Somebody has to answer one of these before the task goes on. */
  'task.paused': { readonly taskId: string; readonly pauses: readonly TaskPause[] };
  'task.resumed': { readonly taskId: string };
  'task.completed': { readonly taskId: string; readonly result?: Json };
  'task.failed': { readonly taskId: string; readonly code: string };
  'task.cancelled': { readonly taskId: string };
  'task.group_resolved': {
    readonly groupId: string;
    readonly ownerTaskId: string;
    readonly finalStatus: 'completed' | 'cancelled';
    readonly resolvedAt: number;
    readonly members: readonly {
      readonly taskId: string;
      readonly status: 'running' | TaskEnd['status'];
      readonly result?: Json;
      readonly error?: ErrorData;
    }[];
    readonly reason?: string;
  };
  /** The progress of a task of a run whose planner has the wake mode `hybrid`, while somebody listens. The event is not recorded. */
  'task.progress': { readonly taskId: string; readonly status: TaskStatus; readonly entries: number };
  /** The last steps repeat: the same `period` steps came `times` times. */
  'planner.no_progress': { readonly step: number; readonly period: number; readonly times: number };
  /** What the run is told of the memory of its user. Namespaces are whole. */
  'memory.recalled': Recalled;
  /**
   * No model could be asked for the move of this step. The run tries again at `retryAt`; without `retryAt` it is paused, as the
   * next event says.
   */
  'model.away': {
    readonly step: number;
    readonly error: ErrorData;
    /** Milliseconds since the epoch. */
    readonly retryAt?: number;
    readonly usage?: Usage;
  };
  /** Somebody resumed the run after it had failed; `retries` names the nodes of its plan that are carried out once more. */
  'run.reopened': {
    readonly by?: Caller;
    readonly retries?: { readonly step: number; readonly nodes: readonly string[] };
  };
  /** Somebody repaired the run: this stands in place of an entry that could not stand. */
  'run.repaired': { readonly by: string; readonly reason?: string; readonly problem: ErrorData };
  /** A limit is reached: the planner has one more move, without calls, to say what it has found. */
  'planner.last_move': { readonly step: number; readonly reason: CeilingReason };
  /** The run is to end so, and first undoes its calls. `code`: of the failure. */
  'undo.started': { readonly reason: FinishReason | 'failed'; readonly code?: string; readonly until: number };
  /** The step undoes this call of an earlier one. Its own call is told as any other. */
  'undo.call': { readonly step: number; readonly tool: string; readonly undoes: CallPlace };
  /** All was undone that could be. How the run has ended is the next event; which calls they are is in its metadata, or in the data of its error. */
  'undo.ended': { readonly undone: number; readonly failed: number; readonly left: number };
  /** Somebody accepted that the code of the run has changed. */
  'run.repinned': { readonly agent: string; readonly renamedTools?: Readonly<Record<string, string>> };
  /** Nothing more comes until somebody answers: the last event of a reader of a paused run. */
  'run.paused': { readonly pauses: readonly TaskPause[] };
  /** The run has taken a control out of its inbox. The next event says what became of the control. */
  'control.received': { readonly control: Control };
  /** The provider of the model has carried out a call of its own tool, of which the reply of this step tells. No tool of the run was called. */
  'provider.invoked': { readonly step: number; readonly callId: string; readonly tool: string; readonly input: Json };
  /** What a call of the provider's own gave, as the provider tells it. It may come in a later step than the call. */
  'provider.completed': {
    readonly step: number;
    readonly callId: string;
    readonly tool: string;
    readonly output: Json;
    readonly isError: boolean;
  };
  /** The run ended before it could do what the control asks for. */
  'control.undelivered': { readonly control: Control };
  'control.applied': { readonly control: Control };
  'control.rejected': { readonly control: Control; readonly error: ErrorData };
  /** A call waits in the middle of its work. A question comes as `pause.requested` too. */
  'call.waiting': {
    readonly step: number;
    readonly call: number;
    readonly tool: string;
    readonly waits: readonly CallWait[];
  };
  /** What it waited for has come, or does not come any more; the call goes on. */
  'call.waited': {
    readonly step: number;
    readonly call: number;
    readonly tool: string;
    readonly wait: number;
    readonly ended: WaitEnd['ended'];
    readonly payload?: Json;
    readonly signal?: string;
  };
  /** A signal came for a wait that could not take it. */
  'event.passed': {
    readonly step: number;
    readonly call: number;
    readonly key: string;
    readonly signal: string;
    readonly error: ErrorData;
  };
  'pause.requested': {
    readonly token: string;
    readonly reason: PauseReason;
    readonly payload?: JsonObject;
    /** JSON Schema of the answer. */
    readonly schema?: JsonObject;
    readonly expiresAt?: number;
    /** How many people have to approve. Absent: one. */
    readonly approvals?: number;
  };
  'pause.resumed': {
    readonly token: string;
    readonly reason: PauseReason;
    readonly verdict: PauseVerdict;
    /** With `superseded` the `reason`, and as `control` what withdrew the question; without `control` its call ended, such as one that has lost a race. */
    readonly payload?: JsonObject;
    /** Arguments that the approver gave in place of the call's own. */
    readonly args?: Json;
    /** Limits that were given in place of the run's own. */
    readonly limits?: RunLimits;
    /** Changes of nodes that have not begun, by their ids. */
    readonly nodes?: JsonObject;
    /** The answer to a question of a call. */
    readonly value?: Json;
    readonly by?: Caller;
  };
  /** Earlier steps are sent as a summary from now on. Both numbers count the steps taken: none is lost. */
  'trajectory.compressed': {
    readonly stepsBefore: number;
    readonly stepsAfter: number;
    readonly tokenEstimate: number;
  };
  /** `errorMessage` has at most 256 characters. */
  'trajectory.compression_failed': {
    readonly stepsObserved: number;
    readonly tokenEstimate: number;
    readonly errorCode: string;
    readonly errorMessage: string;
  };
  /** Results of the last step are sent as previews from now on: they were too large for the model. */
  'trajectory.shortened': {
    readonly step: number;
    readonly results: readonly { readonly call: number; readonly artifactRef: string; readonly sizeBytes: number }[];
    readonly tokenEstimate: number;
  };
  /** A model did not take the request of this step, as it does not fit. `tokens` is its length by our own count. */
  'model.overflowed': {
    readonly step: number;
    readonly model: string;
    readonly tokens: number;
    readonly overflow: Overflow;
    readonly error: ErrorData;
    readonly usage?: Usage;
  };
  'planner.max_steps_exceeded': {
    readonly maxSteps: number;
    readonly stepsObserved: number;
    readonly lastTool?: string;
  };
  'planner.finish': { readonly reason: FinishReason; readonly payload?: Json; readonly metadata?: JsonObject };
  'planner.error': { readonly error: ErrorData };
}

export type EventType = keyof EventPayloads;

/** A task on the way from a run that is read to the run of an event, with the call that started it in the run above. */
export interface TaskStep {
  /** The id of the task. */
  readonly run: string;
  readonly step: number;
  readonly call: number;
  /** The name of the task's agent. */
  readonly agent: string;
}

/**
 * `seq` is the journal position that the event comes from; a token has the position it follows. `path`: the event is of a task below the run
 * that is read (`events({ tasks: true })`), and these are the tasks that lead to it; `identity`, `seq` and `step` are those of the task.
 */
export type RunEvent<T extends EventType = EventType> = {
  [K in T]: {
    readonly type: K;
    readonly identity: Identity;
    readonly seq: number;
    readonly occurredAt: number;
    readonly path?: readonly TaskStep[];
  } & EventPayloads[K];
}[T];
