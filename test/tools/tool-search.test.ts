/** `tool_search` and `tool_get`, as a run calls them. */
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '#core';
import { createCatalogue, type Tool, type ToolContext, toolGet, toolSearch } from '#tools';
import { contextOf } from './workspace-scene.ts';

function made(name: string, description: string, more: Partial<Tool> = {}): Tool {
  return {
    name,
    description,
    inputSchema: { type: 'object' },
    effect: 'pure',
    loading: 'deferred',
    execute: () => 0,
    ...more,
  };
}

const FILES: readonly Tool[] = [
  made('csv_read', 'Reads rows of a CSV file.', { tags: ['files', 'table'] }),
  made('csv_write', 'Writes rows into a CSV file.', { tags: ['files', 'table'] }),
  made('json_read', 'Reads a JSON file.', { tags: ['Files'] }),
  made('mail_send', 'Sends a message to a person.', { tags: ['mail'] }),
  made('clock', 'Tells the time. It reads no file.', { loading: 'always' }),
  made('vault', 'Reads secrets of the CSV kind.', { scopes: ['vault'] }),
];

interface Asked {
  readonly value: JsonObject;
  readonly names: readonly string[];
  readonly discovered: readonly string[];
}

function contextFor(tools: readonly Tool[], scopes: readonly string[], discovered: string[]): ToolContext {
  const view = createCatalogue(tools, [toolSearch, toolGet]).view(scopes);
  return { ...contextOf(), tools: view, discover: (names) => discovered.push(...names) };
}

async function search(args: Record<string, Json>, tools = FILES, scopes: readonly string[] = []): Promise<Asked> {
  const discovered: string[] = [];
  const value = (await toolSearch.execute(args, contextFor(tools, scopes, discovered))) as JsonObject;
  const found = value['tools'] as unknown as readonly { readonly name: string }[];
  return { value, names: found.map(({ name }) => name), discovered };
}

describe('tool_search', () => {
  it('DT-02 gives name, description and tags of each, and how many there are', async () => {
    expect((await search({ query: 'mail' })).value).toEqual({
      tools: [{ name: 'mail_send', description: 'Sends a message to a person.', tags: ['mail'] }],
      count: 1,
    });
  });

  it.each([
    [undefined, 10],
    [0, 10],
    [-3, 10],
    [1, 1],
    [50, 50],
    [51, 50],
    [1_000_000, 50],
  ])('DT-02 takes the limit %s as %s', async (limit, count) => {
    const tools = Array.from({ length: 60 }, (_, index) => made(`t${index}`, 'one'));
    const { names, value } = await search(limit === undefined ? {} : { limit }, tools);
    expect([names.length, value['count']]).toEqual([count, count]);
  });

  it('DT-03 without a query and tags lists all that the run may use, the built-in ones left out', async () => {
    const all = ['clock', 'csv_read', 'csv_write', 'json_read', 'mail_send'];
    expect((await search({})).names).toEqual(all);
    expect((await search({ query: '  ', tags: [] })).names).toEqual(all);
  });

  it('DT-03 gives tools with all words, and only if there are none those with some, rare words first', async () => {
    expect((await search({ query: 'rows file' })).names).toEqual(['csv_read', 'csv_write']);
    expect((await search({ query: 'send a json kangaroo' })).names.slice(0, 2).sort()).toEqual([
      'json_read',
      'mail_send',
    ]);
    expect((await search({ query: 'kangaroo' })).names).toEqual([]);
  });

  it('DT-03 puts an exact name first, then the text as it stands in a name, then in a description', async () => {
    const tools = [
      made('a', 'Not a table, but it speaks of table.'),
      made('table', 'One.'),
      made('table_of', 'Two.'),
      made('b', 'No.'),
    ];
    expect((await search({ query: 'TABLE' }, tools)).names).toEqual(['table', 'table_of', 'a']);
  });

  it('DT-03 takes a query between slashes as a regular expression', async () => {
    expect((await search({ query: '/^CSV_(read|write)$/m' })).names).toEqual(['csv_read', 'csv_write']);
    expect((await search({ query: '/csv_(read|write)/' })).names).toEqual(['csv_read', 'csv_write']);
    expect((await search({ query: '/CSV_W/i' })).names).toEqual(['csv_write']);
  });

  it.each(['/(/', '/[/'])('refuses the pattern %s in words that a model can use', async (query) => {
    await expect(search({ query })).rejects.toMatchObject({ code: 'tool_invalid_args' });
  });

  it('stops a pattern that would take for ever', async () => {
    const tools = [made('slow', 'a'.repeat(60))];
    await expect(search({ query: '/^(slow\\s)?(a+)+$!/' }, tools)).rejects.toMatchObject({
      message: expect.stringContaining('too long'),
    });
  });

  it('DT-03 every given tag must match, in any case', async () => {
    expect((await search({ tags: ['files'] })).names).toEqual(['csv_read', 'csv_write', 'json_read']);
    expect((await search({ tags: ['FILES', 'table'] })).names).toEqual(['csv_read', 'csv_write']);
    expect((await search({ tags: ['files', 'mail'] })).names).toEqual([]);
  });

  it('DT-10 filters, then ranks, then cuts', async () => {
    const better = Array.from({ length: 20 }, (_, index) => made(`report_${index}`, 'report report'));
    const tagged = ['Some report.', 'report', 'A tool.', 'Reports.', 'Report it.', 'A report, too.'].map(
      (description, index) => made(`x${index}`, description, { tags: ['wanted'] }),
    );
    const named = made('report_wanted', 'It is the best.', { tags: ['wanted'] });
    const { names } = await search({ query: 'report', tags: ['wanted'], limit: 5 }, [...better, ...tagged, named]);
    expect(names).toHaveLength(5);
    expect(names[0]).toBe('report_wanted');
    expect(names.slice(1)).toEqual(['x0', 'x1', 'x3', 'x4']);
  });

  it('DT-05 makes known what it gives, and nothing that was cut', async () => {
    const { names, discovered } = await search({ query: 'file', limit: 2 });
    expect(discovered).toEqual(names);
    expect(names).toHaveLength(2);
  });

  it('DT-09 shows a tool only to those who may use it', async () => {
    const asked = await search({ query: 'secrets' });
    expect([asked.names, asked.discovered]).toEqual([[], []]);
    expect((await search({})).names).not.toContain('vault');
    expect((await search({ query: 'secrets' }, FILES, ['vault'])).names).toEqual(['vault']);
  });

  it('finds names and words in any script', async () => {
    const tools = [made('天気予報', '都市の天気を調べる'), made('größe', 'Misst die GRÖSSE.')];
    expect((await search({ query: '天気' }, tools)).names).toEqual(['天気予報']);
    expect((await search({ query: 'GRÖßE' }, tools)).names).toEqual(['größe']);
  });
});

describe('tool_get', () => {
  async function get(name: string, scopes: readonly string[] = []) {
    const discovered: string[] = [];
    const value = await toolGet.execute({ name }, contextFor(FILES, scopes, discovered));
    return { value, discovered };
  }

  it('DT-04 describes a tool with the schema of its arguments, and makes it known', async () => {
    expect(await get('csv_read')).toEqual({
      value: {
        name: 'csv_read',
        description: 'Reads rows of a CSV file.',
        args_schema: { type: 'object' },
        found: true,
      },
      discovered: ['csv_read'],
    });
  });

  it.each(['nobody', '__proto__', ''])('DT-04 does not find %s, and does not throw', async (name) => {
    const { value, discovered } = await get(name);
    expect(value).toEqual({ name, found: false, error: expect.any(String) });
    expect(discovered).toEqual([]);
  });

  it('DT-09 has the same words for a tool that the run may not use as for one that nobody has', async () => {
    const [hidden, unknown] = [await get('vault'), await get('nobody')];
    expect(hidden).toEqual({ ...unknown, value: { ...(unknown.value as JsonObject), name: 'vault' } });
    expect((await get('vault', ['vault'])).value).toMatchObject({ found: true });
  });
});
