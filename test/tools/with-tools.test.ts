/** AI SDK tools: what their functions are given and give, and the options of Pilotage that are added to them. */
import { tool as aiTool, jsonSchema, zodSchema } from 'ai';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type JsonObject, local } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime, type RunEvent } from '#pilotage';
import { type AddedOptions, withTools } from '#pilotage/tools';
import { createCatalogue, type ToolSet } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { only } from '../kit/events.ts';
import { record } from '../kit/recorded.ts';
import { make } from '../kit/tools.ts';
import { advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

async function played(
  tools: ToolSet,
  args: JsonObject = {},
): Promise<{ outcome: unknown; pieces: unknown[]; events: readonly RunEvent[] }> {
  const { entries, events } = await record([call('x', args)], {
    tools,
    start: { context: { meta: { team: 'blue' } } },
  });
  const ended = entries.find((entry) => entry.kind === 'call_ended');
  const pieces = only([...events], 'tool.chunk').map(({ chunk, index }) => [index, chunk]);
  return { outcome: ended?.kind === 'call_ended' ? ended.outcome : undefined, pieces, events };
}

const INPUT = z.object({});
const refused = (message: RegExp) =>
  expect.objectContaining({ code: 'invalid_config', message: expect.stringMatching(message) });

describe('a generator', () => {
  it.each([
    [
      'of the AI SDK',
      (execute: () => AsyncGenerator<unknown>) => ({ x: aiTool({ inputSchema: INPUT, execute }) }) as ToolSet,
    ],
    ['of ours', (execute: () => AsyncGenerator<unknown>) => [make('x', execute)] as ToolSet],
  ])('%s sends what it yields as pieces, and the last one is the value', async (_, toolsOf) => {
    const { outcome, pieces } = await played(
      toolsOf(async function* () {
        yield { done: 1 };
        yield { done: 2 };
        yield 'all';
      }),
    );
    expect(pieces).toEqual([
      [1, { done: 1 }],
      [2, { done: 2 }],
      [3, 'all'],
    ]);
    expect(outcome).toEqual({ kind: 'value', value: 'all' });
  });

  it('that yields nothing gives null, one that throws is an error, and what is no JSON is refused by name', async () => {
    const none = await played([make('x', async function* () {})]);
    expect(none.outcome).toEqual({ kind: 'value', value: null });
    const throwing = make('x', async function* () {
      yield 1;
      throw new Error('half');
    });
    const half = await played([throwing]);
    expect(half).toMatchObject({ pieces: [[1, 1]], outcome: { kind: 'error', error: { message: 'half' } } });
    let isClosed = false;
    const odd = make('x', async function* () {
      try {
        yield 1n;
        yield 2;
      } finally {
        isClosed = true;
      }
    });
    expect((await played([odd])).outcome).toMatchObject({ kind: 'error', error: { code: 'unserializable' } });
    expect(isClosed).toBe(true);
  });

  it('is tried again from its beginning, with pieces of the second attempt', async () => {
    let tries = 0;
    const x = make(
      'x',
      async function* () {
        tries += 1;
        yield tries;
        if (tries === 1) throw Object.assign(new Error('again'), { retryable: true });
      },
      { backoff: { baseMs: 0 } },
    );
    const { events, outcome } = await played([x]);
    expect(only([...events], 'tool.chunk').map(({ attempt, chunk }) => [attempt, chunk])).toEqual([
      [1, 1],
      [2, 2],
    ]);
    expect(outcome).toEqual({ kind: 'value', value: 2 });
  });
});

/** A source of pieces, each given when the test opens the next gate; it counts what is asked of it. */
function counted() {
  const asked = { next: 0, return: 0 };
  let more = gate();
  const source = {
    asked,
    give: () => {
      const held = more;
      more = gate();
      held.open();
    },
    [Symbol.asyncIterator]: () => source,
    next: async () => {
      asked.next += 1;
      await more.opened;
      return { done: false, value: asked.next };
    },
    return: async () => {
      asked.return += 1;
      return { done: true, value: undefined };
    },
  };
  return source;
}

describe('a generator that nobody waits for any more', () => {
  const cases = [
    ['of the AI SDK', (execute: () => unknown) => ({ x: aiTool({ inputSchema: INPUT, execute }) }) as ToolSet],
    ['of ours', (execute: () => unknown) => [make('x', execute)] as ToolSet],
  ] as const;

  it.each(cases)('%s is closed once after its time limit, and asked for no more', async (_, toolsOf) => {
    const source = counted();
    const [name, x] = Object.entries(toolsOf(() => source)).at(0) ?? [];
    const limited = { ...x, timeoutMs: 1_000, retries: 0, effect: 'read' };
    const tools = (name === 'x' ? { x: limited } : [limited]) as ToolSet;
    const made = world({ planner: script(call('x'), finish('done')), tools });
    const run = await start(made);
    await until(() => source.asked.next === 1);
    source.give();
    await until(() => source.asked.next === 2);
    made.clock.advance(1_000);
    await run.result();
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({ outcome: { error: { code: 'tool_timeout' } } });
    source.give();
    await quiet();
    expect(source.asked).toEqual({ next: 2, return: 1 });
  });

  it('goes on for the grace of a once call, so that its value counts, and no longer', async () => {
    const pieces = [gate(), gate(), gate()];
    let yielded = 0;
    let isClosed = false;
    const tool = make(
      'x',
      async function* () {
        try {
          for (const piece of pieces) {
            await piece.opened;
            yielded += 1;
            yield yielded;
          }
        } finally {
          isClosed = true;
        }
      },
      { effect: 'once', inDoubt: 'tell' },
    );
    const made = world({ planner: script(call('x'), finish('done')), tools: [tool] });
    const run = await start(made);
    pieces[0]?.open();
    await until(() => yielded === 1);
    await run.cancel();
    pieces[1]?.open();
    await until(() => yielded === 2);
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(isClosed).toBe(false);
    pieces[2]?.open();
    await until(() => isClosed);
    expect(yielded).toBe(3);
  });

  it('that ends by itself is not closed', async () => {
    const source = counted();
    const ending = { ...source, [Symbol.asyncIterator]: () => ending, next: async () => ({ done: true, value: 1 }) };
    const { outcome } = await played([make('x', () => ending)]);
    expect(outcome).toEqual({ kind: 'value', value: 1 });
    expect(source.asked.return).toBe(0);
  });

  it('and never waits itself leaves the process its turns, so that its time limit is heard', async () => {
    let isClosed = false;
    const tool = make(
      'x',
      async function* () {
        try {
          // The bound is for a process that gets no turn: it must end for the test to say so.
          for (let count = 0; count < 200_000; count += 1) yield null;
        } finally {
          isClosed = true;
        }
      },
      { timeoutMs: 1_000, retries: 0 },
    );
    const made = world({ planner: script(call('x'), finish('done')), tools: [tool] });
    const run = await start(made);
    setImmediate(() => made.clock.advance(1_000));
    await run.result();
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({ outcome: { error: { code: 'tool_timeout' } } });
    await until(() => isClosed);
  });
});

/** Gives back its context, and is asked about an approval. */
function contextual(contextSchema: unknown, asked: unknown[] = []) {
  return {
    description: 'd',
    inputSchema: INPUT,
    contextSchema,
    needsApproval: (_: unknown, about: { context: unknown; toolCallId: string }) => {
      asked.push([about.context, about.toolCallId]);
      return false;
    },
    execute: (_: unknown, { context, toolCallId }: { context: unknown; toolCallId: string }) => ({
      context,
      toolCallId,
    }),
  };
}

describe('the context of an AI SDK tool', () => {
  const schema = z.object({ key: z.string(), size: z.number().default(3) });
  const fitted = { key: 'k', size: 3 };

  it.each([
    ['an object', { key: 'k' }, schema],
    ['a function', ({ meta }: { meta: JsonObject }) => ({ key: meta['team'] === 'blue' ? 'k' : 'none' }), schema],
    ['a function that gives a promise', async () => ({ key: 'k' }), schema],
    ['an object, for a schema of the AI SDK', { key: 'k' }, zodSchema(schema)],
    ['an object, for a JSON Schema', fitted, jsonSchema({ type: 'object', required: ['key'] })],
  ])('is what its schema makes of %s, for execute and needsApproval', async (_, context, contextSchema) => {
    const asked: unknown[] = [];
    const { outcome } = await played(withTools({ x: contextual(contextSchema, asked) }, { x: { context } }));
    const toolCallId = expect.stringMatching(/0\.0$/);
    expect(outcome).toMatchObject({ kind: 'value', value: { context: fitted, toolCallId } });
    expect(asked).toEqual([[fitted, toolCallId]]);
  });

  it('is each user’s own when a function makes it', async () => {
    const tools = withTools({ x: contextual(z.any()) }, { x: { context: (of: { identity: object }) => of.identity } });
    const runtime = createRuntime({
      planner: {
        name: 'p',
        next: (run) => (run.trajectory.count === 0 ? call('x') : { kind: 'finish', reason: 'goal' }),
      },
      tools,
      journal: memoryJournal(),
    });
    for (const user of ['ana', 'ben']) {
      const run = await runtime.start('q', { identity: local(user) });
      await run.result();
      const outcome = { kind: 'value', value: { context: { user } } };
      expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject(outcome);
    }
    await runtime.close();
  });

  it('need not be JSON, and stays the object that was given', async () => {
    let seen: unknown;
    const client = new (class Client {
      ask = () => 1;
    })();
    const spy = {
      ...contextual(undefined),
      execute: (_: unknown, { context }: { context: unknown }) => {
        seen = context;
        return 1;
      },
    };
    await played(withTools({ x: spy }, { x: { context: client } }));
    expect(seen).toBe(client);
    await played(
      withTools({ x: { ...spy, contextSchema: jsonSchema({ type: 'object' }) } }, { x: { context: client } }),
    );
    expect(seen).toBe(client);
  });

  it('is asked for where it is missing, and refused where it does not fit', async () => {
    expect(() => createCatalogue({ x: contextual(schema) })).toThrow(
      refused(/The tool x has a contextSchema and no context\. .*withTools/),
    );
    const wrong = (context: object) => withTools({ x: contextual(schema) }, { x: { context } });
    expect(() => createCatalogue(wrong({ key: 5 }))).toThrow(
      refused(/The context of the tool x does not fit its contextSchema: \/key/),
    );
    let calls = 0;
    const counted = { ...contextual(schema), needsApproval: false, execute: () => (calls += 1) };
    for (const context of [() => ({}), async () => ({})]) {
      const { outcome } = await played(withTools({ x: counted }, { x: { context } }));
      expect(outcome).toMatchObject({
        kind: 'error',
        error: { code: 'invalid_config', message: expect.stringContaining('/key') },
      });
    }
    const late = await played(
      withTools({ x: { ...counted, contextSchema: zodSchema(schema) } }, { x: { context: {} } }),
    );
    expect(late.outcome).toMatchObject({ error: { code: 'invalid_config' } });
    expect(calls).toBe(0);
  });
});

describe('a description that is a function', () => {
  const described = (description: unknown, context?: object) => {
    const tool = { ...contextual(undefined), description };
    return createCatalogue(context === undefined ? { x: tool } : withTools({ x: tool }, { x: { context } }))
      .view([])
      .get('x')?.description;
  };

  it('is asked once, with the context', () => {
    expect(
      described(({ context }: { context: { city: string } }) => `Weather in ${context.city}`, { city: 'Oslo' }),
    ).toBe('Weather in Oslo');
    expect(described(() => 'fixed')).toBe('fixed');
    expect(described(undefined)).toBe('');
  });

  it('is refused where it has no one text', () => {
    expect(() => described(() => 5)).toThrow(
      refused(/The tool x has a description whose function gives no text\. .*withTools/),
    );
    expect(() => described(({ context }: { context: { city: string } }) => context.city)).toThrow(
      refused(/whose function threw/),
    );
    expect(() =>
      described(
        () => 'd',
        () => ({}),
      ),
    ).toThrow(refused(/a context for each call/));
    expect(() => described(5)).toThrow(refused(/has the description 5/));
    const tools = { x: { ...contextual(undefined), description: () => 5 } };
    expect(
      createCatalogue(withTools(tools, { x: { description: 'Weather' } }))
        .view([])
        .get('x')?.description,
    ).toBe('Weather');
  });
});

describe('withTools', () => {
  const slow = aiTool({ description: 'Slow', inputSchema: z.object({ n: z.number() }), execute: ({ n }) => n });
  const tools = { slow, other: aiTool({ inputSchema: INPUT, execute: () => 1 }) };

  it('adds options of Pilotage to the tools that it names, and leaves the others and its input as they are', () => {
    const reconcile = () => ({ status: 'unknown' as const });
    const added = {
      ...{ effect: 'keyed', timeoutMs: 600_000, retries: 1, backoff: { baseMs: 5 }, concurrency: 2, costUsd: 0.1 },
      ...{
        tags: ['t'],
        loading: 'deferred',
        scopes: ['s'],
        examples: [{ args: { n: 1 } }],
        reconcile,
        inDoubt: 'tell',
      },
      ...{ mimeTypes: ['image/*'], needsApproval: { reason: 'dear', expiresInMs: 5 }, description: 'Very slow' },
    } satisfies AddedOptions;
    const before = { ...slow };
    const made = withTools(tools, { slow: added });
    expect(made.other).toBe(tools.other);
    expect(slow).toEqual(before);
    const ready = createCatalogue(made).view(['s']).ready('slow');
    expect(ready).toMatchObject({
      schema: {
        description: 'Very slow',
        tags: ['t'],
        loading: 'deferred',
        examples: [{ n: 1 }],
        mimeTypes: ['image/*'],
      },
      effect: 'keyed',
      timeoutMs: 600_000,
      retries: 1,
      concurrency: 2,
      costMicroUsd: 100_000,
      scopes: ['s'],
      gate: { reason: 'dear', expiresInMs: 5 },
    });
    expect(createCatalogue(made).view([]).ready('slow')).toBeUndefined();
  });

  it('gives a tool more time than 30 s', async () => {
    const ready = createCatalogue(withTools(tools, { slow: { timeoutMs: 300_000 } }))
      .view([])
      .ready('slow');
    expect(ready).toMatchObject({ timeoutMs: 300_000, effect: 'once' });
  });

  it('leaves what the tool has where an option is undefined', () => {
    const made = withTools({ slow: { ...slow, effect: 'read' as const } }, { slow: { effect: undefined } as never });
    expect(createCatalogue(made).view([]).get('slow')?.effect).toBe('read');
  });

  it.each<[string, unknown, unknown, RegExp]>([
    [
      'a name that no tool has',
      tools,
      { slwo: { timeoutMs: 1 } },
      /options for slwo, which is not among the tools\. Did you mean slow\?/,
    ],
    ['a name that every object has', tools, { toString: {} }, /options for toString, which is not among the tools/],
    [
      'an unknown option',
      tools,
      { slow: { timeoutMS: 1 } },
      /withTools for the tool slow has no option "timeoutMS".*timeoutMs/s,
    ],
    [
      'a word of the AI SDK',
      tools,
      { slow: { execute: () => 1 } },
      /withTools for the tool slow has no option "execute"/,
    ],
    ['options that are none', tools, { slow: 5 }, /withTools for the tool slow takes an object of options/],
    ['tools that are a list', [slow], {}, /withTools takes an object of tools by their names/],
    ['no options', tools, undefined, /withTools takes an object of tools/],
    [
      'a tool of ours, which has a name',
      { own: make('own', () => 1) },
      { own: { timeoutMs: 1 } },
      /own, which was not made for the AI SDK/,
    ],
  ])('refuses %s', (_, given, options, message) => {
    expect(() => withTools(given as never, options as never)).toThrow(refused(message));
  });

  it('leaves wrong values to the place where tools are registered', () => {
    expect(() => createCatalogue(withTools(tools, { slow: { timeoutMs: -1 } }))).toThrow(
      refused(/The tool slow has timeoutMs -1/),
    );
  });

  it('has types that know the names and the options', () => {
    // @ts-expect-error no such tool
    expect(() => withTools(tools, { slwo: {} })).toThrow();
    // @ts-expect-error no such option
    expect(() => withTools(tools, { slow: { timeout: 1 } })).toThrow();
    const fromServer: Record<string, typeof slow> = { slow };
    expect(withTools(fromServer, { slow: { effect: 'read' } })['slow']).toMatchObject({ effect: 'read' });
  });
});
