import { type Tool as AiTool, tool as aiTool, jsonSchema, zodSchema } from 'ai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { JsonObject } from '#core';
import { createCatalogue, type ToolSet, tool } from '#tools';
import { call } from '../kit/decisions.ts';
import { record } from '../kit/recorded.ts';

const weather = aiTool({
  description: 'Weather in a city',
  inputSchema: z.object({ city: z.string(), days: z.number().default(1) }),
  execute: async ({ city, days }) => `${city}: ${days} days of rain`,
});

async function outcomeOf(tools: ToolSet, args: JsonObject): Promise<unknown> {
  const { entries } = await record([call('x', args)], { tools });
  const ended = entries.find((entry) => entry.kind === 'call_ended');
  return ended?.kind === 'call_ended' ? ended.outcome : undefined;
}
const value = (of: unknown): unknown => ({ kind: 'value', value: of });

describe('AI SDK tools', () => {
  it('run unchanged, under the name of their key, with the defaults of their schema', async () => {
    expect(await outcomeOf({ x: weather }, { city: 'Oslo' })).toEqual(value('Oslo: 1 days of rain'));
    expect(await outcomeOf({ x: weather }, { city: 5 })).toMatchObject({ error: { code: 'tool_invalid_args' } });
  });

  it('are shown with their description and JSON Schema, and as `once`', () => {
    expect(createCatalogue({ x: weather }).view([]).list()).toMatchObject([
      {
        name: 'x',
        description: 'Weather in a city',
        effect: 'once',
        inputSchema: {
          type: 'object',
          properties: { city: { type: 'string' }, days: { default: 1 } },
          required: ['city'],
        },
      },
    ]);
  });

  it('stand beside tools of ours in one record', () => {
    const own = tool({ name: 'own', description: 'd', inputSchema: z.object({}), execute: () => 1 });
    expect(
      createCatalogue({ x: weather, own })
        .view([])
        .list()
        .map(({ name }) => name),
    ).toEqual(['own', 'x']);
  });

  it('get the call, the signal and an empty list of messages', async () => {
    let seen: Record<string, unknown> = {};
    const spy = aiTool({
      inputSchema: z.object({}),
      execute: (_, options) => {
        seen = { ...options };
        return 1;
      },
    });
    expect(await outcomeOf({ x: spy }, {})).toEqual(value(1));
    expect(seen).toMatchObject({
      toolCallId: expect.stringMatching(/0\.0$/),
      messages: [],
      abortSignal: expect.any(AbortSignal),
    });
  });

  it('that stream give their last value', async () => {
    const streaming = aiTool({
      inputSchema: z.object({}),
      async *execute() {
        yield 'working';
        yield 'done';
      },
    });
    expect(await outcomeOf({ x: streaming }, {})).toEqual(value('done'));
  });

  it('with jsonSchema() are checked by it', async () => {
    const x = aiTool({
      inputSchema: jsonSchema<{ n: number }>({
        type: 'object',
        properties: { n: { type: 'number' } },
        required: ['n'],
      }),
      execute: ({ n }) => n + 1,
    });
    expect(await outcomeOf({ x }, { n: 1 })).toEqual(value(2));
    expect(await outcomeOf({ x }, {})).toMatchObject({ error: { code: 'tool_invalid_args' } });
  });

  it('with zodSchema(), or jsonSchema() and a check of their own, are judged by that check', async () => {
    const x = aiTool({
      inputSchema: zodSchema(z.object({ n: z.string().transform(Number), m: z.number().default(3) })),
      execute: ({ n, m }) => n + m,
    });
    expect(await outcomeOf({ x }, { n: '4' })).toEqual(value(7));
    expect(await outcomeOf({ x }, { n: 4 })).toMatchObject({ error: { code: 'tool_invalid_args' } });
    const even = aiTool({
      inputSchema: jsonSchema<{ n: number }>(
        { type: 'object', properties: { n: { type: 'number' } } },
        {
          validate: (given) => {
            const { n } = given as { n: number };
            return n % 2 === 0
              ? { success: true, value: { n } }
              : { success: false, error: new Error('n must be even') };
          },
        },
      ),
      execute: ({ n }) => n,
    });
    expect(await outcomeOf({ x: even }, { n: 2 })).toEqual(value(2));
    expect(await outcomeOf({ x: even }, { n: 3 })).toMatchObject({
      error: { message: expect.stringContaining('n must be even') },
    });
  });

  it('with a schema that is made when it is needed', async () => {
    const lazy = { ...weather, inputSchema: () => jsonSchema({ type: 'object', required: ['n'] }) };
    expect(await outcomeOf({ x: { ...lazy, execute: () => 1 } }, { n: 1 })).toEqual(value(1));
  });

  it('that fail give an outcome, and are not called again', async () => {
    let calls = 0;
    const x = aiTool({
      inputSchema: z.object({}),
      execute: (): number => {
        calls += 1;
        throw Object.assign(new Error('no'), { statusCode: 503 });
      },
    });
    expect(await outcomeOf({ x }, {})).toMatchObject({ kind: 'error', error: { code: 'tool_failed', message: 'no' } });
    expect(calls).toBe(1);
  });

  it('that need approval wait for it, always or for the calls that they name', async () => {
    const asked: unknown[] = [];
    const rule = (input: { city: string }, call: object) =>
      asked.push([input.city, Object.keys(call)]) && input.city !== 'Oslo';
    for (const [needsApproval, args, isAsked] of [
      [true, { city: 'Oslo' }, true],
      [false, { city: 'Oslo' }, false],
      [rule, { city: 'Oslo' }, false],
      [rule, { city: 'Rome' }, true],
    ] as const) {
      const outcome = await outcomeOf({ x: { ...weather, needsApproval } }, args);
      if (isAsked) expect(outcome).toBeUndefined();
      else expect(outcome).toEqual(value('Oslo: 1 days of rain'));
    }
    expect(asked).toEqual(['Oslo', 'Rome'].map((city) => [city, expect.arrayContaining(['messages', 'identity'])]));
  });

  it('may say what is ours: an effect, scopes, a time limit', async () => {
    const own = { ...weather, effect: 'read' as const, scopes: ['weather'] };
    expect(createCatalogue({ x: own }).view([]).list()).toEqual([]);
    expect(createCatalogue({ x: own }).view(['weather']).list()).toMatchObject([{ name: 'x', effect: 'read' }]);
  });

  it.each<[string, unknown, string]>([
    ['no execute', aiTool({ inputSchema: z.object({}) }), 'tool_without_execute'],
    ['approval that cannot be read', { ...weather, needsApproval: 'yes' }, 'invalid_config'],
    ['a schema that is none', { ...weather, inputSchema: 5 }, 'tool_schema_invalid'],
    ['a schema that is null', { ...weather, inputSchema: null }, 'tool_schema_invalid'],
    [
      'a schema that is a promise',
      { ...weather, inputSchema: jsonSchema(async () => ({ type: 'object' })) },
      'tool_schema_invalid',
    ],
  ])('with %s are refused where they are registered', (_, given, code) => {
    expect(() => createCatalogue({ x: given as never })).toThrow(expect.objectContaining({ code }));
  });
});

describe('what else a tool of the AI SDK or of MCP has', () => {
  /** Every key that a tool of the installed version may have: a new one is a fault of the types here. */
  type Keys<T> = T extends unknown ? keyof T : never;
  const execute = (): number => 1;
  const KEYS: Record<
    Exclude<Keys<AiTool>, 'id' | 'args' | 'isProviderExecuted' | 'supportsDeferredResults'>,
    unknown
  > = {
    type: 'dynamic',
    description: 'd',
    title: 'X',
    metadata: { source: 'mcp' },
    inputSchema: { type: 'object', properties: { n: { type: 'number' } } },
    outputSchema: undefined,
    contextSchema: undefined,
    inputExamples: [{ input: { n: 1 } }],
    needsApproval: false,
    strict: true,
    deferLoading: true,
    providerOptions: {},
    onInputStart: undefined,
    onInputDelta: undefined,
    onInputAvailable: undefined,
    toModelOutput: undefined,
    execute,
  };
  const made = (more: object): unknown => createCatalogue({ x: { ...KEYS, ...more } as never });

  it('is carried out where it can be, and says nothing where it is for people', () => {
    const view = createCatalogue({ x: KEYS as never }).view([]);
    expect(view.get('x')).toMatchObject({ loading: 'deferred', examples: [{ n: 1 }] });
    const ofServer = { title: 'X', annotations: { readOnlyHint: true }, icons: [], execution: {}, _meta: { a: 1 } };
    const listed = { name: 'x', description: 'd', inputSchema: { type: 'object' }, execute, ...ofServer };
    expect(createCatalogue([listed]).view([]).get('x')).toMatchObject({ effect: 'once' });
    const { name: _, ...unnamed } = listed;
    const ofClient = { ...unnamed, providerMetadata: {} };
    expect(createCatalogue({ x: ofClient }).view([]).get('x')).toMatchObject({ effect: 'once' });
    const own = { ...KEYS, loading: 'always', examples: [{ args: { n: 2 } }] };
    expect(
      createCatalogue({ x: own as never })
        .view([])
        .get('x'),
    ).toMatchObject({ loading: 'always', examples: [{ n: 2 }] });
  });

  it.each<[string, unknown, RegExp]>([
    ['toModelOutput', 'a text', /The tool x: `toModelOutput` must be a function/],
    ['onInputStart', () => undefined, /has onInputStart, .*run\.events\(\)/],
    ['onInputDelta', () => undefined, /has onInputDelta/],
    ['onInputAvailable', () => undefined, /has onInputAvailable/],
    ['providerOptions', { openai: 'a' }, /has providerOptions that are no options by the name of a provider/],
    ['type', 'provider', /has the type provider, and no id and args/],
    ['type', 'provider-defined', /has the type "provider-defined"; give a tool/],
    ['parameters', {}, /Write inputSchema/],
  ])('is refused by its name where it cannot be: %s', (key, given, message) => {
    const refusal = expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(message) });
    expect(() => made({ [key]: given })).toThrow(refusal);
  });
});
