/**
 * The JSON guard. Everything that enters a journal passes `capture`: it copies and freezes the value, so that nobody
 * can change a recorded fact later, and it fails with the path of the first leaf that JSON would lose in silence.
 */
import { isDate, isMap, isUint8Array } from 'node:util/types';
import { PilotageError } from './errors.ts';
import { isJsonObject, JSON_LIMITS, type Json, type JsonObject, setField } from './json.ts';

/** A frozen JSON copy and an upper bound of its encoded size in bytes. */
export interface Captured<T = Json> {
  readonly json: T;
  readonly maxBytes: number;
}

const MAX_DEPTH = 512;
// Integers from here to 2^64 are ids and counters of 64-bit systems, already rounded by the time we see them.
const UINT64 = 2 ** 64;

/**
 * Copies `value` into frozen JSON. `undefined` properties are dropped, valid dates become ISO 8601 text, byte arrays
 * become base64 and `toJSON` is honoured. Each part is read once. What is larger than `JSON_LIMITS` is refused before it is walked.
 * @typeParam T what the JSON is known to be: `value` is of that type already, or is checked next.
 * @throws PilotageError `unserializable` with `data.path`, which begins with `root`; nothing else, also when reading the value throws.
 */
export function capture<T = Json>(value: unknown, root: string): Captured<T> {
  const known = typeof value === 'object' && value !== null ? KNOWN.get(value) : undefined;
  if (known !== undefined) return known as Captured<T>;
  const walk: Walk = {
    maxBytes: 0,
    values: 0,
    chars: 0,
    keys: undefined,
    depth: 0,
    // With room for what most values have: a list that grows takes room for many more.
    at: [null, null, null, null],
    containers: [NOTHING, NOTHING, NOTHING, NOTHING],
    refusal: undefined,
  };
  try {
    return { json: copy(value, walk, 0) as T, maxBytes: walk.maxBytes };
  } catch (cause) {
    // What is not ours was thrown by a getter, a trap or an end of the stack.
    const {
      depth,
      why,
      mark,
      cause: inner,
    } = walk.refusal ?? { depth: walk.depth, why: 'reading the value threw', mark: '', cause };
    const path = `${pathOf(walk, depth, root)}${mark}`;
    throw new PilotageError('unserializable', `Cannot store ${path}: ${why}.`, { data: { path }, cause: inner });
  }
}

/** Not a container of any value. */
const NOTHING = {};

/** Values that were captured, and that their makers give again and again. */
const KNOWN = new WeakMap<object, Captured<never>>();

/** The object as frozen JSON that is not walked again, however often it is given. @throws as `capture`. */
export function captureForGood(value: JsonObject, root: string): JsonObject {
  const captured = captureObject(value, root);
  KNOWN.set(captured.json, captured as Captured<never>);
  return captured.json;
}

/** `capture` for values that must be an object at the top. */
export function captureObject<T extends object = JsonObject>(value: unknown, root: string): Captured<T> {
  const captured = capture<T>(value, root);
  if (!isJsonObject(captured.json)) {
    throw new PilotageError('unserializable', `${root} must be a JSON object.`, { data: { path: root } });
  }
  return captured;
}

/** Where the copying is, and what it has come to. */
interface Walk {
  maxBytes: number;
  values: number;
  chars: number;
  /** Keys found after the first `FEW_VALUES` values. */
  keys: Set<string> | undefined;
  /** The depth of the value that is being read. */
  depth: number;
  /** The keys that lead there; `null` stands for a `toJSON()`. Only the first `depth` count. */
  readonly at: (string | number | null)[];
  /** The lists and objects on the way there. */
  readonly containers: object[];
  refusal: Refusal | undefined;
}

interface Refusal {
  readonly depth: number;
  readonly why: string;
  /** Stands behind the path. */
  readonly mark: string;
  readonly cause: unknown;
}

function refuse(walk: Walk, depth: number, why: string, mark = '', cause?: unknown): never {
  walk.refusal = { depth, why, mark, cause };
  throw new Error(why);
}

const MAX_PATH_CHARS = 300;

/** A path that is too long to be read has its beginning and its end. */
function pathOf({ at }: Walk, depth: number, root: string): string {
  let path = root;
  for (const key of at.slice(0, depth)) {
    if (key !== null) path += typeof key === 'number' ? `[${key}]` : `.${shortened(key)}`;
  }
  return shortened(path);
}

function shortened(text: string): string {
  if (text.length <= MAX_PATH_CHARS) return text;
  return `${text.slice(0, MAX_PATH_CHARS / 2)}…${text.slice(-MAX_PATH_CHARS / 2)}`;
}

function copy(value: unknown, walk: Walk, depth: number): Json {
  walk.values += 1;
  if (walk.values > JSON_LIMITS.values)
    refuseLarge(walk, depth, `the value has more than ${JSON_LIMITS.values} values`);
  switch (typeof value) {
    case 'string':
      walk.maxBytes += value.length * 6 + 2; // worst case: every unit becomes \uXXXX
      addChars(walk, writtenChars(value), depth);
      return value;
    case 'number': {
      walk.maxBytes += 25;
      const why = whyNotNumber(value);
      if (why !== undefined) refuse(walk, depth, why);
      return value === 0 ? 0 : value; // JSON knows no minus zero
    }
    case 'boolean':
      walk.maxBytes += 5;
      return value;
    case 'object':
      if (value === null) {
        walk.maxBytes += 4;
        return null;
      }
      return copyContainer(value, walk, depth);
    default:
      return refuse(walk, depth, `a value of the type ${typeof value} is not JSON`);
  }
}

function addChars(walk: Walk, chars: number, depth: number): void {
  walk.chars += chars;
  if (walk.chars > JSON_LIMITS.chars) {
    refuseLarge(walk, depth, `the value has more than ${JSON_LIMITS.chars} characters, all texts together`);
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROL = /[\0-\x07\x0b\x0e-\x1f]/;

/** What the text takes in JSON, but for quotes, backslashes and line ends, which are short. Few texts have anything else to escape. */
function writtenChars(text: string): number {
  const { length } = text;
  if (length > JSON_LIMITS.chars || isPlain(text)) return length;
  let chars = length;
  for (let at = 0; at < length && chars <= JSON_LIMITS.chars; at += 1) {
    const unit = text.charCodeAt(at);
    const isPair =
      unit >= 0xd800 && unit < 0xdc00 && text.charCodeAt(at + 1) >= 0xdc00 && text.charCodeAt(at + 1) < 0xe000;
    if (isPair) at += 1;
    else if ((unit < 0x20 && !SHORT.has(unit)) || (unit >= 0xd800 && unit < 0xe000)) chars += 5;
  }
  return chars;
}

/** Short texts are most of all, and looked at here in less time than the engine takes to begin. */
const SHORT_CHARS = 48;

/** It has neither control characters nor halves of pairs. */
function isPlain(text: string): boolean {
  if (text.length > SHORT_CHARS) return text.isWellFormed() && !CONTROL.test(text);
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit < 0x20 || (unit >= 0xd800 && unit < 0xe000)) return text.isWellFormed() && !CONTROL.test(text);
  }
  return true;
}

/** \b \t \n \f \r */
const SHORT: ReadonlySet<number> = new Set([8, 9, 10, 12, 13]);

/** Values with fewer parts than this have no keys to count. */
const FEW_VALUES = 1_000;

function addKey(walk: Walk, key: string, depth: number): void {
  walk.keys ??= new Set();
  walk.keys.add(key);
  if (walk.keys.size > JSON_LIMITS.keys)
    refuseLarge(walk, depth, `the value has more than ${JSON_LIMITS.keys} different keys`);
}

function copyContainer(value: object, walk: Walk, depth: number): Json {
  walk.depth = depth;
  walk.containers[depth] = value;
  if (depth >= MAX_DEPTH) {
    refuseCycle(walk, depth + 1);
    refuse(walk, depth, `the value is nested deeper than ${MAX_DEPTH} levels`);
  }
  // A cycle passes through every depth: looking at a few of them finds it.
  if (depth >= 8 && (depth & (depth - 1)) === 0 && walk.containers.indexOf(value) < depth) refuseCycle(walk, depth + 1);
  return Array.isArray(value) ? copyArray(value, walk, depth) : copyObject(value, walk, depth);
}

/** Refuses a value that contains itself, where it first comes again. Any other passes. */
function refuseCycle(walk: Walk, levels: number): void {
  const { containers } = walk;
  const seen = new Set<object>();
  for (let level = 0; level < levels; level += 1) {
    const container = containers[level] as object;
    if (seen.has(container)) refuse(walk, level, 'the value contains itself', ' <cycle>');
    seen.add(container);
  }
}

/** Too much may be so because of a cycle; then that is what is wrong. */
function refuseLarge(walk: Walk, depth: number, why: string): never {
  if (depth > 0) refuseCycle(walk, depth);
  refuse(walk, 0, `${why}; give less, or save it as an artifact and give its reference`);
}

function copyArray(value: readonly unknown[], walk: Walk, depth: number): Json {
  // A proxy may say any length.
  const length: unknown = value.length;
  if (typeof length !== 'number') return refuse(walk, depth, 'the value is a list without a length');
  if (length > JSON_LIMITS.values)
    refuse(walk, depth, `the list has ${length} items, and ${JSON_LIMITS.values} is the most`);
  walk.maxBytes += length + 2;
  const items: Json[] = [];
  for (let index = 0; index < length; index += 1) {
    walk.at[depth] = index;
    walk.depth = depth + 1;
    // A hole reads as undefined, and is refused as such.
    items.push(copy(value[index], walk, depth + 1));
  }
  return Object.freeze(items);
}

function copyObject(value: object, walk: Walk, depth: number): Json {
  const { toJSON } = value as { readonly toJSON?: unknown };
  if (typeof toJSON === 'function' || !isOfObject(value)) return copyInstance(value, toJSON, walk, depth);
  // The engine has no cheaper way to count them. Looking for symbols takes time for each key, too.
  const keys = Object.keys(value);
  if (keys.length > JSON_LIMITS.keys) {
    refuse(walk, depth, `the object has ${keys.length} keys, and ${JSON_LIMITS.keys} is the most of one object`);
  }
  if (Object.getOwnPropertySymbols(value).length > 0) return refuseInstance(value, walk, depth);
  walk.maxBytes += 2;
  const fields: Record<string, Json> = {};
  for (const key of keys) {
    walk.at[depth] = key;
    walk.depth = depth + 1;
    const field = (value as Record<string, unknown>)[key];
    if (field === undefined) continue;
    walk.maxBytes += key.length * 6 + 4;
    addChars(walk, writtenChars(key), depth);
    if (walk.values > FEW_VALUES) addKey(walk, key, depth);
    setField(fields, key, copy(field, walk, depth + 1));
  }
  return Object.freeze(fields);
}

/** Not of a class. */
function isOfObject(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  // Also the plain objects of another realm: a vm context, or what Node's own `fetch` gives inside a test runner.
  return prototype === Object.prototype || prototype === null || Object.getPrototypeOf(prototype) === null;
}

/** An object that is not plain: what stands for it, if anything does. */
function copyInstance(value: object, toJSON: unknown, walk: Walk, depth: number): Json {
  let plain: unknown;
  // `instanceof` is not used: a proxy is not a byte array, although it may claim to be one.
  if (isUint8Array(value)) {
    if (value.length > JSON_LIMITS.chars)
      refuse(walk, depth, `the value has ${value.length} bytes; save it as an artifact`);
    plain = Buffer.from(value).toString('base64');
  } else if (isDate(value) && Number.isNaN(Date.prototype.getTime.call(value))) {
    return refuse(walk, depth, 'an invalid date is not JSON');
  } else if (typeof toJSON !== 'function') {
    return refuseInstance(value, walk, depth);
  } else {
    try {
      plain = Reflect.apply(toJSON, value, []);
    } catch (cause) {
      return refuse(walk, depth, 'its toJSON() threw', '', cause);
    }
  }
  walk.at[depth] = null;
  return copy(plain, walk, depth + 1);
}

const MAX_NAME_CHARS = 60;
/** How many keys of a map are looked at to say what is wrong with it. */
const MAX_MAP_KEYS = 100;

function refuseInstance(value: object, walk: Walk, depth: number): never {
  if (Object.getPrototypeOf(value) === Object.prototype) {
    return refuse(walk, depth, 'an object with symbol keys is not JSON', NON_STRING_KEY);
  }
  const mark = isMap(value) && hasOtherKeys(value) ? NON_STRING_KEY : '';
  const name: unknown = value.constructor?.name;
  const what = typeof name === 'string' && name !== '' ? name.slice(0, MAX_NAME_CHARS) : 'a class';
  return refuse(walk, depth, `an instance of ${what} is not JSON; return a plain object or give it toJSON()`, mark);
}

const NON_STRING_KEY = ' <non-string-map-key>';

function hasOtherKeys(map: ReadonlyMap<unknown, unknown>): boolean {
  let looked = 0;
  for (const key of map.keys()) {
    if (typeof key !== 'string') return true;
    looked += 1;
    if (looked === MAX_MAP_KEYS) return false;
  }
  return false;
}

function whyNotNumber(value: number): string | undefined {
  if (!Number.isFinite(value)) return `${value} is not JSON`;
  if (Number.isSafeInteger(value) || !Number.isInteger(value) || Math.abs(value) > UINT64) return undefined;
  return 'an integer beyond 2^53 has lost digits; pass it as text';
}
