import { describe, expect, it } from 'vitest';
import { parseToolArgs } from '#parse';
import { gcd, note, now, search } from './tools.ts';

const args = (text: string): unknown => parseToolArgs(text, search)?.args;

describe('parseToolArgs', () => {
  it('hands on well-formed arguments as they are', () => {
    const text = '{"limit":2,"q":"x","tags":["a"]}';
    expect(parseToolArgs(text, search)).toEqual({ args: { limit: 2, q: 'x', tags: ['a'] }, issues: [] });
    expect(JSON.stringify(args(text))).toBe(text);
  });

  it.each(['', '  \n'])('takes %j for no arguments', (text) =>
    expect(parseToolArgs(text, now)).toEqual({ args: {}, issues: [] }));

  it.each([
    ["{'q': 'x', 'exact': True}", { q: 'x', exact: true }],
    ['{"q": "x", "limit": 6/3}', { q: 'x', limit: 2 }],
    ['{"q": "x", "limit": 3 // three\n}', { q: 'x', limit: 3 }],
    ['{"q": "x", "limit": 3', { q: 'x', limit: 3 }],
    ['"{\\"q\\": \\"x\\"}"', { q: 'x' }],
    ['[{"q": "x"}]', { q: 'x' }],
    ['"just this"', { q: 'just this' }],
    ['```json\n{"q": "x"}\n```', { q: 'x' }],
    ['{"name": "search", "arguments": {"q": "x"}}', { q: 'x' }],
    ['{"arguments": {"q": "x"}}', { q: 'x' }],
    ['search(q="x", limit=2)', { q: 'x', limit: 2 }],
    ['<arguments>{"q": "x"}</arguments>', { q: 'x' }],
  ])('reads %j', (text, want) => {
    const result = parseToolArgs(text, search);
    expect(result?.args).toEqual(want);
    expect(result?.issues.map(({ code }) => code)).toContain('repaired');
  });

  it.each([
    '3*x**2',
    'import math\nmath.sqrt(2)',
    'def f():\n    return 1',
    'I cannot do that.',
    '[[1, 2], [3]]',
  ])('makes nothing of %j', (text) => expect(parseToolArgs(text, gcd)).toBeNull());

  it('gives a cut text with the mark that it is cut', () => {
    const result = parseToolArgs('{"q": "half of', search);
    expect(result?.args).toEqual({ q: 'half of' });
    expect(result?.issues.map(({ code }) => code)).toContain('truncated');
  });

  it('keeps an integer that a number cannot hold as text', () => {
    expect(parseToolArgs('{"id": 12345678901234567890, "n": 1}', note)?.args).toEqual({
      id: '12345678901234567890',
      n: 1,
    });
  });

  it('leaves a field named like a wrapper alone where the schema is open', () => {
    expect(parseToolArgs('{"input": {"a": 1}}', note)?.args).toEqual({ input: { a: 1 } });
  });

  it('keeps "__proto__" as data', () => {
    for (const text of ['{"__proto__": {"polluted": true}}', "{'__proto__': {'polluted': True}}"]) {
      const result = parseToolArgs(text, note);
      expect(Object.keys(result?.args ?? {})).toEqual(['__proto__']);
      expect(({} as { polluted?: boolean }).polluted).toBeUndefined();
      expect(Object.getPrototypeOf(result?.args)).toBe(Object.prototype);
    }
  });
});
