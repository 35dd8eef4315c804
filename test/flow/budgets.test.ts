/** What a flow may use: its own budget as far as its caller has it, each node counted before it starts. */
import { describe, expect, it } from 'vitest';
import { edge, flow, join, map, node } from '#flow';
import { memoryJournal } from '#journal';
import { createRuntime, type Json, local, type Runtime } from '#pilotage';
import { finish } from '#planners/finish';

const NUMBER = { type: 'number' } as const;
const LIST = { type: 'array' } as const;
const identity = (): ReturnType<typeof local> => local('ana');

async function within<T>(runtime: Runtime, use: (runtime: Runtime) => Promise<T>): Promise<T> {
  try {
    return await use(runtime);
  } finally {
    await runtime.close();
  }
}

const priced = (microUsd: number, budget: object) => {
  const costUsd = microUsd / 1_000_000;
  const only = node('only', { effect: 'pure', costUsd, execute: (value: number) => value + 1 });
  return flow({ name: 'priced', inputSchema: NUMBER, entry: only, exit: only, budget });
};

describe('a flow as the main planner', () => {
  const made = priced(1, { hops: 0 });

  it('RT-28 has its own budget', async () => {
    const runtime = createRuntime({ agents: [made], journal: memoryJournal() });
    await within(runtime, async () => {
      const error = await made.run(runtime, 1, { identity: identity() }).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: 'flow_budget_exceeded', data: { axis: 'hops', node: 'only' } });
    });
  });

  it('takes no tools beside its own', () => {
    expect(() => createRuntime({ agents: [made], tools: [], journal: memoryJournal() })).toThrow(
      expect.objectContaining({ code: 'invalid_config' }),
    );
  });
});

describe('what is just enough', () => {
  it('RT-31 gives the output of a flow whose nodes cost exactly its budget, and no more', async () => {
    const made = priced(10, { costUsd: 0.00001 });
    const dear = priced(11, { costUsd: 0.00001 });
    for (const [given, wanted] of [
      [made, 2],
      [dear, 'flow_budget_exceeded'],
    ] as const) {
      const runtime = createRuntime({ agents: [given], journal: memoryJournal() });
      const came = within(runtime, () => given.run(runtime, 1, { identity: identity() }));
      expect(await came.catch((thrown: { code: string }) => thrown.code)).toBe(wanted);
    }
  });

  it.each([
    [4, 'flow_budget_exceeded'],
    [5, [2, 3, 4, 5]],
  ] as const)('a map of four items under %s hops comes to %s: it has all of them, as nothing runs beside it', async (hops, wanted) => {
    const scores = map('scores', { effect: 'pure', execute: (item: number) => item + 1 });
    const made = flow({ name: 'mapped', inputSchema: LIST, entry: scores, exit: scores, budget: { hops } });
    const runtime = createRuntime({ agents: [made], journal: memoryJournal() });
    const came = within(runtime, () => made.run(runtime, [1, 2, 3, 4] as never, { identity: identity() }));
    expect(await came.catch((thrown: { code: string }) => thrown.code)).toEqual(wanted);
  });

  it('a map beside other nodes leaves them a hop each, and has the rest', async () => {
    const start = node('start', { effect: 'pure', execute: (value: number[]) => value });
    const scores = map('scores', { effect: 'pure', execute: (item: number) => item });
    const [first, second] = ['first', 'second'].map((name) =>
      node(name, { effect: 'pure', execute: (value: Json) => value }),
    ) as [typeof start, typeof start];
    const all = join('all', { of: [scores, second], effect: 'pure', execute: ({ scores: items }) => items.length });
    const edges = [edge(start, scores), edge(start, first), edge(first, second)];
    const parts = { name: 'wide', inputSchema: LIST, entry: start, exit: all, edges };
    const items = Array.from({ length: 20 }, (_, index) => index);
    for (const [hops, wanted] of [
      [25, 20],
      [24, 'flow_budget_exceeded'],
    ] as const) {
      const made = flow({ ...parts, budget: { hops } });
      const runtime = createRuntime({ agents: [made], journal: memoryJournal() });
      const came = within(runtime, () => made.run(runtime, items as never, { identity: identity() }));
      expect(await came.catch((thrown: { code: string }) => thrown.code)).toBe(wanted);
    }
  });

  it('two flows beside each other have equal parts of what is left, and what one leaves comes back', async () => {
    const inner = (name: string) => {
      const work = node('work', { effect: 'pure', execute: (value: number) => value });
      return flow({ name, inputSchema: NUMBER, entry: work, exit: work });
    };
    const start = node('start', { effect: 'pure', execute: (value: number) => value });
    const [left, right] = [inner('left').asNode(), inner('right').asNode()];
    const both = join('both', { of: [left, right], effect: 'pure', execute: (given): Json => given as Json });
    const edges = [edge(start, left), edge(start, right)];
    const made = flow({ name: 'outer', inputSchema: NUMBER, entry: start, exit: both, edges, budget: { hops: 6 } });
    const runtime = createRuntime({ agents: [made], journal: memoryJournal() });
    expect(await within(runtime, () => made.run(runtime, 1, { identity: identity() }))).toEqual({ left: 1, right: 1 });
  });
});

describe('a runtime', () => {
  it('refuses a run id that was used for another input', async () => {
    const made = priced(0, {});
    const runtime = createRuntime({ planner: finish(), agents: [made], journal: memoryJournal() });
    await within(runtime, async () => {
      const mine = identity();
      expect(await made.run(runtime, 1, { identity: mine })).toBe(2);
      expect(await made.run(runtime, 1, { identity: mine })).toBe(2);
      await expect(made.run(runtime, 2, { identity: mine })).rejects.toMatchObject({ code: 'idempotency_conflict' });
    });
  });
});
