/**
 * The streams that one attempt of a call writes. Rows are stored together, a moment after they were written, or when there are many; the end of
 * the attempt waits for what is left. A row is a fact: it stays, whatever becomes of the attempt.
 */
import {
  assertStreamName,
  type CallPlace,
  type Clock,
  capture,
  describeThrown,
  type Json,
  PilotageError,
  type Redaction,
  rowBytes,
  type StreamWriter,
} from '#core';
import { type NewStreamRow, patiently } from '#journal';
import type { DriverDeps } from '../loop/driver-deps.ts';
import type { HeldLease } from '../loop/held-lease.ts';

/** How long a row may wait for others. */
const FLUSH_MS = 100;
/** Bytes of JSON, and rows, that wait for nothing. */
const FLUSH_BYTES = 65_536;
const FLUSH_ROWS = 1_000;
/** Bytes of JSON that a tool may be ahead of the store when it does not wait for its writes. */
const MOST_AHEAD = 16_777_216;

/** So many rows that were refused are looked at, whether anybody has heard of them. */
const MOST_REFUSED = 100;

/** What the streams of a run's calls share. Made once a run. */
export class RunStreams {
  readonly #deps: Pick<DriverDeps, 'journal' | 'clock' | 'redaction' | 'onFault'>;
  readonly #lease: Pick<HeldLease, 'run' | 'fence'>;
  /** The append before the next one, which waits for it: between a try and the next nobody else of this run writes. */
  #before: Promise<void> = Promise.resolve();
  /** How many rows each stream has, while that is known: nobody else writes under this fence. */
  #counts: Map<string, number> | undefined;

  constructor(
    deps: Pick<DriverDeps, 'journal' | 'clock' | 'redaction' | 'onFault'>,
    lease: Pick<HeldLease, 'run' | 'fence'>,
  ) {
    this.#deps = deps;
    this.#lease = lease;
  }

  get clock(): Clock {
    return this.#deps.clock;
  }

  get redaction(): Pick<Redaction, 'item'> {
    return this.#deps.redaction;
  }

  onFault(error: unknown): void {
    this.#deps.onFault(error);
  }

  /** @throws PilotageError `lease_lost`, or the error of the store, after it was tried for some seconds. */
  append(place: StreamPlace, rows: readonly NewStreamRow[]): Promise<void> {
    const done = this.#before.then(() => this.#append(place, rows));
    this.#before = unheard(done).catch(() => {});
    return done;
  }

  async #append(place: StreamPlace, rows: readonly NewStreamRow[]): Promise<void> {
    const { run, fence } = this.#lease;
    const { journal } = this.#deps;
    let tries = 0;
    const counts = this.#counts ?? (await patiently(this.clock, () => this.#count()));
    this.#counts = undefined;
    const after = new Map(counts);
    for (const row of rows) if ('value' in row) after.set(row.name, (after.get(row.name) ?? 0) + 1);
    await patiently(this.clock, async () => {
      tries += 1;
      // A store that did not answer may have stored the rows all the same: again they would be there twice.
      if (tries > 1 && (await this.#haveLanded(rows, after))) return;
      await journal.streams.append({ run, fence, ...place, rows });
    });
    this.#counts = after;
  }

  /** Rows of an append land together, so that one of its streams tells. Streams that are only closed are closed again. */
  async #haveLanded(rows: readonly NewStreamRow[], after: ReadonlyMap<string, number>): Promise<boolean> {
    const name = rows.find((row) => 'value' in row)?.name;
    return name !== undefined && (await this.#count()).get(name) === after.get(name);
  }

  async #count(): Promise<Map<string, number>> {
    const streams = await this.#deps.journal.streams.list(this.#lease.run);
    return new Map(streams.map(({ name, rows }) => [name, rows]));
  }
}

export interface StreamPlace extends CallPlace {
  readonly attempt: number;
}

export class CallStreams {
  readonly #run: Pick<RunStreams, 'clock' | 'redaction' | 'append' | 'onFault'>;
  readonly #place: StreamPlace;
  /** Hears of each row. Why nothing is written any more. */
  readonly #onRow: () => PilotageError | undefined;
  #rows: NewStreamRow[] = [];
  #bytes = 0;
  #cancelTimer: (() => void) | undefined;
  #storing: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  readonly #refused: RefusedRow[] = [];

  constructor(
    run: Pick<RunStreams, 'clock' | 'redaction' | 'append' | 'onFault'>,
    place: StreamPlace,
    onRow: () => PilotageError | undefined,
  ) {
    this.#run = run;
    this.#place = place;
    this.#onRow = onRow;
  }

  /** @throws PilotageError `stream_refused`. */
  writer(name: unknown): StreamWriter {
    assertStreamName(name);
    return Object.freeze({
      write: (given: unknown) => this.#write(name, given),
      close: () => this.#add(() => ({ row: { name, closes: true }, bytes: 0 })),
    });
  }

  #write(name: string, given: unknown): Promise<void> {
    return this.#add(() => {
      const value = this.#run.redaction.item(rowValue(name, given));
      const bytes = rowBytes(name, value);
      if (this.#bytes + bytes <= MOST_AHEAD) return { row: { name, value }, bytes };
      const message = `The stream ${JSON.stringify(name)} is written faster than it is stored. Wait for each write: await stream.write(value).`;
      throw new PilotageError('stream_refused', message);
    });
  }

  /** What is wrong with the row is told to whoever waits for it: thrown out of a timer of the tool it would end the process. */
  #add(made: () => { readonly row: NewStreamRow; readonly bytes: number }): Promise<void> {
    try {
      const over = this.#onRow();
      if (over !== undefined) throw over;
      if (this.#failure !== undefined) throw this.#failure.error;
      const { row, bytes } = made();
      return this.#take(row, bytes);
    } catch (error) {
      const refused = RefusedRow.for(error);
      if (this.#refused.length < MOST_REFUSED) this.#refused.push(refused);
      return refused;
    }
  }

  #take(row: NewStreamRow, bytes: number): Promise<void> {
    this.#rows.push(row);
    this.#bytes += bytes;
    if (this.#bytes >= FLUSH_BYTES || this.#rows.length >= FLUSH_ROWS) return unheard(this.#store());
    this.#cancelTimer ??= this.#run.clock.after(FLUSH_MS, () => void unheard(this.#store()));
    return Promise.resolve();
  }

  /** Stores what is left, and tells of rows that were refused without the tool's hearing of it. @throws PilotageError `lease_lost`, or the error of the store: the call has not ended then. */
  async flush(): Promise<void> {
    const unheard = this.#refused.find(({ isHeard }) => !isHeard);
    if (unheard !== undefined) this.#run.onFault(unheard.error);
    await this.#store();
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  #store(): Promise<void> {
    this.#storing ??= this.#storeAll().finally(() => {
      this.#storing = undefined;
    });
    return this.#storing;
  }

  async #storeAll(): Promise<void> {
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    while (this.#rows.length > 0 && this.#failure === undefined) {
      const [rows, bytes] = [this.#rows, this.#bytes];
      this.#rows = [];
      try {
        await this.#run.append(this.#place, rows);
      } catch (error) {
        this.#failure = { error };
        throw error;
      }
      this.#bytes -= bytes;
    }
  }
}

/** Knows whether anybody waits for it: what nobody hears must not end the process, and is not to be lost either. */
class RefusedRow extends Promise<void> {
  isHeard = false;
  error: unknown;

  /** What is made of it is a plain promise. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  static for(error: unknown): RefusedRow {
    const refused = new RefusedRow((_, reject) => reject(error));
    refused.catch(() => {});
    refused.isHeard = false;
    refused.error = error;
    return refused;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is a promise.
  override then<A = void, B = never>(
    resolved?: ((value: undefined) => A | PromiseLike<A>) | null,
    rejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.isHeard = true;
    return super.then(resolved as () => A, rejected);
  }
}

/** @throws PilotageError `stream_refused` for what is not JSON. */
function rowValue(name: string, given: unknown): Json {
  try {
    return capture(given, 'value').json;
  } catch (error) {
    const message = `A row of the stream ${JSON.stringify(name)} must be JSON: ${describeThrown(error)}`;
    throw new PilotageError('stream_refused', message, { cause: error });
  }
}

/** A tool need not wait for it: what nobody hears must not end the process. The end of the attempt hears of it. */
function unheard(done: Promise<void>): Promise<void> {
  done.catch(() => {});
  return done;
}
