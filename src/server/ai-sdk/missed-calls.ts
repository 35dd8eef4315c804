/**
 * What a client that goes on with a message has not heard of its calls. A task of the run may ask somebody, and calls may end, after the stream that the client
 * has read has ended.
 */
import type { UIChunk } from '#messages';

/** The calls that the client has in its messages. */
export interface HeldCalls {
  /** The ids of all of them, and of their approvals. */
  readonly ids: ReadonlySet<string>;
  /** The ids of those without an outcome. */
  readonly open: ReadonlySet<string>;
}

export class MissedCalls {
  readonly #held: HeldCalls;
  /** The chunks of each call. */
  readonly #chunks = new Map<string, UIChunk[]>();
  /** The calls of the approvals. */
  readonly #asked = new Map<string, string>();

  constructor(held: HeldCalls) {
    this.#held = held;
  }

  /** Hears a chunk that is not sent to the client. */
  hear(chunk: UIChunk): void {
    const { ids, open } = this.#held;
    if (chunk.type === 'tool-approval-request') this.#asked.set(chunk.approvalId, chunk.toolCallId);
    const call = chunk.type === 'tool-approval-response' ? this.#asked.get(chunk.approvalId) : callOf(chunk);
    if (call === undefined) return;
    if (!ids.has(call)) {
      // A client may send a part of its message alone: what is over is not told twice.
      if (isResult(chunk)) this.#chunks.delete(call);
      else this.#keep(call, chunk);
      return;
    }
    const isKnown = chunk.type === 'tool-approval-request' && ids.has(chunk.approvalId);
    if (open.has(call) && !isKnown && !chunk.type.startsWith('tool-input')) this.#keep(call, chunk);
  }

  /** @returns all of it, in an order in which it can be sent. */
  take(): readonly UIChunk[] {
    const taken = [...this.#chunks.values()].flat();
    this.#chunks.clear();
    return taken;
  }

  #keep(call: string, chunk: UIChunk): void {
    const chunks = this.#chunks.get(call) ?? [];
    this.#chunks.set(call, chunks);
    chunks.push(chunk);
  }
}

function callOf(chunk: UIChunk): string | undefined {
  return 'toolCallId' in chunk ? chunk.toolCallId : undefined;
}

function isResult(chunk: UIChunk): boolean {
  if (chunk.type === 'tool-output-available') return chunk.preliminary !== true;
  return chunk.type === 'tool-output-error' || chunk.type === 'tool-output-denied';
}
