/**
 * Values that are secret, whoever says them: keys that this process was given. They are known to the whole process, because a key
 * that one runtime sends is no less a key in what another one writes.
 */

/** A shorter one would take words out of texts that have nothing to do with it. */
export const LEAST_SECRET_CHARS = 8;

const MARK = '[redacted:secret]';

export class KnownSecrets {
  readonly #values = new Set<string>();
  #forms: { readonly literals: readonly string[]; readonly pattern: RegExp } | undefined;

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
    return literals.some((literal) => text.includes(literal)) ? text.replace(pattern, MARK) : text;
  }
}

/** Those of the process. */
export const knownSecrets: KnownSecrets = new KnownSecrets();

const KEY_NAME =
  /(?:API|ACCESS|SECRET|PRIVATE|AUTH)[_-]?KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIAL|AUTHORIZATION|COOKIE/i;
/** How a header may say what kind of key follows. */
const SCHEME = /^(?:bearer|basic|token)\s+/i;
/** What is shorter, or has spaces, is a setting and no key. */
const LEAST_KEY_CHARS = 12;

/** The values of variables, or of headers, that are named as keys are. */
export function knowKeysOf(named: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value = ''] of Object.entries(named)) {
    if (!KEY_NAME.test(name)) continue;
    const key = value.trim().replace(SCHEME, '');
    if (key.length >= LEAST_KEY_CHARS && !/\s/.test(key)) knownSecrets.add(key);
  }
}

/** Each is a literal, so that the search never goes back over a text. The longest first. */
function allFormsOf(values: Iterable<string>): { readonly literals: readonly string[]; readonly pattern: RegExp } {
  const forms = new Set([...values].flatMap(formsOf).filter((form) => form.length >= LEAST_SECRET_CHARS));
  const literals = [...forms].sort((left, right) => right.length - left.length);
  return { literals, pattern: new RegExp(literals.map(escaped).join('|'), 'g') };
}

/** As it is, in JSON, in an address, and in base64 wherever it begins in what was encoded. */
function formsOf(value: string): string[] {
  const encodings = [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(value)]);
    const text = bytes.toString('base64').replace(/=+$/, '');
    // The characters at the ends hold bits of what stands beside it.
    const inner = text.slice(Math.ceil((before * 8) / 6), Math.floor((bytes.length * 8) / 6));
    return [inner, inner.replaceAll('+', '-').replaceAll('/', '_')];
  });
  const json = JSON.stringify(value).slice(1, -1);
  return [value, json, JSON.stringify(json).slice(1, -1), uri(value), uri(value).replaceAll('%20', '+'), ...encodings];
}

/** A lone surrogate has no place in an address. */
function uri(value: string): string {
  return encodeURIComponent(value.toWellFormed());
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');
}
