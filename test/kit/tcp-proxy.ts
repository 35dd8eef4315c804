/** A TCP proxy on loopback that fails as networks do: it cuts connections at a byte, lets nothing through, or leads to another server. */
import { connect, createServer, type Server, type Socket } from 'node:net';

export type Direction = 'up' | 'down';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
}

export class TcpProxy {
  readonly #listener: Server;
  readonly #pairs = new Set<Pair>();
  #target: number;
  #cut: { readonly direction: Direction; left: number } | undefined;
  #isMute = false;
  #tape: Record<Direction, Buffer[]> = { up: [], down: [] };
  #rewrite: ((bytes: Buffer) => Buffer | undefined) | undefined;

  private constructor(listener: Server, target: number) {
    this.#listener = listener;
    this.#target = target;
  }

  /** @param target the port that it leads to. */
  static async start(target: number): Promise<TcpProxy> {
    const listener = createServer({ allowHalfOpen: true });
    const proxy = new TcpProxy(listener, target);
    listener.on('connection', (client) => proxy.#accept(client));
    await new Promise<void>((resolve) => listener.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    const address = this.#listener.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  get url(): string {
    return `postgres://postgres@127.0.0.1:${this.port}/postgres`;
  }

  /** How many connections there are. */
  get connections(): number {
    return this.#pairs.size;
  }

  /** From now on all bytes are kept, until `played` gives them. */
  record(): void {
    this.#tape = { up: [], down: [] };
  }

  played(direction: Direction): Buffer {
    return Buffer.concat(this.#tape[direction]);
  }

  /** Passes on so many more bytes in that direction, and cuts the connection then, once. 0: with the next byte, which does not arrive. */
  cutAfter(direction: Direction, bytes: number): void {
    this.#cut = { direction, left: bytes };
  }

  /** No cut is due any more. @returns whether one was. */
  spare(): boolean {
    const was = this.#cut !== undefined;
    this.#cut = undefined;
    return was;
  }

  /** Connections stay, and new ones are taken, but nothing is passed on any more. */
  mute(): void {
    this.#isMute = true;
  }

  /** All that was swallowed is lost: its connections are cut. */
  unmute(): void {
    this.#isMute = false;
    this.cutAll();
  }

  /** What is sent upward is answered by this in the place of the server, where it gives an answer. */
  answer(rewrite: ((bytes: Buffer) => Buffer | undefined) | undefined): void {
    this.#rewrite = rewrite;
  }

  /** New connections lead there; all that there are, are cut. */
  leadTo(port: number): void {
    this.#target = port;
    this.cutAll();
  }

  cutAll(): void {
    for (const pair of this.#pairs) this.#end(pair);
  }

  async close(): Promise<void> {
    this.cutAll();
    await new Promise<void>((resolve) => this.#listener.close(() => resolve()));
  }

  #accept(client: Socket): void {
    const server = connect({ port: this.#target, host: '127.0.0.1', noDelay: true });
    client.setNoDelay(true);
    const pair = { client, server };
    this.#pairs.add(pair);
    for (const socket of [client, server]) socket.on('error', () => this.#end(pair)).on('close', () => this.#end(pair));
    client.on('data', (bytes) => this.#pass(pair, 'up', bytes));
    server.on('data', (bytes) => this.#pass(pair, 'down', bytes));
    client.on('end', () => this.#isMute || server.end());
    server.on('end', () => this.#isMute || client.end());
  }

  #pass(pair: Pair, direction: Direction, bytes: Buffer): void {
    if (this.#isMute) return;
    const answer = direction === 'up' ? this.#rewrite?.(bytes) : undefined;
    if (answer !== undefined) return void pair.client.write(answer);
    const to = direction === 'up' ? pair.server : pair.client;
    this.#tape[direction].push(bytes);
    const cut = this.#cut;
    if (cut?.direction !== direction) return void to.write(bytes);
    if (bytes.length < cut.left) {
      cut.left -= bytes.length;
      return void to.write(bytes);
    }
    this.#cut = undefined;
    // What was passed on arrives before the end does.
    to.end(bytes.subarray(0, cut.left), () => this.#end(pair));
  }

  #end(pair: Pair): void {
    if (!this.#pairs.delete(pair)) return;
    pair.client.destroy();
    pair.server.destroy();
  }
}
