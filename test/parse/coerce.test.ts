import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '#core';
import { coerceToSchema } from '#parse';

const text = { type: 'string' } as const;
const integer = { type: 'integer' } as const;
const list = (items: JsonObject): JsonObject => ({ type: 'array', items });
const object = (properties: JsonObject, rest: JsonObject = {}): JsonObject => ({ type: 'object', properties, ...rest });

describe('coerceToSchema changes what is safe', () => {
  it.each<[string, Json, JsonObject, Json]>([
    ['text to a number', '3', integer, 3],
    ['grouped digits', '1,000', { type: 'number' }, 1000],
    ['a fraction', '1/4', { type: 'number' }, 0.25],
    ['text to a boolean', 'True', { type: 'boolean' }, true],
    ['a number to text', 5, text, '5'],
    ['a boolean to text', true, text, 'true'],
    ['one value to a list', 'a', list(text), ['a']],
    ['a list as text', '["a", "b"]', list(text), ['a', 'b']],
    ['a Python list as text', "['a', 'b']", list(text), ['a', 'b']],
    ['numbers with commas', '1, 2', list(integer), [1, 2]],
    ['an object as text', '{"a": "1"}', object({ a: integer }), { a: 1 }],
    ['the case of an enum', 'Newest', { enum: ['newest', 'oldest'] }, 'newest'],
    ['blanks of an enum', ' new_york ', { type: 'string', enum: ['New York'] }, 'New York'],
    ['an old name of a type', '2', { type: 'float' }, 2],
    ['items', ['1', 2], list(integer), [1, 2]],
    ['a list in a list', ['a'], list(list(text)), [['a']]],
    ['the case of a key', { userName: 'a' }, object({ user_name: text }), { user_name: 'a' }],
    ['the only item', [5], integer, 5],
    ['an object as the only item', { a: 1 }, list(object({ a: integer })), [{ a: 1 }]],
    ['the text of an object as the only item', '{"a": 1}', list(object({ a: integer })), [{ a: 1 }]],
    ['the first type that takes it', '4', { type: ['integer', 'null'] }, 4],
    ['the first alternative that takes it', '4', { anyOf: [{ type: 'boolean' }, integer] }, 4],
    ['null for something optional', { a: 'x', b: null }, object({ a: text, b: text }), { a: 'x' }],
    ['a default', {}, object({ n: { type: 'integer', default: 7 } }, { required: ['n'] }), { n: 7 }],
    ['a name that is not allowed', { a: 'x', z: 1 }, object({ a: text }, { additionalProperties: false }), { a: 'x' }],
  ])('%s', (_name, value, schema, want) => {
    const before = JSON.stringify(value);
    const result = coerceToSchema(value, schema);
    expect(result.value).toEqual(want);
    expect(result.issues.length).toBeGreaterThan(0);
    expect(result.issues.map(({ code }) => code)).not.toContain('mismatch');
    expect(JSON.stringify(value)).toBe(before);
  });

  it('follows references, also into themselves', () => {
    const schema: JsonObject = {
      $defs: { node: object({ id: integer, next: { anyOf: [{ $ref: '#/$defs/node' }, { type: 'null' }] } }) },
      $ref: '#/$defs/node',
    };
    expect(coerceToSchema({ id: '1', next: { id: '2', next: null } }, schema)).toMatchObject({
      value: { id: 1, next: { id: 2, next: null } },
      issues: [
        { code: 'coerced', path: '/id' },
        { code: 'coerced', path: '/next/id' },
      ],
    });
  });
});

describe('coerceToSchema leaves what is right, and says what is not', () => {
  it.each<[string, Json, JsonObject]>([
    ['a fitting object', { a: 'x', n: 1 }, object({ a: text, n: integer }, { required: ['a'] })],
    ['null for something optional that is nullable', { a: null }, object({ a: { ...text, nullable: true } })],
    ['null for a nullable reference', { a: null }, object({ a: { $ref: '#/properties/b', nullable: true }, b: text })],
    ['an integer written with a point', 3, { type: 'number' }],
    ['text that looks like a number', '007', text],
    ['text with a comma', ['Boston, MA'], list(text)],
    ['an alternative that fits', '5', { anyOf: [integer, text] }],
    ['what the schema says nothing of', { any: [null] }, {}],
    ['a schema that refers nowhere', 1, { $ref: '#/$defs/none' }],
  ])('leaves %s', (_name, value, schema) => {
    const result = coerceToSchema(value, schema);
    expect(result).toEqual({ value, issues: [] });
    expect(result.value).toBe(value);
  });

  it.each<[string, Json, JsonObject, string]>([
    ['words for a number', 'many', integer, ''],
    ['a broken integer', 1.5, integer, ''],
    ['another word than the enum', { a: 'blue' }, object({ a: { type: 'string', enum: ['red'] } }), '/a'],
    ['a missing value', {}, object({ 'a/b': text }, { required: ['a/b'] }), '/a~1b'],
    ['null where it is required', { a: null }, object({ a: text }, { required: ['a'] }), '/a'],
    ['a range', '5-10', integer, ''],
    ['an object for text', { a: { b: 1 } }, object({ a: text }), '/a'],
    ['a list for text', ['a'], text, ''],
    ['an object or a list for one of several', { a: 1 }, { anyOf: [text, integer] }, ''],
  ])('reports %s', (_name, value, schema, path) => {
    const result = coerceToSchema(value, schema);
    expect(result.value).toEqual(value);
    expect(result.issues).toMatchObject([{ code: 'mismatch', path }]);
  });

  it.each<[string, Json]>([
    ['an object', { list: ['Oslo'] }],
    ['the text of an object', '{"list":["Oslo"]}'],
    ['a list of objects', [{ list: ['Oslo'] }]],
  ])('makes no list of texts out of %s', (_name, value) => {
    expect(coerceToSchema(value, list(text)).issues).toMatchObject([
      ...(Array.isArray(value) ? [] : [{ code: 'coerced' }]),
      { code: 'mismatch', path: '/0', message: 'the schema wants string, this is object' },
    ]);
  });

  it('does not follow a value down without end', () => {
    let deep: Json = 1;
    for (let level = 0; level < 5000; level += 1) deep = [deep];
    expect(coerceToSchema(deep, list({})).issues).toMatchObject([{ code: 'limit' }]);
  });
});
