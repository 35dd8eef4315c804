/** How a configuration is checked: every key is known, every value of the right kind, every refusal names the key's path. */
import { capture, captureObject, meantBy, PilotageError } from '#core';

/**
 * Judges one value.
 * @param path of its key from the top, such as `planner.maxSteps`.
 * @throws PilotageError `invalid_config` with the path in its text and in `data.path`.
 */
export type OptionCheck = (value: unknown, path: string) => void;

/** One check for each key of `T`, so that a new key of `T` cannot be forgotten. */
export type ConfigShape<T> = { readonly [K in keyof Required<T>]: OptionCheck };

export function invalidConfig(path: string, problem: string, cause?: unknown): PilotageError {
  return new PilotageError('invalid_config', `${path} ${problem}`, { data: { path }, cause });
}

/** Refuses values for which `is` returns false. @param wanted what to give instead. */
export function check(wanted: string, is: (value: unknown) => boolean): OptionCheck {
  return (value, path) => {
    if (!is(value)) throw invalidConfig(path, `is ${shown(value)}; give ${wanted}.`);
  };
}

/** Accepts every value; another part checks it. */
export const anything: OptionCheck = () => {};
export const text: OptionCheck = check('a string', (value) => typeof value === 'string');
export const filledText: OptionCheck = check('a string that is not empty', isFilled);
export const texts: OptionCheck = check(
  'a list of strings',
  (value) => Array.isArray(value) && value.every((each) => typeof each === 'string'),
);
export const flag: OptionCheck = check('true or false', (value) => typeof value === 'boolean');
export const amount: OptionCheck = check(
  'a number from 0 up',
  (value) => Number.isFinite(value) && (value as number) >= 0,
);
export const aFunction: OptionCheck = check('a function', (value) => typeof value === 'function');
export const anObject: OptionCheck = check('an object', isRecord);
export const json: OptionCheck = jsonCheck(capture);
export const jsonObject: OptionCheck = jsonCheck(captureObject);

export function whole(least: number): OptionCheck {
  return check(`a whole number from ${least} up`, (value) => Number.isSafeInteger(value) && (value as number) >= least);
}

export function oneOf(words: readonly string[]): OptionCheck {
  const list = words.map((word) => JSON.stringify(word)).join(', ');
  return check(`one of ${list}`, (value) => words.includes(value as string));
}

/**
 * Checks an object that may have only these keys; a key with the value `undefined` counts as absent.
 * @param beside keys that were taken out before, to be suggested for a misspelt key.
 */
export function shape<T>(keys: ConfigShape<T>, beside: readonly string[] = []): OptionCheck {
  const checks: Readonly<Record<string, OptionCheck>> = keys;
  const known = [...beside, ...Object.keys(keys)];
  return (value, path) => {
    if (!isRecord(value)) throw invalidConfig(path || 'The configuration', `is ${shown(value)}; give an object.`);
    for (const [key, part] of Object.entries(value)) {
      const inner = path === '' ? key : `${path}.${key}`;
      const checkPart = Object.hasOwn(checks, key) ? checks[key] : undefined;
      if (checkPart === undefined)
        throw invalidConfig(inner, `is not a key of the configuration. ${advice(key, known)}`);
      if (part !== undefined) checkPart(part, inner);
    }
  };
}

/** Puts the path before another part's message about a value. */
export function at<T>(path: string, read: () => T): T {
  try {
    return read();
  } catch (cause) {
    if (!PilotageError.is(cause)) throw cause;
    throw new PilotageError(cause.code, `${path}: ${cause.message}`, { data: { ...cause.data, path }, cause });
  }
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function isFilled(value: unknown): boolean {
  return typeof value === 'string' && value.trim() !== '';
}

function jsonCheck(capture: (value: unknown, root: string) => unknown): OptionCheck {
  return (value, path) => {
    try {
      capture(value, path);
    } catch (cause) {
      if (!PilotageError.is(cause)) throw cause;
      throw invalidConfig(path, `is not JSON: ${cause.message}`, cause);
    }
  };
}

/** Strings are not repeated: one of them may be a key that stands in the wrong place. */
function shown(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean' || value === null) return String(value);
  if (Array.isArray(value)) return 'a list';
  if (value === '') return 'empty';
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function advice(key: string, known: readonly string[]): string {
  const meant = meantBy(key, known);
  if (meant?.option !== undefined) return meant.advice;
  return `${meant === undefined ? '' : `${meant.advice} `}The keys here are ${known.join(', ')}.`;
}
