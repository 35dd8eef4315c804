/** The entries of a run's journal. A run is nothing but the list of its entries; everything else is computed from them. */
import type { Approver, Escalation } from './approval.ts';
import type { ApprovedOnce, Escalated, Reminded, Ruled } from './approval-entry.ts';
import type { ArtifactRef, InputArtifact } from './artifact.ts';
import type { ClientToolSpec } from './client-tool.ts';
import type { Compaction, CompactionErrorCode, Overflow } from './compaction.ts';
import type { ArtifactRow, RunContext } from './context.ts';
import type { Caller, Control, WhileAsked } from './control.ts';
import type { Branch, Decision, FinishReason, PauseReason } from './decision.ts';
import type { ErrorData } from './errors.ts';
import type { Identity } from './identity.ts';
import type { Json, JsonObject } from './json.ts';
import type { CeilingAxis, RunLimits, TaskShare, Usage } from './limits.ts';
import type { Recalled } from './memory.ts';
import type { Author } from './message.ts';
import type { Outcome, PauseVerdict } from './outcome.ts';
import type { Remark } from './remark.ts';
import type { Remembered } from './remember.ts';
import type { Labels, ScheduleOrigin } from './start.ts';
import type { AtOnce, CallPlace, HandleNote, MoveNotes, PartialReply } from './step.ts';
import type { StoreUse } from './store.ts';
import type { OnCancel, TaskEnd, TaskKind, TaskOrigin, TaskPause } from './task.ts';
import type { Continued, Turn, TurnOrigin } from './turn.ts';
import type { RunUndo } from './undo.ts';
import type { CallWait, LaterValue, WaitEnd, WaitPlace } from './wait.ts';

/** The code that a run was started with: resuming compares it with today's code, so that a change is noticed. */
export interface Pin {
  /** The planner's own version, if it states one. */
  readonly version?: string;
  /** For each tool that the run may use, a digest of its schema and effect. */
  readonly tools: Readonly<Record<string, string>>;
}

/** The run whose first steps a fork shares. */
export interface ForkOrigin {
  readonly run: string;
  /** The first step that is the fork's own. */
  readonly step: number;
  /** How many entries of the fork were taken over from the run, and were not said to the fork itself. */
  readonly entries: number;
  /** Whether the fork makes `once` calls: `held` makes none, `allowed` makes them as any run does. */
  readonly effects: 'held' | 'allowed';
}

/** The request that started a run under an idempotency key. */
export interface StartRequest {
  /** Equal for equal requests. */
  readonly digest: string;
  /** The id of the request that came first. Unique. */
  readonly by: string;
}

export interface Started {
  readonly kind: 'started';
  readonly identity: Identity;
  readonly query: string;
  /** Earlier turns as the caller gave them. */
  readonly history?: readonly Turn[];
  /** Earlier turns that are told from the session's runs, of a run that began at once. */
  readonly continues?: Continued;
  /** Set when messages of a session began the run. */
  readonly turn?: TurnOrigin;
  readonly context?: RunContext;
  /** False for a run that is not a turn of its session's conversation, such as a background task. */
  readonly conversation?: boolean;
  readonly agent: string;
  /** Who has written the query. */
  readonly author?: Author;
  readonly limits: RunLimits;
  /** The scopes this run's user holds; a tool that asks for others does not exist for it. */
  readonly scopes: readonly string[];
  readonly pin?: Pin;
  readonly task?: TaskOrigin;
  readonly fork?: ForkOrigin;
  readonly asked?: StartRequest;
  /** What a message of the user does to open questions. Default `withdraw`. */
  readonly whileAsked?: WhileAsked;
  readonly labels?: Labels;
  /** The run does not begin before this time, by the clock of its store. Milliseconds since the epoch. Absent: at once. */
  readonly startsAt?: number;
  readonly schedule?: ScheduleOrigin;
  /** What it may use to undo its calls when it ends other than by its goal. Absent: it leaves them as they are. */
  readonly undo?: RunUndo;
  /** Tools that whoever started the run carries out. */
  readonly clientTools?: readonly ClientToolSpec[];
  /** The W3C traceparent of what started the run, or the run at the root of its tree. Absent: it is a trace of its own. */
  readonly trace?: string;
  /** When the content of the run was erased: what is left are skeletons of its entries. Milliseconds since the epoch. */
  readonly erased?: number;
}
/** The turn of a run has come: what it is told of the turns before it. */
export interface TurnStarted {
  readonly kind: 'turn_started';
  readonly continues: Continued;
  /** Earlier turns as the program has them that keeps them itself. */
  readonly history?: readonly Turn[];
  /** What the run works for, when it has the messages of a turn that it has interrupted beside its own. */
  readonly query?: string;
  /** The attachments of these messages. */
  readonly inputs?: readonly InputArtifact[];
  /** Who has written all of them. Absent with a query: several have, or nobody knows. */
  readonly author?: Author;
}
export interface Moved extends MoveNotes {
  readonly kind: 'moved';
  readonly step: number;
  readonly decision: Decision;
  /** Files that the model has made. Of a move that ends the run they stand in the entry of its end. */
  readonly files?: readonly InputArtifact[];
  /** When the planner was asked. Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Set when the decision did not pass validation: `decision` may then have any shape, and nothing of it was carried out. */
  readonly rejected?: ErrorData;
  /** Set when the planner's model gave nothing that can be carried out; `decision` is what the planner would end the run with now. */
  readonly fault?: ErrorData;
  /** Set when the move is the beginning of a reply that goes on in the next step; `decision` is what the planner would end the run with now. */
  readonly partial?: PartialReply;
  /** The tools that the model was shown, when they were not all: no other is called. */
  readonly offered?: readonly string[];
  /** True: `decision` is the beginning of a plan that is carried out while the planner still makes the rest. */
  readonly growing?: true;
  /** Limits on how many of the step's calls run at once, beside the limit in the decision. */
  readonly atOnce?: AtOnce;
  /** Set while the run unwinds: the runtime has decided, and the call undoes this one. */
  readonly undoes?: CallPlace;
}
/** The planner goes on with the plan of the open step, whose move had `growing`. */
export interface PlanGrown extends MoveNotes {
  readonly kind: 'plan_grown';
  readonly step: number;
  /** New branches, added at the end of the plan. */
  readonly branches: readonly Branch[];
  /** True: the plan is whole, and the notes of the move are in this entry. */
  readonly done?: true;
  /** The planner failed before its plan was whole. */
  readonly fault?: ErrorData;
  /** Replaces `atOnce` of the move, for the whole plan. Set in the last entry of the plan. */
  readonly atOnce?: AtOnce;
}
/**
 * Durable before certain calls start: calls whose effect must not happen twice, calls that cost something, and `keyed` calls that may
 * be given up because the goal may change or the step may end without them.
 */
export interface CallBegan {
  readonly kind: 'call_began';
  readonly step: number;
  readonly call: number;
  /** What the call costs: reserved before it starts, and spent however the call ends. */
  readonly costMicroUsd?: number;
  /** True: the call may be made again under its key, however the first attempt ended. */
  readonly repeatable?: true;
}
/** A call has used something beside its own price: a model that its tool asked, or what the tool says. It counts however the call ends. */
export interface CallSpent extends CallPlace {
  readonly kind: 'call_spent';
  readonly usage: Usage;
  /** The name of the model. Absent: the tool has said what it used. */
  readonly model?: string;
}
/** What a call has come to, with what the journal is to know of it. */
export interface CallResult {
  readonly outcome: Outcome;
  /** Milliseconds since the epoch; absent for a call that never started. */
  readonly startedAt?: number;
  readonly attempts: number;
  readonly costMicroUsd?: number;
  /** Deferred tools that are listed from now on; absent when there are none. */
  readonly discovered?: readonly string[];
  /** What the tool stored beside its value; absent when there is nothing. */
  readonly artifacts?: readonly ArtifactRow[];
  /** Live handles that this call used first, or found closed. */
  readonly handles?: readonly HandleNote[];
  /**
   * The earlier, equal call whose outcome this is. With `attempts` 0 the tool was not called; otherwise it was called under the
   * key of that call.
   */
  readonly reuses?: CallPlace;
  /** The run ends when its step is over, and one of this agent goes on with the conversation. */
  readonly handsOver?: HandOver;
  /** What its last attempt has read from the long-term store, and, when it ended with a value, written. */
  readonly store?: StoreUse;
}
/** Who goes on with a conversation, and what of it that agent is told. */
export interface HandOver {
  readonly agent: string;
  readonly history: 'all' | 'none';
}
/** The run that goes on where another one has ended, stored in the commit of that ending. */
export interface Successor {
  readonly run: string;
  readonly agent: string;
}
export interface CallEnded extends CallResult, CallPlace {
  readonly kind: 'call_ended';
}
/** An attempt of a call has failed in a way that may pass, and the next one is made later. Until then the call takes no place. */
export interface CallAway extends CallPlace {
  readonly kind: 'call_away';
  /** How often it was tried so far. */
  readonly attempts: number;
  /** Why the last attempt failed. */
  readonly error: ErrorData;
  /** When the first attempt began, when the last one failed, and when the next one is made: milliseconds since the epoch. */
  readonly startedAt: number;
  readonly failedAt: number;
  readonly retryAt: number;
}
/**
 * A call waits for something in the middle of its work, and takes no place until a wait of it has ended. Then its function runs again, and
 * gets what its earlier waits have ended with.
 */
export interface CallWaits extends CallPlace {
  readonly kind: 'call_waits';
  /** What it waits for beside its earlier waits that have not ended. */
  readonly waits: readonly CallWait[];
  /** When the call began. Milliseconds since the epoch. */
  readonly startedAt: number;
  /** How many of its waits had ended when the attempt that waits now began. A wait that has ended since lets the call go on at once. Default 0. */
  readonly seen?: number;
  /** Set when the call has been made, and waits for its value. */
  readonly later?: LaterValue;
  /** True: the call stays open meanwhile, in the process that makes it. */
  readonly held?: true;
}
/** A time has come, an event has come, or a wait was given up. A question ends with the entry of its answer. */
export type WaitEnded = WaitPlace &
  Exclude<WaitEnd, { readonly ended: 'answer' | 'declined' | 'failed' }> & { readonly kind: 'wait_ended' };
/** A signal came for a wait that could not take it: its payload does not fit, or the wait was over. */
export interface EventPassed extends WaitPlace {
  readonly kind: 'event_passed';
  readonly key: string;
  readonly signal: string;
  readonly payload: Json;
  /** `payload_invalid`: the wait goes on without it. `wait_over`: it is for whoever waits for the key next. */
  readonly error: ErrorData;
}
/** A part of a call's work is done, and is not done again when the call's function runs again. */
export interface CallKept extends CallPlace {
  readonly kind: 'call_kept';
  readonly name: string;
  readonly value: Json;
  /** The value is the reference of the artifact that holds it. */
  readonly stored?: true;
}
export interface Paused {
  readonly kind: 'paused';
  readonly token: string;
  readonly reason: PauseReason;
  readonly payload?: JsonObject;
  readonly expiresAt?: number;
  /** The step whose decision asked for the pause, or one of whose calls waits. Absent for a pause by a limit or by an operator. */
  readonly step?: number;
  /** Set when one call of the step waits for an approval or a login, or is in doubt and waits to be settled. */
  readonly call?: number;
  /** Who may approve. Default `anyone`. */
  readonly approver?: Approver;
  /** How many people have to approve. Absent: one. */
  readonly approvals?: number;
  /** Readers are reminded each time that so many milliseconds have passed. */
  readonly remindAfterMs?: number;
  readonly escalate?: Escalation;
  /** What a rejection of the call does. `tell`: the planner gets it as the call's outcome. `end`: the run ends. Default `tell`. */
  readonly onReject?: 'tell' | 'end';
  /** JSON Schema of the answer: of a question, or of the payload that resumes a pause of the planner. */
  readonly schema?: JsonObject;
  /** Set when the call asks in the middle of its work: the number of its wait. */
  readonly wait?: number;
  /** The artifact with the payload, where that is too large to stand here: only as a store has it, and so in `Resumed`. */
  readonly stored?: ArtifactRef;
}
export interface Resumed {
  readonly kind: 'resumed';
  readonly token: string;
  readonly verdict: PauseVerdict;
  /** What the answering person said, and why. Nothing in it changes the run. */
  readonly payload?: JsonObject;
  /** Arguments that the approver gave in place of the call's own. */
  readonly args?: Json;
  /** New limits. Each limit that is given replaces the limit of the run. */
  readonly limits?: RunLimits;
  /** Changes of nodes that have not begun, by their ids: `{ args }`, or `{ skip: true }`. */
  readonly nodes?: JsonObject;
  /** The outcome of the call: of one in doubt, absent when it did not happen, as it is made then; or the value that was given in its place. */
  readonly outcome?: Outcome;
  /** The answer to a question of a call. */
  readonly value?: Json;
  readonly by?: Caller;
  /** The answer holds for questions to come. */
  readonly remember?: Remembered;
  /** The artifact with the payload, the arguments and the nodes. */
  readonly stored?: ArtifactRef;
}
export interface ControlTaken {
  readonly kind: 'control';
  readonly control: Control;
  readonly applied: boolean;
  /** Why it was not applied. */
  readonly error?: ErrorData;
  /**
   * What it was heard as, where its type does not say so. `answer`: the run had asked its user, and the next entry has the words of the
   * message as the answer. `message`: the question had its answer already, and the words of this one are a further message.
   */
  readonly as?: 'answer' | 'message';
  /**
   * Tokens of the questions that tasks below had open when it was passed on to them, and that it withdraws there: no answer to them is taken
   * any more. Absent: none, or a version wrote it that did not say so.
   */
  readonly withdrew?: readonly string[];
  /** True: the control came while the run was ending. */
  readonly undelivered?: true;
}
/** A call started a task; the task's run was stored in the same commit. */
export interface Spawned {
  readonly kind: 'spawned';
  readonly step: number;
  readonly call: number;
  readonly task: string;
  readonly group: string;
  readonly taskKind: TaskKind;
  readonly description: string;
  readonly onCancel: OnCancel;
  /** The call waits for the end of the task. */
  readonly retained: boolean;
  /** True: the task carries out a call of a tool, and the result of the task is the value of the call. */
  readonly agentCall?: true;
  /** How many calls of the tool may be under way at once. */
  readonly atOnce?: number;
  /** The part of the run's budget that was reserved for the task, on each limited axis. */
  readonly reserved: TaskShare;
  readonly seal: boolean;
  readonly failFast?: boolean;
  readonly quorum?: number;
}
/** A call waits for a task, or for a whole group, until `until`. */
export interface Awaiting {
  readonly kind: 'awaiting';
  readonly step: number;
  readonly call: number;
  readonly task: string;
  readonly group?: string;
  /** Milliseconds since the epoch. */
  readonly until?: number;
}
export interface TaskEnded extends TaskEnd {
  readonly kind: 'task_ended';
}
/** The open pauses of a task and of the tasks below it. */
export interface TaskPaused {
  readonly kind: 'task_paused';
  readonly task: string;
  readonly pauses: readonly TaskPause[];
  /** The position in the task's journal at which these pauses were open. */
  readonly asOf: number;
}
/** Another run waits for this one. */
export interface Watched {
  readonly kind: 'watched';
  readonly by: string;
}
export interface GroupEnded {
  readonly kind: 'group_ended';
  readonly group: string;
  readonly status: 'completed' | 'cancelled';
  readonly reason?: string;
}
/** The last `times` times `period` steps were the same calls with the same outcomes. */
interface NoProgress {
  readonly kind: 'no_progress';
  /** The step that was next. */
  readonly step: number;
  readonly period: number;
  readonly times: number;
}
/** Somebody accepted that the agent has changed: its name, its planner or its tools. */
export interface Repinned {
  readonly kind: 'repinned';
  readonly agent: string;
  readonly pin: Pin;
  /** New names of tools, by the names that recorded calls use. */
  readonly renamedTools?: Readonly<Record<string, string>>;
}
/** From step `step` on, the steps before `before` are sent as the summary. */
export interface Compacted extends Compaction {
  readonly kind: 'compacted';
  readonly step: number;
  readonly usage?: Usage;
}
export interface CompactionFailed {
  readonly kind: 'compaction_failed';
  readonly step: number;
  readonly error: ErrorData & { readonly code: CompactionErrorCode };
  readonly tokenEstimate: number;
  readonly usage?: Usage;
}
/**
 * A model did not take the request for the move of step `step`, as it does not fit. It is made again, shorter, or with another model.
 * What it says of the model holds for the rest of the run.
 */
export interface Overflowed {
  readonly kind: 'overflowed';
  readonly step: number;
  readonly model: string;
  /** The length of the request, by our own count. */
  readonly tokens: number;
  readonly overflow: Overflow;
  readonly error: ErrorData;
  readonly usage?: Usage;
  readonly remarks?: readonly Remark[];
}
/** Results of the step before `step` are sent as previews from now on; the whole is in the artifact. */
export interface Shortened {
  readonly kind: 'shortened';
  readonly step: number;
  readonly results: readonly { readonly call: number; readonly value: Json; readonly artifact: ArtifactRef }[];
  readonly tokenEstimate: number;
}
/** No model could be asked for the move of step `step`. The usage of the tries counts. */
export interface ModelAway {
  readonly kind: 'model_away';
  readonly step: number;
  readonly error: ErrorData;
  /**
   * When the models are tried again, in milliseconds since the epoch. Absent: not before somebody resumes the run, whose pause is
   * the next entry.
   */
  readonly retryAt?: number;
  readonly usage?: Usage;
  readonly remarks?: readonly Remark[];
}
/** Calls of a run's last step, a plan, that are carried out once more. What the others came to is kept. */
export interface Retries {
  readonly step: number;
  readonly calls: readonly number[];
  /** Those of the calls that may have happened: what became of them is found out before they are made. */
  readonly begun?: readonly number[];
  /** Tasks that carry out some of the calls. They had failed, and go on. */
  readonly tasks?: readonly string[];
}
/** Somebody resumed the run, which had failed, or retried a plan that had failed: the run goes on from where it was. */
export interface Reopened {
  readonly kind: 'reopened';
  readonly by?: Caller;
  /** Absent: the planner is asked again, with the steps as they are. */
  readonly retries?: Retries;
}
/** A person repaired the run: this entry stands in place of an entry that could not be read, could not follow, or was missing. */
export interface Repaired {
  readonly kind: 'repaired';
  readonly by: string;
  readonly reason?: string;
  /** What was wrong with the entry. */
  readonly problem: ErrorData;
  /** The artifact with every entry that the repair set aside, as it was stored, one line of JSON each. */
  readonly kept: ArtifactRef;
  /** How many messages the entries that were set aside had taken from the inbox. */
  readonly taken?: number;
  /** Indexes of calls of the open step that the entries that were set aside may have begun. */
  readonly begun?: readonly number[];
}
export interface Finished {
  readonly kind: 'finished';
  readonly reason: FinishReason;
  readonly payload?: Json;
  /** The payload is the reference of the artifact that holds it. */
  readonly stored?: true;
  readonly metadata?: JsonObject;
  /** Files that the last reply of the run's model has made. */
  readonly files?: readonly InputArtifact[];
  /** With the reasons `continued` and `handed_over`: which run goes on. */
  readonly successor?: Successor;
  /** What a run that is continued leaves to its successor. */
  readonly carry?: Json;
}
export interface Failed {
  readonly kind: 'failed';
  readonly error: ErrorData;
  /** Usage of the move that failed. */
  readonly usage?: Usage;
}

/** A limit is reached, and the planner has one more move, without calls: the next one is the last. */
interface Answering {
  readonly kind: 'answering';
  readonly step: number;
  readonly budget: CeilingAxis;
}

/** The run is to end so, and first undoes its calls. What it ends with is written when that is done, with what came of it. */
export interface Unwinding {
  readonly kind: 'unwinding';
  readonly ending: Finished | Failed;
  /** When it is given up, whatever is left. Milliseconds since the epoch. */
  readonly until: number;
}

/** What the run is told of the memory of its user: read before its first step, and the same for whoever goes on with it. */
export interface RecalledMemory extends Recalled {
  readonly kind: 'recalled';
}

export type EntryBody =
  | Started
  | TurnStarted
  | Moved
  | PlanGrown
  | CallBegan
  | CallSpent
  | CallEnded
  | CallAway
  | CallWaits
  | WaitEnded
  | EventPassed
  | CallKept
  | Paused
  | Resumed
  | ApprovedOnce
  | Reminded
  | Escalated
  | Ruled
  | ControlTaken
  | Spawned
  | Awaiting
  | TaskEnded
  | TaskPaused
  | Watched
  | GroupEnded
  | NoProgress
  | Repinned
  | RecalledMemory
  | Compacted
  | CompactionFailed
  | Overflowed
  | Shortened
  | ModelAway
  | Reopened
  | Repaired
  | Answering
  | Unwinding
  | Finished
  | Failed;
export type EntryKind = EntryBody['kind'];

/** `seq` counts from 1 without gaps; `at` is in milliseconds since the epoch. */
export type Entry = EntryBody & { readonly seq: number; readonly at: number };

/** The one place that makes the entry of a call that has come to its end. */
export function callEnded({ step, call }: CallPlace, result: CallResult): CallEnded {
  const { outcome, startedAt, attempts, costMicroUsd, discovered, artifacts, handles, reuses, handsOver, store } =
    result;
  const ended: { -readonly [K in keyof CallEnded]: CallEnded[K] } = {
    kind: 'call_ended',
    step,
    call,
    outcome,
    attempts,
  };
  if (startedAt !== undefined) ended.startedAt = startedAt;
  if (costMicroUsd !== undefined) ended.costMicroUsd = costMicroUsd;
  if (discovered !== undefined) ended.discovered = discovered;
  if (artifacts !== undefined) ended.artifacts = artifacts;
  if (handles !== undefined) ended.handles = handles;
  if (reuses !== undefined) ended.reuses = reuses;
  if (handsOver !== undefined) ended.handsOver = handsOver;
  if (store !== undefined) ended.store = store;
  return ended;
}
