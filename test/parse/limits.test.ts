import { describe, expect, it } from 'vitest';
import { type ParseTool, parseToolArgs, parseToolCalls } from '#parse';
import { search, tools } from './tools.ts';

const MEGABYTE = 1_000_000;
const filled = (part: string): string => part.repeat(Math.ceil(MEGABYTE / part.length)).slice(0, MEGABYTE);

const HOSTILE = [
  '[',
  '{',
  '{"a":',
  '{"a":{"a":',
  '[{"name":',
  'search(',
  'search(search(1),',
  '[search(q=[',
  'search{',
  '[(',
  '"',
  "'",
  '{"',
  "{'a' ",
  '{"""',
  "['a' b',",
  '{"a": "x", y ',
  '<',
  '<search a="',
  '<search><q>',
  '<think>',
  '```json\n{',
  '\\"',
  '{\\"a\\":',
  '[/*',
  '[// ',
  '# ',
  'Action: search\nAction Input: {',
  '\na = [\nsearch(a)',
  'the (lazy) dog [saw] a {cat}, ',
  '{"name":"search","arguments":{"q":"x"}} ',
  '{{a',
  '{a:<|x',
  '           {',
];

describe('limits', () => {
  it.each(HOSTILE)('RP-23 ends on a megabyte of %j and keeps at most 50 calls', (part) => {
    const text = filled(part);
    expect(parseToolCalls(text, tools).calls.length).toBeLessThanOrEqual(50);
    const args = parseToolArgs(text, search);
    expect(args === null || typeof args.args === 'object').toBe(true);
  });

  it('RP-23 keeps 50 calls of more', () => {
    const text = Array.from({ length: 80 }, (_, index) => `search(q="${index}")`).join('\n');
    const { calls, issues } = parseToolCalls(text, tools);
    expect(calls).toHaveLength(50);
    expect(calls.at(-1)?.args).toEqual({ q: '49' });
    expect(issues.map(({ code }) => code)).toContain('limit');
    expect(parseToolCalls(text, tools, { maxCalls: 2 }).calls).toHaveLength(2);
  });

  it('RP-23 does not read what is nested over 100 levels', () => {
    const nest = (levels: number): string =>
      `{"tool":"write_note","args":{"v":${'['.repeat(levels)}${']'.repeat(levels)}}}`;
    expect(parseToolCalls(nest(90), tools).calls).toHaveLength(1);
    const deep = parseToolCalls(nest(120), tools);
    expect(deep.calls).toEqual([]);
    expect(deep.issues.map(({ code }) => code)).toContain('limit');
    expect(parseToolArgs('['.repeat(100_000), search)).toBeNull();
    expect(parseToolArgs(`[{"q":${'['.repeat(50_000)}${']'.repeat(50_000)}}]`, search)).toBeNull();
  });

  it('reads only so many characters', () => {
    const text = `${' '.repeat(100)}{"tool":"now","args":{}}`;
    expect(parseToolCalls(text, tools, { maxChars: 50 })).toMatchObject({ calls: [], issues: [{ code: 'limit' }] });
    expect(parseToolArgs(text, search, { maxChars: 50 })).toBeNull();
  });

  it('gives the same result each time', () => {
    const text = filled('{"a": "x", y ');
    expect(parseToolCalls(text, tools)).toEqual(parseToolCalls(text, tools));
  });

  it('reads a large well-formed call whole', () => {
    const rows = Array.from({ length: 20_000 }, (_, id) => ({ id, name: `row ${id}` }));
    const tool: ParseTool = { name: 'load', inputSchema: { type: 'object', properties: { rows: { type: 'array' } } } };
    const { calls } = parseToolCalls(`\`\`\`json\n${JSON.stringify({ tool: 'load', args: { rows } })}\n\`\`\``, [tool]);
    expect(calls[0]?.args).toEqual({ rows });
  });
});
