import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  chooseModel,
  commandsFor,
  duration,
  harmless,
  parseCommandLine,
  pauseLines,
  shellWord,
  shortLine,
  size,
  terminalJson,
} from '#cli';

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must never come out
const COMMANDING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;

describe('text for people', () => {
  const unit = fc.oneof(fc.integer({ min: 0, max: 0x9f }), fc.integer({ min: 0x2000, max: 0x2100 }));
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.array(unit).map((codes) => String.fromCharCode(...codes)),
  );

  it('never commands the terminal, and JSON stays what it was', () => {
    fc.assert(
      fc.property(text, fc.integer({ min: 2, max: 50 }), (value, chars) => {
        expect(harmless(value)).not.toMatch(COMMANDING);
        const line = shortLine(value, chars);
        expect(line).not.toMatch(COMMANDING);
        expect(line).not.toContain('\n');
        expect(line.length).toBeLessThanOrEqual(chars);
        expect(terminalJson({ value })).not.toMatch(COMMANDING);
        expect(JSON.parse(terminalJson({ value }))).toEqual({ value });
      }),
      { numRuns: 1000 },
    );
  });

  it('never commands the terminal by the form of a question', () => {
    const parsed = parseCommandLine(['inspect', 'run_1']);
    if (parsed.kind !== 'command') throw new Error('no command');
    fc.assert(
      fc.property(text, (evil) => {
        const schema = { type: 'object', properties: { [`n${evil}`]: { enum: [evil] }, usual: { default: evil } } };
        const payload = { tool: 'ask', message: evil, payload: { about: evil } };
        const pause = { token: 'pause_1', run: 'run_1', reason: 'await_input', wait: 0, payload, schema } as const;
        const lines = pauseLines('run_1', [pause], commandsFor('run_1', parsed.options));
        expect(lines.map((line) => line.text).join(' ')).not.toMatch(COMMANDING);
      }),
    );
  });

  it('keeps lines and tabs', () => {
    expect(harmless('a\r\n\tb\rc')).toBe('a\n\tb␍c');
    expect(shortLine('  a\n\n b ', 9)).toBe('a b');
    expect(shortLine('abcdef', 4)).toBe('abc…');
  });

  it('names times and sizes', () => {
    expect([0.4, 999, 1500, 61_000, 7_200_000, 400_000_000].map(duration)).toEqual([
      '0 ms',
      '999 ms',
      '1.5 s',
      '1 min 1 s',
      '2 h 0 min',
      '4 days',
    ]);
    expect([5, 2048, 5 * 1024 ** 2].map(size)).toEqual(['5 B', '2.0 KiB', '5.0 MiB']);
  });

  it('quotes for a shell', () => {
    expect([`plain/1.db`, `it's`, 'a b', ''].map(shellWord)).toEqual(['plain/1.db', `'it'\\''s'`, `'a b'`, `''`]);
  });
});

describe('chooseModel', () => {
  it.each([
    [{}, {}, undefined],
    [{}, { OPENAI_API_KEY: 'k' }, undefined],
    [{}, { OPENAI_MODEL: 'm' }, undefined],
    [{}, { OPENAI_API_KEY: 'k', OPENAI_MODEL: 'm' }, { model: 'm', baseUrl: 'https://api.openai.com/v1', apiKey: 'k' }],
    [{}, { OPENAI_BASE_URL: 'http://h/v1', OPENAI_MODEL: 'm' }, { model: 'm', baseUrl: 'http://h/v1' }],
    [{ model: 'x' }, { OPENAI_BASE_URL: 'http://h/v1', OPENAI_MODEL: 'm' }, { model: 'x', baseUrl: 'http://h/v1' }],
    [{}, { OLLAMA_HOST: '0.0.0.0', OLLAMA_MODEL: 'm' }, { model: 'm', baseUrl: 'http://127.0.0.1:11434/v1' }],
    [{}, { OLLAMA_HOST: 'https://h/', OLLAMA_MODEL: 'm' }, { model: 'm', baseUrl: 'https://h/v1' }],
    [{}, { OPENAI_API_KEY: 'k', OLLAMA_HOST: 'h:1', OLLAMA_MODEL: 'm' }, { model: 'm', baseUrl: 'http://h:1/v1' }],
    [{ model: 'm', baseUrl: 'http://h' }, { OPENAI_API_KEY: 'k' }, { model: 'm', baseUrl: 'http://h' }],
    [{ model: 'm', baseUrl: 'http://h', apiKeyEnv: 'K' }, { K: 'k' }, { model: 'm', baseUrl: 'http://h', apiKey: 'k' }],
  ])('of %j and %j is %j', (options, env, choice) => {
    expect(chooseModel(options, env)).toEqual(choice);
  });
});
