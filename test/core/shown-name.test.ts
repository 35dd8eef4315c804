import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { oneLine, shownName, wireName } from '#core';

describe('a name in a message', () => {
  it('RP-13 has at most 64 characters, and no control characters', () => {
    const name = shownName(`a\nb\u0000\u202e\u2028${'x'.repeat(200)}`);
    expect(name).toBe(`a b   ${'x'.repeat(58)}`);
    expect(shownName('search')).toBe('search');
  });

  it('counts characters, and parts none', () => {
    expect(shownName('🙂'.repeat(100))).toBe('🙂'.repeat(64));
    expect(oneLine(`abc🙂`, 3)).toBe('abc');
    expect(oneLine('\ud83d', 5).isWellFormed()).toBe(true);
  });

  it('in a native call it is what every protocol allows', () => {
    expect(wireName('read_file-2')).toBe('read_file-2');
    expect(wireName('mail.send')).toMatch(/^mail_send_[0-9a-f]{10}$/);
    expect(wireName('2fast')).toMatch(/^_2fast_/);
    expect(wireName('größe')).not.toBe(wireName('gräße'));
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 100 }), (name) => {
        expect(wireName(name)).toMatch(/^[a-zA-Z_][\w-]{0,63}$/);
        expect(wireName(name)).toBe(wireName(name));
      }),
    );
  });
});
