/** Posts one message to an address that a user has given. Private addresses are refused, unless the program allows them. */
import { createHmac } from 'node:crypto';
import { describeThrown, PilotageError } from '#core';
import { addressesOf, ask, type FetchPorts, SYSTEM } from '#runtime/guarded-request';

export interface PostOptions {
  /**
   * Hosts that may have private addresses, and be posted to over `http:`. Each is a name or an address, with a port (`hooks.internal:8080`) or for any port.
   * Default: none.
   */
  readonly allowHosts?: readonly string[];
  /** How long one post may take, in milliseconds. Default 15,000. */
  readonly timeoutMs?: number;
}

export interface HookPost {
  readonly id: string;
  readonly body: string;
  readonly type: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly secret: string;
}

/** Why a post has failed. */
export interface PostFailure {
  readonly why: string;
  /** The receiver wants no more posts (status 410). */
  readonly isGone: boolean;
  readonly retryAfterMs?: number;
}

export const TIMEOUT_MS = 15_000;
export const MAX_RETRY_AFTER_MS = 3_600_000;

/** @throws PilotageError `url_refused` for an address that is never posted to. */
export async function assertPostable(
  given: string,
  { allowHosts = [] }: PostOptions,
  ports: FetchPorts = SYSTEM,
): Promise<{ readonly url: URL; readonly addresses: Awaited<ReturnType<typeof addressesOf>> }> {
  const url = URL.parse(given);
  if (url === null) throw refused('It is no URL. Give one that begins with https://');
  const { hostname, host, protocol, username, password } = url;
  const isAllowed = allowHosts.some((each) => [hostname, host].includes(each.toLowerCase()));
  if (protocol !== 'https:' && !(isAllowed && protocol === 'http:'))
    throw refused('It has to begin with https://; only hosts that the program allows are reached over http:');
  if (username !== '' || password !== '')
    throw refused('It has a user name or a password in it. Check the signature instead.');
  const addresses = await addressesOf(hostname, ports, (hidden, isNamed) => {
    if (isAllowed) return undefined;
    return refused(isNamed ? `${host} does not lead to a public address.` : `${hidden} is not a public address.`);
  });
  if (addresses.length === 0) throw refused(`${hostname} has no address.`);
  return { url, addresses };
}

function refused(why: string): PilotageError {
  return new PilotageError('url_refused', `Nothing is posted to this address. ${why}`);
}

/** @returns why the post has failed, or `undefined` when the receiver has accepted it. @throws the reason of the signal. */
export async function post(
  to: string,
  message: HookPost,
  options: PostOptions,
  signal: AbortSignal,
): Promise<PostFailure | undefined> {
  const { timeoutMs = TIMEOUT_MS } = options;
  const limit = AbortSignal.timeout(timeoutMs);
  try {
    // A name server may be slower than the receiver.
    const { url, addresses } = await Promise.race([
      assertPostable(to, options),
      rejected(AbortSignal.any([signal, limit])),
    ]);
    const headers = signed(message);
    const response = await ask(url, addresses, {
      signal: AbortSignal.any([signal, limit]),
      headers,
      body: message.body,
    });
    // Only the status counts. The body is not read, however long it is.
    response.destroy();
    const { statusCode = 0 } = response;
    if (statusCode >= 200 && statusCode < 300) return undefined;
    const retryAfterMs = Math.min(retryAfter(response.headers['retry-after']), MAX_RETRY_AFTER_MS);
    return {
      why: `The receiver answered with the status ${statusCode}.`,
      isGone: statusCode === 410,
      ...(retryAfterMs > 0 && { retryAfterMs }),
    };
  } catch (error) {
    signal.throwIfAborted();
    const why = limit.aborted ? `The receiver took longer than ${timeoutMs} ms.` : describeThrown(error).slice(0, 500);
    return { why, isGone: false };
  }
}

/** In milliseconds. The header has seconds, or a date. */
function retryAfter(header = ''): number {
  const seconds = Number(header);
  return Number.isNaN(seconds) ? Date.parse(header) - Date.now() : seconds * 1_000;
}

function rejected(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
}

/** The headers of standard-webhooks, version 1: HMAC-SHA256 over id, time and body. */
function signed({ id, body, type, headers, secret }: HookPost): Record<string, string> {
  const timestamp = Math.floor(Date.now() / 1_000);
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return {
    ...headers,
    'content-type': type,
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': 'pilotage',
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,${signature}`,
  };
}
