/** JSON values, and plain functions over them. Recorded values are frozen, so the types are read-only. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export type JsonObject = { readonly [key: string]: Json };
/** JSON as programs write it: a key that is `undefined` is left out. */
export type GivenJson = null | boolean | number | string | readonly GivenJson[] | GivenJsonObject;
export type GivenJsonObject = { readonly [key: string]: GivenJson | undefined };

/** What one value may have, so that copying and writing it does not keep everybody else waiting. */
export const JSON_LIMITS = {
  /** Values in it, itself, lists and objects included. */
  values: 100_000,
  /** Keys of one object, and different keys of all its objects: of each the engine makes another shape. */
  keys: 10_000,
  /** Characters (UTF-16 units) of all its texts and keys, as JSON writes them: what has to be written as `\\u0007` counts as six. */
  chars: 4_000_000,
} as const;

/** Values of this many bytes of JSON, and more, do not stand in the journal, but beside it as artifacts. */
export const LARGE_VALUE_BYTES = 32_768;

/** One of our own records as the JSON that it is: an interface has no index signature that would say so. */
export function asJson(value: readonly unknown[]): Json;
export function asJson(value: object): JsonObject;
export function asJson(value: object): Json {
  return value as Json;
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** UTF-8 bytes of the JSON text of `value`. */
export function encodedBytes(value: Json): number {
  return Buffer.byteLength(JSON.stringify(value));
}

/** Sets a field. An own "__proto__" key stays data. */
export function setField<T>(target: { [key: string]: T }, key: string, value: T): void {
  if (key !== '__proto__') target[key] = value;
  else Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
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
  // What differs is mostly found before the keys of both are counted.
  let keys = 0;
  for (const key in left) {
    const value = left[key];
    // No JSON value is one of what every object inherits.
    if (value !== right[key]) {
      if (typeof value !== 'object' || !Object.hasOwn(right, key) || !jsonEquals(value, right[key])) return false;
    }
    keys += 1;
  }
  return keys === Object.keys(right).length;
}

/** The JSON Pointer (RFC 6901) to what is under `key` of what `parent` points to. */
export function pointerTo(parent: string, key: string | number): string {
  return `${parent}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;
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

/**
 * The value with each text in it, keys too, put through `change`; the same value where none has changed. References between calls
 * (`$from`) keep their key.
 */
export function mapTexts(value: Json, change: (text: string) => string): Json {
  if (typeof value === 'string') return change(value);
  if (typeof value !== 'object' || value === null) return value;
  return Array.isArray(value) ? mapItems(value, change) : mapFields(value as JsonObject, change);
}

// Mostly nothing changes, and then nothing is copied.

function mapItems(items: readonly Json[], change: (text: string) => string): Json {
  let changed: Json[] | undefined;
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index] as Json;
    const mapped = mapTexts(item, change);
    if (mapped !== item) changed ??= items.slice(0, index);
    changed?.push(mapped);
  }
  return changed === undefined ? items : Object.freeze(changed);
}

function mapFields(fields: JsonObject, change: (text: string) => string): Json {
  const keys = Object.keys(fields);
  let changed: [string, Json][] | undefined;
  for (let index = 0; index < keys.length; index += 1) {
    const key = keys[index] as string;
    const field = fields[key] as Json;
    const mappedKey = change(key);
    const mapped = mapTexts(field, change);
    if (mappedKey !== key || mapped !== field) {
      changed ??= keys.slice(0, index).map((before): [string, Json] => [before, fields[before] as Json]);
    }
    changed?.push([mappedKey, mapped]);
  }
  return changed === undefined ? fields : Object.freeze(Object.fromEntries(changed));
}

/** The fields that have a value; those that are `undefined` have no key in an object that is optional there. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** A copy without the keys whose value is `undefined`: what is absent has no key, also in what is recorded. Keys keep their order. */
export function defined<T extends object>(fields: T): Defined<T>;
export function defined(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const key of Object.keys(fields)) if (fields[key] !== undefined) kept[key] = fields[key];
  return kept;
}

const QUOTE = 34;
const BACKSLASH = 92;
const COMMA = 44;
const COLON = 58;
const OPEN_LIST = 91;
const OPEN_OBJECT = 123;

/** Shorter text has not even room for so many of the shortest fields, `"":1,`. */
export const LARGE_CHARS: number = JSON_LIMITS.keys * 5;

/**
 * Whether JSON text stands for more values, or more different keys, than `JSON_LIMITS` allows. Of text that is no JSON the answer
 * means nothing. Each character is looked at once, and none of short text.
 */
export function isTooLarge(text: string): boolean {
  if (text.length < LARGE_CHARS) return false;
  const keys = new Set<string>();
  let commas = 0;
  let containers = 0;
  let lastText = '';
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      const end = textEnd(text, at);
      lastText = text.slice(at, end);
      at = end;
    } else if (code === COLON) keys.add(lastText);
    else if (code === COMMA) commas += 1;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) containers += 1;
    else continue;
    // Behind each comma is a value, and there is one before the first.
    if (Math.max(commas + 1, containers) > JSON_LIMITS.values || keys.size > JSON_LIMITS.keys) return true;
  }
  return false;
}

/** The index of the quote that ends the text which begins at `start`; that of the text's end when none does. */
function textEnd(text: string, start: number): number {
  let at = start;
  for (;;) {
    at = text.indexOf('"', at + 1);
    if (at < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(at - 1 - slashes) === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return at;
  }
}

/** A text as it is, and any other value as JSON. */
export function jsonText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
