/** The types of AG-UI that this server sends and receives: events, messages, inputs. Nothing of the protocol's packages is loaded. */
import type { Json, JsonObject } from '#core';

/** The role of a message that is streamed. */
type SpokenRole = 'assistant' | 'user';

export interface AgUiToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A message. Fields that its role does not need may be missing. */
export interface AgUiMessage {
  readonly id: string;
  readonly role: string;
  readonly content?: Json;
  readonly toolCalls?: readonly AgUiToolCall[];
  readonly toolCallId?: string;
  /** Set by a client whose tool has failed. */
  readonly error?: string;
  readonly activityType?: string;
  readonly subagentRunId?: string;
}

export interface AgUiTool {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly parameters?: Json;
}

/** The answer to an interrupt. */
export interface ResumeEntry {
  readonly interruptId: string;
  readonly status: 'resolved' | 'cancelled';
  readonly payload?: Json;
}

/** What a client posts: `RunAgentInput` of the protocol. */
export interface RunAgentInput {
  readonly threadId: string;
  readonly runId: string;
  /** Absent from clients before 1.0. */
  readonly protocolVersion?: string;
  readonly state?: Json;
  readonly messages: readonly AgUiMessage[];
  readonly tools?: readonly AgUiTool[];
  readonly context?: readonly { readonly description: string; readonly value: string }[];
  readonly forwardedProps?: Json;
  readonly resume?: readonly ResumeEntry[];
}

export interface Interrupt {
  readonly id: string;
  readonly reason: string;
  readonly message?: string;
  readonly toolCallId?: string;
  readonly responseSchema?: JsonObject;
  readonly expiresAt?: string;
  readonly metadata?: JsonObject;
  readonly subagentRunId?: string;
}

type RunOutcome =
  | { readonly type: 'success'; readonly pendingToolCallIds?: readonly string[] }
  | { readonly type: 'interrupt'; readonly interrupts: readonly Interrupt[] }
  | { readonly type: 'cancelled' };

export interface TokenUsage {
  readonly inputTokens?: number;
  readonly outputTokens?: number;
  readonly totalTokens?: number;
  readonly reasoningTokens?: number;
  readonly cachedInputTokens?: number;
  readonly cacheWriteInputTokens?: number;
}

/** An operation of RFC 6902. */
export type PatchOperation =
  | { readonly op: 'add' | 'replace'; readonly path: string; readonly value: Json }
  | { readonly op: 'remove'; readonly path: string };

/** The task that an event is of. Absent, and never `null`, for the agent itself. */
interface Tagged {
  readonly subagentRunId?: string;
}

interface Payloads {
  RUN_STARTED: { readonly threadId: string; readonly runId: string; readonly protocolVersion?: string };
  RUN_FINISHED: {
    readonly threadId: string;
    readonly runId: string;
    readonly result?: Json;
    readonly outcome?: RunOutcome;
    readonly usage?: readonly TokenUsage[];
  };
  RUN_ERROR: { readonly message: string; readonly code?: string; readonly usage?: readonly TokenUsage[] };
  STEP_STARTED: Tagged & { readonly stepName: string };
  STEP_FINISHED: Tagged & { readonly stepName: string };
  TEXT_MESSAGE_START: Tagged & { readonly messageId: string; readonly role: SpokenRole };
  TEXT_MESSAGE_CONTENT: Tagged & { readonly messageId: string; readonly delta: string };
  TEXT_MESSAGE_END: Tagged & { readonly messageId: string };
  REASONING_START: Tagged & { readonly messageId: string };
  REASONING_MESSAGE_START: Tagged & { readonly messageId: string; readonly role: 'reasoning' };
  REASONING_MESSAGE_CONTENT: Tagged & { readonly messageId: string; readonly delta: string };
  REASONING_MESSAGE_END: Tagged & { readonly messageId: string };
  REASONING_END: Tagged & { readonly messageId: string };
  TOOL_CALL_START: Tagged & {
    readonly toolCallId: string;
    readonly toolCallName: string;
    readonly parentMessageId: string;
  };
  TOOL_CALL_ARGS: Tagged & { readonly toolCallId: string; readonly delta: string };
  TOOL_CALL_END: Tagged & { readonly toolCallId: string };
  TOOL_CALL_RESULT: Tagged & {
    readonly messageId: string;
    readonly toolCallId: string;
    readonly content: string;
    readonly role: 'tool';
  };
  STATE_SNAPSHOT: { readonly snapshot: Json };
  STATE_DELTA: { readonly delta: readonly PatchOperation[] };
  MESSAGES_SNAPSHOT: { readonly messages: readonly AgUiMessage[] };
  ACTIVITY_SNAPSHOT: Tagged & {
    readonly messageId: string;
    readonly activityType: string;
    readonly content: JsonObject;
  };
  ACTIVITY_DELTA: Tagged & {
    readonly messageId: string;
    readonly activityType: string;
    readonly patch: readonly PatchOperation[];
  };
  CUSTOM: Tagged & { readonly name: string; readonly value: Json };
  SUBAGENT_STARTED: {
    readonly subagentRunId: string;
    readonly name: string;
    readonly description?: string;
    readonly parentSubagentRunId?: string;
    readonly parentToolCallId?: string;
    readonly parentMessageId?: string;
  };
  SUBAGENT_FINISHED: {
    readonly subagentRunId: string;
    readonly result?: Json;
    readonly outcome?: { readonly type: 'success' } | { readonly type: 'suspended' };
  };
  SUBAGENT_ERROR: { readonly subagentRunId: string; readonly message: string; readonly code?: string };
}

type AgUiEventType = keyof Payloads;

/** An event of the protocol, as it goes to a client. */
export type AgUiEvent<T extends AgUiEventType = AgUiEventType> = {
  [K in T]: { readonly type: K; readonly timestamp?: number } & Payloads[K];
}[T];

/** Whether the client speaks 1.0. Others are told nothing that 0.0.59 does not know. */
export function isFirstVersion({ protocolVersion }: Pick<RunAgentInput, 'protocolVersion'>): boolean {
  return protocolVersion !== undefined && /^1(\.|$)/.test(protocolVersion);
}
