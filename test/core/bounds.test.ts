import { describe, expect, it } from 'vitest';
import { JSON_LIMITS, type JsonObject, validateControl, validateDecision } from '#core';

/** A payload of so many bytes of JSON. */
const sized = (bytes: number): JsonObject => ({ text: 'x'.repeat(bytes - '{"text":""}'.length) });
const nested = (levels: number): JsonObject => (levels === 1 ? { leaf: 1 } : { n: nested(levels - 1) });

/** A form as people fill in: many fields, one of them deep. */
const form: JsonObject = Object.fromEntries(
  Array.from({ length: 98 }, (_, index) => [`field ${index}`, index === 0 ? nested(7) : 'x'.repeat(100)]),
);
const beyond = { text: 'x'.repeat(JSON_LIMITS.chars) };

describe('the size of a payload', () => {
  it.each<[string, JsonObject]>([
    ['nothing', {}],
    ['a form of 98 fields and 7 levels', form],
    ['a text of 5,000 characters', { text: 'x'.repeat(5_000) }],
    ['a mebibyte', sized(1_048_576)],
  ])('DV-13, SP-10 %s is content, for a pause and for a control', (_, payload) => {
    const pause = { kind: 'request_pause', reason: 'await_input', payload } as const;
    expect(validateDecision(pause)).toEqual(pause);
    const control = { id: 'c', type: 'INJECT_CONTEXT', payload } as const;
    expect(validateControl(control)).toEqual(control);
  });

  it('DV-13, SP-10 is that of any value: what is larger is refused, and the limit is named', () => {
    expect(() => validateDecision({ kind: 'request_pause', reason: 'await_input', payload: beyond })).toThrow(
      expect.objectContaining({ code: 'invalid_decision', message: expect.stringContaining('4000000 characters') }),
    );
    expect(() => validateControl({ id: 'c', type: 'INJECT_CONTEXT', payload: beyond })).toThrow(
      expect.objectContaining({ code: 'unserializable', message: expect.stringContaining('4000000 characters') }),
    );
    expect(() => validateControl({ id: 'c', type: 'INJECT_CONTEXT', payload: { a: 1n } as never })).toThrow(
      expect.objectContaining({ code: 'unserializable', data: { path: 'payload.a' } }),
    );
  });

  it('a pause takes the schema of an object, which is what answers it', () => {
    const pause = { kind: 'request_pause', reason: 'await_input' } as const;
    const schema = { type: 'object', properties: { n: { type: 'integer' } } } as const;
    expect(validateDecision({ ...pause, schema })).toMatchObject({ schema });
    expect(() => validateDecision({ ...pause, schema: { type: 'integer' } })).toThrow(
      `Write { type: 'object', properties: { answer: {"type":"integer"} }`,
    );
  });
});

describe('a control', () => {
  it('of an unknown type is refused by name', () => {
    expect(() => validateControl({ id: 'c', type: 'STOP' as never })).toThrow(
      expect.objectContaining({ code: 'unknown_control_type', message: expect.stringContaining('"STOP"') }),
    );
  });

  it('is a frozen copy', () => {
    const payload = { message: 'a' };
    const control = validateControl({ id: 'c', type: 'USER_MESSAGE', payload });
    payload.message = 'b';
    expect(control.payload).toEqual({ message: 'a' });
    expect(Object.isFrozen(control) && Object.isFrozen(control.payload)).toBe(true);
  });

  it('has no reference of its own: a store alone makes one', () => {
    const stored = { artifactRef: 'art_of_somebody', mime: 'application/json', sizeBytes: 1 };
    expect(validateControl({ id: 'c', type: 'PAUSE', stored })).toEqual({ id: 'c', type: 'PAUSE' });
  });
});
