/**
 * A2A 0.3 over JSON-RPC: what its clients ask is put into the words of 1.0, and what they are answered into theirs. The shapes are those of the types of
 * `@a2a-js/sdk` 0.3. Its HTTP+JSON is not spoken.
 */
import { defined, isJsonObject, type Json, type JsonObject } from '#core';
import {
  type A2aMessage,
  type A2aPart,
  type A2aTaskStatus,
  type Artifact,
  isInterrupted,
  isTerminal,
  type OperationName,
  type PushConfig,
  type StreamName,
  type StreamResponse,
  type Task,
} from './wire.ts';

interface LegacyMethod {
  /** The method of 1.0 that does the same. */
  readonly name: OperationName | StreamName;
  readonly params: (params: JsonObject) => JsonObject;
  /** What 1.0 answers, as 0.3 says it. For a stream: each of its events. */
  readonly result: (result: unknown) => unknown;
}

const same = <T>(value: T): T => value;
const ofTask = ({ id }: JsonObject): JsonObject => ({ taskId: id ?? null });
// A config without an id has that of its task, as the SDK of 0.3 has it.
const ofConfig = ({ id, pushNotificationConfigId = id }: JsonObject): JsonObject =>
  defined({ taskId: id, id: pushNotificationConfigId }) as JsonObject;
const task = (result: unknown): JsonObject => legacyTask(result as Task);
const event = (result: unknown): JsonObject => legacyEvent(result as StreamResponse);
const config = (result: unknown): JsonObject => legacyConfig(result as PushConfig);

const METHODS: Readonly<Record<string, LegacyMethod>> = {
  'message/send': { name: 'SendMessage', params: sendParams, result: event },
  'message/stream': { name: 'SendStreamingMessage', params: sendParams, result: event },
  'tasks/get': { name: 'GetTask', params: same, result: task },
  'tasks/cancel': { name: 'CancelTask', params: same, result: task },
  'tasks/resubscribe': { name: 'SubscribeToTask', params: same, result: event },
  'tasks/pushNotificationConfig/set': {
    name: 'CreateTaskPushNotificationConfig',
    params: ({ taskId, pushNotificationConfig }) =>
      defined({ ...objectIn(configIn(pushNotificationConfig)), taskId }) as JsonObject,
    result: config,
  },
  'tasks/pushNotificationConfig/get': { name: 'GetTaskPushNotificationConfig', params: ofConfig, result: config },
  'tasks/pushNotificationConfig/list': {
    name: 'ListTaskPushNotificationConfigs',
    params: ofTask,
    result: (result) => (result as { readonly configs: readonly PushConfig[] }).configs.map(legacyConfig),
  },
  'tasks/pushNotificationConfig/delete': {
    name: 'DeleteTaskPushNotificationConfig',
    params: ofConfig,
    result: () => null,
  },
  'agent/getAuthenticatedExtendedCard': { name: 'GetExtendedAgentCard', params: () => ({}), result: same },
};

/** @returns `undefined` for a method that 0.3 does not have. */
export function legacyMethod(method: string): LegacyMethod | undefined {
  return Object.hasOwn(METHODS, method) ? METHODS[method] : undefined;
}

// From 0.3. What is not of its shape stays as it is, so that the schemas of 1.0 refuse it.

function sendParams({ message, configuration, ...more }: JsonObject): JsonObject {
  const { blocking, pushNotificationConfig, ...rest } = objectIn(configuration);
  const taskPushNotificationConfig = configIn(pushNotificationConfig);
  const returnImmediately = blocking === false || undefined;
  return defined({
    ...more,
    message: messageIn(message),
    configuration: defined({ ...rest, taskPushNotificationConfig, returnImmediately }),
  }) as JsonObject;
}

function messageIn(message: Json | undefined): Json | undefined {
  if (!isJsonObject(message)) return message;
  const { kind: _, role, parts, ...rest } = message;
  return {
    ...rest,
    role: role === 'user' ? 'ROLE_USER' : (role ?? null),
    parts: Array.isArray(parts) ? parts.map(partIn) : (parts ?? null),
  };
}

/** Marks a data part whose value is not an object: 0.3 has only objects, so that the value is put into one. The SDK uses the same mark. */
const WRAPPED = 'data_part_compat';

function partIn(part: Json): Json {
  if (!isJsonObject(part)) return part;
  const { kind, text, data, file, metadata } = part;
  if (kind === 'text') return defined({ text }) as JsonObject;
  if (kind === 'data') {
    const isWrapped = objectIn(metadata)[WRAPPED] === true && isJsonObject(data) && 'value' in data;
    return defined({ data: isWrapped ? data['value'] : data }) as JsonObject;
  }
  if (kind !== 'file') return { kind: kind ?? null };
  const { bytes, uri, mimeType, name } = objectIn(file);
  return defined({ raw: bytes, url: uri, mediaType: mimeType, filename: name }) as JsonObject;
}

function configIn(config: Json | undefined): Json | undefined {
  if (!isJsonObject(config)) return config;
  const { authentication, ...rest } = config;
  if (!isJsonObject(authentication)) return config;
  const { schemes, ...how } = authentication;
  return { ...rest, authentication: { ...how, scheme: (Array.isArray(schemes) ? schemes[0] : schemes) ?? null } };
}

function objectIn(value: Json | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

// To 0.3.

/** One event of a stream, or what `message/send` returns. */
function legacyEvent(response: StreamResponse): JsonObject {
  if ('task' in response) return legacyTask(response.task);
  if ('message' in response) return legacyMessage(response.message);
  if ('statusUpdate' in response) {
    const { status, ...of } = response.statusUpdate;
    // The stream ends when the task has ended or asks something.
    const final = isTerminal(status.state) || isInterrupted(status.state);
    return { kind: 'status-update', ...of, status: legacyStatus(status), final };
  }
  const { artifact, ...rest } = response.artifactUpdate;
  return { kind: 'artifact-update', ...rest, artifact: legacyArtifact(artifact) };
}

/** The body of a push notification: in 0.3 it is always a task. */
export function legacyNotification(response: StreamResponse): JsonObject {
  if (!('statusUpdate' in response)) return legacyEvent(response);
  const { taskId: id, contextId, status } = response.statusUpdate;
  return legacyTask({ id, contextId, status });
}

function legacyTask({ status, artifacts, history, ...of }: Task): JsonObject {
  return {
    kind: 'task',
    ...of,
    status: legacyStatus(status),
    ...(artifacts && { artifacts: artifacts.map(legacyArtifact) }),
    ...(history && { history: history.map(legacyMessage) }),
  };
}

/** `TASK_STATE_INPUT_REQUIRED` is `input-required`. */
function legacyStatus({ state, message, timestamp }: A2aTaskStatus): JsonObject {
  return {
    state: state.replace('TASK_STATE_', '').replaceAll('_', '-').toLowerCase(),
    ...(message && { message: legacyMessage(message) }),
    ...(timestamp !== undefined && { timestamp }),
  };
}

function legacyMessage({ role, parts, ...rest }: A2aMessage): JsonObject {
  const more = rest as unknown as JsonObject;
  return { kind: 'message', ...more, role: role === 'ROLE_USER' ? 'user' : 'agent', parts: parts.map(legacyPart) };
}

function legacyArtifact({ parts, ...rest }: Artifact): JsonObject {
  return { ...rest, parts: parts.map(legacyPart) };
}

function legacyPart({ text, data, raw, url, mediaType, filename }: A2aPart): JsonObject {
  if (text !== undefined) return { kind: 'text', text };
  if (isJsonObject(data)) return { kind: 'data', data };
  if (data !== undefined) return { kind: 'data', data: { value: data }, metadata: { [WRAPPED]: true } };
  const file = defined({ bytes: raw, uri: url, mimeType: mediaType, name: filename }) as JsonObject;
  return { kind: 'file', file };
}

function legacyConfig({ taskId = '', authentication, ...rest }: PushConfig): JsonObject {
  const how = authentication && { authentication: { schemes: [authentication.scheme] } };
  return { taskId, pushNotificationConfig: { ...(rest as unknown as JsonObject), ...how } };
}
