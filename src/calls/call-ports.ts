/** A call under way: what it is, what it needs of the runtime, and its result. */
import type {
  Branch,
  CallPlace,
  CallResult,
  Clock,
  ErrorData,
  Identity,
  Json,
  JsonObject,
  LaterValue,
  SkillView,
  ToolSchema,
  WaitEnd,
} from '#core';
import type { ArtifactStore } from '#journal';
import type { ApprovedCall, AwayCall, OpenStep, WaitingCall } from '#state';
import type { AuthorisedTools, NamedHandle, ReadyAgentTool } from '#tools';
import type { HeldLease } from '../loop/held-lease.ts';
import type { RunTracing } from '../loop/run-tracing.ts';
import type { Attempt } from './attempt.ts';
import type { CallStorePorts } from './call-store.ts';
import type { RunStreams } from './call-streams.ts';
import type { CallsAside } from './calls-aside.ts';
import type { OwnCall, Piece } from './context.ts';
import type { AtWork } from './doubt.ts';
import type { Earlier } from './earlier-calls.ts';
import type { Handed } from './handles.ts';
import type { Lacking } from './in-flight-budget.ts';
import type { KeptPorts } from './kept-work.ts';
import type { LargeTurns } from './large-values.ts';
import type { Permits } from './permits.ts';
import type { ToolSpending } from './spending.ts';
import type { NewWait } from './waits.ts';

/** The call is not made before somebody raises a limit. */
export interface HeldCall {
  readonly kind: 'held';
  readonly lacking: Lacking;
}

/** The call may be made, and a task is to carry it out. */
export interface TaskAsk {
  readonly kind: 'task';
  readonly tool: ReadyAgentTool;
  readonly args: Json;
  /** What the task is asked. */
  readonly query: string;
}

/** The last attempt has failed in a way that may pass; the next one is made later, and the call takes no place until then. */
export interface AwayAsk extends Pick<AwayCall, 'attempts' | 'error' | 'startedAt'> {
  readonly kind: 'away';
  readonly waitMs: number;
}

/** The call waits in the middle of its work for what it has begun to wait for, and for its earlier waits. */
export interface WaitsAsk {
  readonly kind: 'waits';
  readonly waits: readonly NewWait[];
  readonly startedAt: number;
  /** How many of its waits had ended when the attempt began. Default 0. */
  readonly seen?: number;
  /** The call has been made, and waits for its value. */
  readonly later?: LaterValue;
  /** The call stays open. */
  readonly held?: true;
}

export interface Call {
  /** The step that the call belongs to, and its place in it. */
  readonly open: OpenStep;
  readonly index: number;
  readonly branch: Branch;
  readonly identity: Identity;
  readonly idempotencyKey: string;
  readonly tools: AuthorisedTools;
  /** The tools that whoever decided was shown, by their names of today, when they were not all. */
  readonly offered: readonly string[] | undefined;
  readonly attempt: Attempt;
  /** The call was begun, by a process that died or by an attempt that was given up, and no result was recorded. */
  readonly interrupted: boolean;
  /** When it was begun, if it was. Milliseconds since the epoch. */
  readonly begunAt: number | undefined;
  /** True: the call began as a `once` call, whatever effect its tool has today. */
  readonly begunOnce: boolean;
  /** What its last attempt came to, when it was put off. */
  readonly away: AwayCall | undefined;
  /** What it has waited for in the middle of its work. */
  readonly waiting: WaitingCall | undefined;
  /** Somebody has approved it. */
  readonly approval: ApprovedCall | undefined;
  /** The run is a fork whose `once` calls are not made. */
  readonly held: boolean;
  /** The run undoes its calls when it fails: whether one has happened is to be known. */
  readonly mayBeUndone: boolean;
}

export interface DispatchPorts {
  readonly clock: Clock;
  readonly artifacts: ArtifactStore;
  readonly atWork: AtWork;
  readonly turns: LargeTurns;
  /** What tools use beside their calls' own prices. */
  readonly spending: ToolSpending;
  /** The long-term store for this run's calls. */
  readonly store: CallStorePorts;
  readonly streams: RunStreams;
  readonly tracing: RunTracing | undefined;
  /** What the run was started with beside its query. */
  readonly meta: JsonObject;
  /** A model reads what the calls of the run come to. */
  readonly isReadByModel: boolean;
  /** The skills of the run. */
  readonly skills: SkillView;
  /** What `context.once` has recorded. */
  readonly kept: KeptPorts;
  /** Asks while the call stays open. Resolves when the wait has ended. */
  hold(call: OwnCall, asked: NewWait): Promise<WaitEnd>;
  /** Tells whoever reads the run, or one above it, of a chunk. */
  tellChunk(call: OwnCall, piece: Piece): void;
  /** What no caller waits for. */
  onFault(error: unknown): void;
  /** From 0 up to 1. */
  random(): number;
  /**
   * Makes durable that the call begins. What it comes to when what was written meanwhile leaves no room for it.
   * @throws the journal's refusal.
   */
  begin(
    call: Call,
    tool: ToolSchema,
    costMicroUsd: number | undefined,
    repeatable: boolean,
  ): Promise<CallResult | HeldCall | undefined>;
  readonly lease: Pick<HeldLease, 'isCertain' | 'graceLeftMs'>;
  /** Asks the store whether the run is this process's still, and looks at what was said to it. @throws PilotageError `lease_lost`. */
  prove(): Promise<void>;
  /** Opens the handles that the call needs, or gives those that are open. */
  hand(call: Pick<Call, 'open' | 'index' | 'attempt' | 'waiting'>, wanted: readonly NamedHandle[]): Promise<Handed>;
  /** Takes the place of a call in the budget, and its money. What it comes to when there is no room: then nothing was taken. */
  reserve(
    call: Pick<Call, 'open' | 'index'>,
    tool: ToolSchema,
    costMicroUsd: number | undefined,
  ): CallResult | HeldCall | undefined;
  /** Why the run cannot hand the conversation over to the agent. */
  whyNotTo(agent: string): ErrorData | undefined;
  /** The deferred tools that the run has found. */
  found(): readonly string[];
  /** What an equal call of an earlier step has left. */
  earlier(call: Call, args: Json): Promise<Earlier | undefined>;
  /** What decides on a call beside its tool. */
  readonly permits: Permits;
  /** What turns on other branches of the conversation have done. */
  readonly aside: CallsAside;
  /** The idempotency key of a call of the run. */
  keyOf(place: CallPlace): string;
  /** The arguments, as approved or with references replaced by the values of earlier branches. */
  resolveArgs(call: Call): Json | Promise<Json>;
}
