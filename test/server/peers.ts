/** Agents of others: processes with the server of the SDK, and a way to them on which answers are lost. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { builtFile } from '../kit/built.ts';
import { bear } from '../kit/lives.ts';

export interface Peer {
  readonly url: string;
  log(): Promise<readonly string[]>;
}

/** Starts a program of this folder that says at which port it listens. */
export async function programAt(
  file: string,
  ...args: readonly string[]
): Promise<{ readonly url: string; readonly port: number; kill(): Promise<unknown> }> {
  const program = builtFile(`test/server/${file}`);
  const [folder = '-', ...rest] = args;
  const { promise, resolve } = Promise.withResolvers<number>();
  const { child, end } = bear({ program, folder, args: rest }, (line) => {
    if (line.startsWith('port ')) resolve(Number(line.slice(5)));
  });
  end.catch(() => {});
  const kill = () => {
    child.kill('SIGKILL');
    return end.catch(() => {});
  };
  onTestFinished(async () => void (await kill()));
  const port = await Promise.race([promise, end.then(() => Promise.reject(new Error('The server has ended.')))]);
  return { url: `http://127.0.0.1:${port}`, port, kill };
}

export async function sdkPeer(binding: string): Promise<Peer> {
  const { url } = await programAt('sdk-agent-child.ts', '-', binding);
  return { url, log: async () => (await (await fetch(`${url}/log`)).json()) as string[] };
}

/** What it passes on is done, but of the first message that is sent through it the answer is lost. */
export async function lossyWay(to: string): Promise<string> {
  let isLost = false;
  const server = createServer(async (request, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces);
    const { host: _, connection: __, 'content-length': ___, ...headers } = request.headers as Record<string, string>;
    const init = { method: request.method ?? 'GET', headers, ...(body.length > 0 && { body }) };
    const answer = await fetch(`${to}${request.url}`, init);
    const text = await answer.text();
    const isSend = /message:send/.test(request.url ?? '') || body.includes('"SendMessage"');
    if (isSend && !isLost) {
      isLost = true;
      request.socket.destroy();
      return;
    }
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' }).end(text);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
