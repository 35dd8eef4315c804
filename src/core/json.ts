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
  const size: Size = { maxBytes: 0, ancestors: [] };
  let json: Json | typeof REFUSED;
  try {
    json = copy(value, size, 0);
  } catch {
    json = REFUSED; // a getter threw
  }
  if (json !== REFUSED) return { json, maxBytes: size.maxBytes };
  throw findFault(value, root, []);
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

interface Size {
  maxBytes: number;
  /** The objects that are being copied, from `TRACKED_DEPTH` down: few values are so deep, and a cycle always is. */
  readonly ancestors: object[];
}

const TRACKED_DEPTH = 8;

/** Something in the value is not JSON. Where, and what, is found out by a second, slower walk. */
const REFUSED: unique symbol = Symbol('refused');

function copy(value: unknown, size: Size, depth: number): Json | typeof REFUSED {
  switch (typeof value) {
    case 'string':
      size.maxBytes += value.length * 6 + 2; // worst case: every unit becomes \uXXXX
      return value;
    case 'number':
      size.maxBytes += 25;
      if (whyNotNumber(value) !== undefined) return REFUSED;
      return value === 0 ? 0 : value; // JSON knows no minus zero
    case 'boolean':
      size.maxBytes += 5;
      return value;
    case 'object':
      if (value === null) {
        size.maxBytes += 4;
        return null;
      }
      return depth < TRACKED_DEPTH ? copyParts(value, size, depth) : copyTracked(value, size, depth);
    default:
      return REFUSED;
  }
}

function copyParts(value: object, size: Size, depth: number): Json | typeof REFUSED {
  return Array.isArray(value) ? copyArray(value, size, depth + 1) : copyObject(value, size, depth + 1);
}

function copyTracked(value: object, size: Size, depth: number): Json | typeof REFUSED {
  if (depth >= MAX_DEPTH || size.ancestors.includes(value)) return REFUSED;
  size.ancestors.push(value);
  const json = copyParts(value, size, depth);
  size.ancestors.pop();
  return json;
}

function copyArray(value: readonly unknown[], size: Size, depth: number): Json | typeof REFUSED {
  size.maxBytes += value.length + 2;
  const items: Json[] = [];
  for (let index = 0; index < value.length; index += 1) {
    // A hole reads as undefined, and is refused as such.
    const item = copy(value[index], size, depth);
    if (item === REFUSED) return REFUSED;
    items.push(item);
  }
  return Object.freeze(items);
}

function copyObject(value: object, size: Size, depth: number): Json | typeof REFUSED {
  if (!isPlain(value)) {
    const plain = plainOf(value);
    return plain === REFUSED ? REFUSED : copy(plain, size, depth);
  }
  size.maxBytes += 2;
  const fields: Record<string, Json> = {};
  for (const key of Object.keys(value)) {
    const field = (value as Record<string, unknown>)[key];
    if (field === undefined) continue;
    size.maxBytes += key.length * 6 + 4;
    const json = copy(field, size, depth);
    if (json === REFUSED) return REFUSED;
    setField(fields, key, json);
  }
  return Object.freeze(fields);
}

/** An object whose own string keys are all there is to it. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  // Also the plain objects of another realm: a vm context, or what Node's own `fetch` gives inside a test runner.
  if (prototype !== Object.prototype && prototype !== null && Object.getPrototypeOf(prototype) !== null) return false;
  if ('toJSON' in value && typeof value.toJSON === 'function') return false;
  return Object.getOwnPropertySymbols(value).length === 0;
}

/** What stands for an object that is not plain. */
function plainOf(value: object): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Date && Number.isNaN(value.getTime())) return REFUSED;
  if (!('toJSON' in value) || typeof value.toJSON !== 'function') return REFUSED;
  try {
    return value.toJSON() as unknown;
  } catch {
    return REFUSED;
  }
}

function whyNotNumber(value: number): string | undefined {
  if (!Number.isFinite(value)) return `${value} is not JSON`;
  if (Number.isSafeInteger(value) || !Number.isInteger(value) || Math.abs(value) > UINT64) return undefined;
  return 'an integer beyond 2^53 has lost digits; pass it as text';
}

/** Walks to the first leaf that was refused, and says where it is and why. */
function findFault(value: unknown, path: string, ancestors: readonly object[]): PilotageError {
  if (typeof value === 'number') return fault(path, whyNotNumber(value) ?? 'it is not JSON');
  if (typeof value !== 'object' || value === null)
    return fault(path, `a value of the type ${typeof value} is not JSON`);
  if (ancestors.includes(value)) return fault(`${path} <cycle>`, 'the value contains itself');
  if (ancestors.length >= MAX_DEPTH) return fault(path, `it is nested deeper than ${MAX_DEPTH} levels`);
  const inside = [...ancestors, value];
  const plain = Array.isArray(value) || isPlain(value) ? value : plainOf(value);
  if (plain === REFUSED) return instanceFault(value, path);
  if (plain !== value) return findFault(plain, path, inside);
  // Array.from counts holes too, which keys() would pass over.
  const keys = Array.isArray(value) ? Array.from(value, (_, index) => index) : Object.keys(value);
  for (const key of keys) {
    const at = typeof key === 'number' ? `${path}[${key}]` : `${path}.${key}`;
    let field: unknown;
    try {
      field = (value as Record<string | number, unknown>)[key];
    } catch (cause) {
      return fault(at, 'reading it threw', cause);
    }
    if (field === undefined && !Array.isArray(value)) continue;
    if (isRefused(field, inside.length)) return findFault(field, at, inside);
  }
  return fault(path, 'it is not JSON');
}

function isRefused(value: unknown, depth: number): boolean {
  try {
    return copy(value, { maxBytes: 0, ancestors: [] }, depth) === REFUSED;
  } catch {
    return true;
  }
}

function instanceFault(value: object, path: string): PilotageError {
  if (value instanceof Date) return fault(path, 'an invalid date is not JSON');
  if (Object.getOwnPropertySymbols(value).length > 0 && Object.getPrototypeOf(value) === Object.prototype) {
    return fault(`${path} <non-string-map-key>`, 'an object with symbol keys is not JSON');
  }
  if ('toJSON' in value && typeof value.toJSON === 'function') {
    try {
      value.toJSON();
    } catch (cause) {
      return fault(path, 'its toJSON() threw', cause);
    }
    return fault(path, 'its toJSON() gives nothing that is JSON');
  }
  const mark =
    value instanceof Map && ![...value.keys()].every((key) => typeof key === 'string') ? ' <non-string-map-key>' : '';
  const name = value.constructor?.name ?? 'class';
  return fault(`${path}${mark}`, `a ${name} instance is not JSON; return a plain object or give it toJSON()`);
}

function fault(path: string, why: string, cause?: unknown): PilotageError {
  return new PilotageError('unserializable', `Cannot store ${path}: ${why}.`, { data: { path }, cause });
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

/** Freezes all the way down. What is frozen already is taken to be so to the last leaf. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const key in value) deepFreeze(value[key]);
  return value;
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
    keys.length === Object.keys(right).length &&
    keys.every((key) => Object.hasOwn(right, key) && jsonEquals(left[key], right[key]))
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
