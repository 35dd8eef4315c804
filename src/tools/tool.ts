/** What a user writes to give an agent a capability. */
import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { ArtifactRef, Effect, Identity, Json, JsonObject, Loading, SkillView, ToolView } from '#core';
import type { HandleSet, LiveHandles, NoHandles } from './handle.ts';

/** A Standard Schema (zod, valibot, arktype …) or a plain JSON Schema object. */
export type InputSchema = StandardSchemaV1 | JsonObject;

/** The type of the arguments that `execute` gets: what a Standard Schema puts out; plain JSON for a JSON Schema. */
export type InputOf<S extends InputSchema> = S extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<S>
  : Record<string, Json>;

export interface ToolContext<H extends HandleSet = NoHandles> {
  /** Aborts at the tool's time limit, when the run is cancelled, and when a join has what it needs. */
  readonly signal: AbortSignal;
  /** The same on every attempt of this call, also after a restart; different for every other call. */
  readonly idempotencyKey: string;
  readonly identity: Identity;
  /** 1 for the first. */
  readonly attempt: number;
  /** The tools that this run may use. */
  readonly tools: ToolView;
  /** What the run was started with beside its query and arguments; empty when there is nothing. */
  readonly meta: JsonObject;
  /** Those that the run was given. */
  readonly skills: SkillView;
  /** The live values of the handles that the tool names. For `reconcile` there are none: what it asks about is over. */
  readonly handles: LiveHandles<H>;
  /**
   * Gives a piece of the result to whoever reads the run's events now, or those of a run above it: an event `tool.chunk`.
   * It is not recorded. @throws PilotageError `unserializable` for what is no JSON.
   */
  emit(chunk: unknown): void;
  /**
   * Makes deferred tools known: they are listed from the next step on. Names that the run may not use, or that are listed
   * already, are passed over. It counts when the attempt ends with a value.
   */
  discover(names: readonly string[]): void;
  /**
   * Stores bytes, or text as UTF-8, in the session, where the model can name them. They are told to the planner when the
   * attempt ends with a value. @throws PilotageError of the store, which was tried for some seconds.
   */
  saveArtifact(bytes: Uint8Array | string, about: ArtifactDescription): Promise<ArtifactRef>;
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
  /** It happened; this is its value. */
  | { readonly status: 'done'; readonly value: unknown }
  /** It did not happen; it may be run. */
  | { readonly status: 'not_done' }
  | { readonly status: 'unknown' };

/** Who is asked before a call is made. */
export interface ApprovalGate<A = unknown> {
  /**
   * Whether this call is to be asked for; default: each one. It is asked once, and its answer is recorded. When it throws,
   * the call is refused.
   */
  readonly when?: (args: A, context: { readonly identity: Identity }) => boolean | Promise<boolean>;
  /** Shown to the person who decides. At most 1,000 characters. */
  readonly reason?: string;
  /** `another`: not the run's own user. Default `anyone`. */
  readonly approver?: 'anyone' | 'another';
  /** `tell`: a rejection is the call's outcome, and the run goes on. `end`: it ends the run. Default `tell`. */
  readonly onReject?: 'tell' | 'end';
  /** After so long the call is refused as `approval_timeout`. Default: never. */
  readonly expiresInMs?: number;
}

/** The wait before retry n is random, from 0 up to `baseMs * multiplier ** (n - 1)`, and to `maxMs` at most (full jitter). */
export interface Backoff {
  /** Default 100. */
  readonly baseMs?: number;
  /** From 1. Default 2. */
  readonly multiplier?: number;
  /** Default 30,000. */
  readonly maxMs?: number;
}

export interface ToolOptions<S extends InputSchema = InputSchema, H extends HandleSet = NoHandles> {
  /** Any text that does not begin with `_`: such names belong to the planners. */
  readonly name: string;
  readonly description: string;
  readonly inputSchema: S;
  /** Default `once`: the safest promise. */
  readonly effect?: Effect;
  /** The value must be JSON. Throw a `ToolFailure` to say whether trying again may help. */
  execute(args: InputOf<S>, context: ToolContext<H>): unknown;
  /**
   * Asked when nobody knows whether a `once` call has happened: its process died, or a time limit or an abort met it under
   * way. An error that may pass is tried again, as often as `retries` says.
   */
  reconcile?(args: InputOf<S>, context: ToolContext): Reconciled | Promise<Reconciled>;
  /**
   * Of a `once` call that may have happened, when `reconcile` cannot say. `hold`: the run is paused until somebody settles
   * it. `tell`: the planner gets the outcome `unknown`, and decides. Default `hold`.
   */
  readonly inDoubt?: 'hold' | 'tell';
  /** Each call waits for somebody's approval, which may come with other arguments; a function says whether it does. */
  readonly needsApproval?: boolean | ApprovalGate<InputOf<S>>['when'] | ApprovalGate<InputOf<S>>;
  /** What calls of a run share while a process drives it. They are opened before `execute`, and the call is not made without them. */
  readonly handles?: H;
  /** JSON Schema or Standard Schema of the value. A value that does not fit is the outcome `tool_invalid_output`. */
  readonly outputSchema?: InputSchema;
  /** What `tool_search` can be narrowed to. */
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
  /** For one attempt. Default 30,000. */
  readonly timeoutMs?: number;
  /** Attempts after the first that failed in a way that may pass. Default 3; those of a `once` tool are of its `reconcile` alone. */
  readonly retries?: number;
  /** How long it is waited before each of them. */
  readonly backoff?: Backoff;
  /** Calls of this tool that may be in flight in one run. */
  readonly concurrency?: number;
  /** What one call costs, in US dollars: 0.002 is a fifth of a cent. Reserved before it starts. */
  readonly costUsd?: number;
  /** Arguments that show how the tool is used. They are checked against the schema. */
  readonly examples?: readonly ToolExample[];
}

/** A tool of any argument type. Method bivariance lets `ToolOptions<S>` be assigned to it. */
export type Tool = ToolOptions<InputSchema, HandleSet>;

/** Types the arguments of `execute` from the schema. The result is the plain object that was passed in. */
export function tool<const S extends InputSchema, H extends HandleSet = NoHandles>(
  options: ToolOptions<S, H>,
): ToolOptions<S, H> {
  return options;
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

/** An error that says what it is, so that nobody has to search its text. Other errors are taken as permanent. */
export class ToolFailure extends Error {
  override readonly name: string = 'ToolFailure';
  readonly code: string;
  readonly retryable: boolean;
  readonly data: JsonObject | undefined;

  constructor(
    message: string,
    options: { code?: string; retryable?: boolean; data?: JsonObject; cause?: unknown } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = options.code ?? 'tool_failed';
    this.retryable = options.retryable ?? false;
    this.data = options.data;
  }
}
