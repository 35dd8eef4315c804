/** Lets in clients by keys that they send as bearer tokens. The server knows only the hashes of the keys. */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import {
  assertIdentity,
  assertOptions,
  assertWords,
  CONTROL_SCOPES,
  type ControlScope,
  defined,
  isOptionsRecord,
  type OptionShape,
  PilotageError,
} from '#core';
import type { Access, Authenticate } from '../access.ts';
import { BAD_BEARER, bearerIn, NO_BEARER } from './bearer.ts';

/** A key, by its hash, and the visitor that it lets in. */
export interface BearerKey {
  /** The SHA-256 of the key in hex, as `newBearerKey` gives it. Keys are long and random, so that nobody finds one from its hash. */
  readonly sha256: string;
  readonly tenant: string;
  readonly user: string;
  /** The only session that the visitor reaches. Absent: all sessions of the user. */
  readonly session?: string;
  readonly as?: ControlScope;
  readonly scopes?: readonly string[];
  /** A note for the people who keep the list. */
  readonly note?: string;
}

export interface BearerKeysOptions {
  /** A JSON file, `{ "keys": [ … ] }`. It is read again when it has changed. Give this or `keys`. */
  readonly file?: string;
  readonly keys?: readonly BearerKey[];
}

const OPTIONS: OptionShape<BearerKeysOptions> = { file: 'text?', keys: 'list?' };
const KEY: OptionShape<BearerKey> = {
  ...({ sha256: 'text', tenant: 'text', user: 'text', session: 'text?', as: 'text?', scopes: 'list?' } as const),
  note: 'text?',
};

interface Known {
  readonly hash: Buffer;
  readonly access: Access;
}

/** Makes a key for a client, and its hash for the list. The key itself is not stored. */
export function newBearerKey(): { readonly key: string; readonly sha256: string } {
  const key = `pk_${randomBytes(32).toString('base64url')}`;
  return { key, sha256: hashOf(key).toString('hex') };
}

/** @throws PilotageError `invalid_config`. A file that cannot be used lets nobody in: each request is answered with status 500, and `onFault` is called. */
export function bearerKeys(options: BearerKeysOptions): Authenticate {
  assertOptions('bearerKeys', options, OPTIONS);
  const { file, keys } = options;
  if ((file === undefined) === (keys === undefined))
    throw new PilotageError('invalid_config', 'bearerKeys takes either file or keys.');
  const given = keys === undefined ? undefined : readKeys(keys);
  const known = given === undefined ? new KeyFile(file ?? '').keys : () => given;
  return async (request) => {
    const token = bearerIn(request);
    if (token === undefined) return NO_BEARER();
    const hash = hashOf(token);
    // All keys are compared, so that the time of the answer says nothing about the list.
    const [found] = (await known()).filter((key) => timingSafeEqual(key.hash, hash));
    return found?.access ?? BAD_BEARER();
  };
}

function hashOf(key: string): Buffer {
  return createHash('sha256').update(key).digest();
}

/** @throws PilotageError `invalid_config`. */
function readKeys(keys: unknown): readonly Known[] {
  if (!Array.isArray(keys)) throw unfit('keys is not a list');
  return keys.map((key: unknown, index) => readKey(key, index));
}

function readKey(given: unknown, index: number): Known {
  if (!isOptionsRecord(given)) throw unfit(`keys[${index}] is not an object`);
  assertOptions(`bearerKeys.keys[${index}]`, given as unknown as BearerKey, KEY);
  const { sha256, tenant, user, session, as, scopes } = given as unknown as BearerKey;
  if (!/^[0-9a-f]{64}$/i.test(sha256))
    throw unfit(`keys[${index}].sha256 is not 64 hex digits, as newBearerKey() gives them`);
  assertIdentity({ tenant, user, session: session ?? '-', run: '-' });
  if (as !== undefined) assertWords(`bearerKeys.keys[${index}]`, 'as', [as], CONTROL_SCOPES);
  const identity = { tenant, user, ...defined({ session }) };
  return { hash: Buffer.from(sha256, 'hex'), access: { identity, ...defined({ as, scopes }) } };
}

function unfit(why: string): PilotageError {
  return new PilotageError('invalid_config', `The list of bearerKeys cannot be used: ${why}.`);
}

/** A file of keys. It is read again when it has changed. */
class KeyFile {
  readonly #path: string;
  #mark = '';
  #keys: readonly Known[] = [];

  constructor(path: string) {
    this.#path = path;
  }

  /** @throws PilotageError `invalid_config` for a file that is missing or cannot be used. */
  readonly keys = async (): Promise<readonly Known[]> => {
    const { mtimeMs, size, ino } = await stat(this.#path).catch(notThere);
    const mark = `${mtimeMs} ${size} ${ino}`;
    if (mark === this.#mark) return this.#keys;
    const text = await readFile(this.#path, 'utf8').catch(notThere);
    let said: unknown;
    try {
      said = JSON.parse(text);
    } catch {
      throw unfit('its file is no JSON');
    }
    this.#keys = readKeys(isOptionsRecord(said) ? (said as { readonly keys?: unknown }).keys : undefined);
    this.#mark = mark;
    return this.#keys;
  };
}

function notThere(cause: unknown): never {
  throw new PilotageError('invalid_config', 'The file of bearerKeys cannot be read.', { cause });
}
