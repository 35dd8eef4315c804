import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import type { Json } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#pilotage';
import { agent, createCatalogue, DEFAULT_RETRIES, DEFAULT_TIMEOUT_MS, type Tool, type ToolSet, tool } from '#tools';
import { call } from '../kit/decisions.ts';
import { record } from '../kit/recorded.ts';

function made(name: string, more: Partial<Tool> = {}): Tool {
  return {
    name,
    description: `The ${name}`,
    inputSchema: { type: 'object' },
    effect: 'pure',
    execute: () => name,
    ...more,
  };
}
const names = (tools: ToolSet, scopes: readonly string[] = [], found: readonly string[] = []): string[] =>
  createCatalogue(tools)
    .view(scopes, found)
    .list()
    .map(({ name }) => name);

const range = { type: 'object', properties: { from: { type: 'number' } } } as const;

describe('a schema that several catalogues have', () => {
  const shown = (input: Tool['inputSchema']): unknown =>
    createCatalogue([made('a', { inputSchema: input })])
      .view([])
      .get('a')?.inputSchema;

  it('is read once, and shown as one frozen object', () => {
    const input = { type: 'object', properties: { from: { type: 'number' } } };
    expect(shown(input)).toBe(shown(input));
    expect(shown(input)).toEqual(input);
    expect(shown(input)).not.toBe(input);
    expect(Object.isFrozen(shown(input))).toBe(true);
    expect(shown({ ...input })).not.toBe(shown(input));
  });

  it('is told apart in the digests by the effect of its tool, and by what it says', () => {
    const input = { type: 'object' };
    const digest = (more: Partial<Tool>): unknown =>
      createCatalogue([made('a', { inputSchema: input, ...more })])
        .view([])
        .digests()['a'];
    expect(digest({})).toBe(digest({}));
    expect(digest({})).toBe(digest({ inputSchema: { type: 'object' } }));
    expect(digest({})).not.toBe(digest({ effect: 'once' }));
    expect(digest({})).not.toBe(digest({ inputSchema: range }));
  });

  it('is refused each time when it is none', () => {
    const input = { type: 'object', default: new Map() as never };
    for (let time = 0; time < 2; time += 1) {
      expect(() => shown(input)).toThrowError(expect.objectContaining({ code: 'tool_schema_invalid' }));
    }
  });
});

describe('registration', () => {
  it.each<[string, unknown, string]>([
    ['TL-01 an empty name', [made('')], 'tool_name_empty'],
    ['TL-01 a blank name', [made(' \n')], 'tool_name_empty'],
    ['TL-01 a name that is no text', [{ ...made('a'), name: 5 }], 'tool_name_empty'],
    ['TL-01 no tool at all', [null], 'tool_name_empty'],
    ['TL-01 no execute function', [{ ...made('a'), execute: undefined }], 'tool_without_execute'],
    ['TL-01 an execute that is no function', [{ ...made('a'), execute: 'x' }], 'tool_without_execute'],
    ['TL-01 a name that is taken', [made('a'), made('b'), made('a')], 'tool_name_taken'],
    ['no description', [{ ...made('a'), description: undefined }], 'invalid_config'],
    ['a name that is not the one in the record', { other: made('a') }, 'invalid_config'],
    ['nothing in a record', { a: null }, 'invalid_config'],
    ['a misspelt gate', [{ ...made('a'), needApproval: true }], 'invalid_config'],
    ['a word of another system', [{ ...made('a'), approve: true }], 'invalid_config'],
    ['a name that begins with _', [made('_spawn_task')], 'invalid_config'],
    ['a name that is no more than __proto__', [made('__proto__')], 'invalid_config'],
    ['an unknown way of loading', [made('a', { loading: 'later' as never })], 'invalid_config'],
    ['an example without args', [made('a', { examples: [{ from: 1 } as never] })], 'tool_example_invalid'],
    ['an example that is none', [made('a', { examples: [null as never] })], 'tool_example_invalid'],
    ['one example in the place of a list', [made('a', { examples: { args: {} } as never })], 'tool_example_invalid'],
    ['a hand-over to nobody', [made('a', { handsOver: { to: '', history: 'all' } })], 'invalid_config'],
    ['a hand-over that is none', [made('a', { handsOver: null as never })], 'invalid_config'],
    ['an output schema that is none', [made('a', { outputSchema: 5 as never })], 'tool_schema_invalid'],
    ['an output schema that is a text', [made('a', { outputSchema: 'x' as never })], 'tool_schema_invalid'],
    ['an output schema that is null', [made('a', { outputSchema: null as never })], 'tool_schema_invalid'],
    [
      'an example with an unknown tag',
      [made('a', { examples: [{ args: {}, tag: 'odd' as never }] })],
      'tool_example_invalid',
    ],
    ['an unknown effect', [made('a', { effect: 'maybe' as never })], 'invalid_config'],
    ['negative retries', [made('a', { retries: -1 })], 'invalid_config'],
    ['half a retry', [made('a', { retries: 0.5 })], 'invalid_config'],
    ['no time at all', [made('a', { timeoutMs: 0 })], 'invalid_config'],
    ['a time that is no number', [made('a', { timeoutMs: Number.NaN })], 'invalid_config'],
    ['room for no call', [made('a', { concurrency: 0 })], 'invalid_config'],
    ['a negative price', [made('a', { costUsd: -0.000001 })], 'invalid_config'],
    ['no schema', [{ ...made('a'), inputSchema: undefined }], 'tool_schema_invalid'],
    ['a schema that is null', [made('a', { inputSchema: null as never })], 'tool_schema_invalid'],
    ['a schema that is a list', [made('a', { inputSchema: [] as never })], 'tool_schema_invalid'],
    ['a schema that is a function', [made('a', { inputSchema: (() => ({})) as never })], 'tool_schema_invalid'],
    ['a schema of no type that there is', [made('a', { inputSchema: { type: 'any' } })], 'tool_schema_invalid'],
    ['a schema that refers to nowhere', [made('a', { inputSchema: { $ref: '#/$defs/gone' } })], 'tool_schema_invalid'],
    [
      'a schema that is not JSON',
      [made('a', { inputSchema: { type: 'object', default: new Map() as never } })],
      'tool_schema_invalid',
    ],
    ['an output schema that is none', [made('a', { outputSchema: { type: 'any' } })], 'tool_schema_invalid'],
    [
      'TL-01 an example with an argument of the wrong type',
      [made('a', { inputSchema: range, examples: [{ args: { from: 'x' } }] })],
      'tool_example_invalid',
    ],
    [
      'TL-01 an example with an argument that the schema lacks',
      [made('a', { inputSchema: range, examples: [{ args: { to: 1 } }] })],
      'tool_example_invalid',
    ],
    [
      'TL-01 the same with zod',
      [made('a', { inputSchema: z.object({ from: z.number() }), examples: [{ args: { from: 1, to: 2 } }] })],
      'tool_example_invalid',
    ],
    [
      'TL-01 the same with an asynchronous schema',
      [
        made('a', {
          inputSchema: z.object({ from: z.number() }).refine(async () => true),
          examples: [{ args: { from: 1, to: 2 } }],
        }),
      ],
      'tool_example_invalid',
    ],
  ])('refuses %s', (_, tools, code) => {
    expect(() => createCatalogue(tools as ToolSet)).toThrow(expect.objectContaining({ code }));
  });

  it('refuses what is no tool beside an agent, as in a list with something left out', () => {
    const planner = () => ({ kind: 'finish', reason: 'goal' }) as const;
    for (const none of [null, undefined, false, 0]) {
      const tools = [made('a'), none] as never;
      expect(() => createRuntime({ agents: [agent({ name: 'x', planner, tools })], journal: memoryJournal() })).toThrow(
        expect.objectContaining({ code: 'tool_name_empty' }),
      );
    }
  });

  it('says which option was meant', () => {
    const misspelt = { ...made('a'), needApproval: true };
    expect(() => createCatalogue([misspelt])).toThrow('has no option "needApproval". Did you mean needsApproval?');
  });

  it('gives a tool that tasks carry out its name from a record too', () => {
    const { name: _, execute: __, ...rest } = made('x');
    const planner = { name: 'p', next: () => ({ kind: 'finish', reason: 'goal' }) as const };
    const tools = { carry: { ...rest, agent: { planner, tools: [] } } };
    expect(createCatalogue(tools).view([]).get('carry')).toMatchObject({ name: 'carry' });
  });

  it('names the tool in the refusal', () => {
    for (const more of [
      { retries: -1 },
      { inputSchema: { type: 'any' } },
      { effect: 'maybe' as never },
      { examples: [{ args: { from: 'x' } }], inputSchema: range },
      { loading: 'later' as never },
    ]) {
      expect(() => createCatalogue([made('weather', more)])).toThrow(/weather/);
    }
  });

  it.each<[string, Partial<Tool>]>([
    ['that fits', { inputSchema: range, examples: [{ args: { from: 1 } }, { args: {} }] }],
    ['of an open schema', { inputSchema: { ...range, additionalProperties: true }, examples: [{ args: { to: 1 } }] }],
    [
      'of patterns',
      { inputSchema: { ...range, patternProperties: { '^x-': {} } }, examples: [{ args: { 'x-a': 1 } }] },
    ],
    [
      'of a schema made of others',
      { inputSchema: { ...range, allOf: [{ properties: { to: {} } }] }, examples: [{ args: { to: 1 } }] },
    ],
    ['of a schema without properties', { inputSchema: { type: 'object' }, examples: [{ args: { to: 1 } }] }],
    [
      'of a zod union',
      {
        inputSchema: z.union([z.object({ a: z.string() }), z.object({ b: z.string() })]),
        examples: [{ args: { b: 'x' } }],
      },
    ],
  ])('takes an example %s', (_, more) => {
    expect(names([made('a', more)])).toEqual(['a']);
  });

  it('TL-02 is all or nothing: one bad tool makes no catalogue', () => {
    expect(() => createCatalogue([made('a'), made('b', { retries: -1 })])).toThrow();
  });

  it('TL-03 fills in 30 s, 3 retries, `once`, and no retries for `once`', () => {
    const view = createCatalogue([made('a'), { ...made('b'), effect: undefined as never }]).view([]);
    expect([DEFAULT_TIMEOUT_MS, DEFAULT_RETRIES]).toEqual([30_000, 3]);
    expect(view.ready('a')).toMatchObject({ timeoutMs: 30_000, retries: 3, effect: 'pure' });
    expect(view.ready('b')).toMatchObject({ timeoutMs: 30_000, retries: 0, effect: 'once' });
  });

  it('TL-09 what is stated holds, also nothing', () => {
    expect(
      createCatalogue([made('a', { retries: 0 })])
        .view([])
        .ready('a'),
    ).toMatchObject({ retries: 0 });
  });
});

describe('the authorised view', () => {
  const tools = [made('c', { scopes: ['x', 'y'] }), made('b', { scopes: ['x'] }), made('a')];

  it('TL-02 is sorted by name, and has a tool only when all its scopes are held', () => {
    expect(names(tools)).toEqual(['a']);
    expect(names(tools, ['y'])).toEqual(['a']);
    expect(names(tools, ['x'])).toEqual(['a', 'b']);
    expect(names(tools, ['y', 'x', 'z'])).toEqual(['a', 'b', 'c']);
    expect(names([made('b'), made('B'), made('a'), made('ä'), made('a1')])).toEqual(['B', 'a', 'a1', 'b', 'ä']);
  });

  it('PC-17 a tool outside it is found by none of its look-ups', () => {
    const view = createCatalogue(tools).view(['x']);
    for (const name of ['c', 'unknown', 'toString', '__proto__']) {
      expect([view.get(name), view.ready(name)]).toEqual([undefined, undefined]);
    }
    expect(view.get('b')?.name).toBe('b');
  });

  it('is the same object for the same scopes in any order, so that nothing is made twice', () => {
    const catalogue = createCatalogue(tools);
    expect(catalogue.view(['x', 'y'])).toBe(catalogue.view(['y', 'x']));
    expect(catalogue.view(['x']).list()).toBe(catalogue.view(['x']).list());
    expect(catalogue.view(['x'])).not.toBe(catalogue.view(['x,y']));
    expect(catalogue.view(['a', 'b'])).not.toBe(catalogue.view(['a","b']));
  });

  it('has the policy of the program, whatever the scopes, and none when there is none', () => {
    const policy = () => 'allow' as const;
    const catalogue = createCatalogue(tools, [], policy);
    expect([catalogue.view([]).policy, catalogue.view(['x'], ['a']).policy]).toEqual([policy, policy]);
    expect(createCatalogue(tools).view([])).not.toHaveProperty('policy');
  });

  const later = (name: string, more: Partial<Tool> = {}): Tool => made(name, { loading: 'deferred', ...more });

  it('DT-01 lists the tools that are always loaded, and no deferred one', () => {
    const all = [later('d4'), made('a1'), later('d1'), made('a3'), later('d3'), made('a2'), later('d2')];
    expect(names(all)).toEqual(['a1', 'a2', 'a3']);
    expect(
      createCatalogue(all)
        .view([])
        .all()
        .map(({ name, loading }) => [name, loading]),
    ).toEqual([
      ...['a1', 'a2', 'a3'].map((name) => [name, 'always']),
      ...['d1', 'd2', 'd3', 'd4'].map((name) => [name, 'deferred']),
    ]);
  });

  it('DT-05 lists those that were found at the end, in order of first sight, none twice', () => {
    const all = [later('d1'), later('d2'), made('z'), later('d3')];
    expect(names(all, [], ['d2'])).toEqual(['z', 'd2']);
    expect(names(all, [], ['d2', 'd1'])).toEqual(['z', 'd2', 'd1']);
    expect(names(all, [], ['d2', 'z', 'd1', 'd2', 'gone'])).toEqual(['z', 'd2', 'd1']);
  });

  it('DT-09 has nothing of a deferred tool that the scopes do not allow, although it was found', () => {
    const view = createCatalogue([later('d1', { scopes: ['x'] }), made('a')]).view([], ['d1']);
    expect(view.list().map(({ name }) => name)).toEqual(['a']);
    expect(view.all().map(({ name }) => name)).toEqual(['a']);
    expect([view.get('d1'), view.ready('d1')]).toEqual([undefined, undefined]);
  });

  it('DT-14 lets a deferred tool be called before it was found', () => {
    expect(
      createCatalogue([later('d1')])
        .view([])
        .ready('d1'),
    ).toBeDefined();
  });

  it('gives what the runtime adds another name where the program has one of its name', () => {
    const builtin = later('artifact_fetch', { effect: 'read' });
    const own = made('artifact_fetch', { effect: 'once' });
    for (const tools of [[own], { artifact_fetch: own }]) {
      const view = createCatalogue(tools, [builtin]).view([], ['artifact_fetch']);
      expect(view.list()).toMatchObject([
        { name: 'artifact_fetch', effect: 'once' },
        { name: 'pilotage_artifact_fetch', effect: 'read' },
      ]);
    }
    const both = [own, made('pilotage_artifact_fetch')];
    expect(() => createCatalogue(both, [builtin])).toThrow(expect.objectContaining({ code: 'tool_name_taken' }));
  });

  it('shows the search only to those who have something to find', () => {
    const catalogue = createCatalogue(
      [later('d1', { scopes: ['x'] })],
      [made('tool_search'), made('tool_get'), later('artifact_fetch')],
    );
    expect(catalogue.view([]).all()).toMatchObject([{ name: 'artifact_fetch' }]);
    expect(catalogue.view([]).get('tool_search')).toBeUndefined();
    expect(
      catalogue
        .view(['x'])
        .list()
        .map(({ name }) => name),
    ).toEqual(['tool_get', 'tool_search']);
  });

  it('RG-12 has the examples minimal, common, edge-case, untagged, each in the order in which they were given', () => {
    const example = (id: number, tag?: 'minimal' | 'common' | 'edge-case') =>
      tag === undefined ? { args: { id } } : { args: { id }, tag };
    const examples = [
      example(1),
      example(2, 'edge-case'),
      example(3, 'common'),
      example(4, 'minimal'),
      example(5, 'common'),
      example(6),
      example(7, 'minimal'),
    ];
    const schema = createCatalogue([made('a', { examples })])
      .view([])
      .get('a');
    expect(schema?.examples).toEqual([4, 7, 3, 5, 2, 1, 6].map((id) => ({ id })));
    examples.length = 0;
    expect(schema?.examples).toHaveLength(7);
    expect(Object.isFrozen(schema?.examples[0])).toBe(true);
  });

  it('W109 says which media types a tool reads, when it does', () => {
    const view = createCatalogue([made('a', { mimeTypes: ['image/png', 'audio/*'] }), made('b')]).view([]);
    expect(view.get('a')).toMatchObject({ mimeTypes: ['image/png', 'audio/*'] });
    expect(view.get('b')).not.toHaveProperty('mimeTypes');
  });

  it('is frozen, with its schemas', () => {
    const view = createCatalogue([made('a', { inputSchema: { type: 'object', properties: {} }, tags: ['t'] })]).view(
      [],
    );
    const [schema] = view.list();
    for (const part of [
      view,
      view.list(),
      schema,
      schema?.inputSchema,
      schema?.inputSchema['properties'],
      schema?.tags,
    ]) {
      expect(Object.isFrozen(part)).toBe(true);
    }
  });

  it('does not follow later changes of what it was made of', () => {
    const tags = ['t'];
    const input = { type: 'object', properties: { a: { type: 'string' } } };
    const catalogue = createCatalogue([made('a', { tags, inputSchema: input })]);
    tags.push('u');
    input.properties.a.type = 'number';
    expect(catalogue.view([]).get('a')).toMatchObject({
      tags: ['t'],
      inputSchema: { properties: { a: { type: 'string' } } },
    });
  });
});

describe('what a user may meet', () => {
  it.each([
    'weather in oslo',
    'wetter/öslo',
    '天気',
    'a.b:c',
    'constructor',
    'toString',
    '💥',
    'x'.repeat(500),
  ])('a tool named %s can be listed and called', async (name) => {
    const { entries, views } = await record([call(name, { a: 1 })], {
      tools: [made(name, { execute: (args) => args })],
    });
    expect(views[0]?.tools.list().map((schema) => schema.name)).toEqual([name]);
    expect(entries.find(({ kind }) => kind === 'call_ended')).toMatchObject({
      outcome: { kind: 'value', value: { a: 1 } },
    });
  });

  it('an unknown name is told back short, on one line, with the names that there are', async () => {
    const { entries } = await record([call(`evil\n"tool"\u0000${'x'.repeat(500)}`)], { tools: [made('a'), made('b')] });
    const ended = entries.find((entry) => entry.kind === 'call_ended');
    const message = ended?.kind === 'call_ended' && ended.outcome.kind === 'error' ? ended.outcome.error.message : '';
    expect(message).toMatch(/^There is no tool named "evil \\"tool\\" x+"\. The tools are: a, b\.$/);
    expect(message.length).toBeLessThan(150);
  });

  it('DT-09 the answer to an unknown name is, word for word, that to one that is not allowed', async () => {
    const messageFor = async (name: string) => {
      const { entries } = await record([call(name)], { tools: [made('a'), made('secret', { scopes: ['x'] })] });
      const ended = entries.find((entry) => entry.kind === 'call_ended');
      if (ended?.kind !== 'call_ended' || ended.outcome.kind !== 'error') throw new Error('no error');
      return { ...ended.outcome.error, message: ended.outcome.error.message.replace(name, '*') };
    };
    expect(await messageFor('secret')).toEqual(await messageFor('nobody'));
  });

  it('an unknown name is told at most 50 names', async () => {
    const tools = Array.from({ length: 53 }, (_, index) => made(`t${String(index).padStart(2, '0')}`));
    const { entries } = await record([call('x')], { tools });
    expect(entries.find((entry) => entry.kind === 'call_ended')).toMatchObject({
      outcome: { error: { message: expect.stringMatching(/t48, t49, and 3 more\.$/) } },
    });
  });

  it('a record of tools by name works like a list', () => {
    expect(names({ b: made('b'), a: made('a') })).toEqual(['a', 'b']);
  });

  it('1,000 tools of one schema have it converted once, in every catalogue, and their views share them', async () => {
    let conversions = 0;
    const input = z.object({ n: z.number() });
    const standard = input['~standard'] as { jsonSchema: { input(options: object): object } };
    const convert = standard.jsonSchema.input.bind(standard.jsonSchema);
    vi.spyOn(standard.jsonSchema, 'input').mockImplementation((options) => {
      conversions += 1;
      return convert(options);
    });
    const tools = Array.from({ length: 1_000 }, (_, index) =>
      made(`t${index}`, { inputSchema: input, execute: (args) => args }),
    );
    const catalogue = createCatalogue(tools);
    const [left, right] = [catalogue.view([]), catalogue.view(['x'])];
    expect(left.list()).toHaveLength(1_000);
    expect(left.get('t500')).toBe(right.get('t500'));
    const { result } = await record([call('t999', { n: 1 }), call('t0', { n: 1 })], { tools });
    expect(result).toMatchObject({ status: 'finished', usage: { calls: 2 } });
    expect(conversions).toBe(1);
  });

  it('arguments get to the tool as a copy of its own, with "__proto__" keys as data', async () => {
    const args = JSON.parse('{"__proto__":{"admin":true},"list":[1]}') as Record<string, Json>;
    const seen: string[] = [];
    const greedy = made('greedy', {
      execute: (given) => {
        seen.push(JSON.stringify(given), String((given as { admin?: unknown }).admin));
        ((given as Record<string, unknown>)['list'] as number[]).push(2);
        return given;
      },
    });
    const { entries } = await record([call('greedy', args)], { tools: [greedy] });
    expect(seen).toEqual(['{"__proto__":{"admin":true},"list":[1]}', 'undefined']);
    const decision = entries.flatMap((entry) => (entry.kind === 'moved' ? [entry.decision] : []))[0];
    expect(JSON.stringify(decision)).toContain('"args":{"__proto__":{"admin":true},"list":[1]}');
  });

  it('arguments that are nested 400 deep, and 2 MB of text, go through', async () => {
    let deep: Json = 'bottom';
    for (let level = 0; level < 400; level += 1) deep = { n: deep };
    const echo = made('echo', { execute: ({ text }) => String(text).length });
    const args = { deep, text: 'ü'.repeat(2_000_000) };
    const { entries } = await record([call('echo', args)], { tools: [echo] });
    expect(entries.find(({ kind }) => kind === 'call_ended')).toMatchObject({
      outcome: { kind: 'value', value: 2_000_000 },
    });
  });

  it('tool() gives back the object it was given', () => {
    const options = { name: 'a', description: 'd', inputSchema: z.object({}), execute: () => 1 };
    expect(tool(options)).toBe(options);
  });
});
