/**
 * Server-sent events from what comes of an async iteration. A reader that is slow is waited for: nothing is taken from the iteration before the
 * last event was read, so that it holds up nobody else. Between events a comment keeps proxies from closing the connection.
 */

export interface ServerEvent {
  /** One text in place of several lines: JSON has no line ends. */
  readonly data: string;
  readonly event?: string;
  readonly id?: string;
}

export interface EventStreamOptions {
  /** Headers beside those of every event stream. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Is called once, when the stream has ended or its reader is gone. The iteration has to end by it. */
  readonly onEnd: () => void;
  /** The last event after one that could not be made. Absent: the connection is cut. */
  readonly onError?: (error: unknown) => ServerEvent | undefined;
}

const KEEP_ALIVE_MS = 15_000;
const HEADERS = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache, no-transform',
  // Proxies that gather what they pass on make a stream of one piece.
  'x-accel-buffering': 'no',
};
const encoder = new TextEncoder();
const KEEP_ALIVE = encoder.encode(':\n\n');

export function eventHeaders({ headers }: Pick<EventStreamOptions, 'headers'>): Record<string, string> {
  return { ...HEADERS, ...headers };
}

/** A response whose body are the events, as they come. */
export function eventStream(events: AsyncIterator<ServerEvent>, options: EventStreamOptions): Response {
  const body = new EventBody(events, options);
  return new Response(body.stream, { headers: eventHeaders(options) });
}

class EventBody {
  readonly stream: ReadableStream<Uint8Array>;
  readonly #events: AsyncIterator<ServerEvent>;
  readonly #options: EventStreamOptions;
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor(events: AsyncIterator<ServerEvent>, options: EventStreamOptions) {
    this.#events = events;
    this.#options = options;
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
          this.#timer = setInterval(() => this.#keepAlive(), KEEP_ALIVE_MS);
          this.#timer.unref();
        },
        pull: () => this.#pull(),
        cancel: () => this.#end(),
      },
      { highWaterMark: 1 },
    );
  }

  async #pull(): Promise<void> {
    try {
      const { done, value } = await this.#events.next();
      if (this.#isOver) return;
      if (done !== true) return this.#send(value);
      this.#end();
      this.#controller?.close();
    } catch (error) {
      if (this.#isOver) return;
      const last = this.#options.onError?.(error);
      if (last !== undefined) this.#send(last);
      this.#end();
      if (last === undefined) this.#controller?.error(error);
      else this.#controller?.close();
    }
  }

  #send({ data, event, id }: ServerEvent): void {
    const head = `${id === undefined ? '' : `id: ${id}\n`}${event === undefined ? '' : `event: ${event}\n`}`;
    this.#controller?.enqueue(encoder.encode(`${head}data: ${data}\n\n`));
  }

  /** Not for a reader that has not read the last one yet. */
  #keepAlive(): void {
    if ((this.#controller?.desiredSize ?? 0) > 0) this.#controller?.enqueue(KEEP_ALIVE);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearInterval(this.#timer);
    this.#options.onEnd();
    // An iteration that has not begun would never end by itself.
    void this.#events.return?.()?.catch(() => {});
  }
}
