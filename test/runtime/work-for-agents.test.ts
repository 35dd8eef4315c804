/** What a runtime tells of the runs that it drives, and working for some of its agents only. */
import { describe, expect, it } from 'vitest';
import { memoryJournal } from '#journal';
import { agent, agentTool, createRuntime, local, type RuntimeOptions } from '#pilotage';
import type { RunNews } from '#runtime';
import { VirtualClock } from '#testing';
import { asks, call, parallel, script } from '../kit/decisions.ts';
import { ANY, echo, holding, make } from '../kit/tools.ts';
import { advanceUntil, quiet, until } from '../kit/waiting.ts';

const identity = local('ana');

/** A runtime with a clock of its own, and what it tells. */
function told(options: Omit<RuntimeOptions, 'onRun'>) {
  const clock = new VirtualClock();
  const journal = memoryJournal({ clock });
  const news: RunNews[] = [];
  const runtime = createRuntime({ journal, clock, ...options, onRun: (each) => news.push(each) });
  return { runtime, news, clock, journal };
}

const statusesOf = (news: readonly RunNews[]): string[] =>
  news.map((each) => (each.type === 'claimed' ? 'claimed' : each.status));

describe('onRun', () => {
  it('is told of a run that is taken up, and how it was let go of', async () => {
    const { runtime, news } = told({
      agents: [
        agent({ name: 'quick', planner: script(call('echo')), tools: [echo] }),
        agent({ name: 'asks', planner: script(asks), tools: [] }),
      ],
    });
    const run = await runtime.start('x', { identity });
    await run.result();
    expect(news).toEqual([
      { type: 'claimed', run: run.id, tenant: 'local', agent: 'quick' },
      {
        type: 'let_go',
        run: run.id,
        tenant: 'local',
        agent: 'quick',
        status: 'finished',
        drivenMs: expect.any(Number),
      },
    ]);
    news.length = 0;
    const asking = await runtime.start('x', { identity: local('ana'), agent: 'asks' });
    await asking.result();
    expect(statusesOf(news)).toEqual(['claimed', 'paused']);
    expect(news[1]).toMatchObject({ run: asking.id, reasons: ['await_input'] });
    await asking.cancel();
    await asking.result();
    expect(statusesOf(news)).toEqual(['claimed', 'paused', 'claimed', 'cancelled']);
    await runtime.close();
  });

  it('says for what a run is paused, each reason once, also where tasks below it ask', async () => {
    const gated = make('gated', () => 'made', { needsApproval: true });
    const question = make('question', (_, context) => context.ask({ question: 'Well?' }));
    const branches = ['gated', 'question', 'gated'].map((tool) => ({ tool, args: {} }));
    const worker = agent({ name: 'worker', planner: script(parallel(branches)), tools: [gated, question] });
    const ask = agentTool(worker, { name: 'ask', description: 'Asks.', inputSchema: ANY, prompt: () => 'q' });
    const boss = agent({ name: 'boss', planner: script(call('ask')), tools: [ask] });
    const { runtime, news } = told({ agents: [boss, worker] });
    const run = await runtime.start('x', { identity });
    await run.result();
    const paused = () => news.filter((each) => each.type === 'let_go' && each.status === 'paused');
    await until(() => paused().length === 2);
    const reasons = ['approval_required', 'await_input'];
    expect(paused()).toMatchObject([
      { agent: 'worker', reasons },
      { agent: 'boss', reasons },
    ]);
    await runtime.close();
  });

  it('hears that a run was given back, and what it throws is a fault', async () => {
    const faults: unknown[] = [];
    const { tool, entered } = holding();
    const news: string[] = [];
    const runtime = createRuntime({
      journal: memoryJournal(),
      planner: script(call('hold')),
      tools: [tool],
      onFault: (error) => faults.push(error),
      onRun: (each) => {
        news.push(each.type);
        throw new Error('of the hook');
      },
    });
    await runtime.start('x', { identity: local('ana') });
    await entered;
    await runtime.close();
    expect(news).toEqual(['claimed', 'let_go']);
    expect(faults).toMatchObject([{ message: 'of the hook' }, { message: 'of the hook' }]);
  });
});

describe('work({ agents })', () => {
  const agents = ['one', 'two'].map((name) => agent({ name, planner: script(call('echo')), tools: [echo] }));

  it('takes over runs of these alone, until it is stopped', async () => {
    const { runtime, news, clock, journal } = told({ agents });
    const starter = createRuntime({ agents, journal, clock, goesOn: false });
    const at = clock.now() + 1_000;
    const first = await starter.start('x', { identity: local('ana'), agent: 'one', at });
    const second = await starter.start('x', { identity: local('ana'), agent: 'two', at });
    await starter.close();
    const stop = runtime.work({ agents: ['two'] });
    await advanceUntil(clock, () => news.length === 2);
    clock.advance(10_000);
    await quiet();
    expect(news.map(({ run }) => run)).toEqual([second.id, second.id]);
    stop();
    runtime.work();
    await advanceUntil(clock, () => news.length === 4);
    expect(news.at(-1)).toMatchObject({ run: first.id, status: 'finished' });
    await runtime.close();
  });

  it.each([
    [['three'], 'agent_unknown', 'no agent "three"'],
    [[], 'invalid_config', 'names none'],
    [[1], 'invalid_config', 'agents of work'],
    ['one', 'invalid_config', 'agents'],
  ])('refuses %j', async (given, code, message) => {
    const { runtime } = told({ agents });
    expect(() => runtime.work({ agents: given as string[] })).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
    await runtime.close();
  });
});
