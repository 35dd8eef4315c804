/** Reads what the tools of a turn report to clients while they work: the rows of the stream `data` of its runs. */
import { type Json, PilotageError } from '#core';
import { DATA_STREAM, type Run } from '#runtime';

export class DataRows {
  readonly #onRow: (row: Json) => void;
  readonly #onNews: () => void;
  readonly #left = new AbortController();
  readonly #read = new Map<string, { readonly run: Run; next: number; done: Promise<void> }>();

  /** @param onRow is given each row at once, however slow the client is. @param onNews is called after that. */
  constructor(onRow: (row: Json) => void, onNews: () => void) {
    this.#onRow = onRow;
    this.#onNews = onNews;
  }

  /** Begins to read the rows of a run, when one of its tools is called. */
  async begin(run: Run): Promise<void> {
    if (this.#read.has(run.id)) return;
    const reading = { run, next: 1, done: Promise.resolve() };
    this.#read.set(run.id, reading);
    // Rows that are stored already are read without waking the reader.
    await this.#take(run, false);
    reading.done = this.#take(run, true).catch(unlessGone);
  }

  /** Takes the rows that are stored by now, and waits for no more. */
  async end(): Promise<void> {
    this.#left.abort();
    for (const { run, done } of this.#read.values()) {
      await done;
      await this.#take(run, false).catch(unlessGone);
    }
  }

  leave(): void {
    this.#left.abort();
  }

  async #take(run: Run, follow: boolean): Promise<void> {
    const reading = this.#read.get(run.id);
    if (reading === undefined) return;
    const signal = follow ? { signal: this.#left.signal } : {};
    for await (const { index, value } of run.stream(DATA_STREAM, { from: reading.next, follow, ...signal })) {
      reading.next = index + 1;
      this.#onRow(value);
      if (follow) this.#onNews();
    }
  }
}

/** Ignores that the session was deleted meanwhile. */
function unlessGone(error: unknown): void {
  if (!PilotageError.is(error, 'run_not_found')) throw error;
}
