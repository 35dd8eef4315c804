/** Runs that go on in other runs: a conversation that is handed over, and a run that is continued. */
import { describe, expect, it } from 'vitest';
import { local, type PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { sqliteJournal } from '#journal/sqlite';
import { agent, createRuntime, handoff, type RunEvent } from '#pilotage';
import { react } from '#planners/react';
import { scriptedModel } from '#testing';
import { call, finish, watched } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { make } from '../kit/tools.ts';

const STORES = { memory: () => memoryJournal(), sqlite: () => sqliteJournal({ path: temporaryFile() }) };

describe.each(Object.entries(STORES))('a conversation that is handed over, in %s', (_name, open) => {
  function team() {
    const charged: string[] = [];
    const charge = make('charge', () => charged.push('charged'), { effect: 'once' });
    const triage = watched(({ query, trajectory: { count } }) => {
      if (count === 0 && query.includes('bill')) return call('transfer_to_billing', { input: 'look at the bill' });
      return finish(`triage: ${query}`);
    });
    const billing = watched(({ query, trajectory: { count } }) => {
      if (count === 0 && query.includes('pay')) return call('charge');
      if (count === 0 && query.includes('else')) return call('transfer_to_triage');
      return finish(`billing: ${query}`);
    });
    const toTriage = handoff('triage', { description: 'Anything else.' });
    const billingAgent = agent({
      name: 'billing',
      planner: { name: 'b', next: billing },
      tools: [charge, toTriage],
      limits: { steps: 5 },
    });
    const toBilling = handoff(billingAgent, { description: 'Bills.' });
    const triageAgent = agent({ name: 'triage', planner: { name: 't', next: triage }, tools: [toBilling] });
    const runtime = createRuntime({ agents: [triageAgent], journal: open() });
    return { runtime, triage, billing, session: runtime.session('s'), charged };
  }

  it('goes on with the other agent, its tools and limits, which the session remembers, and comes back', async () => {
    const { runtime, session, billing, triage, charged } = team();
    const first = await session.send('my bill is wrong');
    expect(await first.result()).toMatchObject({
      status: 'finished',
      reason: 'goal',
      answer: 'billing: look at the bill',
    });
    expect(billing.views[0]?.history.map(({ text }) => text)[0]).toBe('my bill is wrong');
    const [turn] = await session.turns();
    expect(turn).toMatchObject({ agent: 'billing', status: 'finished', messages: [{ id: first.id }] });
    expect(turn?.exchanges.at(-1)).toEqual({ user: 'look at the bill', assistant: 'billing: look at the bill' });
    expect((await runtime.run(turn?.turn ?? '').state()).limits.steps).toBe(5);
    expect(await (await session.send('then pay it')).result()).toMatchObject({ answer: 'billing: then pay it' });
    expect(charged).toEqual(['charged']);
    expect(await (await session.send('something else')).result()).toMatchObject({ answer: 'triage: something else' });
    expect(triage.views.at(-1)?.history.map(({ text }) => text)).toContain('billing: then pay it');
    expect(await (await session.send('hello')).result()).toMatchObject({ answer: 'triage: hello' });
    expect(await session.turns()).toHaveLength(4);
    const again = await session.regenerate(turn?.turn ?? '');
    expect(await again.result()).toMatchObject({ answer: 'billing: look at the bill' });
    expect(await session.turns()).toHaveLength(1);
  });

  it('works without a session: the run’s result and events are those of the run that goes on', async () => {
    const { runtime } = team();
    const labels = { order: '17' };
    const run = await runtime.start('the bill', { identity: local('ana'), labels });
    expect(await run.result()).toMatchObject({ answer: 'billing: look at the bill' });
    const found = await runtime.list({ labels });
    expect(found.map(({ agent }) => agent).toSorted()).toEqual(['billing', 'triage']);
    const events: RunEvent[] = [];
    for await (const event of run.events()) events.push(event);
    const ends = events.flatMap((event) => (event.type === 'planner.finish' ? [event.reason] : []));
    expect(ends).toEqual(['handed_over', 'goal']);
    const agents = events.flatMap((event) => (event.type === 'run.started' ? [event.agent] : []));
    expect(agents).toEqual(['triage', 'billing']);
    expect((await run.state()).agent).toBe('billing');
  });

  it('a model hands over with a call', async () => {
    const model = scriptedModel([{ calls: [{ tool: 'transfer_to_billing', args: {} }] }]);
    const other = agent({ name: 'billing', planner: ({ query }) => finish(`re ${query}`) });
    const planner = react({ model });
    const runtime = createRuntime({ planner, tools: [handoff(other, { description: 'Bills.' })], journal: open() });
    const run = await runtime.start('my bill', { identity: local('ana') });
    expect(await run.result()).toMatchObject({ answer: 're my bill' });
  });

  it('is refused to a task, and to an agent that nobody has', async () => {
    const away: PlannerFunction = ({ trajectory }) =>
      trajectory.count === 0 ? call('transfer_to_nobody') : finish(trajectory.step(0)?.calls[0]?.outcome.kind ?? null);
    const nobody = handoff('nobody', { description: 'x' });
    const runtime = createRuntime({ planner: away, tools: [nobody], journal: open() });
    expect(await (await runtime.start('q')).result()).toMatchObject({ answer: 'error' });
  });
});

describe.each(Object.entries(STORES))('a run that is continued, in %s', (_name, open) => {
  /** Counts to ten, three in a run. */
  const counting: PlannerFunction = ({ context, trajectory: { count } }) => {
    const from = Number(context.carried ?? 0);
    if (from + count >= 10) return finish(from + count);
    if (count === 3) return { kind: 'finish', reason: 'continued', continued: from + count };
    return call('tick');
  };

  it('goes on under its id, without its steps and with what it has left', async () => {
    let ticks = 0;
    const tick = make('tick', () => (ticks += 1));
    const runtime = createRuntime({ planner: counting, tools: [tick], journal: open() });
    const run = await runtime.start('count', { identity: local('ana'), labels: { job: 'count' } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal', payload: 10 });
    expect(await runtime.list({ labels: { job: 'count' } })).toHaveLength(4);
    expect(ticks).toBe(10);
    const events: RunEvent[] = [];
    for await (const event of run.events()) events.push(event);
    expect(events.filter(({ type }) => type === 'run.started')).toHaveLength(4);
    expect((await run.state()).context.carried).toBe(9);
    await expect(run.cancel()).rejects.toMatchObject({ code: 'run_ended' });
  });

  it('takes what is said to its id, and its limit on money holds for all of it', async () => {
    const tick = make('tick', () => 1, { costUsd: 1 });
    const runtime = createRuntime({ planner: counting, tools: [tick], journal: open() });
    const run = await runtime.start('count', { identity: local('ana'), limits: { costUsd: 5 } });
    const result = await run.result();
    expect(result).not.toMatchObject({ reason: 'goal' });
  });

  it('a decision to continue without anything to carry, and one of a task, are refused', async () => {
    const bad = { kind: 'finish', reason: 'continued' } as const;
    const runtime = createRuntime({ planner: () => bad, journal: open() });
    expect(await (await runtime.start('q')).result()).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_decision' },
    });
  });
});
