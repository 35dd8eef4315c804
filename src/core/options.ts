/** What callers give is looked at here before anything reads it: what is missing, of another kind or spelt wrong is told by name. */
import { PilotageError } from './errors.ts';
import { nearest } from './names.ts';

/** Kinds of options. A value of the kind `any` is checked elsewhere. */
type Kind =
  | 'text'
  | 'number'
  | 'whole'
  | 'count'
  | 'moment'
  | 'flag'
  | 'function'
  | 'list'
  | 'object'
  | 'schema'
  | 'signal'
  | 'any';

/** Every option by its name; a `?` behind its kind: it may be left out. */
export type OptionShape<T extends object> = {
  readonly [Name in keyof T]-?: Record<never, never> extends Pick<T, Name> ? `${Kind}?` : Kind;
};

const WANTED: Readonly<Record<Exclude<Kind, 'any'>, string>> = {
  text: 'a text',
  number: 'a number from 0 up, such as 0.7',
  whole: 'a whole number from 0 up',
  count: 'a whole number from 1 up',
  moment: 'milliseconds since the epoch, such as Date.now()',
  flag: 'true or false',
  function: 'a function',
  list: 'a list',
  object: 'an object',
  schema: 'a schema',
  signal: 'an AbortSignal',
};

/**
 * @param of who takes them, for messages.
 * @throws PilotageError `invalid_config` naming the first option that cannot be. An object with a class may have more than the options.
 */
export function assertOptions<T extends object>(of: string, given: unknown, shape: OptionShape<T>): void {
  const names = Object.keys(shape);
  const known = `${names.length === 1 ? 'Its only option is' : 'Its options are'} ${names.join(', ')}.`;
  if (!isOptionsRecord(given))
    throw refusal(`${of} takes an object of options, and was given ${shown(given)}. ${known}`);
  const kinds: Readonly<Record<string, `${Kind}?` | Kind>> = shape;
  const unknown = isPlain(given) ? Object.keys(given).find((name) => !Object.hasOwn(kinds, name)) : undefined;
  if (unknown !== undefined) {
    const near = nearest(unknown, names);
    const meant = near === undefined ? '' : ` Did you mean ${near}?`;
    throw refusal(`${of} has no option ${JSON.stringify(unknown)}.${meant} ${known}`);
  }
  for (const [name, said] of Object.entries(kinds)) {
    const isOptional = said.endsWith('?');
    const kind = (isOptional ? said.slice(0, -1) : said) as Kind;
    const value: unknown = Reflect.get(given, name);
    if (kind === 'any' || (isOptional && value === undefined) || isOf(kind, value)) continue;
    const leave = isOptional ? ', or leave it out' : '';
    throw refusal(`The option ${name} of ${of} is ${shown(value)}; give ${WANTED[kind]}${leave}.`);
  }
}

/** @throws PilotageError `invalid_config` for a list with an item that is not one of these words. */
export function assertWords(of: string, name: string, given: readonly unknown[], words: readonly string[]): void {
  const other = given.find((one) => typeof one !== 'string' || !words.includes(one));
  // A list may have a hole or `undefined`, which is not a word either.
  if (other === undefined && !given.includes(undefined)) return;
  throw refusal(`The option ${name} of ${of} contains ${shown(other)}; each item must be one of ${words.join(', ')}.`);
}

function isOf(kind: Exclude<Kind, 'any'>, value: unknown): boolean {
  if (kind === 'whole' || kind === 'count')
    return Number.isSafeInteger(value) && Number(value) >= (kind === 'count' ? 1 : 0);
  // What is counted, measured or weighed is never below nothing, and never without an end.
  if (kind === 'number' || kind === 'moment') return Number.isFinite(value) && Number(value) >= 0;
  if (kind === 'list') return Array.isArray(value);
  if (kind === 'object') return isOptionsRecord(value);
  // Some schemas are functions.
  if (kind === 'schema') return isObject(value) || typeof value === 'function';
  if (kind === 'signal') return isObject(value) && 'aborted' in value && 'throwIfAborted' in value;
  if (kind === 'text') return typeof value === 'string';
  if (kind === 'flag') return typeof value === 'boolean';
  return typeof value === kind;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * What its keys say stands in its fields: not so of a map, a set, the headers of a request or a promise, of which nothing would be
 * read.
 */
export function isOptionsRecord(value: unknown): value is object {
  return isObject(value) && !(Symbol.iterator in value) && !('then' in value && typeof value.then === 'function');
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

const MAX_SHOWN = 64;

function shown(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return `an object${classOf(value)}`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'string') return JSON.stringify(value.slice(0, MAX_SHOWN));
  return `the ${typeof value} ${String(value)}`;
}

function classOf(value: object): string {
  const name: unknown = isPlain(value) ? '' : value.constructor?.name;
  return typeof name === 'string' && name !== '' ? ` of the class ${name.slice(0, MAX_SHOWN)}` : '';
}

function refusal(message: string): PilotageError {
  return new PilotageError('invalid_config', message);
}
