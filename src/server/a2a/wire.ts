/** The JSON of A2A 1.0. The types are written by hand from the specification: nothing of an SDK is loaded. */
import type { Json, JsonObject } from '#core';

export const PROTOCOL_VERSION = '1.0';
export const LEGACY_VERSION = '0.3';
/** The version that a client speaks. */
export type A2aVersion = typeof PROTOCOL_VERSION | typeof LEGACY_VERSION;
export const CARD_PATH = '/.well-known/agent-card.json';
/** The media type of HTTP+JSON. */
export const MEDIA_TYPE = 'application/a2a+json';

/** The methods of JSON-RPC, which are the operations of either binding. */
export type OperationName =
  | 'SendMessage'
  | 'GetTask'
  | 'ListTasks'
  | 'CancelTask'
  | 'CreateTaskPushNotificationConfig'
  | 'GetTaskPushNotificationConfig'
  | 'ListTaskPushNotificationConfigs'
  | 'DeleteTaskPushNotificationConfig'
  | 'GetExtendedAgentCard';
export type StreamName = 'SendStreamingMessage' | 'SubscribeToTask';

export type TaskStateName =
  | 'TASK_STATE_SUBMITTED'
  | 'TASK_STATE_WORKING'
  | 'TASK_STATE_COMPLETED'
  | 'TASK_STATE_FAILED'
  | 'TASK_STATE_CANCELED'
  | 'TASK_STATE_INPUT_REQUIRED'
  | 'TASK_STATE_REJECTED'
  | 'TASK_STATE_AUTH_REQUIRED';

const TERMINAL: ReadonlySet<string> = new Set([
  'TASK_STATE_COMPLETED',
  'TASK_STATE_FAILED',
  'TASK_STATE_CANCELED',
  'TASK_STATE_REJECTED',
]);
const INTERRUPTED: ReadonlySet<string> = new Set(['TASK_STATE_INPUT_REQUIRED', 'TASK_STATE_AUTH_REQUIRED']);

/** Whether a task in this state has ended. */
export function isTerminal(state: string): boolean {
  return TERMINAL.has(state);
}

/** Whether a task in this state waits for its client. */
export function isInterrupted(state: string): boolean {
  return INTERRUPTED.has(state);
}

/** A part of a message. It has one of `text`, `data`, `raw` (base64) and `url`. */
export interface A2aPart {
  readonly text?: string;
  readonly data?: Json;
  readonly raw?: string;
  readonly url?: string;
  readonly filename?: string;
  readonly mediaType?: string;
}

export interface A2aMessage {
  readonly messageId: string;
  readonly contextId?: string;
  readonly taskId?: string;
  readonly role: 'ROLE_USER' | 'ROLE_AGENT';
  readonly parts: readonly A2aPart[];
  readonly metadata?: JsonObject;
  readonly referenceTaskIds?: readonly string[];
}

export interface A2aTaskStatus {
  readonly state: TaskStateName;
  readonly message?: A2aMessage;
  /** ISO 8601. */
  readonly timestamp?: string;
}

export interface Artifact {
  readonly artifactId: string;
  readonly name?: string;
  readonly parts: readonly A2aPart[];
}

export interface Task {
  readonly id: string;
  readonly contextId: string;
  readonly status: A2aTaskStatus;
  readonly artifacts?: readonly Artifact[];
  readonly history?: readonly A2aMessage[];
}

interface StatusUpdate {
  readonly taskId: string;
  readonly contextId: string;
  readonly status: A2aTaskStatus;
}

interface ArtifactUpdate {
  readonly taskId: string;
  readonly contextId: string;
  readonly artifact: Artifact;
  readonly append?: boolean;
  readonly lastChunk?: boolean;
}

/** One item of a stream, or one push notification: it has exactly one of these fields. */
export type StreamResponse =
  | { readonly task: Task }
  | { readonly message: A2aMessage }
  | { readonly statusUpdate: StatusUpdate }
  | { readonly artifactUpdate: ArtifactUpdate };

export interface PushConfig {
  readonly id?: string;
  readonly taskId?: string;
  readonly url: string;
  readonly token?: string;
  readonly authentication?: { readonly scheme: string; readonly credentials?: string };
}

export interface SendParams {
  readonly tenant?: string;
  readonly message: A2aMessage;
  readonly configuration?: {
    readonly acceptedOutputModes?: readonly string[];
    readonly taskPushNotificationConfig?: PushConfig;
    readonly historyLength?: number;
    readonly returnImmediately?: boolean;
  };
}

export interface AgentInterface {
  readonly url: string;
  readonly protocolBinding: string;
  readonly protocolVersion: string;
}

export interface AgentSkill {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly tags: readonly string[];
  readonly examples?: readonly string[];
}

export interface AgentCard {
  readonly name: string;
  readonly description: string;
  readonly version: string;
  readonly supportedInterfaces: readonly AgentInterface[];
  /** This and the next two are for clients of 0.3, with `supportsAuthenticatedExtendedCard`. */
  readonly url?: string;
  readonly preferredTransport?: string;
  readonly protocolVersion?: string;
  readonly supportsAuthenticatedExtendedCard?: boolean;
  readonly capabilities: {
    readonly streaming?: boolean;
    readonly pushNotifications?: boolean;
    readonly extendedAgentCard?: boolean;
  };
  readonly defaultInputModes: readonly string[];
  readonly defaultOutputModes: readonly string[];
  readonly skills: readonly AgentSkill[];
  readonly provider?: { readonly organization: string; readonly url: string };
  readonly documentationUrl?: string;
  readonly iconUrl?: string;
  readonly securitySchemes?: JsonObject;
  readonly securityRequirements?: readonly JsonObject[];
}

// JSON Schemas of what clients send. Unknown fields are allowed.

const WORD = { type: 'string', maxLength: 2_048 };
const COUNT = { type: 'integer', minimum: 0 };
const PART: JsonObject = {
  type: 'object',
  properties: {
    text: { type: 'string' },
    raw: { type: 'string' },
    url: WORD,
    filename: WORD,
    mediaType: WORD,
  },
  oneOf: ['text', 'data', 'raw', 'url'].map((name) => ({ required: [name] })),
};
const MESSAGE: JsonObject = {
  type: 'object',
  properties: {
    messageId: { type: 'string', minLength: 1, maxLength: 500 },
    contextId: WORD,
    taskId: WORD,
    role: { const: 'ROLE_USER' },
    parts: { type: 'array', minItems: 1, maxItems: 100, items: PART },
  },
  required: ['messageId', 'role', 'parts'],
};
export const PUSH_CONFIG: JsonObject = {
  type: 'object',
  properties: {
    tenant: WORD,
    id: { type: 'string', maxLength: 200 },
    taskId: WORD,
    url: { type: 'string', minLength: 1, maxLength: 2_048 },
    token: { type: 'string', maxLength: 2_048, pattern: '^[\\x21-\\x7e]*$' },
    authentication: {
      type: 'object',
      properties: {
        scheme: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,64}$' },
        credentials: { type: 'string', maxLength: 4_096, pattern: '^[\\x20-\\x7e]*$' },
      },
      required: ['scheme'],
    },
  },
  required: ['url'],
};
export const SEND: JsonObject = {
  type: 'object',
  properties: {
    tenant: WORD,
    message: MESSAGE,
    configuration: {
      type: 'object',
      properties: {
        acceptedOutputModes: { type: 'array', items: WORD },
        taskPushNotificationConfig: PUSH_CONFIG,
        historyLength: COUNT,
        returnImmediately: { type: 'boolean' },
      },
    },
  },
  required: ['message'],
};
export const OF_TASK: JsonObject = {
  type: 'object',
  properties: { tenant: WORD, id: { ...WORD, minLength: 1 }, historyLength: COUNT },
  required: ['id'],
};
export const OF_CONFIG: JsonObject = {
  type: 'object',
  properties: { tenant: WORD, taskId: { ...WORD, minLength: 1 }, id: { ...WORD, minLength: 1 } },
  required: ['taskId', 'id'],
};
export const OF_CONFIGS: JsonObject = {
  type: 'object',
  properties: { tenant: WORD, taskId: { ...WORD, minLength: 1 } },
  required: ['taskId'],
};
export const LIST: JsonObject = {
  type: 'object',
  properties: {
    tenant: WORD,
    contextId: WORD,
    status: WORD,
    pageSize: { type: 'integer', minimum: 1, maximum: 100 },
    pageToken: WORD,
    historyLength: COUNT,
    statusTimestampAfter: WORD,
    includeArtifacts: { type: 'boolean' },
  },
};
export const NOTHING: JsonObject = { type: 'object', properties: { tenant: WORD } };
