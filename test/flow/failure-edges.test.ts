/** Flows go on after a no: failure edges lead to a node, with the error or the rejection as its input. */
import { describe, expect, it } from 'vitest';
import { type Json, local } from '#core';
import { edge, type FlowFailure, flow, join, map, node } from '#flow';
import { flowFrom } from '#flow/document';
import { createRuntime } from '#runtime';
import { ToolFailure } from '#tools';
import { temporaryFile } from '../kit/files.ts';
import { failureOf, placed } from '../kit/flows.ts';
import { pausesOf } from '../kit/run-record.ts';
import { aborted, gate } from '../kit/waiting.ts';

const given = (value: Json): Json => value;
const pure = { effect: 'pure' } as const;
const fails =
  (code = 'no_stock', message = 'Nothing is left.') =>
  () => {
    throw new ToolFailure(message, { code, data: { item: 'lamp' } });
  };
const told = node('told', { ...pure, execute: (failure: FlowFailure): Json => ({ ...failure }) });
const who = () => ({ identity: local('ana') });

describe('a failure edge', () => {
  it('leads to a node with the error as input, and the flow has not failed', async () => {
    const stock = node('stock', { effect: 'once', execute: fails(), onError: told });
    const done = node('done', { ...pure, execute: given });
    const made = flow({
      name: 'order',
      inputSchema: {},
      entry: stock as never,
      exit: [done, told],
      edges: [edge(stock, done as never)],
    });
    const runtime = placed([made]);
    expect(await made.run(runtime, 1, who())).toEqual({
      node: 'stock',
      code: 'no_stock',
      message: 'Nothing is left.',
      data: { item: 'lamp' },
      attempts: 1,
    });
    const ok = node('stock', { ...pure, execute: () => 'a lamp', onError: told });
    const good = flow({
      name: 'good',
      inputSchema: {},
      entry: ok as never,
      exit: [done, told],
      edges: [edge(ok, done as never)],
    });
    expect(await good.run(placed([good]), 1, who())).toBe('a lamp');
  });

  it('of a rejection leads elsewhere than that of an error; without one for it the flow fails as before', async () => {
    const no = node('no', { ...pure, execute: ({ code }: FlowFailure) => `no: ${code}` });
    const broken = node('broken', { ...pure, execute: ({ code }: FlowFailure) => `broken: ${code}` });
    const pay = (edges: { onError?: typeof broken; onRejected?: typeof no }, execute: () => Json = () => 'paid') => {
      const act = node('pay', { effect: 'once', needsApproval: true, execute, ...edges });
      const exits = [act, ...Object.values(edges)];
      return flow({ name: 'pay', inputSchema: {}, entry: act as never, exit: exits as never });
    };
    const answered = async (made: ReturnType<typeof pay>, answer: 'approve' | 'reject') => {
      const run = await made.start(placed([made]), null as never, who());
      await pausesOf(run as never);
      await (run as unknown as { approve(): Promise<void>; reject(): Promise<void> })[answer]();
      const result = await (
        run as unknown as { result(): Promise<{ answer?: string; error?: { code: string } }> }
      ).result();
      return result.answer ?? result.error?.code;
    };
    const both = { onError: broken, onRejected: no };
    expect(await answered(pay(both), 'reject')).toBe('no: tool_rejected');
    expect(await answered(pay(both), 'approve')).toBe('paid');
    expect(await answered(pay(both, fails()), 'approve')).toBe('broken: no_stock');
    expect(await answered(pay({ onError: broken }), 'reject')).toBe('node_exception');
    expect(await answered(pay({ onRejected: no }, fails()), 'approve')).toBe('node_exception');
  });

  it('stops nothing beside it; what needs the node is passed over, and a join has what went on', async () => {
    const open = gate();
    const log: string[] = [];
    const slow = node('slow', {
      ...pure,
      execute: async () => {
        await open.opened;
        log.push('slow');
        return 'slow';
      },
    });
    const repaired = node('repaired', { ...pure, execute: (failure: FlowFailure) => `instead of ${failure.node}` });
    const quick = node('quick', {
      ...pure,
      execute: () => {
        log.push('quick');
        open.open();
        return fails()();
      },
      onError: repaired as never,
    });
    const middle = node('middle', { ...pure, execute: given });
    const start = node('start', { ...pure, execute: given });
    const both = join('both', { ...pure, of: [slow, middle], execute: (values) => ({ ...values }) });
    const made = flow({
      name: 'both',
      inputSchema: {},
      entry: start as never,
      exit: both as never,
      edges: [
        edge(start, slow as never),
        edge(start, quick as never),
        edge(quick, middle as never),
        edge(repaired, middle as never),
      ],
    });
    expect(await made.run(placed([made]), null as never, who())).toEqual({ slow: 'slow', middle: 'instead of quick' });
    expect(log).toEqual(['quick', 'slow']);
  });

  it('another node that fails without one fails the flow, and stops the rest', async () => {
    let stopped = false;
    const soft = node('soft', { ...pure, execute: fails('soft', 'Soft.'), onError: told });
    const waits = node('waits', {
      ...pure,
      execute: (_: Json, { signal }) =>
        aborted(signal).catch(() => {
          stopped = true;
        }),
    });
    const hard = node('hard', { ...pure, execute: fails('hard', 'Hard.') });
    const start = node('start', { ...pure, execute: given });
    const end = join('end', { ...pure, of: [waits, hard, soft], execute: () => null });
    const made = flow({
      name: 'mixed',
      inputSchema: {},
      entry: start as never,
      exit: [end, told] as never,
      edges: [soft, waits, hard].map((to) => edge(start, to as never)),
    });
    const error = await failureOf(made.run(placed([made]), null as never, who()));
    expect(error).toMatchObject({ code: 'node_exception', node: 'hard' });
    expect(stopped).toBe(true);
  });

  it('may lead back, as often as the hops allow', async () => {
    let tries = 0;
    const repair = node('repair', { ...pure, allowCycle: true, execute: ({ code }: FlowFailure) => ({ after: code }) });
    const flaky = node('flaky', {
      ...pure,
      allowCycle: true,
      execute: (input: Json) => {
        tries += 1;
        if (tries < 3) fails(`try_${tries}`)();
        return { tries, input };
      },
      onError: repair as never,
    });
    const parts = { inputSchema: {}, entry: flaky as never, exit: flaky, edges: [edge(repair, flaky as never)] };
    const made = flow({ name: 'again', ...parts, budget: { hops: 9 } });
    expect(await made.run(placed([made]), 'first' as never, who())).toEqual({
      tries: 3,
      input: { after: 'try_2' },
    });
    tries = -100;
    const short = flow({ name: 'short', ...parts, budget: { hops: 6 } });
    expect(await failureOf(short.run(placed([short]), null as never, who()))).toMatchObject({
      code: 'flow_budget_exceeded',
    });
  });

  it('of a map and of a flow inside is taken too, and of what a person says in a flow inside', async () => {
    const inner = node('inner', { effect: 'once', execute: fails() });
    const sub = flow({ name: 'sub', inputSchema: {}, entry: inner as never, exit: inner });
    for (const first of [
      sub.asNode('first', { onError: told }),
      map('first', { ...pure, execute: fails(), onError: told }),
    ]) {
      const made = flow({ name: 'outer', inputSchema: {}, entry: first as never, exit: [first, told] as never });
      expect(await made.run(placed([made]), [1] as never, who())).toMatchObject({
        node: 'first',
        message: expect.stringContaining('Nothing is left.'),
      });
    }
  });

  it('is gone on with by another process, and a node that ran is not run again', async () => {
    const journal = temporaryFile();
    const ran: string[] = [];
    const build = (hold: boolean) => {
      const handler = node('handler', {
        effect: 'once',
        ...(hold ? { needsApproval: true } : {}),
        execute: ({ code }: FlowFailure) => {
          ran.push('handler');
          return code;
        },
        needsApproval: true,
      });
      const first = node('first', {
        effect: 'once',
        execute: () => {
          ran.push('first');
          return fails()();
        },
        onError: handler as never,
      });
      return flow({ name: 'kept', inputSchema: {}, entry: first as never, exit: [first, handler] as never });
    };
    const one = build(true);
    const first = createRuntime({ agents: [one], journal });
    const run = await one.start(first, null as never, who());
    await pausesOf(run as never);
    await first.close();
    const two = build(true);
    const second = createRuntime({ agents: [two], journal });
    const again = second.run((run as unknown as { id: string }).id);
    await again.approve();
    expect(await again.result()).toMatchObject({ status: 'finished', answer: 'no_stock' });
    expect(ran).toEqual(['first', 'handler']);
    expect((await again.replay()).divergence).toBeUndefined();
    await second.close();
  });
});

describe('what failure edges look like', () => {
  const parts = () => {
    const act = node('act', { ...pure, execute: given, onError: told });
    return { name: 'shown', inputSchema: {}, entry: act as never, exit: [act, told] as never };
  };

  it('as data and as a picture', () => {
    const made = flow(parts());
    expect(made.topology().edges).toEqual([{ from: 'act', to: 'told', back: false, on: 'error' }]);
    expect(made.mermaid()).toContain('n0 -- error --> n1');
  });

  it('in a document, also where they lead to a node that leads back', async () => {
    const text = `
name: shop
inputSchema: {}
entry: buy
exit: [buy, sorry]
budget: { hops: 20 }
nodes:
  buy: { execute: buy, effect: pure, onError: restock, onRejected: sorry, allowCycle: true }
  restock: { execute: restock, effect: pure, allowCycle: true }
  sorry: { execute: sorry, effect: pure }
edges:
  - [restock, buy]
`;
    let left = 0;
    const functions = {
      buy: () => (left > 0 ? 'bought' : fails()()),
      restock: ({ code }: FlowFailure) => {
        left += 1;
        return code;
      },
      sorry: () => 'sorry',
    };
    const made = flowFrom(text, { functions });
    expect(made.topology().edges).toEqual([
      { from: 'buy', to: 'restock', back: false, on: 'error' },
      { from: 'buy', to: 'sorry', back: false, on: 'rejected' },
      { from: 'restock', to: 'buy', back: false },
    ]);
    expect(await made.run(placed([made]), null as never, who())).toBe('bought');
    const bad = text.replace('onRejected: sorry', 'onRejected: sory').replace('onError: restock', 'onErorr: restock');
    expect(() => flowFrom(bad, { functions })).toThrow(/no node "sory"/);
    expect(() => flowFrom(bad, { functions })).toThrow(/no key "onErorr" here. Did you mean onError\?/);
  });
});

describe('failure edges that are refused', () => {
  const codesOf = (build: () => unknown): string[] => {
    try {
      build();
    } catch (error) {
      return (error as { data: { faults: { code: string }[] } }).data.faults.map(({ code }) => code);
    }
    return [];
  };
  const plain = (name: string, more = {}) => node(name, { ...pure, execute: given, ...more });

  it('lead to no node, to the node itself, to a join, or to two nodes at once', () => {
    const act = plain('act');
    const to = (target: unknown, from: unknown = act, on = 'error') => ({ from, to: target, on }) as never;
    const other = plain('other');
    const joined = join('joined', { ...pure, of: [act], execute: () => null });
    const build =
      (exit: unknown, ...edges: never[]) =>
      () =>
        flow({ name: 'bad', inputSchema: {}, entry: act as never, exit: exit as never, edges });
    expect(
      codesOf(() =>
        flow({ name: 'bad', inputSchema: {}, entry: plain('a', { onError: 'b' }) as never, exit: act, edges: [] }),
      ),
    ).toContain('not_a_node');
    expect(codesOf(build(act, to(act)))).toContain('failure_to_itself');
    expect(codesOf(build(joined, to(joined)))).toContain('edge_into_join');
    expect(codesOf(build([act, told, other], to(told), to(other)))).toContain('failures_differ');
  });

  it('lead round without hops, or through nodes that allow no cycle', () => {
    const repair = plain('repair', { allowCycle: true });
    const act = plain('act', { allowCycle: true, onError: repair });
    const round = { name: 'bad', inputSchema: {}, entry: act as never, exit: act, edges: [edge(repair, act as never)] };
    expect(codesOf(() => flow(round))).toEqual(['cycle_without_hops']);
    const strict = plain('act', { onError: repair });
    expect(
      codesOf(() =>
        flow({
          ...round,
          entry: strict as never,
          exit: strict,
          edges: [edge(repair, strict as never)],
          budget: { hops: 3 },
        }),
      ),
    ).toEqual(['cycle']);
  });

  it('come to no exit, or leave the exit to run all the same', () => {
    const act = plain('act', { onError: told });
    expect(codesOf(() => flow({ name: 'bad', inputSchema: {}, entry: act as never, exit: act }))).toEqual([
      'no_exit_reached',
    ]);
    const start = plain('start');
    const side = plain('side', { onError: told });
    const exit = plain('exit');
    const beside = {
      name: 'bad',
      inputSchema: {},
      entry: start as never,
      edges: [edge(start, side as never), edge(start, exit as never)],
    };
    expect(codesOf(() => flow({ ...beside, exit: [exit, told] as never }))).toContain('failure_beside_exit');
  });

  it('of two that fail together lead to nodes that meet', () => {
    const start = plain('start');
    const exit = plain('exit');
    const [one, two] = [plain('one'), plain('two')];
    const a = plain('a', { onError: one });
    const b = plain('b', { onError: two });
    const all = join('all', { ...pure, of: [a, b], execute: () => null });
    const edges = [
      edge(start, a as never),
      edge(start, b as never),
      edge(one, exit as never),
      edge(two, exit as never),
    ];
    const parts = { name: 'bad', inputSchema: {}, entry: start as never, exit: [all, exit] as never };
    expect(codesOf(() => flow({ ...parts, edges }))).toContain('ways_in_meet');
  });
});
