/** The small HTTP server of a worker: whether it lives, whether it is ready for runs, and its counts. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { UsageError } from './terminal.ts';

export interface Health {
  /** Why it takes no runs now; `undefined`: it does. */
  reason(): string | undefined;
  metrics(): string;
}

export interface HealthServer {
  readonly port: number;
  close(): void;
}

interface Place {
  readonly port: number;
  readonly host: string;
}

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

/** @throws UsageError when the port cannot be had. */
export async function serveHealth({ port, host }: Place, health: Health): Promise<HealthServer> {
  const server = createServer((request, response) => answer(request, response, health));
  try {
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject).listen(port, host, resolve);
    });
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    throw new UsageError(`Nothing can listen at port ${port} of ${host} (${why}). Give another --port or --host.`, {
      cause: error,
    });
  }
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function answer({ method, url = '' }: IncomingMessage, response: ServerResponse, health: Health): void {
  const isRead = method === 'GET' || method === 'HEAD';
  const { status, type, body } = isRead
    ? answerTo(url.split('?')[0] ?? '', health)
    : json(405, { error: 'Only GET and HEAD are answered here.' });
  response.writeHead(status, { 'content-type': type, 'cache-control': 'no-store', ...(isRead ? {} : ALLOW) });
  response.end(body);
}

const ALLOW = { allow: 'GET, HEAD' };

function answerTo(path: string, health: Health): Answer {
  switch (path) {
    case '/healthz':
      return json(200, { alive: true });
    case '/readyz': {
      const reason = health.reason();
      return reason === undefined ? json(200, { ready: true }) : json(503, { ready: false, reason });
    }
    case '/metrics':
      return { status: 200, type: 'text/plain; version=0.0.4; charset=utf-8', body: health.metrics() };
    default:
      return json(404, { error: 'There are /healthz, /readyz and /metrics.' });
  }
}

function json(status: number, value: object): Answer {
  return { status, type: 'application/json', body: `${JSON.stringify(value)}\n` };
}
