/** What was used: checked where it comes in, estimated where nobody says it, and never less than before. */
import { afterEach, describe, expect, it } from 'vitest';
import { type Decision, PilotageError, type PlannerFunction } from '#core';
import type { Prices } from '#model';
import { openaiCompatible } from '#model/openai-compatible';
import { htn, htnDomain } from '#planners/htn';
import { chooseWith } from '#planners/htn-model';
import { react } from '#planners/react';
import { foldEntries } from '#state';
import { type OpenAIServer, openaiServer, type ScriptedModel, type ScriptedReply, scriptedModel } from '#testing';
import { call, finish } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { entriesOf } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const servers: OpenAIServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

/** Calls the tool for ever, each time with other arguments. */
const forever =
  (usage?: ScriptedReply['usage']) =>
  (_: unknown, n: number): ScriptedReply => ({
    calls: [{ tool: 'echo', args: { n } }],
    ...(usage === undefined ? {} : { usage }),
  });
const PRICES = { input: 1, output: 1 };

async function play(
  model: ScriptedModel,
  limits: { costUsd?: number; tokens?: number },
  { streamed = false, prices = PRICES }: { streamed?: boolean; prices?: Prices } = {},
) {
  const made = world({ planner: react({ model, prices }), tools: [echo] });
  const run = await start(made, { limits: { steps: 60, ...limits } });
  const events = streamed ? await collect(run) : [];
  const result = await run.result();
  return { result, events: streamed ? events : await collect(run), moves: await entriesOf(made.journal, run, 'moved') };
}

describe('what a model says that it used', () => {
  it.each([
    ['less than nothing', -1e9],
    ['more than can be', 1e300],
  ])('lifts no budget when a server says %s: it is refused, told, and estimated', async (_what, inputTokens) => {
    const server = await openaiServer((_, n) => ({
      calls: [{ tool: 'echo', args: { n } }],
      usage: { inputTokens, outputTokens: 5 },
    }));
    servers.push(server);
    const planner = react({ model: openaiCompatible({ baseUrl: server.url, model: 'm' }), prices: PRICES });
    const run = await start(world({ planner, tools: [echo] }), { limits: { steps: 60, costUsd: 0.002 } });
    const { usage, ...result } = await run.result();
    expect(result).toMatchObject({ reason: 'max_cost', metadata: { budget: 'cost' } });
    expect(server.requests.length).toBeGreaterThan(1);
    expect(server.requests.length).toBeLessThan(20);
    expect(usage).toMatchObject({ estimated: true });
    expect(usage.costMicroUsd).toBe(usage.inputTokens + usage.outputTokens);
    expect(usage.costMicroUsd).toBeLessThan(10_000);
    const refused = only(await collect(run), 'model.usage_refused');
    expect(refused.length).toBe(server.requests.length);
    expect(refused[0]?.why).toBe(`inputTokens is ${String(inputTokens)}`);
  });

  it.each([
    Number.NaN,
    Number.POSITIVE_INFINITY,
    -1,
    1e10,
    '100' as never,
    null as never,
    0,
  ])('is estimated in the place of %s input tokens', async (inputTokens) => {
    const { result } = await play(scriptedModel(forever({ inputTokens, outputTokens: 5 })), { tokens: 2_000 });
    expect(result).toMatchObject({ reason: 'max_tokens', metadata: { budget: 'tokens' }, usage: { estimated: true } });
    expect(result.usage.inputTokens).toBeGreaterThan(0);
    expect(result.usage.inputTokens).toBeLessThan(10_000);
  });

  it('takes no more tokens out of a cache than there were', async () => {
    const prices = { ...PRICES, cachedInput: 0.1 };
    const usage = { inputTokens: 1_000, cachedInputTokens: 5_000, outputTokens: 100 };
    const { moves } = await play(scriptedModel(forever(usage)), { costUsd: 0.004 }, { prices });
    expect(moves.map((move) => move.usage?.costMicroUsd)).toEqual([1_100, 1_100, 1_100]);
  });

  it.each([
    ['watched', true],
    ['not watched', false],
  ])('binds budgets when it says nothing, %s', async (_what, streamed) => {
    const { result, moves } = await play(scriptedModel(forever()), { costUsd: 0.002 }, { streamed });
    expect(result).toMatchObject({ reason: 'max_cost', metadata: { budget: 'cost' }, usage: { estimated: true } });
    expect(moves.length).toBeLessThan(20);
    for (const { usage } of moves) expect(usage).toMatchObject({ estimated: true });
  });

  it('marks nothing that the provider said, and says of it nothing else', async () => {
    const { result, events } = await play(scriptedModel(forever({ inputTokens: 900, outputTokens: 5 })), {
      tokens: 3_000,
    });
    expect(result.usage).toMatchObject({ inputTokens: 2_700, outputTokens: 15 });
    expect(result.usage).not.toHaveProperty('estimated');
    expect(only(events, 'model.usage_refused')).toEqual([]);
  });

  it('counts a stream that broke off, which the provider wants paid', async () => {
    const broken: ScriptedReply = { text: 'half a word and more', cutOff: true, error: undefined, afterDeltas: 0 };
    const model = scriptedModel([broken, { text: 'whole', usage: { inputTokens: 100, outputTokens: 1 } }]);
    const made = world({ planner: react({ model, retries: 1 }), random: () => 0 });
    const run = await start(made);
    await collect(run);
    const { usage } = await run.result();
    expect(usage.inputTokens).toBeGreaterThan(100);
    expect(usage).toMatchObject({ estimated: true });
  });
});

describe('what a planner says that it used', () => {
  const spends =
    (usage: unknown): PlannerFunction =>
    () => ({ decision: call('echo'), usage: usage as never });

  it.each([
    { costMicroUsd: -1e9 },
    { costMicroUsd: Number.NaN },
    { costMicroUsd: 1e300 },
    { costMicroUsd: '5' },
    { costMicroUsd: null },
    { inputTokens: -1 },
    { outputTokens: {} },
    { inputTokens: 5, cachedInputTokens: 6 },
    { cachedInputTokens: -6 },
    [],
    'much',
    null,
  ])('ends the run when it cannot be: %o', async (usage) => {
    let calls = 0;
    const tool = make('echo', () => (calls += 1));
    const made = world({ planner: spends(usage), tools: [tool] });
    const result = await (await start(made, { limits: { steps: 5, costUsd: 0.0001 } })).result();
    expect(result).toMatchObject({ status: 'failed', error: { code: 'invalid_decision' } });
    expect(result).toMatchObject({ error: { message: expect.stringContaining('usage') } });
    expect(calls).toBe(0);
  });

  it('counts a part of a whole as a whole', async () => {
    const made = world({ planner: spends({ costMicroUsd: 0.25, inputTokens: 1.5 }), tools: [echo] });
    const { usage } = await (await start(made, { limits: { steps: 20, costUsd: 0.000003 } })).result();
    expect(usage).toMatchObject({ costMicroUsd: 3, inputTokens: 6, steps: 3 });
  });

  it('is not taken from a summary when it cannot be', async () => {
    const planner = {
      name: 'sums',
      version: '1',
      next: () => finish('done'),
      compact: () =>
        Promise.resolve({
          failure: { code: 'empty_summary' as const, message: 'no' },
          tokenEstimate: 5,
          usage: { costMicroUsd: -500 },
        }),
    };
    const result = await (await start(world({ planner }))).result();
    expect(result).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('costMicroUsd is -500') },
    });
  });

  it('is not taken from an answer of a helper of htn, where a sum would hide it', async () => {
    const domain = htnDomain({
      operators: { walk: () => true },
      tasks: {
        go: {
          a: () => [
            ['rest', 1],
            ['rest', 2],
          ],
          b: () => [['walk']],
        },
        rest: { a: () => [['walk']], b: () => [['walk']] },
      },
    });
    const spent = [100, -90, 5];
    const planner = htn({
      domain,
      state: () => ({}),
      todo: () => [['go']],
      step: ([toolId]) => ({ type: 'tool', toolId }),
      choose: (_task, methods) =>
        Promise.resolve({ method: methods[0] as string, usage: { costMicroUsd: spent.shift() as number } }),
    });
    const made = world({ planner, tools: [make('walk', () => 'done')] });
    const result = await (await start(made)).result();
    expect(result).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('costMicroUsd is -90') },
    });
  });

  it('is not taken from the error of a model', async () => {
    const error = new PilotageError('model_unavailable', 'busy', { data: { usage: { costMicroUsd: -1e9 } } });
    const domain = htnDomain({
      operators: { walk: () => true },
      tasks: { go: { a: () => [['walk']], b: () => [['walk']] } },
    });
    const planner = htn({
      domain,
      state: () => ({}),
      todo: () => [['go']],
      step: ([toolId]) => ({ type: 'tool', toolId }),
      choose: chooseWith(
        scriptedModel(() => ({ error, errorAt: 'call' })),
        { retries: 0 },
      ),
    });
    const result = await (await start(world({ planner, tools: [make('walk', () => 'done')], patienceMs: 0 }))).result();
    expect(result).toMatchObject({ status: 'paused', usage: { costMicroUsd: 0 } });
  });
});

describe('the totals', () => {
  it('never fall by what an entry says, and stay whole numbers', async () => {
    const spend =
      (costMicroUsd: number): PlannerFunction =>
      () => ({ decision: call('echo'), usage: { costMicroUsd } });
    const made = world({ planner: spend(40), tools: [echo] });
    const run = await start(made, { limits: { steps: 3 } });
    await run.result();
    const entries = await made.journal.read(run.id);
    let n = 0;
    const forged = entries.map((entry) =>
      entry.kind === 'moved' ? { ...entry, usage: { costMicroUsd: [-1e9, 40, 'x'][n++] } } : entry,
    );
    expect(foldEntries(forged as never)?.totals.costMicroUsd).toBe(40);
  });
});

describe('what is used beside a move', () => {
  it('counts with a run that fails, as far as the error tells it', async () => {
    const usage = { inputTokens: 70, outputTokens: 5, costMicroUsd: 9 };
    const fails: PlannerFunction = () => {
      throw new PilotageError('context_window_exceeded', 'too long', { data: { usage } });
    };
    const run = await start(world({ planner: fails }));
    expect(await run.result()).toMatchObject({ status: 'failed', usage });
  });

  it('has what was cached and thought in the totals, of a run and of those above it', async () => {
    const usage = {
      inputTokens: 100,
      cachedInputTokens: 60,
      cacheWriteInputTokens: 20,
      outputTokens: 40,
      reasoningTokens: 30,
      costMicroUsd: 7,
    };
    const spawn: Decision = {
      kind: 'spawn_task',
      task: 'foreground',
      spec: { description: 'below', query: 'below' },
    };
    const planner: PlannerFunction = ({ query, trajectory: { count } }) => ({
      decision: query !== 'below' && count === 0 ? spawn : { kind: 'finish', reason: 'goal' },
      usage,
    });
    const run = await start(world({ planner }));
    const { usage: total } = await run.result();
    expect(total).toMatchObject({
      inputTokens: 300,
      cachedInputTokens: 180,
      cacheWriteInputTokens: 60,
      outputTokens: 120,
      reasoningTokens: 90,
      costMicroUsd: 21,
    });
  });
});
