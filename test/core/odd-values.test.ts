/** Whatever is read of somebody's values is read once, and every fault of theirs is an error with a code. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { capture, type Decision, describeThrown, JSON_LIMITS, PilotageError, Thrown, validateDecision } from '#core';
import { hostile, liar, ODD_THROWS, revoked } from '../kit/odd-throws.ts';

function refusal(check: () => unknown): PilotageError {
  try {
    check();
  } catch (error) {
    if (PilotageError.is(error)) return error;
    throw new Error(`no error of ours: ${describeThrown(error)}`);
  }
  throw new Error('it was taken');
}

describe('what was thrown', () => {
  it.each(ODD_THROWS)('is described and read: %s', (_, make) => {
    const thrown = make();
    expect(typeof describeThrown(thrown)).toBe('string');
    const { value: _value, ...said } = Thrown.of(thrown);
    expect(typeof said.message).toBe('string');
    expect(() => JSON.stringify(said)).not.toThrow();
    expect(PilotageError.is(make(), 'tool_failed')).toBe(false);
  });

  it('has a message of at most 32,768 characters', () => {
    expect(describeThrown(new Error('x'.repeat(1_000_000)))).toHaveLength(32_768);
  });

  it('is not written out when it is a list: one of a hundred million holes, or of as many bytes', () => {
    const sparse: unknown[] = [];
    sparse[1e8] = 1;
    for (const thrown of [sparse, [[sparse]], new Uint8Array(1e8), Object.assign(Object.create([]), { length: 4e9 })]) {
      // Nobody lives to see the end of a walk over it.
      expect(describeThrown(thrown)).toMatch(/^a list of \d+ items$/);
      const error = Object.assign(new Error('x'), { message: thrown });
      expect(describeThrown(error).length).toBeLessThan(100);
    }
  });

  it('is read once: each field is asked for one time, and what it says later does not count', () => {
    const asked: PropertyKey[] = [];
    const thrown = new Proxy(new Error('first'), {
      get: (target, name, receiver) => {
        asked.push(name);
        return name === 'code' ? `code_${asked.length}` : Reflect.get(target, name, receiver);
      },
    });
    const said = Thrown.of(thrown);
    const { code } = said;
    expect(Thrown.of(said)).toBe(said);
    expect(said.code).toBe(code);
    for (const name of ['message', 'code', 'data', 'retryable', 'status', 'url', 'expiresInMs']) {
      expect(asked.filter((each) => each === name)).toHaveLength(1);
    }
  });
});

describe('the JSON guard', () => {
  it.each([
    ['a hostile proxy', () => hostile()],
    ['a hostile proxy of a list', () => hostile([])],
    ['a revoked proxy', () => revoked()],
    ['a revoked proxy of a list', () => revoked([])],
    ['one inside', () => ({ a: [hostile()] })],
    ['a proxy of a byte array', () => new Proxy(new Uint8Array(2), { get: () => 1e9 })],
    [
      'a toJSON that gives another for ever',
      () => {
        const again = (): object => ({ toJSON: again });
        return again();
      },
    ],
    [
      'a tree without an end',
      () => {
        const tree = (): object =>
          new Proxy(
            {},
            {
              get: (_, name) => (name === 'toJSON' ? undefined : tree()),
              ownKeys: () => ['a', 'b', 'c'],
              getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }),
            },
          );
        return tree();
      },
    ],
    ['a list that says any length', () => new Proxy([], { get: (_, name) => (name === 'length' ? 7n : 1) })],
    ['a list that has no end', () => new Proxy([], { get: (_, name) => (name === 'length' ? 1e15 : 1) })],
  ])('refuses %s, as unserializable', (_, make) => {
    expect(refusal(() => capture(make(), 'value')).code).toBe('unserializable');
  });

  it('gives JSON or its own refusal for any proxy that lies', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000 }), fc.boolean(), (seed, isList) => {
        const value = { deep: [liar(isList ? [1, 2] : { a: 1 }, seed)] };
        try {
          JSON.stringify(capture(value, 'value').json);
        } catch (error) {
          if (!PilotageError.is(error, 'unserializable')) throw error;
        }
      }),
    );
  });

  it('refuses a sparse list of a hundred million before walking it', () => {
    const sparse: number[] = [];
    sparse[1e8] = 1;
    expect(refusal(() => capture({ a: sparse }, 'value'))).toMatchObject({
      message: expect.stringContaining('value.a: the list has 100000001 items'),
      data: { path: 'value.a' },
    });
  });

  it('refuses more keys, values or characters than a value may have', () => {
    const many = (count: number): object =>
      Object.fromEntries(Array.from({ length: count }, (_, key) => [`k${key}`, 0]));
    expect(refusal(() => capture(many(200_000), 'v')).message).toContain('200000 keys');
    expect(
      refusal(() =>
        capture(
          Array.from({ length: 11_001 }, (_, key) => ({ [`k${key}`]: 0 })),
          'v',
        ),
      ).message,
    ).toContain('different keys');
    expect(
      refusal(() =>
        capture(
          Array.from({ length: 1_000 }, () => Array(100).fill(0)),
          'v',
        ),
      ).message,
    ).toContain('more than 100000 values');
    expect(refusal(() => capture(Array(5).fill('x'.repeat(1_000_000)), 'v')).message).toContain('characters');
    expect(refusal(() => capture(new Uint8Array(5_000_000), 'v')).message).toContain('bytes');
  });

  it.each<[string, () => unknown]>([
    ['keys', () => Object.fromEntries(Array.from({ length: JSON_LIMITS.keys }, (_, key) => [`k${key}`, key]))],
    ['items', () => Array.from({ length: JSON_LIMITS.values - 1 }, (_, item) => item)],
    ['lists in lists', () => Array.from({ length: JSON_LIMITS.values / 2 - 1 }, () => [1])],
    ['objects', () => Array.from({ length: 19_999 }, (_, a) => ({ a, b: 'x', c: null, d: true }))],
  ])('copies the most %s', (_, make) => {
    const value = make();
    expect(capture(value, 'value').json).toEqual(value);
  });

  it('says of a cycle where it is in a few words, whatever its keys are', () => {
    const value: Record<string, unknown> = {};
    let at = value;
    for (let level = 0; level < 300; level += 1) {
      const next: Record<string, unknown> = {};
      at[`${level}${'k'.repeat(300)}`] = next;
      at = next;
    }
    at['back'] = value;
    const { message } = refusal(() => capture(value, 'value'));
    expect(message).toContain('<cycle>');
    expect(message.length).toBeLessThan(500);
  });

  it('finds a cycle in a value that is too large because of it', () => {
    const value: Record<string, unknown> = { list: Array(30_000).fill(0) };
    value['self'] = { again: value };
    expect(refusal(() => capture(value, 'value')).data).toEqual({ path: 'value.self.again <cycle>' });
  });
});

describe('a decision', () => {
  it.each([
    ['a hostile proxy', () => hostile()],
    ['a revoked proxy', () => revoked()],
    ['a hostile part', () => ({ kind: 'call_tool', tool: 't', args: hostile() })],
    ['branches that throw', () => ({ kind: 'call_parallel', branches: hostile([]) })],
    ['a list', () => []],
  ])('that is %s is refused as invalid_decision', (_, make) => {
    expect(refusal(() => validateDecision(make() as Decision)).code).toBe('invalid_decision');
  });

  it('is what was checked: a proxy that says goal first and something else later', () => {
    let asked = 0;
    const decision = new Proxy({ kind: 'finish', reason: 'goal' } as const, {
      get: (target, name) => {
        if (name !== 'reason') return Reflect.get(target, name);
        asked += 1;
        return asked === 1 ? 'goal' : 'somebody_elses_word';
      },
    });
    expect(validateDecision(decision)).toEqual({ kind: 'finish', reason: 'goal' });
  });

  it('is valid and JSON, or refused, for any proxy that lies', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 1_000 }), (seed) => {
        for (const value of [
          liar({ kind: 'finish', reason: 'goal' }, seed),
          { kind: 'call_tool', tool: 't', args: liar({}, seed) },
        ]) {
          try {
            expect(validateDecision(validateDecision(value as Decision))).toBeDefined();
          } catch (error) {
            if (!PilotageError.is(error, 'invalid_decision')) throw error;
          }
        }
      }),
    );
  });
});

it.each([
  ['Order', new (class Order {})()],
  ['Error', new Error('no')],
  ['a class', new (class {})()],
])('an instance of %s is named with an article that fits', (name, value) => {
  expect(() => capture(value, 'value')).toThrow(`an instance of ${name} is not JSON`);
});
