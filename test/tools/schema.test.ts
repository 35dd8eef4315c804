import { spawnSync } from 'node:child_process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { Json, JsonObject } from '#core';
import { compileSchema } from '#schema';
import { type Checked, checkOf, type InputSchema, jsonSchemaOf } from '#tools';
import { doorUrl } from '../kit/project.ts';
import { until } from '../kit/waiting.ts';

const check = (schema: InputSchema, value: Json): Checked | Promise<Checked> => checkOf(schema, 'The tool t')(value);
const why = (checked: Checked | Promise<Checked>): string => {
  if (checked instanceof Promise || checked.ok) throw new Error('it fits');
  return checked.why;
};
const fits = (schema: InputSchema, value: Json): boolean => (check(schema, value) as Checked).ok;

describe('JSON Schema', () => {
  it('says where a value does not fit, all places at once', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string' }, 'b/c': { items: { minimum: 3 } } },
      required: ['z'],
      additionalProperties: false,
    };
    expect(why(check(schema, { a: 1, 'b/c': [5, 1], extra: 'x' }))).toBe(
      "/: must have required property 'z'; /: must NOT have additional properties (extra); /a: must be string; /b~1c/1: must be >= 3",
    );
  });

  it('that nobody uses any more is not kept: models, users and servers bring new ones without end', async () => {
    setFlagsFromString('--expose-gc');
    const collect = runInNewContext('gc') as () => void;
    const made = (title: string) => compileSchema({ type: 'number', title }) as { readonly validate: object };
    const dropped = new WeakRef(made('the first').validate);
    for (let more = 0; more < 1_000; more += 1) made(`another ${more}`);
    await until(() => {
      collect();
      return dropped.deref() === undefined;
    });
  });

  it('is compiled once for all that say the same, and for each that says something else under the same name', () => {
    const made = (minimum: number): JsonObject => ({ $id: 'https://example.org/sum', type: 'number', minimum });
    expect(compileSchema(made(1))).toBe(compileSchema(made(1)));
    expect(compileSchema(made(2))).not.toBe(compileSchema(made(1)));
    expect([fits(made(1), 1), fits(made(2), 1), fits(made(1), 1)]).toEqual([true, false, true]);
    const first = compileSchema(made(1));
    for (let count = 3; count < 300; count += 1) compileSchema(made(count));
    // Those that nobody has used for long are not kept.
    expect(compileSchema(made(1))).not.toBe(first);
  });

  it('is shown to the model as it was written', () => {
    const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', 'x-own': [1] };
    expect(jsonSchemaOf(schema, 'o')).toEqual(schema);
  });

  it.each([
    'http://json-schema.org/draft-07/schema#',
    'http://json-schema.org/draft-04/schema#',
    'https://json-schema.org/draft/2019-09/schema',
    'https://json-schema.org/draft/2020-12/schema',
    'https://example.org/a-dialect-of-our-own',
  ])('takes $schema %s', ($schema) => {
    const schema = { $schema, type: 'object', properties: { n: { type: 'number' } } };
    expect([fits(schema, { n: 1 }), fits(schema, { n: 'x' })]).toEqual([true, false]);
  });

  it('follows the rules of 2020-12 where it is stated: prefixItems, $defs, $dynamicRef', () => {
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $defs: {
        name: { type: 'string' },
        node: { $dynamicAnchor: 'node', properties: { next: { $dynamicRef: '#node' } }, type: 'object' },
      },
      properties: {
        pair: { prefixItems: [{ $ref: '#/$defs/name' }, { type: 'number' }], items: false },
        list: { $ref: '#/$defs/node' },
      },
    };
    expect(fits(schema, { pair: ['a', 1], list: { next: { next: {} } } })).toBe(true);
    expect(fits(schema, { pair: ['a', 'b'] })).toBe(false);
    expect(fits(schema, { pair: ['a', 1, 2] })).toBe(false);
    expect(fits(schema, { list: { next: { next: 5 } } })).toBe(false);
  });

  it('follows $ref to itself', () => {
    const tree = {
      type: 'object',
      properties: { children: { type: 'array', items: { $ref: '#' } } },
      additionalProperties: false,
    };
    expect(fits(tree, { children: [{ children: [{}] }] })).toBe(true);
    expect(fits(tree, { children: [{ children: [{ x: 1 }] }] })).toBe(false);
  });

  it('two schemas may have the same $id', () => {
    const schema = (type: string): JsonObject => ({
      $id: 'https://example.org/args.json',
      type: 'object',
      properties: { a: { type } },
    });
    expect(fits(schema('string'), { a: 'x' })).toBe(true);
    expect(fits(schema('number'), { a: 1 })).toBe(true);
    expect(fits(schema('number'), { a: 'x' })).toBe(false);
    expect(() => fits(schema('nothing'), {})).toThrow(/invalid JSON Schema/);
    expect(() => fits(schema('nothing'), {})).toThrow(/allowed values/);
    expect(fits(schema('number'), { a: 1 })).toBe(true);
  });

  it('a field named like a member of every object is a field', () => {
    const schema = {
      type: 'object',
      properties: { constructor: { type: 'string' }, toString: { type: 'number' } },
      required: ['valueOf'],
    } as unknown as JsonObject;
    expect(why(check(schema, {}))).toBe("/: must have required property 'valueOf'");
    expect(fits(schema, { valueOf: 1 })).toBe(true);
    expect(fits(schema, { valueOf: 1, constructor: 'x', toString: 5 })).toBe(true);
    expect(fits(schema, { valueOf: 1, constructor: 5 })).toBe(false);
  });

  it('keywords and formats that nobody knows do not matter', () => {
    const schema = {
      type: 'object',
      'x-ui': true,
      deprecated: true,
      properties: { a: { type: 'string', format: 'no-such-format' } },
    };
    expect(fits(schema, { a: 'x' })).toBe(true);
  });

  describe('of OpenAPI 3.0 or draft 04', () => {
    const object = (properties: JsonObject): JsonObject => ({ type: 'object', properties });
    const about = (schema: JsonObject, ...values: Json[]): boolean[] =>
      values.map((a) => fits(object({ a: schema }), { a }));

    it('nullable without a type allows null, and nothing else', () => {
      expect(about({ enum: ['x'], nullable: true }, 'x', null, 'y')).toEqual([true, true, false]);
      expect(about({ allOf: [{ type: 'string' }], nullable: true }, 'x', null, 1)).toEqual([true, true, false]);
      expect(about({ enum: ['x'], nullable: false }, 'x', null)).toEqual([true, false]);
      expect(about({ items: { enum: ['x'], nullable: true } }, ['x', null], ['y'])).toEqual([true, false]);
    });

    it('nullable beside a type says what it says', () => {
      expect(about({ type: 'string', nullable: true }, 'x', null, 1)).toEqual([true, true, false]);
      expect(about({ type: 'string', nullable: false }, 'x', null)).toEqual([true, false]);
      expect(about({ type: ['string', 'null'], nullable: false }, 'x', null, 1)).toEqual([true, true, false]);
    });

    it('a field, a value or a definition that is called nullable is left alone', () => {
      const schema = {
        ...object({ nullable: { enum: ['x'], nullable: true }, b: true }),
        nullable: true,
      };
      expect([fits(schema, { nullable: null }), fits(schema, { nullable: 1 }), fits(schema, 1)]).toEqual([
        true,
        false,
        false,
      ]);
      expect(fits({ properties: { nullable: false, a: { enum: [1], nullable: true } } }, { nullable: 1 })).toBe(false);
      expect(about({ const: { nullable: true }, nullable: true }, { nullable: true }, {}, null)).toEqual([
        true,
        false,
        true,
      ]);
    });

    it('references still lead to where they led', () => {
      const schema = {
        nullable: true,
        definitions: { x: { enum: ['x'] } },
        properties: { a: { $ref: '#/definitions/x', nullable: true } },
      };
      expect(['x', null, 'y'].map((a) => fits(schema, { a }))).toEqual([true, true, false]);
    });

    it('a bound may be said to be exclusive by a boolean', () => {
      expect(about({ type: 'number', minimum: 0, exclusiveMinimum: true }, 0, 1)).toEqual([false, true]);
      expect(about({ minimum: 0, exclusiveMinimum: false, maximum: 2, exclusiveMaximum: true }, -1, 0, 2)).toEqual([
        false,
        true,
        false,
      ]);
      expect(about({ exclusiveMinimum: true }, 0)).toEqual([true]);
      expect(about({ exclusiveMinimum: 0 }, 0, 1)).toEqual([false, true]);
    });
  });

  it('a pattern may be one that is none under the flag u; one that is none at all is refused', () => {
    const mail = { pattern: '^[\\w-.]+@[\\w-.]+$' };
    expect([fits(mail, 'a.b@c-d'), fits(mail, 'a b@c')]).toEqual([true, false]);
    expect([fits({ pattern: '^\\p{L}+$' }, 'é'), fits({ pattern: '^\\p{L}+$' }, 'p{L}')]).toEqual([true, false]);
    expect(compileSchema({ pattern: '(?i)a' })).toHaveProperty('cause');
    expect(fits({ patternProperties: { '^[\\w-.]$': { type: 'number' } } }, { '-': 'x' })).toBe(false);
  });

  it('$async does not make every value fit', () => {
    const checked = check({ $async: true, type: 'object', required: ['a'] }, {});
    expect(checked).toEqual({ ok: false, why: "/: must have required property 'a'" });
  });

  it('the value that is handed on is a copy that can be changed', () => {
    const value = Object.freeze({ list: Object.freeze([1]) });
    const checked = check({ type: 'object' }, value as never) as { ok: true; value: { list: number[] } };
    checked.value.list.push(2);
    expect([value, checked.value]).toEqual([{ list: [1] }, { list: [1, 2] }]);
  });

  it('a default of the schema is a note for the model; it is not filled in', () => {
    expect(check({ type: 'object', properties: { a: { default: 5 } } }, {})).toEqual({ ok: true, value: {} });
  });

  it('a thousand faults are told in ten, each short', () => {
    const said = why(check({ type: 'array', items: { type: 'number' } }, Array(1_000).fill('x')));
    expect(said.split('; ')).toHaveLength(11);
    expect(said).toMatch(/; and 990 more$/);
    const long = why(check({ type: 'object', additionalProperties: false }, { ['k'.repeat(100_000)]: 1 }));
    expect(long.length).toBeLessThan(400);
  });

  it('ER-07 says nothing of the values', () => {
    const schema = {
      properties: {
        a: { enum: ['x'] },
        b: { const: 1 },
        c: { pattern: '^a' },
        d: { maxLength: 2 },
        e: { type: 'number' },
      },
    };
    const secret = 'hunter2';
    expect(why(check(schema, { a: secret, b: secret, c: secret, d: secret, e: secret }))).not.toContain(secret);
  });

  it('prints nothing, whatever the schema', () => {
    const script = `
      import { checkOf } from ${JSON.stringify(doorUrl('#tools'))};
      for (const schema of [
        { type: 'object', properties: { a: { type: 'string', format: 'no-such' }, b: { $ref: '#/properties/a', title: 'x' } } },
        { $schema: 'https://json-schema.org/draft/2020-12/schema', type: ['string', 'object'], unknown: 1, minItems: 1 },
        { type: 'object', if: { minimum: 1 }, additionalItems: true, nullable: true, required: ['q'] },
      ]) checkOf(schema, 'o')({ a: 'x' });
    `;
    const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    expect({ status, stdout, stderr }).toEqual({ status: 0, stdout: '', stderr: '' });
  });
});

describe('zod', () => {
  it('hands on what the schema puts out: defaults, transforms, stripped keys', () => {
    const schema = z.object({
      n: z.number().default(5),
      at: z.string().transform((text) => new Date(text)),
      trimmed: z.string().trim().optional(),
    });
    expect(check(schema, { at: '2026-01-02', trimmed: ' x ', extra: 1 })).toEqual({
      ok: true,
      value: { n: 5, at: new Date('2026-01-02'), trimmed: 'x' },
    });
  });

  it('shows the model what goes in, not what comes out', () => {
    const schema = z.object({ n: z.number().default(5), at: z.string().transform((text) => new Date(text)) });
    expect(jsonSchemaOf(schema, 'o')).toMatchObject({
      type: 'object',
      properties: { n: { type: 'number', default: 5 }, at: { type: 'string' } },
      required: ['at'],
    });
  });

  it('descriptions reach the model', () => {
    const schema = z.object({ city: z.string().describe('The city, in English') });
    expect(jsonSchemaOf(schema, 'o')['properties']).toMatchObject({ city: { description: 'The city, in English' } });
  });

  it('says where a value does not fit', () => {
    const schema = z.object({ list: z.array(z.object({ a: z.string() })) });
    expect(why(check(schema, { list: [{ a: 'x' }, { a: 1 }] }))).toBe(
      '/list/1/a: Invalid input: expected string, received number',
    );
    expect(why(check(schema, 5))).toMatch(/^\/: /);
  });

  it('refinements count', () => {
    const schema = z
      .object({ a: z.number(), b: z.number() })
      .refine(({ a, b }) => a < b, { message: 'a must be below b', path: ['a'] });
    expect([fits(schema, { a: 1, b: 2 }), why(check(schema, { a: 2, b: 1 }))]).toEqual([true, '/a: a must be below b']);
  });

  it('an asynchronous refinement is waited for', async () => {
    const schema = z.object({ a: z.string() }).refine(async ({ a }) => a === 'free', { message: 'taken' });
    expect(await check(schema, { a: 'free' })).toEqual({ ok: true, value: { a: 'free' } });
    expect(await check(schema, { a: 'x' })).toEqual({ ok: false, why: '/: taken' });
  });

  it('a refinement that throws is a value that does not fit', async () => {
    const schema = z.object({}).refine(() => {
      throw new Error('no database');
    });
    expect(await check(schema, {})).toEqual({ ok: false, why: expect.stringContaining('no database') });
  });

  it('recursive, discriminated and strict schemas can be shown and checked', () => {
    interface Node {
      readonly children?: readonly Node[] | undefined;
    }
    const node: z.ZodType<Node> = z.strictObject({
      get children() {
        return z.array(node).optional();
      },
    });
    const shape = z.discriminatedUnion('kind', [
      z.object({ kind: z.literal('a'), n: z.number() }),
      z.object({ kind: z.literal('b') }),
    ]);
    const schema = z.object({ node, shape });
    expect(fits(schema, { node: { children: [{}] }, shape: { kind: 'a', n: 1 } })).toBe(true);
    expect(fits(schema, { node: { x: 1 }, shape: { kind: 'b' } })).toBe(false);
    // The JSON Schema that the model sees is one that ajv can compile, too.
    expect(fits(jsonSchemaOf(schema, 'o'), { node: { children: [{}] }, shape: { kind: 'a', n: 1 } })).toBe(true);
  });

  it.each([
    ['a date', z.object({ at: z.date() }), 'Date'],
    ['a bigint', z.object({ id: z.bigint() }), 'BigInt'],
    ['a map', z.object({ m: z.map(z.string(), z.string()) }), 'Map'],
  ])('%s cannot be written as JSON Schema, and is refused where it is registered, with what it is', (_, schema, type) => {
    expect(() => jsonSchemaOf(schema, 'The tool t')).toThrow(
      expect.objectContaining({
        code: 'tool_schema_invalid',
        message: expect.stringMatching(
          new RegExp(
            `^The tool t has a schema that cannot be written as JSON Schema: ${type}.* Use types that JSON has`,
          ),
        ),
        cause: expect.anything(),
      }),
    );
  });
});

describe('any Standard Schema', () => {
  const standard = (validate: (value: unknown) => unknown, more: object = {}): InputSchema =>
    ({ '~standard': { version: 1, vendor: 'own', validate, ...more } }) as InputSchema;

  it('without a JSON Schema is refused with the name of its library', () => {
    expect(() =>
      jsonSchemaOf(
        standard((value) => ({ value })),
        'The tool t',
      ),
    ).toThrow(expect.objectContaining({ code: 'tool_schema_invalid', message: expect.stringContaining('own') }));
  });

  it('may be a function that has ~standard', () => {
    const callable = Object.assign(
      () => 1,
      standard((value) => ({ value }), { jsonSchema: { input: () => ({ type: 'object' }) } }),
    );
    expect(jsonSchemaOf(callable as unknown as InputSchema, 'o')).toEqual({ type: 'object' });
    expect(check(callable as unknown as InputSchema, { a: 1 })).toEqual({ ok: true, value: { a: 1 } });
  });

  it('gets a copy that it may change', () => {
    const value = Object.freeze({ a: 1 });
    const schema = standard((given) => {
      (given as { a: number }).a = 2;
      return { value: given };
    });
    expect(check(schema, value)).toEqual({ ok: true, value: { a: 2 } });
    expect(value).toEqual({ a: 1 });
  });

  it('that throws, at once or later, is a value that does not fit', async () => {
    const now = standard(() => {
      throw new Error('no database');
    });
    const later = standard(() => Promise.reject(new Error('no database')));
    expect(why(check(now, {}))).toBe('its check threw: no database');
    expect(await check(later, {})).toEqual({ ok: false, why: 'its check threw: no database' });
  });

  it('a path of keys and of objects with a key', () => {
    const schema = standard(() => ({
      issues: [{ message: 'm', path: ['a', { key: 0 }, Symbol('s')] }, { message: 'n' }],
    }));
    expect(why(check(schema, {}))).toBe('/a/0/Symbol(s): m; /: n');
  });
});

it('a check that never answers is one that does not fit', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  try {
    const silent = z.unknown().refine(() => new Promise<boolean>(() => {}));
    const checked = check(silent, {});
    vi.advanceTimersByTime(10_000);
    expect(await checked).toEqual({ ok: false, why: 'its check gave no answer within 10000 ms' });
  } finally {
    vi.useRealTimers();
  }
});
