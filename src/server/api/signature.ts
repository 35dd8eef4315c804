/** Signatures of webhooks (Standard Webhooks): who sends one proves that it knows the secret, and has sent it just now. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { RequestRefused } from '../problem.ts';

/** How old, or how far ahead, what was signed may be. */
const TOLERANCE_S = 300;
const PREFIX = 'whsec_';

/** The bytes of a secret such as `whsec_…`, in base64. */
export function secretBytes(secret: string): Buffer {
  return Buffer.from(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret, 'base64');
}

/**
 * @returns the id of what was sent: the same when it is sent again.
 * @throws RequestRefused `unauthenticated`.
 */
export function assertSigned(headers: Headers, body: string, secrets: readonly string[]): string {
  const [id, sentAt, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) =>
    headers.get(name),
  );
  if (!id || !sentAt || !signatures || !/^\d{1,12}$/.test(sentAt)) throw refused('has no signature');
  // What is signed is one text: a time at the end of the id could be the time of another text, whose body is a number.
  if (/\.\d+$/.test(id)) throw refused('has an id that ends as a time does');
  if (Math.abs(Date.now() / 1_000 - Number(sentAt)) > TOLERANCE_S) throw refused('was signed too long ago');
  const wanted = secrets.map((secret) =>
    createHmac('sha256', secretBytes(secret)).update(`${id}.${sentAt}.${body}`).digest(),
  );
  const given = signatures
    .split(' ')
    .flatMap((each) => (each.startsWith('v1,') ? [Buffer.from(each.slice(3), 'base64')] : []));
  const isSigned = given.some((one) =>
    wanted.some((other) => one.length === other.length && timingSafeEqual(one, other)),
  );
  if (!isSigned) throw refused('is signed with another secret, or was changed');
  return id;
}

/** The key that a signed id is for. @param whole the key of ids that say none. @returns `undefined` for an id that says no key that there can be. */
export function keyOfSigned(id: string, whole: string): string | undefined {
  const [said, rest] = id.split('/', 2);
  if (rest === undefined) return whole;
  try {
    return decodeURIComponent(said ?? '');
  } catch {
    return undefined;
  }
}

function refused(why: string): RequestRefused {
  return new RequestRefused(
    'unauthenticated',
    `The event ${why} (headers webhook-id, webhook-timestamp, webhook-signature).`,
  );
}
