/** What models have used counts, whatever keeps a planner from its move: a limit without room, a cancel, a plan that is no good, another failure. */
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Planner } from '#core';
import type { LanguageModel } from '#model';
import { openaiCompatible } from '#model/openai-compatible';
import { htn, htnDomain } from '#planners/htn';
import { chooseWith, fillWith } from '#planners/htn-model';
import { pipeline } from '#planners/pipeline';
import { react } from '#planners/react';
import { openaiServer, type ServerHandler, scriptedModel } from '#testing';
import { collect } from '../kit/events.ts';
import { entriesOf } from '../kit/run-record.ts';
import { echo } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const PRICES = { input: 1, output: 3 };
const USED = { inputTokens: 1_000, outputTokens: 500 };

const plans =
  (options = {}) =>
  (model: LanguageModel) =>
    pipeline({ model, prices: PRICES, ...options });
const fills = (model: LanguageModel, tasks: readonly string[] = ['leaf']) =>
  htn({
    domain: htnDomain({ operators: {}, tasks: { leaf: [] } }),
    state: () => ({}),
    todo: () => tasks.map((name) => [name] as const),
    step: () => ({ type: 'tool', toolId: 'echo', input: {} }),
    fill: fillWith(model, { prices: PRICES }),
  });

async function play(planner: (model: LanguageModel) => Planner, replies: ServerHandler, limits: object = {}) {
  const server = await openaiServer(replies);
  onTestFinished(() => server.close());
  const model = openaiCompatible({ baseUrl: server.url, model: 'm' });
  const made = world({ planner: planner(model), tools: [echo], random: () => 0 });
  return { made, server, run: await start(made, { limits }) };
}

const bad = { text: 'That is beyond me.', usage: USED };
const plan = { steps: [{ id: 'a', type: 'tool', toolId: 'echo', input: {} }] };
const good = { text: JSON.stringify({ planId: 'p', ...plan }), usage: USED };
const steps = { text: JSON.stringify({ steps: [{ type: 'tool', toolId: 'echo', input: {} }] }), usage: USED };

describe.each([
  ['pipeline', plans(), good, 2_000],
  ['htn', fills, steps, 1_700],
] as const)('a request of %s without room', (_, planner, last, tokens) => {
  it('ends the run at its limit, with what the move has used', async () => {
    const { run, server } = await play(planner, () => bad, { tokens });
    expect(await run.result()).toMatchObject({
      reason: 'max_tokens',
      metadata: { budget: 'tokens', left: tokens - 1_500, needs: expect.any(Number) },
      usage: { ...USED, costMicroUsd: 2_500 },
    });
    expect(server.requests).toHaveLength(1);
  });

  it('asks for a raise, and is made when somebody gives it', async () => {
    const { run, made } = await play(planner, (_request, index) => (index === 0 ? bad : last), {
      tokens,
      onCeiling: 'pause',
    });
    const held = await run.result();
    expect(held).toMatchObject({ status: 'paused', usage: USED, pauses: [{ reason: 'constraints_conflict' }] });
    await run.resume({ limits: { tokens: 20_000 } });
    expect(await run.result()).toMatchObject({ reason: 'goal', usage: { inputTokens: 2_000, calls: 1 } });
    expect(await entriesOf(made.journal, run, 'failed')).toEqual([]);
  });
});

describe('what was used counts', () => {
  const stalls: ServerHandler = (_, index) => (index === 0 ? bad : { text: '…', stallAfterEvents: 0 });

  it.each([
    ['pipeline', plans()],
    ['pipeline line by line', plans({ stream: true })],
    ['htn', fills],
  ] as const)('when a cancel stops the second request of a move of %s', async (_, planner) => {
    const stalled: ServerHandler = (request, index) =>
      index === 0 || request.stream === true ? stalls(request, index) : new Promise(() => {});
    const { run, server } = await play(planner, stalled);
    const reading = collect(run);
    await until(() => server.requests.length === 2);
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled', usage: USED });
    await reading;
  });

  it.each([
    'cancel',
    'deadline',
  ] as const)('by an estimate, of a plan that a %s stops while steps of it run', async (why) => {
    const text = ['a', 'b'].map((id) => `${JSON.stringify({ ...plan.steps[0], id })}\n`).join('');
    const model = scriptedModel([{ text: `${text}{"id": "c"`, stall: true }]);
    const made = world({ planner: pipeline({ model, prices: PRICES, stream: true }), tools: [echo] });
    const limits = why === 'deadline' ? { deadlineAt: made.clock.now() + 60_000 } : {};
    const run = await start(made, { limits });
    const reading = collect(run);
    await until(async () => (await run.state()).totals.calls === 2);
    if (why === 'cancel') await run.cancel();
    else made.clock.advance(60_000);
    const { usage, ...result } = await run.result();
    await reading;
    expect(result).toMatchObject({ reason: why === 'cancel' ? 'cancelled' : 'deadline_exceeded' });
    expect(usage).toMatchObject({ estimated: true, calls: 2 });
    expect(usage.inputTokens).toBeGreaterThan(500);
    expect(usage.costMicroUsd).toBe(usage.inputTokens + 3 * usage.outputTokens);
  });

  it('of the first piece of a summary, when a cancel stops the second', async () => {
    const worker = scriptedModel((_, n) => ({ calls: [{ tool: 'echo', args: { n, text: 'word '.repeat(800) } }] }));
    const summary = { goals: ['g'], facts: ['f'], pending: ['p'], lastOutputDigest: 'd', note: '' };
    const summariser = scriptedModel([{ text: JSON.stringify(summary), usage: USED }, { stall: true }]);
    const compaction = { budgetTokens: 12_000, summariser: { model: summariser, contextTokens: 2_500 } };
    const planner = react({ model: worker, prices: PRICES, compaction });
    const run = await start(world({ planner, tools: [echo] }));
    await until(() => summariser.calls.length === 2);
    const { totals } = await run.state();
    await run.cancel();
    const result = await run.result();
    const { usage } = result;
    expect(result).toMatchObject({ reason: 'cancelled' });
    expect(usage.inputTokens - totals.inputTokens).toBe(1_000);
    expect(usage.costMicroUsd - totals.costMicroUsd).toBe(2_500);
  });

  it('by an estimate, of a reply that is not read to its end', async () => {
    const line = (id: number) => JSON.stringify({ id: `s${id}`, type: 'tool', toolId: 'echo', input: {} });
    const long = { text: Array.from({ length: 50 }, (_, id) => `${line(id)}\n`).join(''), usage: USED };
    const { run } = await play(plans({ stream: true, maxSteps: 2, replans: 0 }), () => long);
    const { usage } = await run.result();
    expect(usage).toMatchObject({ estimated: true });
    expect(usage.inputTokens).toBeGreaterThan(500);
    expect(usage.costMicroUsd).toBe(usage.inputTokens + 3 * usage.outputTokens);
  });

  it('by an estimate, of the try before such a reply, which broke off without a step', async () => {
    const line = (id: number) => JSON.stringify({ id: `s${id}`, type: 'tool', toolId: 'echo', input: {} });
    const long = { text: Array.from({ length: 50 }, (_, id) => `${line(id)}\n`).join(''), usage: USED };
    const usageOf = async (replies: ServerHandler) => {
      const { run } = await play(plans({ stream: true, maxSteps: 2, replans: 0 }), replies);
      return (await run.result()).usage;
    };
    const once = await usageOf(() => long);
    const words = { text: 'Let me think about the plan first. '.repeat(20), breakAfterEvents: 10 };
    const twice = await usageOf((_, index) => (index === 0 ? words : long));
    expect(twice.inputTokens).toBe(2 * once.inputTokens);
    expect(twice.costMicroUsd).toBeGreaterThan(once.costMicroUsd + once.inputTokens);
  });

  it('when no answer to a question of htn is any good, or the next question fails', async () => {
    const none = { text: JSON.stringify({ steps: [{ type: 'tool', toolId: 'nothing', input: {} }] }), usage: USED };
    const { run, server } = await play(fills, () => none);
    expect(await run.result()).toMatchObject({
      status: 'failed',
      error: { code: 'plan_invalid' },
      usage: { inputTokens: expect.any(Number) },
    });
    expect((await run.result()).usage.inputTokens).toBe(1_000 * server.requests.length);
    const refused = await play(
      (model) => fills(model, ['leaf', 'leaf']),
      (_, index) => (index === 0 ? steps : { error: { status: 404, message: 'No such model.' } }),
    );
    expect((await refused.run.result()).usage).toMatchObject(USED);
    // The question that fails used something of its own.
    const broken = await play(
      (model) => fills(model, ['leaf', 'leaf']),
      (_, index) => (index === 0 ? steps : bad),
    );
    const { inputTokens } = (await broken.run.result()).usage;
    expect(broken.server.requests.length).toBeGreaterThan(2);
    expect(inputTokens).toBe(1_000 * broken.server.requests.length);
  });
});

it('the questions of one move of htn share what is left', async () => {
  const most: number[] = [];
  const domain = htnDomain({
    operators: { go: () => true },
    tasks: { way: { left: () => [['go']], right: () => [['go']] } },
  });
  const { run } = await play(
    (model) =>
      htn({
        domain,
        state: () => ({}),
        todo: () => [['way', 'a'] as const, ['way', 'b'] as const],
        step: () => ({ type: 'tool', toolId: 'echo', input: {} }),
        choose: chooseWith(model, { prices: PRICES }),
      }),
    ({ max_tokens: given }) => {
      most.push(Number(given));
      return { text: JSON.stringify({ method: 'left' }), usage: USED };
    },
    { tokens: 10_000 },
  );
  await run.result();
  expect(most).toHaveLength(2);
  expect(most[0]).toBe((most[1] ?? 0) + 1_500);
});
