/** What the values of options say. */
import {
  isJsonObject,
  type Json,
  type JsonObject,
  type Labels,
  ON_FAIL,
  type OnFail,
  PilotageError,
  RULE_SCOPES,
  readMoment,
  readRemember,
} from '#core';
import { RUN_STATUSES, type RunStatus } from '#journal';
import type { Prices } from '#model';
import { BUSY_MODES, type BusyMode, type Resumption } from '#runtime';
import { UsageError } from './terminal.ts';

export function wholeNumber(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (/^\d+$/.test(text) && Number.isSafeInteger(value) && value > 0) return value;
  throw new UsageError(`--${name} takes a whole number from 1 up.`);
}

export function positive(text: string | undefined, name: string): number | undefined {
  const value = plainNumber(text);
  if (value === undefined || value > 0) return value;
  throw new UsageError(`--${name} takes a number over 0.`);
}

export function notNegative(text: string | undefined, name: string): number | undefined {
  const value = plainNumber(text);
  if (value === undefined || value >= 0) return value;
  throw new UsageError(`--${name} takes a number from 0 up.`);
}

/** NaN for a text that is not a number. */
function plainNumber(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  return /^[\d.]+$/.test(text) && Number.isFinite(Number(text)) ? Number(text) : Number.NaN;
}

/** 0: any free one. */
export function portOption(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (/^\d+$/.test(text) && port <= 65_535) return port;
  throw new UsageError(`--${name} takes a port from 1 to 65535, or 0 for any that is free.`);
}

/** What was given once or several times. */
export function namesOption(value: unknown, name: string): readonly string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const names = value.map((text) => String(text).trim());
  if (names.every((text) => text !== '')) return names;
  throw new UsageError(`--${name} is empty.`);
}

export function jsonValue(text: string | undefined, name: string): Json | undefined {
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new UsageError(`--${name} is not JSON. Put it in quotes, such as --${name} '{"amount": 90}'.`);
  }
}

export function jsonObjectOption(text: string | undefined, name: string): JsonObject | undefined {
  const value = jsonValue(text, name);
  if (value === undefined || isJsonObject(value)) return value;
  throw new UsageError(`--${name} takes a JSON object, such as --${name} '{"note": "checked"}'.`);
}

/** `--label order=17`. */
export function labelsOption(value: unknown): Labels | undefined {
  if (!Array.isArray(value)) return undefined;
  const pairs = value.map((text): [string, string] => {
    const [name = '', ...rest] = String(text).split('=');
    if (name.trim() !== '' && rest.length > 0) return [name, rest.join('=')];
    throw new UsageError('--label takes a name and a value, such as --label order=17.');
  });
  return Object.fromEntries(pairs);
}

export function momentOption(text: string | undefined, name: string): number | undefined {
  if (text === undefined) return undefined;
  try {
    return readMoment(`--${name}`, text);
  } catch {
    throw new UsageError(`--${name} takes a time with its zone, such as --${name} 2027-01-31T09:00:00+01:00.`);
  }
}

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `undefined` for a text that does not say a length of time. */
function lengthMs(text: string | undefined): number | undefined {
  const [, amount, unit = ''] = /^(\d+)([smhd])$/.exec(text ?? '') ?? [];
  return amount === undefined ? undefined : Number(amount) * (UNIT_MS[unit] ?? 0);
}

/** A time, or how long ago. */
export function sinceOption(text: string | undefined): number | undefined {
  const ms = lengthMs(text);
  return ms === undefined ? momentOption(text, 'since') : Math.max(0, Date.now() - ms);
}

/** Such as 30d. */
export function lengthOption(text: string | undefined, name: string): number | undefined {
  const ms = lengthMs(text);
  if (text === undefined || (ms !== undefined && ms > 0 && Number.isSafeInteger(ms))) return ms;
  throw new UsageError(
    `--${name} takes a whole number of days, hours, minutes or seconds, at least one, such as 30d, 12h, 90m or 45s.`,
  );
}

export function wordOption(text: string | undefined, name: string, words: readonly string[]): string | undefined {
  if (text === undefined || words.includes(text)) return text;
  throw new UsageError(`--${name} takes ${words.join(', ')}.`);
}

export type NodeEdits = NonNullable<Resumption['nodes']>;

/** For each node `{"args": …}` or `{"skip": true}`. */
export function nodeEditsOption(text: string | undefined): NodeEdits | undefined {
  const edits = jsonObjectOption(text, 'nodes');
  if (edits === undefined) return undefined;
  if (Object.keys(edits).length > 0 && Object.values(edits).every(isEdit)) return edits as NodeEdits;
  throw new UsageError(`--nodes takes edits by the ids of nodes: '{"a": {"args": {"n": 1}}, "b": {"skip": true}}'.`);
}

export function idsOption(text: string | undefined): readonly string[] | undefined {
  return text?.split(',').map((id) => id.trim());
}

function isEdit(edit: Json): boolean {
  if (!isJsonObject(edit) || Object.keys(edit).length !== 1) return false;
  return edit['skip'] === true || edit['args'] !== undefined;
}

export function busyOf(text: string | undefined): BusyMode | undefined {
  if (text === undefined || isBusyMode(text)) return text;
  throw new UsageError(`--busy takes ${BUSY_MODES.join(', ')}.`);
}

export function onFailOf(given: string | undefined): OnFail | undefined {
  const word = ON_FAIL.find((each) => each === given);
  if (given === undefined || word !== undefined) return word;
  throw new UsageError(`--on-fail is ${JSON.stringify(given)}; give one of ${ON_FAIL.join(', ')}.`);
}

function isBusyMode(text: string): text is BusyMode {
  return BUSY_MODES.some((mode) => mode === text);
}

export function statusesOf(value: unknown): RunStatus[] | undefined {
  if (!Array.isArray(value)) return undefined;
  return value
    .flatMap(String)
    .flatMap((list) => list.split(','))
    .map((word) => {
      const status = RUN_STATUSES.find((known) => known === word.trim());
      if (status === undefined) throw new UsageError(`--status takes ${RUN_STATUSES.join(', ')}.`);
      return status;
    });
}

/** `--prices in,out`: dollars for a million input and output tokens. @throws UsageError */
export function readPrices(text: string): Prices {
  const parts = text.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  const [input, output] = parts;
  if (parts.length !== 2 || input === undefined || output === undefined || !(input >= 0) || !(output >= 0)) {
    throw new UsageError('--prices takes two numbers, such as 2.5,10: dollars for a million input and output tokens.');
  }
  return { input, output };
}

/** `--remember run --match tool --remember-for 3600`. @throws UsageError */
export function rememberOption(
  scope: string | undefined,
  match: string | undefined,
  seconds: number | undefined,
): JsonObject | undefined {
  if (scope === undefined) {
    if (match !== undefined) throw new UsageError('--match goes with --remember.');
    if (seconds !== undefined) throw new UsageError('--remember-for goes with --remember.');
    return undefined;
  }
  if (!RULE_SCOPES.some((known) => known === scope))
    throw new UsageError(`--remember takes ${RULE_SCOPES.join(', ')}.`);
  const remember = {
    scope,
    ...(match === undefined ? {} : { match: matchOf(match) }),
    ...(seconds === undefined ? {} : { expiresInMs: Math.ceil(seconds * 1_000) }),
  };
  try {
    readRemember(remember);
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    throw new UsageError(error.message, { cause: error });
  }
  return remember;
}

function matchOf(text: string): Json {
  if (text === 'exact' || text === 'tool') return text;
  if (text.trimStart().startsWith('{')) return jsonObjectOption(text, 'match') ?? {};
  throw new UsageError('--match takes exact, tool, or a JSON Schema of the arguments.');
}
