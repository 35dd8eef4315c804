/**
 * The JSON guard. Everything that enters a journal passes `captureJson`: it copies and freezes the value, so that nobody
 * can change a recorded fact later, and it fails with the path of the first leaf that JSON would lose in silence.
 */
import { PilotageError } from './errors.ts';
import type { Json, JsonObject } from './json-type.ts';

export type { Json, JsonObject };

/** A frozen JSON copy and an upper bound of its encoded size in bytes. */
export interface Captured<T extends Json = Json> {
  readonly json: T;
  readonly maxBytes: number;
}

const MAX_DEPTH = 512;
// Integers from here to 2^64 are ids and counters of 64-bit systems, already rounded by the time we see them.
const UINT64 = 2 ** 64;

/**
 * Copies `value` into frozen JSON. `undefined` properties are dropped, valid dates become ISO 8601 text, byte arrays
 * become base64 and `toJSON` is honoured.
 * @throws PilotageError `unserializable` with `data.path`, which begins with `root`.
 */
export function captureJson(value: unknown, root: string): Captured {
  const walk = new Walk(root);
  try {
    return { json: walk.copy(value), maxBytes: walk.bytes };
  } catch (thrown) {
    if (PilotageError.is(thrown)) throw thrown;
    return walk.refuse('reading it threw', '', thrown);
  }
}

/** `captureJson` for values that must be an object at the top. */
export function captureObject(value: unknown, root: string): Captured<JsonObject> {
  const captured = captureJson(value, root);
  if (!isJsonObject(captured.json)) {
    throw new PilotageError('unserializable', `${root} must be a JSON object.`, { data: { path: root } });
  }
  return captured as Captured<JsonObject>;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

class Walk {
  bytes = 0;
  readonly #root: string;
  readonly #path: (string | number)[] = [];
  readonly #ancestors: object[] = [];

  constructor(root: string) {
    this.#root = root;
  }

  copy(value: unknown): Json {
    switch (typeof value) {
      case 'string':
        this.bytes += value.length * 6 + 2; // worst case: every unit becomes \uXXXX
        return value;
      case 'number':
        return this.#number(value);
      case 'boolean':
        this.bytes += 5;
        return value;
      case 'object':
        if (value !== null) return this.#object(value);
        this.bytes += 4;
        return null;
      default:
        return this.refuse(`a value of the type ${typeof value} is not JSON`);
    }
  }

  #number(value: number): number {
    if (!Number.isFinite(value)) return this.refuse(`${value} is not JSON`);
    if (Number.isInteger(value) && !Number.isSafeInteger(value) && Math.abs(value) <= UINT64) {
      return this.refuse('an integer beyond 2^53 has lost digits; pass it as text');
    }
    this.bytes += 25;
    // JSON knows no minus zero.
    return value === 0 ? 0 : value;
  }

  #object(value: object): Json {
    if (this.#ancestors.includes(value)) return this.refuse('the value contains itself', ' <cycle>');
    if (this.#ancestors.length >= MAX_DEPTH) return this.refuse(`nested deeper than ${MAX_DEPTH} levels`);
    this.#ancestors.push(value);
    const json = Array.isArray(value) ? this.#array(value) : this.#fields(value);
    this.#ancestors.pop();
    return json;
  }

  #array(value: readonly unknown[]): Json {
    this.bytes += value.length + 2;
    const copy: Json[] = new Array(value.length);
    for (let index = 0; index < value.length; index += 1) {
      this.#path.push(index);
      if (!(index in value)) this.refuse('the array has a hole here');
      copy[index] = this.copy(value[index]);
      this.#path.pop();
    }
    return Object.freeze(copy);
  }

  #fields(value: object): Json {
    const prototype: unknown = Object.getPrototypeOf(value);
    if (!isPlainPrototype(prototype)) return this.#instance(value);
    if ('toJSON' in value && typeof value.toJSON === 'function') return this.#instance(value);
    if (Object.getOwnPropertySymbols(value).length > 0) {
      return this.refuse('an object with symbol keys is not JSON', ' <non-string-map-key>');
    }
    this.bytes += 2;
    const copy: Record<string, Json> = {};
    for (const key of Object.keys(value)) {
      const field = (value as Record<string, unknown>)[key];
      if (field === undefined) continue;
      this.bytes += key.length * 6 + 4;
      this.#path.push(key);
      const json = this.copy(field);
      this.#path.pop();
      setField(copy, key, json);
    }
    return Object.freeze(copy);
  }

  #instance(value: object): Json {
    if (value instanceof Uint8Array) return this.copy(Buffer.from(value).toString('base64'));
    if (value instanceof Date && Number.isNaN(value.getTime())) return this.refuse('an invalid date is not JSON');
    if ('toJSON' in value && typeof value.toJSON === 'function') {
      let plain: unknown;
      try {
        plain = value.toJSON();
      } catch (cause) {
        return this.refuse('its toJSON() threw', '', cause);
      }
      return this.copy(plain);
    }
    const name = value.constructor?.name ?? 'class';
    const keys = value instanceof Map && ![...value.keys()].every((key) => typeof key === 'string');
    return this.refuse(
      `a ${name} instance is not JSON; return a plain object or give it toJSON()`,
      keys ? ' <non-string-map-key>' : '',
    );
  }

  /** Refuses the value at the current path. */
  refuse(why: string, mark = '', cause?: unknown): never {
    const at = this.#path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('');
    const path = `${this.#root}${at}${mark}`;
    throw new PilotageError('unserializable', `Cannot store ${path}: ${why}.`, { data: { path }, cause });
  }
}

/** Also for the plain objects of another realm: a vm context, or what Node's own `fetch` gives inside a test runner. */
function isPlainPrototype(prototype: unknown): boolean {
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** UTF-8 bytes of the JSON text of `value`. */
export function encodedBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** An own "__proto__" key must stay data. */
function setField(copy: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== '__proto__') copy[key] = value;
  else Object.defineProperty(copy, key, { value, enumerable: true, writable: true, configurable: true });
}

/** A plain, unfrozen copy, for handing a recorded value to code that may change it. */
export function thaw<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(thaw) as T;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(value)) setField(copy, key, thaw((value as Record<string, unknown>)[key]));
  return copy as T;
}

/** JSON equality: key order does not count. */
export function jsonEquals(left: Json | undefined, right: Json | undefined): boolean {
  if (left === right) return true;
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, index) => jsonEquals(item, right[index]));
  }
  if (!isJsonObject(left) || !isJsonObject(right)) return false;
  const keys = Object.keys(left);
  return (
    keys.length === Object.keys(right).length && keys.every((key) => Object.hasOwn(right, key) && jsonEquals(left[key], right[key]))
  );
}

/** Resolves a JSON Pointer (RFC 6901). `undefined` when nothing is there. */
export function atPointer(value: Json, pointer: string): Json | undefined {
  if (pointer === '') return value;
  if (!pointer.startsWith('/')) return undefined;
  let at: Json | undefined = value;
  for (const raw of pointer.slice(1).split('/')) {
    const key = raw.replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(at)) at = /^(0|[1-9]\d*)$/.test(key) ? at[Number(key)] : undefined;
    else if (isJsonObject(at) && Object.hasOwn(at, key)) at = at[key];
    else return undefined;
  }
  return at;
}

/** JSON text with sorted keys: equal values give equal bytes. */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const fields = Object.keys(value).sort();
  return `{${fields.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] as Json)}`).join(',')}}`;
}
