/**
 * Reads literals: numbers, the words that are values, and quoted text in any style, also where quotes inside are not escaped:
 * what follows a quote says whether it ends the text.
 */

import { CodeText, type Loose, NumberText } from './loose-value.ts';
import { afterSpace, isHardStop, isSpaceCode, isWordStart, type Reader, seek } from './reader.ts';

/** Where a value stands: it decides what may come after it. */
export type ValuePlace = 'object' | 'list' | 'call';

const CLOSING: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  '`': '`',
  '\u201c': '\u201d"\u201c',
  '\u201d': '\u201d"\u201c',
  '\u2018': "\u2019'\u2018",
  '\u2019': "\u2019'\u2018",
};

export function isQuote(char: string | undefined): boolean {
  return char !== undefined && Object.hasOwn(CLOSING, char);
}

/** Reads the string that begins at the cursor with a quote. `isRaw` keeps backslashes, as Python's r'' does. */
export function readString(reader: Reader, place: ValuePlace, role: 'key' | 'value', isRaw: boolean): string {
  const { text, at } = reader;
  const quote = text.charAt(at);
  if (quote !== '"') reader.isLoose = true;
  if ((quote === '"' || quote === "'") && text.startsWith(quote.repeat(3), at)) {
    const triple = readTriple(reader, quote.repeat(3), isRaw);
    if (triple !== undefined) return triple;
  }
  const closing = CLOSING[quote] ?? quote;
  let firstEnd = -1;
  let index = at + 1;
  for (; index < text.length && reader.work.left > 0; index += 1) {
    const char = text[index];
    if (char === '\\') {
      index += 1;
      continue;
    }
    if (char === undefined || !closing.includes(char)) continue;
    if (firstEnd < 0) firstEnd = index;
    if (endsString(reader, index, char, place, role, at)) return finish(reader, at + 1, index, index + 1, isRaw);
  }
  reader.work.left -= text.length - at;
  reader.isLoose = true;
  if (firstEnd >= 0) return finish(reader, at + 1, firstEnd, firstEnd + 1, isRaw);
  reader.isTruncated = true;
  const end = stopAfter(text, at + 1);
  return finish(reader, at + 1, end, end, isRaw);
}

/** Reads `\\"text\\"`: JSON that was escaped once more than it should be. */
export function readEscapedString(reader: Reader): string {
  const { text, at } = reader;
  reader.isLoose = true;
  const closing = text.slice(at, at + 2);
  const end = seek(reader.work, text, closing, at + 2);
  if (end < 0) reader.isTruncated = true;
  const body = finish(reader, at + 2, end < 0 ? text.length : end, end < 0 ? text.length : end + 2, false);
  return body.includes('\\') ? undoEscapes(reader, body) : body;
}

function readTriple(reader: Reader, fence: string, isRaw: boolean): string | undefined {
  const from = reader.at + 3;
  const end = seek(reader.work, reader.text, fence, from);
  if (end < 0) return undefined;
  reader.isLoose = true;
  return finish(reader, from, end, end + 3, isRaw);
}

function finish(reader: Reader, from: number, to: number, next: number, isRaw: boolean): string {
  reader.work.left -= next - reader.at;
  reader.at = next;
  const body = reader.text.slice(from, to);
  return isRaw || !body.includes('\\') ? body : undoEscapes(reader, body);
}

/** An open string goes on to the next tag or fence, or to the end of the text. */
function stopAfter(text: string, from: number): number {
  for (let at = from; at < text.length; at += 1) {
    const char = text[at];
    if ((char === '<' || char === '`') && isHardStop(text, at)) return at;
  }
  return text.length;
}

/** What a look at a quote costs beside the characters. */
const CANDIDATE = 20;

/** Whether the quote at `index` ends the string that began at `start`. */
function endsString(
  reader: Reader,
  index: number,
  quote: string,
  place: ValuePlace,
  role: 'key' | 'value',
  start: number,
): boolean {
  const { text } = reader;
  const at = afterSpace(text, index + 1);
  reader.work.left -= at - index + CANDIDATE;
  const char = text[at];
  const isApart = at > index + 1;
  switch (char) {
    case undefined:
      return true;
    case '}':
    case ']':
    case ')':
      return reader.closers.includes(char);
    case ',':
      return role === 'key' || isPlausibleNext(reader, at + 1, place);
    case ':':
      return role === 'key' || place === 'list';
    case '=':
      return role === 'key' || text[at + 1] === '=';
    case quote:
      return isApart || index === start + 1;
    case '`':
    case '<':
      return isHardStop(text, at) || (isApart && isQuote(char));
    case '#':
      return isApart;
    case '/':
      return isApart && (text[at + 1] === '/' || text[at + 1] === '*');
    case '+':
      return isApart || isQuote(text[at + 1]);
    case '%':
      return isApart && isSpaceCode(text.charCodeAt(at + 1));
    case '.':
      return METHOD_CALL.test(tail(text, at, 64));
    case ';':
      return index + 1 === at && /^;\s*(?:$|[\n<])/.test(tail(text, at, 8));
    default:
      if (isApart && isQuote(char)) return true;
      return isApart && text.slice(index + 1, at).includes('\n') && KEY_AHEAD.test(tail(text, at, 80));
  }
}

const METHOD_CALL = /^\.[A-Za-z_]\w*\(/;
const KEY_AHEAD = /^[A-Za-z_$][\w$.\\-]*\s*[:=]/;
const ITEM_AHEAD = /^[A-Za-z_$][\w$.\\]*\s*(?:[,\])}(=:<[]|$)/;

function tail(text: string, at: number, length: number): string {
  return text.slice(at, at + length);
}

/** Whether the text after a comma can begin the next item of the container. */
function isPlausibleNext(reader: Reader, from: number, place: ValuePlace): boolean {
  const { text } = reader;
  const at = afterSpace(text, from);
  reader.work.left -= at - from;
  const char = text[at];
  if (char === undefined || isQuote(char) || '}])#*'.includes(char)) return true;
  if (char === '/' && (text[at + 1] === '/' || text[at + 1] === '*')) return true;
  if (place === 'object') return KEY_AHEAD.test(tail(text, at, 80)) || (char === '.' && text[at + 1] === '.');
  if (isWordStart(text.charCodeAt(at))) return ITEM_AHEAD.test(tail(text, at, 200)) || isNewItem(text, at);
  return '0123456789-+.[{(<\\'.includes(char);
}

/** `new X()`, `lambda x: 1`. */
function isNewItem(text: string, at: number): boolean {
  return /^(?:new|lambda|function|not|async)\b/.test(tail(text, at, 10));
}

const SIMPLE: Readonly<Record<string, string>> = {
  n: '\n',
  r: '\r',
  t: '\t',
  b: '\b',
  f: '\f',
  v: '\v',
  '0': '\0',
  '\n': '',
};

/** Undoes the escapes of JSON, Python and JavaScript. A backslash before anything else is kept, but for `\_` and the like. */
function undoEscapes(reader: Reader, body: string): string {
  const parts: string[] = [];
  let from = 0;
  let at = body.indexOf('\\');
  while (at >= 0) {
    parts.push(body.slice(from, at));
    const char = body[at + 1];
    from = at + 2;
    const simple = char === undefined ? undefined : SIMPLE[char];
    if (char === undefined) {
      parts.push('\\');
    } else if (simple !== undefined) {
      parts.push(simple);
    } else if (char === 'u' || char === 'x') {
      const digits = body.slice(at + 2, at + (char === 'u' ? 6 : 4));
      const isWhole = /^[0-9a-fA-F]+$/.test(digits) && digits.length === (char === 'u' ? 4 : 2);
      parts.push(isWhole ? String.fromCharCode(Number.parseInt(digits, 16)) : `\\${char}`);
      if (isWhole) from += digits.length;
    } else if ('"\'\\/`_*#&$'.includes(char)) {
      parts.push(char);
    } else {
      reader.isLoose = true;
      parts.push(`\\${char}`);
    }
    at = body.indexOf('\\', from);
  }
  parts.push(body.slice(from));
  return parts.join('');
}

const NUMBER = /[-+]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/y;
const HEX = /0[xX][0-9a-fA-F]{1,13}/y;

/** The number at the cursor. A number that a double cannot represent keeps its text. */
export function readNumber(reader: Reader): Loose | undefined {
  HEX.lastIndex = reader.at;
  NUMBER.lastIndex = reader.at;
  const match = HEX.exec(reader.text) ?? NUMBER.exec(reader.text);
  if (match === null) return undefined;
  const text = match[0];
  reader.at += text.length;
  reader.work.left -= text.length;
  if (reader.at >= reader.text.length) reader.isTruncated = true; // more digits may be missing
  const value = Number(text.replaceAll('_', ''));
  if (String(value) === text)
    return Number.isSafeInteger(value) || !Number.isInteger(value) ? value : new NumberText(value, text);
  return /^[-+]?0\d/.test(text) ? new CodeText(text) : new NumberText(value, text);
}

/** The literals of JSON, Python and JavaScript. */
export const LITERALS: ReadonlyMap<string, Loose> = new Map<string, Loose>([
  ['true', true],
  ['false', false],
  ['null', null],
  ['True', true],
  ['False', false],
  ['None', null],
  ['TRUE', true],
  ['FALSE', false],
  ['NULL', null],
  ['nil', null],
  ['undefined', null],
]);
