/** Text of more than can be recorded is not read, in any form; what can be is. */
import { describe, expect, it } from 'vitest';
import { JSON_LIMITS } from '#core';
import { parseToolArgs, parseToolCalls, readStrictJson } from '#parse';

const ODD = { name: 'odd', inputSchema: { type: 'object' } };
const keys = (count: number): string =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, 1])));

describe.each([
  ['many keys', keys(300_000)],
  ['many keys, not well formed', keys(300_000).replace('{', '{,')],
  ['many keys in single quotes', keys(100_000).replaceAll('"', "'")],
  ['objects of a key each', JSON.stringify(Array.from({ length: 60_000 }, (_, at) => ({ [`k${at}`]: 1 })))],
  ['many lists', `{"a":[${'[],'.repeat(900_000)}[]]}`],
  ['the arguments of a call', `{"tool":"odd","args":${keys(100_000)}}`],
  ['those of a call that is not well formed', `{"tool":"odd","args":${keys(100_000)},}`],
])('%s', (_, text) => {
  it('are no arguments, and no call is made with a part of them', () => {
    const read = parseToolArgs(text, ODD);
    expect(read === null || read.issues.some(({ code }) => code === 'truncated')).toBe(true);
    const { calls, issues } = parseToolCalls(text, [ODD]);
    expect(
      calls.every((_call, call) => issues.some((issue) => issue.code === 'truncated' && issue.call === call)),
    ).toBe(true);
  });
});

it('reads what is just within the limits', () => {
  expect(Object.keys(readStrictJson(keys(JSON_LIMITS.keys), 10) ?? {})).toHaveLength(JSON_LIMITS.keys);
  expect(readStrictJson(keys(JSON_LIMITS.keys + 1), 10)).toBeUndefined();
  const list = JSON.stringify(Array.from({ length: JSON_LIMITS.values - 1 }, () => 'a,[{":\\"'));
  expect(readStrictJson(list, 10)).toHaveLength(JSON_LIMITS.values - 1);
  const prose = JSON.stringify({ text: 'one, two: three "four" '.repeat(50_000) });
  expect(readStrictJson(prose, 10)).toEqual(JSON.parse(prose));
});
