/** Undo across runs: tasks, forks, flows and sessions. */
import { describe, expect, it } from 'vitest';
import type { Decision, PlannerFunction } from '#core';
import { edge, flow, map, node } from '#flow';
import { foldEntries } from '#state';
import { agent, agentTool } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { holding, make } from '../kit/tools.ts';
import { bookings } from '../kit/undo.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const book = (what: string): Decision => call('book', { what });
const noPath: Decision = { kind: 'finish', reason: 'no_path' };

describe('a task', () => {
  it('that fails undoes what it did itself, as the run above it is to', async () => {
    const { done, tools } = bookings();
    const travel = agent({ name: 'travel', planner: script(book('hotel'), noPath), tools });
    const planner = script(call('travel', { input: 'go' }));
    const run = await start(world({ planner, tools: [agentTool(travel, { description: 'd' })], onFail: 'undo' }));
    // The planner was told of it, and reached its goal all the same.
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'goal' });
    expect(done).toEqual(['book hotel', 'cancel hotel']);
  });

  it('that has carried out a call undoes it when the run above fails, in the order of its calls', async () => {
    const { done, booked, tools } = bookings();
    const travel = agent({ name: 'travel', planner: script(book('flight'), book('car')), tools });
    const planner = script(book('hotel'), call('travel', { input: 'go' }), book('tour'), noPath);
    const made = world({ planner, tools: [...tools, agentTool(travel, { description: 'd' })], onFail: 'undo' });
    const run = await start(made);
    const result = await run.result();
    expect(result).toMatchObject({ status: 'finished', reason: 'no_path' });
    expect(booked).toEqual([]);
    expect(done.slice(4)).toEqual(['cancel tour', 'cancel car', 'cancel flight', 'cancel hotel']);
    expect(result).toMatchObject({
      metadata: { undo: { undone: [{ step: 2 }, { tool: 'travel', step: 1 }, { step: 0 }] } },
    });
    const [task] = (await run.state()).tasks;
    expect(task?.end).toMatchObject({ status: 'cancelled' });
    const entries = await made.journal.read(task?.id ?? '');
    expect(foldEntries(entries).ending).toMatchObject({ reason: 'cancelled', metadata: { undone_for: run.id } });
  });

  it('says what of it could not be undone', async () => {
    const { tools } = bookings({
      cancel: {
        execute: () => {
          throw new Error('too late');
        },
      },
    });
    const travel = agent({ name: 'travel', planner: script(book('flight')), tools });
    const planner = script(call('travel', { input: 'go' }), noPath);
    const run = await start(world({ planner, tools: [agentTool(travel, { description: 'd' })], onFail: 'undo' }));
    expect(await run.result()).toMatchObject({
      metadata: { undo: { undone: [], undo_failed: [{ tool: 'travel', error: { code: 'undo_failed' } }] } },
    });
  });

  it('is undone by the tool’s own undo, where it has one', async () => {
    const { booked, done, tools } = bookings();
    const travel = agent({ name: 'travel', planner: script(book('flight'), finish('LH1')), tools });
    const drop = make('drop', ({ id }) => done.push(`drop ${id}`), { effect: 'keyed' });
    const tool = agentTool(travel, { description: 'd', undo: (_, value) => ({ tool: 'drop', args: { id: value } }) });
    const run = await start(
      world({ planner: script(call('travel', { input: 'go' }), noPath), tools: [tool, drop], onFail: 'undo' }),
    );
    await run.result();
    expect(done).toEqual(['book flight', 'drop LH1']);
    expect(booked).toEqual(['flight']);
  });

  it('may take longer than the run above has to undo its own calls', async () => {
    const { booked, tools } = bookings({ cancel: { needsApproval: true } });
    const travel = agent({ name: 'travel', planner: script(book('flight')), tools });
    const made = world({
      planner: script(call('travel', { input: 'go' }), noPath),
      tools: [agentTool(travel, { description: 'd' })],
      onFail: 'undo',
      undo: { timeoutMs: 1_000 },
    });
    const run = await start(made);
    const asked = await run.result();
    if (asked.status !== 'paused') throw new Error('Nobody is asked.');
    made.clock.advance(5_000);
    await run.approve(asked.pauses[0]?.token);
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'no_path' });
    expect(booked).toEqual([]);
  });

  it('that did nothing is left alone', async () => {
    const { tools } = bookings();
    const travel = agent({ name: 'travel', planner: script(call('look')), tools });
    const made = world({
      planner: script(call('travel', { input: 'go' }), noPath),
      tools: [agentTool(travel, { description: 'd' })],
      onFail: 'undo',
    });
    const run = await start(made);
    await run.result();
    expect((await made.journal.read(run.id)).some(({ kind }) => kind === 'unwinding')).toBe(false);
  });

  it('under way is stopped when the run is cancelled, and undoes its calls before that one goes on', async () => {
    const { done, booked, tools } = bookings();
    const { tool, entered } = holding();
    const travel = agent({ name: 'travel', planner: script(book('flight'), call('hold')), tools: [...tools, tool] });
    const planner = script(book('hotel'), call('travel', { input: 'go' }));
    const run = await start(
      world({ planner, tools: [...tools, agentTool(travel, { description: 'd' })], onFail: 'undo' }),
    );
    await entered;
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    expect(done.slice(2)).toEqual(['cancel flight', 'cancel hotel']);
    expect(booked).toEqual([]);
  });

  it('that unwinds is stopped when the run above is cancelled twice', async () => {
    const { booked, tools } = bookings({ cancel: { needsApproval: true } });
    const { tool, entered } = holding();
    const travel = agent({ name: 'travel', planner: script(book('flight'), call('hold')), tools: [...tools, tool] });
    const made = world({
      planner: script(call('travel', { input: 'go' })),
      tools: [agentTool(travel, { description: 'd' })],
      onFail: 'undo',
    });
    made.runtime.work();
    const run = await start(made);
    await entered;
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await run.cancel();
    expect(await run.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    const [task] = (await run.state()).tasks;
    await until(async () => (await made.runtime.run(task?.id ?? '').state()).ending !== null);
    expect((await made.runtime.run(task?.id ?? '').state()).ending).toMatchObject({
      metadata: { undo: { stopped: 'cancelled' } },
    });
    expect(booked).toEqual(['flight']);
  });
});

describe('a fork', () => {
  it('undoes its own calls, and none that it has copied', async () => {
    const { booked, tools } = bookings();
    const planner: PlannerFunction = ({ trajectory: { count } }) => [book('hotel'), book('flight')][count] ?? noPath;
    const made = world({ planner, tools });
    const run = await start(made, { onFail: 'undo' });
    await run.result();
    expect(booked).toEqual([]);
    const first = await start(made, { onFail: 'keep' });
    await first.result();
    expect(booked).toEqual(['hotel', 'flight']);
    const again = await run.fork({ step: 1, effects: 'allowed' });
    expect(await again.result()).toMatchObject({ reason: 'no_path', metadata: { undo: { undone: [{ step: 1 }] } } });
    expect(booked).toEqual(['hotel', 'flight']);
  });

  it('of a run that has unwound goes on from what it had done', async () => {
    const { tools } = bookings();
    const made = world({ planner: script(book('hotel'), noPath), tools, onFail: 'undo' });
    const run = await start(made);
    await run.result();
    const again = await run.fork({ effects: 'allowed' });
    await again.result();
    expect((await again.state()).steps.map(({ undoes }) => undoes)).toEqual([undefined]);
    await expect(run.fork({ step: 2 })).rejects.toMatchObject({ code: 'invalid_config' });
  });

  it('can be replayed, and its planner is not asked for what the runtime decided', async () => {
    const { tools } = bookings();
    const run = await start(world({ planner: script(book('hotel'), noPath), tools, onFail: 'undo' }));
    await run.result();
    expect(await run.replay()).toMatchObject({ compared: 2 });
    expect(await run.replay()).not.toHaveProperty('divergence');
  });
});

describe('a flow', () => {
  it('undoes its nodes, and the items of its maps', async () => {
    const done: string[] = [];
    const does = (what: string) => ({
      effect: 'keyed' as const,
      execute: (args: unknown) => done.push(`${what} ${JSON.stringify(args)}`),
      undo: (args: unknown, value: number) => done.push(`undo ${what} ${JSON.stringify(args)} ${value}`),
    });
    const list = node('list', { effect: 'pure', execute: (): number[] => [1, 2] });
    const items = map('items', { ...does('item'), concurrency: 1 });
    const sum = node('sum', does('sum'));
    const fails = node('fails', {
      execute: (): null => {
        throw new Error('no');
      },
    });
    const edges = [edge(list, items), edge(items, sum), edge(sum, fails)];
    const trip = flow({ name: 'trip', inputSchema: {}, entry: list, exit: fails, edges });
    const made = world({ agents: [trip], onFail: 'undo' });
    const run = await start(made, { agent: 'trip', context: { args: null } });
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { data: { undo: { undone: [{ tool: 'sum' }, { tool: 'items' }] } } },
    });
    expect(done).toEqual(['item 1', 'item 2', 'sum [1,2]', 'undo sum [1,2] 3', 'undo item 2 2', 'undo item 1 1']);
  });
});

describe('a session', () => {
  it('begins its next turn with a message that came while a turn was undone', async () => {
    const { booked, tools } = bookings({ cancel: { needsApproval: true } });
    const planner: PlannerFunction = ({ query, trajectory: { count } }) =>
      query === 'book' ? ([book('hotel')][count] ?? noPath) : finish(`heard ${query}`);
    const made = world({ planner, tools, onFail: 'undo' });
    const session = made.runtime.session('s', { identity: { tenant: 'local', user: 'ana' } });
    const first = await session.send('book');
    const held = await first.result();
    expect(held.status).toBe('paused');
    const second = await session.send('and then?', { busy: 'steer' });
    await made.runtime.run(first.turn).approve();
    await made.runtime.run(first.turn).result();
    expect(booked).toEqual([]);
    expect(second.as).toBe('steered');
    await until(async () => JSON.stringify(await session.messages()).includes('heard and then?'));
  });
});
