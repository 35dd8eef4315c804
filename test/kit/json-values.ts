/** Random JSON, and ways to look into it and to change it. */
import fc from 'fast-check';
import { type Json, thaw } from '#core';

/** Plain JSON, with keys and strings of all kinds; numbers that JSON keeps. */
export const anyJson = (): fc.Arbitrary<Json> =>
  fc.jsonValue({ maxDepth: 5 }).filter((value) => !/\d{16}|\de\+1\d/.test(JSON.stringify(value))) as fc.Arbitrary<Json>;

/** Where a value can be planted: a path of keys and indices. */
export function places(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [path];
  const inner = Array.isArray(value)
    ? value.flatMap((item, index) => places(item, [...path, index]))
    : Object.keys(value).flatMap((key) => places((value as Record<string, unknown>)[key], [...path, key]));
  return [path, ...inner];
}

export function plant(value: unknown, [key, ...rest]: (string | number)[], leaf: unknown): unknown {
  if (key === undefined) return leaf;
  const copy = thaw(value) as Record<string | number, unknown>;
  const planted = plant(copy[key], rest, leaf);
  Object.defineProperty(copy, key, { value: planted, enumerable: true, writable: true, configurable: true });
  return copy;
}

/** Changes everything in a value that can be changed. Throws when something is frozen. */
export function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const part of Object.values(value)) spoil(part);
  if (Array.isArray(value)) value.push('spoilt');
  else (value as Record<string, unknown>)['spoilt'] = true;
}
