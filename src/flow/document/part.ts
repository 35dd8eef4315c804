/** A flow document as parts that know where they stand, bounded in size and depth, and the faults that are found there. */

import { captureObject, describeThrown, isJsonObject, type Json, nearest, oneLine, PilotageError } from '#core';

export interface DocumentPosition {
  /** Both from 1. */
  readonly line: number;
  readonly column: number;
}

export interface DocumentFault extends Partial<DocumentPosition> {
  readonly code: string;
  readonly message: string;
  /** JSON Pointer from the top of the document. */
  readonly path: string;
}

/** Where something stands: a document that was given as an object has paths alone. */
export interface Spot {
  readonly path: string;
  readonly place?: DocumentPosition;
}

export const TOP: Spot = { path: '' };

export function faultAt(code: string, { path, place }: Spot, message: string): DocumentFault {
  return { code, message, path: path === '' ? path : oneLine(path, MAX_PATH_CHARS), ...place };
}

const MAX_PATH_CHARS = 300;
const MAX_SHOWN = 50;

/** @param source the file, or what stands for it. */
export function documentInvalid(source: string, faults: readonly DocumentFault[]): PilotageError {
  const order = [...faults].sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
  const shown = order.slice(0, MAX_SHOWN);
  const lines = shown.map((fault) => lineOf(source, fault));
  const more = order.length > shown.length ? [`And ${order.length - shown.length} more.`] : [];
  const data = { faults: shown.map((fault) => ({ ...fault })) };
  return new PilotageError('flow_invalid', ['The flow document is wrong.', ...lines, ...more].join('\n'), { data });
}

function lineOf(source: string, { path, line, column, message }: DocumentFault): string {
  const place = line === undefined ? '' : `:${line}:${column}`;
  return `${source}${place}${path === '' ? '' : ` ${path}`}: ${message}`;
}

/** A name from the document as it stands in a message. */
export function quotedName(name: string): string {
  return JSON.stringify(oneLine(name, MAX_NAME_CHARS));
}

const MAX_NAME_CHARS = 64;
const MAX_LISTED = 20;

/** What to write in place of an unknown word. @param of what `known` are: `keys here`. */
export function advice(word: string, known: readonly string[], of: string): string {
  const near = nearest(word, known);
  if (near !== undefined) return `Did you mean ${quotedName(near)}?`;
  if (known.length === 0) return `There are no ${of}.`;
  const more = known.length > MAX_LISTED ? ` and ${known.length - MAX_LISTED} more` : '';
  return `The ${of} are ${known.slice(0, MAX_LISTED).map(quotedName).join(', ')}${more}.`;
}

export const MAX_DEPTH = 64;
const MAX_VALUES = 50_000;
const MAX_ALIASES = 100;

export interface Part extends Spot {
  readonly json: Json;
  /** The fields of an object. */
  readonly fields?: ReadonlyMap<string, Field>;
  /** The items of a list. */
  readonly items?: readonly Part[];
}

export interface Field {
  /** The place of its key. */
  readonly key: Spot;
  readonly part: Part;
}

/** @throws PilotageError `flow_invalid` for a value that is not a JSON object, or is too large. */
export function readObject(document: unknown, source: string): Part {
  try {
    return partOfJson(captureObject(document, 'document').json, TOP, 0, new Size(source));
  } catch (cause) {
    if (!PilotageError.is(cause) || cause.code === 'flow_invalid') throw cause;
    throw documentInvalid(source, [faultAt('not_json', TOP, `${describeThrown(cause)} Give YAML, JSON or an object.`)]);
  }
}

function partOfJson(json: Json, spot: Spot, depth: number, size: Size): Part {
  size.count(spot, depth);
  if (Array.isArray(json)) {
    return { ...spot, json, items: json.map((item, at) => partOfJson(item, below(spot, at), depth + 1, size)) };
  }
  if (!isJsonObject(json)) return { ...spot, json };
  const fields = new Map<string, Field>();
  for (const [name, value] of Object.entries(json)) {
    const key = below(spot, name);
    fields.set(name, { key, part: partOfJson(value, key, depth + 1, size) });
  }
  return { ...spot, json, fields };
}

export function below({ path }: Spot, key: string | number, place?: DocumentPosition): Spot {
  const inner = `${path}/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`;
  return place === undefined ? { path: inner } : { path: inner, place };
}

/** Counts what has been read. */
export class Size {
  readonly #source: string;
  #values = 0;
  #aliases = 0;

  constructor(source: string) {
    this.#source = source;
  }

  count(spot: Spot, depth: number): void {
    this.#values += 1;
    if (depth > MAX_DEPTH) this.#tooLarge(spot, `The document is nested deeper than ${MAX_DEPTH} levels.`);
    if (this.#values > MAX_VALUES) this.#tooLarge(spot, `The document has more than ${MAX_VALUES} values; split it.`);
  }

  countAlias(spot: Spot): void {
    this.#aliases += 1;
    const message = `The document has more than ${MAX_ALIASES} aliases, those in repeated parts counted each time.`;
    if (this.#aliases > MAX_ALIASES) this.#tooLarge(spot, message);
  }

  #tooLarge(spot: Spot, message: string): never {
    throw documentInvalid(this.#source, [faultAt('too_large', spot, message)]);
  }
}
