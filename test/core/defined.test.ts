import { describe, expect, it } from 'vitest';
import { defined } from '#core';

describe('defined', () => {
  it('leaves out the keys whose value is undefined, and nothing else; the order stays', () => {
    const made = defined({ b: 1, gone: undefined, nothing: null, empty: '', no: false, a: 0 });
    expect(JSON.stringify(made)).toBe('{"b":1,"nothing":null,"empty":"","no":false,"a":0}');
    expect('gone' in made).toBe(false);
    expect(defined({})).toEqual({});
  });

  it('is a copy: what it was given stays as it is', () => {
    const given = { a: undefined };
    expect(defined(given)).not.toBe(given);
    expect(Object.keys(given)).toEqual(['a']);
  });
});
