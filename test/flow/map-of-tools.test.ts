/** A tool, an agent or a flow in the place of a map's function. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Json, local, type RunView } from '#core';
import { edge, flow, map, node } from '#flow';
import { memoryJournal } from '#journal';
import { agent, agentTool, type Tool, tool } from '#tools';
import { pausesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { type World, world } from '../kit/world.ts';

const identity = local('ana');

/** A map alone in a flow, and a runtime that knows it. */
function alone(
  body: Tool | Parameters<typeof map>[1],
  limits: object = {},
): World & { readonly flow: ReturnType<typeof flow> } {
  const each = map('each', body as Tool);
  const made = flow({ name: 'all', inputSchema: {}, entry: each, exit: each });
  return { ...world({ agents: [made], journal: memoryJournal(), ...limits }), flow: made as never };
}

const played = ({ runtime, flow: made }: ReturnType<typeof alone>, items: Json): Promise<unknown> =>
  made.run(runtime, items as never, { identity });

const double = tool({
  name: 'double',
  description: 'Doubles a number.',
  effect: 'pure',
  inputSchema: z.object({ n: z.number() }),
  execute: ({ n }) => n * 2,
});

const writer = agent({
  name: 'writer',
  planner: (view: RunView) => ({ kind: 'finish', reason: 'goal', payload: `About ${view.query}.` }),
});

describe('a map of a tool', () => {
  it('calls it with each item, and gives the values in the order of the items', async () => {
    expect(await played(alone(double), [{ n: 1 }, { n: 2 }, { n: 3 }])).toEqual([2, 4, 6]);
  });

  it('checks each item by the schema of the tool, and says which one does not fit', async () => {
    const failed = await played(alone(double), [{ n: 1 }, { n: 'two' }]).catch((error: unknown) => error);
    expect(failed).toMatchObject({ code: 'validation_failed', node: 'each' });
    expect(String(failed)).toMatch(/each\.item \(1\) .*\/n/);
  });

  it('keeps what the tool says of itself: its approval, its key, how many are called at once', async () => {
    let under = 0;
    let most = 0;
    const work = make(
      'work',
      async () => {
        under += 1;
        most = Math.max(most, under);
        await new Promise((resolve) => setImmediate(resolve));
        under -= 1;
        return 'done';
      },
      { concurrency: 3, inputSchema: {} },
    );
    expect(await played(alone(work), Array(12).fill('x'))).toEqual(Array(12).fill('done'));
    expect(most).toBe(3);

    const made = alone({ ...double, needsApproval: true });
    const run = await made.flow.start(made.runtime, [{ n: 4 }] as never, { identity });
    const [asked] = await pausesOf(run);
    expect(asked).toMatchObject({ reason: 'approval_required', payload: { args: { n: 4 } } });
    await made.runtime.run(asked?.run ?? '').approve(asked?.token);
    expect(await run.result()).toMatchObject({ reason: 'goal', payload: [8] });
  });

  it('may have an agent for its body: a run of it carries out each item', async () => {
    const made = alone(agentTool(writer, { description: 'Writes.', effect: 'pure' }));
    const items = Array.from({ length: 40 }, (_, index) => ({ input: `fjord ${index}` }));
    expect(await played(made, items)).toEqual(items.map(({ input }) => `About ${input}.`));
    // The run of the flow, that of its map, and one for each item.
    expect(await made.runtime.list({ limit: 200 })).toHaveLength(42);
  });

  it('may have a flow for its body', async () => {
    const first = node('first', { effect: 'pure', execute: ({ n }: { n: number }) => n + 1 });
    const second = node('second', { effect: 'pure', execute: (n: number) => n * 10 });
    const inner = flow({
      name: 'inner',
      inputSchema: z.object({ n: z.number() }),
      entry: first,
      exit: second,
      edges: [edge(first, second)],
    });
    expect(await played(alone(inner.asTool() as never), [{ n: 1 }, { n: 2 }])).toEqual([20, 30]);
  });

  it('of agents side by side comes to its end, however many runs it may have at once', async () => {
    let under = 0;
    let most = 0;
    const slow = agent({
      name: 'slow',
      planner: async ({ query }: RunView) => {
        under += 1;
        most = Math.max(most, under);
        for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
        under -= 1;
        return { kind: 'finish', reason: 'goal', payload: query };
      },
    });
    const wide = agentTool(slow, { description: 'Takes its time.', effect: 'pure', concurrency: 50 });
    const items = Array.from({ length: 60 }, (_, index) => ({ input: `${index}` }));
    expect(await played(alone(wide), items)).toEqual(items.map(({ input }) => input));
    expect(most).toBeGreaterThan(8);
  });

  it('names the item whose run fails, and is given up with it', async () => {
    const critic = agent({
      name: 'critic',
      planner: ({ query }: RunView) =>
        query === 'bad' ? { kind: 'finish', reason: 'no_path' } : { kind: 'finish', reason: 'goal', payload: query },
    });
    const made = alone(agentTool(critic, { description: 'Reads.', effect: 'pure' }));
    const failed = await played(made, [{ input: 'good' }, { input: 'bad' }]).catch((error: unknown) => error);
    expect(failed).toMatchObject({ flow: 'all', node: 'each' });
    expect(String(failed)).toContain('each.item (1)');
  });
});

describe('what is refused', () => {
  it('an agent or a flow itself, with how a tool is made of it', () => {
    const end = node('end', { effect: 'pure', execute: () => 1 });
    const inner = flow({ name: 'inner', inputSchema: {}, entry: end, exit: end });
    for (const [given, advice] of [
      [writer, 'agentTool(writer, { description'],
      [inner, 'inner.asTool('],
    ] as const) {
      for (const made of [() => node('x', given as never), () => map('x', given as never)]) {
        expect(made).toThrow(expect.objectContaining({ code: 'invalid_config' }));
        expect(made).toThrow(advice);
      }
    }
  });

  it('a tool with what an item cannot have', () => {
    const undo = () => ({ tool: 'cancel', args: {} });
    expect(() => map('each', { ...double, undo } as never)).toThrow(/map each is made from a tool with undo/);
  });

  it('what is too deep', () => {
    let body = agentTool(writer, { description: 'Writes.' }) as unknown as Tool;
    const nested = (depth: number): unknown => {
      for (let level = 0; level < depth; level += 1) {
        const each = map('each', body);
        body = flow({ name: `f${level}`, inputSchema: {}, entry: each, exit: each }).asTool() as unknown as Tool;
      }
      return body;
    };
    expect(() => nested(3)).toThrow(/levels of flows, maps and races/);
  });
});
