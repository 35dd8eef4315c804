/** Tools that the tests of the parser share. */
import type { ParseTool } from '#parse';

export const search: ParseTool = {
  name: 'search',
  inputSchema: {
    type: 'object',
    properties: {
      q: { type: 'string' },
      limit: { type: 'integer' },
      tags: { type: 'array', items: { type: 'string' } },
      exact: { type: 'boolean' },
      order: { enum: ['newest', 'oldest'], type: 'string' },
    },
    required: ['q'],
    additionalProperties: false,
  },
};

export const gcd: ParseTool = {
  name: 'math.gcd',
  parameters: {
    type: 'object',
    properties: { a: { type: 'integer' }, b: { type: 'integer' } },
    required: ['a', 'b'],
  },
};

export const now: ParseTool = { name: 'now', inputSchema: { type: 'object', properties: {} } };

/** Takes anything. */
export const note: ParseTool = { name: 'write_note', inputSchema: { type: 'object' } };

export const tools: readonly ParseTool[] = [search, gcd, now, note];
