import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  assertPayloadBounds,
  type Json,
  type JsonObject,
  PAYLOAD_BOUNDS,
  PilotageError,
  validateControl,
  validateDecision,
} from '#core';

const keys = (count: number): JsonObject =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]));
const nested = (levels: number): JsonObject => (levels === 1 ? { leaf: 1 } : { n: nested(levels - 1) });
const refusal = (payload: JsonObject): PilotageError | undefined => {
  try {
    assertPayloadBounds(payload, 'payload');
    return undefined;
  } catch (error) {
    if (PilotageError.is(error, 'payload_invalid')) return error;
    throw error;
  }
};

describe('payload bounds', () => {
  it.each<[string, JsonObject]>([
    ['6 levels', nested(6)],
    ['64 keys', keys(64)],
    ['two maps of 64 keys', { a: keys(64), b: keys(64) }],
    ['50 items', { list: Array(50).fill(1) }],
    ['4,096 characters', { text: 'x'.repeat(4096) }],
    ['4,000 characters of two units each', { text: '😀'.repeat(4000) }],
    ['nothing', {}],
  ])('DV-13 takes %s', (_, payload) => {
    expect(refusal(payload)).toBeUndefined();
  });

  it.each<[string, JsonObject, string, string]>([
    ['7 levels', nested(7), 'payload.n.n.n.n.n.n', '6 levels'],
    ['7 levels of lists', { a: [[[[[[1]]]]]] }, 'payload.a[0][0][0][0][0]', '6 levels'],
    ['65 keys', { in: keys(65) }, 'payload.in', '64 keys'],
    ['51 items', { list: Array(51).fill(1) }, 'payload.list', '50 items'],
    ['4,097 characters', { a: ['x'.repeat(4097)] }, 'payload.a[0]', '4096'],
    ['16,385 bytes', { a: Array(5).fill('x'.repeat(3400)) }, 'payload', '16384 bytes'],
  ])('DV-13 refuses %s, and names the bound and the place', (_, payload, path, bound) => {
    const error = refusal(payload);
    expect(error?.data).toEqual({ path });
    expect(error?.message).toContain(bound);
    expect(error?.message).toMatch(new RegExp(`^${path.replace(/[[\]]/g, '\\$&')} `));
  });

  it('DV-13 counts bytes of UTF-8, not characters, in all', () => {
    expect(refusal({ a: 'é'.repeat(4096), b: 'é'.repeat(4096) })?.message).toContain('bytes');
    expect(refusal({ a: 'e'.repeat(4096), b: 'e'.repeat(4096) })).toBeUndefined();
  });

  it('DV-13 exactly 16,384 bytes pass, one more does not', () => {
    const fill = (bytes: number): JsonObject => {
      const empty = JSON.stringify({ a: ['', '', '', '', ''] }).length;
      const share = Math.floor((bytes - empty) / 5);
      return { a: [...Array<string>(4).fill('x'.repeat(share)), 'x'.repeat(bytes - empty - 4 * share)] };
    };
    expect(JSON.stringify(fill(16_384))).toHaveLength(16_384);
    expect(refusal(fill(16_384))).toBeUndefined();
    expect(refusal(fill(16_385))?.message).toContain('16385 bytes');
  });

  it('is passed exactly by what an independent count finds within the bounds', () => {
    const within = (value: Json, level: number): boolean => {
      if (typeof value === 'string') return Array.from(value).length <= PAYLOAD_BOUNDS.stringChars;
      if (typeof value !== 'object' || value === null) return true;
      const parts: Json[] = Object.values(value);
      const cap = Array.isArray(value) ? PAYLOAD_BOUNDS.items : PAYLOAD_BOUNDS.keys;
      return level <= PAYLOAD_BOUNDS.depth && parts.length <= cap && parts.every((part) => within(part, level + 1));
    };
    const text = fc.oneof(fc.string(), fc.constantFrom('x'.repeat(4096), '😀'.repeat(4096), 'x'.repeat(4097)));
    const tree = fc.letrec<{ node: Json }>((tie) => ({
      node: fc.oneof(
        { maxDepth: 8, withCrossShrink: true },
        text,
        fc.constant(null),
        fc.array(tie('node'), { maxLength: 3 }),
        fc.array(fc.constant(1), { minLength: 49, maxLength: 51 }),
        fc.dictionary(fc.string(), tie('node'), { maxKeys: 3 }) as fc.Arbitrary<Json>,
        fc.integer({ min: 63, max: 65 }).map(keys),
      ),
    })).node;
    const seen = { within: 0, beyond: 0 };
    fc.assert(
      fc.property(fc.dictionary(fc.string(), tree, { maxKeys: 3 }), (payload) => {
        const fits = within(payload, 1) && Buffer.byteLength(JSON.stringify(payload)) <= PAYLOAD_BOUNDS.bytes;
        seen[fits ? 'within' : 'beyond'] += 1;
        expect(refusal(payload) === undefined).toBe(fits);
      }),
      { numRuns: 500 },
    );
    expect(Math.min(seen.within, seen.beyond)).toBeGreaterThan(10);
  });
});

describe('where the bounds hold', () => {
  it('DV-13 a pause with a payload beyond them is an invalid decision that names the bound', () => {
    const pause = { kind: 'request_pause', reason: 'await_input', payload: keys(65) } as const;
    expect(() => validateDecision(pause)).toThrow(
      expect.objectContaining({ code: 'invalid_decision', message: expect.stringContaining('64 keys') }),
    );
  });

  it('DV-13 a control too, and it names what is not JSON', () => {
    const control = { id: 'c', type: 'INJECT_CONTEXT' } as const;
    expect(() => validateControl({ ...control, payload: nested(7) })).toThrow(
      expect.objectContaining({ code: 'payload_invalid' }),
    );
    expect(() => validateControl({ ...control, payload: { a: 1n } as never })).toThrow(
      expect.objectContaining({ code: 'unserializable', data: { path: 'payload.a' } }),
    );
    expect(validateControl({ ...control, payload: nested(6) })).toEqual({ ...control, payload: nested(6) });
  });

  it('a control of an unknown type is refused by name', () => {
    expect(() => validateControl({ id: 'c', type: 'STOP' as never })).toThrow(
      expect.objectContaining({ code: 'unknown_control_type', message: expect.stringContaining('"STOP"') }),
    );
  });

  it('a control is a frozen copy', () => {
    const payload = { message: 'a' };
    const control = validateControl({ id: 'c', type: 'USER_MESSAGE', payload });
    payload.message = 'b';
    expect(control.payload).toEqual({ message: 'a' });
    expect(Object.isFrozen(control) && Object.isFrozen(control.payload)).toBe(true);
  });
});
