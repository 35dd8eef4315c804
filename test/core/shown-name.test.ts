import { describe, expect, it } from 'vitest';
import { oneLine, shownName } from '#core';
import { protocolName } from '#prompt';

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
    expect(protocolName('read_file-2')).toBe('read_file-2');
    expect(protocolName('no such.tool!')).toBe('no_such_tool_');
    expect(protocolName('ü'.repeat(100))).toBe('_'.repeat(64));
    expect(protocolName('')).toBe('_');
  });
});
