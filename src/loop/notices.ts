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

/** What was said in a step so far, by kinds. */
interface Said {
  readonly step: number;
  readonly texts: { text: string; reasoning: string };
}

export class NoticeHub {
  readonly #listeners = new Map<string, Set<Listener>>();
  /** By runs, while their planners stream: a reader that comes in the middle gets it in one piece. */
  readonly #said = new Map<string, Said>();
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
    if (tokens) this.#tellSaid(run, hear);
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
    if (notice.type === 'delta') this.#note(run, notice);
    else if (notice.type === 'exit') this.#said.delete(run);
    const listeners = this.#listeners.get(run);
    if (listeners === undefined) return;
    for (const listener of listeners) {
      if (listener.tokens || (notice.type !== 'delta' && notice.type !== 'chunk')) listener.hear(notice);
    }
  }

  #note(run: string, { step, delta }: Extract<Notice, { type: 'delta' }>): void {
    if (delta.type === 'reset') {
      this.#said.delete(run);
      return;
    }
    let said = this.#said.get(run);
    if (said?.step !== step) {
      said = { step, texts: { text: '', reasoning: '' } };
      this.#said.set(run, said);
    }
    said.texts[delta.type] += delta.text;
  }

  /** A reader that has got the step's decision already drops it. */
  #tellSaid(run: string, hear: Listener['hear']): void {
    const said = this.#said.get(run);
    if (said === undefined) return;
    for (const type of ['reasoning', 'text'] as const) {
      const text = said.texts[type];
      if (text !== '') hear({ type: 'delta', step: said.step, delta: { type, text }, offset: 0 });
    }
  }

  /** Nothing comes any more: also for those who wait for runs of other processes. */
  close(error: unknown): void {
    this.#closed = { error };
    for (const run of [...this.#listeners.keys()]) this.tell(run, { type: 'exit', error });
  }
}
