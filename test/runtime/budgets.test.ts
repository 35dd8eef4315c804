/** Budgets: what the planner reads, what the runtime enforces, and how a ceiling is raised. */
import { describe, expect, it } from 'vitest';
import { type BudgetView, type Limits, local, type PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { VirtualClock } from '#testing';
import { agent, agentTool } from '#tools';
import { call, finish, parallel, script, watched } from '../kit/decisions.ts';
import { changed, cutJournal } from '../kit/journals.ts';
import { entriesOf, outcomes } from '../kit/run-record.ts';
import { ANY, echo, make } from '../kit/tools.ts';
import { aborted, advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const forever: PlannerFunction = () => call('echo');

/** A planner whose every move costs. */
const spends =
  (costMicroUsd: number, inputTokens = 0): PlannerFunction =>
  () => ({
    decision: call('echo'),
    usage: { costMicroUsd, inputTokens },
  });

const budgets = (planner: { views: readonly { budget: BudgetView }[] }) => planner.views.map((view) => view.budget);

describe('what there is', () => {
  it('BG-01 has no deadline, cost cap or token cap unless one is given', async () => {
    const planner = watched(script());
    await (await start(world({ planner }))).result();
    expect(budgets(planner)).toEqual([{ stepsLeft: 64, costMicroUsdSpent: 0 }]);
  });

  it.each([
    { steps: -1 },
    { steps: Number.NaN },
    { deadlineAt: Number.POSITIVE_INFINITY },
    { costUsd: -5 },
    { costUsd: 0 },
    { costUsd: Number.NaN },
    { costUsd: 500_000 },
    { costUsd: 1e-7 },
    { costUsd: '1' as never },
    { costMicroUsd: 500_000 as never },
    { cost: 5 } as never,
    { tokens: '7' as never },
    { onCeiling: 'stop' as never },
  ])('refuses the limits %o', async (limits) => {
    expect(() => world({ planner: script(), limits })).toThrow(expect.objectContaining({ code: 'invalid_config' }));
    await expect(start(world({ planner: script() }), { limits })).rejects.toMatchObject({ code: 'invalid_config' });
  });

  it('takes the runtime’s limits for runs that state none, part by part', async () => {
    const planner = watched(script());
    const made = world({ planner, limits: { steps: 9, tokens: 100 } });
    await (await start(made)).result();
    await (await start(made, { limits: { steps: 3 } })).result();
    expect(budgets(planner)).toMatchObject([
      { stepsLeft: 9, tokensLeft: 100 },
      { stepsLeft: 3, tokensLeft: 100 },
    ]);
  });
});

describe('steps', () => {
  it('BG-02, BG-04 counts down 3, 2, 1 and ends as max_steps, naming the budget', async () => {
    const planner = watched(forever);
    const run = await start(world({ planner, tools: [echo] }), { limits: { steps: 3 } });
    expect(await run.result()).toMatchObject({ reason: 'max_steps', metadata: { budget: 'steps' } });
    expect(budgets(planner).map((budget) => budget.stepsLeft)).toEqual([3, 2, 1]);
  });

  it('begins none for half a step', async () => {
    const run = await start(world({ planner: forever, tools: [echo] }), { limits: { steps: 1.5 } });
    expect(await run.result()).toMatchObject({ reason: 'max_steps', usage: { steps: 1 } });
  });

  it('BG-04 has none left when the limit is 0', async () => {
    const planner = watched(forever);
    const run = await start(world({ planner, tools: [echo] }), { limits: { steps: 0 } });
    expect(await run.result()).toMatchObject({ reason: 'max_steps', metadata: { budget: 'steps', steps_observed: 0 } });
    expect(planner.views).toEqual([]);
  });

  it('BG-09 counts a parallel step as one', async () => {
    const planner = watched(() => ({ kind: 'call_parallel', branches: Array(5).fill({ tool: 'echo', args: {} }) }));
    const run = await start(world({ planner, tools: [echo] }), { limits: { steps: 2 } });
    expect(await run.result()).toMatchObject({ usage: { steps: 2, calls: 10 } });
  });
});

describe('cost and tokens', () => {
  it('BG-05 ends before the fourth model call, and shows 0, 400, 800 spent', async () => {
    const planner = watched(spends(400));
    const run = await start(world({ planner, tools: [echo] }), { limits: { costUsd: 0.001 } });
    expect(await run.result()).toMatchObject({ reason: 'max_cost', metadata: { budget: 'cost' } });
    expect(budgets(planner).map((budget) => budget.costMicroUsdSpent)).toEqual([0, 400, 800]);
    expect(budgets(planner).map((budget) => budget.costMicroUsdLeft)).toEqual([1_000, 600, 200]);
  });

  it('counts input and output tokens', async () => {
    const planner = watched(() => ({ decision: call('echo'), usage: { inputTokens: 30, outputTokens: 15 } }));
    const run = await start(world({ planner, tools: [echo] }), { limits: { tokens: 100 } });
    expect(await run.result()).toMatchObject({ reason: 'max_tokens', metadata: { budget: 'tokens' } });
    expect(budgets(planner).map((budget) => budget.tokensLeft)).toEqual([100, 55, 10]);
  });

  it('BG-09 counts the cost of every branch, and refuses a branch for which there is no room', async () => {
    let runs = 0;
    const priced = make('priced', () => (runs += 1), { costUsd: 0.0003 });
    const run = await start(
      world({
        planner: script({ kind: 'call_parallel', branches: Array(4).fill({ tool: 'priced', args: {} }) }),
        tools: [priced],
      }),
      { limits: { costUsd: 0.001 } },
    );
    await run.result();
    const state = await run.state();
    expect(runs).toBe(3);
    expect(state.totals.costMicroUsd).toBe(900);
    expect(outcomes(state)).toEqual(['value', 'value', 'value', 'error']);
    expect(state.steps[0]?.calls[3]).toMatchObject({ attempts: 0, outcome: { error: { code: 'budget_exceeded' } } });
  });
});

describe('the deadline', () => {
  it('BG-03, BG-10 aborts what is in flight at the deadline, and ends as deadline_exceeded', async () => {
    const entered = gate();
    const made = world({
      planner: script(call('wait')),
      tools: [
        make('wait', (_, { signal }) => {
          entered.open();
          return aborted(signal);
        }),
      ],
    });
    const run = await start(made, { limits: { deadlineAt: made.clock.now() + 3_600_000 } });
    await entered.opened;
    made.clock.advance(3_599_999);
    await quiet();
    expect((await run.state()).ending).toBeNull();
    made.clock.advance(1);
    expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded', metadata: { budget: 'deadline' } });
    expect(outcomes(await run.state())).toEqual(['cancelled']);
  });

  it('BG-03 aborts the planner at the deadline', async () => {
    const entered = gate();
    const made = world({
      planner: (_, signal) => {
        entered.open();
        return aborted(signal);
      },
    });
    const run = await start(made, { limits: { deadlineAt: made.clock.now() + 100 } });
    await entered.opened;
    made.clock.advance(100);
    expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded' });
  });

  it('ends a paused run at its deadline when a worker is there', async () => {
    const made = world({ planner: script({ kind: 'request_pause', reason: 'await_input' }) });
    made.runtime.work();
    const run = await start(made, { limits: { deadlineAt: made.clock.now() + 60_000 } });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await until(async () => (await made.journal.get(run.id))?.lease === undefined);
    expect((await made.journal.get(run.id))?.wakeAt).toBe(made.clock.now() + 60_000);
    made.clock.advance(59_000);
    await quiet();
    expect((await run.state()).ending).toBeNull();
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded' });
    await made.runtime.close();
  });

  it('keeps to a deadline that was moved while the run was paused', async () => {
    const entered = gate();
    const made = world({
      planner: (run, signal) => {
        if (run.trajectory.count === 0) return call('echo');
        entered.open();
        return aborted(signal);
      },
      tools: [make('echo', () => held.opened)],
    });
    const held = gate();
    const began = made.clock.now();
    const run = await start(made, { limits: { deadlineAt: began + 1_000 } });
    const paused = run.pause();
    held.open();
    await paused;
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await run.resume({ limits: { deadlineAt: began + 9_000 } });
    await entered.opened;
    made.clock.advance(1_000);
    await quiet();
    expect((await run.state()).ending).toBeNull();
    made.clock.advance(8_000);
    expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded' });
    expect(made.faults).toEqual([]);
  });
});

describe('a deadline that has passed', () => {
  it('does not stop the run when it is moved in the very moment in which it passes', async () => {
    const clock = new VirtualClock();
    const base = memoryJournal({ clock });
    const entered = gate();
    const ends = gate();
    const held = gate();
    let asked = 0;
    const journal = changed(base, {
      inbox: async (run) => {
        asked += 1;
        await held.opened;
        return base.inbox(run);
      },
    });
    const tool = make('hold', async () => {
      entered.open();
      await ends.opened;
    });
    const made = world({ planner: script(call('hold'), call('echo')), tools: [tool, echo], journal, clock });
    const began = clock.now();
    const run = await start(made, { limits: { deadlineAt: began + 1_000 } });
    await entered.opened;
    await base.signal(run.id, { id: 'p', type: 'PAUSE' });
    await base.signal(run.id, { id: 'r', type: 'RESUME', payload: { limits: { deadlineAt: began + 60_000 } } });
    const last = run.steer('INJECT_CONTEXT');
    await until(() => asked === 1);
    ends.open();
    await until(() => asked === 2);
    clock.advance(1_000);
    held.open();
    await last;
    await until(async () => (await run.state()).ending !== null);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', usage: { steps: 2 } });
  });

  it('may be one that somebody set while the run was going', async () => {
    const inTool = gate();
    const ends = gate();
    const planning = gate();
    const made = world({
      planner: (run, signal) => {
        if (run.trajectory.count === 0) return call('hold');
        planning.open();
        return aborted(signal);
      },
      tools: [
        make('hold', async () => {
          inTool.open();
          await ends.opened;
        }),
      ],
    });
    const run = await start(made);
    await inTool.opened;
    await made.journal.signal(run.id, { id: 'p', type: 'PAUSE' });
    const moved = run.resume({ limits: { deadlineAt: made.clock.now() + 300 } });
    await quiet();
    ends.open();
    await moved;
    await planning.opened;
    made.clock.advance(300);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
  });

  it('may be one that somebody set while the run was paused', async () => {
    const entered = gate();
    const made = world({
      planner: (_, signal) => {
        entered.open();
        return aborted(signal);
      },
      limits: { steps: 0, onCeiling: 'pause' },
    });
    const run = await start(made);
    await run.result();
    await run.resume({ limits: { steps: 9, deadlineAt: made.clock.now() + 300, onCeiling: 'finish' } });
    await entered.opened;
    made.clock.advance(300);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
  });

  it('can still be moved while the run is paused: the answer counts before the clock', async () => {
    const planner = watched(script(call('echo')));
    const held = gate();
    const made = world({ planner, tools: [make('echo', () => held.opened)] });
    const began = made.clock.now();
    const run = await start(made, { limits: { deadlineAt: began + 1_000 } });
    const paused = run.pause();
    held.open();
    await paused;
    await run.result();
    made.clock.advance(5_000);
    await run.resume({ limits: { deadlineAt: began + 60_000 } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(planner.views).toHaveLength(2);
  });

  it('ends the run when somebody resumes it and moves nothing', async () => {
    const planner = watched(script({ kind: 'request_pause', reason: 'await_input' }));
    const made = world({ planner });
    const run = await start(made, { limits: { deadlineAt: made.clock.now() + 1_000 } });
    await run.result();
    made.clock.advance(5_000);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'deadline_exceeded' });
    expect(planner.views).toHaveLength(1);
  });
});

describe('pausing at the ceiling', () => {
  it.each([
    ['steps', { steps: 2 }, { steps: 4 }, forever, { limit: 2, used: 2 }],
    ['cost', { costUsd: 0.0005 }, { costUsd: 0.0011 }, spends(300), { limit: 0.0005, used: 0.0006 }],
    ['tokens', { tokens: 50 }, { tokens: 110 }, spends(0, 30), { limit: 50, used: 60 }],
  ] as const)('asks for a raise of %s, and goes on with it', async (axis, limits, raise, plan, payload) => {
    const planner = watched(plan);
    const run = await start(world({ planner, tools: [echo] }), { limits: { ...limits, onCeiling: 'pause' } });
    expect(await run.result()).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'constraints_conflict', payload: { budget: axis, ...payload } }],
    });
    expect(planner.views).toHaveLength(2);
    await run.resume({ limits: raise });
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ payload: { budget: axis } }] });
    expect(planner.views).toHaveLength(4);
    // What is not named stays: it still pauses.
    const raised = 'costUsd' in raise ? { costMicroUsd: 1_100 } : raise;
    expect((await run.state()).limits).toEqual({ ...raised, onCeiling: 'pause' });
  });

  it('asks for more time at the deadline, without cutting off what runs', async () => {
    const entered = gate();
    const held = gate();
    const made = world({
      planner: script(call('slow')),
      tools: [
        make('slow', async () => {
          entered.open();
          await held.opened;
          return 'whole';
        }),
      ],
    });
    const began = made.clock.now();
    const run = await start(made, { limits: { deadlineAt: began + 100, onCeiling: 'pause' } });
    await entered.opened;
    made.clock.advance(200);
    await quiet();
    held.open();
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ payload: { budget: 'deadline' } }] });
    await run.resume({ limits: { deadlineAt: began + 1_000 } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(outcomes(await run.state())).toEqual(['value']);
  });

  it('pauses again when the raise is not enough, and refuses limits that are none', async () => {
    const made = world({ planner: forever, tools: [echo] });
    const run = await start(made, { limits: { steps: 2, onCeiling: 'pause' } });
    await run.result();
    await expect(run.resume({ limits: { steps: -3 } })).rejects.toMatchObject({ code: 'invalid_config' });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await run.resume({ limits: { steps: 2 } });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await run.resume({ limits: { onCeiling: 'finish' } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'max_steps' });
    expect(await entriesOf(made.journal, run, 'paused')).toHaveLength(2);
  });

  it('does not drop limits in silence when nothing is paused', async () => {
    const entered = gate();
    const held = gate();
    const made = world({
      planner: script(call('slow')),
      tools: [
        make('slow', async () => {
          entered.open();
          await held.opened;
        }),
      ],
    });
    const run = await start(made);
    await entered.opened;
    const refused = expect(run.resume({ limits: { steps: 9 } })).rejects.toMatchObject({ code: 'pause_not_found' });
    await quiet();
    held.open();
    await refused;
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('counts what one run spends against that run alone', async () => {
    const planner = watched(spends(400));
    const made = world({ planner, tools: [echo] });
    const limits = { costUsd: 0.001 };
    const runs = await Promise.all(
      Array.from({ length: 10 }, (_, index) => start(made, { identity: local(`u${index}`), limits })),
    );
    const results = await Promise.all(runs.map((run) => run.result()));
    expect(results.map((result) => result.usage.costMicroUsd)).toEqual(Array(10).fill(1_200));
  });
});

it('a call that did not happen is not made again with money that others have used up meanwhile (seed 530002134)', async () => {
  const made: string[] = [];
  const pay = make(
    'pay',
    (_, { signal }) => {
      made.push('pay');
      return aborted(signal);
    },
    { effect: 'once', costUsd: 0.00025, timeoutMs: 1_000 },
  );
  // A model tells what its reply has cost when it is there: more than the run was lent.
  const usage = { inputTokens: 1, outputTokens: 1, costMicroUsd: 200 };
  const spender = agent({ name: 'spender', planner: () => ({ decision: finish('spent'), usage }) });
  const spend = agentTool(spender, { description: 'Spends.', inputSchema: ANY, effect: 'pure' });
  const here = world({
    planner: script(
      parallel([
        { tool: 'pay', args: {} },
        { tool: 'spender', args: {} },
      ]),
    ),
    tools: [pay, spend],
  });
  const run = await start(here, { limits: { costUsd: 0.0004 } });
  await advanceUntil(here.clock, async () => (await run.state()).pauses.length > 0);
  await run.settle(undefined, { happened: false });
  await run.result();
  expect(made).toEqual(['pay']);
  const state = await run.state();
  expect(state.steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'error', error: { code: 'budget_exceeded' } });
  expect(state.totals.costMicroUsd).toBe(200);
});

describe('a call that was cut off by a crash, and has not happened', () => {
  /** The process dies in a call of 250, and in the next one a task beside it uses 200, of 400 in all and less that it was lent. */
  async function crashed(limits: Limits) {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const entered = gate();
    const made: string[] = [];
    const usage = { inputTokens: 1, outputTokens: 1, costMicroUsd: 200 };
    const life = (name: string, isFirst: boolean) => {
      const pay = make(
        'pay',
        () => {
          made.push(name);
          if (!isFirst) return 'paid';
          entered.open();
          return new Promise(() => {});
        },
        { effect: 'once', costUsd: 0.00025, reconcile: () => ({ status: 'not_done' }) },
      );
      const next: PlannerFunction = () => (isFirst ? new Promise(() => {}) : { decision: finish('spent'), usage });
      const spend = agentTool(agent({ name: 'spender', planner: { name: 'spender', next } }), {
        description: 'Spends.',
        inputSchema: ANY,
        effect: 'pure',
      });
      const both = [pay.name, 'spender'].map((tool) => ({ tool, args: {} }));
      return world({
        planner: { name: 'main', next: script(parallel(both)) },
        tools: [pay, spend],
        journal: isFirst ? dying.journal : shared,
        clock,
      });
    };
    const { id } = await start(life('first', true), { limits });
    await entered.opened;
    await until(async () => (await shared.read(id)).some(({ kind }) => kind === 'spawned'));
    dying.cut();
    clock.advance(5_001);
    const second = life('second', false);
    second.runtime.work();
    const run = second.runtime.run(id);
    await advanceUntil(clock, async () => {
      const { ending, pauses } = await run.state();
      return ending !== null || pauses.length > 0;
    });
    return { run, made, clock };
  }

  it('is not made again with money that others have used up meanwhile', async () => {
    const { run, made } = await crashed({ costUsd: 0.0004 });
    expect(made).toEqual(['first']);
    const state = await run.state();
    expect(state.steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'error', error: { code: 'budget_exceeded' } });
    expect(state.totals.costMicroUsd).toBe(200);
  });

  it('waits for a raise, where somebody can be asked, and is made then', async () => {
    const { run, made, clock } = await crashed({ costUsd: 0.0004, onCeiling: 'pause' });
    expect(made).toEqual(['first']);
    expect((await run.state()).pauses).toMatchObject([{ payload: { tool: 'pay', raise: { costUsd: 0.00045 } } }]);
    await run.resume({ limits: { costUsd: 0.001 } });
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    expect(made).toEqual(['first', 'second']);
    const state = await run.state();
    expect(outcomes(state)).toEqual(['value', 'value']);
    expect(state.totals.costMicroUsd).toBe(450);
  });

  it('is made again with the money that is there', async () => {
    const { run, made } = await crashed({ costUsd: 0.00045 });
    expect(made).toEqual(['first', 'second']);
    expect((await run.state()).totals).toMatchObject({ costMicroUsd: 450 });
  });
});
