/** The passwords in addresses, such as `postgres://user:password@host`. */
import type { SecretSpan } from './redact-named.ts';

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
export function addressPasswords(text: string): SecretSpan[] {
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
