/** The definition of a tool: what a user writes to give an agent a capability. */
import type { LanguageModelV4, LanguageModelV4ToolResultPart } from '@ai-sdk/provider';
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type {
  ApprovalTerms,
  ArtifactRef,
  Effect,
  Identity,
  Json,
  JsonObject,
  Loading,
  Planner,
  SkillView,
  Store,
  StreamWriter,
  ToolView,
} from '#core';
import type { LanguageModel, ModelEntry } from '#model';
import type { HandleSet, LiveHandles, NoHandles } from './handle.ts';

type ToolResultOutput = LanguageModelV4ToolResultPart['output'];

/** A Standard Schema (zod, valibot, arktype …) or a plain JSON Schema object. */
export type InputSchema = StandardSchemaV1 | JsonObject;

/** The type of the arguments that `execute` gets: what a Standard Schema puts out; plain JSON for a JSON Schema. */
export type InputOf<S extends InputSchema> = S extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<S>
  : S extends TextInput
    ? { readonly input: string }
    : Record<string, Json>;

/** The schema of one argument, the text `input`: what a tool takes that is carried out by an agent and is given no other schema. */
export type TextInput = {
  readonly type: 'object';
  readonly properties: { readonly input: { readonly type: 'string'; readonly description: string } };
  readonly required: readonly ['input'];
  readonly additionalProperties: false;
};

export interface ToolContext<H extends HandleSet = NoHandles> {
  /** Is aborted at the tool's time limit, when the run is cancelled, and when a join has what it needs. */
  readonly signal: AbortSignal;
  /** The idempotency key: the same for every attempt of this call, also after a restart; different for every other call. */
  readonly idempotencyKey: string;
  readonly identity: Identity;
  /** The number of the attempt, from 1. */
  readonly attempt: number;
  /** The tools that this run may use. */
  readonly tools: ToolView;
  /** `context.meta` of the run, which it was started with; empty when nothing was given. */
  readonly meta: JsonObject;
  /** The skills that the run was given. */
  readonly skills: SkillView;
  /** The W3C traceparent of this call, for what it asks of other programs. Absent when the runtime has no `telemetry`. */
  readonly traceparent?: string | undefined;
  /** The live values of the handles that the tool names. `reconcile` gets none. */
  readonly handles: LiveHandles<H>;
  /**
   * Sends a piece of the result, as an event `tool.chunk`, to everybody who reads the events of this run or of a run above it now.
   * The piece is not recorded; after the call has ended it is dropped. @throws PilotageError `unserializable` for a value that is not JSON.
   */
  emit(chunk: unknown): void;
  /**
   * Lists deferred tools from the next step on. Names that the run may not use, or that are listed already, are ignored. The call
   * has an effect only when the attempt ends with a value.
   */
  discover(names: readonly string[]): void;
  /**
   * Stores bytes, or text as UTF-8, in the session, where the model can name them. The planner is told of them when
   * the attempt ends with a value. @throws PilotageError of the store, after it was tried for some seconds; `cancelled` after the call has ended.
   */
  saveArtifact(bytes: Uint8Array | string, about: ArtifactDescription): Promise<ArtifactRef>;
  /**
   * Reads what is stored in the session under a reference, such as an attachment or a large value: models hand such references to
   * tools. `undefined` when there is nothing, and for what belongs to another session. @throws PilotageError of the store.
   */
  artifact(artifactRef: string): Promise<{ readonly bytes: Uint8Array; readonly mime: string } | undefined>;
  /**
   * Long-term memory of the user: each namespace is inside that of the run's tenant and user, or inside what the runtime's `store.namespace` says.
   * What the call writes lands with its value, in one commit: a call that fails, or whose process dies, has written nothing. It reads its own
   * writes. What it reads is recorded with its outcome. @throws PilotageError as `runtime.store`; `cancelled` after the call has ended.
   */
  readonly store: Store;
  /**
   * Asks somebody, and gives the answer, which was checked against the schema before it was stored. The run is paused meanwhile (or, while it can go on, only this
   * call), and no process keeps anything for it: when the answer is there, `execute` runs again from its start, its n-th wait gives the n-th recorded answer,
   * and work in `once` is not done again. Several questions at once, as in `Promise.all`, are asked at once.
   *
   * Waits have to come in the same order whenever `execute` runs again. Whatever else is under way when it waits is stopped.
   * @throws PilotageError `question_declined` when somebody rejects the question, `question_expired`, `superseded` when the goal was changed or the user wrote
   * first; `wait_changed` for another wait than the last time; `invalid_config`.
   */
  ask(question: Question<undefined>): Promise<Json>;
  ask<S extends InputSchema>(question: Question<S>): Promise<InputOf<S>>;
  /**
   * Waits for a time, without a process, as `ask` does: the run is `waiting` meanwhile.
   * @throws PilotageError `superseded` when the goal was changed, or the user wrote to a planner that hears it at once.
   */
  sleep(time: SleepTime): Promise<void>;
  /**
   * Waits for what `runtime.signal(key, payload)` says, from any process, without one, as `ask` does. A signal that came before anybody waited for it is kept, and
   * gives its payload at once. @throws PilotageError `event_timeout`, `superseded`, and as `ask`.
   */
  event(event: AwaitedEvent<undefined>): Promise<Json>;
  event<S extends InputSchema>(event: AwaitedEvent<S>): Promise<InputOf<S>>;
  /**
   * Does a part of the work, and records what it gives before it goes on: when `execute` runs again, after a wait or a failed attempt, the recorded value is given and the
   * work is not done again. A process that dies in the middle of it leaves the call in doubt, if the effect of the tool is `once`; `reconcile` then records with
   * `once` what it finds done of it, and answers `not_done`: `execute` runs again, without that part.
   * @param name which part it is: unique in the tool, at most 200 characters.
   * @returns the value as JSON, the same each time.
   * @throws what the work throws, of which nothing is recorded; PilotageError `unserializable`, or `invalid_config` for a work that waits itself.
   */
  once<T>(name: string, work: () => T | Promise<T>): Promise<T>;
  /**
   * A stream of the run: rows beside its entries that anybody reads from any row on, in any process, with `run.stream(name)`. Unlike pieces of `emit`
   * they are stored, and have numbers. An attempt that is made again goes on behind the rows of the one before.
   * @throws PilotageError `stream_refused` for a name that no stream can have.
   */
  stream(name: string): StreamWriter;
  /**
   * A model as `generateText` and its like take it. What it uses is recorded before the tool gets the reply, and counts against the limits of the run, however the
   * call ends. With a limit on tokens or cost, a reply is no longer than what is left, and requests wait for what others under way leave. Text that it streams
   * goes to readers of the run as chunks `{ model, text }`. Its calls end with the attempt.
   *
   * A request for which the budget has no room is refused with PilotageError `budget_exceeded`; a model without prices, when cost is limited, with `price_missing`.
   * @throws PilotageError `invalid_config` for a name that no model has, or a value that is not a model.
   */
  model(model: GivenModel): LanguageModelV4;
  /**
   * Counts what the tool has used in another way, at once and however the call ends; also after it, while the run goes on. Wait for it: then it is recorded.
   * @throws PilotageError `invalid_config` for what is not a number from 0 up, or above 10^12 tokens or 10^6 US dollars; `cancelled` after the run has ended.
   */
  spent(used: Spent): Promise<void>;
}

/** What a call asks somebody in the middle of its work. */
export interface Question<S extends InputSchema | undefined = InputSchema | undefined> {
  /** At most 4,096 characters. */
  readonly question: string;
  /** A Standard Schema or JSON Schema of the answer, from which a form can be drawn. Absent: words. */
  readonly schema?: S;
  /** What whoever answers is shown beside the question. */
  readonly payload?: JsonObject;
  /** Milliseconds after which nobody is asked any more. Default: never. */
  readonly expiresInMs?: number;
  /**
   * True: the call stays open in this process until somebody answers, and `execute` goes on where it is, for what cannot begin again, such as a connection that a server
   * holds. The run reads as paused all the same, and the time limit begins anew with the answer. When the process dies the call is what any call is that was cut off: in
   * doubt, if its effect is `once`. Default false.
   */
  readonly hold?: boolean;
}

/** Until when a call waits: a Date, milliseconds since the epoch or an ISO text with its zone; or for how long. */
export type SleepTime = { readonly until: Date | number | string } | { readonly forMs: number };

/** The event that a call waits for. */
export interface AwaitedEvent<S extends InputSchema | undefined = InputSchema | undefined> {
  /** What whoever signals it can compute too, such as `order-17`. At most 512 characters. */
  readonly key: string;
  /** A Standard Schema or JSON Schema of the payload: a signal whose payload does not fit is refused. */
  readonly schema?: S;
  /** Milliseconds after which it is waited for no more. Default: never. */
  readonly timeoutMs?: number;
}

/** A model that a tool asks: the name of one of its agent's models, or of another agent of the runtime; or the model itself, with its prices. */
export type GivenModel = string | LanguageModel | ModelEntry;

/** What a tool has used beside its own price and the models of `context.model`. */
export interface Spent {
  /** Counted as input tokens. */
  readonly tokens?: number;
  /** US dollars. Counted in millionths of one, rounded up. */
  readonly usd?: number;
}

export interface ArtifactDescription {
  /** Media type, such as `text/csv`. */
  readonly mime: string;
  readonly fileName?: string;
}

export interface ToolExample {
  readonly args: JsonObject;
  /** The order in which examples are shown: `minimal`, `common`, `edge-case`, then those without a tag. */
  readonly tag?: 'minimal' | 'common' | 'edge-case';
}

export type Reconciled =
  /** The call happened, and this is its value. */
  | { readonly status: 'done'; readonly value: unknown }
  /** The call did not happen, and may be made. */
  | { readonly status: 'not_done' }
  | { readonly status: 'unknown' };

/** The call that undoes another. */
export interface UndoCall {
  /** The name of a tool of the same agent. */
  readonly tool: string;
  readonly args: unknown;
}

/** The call of which it is asked whether it needs an approval. `idempotencyKey` and `meta` are those that `execute` gets. */
export type GateContext = Pick<ToolContext, 'identity' | 'idempotencyKey' | 'meta'>;

/** An approval: who is asked before a call is made, and when. */
export interface ApprovalGate<A = unknown> extends ApprovalTerms {
  /**
   * Whether this call needs an approval. Default: every call does. The function is called once, and its answer is recorded. When it
   * throws, the call is refused.
   */
  when?(args: A, context: GateContext): boolean | Promise<boolean>;
  /** Why an approval is needed; shown to the person who decides. At most 1,000 characters. */
  readonly reason?: string;
  /** What a rejection does. `tell`: it is the call's outcome, and the run goes on. `end`: it ends the run. Default `tell`. */
  readonly onReject?: 'tell' | 'end';
}

/** The wait before retry n is random, from 0 up to `baseMs * multiplier ** (n - 1)`, and to `maxMs` at most (full jitter). */
export interface Backoff {
  /** Milliseconds, from 0. Default 100. */
  readonly baseMs?: number;
  /** A factor from 1 up. Default 2. */
  readonly multiplier?: number;
  /** Milliseconds, from 0. Default 30,000. */
  readonly maxMs?: number;
}

export interface ToolOptions<S extends InputSchema = InputSchema, H extends HandleSet = NoHandles, V = unknown> {
  /** The name that the model calls. It must not begin with `_`: such names are reserved for planners. */
  readonly name: string;
  readonly description: string;
  readonly inputSchema: S;
  /** What a call does to the world. Default `once`, the safest. */
  readonly effect?: Effect;
  /**
   * Makes the call. The value must be JSON. Throw a `ToolFailure` to say whether trying again may help. An async generator sends each value
   * that it yields as a piece, as `context.emit` does; the value is what it returns, or else the last one. `later({ key })` in place of the value says that it comes
   * later; a generator returns it.
   */
  execute(args: InputOf<S>, context: ToolContext<H>): V | Promise<V> | AsyncIterable<V>;
  /**
   * What a model reads in place of the value, in the words of the AI SDK: a text, JSON, or texts and files. Asked once, when the value is
   * there, and recorded with it; not for calls that no model reads, such as those of a flow. An artifact of the session is
   * `{ type: 'file', mediaType, data: { type: 'reference', reference: { pilotage: artifactRef } } }`. When it throws, the model reads the value.
   */
  toModelOutput?(about: {
    readonly toolCallId: string;
    readonly input: InputOf<S>;
    readonly output: V;
  }): ToolResultOutput | PromiseLike<ToolResultOutput>;
  /**
   * Asked whether the value of a call is there whose `execute` gave `later({ key, pollEveryMs })`: it gives the value, `undefined` when it is not there yet, or
   * `later({ … })` again: the key, the times and the expiry from now on. It must do nothing to the world. A failure that may pass is asked again at the next time; any other is the outcome of the call.
   */
  poll?(key: string, args: InputOf<S>, context: ToolContext): unknown;
  /**
   * Names the call that undoes a call with these arguments and this value, which a run makes that ends other than by its goal (`onFail: 'undo'`).
   * The tool is one of the agent's own, and makes the call as any other, once. Without a result there is nothing to undo. The function has to
   * give the same for the same, at once: it may be asked again after a crash.
   */
  undo?(args: InputOf<S>, value: V): UndoCall | undefined;
  /**
   * Called when nobody knows whether a `once` call has happened, because its process died, or it was under way at its time limit
   * or when it was aborted. When it fails in a way that may pass, it is tried again, as often as `retries` says.
   */
  reconcile?(args: InputOf<S>, context: ToolContext): Reconciled | Promise<Reconciled>;
  /**
   * What happens with a `once` call that may have happened when `reconcile` cannot tell. `hold`: the run is paused until somebody
   * settles the call. `tell`: the planner gets the outcome `unknown`, and decides. Default `hold`.
   */
  readonly inDoubt?: 'hold' | 'tell';
  /** True: each call waits for an approval, which may come with other arguments. A function decides it for each call. */
  readonly needsApproval?: boolean | ApprovalGate<InputOf<S>>['when'] | ApprovalGate<InputOf<S>>;
  /**
   * Live values that the calls of a run share while a process drives it. They are opened before `execute`; without them the call
   * is not made.
   */
  readonly handles?: H;
  /** JSON Schema or Standard Schema of the value. A value that does not fit is the outcome `tool_invalid_output`. */
  readonly outputSchema?: InputSchema;
  /** Words by which `tool_search` can be narrowed. */
  readonly tags?: readonly string[];
  /**
   * A deferred tool is left out of the list, and of every request, until the run has found it with `tool_search` or
   * `tool_get`. Default `always`.
   */
  readonly loading?: Loading;
  /** Media types of the attachments that the tool reads by their reference: `image/png` or `image/*`. */
  readonly mimeTypes?: readonly string[];
  /** Scopes that a run must hold, all of them, to see and use the tool. */
  readonly scopes?: readonly string[];
  /** The time limit of one attempt, in milliseconds. Default 30,000. */
  readonly timeoutMs?: number;
  /**
   * Milliseconds until an attempt shows the first sign of life: a piece of its result (`emit`, or what a generator yields), or a row of a stream.
   * Default: as long as `idleMs` and `timeoutMs` let it.
   */
  readonly firstByteMs?: number;
  /** Milliseconds from one sign of life to the next, and to the first one where `firstByteMs` does not say. Default: as long as `timeoutMs` lets it. */
  readonly idleMs?: number;
  /**
   * How many further attempts are made after a failure that may pass. Default 3. For a `once` tool the number counts for
   * `reconcile`, and for attempts that ended with `NotSent`.
   */
  readonly retries?: number;
  /** The wait before each further attempt. */
  readonly backoff?: Backoff;
  /** How many calls of this tool may be in flight in one run. */
  readonly concurrency?: number;
  /**
   * True: a call ends at once with `{ task: id }`, and a task makes it; the result is told as that of a background task. An approval is asked for by
   * the task. Default false.
   */
  readonly background?: boolean;
  /** What one call costs, in US dollars: 0.002 is a fifth of a cent. The amount is reserved before the call starts. */
  readonly costUsd?: number;
  /** Arguments that show how the tool is used. They are checked against the schema. */
  readonly examples?: readonly ToolExample[];
  /** What `handoff` sets: a call that ends with a value hands the conversation over. */
  readonly handsOver?: HandsOver;
  /** Options that the model's provider gets with the tool, by its name: `{ anthropic: { deferLoading: true } }`. */
  readonly providerOptions?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/** What a tool that hands over names. */
export interface HandsOver {
  /** The agent, or the name of one that the runtime has. */
  readonly to: string | { readonly name: string; readonly planner: Planner };
  /** What the agent is told of the conversation: all of it, or nothing but the input. */
  readonly history: 'all' | 'none';
}

/** A tool of any argument type. Method bivariance lets `ToolOptions<S>` be assigned to it. */
export type Tool = ToolOptions<InputSchema, HandleSet>;

/**
 * A tool without an implementation here. Its calls pass rights, arguments, policy and approval as any others, and are then parked until whoever reads the
 * run, such as a page or an editor, has carried them out: `run.answer(token, { kind: 'answer', value })`, or `run.settle(token, { happened: true, error })`.
 */
export interface ClientTool<S extends InputSchema = InputSchema, V = unknown>
  extends Omit<
    ToolOptions<S, NoHandles, V>,
    | 'execute'
    | 'poll'
    | 'reconcile'
    | 'inDoubt'
    | 'handles'
    | 'timeoutMs'
    | 'firstByteMs'
    | 'idleMs'
    | 'retries'
    | 'backoff'
    | 'concurrency'
    | 'background'
    | 'costUsd'
    | 'handsOver'
  > {
  /** Says that it is meant: a tool that has neither this nor `execute` is refused. `clientTool` sets it. */
  readonly client: true;
  readonly execute?: never;
  /** Milliseconds until the call is waited for no more, and has the error `tool_timeout`. Default: as long as the run. */
  readonly timeoutMs?: number;
}

/** Types the arguments of `execute` from the schema. The result is the plain object that was passed in. */
export function tool<const S extends InputSchema, H extends HandleSet = NoHandles, V = unknown>(
  options: ToolOptions<S, H, V>,
): ToolOptions<S, H, V> {
  return options;
}

/** A tool whose calls whoever reads the run carries out. The result is a copy of the options with `client: true`. */
export function clientTool<const S extends InputSchema, V = unknown>(
  options: Omit<ClientTool<S, V>, 'client' | 'execute'>,
): ClientTool<S, V> {
  return { ...options, client: true };
}

/**
 * What a tool throws when somebody has to log in first: the run pauses with the URL, and when it is resumed the same call
 * is made again, as if it had not been made. Throw it only before anything has happened.
 */
export class LoginRequired extends Error {
  override readonly name: string = 'LoginRequired';
  readonly code = 'auth_required';
  readonly url: string;
  readonly expiresInMs: number | undefined;

  constructor(url: string, options: { message?: string; expiresInMs?: number } = {}) {
    super(options.message ?? 'Somebody has to log in first.');
    this.url = url;
    this.expiresInMs = options.expiresInMs;
  }
}

/**
 * What a tool throws when it cannot say whether the call has happened, such as after a connection that broke while it waited for the reply.
 * A `once` call is then in doubt, and not repeated: `reconcile` is asked, or a person. Others are tried again as `retries` says.
 */
export class OutcomeUnknown extends Error {
  override readonly name: string = 'OutcomeUnknown';
  readonly code = 'outcome_unknown';
  readonly retryable = true;

  constructor(message = 'Nobody knows whether the call has happened.', options: { cause?: unknown } = {}) {
    super(message, options);
  }
}

/**
 * What a tool throws when nothing of the call has left the house, such as when no connection could be made. The call is tried again as
 * `retries` says, a `once` call too.
 */
export class NotSent extends Error {
  override readonly name: string = 'NotSent';
  readonly code = 'not_sent';
  readonly retryable = true;
  /** Milliseconds, from 0: no attempt is made before. */
  readonly retryAfterMs: number | undefined;

  constructor(message = 'The call was not sent.', options: { retryAfterMs?: number; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.retryAfterMs = options.retryAfterMs;
  }
}

/**
 * An error of a tool that says itself whether trying again may help. Of other errors, those with an HTTP status 429 or from 500 on are
 * tried again, and those that say how long to wait; all others are taken as permanent.
 */
export class ToolFailure extends Error {
  override readonly name: string = 'ToolFailure';
  readonly code: string;
  readonly retryable: boolean;
  readonly data: JsonObject | undefined;
  /** Milliseconds, from 0: no attempt is made before. */
  readonly retryAfterMs: number | undefined;

  /** `retryable` is true by default when `retryAfterMs` is given, and false otherwise. */
  constructor(
    message: string,
    options: { code?: string; retryable?: boolean; retryAfterMs?: number; data?: JsonObject; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code ?? 'tool_failed';
    this.retryable = options.retryable ?? options.retryAfterMs !== undefined;
    this.retryAfterMs = options.retryAfterMs;
    this.data = options.data;
  }
}
