/** The table of examples in `docs/parsing.md`, run. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type ParseTool, parseToolCalls } from '#parse';

const tools: readonly ParseTool[] = [
  { name: 'weather', inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } },
  {
    name: 'refund',
    inputSchema: {
      type: 'object',
      properties: { order: { type: 'string' }, amount: { type: 'number' } },
      required: ['order'],
    },
  },
];

const page = readFileSync(new URL('../../docs/parsing.md', import.meta.url), 'utf8');
const ROW = /^\| (`+) ?(.+?) ?\1 \| (exact|clear|loose|none) \| (.+) \|$/gm;
const rows = [...page.matchAll(ROW)].map(([, , reply = '', form = '', why = '']) => ({
  reply: reply.replaceAll('⏎', '\n'),
  form,
  why,
}));

describe('docs/parsing.md', () => {
  it('has its examples in one table', () => {
    expect(rows.length).toBeGreaterThan(25);
    expect(rows).toHaveLength(page.match(/ \| (?:exact|clear|loose|none) \| /g)?.length ?? 0);
  });

  it.each(rows)('$why: $form', ({ reply, form }) => {
    const forms = new Set<string>(parseToolCalls(reply, tools).calls.map((call) => call.form));
    expect([...forms]).toEqual(form === 'none' ? [] : [form]);
  });
});
