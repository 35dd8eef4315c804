/** Questions of a task of which the run above has not heard yet: the task tells what it asks when nothing else of it is under way. */
import { describe, expect, it } from 'vitest';
import type { Json, PlannerFunction } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { agent, agentTool } from '#tools';
import { call, named, parallel, script } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { hasEnded, isWaiting, pausesOf } from '../kit/run-record.ts';
import { awaits, PARENT, plays, spawning, spawns, thenTell } from '../kit/tasks.ts';
import { holding, make } from '../kit/tools.ts';
import { gate, quiet, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

interface Beside {
  readonly made: World;
  readonly paid: Json[];
  release(): void;
  /** The token of the question that this run has open, once it has. */
  asked(run: string, index?: number): Promise<string>;
}

/** Payments that ask first, beside a call that holds its run. */
function beside(scripts: Readonly<Record<string, PlannerFunction>>): Beside {
  const paid: Json[] = [];
  const { tool, release } = holding();
  const pay = make('pay', (args) => paid.push(args), { effect: 'once', needsApproval: true });
  const made = world({ planner: plays(scripts), tools: [pay, tool] });
  const asked = async (id: string, index = 0): Promise<string> => {
    const pauses = async () => ((await made.journal.get(id)) ? (await made.runtime.run(id).state()).pauses : []);
    await until(async () => (await pauses())[index] !== undefined);
    return (await pauses())[index]?.token ?? '';
  };
  return { made, paid, release, asked };
}

const BESIDE = parallel(named('pay', 'hold'));
const kept = (query: string): PlannerFunction => thenTell(spawns(query, { task: 'foreground' }));

describe('a question of a task that has another call under way', () => {
  it('is answered through the run above by its token', async () => {
    const { made, paid, release, asked } = beside({ q: kept('child'), child: script(BESIDE) });
    const run = await start(made, { identity: PARENT });
    await run.approve(await asked('p.0.0'), { args: { sum: 4 } });
    await until(() => paid.length === 1);
    expect(paid).toEqual([{ sum: 4 }]);
    release();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(made.faults).toEqual([]);
  });

  it('is answered without a token while it is the only one', async () => {
    const { made, paid, release, asked } = beside({ q: kept('child'), child: script(BESIDE) });
    const run = await start(made, { identity: PARENT });
    await asked('p.0.0');
    await run.reject(undefined, { reason: 'too much' });
    release();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(paid).toEqual([]);
    const [step] = (await made.runtime.run('p.0.0').state()).steps;
    expect(step?.calls[0]?.outcome).toMatchObject({ kind: 'error', error: { code: 'tool_rejected' } });
  });

  it('must be named while others are open, also one of which the run was told', async () => {
    const { made, paid, release, asked } = beside({
      q: thenTell(parallel([spawning('busy', { kind: 'foreground' }), spawning('child', { kind: 'foreground' })])),
      busy: script(BESIDE),
      child: script(call('pay', { sum: 2 })),
    });
    const run = await start(made, { identity: PARENT });
    const busy = await asked('p.0.0');
    await until(async () => (await run.state()).tasks[1]?.pauses.length === 1);
    await expect(run.approve()).rejects.toMatchObject({
      code: 'pause_not_found',
      message: expect.stringContaining('as 2 are open'),
    });
    expect(paid).toEqual([]);
    await run.answerAll({ [busy]: { kind: 'approve' }, [await asked('p.0.1')]: { kind: 'approve' } });
    release();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(paid).toHaveLength(2);
  });

  it('is found two levels down, below a task that has a call of its own under way', async () => {
    const { made, paid, release, asked } = beside({
      q: kept('child'),
      child: script(parallel([spawning('grandchild', { kind: 'foreground' }), { tool: 'hold', args: {} }])),
      grandchild: script(call('pay')),
    });
    const run = await start(made, { identity: PARENT });
    await run.approve(await asked('p.0.0.0.0'));
    await until(() => paid.length === 1);
    release();
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('is answered through whoever waits for the task of another run', async () => {
    const { made, paid, release, asked } = beside({
      q: script(spawns('child')),
      child: script(BESIDE),
      other: thenTell(awaits('p.0.0')),
    });
    await (await start(made, { identity: PARENT })).result();
    const token = await asked('p.0.0');
    const other = await start(made, { query: 'other' });
    await until(async () => (await made.journal.get(other.id))?.status === 'waiting');
    await other.approve(token);
    await until(() => paid.length === 1);
    release();
    expect(await other.result()).toMatchObject({ status: 'finished' });
  });

  it('that was withdrawn is refused with that word through the run above, which never heard of it', async () => {
    const { made, paid, release, asked } = beside({ q: kept('child'), child: script(BESIDE) });
    const run = await start(made, { identity: PARENT });
    const token = await asked('p.0.0');
    await run.steer('REDIRECT', { goal: 'do not pay' }, { until: 'applied' });
    await expect(run.approve(token)).rejects.toMatchObject({ code: 'superseded' });
    release();
    await until(async () => (await made.journal.get('p.0.0'))?.status === 'finished');
    await expect(run.approve(token)).rejects.toMatchObject({ code: expect.stringMatching(/superseded|run_ended/) });
    expect(paid).toEqual([]);
  });

  it('of an agent that carries out a call beside another is answered, and so is one of nobody refused', async () => {
    const paid: Json[] = [];
    const { tool, release, entered } = holding();
    const pay = make('pay', (args) => paid.push(args), { effect: 'once', needsApproval: true });
    const teller = agent({ name: 'teller', planner: thenTell(BESIDE), tools: [pay, tool] });
    const desk = thenTell(parallel([{ tool: 'teller', args: { input: 'pay' } }, ...named('hold')]));
    const made = world({ planner: desk, tools: [agentTool(teller, { description: 'pays' }), tool] });
    const run = await start(made, { identity: PARENT });
    await entered;
    await until(async () => (await made.journal.get('p.0.0')) !== undefined);
    const task = made.runtime.run('p.0.0');
    await until(async () => (await task.state()).pauses.length === 1);
    const [{ token = '' } = {}] = (await task.state()).pauses;
    await expect(run.approve('pause_of_nobody')).rejects.toMatchObject({ code: 'pause_not_found' });
    await run.approve(token);
    await until(() => paid.length === 1);
    release();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect(made.faults).toEqual([]);
  });
});

describe('a question that a task has told, and that the run above has not read of', () => {
  it('is answered when the run above knows of the answer, and not shown as open then', async () => {
    const base = memoryJournal();
    const held = new Set<string>();
    const claim: Journal['claim'] = async (request) => (held.has(request.run ?? '') ? undefined : base.claim(request));
    const asking = gate();
    const paid: Json[] = [];
    const pay = make('pay', (args) => paid.push(args), {
      effect: 'once',
      needsApproval: () => asking.opened.then(() => true),
    });
    const planner = plays({ q: kept('child'), child: script(call('pay')) });
    const here = world({ planner, tools: [pay], journal: changed(base, { claim }) });
    const run = await start(here, { identity: PARENT });
    await until(() => isWaiting(here, 'p'));
    // From here on another process seems to have it.
    held.add('p');
    asking.open();
    const task = here.runtime.run('p.0.0');
    const [{ token = '' } = {}] = await pausesOf(task);
    await until(async () => (await base.inbox('p')).length === 1);
    let isAnswered = false;
    const answer = run.approve(token).then(() => {
      isAnswered = true;
    });
    await until(() => hasEnded(here, 'p.0.0'));
    await quiet();
    expect([paid.length, isAnswered]).toEqual([1, false]);
    held.delete('p');
    await run.resume();
    await answer;
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });
});

it('a question below a task that has ended is found by its token', async () => {
  const { made, paid, asked } = beside({
    q: thenTell(spawns('child', { task: 'foreground' }), call('pay', { sum: 1 })),
    child: thenTell(spawns('grand')),
    grand: script(call('pay', { sum: 2 })),
  });
  const run = await start(made, { identity: PARENT });
  const [below, own] = [await asked('p.0.0.0.0'), await asked('p')];
  expect((await made.journal.get('p.0.0'))?.status).toBe('finished');
  await run.approve(below);
  await until(() => paid.length === 1);
  await run.approve(own);
  expect(await run.result()).toMatchObject({ status: 'finished' });
  expect(paid).toEqual([{ sum: 2 }, { sum: 1 }]);
});
