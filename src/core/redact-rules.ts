/** What secrets look like. Every rule takes time that is linear in the text. */

import { PilotageError } from './errors.ts';
import { namedSecrets, type SecretSpan } from './redact-named.ts';

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
    const spans = [namedSecrets(text), addressPasswords(text), ...rules.map((rule) => spansOf(text, rule))].flat();
    return spans.length === 0 ? text : withMarks(text, spans);
  };
}

function spansOf(text: string, { name, pattern }: RedactRule): SecretSpan[] {
  const found: SecretSpan[] = [];
  // Most texts have none, and looking once is cheaper than setting out to list them.
  if (text.search(pattern) === -1) return found;
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
