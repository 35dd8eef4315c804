/** What a task may use is set aside of its owner's budget, and what it has used counts there. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Branch, JsonObject, PlannerFunction, RunView } from '#core';
import type { Run } from '#runtime';
import { call, finish, parallel, pause, script, watched } from '../kit/decisions.ts';
import { entriesOf, hasEnded, observations, outcomes } from '../kit/run-record.ts';
import { ANA, awaits, PARENT, plays, spawning, spawns } from '../kit/tasks.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { advanceUntil, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

const tenTimes = script(...Array.from({ length: 10 }, () => call('echo')));

/** Moves that cost what they say. */
const spends =
  (costMicroUsd: number, tokens: number, next: PlannerFunction): PlannerFunction =>
  (run, signal) => ({
    decision: next(run, signal) as ReturnType<typeof finish>,
    usage: { costMicroUsd, inputTokens: tokens, outputTokens: 0 },
  });

async function limitsOf({ journal, runtime }: World, run: string): Promise<unknown> {
  const [started] = await entriesOf(journal, runtime.run(run), 'started');
  return started?.limits;
}

const lefts = (views: readonly RunView[]) =>
  views.map(({ budget: { stepsLeft, costMicroUsdLeft, tokensLeft } }) => [stepsLeft, costMicroUsdLeft, tokensLeft]);

describe('BG-08 a task gets', () => {
  const limits = { steps: 21, costUsd: 0.001, tokens: 501 };

  it('by default half of what is left on each limited axis, and the deadline as it is', async () => {
    const deadlineAt = Date.UTC(2026, 0, 2);
    const made = world({
      planner: plays({ q: script(spawns('one'), spawns('two')), one: script(pause), two: script(pause) }),
    });
    const run = await start(made, { identity: PARENT, limits: { ...limits, deadlineAt } });
    await run.result();
    // The step that spawns is taken already: 20, then 19 - 10.
    expect(await limitsOf(made, 'p.0.0')).toEqual({
      steps: 10,
      costMicroUsd: 500,
      tokens: 251,
      deadlineAt,
      onCeiling: 'finish',
    });
    expect(await limitsOf(made, 'p.1.0')).toEqual({
      steps: 5,
      costMicroUsd: 250,
      tokens: 125,
      deadlineAt,
      onCeiling: 'finish',
    });
  });

  it('what it asks for, but no more than is left', async () => {
    const deadlineAt = Date.UTC(2026, 0, 2);
    const asked = { steps: 4, costUsd: 0.005, tokens: 100, deadlineAt: deadlineAt + 1 };
    const made = world({
      planner: plays({ q: script(spawns('one', { limits: asked }), spawns('two', { limits: { deadlineAt: 7 } })) }),
    });
    await (await start(made, { identity: PARENT, limits: { ...limits, deadlineAt } })).result();
    expect(await limitsOf(made, 'p.0.0')).toMatchObject({ steps: 4, costMicroUsd: 1_000, tokens: 100, deadlineAt });
    await until(() => hasEnded(made, 'p.0.0'));
  });

  it('no limit where its owner has none, but one that it asks for', async () => {
    const made = world({ planner: plays({ q: script(spawns('one'), spawns('two', { limits: { tokens: 5 } })) }) });
    await (await start(made, { identity: PARENT })).result();
    expect(await limitsOf(made, 'p.0.0')).toEqual({ onCeiling: 'finish' });
    expect(await limitsOf(made, 'p.1.0')).toEqual({ tokens: 5, onCeiling: 'finish' });
  });

  it('nothing when nothing is left: it is not made', async () => {
    const made = world({
      planner: plays({
        q: script(spawns('one', { limits: { costUsd: 0.001 } }), spawns('two')),
        one: script(pause),
      }),
    });
    const run = await start(made, { identity: PARENT, limits: { ...limits, onCeiling: 'pause' } });
    await until(async () => (await made.journal.get('p.0.0'))?.status === 'paused');
    expect((await run.state()).steps).toHaveLength(1);
    expect(await made.runtime.tasks.get(ANA, 'p.1.0')).toBeUndefined();
    await made.runtime.run('p.0.0').approve();
    await run.result();
    expect(outcomes(await run.state(), 1)).toEqual(['value']);
  });

  it('of one step, each task its share of what the ones before have left', async () => {
    const made = world({
      planner: plays({
        q: script(
          parallel(Array.from({ length: 6 }, (): Branch => spawning('one', {}, { limits: { costUsd: 0.0002 } }))),
        ),
        one: script(pause),
      }),
    });
    const run = await start(made, { identity: PARENT, limits: { costUsd: 0.001 } });
    await until(async () => (await run.state()).steps.length === 1);
    expect(outcomes(await run.state())).toEqual([...Array(5).fill('value'), 'error']);
    expect((await run.state()).steps[0]?.calls[5]?.outcome).toMatchObject({ error: { code: 'budget_exceeded' } });
  });
});

describe('BG-08 what a task uses', () => {
  it('counts against its owner when it has ended; what it did not use is there again', async () => {
    const parent = watched(script(spawns('child'), awaits('p.0.0'), call('echo')));
    const made = world({
      planner: plays({ q: parent, child: spends(100, 30, script(call('echo'))) }),
      tools: [echo],
    });
    const run = await start(made, { identity: PARENT, limits: { steps: 21, costUsd: 0.001, tokens: 500 } });
    const { usage } = await run.result();
    expect(usage).toMatchObject({ steps: 3, taskSteps: 1, costMicroUsd: 200, inputTokens: 60 });
    expect(lefts(parent.views)).toEqual([
      [21, 1_000, 500],
      [10, 500, 250],
      [18, 800, 440],
      [17, 800, 440],
    ]);
  });

  it('counts all the way up', async () => {
    const made = world({
      planner: plays({
        q: script(spawns('child', { task: 'foreground' })),
        child: script(spawns('grandchild', { task: 'foreground' })),
        grandchild: spends(7, 3, script(call('echo'))),
      }),
      tools: [echo],
    });
    const run = await start(made, { identity: PARENT, limits: { costUsd: 0.0001, tokens: 100 } });
    expect((await run.result()).usage).toMatchObject({ costMicroUsd: 14, inputTokens: 6, taskSteps: 2 });
  });

  it('counts also when it fails, and when it is cancelled', async () => {
    const made = world({
      planner: plays({
        q: script(spawns('fails', { task: 'foreground' }), spawns('stopped', { task: 'foreground' })),
        fails: spends(50, 5, () => ({ kind: 'finish', reason: 'no_path' })),
        stopped: spends(50, 5, script(pause)),
      }),
    });
    const run = await start(made, { identity: PARENT, limits: { costUsd: 0.001 } });
    await until(async () => (await made.journal.get('p.1.0'))?.status === 'paused');
    await made.runtime.tasks.cancel(ANA, 'p.1.0');
    await until(() => hasEnded(made, 'p'));
    expect((await run.result()).usage).toMatchObject({ costMicroUsd: 100, inputTokens: 10 });
  });

  it('counts with what its own tasks may still use when it ends before them', async () => {
    const parent = watched(script(spawns('child', { task: 'foreground' })));
    const made = world({
      planner: plays({
        q: parent,
        child: script(spawns('grandchild', { limits: { steps: 2, costUsd: 0.00003, tokens: 20 } })),
        grandchild: script(pause),
      }),
    });
    const run = await start(made, { identity: PARENT, limits: { steps: 21, costUsd: 0.001, tokens: 500 } });
    expect((await run.result()).usage).toMatchObject({ taskSteps: 3, costMicroUsd: 30, inputTokens: 20 });
    expect(lefts(parent.views)[1]).toEqual([17, 970, 480]);
  });

  it('ends it at its own limit, and the owner has the rest', async () => {
    const made = world({
      planner: plays({
        q: script(spawns('child', { task: 'foreground', limits: { steps: 3 } }), call('echo')),
        child: tenTimes,
      }),
      tools: [echo],
    });
    const run = await start(made, { identity: PARENT, limits: { steps: 10 } });
    expect(await run.result()).toMatchObject({ reason: 'goal', usage: { steps: 2, taskSteps: 3 } });
    expect(observations(await run.state())[0]).toMatchObject({ status: 'failed', error: { code: 'max_steps' } });
  });

  it('cannot be raised from outside: its limits are its owner’s', async () => {
    const { tool, entered, release } = holding();
    const made = world({
      planner: plays({ q: script(spawns('child')), child: script(call('hold')) }),
      tools: [tool],
    });
    await (await start(made, { identity: PARENT, limits: { steps: 10 } })).result();
    await entered;
    const child = made.runtime.run('p.0.0');
    await child.pause();
    release();
    await child.result();
    await expect(child.resume({ limits: { steps: 99 } })).rejects.toMatchObject({ code: 'payload_invalid' });
    await child.resume();
    expect(await child.result()).toMatchObject({ reason: 'goal' });
  });

  it('has the deadline of its owner', async () => {
    const { tool, entered } = holding();
    const made = world({
      planner: plays({ q: script(spawns('child', { onCancel: 'isolate' })), child: script(call('hold')) }),
      tools: [tool],
    });
    await (await start(made, { identity: PARENT, limits: { deadlineAt: made.clock.now() + 3_000 } })).result();
    await entered;
    await advanceUntil(made.clock, () => hasEnded(made, 'p.0.0'));
    expect(await made.runtime.run('p.0.0').result()).toMatchObject({ reason: 'deadline_exceeded' });
  });
});

describe('BG-08 an owner whose budget is lent', () => {
  it('waits until a task gives some of it back, and goes on', async () => {
    const { tool, entered, release } = holding();
    const parent = watched(script(spawns('child', { limits: { steps: 9 } }), call('echo')));
    const made = world({ planner: plays({ q: parent, child: script(call('hold')) }), tools: [tool, echo] });
    const run = await start(made, { identity: PARENT, limits: { steps: 10 } });
    await entered;
    await until(async () => (await made.journal.get('p'))?.status === 'waiting');
    expect(parent.views).toHaveLength(1);
    release();
    expect(await run.result()).toMatchObject({ reason: 'goal', usage: { steps: 2, taskSteps: 1 } });
  });

  it('ends when the task has used it all', async () => {
    const made = world({
      planner: plays({ q: script(spawns('child', { limits: { steps: 9 } }), call('echo')), child: tenTimes }),
      tools: [echo],
    });
    const run = await start(made, { identity: PARENT, limits: { steps: 10 } });
    expect(await run.result()).toMatchObject({ reason: 'max_steps', metadata: { budget: 'steps' } });
  });

  it('is paused when it asks for a raise instead, and goes on with more', async () => {
    const made = world({
      planner: plays({ q: script(spawns('child', { limits: { steps: 9 } }), call('echo')), child: tenTimes }),
      tools: [echo],
    });
    const run = await start(made, { identity: PARENT, limits: { steps: 10, onCeiling: 'pause' } });
    await until(() => hasEnded(made, 'p.0.0'));
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ payload: { budget: 'steps' } }] });
    await run.resume({ limits: { steps: 12 } });
    expect(await run.result()).toMatchObject({ reason: 'goal' });
  });
});

/** A run of a random tree: calls of a priced tool, and tasks with or without limits of their own. */
interface Plan {
  readonly calls: number;
  readonly children: readonly { readonly plan: Plan; readonly share: number | null; readonly kept: boolean }[];
}

function planOf(depth: number): fc.Arbitrary<Plan> {
  const child = (): fc.Arbitrary<Plan['children'][number]> =>
    fc.record({ plan: planOf(depth - 1), share: fc.option(fc.integer({ min: 1, max: 400 })), kept: fc.boolean() });
  return fc.record({
    calls: fc.nat({ max: 3 }),
    children: depth === 0 ? fc.constant([]) : fc.array(child(), { maxLength: 3 }),
  });
}

/** The plan is the query: each run plays its own part. */
const playPlan: PlannerFunction = (run) => {
  const { calls, children } = JSON.parse(run.query) as Plan;
  const at = run.trajectory.count;
  const child = children[at];
  if (child !== undefined) {
    const limits: JsonObject = child.share === null ? {} : { limits: { costUsd: child.share / 1_000_000 } };
    const args = { kind: child.kept ? 'foreground' : 'background' };
    return parallel([spawning(JSON.stringify(child.plan), args, limits), { tool: 'priced', args: {} }]);
  }
  return at < children.length + calls ? call('priced') : finish();
};

it('BG-08 no tree of tasks ever spends more than the limit of the run at its top', async () => {
  await fc.assert(
    fc.asyncProperty(planOf(3), fc.integer({ min: 1, max: 1_000 }), async (tree, limit) => {
      let spent = 0;
      const priced = make('priced', () => (spent += 60), { costUsd: 0.00006, effect: 'once' });
      const made = world({ planner: playPlan, tools: [priced] });
      const run: Run = await start(made, {
        identity: PARENT,
        query: JSON.stringify(tree),
        limits: { costUsd: limit / 1_000_000 },
      });
      await run.result();
      await until(async () => {
        const all = await made.journal.list({ limit: 200 });
        return all.every(({ status }) => status === 'finished' || status === 'failed' || status === 'cancelled');
      });
      expect(spent).toBeLessThanOrEqual(limit);
      expect(made.faults).toEqual([]);
    }),
    { numRuns: 50 },
  );
});
