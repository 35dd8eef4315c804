/** How secrets in a text are found: by what they look like, by what the text calls them, and those that are known. In time that is linear in the text. */
import { PilotageError } from './errors.ts';

export interface RedactRule {
  /** `[redacted:<name>]` stands in the place of what was found. */
  readonly name: string;
  /** Every match is replaced, but for what its groups `before` and `after` have at its ends. */
  readonly pattern: RegExp;
}

/**
 * Found wherever they stand. Each pattern is sure of its match after a bounded number of characters and takes the rest without
 * going back, so that no text makes it slow.
 */
const RULES: readonly RedactRule[] = [
  {
    // Up to the next line of dashes, which ends the key; a quote ends it too.
    name: 'private_key',
    pattern:
      /-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^"\\-]|\\{1,8}[nr]|-(?!----))*(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?/g,
  },
  {
    name: 'api_key',
    pattern:
      /(?:sk-(?:proj|ant|or|svcacct|admin|live|test|lf)-|[srp]k_(?:live|test)_|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|xapp-|hf_|gsk_|xai-|npm_|pypi-|dop_v1_|shp(?:at|ca|pa|ss)_|lin_api_|whsec_|ya29\.|SG\.)[\w.-]{12,}/g,
  },
  // A word such as "task-…" ends as this key begins. In JSON text the letter before may belong to a line break.
  { name: 'api_key', pattern: /(?:(?<![A-Za-z])|(?<=\\[nrt]))sk-[A-Za-z0-9_-]{20,}/g },
  { name: 'api_key', pattern: /(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}|AIza[\w-]{30,}/g },
  // JSON in base64, as at the beginning of a signed token.
  { name: 'token', pattern: /eyJ[\w-]{16,}(?:\.[\w-]*){0,4}/g },
  { name: 'token', pattern: /(?<before>bearer(?:\s|%20|\+){1,4})(?!bearer)[\w.~+/=-]{6,}/gi },
  {
    name: 'authorization',
    pattern:
      /(?<before>authorization\\{0,7}["']?\s{0,4}[:=]\s{0,4}\\{0,7}["']?(?:basic|digest|token)\s{1,4})(?!authorization)[^\s"'\\]+/gi,
  },
  { name: 'cookie', pattern: /(?<before>cookie\\{0,7}["']?\s{0,4}[:=]\s{0,4}\\{0,7}["']?)[^\r\n"'\\]+/gi },
];

/**
 * Gives texts with the secrets in them replaced: private keys, the keys of providers, bearer tokens, passwords in addresses,
 * and whatever a text itself calls a password, a secret, a token or a key.
 * @param more beside the rules that are always there.
 * @throws PilotageError `invalid_config` for a rule without a name or a pattern.
 */
export function redactor(more: readonly RedactRule[] = []): (text: string) => string {
  if (!Array.isArray(more))
    throw new PilotageError('invalid_config', 'redactor takes a list of rules, such as [{ name, pattern }].');
  const rules = [...RULES, ...more.map(checked)];
  return (text) => {
    // Each is looked for in the text as it is: what one rule takes away may be how another knows its secret.
    const spans = [...namedSecrets(text), ...addressPasswords(text)];
    for (const rule of rules) for (const span of spansOf(text, rule)) spans.push(span);
    return spans.length === 0 ? text : withMarks(text, spans);
  };
}

const NONE: readonly SecretSpan[] = [];

function spansOf(text: string, { name, pattern }: RedactRule): readonly SecretSpan[] {
  // Most texts have none, and looking once is cheaper than setting out to list them.
  if (text.search(pattern) === -1) return NONE;
  const found: SecretSpan[] = [];
  for (const { 0: whole, index, groups } of text.matchAll(pattern)) {
    const start = index + (groups?.['before']?.length ?? 0);
    const end = index + whole.length - (groups?.['after']?.length ?? 0);
    if (end > start) found.push({ name, start, end });
  }
  return found;
}

/** Where some overlap, one mark stands for all of them: that of the one which begins first. */
function withMarks(text: string, spans: readonly SecretSpan[]): string {
  let marked = '';
  let done = 0;
  for (const { name, start, end } of spans.toSorted((left, right) => left.start - right.start)) {
    if (start >= done) marked += `${text.slice(done, start)}[redacted:${name}]`;
    done = Math.max(done, end);
  }
  return marked + text.slice(done);
}

function checked(rule: RedactRule): RedactRule {
  const { name, pattern }: Partial<RedactRule> = rule ?? {};
  if (typeof name !== 'string' || !/^[\w.-]{1,40}$/.test(name)) {
    throw new PilotageError(
      'invalid_config',
      'The name of a redaction rule must have 1 to 40 letters, digits, ".", "_" and "-".',
    );
  }
  if (!(pattern instanceof RegExp)) {
    throw new PilotageError('invalid_config', `The redaction rule ${name} has no pattern; give a regular expression.`);
  }
  const flags = pattern.flags.replace('y', '');
  return { name, pattern: new RegExp(pattern.source, flags.includes('g') ? flags : `${flags}g`) };
}

// The passwords in addresses, such as `postgres://user:password@host`.

const BEGINNING = '://';
const MAX_PASSWORD_CHARS = 256;
/** The user's name, which may be missing, and the colon behind it. */
const USER = /[^\s:@/"'\\]{0,128}:/y;
/** What no address has in it. */
const STOP = /[\s"'\\]/g;

/**
 * A password is all up to the last `@` within 256 characters. Where an address ends and where its last `@` is only ever moves on
 * with the place that is looked at, so that each character is looked at a few times for every text.
 */
function addressPasswords(text: string): SecretSpan[] {
  const found: SecretSpan[] = [];
  let stop = -1;
  let scanned = 0;
  let lastAt = -1;
  for (let from = text.indexOf(BEGINNING); from !== -1; ) {
    USER.lastIndex = from + BEGINNING.length;
    let next = from + 1;
    if (USER.test(text)) {
      const start = USER.lastIndex;
      if (stop < start) stop = indexOf(STOP, text, start);
      const end = Math.min(start + MAX_PASSWORD_CHARS + 1, stop);
      for (scanned = Math.max(scanned, start); scanned < end; scanned += 1) if (text[scanned] === '@') lastAt = scanned;
      // An empty password is not a secret.
      if (lastAt > start) {
        found.push({ name: 'password', start, end: lastAt });
        next = lastAt + 1;
      }
    }
    from = text.indexOf(BEGINNING, next);
  }
  return found;
}

function indexOf(pattern: RegExp, text: string, from: number): number {
  pattern.lastIndex = from;
  return pattern.exec(text)?.index ?? text.length;
}

// Secrets that a text calls by their kind: `password=…`, `"api_key": "…"`, `client_secret: …`, also as JSON inside
// JSON.

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
interface SecretSpan {
  readonly name: string;
  readonly start: number;
  readonly end: number;
}

/** In the order in which they begin. A value may itself hold such a head: what looks like its end may be the middle of another's. */
function namedSecrets(text: string): SecretSpan[] {
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

// Values that are secret, whoever says them: keys that this process was given. They are known to the whole process,
// because a key that one runtime sends is still a key in what another runtime writes.

/** A shorter one would take words out of texts that have nothing to do with it. */
export const LEAST_SECRET_CHARS = 8;

/** What begins as a secret, and goes on as it for so long, where a text was cut, is what is left of it. */
const LEAST_BEGINNING_CHARS = 12;

const MARK = '[redacted:secret]';

interface Forms {
  /** The longest first. */
  readonly literals: readonly string[];
  readonly pattern: RegExp;
}

export class KnownSecrets {
  readonly #values = new Set<string>();
  #forms: Forms | undefined;

  /** Shorter ones are passed over: see `LEAST_SECRET_CHARS`. */
  add(value: string): void {
    const secret = value.trim();
    if (secret.length < LEAST_SECRET_CHARS || this.#values.has(secret)) return;
    this.#values.add(secret);
    this.#forms = undefined;
  }

  get isEmpty(): boolean {
    return this.#values.size === 0;
  }

  /** The text without them, as they are or as they are encoded. In time that is linear in the text. */
  without(text: string): string {
    if (this.#values.size === 0 || text.length < LEAST_SECRET_CHARS) return text;
    this.#forms ??= allFormsOf(this.#values);
    const { literals, pattern } = this.#forms;
    // Mostly none is there, and to look for a literal is far cheaper than for a pattern.
    const whole = literals.some((literal) => text.includes(literal)) ? text.replace(pattern, MARK) : text;
    return withoutBeginning(whole, literals);
  }
}

/** The known secrets of the process. */
export const knownSecrets: KnownSecrets = new KnownSecrets();

/** Texts are cut before they come here, with or without a mark: of errors, of outputs, of replies that are no use. */
function withoutBeginning(text: string, literals: readonly string[]): string {
  const [longest = ''] = literals;
  const [cut = ''] = /(?:…|\.{3})?$/.exec(text.slice(-3)) ?? [];
  const end = text.length - cut.length;
  const tail = text.slice(Math.max(0, end - longest.length), end);
  if (tail.length < LEAST_BEGINNING_CHARS) return text;
  let begins = tail.length;
  for (const literal of literals) {
    const head = literal.slice(0, LEAST_BEGINNING_CHARS);
    for (let at = tail.indexOf(head); at !== -1 && at < begins; at = tail.indexOf(head, at + 1)) {
      if (literal.startsWith(tail.slice(at))) begins = at;
    }
  }
  return begins === tail.length ? text : `${text.slice(0, end - tail.length + begins)}${MARK}${cut}`;
}

const KEY_NAME =
  /(?:API|ACCESS|SECRET|PRIVATE|AUTH)[_-]?KEY|SECRET|TOKEN(?!IZ)|PASSWORD|PASSWD|CREDENTIAL|AUTHORIZATION|COOKIE/i;
/** What is named so says where a key is, or something about it. */
const ABOUT_KEYS =
  /[_-](?:FILE|PATH|DIR|DIRECTORY|FOLDER|STORE|URL|URI|ENDPOINT|HOST|DOMAIN|NAME|TYPE|PROVIDER|REGION|PROJECT|ISSUER|AUDIENCE|PREFIX|HEADER)$/i;
/** A file, or an address in which no key can stand. */
const PLACE = /^(?:(?:~|\.{1,2}|[a-z]:)[\\/]|[\\/].*\.[a-z]\w{0,7}$|[a-z][a-z0-9+.-]*:\/\/[^\s@?]*$)/i;
/** How a header may say what kind of key follows. */
const SCHEME = /^(?:bearer|basic|token)\s+/i;
/** What is shorter, or has spaces, is a setting and no key. */
const LEAST_KEY_CHARS = 12;

/** The values of variables, or of headers, that are named as keys are. */
export function knowKeysOf(named: Readonly<Record<string, string | undefined>>): void {
  // To read a variable of the process is dear: only those are read that are named so.
  for (const name of Object.keys(named)) {
    if (!KEY_NAME.test(name) || ABOUT_KEYS.test(name)) continue;
    const key = (named[name] ?? '').trim().replace(SCHEME, '');
    if (key.length >= LEAST_KEY_CHARS && !/\s/.test(key) && !PLACE.test(key)) knownSecrets.add(key);
  }
}

/** Adds the key of a model. Servers without keys are given a short word, such as `not-needed`, which is not a secret. */
export function knowKey(key: string): void {
  if (key.trim().length >= LEAST_KEY_CHARS || /\d/.test(key)) knownSecrets.add(key);
}

/** Each is a literal, so that the search never goes back over a text. The longest first. */
function allFormsOf(values: Iterable<string>): Forms {
  const forms = new Set([...values].flatMap(formsOf).filter((form) => form.length >= LEAST_SECRET_CHARS));
  const literals = [...forms].sort((left, right) => right.length - left.length);
  return { literals, pattern: new RegExp(literals.map(escaped).join('|'), 'g') };
}

/** The forms of a secret: as it is, in JSON, in a URL, and in base64 at each of the three possible offsets. */
function formsOf(value: string): string[] {
  const encodings = [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
    const text = bytes.toString('base64').replace(/=+$/, '');
    // The characters at the ends hold bits of what stands beside it.
    const inner = text.slice(Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6));
    return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')];
  });
  const json = JSON.stringify(value).slice(1, -1);
  const ascii = json.replace(/[^ -~]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const inJson = [json, ascii, json.replaceAll('/', '\\/')];
  const address = uri(value);
  const inAddress = [address, address.replaceAll('%20', '+'), address.replace(/%../g, (code) => code.toLowerCase())];
  // What fills base64 up is written in many ways, and says nothing.
  const unfilled = value.replace(/=+$/, '');
  return [
    value,
    unfilled,
    ...inJson,
    ...inJson.map((text) => JSON.stringify(text).slice(1, -1)),
    ...inAddress,
    ...encodings,
  ];
}

/** A lone surrogate has no place in an address. */
function uri(value: string): string {
  return encodeURIComponent(value.toWellFormed());
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
