/** Values as a model wrote them: JSON, and beside it what only a schema can turn into JSON. */
import type { Json } from '#core';

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

/** Sets a field; an own "__proto__" stays data. */
export function setField<T>(target: { [key: string]: T }, key: string, value: T): void {
  if (key !== '__proto__') target[key] = value;
  else Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
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
