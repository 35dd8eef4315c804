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
