/** The state of a run, computed from its entries: plain JSON data that only the fold makes and changes. */
import {
  type AcceptedMessage,
  type AppliedRule,
  type ApprovalRule,
  type Approver,
  type Approving,
  type Author,
  type BackgroundResult,
  branchesOf,
  type CallAway,
  type CallKept,
  type CallPlace,
  type CallRecord,
  type CallWait,
  type CeilingAxis,
  type ClientToolSpec,
  type Compaction,
  type CompactionFailures,
  type ContextLimit,
  type Continued,
  type Control,
  type ErrorData,
  type Escalation,
  type Failed,
  type Finished,
  type FinishReason,
  type ForkOrigin,
  type HandleState,
  type HandOver,
  type Identity,
  type InputArtifact,
  type Json,
  type JsonObject,
  type Labels,
  type LaterValue,
  type Moved,
  type MoveNotes,
  type OnCancel,
  type PauseReason,
  type Pin,
  type Recalled,
  type RunContext,
  type RunLimits,
  type RunUndo,
  type Source,
  type SteeringTurn,
  type Step,
  type Successor,
  type TaskEnd,
  type TaskOrigin,
  type TaskPause,
  type TaskShare,
  type TaskUsage,
  type TaskView,
  type Turn,
  type TurnOrigin,
  type Usage,
  type UsageTotals,
  type WaitEnd,
  type WhileAsked,
} from '#core';

/** A step whose calls have not all ended. */
export interface OpenStep {
  /** The entry is replaced when the plan of the step grows. */
  move: Moved;
  /** One slot for each branch; `null` until the branch has ended. */
  readonly calls: (CallRecord | null)[];
  /** Calls of which the journal says that they began: after a crash such a call may have happened. */
  readonly began: BegunCall[];
  /** Money that is reserved for calls under way. */
  readonly promised: { readonly call: number; readonly costMicroUsd: number }[];
  /** Calls that somebody approved, with the arguments that were given in place of their own. */
  readonly approvals: ApprovedCall[];
  /** Calls that wait for a task. */
  readonly waits: TaskWait[];
  /** Calls whose last attempt failed, with what it came to. Such a call waits, or its next attempt is under way. Replaced when it changes. */
  away: readonly AwayCall[];
  /** Calls that wait, or have waited, in the middle of their work. Replaced when something changes. */
  waiting: readonly WaitingCall[];
  /** What calls that have not ended have done of their work, which is not done again. Absent: nothing. */
  kept?: readonly KeptWork[];
  /** Arguments that somebody gave to nodes of a plan that had not begun. */
  readonly edits: Edit[];
  /** How many calls have not ended, plus one while the plan grows. */
  pending: number;
  /** What calls that have not ended used beside their own prices. Absent: nothing. */
  spent?: readonly { readonly call: number; readonly usage: Usage }[];
  /** Calls that were stopped at a breakpoint, and were let go on. Absent: none. */
  passed?: readonly number[];
  /** Calls that somebody has cancelled. Absent: none. */
  cancels?: readonly CallCancel[];
  /** The step had ended, and was opened again for these calls. */
  readonly again?: readonly number[];
}

/** Where the run stops before a call begins: a node or branch by its id, a tool by its name, or the next call, once. */
export type Breakpoint = 'next' | { readonly node: string } | { readonly tool: string };

export interface CallCancel {
  readonly call: number;
  readonly reason?: string;
}

interface BegunCall {
  readonly call: number;
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** True: the call must not be made twice. */
  readonly once: boolean;
}

export interface ApprovedCall {
  readonly call: number;
  readonly args?: Json;
  /** Who has approved these arguments. Absent: nobody was asked, as for a call that waited for a login alone. */
  readonly by?: readonly Approving[];
  /** True: they did when the question had been escalated. */
  readonly escalated?: true;
  /** Set when rules of theirs have. */
  readonly rules?: readonly AppliedRule[];
}

export interface Edit {
  readonly call: number;
  readonly args: Json;
}

export type AwayCall = Pick<CallAway, 'call' | 'attempts' | 'error' | 'startedAt' | 'failedAt' | 'retryAt'>;

/** A call that has waited in the middle of its work. */
export interface WaitingCall {
  readonly call: number;
  /** When the call began. Milliseconds since the epoch. */
  readonly startedAt: number;
  /** False: something that it waited for has ended since, and its function runs again. */
  readonly isParked: boolean;
  /** True: the call must not be made twice. */
  readonly once?: true;
  /** Set when the call has been made, and waits for its value: of its waits, only the last counts. */
  readonly later?: LaterValue;
  /** In the order of their numbers, from 1 without gaps. */
  readonly waits: readonly WaitState[];
}

export interface WaitState extends CallWait {
  /** Since when the call waits. Milliseconds since the epoch. */
  readonly requestedAt: number;
  /** True: its call stays open while it asks. */
  readonly held?: true;
  /** Absent: the call waits still. */
  readonly end?: WaitEnd;
  /** The words of the question that was ended, as they are recorded. */
  readonly question?: string;
}

/** Work of a call that `context.once` has recorded. */
interface KeptWork extends Pick<CallKept, 'call' | 'name' | 'value' | 'stored'> {
  /** True: the call must not be made twice. */
  readonly once?: true;
}

export interface TaskWait {
  readonly call: number;
  readonly task: string;
  readonly group?: string;
  readonly until?: number;
  /** Set when the task carries out a call of a tool. `atOnce`: how many calls of that tool may be under way at once. */
  readonly agentCall?: { readonly startedAt: number; readonly atOnce?: number };
}

/** A task as its owner's journal knows it. */
export interface TaskState extends TaskView {
  readonly call: number;
  readonly onCancel: OnCancel;
  /** True: the task carries out a call of a tool. */
  readonly agentCall?: true;
  readonly reserved: TaskShare;
  /** True: a spawn or an await has delivered the result to the planner. */
  readonly consumed: boolean;
  /** What the owner has counted of its usage, when it had failed and goes on. */
  readonly counted?: TaskUsage;
  /** The position in the task's journal at which its pauses were read. */
  readonly pausesAsOf: number;
}

interface OtherPauses {
  readonly task: string;
  readonly pauses: readonly TaskPause[];
  readonly asOf: number;
}

export interface GroupState {
  readonly id: string;
  readonly sealed: boolean;
  readonly failFast: boolean;
  readonly quorum?: number;
  readonly end?: { readonly status: 'completed' | 'cancelled'; readonly reason?: string; readonly at: number };
}

export interface OpenPause {
  readonly token: string;
  readonly reason: PauseReason;
  readonly payload?: JsonObject;
  readonly requestedAt: number;
  readonly expiresAt?: number;
  /** The step whose decision asked for the pause; absent when the planner did not ask. */
  readonly step?: number;
  /** The call that waits; absent when the run waits as a whole. */
  readonly call?: number;
  readonly approver?: Approver;
  readonly onReject?: 'tell' | 'end';
  /** JSON Schema of the answer. */
  readonly schema?: JsonObject;
  /** The number of the wait of the call that asks in the middle of its work. */
  readonly wait?: number;
  /** How many people have to approve. Absent: one. */
  readonly approvals?: number;
  /** Who has approved what the pause shows, when more people have to. */
  readonly approved?: readonly GivenApproval[];
  /** Arguments that one of them gave in place of the call's own. */
  readonly given?: Json;
  readonly remindAfterMs?: number;
  readonly reminded?: { readonly times: number; readonly at: number };
  readonly escalate?: Escalation;
  /** When it was escalated. */
  readonly escalatedAt?: number;
}

interface GivenApproval {
  /** `null`: the program itself. */
  readonly by: Approving;
  /** Milliseconds since the epoch. */
  readonly at: number;
}

export interface ModelAwayState {
  /** Since when no model could be asked. All times here are milliseconds since the epoch, by the clock of the process that tried. */
  readonly since: number;
  /** When the models were tried last. */
  readonly triedAt: number;
  /** How often all models were tried. */
  readonly tries: number;
  /** When the models are tried again. Absent: not before somebody resumes the run. */
  readonly retryAt?: number;
}

export type Ending =
  | {
      readonly kind: 'finished';
      readonly reason: FinishReason;
      readonly payload?: Json;
      readonly stored?: true;
      readonly metadata?: JsonObject;
      readonly files?: readonly InputArtifact[];
      /** The run that goes on where this one has ended. */
      readonly successor?: Successor;
    }
  | { readonly kind: 'failed'; readonly error: ErrorData };

/** A run that undoes its calls. */
interface UnwindingState {
  /** How it ends. */
  readonly ending: Finished | Failed;
  /** Its own limits. While it unwinds, `limits` are what it may use for that. */
  readonly limits: RunLimits;
  /** The first step that undoes a call. */
  readonly step: number;
  /** Messages of its session that came meanwhile, and begin the next turn. Replaced when it grows. */
  readonly late: readonly Control[];
}

/** Usage of the run. Except for `steps` and `calls`, the usage of its tasks is included. */
export interface RunTotals extends UsageTotals {
  steps: number;
  /** Steps of tasks that have ended. */
  taskSteps: number;
  /** Calls of tools that were started. */
  calls: number;
  /** Calls of tasks that have ended. */
  taskCalls: number;
}

export interface RunState {
  head: number;
  identity: Identity;
  query: string;
  goal: string;
  /** Earlier turns of the conversation as the caller gave them. */
  history: readonly Turn[];
  /** The runs of the session that the run is told of. */
  continues: Continued | null;
  /** The messages of a session that began the run. */
  turn: TurnOrigin | null;
  /** Messages of its session that it has heard since. Replaced when it grows. */
  heard: readonly AcceptedMessage[];
  /** The traceparent of what started it. */
  readonly trace: string | null;
  /** When its content was erased. */
  erased: number | null;
  /** What it is told of the memory of its user. */
  recalled: Recalled | null;
  context: RunContext;
  /** True: the run is a turn of its session's conversation. */
  conversation: boolean;
  agent: string;
  /** Who has written the query. */
  author: Author | null;
  /** The query is a notice of the program. */
  notice: boolean;
  limits: RunLimits;
  scopes: readonly string[];
  /** Tools that whoever started it carries out. */
  clientTools: readonly ClientToolSpec[] | null;
  pin: Pin | null;
  task: TaskOrigin | null;
  fork: ForkOrigin | null;
  whileAsked: WhileAsked;
  /** What it was labelled with at its start. A run that goes on with it has them too. */
  readonly labels: Labels | null;
  /** What it may use to undo its calls when it ends other than by its goal. `null`: it leaves them as they are. */
  undo: RunUndo | null;
  /** Set from when its calls are undone, also when it has ended. */
  unwinding: UnwindingState | null;
  /** Set when a limit is reached, and the next move is the last. */
  answering: { readonly step: number; readonly axis: CeilingAxis } | null;
  /** Somebody has cancelled it a second time: nothing more is undone. */
  undoStopped: boolean;
  /** Present names of tools, by the names that recorded calls use. */
  renamedTools: Readonly<Record<string, string>>;
  startedAt: number;
  updatedAt: number;
  /** Steps whose calls have all ended, each frozen. The array only grows, and is replaced when the last of them is opened again. */
  steps: Step[];
  /** The first step that has files, in its results or of its model. `null`: none has. */
  filesFrom: number | null;
  open: OpenStep | null;
  pauses: OpenPause[];
  /** Where somebody wants it to stop. Replaced when it changes. */
  breakpoints: readonly Breakpoint[];
  steering: SteeringTurn[];
  /** Controls applied since the last move. */
  fresh: readonly Control[];
  cancel: Control | null;
  /** How often the run had failed and went on. */
  reopenings: number;
  /** Messages taken from the inbox so far, applied or not. */
  messagesTaken: number;
  /** In the order in which they were spawned. Replaced when something changes after it was frozen for a view. */
  tasks: readonly TaskState[];
  /** Replaced when something changes, as the next two. */
  groups: readonly GroupState[];
  background: readonly BackgroundResult[];
  /** Ends of other runs' tasks that this run waited for. */
  otherEnds: readonly TaskEnd[];
  /** Open pauses of other runs' tasks that this run waits for. */
  otherPauses: readonly OtherPauses[];
  /** Tokens of the questions of tasks that were withdrawn last: a task may have told of them before it heard of it. */
  withdrawn: readonly string[];
  /** Ids of the runs that wait for this run, apart from the run that spawned it. */
  watchers: readonly string[];
  /** The token of the pause at which somebody rejected a call whose rejection ends the run; otherwise `null`. */
  rejectedCall: string | null;
  /** Set when a call of the last step, or of the open one, hands the conversation over. */
  handsOver: (HandOver & CallPlace) | null;
  /** Rules that hold for this run alone. Replaced when something changes. */
  rules: readonly ApprovalRule[];
  noProgress: { readonly step: number; readonly period: number; readonly times: number } | null;
  /** Set while no model can be asked for the next move; `null` when a model answered, or nobody has tried since the run was resumed. */
  modelAway: ModelAwayState | null;
  /** What the run and its tasks had used when the user spoke last. Limits of steps count from there. */
  beforeTurn: Pick<RunTotals, 'steps' | 'taskSteps'>;
  /** The first step that counts for the detection of repeated steps. */
  watchedFrom: number;
  /** How many moves in a row, up to now, did not pass validation. */
  rejections: number;
  totals: RunTotals;
  /** Live handles that calls have used; some may be closed by now. Replaced when something changes. */
  handles: readonly HandleState[];
  /** Names of tools that searches have found, in the order in which they were found. Replaced when it grows. */
  found: readonly string[];
  compaction: Compaction | null;
  /** The step before which shortening the history was last tried; -1 when it never was. */
  compactedAt: number;
  /** Failed tries to summarise since the last summary. */
  compactionFailures: CompactionFailures | null;
  /** One for each model of which a limit was learnt. Replaced when something changes. */
  contextLimits: readonly ContextLimit[];
  /** The last step whose request did not fit, and how often it did not. */
  overflows: { readonly step: number; readonly times: number } | null;
  /** What replies were written from, as their providers say, each once. Replaced when it grows. */
  sources: readonly Source[];
  /** What the model said with the move that ended the run. */
  reply: Pick<MoveNotes, 'text' | 'reasoning' | 'providerState'> | null;
  ending: Ending | null;
}

/** The present name of the tool that recorded calls know by this name. */
export function presentName({ renamedTools }: Pick<RunState, 'renamedTools'>, tool: string): string {
  return Object.hasOwn(renamedTools, tool) ? (renamedTools[tool] ?? tool) : tool;
}

/** The tools that the run must not use, by their names of today; `undefined` when there are none. */
export function withheldTools(state: Pick<RunState, 'context' | 'renamedTools'>): readonly string[] | undefined {
  return state.context.hints?.disallowedTools?.map((tool) => presentName(state, tool));
}

/** Whether the journal says that the call began, in this process or in one that has died since. */
export function hasBegun({ began }: Pick<OpenStep, 'began'>, call: number): boolean {
  return began.some((begun) => begun.call === call);
}

/** What the last attempt of the call came to, when the next one is made later, or is under way. */
export function awayCall({ away }: Pick<OpenStep, 'away'>, call: number): AwayCall | undefined {
  return away.length === 0 ? undefined : away.find((one) => one.call === call);
}

/** What people gave in place of arguments, by call: what was approved goes before what was changed in the plan. */
export function givenArgs({ approvals, edits }: Pick<OpenStep, 'approvals' | 'edits'>): Map<number, Json> {
  const given = new Map(edits.map(({ call, args }) => [call, args]));
  for (const { call, args } of approvals) if (args !== undefined) given.set(call, args);
  return given;
}

/** What the call has waited for so far in the middle of its work. */
export function waitingCall({ waiting }: Pick<OpenStep, 'waiting'>, call: number): WaitingCall | undefined {
  return waiting.length === 0 ? undefined : waiting.find((one) => one.call === call);
}

/** The index of the step that the planner is asked for next. */
export function nextStep(state: RunState): number {
  return state.steps.length + (state.open === null ? 0 : 1);
}

/** Branches of the open step, or none. */
export function openBranches(state: RunState): ReturnType<typeof branchesOf> {
  return state.open === null ? [] : branchesOf(state.open.move.decision);
}
