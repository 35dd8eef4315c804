import { describe, expect, it } from 'vitest';
import { assertPayloadSize, type JsonObject, MAX_PAYLOAD_BYTES, validateControl, validateDecision } from '#core';

/** A payload of so many bytes of JSON. */
const sized = (bytes: number): JsonObject => ({ text: 'x'.repeat(bytes - '{"text":""}'.length) });
const nested = (levels: number): JsonObject => (levels === 1 ? { leaf: 1 } : { n: nested(levels - 1) });

/** A form as people fill in: many fields, one of them deep. */
const form: JsonObject = Object.fromEntries(
  Array.from({ length: 98 }, (_, index) => [`field ${index}`, index === 0 ? nested(7) : 'x'.repeat(100)]),
);

describe('the size of a payload', () => {
  it.each<[string, JsonObject]>([
    ['nothing', {}],
    ['a form of 98 fields and 7 levels', form],
    ['a text of 5,000 characters', { text: 'x'.repeat(5_000) }],
    ['exactly 32,768 bytes', sized(MAX_PAYLOAD_BYTES)],
  ])('DV-13 takes %s', (_, payload) => {
    expect(() => assertPayloadSize(payload, 'payload')).not.toThrow();
  });

  it.each<[string, JsonObject, number]>([
    ['one byte more', sized(MAX_PAYLOAD_BYTES + 1), 32_769],
    ['fewer characters of more bytes', { text: 'é'.repeat(16_384) }, 32_779],
  ])('DV-13 refuses %s, and names the bound', (_, payload, bytes) => {
    expect(() => assertPayloadSize(payload, 'payload')).toThrow(
      expect.objectContaining({
        code: 'payload_invalid',
        message: `payload has ${bytes} bytes of JSON; the bound is 32768.`,
        data: { path: 'payload' },
      }),
    );
  });

  it('DV-13 holds for a pause, as an invalid decision', () => {
    const pause = { kind: 'request_pause', reason: 'await_input', payload: form } as const;
    expect(validateDecision(pause)).toEqual(pause);
    expect(() => validateDecision({ ...pause, payload: sized(MAX_PAYLOAD_BYTES + 1) })).toThrow(
      expect.objectContaining({ code: 'invalid_decision', message: expect.stringContaining('32769 bytes') }),
    );
  });

  it('DV-13 holds for a control, which names what is not JSON', () => {
    const control = { id: 'c', type: 'INJECT_CONTEXT' } as const;
    expect(validateControl({ ...control, payload: form })).toEqual({ ...control, payload: form });
    expect(() => validateControl({ ...control, payload: sized(MAX_PAYLOAD_BYTES + 1) })).toThrow(
      expect.objectContaining({ code: 'payload_invalid' }),
    );
    expect(() => validateControl({ ...control, payload: { a: 1n } as never })).toThrow(
      expect.objectContaining({ code: 'unserializable', data: { path: 'payload.a' } }),
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
});
