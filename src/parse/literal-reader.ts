/** Numbers, and the words that are values. */
import { CodeText, type Loose, NumberText } from './loose-value.ts';
import type { Reader } from './reader.ts';

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
