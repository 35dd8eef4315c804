/** The request of the OpenAI chat protocol, and what strict servers refuse in it. */
import { isJsonObject, type Json } from '#core';

export interface ChatToolCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: string };
}

export interface ChatMessage {
  readonly role: 'system' | 'developer' | 'user' | 'assistant' | 'tool';
  readonly content?: Json;
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly ChatToolCall[];
  readonly tool_call_id?: string;
}

export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly {
    readonly type: 'function';
    readonly function: { readonly name: string; readonly description?: string; readonly parameters?: Json };
  }[];
  readonly parallel_tool_calls?: boolean;
  readonly max_tokens?: number;
  readonly temperature?: number;
  readonly stream?: boolean;
  readonly stream_options?: { readonly include_usage?: boolean };
}

const ROLES: ReadonlySet<Json> = new Set(['system', 'developer', 'user', 'assistant', 'tool']);
const TOOL_NAME = /^[a-zA-Z0-9_-]{1,64}$/;

/** What is wrong with the body; `undefined` when nothing is. */
export function chatFault(body: Json): string | undefined {
  if (!isJsonObject(body)) return 'The body is not an object.';
  if (typeof body['model'] !== 'string' || body['model'] === '') return 'model is missing.';
  const messages = body['messages'];
  if (!Array.isArray(messages) || messages.length === 0) return 'messages is empty.';
  return toolsFault(body['tools']) ?? messagesFault(messages as readonly Json[]);
}

function toolsFault(tools: Json | undefined): string | undefined {
  if (tools === undefined) return undefined;
  if (!Array.isArray(tools) || tools.length === 0) return 'tools is not a list with something in it.';
  const names = new Set<string>();
  for (const [index, tool] of (tools as readonly Json[]).entries()) {
    const spec = isJsonObject(tool) ? tool['function'] : undefined;
    const name = isJsonObject(spec ?? null) ? (spec as { name?: Json }).name : undefined;
    if (typeof name !== 'string' || !TOOL_NAME.test(name)) return `tools[${index}].function.name is not a tool name.`;
    if (names.has(name)) return `tools has ${name} twice.`;
    names.add(name);
  }
  return undefined;
}

/** Every call is followed by exactly one result, before anything else is said; no result is without its call. */
function messagesFault(messages: readonly Json[]): string | undefined {
  const open = new Set<string>();
  for (const [index, message] of messages.entries()) {
    if (!isJsonObject(message) || !ROLES.has(message['role'] ?? null)) return `messages[${index}].role is unknown.`;
    if (message['role'] === 'tool') {
      const id = message['tool_call_id'];
      if (typeof id !== 'string' || !open.delete(id)) return `messages[${index}] is a result without its tool call.`;
      if (typeof message['content'] !== 'string') return `messages[${index}].content is not text.`;
      continue;
    }
    if (open.size > 0) return `messages[${index}] comes before the results of ${[...open].join(', ')}.`;
    const fault = contentFault(message['content']) ?? callsFault(message['tool_calls'], open);
    if (fault !== undefined) return `messages[${index}].${fault}`;
    if (message['role'] !== 'assistant' && message['tool_calls'] !== undefined)
      return `messages[${index}] has tool_calls, and is not the assistant's.`;
    if (message['content'] == null && message['tool_calls'] === undefined)
      return `messages[${index}] has neither content nor tool_calls.`;
  }
  return open.size === 0 ? undefined : `The results of ${[...open].join(', ')} are missing.`;
}

function contentFault(content: Json | undefined): string | undefined {
  const known = content === undefined || content === null || typeof content === 'string' || Array.isArray(content);
  return known ? undefined : 'content is neither text nor parts.';
}

/** Adds the ids of the calls to `open`. */
function callsFault(calls: Json | undefined, open: Set<string>): string | undefined {
  if (calls === undefined) return undefined;
  if (!Array.isArray(calls) || calls.length === 0) return 'tool_calls is not a list with something in it.';
  for (const [index, call] of (calls as readonly Json[]).entries()) {
    const { id, function: called } = isJsonObject(call) ? call : {};
    if (typeof id !== 'string' || id === '') return `tool_calls[${index}].id is missing.`;
    if (open.has(id)) return `tool_calls[${index}].id is there twice.`;
    open.add(id);
    if (!isJsonObject(called ?? null)) return `tool_calls[${index}].function is missing.`;
    const { name, arguments: input } = called as { name?: Json; arguments?: Json };
    if (typeof name !== 'string' || !TOOL_NAME.test(name))
      return `tool_calls[${index}].function.name is not a tool name.`;
    if (typeof input !== 'string' || !holdsObject(input))
      return `tool_calls[${index}].function.arguments is not a JSON object.`;
  }
  return undefined;
}

function holdsObject(text: string): boolean {
  try {
    return isJsonObject(JSON.parse(text));
  } catch {
    return false;
  }
}
