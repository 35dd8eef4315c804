/** Forks of stored runs, on both journals, driven by the runtime. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Decision, type Identity, local, type Planner, type PlannerFunction, Redaction } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { type ForkOptions, forkRun, type Run, replayRun } from '#runtime';
import { compareRuns } from '#state';
import { claimFirst, VirtualClock } from '#testing';
import { createCatalogue, type Tool } from '#tools';
import { call, finish, pause, script, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { innerState, kindsOf, outcomes } from '../kit/run-record.ts';
import { openJournal } from '../kit/sqlite.ts';
import { holding, make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

/** A planner of this name. */
const planned = (name: string, next: PlannerFunction): Planner => ({ name, next });

/** A runtime of other code on the same journal. */
function other(journal: Journal, planner: Planner, tools: readonly Tool[]): World {
  const made = world({ journal, planner, tools, clock: new VirtualClock() });
  onTestFinished(() => made.runtime.close());
  return made;
}

interface Side {
  readonly journal: Journal;
  readonly planner: Planner;
  readonly tools: readonly Tool[];
}

function fork({ journal, planner, tools }: Side, run: Run, options: ForkOptions = {}): Promise<Identity> {
  const catalogue = createCatalogue([...tools], []);
  const toolsOf = (scopes: readonly string[], found: readonly string[]) => catalogue.view(scopes, found);
  const deps = {
    journal,
    artifacts: journal.artifacts,
    clock: new VirtualClock(),
    agent: planner.name,
    planner,
    toolsOf,
    unpriced: [],
    redaction: new Redaction(),
  };
  return forkRun(deps, run.id, options);
}

/** Forks, and drives the fork to its end by the side's planner. */
async function forkAndDrive(side: Side, run: Run, options: ForkOptions = {}): Promise<Run> {
  const { run: id } = await fork(side, run, options);
  const { runtime } = other(side.journal, side.planner, side.tools);
  const forked = runtime.run(id);
  await forked.resume();
  await forked.result();
  return forked;
}

/** A tool that counts how often it was called. */
function counted(name: string, more: Partial<Tool> = {}): { readonly tool: Tool; calls(): number } {
  let calls = 0;
  const tool = make(
    name,
    () => {
      calls += 1;
      return `${name} ${calls}`;
    },
    more,
  );
  return { tool, calls: () => calls };
}

const journals: readonly (readonly [string, () => Promise<Journal>])[] = [
  ['memory', async () => memoryJournal()],
  ['SQLite', async () => openJournal(temporaryFile())],
];

describe.each(journals)('a fork on the %s journal', (_, open) => {
  it('another planner goes on at the step boundary, on what the first steps came to', async () => {
    const journal = await open();
    const look = counted('look');
    const first = planned('first', script(call('look'), call('look'), finish('by the first')));
    const { runtime } = world({ journal, planner: first, tools: [look.tool] });
    const run = await start({ runtime });
    await run.result();
    const before = await journal.read(run.id);

    const second = watched((view) =>
      view.trajectory.count === 1 ? call('look', { again: true }) : finish('by the second'),
    );
    const side = { journal, planner: planned('second', second), tools: [look.tool] };
    const forked = await forkAndDrive(side, run, { step: 1 });

    expect(await forked.result()).toMatchObject({ status: 'finished', payload: 'by the second' });
    const [a, b] = [await run.state(), await innerState(journal, forked)];
    expect(b).toMatchObject({
      agent: 'second',
      fork: { run: run.id, step: 1, effects: 'held' },
      conversation: false,
    });
    // Two calls of the run and one of the fork: what the first step did is read, and not done again.
    expect(look.calls()).toBe(3);
    expect(b.steps[0]?.calls[0]?.outcome).toEqual(a.steps[0]?.calls[0]?.outcome);
    expect(second.views[0]?.trajectory.count).toBe(1);
    expect(second.views[0]?.budget.stepsLeft).toBe(63);
    expect(compareRuns(a, b)).toMatchObject({ firstDivergence: 1, sameEnding: false });
    expect(await journal.read(run.id)).toEqual(before);
    await runtime.close();
  });

  it('a changed result takes the same planner another way', async () => {
    const journal = await open();
    const check = make('check', () => 'in stock');
    const decides: PlannerFunction = ({ trajectory }) => {
      const outcome = trajectory.step(0)?.calls[0]?.outcome;
      if (outcome === undefined) return call('check');
      return finish(outcome.kind === 'value' && outcome.value === 'in stock' ? 'order' : 'wait');
    };
    const planner = planned('shop', decides);
    const { runtime } = world({ journal, planner, tools: [check] });
    const run = await start({ runtime });
    expect(await run.result()).toMatchObject({ payload: 'order' });
    const forked = await forkAndDrive({ journal, planner, tools: [check] }, run, { result: { value: 'sold out' } });
    expect(await forked.result()).toMatchObject({ payload: 'wait' });
    expect(compareRuns(await run.state(), await forked.state()).steps).toMatchObject([{ changes: ['outcome'] }]);
    await runtime.close();
  });

  it('effects that happen once are held back, unless they are allowed', async () => {
    const journal = await open();
    const pay = counted('pay', { effect: 'once' });
    const keyed = counted('keyed', { effect: 'keyed' });
    const planner = planned('payer', script(call('pay'), call('pay'), call('keyed')));
    const tools = [pay.tool, keyed.tool];
    const { runtime } = world({ journal, planner, tools });
    const run = await start({ runtime });
    await run.result();
    expect([pay.calls(), keyed.calls()]).toEqual([2, 1]);

    const held = await (await forkAndDrive({ journal, planner, tools }, run, { step: 1 })).state();
    expect(held.steps.map((__, step) => outcomes(held, step))).toEqual([['value'], ['error'], ['value']]);
    expect(held.steps[1]?.calls[0]?.outcome).toMatchObject({ error: { code: 'effect_held_back' } });
    expect([pay.calls(), keyed.calls()]).toEqual([2, 2]);

    const allowed = await (
      await forkAndDrive({ journal, planner, tools }, run, { step: 1, effects: 'allowed' })
    ).state();
    expect(allowed.steps.map((__, step) => outcomes(allowed, step))).toEqual([['value'], ['value'], ['value']]);
    expect(pay.calls()).toBe(3);
    await runtime.close();
  });

  it('a run that waits, and one that is under way, can be forked; neither is touched', async () => {
    const journal = await open();
    const hold = holding();
    const planner = planned('waits', script(call('hold'), pause));
    const { runtime } = world({ journal, planner, tools: [hold.tool] });
    const run = await start({ runtime });
    await hold.entered;
    const goOn = planned('ends', () => finish('fork'));
    const side = { journal, planner: goOn, tools: [hold.tool] };
    const early = await forkAndDrive(side, run);
    expect((await early.state()).steps).toHaveLength(0);
    hold.release();
    expect((await run.result()).status).toBe('paused');
    const before = await journal.read(run.id);
    const late = await forkAndDrive(side, run);
    expect(await kindsOf(journal, late)).toEqual(['started', 'moved', 'call_ended', 'moved', 'finished']);
    expect(await journal.read(run.id)).toEqual(before);
    expect((await journal.get(run.id))?.status).toBe('paused');
    await runtime.close();
  });

  it('what is said to the fork is heard, however much had been said to the run', async () => {
    const journal = await open();
    const hold = holding();
    const planner = planned('listens', script(call('hold'), call('hold')));
    const { runtime } = world({ journal, planner, tools: [hold.tool] });
    const run = await start({ runtime });
    await hold.entered;
    const said = ['1', '2', '3'].map((message) => run.steer('USER_MESSAGE', { message }));
    await until(async () => (await journal.inbox(run.id)).length === said.length);
    hold.release();
    await Promise.all(said);
    await run.result();
    // Another process says it while the fork's planner decides, and tells nobody here.
    const stopped: PlannerFunction = async ({ identity }) => {
      await journal.signal(identity.run, { id: 'stop', type: 'CANCEL' });
      return finish('too late');
    };
    const side = { journal, planner: planned('stopped', stopped), tools: [hold.tool] };
    const forked = await forkAndDrive(side, run, { goal: 'another', step: 1 });
    expect((await innerState(journal, forked)).steering).toHaveLength(4);
    expect(await forked.result()).toMatchObject({ reason: 'cancelled' });
    await runtime.close();
  });
});

describe('forkRun', () => {
  async function setUp(): Promise<Side & { readonly run: Run }> {
    const journal = memoryJournal();
    const look = make('look', () => 1);
    const planner = planned('p', script(call('look'), call('look')));
    const { runtime } = other(journal, planner, [look]);
    const run = await start({ runtime }, { identity: local('ana', { session: 's' }), limits: { steps: 2 } });
    await run.result();
    return { journal, planner, tools: [look], run };
  }

  it('stays in the tenant, user and session of its run', async () => {
    const { run, ...side } = await setUp();
    const own = local('ana', { session: 's', run: 'mine' });
    for (const part of ['tenant', 'user', 'session'] as const) {
      await expect(fork(side, run, { identity: { ...own, [part]: 'else' }, step: 0 })).rejects.toMatchObject({
        code: 'scope_mismatch',
      });
    }
    await expect(fork(side, run, { identity: { ...own, run: '' } })).rejects.toMatchObject({
      code: 'identity_required',
    });
    expect(await fork(side, run, { identity: own, step: 0 })).toEqual(own);
    const fresh = await fork(side, run, { step: 0 });
    expect(fresh).toMatchObject({ user: 'ana', session: 's' });
    expect(fresh.run).not.toBe(run.id);
    expect(await side.journal.list({})).toHaveLength(3);
  });

  it('is due at once, and the same fork twice is one', async () => {
    const { run, ...side } = await setUp();
    const identity = local('ana', { session: 's', run: 'mine' });
    await fork(side, run, { identity, step: 1 });
    await fork(side, run, { identity, step: 1 });
    expect(await claimFirst(side.journal, { owner: 'o', leaseMs: 1_000 })).toMatchObject({ run: 'mine', head: 3 });
    for (const other of [{ step: 0 }, { step: 1, goal: 'g' }, { step: 1, effects: 'allowed' as const }]) {
      await expect(fork(side, run, { identity, ...other })).rejects.toMatchObject({ code: 'idempotency_conflict' });
    }
    await expect(fork(side, run, { identity: { ...identity, run: run.id }, step: 0 })).rejects.toMatchObject({
      code: 'idempotency_conflict',
    });
  });

  it('refuses a run that is not there, and a fork that would end at once', async () => {
    const { run, ...side } = await setUp();
    await expect(fork(side, { id: 'nobody' } as Run)).rejects.toMatchObject({ code: 'run_not_found' });
    await expect(fork(side, run, { step: 3 })).rejects.toMatchObject({ code: 'invalid_config' });
    await expect(fork(side, run)).rejects.toMatchObject({ code: 'invalid_config', data: { axis: 'steps' } });
    expect(await side.journal.list({})).toHaveLength(1);
    await fork(side, run, { limits: { steps: 9 } });
    await fork(side, run, { limits: { onCeiling: 'pause' } });
  });

  it('replay begins at the first step that is the fork’s own', async () => {
    const { run, ...side } = await setUp();
    const otherwise = planned('other', (view) => (view.trajectory.count === 1 ? call('look', { n: 2 }) : finish()));
    const forked = await forkAndDrive({ ...side, planner: otherwise }, run, { step: 1, limits: { steps: 9 } });
    const catalogue = createCatalogue([...side.tools], []);
    const entries = await side.journal.read(forked.id);
    const report = await replayRun({
      entries,
      planner: otherwise,
      toolsOf: (scopes, found) => catalogue.view(scopes, found),
    });
    expect(report).toEqual({ run: forked.id, from: 1, compared: 2 });
  });
});

describe('a fork and the tasks of its run', () => {
  const spawn: Decision = {
    kind: 'spawn_task',
    task: 'background',
    spec: { description: 'd', query: 'the task' },
  };

  it('leaves those that are under way to the run: the fork’s end does not stop them', async () => {
    const journal = memoryJournal();
    const hold = holding();
    const goOn = holding();
    const tools = [hold.tool, { ...goOn.tool, name: 'later' }];
    const decides: PlannerFunction = ({ query, trajectory: { count } }) => {
      if (query === 'the task') return count === 0 ? call('hold') : finish('task');
      return [spawn, call('later')][count] ?? finish('run');
    };
    const planner = planned('parent', decides);
    const { runtime } = other(journal, planner, tools);
    const run = await start({ runtime });
    await hold.entered;
    await goOn.entered;
    const quits = planned('quits', () => ({ kind: 'finish', reason: 'no_path' }));
    const forked = await forkAndDrive({ journal, planner: quits, tools }, run, { step: 1 });
    const state = await forked.state();
    expect(state.tasks).toMatchObject([{ id: `${run.id}.0.0`, end: { status: 'cancelled' } }]);
    expect(state.ending).toMatchObject({ reason: 'no_path' });
    hold.release();
    goOn.release();
    expect(await run.result()).toMatchObject({ payload: 'run' });
    expect(await runtime.run(`${run.id}.0.0`).result()).toMatchObject({ status: 'finished', payload: 'task' });
  });

  it('what a task of the fork would do once is held back too', async () => {
    const journal = memoryJournal();
    const pay = counted('pay', { effect: 'once' });
    const decides: PlannerFunction = ({ query, trajectory: { count } }) => {
      if (query === 'the task') return count === 0 ? call('pay') : finish('task');
      return count === 0 ? { ...spawn, task: 'foreground' } : finish('run');
    };
    const planner = planned('parent', decides);
    const { runtime } = other(journal, planner, [pay.tool]);
    const run = await start({ runtime });
    await run.result();
    expect(pay.calls()).toBe(1);
    const forked = await forkAndDrive({ journal, planner, tools: [pay.tool] }, run, { step: 0 });
    const task = await runtime.run(`${forked.id}.0.0`).state();
    expect(task.steps[0]?.calls[0]?.outcome).toMatchObject({ error: { code: 'effect_held_back' } });
    expect(pay.calls()).toBe(1);
    expect(compareRuns(await run.state(), await forked.state())).not.toHaveProperty('firstDivergence');
  });
});
