/** A receiver of webhooks over real HTTP, which a test can make fail, be slow, or be away. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: what was posted is looked into by each test.
  readonly body: any;
}

export class Receiver {
  readonly received: Received[] = [];
  /** What it answers to the next posts; 200 when it has none. */
  answers: (number | 'hang')[] = [];
  #server: Server | undefined;
  #port = 0;

  get url(): string {
    return `http://127.0.0.1:${this.#port}/hook`;
  }

  get host(): string {
    return `127.0.0.1:${this.#port}`;
  }

  async open(): Promise<this> {
    const server = createServer((request, response) => {
      let text = '';
      request.on('data', (piece) => {
        text += piece;
      });
      request.on('end', () => {
        const answer = this.answers.shift() ?? 200;
        if (answer === 200) this.received.push({ headers: request.headers, text, body: JSON.parse(text) });
        if (answer === 'hang') return;
        response.writeHead(answer).end('x'.repeat(10));
      });
    });
    this.#server = server;
    await new Promise<void>((resolve) => server.listen(this.#port, '127.0.0.1', resolve));
    this.#port = (server.address() as AddressInfo).port;
    return this;
  }

  close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    return new Promise((resolve) => {
      if (server === undefined) return resolve();
      server.close(() => resolve());
      server.closeAllConnections();
    });
  }
}

export async function receiver(): Promise<Receiver> {
  const made = await new Receiver().open();
  onTestFinished(() => made.close());
  return made;
}
