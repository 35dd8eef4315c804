import { describe, expect, it, vi } from 'vitest';
import { z } from 'zod';
import { edge, flow, type GraphNode, join, map, node, predicateRouter, select, unionRouter } from '#flow';
import { LoginRequired, ToolFailure } from '#pilotage';
import type { Tool, ToolContext } from '#tools';
import { drawn, faultsOf } from './drawn.ts';
import { thrownBy } from './thrown.ts';

const any = z.any();
const plain = (name: string, options: { allowCycle?: boolean } = {}) =>
  node(name, { inputSchema: any, effect: 'pure', execute: (given) => given, ...options });
const toFirst = (...targets: GraphNode[]) =>
  predicateRouter({ branches: targets.map((to) => ({ when: () => true, to })) });

describe('RT-26 a flow is checked when it is built', () => {
  const a = plain('a');
  const parts = { name: 'f', inputSchema: any, entry: a, exit: a };

  it('and has no price and no bound in another unit, which would be none', () => {
    expect(faultsOf(() => flow({ ...parts, budget: { costMicroUsd: 5 } as never }))).toMatchObject([
      { code: 'bad_budget', message: expect.stringContaining('costUsd is in US dollars') },
    ]);
    const priced = { effect: 'pure', execute: () => 1, costMicroUsd: 5 } as never;
    expect(() => node('n', priced)).toThrow(/The node n has no option "costMicroUsd".*costUsd/);
  });

  it('and may be one node', () => {
    const made = flow(parts);
    expect(made.topology()).toMatchObject({ entry: 'a', exits: ['a'], edges: [] });
  });

  it.each([
    '',
    '1a',
    '_a',
    'a b',
    'a/b',
    'a:b',
    'a#2',
    'é',
    'a'.repeat(65),
    undefined,
  ])('refuses the name %j', (name) => {
    const [ofFlow] = faultsOf(() => flow({ ...parts, name: name as string }));
    expect(ofFlow).toMatchObject({ code: 'bad_name', message: expect.stringContaining('The flow') });
    const odd = plain(name as string);
    const [ofNode] = faultsOf(() => flow({ ...parts, entry: odd, exit: odd }));
    expect(ofNode).toMatchObject({ code: 'bad_name', message: expect.stringContaining('The node') });
  });

  it('refuses a flow without an entry, and one without an exit', () => {
    expect(faultsOf(() => flow({ ...parts, entry: undefined as never }))).toEqual([
      { code: 'not_a_node', message: 'The entry is undefined, which is not a node. Give the node itself.', nodes: [] },
    ]);
    expect(faultsOf(() => flow({ ...parts, exit: [] }))).toEqual([
      { code: 'no_exit', message: 'The flow has no exit. Name the node that gives its output.', nodes: [] },
    ]);
    expect(faultsOf(() => flow({ ...parts, exit: 'a' as never }))).toMatchObject([
      { code: 'not_a_node', message: 'An exit is the text "a", which is not a node. Give the node itself.' },
    ]);
  });

  it('RT-07 refuses edges, targets and parents that are no nodes, naming what they stand by', () => {
    const lost = undefined as never;
    const router = toFirst(a, lost).asNode('r');
    const both = join('j', { of: [a, lost], execute: () => 1 });
    const edges = [edge(a, lost), edge(lost, a), { from: a, to: 'b' as never }, edge(a, router)];
    const messages = faultsOf(() => flow({ ...parts, exit: both, edges })).map(({ message }) => message);
    expect(messages.slice(0, 5)).toEqual(
      [
        'The end of the edge 0 from a is undefined, which is not a node. Give the node itself.',
        'The beginning of the edge 1 to a is undefined, which is not a node. Give the node itself.',
        'The end of the edge 2 from a is the text "b", which is not a node. Give the node itself.',
        'A parent of the join j is undefined, which is not a node. Give the node itself.',
        'A target of the router r is undefined, which is not a node. Give the node itself.',
      ].map((message) => expect.stringContaining(message)),
    );
  });

  it('refuses nodes without a function, of each kind', () => {
    const nodes = [
      node('n', { inputSchema: any } as never),
      node('retried', { inputSchema: any, effect: 'read', policy: { retries: 1 } } as never),
      map('m', {} as never),
      predicateRouter({ branches: [{ to: a } as never] }).asNode('p'),
      unionRouter({ branches: { a } } as never).asNode('u'),
    ];
    const found = nodes.map((entry) => faultsOf(() => flow({ ...parts, entry })));
    expect(found.map((faults) => faults[0])).toEqual([
      { code: 'no_function', message: 'The node n has no function to run.', nodes: ['n'] },
      { code: 'no_function', message: 'The node retried has no function to run.', nodes: ['retried'] },
      { code: 'no_function', message: 'The map m has no function to run.', nodes: ['m'] },
      { code: 'no_function', message: 'The router p has no function to run.', nodes: ['p'] },
      { code: 'no_function', message: 'The router u has no function to run.', nodes: ['u'] },
    ]);
  });

  it.each(['hops', 'deadlineMs', 'costUsd', 'tokens'])('refuses a negative budget of %s', (axis) => {
    for (const amount of [-1, Number.NaN]) {
      expect(faultsOf(() => flow({ ...parts, budget: { [axis]: amount } }))).toEqual([
        {
          code: 'bad_budget',
          message: `budget.${axis} is ${amount}; give ${axis === 'costUsd' ? 'US dollars, ' : ''}a number from 0 up, or leave it out.`,
          nodes: [],
        },
      ]);
    }
    expect(faultsOf(() => flow({ ...parts, budget: { [axis]: 0 } }))).toEqual([]);
  });

  it('refuses flows that are nested deeper than tasks go', () => {
    let inner = plain('inner');
    for (let level = 1; level <= 4; level += 1) {
      inner = flow({ ...parts, name: `f${level}`, entry: inner, exit: inner }).asNode() as typeof inner;
    }
    const deepest = flow({ ...parts, entry: inner, exit: inner }).asNode() as typeof inner;
    expect(faultsOf(() => flow({ ...parts, name: 'outer', entry: deepest, exit: deepest }))).toMatchObject([
      {
        code: 'too_deep',
        message: expect.stringContaining('has 5 levels of flows, maps and races in it'),
        nodes: [deepest.name],
      },
    ]);
  });

  it.each([0, -1, 51, 1.5, Number.NaN])('refuses the concurrency %s of a map', (concurrency) => {
    const entry = map('m', { execute: (given) => given, concurrency });
    expect(faultsOf(() => flow({ ...parts, entry, exit: entry }))).toEqual([
      {
        code: 'bad_concurrency',
        message: `The map m has the concurrency ${concurrency}; give a whole number from 1 to 50.`,
        nodes: ['m'],
      },
    ]);
  });

  it('refuses nodes and exits to which no edge leads', () => {
    const [b, c] = [plain('b'), plain('c')];
    expect(faultsOf(() => flow({ ...parts, exit: [a, b], edges: [edge(c, a)] }))).toMatchObject([
      {
        code: 'exit_unreachable',
        message: 'The exit b cannot be reached from the entry a. Connect it, or take it away.',
        nodes: ['b'],
      },
      { code: 'unreachable', message: expect.stringContaining('The node c cannot be reached'), nodes: ['c'] },
    ]);
  });

  it('refuses routers as exits and as parents, and joins that are led to otherwise', () => {
    const [b, c] = [plain('b'), plain('c')];
    const router = toFirst(b, c).asNode('r');
    const both = join('both', { of: [b, router], execute: () => 1 });
    const edges = [edge(a, router), { from: a, to: both }, edge(c, both as never)];
    const found = faultsOf(() => flow({ ...parts, exit: [router, both], edges }));
    expect(found.map(({ code, nodes }) => [code, ...nodes])).toEqual([
      ['router_as_exit', 'r'],
      ['router_as_parent', 'both', 'r'],
      ['edge_into_join', 'a', 'both'],
      ['edge_into_join', 'c', 'both'],
    ]);
    const alone = join('alone', { of: [], execute: () => 1 });
    expect(faultsOf(() => flow({ ...parts, entry: alone as never, exit: alone })).map(({ code }) => code)).toEqual([
      'no_parents',
      'join_as_entry',
    ]);
    const twice = join('twice', { of: [a, a], execute: () => 1 });
    expect(faultsOf(() => flow({ ...parts, exit: twice }))).toMatchObject([{ code: 'no_parents', nodes: ['twice'] }]);
    const empty = toFirst().asNode('empty');
    expect(faultsOf(() => flow({ ...parts, entry: empty, exit: a, edges: [] })).map(({ code }) => code)).toContain(
      'no_targets',
    );
  });

  it('tells everything that is wrong at once, the first twenty in full', () => {
    const error = thrownBy(
      () => flow({ ...parts, name: 'a b', budget: { hops: -1 }, exit: [a, plain('b')] }),
      'flow_invalid',
      { message: /^The flow without a proper name cannot be built\. .*budget\.hops is -1.*The exit b / },
    );
    expect(error.data).toMatchObject({
      flow: 'without a proper name',
      faults: [{ code: 'bad_name' }, { code: 'bad_budget' }, { code: 'exit_unreachable' }],
    });
    const many = Array.from({ length: 25 }, (_, index) => plain(`x${index}`));
    const { message } = thrownBy(() => flow({ ...parts, exit: [a, ...many] }), 'flow_invalid');
    expect(message).toMatch(/The exit x19 .*And 5 more\.$/);
  });
});

describe('RT-09 construction', () => {
  it('refuses two nodes of one name, and takes one node twice', () => {
    const a = plain('a');
    const [b, other] = [plain('b'), plain('b')];
    const parts = { name: 'f', inputSchema: any, entry: a };
    expect(faultsOf(() => flow({ ...parts, exit: b, edges: [edge(a, b), edge(a, other)] }))).toMatchObject([
      { code: 'duplicate_name', message: 'Two nodes are named b. Give each a name of its own.', nodes: ['b'] },
    ]);
    expect(flow({ ...parts, exit: b, edges: [edge(a, b), edge(a, b)] }).topology().edges).toEqual([
      { from: 'a', to: 'b', back: false },
    ]);
  });

  it('refuses a cycle, with its path', () => {
    const [a, b] = [plain('A'), plain('B')];
    const router = toFirst(a, b).asNode('R');
    const found = faultsOf(() => flow({ name: 'f', inputSchema: any, entry: a, exit: b, edges: [edge(a, router)] }));
    expect(found).toMatchObject([
      {
        code: 'cycle',
        message: 'There is a cycle: A -> R -> A. Give allowCycle: true to A, R, or take an edge away.',
        nodes: ['A', 'R'],
      },
      { code: 'cycle_without_hops' },
    ]);
  });

  it('refuses it when one of its nodes does not allow it, and not when all do', () => {
    const build = (allowed: readonly string[]) => {
      const [a, b, end] = ['A', 'B', 'end'].map((name) => plain(name, { allowCycle: allowed.includes(name) }));
      if (a === undefined || b === undefined || end === undefined) throw new Error('three nodes');
      const router = toFirst(a, end).asNode('R', { allowCycle: allowed.includes('R') });
      const edges = [edge(a, b), edge(b, router)];
      return flow({ name: 'f', inputSchema: any, entry: a, exit: end, edges, budget: { hops: 9 } });
    };
    expect(faultsOf(() => build(['A', 'R']))).toMatchObject([
      { code: 'cycle', message: expect.stringContaining('B -> R -> A -> B. Give allowCycle: true to B,') },
    ]);
    expect(
      build(['A', 'B', 'R'])
        .topology()
        .edges.filter(({ back }) => back),
    ).toEqual([{ from: 'R', to: 'A', back: true }]);
  });

  it('refuses a node that leads to itself, and a cycle without a router', () => {
    const drawing = { exits: ['b'], allowCycle: true, hops: 5 };
    const own = faultsOf(() =>
      drawn({ ...drawing, nodes: { a: { kind: 'node', to: ['a', 'b'] }, b: { kind: 'node' } } }),
    );
    expect(own).toMatchObject([
      { code: 'cycle_without_router', message: expect.stringContaining('No router is on the cycle a -> a,') },
    ]);
    const two = faultsOf(() =>
      drawn({ ...drawing, nodes: { a: { kind: 'node', to: ['b'] }, b: { kind: 'node', to: ['a'] } } }),
    );
    expect(two).toMatchObject([{ code: 'cycle_without_router', nodes: ['a', 'b'] }]);
  });

  it('cuts a cycle behind its last router', () => {
    const made = drawn({
      nodes: {
        draft: { kind: 'node', to: ['check'] },
        check: { kind: 'router', to: ['publish', 'revise'] },
        publish: { kind: 'node' },
        revise: { kind: 'node', to: ['draft'] },
      },
      exits: ['publish'],
      allowCycle: true,
      hops: 20,
    });
    expect(made.topology().edges.filter(({ back }) => back)).toEqual([{ from: 'check', to: 'revise', back: true }]);
  });

  it('cuts a loop where it is decided to go round again, and one inside of it at its own router', () => {
    const made = drawn({
      nodes: {
        body: { kind: 'node', to: ['again'] },
        again: { kind: 'router', to: ['done', 'fork'] },
        fork: { kind: 'node', to: ['try', 'beside'] },
        try: { kind: 'node', to: ['enough'] },
        enough: { kind: 'router', to: ['tried', 'try'] },
        tried: { kind: 'node' },
        beside: { kind: 'node' },
        both: { kind: 'join', of: ['tried', 'beside'], to: ['body'] },
        done: { kind: 'node' },
      },
      exits: ['done'],
      allowCycle: true,
      hops: 99,
    });
    expect(made.topology().edges.filter(({ back }) => back)).toEqual([
      { from: 'again', to: 'fork', back: true },
      { from: 'enough', to: 'try', back: true },
    ]);
  });
});

describe('what the builders make', () => {
  it('has the defaults of a node: 30 s, no retries, once', () => {
    const made = node('a', { inputSchema: any, execute: () => 1 });
    expect(made).toMatchObject({ name: 'a', kind: 'node', effect: 'once', allowCycle: false });
    expect(made.tool).toMatchObject({ name: 'a', effect: 'once', retries: 0, description: 'The node a of a flow.' });
    expect(made.tool).not.toHaveProperty('timeoutMs');
  });

  it('hands policy, schemas, approval, price and reconcile to the tool', () => {
    const [when, reconcile] = [() => true, () => ({ status: 'unknown' as const })];
    const policy = { timeoutMs: 5, retries: 2, backoff: { baseMs: 7 } };
    const options = {
      inputSchema: any,
      outputSchema: z.number(),
      effect: 'keyed' as const,
      description: 'd',
      needsApproval: { when },
    };
    const made = node('a', { ...options, policy, costUsd: 9, reconcile, execute: () => 1 });
    expect(made.tool).toMatchObject({ ...options, ...policy, costUsd: 9, reconcile });
  });

  it('RT-17 tries again what does not say that it is of no use', async () => {
    const thrown: unknown[] = [];
    const made = node('a', {
      inputSchema: any,
      effect: 'read',
      policy: { retries: 2 },
      execute: (sync: boolean) => {
        if (sync) throw thrown[0];
        return Promise.reject(thrown[0]);
      },
    });
    const run = (made.tool as Tool).execute as (args: unknown, context: ToolContext) => unknown;
    const failure = async (error: unknown, sync: boolean): Promise<unknown> => {
      thrown[0] = error;
      try {
        await run(sync, {} as ToolContext);
      } catch (again) {
        return again;
      }
      throw new Error('nothing was thrown');
    };
    const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET', data: { port: 1 } });
    const silent = [reset, new Error('plain'), 'text', null, { message: 'odd' }];
    for (const error of silent) {
      for (const sync of [true, false])
        expect(await failure(error, sync)).toMatchObject({ retryable: true, cause: error });
    }
    expect(await failure(undefined, true)).toMatchObject({ retryable: true });
    expect(await failure(reset, true)).toMatchObject({ code: 'ECONNRESET', message: 'reset', data: { port: 1 } });
    const speaking = [
      new ToolFailure('no', { retryable: false }),
      new ToolFailure('perhaps', { retryable: true }),
      Object.assign(new Error('not found'), { status: 404 }),
      Object.assign(new Error('busy'), { statusCode: 503 }),
      new LoginRequired('https://login.example'),
    ];
    for (const error of speaking) {
      for (const sync of [true, false]) expect(await failure(error, sync)).toBe(error);
    }
  });

  it('RT-22 makes joins of their parents, and maps of a planner with the tool of an item', () => {
    const [a, b] = [plain('a'), plain('b')];
    const both = join('both', { of: [a, b], execute: (input) => [input] });
    expect(both).toMatchObject({ kind: 'join', parents: [a, b], effect: 'once' });
    const start = plain('start');
    const scores = map('scores', { itemSchema: any, effect: 'read', execute: () => 1 });
    const edges = [edge(start, a), edge(start, b), edge(both, scores)];
    const made = flow({ name: 'f', inputSchema: any, entry: start, exit: scores, edges });
    expect(made.tools.map(({ name }) => name)).toEqual(['start', 'a', 'b', 'both', 'scores']);
    expect(made.tools.at(-1)).toMatchObject({
      name: 'scores',
      effect: 'read',
      inputSchema: { type: 'array', maxItems: 10_000 },
      agent: { planner: { name: 'map:f/scores' }, tools: [{ name: 'scores.item', effect: 'read', retries: 0 }] },
    });
  });

  it('keeps maps of one name in two flows apart', () => {
    const names = ['f', 'g'].map((name) => {
      const scores = map('scores', { execute: () => 1 });
      const [tool] = flow({ name, inputSchema: any, entry: scores, exit: scores }).tools;
      return tool !== undefined && 'agent' in tool ? tool.agent.planner.name : undefined;
    });
    expect(names).toEqual(['map:f/scores', 'map:g/scores']);
  });

  it('RT-27 makes a tool of a flow: its name and schemas, the strongest effect, and the flow to carry it out', () => {
    const input = z.object({ n: z.number() });
    const output = z.number();
    const build = (...effects: ('pure' | 'read' | 'keyed' | 'once')[]) => {
      const nodes = effects.map((effect, index) => node(`n${index}`, { inputSchema: any, effect, execute: () => 1 }));
      const edges = nodes.slice(1).map((to, index) => edge(nodes[index] as GraphNode, to));
      const [entry, exit] = [nodes[0], nodes.at(-1)];
      if (entry === undefined || exit === undefined) throw new Error('a node is needed');
      return flow({ name: 'sum', inputSchema: input, outputSchema: output, entry, exit, edges });
    };
    const made = build('pure', 'read');
    const tool = made.asTool();
    expect(tool).toMatchObject({
      name: 'sum',
      description: 'The flow sum.',
      inputSchema: input,
      outputSchema: output,
      effect: 'read',
    });
    expect(tool.agent).toBe(made);
    expect(tool).not.toHaveProperty('run');
    expect(made.planner.name).toBe('flow:sum');
    expect(made.asTool({ name: 'add', scopes: ['s'], needsApproval: true })).toMatchObject({
      name: 'add',
      scopes: ['s'],
      needsApproval: true,
      effect: 'read',
    });
    expect(build('pure', 'pure').asTool().effect).toBe('pure');
    expect(build('keyed', 'read').asTool().effect).toBe('keyed');
    expect(build('read', 'once', 'keyed').asTool().effect).toBe('once');
    expect(made.asNode()).toMatchObject({ name: 'sum', kind: 'flow', flow: 'sum', effect: 'read', allowCycle: false });
    expect(made.asNode('part', { allowCycle: true })).toMatchObject({
      name: 'part',
      flow: 'sum',
      allowCycle: true,
      tool: { name: 'part' },
    });
  });

  it('bounds a run by hops, and leaves it steps for as many rounds', () => {
    const loop = (hops: number) =>
      drawn({
        nodes: { a: { kind: 'node', to: ['r'] }, r: { kind: 'router', to: ['a', 'end'] }, end: { kind: 'node' } },
        exits: ['end'],
        allowCycle: true,
        hops,
      }).limits;
    expect(loop(9)).toEqual({ calls: 9 });
    expect(loop(1_000)).toEqual({ calls: 1_000, steps: 4_064 });
    const a = plain('a');
    const budget = { hops: 1_000, deadlineMs: 5, costUsd: 6, tokens: 7 };
    const straight = flow({ name: 'f', inputSchema: any, entry: a, exit: a, budget });
    expect(straight.limits).toEqual({ calls: 1_000, deadlineMs: 5, costUsd: 6, tokens: 7 });
  });

  it('runs no function of anyone while a flow is built', () => {
    const run = vi.fn(() => true);
    const [a, b] = [node('a', { inputSchema: any, execute: run }), node('b', { inputSchema: any, execute: run })];
    const router = predicateRouter({ branches: [{ when: run, to: b }] }).asNode('r');
    flow({ name: 'f', inputSchema: any, entry: a, exit: b, edges: [edge(a, router)] });
    expect(run).not.toHaveBeenCalled();
    expect(select(router, 1)).toBe('b');
  });
});
