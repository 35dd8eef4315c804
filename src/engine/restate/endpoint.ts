/** What Restate calls: an HTTP/2 server with the one handler. */
import { createServer, type Http2Server, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { LogMetadata, ObjectContext } from '@restatedev/restate-sdk';
import { describeThrown, PilotageError } from '#core';
import type { Advance, Advanced } from '#runtime';

export interface EndpointOptions {
  readonly service: string;
  readonly advance: Advance;
  readonly host: string;
  readonly port: number;
  readonly sharesPort: boolean;
}

export interface Endpoint {
  readonly port: number;
  /** Takes nothing more, and resolves when Restate has all answers. */
  close(): Promise<void>;
}

/** What the one step of the handler records: in how many milliseconds the run goes on, and when that is. */
type Recorded = { readonly delayMs: number; readonly at: number } | { readonly ended: boolean };

/** A timer that rings within this time of another one is the same. */
const SAME_MS = 50;
const HANDLER = 'advance';
const NOTHING = new Uint8Array();
/** No effect takes longer: Restate would have it done once more elsewhere, beside the one that is under way. */
const LONGEST_MS = 7 * 24 * 60 * 60_000;
/**
 * A process that is gone for good must not keep its runs: about half a minute, then the message is dropped. That costs nothing, since those who work
 * find the run in the journal.
 */
const RETRIES = { initialInterval: 50, exponentiationFactor: 2, maxInterval: 1_000, maxAttempts: 35 } as const;

/** @throws PilotageError `package_missing`, or what the server throws when the port is taken. */
export async function openEndpoint(options: EndpointOptions): Promise<Endpoint> {
  const sdk = await loadSdk();
  const { service } = options;
  const advance = sdk.handlers.object.exclusive(
    {
      ...{ inactivityTimeout: LONGEST_MS, abortTimeout: LONGEST_MS, journalRetention: 0 },
      retryPolicy: { ...RETRIES, onMaxAttempts: 'kill' },
    },
    (context: ObjectContext) => handle(context, options),
  );
  const handler = sdk.createEndpointHandler({
    services: [sdk.object({ name: service, handlers: { [HANDLER]: advance } })],
    logger: warn,
  });
  return listen(createServer(handler), options);
}

/** The package tells of each request, too. What it could not do for one is worth a warning. */
function warn({ level, context }: LogMetadata, ...words: readonly unknown[]): void {
  if (context === undefined || (level !== 'warn' && level !== 'error')) return;
  process.emitWarning(`Restate: ${words.map((word) => describeThrown(word)).join(' ')}`);
}

async function handle(context: ObjectContext, { service, advance }: EndpointOptions): Promise<void> {
  const timer = await context.get<number>('timer');
  const next = await context.run(HANDLER, async () => recorded(await advance(context.key), timer));
  if (!('delayMs' in next)) {
    if (next.ended && timer !== null) context.clear('timer');
    return;
  }
  const { delayMs, at } = next;
  context.genericSend({ service, method: HANDLER, key: context.key, parameter: NOTHING, delay: delayMs });
  if (delayMs > 0) context.set('timer', at);
}

/** @param timer when the run is woken anyway. */
function recorded(advanced: Advanced, timer: number | null): Recorded {
  if (advanced.next === 'done') return { ended: true };
  if (advanced.next === 'again') return { delayMs: 0, at: 0 };
  const at = advanced.next === 'busy' ? advanced.until : advanced.at;
  if (at === undefined) return { ended: false };
  const now = Date.now();
  if (timer !== null && timer > now && Math.abs(timer - at) < SAME_MS) return { ended: false };
  return { delayMs: Math.max(1, Math.ceil(at - now)), at };
}

async function listen(server: Http2Server, { port, host, sharesPort }: EndpointOptions): Promise<Endpoint> {
  const sessions = new Set<ServerHttp2Session>();
  const streams = new Set<ServerHttp2Stream>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
    // A connection that breaks takes its requests with it, which Restate sends again.
    session.on('error', () => undefined);
  });
  server.on('stream', (stream) => {
    streams.add(stream);
    stream.on('close', () => streams.delete(stream));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ port, host, reusePort: sharesPort }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : port,
    close: async () => {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      // Restate leaves its side of a request open when it has the answer.
      for (const stream of streams) {
        if (stream.writableFinished) stream.close();
        else stream.once('finish', () => stream.close());
      }
      // Each says that no more requests are taken, and ends with the last answer.
      for (const session of sessions) session.close();
      await closed;
    },
  };
}

/** @throws PilotageError `package_missing`. */
async function loadSdk(): Promise<typeof import('@restatedev/restate-sdk')> {
  try {
    return await import('@restatedev/restate-sdk');
  } catch (cause) {
    const name = '@restatedev/restate-sdk';
    const message = `To carry out runs under Restate needs the package ${name}: run \`npm install ${name}\`.`;
    throw new PilotageError('package_missing', message, { data: { package: name }, cause });
  }
}
