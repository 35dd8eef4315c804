/** Names that come from outside, made fit to stand in a message. */

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

/** Longer words are not compared: it takes time by their length squared. */
const MAX_CHARS = 64;

/**
 * The known word with the fewest changes.
 * @param most how many changes it may have. Default: one in three letters, so that one stays as it was.
 */
export function nearest(
  word: string,
  known: readonly string[],
  most: number = Math.min(Math.ceil(word.length / 3), word.length - 1),
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

/** Letters to put in, take out or replace. */
function changesBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...from].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...to].entries()) {
      const replaced = (row[j] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
