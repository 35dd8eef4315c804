/** Folds events into the messages that a client has after them, as the protocol's own client does. */
import type { AgUiEvent, AgUiMessage, AgUiToolCall } from './protocol.ts';

interface Kept {
  id: string;
  role: string;
  content?: string;
  toolCalls?: AgUiToolCall[];
  toolCallId?: string;
  subagentRunId?: string;
}

/** The messages of a thread, or of a part of it, in their order. */
export class MessageFold {
  readonly #messages: Kept[] = [];
  readonly #byId = new Map<string, Kept>();
  readonly #byCall = new Map<string, Kept>();

  get messages(): readonly AgUiMessage[] {
    return this.#messages.map((message) => ({
      ...message,
      ...(message.toolCalls === undefined ? {} : { toolCalls: [...message.toolCalls] }),
    }));
  }

  has(id: string): boolean {
    return this.#byId.has(id);
  }

  add(event: AgUiEvent): void {
    switch (event.type) {
      case 'TEXT_MESSAGE_START':
        this.#open(event.messageId, event.role, event.subagentRunId);
        break;
      case 'REASONING_MESSAGE_START':
        this.#open(event.messageId, 'reasoning', event.subagentRunId);
        break;
      case 'TEXT_MESSAGE_CONTENT':
      case 'REASONING_MESSAGE_CONTENT': {
        const message = this.#byId.get(event.messageId);
        if (message !== undefined) message.content = `${message.content ?? ''}${event.delta}`;
        break;
      }
      case 'TOOL_CALL_START':
        this.#call(event);
        break;
      case 'TOOL_CALL_ARGS':
        this.#argue(event);
        break;
      case 'TOOL_CALL_RESULT':
        this.#result(event);
        break;
      default:
    }
  }

  /** Removes a message that was taken back. */
  drop(id: string): void {
    const at = this.#messages.findIndex((message) => message.id === id);
    if (at < 0) return;
    const [gone] = this.#messages.splice(at, 1);
    this.#byId.delete(id);
    for (const { id: call } of gone?.toolCalls ?? []) this.#byCall.delete(call);
  }

  /** Puts another text in the place of the one that was told. */
  correct(id: string, content: string): void {
    const message = this.#byId.get(id);
    if (message !== undefined) message.content = content;
  }

  /** A call that was not made. */
  dropCall(id: string): void {
    const owner = this.#byCall.get(id);
    this.#byCall.delete(id);
    if (owner === undefined) return;
    const left = (owner.toolCalls ?? []).filter((call) => call.id !== id);
    if (left.length > 0) owner.toolCalls = left;
    else delete owner.toolCalls;
    if (left.length === 0 && owner.content === undefined) this.drop(owner.id);
  }

  /** Puts other arguments in the place of those that were told. */
  correctCall(id: string, args: string): void {
    const owner = this.#byCall.get(id);
    if (owner === undefined) return;
    owner.toolCalls = (owner.toolCalls ?? []).map((call) =>
      call.id === id ? { ...call, function: { ...call.function, arguments: args } } : call,
    );
  }

  #open(id: string, role: string, subagentRunId: string | undefined): Kept {
    const known = this.#byId.get(id);
    if (known !== undefined) {
      if (role !== 'tools') known.content ??= '';
      return known;
    }
    const made: Kept = { id, role: role === 'tools' ? 'assistant' : role };
    if (role !== 'tools') made.content = '';
    if (subagentRunId !== undefined) made.subagentRunId = subagentRunId;
    this.#messages.push(made);
    this.#byId.set(id, made);
    return made;
  }

  #call({ toolCallId, toolCallName, parentMessageId, subagentRunId }: AgUiEvent<'TOOL_CALL_START'>): void {
    if (this.#byCall.has(toolCallId)) return;
    const message = this.#open(parentMessageId, 'tools', subagentRunId);
    message.toolCalls ??= [];
    message.toolCalls.push({ id: toolCallId, type: 'function', function: { name: toolCallName, arguments: '' } });
    this.#byCall.set(toolCallId, message);
  }

  #argue({ toolCallId, delta }: AgUiEvent<'TOOL_CALL_ARGS'>): void {
    const calls = this.#byCall.get(toolCallId)?.toolCalls ?? [];
    const at = calls.findIndex(({ id }) => id === toolCallId);
    const call = calls[at];
    if (call === undefined) return;
    const { name, arguments: before } = call.function;
    calls[at] = { ...call, function: { name, arguments: `${before}${delta}` } };
  }

  /** Puts a result behind the message with its call, where providers expect it. */
  #result({ messageId, toolCallId, content, subagentRunId }: AgUiEvent<'TOOL_CALL_RESULT'>): void {
    const made: Kept = { id: messageId, role: 'tool', toolCallId, content };
    if (subagentRunId !== undefined) made.subagentRunId = subagentRunId;
    this.#byId.set(messageId, made);
    const owner = this.#byCall.get(toolCallId);
    let at = owner === undefined ? this.#messages.length : this.#messages.indexOf(owner) + 1;
    while (this.#messages[at]?.role === 'tool') at += 1;
    this.#messages.splice(at, 0, made);
  }
}

/**
 * Merges the messages of the thread with those of a client. The order is that of the journal. Where both have a message, the client's words and ids are kept.
 * A message that only the client has, such as a greeting, keeps its place behind the message before it.
 */
export function withOwnOf(client: readonly AgUiMessage[], thread: readonly AgUiMessage[]): readonly AgUiMessage[] {
  const merged = [...thread];
  let at = -1;
  for (const own of client) {
    // A snapshot does not remove the activities that the client shows.
    if (own.role === 'activity') continue;
    const known = merged.findIndex((each) => isSame(each, own));
    if (known < 0) {
      at += 1;
      merged.splice(at, 0, own);
      continue;
    }
    at = known;
    const ours = merged[known] as AgUiMessage;
    if (own.role === 'user') merged[known] = own;
    else if (own.role === 'tool') merged[known] = { ...ours, id: own.id };
  }
  return merged;
}

function isSame(ours: AgUiMessage, own: AgUiMessage): boolean {
  return own.role === 'tool' && ours.role === 'tool' ? own.toolCallId === ours.toolCallId : own.id === ours.id;
}
