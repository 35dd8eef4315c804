/**
 * Looks for a text in any case. What the database takes for the same letter depends on its locale, and JSON has some characters in another
 * form: so SQL only leaves out what cannot have the text, and what is left is decided here, as in all other stores.
 */

/** The two letters outside ASCII that are small as letters of ASCII: the sign of the kelvin, and the I with a dot. */
const KELVIN_AND_DOTTED = '\u212a\u0130';
/** What remains of the dotted I beside its letter. */
const DOT = '\u0307';

/** In SQL: whether the column, which may be JSON, can have the text of which the parameter is the `longestPart`. */
export function mayHave(column: string, parameter: string): string {
  return `strpos(translate(lower(${column} COLLATE "C"), '${KELVIN_AND_DOTTED}', 'ki'), ${parameter}::text) > 0`;
}

/** @param text in small letters. */
export function includesText(given: unknown, text: string): boolean {
  return typeof given === 'string' && given.toLowerCase().includes(text);
}

/** The longest part of a text in small letters that is the same in every locale, and in JSON. Perhaps it is empty. */
export function longestPart(text: string): string {
  let longest = '';
  let part = '';
  for (const letter of text) {
    part = isPlain(letter) ? part + letter : '';
    if (part.length > longest.length) longest = part;
  }
  return longest;
}

function isPlain(letter: string): boolean {
  if (letter < ' ' || letter === '"' || letter === '\\' || letter === DOT || !letter.isWellFormed()) return false;
  return letter <= '~' || (letter.toLowerCase() === letter && letter.toUpperCase() === letter);
}
