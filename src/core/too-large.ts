/** What is too large to be recorded is not read: its text tells so, before a value is made of it. */
import { JSON_LIMITS } from './json.ts';

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
