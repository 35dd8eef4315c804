/** Secrets that a text calls by their kind: `password=…`, `"api_key": "…"`, `client_secret: …`, also as JSON inside JSON. */

const KINDS: readonly (readonly [name: string, words: string])[] = [
  ['password', 'pass(?:word|wd|phrase|code)|pwd'],
  ['secret', 'secret(?:[_-]?(?:access[_-]?)?key)?|credentials?|(?:private|encryption|signing)[_-]?key'],
  ['api_key', '(?:api|access|account|subscription|master)[_-]?key'],
  ['token', 'token|authorization|signature'],
];

/** The word, what may close its quotes, and what says that a value follows. Only a password is also said to "be" something. */
const HEAD = new RegExp(
  `(?:${KINDS.map(([name, words]) => `(?<${name}>${words})`).join('|')})` +
    `\\\\{0,7}["'\`]?(?:\\s{0,4}(?:(?<colon>:)|=>?|%3D)\\s{0,4}|(?<is>\\s{1,4}is\\s{1,4}))`,
  'gi',
);

/** A part of a text, and what is to stand in its place. */
export interface SecretSpan {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/** In the order in which they begin. A value may itself hold such a head: what looks like its end may be the middle of another's. */
export function namedSecrets(text: string): SecretSpan[] {
  const afterColon = new Run(text, AFTER_COLON);
  const afterEquals = new Run(text, AFTER_EQUALS);
  const found: SecretSpan[] = [];
  HEAD.lastIndex = 0;
  for (let head = HEAD.exec(text); head !== null; head = HEAD.exec(text)) {
    const groups = head.groups ?? {};
    if (groups['is'] !== undefined && groups['password'] === undefined) continue;
    const at = HEAD.lastIndex;
    const quoted = quotedAt(text, at);
    const start = quoted?.start ?? at;
    const end = quoted?.end ?? (groups['colon'] === undefined ? afterEquals : afterColon).endFrom(at);
    if (end === start || LITERALS.has(text.slice(start, Math.min(end, start + 6)))) continue;
    found.push({ name: KINDS.find(([kind]) => groups[kind] !== undefined)?.[0] ?? 'secret', start, end });
  }
  return found;
}

const LITERALS: ReadonlySet<string> = new Set(['null', 'true', 'false']);

/** Where a value without quotes stops: after a colon also where JSON and YAML go on. */
const AFTER_COLON = /[\s"'`,;&<>()[\]{}\\]/g;
const AFTER_EQUALS = /[\s"'`;&<>]|\\[nrt"'\\]/g;

/** Finds the next stop of a text, each part of which it looks at once. Its starts only grow. */
class Run {
  readonly #text: string;
  readonly #stop: RegExp;
  #from = -1;
  #end = -1;

  constructor(text: string, stop: RegExp) {
    this.#text = text;
    this.#stop = stop;
  }

  endFrom(start: number): number {
    if (this.#from <= start && start <= this.#end) return this.#end;
    this.#stop.lastIndex = start;
    this.#from = start;
    this.#end = this.#stop.exec(this.#text)?.index ?? this.#text.length;
    return this.#end;
  }
}

const OPENING_QUOTE = /\\{0,7}["'`]/y;

/**
 * The text in the quotes that open here, up to the end of the text when nothing closes them. In JSON inside JSON a quote has 1, 3 or
 * 7 backslashes before it; a quote of the value's own text has more, by a number that tells it apart.
 */
function quotedAt(text: string, from: number): { readonly start: number; readonly end: number } | undefined {
  OPENING_QUOTE.lastIndex = from;
  const opening = OPENING_QUOTE.exec(text)?.[0];
  if (opening === undefined) return undefined;
  const start = from + opening.length;
  const backslashes = opening.length - 1;
  const quote = opening.charAt(backslashes);
  let at = text.indexOf(quote, start);
  while (at >= 0) {
    let run = 0;
    while (at - run > start && text[at - run - 1] === '\\') run += 1;
    if (run % (2 * (backslashes + 1)) === backslashes) return { start, end: at - backslashes };
    at = text.indexOf(quote, at + 1);
  }
  return { start, end: text.length };
}
