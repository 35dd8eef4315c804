/** The htn planner: plans carried out by a runtime, and runs that go on in another process. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CallParallel, type Json, type JsonObject, PilotageError, type Remark } from '#core';
import {
  findPlan,
  type HtnState,
  type HtnTask,
  type HtnTrace,
  htn,
  htnDomain,
  htnState,
  traceOfStep,
  traceText,
} from '#planners/htn';
import { assertCrashProof, crashEverywhere, type PlannerScenario, plannerConformance } from '#testing';
import { ask } from '../kit/ask.ts';
import { failure, stepOfMove, value } from '../kit/steps.ts';
import { make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';
import {
  BOTH,
  type Changes,
  callsOf,
  NAMES,
  PARCELS,
  parcels,
  parcelTools,
  play,
  playByHand,
  STATE,
  TODO,
  view,
} from './parcels.ts';

const traceIn = (provenance: JsonObject): HtnTrace => traceOfStep({ provenance }) ?? { nodes: [] };

describe('a plan ahead', () => {
  it('AG-35 is one decision, in the order of the tasks, each step after the one before', async () => {
    const { result, calls, plans } = await play();
    expect(calls).toEqual(BOTH);
    expect(plans).toEqual([BOTH, []]);
    expect(result).toMatchObject({
      status: 'finished',
      reason: 'goal',
      payload: { results: { a1: 'pick p1: done', a6: 'drop p2: done' } },
    });
    const { decision } = await ask(parcels(), view());
    const { branches, plan } = decision as CallParallel;
    expect(plan).toBe('htn');
    expect(branches.map(({ after }) => after)).toEqual([undefined, ['a1'], ['a2'], ['a3'], ['a4'], ['a5']]);
  });

  it('tells the trace of a step that it has decided, and of no other', () => {
    const trace: HtnTrace = { nodes: [{ kind: 'task', task: ['a'], status: 'open' }], cut: true };
    const provenance = { htn: { trace } } as unknown as JsonObject;
    expect(traceOfStep({ provenance })).toEqual(trace);
    expect(traceOfStep({})).toBeUndefined();
    for (const htn of [
      7,
      {},
      { trace: 7 },
      { trace: { nodes: 7 } },
      { trace: { nodes: [7] } },
      { trace: { nodes: [{}] } },
    ])
      expect(traceOfStep({ provenance: { htn } })).toBeUndefined();
  });

  it('has the decomposition in its provenance', async () => {
    const { moves } = await play({ todo: () => [['deliver', 'p1']] });
    expect(traceText(traceIn(moves[0] ?? {})).split('\n')).toEqual([
      '✓ deliver(p1)',
      '  ✓ by by hand',
      '    ✓ pick(p1)',
      '    ✓ carry(p1)',
      '      ✓ by by road',
      '        ✓ drive(p1)',
      '    ✓ note(p1)',
      '    ✓ drop(p1)',
    ]);
  });

  it('ends at once when nothing is to be done', async () => {
    const { result, plans } = await play({ todo: () => [] });
    expect(result).toMatchObject({ status: 'finished', reason: 'goal', payload: { results: {} } });
    expect(plans).toEqual([[]]);
  });

  it('AG-36 says why there is none', async () => {
    const state = { ...STATE, at: [['p1', 'delivered']] as [string, Json][] };
    const { result, calls, moves } = await play({ state: () => state, todo: () => [['drop', 'p1']] });
    expect(calls).toEqual([]);
    expect(result).toMatchObject({
      status: 'finished',
      reason: 'no_path',
      metadata: { reasons: ['drop(p1): its precondition does not hold'] },
    });
    expect(traceText(traceIn(moves[0] ?? {}))).toBe('✗ drop(p1): its precondition does not hold');
  });

  it.each([
    ['htn_depth', { depth: 1 }],
    ['htn_nodes', { nodes: 5 }],
    [
      'htn_cycle',
      { todo: () => [['loop']] as HtnTask[], domain: htnDomain({ operators: {}, tasks: { loop: () => [['loop']] } }) },
    ],
    ['htn_invalid_decomposition', { todo: () => [['fly', 'p1']] as HtnTask[] }],
    ['plan_invalid', { step: () => ({ type: 'tool', toolId: 'nobody' }) as const }],
  ])('AG-36 fails the run with %s', async (code, changes: Changes) => {
    expect((await play(changes)).result).toMatchObject({ status: 'failed', error: { code } });
  });

  it('refuses limits that are none', () => {
    for (const limits of [{ depth: 0 }, { nodes: 1.5 }, { nodes: Number.NaN }]) {
      expect(() => parcels(limits)).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    }
  });

  it('goes on with a second decision when there are more than 1,000 steps', async () => {
    const domain = htnDomain({
      operators: { act: () => true },
      tasks: { all: () => Array.from({ length: 2_500 }, (): HtnTask => ['act']) },
    });
    const planner = htn({
      domain,
      state: () => ({}),
      todo: () => [['all']],
      step: () => ({ type: 'tool', toolId: 'act' }),
      nodes: 10_000,
    });
    const { moves } = await playByHand(planner);
    expect(moves.map(({ decision }) => callsOf(decision).length)).toEqual([1_000, 1_000, 500, 0]);
    const ids = moves.flatMap(({ decision }) =>
      (decision.kind === 'call_parallel' ? decision.branches : []).map(({ id }) => id),
    );
    expect(new Set(ids).size).toBe(2_500);
  });

  it('may say something, and may end with a result of its own', async () => {
    const planner = parcels({
      todo: () => [
        ['deliver', 'p1'],
        ['post', 'p2'],
      ],
      step: ([name, ...args]) => {
        if (name === 'note') return { type: 'message', input: 'It is on its way.' };
        if (name === 'post') return { id: 'end', type: 'finish', input: { $from: 'a1' } };
        return { type: 'tool', toolId: name, input: { args } };
      },
    });
    const { tools, calls } = parcelTools();
    const run = await start(world({ planner, tools }));
    expect(await run.result()).toMatchObject({ reason: 'goal', payload: 'pick p1: done' });
    expect(calls).toEqual(['pick p1', 'drive p1', 'drop p1']);
  });
});

function counted(state: HtnState, name: string): boolean {
  state.set('n', name, Number(state.get('n', name) ?? 0) + 1);
  return true;
}

describe('lazy', () => {
  it('decides one call at a time, and comes to the same', async () => {
    const { result, calls, plans } = await play({ lazy: true });
    expect(calls).toEqual(BOTH);
    expect(plans).toEqual([...BOTH.map((call) => [call]), []]);
    expect(result).toMatchObject({ payload: { results: { a1: 'pick p1: done', a6: 'drop p2: done' } } });
  });

  it('decomposes no further than to the next call', async () => {
    const decomposed: string[] = [];
    const tasks = Object.fromEntries(
      ['t1', 't2'].map((name) => [
        name,
        () => {
          decomposed.push(name);
          return [['act', name]] as HtnTask[];
        },
      ]),
    );
    const planner = htn({
      domain: htnDomain({ operators: { act: () => true }, tasks }),
      state: () => ({}),
      todo: () => [['t1'], ['t2']],
      step: ([, name]) => ({ type: 'tool', toolId: 'act', input: { args: [name ?? ''] } }),
      lazy: true,
    });
    const first = await ask(planner, view());
    expect([callsOf(first.decision), decomposed]).toEqual([['act t1'], ['t1']]);
    expect(first.decision.kind).toBe('call_tool');
  });

  it('AG-37 what has failed under a task is not tried there again later on', async () => {
    const go = (): boolean => true;
    const domain = htnDomain({
      operators: { x: go, y: go, z: go },
      tasks: {
        t: { first: () => [['x']], second: () => [['y'], ['u']] },
        u: { x: () => [['x']], z: () => [['z']] },
      },
    });
    for (const lazy of [false, true]) {
      const planner = htn({
        domain,
        lazy,
        state: () => ({}),
        todo: () => [['t']],
        step: ([name]) => ({ type: 'tool', toolId: 'act', input: { args: [name] } }),
      });
      const { moves } = await playByHand(planner, (call) =>
        call === 'act x' ? failure('tool_failed', 'no') : value('done'),
      );
      expect(moves.flatMap(({ decision }) => callsOf(decision))).toEqual(['act x', 'act y', 'act z']);
    }
  });

  it('plans anew what it was part of when a call fails, or when there is no going on', async () => {
    // By rail: the parcel is then at the station, where there is nothing but to post it.
    const { result, calls } = await play({ lazy: true }, ['drive p1']);
    expect(result).toMatchObject({ reason: 'goal' });
    expect(calls).toEqual(['pick p1', 'drive p1', 'train p1', 'post p1', 'pick p2', 'drive p2', 'drop p2']);
  });

  /** A tree of tasks whose methods all apply, so that no way is ever gone in vain. */
  const tree = fc.letrec<{ node: string | unknown[] }>((tie) => ({
    node: fc.oneof({ maxDepth: 4 }, fc.constantFrom('x', 'y'), fc.array(tie('node'), { maxLength: 3 })),
  })).node;

  it('gives the plan of findPlan, ahead and lazily', async () => {
    const domain = htnDomain({
      operators: { act: counted },
      tasks: {
        all: (_, parts: Json[]) =>
          parts.map((part): HtnTask => (typeof part === 'string' ? ['act', part] : ['all', part])),
      },
    });
    await fc.assert(
      fc.asyncProperty(fc.array(tree, { maxLength: 3 }), async (parts) => {
        const todo: readonly HtnTask[] = [['all', parts as Json[]]];
        const { actions = [] } = findPlan(domain, htnState({ n: [] }), todo);
        const wanted = actions.map((action) => action.join(' '));
        for (const lazy of [false, true]) {
          const planner = htn({
            domain,
            lazy,
            state: () => ({ n: [] }),
            todo: () => todo,
            step: ([name, ...args]) => ({ type: 'tool', toolId: name, input: { args } }),
          });
          const { moves } = await playByHand(planner);
          expect(moves.flatMap(({ decision }) => callsOf(decision))).toEqual(wanted);
        }
      }),
      { numRuns: 20 },
    );
  });
});

describe('whoever helps the planner', () => {
  it('chooses among the methods that apply, once for each question of a run', async () => {
    const asked: string[] = [];
    const choose: NonNullable<Changes['choose']> = async (task, methods) => {
      asked.push(`${task.join(' ')}: ${methods.join(', ')}`);
      return methods.at(-1) ?? '';
    };
    const { calls } = await play(
      {
        choose,
        todo: () => [
          ['deliver', 'p1'],
          ['carry', 'p1'],
        ],
      },
      ['walk p1'],
    );
    // `by post` first; then `on foot`, and after it has failed another way, with nobody asked again.
    expect(asked).toEqual(['deliver p1: by hand, by post', 'carry p1: by road, by rail, on foot']);
    expect(calls).toEqual(['post p1', 'walk p1']);
  });

  it('goes on to the other methods when the chosen one leads nowhere', async () => {
    const { calls, result } = await play({
      choose: async () => 'by rail',
      todo: () => [
        ['carry', 'p1'],
        ['drop', 'p1'],
      ],
      state: () => ({ at: [['p1', 'hand']], noted: [] }),
    });
    expect(result).toMatchObject({ reason: 'goal' });
    expect(calls).toEqual(['drive p1', 'drop p1']);
  });

  it.each([
    ['a name that nobody knows', 'by air', 'by air'],
    ['a name of a method that does not apply', { method: 'by hand' }, 'by hand'],
    ['nothing', {}, ''],
    ['no text', undefined as unknown as string, ''],
    ['a long text', 'x'.repeat(5_000), 'x'.repeat(200)],
  ])('tries the first that applies when the answer is %s, and that is recorded', async (_what, answer, kept) => {
    let asked = 0;
    const { calls, result, moves } = await play(
      {
        choose: async () => {
          asked += 1;
          return answer;
        },
        todo: () => [['carry', 'p1']],
        state: () => ({ at: [['p1', 'hand']], noted: [] }),
      },
      ['drive p1'],
    );
    // What has failed is not tried again, and the same question is not asked again.
    expect({ calls, asked }).toEqual({ calls: ['drive p1', 'train p1'], asked: 1 });
    expect(result).toMatchObject({ reason: 'goal' });
    const question = JSON.stringify([
      ['carry', 'p1'],
      ['by road', 'by rail', 'on foot'],
    ]);
    for (const { htn: record } of moves.slice(0, 2)) expect(record).toMatchObject({ choices: { [question]: kept } });
    const trace = traceIn(moves[0] ?? {});
    expect(trace.nodes[0]).toMatchObject({ task: ['carry', 'p1'], status: 'done', answer: kept });
    const said = kept === '' ? 'no method was' : `${JSON.stringify(kept)} was`;
    expect(traceText(trace).split('\n')[0]).toContain(`✓ carry(p1), where ${said} chosen`);
  });

  it.each([
    ['an error', new TypeError('no line'), 'planner_failed'],
    ['an error with a code', new PilotageError('plan_invalid', 'no line'), 'plan_invalid'],
  ])('fails the run when whoever chooses fails with %s, and says what was asked', async (_what, thrown, code) => {
    const { result } = await play({
      choose: () => Promise.reject(thrown),
      todo: () => [['carry', 'p1']],
    });
    const message = '`choose` failed for the task carry, asked for one of by road, by rail, on foot: ';
    expect(result).toMatchObject({ status: 'failed', error: { code, message: expect.stringContaining(message) } });
    expect(JSON.stringify(result)).toContain('no line');
  });

  it('says which leaf could not be filled in', async () => {
    const domain = htnDomain({ operators: {}, tasks: { think: [] } });
    const todo: HtnTask[] = [['think']];
    const failing = await play({ domain, todo: () => todo, fill: () => Promise.reject(new Error('no line')) });
    expect(failing.result).toMatchObject({
      error: { message: expect.stringContaining('`fill` failed for the task think') },
    });
    const nothing = await play({ domain, todo: () => todo, fill: async () => ({}) as { steps: [] } });
    expect(nothing.result).toMatchObject({ status: 'failed', error: { code: 'htn_invalid_decomposition' } });
  });

  it('tells what its answers took, and that stands in the move', async () => {
    const remark = (from: string): Remark => ({
      type: 'model.fallback',
      from,
      to: 'b',
      error: { code: 'http_503', message: 'busy' },
    });
    const domain = htnDomain({
      operators: { drive: () => true, walk: () => true },
      tasks: { carry: { 'by road': () => [['drive', 'p1']], 'on foot': () => [['walk', 'p1'], ['send']] }, send: [] },
    });
    const planner = parcels({
      domain,
      todo: () => [['carry'], ['send']],
      choose: async () => ({ method: 'on foot', usage: { inputTokens: 5, costMicroUsd: 7 }, remarks: [remark('one')] }),
      fill: async () => ({ steps: [], usage: { inputTokens: 2, outputTokens: 1 }, remarks: [remark('two')] }),
    });
    const first = await ask(planner, view());
    expect(callsOf(first.decision)).toEqual(['walk p1']);
    // Two leaves, and one choice.
    expect(first.usage).toEqual({ inputTokens: 9, outputTokens: 2, costMicroUsd: 7 });
    expect(first.remarks).toEqual([remark('one'), remark('two'), remark('two')]);
    const last = await ask(planner, view([stepOfMove(0, first, [value('done')])]));
    expect(last.decision).toMatchObject({ kind: 'finish', reason: 'goal' });
    expect([last.usage, last.remarks]).toEqual([undefined, undefined]);
  });

  it.each([false, true])('solves a task that has no methods, once (lazy: %s)', async (lazy) => {
    const filled: string[] = [];
    const domain = htnDomain({
      operators: { drop: () => true },
      tasks: { carry: [], think: [] },
    });
    const fill: NonNullable<Changes['fill']> = async (task) => {
      filled.push(task.join(' '));
      if (task[0] === 'think') return [];
      return ['pick', 'drive'].map((toolId) => ({ type: 'tool', toolId, input: { args: ['p1'] } }) as const);
    };
    const todo: HtnTask[] = [['think'], ['carry', 'p1'], ['think', 2], ['drop', 'p1']];
    const { calls, result } = await play({ domain, fill, lazy, todo: () => todo });
    expect(result).toMatchObject({ reason: 'goal' });
    expect(calls).toEqual(['pick p1', 'drive p1', 'drop p1']);
    expect(filled).toEqual(['think', 'carry p1', 'think 2']);
  });

  it('is not asked again for what stands behind a failure', async () => {
    const filled: string[] = [];
    const fill: NonNullable<Changes['fill']> = async (task) => {
      filled.push(task.join(' '));
      return [{ type: 'tool', toolId: 'post', input: { args: ['p2'] } }];
    };
    const go = (): boolean => true;
    const domain = htnDomain({
      operators: { drive: go, walk: go },
      tasks: { carry: { 'by road': () => [['drive', 'p1']], 'on foot': () => [['walk', 'p1']] }, send: [] },
    });
    const { calls } = await play({ domain, fill, todo: () => [['carry'], ['send', 'p2']] }, ['drive p1']);
    expect(calls).toEqual(['drive p1', 'walk p1', 'post p2']);
    expect(filled).toEqual(['send p2']);
  });

  it('may have nothing to do, and the changes of the state around that are kept', async () => {
    const noted = (state: HtnState, parcel: string): boolean => state.get('noted', parcel) === true;
    const note = (state: HtnState, parcel: string): boolean => {
      state.set('noted', parcel, true);
      return true;
    };
    const domain = htnDomain({
      operators: { note, post: (state, parcel: string) => !noted(state, parcel), pick: noted, drop: noted },
      tasks: {
        think: [],
        both: {
          never: () => [['post', 'p1']],
          ever: () => [
            ['pick', 'p1'],
            ['drop', 'p1'],
          ],
        },
      },
    });
    const todo: HtnTask[] = [['note', 'p1'], ['think'], ['both']];
    for (const lazy of [false, true]) {
      const { calls } = await play({ domain, lazy, fill: async () => [], todo: () => todo });
      expect(calls).toEqual(['pick p1', 'drop p1']);
    }
  });

  it('without anybody to solve it, such a task cannot be done', async () => {
    const domain = htnDomain({ operators: {}, tasks: { carry: [] } });
    const { result } = await play({ domain, todo: () => [['carry', 'p1']] });
    expect(result).toMatchObject({ reason: 'no_path', metadata: { reasons: ['carry(p1): no method applies'] } });
  });
});

describe('conformance', () => {
  const variants = [false, true].map((lazy) => ({
    name: lazy ? 'htn, lazy' : 'htn',
    capabilities: { modelDriven: false, canPause: false, wakeRoundTrip: false, honoursCancel: true },
    skip: lazy ? { 'parallel shape': 'it makes one call at a time' } : {},
    make: ({ tools: { lookUp } }: PlannerScenario) =>
      htn({
        domain: htnDomain({ operators: { look: () => true } }),
        lazy,
        state: () => ({}),
        todo: ({ goal, tools }) => {
          const words = tools.get(lookUp) === undefined ? [] : ['first', 'second'];
          return words.map((word): HtnTask => ['look', `${word} ${goal.slice(0, 100)}`]);
        },
        step: ([, about = '']) => ({ type: 'tool', toolId: lookUp, input: { about } }),
      }),
  }));

  const cases = variants.flatMap((options) => plannerConformance(options)).filter(({ skip }) => skip === undefined);
  it.each(cases.map(({ name, run }) => [name, run] as const))('%s', (_name, run) => run());
});

describe('a run', () => {
  it('plans for its new goal from where it is', async () => {
    const todo: NonNullable<Changes['todo']> = ({ goal }) => (goal === 'hello' ? TODO : [['drop', 'p1']]);
    const goals = (step: number): string => (step < 2 ? 'hello' : 'only the first');
    const { moves } = await playByHand(parcels({ lazy: true, todo }), undefined, goals);
    expect(moves.map(({ decision }) => callsOf(decision))).toEqual([['pick p1'], ['drive p1'], ['drop p1'], []]);
  });

  it.each([false, true])('goes on from its trajectory wherever a process dies (lazy: %s)', async (lazy) => {
    const report = await crashEverywhere(
      {
        name: `parcels, lazy: ${lazy}`,
        planner: parcels({ lazy }),
        query: 'Deliver both',
        tools: (outside) =>
          NAMES.map((name) =>
            make(
              name,
              async (given, context) => {
                const call = [name, ...(given as { args: Json[] }).args].join(' ');
                if (call === 'drive p1') throw new Error('The road is closed.');
                await outside.effect(context);
                return call;
              },
              { effect: 'keyed' },
            ),
          ),
      },
      { doubles: 2 },
    );
    assertCrashProof(report);
    expect(report.points.length).toBeGreaterThan(20);
  });

  it('the domain is what was written down: a task that is gone fails the run', async () => {
    const first = await ask(parcels(), view());
    const steps = [stepOfMove(0, first, [value('done'), failure('tool_failed', 'no')])];
    const domain = htnDomain({ operators: {}, tasks: {} });
    await expect(ask(parcels({ domain }), view(steps))).rejects.toMatchObject({
      code: 'htn_invalid_decomposition',
      message: expect.stringMatching(/does not know any more/),
    });
    expect(PARCELS.entries.has('deliver')).toBe(true);
  });

  it('stops when its signal is aborted, also in the middle of a long search', async () => {
    const abort = new AbortController();
    const domain = htnDomain({
      operators: {},
      tasks: { endless: (_, count: number) => [['endless', count + 1]] },
    });
    const planner = parcels({ domain, todo: () => [['endless', 0]], nodes: 1e9, depth: 1e9 });
    const asking = ask(planner, view(), abort.signal);
    const reason = new Error('called off');
    setImmediate(() => abort.abort(reason));
    await expect(asking).rejects.toBe(reason);
  });
});
