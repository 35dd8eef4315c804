/**
 * Requests to addresses that somebody else has named. Whoever may name one could otherwise have this process reach what only it can reach, so each
 * address is checked, and the connection is made to the address that was checked.
 */
import { lookup } from 'node:dns/promises';
import { type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { isPublicAddress } from './public-address.ts';

export interface Address {
  readonly address: string;
  readonly family: number;
}

/** What the network is asked, so that a test can answer. */
export interface FetchPorts {
  resolve(host: string): Promise<readonly Address[]>;
  isPublic(address: string): boolean;
}

export const SYSTEM: FetchPorts = {
  resolve: (host) => lookup(host, { all: true }),
  isPublic: isPublicAddress,
};

/**
 * The addresses of a host, each of which may be asked.
 * @param refusal why one that is not public may not be asked; `undefined`: it may. `isNamed`: the host is a name that leads there. Then the address is left
 * out of what is said: whoever names hosts could otherwise have the names of an inner network resolved.
 */
export async function addressesOf(
  hostname: string,
  { resolve, isPublic }: FetchPorts,
  refusal: (hidden: string, isNamed: boolean) => Error | undefined,
): Promise<readonly Address[]> {
  const literal = hostname.replace(/^\[|\]$/g, '');
  const family = isIP(literal);
  const isNamed = family === 0;
  const addresses = isNamed ? await resolve(hostname) : [{ address: literal, family }];
  for (const { address } of addresses) {
    const refused = isPublic(address) ? undefined : refusal(address, isNamed);
    if (refused !== undefined) throw refused;
  }
  return addresses;
}

export interface GuardedRequest {
  readonly signal: AbortSignal;
  readonly headers: Readonly<Record<string, string>>;
  /** What is posted. Absent: it is a GET. */
  readonly body?: string;
}

/** Asks one of these addresses, without a second question to the name server, which could be answered in another way. Redirects are the caller's. */
export function ask(
  url: URL,
  addresses: readonly Address[],
  { signal, headers, body }: GuardedRequest,
): Promise<IncomingMessage> {
  const request = url.protocol === 'https:' ? requestHttps : requestHttp;
  const pinned: LookupFunction = (_, { all }, done) => {
    const [first] = addresses;
    if (all === true) done(null, [...addresses]);
    else done(null, first?.address ?? '', first?.family ?? 0);
  };
  return new Promise((resolve, reject) => {
    // An agent of its own keeps no connection for others.
    const method = body === undefined ? 'GET' : 'POST';
    request(url, { agent: false, lookup: pinned, method, signal, headers }, resolve)
      .on('error', reject)
      // A server that answers with another protocol (101) gives no response, and no error either.
      .on('close', () => reject(new Error('The connection was closed without an answer.')))
      .end(body);
  });
}
