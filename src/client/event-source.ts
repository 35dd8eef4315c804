/** Server-sent events over `fetch`, which sends headers: connected again where the connection was cut, from the last event on. */
import { ClientError, clientErrorOf, type Http, Patience } from './http.ts';

export interface ReceivedEvent {
  readonly data: unknown;
  readonly id?: string;
}

interface Message {
  readonly event: string;
  readonly data: string;
  readonly id: string | undefined;
}

export interface SourceOptions {
  readonly query?: Readonly<Record<string, unknown>>;
  /** The id of the event before the first one. */
  readonly after?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Is called each time that a connection begins after the first one. */
  readonly onAgain?: () => void;
}

/** Milliseconds. A server that keeps a connection for so long is there; a server that cuts all of them at once is not. */
const LONG_MS = 2_000;

/** Ends when the server says so, or the signal is aborted. @throws ClientError. */
export async function* receive(http: Http, path: string, options: SourceOptions): AsyncGenerator<ReceivedEvent, void> {
  const { query, signal, onAgain } = options;
  let { after } = options;
  const patience = new Patience(http.patienceMs);
  // Leaving the iteration early ends the request, too.
  const left = new AbortController();
  const leave = (): void => left.abort();
  if (signal?.aborted === true) return;
  signal?.addEventListener('abort', leave);
  try {
    for (let connections = 0; !left.signal.aborted; connections += 1) {
      if (connections > 0) onAgain?.();
      let begunAt = Number.POSITIVE_INFINITY;
      try {
        const headers = { accept: 'text/event-stream', ...(after === undefined ? {} : { 'last-event-id': after }) };
        const response = await http.response(path, {
          headers,
          again: false,
          signal: left.signal,
          ...(query && { query }),
        });
        if (response.status === 204) return;
        begunAt = performance.now();
        for await (const { event, data, id } of messagesOf(response)) {
          patience.found();
          if (event === 'end') return;
          if (event === 'error') throw errorIn(data);
          after = id ?? after;
          yield { data: JSON.parse(data), ...(id === undefined ? {} : { id }) };
        }
        throw new ClientError('connection_failed', 'The connection was cut.');
      } catch (error) {
        if (left.signal.aborted) return;
        // A server whose connections hold is there, also while nothing happens.
        if (performance.now() - begunAt >= LONG_MS) patience.found();
        await patience.over(error, left.signal);
      }
    }
  } finally {
    signal?.removeEventListener('abort', leave);
    leave();
  }
}

function errorIn(data: string): ClientError {
  const problem = JSON.parse(data) as { readonly status?: number };
  return clientErrorOf(problem, problem.status);
}

/** @throws ClientError `connection_failed`. */
async function* messagesOf(response: Response): AsyncGenerator<Message, void> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((cause: unknown) => {
        throw new ClientError('connection_failed', 'The connection was cut.', { cause });
      });
      if (done) return;
      const blocks = `${rest}${value}`.split('\n\n');
      rest = blocks.pop() ?? '';
      for (const block of blocks) {
        const message = messageIn(block);
        if (message !== undefined) yield message;
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

function messageIn(block: string): Message | undefined {
  let event = 'message';
  let id: string | undefined;
  const data: string[] = [];
  for (const line of block.split('\n')) {
    const [, field, value = ''] = /^([^:]+):? ?(.*)$/s.exec(line) ?? [];
    if (field === 'data') data.push(value);
    else if (field === 'event') event = value;
    else if (field === 'id') id = value;
  }
  return data.length === 0 ? undefined : { event, data: data.join('\n'), id };
}
