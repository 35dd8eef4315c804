/** Branches with several ways to them, values of earlier steps, and calls that fail fast: on real files, over restarts. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Branch, type CallParallel, type Decision, errorOf, type Json, type Route } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { planNodes } from '#plans';
import { isBlocked } from '#state';
import { assertCrashProof, type CrashScenario, crashEverywhere, VirtualClock } from '#testing';
import type { Tool } from '#tools';
import { finish, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { cutJournal } from '../kit/journals.ts';
import { innerState, observations, outcomes, pausesOf } from '../kit/run-record.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { aborted, quiet, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const plan = (branches: readonly Branch[], more: Partial<CallParallel> = {}): Decision => ({
  kind: 'call_parallel',
  plan: 'p',
  branches,
  onInvalid: 'per_branch',
  ...more,
});

const node = (id: string, args: Json, more: Partial<Branch> = {}): Branch => ({ id, tool: 'note', args, ...more });
const when = (branch: string, equals: Json): Pick<Route, 'when'> => ({ when: { branch, equals } });

/** Decides for each step once; a tool notes what it was called with. */
function noted(more: Partial<Tool> = {}) {
  const got: Json[] = [];
  const note = make(
    'note',
    (args) => {
      got.push(args);
      if (args['fail'] === true) throw new Error('no');
      return args['gives'] ?? args;
    },
    more,
  );
  return { got, note };
}

function sqliteWorld(decisions: readonly Decision[], tools: readonly Tool[]): World {
  const clock = new VirtualClock();
  const journal = sqliteJournal({ path: temporaryFile(), clock });
  onTestFinished(() => journal.close());
  return world({ planner: script(...decisions), tools: [echo, ...tools], journal, clock });
}

const ROUTER = node('router', { gives: 'b' });
const TARGETS = ['a', 'b', 'c'].map((id) => node(id, { id, sent: { $from: 'router' } }, when('router', id)));

describe('RT-06 a router in front of three branches', () => {
  it('the one that is chosen runs once, the others not at all, and what comes behind them goes the way that was gone', async () => {
    const { got, note } = noted();
    const merge: Branch = {
      id: 'merge',
      tool: 'note',
      args: null,
      routes: ['a', 'b', 'c'].map((id) => ({ args: { by: id, from: { $from: id } } })),
    };
    const run = await start(sqliteWorld([plan([merge, ROUTER, ...TARGETS])], [note]));
    expect(await run.result()).toMatchObject({ status: 'finished', usage: { calls: 3 } });
    const sent = { id: 'b', sent: 'b' };
    expect(got).toEqual([{ gives: 'b' }, sent, { by: 'b', from: sent }]);
    const [step] = (await run.state()).steps;
    if (step === undefined) throw new Error('there is no step');
    expect(planNodes(step).map(({ id, status, passed }) => [id, passed ?? status])).toEqual([
      ['merge', 'done'],
      ['router', 'done'],
      ['a', true],
      ['b', 'done'],
      ['c', true],
    ]);
    const { plan: shown } = await run.state();
    expect(shown?.nodes[0]).toMatchObject({
      after: ['a', 'b', 'c'],
      args: { by: 'b', from: { $from: 'b' } },
      routes: merge.routes,
      status: 'done',
    });
  });

  it('what only the others lead to is passed over; what one of those needs that has failed is not', async () => {
    const { got, note } = noted();
    const only = (id: string, ...ids: string[]): Branch => ({
      id,
      tool: 'note',
      args: null,
      routes: ids.map((other) => ({ args: { $from: other } })),
    });
    const bad = node('bad', { fail: true });
    const branches = [ROUTER, ...TARGETS, bad, only('far', 'a', 'c'), only('lost', 'a', 'bad'), only('next', 'far')];
    const run = await start(sqliteWorld([plan(branches)], [note]));
    await run.result();
    expect(got).toHaveLength(3);
    const [step] = (await run.state()).steps;
    if (step === undefined) throw new Error('there is no step');
    const nodes = new Map(planNodes(step).map((made) => [made.id, made]));
    expect([nodes.get('far')?.passed, nodes.get('next')?.passed]).toEqual([true, true]);
    expect(nodes.get('lost')).toMatchObject({ status: 'skipped', error: { data: { branch: 4 } } });
    expect(nodes.get('lost')).not.toHaveProperty('passed');
  });

  it('goes the first of the ways that are open, in the order of the routes and not of the ends', async () => {
    const { note } = noted();
    const { tool, entered, release } = holding();
    const routes = [
      { args: { way: 1 }, after: ['slow'] },
      { args: { way: 2 }, after: ['fast'] },
    ];
    const branches: Branch[] = [
      { id: 'last', tool: 'note', args: null, routes },
      { id: 'slow', tool: 'hold', args: {} },
      node('fast', {}),
    ];
    const here = sqliteWorld([plan(branches)], [note, tool]);
    const run = await start(here);
    await entered;
    await quiet();
    expect((await run.state()).plan?.nodes[0]).toMatchObject({ status: 'waiting', args: null });
    release();
    await run.result();
    expect(observations(await run.state())[0]).toMatchObject([{ value: { way: 1 } }, {}, {}]);
  });

  it('works in a call that is no plan, and for a branch alone', async () => {
    const { got, note } = noted();
    const alone: Decision = {
      kind: 'call_parallel',
      branches: [{ tool: 'note', args: null, routes: [{ args: { one: 1 } }] }],
    };
    await (await start(sqliteWorld([alone], [note]))).result();
    expect(got).toEqual([{ one: 1 }]);
  });

  it('arguments of one of its routes that never fit are found before anything is started', async () => {
    const { got, note } = noted({ inputSchema: { type: 'object', required: ['id'], properties: { id: {} } } });
    const routes = [{ args: { id: { $from: '0' } } }, { args: { none: 1 } }];
    const branches: Branch[] = [
      { tool: 'note', args: { id: 1 } },
      { tool: 'note', args: null, routes },
    ];
    const run = await start(sqliteWorld([{ kind: 'call_parallel', branches }], [note]));
    await run.result();
    expect(got).toEqual([]);
    expect((await run.state()).steps[0]?.error).toMatchObject({ code: 'parallel_branch_invalid_args' });
  });

  it('what somebody changes stands in for the arguments of every route, and may refer to what all of them need', async () => {
    const { got, note } = noted();
    const { tool, entered, release } = holding();
    const routes = [
      { args: {}, after: ['r'], ...when('r', 1) },
      { args: { $from: 'r' } },
      { args: {}, after: ['r', 'x'] },
    ];
    const branches: Branch[] = [
      { id: 'r', tool: 'hold', args: {} },
      node('x', { x: 1 }),
      { id: 'm', tool: 'note', args: null, routes },
    ];
    const run = await start(sqliteWorld([plan(branches)], [note, tool]));
    await entered;
    await run.pause();
    release();
    await pausesOf(run);
    const foreign = { m: { args: { x: { $from: 'x' } } } };
    await expect(run.resume({ nodes: foreign })).rejects.toMatchObject({ code: 'payload_invalid' });
    await run.resume({ nodes: { m: { args: { changed: { $from: 'r' } } } } });
    await run.result();
    expect(got.at(-1)).toEqual({ changed: 'run 1' });
  });
});

describe('a run that waits for somebody', () => {
  it('is not held up by a branch that another way leads to, nor by one that has failed already', async () => {
    const { got, note } = noted();
    const ask = make('ask', () => 'asked', { needsApproval: true });
    // `dead` needs what failed before what is asked for: it is over, and the routed one goes its other way.
    const branches: Branch[] = [
      node('bad', { fail: true }),
      { id: 'ask', tool: 'ask', args: {} },
      node('dead', {}, { after: ['bad', 'ask'] }),
      { id: 'routed', tool: 'note', args: null, routes: [{ args: { $from: 'dead' } }, { args: { other: 1 } }] },
      { id: 'waits', tool: 'note', args: null, routes: [{ args: { $from: 'ask' } }, { args: { late: 1 } }] },
    ];
    const made = sqliteWorld([plan(branches)], [note, ask]);
    const run = await start(made);
    const [pause] = await pausesOf(run);
    expect(got).toEqual([{ fail: true }, { other: 1 }]);
    expect(isBlocked(await innerState(made.journal, run))).toBe(true);
    await run.reject(pause?.token);
    await run.result();
    expect(got).toEqual([{ fail: true }, { other: 1 }, { late: 1 }]);
    expect(outcomes(await run.state())).toEqual(['error', 'error', 'skipped', 'value', 'value']);
  });
});

describe('the value of a branch of an earlier step', () => {
  const BIG = 'x'.repeat(40_000);

  it('is there whole, also when it is kept as an artifact, by branch, step and path', async () => {
    const { got, note } = noted();
    const first = plan([node('big', { gives: { text: BIG, size: 7 } }), node('small', { gives: { a: [1, 2] } })]);
    const second = plan(
      [
        node('small', { gives: 'new' }),
        node('all', {
          text: { $from: 'big', path: '/text', step: 0 },
          whole: [{ $from: 'big', step: 0 }],
          old: { $from: 'small', path: '/a/1', step: 0 },
          now: { $from: 'small' },
        }),
      ],
      { plan: 'p2' },
    );
    const run = await start(sqliteWorld([first, second], [note]));
    await run.result();
    const { steps } = await run.state();
    expect(steps[0]?.calls[0]?.outcome).toHaveProperty('artifact');
    expect(got.at(-1)).toEqual({ text: BIG, whole: [{ text: BIG, size: 7 }], old: 2, now: 'new' });
  });

  it('is that of a single call too, under its index', async () => {
    const { got, note } = noted();
    const first: Decision = { kind: 'call_tool', tool: 'note', args: { gives: 5 } };
    const run = await start(sqliteWorld([first, plan([node('n', { five: { $from: '0', step: 0 } })])], [note]));
    await run.result();
    expect(got).toEqual([{ gives: 5 }, { five: 5 }]);
  });

  it('the arguments of a call alone are as they are: only branches refer to others', async () => {
    const { got, note } = noted();
    const args = { x: { $from: '0', step: 0 } };
    const single: Decision = { kind: 'call_tool', tool: 'note', args };
    await (await start(sqliteWorld([single], [note]))).result();
    expect(got).toEqual([args]);
  });

  it.each<[string, Json, RegExp]>([
    ['the step itself', { $from: 'ok', step: 1 }, /"ok" of step 1 is referred to in step 1/],
    ['a step to come', { $from: 'ok', step: 9 }, /step 9/],
    ['a branch that the step does not have', { $from: 'other', step: 0 }, /"other" of step 0/],
    ['one without a value', { $from: 'bad', step: 0 }, /"bad" of step 0/],
    ['nothing in its value', { $from: 'ok', step: 0, path: '/no' }, /"\/no" in the result of branch "ok" of step 0/],
  ])('reference_unresolved, the call is not made: %s', async (_, reference, message) => {
    const { got, note } = noted();
    const first = plan([node('ok', { gives: 1 }), node('bad', { fail: true })]);
    const run = await start(sqliteWorld([first, plan([node('ok', { x: reference })])], [note]));
    await run.result();
    expect(got).toHaveLength(2);
    const error = errorOf((await run.state()).steps[1]?.calls[0]?.outcome ?? { kind: 'value', value: null });
    expect(error).toMatchObject({ code: 'reference_unresolved', message: expect.stringMatching(message) });
  });
});

describe('failFast', () => {
  /** Runs until it is stopped. */
  function forever() {
    const stopped: unknown[] = [];
    const entered: string[] = [];
    const tool = make('forever', async (args, { signal }) => {
      entered.push(String(args['id']));
      await aborted(signal).catch((reason: unknown) => {
        stopped.push(args['id']);
        throw reason;
      });
    });
    return { tool, entered, stopped };
  }

  it.each([
    ['a plan', { plan: 'p', onInvalid: 'per_branch' }],
    ['a call that is none', {}],
  ] as const)('the first failure of %s stops a sibling that would run for ever, and what waits', async (_, how) => {
    const { tool, stopped, entered } = forever();
    const fails = make('fails', async () => {
      await until(() => entered.length === 1);
      throw new Error('no');
    });
    const ask = make('ask', () => 1, { needsApproval: true });
    const branches: Branch[] = [
      { id: 'f', tool: 'forever', args: { id: 'f' } },
      { id: 'bad', tool: 'fails', args: {} },
      { id: 'ask', tool: 'ask', args: {} },
      { id: 'next', tool: 'echo', args: {}, after: ['f'] },
    ];
    const run = await start(
      sqliteWorld([{ kind: 'call_parallel', branches, failFast: true, ...how }], [tool, fails, ask]),
    );
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(stopped).toEqual(['f']);
    const state = await run.state();
    expect(outcomes(state)).toEqual(['cancelled', 'error', 'cancelled', 'cancelled']);
    expect(errorOf(state.steps[0]?.calls[3]?.outcome ?? { kind: 'value', value: 0 })?.message).toMatch(/failed/);
    // Of the joins only those that ask for successes make an error of the step.
    expect(state.steps[0]?.error).toBeUndefined();
    expect(state.pauses).toEqual([]);
  });

  it('a join that asks for more successes than there were is not met', async () => {
    const fails = make('fails', () => {
      throw new Error('no');
    });
    const branches: Branch[] = [
      { tool: 'fails', args: {} },
      { tool: 'echo', args: {}, after: ['0'] },
      { tool: 'echo', args: {}, after: ['1'] },
    ];
    const join = { kind: 'n', n: 2 } as const;
    const run = await start(sqliteWorld([{ kind: 'call_parallel', branches, join, failFast: true }], [fails]));
    await run.result();
    expect((await run.state()).steps[0]?.error).toMatchObject({ code: 'parallel_threshold_unmet' });
  });

  it('a rejected call is a failure: nothing is left to wait for', async () => {
    const ask = make('ask', () => 1, { needsApproval: true });
    const branches: Branch[] = ['a', 'b'].map((id) => ({ id, tool: 'ask', args: {} }));
    const run = await start(sqliteWorld([plan(branches, { failFast: true })], [ask]));
    const [pause] = await pausesOf(run);
    await run.reject(pause?.token);
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(outcomes(await run.state()).sort()).toEqual(['cancelled', 'error']);
  });

  it('is known again by the next process: what had not begun is not', async () => {
    const path = temporaryFile();
    const clock = new VirtualClock();
    const { tool, entered } = forever();
    const { got, note } = noted();
    const branches: Branch[] = [
      { id: 'f', tool: 'forever', args: { id: 'f' } },
      node('bad', { fail: true }),
      node('b', {}, { after: ['f'] }),
    ];
    const planner = script(plan(branches, { failFast: true }));
    const stored = sqliteJournal({ path, clock });
    onTestFinished(() => stored.close());
    const { journal, cut } = cutJournal(stored);
    // It dies when the failure is stored, and before anything follows from it.
    const dying = new Proxy(journal, {
      get: (target, key) => {
        const own: unknown = Reflect.get(target, key);
        if (key !== 'append') return own;
        return async (request: Parameters<typeof journal.append>[0]) => {
          await journal.append(request);
          if (request.entries.some(({ kind }) => kind === 'call_ended')) cut();
        };
      },
    });
    const first = world({ planner, tools: [tool, note, echo], journal: dying, clock });
    const run = await start(first);
    await until(async () => (await stored.read(run.id)).some(({ kind }) => kind === 'call_ended'));
    await quiet();
    clock.advance(60_000);
    const next = world({ planner, tools: [tool, note, echo], journal: stored, clock });
    const again = next.runtime.run(run.id);
    await again.resume();
    expect(await again.result()).toMatchObject({ status: 'finished' });
    expect(outcomes(await again.state())).toEqual(['cancelled', 'error', 'cancelled']);
    expect([entered.length, got.length]).toEqual([1, 1]);
  });
});

describe('a process that dies at any moment', () => {
  it('runs the chosen way once, and nothing of the others, with values of the step before', async () => {
    const branches: Branch[] = [
      { id: 'router', tool: 'give', args: { gives: 'b' } },
      ...['a', 'b', 'c'].map(
        (id): Branch => ({
          id,
          tool: 'send',
          args: { id, seed: { $from: 'seed', step: 0 } },
          ...when('router', id),
        }),
      ),
      {
        id: 'merge',
        tool: 'send',
        args: null,
        routes: ['a', 'b', 'c'].map((id) => ({ args: { id: 'merge', of: { $from: id } } })),
      },
      { id: 'lost', tool: 'send', args: null, routes: [{ args: { id: 'x', of: { $from: 'a' } } }] },
      { id: 'end', tool: '_finish', args: { $from: 'merge' } },
    ];
    const scenario: Omit<CrashScenario, 'check'> = {
      name: 'routes',
      query: 'go',
      tools: (crashes) =>
        (['send', 'give', 'seed'] as const).map((name, index) =>
          make(
            name,
            async (args, context) => {
              await crashes.effect(context);
              return args['gives'] ?? args;
            },
            { effect: (['once', 'keyed', 'read'] as const)[index] ?? 'once' },
          ),
        ),
      planner: (run) => {
        const { count } = run.trajectory;
        if (count === 0) return plan([{ id: 'seed', tool: 'seed', args: { gives: 'sown' } }], { plan: 'p0' });
        if (count === 1) return plan(branches, { failFast: true });
        return finish(run.trajectory.step(1)?.calls.at(-1)?.outcome.kind ?? null);
      },
    };
    const report = await crashEverywhere({
      ...scenario,
      check: ({ steps }) => {
        const kinds = steps[1]?.calls.map(({ outcome }) => outcome.kind) ?? [];
        return [1, 3, 5].flatMap((call) => (kinds[call] === 'value' ? [`branch ${call} was run`] : []));
      },
    });
    assertCrashProof(report);
    expect(report.points.length).toBeGreaterThan(15);
  });
});
