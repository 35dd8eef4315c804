/** Names that come from outside, made fit to stand in a message. */

import { createHash } from 'node:crypto';

const MAX_NAME = 64;

/** One line of at most `maxChars` characters (code points): control and format characters become spaces. */
export function oneLine(text: string, maxChars: number): string {
  // No character is longer than two units.
  const cut = Array.from(text.slice(0, 2 * maxChars)).slice(0, maxChars);
  return cut
    .join('')
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, ' ');
}

/** A tool's name for a message: at most 64 characters on one line. */
export function shownName(tool: string): string {
  return oneLine(tool, MAX_NAME);
}

/**
 * A tool's name in a native call. Providers refuse a whole request over a name that their protocol does not carry: it is what all of
 * them carry (letters, digits, `_` and `-`, at most 64, no digit first), or else that with a digest of the name, so that two names never meet and a name is the same after a restart.
 */
export function wireName(tool: string): string {
  const known = WIRE_NAMES.get(tool);
  if (known !== undefined) return known;
  const name = CARRIED.test(tool) ? tool : carried(tool);
  // Names of tools are few; a model that makes up names must not fill the memory.
  if (WIRE_NAMES.size < MAX_WIRE_NAMES) WIRE_NAMES.set(tool, name);
  return name;
}

const CARRIED = /^[a-z_][\w-]{0,63}$/i;
const DIGEST_CHARS = 10;
const MAX_WIRE_NAMES = 10_000;
const WIRE_NAMES = new Map<string, string>();

function carried(tool: string): string {
  const digest = createHash('sha256').update(tool).digest('hex').slice(0, DIGEST_CHARS);
  const words = `${/^[a-z_]/i.test(tool) ? '' : '_'}${tool}`.replace(/[^\w-]/g, '_');
  return `${words.slice(0, MAX_NAME - DIGEST_CHARS - 1)}_${digest}`;
}

/** Longer words are not compared: it takes time by their length squared. */
const MAX_CHARS = 64;

/**
 * The known word with the fewest changes.
 * @param most how many changes it may have. Default: one in three letters. Of a short word more would leave too little to know it by.
 */
export function nearest(
  word: string,
  known: readonly string[],
  most: number = word.length < 2 ? 0 : Math.max(1, Math.floor(word.length / 3)),
): string | undefined {
  if (word.length > MAX_CHARS) return undefined;
  let best: string | undefined;
  let fewest = most + 1;
  for (const each of known) {
    if (Math.abs(each.length - word.length) > most) continue;
    const changes = changesBetween(word.toLowerCase(), each.toLowerCase());
    if (changes < fewest) [best, fewest] = [each, changes];
  }
  return best;
}

/** Letters to put in, take out or replace, and neighbours to exchange. */
function changesBetween(from: string, to: string): number {
  let before: readonly number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 0; i < from.length; i += 1) {
    const next = [i + 1];
    for (let j = 0; j < to.length; j += 1) {
      const replaced = (row[j] ?? 0) + (from[i] === to[j] ? 0 : 1);
      const areExchanged = i > 0 && j > 0 && from[i] === to[j - 1] && from[i - 1] === to[j];
      const exchanged = areExchanged ? (before[j - 1] ?? 0) + 1 : replaced;
      next.push(Math.min(replaced, exchanged, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    before = row;
    row = next;
  }
  return row.at(-1) ?? 0;
}
