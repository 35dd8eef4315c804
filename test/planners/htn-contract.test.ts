/** Planners written to the contract of the agentsdk proposal: initialTask and decompose. */
import { describe, expect, it } from 'vitest';
import { fromHtnPlanner, type HTNNode, type HTNPlanner } from '#planners/htn';
import type { RunResult } from '#runtime';
import { entriesOf } from '../kit/run-record.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const compound = (id: string, ...methods: string[]): HTNNode => ({
  id,
  kind: 'compound',
  ...(methods.length === 0 ? {} : { methods }),
});

const primitive = (id: string): HTNNode => ({
  id,
  kind: 'primitive',
  primitive: { type: 'tool', toolId: 'work', input: { id } },
});

/** What a node gives: under its id, or under `id/method`. */
type Table = Readonly<Record<string, readonly HTNNode[] | (() => readonly HTNNode[])>>;

interface Made extends HTNPlanner {
  /** What was to be decomposed, in that order. */
  readonly asked: readonly string[];
}

function planner(first: HTNNode, table: Table): Made {
  const asked: string[] = [];
  return {
    asked,
    initialTask: async () => first,
    decompose: async ({ id, methods }) => {
      const key = methods === undefined ? id : `${id}/${methods.join('+')}`;
      asked.push(key);
      const given = table[key] ?? [];
      return typeof given === 'function' ? given() : given;
    },
  };
}

interface Ended {
  readonly result: RunResult;
  readonly calls: readonly string[];
  readonly plans: readonly (readonly string[])[];
}

async function play(given: HTNPlanner, bad: readonly string[] = []): Promise<Ended> {
  const calls: string[] = [];
  const work = make('work', (args) => {
    const id = String(args['id']);
    calls.push(id);
    if (bad.includes(id)) throw new Error(`${id} is not possible`);
    return `${id} done`;
  });
  const made = world({ planner: fromHtnPlanner(given), tools: [work] });
  const run = await start(made);
  const result = await run.result();
  const moved = await entriesOf(made.journal, run, 'moved');
  const plans = moved.map(({ decision }) =>
    decision.kind === 'call_parallel' ? decision.branches.map(({ id = '' }) => id) : [],
  );
  return { result, calls, plans };
}

const HOUSE: Table = {
  house: [compound('ground'), primitive('roof')],
  ground: [primitive('dig'), compound('base'), primitive('walls')],
  base: [primitive('pour'), primitive('dry')],
};

describe('a planner of the agentsdk contract', () => {
  it('AG-35 is decomposed depth first until all is primitive, and the order is kept', async () => {
    const given = planner(compound('house'), HOUSE);
    const { result, calls, plans } = await play(given);
    expect(given.asked).toEqual(['house', 'ground', 'base']);
    expect(calls).toEqual(['dig', 'pour', 'dry', 'walls', 'roof']);
    expect(plans[0]).toEqual(calls);
    expect(result).toMatchObject({ reason: 'goal', payload: { results: { dig: 'dig done', roof: 'roof done' } } });
  });

  it('AG-35 the state that it is told of is that of the run', async () => {
    const seen: unknown[] = [];
    const given: HTNPlanner = {
      initialTask: (state) => {
        seen.push(state);
        return primitive('a');
      },
      decompose: () => [],
    };
    await play(given);
    expect(seen[0]).toMatchObject({ goal: 'q', stepCount: 0, transcript: [{ role: 'user', text: 'q' }] });
  });

  it('AG-36 methods are tried in order; one that gives nothing, throws or leads nowhere is followed by the next', async () => {
    const given = planner(compound('top', 'none', 'throws', 'dead', 'good', 'never'), {
      'top/throws': () => {
        throw new Error('no way');
      },
      'top/dead': [primitive('x'), compound('hole')],
      'top/good': [primitive('y')],
    });
    const { calls } = await play(given);
    expect(given.asked).toEqual(['top/none', 'top/throws', 'top/dead', 'hole', 'top/good']);
    expect(calls).toEqual(['y']);
  });

  it('AG-36 when all methods of a node fail its parent tries its next one', async () => {
    const given = planner(compound('top', 'a', 'b'), {
      'top/a': [compound('inner', 'c', 'd'), compound('hole')],
      'inner/c': [primitive('x')],
      'inner/d': [primitive('y')],
      'top/b': [primitive('z')],
    });
    expect((await play(given)).calls).toEqual(['z']);
    expect(given.asked).toEqual(['top/a', 'inner/c', 'hole', 'inner/d', 'hole', 'top/b']);
  });

  it('AG-36 with no way at all the run finishes with no_path, and says what each method said', async () => {
    const given = planner(compound('top', 'a', 'b'), {
      'top/a': () => {
        throw new Error('the bridge is down');
      },
      'top/b': [compound('hole')],
    });
    const { result } = await play(given);
    expect(result).toMatchObject({ status: 'finished', reason: 'no_path' });
    expect(JSON.stringify(result)).toContain('a: the bridge is down');
    expect(JSON.stringify(result)).toContain('hole');
  });

  const deep = (levels: number): HTNPlanner => ({
    initialTask: () => compound('1'),
    decompose: ({ id }) => (Number(id) === levels ? [primitive('end')] : [compound(String(Number(id) + 1))]),
  });
  const wide = (count: number): HTNPlanner => ({
    initialTask: () => compound('top'),
    decompose: () => Array.from({ length: count }, (_, index) => primitive(`p${index}`)),
  });

  it('AG-36 at most 32 levels and 1,000 nodes, each with an error of its own', async () => {
    expect((await play(deep(32))).calls).toEqual(['end']);
    expect((await play(deep(33))).result).toMatchObject({ status: 'failed', error: { code: 'htn_depth' } });
    expect((await play(wide(999))).calls).toHaveLength(999);
    expect((await play(wide(1_000))).result).toMatchObject({ status: 'failed', error: { code: 'htn_nodes' } });
  });

  it('AG-36 a compound node that gives itself is a cycle', async () => {
    const self = planner(compound('self'), { self: [primitive('a'), compound('self')] });
    expect((await play(self)).result).toMatchObject({
      status: 'failed',
      error: { code: 'htn_cycle', data: { path: ['self', 'self'] } },
    });
    const pair = planner(compound('a'), { a: [compound('b')], b: [compound('a')] });
    expect((await play(pair)).result).toMatchObject({ error: { code: 'htn_cycle', data: { path: ['a', 'b', 'a'] } } });
  });

  it.each<[string, Table]>([
    ['a primitive node without a step', { top: [{ id: 'p', kind: 'primitive' }] }],
    ['something that is no node', { top: [{ id: 'p' } as HTNNode] }],
    ['no list', { top: (() => 'nothing') as never }],
  ])('AG-37 %s is an invalid decomposition', async (_, table) => {
    const { result, calls } = await play(planner(compound('top'), table));
    expect(result).toMatchObject({ status: 'failed', error: { code: 'htn_invalid_decomposition' } });
    expect(calls).toEqual([]);
  });

  it('AG-37 two steps of one id are no plan', async () => {
    const { result } = await play(planner(compound('top'), { top: [primitive('a'), primitive('a')] }));
    expect(result).toMatchObject({ status: 'failed', error: { code: 'plan_invalid' } });
  });

  it('AG-37 when a step fails only its own node is decomposed anew, and what is done is not done again', async () => {
    const given = planner(compound('house'), {
      ...HOUSE,
      ground: [primitive('dig'), compound('base', 'concrete', 'stone'), primitive('walls')],
      'base/concrete': [primitive('pour'), primitive('dry')],
      'base/stone': [primitive('lay')],
    });
    const { result, calls, plans } = await play(given, ['dry']);
    expect(result).toMatchObject({ reason: 'goal' });
    expect(calls).toEqual(['dig', 'pour', 'dry', 'lay', 'walls', 'roof']);
    expect(plans[1]).toEqual(['lay', 'walls', 'roof']);
    expect(given.asked).toEqual(['house', 'ground', 'base/concrete', 'base/concrete', 'base/stone']);
  });

  it('AG-37 without another way the node above is decomposed anew', async () => {
    const given = planner(compound('top', 'plan a', 'plan b'), {
      'top/plan a': [compound('inner'), primitive('last')],
      inner: [primitive('x')],
      'top/plan b': [primitive('y')],
    });
    expect((await play(given, ['x'])).calls).toEqual(['x', 'y']);
  });

  it('AG-37 a later plan may refer to the value of a step of an earlier one', async () => {
    const uses: HTNNode = {
      id: 'uses',
      kind: 'primitive',
      primitive: { type: 'tool', toolId: 'work', input: { id: { $from: 'first' } } },
    };
    const given = planner(compound('top'), {
      top: [primitive('first'), compound('inner', 'a', 'b'), uses],
      'inner/a': [primitive('bad')],
      'inner/b': [primitive('good')],
    });
    expect((await play(given, ['bad'])).calls).toEqual(['first', 'bad', 'good', 'first done']);
  });
});
