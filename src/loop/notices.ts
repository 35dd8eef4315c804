/** Tells the readers of a run, in this process, what its driver does. Nothing is made when nobody listens. */
import type { Entry, EventPayloads, SpokenDelta } from '#core';

export type Notice =
  | { readonly type: 'entry'; readonly entry: Entry }
  | { readonly type: 'delta'; readonly step: number; readonly delta: SpokenDelta; readonly offset: number }
  /** How a task of the run has come on. */
  | { readonly type: 'progress'; readonly progress: EventPayloads['task.progress'] }
  /** A piece of what a call of the run, or of a task below it, gives on its way. */
  | { readonly type: 'chunk'; readonly chunk: EventPayloads['tool.chunk'] }
  /** A call's result came after it had been given up. */
  | { readonly type: 'late'; readonly step: number; readonly call: number; readonly tool: string }
  /** This process does not drive the run any more. `error`: because of this. */
  | { readonly type: 'exit'; readonly error?: unknown };

interface Listener {
  readonly hear: (notice: Notice) => void;
  readonly tokens: boolean;
}

export class NoticeHub {
  readonly #listeners = new Map<string, Set<Listener>>();
  #closed: { readonly error: unknown } | undefined;

  /**
   * @param tokens whether deltas and chunks are wanted; while nobody wants them, planners do not stream.
   * @throws the error that the hub was closed with.
   */
  listen(run: string, hear: (notice: Notice) => void, tokens: boolean): () => void {
    if (this.#closed !== undefined) throw this.#closed.error;
    const listeners = this.#listeners.get(run) ?? new Set();
    const listener = { hear, tokens };
    this.#listeners.set(run, listeners.add(listener));
    return () => {
      listeners.delete(listener);
      // Stopping twice must not remove another listener.
      if (listeners.size === 0 && this.#listeners.get(run) === listeners) this.#listeners.delete(run);
    };
  }

  hasListeners(run: string): boolean {
    return this.#listeners.has(run);
  }

  wantsTokens(run: string): boolean {
    const listeners = this.#listeners.get(run);
    return listeners !== undefined && [...listeners].some((listener) => listener.tokens);
  }

  tell(run: string, notice: Notice): void {
    const listeners = this.#listeners.get(run);
    if (listeners === undefined) return;
    for (const listener of listeners) {
      if (listener.tokens || (notice.type !== 'delta' && notice.type !== 'chunk')) listener.hear(notice);
    }
  }

  /** Nothing comes any more: also for those who wait for runs of other processes. */
  close(error: unknown): void {
    this.#closed = { error };
    for (const run of [...this.#listeners.keys()]) this.tell(run, { type: 'exit', error });
  }
}
