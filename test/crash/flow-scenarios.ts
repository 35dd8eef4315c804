/** Flows, to be cut in two by a crash at any moment of any of their nodes. */
import { branchesOf } from '#core';
import { edge, type Flow, flow, join, map, node, predicateRouter, race, unionRouter } from '#flow';
import type { Control, Json } from '#pilotage';
import type { Entry, RunState } from '#pilotage/state';
import type { Effect } from '#pilotage/tools';
import type { CrashScenario, CrashWorld } from '#testing';
import type { Reconciled, ToolContext } from '#tools';
import { call, endless, oneOfEach, ordered, outcomes } from './scenarios.ts';

/** What a node does: its thing in the world, once. A `once` node that was cut off looks there whether it did. */
function does<Args, Out extends Json>(world: CrashWorld, effect: Effect, give: (args: Args) => Out) {
  const execute = async (args: Args, context: ToolContext): Promise<Out> => {
    await world.effect(context);
    return give(args);
  };
  const reconcile = (args: Args, context: ToolContext): Reconciled =>
    world.count(context) > 0 ? { status: 'done', value: give(args) } : { status: 'not_done' };
  return effect === 'once' ? { effect, execute, reconcile } : { effect, execute };
}

const nowhere: CrashWorld = { effect: async () => {}, count: () => 0 };

/** A scenario whose run is a run of the flow. */
function ofFlow(
  made: (world: CrashWorld) => Pick<Flow, 'planner' | 'tools'>,
  scenario: Omit<CrashScenario, 'planner' | 'tools' | 'query'>,
): CrashScenario {
  return { ...scenario, query: 'go', planner: made(nowhere).planner, tools: (world) => made(world).tools };
}

/** A sentence for each tool that did not come to a value as often, in the run and all its tasks together. */
function otherValues(tree: readonly RunState[], expected: Readonly<Record<string, number>>): string[] {
  const values = new Map<string, number>();
  for (const { decision, calls } of tree.flatMap(({ steps }) => steps)) {
    for (const [index, { tool }] of branchesOf(decision).entries()) {
      if (calls[index]?.outcome.kind === 'value') values.set(tool, (values.get(tool) ?? 0) + 1);
    }
  }
  const tools = [...new Set([...values.keys(), ...Object.keys(expected)])];
  return tools.flatMap((tool) => {
    const [count, wanted] = [values.get(tool) ?? 0, expected[tool] ?? 0];
    return count === wanted ? [] : [`${tool} came to a value ${count} times, not ${wanted}.`];
  });
}

function otherEnd({ ending }: RunState, expected: string): string[] {
  const end = ending?.kind === 'finished' ? ending.reason : ending?.error.code;
  return end === expected ? [] : [`The flow ended with ${end}, not ${expected}.`];
}

interface Order {
  readonly id: string;
  readonly kind: string;
  readonly items: readonly string[];
}
const ORDER = { id: 'o1', kind: 'order', items: ['tea', 'milk', 'cups'] };
const asOrder = (order: Order) => ({ id: order.id, kind: order.kind, items: [...order.items] });

function creditOf(world: CrashWorld) {
  const look = node(
    'look',
    does(world, 'read', (order: Order) => ({ of: order.id, limit: 100 })),
  );
  const reserve = node(
    'reserve',
    does(world, 'keyed', (seen: { of: string; limit: number }) => ({ ...seen, held: 40 })),
  );
  const confirm = node(
    'confirm',
    does(world, 'once', (held: { held: number }) => ({ confirmed: held.held })),
  );
  const edges = [edge(look, reserve), edge(reserve, confirm)];
  return flow({ name: 'credit', inputSchema: {}, entry: look, exit: confirm, edges });
}

/** A router, a map, a subflow and an approval beside each other, a join, and nodes of every effect. */
function orderOf(world: CrashWorld) {
  const read = node('read', does(world, 'read', asOrder));
  const refuse = node(
    'refuse',
    does(world, 'keyed', (order: Order) => ({ refused: order.id })),
  );
  const accept = node('accept', does(world, 'keyed', asOrder));
  const byKind = unionRouter({ select: (order: Order) => order.kind, branches: { order: accept }, default: refuse });
  const items = node(
    'items',
    does(world, 'pure', (order: Order) => [...order.items]),
  );
  const prices = map('prices', { concurrency: 2, ...does(world, 'keyed', (item: string) => item.length) });
  const pay = node('pay', { needsApproval: true, ...does(world, 'once', (order: Order) => ({ paid: order.id })) });
  const credit = creditOf(world).asNode('credit');
  const total = join('total', {
    of: [prices, credit, pay],
    effect: 'pure',
    execute: ({ prices, credit, pay }) => ({ prices, ...credit, ...pay }),
  });
  const send = node(
    'send',
    does(world, 'once', (parts: { prices: number[] }) => ({ sent: parts.prices })),
  );
  return flow({
    name: 'order',
    inputSchema: {},
    entry: read,
    exit: [send, refuse],
    edges: [
      edge(read, byKind.asNode('by_kind')),
      edge(accept, items),
      edge(items, prices),
      edge(accept, credit as never),
      edge(accept, pay),
      edge(total, send),
    ],
  });
}

const everything = ofFlow(orderOf, {
  name: 'a flow with a router, a map, a subflow, an approval and a join',
  args: ORDER,
  answer: (run, { token }) => run.approve(token),
  check: (state, entries, tree) => [
    ...otherEnd(state, 'goal'),
    ...otherValues(tree, {
      ...{ read: 1, by_kind: 1, accept: 1, items: 1, prices: 1, 'prices.item': 3, _finish: 1, credit: 1, pay: 1 },
      ...{ look: 1, reserve: 1, confirm: 1, total: 1, send: 1 },
    }),
    ...(tree.length === 3 && state.steps.length === 1 ? [] : [`${tree.length} runs, ${state.steps.length} steps.`]),
    ...(entries.filter(({ kind }) => kind === 'spawned').length === 2 ? [] : ['A map or a subflow began anew.']),
  ],
});

/** Goes round until its number is three. */
function loopOf(world: CrashWorld, hops: number) {
  const draft = node('draft', { allowCycle: true, ...does(world, 'keyed', (n: number) => n + 1) });
  const review = node('review', { allowCycle: true, ...does(world, 'once', (n: number) => n) });
  const done = node(
    'done',
    does(world, 'once', (n: number) => ({ done: n })),
  );
  const enough = predicateRouter<number>({ branches: [{ when: (n) => n < 3, to: draft }], default: done });
  return flow({
    name: 'loop',
    inputSchema: {},
    budget: { hops },
    entry: draft,
    exit: done,
    edges: [edge(draft, review), edge(review, enough.asNode('enough', { allowCycle: true }))],
  });
}

const loops = (
  name: string,
  hops: number,
  payload: string,
  values: Readonly<Record<string, number>>,
): CrashScenario => ({
  name,
  query: 'go',
  tools: (world) => [...oneOfEach(world), loopOf(world, hops).asTool()],
  planner: ordered([call('keyed', { n: 0 }), call('loop', 0)], outcomes),
  check: (state, _, tree) => [
    ...otherEnd(state, 'goal'),
    ...(JSON.stringify(state.ending).includes(payload) ? [] : [`The loop came to ${JSON.stringify(state.ending)}.`]),
    ...otherValues(tree, values),
  ],
});
const loop = loops('a flow that goes round three times, with just enough hops', 10, '{"done":3}', {
  ...{ keyed: 1, loop: 1, draft: 3, review: 3, enough: 3, done: 1 },
});
const shortLoop = loops('a flow that goes round until it has no hops left', 8, 'flow_budget_exceeded', {
  ...{ keyed: 1, draft: 3, review: 3, enough: 2 },
});

/** A flow as a tool: in it a subflow, in that a map whose items happen once, and an approval. */
function deliverOf(world: CrashWorld) {
  const prepare = node(
    'prepare',
    does(world, 'read', (order: Order) => [...order.items]),
  );
  const ship = map('ship', { concurrency: 2, ...does(world, 'once', (item: string) => `shipped ${item}`) });
  const inner = flow({ name: 'parcels', inputSchema: {}, entry: prepare, exit: ship, edges: [edge(prepare, ship)] });
  const parcels = inner.asNode('parcels');
  const sign = node('sign', { needsApproval: true, ...does(world, 'once', (shipped: Json) => ({ signed: shipped })) });
  const begin = node('begin', does(world, 'keyed', asOrder));
  const edges = [edge(begin, parcels as never), edge(parcels, sign as never)];
  return flow({ name: 'deliver', inputSchema: {}, entry: begin, exit: sign, edges });
}

const asTool: CrashScenario = {
  name: 'a flow as a tool, alone and beside others, with a map in a subflow in it',
  query: 'go',
  tools: (world) => [...oneOfEach(world), deliverOf(world).asTool()],
  planner: ordered(
    [
      call('deliver', { ...ORDER, items: ['tea'] }),
      {
        kind: 'call_parallel',
        branches: [
          { tool: 'deliver', args: ORDER },
          { tool: 'keyed', args: { n: 1 } },
        ],
      },
    ],
    outcomes,
  ),
  answer: (run, { token }) => run.approve(token),
  check: (state, _, tree) => [
    ...otherEnd(state, 'goal'),
    ...otherValues(tree, {
      ...{ deliver: 2, keyed: 1, begin: 2, parcels: 2, prepare: 2, ship: 2, 'ship.item': 4, _finish: 2, sign: 2 },
    }),
    ...(tree.length === 7 ? [] : [`There are ${tree.length} runs.`]),
  ],
};

/** A node that fails beside items that never end. */
function failingOf(world: CrashWorld) {
  const begin = node(
    'begin',
    does(world, 'read', () => ['a', 'b', 'c']),
  );
  const wait = map('wait', { effect: 'keyed', concurrency: 2, execute: endless(world) as () => Promise<string> });
  const fail = node('fail', {
    effect: 'keyed',
    execute: async (_: Json, context): Promise<Json> => {
      await world.effect(context);
      throw new Error('No.');
    },
  });
  const both = join('both', { of: [wait, fail], ...does(world, 'once', () => null) });
  return flow({
    name: 'failing',
    inputSchema: {},
    entry: begin,
    exit: both,
    edges: [edge(begin, wait), edge(begin, fail)],
  });
}

const failing = ofFlow(failingOf, {
  name: 'a flow of which a node fails beside a map that never ends',
  args: null,
  check: (state, _, tree) => [
    ...otherEnd(state, 'node_exception'),
    ...(JSON.stringify(state.ending).includes('"node":"fail"') ? [] : ['Another node is said to have failed.']),
    ...otherValues(tree, { begin: 1 }),
    ...tree.filter(({ task }) => task !== null).flatMap((task) => otherEnd(task, 'cancelled')),
  ],
});

const when = (control: Control, holds: boolean): Control | undefined => (holds ? control : undefined);
const isEndOf = (entry: Entry, call: number): boolean => entry.kind === 'call_ended' && entry.call === call;

const cancelled = ofFlow(failingOf, {
  name: 'a cancel of a flow in the middle of its map',
  args: null,
  limits: { steps: 9 },
  controls: (entry, task) => when({ id: 'stop', type: 'CANCEL' }, task === '' && isEndOf(entry, 0)),
  check: (state, _, tree) => tree.flatMap((run) => (run === state ? [] : otherEnd(run, 'cancelled'))),
});

/** Without tasks, which would be named by the step in which they began. Its middle waits for somebody. */
function askingOf(world: CrashWorld) {
  const first = node(
    'first',
    does(world, 'keyed', (n: number) => n + 1),
  );
  const ask = node('ask', { needsApproval: true, ...does(world, 'once', (n: number) => n + 1) });
  const last = node(
    'last',
    does(world, 'once', (n: number) => ({ last: n })),
  );
  return flow({
    name: 'asking',
    inputSchema: {},
    entry: first,
    exit: last,
    edges: [edge(first, ask), edge(ask, last)],
  });
}

const redirected = ofFlow(askingOf, {
  name: 'a flow whose goal is changed on the way',
  args: 0,
  controls: (entry) => when({ id: 'goal', type: 'REDIRECT', payload: { goal: 'faster' } }, isEndOf(entry, 0)),
  answer: (run, { token }) => run.approve(token),
  check: (state, _, tree) => [
    ...otherEnd(state, 'goal'),
    ...(state.goal === 'faster' ? [] : ['The redirect was lost.']),
    ...otherValues(tree, { first: 1, ask: 1, last: 1 }),
  ],
});

/** Nobody can say whether its middle has happened. */
function blindOf(world: CrashWorld) {
  const first = node(
    'first',
    does(world, 'keyed', (n: number) => n),
  );
  const { execute } = does(world, 'once', (n: number) => n);
  const blind = node('blind', { execute });
  const last = node(
    'last',
    does(world, 'once', (n: number) => n),
  );
  return flow({
    name: 'blind',
    inputSchema: {},
    entry: first,
    exit: last,
    edges: [edge(first, blind), edge(blind, last)],
  });
}

const blind = ofFlow(blindOf, {
  name: 'a flow with a node that cannot be asked what happened',
  args: 1,
  check: ({ ending, steps }) => {
    if (ending?.kind === 'finished') return [];
    const isUnknown = steps[0]?.calls[1]?.outcome.kind === 'unknown';
    const isSaid = ending?.error.code === 'node_exception' && ending.error.message.includes('blind');
    return isUnknown && isSaid ? [] : [`The flow ended with ${JSON.stringify(ending)}.`];
  },
});

/** A race in which somebody is asked, an event never comes, one branch fails, one has an approval, and a timer is there when nobody answers. */
function racing(forMs: number, need?: number) {
  return (world: CrashWorld): Flow => {
    const before = node(
      'before',
      does(world, 'once', (n: number) => n + 1),
    );
    const branches = [
      node('asked', { ask: { question: (n: number) => `May ${n} be?`, schema: { type: 'boolean' } } }),
      node('event', { event: { key: (n: number) => `n-${n}`, timeoutMs: 3_600_000 } }),
      node('late', { sleep: { forMs } }),
      node('fails', {
        effect: 'pure',
        execute: (): number => {
          throw new Error('no');
        },
      }),
      node('signed', { needsApproval: true, ...does(world, 'once', (n: number) => n * 10) }),
    ];
    const first = need === undefined ? race('first', { of: branches }) : race('first', { of: branches, need });
    const after = node(
      'after',
      does(world, 'once', (won: Json) => won),
    );
    const edges = [edge(before, first), { from: first, to: after }];
    return flow({ name: 'racing', inputSchema: {}, entry: before, exit: after, edges });
  };
}

const endsWith = (state: RunState, payload: Json): string[] => {
  const [end, wanted] = [state.ending?.kind === 'finished' ? state.ending.payload : state.ending, payload].map((one) =>
    JSON.stringify(one),
  );
  return end === wanted ? [] : [`It ended with ${end}, not ${wanted}.`];
};

const races: readonly CrashScenario[] = [
  ofFlow(racing(86_400_000), {
    name: 'a race in a flow that an answer wins',
    args: 1,
    answer: (run, { token, reason }) =>
      reason === 'await_input' ? run.answer(token, { kind: 'answer', value: true }) : undefined,
    check: (state) => endsWith(state, { branch: 'asked', value: true }),
  }),
  ofFlow(racing(60_000), {
    name: 'a race in a flow that a timer wins, for nobody answers',
    args: 1,
    answer: () => undefined,
    check: (state) => endsWith(state, { branch: 'late', value: null }),
  }),
  ofFlow(racing(60_000, 2), {
    name: 'a race in a flow of which two branches are needed: an answer, and a timer',
    args: 1,
    answer: (run, { token, reason }) =>
      reason === 'await_input' ? run.answer(token, { kind: 'answer', value: true }) : undefined,
    check: (state, _, tree) => [
      ...endsWith(state, [
        { branch: 'asked', value: true },
        { branch: 'late', value: null },
      ]),
      ...otherValues(tree, { before: 1, asked: 1, late: 1, first: 1, after: 1, _finish: 1 }),
    ],
  }),
  ofFlow(racing(86_400_000), {
    name: 'a race in a flow that an approval wins',
    args: 1,
    answer: (run, { token, reason }) => (reason === 'approval_required' ? run.approve(token) : undefined),
    check: (state) => endsWith(state, { branch: 'signed', value: 20 }),
  }),
];

export const flowScenarios: readonly CrashScenario[] = [
  everything,
  loop,
  shortLoop,
  asTool,
  failing,
  cancelled,
  redirected,
  blind,
  ...races,
];
