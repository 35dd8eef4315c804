import { tool as aiTool, jsonSchema } from 'ai';
import { describe, expectTypeOf, it } from 'vitest';
import { z } from 'zod';
import type { Json } from '#core';
import {
  agent,
  agentTool,
  clientTool,
  createRuntime,
  handle,
  type Run,
  type Tool,
  type ToolContext,
  tool,
} from '#pilotage';
import type { HandleReason, NoHandles } from '#pilotage/tools';
import { finish } from '#planners/finish';
import type { ToolSet } from '#tools';

describe('tool()', () => {
  it('infers the arguments from what a zod schema puts out', () => {
    const weather = tool({
      name: 'weather',
      description: 'd',
      inputSchema: z.object({
        city: z.string(),
        days: z.number().default(1),
        at: z.string().transform((text) => new Date(text)),
      }),
      effect: 'read',
      execute: (args, context) => {
        expectTypeOf(args).toEqualTypeOf<{ city: string; days: number; at: Date }>();
        expectTypeOf(context).toEqualTypeOf<ToolContext>();
        return args.city;
      },
      reconcile: (args) => {
        expectTypeOf(args.days).toEqualTypeOf<number>();
        return { status: 'unknown' };
      },
    });
    expectTypeOf(weather).toExtend<Tool>();
  });

  it('gives plain JSON for a JSON Schema', () => {
    tool({
      name: 'a',
      description: 'd',
      inputSchema: { type: 'object', properties: { n: { type: 'number' } } },
      execute: (args) => {
        expectTypeOf(args).toEqualTypeOf<Record<string, Json>>();
      },
    });
  });

  it('gives a union for a union', () => {
    tool({
      name: 'a',
      description: 'd',
      inputSchema: z.discriminatedUnion('kind', [
        z.object({ kind: z.literal('a'), n: z.number() }),
        z.object({ kind: z.literal('b') }),
      ]),
      execute: (args) => {
        if (args.kind === 'a') expectTypeOf(args.n).toEqualTypeOf<number>();
        else expectTypeOf(args).not.toHaveProperty('n');
      },
    });
  });

  it('does not take an unknown effect, a missing description, or an argument that is not there', () => {
    // @ts-expect-error the effect is none
    tool({ name: 'a', description: 'd', inputSchema: z.object({}), effect: 'maybe', execute: () => 1 });
    // @ts-expect-error there is no description
    tool({ name: 'a', inputSchema: z.object({}), execute: () => 1 });
    // @ts-expect-error there is no such argument
    tool({ name: 'a', description: 'd', inputSchema: z.object({ a: z.string() }), execute: ({ b }) => b });
  });
});

describe('handle()', () => {
  interface Page {
    goto(url: string): Promise<string>;
  }
  const page = handle({
    name: 'page',
    open: async ({ identity, signal, opening }): Promise<Page> => {
      expectTypeOf(identity.run).toEqualTypeOf<string>();
      expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
      expectTypeOf(opening).toEqualTypeOf<number>();
      return { goto: async (url) => url };
    },
    close: (value, { reason }) => {
      expectTypeOf(value).toEqualTypeOf<Page>();
      expectTypeOf(reason).toEqualTypeOf<HandleReason>();
    },
    isOpen: (value) => value.goto !== undefined,
  });
  const count = handle({ name: 'count', open: () => 1, close: () => {} });

  it('gives a tool the values that its factories open, by the names that it chose', () => {
    const visit = tool({
      name: 'visit',
      description: 'd',
      inputSchema: z.object({ url: z.string() }),
      handles: { page, n: count },
      execute: ({ url }, { handles, signal }) => {
        expectTypeOf(handles).toEqualTypeOf<{ readonly page: Page; readonly n: number }>();
        expectTypeOf(signal).toEqualTypeOf<AbortSignal>();
        // @ts-expect-error the tool has named no such handle
        handles.tab;
        return handles.page.goto(url);
      },
      // What it asks about is over: there is no page.
      reconcile: (_, { handles }) => {
        expectTypeOf(handles).toEqualTypeOf<NoHandles>();
        return { status: 'unknown' };
      },
    });
    expectTypeOf(visit).toExtend<Tool>();
    expectTypeOf(() => createRuntime({ planner: finish(), tools: [visit] })).toBeFunction();
    expectTypeOf(() => createRuntime({ planner: finish(), tools: { visit } })).toBeFunction();
  });

  it('has a close for what its open gives, and is named where it is used', () => {
    // @ts-expect-error nothing closes it
    handle({ name: 'a', open: () => 1 });
    // @ts-expect-error it closes something else
    handle({ name: 'a', open: () => 1, close: (value: string) => value });
    // @ts-expect-error a value is no handle
    tool({ name: 'a', description: 'd', inputSchema: z.object({}), handles: { page: 1 }, execute: () => 1 });
  });
});

describe('the tools of a runtime', () => {
  const own = tool({ name: 'own', description: 'd', inputSchema: z.object({ n: z.number() }), execute: ({ n }) => n });
  const plain = tool({ name: 'plain', description: 'd', inputSchema: { type: 'object' }, execute: (args) => args });
  const weather = aiTool({ inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => city });
  const streaming = aiTool({
    inputSchema: jsonSchema<{ n: number }>({ type: 'object' }),
    async *execute({ n }) {
      yield n;
    },
  });

  it('are a list of tools of any argument types', () => {
    expectTypeOf([own, plain]).toExtend<ToolSet>();
    expectTypeOf(() => createRuntime({ planner: finish(), tools: [own, plain] })).toBeFunction();
  });

  it('may be AI SDK tools by name, beside ours, without a cast', () => {
    expectTypeOf({ weather, streaming, own }).toExtend<ToolSet>();
    expectTypeOf(() => createRuntime({ planner: finish(), tools: { weather, streaming, own } })).toBeFunction();
  });

  it('are not functions or text', () => {
    // @ts-expect-error a function has no name, no schema and no effect
    expectTypeOf(() => createRuntime({ planner: finish(), tools: [() => 1] })).toBeFunction();
    // @ts-expect-error an AI SDK tool has no name: it needs a key
    expectTypeOf(() => createRuntime({ planner: finish(), tools: [weather] })).toBeFunction();
  });
});

describe('a tool that an agent carries out', () => {
  const writer = agent({ name: 'writer', planner: finish() });

  it('asks its prompt with what its schema puts out, and with the text `input` when it has none', () => {
    agentTool(writer, {
      description: 'd',
      prompt: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ readonly input: string }>();
        return args.input;
      },
    });
    agentTool(writer, {
      description: 'd',
      inputSchema: z.object({ topic: z.string(), words: z.number().default(300) }),
      prompt: (args) => {
        expectTypeOf(args).toEqualTypeOf<{ topic: string; words: number }>();
        return args.topic;
      },
    });
    agentTool(writer, {
      description: 'd',
      inputSchema: { type: 'object', properties: { topic: { type: 'string' } } },
      prompt: (args) => {
        expectTypeOf(args).toEqualTypeOf<Record<string, Json>>();
        return String(args['topic']);
      },
    });
    // @ts-expect-error there is no argument of that name
    agentTool(writer, { description: 'd', prompt: ({ topic }) => topic });
    expectTypeOf([agentTool(writer, { description: 'd' })]).toExtend<ToolSet>();
  });
});

describe('the start of a run', () => {
  it('needs no identity, and takes none with a part missing', () => {
    const runtime = createRuntime({ planner: finish() });
    expectTypeOf(() => runtime.start('q')).returns.toEqualTypeOf<Promise<Run>>();
    expectTypeOf(() => runtime.start('q', { limits: { steps: 3 } })).returns.toEqualTypeOf<Promise<Run>>();
    // @ts-expect-error three of four parts name nobody
    expectTypeOf(() => runtime.start('q', { identity: { tenant: 't', user: 'u', session: 's' } })).toBeFunction();
  });
});

describe('clientTool', () => {
  it('types the arguments from the schema, and takes no execute', () => {
    const pick = clientTool({
      name: 'pick',
      description: 'x',
      inputSchema: z.object({ from: z.array(z.string()) }),
      needsApproval: ({ from }) => {
        expectTypeOf(from).toEqualTypeOf<string[]>();
        return from.length > 3;
      },
    });
    expectTypeOf(pick.client).toEqualTypeOf<true>();
    // @ts-expect-error a client carries it out.
    clientTool({ name: 'pick', description: 'x', inputSchema: z.object({}), execute: () => 1 });
    // @ts-expect-error a tool has a function, or is a client's.
    tool({ name: 'pick', description: 'x', inputSchema: z.object({}) });
  });
});
