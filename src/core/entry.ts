/** The facts of a run. A run is nothing but the list of these; everything else is computed from them. */

import type { ArtifactRef } from './artifact.ts';
import type { AtOnce } from './at-once.ts';
import type { Compaction, CompactionErrorCode } from './compaction.ts';
import type { ArtifactRow, RunContext } from './context.ts';
import type { Caller, Control } from './control.ts';
import type { Branch, Decision, FinishReason, PauseReason } from './decision.ts';
import type { ErrorData } from './errors.ts';
import type { HandleNote } from './handle.ts';
import type { Identity } from './identity.ts';
import type { Json, JsonObject } from './json.ts';
import type { RunLimits, TaskShare } from './limits.ts';
import type { Outcome, PauseVerdict } from './outcome.ts';
import type { Remark } from './remark.ts';
import type { CallPlace, MoveNotes, Usage } from './step.ts';
import type { OnCancel, TaskEnd, TaskKind, TaskOrigin, TaskPause } from './task.ts';

/** An earlier turn of the conversation that this run continues. */
export interface Turn {
  readonly role: 'user' | 'assistant';
  readonly text: string;
}

/** What a run goes on with, so that a change of the code since is noticed. */
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
  /** Entries that stand for the run's: nobody said them to the fork. */
  readonly entries: number;
  /** What becomes of `once` calls from there on: not made, or made as in any run. */
  readonly effects: 'held' | 'allowed';
}

/** What was asked, of a run that was started under an idempotency key. */
export interface StartRequest {
  /** Equal for equal requests. */
  readonly digest: string;
  /** Unique: who asked first finds itself here. */
  readonly by: string;
}

export interface Started {
  readonly kind: 'started';
  readonly identity: Identity;
  readonly query: string;
  readonly history?: readonly Turn[];
  readonly context?: RunContext;
  /** False for a run that is no turn of its session's conversation, such as a background task. */
  readonly conversation?: boolean;
  readonly agent: string;
  readonly limits: RunLimits;
  /** The scopes this run's user holds; a tool that asks for others does not exist for it. */
  readonly scopes: readonly string[];
  readonly pin?: Pin;
  readonly task?: TaskOrigin;
  readonly fork?: ForkOrigin;
  readonly asked?: StartRequest;
}
export interface Moved extends MoveNotes {
  readonly kind: 'moved';
  readonly step: number;
  readonly decision: Decision;
  /** When the planner was asked. Milliseconds since the epoch. */
  readonly startedAt: number;
  /** The decision did not pass validation, and may have any shape; nothing of it was carried out. */
  readonly rejected?: ErrorData;
  /** The planner's model gave nothing that could be carried out; the decision is what the planner would have ended with. */
  readonly fault?: ErrorData;
  /** The decision is the beginning of a plan that is carried out while the rest of it is made. */
  readonly growing?: true;
  /** What keeps its calls from running all at once, beside what the decision says. */
  readonly atOnce?: AtOnce;
}
/** The planner goes on with the plan of the open step, whose move had `growing`. */
export interface PlanGrown extends MoveNotes {
  readonly kind: 'plan_grown';
  readonly step: number;
  /** Added at the end. */
  readonly branches: readonly Branch[];
  /** Nothing more comes. The notes of the move come with it. */
  readonly done?: true;
  /** The planner failed before its plan was whole. */
  readonly fault?: ErrorData;
  /** Of the whole plan, in place of what the move says. It comes with the last. */
  readonly atOnce?: AtOnce;
}
/**
 * Written, and durable, before a call starts whose effect must not happen twice, or that costs something; and before one of a `keyed` tool
 * that may be given up, for a new goal or since nothing more is wanted of its step.
 */
export interface CallBegan {
  readonly kind: 'call_began';
  readonly step: number;
  readonly call: number;
  /** Set aside for it, and spent whatever it comes to. */
  readonly costMicroUsd?: number;
  /** Its effect lets it be made again, under its key, whatever became of it. */
  readonly repeatable?: true;
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
  /** Live handles that the call was the first to use, or found gone. */
  readonly handles?: readonly HandleNote[];
  /** Nothing was done: the outcome is that of an equal call of an earlier step. With attempts: it was made under the key of that. */
  readonly reuses?: CallPlace;
}
export interface CallEnded extends CallResult, CallPlace {
  readonly kind: 'call_ended';
}
export interface Paused {
  readonly kind: 'paused';
  readonly token: string;
  readonly reason: PauseReason;
  readonly payload?: JsonObject;
  readonly expiresAt?: number;
  /** Set when the pause is a step of the planner's; a pause by a budget or an operator is none. */
  readonly step?: number;
  /** Set when it is one call of the step that waits: for an approval, for a login, or to be settled. */
  readonly call?: number;
  /** Who may approve. Default `anyone`; `another`: nobody who is the run's own user. */
  readonly approver?: 'anyone' | 'another';
  /** What a rejection of the call does. Default `tell`: it is the call's outcome. `end`: the run ends. */
  readonly onReject?: 'tell' | 'end';
}
export interface Resumed {
  readonly kind: 'resumed';
  readonly token: string;
  readonly verdict: PauseVerdict;
  /** The words of whoever answered, and why; nothing in it changes the run. */
  readonly payload?: JsonObject;
  /** Arguments that the approver gave in place of the call's own. */
  readonly args?: Json;
  /** They replace those of the run, each that is there. */
  readonly limits?: RunLimits;
  /** Changes of nodes that have not begun, by their ids: `{ args }`, or `{ skip: true }`. */
  readonly nodes?: JsonObject;
  /** What the call in doubt came to. Absent when it did not happen: then it is made. */
  readonly outcome?: Outcome;
  readonly by?: Caller;
}
export interface ControlTaken {
  readonly kind: 'control';
  readonly control: Control;
  readonly applied: boolean;
  /** Why it was not applied. */
  readonly error?: ErrorData;
  /** It came while the run was ending. */
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
  /** The task carries out a call of a tool: what it finishes with is the call's value. */
  readonly called?: true;
  /** So many calls of its tool are under way at once, at most. */
  readonly atOnce?: number;
  /** What was set aside of the budget, on each axis that is limited. */
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
/** What a task, and those below it, wait for somebody to answer. */
export interface TaskPaused {
  readonly kind: 'task_paused';
  readonly task: string;
  readonly pauses: readonly TaskPause[];
  /** The position in the task's journal at which that was so. */
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
export interface NoProgress {
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
/** No model could be asked for the move of step `step`. What the tries used counts. */
export interface ModelAway {
  readonly kind: 'model_away';
  readonly step: number;
  readonly error: ErrorData;
  /** When it is tried again. Absent: when somebody has resumed the run; its pause is the next entry. Milliseconds since the epoch. */
  readonly retryAt?: number;
  readonly usage?: Usage;
  readonly remarks?: readonly Remark[];
}
/** Somebody resumed the run, which had failed: it goes on from where it was. */
export interface Reopened {
  readonly kind: 'reopened';
  readonly by?: Caller;
}
/** Somebody set the run right: this stands in place of an entry that could not be read, or could not follow, or was not there. */
export interface Repaired {
  readonly kind: 'repaired';
  readonly by: string;
  readonly reason?: string;
  /** Why the entry could not stand. */
  readonly problem: ErrorData;
  /** All that was set aside by the same repair, as it was stored: a line of JSON each. */
  readonly kept: ArtifactRef;
  /** Messages that the entries which were set aside had taken. */
  readonly taken?: number;
  /** Calls of the open step that what was set aside may have begun. */
  readonly begun?: readonly number[];
}
export interface Finished {
  readonly kind: 'finished';
  readonly reason: FinishReason;
  readonly payload?: Json;
  /** The payload is the reference of the artifact that holds it. */
  readonly stored?: true;
  readonly metadata?: JsonObject;
}
export interface Failed {
  readonly kind: 'failed';
  readonly error: ErrorData;
  /** Of the move that failed. */
  readonly usage?: Usage;
}

export type EntryBody =
  | Started
  | Moved
  | PlanGrown
  | CallBegan
  | CallEnded
  | Paused
  | Resumed
  | ControlTaken
  | Spawned
  | Awaiting
  | TaskEnded
  | TaskPaused
  | Watched
  | GroupEnded
  | NoProgress
  | Repinned
  | Compacted
  | CompactionFailed
  | ModelAway
  | Reopened
  | Repaired
  | Finished
  | Failed;
export type EntryKind = EntryBody['kind'];

/** `seq` counts from 1 without gaps; `at` is in milliseconds since the epoch. */
export type Entry = EntryBody & { readonly seq: number; readonly at: number };
