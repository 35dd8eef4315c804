/** `onCeiling: 'answer'`: at a limit the planner has one more move, without calls, to say what it has found. */
import { describe, expect, it } from 'vitest';
import type { Decision, PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { react } from '#planners/react';
import { scriptedModel, VirtualClock } from '#testing';
import { agent, agentTool } from '#tools';
import { call, finish, pause, watched } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { cutJournal } from '../kit/journals.ts';
import { ANY, echo, holding } from '../kit/tools.ts';
import { bookings } from '../kit/undo.ts';
import { gate } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const ANSWER = { onCeiling: 'answer' } as const;

/** Goes on for ever, and says what it has when it is told that this is its last move. */
const searcher: PlannerFunction = ({ trajectory: { count }, lastMove }) =>
  lastMove === undefined ? call('echo', { count }) : finish(`found ${count}`);

describe('a run at its limit', () => {
  it('of steps says what it has found, and ends for the limit’s reason', async () => {
    const planner = watched(searcher);
    const run = await start(world({ planner, tools: [echo] }), { limits: { steps: 3, ...ANSWER } });
    expect(await run.result()).toMatchObject({
      status: 'finished',
      reason: 'max_steps',
      answer: 'found 2',
      metadata: { budget: 'steps', max_steps: 3, answered: true },
    });
    expect(planner.views.map(({ lastMove }) => lastMove)).toEqual([undefined, undefined, { reason: 'max_steps' }]);
    expect(planner.views.map(({ budget }) => budget.stepsLeft)).toEqual([2, 1, 1]);
  });

  it('has 63 steps and an answer by default', async () => {
    const run = await start(world({ planner: searcher, tools: [echo] }), { limits: ANSWER });
    expect(await run.result()).toMatchObject({ reason: 'max_steps', answer: 'found 63' });
  });

  it.each([
    ['tokens', { tokens: 1_000 }, 'max_tokens'],
    ['cost', { costUsd: 0.001 }, 'max_cost'],
  ])('of %s keeps back as much as the last move took', async (_, limits, reason) => {
    let used = 0;
    const planner: PlannerFunction = (view) => {
      used += 200;
      return {
        decision: searcher(view, AbortSignal.any([])) as Decision,
        usage: { inputTokens: 200, outputTokens: 0, costMicroUsd: 200 },
      };
    };
    const run = await start(world({ planner, tools: [echo] }), { limits: { ...limits, ...ANSWER } });
    expect(await run.result()).toMatchObject({ reason, answer: 'found 4' });
    expect(used).toBe(1_000);
  });

  it('keeps as much back from an agent below as the move took that asks it', async () => {
    const below = agent({
      name: 'below',
      planner: { name: 'below', next: () => ({ decision: call('echo'), usage: { inputTokens: 100 } }) },
      tools: [echo],
    });
    const ask = agentTool(below, { name: 'ask', description: 'Asks.', inputSchema: ANY, prompt: () => 'q' });
    const planner: PlannerFunction = ({ trajectory: { count }, lastMove }) => {
      const decision = lastMove !== undefined ? finish('found') : call(count === 0 ? 'echo' : 'ask');
      return { decision, usage: { inputTokens: count === 0 ? 100 : 2_000 } };
    };
    const run = await start(world({ planner, tools: [echo, ask] }), { limits: { tokens: 6_000, ...ANSWER } });
    const result = await run.result();
    expect(result).toMatchObject({ reason: 'max_tokens', answer: 'found', usage: { steps: 2, taskCalls: 14 } });
    expect(result.usage.inputTokens).toBeLessThanOrEqual(6_000);
  });

  it('of which nothing is left ends without an answer', async () => {
    const planner = watched((view) => ({
      decision: searcher(view, AbortSignal.any([])) as Decision,
      usage: { inputTokens: 5_000 },
    }));
    const run = await start(world({ planner, tools: [echo] }), { limits: { tokens: 1_000, ...ANSWER } });
    const result = await run.result();
    expect(result).toMatchObject({ status: 'finished', reason: 'max_tokens' });
    expect(result).not.toHaveProperty('metadata.answered');
    expect(planner.views).toHaveLength(1);
  });

  it('of time is asked before the time is over, and what is under way is stopped', async () => {
    const { tool, entered } = holding();
    const planner: PlannerFunction = ({ lastMove }) => (lastMove === undefined ? call('hold') : finish('in time'));
    const made = world({ planner, tools: [tool] });
    const run = await start(made, { limits: { deadlineAt: made.clock.now() + 10_000, ...ANSWER } });
    await entered;
    made.clock.advance(9_000);
    expect(await run.result()).toMatchObject({ reason: 'deadline_exceeded', answer: 'in time' });
  });

  it('ends without an answer when the planner does not come to one in time', async () => {
    const asked = gate();
    const { tool, entered } = holding();
    const planner: PlannerFunction = ({ lastMove }, signal) => {
      if (lastMove === undefined) return call('hold');
      asked.open();
      return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    };
    const made = world({ planner, tools: [tool] });
    const run = await start(made, { limits: { deadlineAt: made.clock.now() + 10_000, ...ANSWER } });
    await entered;
    made.clock.advance(9_000);
    await asked.opened;
    made.clock.advance(1_000);
    const result = await run.result();
    expect(result).toMatchObject({ status: 'finished', reason: 'deadline_exceeded', metadata: { budget: 'deadline' } });
    expect(result).not.toHaveProperty('answer');
  });

  it.each<[string, PlannerFunction]>([
    ['a call', () => call('echo')],
    ['a pause', () => pause],
    [
      'an exception',
      () => {
        throw new Error('broken');
      },
    ],
    ['no decision', () => undefined as never],
  ])('ends as usual when the planner gives %s', async (_, last) => {
    const planner: PlannerFunction = (view, signal) =>
      view.lastMove === undefined ? call('echo') : last(view, signal);
    const run = await start(world({ planner, tools: [echo] }), { limits: { steps: 2, ...ANSWER } });
    const result = await run.result();
    expect(result).toMatchObject({ status: 'finished', reason: 'max_steps', usage: { calls: 1 } });
    expect(result).not.toHaveProperty('metadata.answered');
  });

  it('goes on after a crash in its last move, and ends once', async () => {
    const clock = new VirtualClock();
    const shared = memoryJournal({ clock });
    const dying = cutJournal(shared);
    const asked = gate();
    const stuck: PlannerFunction = (view, signal) => {
      if (view.lastMove === undefined) return searcher(view, signal);
      asked.open();
      return new Promise(() => {});
    };
    const { id } = await start(world({ planner: stuck, tools: [echo], journal: dying.journal, clock }), {
      limits: { steps: 2, ...ANSWER },
    });
    await asked.opened;
    dying.cut();
    clock.advance(5_001);
    const run = world({ planner: searcher, tools: [echo], journal: shared, clock }).runtime.run(id);
    await run.resume();
    expect(await run.result()).toMatchObject({ reason: 'max_steps', answer: 'found 1' });
    expect((await shared.read(id)).filter(({ kind }) => kind === 'answering')).toHaveLength(1);
  });

  it('undoes its calls too, and keeps its answer', async () => {
    const { booked, tools } = bookings();
    const planner: PlannerFunction = ({ lastMove }) =>
      lastMove === undefined ? call('book', { what: 'hotel' }) : finish('full');
    const run = await start(world({ planner, tools }), { limits: { steps: 2, ...ANSWER }, onFail: 'undo' });
    expect(await run.result()).toMatchObject({
      reason: 'max_steps',
      answer: 'full',
      metadata: { undo: { undone: [{ step: 0 }] } },
    });
    expect(booked).toEqual([]);
  });

  it('may be forked with limits that leave a last move', async () => {
    const made = world({ planner: searcher, tools: [echo] });
    const run = await start(made, { limits: { steps: 5, stepsPer: 'run', ...ANSWER } });
    await run.result();
    const fork = await run.fork({ step: 2, limits: { steps: 3 } });
    expect(await fork.result()).toMatchObject({ reason: 'max_steps', answer: 'found 2' });
    await expect(run.fork({ step: 2, limits: { steps: 2 } })).rejects.toMatchObject({ code: 'invalid_config' });
  });

  it('tells of it in an event', async () => {
    const run = await start(world({ planner: searcher, tools: [echo] }), { limits: { steps: 2, ...ANSWER } });
    expect(await collect(run)).toContainEqual(
      expect.objectContaining({ type: 'planner.last_move', reason: 'max_steps', step: 1 }),
    );
  });
});

describe('a model at its limit', () => {
  it('is told so, may make no call, and its text is the answer', async () => {
    const model = scriptedModel([{ calls: [{ id: 'a', tool: 'echo', args: {} }] }, { text: 'Two hotels are free.' }]);
    const run = await start(world({ planner: react({ model }), tools: [echo] }), { limits: { steps: 2, ...ANSWER } });
    expect(await run.result()).toMatchObject({ reason: 'max_steps', answer: 'Two hotels are free.' });
    const [first, last] = model.calls;
    expect(first?.toolChoice).toBeUndefined();
    expect(last?.toolChoice).toEqual({ type: 'none' });
    expect(last?.tools).toEqual(first?.tools);
    expect(JSON.stringify(last?.prompt.at(-1))).toMatch(/last reply/);
  });

  it('that calls all the same is not obeyed', async () => {
    const calls = [{ id: 'a', tool: 'echo', args: {} }];
    const model = scriptedModel([{ calls }, { calls }]);
    const run = await start(world({ planner: react({ model }), tools: [echo] }), { limits: { steps: 2, ...ANSWER } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'max_steps', usage: { calls: 1 } });
  });
});
