/** What has happened outside, for runs that wait for it. */
import { defined, isEventKey, PilotageError } from '#core';
import { RequestRefused } from '../problem.ts';
import * as gives from './reply-shapes.ts';
import * as asks from './request-shapes.ts';
import { type ApiRoute, jsonReply, route } from './route.ts';
import { assertSigned, keyOfSigned, secretBytes } from './signature.ts';
import { tenantOf } from './visiting.ts';

/** Events that are taken from whoever signs them, and from nobody else. */
export interface SignedEvents {
  /**
   * With what their keys begin, such as `shop:`; of several such the longest counts. The signature covers the id, and the id says the key: `shop%3Aorder-17/1`, which is the key as
   * `encodeURIComponent` writes it, a slash, and anything. An id without a slash, as senders make it that know nothing of keys, is for the one key that is the
   * prefix itself.
   */
  readonly prefix: string;
  /** A secret of Standard Webhooks, such as `whsec_…`; several while one takes the place of another. */
  readonly secret: string | readonly string[];
  /** Whose runs hear them. */
  readonly tenant: string;
}

const LEAST_SECRET_BYTES = 16;

/** @throws PilotageError `invalid_config`. */
export function assertSignedEvents(signed: readonly SignedEvents[]): void {
  for (const { prefix, secret, tenant } of signed) {
    const isFit = isEventKey(prefix) && typeof tenant === 'string' && tenant.trim() !== '';
    const isSecret = secretsOf(secret).every(
      (each) => typeof each === 'string' && secretBytes(each).length >= LEAST_SECRET_BYTES,
    );
    if (isFit && isSecret && secretsOf(secret).length > 0) continue;
    const message = `Each of signedEvents has a prefix of keys, a tenant, and a secret of ${LEAST_SECRET_BYTES} bytes in base64 at least.`;
    throw new PilotageError('invalid_config', message);
  }
}

function secretsOf(secret: string | readonly string[]): readonly string[] {
  return typeof secret === 'string' ? [secret] : secret;
}

/** Whether the path is that of an event that is taken without a visitor who was let in: the signature says enough. @param path where the API begins. */
export function isSignedPath(asked: string, path: string, signed: readonly SignedEvents[]): boolean {
  const begin = `${path}/events/`;
  if (!asked.startsWith(begin)) return false;
  try {
    return signedOf(decodeURIComponent(asked.slice(begin.length)), signed) !== undefined;
  } catch {
    return false;
  }
}

/** The longest prefix of a key counts. */
function signedOf(key: string, signed: readonly SignedEvents[]): SignedEvents | undefined {
  const fit = signed.filter(({ prefix }) => key.startsWith(prefix));
  return fit.toSorted((left, right) => right.prefix.length - left.prefix.length)[0];
}

/** Otherwise whoever has seen an event pass could send it to another key. @throws RequestRefused `unauthenticated`. */
function assertForKey(id: string, key: string, { prefix }: SignedEvents): void {
  if (keyOfSigned(id, prefix) === key) return;
  throw new RequestRefused(
    'unauthenticated',
    `The event is signed for another key. The header webhook-id begins with the key and a slash: ${encodeURIComponent(key)}/…`,
  );
}

export function signalRoutes(signed: readonly SignedEvents[]): readonly ApiRoute[] {
  const signal = route('post /events/{key}', {
    tag: 'events',
    summary:
      'Says that something has happened: the body goes to every run of the tenant that waits for this key, or is kept until one does.',
    headers: ['Idempotency-Key', 'webhook-id', 'webhook-timestamp', 'webhook-signature'],
    query: asks.keepSignal,
    body: asks.payload,
    reply: jsonReply(gives.signalled, 202),
    handle: async ({ visit, params: { key }, query, body, context }) => {
      const { keepMs } = query;
      const of = signedOf(key, signed);
      let id = context.req.header('idempotency-key');
      let tenant: string;
      if (of === undefined) {
        await visit.must('manage');
        tenant = tenantOf(visit, query);
      } else {
        id = assertSigned(context.req.raw.headers, await context.req.text(), secretsOf(of.secret));
        assertForKey(id, key, of);
        // The query is not signed.
        if (Object.keys(query).length > 0) throw new RequestRefused('request_invalid', 'A signed event has no query.');
        ({ tenant } = of);
      }
      const { runs, ...accepted } = await visit.runtime.signal(key, body, { tenant, ...defined({ id, keepMs }) });
      return { ...accepted, delivered: runs.length };
    },
  });
  return [signal];
}
