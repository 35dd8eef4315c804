/** Streams of runs in the memory of this process. */
import { compareTexts, type StreamRow } from '#core';
import type { StreamAppend, StreamRecord, StreamStore } from './port-streams.ts';
import { assertFence, assertStreamRow } from './rules.ts';

/** How the journal lends its state. */
interface Access {
  /** Throws `run_not_found`, or that the journal is closed. */
  readonly fenceOf: (run: string) => number;
  readonly now: () => number;
  readonly wake: (run: string) => void;
}

interface Stream {
  readonly rows: StreamRow[];
  closed: boolean;
}

export class MemoryStreams implements StreamStore {
  readonly #access: Access;
  readonly #streams = new Map<string, Map<string, Stream>>();

  constructor(access: Access) {
    this.#access = access;
  }

  async append({ run, fence, rows, ...place }: StreamAppend): Promise<void> {
    assertFence({ run, fence }, this.#access.fenceOf(run));
    for (const row of rows) assertStreamRow(row);
    const streams = this.#streams.get(run) ?? new Map<string, Stream>();
    this.#streams.set(run, streams);
    const at = Math.floor(this.#access.now());
    for (const row of rows) {
      const stream = streams.get(row.name) ?? { rows: [], closed: false };
      streams.set(row.name, stream);
      stream.closed = 'closes' in row;
      if ('value' in row)
        stream.rows.push(Object.freeze({ index: stream.rows.length + 1, value: row.value, ...place, at }));
    }
    this.#access.wake(run);
  }

  async read(
    run: string,
    name: string,
    from: number,
    limit: number,
  ): Promise<{ rows: readonly StreamRow[]; closed: boolean }> {
    this.#access.fenceOf(run);
    const stream = this.#streams.get(run)?.get(name);
    if (stream === undefined) return { rows: [], closed: false };
    const first = Math.max(from, 1) - 1;
    return { rows: stream.rows.slice(first, first + limit), closed: stream.closed };
  }

  async list(run: string): Promise<readonly StreamRecord[]> {
    this.#access.fenceOf(run);
    const streams = [...(this.#streams.get(run) ?? [])];
    return streams
      .map(([name, { rows, closed }]) => ({ name, rows: rows.length, closed }))
      .sort((one, other) => compareTexts(one.name, other.name));
  }

  drop(run: string): void {
    this.#streams.delete(run);
  }
}
