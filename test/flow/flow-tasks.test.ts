/** Flows as tools, flows in flows, and maps: each is a task of the run that calls. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { type Effect, type Identity, type Json, local } from '#core';
import { edge, type Flow, flow, join, MAX_ITEMS, map, node, predicateRouter } from '#flow';
import { react } from '#planners/react';
import { scriptedModel } from '#testing';
import { type ToolContext, ToolFailure } from '#tools';
import { call, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { failureOf, placed } from '../kit/flows.ts';
import { lastResults } from '../kit/messages.ts';
import { make } from '../kit/tools.ts';
import { aborted, gate, until } from '../kit/waiting.ts';

const identity = local('ana');

/** Gives the value, and notes something. */
function noting<T, V>(list: T[], what: T, value: V): V {
  list.push(what);
  return value;
}

/** One node around a function. */
function around<In, Out>(
  name: string,
  execute: (value: In, context: ToolContext) => Out,
  budget: { readonly deadlineMs?: number; readonly hops?: number } = {},
) {
  const only = node('work', { effect: 'read', execute });
  return flow({ name, inputSchema: {}, budget, entry: only as never, exit: only }) as unknown as Flow<In, Awaited<Out>>;
}

describe('a flow in a flow', () => {
  it('RT-20 has the identity of the run above it, and its first result comes back; nesting works', async () => {
    const seen: Identity[] = [];
    const inner = around('inner', (n: number, context) => noting(seen, context.identity, n + 1));
    const middleNode = inner.asNode('inner');
    const middle = flow({ name: 'middle', inputSchema: z.number(), entry: middleNode, exit: middleNode });
    const first = node('first', { effect: 'pure', execute: (n: number) => n * 10 });
    const sub = middle.asNode('sub');
    const last = node('last', { effect: 'pure', execute: (n: number) => `${n}` });
    const outer = flow({
      name: 'outer',
      inputSchema: z.number(),
      entry: first,
      exit: last,
      edges: [edge(first, sub), edge(sub, last as never)],
    });
    const run = await outer.start(placed([outer]), 4, { identity });
    expect(await run.result()).toMatchObject({ status: 'finished', payload: '41' });
    const { tenant, user, session } = identity;
    expect(seen).toMatchObject([{ tenant, user, session }]);
    expect(seen[0]?.run.startsWith(`${run.id}.`)).toBe(true);
  });

  it('RT-20 RT-04 the meta of the run reaches the nodes of flows in it', async () => {
    const seen: Json[] = [];
    const inner = around('inner', (n: number, { meta }) => noting(seen, meta, n));
    const sub = inner.asNode();
    const outer = flow({ name: 'outer', inputSchema: z.number(), entry: sub, exit: sub });
    await outer.run(placed([outer]), 1, { identity, meta: { locale: 'de' } });
    expect(seen).toEqual([{ locale: 'de' }]);
  });

  it('RT-20 RT-18 a node that throws in it fails both, with its error and its cause', async () => {
    const inner = around('inner', (_: number): number => {
      throw new ToolFailure('No card.', { code: 'no_card' });
    });
    const sub = inner.asNode('sub');
    const outer = flow({ name: 'outer', inputSchema: z.number(), entry: sub, exit: sub });
    const error = await failureOf(outer.run(placed([outer]), 1, { identity }));
    expect(error).toMatchObject({ code: 'node_exception', flow: 'outer', node: 'sub' });
    expect(error.cause).toMatchObject({
      code: 'node_exception',
      data: { flow: 'inner', node: 'work', cause: { code: 'no_card', message: 'No card.' } },
    });
    expect(error.message).toContain('No card.');
  });

  it('RT-20 the cancel of the run reaches it, and so does the failure of a node beside it', async () => {
    const begun: string[] = [];
    const stopped: string[] = [];
    const inner = around('inner', async (who: string, { signal }) => {
      begun.push(who);
      await aborted(signal).catch((reason: unknown) => {
        stopped.push(who);
        throw reason;
      });
      return who;
    });
    const sub = inner.asNode('sub');
    const first = node('first', { effect: 'pure', execute: (who: string) => who });
    const beside = node('beside', {
      effect: 'read',
      execute: async (who: string) => {
        await until(() => begun.includes(who));
        if (who === 'bad') throw new Error('Bad.');
        return who;
      },
    });
    const both = join('both', { of: [sub, beside], effect: 'pure', execute: () => 'both' });
    const outer = flow({
      name: 'outer',
      inputSchema: z.string(),
      entry: first,
      exit: both,
      edges: [edge(first, sub), edge(first, beside)],
    });
    const runtime = placed([outer]);
    const run = await outer.start(runtime, 'good', { identity: local('ana') });
    await until(() => begun.includes('good'));
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    await until(() => stopped.includes('good'));
    const error = await failureOf(outer.run(runtime, 'bad', { identity: local('ana') }));
    expect(error).toMatchObject({ code: 'node_exception', node: 'beside' });
    await until(() => stopped.includes('bad'));
  });

  it('a node in it that waits for approval pauses the run above, which takes the answer', async () => {
    const pay = node('pay', { effect: 'once', needsApproval: true, execute: (n: number) => n });
    const inner = flow({ name: 'inner', inputSchema: z.number(), entry: pay, exit: pay });
    const sub = inner.asNode('sub');
    const outer = flow({ name: 'outer', inputSchema: z.number(), entry: sub, exit: sub });
    const runtime = placed([outer]);
    const error = await failureOf(outer.run(runtime, 3, { identity }));
    expect(error).toMatchObject({ code: 'run_paused', data: { pauses: [{ reason: 'approval_required' }] } });
    const run = runtime.run(error.identity.run);
    await run.approve(undefined, { args: 2 });
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 2 });
  });

  it.each([
    ['its own deadline', { deadlineMs: 30 }, {}],
    ['the deadline of the flow around it', {}, { deadlineMs: 30 }],
  ])('RT-28 RT-20 %s ends it as flow_budget_exceeded', async (_, own, outers) => {
    const inner = around('inner', (_: number, { signal }): Promise<string> => aborted(signal), own);
    const sub = inner.asNode('sub');
    const outer = flow({ name: 'outer', inputSchema: z.number(), budget: outers, entry: sub, exit: sub });
    const error = await failureOf(outer.run(placed([outer]), 1, { identity }));
    expect(error).toMatchObject({ code: 'flow_budget_exceeded', flow: 'outer', data: { axis: 'deadline' } });
  });

  it('RT-31 its nodes count as hops of the flow around it', async () => {
    const calls: string[] = [];
    const inner = around('inner', (n: number) => noting(calls, 'work', n));
    const sub = inner.asNode('sub');
    const last = node('last', { effect: 'pure', execute: (n: number) => noting(calls, 'last', n) });
    const made = (hops: number) =>
      flow({
        name: 'outer',
        inputSchema: z.number(),
        budget: { hops },
        entry: sub,
        exit: last,
        edges: [edge(sub, last as never)],
      });
    expect(await made(3).run(placed([made(3)]), 1, { identity })).toBe(1);
    calls.length = 0;
    const tight = made(2);
    const error = await failureOf(tight.run(placed([tight]), 1, { identity }));
    expect(error).toMatchObject({ code: 'flow_budget_exceeded', data: { axis: 'hops' } });
    expect(calls).not.toContain('last');
  });
});

describe('flows side by side in a flow', () => {
  it('RT-28 RT-31 together have the hops and the money of the flow around them', async () => {
    const paid = <const Name extends string>(name: Name) => {
      const pay = node('pay', { effect: 'read', costUsd: 0.00001, execute: (n: number) => n + 1 });
      return flow({ name, inputSchema: z.number(), entry: pay, exit: pay }).asNode(name);
    };
    const [left, right] = [paid('left'), paid('right')] as const;
    const first = node('first', { effect: 'pure', execute: (n: number) => n });
    const sum = join('sum', { of: [left, right], effect: 'pure', execute: (given) => given.left + given.right });
    const made = (hops: number, costUsd: number) =>
      flow({
        name: 'outer',
        inputSchema: z.number(),
        budget: { hops, costUsd },
        entry: first,
        exit: sum,
        edges: [edge(first, left), edge(first, right)],
      });
    const enough = made(6, 0.000024);
    expect(await enough.run(placed([enough]), 1, { identity })).toBe(4);
    const poor = made(6, 0.000019);
    expect(await failureOf(poor.run(placed([poor]), 1, { identity }))).toMatchObject({ data: { axis: 'cost' } });
    const short = made(5, 0.000024);
    expect(await failureOf(short.run(placed([short]), 1, { identity }))).toMatchObject({ data: { axis: 'hops' } });
  });
});

describe('chunks of inner nodes', () => {
  it('RT-23 W90 reach the readers of the run that was started, and never a node', async () => {
    const release = gate();
    const inner = around('inner', async (n: number, { emit }) => {
      await release.opened;
      emit('one');
      emit({ two: 2 });
      return n;
    });
    const seen: Json[] = [];
    const sub = inner.asNode('sub');
    const next = node('next', { effect: 'pure', execute: (value: Json) => void seen.push(value) });
    const first = node('first', {
      effect: 'pure',
      execute: async (n: number, { emit }) => {
        await release.opened;
        emit('zero');
        return n;
      },
    });
    const outer = flow({
      name: 'outer',
      inputSchema: z.number(),
      entry: first,
      exit: next,
      edges: [edge(first, sub), edge(sub, next as never)],
    });
    const runtime = placed([outer]);
    const run = await outer.start(runtime, 7, { identity: local('ana') });
    const other = await outer.start(runtime, 8, { identity: local('bea') });
    const [events, others] = [collect(run), collect(other)];
    await until(async () => (await run.state()).head > 1);
    release.open();
    const chunks = only(await events, 'tool.chunk').map(({ tool, chunk, index }) => [tool, index, chunk]);
    expect(chunks).toEqual([
      ['first', 1, 'zero'],
      ['work', 1, 'one'],
      ['work', 2, { two: 2 }],
    ]);
    const told = await others;
    expect(seen.toSorted()).toEqual([7, 8]);
    expect(only(told, 'tool.chunk').every((event) => event.run.startsWith(other.id))).toBe(true);
  });
});

describe('a flow as a tool', () => {
  const doubled = () => {
    const twice = node('twice', { effect: 'read', execute: ({ n }: { n: number }) => ({ twice: n * 2 }) });
    return flow({
      name: 'double',
      description: 'Doubles a number.',
      inputSchema: z.object({ n: z.number() }),
      entry: twice,
      exit: twice,
    });
  };

  it('RT-27 W86 a ReAct agent calls it by its name and schema, and gets its output; bad arguments are refused at its border', async () => {
    const double = doubled();
    const { model, requests } = recorded([
      { calls: [{ tool: 'double', args: { n: 'four' } }] },
      { calls: [{ tool: 'double', args: { n: 4 } }] },
      { text: 'It is 8.' },
    ]);
    const runtime = placed([], { planner: react({ model }), tools: [double.asTool()] });
    const run = await runtime.start('What is twice 4?', { identity });
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'It is 8.' });
    const declared = requests[0]?.tools?.find(({ name }) => name === 'double');
    expect(declared).toMatchObject({ description: 'Doubles a number.', inputSchema: { required: ['n'] } });
    expect(JSON.stringify(lastResults(requests[1]?.prompt ?? []))).toContain('/n');
    expect(JSON.stringify(lastResults(requests[2]?.prompt ?? []))).toContain('twice');
    expect(await runtime.list({ tenant: identity.tenant })).toHaveLength(2);
  });

  it('RT-27 RT-32 the agent sees the error of its node, and goes on', async () => {
    const bad = around('bad', (_: Json): string => {
      throw new Error('It is broken.');
    });
    const { model, requests } = recorded([{ calls: [{ tool: 'bad', args: {} }] }, { text: 'It does not work.' }]);
    const runtime = placed([], { planner: react({ model }), tools: [bad.asTool()] });
    const run = await runtime.start('Try it.', { identity });
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'It does not work.' });
    expect(JSON.stringify(lastResults(requests[1]?.prompt ?? []))).toContain('It is broken.');
  });

  it('RT-28 of its budget and what its caller has left the smaller counts', async () => {
    const slow = around('slow', (_: Json, { signal }): Promise<string> => aborted(signal), { deadlineMs: 30 });
    const runtime = placed([], { planner: script(call('slow')), tools: [slow.asTool()] });
    const run = await runtime.start('q', { identity });
    await run.result();
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({
      kind: 'error',
      error: { code: 'deadline_exceeded', data: { budget: 'deadline' } },
    });
  });

  function recorded(replies: Parameters<typeof scriptedModel>[0]) {
    const model = scriptedModel(replies);
    return { model, requests: model.calls };
  }
});

describe('a map', () => {
  interface Mapped {
    readonly made: Flow<readonly number[], Json>;
    readonly calls: number[];
    most(): number;
  }

  function mapped(more: {
    readonly effect?: Effect;
    readonly concurrency?: number;
    readonly run?: (n: number, signal: AbortSignal) => unknown;
  }): Mapped {
    const { effect = 'pure', concurrency, run = (n) => n * 2 } = more;
    const calls: number[] = [];
    let running = 0;
    let most = 0;
    const scores = map('scores', {
      effect,
      ...(concurrency === undefined ? {} : { concurrency }),
      execute: async (n: number, { signal }) => {
        calls.push(n);
        running += 1;
        most = Math.max(most, running);
        try {
          return await run(n, signal);
        } finally {
          running -= 1;
        }
      },
    });
    const made = flow({ name: 'mapped', inputSchema: z.array(z.number()), entry: scores, exit: scores });
    return { made: made as unknown as Mapped['made'], calls, most: () => most };
  }

  const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index);

  it('gives the results in the order of the items, with no more at once than it says', async () => {
    const turn = (n: number): Promise<number> => new Promise((resolve) => setImmediate(() => resolve(n * 2)));
    const { made, calls, most } = mapped({ concurrency: 3, run: turn });
    const output = await made.run(placed([made]), upTo(20), { identity });
    expect(output).toEqual(upTo(20).map((n) => n * 2));
    expect(calls).toHaveLength(20);
    expect(most()).toBe(3);
  });

  it('of no items gives none', async () => {
    const { made, calls } = mapped({});
    expect(await made.run(placed([made]), [], { identity })).toEqual([]);
    expect(calls).toEqual([]);
  });

  it('the first error stops the others, and is the error of the flow', async () => {
    const stopped: number[] = [];
    const { made, calls } = mapped({
      concurrency: 2,
      run: async (n, signal) => {
        if (n === 1) throw new Error('One is bad.');
        await aborted(signal).catch((reason: unknown) => {
          stopped.push(n);
          throw reason;
        });
      },
    });
    const error = await failureOf(made.run(placed([made]), upTo(10), { identity }));
    expect(error).toMatchObject({ code: 'node_exception', flow: 'mapped', node: 'scores' });
    expect(error.message).toContain('One is bad.');
    expect(calls).toEqual([0, 1]);
    await until(() => stopped.length === 1);
  });

  it('its items count as hops', async () => {
    const { made: free } = mapped({});
    const scores = map('scores', { effect: 'pure', execute: (n: number) => n });
    const made = flow({
      name: 'few',
      inputSchema: z.array(z.number()),
      budget: { hops: 4 },
      entry: scores,
      exit: scores,
    });
    const runtime = placed([made, free]);
    expect(await made.run(runtime, [1, 2, 3], { identity })).toEqual([1, 2, 3]);
    const error = await failureOf(made.run(runtime, [1, 2, 3, 4], { identity: local('ana') }));
    expect(error).toMatchObject({ code: 'flow_budget_exceeded', data: { axis: 'hops' } });
  });

  it('takes 10,000 items, and refuses one more before any runs', { timeout: 120_000 }, async () => {
    const { made, calls } = mapped({ concurrency: 50, run: (n) => n });
    const runtime = placed([made]);
    const output = await made.run(runtime, upTo(MAX_ITEMS), { identity: local('ana') });
    expect(output).toEqual(upTo(MAX_ITEMS));
    expect(calls).toHaveLength(MAX_ITEMS);
    const error = await failureOf(made.run(runtime, upTo(MAX_ITEMS + 1), { identity: local('ana') }));
    expect(error).toMatchObject({ code: 'validation_failed', node: 'scores' });
    expect(calls).toHaveLength(MAX_ITEMS);
  });

  it('a router may follow it, and hand on the list', async () => {
    const scores = map('scores', { effect: 'pure', execute: (n: number) => n + 1 });
    const many = node('many', { effect: 'pure', execute: (list: readonly number[]) => `many: ${list.length}` });
    const few = node('few', { effect: 'pure', execute: (list: readonly number[]) => `few: ${list.join()}` });
    const size = predicateRouter<readonly number[]>({
      branches: [{ when: ({ length }) => length > 3, to: many }],
      default: few,
    });
    const made = flow({
      name: 'sized',
      inputSchema: z.array(z.number()),
      entry: scores,
      exit: [many, few],
      edges: [edge(scores, size.asNode('size'))],
    });
    const runtime = placed([made], { tools: [make('other', () => 1)] });
    expect(await made.run(runtime, [1, 2], { identity: local('ana') })).toBe('few: 2,3');
    expect(await made.run(runtime, [1, 2, 3, 4], { identity: local('ana') })).toBe('many: 4');
  });
});
