import vm from 'node:vm';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { capture, captureObject, encodedBytes, PilotageError, thaw } from '#core';
import { anyJson, places, plant, spoil } from '../kit/json-values.ts';

function refusal(value: unknown, root = 'value'): { path: unknown; message: string } {
  try {
    capture(value, root);
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

describe('capture refuses what JSON would lose', () => {
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
    expect(() => capture(value, 'v')).toThrow(expect.objectContaining({ cause }));
  });

  it('refuses 513 levels and takes 512', () => {
    const nest = (levels: number): unknown => {
      let value: unknown = 1;
      for (let level = 0; level < levels; level += 1) value = [value];
      return value;
    };
    expect(() => capture(nest(512), 'v')).not.toThrow();
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

describe('capture takes what JSON can hold', () => {
  it('TJ-05 a value met twice on sibling branches is no cycle', () => {
    const twice = { a: 1 };
    expect(capture({ left: twice, right: [twice, twice] }, 'v').json).toEqual({
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
    expect(capture(value, 'v').json).toEqual({
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
    expect(capture(value, 'v').json).toEqual(value);
  });

  it('keeps an own "__proto__" key as data, and thaws it as data', () => {
    const value: unknown = JSON.parse('{"__proto__":{"admin":true},"a":1}');
    const { json } = capture(value, 'v');
    const thawed = thaw(json);
    for (const copy of [json, thawed] as Record<string, unknown>[]) {
      expect(JSON.stringify(copy)).toBe('{"__proto__":{"admin":true},"a":1}');
      expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
      expect(copy['admin']).toBeUndefined();
    }
  });

  it('takes the plain objects of another realm, not its class instances', () => {
    expect(capture(vm.runInNewContext('({ a: [{ b: 1 }] })'), 'v').json).toEqual({ a: [{ b: 1 }] });
    expect(refusal(vm.runInNewContext('new Map()')).path).toBe('value');
  });

  it('writes minus zero as JSON does', () => {
    expect(Object.is(capture(-0, 'v').json, 0)).toBe(true);
  });

  it('takes a text of four million characters', () => {
    const text = 'ü'.repeat(3_999_996);
    expect(capture({ text }, 'v').json).toEqual({ text });
  });

  it('captureObject refuses anything else at the top', () => {
    for (const value of [[], 'x', null, 5, new Date(0)]) {
      expect(() => captureObject(value, 'payload')).toThrow(/payload must be a JSON object/);
    }
  });

  it('TJ-12 128 concurrent copies of one value are equal', async () => {
    const value = {
      steps: Array.from({ length: 200 }, (_, index) => ({ index, text: `t${index}`, at: new Date(index) })),
    };
    const first = JSON.stringify(capture(value, 'v').json);
    const copies = await Promise.all(Array.from({ length: 128 }, async () => JSON.stringify(capture(value, 'v').json)));
    expect(new Set(copies)).toEqual(new Set([first]));
  });
});

describe('capture, for any value', () => {
  it('TJ-06 the copy is what JSON text would give back, and its bytes are never underrated', () => {
    fc.assert(
      fc.property(anyJson(), (value) => {
        const captured = capture(value, 'v');
        expect(captured.json).toStrictEqual(JSON.parse(JSON.stringify(value)));
        expect(captured.maxBytes).toBeGreaterThanOrEqual(encodedBytes(captured.json));
      }),
      { numRuns: 500 },
    );
  });

  it('the copy is deeply frozen and does not follow its source', () => {
    fc.assert(
      fc.property(anyJson(), (value) => {
        const source = thaw(value);
        const captured = capture(source, 'v').json;
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
      fc.property(anyJson(), bad, fc.nat(), (value, leaf, choice) => {
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
      fc.property(anyJson(), (value) => {
        const frozen = capture(value, 'v').json;
        const copy = thaw(frozen);
        expect(copy).toStrictEqual(frozen);
        spoil(copy);
        expect(frozen).toStrictEqual(capture(value, 'v').json);
      }),
    );
  });
});

describe('texts that take more room in JSON than they have characters', () => {
  it.each([
    ['unpaired surrogates', '\ud800'],
    ['control characters', '\u0007'],
  ])('count as they are written: %s', (_, letter) => {
    expect(() => capture(letter.repeat(700_000), 'x')).toThrow(/4000000 characters/);
    expect(capture(letter.repeat(600_000), 'x').json).toHaveLength(600_000);
  });

  it('are no others: letters of two units, line ends, quotes', () => {
    for (const letter of ['😀', '\n\t', '"\\', 'ш!']) {
      expect(capture(letter.repeat(1_900_000), 'x').json).toHaveLength(3_800_000);
    }
    expect(capture(`\u001b[0m${'x'.repeat(3_900_000)}`, 'x').json).toHaveLength(3_900_004);
  });
});
