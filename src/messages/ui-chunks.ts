/** The chunks of the AI SDK's UI message stream that Pilotage makes. */
import type { Json, JsonObject } from '#core';
import type { UIMetadata } from './ui-messages.ts';

interface OfCall {
  readonly toolCallId: string;
}

interface CallInput extends OfCall {
  readonly toolName: string;
  readonly dynamic: true;
  readonly providerExecuted?: true;
}

/** A data part that the program has made. With an `id` it takes the place of the part that has the same type and id. */
export interface DataChunk {
  readonly type: `data-${string}`;
  readonly id?: string;
  readonly data: Json;
  /** The chunk is sent to the client and does not become a part of the message. */
  readonly transient?: true;
}

export type UIChunk =
  | { readonly type: 'start'; readonly messageId: string; readonly messageMetadata: UIMetadata }
  | { readonly type: 'start-step' | 'finish-step' | 'reset-step' }
  | { readonly type: 'text-start' | 'text-end' | 'reasoning-start' | 'reasoning-end'; readonly id: string }
  | { readonly type: 'text-delta' | 'reasoning-delta'; readonly id: string; readonly delta: string }
  | ({ readonly type: 'tool-input-start' } & CallInput)
  | ({ readonly type: 'tool-input-delta'; readonly inputTextDelta: string } & OfCall)
  | ({ readonly type: 'tool-input-available'; readonly input: Json } & CallInput)
  | ({ readonly type: 'tool-approval-request'; readonly approvalId: string; readonly reason?: string } & OfCall)
  | {
      readonly type: 'tool-approval-response';
      readonly approvalId: string;
      readonly approved: boolean;
      readonly reason?: string;
    }
  | ({ readonly type: 'tool-output-available'; readonly output: Json; readonly preliminary?: true } & OfCall)
  | ({ readonly type: 'tool-output-error'; readonly errorText: string } & OfCall)
  | ({ readonly type: 'tool-output-denied' } & OfCall)
  | { readonly type: 'source-url'; readonly sourceId: string; readonly url: string; readonly title?: string }
  | {
      readonly type: 'source-document';
      readonly sourceId: string;
      readonly mediaType: string;
      readonly title: string;
      readonly filename?: string;
    }
  | { readonly type: 'file'; readonly url: string; readonly mediaType: string }
  | DataChunk
  | { readonly type: 'error'; readonly errorText: string }
  | { readonly type: 'abort' }
  | { readonly type: 'finish'; readonly finishReason: UIFinishReason };

export type UIFinishReason = 'stop' | 'length' | 'content-filter' | 'tool-calls' | 'other';

/** Reads a data part out of a tool's value, such as `{ type: 'data-progress', id: 'p1', data: { percent: 40 } }`. */
export function dataChunkIn(value: Json): DataChunk | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  const { type, id, data } = value as JsonObject;
  if (typeof type !== 'string' || !type.startsWith('data-') || data === undefined) return undefined;
  return { type: type as DataChunk['type'], ...(typeof id === 'string' ? { id } : {}), data };
}

export function isDataChunk(chunk: UIChunk): chunk is DataChunk {
  return chunk.type.startsWith('data-');
}
