/** Tasks as a planner starts them: alone, beside other calls, kept or in the background, and where it is refused. */
import { describe, expect, it } from 'vitest';
import { type Decision, type Identity, local, MAX_TREE_TASKS, type PlannerFunction } from '#core';
import { call, finish, parallel, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { answersOf, entriesOf, hasEnded, isWaiting, observations, outcomes, payloadOf } from '../kit/run-record.ts';
import { ANA, awaits, fails, PARENT, plays, spawning, spawns, thenTell } from '../kit/tasks.ts';
import { echo, holding, make } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

describe('spawn_task', () => {
  it('TK-30, ID-07, DV-10 tells the task’s id at once; the task is a run below it, of the same tenant, user and session', async () => {
    const { tool, entered, release } = holding();
    const made = world({
      planner: plays({ q: thenTell(spawns('child')), child: script(call('hold')) }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT, scopes: ['read'] });
    expect(await payloadOf(run)).toEqual({ task_id: 'p.0.0', kind: 'background', status: 'spawned' });
    await entered;
    const child = made.runtime.run('p.0.0');
    const [started] = await entriesOf(made.journal, child, 'started');
    expect(started).toMatchObject({
      identity: { ...PARENT, run: 'p.0.0' },
      query: 'child',
      scopes: ['read'],
      conversation: false,
      task: { parent: 'p', root: 'p', depth: 1, kind: 'background', description: 'does child', onCancel: 'cascade' },
    });
    release();
    expect(await child.result()).toMatchObject({ status: 'finished', reason: 'goal' });
  });

  it('ID-07 neither a decision, nor the arguments of a call, nor a tool can name another tenant, user or session', async () => {
    const foreign = { tenant: 'other', user: 'other', session: 'other', run: 'other' };
    const seen: Identity[] = [];
    for (const decision of [
      { ...spawns('child'), identity: foreign } as Decision,
      { ...spawns('child'), spec: { ...spawns('child').spec, identity: foreign } } as Decision,
    ]) {
      const refusing = world({ planner: script(decision) });
      expect(await (await start(refusing, { identity: PARENT })).result()).toMatchObject({
        error: { code: 'invalid_decision', message: expect.stringContaining('no field "identity"') },
      });
      expect(await refusing.journal.list({})).toHaveLength(1);
    }
    const made = world({
      planner: plays({
        q: script(parallel([spawning('child', { identity: foreign }, { identity: foreign })])),
        child: script(call('look', { identity: foreign })),
      }),
      tools: [
        make('look', (_, context) => {
          seen.push({ ...context.identity });
          expect(() => Object.assign(context.identity, foreign)).toThrow(TypeError);
          return null;
        }),
      ],
    });
    await (await start(made, { identity: PARENT })).result();
    await until(async () => (await made.runtime.tasks.list(ANA, { status: ['complete'] })).length === 2);
    expect((await made.journal.list({})).map(({ identity }) => identity.tenant)).toEqual(Array(2).fill('local'));
    expect(seen.map(({ run, ...scope }) => [run, scope])).toEqual([['p.0.0', ANA]]);
  });

  it('TK-06 knows the kinds foreground and background, and the cancel policies cascade and isolate; others are refused', async () => {
    const wrong = [
      { ...spawns('child'), task: '' },
      { ...spawns('child'), task: 'aside' },
      spawns('child', { onCancel: 'other' as 'cascade' }),
      spawns('child', { priority: 1_001 }),
      spawns('child', { quorum: 0 }),
      spawns(''),
    ] as Decision[];
    for (const decision of wrong) {
      const made = world({ planner: script(decision) });
      const run = await start(made);
      expect(await run.result()).toMatchObject({ status: 'failed', error: { code: 'invalid_decision' } });
      expect(await made.journal.list({})).toHaveLength(1);
    }
  });

  it('TK-32, DV-10 a foreground task keeps the turn: the planner is asked again when it has ended, with its result', async () => {
    const { tool, entered, release } = holding();
    const parent = watched(script(spawns('child', { task: 'foreground' })));
    const made = world({ planner: plays({ q: parent, child: script(call('hold')) }), tools: [tool] });
    const run = await start(made, { identity: PARENT });
    await entered;
    await until(async () => (await made.journal.get('p'))?.status === 'waiting');
    expect(parent.views).toHaveLength(1);
    release();
    await run.result();
    expect(parent.views).toHaveLength(2);
    expect(observations(await run.state())).toEqual([{ task_id: 'p.0.0', status: 'complete', result: 'done' }]);
    const events = await collect(run);
    expect(only(events, 'task.spawned')).toHaveLength(1);
    expect(only(events, 'task.completed')).toHaveLength(1);
  });

  it('DV-10 retainTurn says it for either kind', async () => {
    const made = world({
      planner: plays({
        q: script(spawns('child', { retainTurn: true }), spawns('child', { task: 'foreground', retainTurn: false })),
      }),
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    expect(observations(await run.state())).toEqual([
      { task_id: 'p.0.0', status: 'complete', result: 'child' },
      { task_id: 'p.1.0', kind: 'foreground', status: 'spawned' },
    ]);
  });

  const boom = make('boom', () => {
    throw new Error('boom');
  });
  const endings: readonly [string, PlannerFunction, object][] = [
    ['no_path', fails, { status: 'failed', result: { why: 'no way' }, error: { code: 'no_path' } }],
    [
      'constraints_conflict',
      () => ({ kind: 'finish', reason: 'constraints_conflict' }),
      { error: { code: 'constraints_conflict' } },
    ],
    [
      'deadline_exceeded',
      () => ({ kind: 'finish', reason: 'deadline_exceeded' }),
      { error: { code: 'deadline_exceeded' } },
    ],
    [
      'cancelled',
      () => ({ kind: 'finish', reason: 'cancelled' }),
      { status: 'cancelled', error: { code: 'cancelled' } },
    ],
    [
      'an error of the loop',
      () => ({ kind: 'nonsense' }) as never,
      { status: 'failed', error: { code: 'invalid_decision' } },
    ],
    [
      'a planner that throws',
      () => {
        throw new Error('broken');
      },
      { status: 'failed', error: { code: 'planner_failed' } },
    ],
  ];
  it.each(endings)('DV-15, TK-32 a task that ends with %s has that as its code', async (_, child, told) => {
    const made = world({
      planner: plays({ q: thenTell(spawns('child', { task: 'foreground' })), child }),
      tools: [boom],
    });
    const payload = await payloadOf(await start(made, { identity: PARENT }));
    expect(payload).toMatchObject({ task_id: 'p.0.0', ...told });
    expect(await made.runtime.tasks.get(ANA, 'p.0.0')).toMatchObject(told);
  });

  it('TK-07, TK-08 nothing comes after the end of a task: its result stays as it was', async () => {
    const made = world({ planner: plays({ q: thenTell(spawns('child', { task: 'foreground' })) }) });
    await (await start(made, { identity: PARENT })).result();
    const child = made.runtime.run('p.0.0');
    const before = await made.journal.read('p.0.0');
    for (const late of [
      child.cancel(),
      child.approve(),
      child.pause(),
      child.steer('USER_MESSAGE', { message: 'x' }),
    ]) {
      await expect(late).rejects.toMatchObject({ code: expect.stringMatching(/run_ended|pause_not_found/) });
    }
    expect(await made.journal.read('p.0.0')).toEqual(before);
    expect(await made.runtime.tasks.get(ANA, 'p.0.0')).toMatchObject({ status: 'complete', result: 'child' });
  });
});

describe('beside other calls', () => {
  it('a tool, a kept task, one in the background and a gated tool: one waits while the others end, and none runs twice', async () => {
    let echoed = 0;
    let gated = 0;
    const count = make('count', () => {
      echoed += 1;
      return echoed;
    });
    const pay = make(
      'pay',
      (args) => {
        gated += 1;
        return args;
      },
      { effect: 'once', needsApproval: () => true },
    );
    const child = watched(script(finish('child')));
    const made = world({
      planner: plays({
        q: script(
          parallel([
            { tool: 'count', args: {}, callId: 'a' },
            { ...spawning('child', { kind: 'foreground' }), callId: 'b' },
            { ...spawning('child'), callId: 'c' },
            { tool: 'pay', args: { sum: 5 }, callId: 'd' },
          ]),
        ),
        child,
      }),
      tools: [count, pay],
    });
    const run = await start(made, { identity: PARENT });
    const paused = await run.result();
    expect(paused).toMatchObject({ status: 'paused', pauses: [{ reason: 'approval_required', call: 3, run: 'p' }] });
    await until(() => hasEnded(made, 'p.0.2'));
    await until(async () => (await run.state()).open?.calls[1] !== null);
    const open = (await run.state()).open?.calls.map((record) => record?.outcome.kind);
    expect(open).toEqual(['value', 'value', 'value', undefined]);
    await run.approve(undefined, { args: { sum: 4 } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    const state = await run.state();
    expect(outcomes(state)).toEqual(['value', 'value', 'value', 'value']);
    expect(answersOf(state.steps[0])).toEqual({ a: 'value', b: 'value', c: 'value', d: 'value' });
    expect(observations(state)[0]).toMatchObject([
      { call_id: 'a', value: 1 },
      { call_id: 'b', value: { task_id: 'p.0.1', status: 'complete', result: 'child' } },
      { call_id: 'c', value: { task_id: 'p.0.2', kind: 'background', status: 'spawned' } },
      { call_id: 'd', value: { sum: 4 } },
    ]);
    expect([echoed, gated, child.views.length]).toEqual([1, 1, 2]);
  });

  it('two kept tasks of one step run side by side', async () => {
    const { tool, release, runs } = holding();
    const made = world({
      planner: plays({
        q: thenTell(parallel([spawning('child', { kind: 'foreground' }), spawning('child', { kind: 'foreground' })])),
        child: script(call('hold')),
      }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT });
    await until(() => runs() === 2);
    release();
    expect(await payloadOf(run)).toMatchObject([
      { value: { task_id: 'p.0.0', status: 'complete' } },
      { value: { task_id: 'p.0.1', status: 'complete' } },
    ]);
  });

  it('a branch may spawn with what another gave, and a third await it', async () => {
    const made = world({
      planner: plays({
        q: thenTell(
          parallel([
            { id: 'text', tool: 'echo', args: { query: 'child' } },
            {
              id: 'task',
              tool: '_spawn_task',
              args: { spec: { description: 'd', query: { $from: 'text', path: '/query' } } },
            },
            { tool: '_await_task', args: { task_id: { $from: 'task', path: '/task_id' } } },
          ]),
        ),
      }),
      tools: [echo],
    });
    expect(await payloadOf(await start(made, { identity: PARENT }))).toMatchObject([
      { value: { query: 'child' } },
      { value: { task_id: 'p.0.1', status: 'spawned' } },
      { value: { task_id: 'p.0.1', status: 'complete', result: 'child' } },
    ]);
  });

  it('what a branch spawns with is checked also when it comes from another', async () => {
    const made = world({
      planner: plays({
        q: thenTell(
          parallel([
            { id: 'text', tool: 'echo', args: { query: '' } },
            { tool: '_spawn_task', args: { spec: { description: 'd', query: { $from: 'text', path: '/query' } } } },
          ]),
        ),
      }),
      tools: [echo],
    });
    const payload = await payloadOf(await start(made, { identity: PARENT }));
    expect(payload).toMatchObject([{}, { error: { code: 'invalid_decision' } }]);
    expect(await made.journal.list({})).toHaveLength(1);
  });

  it('a join that has what it needs lets go of a kept task, which goes on', async () => {
    const { tool, entered, release } = holding();
    const made = world({
      planner: plays({
        q: script(
          parallel([spawning('slow', { kind: 'foreground' }), spawning('fast', { kind: 'foreground' })], {
            join: { kind: 'first_success' },
          }),
          awaits('p.0.0'),
        ),
        slow: script(call('hold')),
      }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT });
    await entered;
    await until(async () => (await run.state()).steps.length === 1);
    expect(outcomes(await run.state())).toEqual(['cancelled', 'value']);
    release();
    await run.result();
    expect(observations(await run.state())[1]).toEqual({ task_id: 'p.0.0', status: 'complete', result: 'done' });
  });
});

describe('where it is refused', () => {
  /** Each run spawns the next one below it and ends with what that came to. */
  const chain: PlannerFunction = (run) => {
    if (run.trajectory.count === 0) return spawns('deeper', { task: 'foreground' });
    return finish(thenTellOf(run));
  };
  const thenTellOf = (run: Parameters<PlannerFunction>[0]) => {
    const outcome = run.trajectory.step(0)?.calls[0]?.outcome;
    if (outcome?.kind === 'value') return outcome.value;
    return outcome?.kind === 'error' ? { code: outcome.error.code, message: outcome.error.message } : null;
  };

  it('TK-31, BG-07 the fifth run below the first is refused, naming its depth and the cap, and is not made', async () => {
    const made = world({ planner: (run, signal) => chain(run, signal) });
    const run = await start(made, { identity: PARENT });
    let told = await payloadOf(run);
    for (let depth = 1; depth <= 4; depth += 1) {
      expect(told).toMatchObject({ status: 'complete' });
      told = (told as { result: typeof told }).result;
    }
    expect(told).toMatchObject({
      code: 'task_limit',
      message: 'A task here would be at depth 5; the cap is 4. No task was started.',
    });
    expect((await made.journal.list({})).map(({ identity }) => identity.run)).toHaveLength(5);
  });

  it('TK-31, W32 a run has at most 16 tasks under way; when one has ended there is room again', async () => {
    const { tool, release, runs } = holding();
    const many = Array.from({ length: 17 }, () => spawning('child'));
    const made = world({
      planner: plays({ q: script(parallel(many), pause, spawns('child')), child: script(call('hold')) }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT });
    await run.result();
    expect(outcomes(await run.state())).toEqual([...Array(16).fill('value'), 'error']);
    expect((await run.state()).steps[0]?.calls[16]?.outcome).toMatchObject({ error: { code: 'task_limit' } });
    await until(() => runs() === 16);
    release();
    await until(async () => (await made.runtime.tasks.list(ANA, { parent: 'p', status: ['complete'] })).length === 16);
    await run.approve();
    await run.result();
    expect(outcomes(await run.state(), 2)).toEqual(['value']);
  });

  it('TK-31, W32 a tree has at most 64 unfinished tasks, also when many of it spawn at once', async () => {
    const { tool, release } = holding();
    const wide = parallel(Array.from({ length: 16 }, () => spawning('leaf', { kind: 'foreground' })));
    const made = world({
      planner: plays({
        q: script(parallel(Array.from({ length: 8 }, () => spawning('wide', { kind: 'foreground' })))),
        wide: script(wide),
        leaf: script(call('hold')),
      }),
      tools: [tool],
    });
    const run = await start(made, { identity: PARENT });
    const wides = Array.from({ length: 8 }, (_, index) => `p.0.${index}`);
    const isSettled = async (id: string): Promise<boolean> => (await isWaiting(made, id)) || hasEnded(made, id);
    await advanceUntil(made.clock, async () => (await Promise.all(wides.map(isSettled))).every(Boolean));
    const tree = (await made.journal.list({ limit: 200 })).filter(({ root }) => root === 'p');
    const unended = tree.filter(({ status }) => status !== 'finished');
    const ends = (await Promise.all(wides.map((id) => made.journal.read(id)))).flat();
    const refused = ends.flatMap((entry) => (entry.kind === 'call_ended' ? [entry.outcome] : []));
    // One whose tasks were all refused has ended, and left its place to another.
    expect(unended.length).toBeLessThanOrEqual(MAX_TREE_TASKS);
    expect(unended.length).toBeGreaterThan(MAX_TREE_TASKS - 8);
    expect(tree.length - 8 + refused.length).toBe(8 * 16);
    for (const outcome of refused) expect(outcome).toMatchObject({ error: { code: 'task_limit' } });
    release();
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
  });

  it('a run that lives long starts as many tasks as it likes, one after another', async () => {
    const many = Array.from({ length: MAX_TREE_TASKS + 6 }, () => spawns('child', { task: 'foreground' }));
    const made = world({ planner: plays({ q: script(...many), child: script() }) });
    const run = await start(made, { identity: PARENT, limits: { steps: many.length + 1 } });
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    const { steps } = await run.state();
    expect(steps.flatMap(({ calls }) => calls.map(({ outcome }) => outcome.kind))).toEqual(many.map(() => 'value'));
  });

  it('a run shows its planner whether it may start tasks', async () => {
    const planner = watched(chain);
    const made = world({ planner });
    await (await start(made, { identity: local('ana', { run: 'p' }) })).result();
    await quiet();
    const mayByDepth = planner.views
      .filter(({ trajectory }) => trajectory.count === 0)
      .map(({ identity, tasks }) => [identity.run.split('.').length, tasks]);
    expect(mayByDepth).toEqual([
      [1, true],
      [3, true],
      [5, true],
      [7, true],
      [9, false],
    ]);
  });
});
