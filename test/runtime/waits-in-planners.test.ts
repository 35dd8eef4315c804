/** Waits stand wherever calls stand: tools of a model, nodes of plans and flows, calls of a sub-agent. */
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { edge, flow, node } from '#flow';
import { memoryJournal } from '#journal';
import { agent, agentTool, local, type Run } from '#pilotage';
import { askUser, sleep, waitForEvent } from '#pilotage/tools';
import { deterministic } from '#planners/deterministic';
import { graph } from '#planners/graph';
import { react } from '#planners/react';
import { scriptedModel, VirtualClock } from '#testing';
import { pausesOf } from '../kit/run-record.ts';
import { advanceUntil, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const paused = (run: Run): Promise<void> => until(async () => (await pausesOf(run)).length > 0);

describe('a model that waits', () => {
  it('asks its user, in a form that it writes, and is told the answer', async () => {
    const schema = { type: 'boolean' };
    const model = scriptedModel([
      { calls: [{ tool: 'ask_user', args: { question: 'Shall I book it?', schema } }] },
      { text: 'It is booked.' },
    ]);
    const { runtime } = world({ planner: react({ model }), tools: [askUser], journal: memoryJournal() });
    const run = await start({ runtime });
    const result = await run.result();
    expect(result).toMatchObject({
      status: 'paused',
      pauses: [{ reason: 'await_input', schema, payload: { message: 'Shall I book it?' } }],
    });
    await expect(run.answer(undefined, { kind: 'answer', value: 'maybe' })).rejects.toMatchObject({
      code: 'payload_invalid',
      message: expect.stringContaining('must be boolean'),
    });
    await run.answer(undefined, { kind: 'answer', value: true });
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'It is booked.' });
    expect((await run.state()).steps[0]?.calls).toMatchObject([{ outcome: { kind: 'value', value: true } }]);
  });

  it('sleeps, and is woken by what the user says', async () => {
    const model = scriptedModel([
      { calls: [{ tool: 'sleep', args: { seconds: 86_400 } }] },
      { calls: [{ tool: 'sleep', args: { until: '2100-01-01T00:00:00Z' } }] },
      { text: 'Here I am.' },
    ]);
    const journal = memoryJournal();
    const { runtime, clock } = world({ planner: react({ model }), tools: [sleep], journal });
    const run = await start({ runtime });
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    expect(await run.state()).toMatchObject({ pauses: [] });
    clock.advance(86_400_000);
    await until(
      async () => (await run.state()).steps.length === 1 && (await journal.get(run.id))?.status === 'waiting',
    );
    await run.steer('USER_MESSAGE', { message: 'Come back.' });
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'Here I am.' });
    const steps = (await run.state()).steps.map(({ calls }) => calls[0]?.outcome);
    expect(steps).toMatchObject([{ value: { woke: true } }, { kind: 'error', error: { code: 'superseded' } }]);
  });

  it('waits for an event, and what does not fit its schema is refused where it is signalled', async () => {
    const schema = { type: 'object', properties: { paid: { type: 'integer' } }, required: ['paid'] };
    const model = scriptedModel([
      { calls: [{ tool: 'wait_for_event', args: { key: 'order-17', schema } }] },
      { text: 'It is paid.' },
    ]);
    const journal = memoryJournal();
    const { runtime } = world({ planner: react({ model }), tools: [waitForEvent], journal });
    const run = await start({ runtime });
    await until(async () => (await journal.get(run.id))?.status === 'waiting');
    await expect(runtime.signal('order-17', { paid: 'yes' })).rejects.toMatchObject({ code: 'payload_invalid' });
    await runtime.signal('order-17', { paid: 90 });
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'It is paid.' });
    expect((await run.state()).steps[0]?.calls).toMatchObject([{ outcome: { kind: 'value', value: { paid: 90 } } }]);
  });

  it('is answered through the run above, when a sub-agent asks', async () => {
    const below = scriptedModel([
      { calls: [{ tool: 'ask_user', args: { question: 'Which city?' } }] },
      { text: 'Oslo it is.' },
    ]);
    const booker = agent({ name: 'booker', planner: react({ model: below }), tools: [askUser] });
    const above = scriptedModel([{ calls: [{ tool: 'booker', args: { input: 'a trip' } }] }, { text: 'Done.' }]);
    const tools = [agentTool(booker, { description: 'Books.' })];
    const { runtime } = world({ planner: react({ model: above }), tools, journal: memoryJournal() });
    const run = await start({ runtime });
    const result = await run.result();
    expect(result).toMatchObject({ status: 'paused', pauses: [{ wait: 1, payload: { message: 'Which city?' } }] });
    await run.answer(undefined, { kind: 'answer', value: 'Oslo' });
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'Done.' });
  });
});

describe('a list of steps that asks', () => {
  const schema = { type: 'object', properties: { nights: { type: 'integer' } }, required: ['nights'] };

  it('gives the schema of the answer: what does not fit is refused', async () => {
    const planner = deterministic({
      steps: [
        { do: 'pause', reason: 'await_input', payload: { message: 'How many nights?' }, schema },
        { do: 'finish', reason: 'goal' },
      ],
    });
    const { runtime } = world({ planner });
    const run = await start({ runtime });
    expect(await run.result()).toMatchObject({ status: 'paused', pauses: [{ schema }] });
    await expect(run.resume({ payload: { nights: 'two' } })).rejects.toMatchObject({ code: 'payload_invalid' });
    await run.resume({ payload: { nights: 2 } });
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
  });
});

describe('a plan and a flow that wait', () => {
  it('a node sleeps while another asks; what comes after both has what they gave', async () => {
    const planner = graph({
      name: 'trip',
      plan: () => ({
        steps: [
          { id: 'night', type: 'tool', toolId: 'sleep', input: { seconds: 60 }, after: [] },
          { id: 'city', type: 'tool', toolId: 'ask_user', input: { question: 'Which city?' }, after: [] },
          { id: 'done', type: 'finish', input: { city: { $from: 'city' }, night: { $from: 'night' } } },
        ],
      }),
    });
    const journal = memoryJournal();
    const { runtime, clock } = world({ planner, tools: [sleep, askUser, waitForEvent], journal });
    const run = await start({ runtime });
    await paused(run);
    // A plan goes on, whatever is said to its run.
    await run.steer('INJECT_CONTEXT', { note: 'It rains.' });
    await run.answer(undefined, { kind: 'answer', value: 'Oslo' });
    await advanceUntil(clock, async () => (await journal.get(run.id))?.status === 'finished');
    expect(await run.result()).toMatchObject({ payload: { city: 'Oslo', night: { woke: true } } });
  });

  it('a node of a flow asks in the middle of its work, and the flow goes on in another process', async () => {
    const nights = z.object({ nights: z.int() });
    const book = node('book', {
      execute: async ({ city }: { city: string }, context) => {
        const room = await context.once('hold', () => 12);
        const answer = await context.ask({ question: `How many nights in ${city}?`, schema: nights });
        return { room, ...answer };
      },
    });
    const bill = node('bill', { effect: 'pure', execute: (stay: { nights: number }) => stay.nights * 100 });
    const trip = flow({
      name: 'trip',
      inputSchema: z.object({ city: z.string() }),
      entry: book,
      exit: bill,
      edges: [edge(book, bill)],
    });
    const journal = memoryJournal();
    const clock = new VirtualClock();
    const first = world({ agents: [trip], journal, clock });
    const run = await trip.start(first.runtime, { city: 'Oslo' }, { identity: local('ana') });
    expect(await run.result()).toMatchObject({
      status: 'paused',
      pauses: [{ payload: { message: 'How many nights in Oslo?' } }],
    });
    await first.runtime.close();
    const second = world({ agents: [trip], journal, clock });
    const again = second.runtime.run(run.id);
    await again.answer(undefined, { kind: 'answer', value: { nights: 3 } });
    expect(await again.result()).toMatchObject({ status: 'finished', payload: 300 });
  });
});

describe("a planner's own pause that has a schema", () => {
  const schema = { type: 'object', properties: { paid: { type: 'integer' } }, required: ['paid'] };
  const asking = async (reason: 'external_event' | 'constraints_conflict' | 'approval_required') => {
    const run = await start(
      world({
        planner: ({ trajectory: { steps } }) =>
          steps.length === 0
            ? { kind: 'request_pause', reason, schema }
            : { kind: 'finish', reason: 'goal', payload: JSON.parse(JSON.stringify(steps[0]?.calls[0]?.outcome)) },
      }),
    );
    await paused(run);
    const token = (await pausesOf(run))[0]?.token ?? '';
    return { run, token };
  };

  it.each(['external_event', 'constraints_conflict'] as const)('%s: a yes without what it asks for', async (reason) => {
    const { run, token } = await asking(reason);
    await expect(run.approve(token)).rejects.toMatchObject({ code: 'payload_invalid' });
    await expect(run.approve(token, { payload: { paid: 'no' } })).rejects.toMatchObject({ code: 'payload_invalid' });
    await run.approve(token, { payload: { paid: 5 } });
    expect(await run.payload()).toMatchObject({ verdict: 'approve', payload: { paid: 5 } });
  });

  it('approval_required: a yes is enough, and what comes with it must fit', async () => {
    const { run, token } = await asking('approval_required');
    await expect(run.approve(token, { payload: { paid: 'no' } })).rejects.toMatchObject({ code: 'payload_invalid' });
    await run.approve(token);
    expect(await run.payload()).toMatchObject({ verdict: 'approve' });
  });
});
