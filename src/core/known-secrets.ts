/**
 * Values that are secret, whoever says them: keys that this process was given. They are known to the whole process, because a key
 * that one runtime sends is still a key in what another runtime writes.
 */

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
