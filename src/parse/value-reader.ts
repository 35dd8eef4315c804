/**
 * Reads one value as models write them: JSON, Python and JavaScript literals, with wrong or missing quotes, commas and
 * closers. A value is read forward once; nothing here goes back but for a string whose end was not found.
 */
import { setField } from '#core';
import { evaluateArithmetic, readCode } from './code-reader.ts';
import { isQuote, LITERALS, readEscapedString, readNumber, readString, type ValuePlace } from './literal-reader.ts';
import { CodeText, isLooseObject, type Loose, type MutableLoose, NumberText, readStrictJson } from './loose-value.ts';
import {
  afterSpace,
  countKey,
  countValue,
  createReader,
  DEFAULT_PARSE_LIMITS,
  isHardStop,
  isWordStart,
  type Reader,
  skipSpace,
  spend,
  workFor,
} from './reader.ts';

/** The value at the cursor; `undefined` when no value is there. */
export function readValue(reader: Reader, place: ValuePlace): Loose | undefined {
  skipSpace(reader);
  countValue(reader.work);
  if (!spend(reader, 1) || reader.isTooDeep) return undefined;
  const start = reader.at;
  const value = readPrimary(reader, place);
  if (value === undefined || reader.isTooDeep) return undefined;
  return readRest(reader, place, start, value);
}

/** The bracketed value at the cursor alone, with any text after it. */
export function readContainer(reader: Reader): Loose | undefined {
  const start = reader.at;
  const value = readPrimary(reader, 'list');
  if (value === undefined || reader.isTooDeep) return undefined;
  if (typeof value === 'object' && value !== null) reader.sources.set(value, reader.text.slice(start, reader.at));
  return value;
}

function readPrimary(reader: Reader, place: ValuePlace): Loose | undefined {
  const { text, at } = reader;
  const char = text[at];
  if (char === undefined || isHardStop(text, at)) return undefined;
  if (char === '{') return readObject(reader);
  if (char === '[' || char === '(') return readList(reader);
  if (isQuote(char)) return readString(reader, place, 'value', false);
  if (char === '\\' && isQuote(text[at + 1])) return readEscapedString(reader);
  if (',}]):=;'.includes(char)) return undefined;
  const prefix = stringPrefix(text, at);
  if (prefix !== undefined) {
    reader.at += prefix.length;
    reader.isLoose = true;
    return readString(reader, place, 'value', prefix.toLowerCase().includes('r'));
  }
  return readNumber(reader) ?? readWord(reader);
}

const PREFIX = /(?:[rR][bBfF]?|[bBfF][rR]?|[uU]|@)(?=["'])/y;

function stringPrefix(text: string, at: number): string | undefined {
  PREFIX.lastIndex = at;
  return PREFIX.exec(text)?.[0];
}

/** What may stand behind a value: nothing, more of an expression, or the next item without its comma. */
function readRest(reader: Reader, place: ValuePlace, start: number, value: Loose): Loose {
  const { text } = reader;
  const end = reader.at;
  skipSpace(reader);
  if (isDelimiter(text, reader.at)) {
    if (typeof value === 'object' && value !== null) reader.sources.set(value, text.slice(start, end));
    return value;
  }
  const next = text.charAt(reader.at);
  if (typeof value === 'string' && next === ':' && place === 'list') return value; // a key, where only items belong
  if (typeof value === 'string') return readTextRest(reader, place, start, end, value);
  const isContainer = Array.isArray(value) || isLooseObject(value);
  if (isContainer && (isQuote(next) || next === '{' || (next === '[' && reader.at > end) || beginsWord(reader))) {
    reader.isLoose = true; // the comma is missing
    reader.sources.set(value, text.slice(start, end));
    return value;
  }
  if (place === 'object' && isKeyAhead(text, reader.at)) return value;
  const code = readCode(reader, start);
  const number = evaluateArithmetic(code, false);
  return number === undefined ? new CodeText(code) : new NumberText(number, code);
}

/** `"a" "b"` and `"a" + "b"` are one text; a key on the next line begins the next field. */
function readTextRest(reader: Reader, place: ValuePlace, start: number, end: number, value: string): Loose {
  const { text } = reader;
  reader.isLoose = true;
  if (place === 'object' && isKeyAhead(text, reader.at)) return value;
  let joined = value;
  while (spend(reader, 1)) {
    const at = text[reader.at] === '+' ? afterSpace(text, reader.at + 1) : reader.at;
    if (!isQuote(text[at])) break;
    if (place === 'list' && at === reader.at && text.slice(end, at).includes('\n')) return joined; // the comma is missing
    reader.at = at;
    joined += readString(reader, place, 'value', false);
    skipSpace(reader);
  }
  return isDelimiter(text, reader.at) ? joined : new CodeText(readCode(reader, start));
}

function isDelimiter(text: string, at: number): boolean {
  const char = text[at];
  return char === undefined || ',}])'.includes(char) || isHardStop(text, at);
}

const KEY_AHEAD = /(?:"[^"\n]{0,80}"|'[^'\n]{0,80}'|[A-Za-z_$][\w$.-]{0,80})\s{0,8}[:=](?!=)/y;

function isKeyAhead(text: string, at: number): boolean {
  KEY_AHEAD.lastIndex = at;
  return KEY_AHEAD.test(text);
}

function beginsWord(reader: Reader): boolean {
  return isWordStart(reader.text.charCodeAt(reader.at)) && isKeyAhead(reader.text, reader.at);
}

const WORD = /[A-Za-z_$][\w$]*/y;
const CONSTRUCTORS: ReadonlySet<string> = new Set(['dict', 'list', 'tuple', 'set', 'frozenset', 'OrderedDict']);
const CONVERSIONS: ReadonlySet<string> = new Set(['str', 'int', 'float', 'bool', 'String', 'Number']);

function readWord(reader: Reader): Loose | undefined {
  const { text, at } = reader;
  WORD.lastIndex = at;
  const word = WORD.exec(text)?.[0];
  if (word !== undefined) {
    const end = at + word.length;
    const literal = LITERALS.get(word);
    if (literal !== undefined && isDelimiter(text, afterSpace(text, end))) {
      reader.at = end;
      if (word !== 'true' && word !== 'false' && word !== 'null') reader.isLoose = true;
      return literal;
    }
    if (text[end] === '(' && (CONSTRUCTORS.has(word) || CONVERSIONS.has(word)))
      return readConstructor(reader, word, end);
  }
  const code = readCode(reader, at);
  return code === '' ? undefined : new CodeText(code);
}

function readConstructor(reader: Reader, word: string, open: number): Loose | undefined {
  const start = reader.at;
  reader.at = open;
  const list = readArguments(reader);
  if (list === undefined) return undefined;
  const first = list.positional[0];
  if (word === 'dict' || word === 'OrderedDict') return { ...(isLooseObject(first) ? first : {}), ...list.named };
  if (CONSTRUCTORS.has(word) && (first === undefined || Array.isArray(first))) return first ?? [];
  if (CONVERSIONS.has(word) && first !== undefined && !(first instanceof CodeText)) return first;
  return new CodeText(reader.text.slice(start, reader.at));
}

/** What a container costs beside its characters. */
const CONTAINER = 10;
/** Text that nests too deep once is not worth many attempts. */
const TOO_DEEP = 20_000;

/** Opens a bracket; false when that is too deep. */
function open(reader: Reader, closer: string): boolean {
  reader.at += 1;
  reader.work.left -= CONTAINER;
  if (reader.closers.length >= reader.maxDepth) {
    reader.isTooDeep = true;
    reader.work.left -= TOO_DEEP;
    return false;
  }
  reader.closers.push(closer);
  return true;
}

/**
 * Whether the container ends at the cursor. The right closer is consumed; one that an outer bracket waits for ends this
 * container too, and any other is passed over.
 */
function atEnd(reader: Reader, closer: string): boolean {
  for (;;) {
    skipSpace(reader);
    const char = reader.text[reader.at];
    if (char === closer) {
      reader.at += 1;
      return true;
    }
    if (char === undefined || isHardStop(reader.text, reader.at)) {
      reader.isLoose = true;
      return true;
    }
    if (reader.work.left <= 0) {
      // What is behind is not read: the container is not whole.
      reader.isTruncated = true;
      return true;
    }
    if (char !== '}' && char !== ']' && char !== ')') return false;
    reader.isLoose = true;
    if (reader.closers.slice(0, -1).includes(char)) return true;
    reader.at += 1;
  }
}

function skipComma(reader: Reader): void {
  skipSpace(reader);
  while (reader.text[reader.at] === ',' || reader.text[reader.at] === ';') {
    reader.at += 1;
    skipSpace(reader);
    const next = reader.text[reader.at];
    if (next === undefined) reader.isTruncated = true;
    if (next === undefined || ',}])'.includes(next)) reader.isLoose = true;
  }
}

/** An object, or a set, which reads as a list. */
function readObject(reader: Reader): Loose | undefined {
  if (!open(reader, '}')) return undefined;
  const fields: MutableLoose = {};
  const items: Loose[] = [];
  let count = 0;
  while (!atEnd(reader, '}')) {
    if (!readField(reader, fields, items)) {
      reader.closers.pop();
      return undefined;
    }
    count += 1;
    skipComma(reader);
  }
  reader.closers.pop();
  if (items.length === 0) return fields;
  const only = items[0];
  if (count === 1 && isLooseObject(only)) return only; // {{…}}
  if (count === items.length) return items;
  return fields;
}

/** Reads one `key: value`. Without a colon the value goes to `items`. */
function readField(reader: Reader, fields: MutableLoose, items: Loose[]): boolean {
  const start = reader.at;
  const key = readKey(reader, 'object');
  if (key === undefined) return readSpread(reader, fields, items);
  if (!skipColon(reader)) {
    const next = reader.text[reader.at];
    if (next === undefined) {
      reader.isTruncated = true;
      return true;
    }
    if (',}])'.includes(next) || !(isQuote(next) || '{[0123456789-'.includes(next))) {
      reader.isLoose = true;
      reader.at = start; // an item of a set
      const item = readValue(reader, 'list');
      if (item !== undefined) items.push(item);
      return item !== undefined && reader.at > start;
    }
    reader.isLoose = true;
  }
  return readFieldValue(reader, fields, key, 'object');
}

function readFieldValue(reader: Reader, fields: MutableLoose, key: string, place: ValuePlace): boolean {
  countKey(reader.work, key);
  const value = readValue(reader, place);
  if (value !== undefined) {
    setField(fields, key, value);
    return true;
  }
  if (reader.isTooDeep || reader.work.left <= 0) return false;
  const next = reader.text[reader.at];
  if (next === undefined) {
    reader.isTruncated = true;
    return true;
  }
  if (!',}])'.includes(next) && !isHardStop(reader.text, reader.at)) return false;
  reader.isLoose = true;
  setField(fields, key, null);
  return true;
}

/** `**rest`, `...rest` and a value without a key. */
function readSpread(reader: Reader, fields: MutableLoose, items: Loose[]): boolean {
  const { text } = reader;
  const start = reader.at;
  if (text.startsWith('...', start) || text.startsWith('**', start)) {
    reader.at += text[start] === '.' ? 3 : 2;
    const value = readValue(reader, 'object');
    if (isLooseObject(value)) Object.assign(fields, value);
    return value !== undefined || text.startsWith('...', start);
  }
  const value = readValue(reader, 'list');
  if (value === undefined || reader.at === start) return false;
  items.push(value);
  return true;
}

const BARE_KEY = /[A-Za-z_$@#\u00c0-\uffff][\w$.\-\\\u00c0-\uffff]*|-?\d[\w.]*/y;

function readKey(reader: Reader, place: ValuePlace): string | undefined {
  const { text } = reader;
  if (isQuote(text[reader.at])) return readString(reader, place, 'key', false);
  if (text[reader.at] === '\\' && isQuote(text[reader.at + 1])) return readEscapedString(reader);
  const prefix = stringPrefix(text, reader.at);
  if (prefix !== undefined) {
    reader.at += prefix.length;
    return readString(reader, place, 'key', false);
  }
  BARE_KEY.lastIndex = reader.at;
  const key = BARE_KEY.exec(text)?.[0];
  if (key === undefined) return undefined;
  reader.isLoose = true;
  reader.at += key.length;
  return key.replaceAll('\\', '');
}

/** Consumes `:`, `=`, `=>` or `:=`. */
function skipColon(reader: Reader): boolean {
  skipSpace(reader);
  const { text, at } = reader;
  if (text[at] === ':') {
    reader.at += text[at + 1] === '=' ? 2 : 1;
    return true;
  }
  if (text[at] !== '=' || text[at + 1] === '=') return false;
  reader.isLoose = true;
  reader.at += text[at + 1] === '>' ? 2 : 1;
  return true;
}

/** A list or a tuple; `["a": 1]` reads as an object, and `(1)` as what is in it. */
function readList(reader: Reader): Loose | undefined {
  const isTuple = reader.text[reader.at] === '(';
  const closer = isTuple ? ')' : ']';
  if (isTuple) reader.isLoose = true;
  if (!open(reader, closer)) return undefined;
  const items: Loose[] = [];
  let fields: MutableLoose | undefined;
  let hasComma = false;
  while (!atEnd(reader, closer)) {
    const item = readValue(reader, 'list');
    if (item === undefined) {
      reader.closers.pop();
      return undefined;
    }
    if (reader.text[reader.at] === ':' && typeof item === 'string') {
      reader.isLoose = true;
      reader.at += 1;
      if (fields === undefined) {
        fields = {};
        items.push(fields);
      }
      if (!readFieldValue(reader, fields, item, 'object')) {
        reader.closers.pop();
        return undefined;
      }
    } else items.push(item);
    if (reader.text[reader.at] === ',') hasComma = true;
    skipComma(reader);
  }
  reader.closers.pop();
  const only = items[0];
  if (items.length === 1 && only !== undefined && (only === fields || (isTuple && !hasComma))) return only;
  return items;
}

/** The arguments of a call, in brackets. */
export interface Arguments {
  readonly positional: readonly Loose[];
  readonly named: { readonly [name: string]: Loose };
}

/** Reads `(a, b=1)`; the cursor stands at the bracket. */
export function readArguments(reader: Reader): Arguments | undefined {
  if (!open(reader, ')')) return undefined;
  const positional: Loose[] = [];
  const named: MutableLoose = {};
  while (!atEnd(reader, ')')) {
    if (!readArgument(reader, positional, named)) {
      reader.closers.pop();
      return undefined;
    }
    skipComma(reader);
  }
  reader.closers.pop();
  return { positional, named };
}

const NAMED = /(?:"[^"\n]{1,80}"|'[^'\n]{1,80}'|[A-Za-z_$][\w$.\-\\]{0,80})\s{0,8}(?:=(?![=])|:(?!:))>?/y;

function readArgument(reader: Reader, positional: Loose[], named: MutableLoose): boolean {
  const { text } = reader;
  NAMED.lastIndex = reader.at;
  const name = NAMED.exec(text)?.[0];
  if (name !== undefined) {
    const key = name.replace(/\s*[=:]>?$/, '').replace(/^["']|["']$/g, '');
    reader.at += name.length;
    return readFieldValue(reader, named, key.replaceAll('\\', ''), 'call');
  }
  const start = reader.at;
  if (text[start] === '*') return readSpread(reader, named, positional);
  const value = readValue(reader, 'call');
  if (value === undefined || reader.at === start) return false;
  positional.push(value);
  return true;
}

/** The value that the whole text is, when it begins with one of `openers` and is not cut off. */
export function readWhole(text: string, openers: string): Loose | undefined {
  const at = afterSpace(text, 0);
  const first = text[at];
  if (first === undefined || !openers.includes(first)) return undefined;
  const json = readStrictJson(text, DEFAULT_PARSE_LIMITS.maxDepth);
  if (json !== undefined) return json;
  const reader = createReader(text, at, DEFAULT_PARSE_LIMITS.maxDepth, workFor(text, DEFAULT_PARSE_LIMITS));
  const value = readValue(reader, 'list');
  if (value === undefined || reader.isTruncated || afterSpace(text, reader.at) < text.length) return undefined;
  return value;
}
