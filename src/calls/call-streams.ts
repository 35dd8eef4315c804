/**
 * The streams that one attempt of a call writes. Rows are stored together, a moment after they were written, or when there are many; the end of
 * the attempt waits for what is left. A row is a fact: it stays, whatever becomes of the attempt.
 */
import {
  assertStreamName,
  type CallPlace,
  type Clock,
  capture,
  PilotageError,
  type Redaction,
  rowBytes,
  type StreamWriter,
} from '#core';
import { type Journal, type NewStreamRow, patiently } from '#journal';
import type { DriverDeps } from '../loop/driver-deps.ts';
import type { HeldLease } from '../loop/held-lease.ts';

/** How long a row may wait for others. */
const FLUSH_MS = 100;
/** Bytes of JSON, and rows, that wait for nothing. */
const FLUSH_BYTES = 65_536;
const FLUSH_ROWS = 1_000;
/** Bytes of JSON that a tool may be ahead of the store when it does not wait for its writes. */
const MOST_AHEAD = 16_777_216;

/** What the streams of a run's calls share. Made once a run. */
export class RunStreams {
  readonly #deps: Pick<DriverDeps, 'journal' | 'clock' | 'redaction'>;
  readonly #lease: Pick<HeldLease, 'run' | 'fence'>;

  constructor(deps: Pick<DriverDeps, 'journal' | 'clock' | 'redaction'>, lease: Pick<HeldLease, 'run' | 'fence'>) {
    this.#deps = deps;
    this.#lease = lease;
  }

  get clock(): Clock {
    return this.#deps.clock;
  }

  get redaction(): Pick<Redaction, 'item'> {
    return this.#deps.redaction;
  }

  /** @throws PilotageError `lease_lost`, or the error of the store, after it was tried for some seconds. */
  append(place: StreamPlace, rows: readonly NewStreamRow[]): Promise<void> {
    const { run, fence } = this.#lease;
    const { streams }: Pick<Journal, 'streams'> = this.#deps.journal;
    return patiently(this.clock, () => streams.append({ run, fence, ...place, rows }));
  }
}

export interface StreamPlace extends CallPlace {
  readonly attempt: number;
}

export class CallStreams {
  readonly #run: Pick<RunStreams, 'clock' | 'redaction' | 'append'>;
  readonly #place: StreamPlace;
  /** Hears of each row. Why nothing is written any more. */
  readonly #onRow: () => PilotageError | undefined;
  #rows: NewStreamRow[] = [];
  #bytes = 0;
  #cancelTimer: (() => void) | undefined;
  #storing: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;

  constructor(
    run: Pick<RunStreams, 'clock' | 'redaction' | 'append'>,
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
      close: () => this.#add({ name, closes: true }, 0),
    });
  }

  /** What cannot be a row is refused at once, also when nobody waits for it. */
  #write(name: string, given: unknown): Promise<void> {
    const value = this.#run.redaction.item(capture(given, 'value').json);
    const bytes = rowBytes(name, value);
    if (this.#bytes + bytes <= MOST_AHEAD) return this.#add({ name, value }, bytes);
    const message = `The stream ${JSON.stringify(name)} is written faster than it is stored. Wait for each write: await stream.write(value).`;
    throw new PilotageError('stream_refused', message);
  }

  #add(row: NewStreamRow, bytes: number): Promise<void> {
    const over = this.#onRow();
    if (over !== undefined) return unheard(Promise.reject(over));
    if (this.#failure !== undefined) return unheard(Promise.reject(this.#failure.error));
    this.#rows.push(row);
    this.#bytes += bytes;
    if (this.#bytes >= FLUSH_BYTES || this.#rows.length >= FLUSH_ROWS) return unheard(this.#store());
    this.#cancelTimer ??= this.#run.clock.after(FLUSH_MS, () => void unheard(this.#store()));
    return Promise.resolve();
  }

  /** Stores what is left. @throws PilotageError `lease_lost`, or the error of the store: the call has not ended then. */
  async flush(): Promise<void> {
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

/** A tool need not wait for it: what nobody hears must not end the process. The end of the attempt hears of it. */
function unheard(done: Promise<void>): Promise<void> {
  done.catch(() => {});
  return done;
}
