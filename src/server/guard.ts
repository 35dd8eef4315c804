/** The checks that every request has to pass first: to which host it was sent, from which page, and how large it is. */
import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import { remoteAddress } from './connection.ts';
import type { ServerEnv } from './part.ts';
import { problem, RequestRefused } from './problem.ts';

export interface GuardOptions {
  /**
   * The names by which the server may be reached, as in the header `Host`: with a port, or without one for any port. Default: any name; without
   * `authenticate` only those of this machine.
   */
  readonly hosts?: readonly string[];
  /**
   * Origins whose pages may send requests from a browser, such as `https://app.example.com`, or `http://localhost:*` for any port, beside the server's
   * own. Default: none.
   */
  readonly origins?: readonly string[];
  /** The largest body of a request, in bytes. Default 4,194,304. */
  readonly maxBodyBytes?: number;
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];
const MAX_BODY_BYTES = 4_194_304;
/** Set by proxies, and by platforms that name no connection. What they say of where a request comes from, a client may have written. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip'];
const LOCAL_ONLY =
  'Without authenticate the server answers this machine only, and no proxy. Give createHandler authenticate, such as bearerKeys.';
const BODILESS = ['GET', 'HEAD', 'TRACE'];
const EXPOSED = ['x-vercel-ai-ui-message-stream', 'mcp-session-id', 'www-authenticate', 'retry-after', 'location'];

type Guard = MiddlewareHandler<ServerEnv>;

/** The checks, in their order. @param isOpen true when requests are not authenticated: then only this machine is answered. */
export function guards(options: GuardOptions, isOpen: boolean): readonly Guard[] {
  const hosts = options.hosts ?? (isOpen ? LOOPBACK : undefined);
  const maxSize = options.maxBodyBytes ?? MAX_BODY_BYTES;
  const isNamed = namedIn(options.origins ?? []);
  return [hostGuard(hosts, isOpen), originGuard(isNamed), corsGuard(isNamed), sizeGuard(maxSize)];
}

/** Keeps out pages whose own name leads to this server (DNS rebinding) and, when requests are not authenticated, other machines. */
function hostGuard(hosts: readonly string[] | undefined, isOpen: boolean): Guard {
  return async (context, next) => {
    const host = context.req.header('host') ?? new URL(context.req.url).host;
    const name = host.replace(/:\d+$/, '').toLowerCase();
    if (
      hosts !== undefined &&
      !hosts.some((each) => each.toLowerCase() === host.toLowerCase() || each.toLowerCase() === name)
    )
      return problem(new RequestRefused('forbidden', 'The server is not reached by this name (header Host).'));
    if (isOpen && (!isFromHere(context.env) || FORWARDED.some((name) => context.req.header(name) !== undefined)))
      return problem(new RequestRefused('forbidden', LOCAL_ONLY));
    return next();
  };
}

/** Whether the request comes from this machine, as far as Node's own server tells. */
function isFromHere(env: unknown): boolean {
  const address = remoteAddress(env);
  return address === undefined || address === '::1' || /^(::ffff:)?127\./.test(address);
}

function namedIn(origins: readonly string[]): (origin: string) => boolean {
  const anyPort = origins.filter((each) => each.endsWith(':*')).map((each) => each.slice(0, -2));
  return (origin) => origins.includes(origin) || anyPort.includes(origin.replace(/:\d+$/, ''));
}

function originGuard(isNamed: (origin: string) => boolean): Guard {
  return async (context, next) => {
    const origin = context.req.header('origin');
    if (origin === undefined || isNamed(origin) || isOwn(origin, context.req.header('host'))) return next();
    return problem(new RequestRefused('forbidden', 'Pages of this origin may not ask the server (header Origin).'));
  };
}

/** No browser needs headers of CORS for what pages of the server itself post, nor does a cache that keeps answers apart by them: it keeps none of a POST. */
function corsGuard(isNamed: (origin: string) => boolean): Guard {
  const guard: Guard = cors({
    origin: (origin) => (isNamed(origin) ? origin : undefined),
    exposeHeaders: EXPOSED,
    credentials: true,
    maxAge: 600,
  });
  return (context, next) => {
    const { method } = context.req;
    return method === 'POST' && !isNamed(context.req.header('origin') ?? '') ? next() : guard(context, next);
  };
}

function isOwn(origin: string, host: string | undefined): boolean {
  return host !== undefined && URL.parse(origin)?.host === host;
}

function tooLarge(most: number): Response {
  return problem(new RequestRefused('request_too_large', `The body of a request has at most ${most} bytes.`));
}

/** What it tells of the size of its body; `undefined`: the size is not told before. */
function toldSize({ headers }: Request): number | undefined {
  const length = headers.get('content-length');
  return length && !headers.get('transfer-encoding') ? Number(length) : undefined;
}

function sizeGuard(most: number): Guard {
  return ({ req: { raw } }, next) => ((toldSize(raw) ?? 0) > most ? Promise.resolve(tooLarge(most)) : next());
}

/**
 * A body whose size is not told before is read here, as far as it may be; the request has it whole from then on. Asked after everything else: nothing is
 * kept for whoever is not let in.
 */
export function bodyGuard({ maxBodyBytes: most = MAX_BODY_BYTES }: GuardOptions): Guard {
  return async (context, next) => {
    const { raw } = context.req;
    if (BODILESS.includes(raw.method) || toldSize(raw) !== undefined) return next();
    const body = raw.body === null ? new Uint8Array() : await bytesOf(raw.body, most);
    if (body === undefined) return tooLarge(most);
    const { url, method, headers, signal } = raw;
    context.req.raw = new Request(url, { method, headers, signal, ...(body.length === 0 ? {} : { body }) });
    return next();
  };
}

/** @returns `undefined` for more than `most` bytes. @throws RequestRefused `request_invalid` for a body that breaks off. */
async function bytesOf(body: ReadableStream<Uint8Array>, most: number): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const parts: Uint8Array[] = [];
  let size = 0;
  try {
    for await (const part of body) {
      size += part.length;
      if (size > most) return undefined;
      parts.push(part);
    }
  } catch {
    throw new RequestRefused('request_invalid', 'The body of the request broke off.');
  }
  return new Uint8Array(Buffer.concat(parts));
}
