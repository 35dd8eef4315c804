/**
 * Server-sent events from an async iteration. No more than a few kilobytes are taken from the iteration before the reader has read what came before, so that
 * a slow reader fills no memory and holds up nobody else. Between events, comments keep proxies from closing the connection.
 */

export interface ServerEvent {
  /** A text without line ends, such as JSON. */
  readonly data: string;
  readonly event?: string;
  readonly id?: string;
}

/** A piece of a stream: an event, or in a stream `ofBytes` the bytes of one. */
export type StreamPiece = ServerEvent | Uint8Array;

export interface EventStreamOptions {
  /** Headers beside those of every event stream. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The events are bytes of another format, which `headers` name. There are no comments between them. Default false. */
  readonly ofBytes?: boolean;
  /** Called once, when the stream has ended or its reader is gone. It has to make the iteration end. */
  readonly onEnd: () => void;
  /** Makes the last event of a stream that has failed. Absent: the connection is cut. */
  readonly onError?: (error: unknown) => StreamPiece | undefined;
}

const KEEP_ALIVE_MS = 15_000;
/** The least time between two pieces of a stream. The first one is sent at once. */
const GATHER_MS = 10;
/** How much text may wait for a reader before no more events are taken from the iteration. */
const MOST_GATHERED_CHARS = 16_384;
const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // Otherwise proxies that buffer would pass the events on all at once.
  'x-accel-buffering': 'no',
};
const encoder = new TextEncoder();
const KEEP_ALIVE = encoder.encode(':\n\n');

export function eventHeaders({ headers }: Pick<EventStreamOptions, 'headers'>): Record<string, string> {
  return { ...HEADERS, ...headers };
}

/** A response whose body is the events, as they come. */
export function eventStream(events: AsyncIterator<StreamPiece>, options: EventStreamOptions): Response {
  const body = new EventBody(events, options);
  return new Response(body.stream, { headers: eventHeaders(options) });
}

class EventBody {
  readonly stream: ReadableStream<Uint8Array>;
  readonly #events: AsyncIterator<StreamPiece>;
  readonly #options: EventStreamOptions;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #keepAliveTimer: NodeJS.Timeout | undefined;
  /** Events that are to be sent together. Of bytes each character is one. */
  #gathered = '';
  #sendTimer: NodeJS.Timeout | undefined;
  #sentAt = 0;
  /** Set while the iteration waits for a reader that is behind. */
  #goOn: (() => void) | undefined;
  /** All events are gathered: the stream ends once they are sent. */
  #isLast = false;
  #isOver = false;

  constructor(events: AsyncIterator<StreamPiece>, options: EventStreamOptions) {
    this.#events = events;
    this.#options = options;
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
          if (this.#options.ofBytes !== true) {
            this.#keepAliveTimer = setInterval(() => this.#keepAlive(), KEEP_ALIVE_MS);
            this.#keepAliveTimer.unref();
          }
          void this.#gather();
        },
        pull: () => this.#arm(),
        cancel: () => this.#end(),
      },
      { highWaterMark: 1 },
    );
  }

  /** Takes events from the iteration, and waits whenever the reader is behind by `MOST_GATHERED_CHARS`. */
  async #gather(): Promise<void> {
    try {
      while (!this.#isOver) {
        const { done, value } = await this.#events.next();
        if (done === true) break;
        this.#gathered += textOf(value);
        this.#arm();
        if (this.#gathered.length < MOST_GATHERED_CHARS) continue;
        await new Promise<void>((resolve) => {
          this.#goOn = resolve;
        });
      }
      this.#isLast = true;
      this.#arm();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#isOver) return;
    const last = this.#options.onError?.(error);
    if (last === undefined) {
      this.#end();
      this.#controller?.error(error);
      return;
    }
    this.#gathered += textOf(last);
    this.#isLast = true;
    this.#arm();
  }

  /** Sends what is gathered. Events that come soon after the last piece wait a moment for more, since each piece costs more than the events in it. */
  #arm(): void {
    if (this.#isOver || this.#sendTimer !== undefined || (this.#gathered === '' && !this.#isLast)) return;
    if ((this.#controller?.desiredSize ?? 0) <= 0) return;
    const leftMs = this.#sentAt + GATHER_MS - performance.now();
    if (leftMs <= 0 || this.#isLast) this.#send();
    else this.#sendTimer = setTimeout(() => this.#send(), leftMs);
  }

  #send(): void {
    clearTimeout(this.#sendTimer);
    this.#sendTimer = undefined;
    const piece = this.#gathered;
    this.#gathered = '';
    this.#sentAt = performance.now();
    const bytes = this.#options.ofBytes === true ? Buffer.from(piece, 'latin1') : encoder.encode(piece);
    if (bytes.length > 0) this.#controller?.enqueue(bytes);
    this.#goOn?.();
    this.#goOn = undefined;
    // `enqueue` may have called `#arm`, which may have ended the stream.
    if (!this.#isLast || this.#isOver) return;
    this.#end();
    this.#controller?.close();
  }

  /** A reader that has not read the last event yet gets no comment. */
  #keepAlive(): void {
    if ((this.#controller?.desiredSize ?? 0) > 0) this.#controller?.enqueue(KEEP_ALIVE);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#keepAliveTimer);
    clearTimeout(this.#sendTimer);
    this.#goOn?.();
    this.#options.onEnd();
    // An iteration that has not begun would never end by itself.
    void this.#events.return?.()?.catch(() => {});
  }
}

function textOf(piece: StreamPiece): string {
  if (piece instanceof Uint8Array) return Buffer.from(piece.buffer, piece.byteOffset, piece.length).toString('latin1');
  const { data, event, id } = piece;
  if (event === undefined && id === undefined) return `data: ${data}\n\n`;
  return `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}data: ${data}\n\n`;
}
