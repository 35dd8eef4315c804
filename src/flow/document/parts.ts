/**
 * A flow document as parts that know where they stand, read from an object or from a text: YAML 1.2, of which JSON
 * is a part. Size and depth are bounded before anything is made of a text, and no tag makes anything but JSON.
 */
import { createRequire } from 'node:module';
import type { Alias, Document, LineCounter, Pair, Parser } from 'yaml';
import {
  capture,
  captureObject,
  describeThrown,
  isJsonObject,
  type Json,
  nearest,
  oneLine,
  PilotageError,
  pointerTo,
} from '#core';

interface DocumentPosition {
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

const TOP: Spot = { path: '' };

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

const MAX_DEPTH = 64;
const MAX_VALUES = 50_000;
const MAX_ALIASES = 100;

export interface DocumentPart extends Spot {
  readonly json: Json;
  /** The fields of an object. */
  readonly fields?: ReadonlyMap<string, Field>;
  /** The items of a list. */
  readonly items?: readonly DocumentPart[];
}

export interface Field {
  /** The place of its key. */
  readonly key: Spot;
  readonly part: DocumentPart;
}

/** @throws PilotageError `flow_invalid` for a value that is not a JSON object, or is too large. */
export function readObject(document: unknown, source: string): DocumentPart {
  try {
    return partOfJson(captureObject(document, 'document').json, TOP, 0, new Size(source));
  } catch (cause) {
    if (!PilotageError.is(cause) || cause.code === 'flow_invalid') throw cause;
    throw documentInvalid(source, [faultAt('not_json', TOP, `${describeThrown(cause)} Give YAML, JSON or an object.`)]);
  }
}

function partOfJson(json: Json, spot: Spot, depth: number, size: Size): DocumentPart {
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

function below({ path }: Spot, key: string | number, place?: DocumentPosition): Spot {
  const inner = pointerTo(path, key);
  return place === undefined ? { path: inner } : { path: inner, place };
}

/** Counts what has been read. */
class Size {
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

// From a text.

const MAX_CHARS = 524_288;

export interface ReadText {
  readonly top: DocumentPart;
  /** Keys that stand twice: the rest can be judged all the same. */
  readonly faults: readonly DocumentFault[];
}

/** @throws PilotageError `flow_invalid` with all faults when the text is not YAML, or cannot be read as JSON. */
export function readDocumentText(given: string, source: string): ReadText {
  const text = given.replace(/^\uFEFF/, '');
  if (text.length > MAX_CHARS) {
    const message = `The text has ${text.length} characters; at most ${MAX_CHARS} are read.`;
    throw documentInvalid(source, [faultAt('too_large', TOP, message)]);
  }
  const reader = readerOf(text, source);
  const document = documentOf(reader);
  const syntax = syntaxFaults(document, reader);
  if (syntax.length > 0) throw documentInvalid(source, syntax);
  const walk: Walk = { ...reader, document, size: new Size(source), faults: [] };
  const top = partOfNode(document.contents, reader.spotAt(0), 0, walk);
  if (walk.faults.some(({ code }) => code !== 'duplicate_key')) throw documentInvalid(source, walk.faults);
  return { top, faults: walk.faults };
}

type Yaml = typeof import('yaml');

interface Reader {
  readonly yaml: Yaml;
  readonly text: string;
  readonly lines: LineCounter;
  placeOf(offset: number): DocumentPosition;
  spotAt(offset: number): Spot;
  refusal(code: string, offset: number, message: string): PilotageError;
}

function readerOf(text: string, source: string): Reader {
  const yaml = loadYaml();
  const lines = new yaml.LineCounter();
  const placeOf = (offset: number): DocumentPosition => {
    const { line, col } = lines.linePos(Math.min(offset, text.length));
    return { line, column: col };
  };
  const spotAt = (offset: number): Spot => ({ path: '', place: placeOf(offset) });
  const refusal = (code: string, offset: number, message: string): PilotageError =>
    documentInvalid(source, [faultAt(code, spotAt(offset), message)]);
  return { yaml, text, lines, placeOf, spotAt, refusal };
}

/**
 * Loaded with the first text: who writes no documents need not have it.
 * @throws PilotageError `package_missing` when it is not installed.
 */
function loadYaml(): Yaml {
  const require = createRequire(import.meta.url);
  try {
    require.resolve('yaml');
  } catch (cause) {
    const message =
      'Flow documents are read with the package `yaml`, which is not installed: npm install yaml. A document that is given as an object needs no package.';
    throw new PilotageError('package_missing', message, { data: { package: 'yaml' }, cause });
  }
  return require('yaml');
}

function documentOf(reader: Reader): Document.Parsed {
  const { yaml, text, refusal } = reader;
  // Keys that stand twice are found below, in one pass; the library compares every two.
  const composer = new yaml.Composer({ uniqueKeys: false, stringKeys: true, resolveKnownTags: false });
  let first: Document.Parsed | undefined;
  for (const each of composer.compose(tokensOf(reader), true, text.length)) {
    if (first !== undefined) {
      throw refusal('syntax', each.range[0], 'A second document begins here; give one flow a text.');
    }
    first = each;
  }
  // By `true` there always is one.
  return first as Document.Parsed;
}

/**
 * What `parseDocument` does, but for the depth: making nodes of tokens takes stack for each level, and running out of it in
 * the middle of a regular expression ends the process.
 */
function* tokensOf({ yaml, text, lines, refusal }: Reader): ReturnType<Parser['parse']> {
  const parser = new yaml.Parser(lines.addNewLine);
  lines.addNewLine(0);
  for (const lexeme of new yaml.Lexer().lex(text)) {
    yield* parser.next(lexeme);
    // Beside the collections there are the document and a value.
    if (parser.stack.length > MAX_DEPTH + 2) {
      throw refusal('too_large', parser.offset, `The document is nested deeper than ${MAX_DEPTH} levels.`);
    }
  }
  yield* parser.end();
}

function syntaxFaults({ errors, warnings, directives }: Document.Parsed, { spotAt }: Reader): DocumentFault[] {
  const faults = [...errors, ...warnings].map(({ code, message, pos }) => {
    const spot = spotAt(pos[0]);
    if (code === 'NON_STRING_KEY')
      return faultAt('syntax', spot, 'A key must be a string; write this key as a string.');
    if (code !== 'TAG_RESOLVE_FAILED') return faultAt('syntax', spot, sentence(message));
    return faultAt(
      'tag_refused',
      spot,
      `${sentence(message)} Tags have no meaning here; write the value without a tag.`,
    );
  });
  if (directives.yaml.version === '1.2') return faults;
  return [...faults, faultAt('syntax', spotAt(0), 'Only YAML 1.2 is read; take the directive out of the document.')];
}

interface Walk extends Reader {
  readonly document: Document.Parsed;
  readonly size: Size;
  readonly faults: DocumentFault[];
}

function partOfNode(node: unknown, spot: Spot, depth: number, walk: Walk): DocumentPart {
  const { yaml } = walk;
  const here = placed(node, spot, walk);
  walk.size.count(here, depth);
  if (yaml.isAlias(node)) return partOfAlias(node, here, depth, walk);
  if (yaml.isMap(node)) return partOfMap(node.items, here, depth, walk);
  if (yaml.isSeq(node)) {
    const items = node.items.map((item, at) => partOfNode(item, below(here, at, here.place), depth + 1, walk));
    return { ...here, json: items.map(({ json }) => json), items };
  }
  return { ...here, json: yaml.isScalar(node) ? plain(node.value, here, walk) : null };
}

function placed(node: unknown, spot: Spot, { yaml, placeOf }: Walk): Spot {
  const range = yaml.isNode(node) ? node.range : undefined;
  return range?.[0] === undefined ? spot : { path: spot.path, place: placeOf(range[0]) };
}

function partOfMap(pairs: readonly Pair[], here: Spot, depth: number, walk: Walk): DocumentPart {
  const fields = new Map<string, Field>();
  for (const { key, value } of pairs) {
    const name = walk.yaml.isScalar(key) ? String(key.value ?? '') : '';
    const spot = placed(key, below(here, name, here.place), walk);
    if (!fields.has(name)) {
      fields.set(name, { key: spot, part: partOfNode(value, spot, depth + 1, walk) });
      continue;
    }
    const message = `The key ${quotedName(name)} stands here for the second time; take one of the two out.`;
    walk.faults.push(faultAt('duplicate_key', spot, message));
  }
  // Not by assignment: a key `__proto__` is a key.
  const json = Object.fromEntries([...fields].map(([name, { part }]) => [name, part.json]));
  return { ...here, json, fields };
}

/** Faults in what it stands for are told where that is written, under the path of the alias. */
function partOfAlias(alias: Alias, spot: Spot, depth: number, walk: Walk): DocumentPart {
  walk.size.countAlias(spot);
  const node = alias.resolve(walk.document);
  if (node !== undefined) return partOfNode(node, spot, depth + 1, walk);
  const message = `There is no anchor ${quotedName(`&${alias.source}`)} before this alias.`;
  walk.faults.push(faultAt('syntax', spot, message));
  return { ...spot, json: null };
}

function plain(value: unknown, spot: Spot, { faults }: Walk): Json {
  try {
    return capture(value, 'the value').json;
  } catch (cause) {
    faults.push(faultAt('not_json', spot, describeThrown(cause)));
    return null;
  }
}

function sentence(text: string): string {
  return text.endsWith('.') ? text : `${text}.`;
}
