/** Tools as a planner sees them. */
import type { ToolSchema } from '#core';

export const schema = (name: string, more: Partial<ToolSchema> = {}): ToolSchema => ({
  name,
  description: `The tool ${name}.`,
  inputSchema: { type: 'object' },
  effect: 'read',
  tags: [],
  loading: 'always',
  examples: [],
  ...more,
});

export const TOOLS: readonly ToolSchema[] = [
  schema('read', {
    description: 'Reads a file.\n  Paths are relative.',
    inputSchema: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] },
    examples: [{ path: 'README.md' }, { path: 'src' }, { path: 'a' }, { path: 'b' }],
  }),
  schema('search', {
    description: 'Finds text in files.',
    inputSchema: { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] },
  }),
];

/** Tools that come with the runtime, and one that is not listed at first. */
export const DISCOVERY: readonly ToolSchema[] = [
  schema('artifact_fetch', { description: 'Reads a stored value.' }),
  schema('csv_read', { description: 'Reads a table.', loading: 'deferred', examples: [{ path: 'a.csv' }] }),
  schema('tool_get', { description: 'Shows a tool.' }),
  schema('tool_search', { description: 'Finds tools.' }),
];
