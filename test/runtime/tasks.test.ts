/** Tasks as a program sees them: `runtime.tasks`. */
import { describe, expect, it } from 'vitest';
import { type Identity, local, type RunEvent, type Scope } from '#core';
import { memoryJournal } from '#journal';
import type { Tasks } from '#runtime';
import { VirtualClock } from '#testing';
import { call, finish, parallel, pause, script, watched } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf, hasEnded } from '../kit/run-record.ts';
import { ANA, awaits, fails, PARENT, plays, spawning, spawns } from '../kit/tasks.ts';
import { holding } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const OTHERS: readonly Scope[] = [
  { ...ANA, tenant: 'other' },
  { ...ANA, user: 'other' },
  { ...ANA, session: 'other' },
];

describe('spawn', () => {
  it('TK-01 starts a run of its own, with a fresh id, that is no turn of the conversation', async () => {
    const { tool, entered, release } = holding();
    const made = world({ planner: script(call('hold')), tools: [tool] });
    const { run, reused } = await made.runtime.tasks.spawn('look', { identity: ANA });
    const another = await made.runtime.tasks.spawn('look', { identity: ANA });
    expect([reused, another.reused]).toEqual([false, false]);
    expect(another.run.id).not.toBe(run.id);
    await entered;
    expect(await made.runtime.tasks.get(ANA, run.id)).toEqual({
      id: run.id,
      status: 'running',
      depth: 0,
      kind: 'background',
      description: 'look',
      priority: 0,
      query: 'look',
      createdAt: made.clock.now(),
      updatedAt: made.clock.now(),
    });
    const [started] = await entriesOf(made.journal, run, 'started');
    expect(started).toMatchObject({ conversation: false, query: 'look', identity: { ...ANA, run: run.id } });
    release();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(await made.runtime.tasks.get(ANA, run.id)).toMatchObject({ status: 'complete', result: 'done' });
  });

  it('TK-01 is pending until somebody has room for it', async () => {
    const { tool, entered, release } = holding();
    const made = world({ planner: script(call('hold')), tools: [tool], maxLiveRuns: 1 });
    const first = await start(made);
    await entered;
    const { run } = await made.runtime.tasks.spawn('later', { identity: ANA });
    expect(await made.runtime.tasks.get(ANA, run.id)).toMatchObject({ status: 'pending' });
    release();
    await Promise.all([first.result(), run.result()]);
    expect(await made.runtime.tasks.get(ANA, run.id)).toMatchObject({ status: 'complete' });
  });

  const request = {
    idempotencyKey: 'k',
    priority: 3,
    limits: { steps: 5, tokens: 9 },
    scopes: ['read'],
    context: { retrieved: { a: 1, b: 2 } },
    inputs: [{ bytes: new TextEncoder().encode('photo'), mime: 'image/png' }],
  };

  it('TK-02 gives the same task for the same key and an equal request, and stores nothing', async () => {
    const planner = watched(script());
    const made = world({ planner });
    const one = await made.runtime.tasks.spawn('q', { identity: ANA, ...request });
    await one.run.result();
    const before = await made.journal.list({});
    const two = await made.runtime.tasks.spawn('q', {
      identity: { ...ANA },
      ...request,
      limits: { tokens: 9, steps: 5 },
      context: { retrieved: { b: 2, a: 1 } },
      inputs: [{ bytes: new TextEncoder().encode('photo'), mime: 'image/png' }],
    });
    expect([one.reused, two.reused]).toEqual([false, true]);
    expect(two.run.id).toBe(one.run.id);
    expect(await made.journal.list({})).toEqual(before);
    expect(planner.views).toHaveLength(1);
    expect(only(await collect(two.run), 'run.started')).toHaveLength(1);
  });

  it('TK-02 is one task of 64 that ask at once, also in two runtimes, and one of them is told that it is new', async () => {
    const clock = new VirtualClock();
    const journal = memoryJournal({ clock });
    const planner = watched(script());
    const worlds = [world({ planner, journal, clock }), world({ planner, journal, clock })];
    const options = { identity: ANA, idempotencyKey: 'k' };
    const asked = await Promise.all(
      Array.from({ length: 64 }, (_, index) => worlds[index % 2]?.runtime.tasks.spawn('q', options)),
    );
    expect(new Set(asked.map((task) => task?.run.id)).size).toBe(1);
    expect(asked.filter((task) => task?.reused === false)).toHaveLength(1);
    await asked[0]?.run.result();
    expect(planner.views).toHaveLength(1);
  });

  it.each([
    ['query', 'other', {}],
    ['priority', 'q', { priority: 4 }],
    ['limits', 'q', { limits: { steps: 6, tokens: 9 } }],
    ['scopes', 'q', { scopes: [] }],
    ['context', 'q', { context: { retrieved: { a: 1 } } }],
    ['inputs', 'q', { inputs: [] }],
    ['history', 'q', { history: [{ role: 'user' as const, text: 'earlier' }] }],
  ])('TK-03 refuses the key for a request with another %s', async (_, query, more) => {
    const made = world({ planner: script() });
    const { run } = await made.runtime.tasks.spawn('q', { identity: ANA, ...request });
    const other = made.runtime.tasks.spawn(query, { identity: ANA, ...request, ...more });
    await expect(other).rejects.toMatchObject({ code: 'idempotency_conflict' });
    expect(await made.journal.list({})).toHaveLength(1);
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('TK-03 compares what was asked, not what became of it: a changed priority is no conflict', async () => {
    const made = world({ planner: script(pause) });
    const { run } = await made.runtime.tasks.spawn('q', { identity: ANA, ...request });
    await run.result();
    expect(await made.runtime.tasks.prioritize(ANA, run.id, 9)).toBe(true);
    expect(await made.runtime.tasks.spawn('q', { identity: ANA, ...request })).toMatchObject({ reused: true });
  });

  it('TK-04 with an empty key, and without one, is always another task; two sessions are two tasks', async () => {
    const { runtime } = world({ planner: script() });
    const spawned = await Promise.all([
      runtime.tasks.spawn('q', { identity: ANA, idempotencyKey: '' }),
      runtime.tasks.spawn('q', { identity: ANA, idempotencyKey: '' }),
      runtime.tasks.spawn('q', { identity: ANA }),
      runtime.tasks.spawn('q', { identity: ANA, idempotencyKey: 'k' }),
      runtime.tasks.spawn('q', { identity: { ...ANA, session: 'other' }, idempotencyKey: 'k' }),
    ]);
    expect(new Set(spawned.map(({ run }) => run.id)).size).toBe(5);
    expect(spawned.every(({ reused }) => !reused)).toBe(true);
  });

  it('TK-05, ID-04, ID-05 one session and one key under two tenants or users are two tasks, however the names are split', async () => {
    const { runtime } = world({ planner: script() });
    const scopes = [ANA, ...OTHERS, { ...ANA, tenant: 'a', user: 'bc' }, { ...ANA, tenant: 'ab', user: 'c' }];
    const spawned = await Promise.all(
      scopes.map((identity, index) => runtime.tasks.spawn(`q${index}`, { identity, idempotencyKey: 'k' })),
    );
    expect(new Set(spawned.map(({ run }) => run.id)).size).toBe(scopes.length);
    for (const [index, { run }] of spawned.entries()) {
      expect(await runtime.tasks.get(scopes[index] as Scope, run.id)).toMatchObject({ query: `q${index}` });
    }
  });

  it.each(['tenant', 'user', 'session'] as const)('refuses an identity without %s', async (part) => {
    const { runtime } = world({ planner: script() });
    const identity = { ...ANA, [part]: ' ' };
    for (const idempotencyKey of ['', 'k']) {
      const spawned = runtime.tasks.spawn('q', { identity, idempotencyKey });
      await expect(spawned).rejects.toMatchObject({ code: 'identity_required' });
    }
    await expect(runtime.tasks.spawn('q', {} as never)).rejects.toMatchObject({ code: 'identity_required' });
    await expect(runtime.tasks.get(identity, 'p')).rejects.toMatchObject({ code: 'identity_required' });
    await expect(runtime.tasks.list(identity)).rejects.toMatchObject({ code: 'identity_required' });
  });
});

/** A run `p` with a task that has ended well, one that has not, one that waits for an answer and one that runs. */
async function family(): Promise<ReturnType<typeof world> & { release(): void }> {
  const { tool, entered, release } = holding();
  const made = world({
    planner: plays({
      q: script(parallel(['well', 'badly', 'asks', 'works'].map((query) => spawning(query, {}, { priority: 2 })))),
      badly: fails,
      asks: script(pause),
      works: script(call('hold')),
    }),
    tools: [tool],
  });
  await (await start(made, { identity: PARENT })).result();
  await entered;
  await until(() => hasEnded(made, 'p.0.1'));
  await made.runtime.run('p.0.2').result();
  return { ...made, release };
}

describe('get and list', () => {
  it('tell what a task is, where it comes from and what it came to', async () => {
    const { runtime } = await family();
    const spawned = { parent: 'p', root: 'p', depth: 1, kind: 'background', priority: 2 };
    expect(await runtime.tasks.get(ANA, 'p')).toMatchObject({
      id: 'p',
      status: 'complete',
      kind: 'foreground',
      depth: 0,
    });
    expect(await runtime.tasks.get(ANA, 'p.0.0')).toMatchObject({
      ...spawned,
      status: 'complete',
      description: 'does well',
      query: 'well',
      group: 'group:p.0.0',
      result: 'well',
    });
    expect(await runtime.tasks.get(ANA, 'p.0.1')).toMatchObject({
      ...spawned,
      status: 'failed',
      result: { why: 'no way' },
      error: { code: 'no_path' },
    });
    expect(await runtime.tasks.get(ANA, 'p.0.2')).toMatchObject({ ...spawned, status: 'paused' });
    expect(await runtime.tasks.get(ANA, 'p.0.3')).toMatchObject({ ...spawned, status: 'running' });
  });

  it('TK-16 to another tenant, user or session a task is as one that is not there', async () => {
    const { runtime } = await family();
    const { tasks } = runtime;
    for (const [scope, id] of [...OTHERS.map((other) => [other, 'p.0.3'] as const), [ANA, 'none'] as const]) {
      const error = { code: 'task_not_found', message: `There is no task "${id}" in this session.` };
      expect(await tasks.get(scope, id)).toBeUndefined();
      expect(await tasks.list(scope, { parent: 'p', ...(id === 'none' ? { parent: 'none' } : {}) })).toEqual([]);
      await expect(tasks.list(scope, { after: id })).rejects.toMatchObject(error);
      await expect(tasks.cancel(scope, id)).rejects.toMatchObject(error);
      await expect(tasks.prioritize(scope, id, 1)).rejects.toMatchObject(error);
      await expect(tasks.watch(scope, id).next()).rejects.toMatchObject(error);
      expect(await tasks.group(scope, id === 'none' ? 'none' : 'p', 'group:p.0.0')).toBeUndefined();
    }
    expect(await tasks.get(ANA, 'p.0.3')).toMatchObject({ status: 'running' });
  });

  it('TK-17 lists by session, parent and status, newest first, a page at a time', async () => {
    const { runtime } = await family();
    const { tasks } = runtime;
    await (await start({ runtime }, { identity: local('bea') })).result();
    const ids = async (query?: Parameters<Tasks['list']>[1]): Promise<string[]> =>
      (await tasks.list(ANA, query)).map(({ id }) => id).sort();
    expect(await ids()).toEqual(['p', 'p.0.0', 'p.0.1', 'p.0.2', 'p.0.3']);
    expect(await ids({ parent: 'p' })).toEqual(['p.0.0', 'p.0.1', 'p.0.2', 'p.0.3']);
    expect(await ids({ status: ['complete'] })).toEqual(['p', 'p.0.0']);
    expect(await ids({ status: ['complete'], parent: 'p' })).toEqual(['p.0.0']);
    expect(await ids({ status: ['failed'] })).toEqual(['p.0.1']);
    expect(await ids({ status: ['paused', 'running'] })).toEqual(['p.0.2', 'p.0.3']);
    expect(await ids({ status: ['pending', 'cancelled'] })).toEqual([]);
    // A page is filled, though most of what is stored as finished is not what was asked for.
    expect(await ids({ status: ['failed'], limit: 1 })).toEqual(['p.0.1']);
    const pages: string[] = [];
    for (let after: string | undefined; ; ) {
      const page = await tasks.list(ANA, { limit: 2, ...(after === undefined ? {} : { after }) });
      pages.push(...page.map(({ id }) => id));
      after = page.at(-1)?.id;
      if (page.length < 2) break;
    }
    expect(pages).toEqual((await tasks.list(ANA)).map(({ id }) => id));
    await expect(tasks.list(ANA, { limit: 201 })).rejects.toMatchObject({ code: 'invalid_config' });
  });
});

describe('cancel and prioritize', () => {
  it('TK-12 cancel is true for a task that goes on, which then ends; false, and no event, for one that has ended', async () => {
    const made = await family();
    const { tasks } = made.runtime;
    expect(await tasks.cancel(ANA, 'p.0.3', 'not needed')).toBe(true);
    expect(await tasks.cancel(ANA, 'p.0.2')).toBe(true);
    expect(await made.runtime.run('p.0.3').result()).toMatchObject({
      status: 'finished',
      reason: 'cancelled',
      metadata: { reason: 'not needed' },
    });
    await until(() => hasEnded(made, 'p.0.2'));
    expect(await tasks.get(ANA, 'p.0.2')).toMatchObject({ status: 'cancelled', error: { code: 'cancelled' } });
    for (const id of ['p.0.0', 'p.0.1', 'p.0.2', 'p.0.3']) {
      const before = await made.journal.get(id);
      expect(await tasks.cancel(ANA, id)).toBe(false);
      expect(await made.journal.get(id)).toEqual(before);
    }
  });

  it('TK-12 a task that nobody has begun ends without a move', async () => {
    const { tool, entered, release } = holding();
    const planner = watched(script(call('hold')));
    const made = world({ planner, tools: [tool], maxLiveRuns: 1 });
    const first = await start(made);
    await entered;
    const { run } = await made.runtime.tasks.spawn('later', { identity: ANA });
    expect(await made.runtime.tasks.cancel(ANA, run.id)).toBe(true);
    release();
    await first.result();
    expect(await run.result()).toMatchObject({ reason: 'cancelled', usage: { steps: 0 } });
    expect(planner.views.filter(({ query }) => query === 'later')).toEqual([]);
  });

  it('TK-14 prioritize is false, and no event, for the priority that the task has, and for one that has ended', async () => {
    const made = await family();
    const { tasks } = made.runtime;
    const before = await made.journal.get('p.0.2');
    expect(await tasks.prioritize(ANA, 'p.0.2', 2)).toBe(false);
    expect(await made.journal.get('p.0.2')).toEqual(before);
    expect(await tasks.prioritize(ANA, 'p.0.2', -7)).toBe(true);
    expect(await tasks.get(ANA, 'p.0.2')).toMatchObject({ priority: -7 });
    expect(await tasks.prioritize(ANA, 'p.0.2', -7)).toBe(false);
    const ended = await made.journal.get('p.0.0');
    expect(await tasks.prioritize(ANA, 'p.0.0', 5)).toBe(false);
    expect(await made.journal.get('p.0.0')).toEqual(ended);
    await expect(tasks.prioritize(ANA, 'p.0.2', 1_001)).rejects.toMatchObject({ code: 'payload_invalid' });
  });
});

describe('watch', () => {
  it('gives the events of the task', async () => {
    const { runtime, release } = await family();
    const events: string[] = [];
    const reading = (async () => {
      for await (const event of runtime.tasks.watch(ANA, 'p.0.3')) events.push(event.type);
    })();
    await until(() => events.includes('planner.decision'));
    release();
    await reading;
    expect(events[0]).toBe('run.started');
    expect(events.at(-1)).toBe('planner.finish');
  });

  it('TK-09 the owner’s events tell the life of its tasks', async () => {
    const made = world({
      planner: plays({
        q: script(
          parallel(['well', 'badly', 'asks'].map((query) => spawning(query, { kind: 'foreground' }))),
          spawns('stopped', { task: 'foreground' }),
        ),
        badly: fails,
        asks: script(pause),
        stopped: script(pause),
      }),
    });
    const run = await start(made, { identity: PARENT });
    const first = await collect(run);
    expect(only(first, 'task.spawned').map(({ taskId, kind }) => [taskId, kind])).toEqual([
      ['p.0.0', 'foreground'],
      ['p.0.1', 'foreground'],
      ['p.0.2', 'foreground'],
    ]);
    expect(only(first, 'task.completed')).toMatchObject([{ taskId: 'p.0.0', result: 'well' }]);
    expect(only(first, 'task.failed')).toMatchObject([{ taskId: 'p.0.1', code: 'no_path' }]);
    expect(only(first, 'task.paused')).toMatchObject([{ taskId: 'p.0.2', pauses: [{ run: 'p.0.2' }] }]);
    await run.approve();
    await advanceUntil(made.clock, async () => (await made.journal.get('p.1.0'))?.status === 'paused');
    await made.runtime.tasks.cancel(ANA, 'p.1.0');
    await advanceUntil(made.clock, () => hasEnded(made, 'p'));
    const all = await collect(run);
    expect(only(all, 'task.resumed')).toMatchObject([{ taskId: 'p.0.2' }]);
    expect(only(all, 'task.cancelled')).toMatchObject([{ taskId: 'p.1.0' }]);
  });
});

it('TK-18 after close everything is refused, and closing twice is fine', async () => {
  const { runtime } = await family();
  const { tasks } = runtime;
  const waiting = tasks.watch(ANA, 'p.0.3');
  await waiting.next();
  await runtime.close();
  await runtime.close();
  const closed = { code: 'runtime_closed' };
  await expect(
    (async () => {
      for await (const _ of waiting);
    })(),
  ).rejects.toMatchObject(closed);
  await expect(tasks.spawn('q', { identity: ANA })).rejects.toMatchObject(closed);
  await expect(tasks.get(ANA, 'p')).rejects.toMatchObject(closed);
  await expect(tasks.list(ANA)).rejects.toMatchObject(closed);
  await expect(tasks.cancel(ANA, 'p.0.3')).rejects.toMatchObject(closed);
  await expect(tasks.prioritize(ANA, 'p.0.3', 1)).rejects.toMatchObject(closed);
  await expect(tasks.watch(ANA, 'p.0.3').next()).rejects.toMatchObject(closed);
  await expect(tasks.group(ANA, 'p', 'group:p.0.0')).rejects.toMatchObject(closed);
  await expect(tasks.watchGroup(ANA, 'p', 'group:p.0.0')).rejects.toMatchObject(closed);
});

it('ID-06 each of 100 sessions with a spawn, a pause, an answer and an artifact sees only its own', async () => {
  const made = world({
    planner: (run) => {
      if (run.query === 'child') return finish(run.identity.session);
      const steps = [spawns('child'), pause, awaits(`${run.identity.run}.0.0`)];
      return steps[run.trajectory.count] ?? finish('x'.repeat(40_000) + run.identity.session);
    },
  });
  const identities = Array.from(
    { length: 100 },
    (_, index): Identity => local('ana', { session: `s${index}`, run: `run ${index}` }),
  );
  const runs = await Promise.all(identities.map((identity) => start(made, { identity })));
  await Promise.all(runs.map((run) => run.result()));
  await Promise.all(runs.map((run) => run.approve()));
  await Promise.all(runs.map((run) => run.result()));
  await quiet();
  for (const identity of identities) {
    const tasks = await made.runtime.tasks.list(identity);
    expect(tasks.map(({ id }) => id).sort()).toEqual([identity.run, `${identity.run}.0.0`]);
    expect(tasks.find(({ depth }) => depth === 1)).toMatchObject({ status: 'complete', result: identity.session });
    const { rows } = await made.journal.artifacts.list(identity, 10);
    expect(rows).toHaveLength(1);
  }
});

it('TK-44 an e-mail address in the query is whole for the planner, and masked for a sink that redacts', async () => {
  const query = 'write to ana@example.org';
  const planner = watched(script(finish(query)));
  const { runtime } = world({ planner });
  const { run } = await runtime.tasks.spawn(query, { identity: ANA });
  await run.result();
  expect(planner.views[0]?.goal).toBe(query);
  expect(await runtime.tasks.get(ANA, run.id)).toMatchObject({ query, result: query });
  const sink: RunEvent[] = [];
  const redact = (text: string): string => text.replaceAll(/\S+@\S+/g, '[address]');
  for await (const event of runtime.tasks.watch(ANA, run.id, { redact })) sink.push(event);
  expect(JSON.stringify(sink)).not.toContain('ana@example.org');
  expect(only(sink, 'run.started')).toMatchObject([{ query: 'write to [address]' }]);
  expect(only(sink, 'planner.finish')).toMatchObject([{ payload: 'write to [address]' }]);
});
