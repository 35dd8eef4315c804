/** A flow document as parts that know where they stand. Its size and depth are bounded. */
import { captureObject, describeThrown, isJsonObject, type Json, PilotageError } from '#core';
import { type DocumentPosition, documentInvalid, faultAt, type Spot, TOP } from './document-fault.ts';

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
