/** Calls in the background: they end with the id of a task, the run goes on, and the result is told as news. */
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Decision, type Json, local, type PlannerFunction, type RunView } from '#core';
import type { Run, RunResult } from '#runtime';
import { crashEverywhere } from '#testing';
import { type AnyTool, agent, agentTool, OutcomeUnknown, type Tool } from '#tools';
import { call, finish, pause, script } from '../kit/decisions.ts';
import { observations, outcomes } from '../kit/run-record.ts';
import { spawns } from '../kit/tasks.ts';
import { echo, make } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';
import { start, type World, world } from '../kit/world.ts';

/** Waits in its own pause until news has come, and ends with it. */
const untilNews =
  (...decisions: readonly Decision[]): PlannerFunction =>
  ({ trajectory }: RunView) => {
    const [news] = trajectory.background;
    if (news !== undefined)
      return finish(news.group.members.map(({ end }) => end?.error?.code ?? end?.result ?? null) as Json);
    return decisions[trajectory.count] ?? pause;
  };

/** Its result when it has ended: while it waits for news it reads as paused. */
async function endOf(run: Run): Promise<RunResult> {
  for await (const _ of run.events({ overPauses: true }));
  return run.result();
}

function made(planner: PlannerFunction, tools: readonly AnyTool[], more: Parameters<typeof world>[0] = {}): World {
  const there = world({ planner, tools, ...more });
  onTestFinished(() => there.runtime.close());
  return there;
}

describe('a function in the background', () => {
  it('is made by a task, and its value is told as news', async () => {
    const go = gate();
    const keys: string[] = [];
    const slow = make(
      'slow',
      async ({ n }, { idempotencyKey, stream }) => {
        keys.push(idempotencyKey);
        await stream('log').write(n);
        await go.opened;
        return { n };
      },
      { background: true },
    );
    const there = made(untilNews(call('slow', { n: 7 }), call('echo', { meanwhile: true })), [slow, echo]);
    const run = await start(there);
    await until(async () => (await run.state()).steps.length === 2);
    const [first, second] = observations(await run.state()) as [{ task: string }, unknown];
    expect(second).toEqual({ meanwhile: true });
    const [task] = await there.runtime.list({ parent: run.id });
    expect([task?.identity.run, task?.agent]).toEqual([first.task, 'tool:slow']);
    go.open();
    await expect(endOf(run)).resolves.toMatchObject({ status: 'finished', payload: [{ n: 7 }] });
    expect(keys).toEqual(
      [`${local('ana').tenant}/ana/default/${first.task}/0.0`].map(() => expect.stringContaining(first.task)),
    );
    const rows = [];
    for await (const { value } of there.runtime.run(first.task).stream('log')) rows.push(value);
    expect(rows).toEqual([7]);
  });

  it('that fails is told as a failure, with the code of the tool', async () => {
    const fails = make('fails', () => Promise.reject(Object.assign(new Error('no card'), { code: 'card_declined' })), {
      background: true,
    });
    const run = await start(made(untilNews(call('fails')), [fails]));
    await expect(endOf(run)).resolves.toMatchObject({ payload: ['call_failed'] });
    expect(outcomes(await run.state())).toEqual(['value']);
    const [failed] = (await run.state()).tasks;
    expect(failed?.end?.error).toMatchObject({
      message: 'The call of fails has failed: no card (card_declined)',
      data: { cause: { code: 'card_declined' } },
    });
  });

  it('is not made with arguments that do not fit, nor without a name of an agent of its own', async () => {
    const inputSchema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const counts = { ...make('counts', () => 'made', { background: true }), inputSchema } as Tool;
    const run = await start(made(script(call('counts', {})), [counts]));
    await run.result();
    expect(observations(await run.state())).toMatchObject([{ error: { code: 'tool_invalid_args' } }]);
  });

  it('asks for its approval in the task, which is answered through the run above', async () => {
    let calls = 0;
    const pays = make('pays', () => `paid ${++calls}`, { background: true, needsApproval: true, effect: 'once' });
    const there = made(untilNews(call('pays')), [pays]);
    const run = await start(there);
    await until(async () => (await there.runtime.list({ parent: run.id }))[0]?.status === 'paused');
    expect(calls).toBe(0);
    const [task] = await there.runtime.list({ parent: run.id });
    await there.runtime.run(task?.identity.run ?? '').approve();
    await expect(endOf(run)).resolves.toMatchObject({ payload: ['paid 1'] });
  });

  it('in doubt holds its task alone', async () => {
    const lost = make('lost', () => Promise.reject(new OutcomeUnknown()), { background: true, effect: 'once' });
    const there = made(untilNews(call('lost'), call('echo', { n: 1 })), [lost, echo]);
    const run = await start(there);
    await until(async () => (await there.runtime.list({ parent: run.id }))[0]?.status === 'paused');
    expect((await run.state()).steps).toHaveLength(2);
    const [task] = await there.runtime.list({ parent: run.id });
    await there.runtime.run(task?.identity.run ?? '').settle(undefined, { happened: true, value: 'it was' });
    await expect(endOf(run)).resolves.toMatchObject({ payload: ['it was'] });
  });

  it('is cancelled with the run, and with its own task', async () => {
    const slow = make(
      'slow',
      (_, { signal }) => new Promise((_done, fail) => signal.addEventListener('abort', () => fail(signal.reason))),
      { background: true },
    );
    const there = made(untilNews(call('slow')), [slow]);
    const run = await start(there);
    await until(async () => (await there.runtime.list({ parent: run.id }))[0]?.status === 'running');
    await run.cancel();
    await run.result();
    await until(async () => (await there.runtime.list({ parent: run.id }))[0]?.status === 'cancelled');
  });

  it('may stand in an object of tools without a name, and in two agents', async () => {
    const { name: _, ...nameless } = make('x', ({ n }) => n, { background: true });
    const other = make('other', () => 1, { background: true });
    const planner = untilNews(call('double', { n: 2 }));
    const second = agent({ name: 'second', planner: script(), tools: [other] });
    const first = agent({ name: 'first', planner, tools: { double: nameless, other } as never });
    const there = world({ agents: [first, second] });
    onTestFinished(() => there.runtime.close());
    const run = await start(there);
    await expect(endOf(run)).resolves.toMatchObject({ payload: [2] });
  });

  it('with options that say something else is refused', () => {
    const wrong = (more: object): unknown => {
      try {
        return made(script(), [{ ...make('x', () => 1, { background: true }), ...more } as Tool]);
      } catch (error) {
        return (error as { code: string }).code;
      }
    };
    expect(wrong({ background: 'yes' })).toBe('invalid_config');
    expect(wrong({ toModelOutput: () => ({ type: 'text', value: '' }) })).toBe('invalid_config');
    expect(wrong({ retries: -1 })).toBe('invalid_config');
  });
});

describe('an agent in the background', () => {
  it('carries out the call while the run goes on', async () => {
    const go = gate();
    const waits = make('waits', () => go.opened.then(() => 'found'));
    const child = agent({
      name: 'child',
      planner: ({ trajectory, query }) => (trajectory.count === 0 ? call('waits') : finish(`${query}: found`)),
      tools: [waits],
    });
    const tool = agentTool(child, { description: 'looks', background: true });
    const there = made(untilNews(call('child', { input: 'keys' }), call('echo', {})), [tool, echo]);
    const run = await start(there);
    await until(async () => (await run.state()).steps.length === 2);
    go.open();
    await expect(endOf(run)).resolves.toMatchObject({ payload: ['keys: found'] });
  });
});

describe('a task of another agent', () => {
  const agents = [
    agent({ name: 'main', planner: untilNews(spawns('count', { agent: 'counter' })) }),
    agent({ name: 'counter', planner: ({ query }) => finish(`counted ${query}`) }),
  ] as const;

  it('is given to it by its name', async () => {
    const there = world({ agents });
    onTestFinished(() => there.runtime.close());
    const run = await start(there);
    await expect(endOf(run)).resolves.toMatchObject({ payload: ['counted count'] });
    expect((await there.runtime.list({ parent: run.id }))[0]?.agent).toBe('counter');
  });

  it.each(['nobody', 'tool:slow'])('is not started when there is none: %s', async (name) => {
    const slow = make('slow', () => 1, { background: true });
    const run = await start(made(script(spawns('x', { agent: name })), [slow]));
    await run.result();
    expect(observations(await run.state())).toMatchObject([{ error: { code: 'agent_unknown' } }]);
    expect((await run.state()).tasks).toEqual([]);
  });
});

it('a call in the background is made once, and told once, wherever the process dies', async () => {
  const report = await crashEverywhere({
    name: 'background',
    query: 'q',
    planner: (run) => {
      const { trajectory } = run;
      const [news] = trajectory.background;
      if (news !== undefined) return finish(news.group.members.map(({ end }) => end?.result ?? null) as Json);
      return trajectory.count === 0 ? call('pays', { n: 1 }) : pause;
    },
    tools: (around) => [
      make(
        'pays',
        async (_, context) => {
          await around.effect(context);
          return 'paid';
        },
        {
          effect: 'once',
          background: true,
          reconcile: async (_, context) =>
            around.count(context) > 0 ? { status: 'done', value: 'paid' } : { status: 'not_done' },
        },
      ),
    ],
    answer: (run, { reason }) => (reason === 'external_event' ? undefined : run.resume()),
    check: (state) => (state.steps[0]?.calls[0]?.outcome.kind === 'value' ? [] : ['It did not begin.']),
  });
  expect(report.violations).toEqual([]);
});
