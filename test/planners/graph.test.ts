import { describe, expect, it } from 'vitest';
import {
  type CallParallel,
  type Control,
  local,
  type Move,
  type Outcome,
  type RunView,
  type Step,
  type ToolPolicy,
} from '#core';
import { type GraphOptions, graph } from '#planners/graph';
import { earlierPlaces, finishOfPlan, lastPlan, type Plan, type PlanStep, type PlanYield, planNodes } from '#plans';
import { type RunViewOptions, runView, toolView } from '#testing';
import { ask, listen } from '../kit/ask.ts';
import { failure, stepOfMove, value } from '../kit/steps.ts';

const NAMES = ['any', 'other', 'handler'];
const TOOLS = toolView(NAMES);
const any = (id: string, more: Partial<PlanStep> = {}): PlanStep => ({ id, type: 'tool', toolId: 'any', ...more });
const message = (id: string, more: Partial<PlanStep> = {}): PlanStep => ({ id, type: 'message', input: id, ...more });

/** a, then b and c, then d. */
const DIAMOND: Plan = {
  planId: 'diamond',
  nodes: { a: any('a'), b: any('b'), c: any('c'), d: any('d') },
  edges: { a: ['b', 'c'], b: ['d'], c: ['d'] },
};

const view = (options: RunViewOptions = {}): RunView => runView({ tools: TOOLS, ...options });
const under = (policy: ToolPolicy): RunView => view({ tools: toolView(NAMES, [], policy) });

function next(options: GraphOptions | GraphOptions['plan'], run: RunView = view()): Promise<Move> {
  const given =
    typeof options === 'object' && 'plan' in options && typeof options.plan !== 'function' ? options : undefined;
  return ask(graph((given as GraphOptions | undefined) ?? { plan: options as GraphOptions['plan'] }), run);
}

/** The step that this decision became. */
async function carriedOut(plan: Plan, outcomes: readonly Outcome[]): Promise<Step> {
  return stepOfMove(0, await next(plan), outcomes);
}

const skipped = (branch: number): Outcome => ({
  kind: 'skipped',
  error: { code: 'branch_not_started', message: 'Skipped.', data: { branch } },
});
const redirect: Control = { id: 'r', type: 'REDIRECT', payload: { goal: 'something else' } };

describe('a plan is one parallel call', () => {
  it('AG-06 AG-40 W93 each node comes after those that it depends on', async () => {
    expect(await next({ plan: DIAMOND, concurrency: 3 })).toEqual({
      provenance: { planner: 'graph', plan: 'diamond' },
      decision: {
        kind: 'call_parallel',
        plan: 'diamond',
        onInvalid: 'per_branch',
        concurrency: 3,
        branches: [
          { id: 'a', tool: 'any', args: {} },
          { id: 'b', tool: 'any', args: {}, after: ['a'] },
          { id: 'c', tool: 'any', args: {}, after: ['a'] },
          { id: 'd', tool: 'any', args: {}, after: ['b', 'c'] },
        ],
      },
    });
  });

  it('AG-07 it is stateless: the same run gives the same, whoever is asked in between', async () => {
    const planner = graph({ plan: () => ({ steps: [any('a')] }) });
    const first = await ask(planner, view());
    await ask(planner, view({ steps: [stepOfMove(0, first)] }));
    expect(await ask(planner, view())).toEqual(first);
  });

  it('AG-05 AG-21 a plan with anything wrong is not begun, and everything is told', async () => {
    const plan = { steps: [any('a', { toolId: 'nobody' }), any('b', { input: { v: { $from: 'x' } } })] };
    await expect(next(() => plan)).rejects.toMatchObject({
      code: 'plan_invalid',
      message: expect.stringMatching(/there is no such tool.*there is no such step/),
      data: {
        faults: [
          { code: 'tool_unknown', step: 'a' },
          { code: 'reference_unknown', step: 'b' },
        ],
      },
    });
    await expect(next(() => ({ steps: Array.from({ length: 30 }, () => any('a')) }))).rejects.toThrow('And 9 more.');
    await expect(next({ plan: DIAMOND, maxSteps: 3 })).rejects.toMatchObject({
      data: { faults: [{ code: 'plan_too_long' }] },
    });
  });

  it('AG-22 a step that the policy forbids makes the plan invalid', async () => {
    const policy: ToolPolicy = ({ tool }, { identity }) =>
      tool === 'other' ? { deny: `not for ${identity.user}.` } : 'allow';
    const plan = { nodes: { ...DIAMOND.nodes, c: any('c', { toolId: 'other' }), m: message('m') } };
    await expect(next(() => plan, under(policy))).rejects.toMatchObject({
      code: 'plan_invalid',
      data: {
        faults: [{ code: 'plan_forbidden', step: 'c', message: 'The step "c" (other) is forbidden: not for test.' }],
      },
    });
  });

  it('plans without a name, and plans of one name, have ids of their own in a run', async () => {
    const idOf = ({ decision }: Move): unknown => (decision as CallParallel).plan;
    const plan = (planId?: string) => () =>
      planId === undefined ? { steps: [any('a')] } : { planId, steps: [any('a')] };
    const first = await next(plan());
    expect(idOf(first)).toBe('plan');
    const run = view({ steps: [stepOfMove(0, first)], controls: [redirect] });
    expect(idOf(await next(plan(), run))).toBe('plan-1');
    expect(idOf(await next(plan('plan'), run))).toBe('plan-1');
    expect(idOf(await next(plan('p'), run))).toBe('p');
  });
});

describe('when its nodes have ended', () => {
  it('the run ends with what they gave', async () => {
    const step = await carriedOut(DIAMOND, [value(1), value(2), value({ c: 3 }), value(null)]);
    const payload = { results: { a: 1, b: 2, c: { c: 3 }, d: null } };
    expect((await next(DIAMOND, view({ steps: [step] }))).decision).toEqual({
      kind: 'finish',
      reason: 'goal',
      payload,
      metadata: { plan: 'diamond' },
    });
  });

  it('AG-45 the value of its finish step is the answer, and messages are none of the results', async () => {
    const plan: Plan = { steps: [any('a'), message('m'), { id: 'f', type: 'finish', input: { $from: 'a' } }] };
    const step = await carriedOut(plan, [value(1), value('m'), value('the answer')]);
    expect(finishOfPlan(step)).toMatchObject({ reason: 'goal', payload: 'the answer' });
    const told = await carriedOut({ steps: [any('a'), message('m')] }, [value(1), value('m')]);
    expect(finishOfPlan(told)).toMatchObject({ reason: 'goal', payload: { results: { a: 1 } } });
    // Of one that is too large for the journal, the whole.
    const artifact = { artifactRef: 'art_1', mime: 'application/json', sizeBytes: 40_000 };
    const heavy = await carriedOut(plan, [value(1), value('m'), { kind: 'value', value: 'preview', artifact }]);
    expect(finishOfPlan(heavy)).toMatchObject({ reason: 'goal', payload: artifact });
  });

  it('AG-42 the end names what failed, and what was skipped for it', async () => {
    const plan: Plan = { nodes: { ...DIAMOND.nodes, e: any('e') }, edges: { ...DIAMOND.edges, b: ['d', 'e'] } };
    const step = await carriedOut(plan, [value(1), value(2), failure('tool_failed', 'No.'), skipped(2), value(5)]);
    const data = {
      plan: 'plan',
      failed: ['c'],
      skipped: ['d'],
      errors: { c: { code: 'tool_failed', message: 'No.' } },
      done: ['a', 'b', 'e'],
    };
    expect(() => finishOfPlan(step)).toThrow(
      expect.objectContaining({ code: 'plan_failed', data, message: 'The node "c" of the plan has failed: No.' }),
    );
    expect(planNodes(step).map(({ id, status }) => `${id} ${status}`)).toEqual([
      'a done',
      'b done',
      'c failed',
      'd skipped',
      'e done',
    ]);
    const cut = { code: 'cancelled', message: 'Stopped.' };
    const unclear = await carriedOut(plan, [
      value(1),
      { kind: 'unknown', error: cut },
      { kind: 'cancelled', error: cut },
      skipped(2),
      skipped(1),
    ]);
    const unclearData = {
      plan: 'plan',
      unknown: ['b'],
      cancelled: ['c'],
      skipped: ['d', 'e'],
      errors: { b: cut },
      done: ['a'],
    };
    expect(() => finishOfPlan(unclear)).toThrow(expect.objectContaining({ code: 'plan_failed', data: unclearData }));
  });

  it('a step that is passed over, because its condition does not hold, is no failure', async () => {
    const when = { step: 'a', equals: 'yes' };
    const plan: Plan = {
      steps: [any('a'), any('b', { when }), any('c', { after: ['b'] }), any('d', { after: ['c'] })],
    };
    const step = await carriedOut(plan, [value('no'), skipped(0), skipped(1), skipped(2)]);
    expect(planNodes(step).map(({ passed }) => passed)).toEqual([undefined, true, true, true]);
    expect(finishOfPlan(step)).toMatchObject({ reason: 'goal', payload: { results: { a: 'no' } } });
    const failed = await carriedOut(plan, [failure('tool_failed', 'No.'), skipped(0), skipped(1), skipped(2)]);
    const data = expect.objectContaining({ failed: ['a'], skipped: ['b', 'c', 'd'] });
    expect(() => finishOfPlan(failed)).toThrow(expect.objectContaining({ code: 'plan_failed', data }));
  });

  it('a plan that came to its finish has reached its goal, and still names what failed', async () => {
    const plan: Plan = { steps: [any('a'), any('b', { after: [] }), { id: 'f', type: 'finish', after: ['b'] }] };
    const step = await carriedOut(plan, [failure('tool_failed', 'No.'), value(2), value(null)]);
    expect(finishOfPlan(step)).toMatchObject({ reason: 'goal', payload: null, metadata: { failed: ['a'] } });
  });
});

describe('a goal that was replaced', () => {
  it('a maker is asked again; there is no other plan where there is but one', async () => {
    const step = await carriedOut(DIAMOND, [value(1), value(2), value(3), value(4)]);
    const seen: string[] = [];
    const maker = ({ goal }: RunView): Plan => {
      seen.push(goal);
      return { steps: [any('new')] };
    };
    const steering = [{ atStep: 1, control: redirect }];
    for (const run of [
      view({ steps: [step], controls: [redirect], goal: 'something else' }),
      view({ steps: [step], steering, goal: 'something else' }),
    ]) {
      expect((await next(maker, run)).decision).toMatchObject({ kind: 'call_parallel', branches: [{ id: 'new' }] });
      expect((await next(DIAMOND, run)).decision).toEqual({
        kind: 'finish',
        reason: 'no_path',
        metadata: { plan: 'diamond', redirected: true },
      });
    }
    expect(seen).toEqual(['something else', 'something else']);
    // The plan for the new goal is not given up for the same message.
    const second = stepOfMove(1, await next(maker, view({ steps: [step], steering })));
    expect((await next(maker, view({ steps: [step, second], steering }))).decision).toMatchObject({ reason: 'goal' });
  });
});

describe('makers', () => {
  it('AG-01 one that gives single steps is asked after each, and may refer to those before', async () => {
    const maker: GraphOptions['plan'] = {
      async plan({ stepCount, goal }) {
        if (stepCount === 0) return any('first', { input: { goal: goal ?? '' } });
        if (stepCount === 1) return message('told', { input: { $from: 'first', path: '/0' } });
        if (stepCount === 2) return { id: 'i', type: 'internal', input: { $from: 'told' } };
        return { id: 'end', type: 'finish', input: [{ $from: 'first' }, { $from: 'i' }] };
      },
    };
    const planner = graph({ plan: maker, internal: 'handler' });
    const results = [['hello'], 'hello', 'handled'];
    const steps: Step[] = [];
    const moves: Move[] = [];
    for (let index = 0; index < 4; index += 1) {
      const move = await ask(planner, view({ steps, query: 'why' }));
      moves.push(move);
      steps.push(stepOfMove(index, move, index < 3 ? [value(results[index] ?? null)] : undefined));
    }
    expect(moves.map(({ decision }) => decision)).toEqual([
      { kind: 'call_tool', tool: 'any', args: { goal: 'why' } },
      {
        kind: 'call_parallel',
        plan: 'step-1',
        onInvalid: 'per_branch',
        branches: [{ id: 'told', tool: '_message', args: { $from: '0', path: '/0', step: 0 } }],
      },
      { kind: 'call_tool', tool: 'handler', args: { id: 'i', input: 'hello' } },
      { kind: 'finish', reason: 'goal', payload: [['hello'], 'handled'] },
    ]);
    expect(moves.map(({ provenance }) => provenance)).toEqual([
      { planner: 'graph', step: 'first' },
      { planner: 'graph', step: 'told' },
      { planner: 'graph', step: 'i' },
      { planner: 'graph', step: 'end' },
    ]);
    expect(lastPlan(view({ steps }))).toBeUndefined();
  });

  it('a value of which only a preview is known cannot be referred to', async () => {
    const artifact = { artifactRef: 'art_1', mime: 'application/json', sizeBytes: 40_000 };
    const made = await next(() => any('a'));
    const run = view({ steps: [stepOfMove(0, made, [{ kind: 'value', value: 'preview', artifact }])] });
    expect(earlierPlaces(run, true).size).toBe(0);
    await expect(next(() => any('b', { input: { v: { $from: 'a' } } }), run)).rejects.toMatchObject({
      data: { faults: [{ code: 'reference_unknown' }] },
    });
  });

  it('what a maker throws is thrown', async () => {
    const cause = new Error('no plan today');
    await expect(next(() => Promise.reject(cause))).rejects.toBe(cause);
    await expect(
      next(() => {
        throw cause;
      }),
    ).rejects.toBe(cause);
    await expect(next(() => undefined as unknown as Plan)).rejects.toMatchObject({ code: 'plan_invalid' });
  });

  it('is not asked once the run has been called off', async () => {
    const asked: string[] = [];
    const maker = (): Plan => {
      asked.push('asked');
      return DIAMOND;
    };
    const reason = new Error('called off');
    await expect(ask(graph({ plan: maker }), view(), AbortSignal.abort(reason))).rejects.toBe(reason);
    const controls: Control[] = [{ id: 'c', type: 'CANCEL' }];
    expect((await next(maker, view({ controls }))).decision).toEqual({ kind: 'finish', reason: 'cancelled' });
    expect(asked).toEqual([]);
  });
});

describe('a stream of steps', () => {
  const stream = (...yields: PlanYield[]): GraphOptions['plan'] => ({
    async *plan() {
      yield* yields;
    },
  });
  const given = async (plan: GraphOptions['plan'], run: RunView = view(), more: Partial<GraphOptions> = {}) =>
    listen(graph({ plan, ...more }), run);

  it('gives each step on as it comes, after the one before it unless it says otherwise', async () => {
    const { move, deltas } = await given(
      stream(
        { partialReasoning: 'First ' },
        any('a'),
        { partialReasoning: 'this.' },
        any('b'),
        any('c', { after: ['a'] }),
        message('m', { when: { step: 'b', equals: 1 } }),
        { finish: { result: { $from: 'b' } } },
      ),
      view(),
      { concurrency: 2 },
    );
    const branches = [
      { id: 'a', tool: 'any', args: {} },
      { id: 'b', tool: 'any', args: {}, after: ['a'] },
      { id: 'c', tool: 'any', args: {}, after: ['a'] },
      { id: 'm', tool: '_message', args: 'm', after: ['c', 'b'], when: { branch: 'b', equals: 1 } },
      { id: 'finish', tool: '_finish', args: { $from: 'b' }, after: ['b'], behind: ['m'] },
    ];
    expect(move).toEqual({
      decision: { kind: 'call_parallel', plan: 'plan', branches, onInvalid: 'per_branch', concurrency: 2 },
      provenance: { planner: 'graph', plan: 'plan' },
      reasoning: 'First this.',
    });
    expect(deltas.map((delta) => (delta.type === 'branches' ? delta.branches[0]?.id : delta.type))).toEqual([
      'reasoning',
      'a',
      'reasoning',
      'b',
      'c',
      'm',
      'finish',
    ]);
    expect(deltas[1]).toEqual({ type: 'branches', plan: 'plan', branches: [branches[0]], concurrency: 2 });
  });

  it('AG-21 AG-22 a bad step ends it, when those before it have been given', async () => {
    const wrong: readonly [string, PlanYield, string][] = [
      ['a', any('a'), 'step_id_duplicate'],
      ['b', any('b', { toolId: 'nobody' }), 'tool_unknown'],
      ['b', any('b', { after: ['later'] }), 'edge_unknown'],
      ['b', any('b', { input: { v: { $from: 'later' } } }), 'reference_unknown'],
      ['b', any('b', { after: ['b'] }), 'plan_cycle'],
      ['b', any('b', { when: { step: 'later', equals: 1 } }), 'edge_unknown'],
      ['', 3 as unknown as PlanYield, 'plan_shape'],
      ['b', any('b', { toolId: 'other' }), 'plan_forbidden'],
    ];
    for (const [step, bad, code] of wrong) {
      const seen: string[] = [];
      const run = under(({ tool }) => (tool === 'other' ? { deny: 'No.' } : 'allow'));
      const source = graph({ plan: stream(any('a'), bad) }).next(run, new AbortController().signal);
      const reading = (async () => {
        for await (const delta of source as AsyncIterable<{ type: string }>) seen.push(delta.type);
      })();
      const fault = step === '' ? { code } : { code, step };
      await expect(reading).rejects.toMatchObject({
        code: 'plan_invalid',
        data: { faults: expect.arrayContaining([expect.objectContaining(fault)]) },
      });
      expect(seen).toEqual(['branches']);
    }
    await expect(given(stream(any('a'), any('b')), view(), { maxSteps: 1 })).rejects.toThrow('more than the 1 steps');
    await expect(given(stream())).rejects.toMatchObject({ data: { faults: [{ code: 'plan_empty' }] } });
  });

  it('nothing is read behind its end, and the maker is let go of', async () => {
    const log: string[] = [];
    const plan = {
      async *plan(): AsyncGenerator<PlanYield> {
        try {
          yield any('a');
          yield { id: 'maybe', type: 'finish', when: { step: 'a', equals: 1 } };
          yield any('b', { after: ['a'] });
          yield { id: 'f', type: 'finish' };
          log.push('read on');
        } finally {
          log.push('closed');
        }
      },
    };
    const { move } = await given(plan);
    expect((move.decision as CallParallel).branches.map(({ id, after: before }) => [id, before])).toEqual([
      ['a', undefined],
      ['maybe', ['a']],
      ['b', ['a']],
      ['f', ['b']],
    ]);
    expect(log).toEqual(['closed']);
  });

  it('AG-41 after a crash it is asked again, and what was run is not run again', async () => {
    const yields: PlanYield[] = [
      any('a'),
      any('b', { input: { v: { $from: 'a', path: '/x' } } }),
      any('c', { after: ['a'], when: { step: 'a', equals: 'no' } }),
      any('c2', { after: ['c'] }),
      message('m', { after: ['a'] }),
      any('bad', { after: ['a'] }),
      any('behind', { after: ['bad'] }),
      any('d', { after: ['a'], input: { v: { $from: 'a', path: '/x' } } }),
      { finish: {} },
    ];
    const interrupted = { code: 'plan_interrupted', message: 'Cut off.' };
    const { move } = await given(stream(...yields.slice(0, 7)));
    const outcomes = [
      value({ x: 1 }),
      value(2),
      skipped(0),
      skipped(2),
      value('m'),
      failure('tool_failed', 'No.'),
      skipped(5),
    ];
    const first: Step = { ...stepOfMove(0, move, outcomes), error: interrupted };
    const again = await given(stream(...yields), view({ steps: [first] }));
    const { branches } = again.move.decision as CallParallel;
    expect(branches).toEqual([{ id: 'd', tool: 'any', args: { v: { $from: 'a', path: '/x', step: 0 } } }]);
    // Cut off once more, with d done: then there is nothing left to run.
    const second: Step = { ...stepOfMove(1, again.move, [value(4)]), error: interrupted };
    const steps = [first, second];
    const data = { failed: ['bad'], skipped: ['behind'] };
    await expect(given(stream(...yields), view({ steps }))).rejects.toMatchObject({ code: 'plan_failed', data });
    // Made to its end, it counts with what was done before.
    const whole = { ...stepOfMove(1, again.move, [value(4)]) };
    const both = view({ steps: [first, whole] });
    await expect(next(stream(...yields), both)).rejects.toMatchObject({ code: 'plan_failed', data });
  });

  it('AG-41 a step that is another one under the same id is run', async () => {
    const { move } = await given(stream(any('a', { input: { n: 1 } }), any('b')));
    const first: Step = {
      ...stepOfMove(0, move, [value('one'), value('b')]),
      error: { code: 'plan_interrupted', message: 'Cut off.' },
    };
    const run = view({ steps: [first] });
    const again = await given(stream(any('a', { input: { n: 2 } }), any('b', { input: { v: { $from: 'a' } } })), run);
    expect((again.move.decision as CallParallel).branches).toEqual([
      { id: 'a', tool: 'any', args: { n: 2 }, reuse: true },
      { id: 'b', tool: 'any', args: { v: { $from: 'a' } }, reuse: true, after: ['a'] },
    ]);
    expect((again.move.decision as CallParallel).plan).toBe('plan-1');
  });

  it('a maker that failed on the way fails the run, once its nodes have ended', async () => {
    const { move } = await given(stream(any('a')));
    const error = { code: 'planner_failed', message: 'The model is gone.' };
    const run = view({ steps: [{ ...stepOfMove(0, move), error }] });
    await expect(given(stream(any('a')), run)).rejects.toMatchObject(error);
  });
});

describe('options', () => {
  it('what is wrong with them is said at once', () => {
    const make = (options: object): unknown => graph(options as GraphOptions);
    const plan = DIAMOND;
    expect(() => make({ plan, retries: 3 })).toThrow('graph has no option "retries"');
    expect(() => make({ plan, policy: () => true })).toThrow('graph has no option "policy"');
    for (const bad of [{}, { plan: 3 }, { plan: null }, { plan: { plan: 3 } }]) {
      expect(() => make(bad)).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    }
    for (const bad of [0, 51, 1.5, '2']) {
      expect(() => make({ plan, concurrency: bad })).toThrow('concurrency must be a whole number from 1 to 50');
    }
    expect(() => make({ plan, maxSteps: 10_001 })).toThrow('maxSteps must be a whole number from 1 to 10,000');
    for (const bad of [{ name: '' }, { version: 3 }, { internal: '' }]) {
      expect(() => make({ plan, ...bad })).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    }
    expect(() => make({ plan: { steps: [any('a', { after: ['b'] })] } })).toThrow(
      expect.objectContaining({ code: 'plan_invalid' }),
    );
  });

  it('it has a name, a version and a wake mode, and is not changed from outside', async () => {
    expect(graph({ plan: DIAMOND })).toMatchObject({ name: 'graph', wakeMode: 'poll' });
    expect(graph({ plan: DIAMOND })).not.toHaveProperty('version');
    expect(graph({ plan: DIAMOND, name: 'mine', version: '2' })).toMatchObject({ name: 'mine', version: '2' });
    const steps = [any('a')];
    const planner = graph({ plan: { steps } });
    steps.push(any('b'));
    const run = view({ identity: local('ana') });
    expect(((await ask(planner, run)).decision as CallParallel).branches).toHaveLength(1);
  });
});
