/** A limit of cost holds, or is refused before anything is spent: wherever it is given. */
import { describe, expect, it } from 'vitest';
import { readyConfig } from '#config/ready';
import { local, type PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { createModelRegistry, type Prices } from '#model';
import { htn, htnDomain } from '#planners/htn';
import { chooseWith, fillWith } from '#planners/htn-model';
import { pipeline } from '#planners/pipeline';
import { react } from '#planners/react';
import { createRuntime, type RuntimeOptions } from '#runtime';
import { scriptedModel } from '#testing';
import { finish, script } from '../kit/decisions.ts';
import { echo } from '../kit/tools.ts';
import { start, world } from '../kit/world.ts';

const model = scriptedModel([{ text: 'Done.' }], { modelId: 'gpt-x' });
const other = scriptedModel([], { modelId: 'gpt-y' });
const prices: Prices = { input: 2.5, output: 10 };
const limits = { costUsd: 0.5 };
const MISSING = { code: 'price_missing', message: expect.stringContaining('"gpt-x"') };
const domain = htnDomain({ operators: {} });

function made(options: RuntimeOptions) {
  return createRuntime({ journal: memoryJournal(), ...options });
}

/** A tool whose calls are runs of a planner with this model. */
function agent(planner = react({ model })) {
  const inputSchema = { type: 'object' } as const;
  return {
    name: 'agent',
    description: 'd',
    inputSchema,
    agent: { name: 'inner', planner: { ...planner, name: 'inner' }, tools: [] },
  };
}

describe('a limit of cost where a model has no prices is refused', () => {
  it.each([
    ['a model', react({ model })],
    ['one of several', react({ model: [{ model: other, prices }, model] })],
    ['one of a registry', react({ model: createModelRegistry([model]) })],
    ['a summariser', react({ model: { model: other, prices }, compaction: { budgetTokens: 9, summariser: model } })],
    ['a fallback', react({ model: { model: other, prices }, fallback: react({ model }) })],
    ['a plan’s model', pipeline({ model })],
    ['an outline’s model', pipeline({ model: { model: other, prices }, outlineModel: model })],
    ['a verifier’s model', pipeline({ model: { model: other, prices }, candidates: 2, verifier: { model } })],
    [
      'a model that chooses',
      htn({ domain, state: () => ({}), todo: () => [], step: () => ({}), choose: chooseWith(model) } as never),
    ],
    [
      'a model that fills',
      htn({ domain, state: () => ({}), todo: () => [], step: () => ({}), fill: fillWith(model) } as never),
    ],
  ])('by createRuntime and start: %s', async (_, planner) => {
    expect(() => made({ planner, limits })).toThrow(expect.objectContaining(MISSING));
    const runtime = made({ planner });
    await expect(runtime.start('q', { identity: local('ana'), limits })).rejects.toMatchObject(MISSING);
    await runtime.close();
  });

  it('also of a planner that carries out a tool, and of one beside the main one', () => {
    const planner = { name: 'main', next: () => finish() };
    expect(() => made({ planner, tools: [agent()], limits })).toThrow(expect.objectContaining(MISSING));
    expect(() => made({ planner, agents: [{ name: 'other', planner: react({ model }), tools: [] }], limits })).toThrow(
      expect.objectContaining(MISSING),
    );
    const budgeted = { name: 'other', planner: react({ model }), tools: [], limits };
    expect(() => made({ planner, agents: [budgeted] })).toThrow(expect.objectContaining(MISSING));
  });

  it('also behind an agent that has the planner of another, with tools of its own', async () => {
    const planner = { name: 'main', next: () => finish() };
    const second = { name: 'second', planner, tools: [agent()] };
    const tool = { name: 'ask', description: 'd', inputSchema: { type: 'object' }, agent: second };
    const runtime = made({ planner, tools: [tool] });
    await expect(runtime.start('q', { identity: local('ana'), limits })).rejects.toMatchObject(MISSING);
    await runtime.close();
  });

  it('by a configuration file', async () => {
    await expect(readyConfig({ planner: { model }, limits })).rejects.toMatchObject(MISSING);
    await expect(readyConfig({ planner: { model: { model, prices } }, limits })).resolves.toBeDefined();
    await expect(readyConfig({ planner: { model, prices }, limits })).resolves.toBeDefined();
  });

  it('when it is raised into one, and for a fork; the pause stays open', async () => {
    const planner = react({ model: scriptedModel([{ calls: [{ tool: 'echo', args: {} }] }], { modelId: 'gpt-x' }) });
    const run = await start(world({ planner, tools: [echo] }), { limits: { steps: 1, onCeiling: 'pause' } });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await expect(run.resume({ limits: { steps: 9, ...limits } })).rejects.toMatchObject(MISSING);
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await expect(run.fork({ limits: { steps: 9, ...limits } })).rejects.toMatchObject(MISSING);
  });

  it('of a run that was started under other code: nothing is asked any more', async () => {
    const journal = memoryJournal();
    const asked = scriptedModel([{ text: 'Done.' }], { modelId: 'gpt-x' });
    const ask = { kind: 'request_pause', reason: 'await_input' } as const;
    const before = world({ journal, planner: { ...script(ask), name: 'react', next: () => ask } });
    const run = await start(before, { limits });
    expect(await run.result()).toMatchObject({ status: 'paused' });
    await before.runtime.close();
    const after = world({ journal, planner: react({ model: asked }) });
    await after.runtime.run(run.id).resume({ payload: {}, acceptChanges: true });
    expect(await after.runtime.run(run.id).result()).toMatchObject({ status: 'failed', error: MISSING });
    expect(asked.calls).toHaveLength(0);
  });

  it('as soon as a planner of one’s own has used tokens without saying what they cost', async () => {
    const planner: PlannerFunction = () => ({ decision: finish(), usage: { inputTokens: 10, outputTokens: 5 } });
    const run = await start(world({ planner }), { limits });
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { code: 'price_missing' },
      usage: { inputTokens: 10, outputTokens: 5 },
    });
  });

  it('and is taken where all that is asked has prices, or nothing is', async () => {
    for (const planner of [
      react({ model: { model, prices } }),
      react({ model, prices }),
      react({ model: { model, prices: { input: 0, output: 0 } } }),
      { name: 'plain', next: () => finish() },
    ]) {
      await made({ planner, limits }).close();
    }
  });
});

describe('prices', () => {
  it.each<[string, Prices]>([
    ['micro-dollars', { input: 2_500_000, output: 10_000_000 }],
    ['dollars a token', { input: 0.000_002_5, output: 0.000_01 }],
    ['less than nothing', { input: -1, output: 1 }],
    ['no number', { input: Number.NaN, output: 1 }],
    ['a text', { input: '2.5' as never, output: 1 }],
    ['without output', { input: 2.5 } as never],
    ['a name that is none', { input: 1, output: 1, cached: 0.5 } as never],
  ])('that are %s are refused', (_, wrong) => {
    expect(() => react({ model, prices: wrong })).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining('price') }),
    );
  });

  it.each([
    ['a text', '0.1'],
    ['more than anybody means', 250_000],
    ['too small to be meant', 1e-9],
  ])('of a tool that are %s are refused', (_, costUsd) => {
    const tool = { ...echo, costUsd: costUsd as never };
    expect(() => made({ planner: () => finish(), tools: [tool] })).toThrow(
      expect.objectContaining({ code: 'invalid_config', message: expect.stringContaining('costUsd') }),
    );
  });
});
