/** Puts chunks together to a message, as a client of the AI SDK does, so that a chat that is loaded equals the one that was streamed. */
import { defined, type Json } from '#core';
import { type DataChunk, isDataChunk, type UIChunk } from './ui-chunks.ts';
import type { StreamedCall, TurnUIMessage, UIPart } from './ui-messages.ts';

type Spoken = Extract<UIPart, { type: 'text' | 'reasoning' }>;

/** One message of the assistant. */
export class UIAssembly {
  readonly message: TurnUIMessage;
  readonly #spoken = new Map<string, { text: string }>();
  readonly #calls = new Map<string, StreamedCall>();

  constructor(id: string, metadata: TurnUIMessage['metadata']) {
    this.message = { id, role: 'assistant', ...defined({ metadata }), parts: [] };
  }

  hear(chunk: UIChunk): void {
    const { parts } = this.message;
    if (isDataChunk(chunk)) {
      this.#data(chunk);
      return;
    }
    switch (chunk.type) {
      case 'start-step':
        parts.push({ type: 'step-start' });
        return;
      case 'reset-step':
        parts.length = parts.findLastIndex(({ type }) => type === 'step-start') + 1;
        return;
      case 'text-start':
        this.#speak({ type: 'text', text: '', state: 'done' }, `text ${chunk.id}`);
        return;
      case 'reasoning-start':
        this.#speak({ type: 'reasoning', id: chunk.id, text: '', state: 'done' }, `reasoning ${chunk.id}`);
        return;
      case 'text-delta':
      case 'reasoning-delta': {
        const part = this.#spoken.get(`${chunk.type === 'text-delta' ? 'text' : 'reasoning'} ${chunk.id}`);
        if (part !== undefined) part.text += chunk.delta;
        return;
      }
      case 'source-url':
      case 'source-document':
      case 'file':
        parts.push({ ...chunk });
        return;
      default:
        this.#ofCall(chunk);
        return;
    }
  }

  #speak(part: Spoken, key: string): void {
    this.#spoken.set(key, part);
    this.message.parts.push(part);
  }

  #data({ type, id, data, transient }: DataChunk): void {
    if (transient === true) return;
    const { parts } = this.message;
    const known =
      id === undefined ? undefined : parts.find((part) => part.type === type && 'id' in part && part.id === id);
    if (known !== undefined && 'data' in known) known.data = data;
    else parts.push({ type, ...defined({ id }), data });
  }

  #ofCall(chunk: UIChunk): void {
    if (chunk.type === 'tool-input-available') {
      const { toolCallId, toolName, input, providerExecuted } = chunk;
      const known = this.#calls.get(toolCallId);
      if (known !== undefined && this.message.parts.includes(known as UIPart)) {
        Object.assign(known, { state: 'input-available', input });
        return;
      }
      const part: StreamedCall = {
        ...{ type: 'dynamic-tool', toolName, toolCallId, input, state: 'input-available' },
        ...defined({ providerExecuted }),
      };
      this.#calls.set(toolCallId, part);
      this.message.parts.push(part as UIPart);
    } else if (chunk.type === 'tool-approval-response') {
      const part = [...this.#calls.values()].find(({ approval }) => approval?.id === chunk.approvalId);
      const { approved, reason } = chunk;
      if (part?.approval !== undefined)
        Object.assign(part, {
          state: 'approval-responded',
          approval: { ...part.approval, approved, ...defined({ reason }) },
        });
    } else if ('toolCallId' in chunk) Object.assign(this.#calls.get(chunk.toolCallId) ?? {}, changeBy(chunk));
  }
}

function changeBy(chunk: Extract<UIChunk, { readonly toolCallId: string }>): Readonly<Record<string, Json>> {
  switch (chunk.type) {
    case 'tool-approval-request': {
      const { approvalId: id, reason: requestReason } = chunk;
      return { state: 'approval-requested', approval: { id, ...defined({ requestReason }) } };
    }
    case 'tool-output-available': {
      const { output, preliminary } = chunk;
      return { state: 'output-available', output, ...(preliminary === true ? { preliminary } : {}) };
    }
    case 'tool-output-error':
      return { state: 'output-error', errorText: chunk.errorText };
    case 'tool-output-denied':
      return { state: 'output-denied' };
    default:
      return {};
  }
}
