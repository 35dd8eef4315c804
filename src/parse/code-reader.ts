/** Source code where a value should be: how far it goes, and the little of it that is worked out: arithmetic, numbers, booleans. */
import { isQuote } from './literal-reader.ts';
import { CodeText, isLooseList, type Loose, NumberText } from './loose-value.ts';
import { isHardStop, isSpaceCode, isWordCode, type Reader } from './reader.ts';

/** Moves the cursor behind the expression that stands there and gives its text, from `start` on. */
export function readCode(reader: Reader, start: number): string {
  const { text } = reader;
  const from = reader.at;
  let depth = 0;
  let at = from;
  for (; at < text.length; at += 1) {
    const char = text.charAt(at);
    if (char === ',' && depth === 0) break;
    if (char === '(' || char === '[' || char === '{') depth += 1;
    else if (char === ')' || char === ']' || char === '}') {
      if (depth === 0) break;
      depth -= 1;
    } else if (isQuote(char)) at = quotedEnd(text, at);
    else if (char === '<') at = genericsEnd(text, at);
    if (depth === 0 && isExpressionEnd(text, at)) break;
  }
  reader.at = at;
  reader.work.left -= at - from;
  reader.isLoose = true;
  if (at >= text.length) reader.isTruncated = true;
  return text.slice(start, at).trim();
}

/** A comment, a fence or a tag ends code. */
function isExpressionEnd(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  if (code === 35) return isSpaceCode(text.charCodeAt(at - 1)) && isSpaceCode(text.charCodeAt(at + 1));
  return isHardStop(text, at);
}

/** The index of the quote that closes the one at `at`, on the same line; `at` itself when the quote is not closed. */
function quotedEnd(text: string, at: number): number {
  const quote = text[at];
  for (let index = at + 1; index < text.length; index += 1) {
    const char = text[index];
    if (char === '\\') index += 1;
    else if (char === quote) return index;
    else if (char === '\n') break;
  }
  return at;
}

const GENERICS = /<[\w\s,.?[\]]{0,80}(?:<[\w\s,.?[\]]{0,80}>[\w\s,.?[\]]{0,80})?>(?=[([{])/y;

/** Skips the type parameters of `new HashMap<String, Integer>()`. */
function genericsEnd(text: string, at: number): number {
  if (!isWordCode(text.charCodeAt(at - 1))) return at;
  GENERICS.lastIndex = at;
  return GENERICS.test(text) ? GENERICS.lastIndex - 1 : at;
}

const ARITHMETIC = /^[\d\s.eE+\-*/%()_]{3,200}$/;
const DATE = /^\d+(?:[-/]\d+){2,}$|(?:^|[-/])0\d/;
const RANGE = /^\d+-\d+$/;

/**
 * The value of an expression of plain numbers such as `1/6` or `2**3`. A date is not an expression. In quotes, `5-10` is a range and
 * not a difference.
 */
export function evaluateArithmetic(text: string, isQuoted: boolean): number | undefined {
  if (!ARITHMETIC.test(text) || !/\d/.test(text)) return undefined;
  if (DATE.test(text) || (isQuoted && RANGE.test(text))) return undefined;
  const tokens = text.match(/\d[\d_]*\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?|\*\*|\/\/|[-+*/%()]|\S/g) ?? [];
  const state = { tokens, at: 0 };
  const value = sum(state);
  return state.at === tokens.length && value !== undefined && Number.isFinite(value) ? value : undefined;
}

interface Tokens {
  readonly tokens: readonly string[];
  at: number;
}

function sum(state: Tokens): number | undefined {
  let left = product(state);
  for (;;) {
    const operator = state.tokens[state.at];
    if (left === undefined || (operator !== '+' && operator !== '-')) return left;
    state.at += 1;
    const right = product(state);
    if (right === undefined) return undefined;
    left = operator === '+' ? left + right : left - right;
  }
}

function product(state: Tokens): number | undefined {
  let left = signed(state);
  for (;;) {
    const operator = state.tokens[state.at];
    if (left === undefined || (operator !== '*' && operator !== '/' && operator !== '//' && operator !== '%'))
      return left;
    state.at += 1;
    const right = signed(state);
    if (right === undefined) return undefined;
    if (operator === '*') left *= right;
    else if (operator === '/') left /= right;
    else if (operator === '//') left = Math.floor(left / right);
    else left -= Math.floor(left / right) * right;
  }
}

function signed(state: Tokens): number | undefined {
  const token = state.tokens[state.at];
  if (token !== '-' && token !== '+') return power(state);
  state.at += 1;
  const value = signed(state);
  return value === undefined || token === '+' ? value : -value;
}

function power(state: Tokens): number | undefined {
  const base = atom(state);
  if (base === undefined || state.tokens[state.at] !== '**') return base;
  state.at += 1;
  const exponent = signed(state);
  return exponent === undefined ? undefined : base ** exponent;
}

function atom(state: Tokens): number | undefined {
  const token = state.tokens[state.at];
  if (token === undefined) return undefined;
  state.at += 1;
  if (token !== '(') return /^[\d.]/.test(token) ? Number(token.replaceAll('_', '')) : undefined;
  const value = sum(state);
  if (state.tokens[state.at] !== ')') return undefined;
  state.at += 1;
  return value;
}

// Numbers and booleans that were written as something else.

const DECIMAL = /^[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d{1,3})?$/;
const GROUPED = /^[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?$/;
const SUFFIXED = /^([-+]?(?:\d+\.?\d*|\.\d+))[lLfFdDn]$/;

/** Whether a text is a decimal number and nothing else. */
export function isDecimal(text: string): boolean {
  return DECIMAL.test(text);
}

/** The number that a value is or says; a list of one number counts as that number. */
export function numberIn(value: Loose): number | undefined {
  if (typeof value === 'number') return value;
  if (value instanceof NumberText) return value.value;
  if (value instanceof CodeText) return textNumber(value.text);
  if (typeof value === 'string') return textNumber(value.trim());
  const only = isLooseList(value) && value.length === 1 ? value[0] : undefined;
  return typeof only === 'number' ? only : undefined;
}

function textNumber(text: string): number | undefined {
  if (text.length > 400) return undefined;
  if (DECIMAL.test(text)) return Number(text);
  if (GROUPED.test(text)) return Number(text.replaceAll(',', ''));
  const suffixed = SUFFIXED.exec(text)?.[1];
  return suffixed === undefined ? evaluateArithmetic(text, true) : Number(suffixed);
}

const BOOLEANS: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
  ['yes', true],
  ['no', false],
  ['1', true],
  ['0', false],
]);

/** The boolean that a value is or says. */
export function booleanIn(value: Loose): boolean | undefined {
  if (typeof value === 'boolean') return value;
  const text = value instanceof CodeText || value instanceof NumberText ? value.text : value;
  if (typeof text !== 'string' && typeof text !== 'number') return undefined;
  return BOOLEANS.get(String(text).trim().toLowerCase());
}
