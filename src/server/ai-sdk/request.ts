/** What `useChat` posts, in the form that a session takes. Of the messages that a client sends, only the newest words and the answers are taken. */
import { defined, isJsonObject, type Json, type JsonObject } from '#core';
import type { MessageFile, UserMessage } from '#messages';
import { RequestRefused } from '../problem.ts';
import { fileBytes } from '../request-body.ts';
import type { HeldCalls } from './missed-calls.ts';

export interface ChatBody {
  /** The id of the chat, which is that of the session. */
  readonly id: string;
  readonly messages?: readonly JsonObject[];
  /** The last message, in place of all `messages`. */
  readonly message?: JsonObject;
  readonly trigger?: 'submit-message' | 'regenerate-message';
  readonly messageId?: string;
  /** Arguments that take the place of those that are approved, by the ids of the approvals. */
  readonly edits?: JsonObject;
}

const MAX_ID = 200;
const ID: JsonObject = { type: 'string', minLength: 1, maxLength: MAX_ID };
const MESSAGE: JsonObject = {
  type: 'object',
  properties: {
    id: { type: 'string', minLength: 1, maxLength: 500 },
    role: { enum: ['user', 'assistant', 'system'] },
    parts: { type: 'array', items: { type: 'object', properties: { type: { type: 'string' } }, required: ['type'] } },
  },
  required: ['id', 'role', 'parts'],
};

export const CHAT_BODY: JsonObject = {
  type: 'object',
  properties: {
    id: ID,
    messages: { type: 'array', items: MESSAGE },
    message: MESSAGE,
    trigger: { enum: ['submit-message', 'regenerate-message'] },
    messageId: { type: 'string' },
    edits: { type: 'object' },
  },
  required: ['id'],
};

/** An answer to a question of the run, by the token of the question. */
export interface GivenAnswer {
  readonly approvalId: string;
  /** The id of the client's message that holds the question. Absent for an answer that comes by itself. */
  readonly message?: string;
  readonly approved?: boolean;
  readonly reason?: string;
  /** Arguments in place of the call's own. */
  readonly args?: Json;
  /** A yes or no that holds for questions to come: `{ scope, match, expiresInMs }`. */
  readonly remember?: JsonObject;
  /** The answer to a question of a call, or what a call in doubt has come to. */
  readonly value?: Json;
  /** Whether a call in doubt has happened. */
  readonly happened?: boolean;
  /** The answer to a planner. */
  readonly payload?: JsonObject;
}

export const ANSWER_BODY: JsonObject = {
  type: 'object',
  properties: {
    approvalId: { type: 'string', minLength: 1 },
    approved: { type: 'boolean' },
    reason: { type: 'string' },
    args: {},
    remember: { type: 'object' },
    value: {},
    happened: { type: 'boolean' },
    payload: { type: 'object' },
  },
  required: ['approvalId'],
  anyOf: [{ required: ['approved'] }, { required: ['value'] }, { required: ['happened'] }, { required: ['payload'] }],
  dependencies: { remember: ['approved'] },
  additionalProperties: false,
};

/** The result of one of the client's own tools, as the client tells it. */
export type ClientToolOutput = {
  readonly toolCallId: string;
} & ({ readonly output: Json } | { readonly errorText: string });

interface ClientPart extends JsonObject {
  readonly type: string;
}

export interface ClientMessage {
  readonly id: string;
  readonly role: string;
  readonly parts: readonly ClientPart[];
}

/** The messages of the request: the last one, or the whole chat as the client has it. */
export function clientMessagesOf({ messages = [], message }: ChatBody): readonly ClientMessage[] {
  return [...messages, ...(message === undefined ? [] : [message])] as unknown as readonly ClientMessage[];
}

/** The client's answers to approvals, in any of the messages. */
export function answersIn(messages: readonly ClientMessage[], edits: JsonObject = {}): readonly GivenAnswer[] {
  return messages.flatMap((message) =>
    callParts([message]).flatMap(({ state, approval }): GivenAnswer[] => {
      if (state !== 'approval-responded' || !isJsonObject(approval)) return [];
      const { id, approved, reason } = approval;
      if (typeof id !== 'string' || typeof approved !== 'boolean') return [];
      const args = approved && Object.hasOwn(edits, id) ? edits[id] : undefined;
      const more = defined({ args, reason: typeof reason === 'string' ? reason : undefined });
      return [{ approvalId: id, message: message.id, approved, ...more }];
    }),
  );
}

/** The run that the id of a message of the assistant names. */
export function runOfMessage(message: string): string | undefined {
  const end = message.lastIndexOf(':');
  return end < 1 ? undefined : message.slice(0, end);
}

/** The results that calls have in the client's messages. */
export function outputsIn(messages: readonly ClientMessage[]): readonly ClientToolOutput[] {
  return callParts(messages).flatMap(({ toolCallId, state, output, errorText, preliminary }): ClientToolOutput[] => {
    if (typeof toolCallId !== 'string' || preliminary === true) return [];
    if (state === 'output-available') return [{ toolCallId, output: output ?? null }];
    return state === 'output-error' && typeof errorText === 'string' ? [{ toolCallId, errorText }] : [];
  });
}

/** The calls of the message behind which the client has heard nothing: those of its last step. */
export function lastCallsIn({ parts }: ClientMessage): ReadonlySet<string> {
  const last = parts.slice(parts.findLastIndex(({ type }) => type === 'step-start') + 1);
  return new Set(last.flatMap(({ toolCallId }) => (typeof toolCallId === 'string' ? [toolCallId] : [])));
}

/** The calls that the client has in its messages. */
export function heldIn(messages: readonly ClientMessage[]): HeldCalls {
  const parts = callParts(messages);
  const idsOf = (given: readonly unknown[]) => new Set(given.filter((id) => typeof id === 'string'));
  const isOpen = ({ state, preliminary }: ClientPart): boolean =>
    !(typeof state === 'string' && state.startsWith('output-')) || preliminary === true;
  return {
    ids: idsOf(parts.flatMap(({ toolCallId, approval }) => [toolCallId, isJsonObject(approval) && approval['id']])),
    open: idsOf(parts.filter(isOpen).map(({ toolCallId }) => toolCallId)),
  };
}

function callParts(messages: readonly ClientMessage[]): readonly ClientPart[] {
  return messages
    .filter(({ role }) => role === 'assistant')
    .flatMap(({ parts }) => parts.filter(({ type }) => type === 'dynamic-tool' || type.startsWith('tool-')));
}

/** @param filesAt the path under which the session's own files are served. @throws RequestRefused `request_invalid`. */
export function userMessageOf({ parts }: ClientMessage, filesAt: string): UserMessage {
  const texts = parts.flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : []));
  const inputs = parts.flatMap((part) => (part.type === 'file' ? [fileOf(part, filesAt)] : []));
  if (texts.length === 0 && inputs.length === 0)
    throw new RequestRefused('request_invalid', 'The message has neither text nor files.');
  return { text: texts.join('\n'), ...(inputs.length === 0 ? {} : { inputs }) };
}

function fileOf({ url, mediaType, filename }: ClientPart, filesAt: string): MessageFile {
  if (typeof url !== 'string') throw new RequestRefused('request_invalid', 'A file of the message has no url.');
  const named = typeof filename === 'string' ? { fileName: filename } : {};
  const mime = typeof mediaType === 'string' ? mediaType : 'application/octet-stream';
  // RFC 2397: a type may have parameters, such as those of a recording (`audio/webm;codecs=opus`).
  const [, given = '', base64, data] = /^data:([^;,]*)(?:;[^;,]*?)*?(;base64)?,(.*)$/is.exec(url) ?? [];
  if (data !== undefined) {
    const bytes = base64 === undefined ? new TextEncoder().encode(decoded(data)) : fileBytes(data);
    return { bytes, mime: given === '' ? mime : given, ...named };
  }
  const own = URL.parse(url, 'http://localhost');
  if (own?.pathname.startsWith(filesAt) === true) {
    const artifactRef = decoded(own.pathname.slice(filesAt.length));
    return { artifactRef, mime, sizeBytes: Number(own.searchParams.get('size') ?? 0), ...named };
  }
  return { url, mime, ...named };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new RequestRefused('request_invalid', 'The url of a file of the message is not well formed.');
  }
}
