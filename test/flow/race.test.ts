/** Races of a flow: who wins, what becomes of the others, and what is refused. */
import { describe, expect, it } from 'vitest';
import {
  edge,
  type Flow,
  type FlowFailure,
  flow,
  type GraphNode,
  join,
  map,
  node,
  predicateRouter,
  race,
  unionRouter,
} from '#flow';
import { flowFrom } from '#flow/document';
import { memoryJournal } from '#journal';
import { type Json, local, type Run } from '#pilotage';
import { advanceUntil, gate, until } from '../kit/waiting.ts';
import { type World, world } from '../kit/world.ts';

const given = (name: string, value: Json) => node(name, { effect: 'pure', execute: () => value });
const fails = (name: string) =>
  node(name, {
    effect: 'pure',
    execute: (): number => {
      throw new Error(`${name} broke`);
    },
  });
const late = node('late', { sleep: { forMs: 60_000 } });
const event = node('event', { event: { key: ({ id }: { id: string }) => `order-${id}`, schema: { type: 'number' } } });
const ask = node('ask', { ask: { question: ({ id }: { id: string }) => `Order ${id}?`, schema: { type: 'boolean' } } });
const INPUT = { id: '17' };

function ofOne(made: GraphNode): Flow {
  return flow({ name: made.name, inputSchema: {}, entry: made, exit: made });
}

function placed(made: Flow, more: Parameters<typeof world>[0] = {}): World {
  return world({ agents: [made], journal: memoryJournal(), ...more });
}

async function begun({ runtime }: World, of: Flow, input: Json = INPUT): Promise<Run> {
  return of.start(runtime, input as never, { identity: local('ana') });
}

async function endOf({ clock, journal }: World, run: Run): Promise<unknown> {
  const hasEnded = async (): Promise<boolean> =>
    ['finished', 'failed', 'cancelled'].includes((await journal.get(run.id))?.status ?? '');
  await advanceUntil(clock, hasEnded);
  const result = await run.result();
  return result.status === 'finished' ? (result.payload ?? null) : result;
}

describe('a race', () => {
  it('gives the first value with the name of its branch, and a router goes on by that', async () => {
    const first = race('first', { of: [ask, event, late] });
    const told = node('told', { effect: 'pure', execute: ({ value }: { value: unknown }) => ['told', value] as Json });
    const other = given('other', null);
    const by = unionRouter({ select: 'branch', branches: { event: told }, default: other }).asNode('by');
    const made = flow({
      ...{ name: 'made', inputSchema: {}, entry: first, exit: [told, other], edges: [{ from: first, to: by }] },
    });
    const there = placed(made);
    const run = await begun(there, made);
    await until(async () => (await there.runtime.waiting()).length === 3);
    expect(await there.runtime.signal('order-17', 'no number').catch(({ code }) => code)).toBe('payload_invalid');
    await there.runtime.signal('order-17', 90);
    expect(await endOf(there, run)).toEqual(['told', 90]);
    expect(await there.runtime.waiting()).toEqual([]);
    expect(there.faults).toEqual([]);
  });

  it('is won by an answer, by the time when nobody answers, and by what was signalled before', async () => {
    const made = ofOne(race('first', { of: [ask, event, late] }));
    const there = placed(made);
    const [answered, silent] = [await begun(there, made), await begun(there, made, { id: '18' })];
    await until(async () => (await there.runtime.waiting({ for: 'answer' })).length === 2);
    await answered.answer(undefined, { kind: 'answer', value: true });
    expect(await endOf(there, answered)).toEqual({ branch: 'ask', value: true });
    expect(await endOf(there, silent)).toEqual({ branch: 'late', value: null });
    await there.runtime.signal('order-19', 1);
    expect(await endOf(there, await begun(there, made, { id: '19' }))).toEqual({ branch: 'event', value: 1 });
    expect(await there.runtime.waiting()).toEqual([]);
  });

  it('stops a branch that is under way when an event comes', async () => {
    const stopped = gate();
    const busy = node('busy', {
      effect: 'pure',
      execute: (_: Json, { signal }) => new Promise<null>(() => signal.addEventListener('abort', () => stopped.open())),
    });
    const made = ofOne(race('first', { of: [busy, event] }));
    const there = placed(made);
    const run = await begun(there, made);
    await until(async () => (await there.runtime.waiting()).length === 1);
    await there.runtime.signal('order-17', 90);
    await stopped.opened;
    expect(await endOf(there, run)).toEqual({ branch: 'event', value: 90 });
  });

  it('with need gives so many values in the order in which they came', async () => {
    const made = ofOne(race('first', { of: [late, event, given('now', 'x'), fails('broken')], need: 2 }));
    const there = placed(made);
    const run = await begun(there, made);
    expect(await endOf(there, run)).toEqual([
      { branch: 'now', value: 'x' },
      { branch: 'late', value: null },
    ]);
  });

  it('is lost when too few branches are left, and leads to its onError then', async () => {
    const told = node('told', {
      effect: 'pure',
      execute: ({ code, data }: FlowFailure) => [code, data?.['cause'] ?? null],
    });
    const lost = race('lost', { of: [fails('one'), fails('two')], onError: told });
    const made = flow({ name: 'made', inputSchema: {}, entry: lost, exit: [lost, told] });
    const there = placed(made);
    const failures = ['one', 'two'].map((branch) => ({ branch, code: 'tool_failed', message: `${branch} broke` }));
    expect(await endOf(there, await begun(there, made))).toMatchObject([
      'node_exception',
      { code: 'parallel_all_failed', data: { failures } },
    ]);
    const few = ofOne(race('few', { of: [fails('one'), event], need: 2 }));
    const again = placed(few);
    expect(await endOf(again, await begun(again, few))).toMatchObject({
      status: 'failed',
      error: { code: 'node_exception', message: expect.stringContaining('0 of the 2 values') },
    });
  });

  it('that was lost is run again by retry', async () => {
    let isBroken = true;
    const shaky = node('shaky', {
      effect: 'pure',
      execute: () => {
        if (isBroken) throw new Error('not yet');
        return 'well';
      },
    });
    const made = ofOne(race('first', { of: [shaky, fails('other')] }));
    const there = placed(made);
    const run = await begun(there, made);
    expect(await endOf(there, run)).toMatchObject({ status: 'failed' });
    isBroken = false;
    await run.retry();
    expect(await endOf(there, run)).toEqual({ branch: 'shaky', value: 'well' });
  });

  it('races maps, flows and races too, and hands large values and values with references on unchanged', async () => {
    const item = { $from: 'x', path: '/y' };
    const each = map('each', { effect: 'pure', execute: (one: Json) => one });
    const inner = ofOne(race('inner', { of: [late, each] })).asNode('inner');
    const made = ofOne(race('first', { of: [late, inner, node('event', { event: { key: 'never' } })] }));
    const there = placed(made);
    const many = [item, 'x'.repeat(100_000)];
    const run = await begun(there, made, many);
    await endOf(there, run);
    expect(await run.payload()).toEqual({ branch: 'inner', value: { branch: 'each', value: many } });
  });

  it('undoes what its branches have done when the run fails', async () => {
    const undone: unknown[] = [];
    const book = node('book', {
      effect: 'keyed',
      execute: ({ id }: { id: string }) => `room ${id}`,
      undo: (_, value) => undone.push(value),
    });
    const first = race('first', { of: [book, late] });
    const fly = fails('fly');
    const made = flow({
      ...{ name: 'made', inputSchema: {}, entry: first, exit: fly, edges: [{ from: first, to: fly }] },
    });
    const there = placed(made, { onFail: 'undo' });
    expect(await endOf(there, await begun(there, made))).toMatchObject({ status: 'failed' });
    expect(undone).toEqual(['room 17']);
  });

  it('is another flow with other branches, or another need, so that a run that waits does not go on unasked', () => {
    const versions = [
      race('first', { of: [ask, late] }),
      race('first', { of: [ask, event] }),
      race('first', { of: [ask, late], need: 1 }),
    ].map((made) => ofOne(made).planner.version);
    expect(new Set(versions).size).toBe(3);
  });

  it('is drawn with its branches, and said by a document in the same words', async () => {
    const document = {
      ...{ name: 'first', inputSchema: {}, entry: 'first', exit: 'first' },
      nodes: {
        first: { race: ['ask', 'event', 'late'], need: 2 },
        ask: { ask: { question: { function: 'question' }, schema: { type: 'boolean' } } },
        event: { event: { key: { path: '/id' }, schema: { type: 'number' } } },
        late: { sleep: { forMs: 60_000 } },
      },
    };
    const written = flowFrom(document, { functions: { question: ({ id }: { id: string }) => `Order ${id}?` } });
    const made = ofOne(race('first', { of: [ask, event, late], need: 2 }));
    expect(written.topology()).toEqual(made.topology());
    expect(written.planner.version).toBe(made.planner.version);
    expect(written.mermaid()).toContain('n0(["first: 2 of ask, event, late"])');
    const there = placed(written);
    const run = await begun(there, written);
    await until(async () => (await there.runtime.waiting()).length === 3);
    await there.runtime.signal('17', 90);
    expect(await endOf(there, run)).toEqual([
      { branch: 'event', value: 90 },
      { branch: 'late', value: null },
    ]);
  });
});

const faultsOf = (build: () => unknown): readonly string[] => {
  try {
    build();
  } catch (thrown) {
    const { code, data } = thrown as { code: string; data?: { faults?: readonly { code: string }[] } };
    return data?.faults?.map((fault) => fault.code) ?? [code];
  }
  return [];
};

describe('a race that cannot be', () => {
  const a = given('a', 1);
  const router = predicateRouter({ branches: [{ when: () => true, to: a }] }).asNode('pick');
  const branches: readonly (readonly [string, readonly unknown[], number | undefined, string])[] = [
    ['without branches', [], undefined, 'no_branches'],
    ['that needs more than it has', [a, late], 3, 'bad_need'],
    ['that needs nothing', [a, late], 0, 'bad_need'],
    ['with a name twice', [a, given('a', 2)], undefined, 'duplicate_name'],
    ['with a name that cannot be', [a, given('no name', 2)], undefined, 'bad_name'],
    ['of what is not a node', [a, 'b'], undefined, 'not_a_node'],
    ['of a router', [a, router], undefined, 'bad_branch'],
    ['of a join', [a, join('both', { of: [late], execute: () => 1 })], undefined, 'bad_branch'],
    [
      'with a branch that leads elsewhere',
      [a, node('b', { execute: () => 1, onError: late })],
      undefined,
      'bad_branch',
    ],
    [
      'of more than run at once',
      Array.from({ length: 51 }, (_, n) => given(`n${n}`, n)),
      undefined,
      'too_many_branches',
    ],
    ['with a branch without a function', [a, node('b', { execute: 1 } as never)], undefined, 'no_function'],
  ];

  it.each(branches)('%s is refused when the flow is built', (_, of, need, code) => {
    const given = { of, ...(need === undefined ? {} : { need }) };
    expect(faultsOf(() => ofOne(race('first', given as never)))).toEqual([code]);
  });

  it.each([
    ['a router', predicateRouter({ branches: [{ when: () => true, to: a }] }), /is a router or a flow.*asNode\(name\)/],
    ['an object', {}, /is an object, which is not a node/],
  ])('is one with %s in the place of a branch, which is told without its guts', (_, other, words) => {
    expect(() => ofOne(race('first', { of: [a, other] as never }))).toThrow(words);
  });

  it('is one whose branch stands in the flow too', () => {
    const first = race('first', { of: [a, late] });
    const build = () =>
      flow({ name: 'made', inputSchema: {}, entry: first, exit: a, edges: [edge(first, a as never)] });
    expect(faultsOf(build)).toEqual(['bad_branch']);
  });
});

describe('a wait that cannot be', () => {
  it.each([
    [{ sleep: {} }],
    [{ sleep: { forMs: -1 } }],
    [{ sleep: { forMs: 1, until: 2 } }],
    [{ sleep: { until: 'tomorrow' } }],
    [{ event: { key: ' ' } }],
    [{ event: { key: 'k', timeoutMs: -1 } }],
    [{ event: { key: 'k', timeout: 1 } }],
    [{ ask: { question: '' } }],
    [{ ask: { question: 'Well?', expiresInMs: '1' } }],
    [{ sleep: { forMs: 1 }, event: { key: 'k' } }],
    [{ sleep: { forMs: 1 }, execute: () => 1 }],
  ])('is refused when its node is made: %j', (wait) => {
    expect(faultsOf(() => node('wait', wait as never))).toEqual(['invalid_config']);
  });

  it('is refused with its place in a document', () => {
    const nodes = { wait: { sleep: { until: 'soon' } } };
    const build = () =>
      flowFrom({ name: 'made', inputSchema: {}, entry: 'wait', exit: 'wait', nodes }, { functions: {} });
    expect(build).toThrow(/\/nodes\/wait\/sleep: .*"soon"/);
  });
});

describe('a race without room', () => {
  it.each([2, 3])('for all of its branches begins none of them, with %i hops', async (hops) => {
    const first = race('first', { of: [ask, event, late] });
    const made = flow({ name: 'made', inputSchema: {}, budget: { hops }, entry: first, exit: first });
    const there = placed(made);
    expect(await endOf(there, await begun(there, made))).toMatchObject({
      status: 'failed',
      error: {
        code: 'flow_budget_exceeded',
        message: expect.stringContaining('3 branches take a hop each'),
        data: { axis: 'hops', node: 'first' },
      },
    });
    expect(await there.runtime.waiting()).toEqual([]);
  });

  it('leads to its onError, and one with just enough is run', async () => {
    const told = node('told', { effect: 'pure', execute: (_: FlowFailure) => 'no room' });
    const first = race('first', { of: [ask, event, late], onError: told });
    const play = async (hops: number): Promise<unknown> => {
      const made = flow({ name: 'made', inputSchema: {}, budget: { hops }, entry: first, exit: [first, told] });
      const there = placed(made);
      return endOf(there, await begun(there, made));
    };
    expect(await play(3)).toBe('no room');
    expect(await play(4)).toEqual({ branch: 'late', value: null });
  });
});

it('a node in the place of a tool is refused with what to write', () => {
  const first = race('first', { of: [ask, event] });
  for (const make of [map, node] as const) {
    expect(() => Reflect.apply(make, undefined, ['each', first])).toThrow(
      /each is given first, which is a node of a flow, and takes a tool\..*thatFlow\.asTool\(\)/,
    );
  }
});
