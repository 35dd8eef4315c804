/** What callers give is looked at here before anything reads it: what is missing, of another kind or spelt wrong is told by name. */
import { PilotageError } from './errors.ts';
import { nearest } from './names.ts';
import { ourWordFor, plainWord } from './other-words.ts';

/** Kinds of options. A value of the kind `any` is checked elsewhere. */
type Kind =
  | 'text'
  | 'name'
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
  | 'clock'
  | 'planner'
  | 'any';

/** Every option by its name; a `?` behind its kind: it may be left out. */
export type OptionShape<T extends object> = {
  readonly [Name in keyof T]-?: Record<never, never> extends Pick<T, Name> ? `${Kind}?` : Kind;
};

const WANTED: Readonly<Record<Exclude<Kind, 'any'>, string>> = {
  text: 'a text',
  name: 'a text that is not empty',
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
  clock: 'a clock, such as systemClock',
  planner: 'a planner, or a function that decides',
};

interface KnownOption {
  readonly name: string;
  readonly kind: Kind;
  readonly isOptional: boolean;
}

interface KnownOptions {
  readonly names: readonly string[];
  readonly all: readonly KnownOption[];
}

/** A shape is a constant, and each run is started with one. */
const KNOWN = new WeakMap<object, KnownOptions>();

function knownIn(shape: Readonly<Record<string, `${Kind}?` | Kind>>): KnownOptions {
  const known = KNOWN.get(shape);
  if (known !== undefined) return known;
  const all = Object.entries(shape).map(([name, said]): KnownOption => {
    const isOptional = said.endsWith('?');
    return { name, kind: (isOptional ? said.slice(0, -1) : said) as Kind, isOptional };
  });
  const made = { names: all.map(({ name }) => name), all };
  KNOWN.set(shape, made);
  return made;
}

/**
 * @param of who takes them, for messages.
 * @throws PilotageError `invalid_config` naming the first option that cannot be.
 */
export function assertOptions<T extends object>(of: string, given: unknown, shape: OptionShape<T>): void {
  const { names, all } = knownIn(shape);
  assertKnownKeys(of, given, names);
  for (const { name, kind, isOptional } of all) {
    const value: unknown = Reflect.get(given, name);
    if (kind === 'any' || (isOptional && value === undefined) || isOf(kind, value)) continue;
    const leave = isOptional ? ', or leave it out' : '';
    throw refusal(`The option ${name} of ${of} is ${shown(value)}; give ${WANTED[kind]}${leave}.`);
  }
}

/**
 * The options as a plain object, each read once by its name: getters of a class count, and what changes later does not. A method of a
 * class keeps its object.
 * @throws as `assertOptions`.
 */
export function readOptions<T extends object, O extends object = T>(of: string, given: T, shape: OptionShape<O>): T {
  assertOptions(of, given, shape);
  const names = Object.keys(shape).filter((name) => name in given);
  return Object.fromEntries(names.map((name) => [name, boundTo(given, Reflect.get(given, name))])) as T;
}

const BOUND = new WeakMap<object, WeakMap<object, unknown>>();

/** A method of an object of a class, with its object, and the same one each time. Other values stay what they are. */
export function boundTo<T>(self: object, value: T): T {
  if (typeof value !== 'function' || isPlain(self)) return value;
  const ofSelf = BOUND.get(self) ?? new WeakMap<object, unknown>();
  BOUND.set(self, ofSelf);
  const known = ofSelf.get(value) as T | undefined;
  if (known !== undefined) return known;
  const bound = Object.defineProperty(value.bind(self) as T & object, 'name', { value: value.name });
  ofSelf.set(value, bound);
  return bound;
}

/**
 * An object of a class, and what an object inherits, may have fields of its own; they are refused where they stand for an option that
 * the object does not have. Keys that are symbols are nobody's options.
 * @param of who takes them, for messages.
 * @param beside keys that are there too, and that nobody needs to be told of.
 * @param mayHaveOwn other keys are the object's own business, as those of a class are.
 * @throws PilotageError `invalid_config` for a value that is not an object, and naming the first key that is not known.
 */
export function assertKnownKeys(
  of: string,
  given: unknown,
  known: readonly string[],
  beside: readonly string[] = [],
  mayHaveOwn: boolean = typeof given === 'object' && given !== null && !isPlain(given),
): asserts given is object {
  if (!isOptionsRecord(given)) {
    throw refusal(`${of} takes an object of options, and was given ${shown(given)}. ${listOf(known)}`);
  }
  const own = Object.keys(given);
  for (const name of isPlain(given) ? own : [...own, ...inheritedOf(given)]) {
    if (known.includes(name) || beside.includes(name)) continue;
    const meant = meantBy(name, known);
    if (!mayHaveOwn || (meant?.option !== undefined && Reflect.get(given, meant.option) === undefined)) {
      throw refusal(
        `${of} has no option ${JSON.stringify(name)}.${meant === undefined ? '' : ` ${meant.advice}`} ${listOf(known)}`,
      );
    }
  }
}

function listOf(known: readonly string[]): string {
  return `${known.length === 1 ? 'Its only option is' : 'Its options are'} ${known.join(', ')}.`;
}

interface Meant {
  /** The option that is meant, where this place has it. */
  readonly option?: string;
  readonly advice: string;
}

/** What somebody probably meant by a word that is not known at this place: a known word, or an option of another place. */
export function meantBy(word: string, known: readonly string[]): Meant | undefined {
  const same = known.find((name) => plainWord(name) === plainWord(word));
  const ours = same === undefined ? ourWordFor(word, known) : undefined;
  if (ours?.option !== undefined) return ours;
  const option = same ?? nearest(word, known);
  if (option !== undefined) return { option, advice: `Did you mean ${option}?` };
  // A guess is advice, and refuses nothing that may be a field of somebody's own.
  const part = partOf(word, known);
  return part === undefined ? ours : { advice: `Did you mean ${part}?` };
}

/** Shorter words are parts of others by chance. */
const LEAST_PART = 3;

/** The only option that begins or ends with the word, or with which the word begins or ends: `budget` is `budgetTokens`. */
function partOf(word: string, known: readonly string[]): string | undefined {
  const plain = plainWord(word);
  const [only, ...others] = known.filter((name) => {
    const [short = '', long = ''] = [plain, plainWord(name)].sort((a, b) => a.length - b.length);
    return short.length >= LEAST_PART && (long.startsWith(short) || long.endsWith(short));
  });
  return others.length === 0 ? only : undefined;
}

/** @throws PilotageError `invalid_config` for a list with an item that is not a text. */
export function assertTexts(of: string, given: unknown, such: string): asserts given is readonly string[] {
  if (Array.isArray(given) && given.every((one) => typeof one === 'string')) return;
  const held = Array.isArray(given) ? 'a list of other things than texts' : shown(given);
  throw refusal(`${of} is ${held}; give a list of texts, such as ${such}.`);
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
  if (kind === 'clock') return hasMethods(value, ['now', 'after']);
  if (kind === 'planner') return typeof value === 'function' || hasMethods(value, ['next']);
  if (kind === 'name') return typeof value === 'string' && value.trim() !== '';
  if (kind === 'text') return typeof value === 'string';
  if (kind === 'flag') return typeof value === 'boolean';
  return typeof value === kind;
}

/** Whether it is an object with these functions, of its own or of its class. */
export function hasMethods(value: unknown, names: readonly string[]): boolean {
  return isObject(value) && names.every((name) => typeof Reflect.get(value, name) === 'function');
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * What its keys say stands in its fields: not so of a map, a set, the headers of a request or a promise, of which nothing would be
 * read. Nobody awaits a plain object with a key `then`: somebody thinks that this is an option.
 */
export function isOptionsRecord(value: unknown): value is object {
  if (!isObject(value) || Symbol.iterator in value) return false;
  return isPlain(value) || !('then' in value && typeof value.then === 'function');
}

/** Plain objects of another realm, such as that of a test runner, are plain too. */
function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null || isRoot(prototype as object);
}

/** An `Object.prototype`, of whichever realm. */
function isRoot(value: object): boolean {
  return Object.getPrototypeOf(value) === null && Object.hasOwn(value, '__proto__');
}

/** The names that an object has of its class, or of the object that it was made from; getters and methods are among them. */
function inheritedOf(value: object): string[] {
  const names: string[] = [];
  let level: object | null = Object.getPrototypeOf(value);
  for (; level !== null && !isRoot(level); level = Object.getPrototypeOf(level)) {
    names.push(...Object.getOwnPropertyNames(level).filter((name) => name !== 'constructor'));
  }
  return names;
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
