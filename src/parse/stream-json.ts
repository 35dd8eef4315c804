/**
 * A push parser of one JSON value. Text goes in by pieces; what is known so far can be read at any time. Each piece is read
 * once, and the value is built in place, so the work is linear in the text however often the value is read.
 */
import { type Json, setField } from '#core';
import { readStrictJson } from './loose-value.ts';
import { DEFAULT_PARSE_LIMITS } from './reader.ts';

/** How a text that could be read differs from strict JSON. Each code is reported once, at its first place. */
export type JsonStreamIssueCode =
  | 'trailing_comma'
  | 'single_quotes'
  | 'control_character'
  | 'unknown_escape'
  | 'python_literal'
  | 'number_as_text'
  | 'unclosed'
  | 'text_after';

export interface JsonStreamIssue {
  readonly code: JsonStreamIssueCode;
  /** UTF-16 units from the beginning of the text. */
  readonly at: number;
  readonly message: string;
}

/** Where and why a text stopped being JSON. */
export interface JsonStreamFault {
  /** UTF-16 units from the beginning of the text. */
  readonly at: number;
  readonly message: string;
}

type Container = Json[] | { [key: string]: Json };

/** What the next character belongs to. `item`: a value or `]`; `key`: a key or `}`; `next`: a comma or a closer. */
type Expected = 'value' | 'item' | 'key' | 'colon' | 'next' | 'string' | 'atom' | 'nothing';

const MESSAGES: Readonly<Record<JsonStreamIssueCode, string>> = {
  trailing_comma: 'a comma stands before a closing bracket',
  single_quotes: 'a string is in single quotes',
  control_character: 'a string holds a control character, such as a line break, that is not escaped',
  unknown_escape: 'a string holds an escape that JSON does not know; it was kept as it is written',
  python_literal: 'True, False or None stands for true, false or null',
  number_as_text: 'a number that a double cannot hold was kept as text',
  unclosed: 'the text ends before its closing brackets',
  text_after: 'text follows the value; it was left out',
};

/** Why a text cannot end where it does. */
const CUT: Readonly<Record<'value' | 'colon' | 'string' | 'atom', string>> = {
  value: 'the text ends before the value of a key',
  colon: 'the text ends before the value of a key',
  string: 'the text ends inside a string',
  atom: 'the text ends inside a number or a word',
};

const LITERALS: ReadonlyMap<string, boolean | null> = new Map([
  ['true', true],
  ['false', false],
  ['null', null],
  ['True', true],
  ['False', false],
  ['None', null],
]);
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['"', '"'],
  ['\\', '\\'],
  ['/', '/'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
]);
const NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;
const INTEGER = /^-?\d+$/;
const HEX = /^[0-9a-fA-F]$/;
const BACKSLASH = 0x5c;
const BRACE = 0x7d;
const BRACKET = 0x5d;
const SINGLE_QUOTE = 0x27;
const SPACE = 0x20;

/**
 * Reads JSON, and texts that differ from JSON in a way with only one meaning: see `JsonStreamIssueCode`. Anything else breaks
 * it, and so do more than 4,000,000 characters and more than 100 levels. It never throws.
 */
export class JsonStream {
  /** What was tolerated so far. */
  readonly issues: JsonStreamIssue[] = [];
  #fault: JsonStreamFault | undefined;
  #complete = false;
  #root: Json | undefined;
  /** The open containers, outermost first. */
  readonly #open: Container[] = [];
  #expected: Expected = 'value';
  /** Whether the bracket that may close now would follow a comma. */
  #afterComma = false;
  /** The key that the next value belongs to. */
  #key = '';
  /** The open string or atom so far. A string that grows by `+=` is never copied until somebody looks into it. */
  #text = '';
  #isKey = false;
  #quote = 0;
  /** The open escape, from its backslash. */
  #escape = '';
  /** Whether the open string already stands in its container. */
  #shown = false;
  /** How many characters the earlier pieces had. */
  #before = 0;

  /** `complete` once the value has ended, `broken` once it cannot go on: see `fault`. */
  get state(): 'open' | 'complete' | 'broken' {
    if (this.#fault !== undefined) return 'broken';
    return this.#complete ? 'complete' : 'open';
  }

  get fault(): JsonStreamFault | undefined {
    return this.#fault;
  }

  /**
   * The value so far: what is complete, and of an open string what has come. An open number or word is not shown, for it may
   * still become another, nor is a key without a value. `undefined` while nothing can be shown. After a break: what stood
   * before it.
   *
   * It is the parser's own tree, which grows with later pieces: do not change it, and copy what is to stay as it is. Looking
   * into the characters of an open string makes the engine copy all of it; passing it on does not.
   */
  value(): Json | undefined {
    return this.#root;
  }

  push(chunk: string): void {
    if (this.#fault !== undefined) return;
    if (this.#before + chunk.length > DEFAULT_PARSE_LIMITS.maxChars) {
      this.#break(0, `the text is longer than ${DEFAULT_PARSE_LIMITS.maxChars} characters`);
      return;
    }
    if (this.#before === 0 && this.#expected === 'value' && this.#takeWhole(chunk)) return;
    let at = 0;
    while (at < chunk.length && this.#fault === undefined) {
      if (this.#expected === 'string') at = this.#readString(chunk, at);
      else if (this.#expected === 'atom') at = this.#readAtom(chunk, at);
      else at = this.#readMark(chunk, at);
    }
    if (this.#expected === 'string' && !this.#isKey) this.#place(this.#text);
    this.#before += chunk.length;
  }

  /** A text that comes in one piece is read by the engine. Tried with the first piece only, so it costs one look at most. */
  #takeWhole(chunk: string): boolean {
    const last = chunk.charCodeAt(chunk.length - 1);
    const value = last === BRACE || last === BRACKET ? readStrictJson(chunk, DEFAULT_PARSE_LIMITS.maxDepth) : undefined;
    if (value === undefined) return false;
    this.#root = value;
    this.#before = chunk.length;
    this.#endValue();
    return true;
  }

  /**
   * Says that no more text comes. Brackets that are still open are closed where no token is cut in two; a text that ends
   * inside a string, a key, a number or a word, or before the value of a key, is broken.
   */
  end(): void {
    if (this.state !== 'open') return;
    if (this.#expected === 'atom' && this.#open.length === 0) this.#endAtom(0);
    const expected = this.#expected;
    if (expected === 'nothing' || this.#fault !== undefined) return;
    if (expected === 'item' || expected === 'key' || expected === 'next') {
      this.#note('unclosed', 0);
      this.#complete = true;
    } else {
      this.#break(0, expected === 'value' && this.#open.length === 0 ? 'there is no value' : CUT[expected]);
    }
  }

  /** Reads a bracket, a comma, a colon, or the first character of a value or a key. */
  #readMark(chunk: string, from: number): number {
    let at = from;
    while (isSpace(chunk.charCodeAt(at))) at += 1;
    if (at === chunk.length) return at;
    const char = chunk.charAt(at);
    switch (this.#expected) {
      case 'next':
        if (char === ',') this.#pass(Array.isArray(this.#open.at(-1)) ? 'item' : 'key', true);
        else this.#close(char, at);
        return at + 1;
      case 'colon':
        if (char === ':') this.#pass('value', false);
        else this.#unexpected(char, at, 'a colon');
        return at + 1;
      case 'key':
        if (char === '"' || char === "'") this.#beginString(char, at, true);
        else this.#close(char, at);
        return at + 1;
      case 'item':
        if (char !== ']') return this.#beginValue(char, at);
        this.#close(char, at);
        return at + 1;
      case 'nothing':
        this.#note('text_after', at);
        return chunk.length;
      default:
        return this.#beginValue(char, at);
    }
  }

  #pass(expected: Expected, afterComma: boolean): void {
    this.#expected = expected;
    this.#afterComma = afterComma;
  }

  #beginValue(char: string, at: number): number {
    this.#shown = false;
    switch (char) {
      case '{':
        this.#enter({}, 'key', at);
        return at + 1;
      case '[':
        this.#enter([], 'item', at);
        return at + 1;
      case '"':
      case "'":
        this.#beginString(char, at, false);
        return at + 1;
      default:
        if (isDelimiter(char.charCodeAt(0))) {
          this.#unexpected(char, at, 'a value');
          return at + 1;
        }
        this.#text = '';
        this.#expected = 'atom';
        return at;
    }
  }

  #enter(container: Container, expected: Expected, at: number): void {
    if (this.#open.length >= DEFAULT_PARSE_LIMITS.maxDepth) {
      this.#break(at, `the value is nested deeper than ${DEFAULT_PARSE_LIMITS.maxDepth} levels`);
      return;
    }
    this.#place(container);
    this.#open.push(container);
    this.#pass(expected, false);
  }

  #close(char: string, at: number): void {
    const closer = Array.isArray(this.#open.at(-1)) ? ']' : '}';
    if (char !== closer) {
      this.#unexpected(char, at, this.#expected === 'key' ? 'a key in quotes' : `a comma or ${closer}`);
      return;
    }
    if (this.#afterComma) this.#note('trailing_comma', at);
    this.#open.pop();
    this.#endValue();
  }

  #endValue(): void {
    this.#complete = this.#open.length === 0;
    this.#pass(this.#complete ? 'nothing' : 'next', false);
  }

  #beginString(quote: string, at: number, isKey: boolean): void {
    if (quote === "'") this.#note('single_quotes', at);
    this.#quote = quote.charCodeAt(0);
    this.#text = '';
    this.#isKey = isKey;
    this.#expected = 'string';
  }

  #readString(chunk: string, from: number): number {
    if (this.#escape !== '') return this.#readEscape(chunk.charAt(from), from);
    const quote = this.#quote;
    let at = from;
    let unit = 0;
    for (; at < chunk.length; at += 1) {
      unit = chunk.charCodeAt(at);
      if (unit === quote || unit === BACKSLASH) break;
      if (unit < SPACE) this.#note('control_character', at);
    }
    this.#text += chunk.slice(from, at);
    if (at === chunk.length) return at;
    if (unit === BACKSLASH) this.#escape = '\\';
    else this.#endString();
    return at + 1;
  }

  #readEscape(char: string, at: number): number {
    const plain = this.#escape === '\\' ? ESCAPES.get(char) : undefined;
    const sofar = this.#escape + char;
    if (plain !== undefined) {
      this.#endEscape(plain);
    } else if (sofar === '\\u') {
      this.#escape = sofar;
    } else if (sofar.length === 2) {
      if (char !== "'" || this.#quote !== SINGLE_QUOTE) this.#note('unknown_escape', at);
      this.#endEscape(char === "'" ? char : sofar);
    } else if (!HEX.test(char)) {
      this.#unexpected(char, at, 'a hexadecimal digit');
    } else if (sofar.length < 6) {
      this.#escape = sofar;
    } else {
      this.#endEscape(String.fromCharCode(Number.parseInt(sofar.slice(2), 16)));
    }
    return at + 1;
  }

  #endEscape(plain: string): void {
    this.#text += plain;
    this.#escape = '';
  }

  #endString(): void {
    if (this.#isKey) {
      this.#key = this.#text;
      this.#expected = 'colon';
    } else {
      this.#place(this.#text);
      this.#endValue();
    }
  }

  #readAtom(chunk: string, from: number): number {
    let at = from;
    while (at < chunk.length && !isDelimiter(chunk.charCodeAt(at))) at += 1;
    this.#text += chunk.slice(from, at);
    if (at < chunk.length) this.#endAtom(at);
    return at;
  }

  #endAtom(at: number): void {
    const text = this.#text;
    const start = at - text.length;
    const value = LITERALS.get(text);
    if (value !== undefined) {
      if (text < 'a') this.#note('python_literal', start);
      this.#place(value);
    } else if (NUMBER.test(text)) {
      const number = Number(text);
      const isExact = Number.isInteger(number)
        ? Number.isSafeInteger(number) || !INTEGER.test(text)
        : Number.isFinite(number);
      if (!isExact) this.#note('number_as_text', start);
      this.#place(isExact ? number : text);
    } else {
      this.#break(start, 'the value that begins here is not JSON');
      return;
    }
    this.#endValue();
  }

  /** Puts a value, or more of the open string, where it belongs. */
  #place(value: Json): void {
    const container = this.#open.at(-1);
    if (container === undefined) this.#root = value;
    else if (!Array.isArray(container)) setField(container, this.#key, value);
    else if (this.#shown) container[container.length - 1] = value;
    else container.push(value);
    this.#shown = true;
  }

  #note(code: JsonStreamIssueCode, at: number): void {
    if (this.issues.some((issue) => issue.code === code)) return;
    this.issues.push({ code, at: this.#before + at, message: MESSAGES[code] });
  }

  #unexpected(char: string, at: number, wanted: string): void {
    this.#break(at, `${wanted} was expected, and not ${JSON.stringify(char)}`);
  }

  #break(at: number, message: string): void {
    this.#fault = { at: this.#before + at, message };
  }
}

function isSpace(unit: number): boolean {
  return unit === SPACE || unit === 0x0a || unit === 0x0d || unit === 0x09;
}

/** What ends a number or a word: white space and the marks , : [ ] { } and quotes. */
function isDelimiter(unit: number): boolean {
  switch (unit) {
    case 0x2c:
    case 0x3a:
    case 0x5b:
    case 0x5d:
    case 0x7b:
    case 0x7d:
    case 0x22:
    case 0x27:
      return true;
    default:
      return isSpace(unit);
  }
}
