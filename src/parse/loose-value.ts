/** Values as a model wrote them: JSON, read by the engine where the whole text is JSON, and what only a schema can turn into JSON. */
import { isJsonObject, isTooLarge, type Json, setField } from '#core';

/** Source text that is not a literal: a variable, an expression, a constructor. */
export class CodeText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A number whose text says more than its value: `1.50`, `5L`, `1/6`, an integer beyond 2^53. */
export class NumberText {
  readonly value: number;
  readonly text: string;

  constructor(value: number, text: string) {
    this.value = value;
    this.text = text;
  }
}

export type Loose = null | boolean | number | string | CodeText | NumberText | readonly Loose[] | LooseObject;
export type LooseObject = { readonly [key: string]: Loose };
export type MutableLoose = { [key: string]: Loose };

export function isLooseObject(value: Loose | undefined): value is LooseObject {
  return (
    typeof value === 'object' &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof CodeText) &&
    !(value instanceof NumberText)
  );
}

export function isLooseList(value: Loose | undefined): value is readonly Loose[] {
  return Array.isArray(value);
}

/** The own field of that name. */
export function field<T>(target: { readonly [key: string]: T }, key: string): T | undefined {
  return Object.hasOwn(target, key) ? target[key] : undefined;
}

/** JSON without a schema's help: code stays text, and so does an integer that a number cannot hold. */
export function looseToJson(value: Loose): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof CodeText) return value.text;
  if (value instanceof NumberText) return isExactNumber(value) ? value.value : value.text;
  if (isLooseList(value)) return value.map(looseToJson);
  const copy: { [key: string]: Json } = {};
  for (const key of Object.keys(value)) setField(copy, key, looseToJson(field(value, key) ?? null));
  return copy;
}

const UINT64 = 2 ** 64;

/**
 * Whether the number is what was written. Integers from 2^53 to 2^64 are ids whose digits count; beyond that, only one that
 * is written with an exponent.
 */
export function isExactNumber({ value, text }: NumberText): boolean {
  if (!Number.isFinite(value)) return false;
  if (!Number.isInteger(value) || Number.isSafeInteger(value)) return true;
  return Math.abs(value) > UINT64 && !/^[-+]?\d+$/.test(text);
}

// The fast path: a text that is JSON as a whole, read by the engine.

/**
 * The value, or `undefined` when the text is no JSON object or list, nests too deep, is larger than can be recorded, or holds a
 * number that would change.
 */
export function readStrictJson(text: string, maxDepth: number): Json | undefined {
  if (!isContainer(text) || isTooLarge(text)) return undefined;
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
  return isSafe(value, maxDepth) ? value : undefined;
}

const WHITE = ' \n\r\t';

/** Whether the text begins with a bracket and ends with its counterpart: a quick look that spares most failing parses. */
function isContainer(text: string): boolean {
  let start = 0;
  while (WHITE.includes(text.charAt(start)) && start < text.length) start += 1;
  let end = text.length - 1;
  while (end > start && WHITE.includes(text.charAt(end))) end -= 1;
  const open = text[start];
  return (open === '{' && text[end] === '}') || (open === '[' && text[end] === ']');
}

function isSafe(value: Json, depthLeft: number): boolean {
  if (typeof value === 'number')
    return Number.isSafeInteger(value) || (!Number.isInteger(value) && Number.isFinite(value));
  if (typeof value !== 'object' || value === null) return true;
  if (depthLeft <= 0) return false;
  if (Array.isArray(value)) {
    for (const item of value) if (!isSafe(item, depthLeft - 1)) return false;
    return true;
  }
  if (!isJsonObject(value)) return true;
  for (const key in value) {
    const inner = value[key];
    if (inner !== undefined && !isSafe(inner, depthLeft - 1)) return false;
  }
  return true;
}
