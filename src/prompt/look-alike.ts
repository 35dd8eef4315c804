/**
 * Whether a text could be read as one of our marks: in any case, with spaces, slashes or invisible characters between its
 * parts, in letters of other scripts that look the same, and written as entities or escapes.
 */

/** What looks like "<", or stands for it. */
export const OPENING: RegExp =
  /[<≮﹤＜‹⟨⟪《\u2329〈❮❰❬ᐸ˂«≪⧼≺⋖ᚲ]|&(?:amp;)*(?:lt|#0*60|#x0*3c);?|\\u003c|\\u\{0*3c\}|\\x3c|%(?:25)*3c/giu;
const OPENING_HERE = new RegExp(OPENING.source, 'iuy');

/** Says whether an opening of `length` units at `at` begins what could be read as a mark. */
export type MarkFinder = (text: string, at: number, length: number) => boolean;

/**
 * What finds the marks with these names: lower-case letters and underscores. It finds one also where the text ends before it
 * is certain, for what comes after might go on.
 */
export function markFinder(names: readonly string[]): MarkFinder {
  const root = treeOf(names);
  const start: readonly Branch[] = [root];
  return (text, at, length) => {
    let left = start;
    let closes = false;
    for (let index = at + length; index < text.length; ) {
      const { sign, size } = signAt(text, index);
      index += size;
      if (sign === HIDDEN) continue;
      if (left === start && (sign === SLASH || sign === SPACE)) {
        closes ||= sign === SLASH;
        continue;
      }
      const whole = left.find(({ name }) => name !== undefined)?.name;
      if (whole !== undefined && !isWordSign(sign)) return closes || whole.includes(BAR) || !isTypeArgument(text, at);
      const next = left.length === 1 ? following(left[0] as Branch, sign) : followingAll(left, sign);
      if (next.length === 0) return false;
      left = next;
    }
    return true;
  };
}

interface Branch {
  /** By what comes next. */
  readonly next: Map<string, Branch>;
  readonly isAfterBar: boolean;
  /** The name that ends here. */
  name?: string;
}

function treeOf(names: readonly string[]): Branch {
  const root: Branch = { next: new Map(), isAfterBar: false };
  for (const name of names) {
    let branch = root;
    for (const char of name) {
      const sign = plainLetter(char);
      const known = branch.next.get(sign) ?? { next: new Map(), isAfterBar: char === BAR };
      branch.next.set(sign, known);
      branch = known;
    }
    branch.name = name;
  }
  return root;
}

const NONE: readonly Branch[] = [];

/** Space may stand for the bar between two words, beside it, and inside a word. */
function following(branch: Branch, sign: string): readonly Branch[] {
  const { next, isAfterBar } = branch;
  if (sign === ANY_LETTER) return [...next].flatMap(([expected, each]) => (expected === BAR ? [] : [each]));
  const found = next.get(sign === SPACE ? BAR : sign);
  const stays = sign === SPACE || (sign === BAR && isAfterBar);
  if (found === undefined) return stays ? [branch] : NONE;
  return stays ? [branch, found] : [found];
}

function followingAll(left: readonly Branch[], sign: string): readonly Branch[] {
  return [...new Set(left.flatMap((each) => following(each, sign)))];
}

/**
 * `List<Goal>` is code; a mark is not glued to a word. The letter before it may be the end of an escape: `\n` in JSON is not a
 * word.
 */
function isTypeArgument(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - ESCAPE_LENGTH), at);
  return /[\w$]$/.test(before) && !/(?:\\(?:[a-z]|u[\da-f]{4}|x[\da-f]{2}|[0-7]{1,3})|%[\da-f]{2})$/i.test(before);
}

const ESCAPE_LENGTH = 6;

const HIDDEN = '';
const SPACE = ' ';
const SLASH = '/';
const BAR = '_';
/** A letter that may look like any other. */
const ANY_LETTER = '?';
const OTHER = '#';

function isWordSign(sign: string): boolean {
  return sign !== SPACE && sign !== SLASH && sign !== OTHER;
}

interface Sign {
  readonly sign: string;
  /** Units of the text that it takes. */
  readonly size: number;
}

const ESCAPE =
  /&#x([\da-f]{1,6});?|&#(\d{1,7});?|\\u([\da-f]{4})|\\u\{([\da-f]{1,6})\}|\\x([\da-f]{2})|%([\da-f]{2})/iy;
const ENTITY = /&(sol|bsol|lowbar|hyphen|[a-z]{2,30});/iy;

function signAt(text: string, at: number): Sign {
  const first = text.codePointAt(at) as number;
  const plain = PLAIN[first];
  if (plain !== undefined) return plain;
  if (first === AMPERSAND || first === BACKSLASH || first === PERCENT) {
    OPENING_HERE.lastIndex = at;
    if (OPENING_HERE.test(text)) return { sign: OTHER, size: 1 };
    ESCAPE.lastIndex = at;
    const escaped = ESCAPE.exec(text);
    if (escaped !== null) {
      const [whole, hex, decimal, ...others] = escaped;
      const digits = hex ?? others.find((digits) => digits !== undefined);
      const code = digits === undefined ? Number(decimal) : Number.parseInt(digits, 16);
      return { sign: signOf(code), size: whole.length };
    }
    ENTITY.lastIndex = at;
    const entity = ENTITY.exec(text);
    if (entity !== null) return { sign: ENTITIES[entity[1]?.toLowerCase() ?? ''] ?? HIDDEN, size: entity[0].length };
  }
  return { sign: signOf(first), size: first > 0xffff ? 2 : 1 };
}

const AMPERSAND = 0x26;
const BACKSLASH = 0x5c;
const PERCENT = 0x25;
/** Other entities are taken for characters that cannot be seen. */
const ENTITIES: Readonly<Record<string, string>> = {
  ...{ sol: SLASH, bsol: SLASH, lowbar: BAR, hyphen: BAR, dash: BAR, gt: OTHER, quot: OTHER, apos: OTHER, amp: OTHER },
};

const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Cf}\p{M}]/u;
const BLANK = /[\s\p{Z}\p{Cc}]/u;
const SLASHES = /[/\\∕⁄⧸⟋╱⧵⟍╲∖／＼﹨]/u;
const BARS = /[\p{Pc}\p{Pd}ˍ]/u;
/** Scripts with letters that look Latin. */
const LATIN_LIKE =
  /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Cherokee}\p{Script=Armenian}\p{Script=Lisu}\p{Script=Coptic}\p{Script=Deseret}\p{Script=Common}]/u;

function signOf(code: number): string {
  if (code > 0x10_ffff) return OTHER;
  const char = String.fromCodePoint(code);
  if (UNSEEN.test(char)) return HIDDEN;
  if (BLANK.test(char)) return SPACE;
  if (SLASHES.test(char)) return SLASH;
  if (BARS.test(char)) return BAR;
  const folded = char.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  if (/^[a-z0-9]/.test(folded)) return plainLetter(folded[0] as string);
  return /^\p{L}/u.test(folded) && LATIN_LIKE.test(folded) ? ANY_LETTER : OTHER;
}

/** Letters and digits that are taken for one another are one. */
function plainLetter(letter: string): string {
  return letter === '0' ? 'o' : letter === 'i' || letter === '1' ? 'l' : letter;
}

/** The signs of ASCII characters that begin no escape. */
const PLAIN: readonly (Sign | undefined)[] = Array.from({ length: 0x80 }, (_, code) =>
  code === AMPERSAND || code === BACKSLASH || code === PERCENT ? undefined : { sign: signOf(code), size: 1 },
);
