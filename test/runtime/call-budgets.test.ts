/** How many tools a run and its tasks may call: counted before a call starts, and each once. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Branch, Decision, Json, Limits, PlannerFunction, RunView } from '#core';
import { memoryJournal } from '#journal';
import { foldEntries, type RunSnapshot } from '#state';
import { VirtualClock } from '#testing';
import { type AgentTool, type AnyTool, LoginRequired, type Tool } from '#tools';
import { call, finish, named, parallel, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { changed, cutJournal } from '../kit/journals.ts';
import { entriesOf, hasEnded, outcomes, pausesOf } from '../kit/run-record.ts';
import { PARENT, plays, spawning, spawns } from '../kit/tasks.ts';
import { ANY, echo, make } from '../kit/tools.ts';
import { advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** What each call of a step came to: its value's kind, or the code and the axis of its error. */
const cameTo = ({ steps }: Pick<RunSnapshot, 'steps'>, step = 0): Json[] =>
  steps[step]?.calls.map(({ outcome }) =>
    outcome.kind === 'error' ? [outcome.error.code, outcome.error.data?.['axis'] ?? null] : outcome.kind,
  ) ?? [];

const NONE_LEFT = ['budget_exceeded', 'calls'];

const lefts = ({ views }: { readonly views: readonly RunView[] }) => views.map(({ budget }) => budget.callsLeft);

/** A tool that counts how often it was started. */
function counted(name = 'work', more: Partial<Tool> = {}) {
  const seen: unknown[] = [];
  const tool = make(
    name,
    (args) => {
      seen.push(args['id'] ?? null);
      return args['id'] ?? 1;
    },
    more,
  );
  return { tool, seen };
}

const plan = (...branches: Branch[]): Decision => ({
  kind: 'call_parallel',
  plan: 'p',
  branches,
  onInvalid: 'per_branch',
});

const node = (id: string, after: string[] = []): Branch => ({ id, tool: 'work', args: { id }, after });

/** A tool whose calls are carried out by runs of this planner. */
function carriedOut(next: PlannerFunction, tools: readonly Tool[]): AgentTool {
  const planner = { name: 'carrier', next };
  return { name: 'carried', description: 'd', inputSchema: ANY, agent: { name: 'carrier', planner, tools } };
}

async function ran(planner: PlannerFunction, tools: readonly AnyTool[], limits: Limits) {
  const made = world({ planner, tools });
  const run = await start(made, { limits });
  const result = await run.result();
  return { result, run, state: await run.state(), ...made };
}

describe('a run with a limit of calls', () => {
  it('RT-31 W85 BG-02 runs two of a path of three nodes, and refuses the third before it starts', async () => {
    const { tool, seen } = counted('work', { effect: 'once' });
    const path = plan(node('a'), node('b', ['a']), node('c', ['b']), node('d', ['c']));
    const { state, run, journal } = await ran(script(path), [tool], { calls: 2 });
    expect(seen).toEqual(['a', 'b']);
    expect(cameTo(state)).toEqual(['value', 'value', NONE_LEFT, 'skipped']);
    expect(state.steps[0]?.calls[2]).toMatchObject({ attempts: 0 });
    expect(state.totals).toMatchObject({ calls: 2, taskCalls: 0 });
    expect(await entriesOf(journal, run, 'call_began')).toMatchObject([{ call: 0 }, { call: 1 }]);
  });

  it('RT-31 W85 refuses likewise what it has no money for, and names that axis', async () => {
    const { tool, seen } = counted('work', { costUsd: 0.0001 });
    const path = plan(node('a'), node('b', ['a']), node('c', ['b']));
    const { state } = await ran(script(path), [tool], { calls: 3, costUsd: 0.00025 });
    expect(seen).toEqual(['a', 'b']);
    expect(cameTo(state)).toEqual(['value', 'value', ['budget_exceeded', 'cost']]);
    expect(state.totals).toMatchObject({ calls: 2, costMicroUsd: 200 });
  });

  it('takes no money for a call that it refuses', async () => {
    const { tool, seen } = counted('work', { costUsd: 0.0001 });
    const { state } = await ran(script(call('work'), call('work')), [tool], { calls: 1, costUsd: 0.00025 });
    expect([seen.length, state.totals.costMicroUsd]).toEqual([1, 100]);
    expect(cameTo(state, 1)).toEqual([NONE_LEFT]);
  });

  it('gives a call’s place to another when there is no money for it', async () => {
    const dear = counted('dear', { costUsd: 0.0009 });
    const work = counted();
    const { state } = await ran(script(parallel(named('dear', 'work'))), [dear.tool, work.tool], {
      calls: 1,
      costUsd: 0.0005,
    });
    expect([dear.seen.length, work.seen.length]).toEqual([0, 1]);
    expect(cameTo(state)).toEqual([['budget_exceeded', 'cost'], 'value']);
  });

  it('BG-04 shows its planner what is left, and may finish with none', async () => {
    const planner = watched(script(call('echo'), call('echo'), call('echo')));
    const { result, state } = await ran(planner, [echo], { calls: 2 });
    expect(lefts(planner)).toEqual([2, 1, 0, 0]);
    expect(cameTo(state, 2)).toEqual([NONE_LEFT]);
    expect(result).toMatchObject({ status: 'finished', reason: 'goal', usage: { calls: 2, steps: 3 } });
  });

  it('of 0 can do without tools', async () => {
    const planner = watched(script(call('echo')));
    const { result, state } = await ran(planner, [echo], { calls: 0 });
    expect([lefts(planner), cameTo(state)]).toEqual([[0, 0], [NONE_LEFT]]);
    expect(result).toMatchObject({ reason: 'goal' });
  });

  it('shows nothing where there is none', async () => {
    const planner = watched(script(call('echo')));
    const { state } = await ran(planner, [echo], {});
    expect(lefts(planner)).toEqual([undefined, undefined]);
    expect(Object.hasOwn(planner.views[0]?.budget ?? {}, 'callsLeft')).toBe(false);
    expect(state.totals.calls).toBe(1);
  });

  it.each([-1, Number.NaN, '3' as never])('that is none is refused: %o', async (calls) => {
    await expect(start(world({ planner: script() }), { limits: { calls } })).rejects.toMatchObject({
      code: 'invalid_config',
    });
  });

  it('PX-22 starts no more branches at once than are left', async () => {
    const entered: unknown[] = [];
    const held = gate();
    const tool = make('work', async (args) => {
      entered.push(args['id']);
      await held.opened;
      return 1;
    });
    const made = world({ planner: script(parallel(['a', 'b', 'c', 'd', 'e'].map((id) => node(id)))), tools: [tool] });
    const run = await start(made, { limits: { calls: 3 } });
    await until(() => entered.length === 3);
    await quiet();
    expect(entered).toEqual(['a', 'b', 'c']);
    held.open();
    await run.result();
    expect(cameTo(await run.state())).toEqual(['value', 'value', 'value', NONE_LEFT, NONE_LEFT]);
  });

  it('counts a call once, however often it is tried', async () => {
    let tries = 0;
    const flaky = make(
      'flaky',
      () => {
        tries += 1;
        if (tries < 3) throw Object.assign(new Error('busy'), { retryable: true });
        return tries;
      },
      { effect: 'read', backoff: { baseMs: 0 } },
    );
    const made = world({ planner: script(call('flaky'), call('echo'), call('echo')), tools: [flaky, echo] });
    const run = await start(made, { limits: { calls: 2 } });
    let isOver = false;
    const result = run.result().finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await quiet();
      made.clock.advance(0);
    }
    await result;
    const state = await run.state();
    expect([tries, cameTo(state, 0), cameTo(state, 1), cameTo(state, 2)]).toEqual([
      3,
      ['value'],
      ['value'],
      [NONE_LEFT],
    ]);
  });

  it('counts no call that was never made: unknown, misfit, skipped, rejected', async () => {
    const strict = make('strict', () => 1, { inputSchema: { type: 'object', required: ['n'] } });
    const gated = make('gated', () => 1, { needsApproval: true });
    const made = world({
      planner: script(
        parallel(
          [...named('nothing', 'strict'), { id: 's', tool: 'echo', args: {}, after: ['0'] }, ...named('gated')],
          {
            onInvalid: 'per_branch',
          },
        ),
        call('echo'),
        call('echo'),
      ),
      tools: [strict, gated, echo],
    });
    const run = await start(made, { limits: { calls: 1 } });
    const [asked] = await pausesOf(run);
    await run.reject(asked?.token);
    await run.result();
    const state = await run.state();
    expect(outcomes(state)).toEqual(['error', 'error', 'skipped', 'error']);
    expect([cameTo(state, 1), cameTo(state, 2), state.totals.calls]).toEqual([['value'], [NONE_LEFT], 1]);
  });

  it('takes no place for a call that waits for approval or a login, and one when it is made', async () => {
    let locked = true;
    const door = make(
      'door',
      () => {
        if (locked) throw new LoginRequired('https://login.example/');
        return 'in';
      },
      { effect: 'once' },
    );
    const made = world({ planner: script(parallel(named('door', 'echo'))), tools: [door, echo] });
    const run = await start(made, { limits: { calls: 2 } });
    const [asked] = await pausesOf(run);
    locked = false;
    await run.approve(asked?.token);
    await run.result();
    const state = await run.state();
    expect([cameTo(state), state.totals.calls]).toEqual([['value', 'value'], 2]);
  });

  it('gives the place of a call that waits for a login to the next one', async () => {
    const door = make('door', () => Promise.reject(new LoginRequired('https://login.example/')));
    const made = world({
      planner: script({ kind: 'call_parallel', branches: named('door', 'echo'), concurrency: 1 }),
      tools: [door, echo],
    });
    const run = await start(made, { limits: { calls: 1 } });
    const [asked] = await pausesOf(run);
    await run.approve(asked?.token);
    await run.result();
    expect(cameTo(await run.state())).toEqual([NONE_LEFT, 'value']);
  });

  it('counts neither what a plan says nor how it finishes', async () => {
    const work = counted();
    const { state, run } = await ran(
      script(
        plan(
          { id: 'hello', tool: '_message', args: 'hello' },
          { ...node('a'), after: ['hello'] },
          { id: 'bye', tool: '_message', args: 'bye', after: ['a'] },
          { id: 'end', tool: '_finish', args: { $from: 'a' }, after: ['bye'] },
        ),
      ),
      [work.tool],
      { calls: 1 },
    );
    expect(cameTo(state)).toEqual(['value', 'value', 'value', 'value']);
    expect(state.totals.calls).toBe(1);
    expect(only(await collect(run), 'message')).toHaveLength(2);
  });
});

describe('a raise', () => {
  it('of the limit of calls, as the answer to an operator’s pause, counts from then on', async () => {
    const entered = gate();
    const held = gate();
    const holds = make('holds', async () => {
      entered.open();
      await held.opened;
      return 1;
    });
    const planner = watched(script(call('holds'), call('echo'), call('echo')));
    const made = world({ planner, tools: [holds, echo] });
    const run = await start(made, { limits: { calls: 1 } });
    await entered.opened;
    await run.pause({ until: 'stored' });
    held.open();
    await run.result();
    const [asked] = await pausesOf(run);
    await expect(run.resume({ limits: { calls: -1 } })).rejects.toMatchObject({ code: 'invalid_config' });
    await run.resume({ ...(asked === undefined ? {} : { token: asked.token }), limits: { calls: 2 } });
    await run.result();
    const state = await run.state();
    expect([cameTo(state, 1), cameTo(state, 2)]).toEqual([['value'], [NONE_LEFT]]);
    expect(lefts(planner)).toEqual([1, 1, 0, 0]);
  });
});

describe('after a crash', () => {
  /** Starts three calls side by side, of which the process dies in the first, and carries the run on. */
  async function crashed(calls: number, effect: 'once' | 'keyed', isDone: boolean) {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const entered = gate();
    let runs = 0;
    const act = make(
      'act',
      async () => {
        runs += 1;
        if (runs > 1) return 'again';
        entered.open();
        return new Promise(() => {});
      },
      {
        effect,
        ...(effect === 'once'
          ? { reconcile: () => (isDone ? { status: 'done', value: 1 } : { status: 'not_done' }) }
          : {}),
      },
    );
    const work = counted();
    const planner = () =>
      script({ ...plan({ id: 'act', tool: 'act', args: {} }, node('b'), node('c')), concurrency: 1 } as Decision);
    const first = world({ planner: planner(), tools: [act, work.tool], journal: dying.journal, clock });
    const { id } = await start(first, { limits: { calls } });
    await entered.opened;
    dying.cut();
    clock.advance(5_001);
    const second = world({ planner: planner(), tools: [act, work.tool], journal: shared, clock });
    const run = second.runtime.run(id);
    await run.resume();
    // Whoever took over believes `not_done` after a while alone.
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    return { runs, seen: work.seen, state: await run.state() };
  }

  it.each([
    ['once', true, 1],
    ['once', false, 2],
    ['keyed', false, 2],
  ] as const)('RL-33 a %s call that was cut off (done: %s) keeps its place, and is one call', async (effect, isDone, ran) => {
    const { runs, seen, state } = await crashed(2, effect, isDone);
    expect(runs).toBe(ran);
    expect(seen).toEqual(['b']);
    expect(cameTo(state)).toEqual(['value', 'value', NONE_LEFT]);
    expect(state.totals.calls).toBe(2);
  });

  it('RL-33 it is made although nothing is left beside its own place', async () => {
    const { runs, seen, state } = await crashed(1, 'once', false);
    expect([runs, seen]).toEqual([2, []]);
    expect(cameTo(state)).toEqual(['value', NONE_LEFT, NONE_LEFT]);
    expect(state.totals.calls).toBe(1);
  });

  it('RL-33 nobody else takes the place of a call that was begun while it is looked up', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const [entered, asked, answered] = [gate(), gate(), gate()];
    let runs = 0;
    const act = make(
      'act',
      () => {
        runs += 1;
        entered.open();
        return runs === 1 ? new Promise(() => {}) : 'again';
      },
      {
        effect: 'once',
        reconcile: async () => {
          asked.open();
          await answered.opened;
          return { status: 'not_done' };
        },
      },
    );
    const work = counted('work', { needsApproval: true });
    const options = { planner: script(plan({ id: 'act', tool: 'act', args: {} }, node('b'), node('c'))), clock };
    const first = world({ ...options, tools: [act, work.tool], journal: dying.journal });
    const { id } = await start(first, { limits: { calls: 2 } });
    await entered.opened;
    await until(async () => (await shared.read(id)).filter(({ kind }) => kind === 'paused').length === 2);
    dying.cut();
    clock.advance(5_001);
    const second = world({ ...options, tools: [act, work.tool], journal: shared });
    const run = second.runtime.run(id);
    await run.resume();
    await asked.opened;
    for (const { token } of (await run.state()).pauses) await run.approve(token);
    await until(async () => (await run.state()).open?.calls.filter((ended) => ended === null).length === 1);
    answered.open();
    await advanceUntil(clock, async () => (await run.state()).ending !== null);
    const state = await run.state();
    expect([runs, work.seen]).toEqual([2, ['b']]);
    expect([cameTo(state), state.totals.calls]).toEqual([['value', 'value', NONE_LEFT], 2]);
  });

  it('RL-33 a run that ends without it counts it: it may have happened', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const entered = gate();
    const act = make(
      'act',
      () => {
        entered.open();
        return new Promise(() => {});
      },
      { effect: 'once' },
    );
    const first = world({ planner: script(call('act')), tools: [act], journal: dying.journal, clock });
    const { id } = await start(first, { limits: { deadlineAt: clock.now() + 6_000 } });
    await entered.opened;
    dying.cut();
    clock.advance(7_000);
    const second = world({ planner: script(call('act')), tools: [act], journal: shared, clock });
    const run = second.runtime.run(id);
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt' }] });
    await run.settle(undefined, { happened: true });
    expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded', usage: { calls: 1 } });
    expect(outcomes(await run.state())).toEqual(['value']);
  });
});

describe('tasks', () => {
  const often = (count: number): PlannerFunction => script(...Array.from({ length: count }, () => call('work')));

  it('BG-08 get half of the calls that are left, and what they have made counts for their owner', async () => {
    const { tool, seen } = counted();
    const planner = watched(
      plays({ q: script(call('work'), spawns('one', { task: 'foreground' }), call('work')), one: often(9) }),
    );
    const made = world({ planner, tools: [tool] });
    const run = await start(made, { identity: PARENT, limits: { calls: 6 } });
    expect(await run.result()).toMatchObject({ usage: { calls: 2, taskCalls: 3 } });
    expect(seen).toHaveLength(5);
    const own = planner.views.filter(({ query }) => query === 'q');
    expect(lefts({ views: own })).toEqual([6, 5, 2, 1]);
    const [started] = await entriesOf(made.journal, made.runtime.run('p.1.0'), 'started');
    expect(started?.limits.calls).toBe(3);
    const [ended] = await entriesOf(made.journal, run, 'task_ended');
    expect(ended?.usage).toMatchObject({ calls: 3 });
  });

  it('BG-08 have theirs set aside while they are under way', async () => {
    const { tool } = counted();
    const planner = watched(plays({ q: script(spawns('one'), pause), one: script(pause) }));
    const made = world({ planner, tools: [tool] });
    const run = await start(made, { identity: PARENT, limits: { calls: 5 } });
    await run.result();
    expect(lefts({ views: planner.views.filter(({ query }) => query === 'q') })).toEqual([5, 2]);
  });

  it('are not started when no call is left for them, and the axis is named', async () => {
    const planner = plays({ q: script(call('work'), spawns('one')) });
    const { state } = await ran(planner, [counted().tool], { calls: 1 });
    expect(cameTo(state, 1)).toEqual([NONE_LEFT]);
    expect(state.tasks).toEqual([]);
  });

  it('beside calls get nothing of the place of those', async () => {
    const entered = gate();
    const held = gate();
    const holds = make('holds', async () => {
      entered.open();
      await held.opened;
      return 1;
    });
    const planner = plays({
      q: script(
        parallel([
          { id: 'h', tool: 'holds', args: {} },
          spawning('one', { kind: 'foreground' }, { limits: { calls: 9 } }),
        ]),
      ),
      one: script(call('echo'), call('echo'), call('echo')),
    });
    const made = world({ planner, tools: [holds, echo] });
    const run = await start(made, { identity: PARENT, limits: { calls: 3 } });
    await entered.opened;
    await until(() => hasEnded(made, 'p.0.1'));
    held.open();
    expect(await run.result()).toMatchObject({ usage: { calls: 1, taskCalls: 2 } });
  });

  it('have theirs set aside also while their start is being written', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const writing = gate();
    const journal = changed(shared, {
      append: async (request) => {
        if (request.entries.some(({ kind }) => kind === 'spawned')) {
          writing.open();
          await quiet();
        }
        return shared.append(request);
      },
    });
    const work = counted();
    const made = world({
      planner: plays({ q: script(parallel([spawning('one', {}, { limits: { calls: 9 } }), ...named('work')])) }),
      tools: [work.tool],
      // The call is ready to start only when the task is being stored.
      policy: async () => {
        await writing.opened;
        return 'allow' as const;
      },
      journal,
      clock,
    });
    const run = await start(made, { identity: PARENT, limits: { calls: 1 } });
    await run.result();
    expect([cameTo(await run.state()), work.seen]).toEqual([['value', NONE_LEFT], []]);
  });

  it('count with what their own tasks may still call when they end before them', async () => {
    const planner = watched(
      plays({
        q: script(spawns('one', { task: 'foreground' })),
        one: script(spawns('two', { onCancel: 'isolate' })),
        two: script(pause),
      }),
    );
    const made = world({ planner });
    const run = await start(made, { identity: PARENT, limits: { calls: 9 } });
    expect(await run.result()).toMatchObject({ usage: { calls: 0, taskCalls: 3 } });
    expect(lefts({ views: planner.views.filter(({ query }) => query === 'q') })).toEqual([9, 6]);
  });

  it('count with what their own tasks have called that they hear of only at their end', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const ending = gate();
    const journal = changed(shared, {
      append: async (request) => {
        if (request.run === 'p.0.0' && request.entries.at(-1)?.kind === 'finished') {
          ending.open();
          await until(() => hasEnded({ journal: shared }, 'p.0.0.0.0'));
        }
        return shared.append(request);
      },
    });
    const work = make('work', () => ending.opened.then(() => 1));
    const planner = plays({
      q: script(spawns('one', { task: 'foreground' })),
      one: script(spawns('two', { onCancel: 'isolate' })),
      two: often(2),
    });
    const made = world({ planner, tools: [work], journal, clock });
    const run = await start(made, { identity: PARENT });
    expect(await run.result()).toMatchObject({ usage: { calls: 0, taskCalls: 2 } });
    const last = (await made.journal.read('p.0.0')).slice(-3).map(({ kind }) => kind);
    expect(last).toEqual(['moved', 'task_ended', 'finished']);
  });

  it('count with what was under way at their end', async () => {
    const entered = gate();
    const act = make(
      'act',
      () => {
        entered.open();
        return new Promise(() => {});
      },
      { effect: 'once' },
    );
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const planner = plays({
      q: script(spawns('one', { task: 'foreground', limits: { deadlineAt: clock.now() + 6_000 } })),
      one: script(call('act')),
    });
    const first = world({ planner, tools: [act], journal: dying.journal, clock });
    await start(first, { identity: PARENT });
    await entered.opened;
    dying.cut();
    clock.advance(7_000);
    const second = world({ planner, tools: [act], journal: shared, clock });
    await second.runtime.run('p.0.0').resume();
    await second.runtime.run('p.0.0').result();
    await second.runtime.run('p').result();
    await second.runtime.run('p').settle(undefined, { happened: true });
    expect(await second.runtime.run('p').result()).toMatchObject({ usage: { calls: 0, taskCalls: 1 } });
    expect((await second.runtime.run('p.0.0').state()).totals.calls).toBe(1);
  });

  it('that carry out a call: it is one, and theirs are beside it', async () => {
    const work = counted();
    const carried = carriedOut(often(9), [work.tool]);
    const planner = watched(script(call('carried'), call('carried'), call('carried')));
    const { state, journal, run } = await ran(planner, [carried], { calls: 6 });
    // 6; the call itself and the five that were left, as nothing runs beside it; then there is none.
    expect(lefts(planner)).toEqual([6, 0, 0, 0]);
    expect(work.seen).toHaveLength(5);
    expect([state.totals.calls, state.totals.taskCalls]).toEqual([1, 5]);
    expect(cameTo(state, 1)).toEqual([NONE_LEFT]);
    expect(cameTo(state, 2)).toEqual([NONE_LEFT]);
    expect(await entriesOf(journal, run, 'spawned')).toMatchObject([{ reserved: { calls: 5 } }]);
  });

  it.each([
    2, 5, 6, 9,
  ])('that carry out calls side by side take no more together than the %d there are', async (calls) => {
    const work = counted();
    const { state } = await ran(
      script(parallel(named('carried', 'carried', 'carried'))),
      [carriedOut(often(9), [work.tool])],
      { calls },
    );
    const { totals } = state;
    expect(totals.calls + totals.taskCalls).toBeLessThanOrEqual(calls);
    expect([totals.calls, totals.taskCalls]).toEqual([state.tasks.length, work.seen.length]);
    for (const came of cameTo(state)) expect(['value', NONE_LEFT]).toContainEqual(came);
  });

  it('that ended before calls were counted have made none', async () => {
    const usage = { steps: 1, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 };
    const made = world({
      planner: plays({ q: script(spawns('one', { task: 'foreground' })), one: often(1) }),
      tools: [counted().tool],
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    const entries = await made.journal.read('p');
    const older = entries.map((entry) => (entry.kind === 'task_ended' ? { ...entry, usage } : entry));
    expect(foldEntries(entries).totals.taskCalls).toBe(1);
    expect(foldEntries(older).totals.taskCalls).toBe(0);
  });

  it('BG-08 BG-10 a whole tree never makes more calls than its root may', async () => {
    interface Shape {
      readonly works: number;
      readonly tasks: readonly Shape[];
    }
    const tree = (depth: number): fc.Arbitrary<Shape> =>
      fc.record({
        works: fc.integer({ min: 0, max: 4 }),
        tasks: depth === 0 ? fc.constant([]) : fc.array(tree(depth - 1), { maxLength: 2 }),
      });
    await fc.assert(
      fc.asyncProperty(tree(3), fc.integer({ min: 0, max: 9 }), fc.boolean(), async (shape, calls, isBeside) => {
        const { tool, seen } = counted();
        const planner: PlannerFunction = (run) => {
          const { works, tasks } = run.query === 'q' ? shape : (JSON.parse(run.query) as Shape);
          const branches = [
            ...Array.from({ length: works }, (): Branch => ({ tool: 'work', args: {} })),
            ...tasks.map((task) => spawning(JSON.stringify(task), { kind: 'foreground' })),
          ];
          const { count } = run.trajectory;
          if (isBeside) return count === 0 && branches.length > 0 ? parallel(branches) : finish();
          const branch = branches[count];
          return branch === undefined ? finish() : parallel([branch]);
        };
        const made = world({ planner, tools: [tool] });
        const run = await start(made, { limits: { calls } });
        const { usage } = await run.result();
        expect(seen.length).toBeLessThanOrEqual(calls);
        expect(usage.calls + usage.taskCalls).toBe(seen.length);
        await made.runtime.close();
      }),
      { numRuns: 60 },
    );
  });
});
