import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { atPointer, capture, isJsonObject, type Json, jsonEquals } from '#core';
import { anyJson, places, plant } from '../kit/json-values.ts';

/** JSON text with sorted keys: an oracle for equality. */
function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isJsonObject(value)) return JSON.stringify(value);
  const fields = Object.keys(value).sort();
  return `{${fields.map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] as Json)}`).join(',')}}`;
}

describe('jsonEquals', () => {
  const shuffled = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, part]) => [key, shuffled(part)]),
    );
  };

  it('does not count key order, and agrees with the canonical text', () => {
    fc.assert(
      fc.property(anyJson(), anyJson(), (left, right) => {
        expect(jsonEquals(left, shuffled(left))).toBe(true);
        expect(canonicalJson(left)).toBe(canonicalJson(shuffled(left)));
        const a = capture(left, 'a').json;
        const b = capture(right, 'b').json;
        expect(jsonEquals(a, b)).toBe(canonicalJson(a) === canonicalJson(b));
      }),
    );
  });

  it('sees one changed leaf', () => {
    fc.assert(
      fc.property(anyJson(), fc.nat(), (value, choice) => {
        const all = places(value);
        const changed = plant(
          value,
          all[choice % all.length] as (string | number)[],
          'something else entirely',
        ) as Json;
        expect(jsonEquals(value, changed)).toBe(canonicalJson(value) === canonicalJson(changed));
      }),
    );
  });

  it.each<[Json | undefined, Json | undefined, boolean]>([
    [{}, [], false],
    [{ 0: 1 }, [1], false],
    [null, undefined, false],
    [undefined, undefined, true],
    ['1', 1, false],
    [{ a: null }, { b: null }, false],
    // Fields that every object inherits are no fields.
    [{ constructor: 1 }, { a: 1 }, false],
    [JSON.parse('{"__proto__":{}}') as Json, { a: {} }, false],
    [JSON.parse('{"__proto__":{}}') as Json, JSON.parse('{"__proto__":{}}') as Json, true],
  ])('%j and %j: %s', (left, right, equal) => {
    expect(jsonEquals(left, right)).toBe(equal);
    expect(jsonEquals(right, left)).toBe(equal);
  });
});

describe('atPointer (RFC 6901)', () => {
  // The document and the pointers of section 5 of the RFC.
  const document = {
    foo: ['bar', 'baz'],
    '': 0,
    'a/b': 1,
    'c%d': 2,
    'e^f': 3,
    'g|h': 4,
    'i\\j': 5,
    'k"l': 6,
    ' ': 7,
    'm~n': 8,
  };
  it.each<[string, Json | undefined]>([
    ['', document],
    ['/foo', ['bar', 'baz']],
    ['/foo/0', 'bar'],
    ['/', 0],
    ['/a~1b', 1],
    ['/c%d', 2],
    ['/e^f', 3],
    ['/g|h', 4],
    ['/i\\j', 5],
    ['/k"l', 6],
    ['/ ', 7],
    ['/m~0n', 8],
    ['/foo/2', undefined],
    ['/foo/-', undefined],
    ['/foo/00', undefined],
    ['/foo/01', undefined],
    ['/foo/-1', undefined],
    ['/foo/length', undefined],
    ['/foo/0/0', undefined],
    ['/toString', undefined],
    ['/__proto__', undefined],
    ['foo', undefined],
    ['foo/0', undefined],
    ['xfoo/0', undefined],
    ['/missing/deeper', undefined],
  ])('%j', (pointer, found) => {
    expect(atPointer(document, pointer)).toEqual(found);
  });

  it('reads ~01 as ~1, not as a slash', () => {
    expect(atPointer({ '~1': 'tilde one', '/': 'slash' }, '/~01')).toBe('tilde one');
  });

  it('finds every part of any value by its escaped path', () => {
    fc.assert(
      fc.property(anyJson(), fc.nat(), (value, choice) => {
        const all = places(value);
        const path = all[choice % all.length] as (string | number)[];
        const pointer = path.map((part) => `/${String(part).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
        const oracle = path.reduce<unknown>((at, part) => (at as Record<string | number, unknown>)[part], value);
        expect(atPointer(value, pointer)).toBe(oracle);
      }),
      { numRuns: 500 },
    );
  });
});
