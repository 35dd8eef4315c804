import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import {
  type CompactionErrorCode,
  capture,
  describeThrown,
  ERROR_CONSEQUENCES,
  type ErrorCode,
  PilotageError,
} from '#core';
import { tool } from '#tools';
import { call } from '../kit/decisions.ts';
import { doorUrl } from '../kit/project.ts';
import { record } from '../kit/recorded.ts';

const folder = mkdtempSync(join(tmpdir(), 'pilotage-errors-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CODES = Object.keys(ERROR_CONSEQUENCES) as ErrorCode[];

describe('PilotageError', () => {
  it('ER-01 the names that must be tellable apart have codes of their own', () => {
    const codes = [
      ...['invalid_decision', 'identity_required', 'invalid_config', 'deterministic_step', 'unserializable'],
      ...['parallel_cap_exceeded', 'parallel_invalid_join', 'parallel_threshold_unmet', 'parallel_branch_invalid_args'],
      ...['driver_unknown', 'driver_duplicate', 'driver_empty_name', 'driver_nil_factory'],
      ...['handle_lost', 'route_not_found', 'no_planner', 'journal_corrupt'],
    ];
    expect(codes.filter((code) => !CODES.includes(code as ErrorCode))).toEqual([]);
    // What a summary came to is told by an event, and ends nothing.
    const empty: CompactionErrorCode = 'empty_summary';
    expect(CODES).not.toContain(empty);
  });

  it('ER-02 is told by its brand and its code, not by its class', async () => {
    const door = fileURLToPath(doorUrl('#core'));
    cpSync(dirname(door), folder, { recursive: true });
    const there = (await import(join(folder, basename(door)))) as { PilotageError: typeof PilotageError };
    expect(there.PilotageError).not.toBe(PilotageError);
    const error = new there.PilotageError('tool_failed', 'm');
    expect(error).not.toBeInstanceOf(PilotageError);
    expect(PilotageError.is(error)).toBe(true);
    expect(PilotageError.is(error, 'tool_failed')).toBe(true);
    expect(PilotageError.is(error, 'tool_timeout')).toBe(false);
    expect(there.PilotageError.is(new PilotageError('cancelled', 'm'), 'cancelled')).toBe(true);
  });

  it.each([
    null,
    undefined,
    5,
    'tool_failed',
    {},
    new Error('x'),
    { name: 'PilotageError', code: 'tool_failed' },
  ])('ER-02 %s is none', (value) => {
    expect(PilotageError.is(value)).toBe(false);
  });

  it('ER-03 keeps its cause, and shows it not in its JSON', () => {
    const cause = new Error('the socket closed');
    const error = new PilotageError('tool_failed', 'm', { cause, data: { a: 1 } });
    expect(error.cause).toBe(cause);
    expect(JSON.stringify(error)).toBe('{"code":"tool_failed","message":"m","data":{"a":1}}');
    expect(Object.hasOwn(new PilotageError('tool_failed', 'm'), 'cause')).toBe(false);
  });

  it.each(CODES)('ER-08 %s crosses the journal and reads back to the same class and code', (code) => {
    const error = new PilotageError(code, 'what happened', { data: { at: 3 } });
    const stored = capture(error, 'error').json;
    expect(stored).toEqual({ code, message: 'what happened', data: { at: 3 } });
    const back = PilotageError.fromData(JSON.parse(JSON.stringify(stored)));
    expect(PilotageError.is(back, code)).toBe(true);
    expect(back.toJSON()).toEqual(error.toJSON());
  });

  it.each([
    'ENOENT',
    'toString',
    '__proto__',
    '',
  ])('ER-08 the word %j of a tool reads back as tool_failed that keeps it', (code) => {
    const back = PilotageError.fromData({ code, message: 'm', data: { path: '/x' } });
    expect(back.toJSON()).toEqual({ code: 'tool_failed', message: 'm', data: { path: '/x', code } });
  });

  it('is never made with a code that the table does not have', () => {
    // @ts-expect-error the code is no code
    expect(new PilotageError('no_such_code', 'm').code).toBe('no_such_code');
  });
});

describe('what was thrown', () => {
  it.each<[unknown, string]>([
    [new Error('m'), 'm'],
    [new TypeError(''), 'TypeError'],
    ['x', 'x'],
    ['', ''],
    [null, 'null'],
    [undefined, 'undefined'],
    [5, '5'],
    [Symbol('s'), 'Symbol(s)'],
    [{ toString: () => 'own words' }, 'own words'],
    [Object.create(null), '[object Object]'],
  ])('ER-05 %o says %j', (thrown, text) => {
    expect(describeThrown(thrown)).toBe(text);
  });

  it.each<[unknown, string]>([
    ['x', 'x'],
    [null, 'null'],
    [undefined, 'undefined'],
    [42, '42'],
  ])('ER-05 a tool that throws %o fails with its text', async (thrown, text) => {
    const bad = tool({
      name: 'bad',
      description: 'd',
      inputSchema: { type: 'object' },
      execute: () => {
        throw thrown;
      },
    });
    const { result, entries } = await record([call('bad')], { tools: [bad] });
    expect(result.status).toBe('finished');
    const ended = entries.find((entry) => entry.kind === 'call_ended');
    expect(ended).toMatchObject({ outcome: { kind: 'error', error: { code: 'tool_failed', message: text } } });
  });

  it('ER-03 ER-05 a planner that throws text fails its run, with the text and its step', async () => {
    const { result } = await record([
      () => {
        throw 'no idea';
      },
    ]);
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'planner_failed', data: { step: 0, cause: { code: 'string', message: 'no idea' } } },
    });
  });

  it("ER-03 from the run's error one reaches the planner's own", async () => {
    const { result } = await record([
      () => {
        throw new PilotageError('tool_timeout', 'the model took too long', { data: { afterMs: 5 } });
      },
    ]);
    expect(result).toMatchObject({
      error: {
        code: 'planner_failed',
        message: expect.stringContaining('the model took too long'),
        data: { cause: { code: 'tool_timeout', message: 'the model took too long', data: { afterMs: 5 } } },
      },
    });
  });
});
