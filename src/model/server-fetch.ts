/** The fetch of a model server: a reply has an end, and the request, with its key, goes to no other server. */
import { systemClock } from '#core';
import { BodyLimits } from './body-limits.ts';
import { MisdirectedRequest } from './failure.ts';
import { paceOf } from './pace.ts';

/** The most bytes of one reply on the wire. A streamed token takes some 300 bytes. */
export const MAX_REPLY_BYTES: number = 64 * 1024 * 1024;
const MAX_HOPS = 3;
const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Redirect statuses after which the request keeps its method and body. */
const SAME_REQUEST: ReadonlySet<number> = new Set([307, 308]);

/**
 * @param isStream the request asks for a stream of events; a reply with the status of an error is not a stream.
 * @throws MisdirectedRequest; reading the body throws a BrokenReply when it is over `maxReplyBytes`, or holds JSON that is too large.
 */
export function serverFetch(maxReplyBytes: number, isStream: boolean): typeof globalThis.fetch {
  return async (input, init) => {
    let url = new URL(input instanceof Request ? input.url : input);
    for (let hops = 0; ; hops += 1) {
      const response = await fetch(url, { ...init, redirect: 'manual' });
      if (!REDIRECTS.has(response.status))
        return bounded(response, new BodyLimits(maxReplyBytes, isStream && response.ok));
      // Nobody wants to know what else it says, nor whether it can be stopped.
      response.body?.cancel().catch(() => undefined);
      url = nextUrl(url, response, hops);
    }
  };
}

function nextUrl(from: URL, { status, headers }: Response, hops: number): URL {
  const location = headers.get('location') ?? '';
  const to = URL.canParse(location, from.href) ? new URL(location, from.href) : undefined;
  const isSameServer = to?.origin === from.origin;
  if (to !== undefined && isSameServer && SAME_REQUEST.has(status) && hops < MAX_HOPS) return to;
  const where = to === undefined ? 'nowhere' : isSameServer ? `${to.origin}${to.pathname}` : to.origin;
  const why = isSameServer ? `HTTP ${status}, ${hops + 1} in a row` : 'the key would go there too';
  throw new MisdirectedRequest(
    `The model server at ${from.origin} sends the request on to ${where}, and it was not followed (${why}). Set the base URL to where the server is.`,
  );
}

function bounded(response: Response, limits: BodyLimits): Response {
  if (response.body === null) return response;
  const { status, statusText, headers } = response;
  return new Response(within(limits, response.body.getReader()), { status, statusText, headers });
}

function within(limits: BodyLimits, reader: ReadableStreamDefaultReader<Uint8Array>): ReadableStream<Uint8Array> {
  const pace = paceOf(systemClock);
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await reader.read();
      try {
        if (done) limits.end();
        else limits.add(value);
      } catch (error) {
        reader.cancel(error).catch(() => undefined);
        throw error;
      }
      if (done) return controller.close();
      await pace.take(value.byteLength);
      controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
}
