import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '#core';
import { JsonStream } from '#parse';
import { anyJson } from '../kit/json-values.ts';
import { cut, cuts } from './stream-cuts.ts';

/** JSON text of any value, in one of the ways to write it. */
const anyText = (): fc.Arbitrary<string> =>
  fc.tuple(anyJson(), fc.constantFrom('', ' ', '\n\t'), fc.boolean()).map(([value, space, escaped]) => {
    const text = JSON.stringify(value, null, space);
    return escaped
      ? text.replace(/[^ -~\s]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
      : text;
  });

function read(text: string, sizes: readonly number[] = [text.length]): JsonStream {
  const stream = new JsonStream();
  for (const piece of cut(text, sizes)) stream.push(piece);
  stream.end();
  return stream;
}

/** Whether `part` is a beginning of `whole`: of objects some of the keys, of lists the first items, of strings the first part. */
function isBeginning(part: Json | undefined, whole: Json): boolean {
  if (part === undefined) return true;
  if (typeof part === 'string') return typeof whole === 'string' && whole.startsWith(part);
  if (typeof part !== 'object' || part === null) return Object.is(part, whole);
  if (typeof whole !== 'object' || whole === null || Array.isArray(part) !== Array.isArray(whole)) return false;
  const wholes = new Map(Object.entries(whole));
  return Object.entries(part).every(([key, value]) => {
    const other = wholes.get(key);
    return other !== undefined && isBeginning(value, other);
  });
}

describe('JsonStream', () => {
  it('reads what JSON.parse reads, whatever the pieces', () => {
    fc.assert(
      fc.property(anyText(), cuts(), (text, sizes) => {
        const stream = read(text, sizes);
        expect(stream.value()).toEqual(JSON.parse(text));
        expect({ state: stream.state, issues: stream.issues }).toEqual({ state: 'complete', issues: [] });
      }),
    );
  });

  it('shows after each piece a beginning of the value', () => {
    fc.assert(
      fc.property(anyText(), cuts(), (text, sizes) => {
        const whole = JSON.parse(text) as Json;
        const stream = new JsonStream();
        for (const piece of cut(text, sizes)) {
          stream.push(piece);
          expect(isBeginning(stream.value(), whole)).toBe(true);
        }
      }),
    );
  });

  it('shows each thing as soon as it is certain', () => {
    const stream = new JsonStream();
    const seen = [
      '{"a',
      '": tr',
      'ue, "b": 12',
      '3, "c": ["x',
      'yz',
      '\\',
      'n\\u00',
      'e9"',
      ', {"d": -',
      '1',
      '}',
      ']',
      '}',
    ].map((piece) => {
      stream.push(piece);
      return JSON.stringify(stream.value());
    });
    expect(seen).toEqual([
      '{}',
      '{}',
      '{"a":true}',
      '{"a":true,"b":123,"c":["x"]}',
      '{"a":true,"b":123,"c":["xyz"]}',
      '{"a":true,"b":123,"c":["xyz"]}',
      '{"a":true,"b":123,"c":["xyz\\n"]}',
      '{"a":true,"b":123,"c":["xyz\\né"]}',
      '{"a":true,"b":123,"c":["xyz\\né",{}]}',
      '{"a":true,"b":123,"c":["xyz\\né",{}]}',
      '{"a":true,"b":123,"c":["xyz\\né",{"d":-1}]}',
      '{"a":true,"b":123,"c":["xyz\\né",{"d":-1}]}',
      '{"a":true,"b":123,"c":["xyz\\né",{"d":-1}]}',
    ]);
    expect(stream.state).toBe('complete');
  });

  it('hands out one tree that grows', () => {
    const stream = new JsonStream();
    stream.push('{"list": [1, ');
    const tree = stream.value();
    stream.push('2, 3]}');
    expect(stream.value()).toBe(tree);
    expect(tree).toEqual({ list: [1, 2, 3] });
  });

  it('keeps a `__proto__` key as data', () => {
    const stream = read('{"__proto__": {"polluted": true}, "a": {"constructor": 1}}', [3]);
    expect(Object.keys(stream.value() as object)).toEqual(['__proto__', 'a']);
    expect(Object.getPrototypeOf(stream.value())).toBe(Object.prototype);
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  it.each<[text: string, value: Json, codes: string[]]>([
    ['{"a": [1, 2,], }', { a: [1, 2] }, ['trailing_comma']],
    ["{'a': 'it\\'s \"x\"'}", { a: 'it\'s "x"' }, ['single_quotes']],
    ['{"a": "two\nlines"}', { a: 'two\nlines' }, ['control_character']],
    ['{"a": "\\d+\\\'"}', { a: "\\d+'" }, ['unknown_escape']],
    ['[True, False, None]', [true, false, null], ['python_literal']],
    ['[9007199254740993, -1e999, 1e21]', ['9007199254740993', '-1e999', 1e21], ['number_as_text']],
    ['{"a": [1, {"b": 2}', { a: [1, { b: 2 }] }, ['unclosed']],
    ['{"a": 1} and more', { a: 1 }, ['text_after']],
  ])('reads %s, and says what is not JSON about it', (text, value, codes) => {
    const stream = read(text, [1]);
    expect(stream.value()).toEqual(value);
    expect({ state: stream.state, codes: stream.issues.map(({ code }) => code) }).toEqual({ state: 'complete', codes });
  });

  it.each<[text: string, value: Json | undefined, at: number, message: string]>([
    ['', undefined, 0, 'there is no value'],
    ['{"a": 1 "b": 2}', { a: 1 }, 8, 'a comma or } was expected, and not "\\""'],
    ['{"a" 1}', {}, 5, 'a colon was expected, and not "1"'],
    ['{a: 1}', {}, 1, 'a key in quotes was expected, and not "a"'],
    ['[1, 2}', [1, 2], 5, 'a comma or ] was expected, and not "}"'],
    ['[1, ,]', [1], 4, 'a value was expected, and not ","'],
    ['["\\u00x"]', [''], 6, 'a hexadecimal digit was expected, and not "x"'],
    ['{"p": 1/6}', {}, 6, 'the value that begins here is not JSON'],
    ['[01]', [], 1, 'the value that begins here is not JSON'],
    ['["cut', ['cut'], 5, 'the text ends inside a string'],
    ['[1, 2', [1], 5, 'the text ends inside a number or a word'],
    ['{"a": ', {}, 6, 'the text ends before the value of a key'],
    ['{"a', {}, 3, 'the text ends inside a string'],
  ])('breaks at %j, and keeps what came before', (text, value, at, message) => {
    for (const sizes of [[1], [text.length + 1]]) {
      const stream = read(text, sizes);
      const fault = stream.fault;
      expect({ state: stream.state, fault }).toEqual({ state: 'broken', fault: { at, message } });
      expect(stream.value()).toEqual(value);
    }
  });

  it('stops at 100 levels and at 4,000,000 characters', () => {
    expect(read('['.repeat(100) + ']'.repeat(100)).state).toBe('complete');
    expect(read('['.repeat(101)).fault).toEqual({ at: 100, message: 'the value is nested deeper than 100 levels' });
    const long = new JsonStream();
    long.push('"');
    for (let count = 0; count < 4; count += 1) long.push('x'.repeat(1_000_000));
    expect(long.fault?.message).toBe('the text is longer than 4000000 characters');
    expect(long.value()).toHaveLength(3_000_000);
  });

  it('never throws on changed text, and ends complete or broken, the same for all pieces', () => {
    const edits = fc.array(
      fc.tuple(fc.nat(), fc.nat(3), fc.constantFrom('', '"', "'", '\\', '{', ']', ',', ':', '\n', 'e', '-')),
    );
    fc.assert(
      fc.property(anyText(), edits, cuts(), (text, changes, sizes) => {
        const changed = changes.reduce((now, [at, drop, insert]) => {
          const place = at % (now.length + 1);
          return now.slice(0, place) + insert + now.slice(place + drop);
        }, text);
        const whole = read(changed);
        const pieces = read(changed, sizes);
        expect(whole.state).not.toBe('open');
        expect([pieces.state, pieces.fault, pieces.issues]).toEqual([whole.state, whole.fault, whole.issues]);
        expect(pieces.value()).toEqual(whole.value());
      }),
      { numRuns: 500 },
    );
  });
});
