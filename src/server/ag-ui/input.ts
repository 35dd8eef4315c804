/** Reads what a client posts: it is checked, and what is new in it is taken. The rest is in the journal already. */
import { type ClientToolSpec, isJsonObject, type Json, type JsonObject } from '#core';
import type { MessageFile, UserMessage } from '#messages';
import { fileBytes } from '../request-body.ts';
import type { AgUiMessage, RunAgentInput } from './protocol.ts';

const ID: JsonObject = { type: 'string', minLength: 1, maxLength: 500 };
const OBJECTS: JsonObject = { type: 'array', items: { type: 'object' }, maxItems: 10_000 };

/** The schema lets unknown fields pass, since later versions of the protocol have more. */
export const RUN_INPUT: JsonObject = {
  type: 'object',
  required: ['threadId', 'runId', 'messages'],
  properties: {
    threadId: ID,
    runId: ID,
    protocolVersion: { type: 'string' },
    messages: {
      ...OBJECTS,
      items: {
        type: 'object',
        required: ['id', 'role'],
        properties: {
          id: ID,
          role: { type: 'string' },
          toolCallId: { type: 'string' },
          error: { type: 'string' },
          toolCalls: {
            type: 'array',
            items: {
              type: 'object',
              required: ['id', 'type', 'function'],
              properties: { id: { type: 'string' }, function: { type: 'object' } },
            },
          },
        },
      },
    },
    tools: {
      ...OBJECTS,
      items: {
        type: 'object',
        required: ['name', 'description'],
        properties: { name: { type: 'string' }, description: { type: 'string' } },
      },
    },
    context: OBJECTS,
    resume: {
      type: 'array',
      maxItems: 1_000,
      items: {
        type: 'object',
        required: ['interruptId', 'status'],
        properties: { interruptId: ID, status: { enum: ['resolved', 'cancelled'] } },
      },
    },
  },
};

/** The input of a client that wants the history of a thread, or to stop it. */
export const THREAD_INPUT: JsonObject = {
  ...RUN_INPUT,
  required: ['threadId'],
};

/** The newest message of the user. */
export function newestMessage({ messages }: RunAgentInput): AgUiMessage | undefined {
  return messages.findLast(({ role }) => role === 'user');
}

/** Results of the client's own tools: the tool messages after the last message of the assistant. */
export function toolAnswers({ messages }: RunAgentInput): readonly AgUiMessage[] {
  const last = messages.findLastIndex(({ role }) => role === 'assistant');
  return messages.slice(last + 1).filter(({ role, toolCallId }) => role === 'tool' && toolCallId !== undefined);
}

/** The client's own tools, in the form that a turn takes. The client carries out their calls. */
export function clientTools({ tools = [] }: RunAgentInput): readonly ClientToolSpec[] {
  return tools.map(({ name, description, parameters }) => ({
    name,
    // Models need a description.
    description: description.trim() === '' ? name : description,
    inputSchema: isJsonObject(parameters) ? parameters : { type: 'object' },
  }));
}

/** The value of a tool message. Content that can be read as JSON is read as JSON. */
export function toolValue({ content }: AgUiMessage): Json {
  const text = typeof content === 'string' ? content : textOf(content);
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

/** A message of a client in the form that a session takes. @throws RequestRefused `request_invalid` for a file that is not base64. */
export function userMessage({ content }: AgUiMessage): UserMessage {
  const inputs = Array.isArray(content) ? content.flatMap(fileOf) : [];
  return { text: textOf(content), ...(inputs.length > 0 && { inputs }) };
}

function textOf(content: Json | undefined): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .flatMap((part) => (isJsonObject(part) && typeof part['text'] === 'string' ? [part['text']] : []))
    .join('\n\n');
}

/** Reads a file from a part such as `{ type: 'image', source: { type: 'data' | 'url', value, mimeType } }`, and the `binary` of older clients. */
function fileOf(part: Json): MessageFile[] {
  if (!isJsonObject(part)) return [];
  const { source, filename } = part;
  const name = typeof filename === 'string' ? { fileName: filename } : {};
  if (isJsonObject(source)) return file(source['type'], source['value'], source['mimeType'], name);
  if (part['type'] !== 'binary') return [];
  const isUrl = typeof part['url'] === 'string';
  return file(isUrl ? 'url' : 'data', isUrl ? part['url'] : part['data'], part['mimeType'], name);
}

function file(
  kind: Json | undefined,
  value: Json | undefined,
  mime: Json | undefined,
  name: { fileName?: string },
): MessageFile[] {
  if (typeof value !== 'string') return [];
  const type = typeof mime === 'string' ? mime : undefined;
  if (kind === 'url') return [{ url: value, ...(type !== undefined && { mime: type }), ...name }];
  if (kind !== 'data') return [];
  return [{ bytes: fileBytes(value), mime: type ?? 'application/octet-stream', ...name }];
}
