/** What the URL of a journal says beside where the database is: options of the journal, which are not for `pg`. */
import { nearest, PilotageError } from '#core';

/** The options that a URL may have, so that whoever names a journal by one text can say them: a command, or the environment. */
export interface UrlOptions {
  schema?: string;
  maxConnections?: number;
  transactionPooler?: boolean;
  rls?: boolean;
  tenant?: string;
  pgvector?: boolean;
}

type Reader = (text: string) => string | number | boolean | undefined;

const flag: Reader = (text) => (text === 'true' ? true : text === 'false' ? false : undefined);
const READERS: Readonly<Record<keyof UrlOptions, readonly [read: Reader, wanted: string]>> = {
  schema: [(text) => text || undefined, 'the name of a schema'],
  maxConnections: [(text) => (/^[1-9]\d{0,5}$/.test(text) ? Number(text) : undefined), 'a whole number from 1 up'],
  transactionPooler: [flag, 'true or false'],
  rls: [flag, 'true or false'],
  tenant: [(text) => text || undefined, 'the name of a tenant'],
  pgvector: [flag, 'true or false'],
};

const NOWHERE =
  'postgresJournal needs { url } with a URL such as postgres://user@host:5432/name, or { pool } with a pool of pg.';
const UNREADABLE =
  'The URL of Postgres cannot be read. Check its host and port, and write signs of the user name and the password other than letters and digits in percent encoding (# is %23, / is %2F).';

/** @returns the URL without our options, and these. @throws PilotageError `invalid_config`. */
export function readUrl(text: string | undefined): { readonly url: string; readonly options: UrlOptions } {
  const isMeant = text !== undefined && /^postgres(ql)?:\/\//i.test(text);
  // It is not repeated: there may be a password in it.
  if (!isMeant || !URL.canParse(text)) throw new PilotageError('invalid_config', isMeant ? UNREADABLE : NOWHERE);
  const { searchParams } = new URL(text);
  const options: Record<string, unknown> = {};
  for (const name of searchParams.keys()) assertNotOurs(name);
  for (const [name, [read, wanted]] of Object.entries(READERS)) {
    const given = searchParams.getAll(name);
    if (given.length === 0) continue;
    const value = given.length === 1 ? read(given[0] as string) : undefined;
    if (value === undefined) throw misread(name, given, wanted);
    options[name] = value;
  }
  return { url: without(text, Object.keys(READERS)), options: options as UrlOptions };
}

/** What is unknown is for `pg`, but for what is a letter away from an option of ours: the journal would be another one in silence. */
function assertNotOurs(name: string): void {
  const ours = Object.keys(READERS);
  const meant = ours.includes(name) ? undefined : nearest(name, ours, 1);
  if (meant === undefined) return;
  throw new PilotageError('invalid_config', `The URL of the journal says ${name}=…; did you mean ${meant}=…?`);
}

/** Only what is ours is taken out, and the rest stays letter for letter: `pg` reads URLs in its own way. */
function without(text: string, names: readonly string[]): string {
  const [, before = text, query = '', hash = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(text) ?? [];
  const kept = query.split('&').filter((part) => !names.some((name) => new URLSearchParams(part).has(name)));
  const rest = kept.join('&');
  return `${before}${rest === '' ? '' : `?${rest}`}${hash}`;
}

function misread(name: string, given: readonly string[], wanted: string): PilotageError {
  const said = given.length > 1 ? `stands there ${given.length} times` : `is ${JSON.stringify(given[0])}`;
  return new PilotageError(
    'invalid_config',
    `The URL of the journal may end with ?${name}=…, with ${wanted}; here it ${said}.`,
  );
}
