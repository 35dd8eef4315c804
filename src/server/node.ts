/** Serves a handler by Node's own `http`. */
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { assertOptions, type OptionShape, PilotageError } from '#core';
import type { Handler } from './handler.ts';

export interface ServeOptions {
  /** Default 4400; 0 for any free port. */
  readonly port?: number;
  /** The address to listen at. Default `127.0.0.1`: this machine alone. */
  readonly host?: string;
  /** How long a whole request may take to arrive, in milliseconds. Default 30,000. It does not limit what is streamed to a client. */
  readonly requestTimeoutMs?: number;
}

export interface Served {
  readonly port: number;
  readonly url: string;
  readonly server: Server;
  /** Ends all connections. */
  close(): Promise<void>;
}

const OPTIONS: OptionShape<ServeOptions> = { port: 'whole?', host: 'text?', requestTimeoutMs: 'count?' };
const DEFAULT_PORT = 4_400;
const REQUEST_TIMEOUT_MS = 30_000;
const LOOPBACK = '127.0.0.1';

/** @throws PilotageError `invalid_config` when the server cannot listen at the port. */
export async function serve(handler: Handler, options: ServeOptions = {}): Promise<Served> {
  assertOptions('serve', options, OPTIONS);
  const { port = DEFAULT_PORT, host = LOOPBACK, requestTimeoutMs = REQUEST_TIMEOUT_MS } = options;
  const serverOptions = {
    requestTimeout: requestTimeoutMs,
    headersTimeout: requestTimeoutMs,
    connectionsCheckingInterval: 1_000,
  };
  const closing = new AbortController();
  // By this signal parts know that the server closes a connection, and not its client.
  const fetch = (request: Request, env: object): Promise<Response> =>
    handler(request, { ...env, closing: closing.signal });
  const server = createAdaptorServer({ fetch, serverOptions, overrideGlobalObjects: false }) as Server;
  try {
    await new Promise<void>((resolve, reject) => server.once('error', reject).listen(port, host, resolve));
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    const message = `Nothing can listen at port ${port} of ${host} (${why}). Give another port or host.`;
    throw new PilotageError('invalid_config', message, { cause: error });
  }
  const listening = (server.address() as AddressInfo).port;
  return {
    port: listening,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${listening}`,
    server,
    close: () =>
      new Promise((resolve) => {
        closing.abort();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
