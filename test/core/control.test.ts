/** What can be said of a control without its run. */
import { describe, expect, it } from 'vitest';
import {
  assertMaySend,
  type Caller,
  CONTROL_SCOPES,
  CONTROL_TYPES,
  type Control,
  type ControlScope,
  type ControlType,
  isControl,
  type JsonObject,
  PilotageError,
  validateControl,
} from '#core';

const ana: Caller = { tenant: 't', user: 'ana', session: 's', scope: 'owner_user' };
const owner = { tenant: 't', user: 'ana', session: 's' };

/** A payload that is right for each type. */
const FITTING: Readonly<Record<ControlType, JsonObject>> = {
  INJECT_CONTEXT: { anything: [1] },
  USER_MESSAGE: { message: 'm' },
  REDIRECT: { goal: 'g' },
  CANCEL: { hard: false, reason: 'r' },
  CANCEL_CALL: { step: 0, call: 1, reason: 'r' },
  PRIORITIZE: { priority: 3, task_id: 't' },
  PAUSE: {},
  RESUME: { token: 'x', limits: { steps: 1 } },
  APPROVE: { token: 'x', reason: 'r', args: [1] },
  REJECT: { token: 'x', reason: 'r' },
  ANSWER: { token: 'x', value: null, reason: 'r' },
  SETTLE: { token: 'x', happened: true, value: 1 },
  REVOKE: { rule: 'rule:r:7' },
};

function send(type: ControlType, payload?: unknown, from?: Caller): Control {
  return validateControl({
    id: 'c',
    type,
    ...(payload === undefined ? {} : { payload: payload as JsonObject }),
    ...(from === undefined ? {} : { from }),
  });
}

function refusal(ask: () => unknown): PilotageError {
  try {
    ask();
  } catch (error) {
    if (PilotageError.is(error)) return error;
    throw error;
  }
  throw new Error('It was taken.');
}

describe('a control', () => {
  it('SP-01 is one of nine, settles a doubt, gives a value, revokes a rule, or cancels a call, and frozen; any other word is refused by name', () => {
    expect(CONTROL_TYPES).toHaveLength(13);
    for (const type of CONTROL_TYPES) {
      const control = send(type, FITTING[type]);
      expect(control).toEqual({ id: 'c', type, payload: FITTING[type] });
      expect([Object.isFrozen(control), isControl(control)]).toEqual([true, true]);
    }
    for (const type of ['STOP', 'cancel', '', 'TASK_ENDED', 'WATCH']) {
      expect(refusal(() => send(type as ControlType))).toMatchObject({
        code: 'unknown_control_type',
        message: expect.stringContaining(JSON.stringify(type)),
      });
    }
    expect(isControl({ id: 'w', type: 'WATCH', by: 'r' })).toBe(false);
  });

  it.each<[ControlType, ControlScope]>([
    ['INJECT_CONTEXT', 'session_user'],
    ['USER_MESSAGE', 'session_user'],
    ['REDIRECT', 'owner_user'],
    ['CANCEL', 'owner_user'],
    ['PAUSE', 'owner_user'],
    ['RESUME', 'owner_user'],
    ['APPROVE', 'owner_user'],
    ['REJECT', 'owner_user'],
    ['ANSWER', 'owner_user'],
    ['PRIORITIZE', 'admin'],
  ])('SP-02 %s takes a sender with the scope %s, or a wider one', (type, least) => {
    for (const scope of CONTROL_SCOPES) {
      const from = { ...ana, scope };
      if (CONTROL_SCOPES.indexOf(scope) >= CONTROL_SCOPES.indexOf(least)) {
        expect(send(type, FITTING[type], from).from).toEqual(from);
        expect(() => assertMaySend(type, from, owner)).not.toThrow();
      } else {
        const words = { code: 'scope_mismatch', message: expect.stringContaining(least) };
        expect(refusal(() => send(type, FITTING[type], from))).toMatchObject(words);
        expect(refusal(() => assertMaySend(type, from, owner))).toMatchObject(words);
      }
    }
  });

  it('SP-02 a scope that nobody knows, and a sender without a whole identity, are refused', () => {
    expect(refusal(() => send('CANCEL', undefined, { ...ana, scope: 'root' as never })).code).toBe('scope_invalid');
    for (const part of ['tenant', 'user', 'session']) {
      expect(refusal(() => send('CANCEL', undefined, { ...ana, [part]: '' })).code).toBe('identity_required');
    }
  });

  it("SP-03 somebody else's run takes only an admin, and the program itself", () => {
    for (const part of ['tenant', 'user', 'session']) {
      const eve = { ...ana, [part]: 'another' };
      expect(refusal(() => assertMaySend('CANCEL', eve, owner)).code).toBe('scope_mismatch');
      expect(() => assertMaySend('CANCEL', { ...eve, scope: 'admin' }, owner)).not.toThrow();
    }
    expect(() => assertMaySend('CANCEL', undefined, owner)).not.toThrow();
  });

  it.each<[ControlType, JsonObject | undefined, string]>([
    ['USER_MESSAGE', undefined, 'message'],
    ['USER_MESSAGE', { message: 7 }, 'message'],
    ['REDIRECT', {}, 'goal'],
    ['REDIRECT', { goal: null }, 'goal'],
    ['CANCEL', { hard: 'yes' }, 'hard'],
    ['CANCEL', { reason: 1 }, 'reason'],
    ['PRIORITIZE', {}, 'priority'],
    ['PRIORITIZE', { priority: 3.5 }, 'priority'],
    ['PRIORITIZE', { priority: '3' }, 'priority'],
    ['PRIORITIZE', { priority: 1_001 }, 'priority'],
    ['PRIORITIZE', { priority: 1, task_id: 4 }, 'task_id'],
    ['RESUME', { limits: [] }, 'limits'],
    ['APPROVE', { token: 1 }, 'token'],
    ['REJECT', { reason: {} }, 'reason'],
    ['ANSWER', { token: 'x' }, 'value'],
  ])('SP-08 %s with %j is refused, naming %s and no value', (type, payload, key) => {
    const error = refusal(() => send(type, payload));
    expect(error).toMatchObject({ code: 'payload_invalid', data: { path: `payload.${key}` } });
    expect(error.message).toMatch(new RegExp(`^The payload of ${type} needs ${key}, `));
  });

  it('SP-08 a priority of 3.0 is a whole number, and keys of the own are passed on', () => {
    expect(send('PRIORITIZE', { priority: 3.0 }).payload).toEqual({ priority: 3 });
    expect(send('PRIORITIZE', { priority: -1_000, ticket: 'x' }).payload).toEqual({ priority: -1_000, ticket: 'x' });
  });

  it.each([
    'CANCEL',
    'PAUSE',
    'RESUME',
    'APPROVE',
    'REJECT',
    'INJECT_CONTEXT',
  ] as const)('SP-09 a bare %s needs no payload', (type) => {
    expect(send(type)).toEqual({ id: 'c', type });
  });

  it.each<[string, unknown, string]>([
    ['more than 4,000,000 characters', { text: 'x'.repeat(4_000_000) }, 'unserializable'],
    ['a function', { run: () => 1 }, 'unserializable'],
    ['no object', 'text', 'unserializable'],
  ])('SP-10 a payload with %s is refused whole', (_, payload, code) => {
    for (const type of ['INJECT_CONTEXT', 'CANCEL'] as const)
      expect(refusal(() => send(type, payload)).code).toBe(code);
  });

  it('SP-10 one at the bounds is taken, and is a copy', () => {
    const payload = {
      deep: { a: { a: { a: { a: { a: { a: 1 } } } } } },
      form: Object.fromEntries(Array.from({ length: 98 }, (_, key) => [`field ${key}`, ''])),
      list: Array(1_000).fill(1),
      text: '😀'.repeat(6_000),
    };
    const taken = send('INJECT_CONTEXT', payload).payload;
    expect(taken).toEqual(payload);
    expect(taken).not.toBe(payload);
    expect(Object.isFrozen(taken?.['list'])).toBe(true);
  });
});
