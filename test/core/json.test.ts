import vm from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PilotageError } from '../../src/core/errors.ts';
import {
  atPointer,
  canonicalJson,
  captureJson,
  captureObject,
  encodedBytes,
  type Json,
  jsonEquals,
  thaw,
} from '../../src/core/json.ts';

function refusal(value: unknown, root = 'value'): { path: unknown; message: string } {
  try {
    captureJson(value, root);
  } catch (error) {
    if (PilotageError.is(error, 'unserializable')) return { path: error.data?.['path'], message: error.message };
    throw error;
  }
  throw new Error('it was taken');
}

function expectDeeplyFrozen(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  expect(Object.isFrozen(value)).toBe(true);
  for (const part of Object.values(value)) expectDeeplyFrozen(part);
}

class Private {
  readonly #secret = 1;
  get(): number {
    return this.#secret;
  }
}

const self: Record<string, unknown> = {};
self['inner'] = { again: [self] };

describe('captureJson refuses what JSON would lose', () => {
  it.each<[string, unknown, string]>([
    ['TJ-04 a function', { a: { callback: () => 1 } }, 'value.a.callback'],
    ['TJ-04 a function in a list', { steps: [{ inner: () => 1 }] }, 'value.steps[0].inner'],
    ['TJ-04 a function at the top', () => 1, 'value'],
    ['TJ-05 an object that holds a socket', { a: new AbortController() }, 'value.a'],
    ['TJ-05 a value that contains itself', self, 'value.inner.again[0] <cycle>'],
    ['TJ-05 a Map with keys that are no strings', { m: new Map([[{}, 1]]) }, 'value.m <non-string-map-key>'],
    ['TJ-05 an object with symbol keys', { [Symbol('s')]: 1 }, 'value <non-string-map-key>'],
    [
      'TJ-05 a toJSON that throws',
      {
        a: {
          toJSON: () => {
            throw new Error('no');
          },
        },
      },
      'value.a',
    ],
    ['TJ-06 undefined in a list', { a: [1, undefined] }, 'value.a[1]'],
    ['TJ-06 undefined at the top', undefined, 'value'],
    ['TJ-06 NaN', [Number.NaN], 'value[0]'],
    ['TJ-06 Infinity', { a: Number.POSITIVE_INFINITY }, 'value.a'],
    ['TJ-06 -Infinity', { a: Number.NEGATIVE_INFINITY }, 'value.a'],
    ['TJ-06 a bigint', { a: 1n }, 'value.a'],
    ['TJ-06 a symbol', { a: Symbol('s') }, 'value.a'],
    ['TJ-06 a Map', { a: new Map([['k', 1]]) }, 'value.a'],
    ['TJ-06 a Set', { a: new Set([1]) }, 'value.a'],
    ['TJ-06 an invalid date', { a: new Date(Number.NaN) }, 'value.a'],
    ['TJ-06 an instance with private state', { a: new Private() }, 'value.a'],
    // biome-ignore lint/suspicious/noSparseArray: that is what is tested.
    ['TJ-06 a sparse array', { a: [1, , 3] }, 'value.a[1]'],
    ['a promise', { a: Promise.resolve(1) }, 'value.a'],
    ['an error', { a: new Error('x') }, 'value.a'],
    ['a boxed number', { a: Object(5) }, 'value.a'],
    ['TJ-17 an integer that has lost digits', { id: 2 ** 53 }, 'value.id'],
    ['TJ-17 a negative one', { id: -(2 ** 63) }, 'value.id'],
    ['TJ-17 the largest of 64 bits', { id: 2 ** 64 }, 'value.id'],
    [
      'a getter that throws',
      {
        ok: 1,
        get bad() {
          throw new TypeError('revoked');
        },
      },
      'value.bad',
    ],
  ])('%s', (_, value, path) => {
    const { path: found, message } = refusal(value);
    expect(found).toBe(path);
    expect(message).toContain(path);
  });

  it('TJ-04 begins the path with the root it was given', () => {
    expect(refusal({ callback: () => 1 }, 'Trajectory.LLMContext').path).toBe('Trajectory.LLMContext.callback');
  });

  it('TJ-05 says why a toJSON threw', () => {
    const cause = new Error('gone');
    const value = {
      toJSON: () => {
        throw cause;
      },
    };
    expect(() => captureJson(value, 'v')).toThrow(expect.objectContaining({ cause }));
  });

  it('refuses 513 levels and takes 512', () => {
    const nest = (levels: number): unknown => {
      let value: unknown = 1;
      for (let level = 0; level < levels; level += 1) value = [value];
      return value;
    };
    expect(() => captureJson(nest(512), 'v')).not.toThrow();
    expect(refusal(nest(513)).message).toContain('512');
    expect(refusal(nest(100_000)).message).toContain('512');
  });

  it('a cycle beside a large part is found without copying that part hundreds of times', () => {
    let reads = 0;
    const value: Record<string, unknown> = {
      get large() {
        reads += 1;
        return [1];
      },
    };
    value['next'] = { back: value };
    expect(refusal(value).path).toBe('value.next.back <cycle>');
    expect(reads).toBeLessThan(30);
  });

  it('ER-07 names the path, never the value', () => {
    expect(refusal({ password: ['hunter2', Symbol('hunter2')] }).message).not.toContain('hunter2');
  });
});

describe('captureJson takes what JSON can hold', () => {
  it('TJ-05 a value met twice on sibling branches is no cycle', () => {
    const twice = { a: 1 };
    expect(captureJson({ left: twice, right: [twice, twice] }, 'v').json).toEqual({
      left: { a: 1 },
      right: [{ a: 1 }, { a: 1 }],
    });
  });

  it('TJ-07 null, empty maps and lists, byte arrays, valid dates, toJSON', () => {
    const value = {
      nothing: null,
      map: {},
      list: [],
      bytes: new Uint8Array([0, 1, 255]),
      buffer: Buffer.from('é'),
      date: new Date(0),
      url: new URL('https://example.org/a'),
      bare: Object.assign(Object.create(null), { a: 1 }),
      absent: undefined,
    };
    expect(captureJson(value, 'v').json).toEqual({
      nothing: null,
      map: {},
      list: [],
      bytes: 'AAH/',
      buffer: 'w6k=',
      date: '1970-01-01T00:00:00.000Z',
      url: 'https://example.org/a',
      bare: { a: 1 },
    });
  });

  it('TJ-17 a big number that is no 64-bit integer, and the largest safe one', () => {
    const value = [Number.MAX_SAFE_INTEGER, -Number.MAX_SAFE_INTEGER, 6.022e23, 1e300, '9007199254740993'];
    expect(captureJson(value, 'v').json).toEqual(value);
  });

  it('keeps an own "__proto__" key as data, and thaws it as data', () => {
    const value: unknown = JSON.parse('{"__proto__":{"admin":true},"a":1}');
    const { json } = captureJson(value, 'v');
    const thawed = thaw(json);
    for (const copy of [json, thawed] as Record<string, unknown>[]) {
      expect(JSON.stringify(copy)).toBe('{"__proto__":{"admin":true},"a":1}');
      expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
      expect(copy['admin']).toBeUndefined();
    }
  });

  it('takes the plain objects of another realm, not its class instances', () => {
    expect(captureJson(vm.runInNewContext('({ a: [{ b: 1 }] })'), 'v').json).toEqual({ a: [{ b: 1 }] });
    expect(refusal(vm.runInNewContext('new Map()')).path).toBe('value');
  });

  it('writes minus zero as JSON does', () => {
    expect(Object.is(captureJson(-0, 'v').json, 0)).toBe(true);
  });

  it('takes a string of 10 million characters', () => {
    const text = 'ü'.repeat(10_000_000);
    expect(captureJson({ text }, 'v').json).toEqual({ text });
  });

  it('captureObject refuses anything else at the top', () => {
    for (const value of [[], 'x', null, 5, new Date(0)]) {
      expect(() => captureObject(value, 'payload')).toThrow(/payload must be a JSON object/);
    }
  });

  it('TJ-12 128 concurrent copies of one value are equal', async () => {
    const value = { steps: Array.from({ length: 200 }, (_, index) => ({ index, text: `t${index}`, at: new Date(index) })) };
    const first = JSON.stringify(captureJson(value, 'v').json);
    const copies = await Promise.all(
      Array.from({ length: 128 }, async () => JSON.stringify(captureJson(value, 'v').json)),
    );
    expect(new Set(copies)).toEqual(new Set([first]));
  });
});

/** Plain JSON, with keys and strings of all kinds; numbers that JSON keeps. */
const json = (): fc.Arbitrary<Json> =>
  fc.jsonValue({ maxDepth: 5 }).filter((value) => !/\d{16}|\de\+1\d/.test(JSON.stringify(value))) as fc.Arbitrary<Json>;

/** Where a value can be planted: a path of keys and indices. */
function places(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== 'object' || value === null) return [path];
  const inner = Array.isArray(value)
    ? value.flatMap((item, index) => places(item, [...path, index]))
    : Object.keys(value).flatMap((key) => places((value as Record<string, unknown>)[key], [...path, key]));
  return [path, ...inner];
}

function plant(value: unknown, [key, ...rest]: (string | number)[], leaf: unknown): unknown {
  if (key === undefined) return leaf;
  const copy = thaw(value) as Record<string | number, unknown>;
  const planted = plant(copy[key], rest, leaf);
  Object.defineProperty(copy, key, { value: planted, enumerable: true, writable: true, configurable: true });
  return copy;
}

describe('captureJson, for any value', () => {
  it('TJ-06 the copy is what JSON text would give back, and its bytes are never underrated', () => {
    fc.assert(
      fc.property(json(), (value) => {
        const captured = captureJson(value, 'v');
        expect(captured.json).toStrictEqual(JSON.parse(JSON.stringify(value)));
        expect(captured.maxBytes).toBeGreaterThanOrEqual(encodedBytes(captured.json));
      }),
      { numRuns: 500 },
    );
  });

  it('the copy is deeply frozen and does not follow its source', () => {
    fc.assert(
      fc.property(json(), (value) => {
        const source = thaw(value);
        const captured = captureJson(source, 'v').json;
        const before = JSON.stringify(captured);
        expectDeeplyFrozen(captured);
        spoil(source);
        expect(JSON.stringify(captured)).toBe(before);
      }),
    );
  });

  it('TJ-04 TJ-09 a bad leaf is named by its path, wherever it is planted', () => {
    const bad = fc.constantFrom<unknown>(() => 1, Number.NaN, 1n, Symbol('s'), new Map(), new Private());
    fc.assert(
      fc.property(json(), bad, fc.nat(), (value, leaf, choice) => {
        const all = places(value);
        const path = all[choice % all.length] as (string | number)[];
        const text = path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('');
        expect(refusal(plant(value, path, leaf), 'root').path).toBe(`root${text}`);
      }),
      { numRuns: 500 },
    );
  });

  it('thaw gives an equal copy that can be changed', () => {
    fc.assert(
      fc.property(json(), (value) => {
        const frozen = captureJson(value, 'v').json;
        const copy = thaw(frozen);
        expect(copy).toStrictEqual(frozen);
        spoil(copy);
        expect(frozen).toStrictEqual(captureJson(value, 'v').json);
      }),
    );
  });
});

/** Changes everything in a value that can be changed. Throws when something is frozen. */
function spoil(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const part of Object.values(value)) spoil(part);
  if (Array.isArray(value)) value.push('spoilt');
  else (value as Record<string, unknown>)['spoilt'] = true;
}

describe('jsonEquals', () => {
  const shuffled = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(shuffled);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).reverse().map(([key, part]) => [key, shuffled(part)]));
  };

  it('does not count key order, and agrees with the canonical text', () => {
    fc.assert(
      fc.property(json(), json(), (left, right) => {
        expect(jsonEquals(left, shuffled(left))).toBe(true);
        expect(canonicalJson(left)).toBe(canonicalJson(shuffled(left)));
        const a = captureJson(left, 'a').json;
        const b = captureJson(right, 'b').json;
        expect(jsonEquals(a, b)).toBe(canonicalJson(a) === canonicalJson(b));
      }),
    );
  });

  it('sees one changed leaf', () => {
    fc.assert(
      fc.property(json(), fc.nat(), (value, choice) => {
        const all = places(value);
        const changed = plant(value, all[choice % all.length] as (string | number)[], 'something else entirely') as Json;
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
  const document = { foo: ['bar', 'baz'], '': 0, 'a/b': 1, 'c%d': 2, 'e^f': 3, 'g|h': 4, 'i\\j': 5, 'k"l': 6, ' ': 7, 'm~n': 8 };
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
    ['/missing/deeper', undefined],
  ])('%j', (pointer, found) => {
    expect(atPointer(document, pointer)).toEqual(found);
  });

  it('reads ~01 as ~1, not as a slash', () => {
    expect(atPointer({ '~1': 'tilde one', '/': 'slash' }, '/~01')).toBe('tilde one');
  });

  it('finds every part of any value by its escaped path', () => {
    fc.assert(
      fc.property(json(), fc.nat(), (value, choice) => {
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
