/** Signs texts that a client keeps for the server, such as the state of its call, so that every process can trust them and nobody can forge them. */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { isJsonObject, type Json, PilotageError } from '#core';
import type { Visit } from '../visit.ts';

/** The purpose of a sealed text. It opens for no other purpose. */
export type SealedFor = 'session' | 'state' | 'question' | 'event';

/** The least length of a secret in bytes, which fits HMAC-SHA256. */
const MIN_SECRET_BYTES = 32;
const MAX_SEALED_CHARS = 16_384;

export class Seal {
  readonly #secrets: readonly [string, ...string[]];

  /** @param secrets the first one signs and all of them open, so that secrets can be rotated. @throws PilotageError `invalid_config`. */
  constructor(secrets: readonly string[]) {
    const [first, ...others] = Array.isArray(secrets) ? [...secrets] : [];
    const isKey = (secret: unknown): boolean =>
      typeof secret === 'string' && Buffer.byteLength(secret) >= MIN_SECRET_BYTES;
    if (first === undefined || ![first, ...others].every(isKey)) {
      const message = `The option secret of mcp must be a text of at least ${MIN_SECRET_BYTES} bytes, or a list of them; it is the same in all processes that serve the runs.`;
      throw new PilotageError('invalid_config', message);
    }
    this.#secrets = [first, ...others];
  }

  /** @param bound the visitor and the call that the text is for. They are signed, and are not in the text. */
  close(purpose: SealedFor, bound: readonly Json[], content: Json, holdsMs: number): string {
    const body = Buffer.from(JSON.stringify([content, Date.now() + holdsMs])).toString('base64url');
    return `${body}.${macOf(this.#secrets[0], purpose, bound, body).toString('base64url')}`;
  }

  /** @returns `undefined` for a text that is forged, is for something else, or has expired. */
  open(purpose: SealedFor, bound: readonly Json[], sealed: unknown): Json | undefined {
    if (typeof sealed !== 'string' || sealed.length > MAX_SEALED_CHARS) return undefined;
    const [body = '', mac = '', more] = sealed.split('.');
    const given = Buffer.from(mac, 'base64url');
    const isOurs = this.#secrets.some((secret) => isSame(macOf(secret, purpose, bound, body), given));
    if (more !== undefined || !isOurs) return undefined;
    const [content, until] = JSON.parse(Buffer.from(body, 'base64url').toString()) as [Json, number];
    return until >= Date.now() ? content : undefined;
  }
}

function macOf(secret: string, purpose: SealedFor, bound: readonly Json[], body: string): Buffer {
  return createHmac('sha256', secret)
    .update(JSON.stringify([purpose, bound, body]))
    .digest();
}

function isSame(one: Buffer, other: Buffer): boolean {
  return one.length === other.length && timingSafeEqual(one, other);
}

/** The visitor that a sealed text is for. */
export function principalOf({ access: { identity } }: Visit): readonly string[] {
  const { tenant, user, session } = identity;
  return session === undefined ? [tenant, user] : [tenant, user, session];
}

/** The same digest for equal values, whatever the order of their keys. */
export function digestOf(value: Json): string {
  const sorted = JSON.stringify(value, (_, part: Json) =>
    isJsonObject(part) ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1))) : part,
  );
  return createHash('sha256').update(sorted).digest('hex').slice(0, 32);
}
