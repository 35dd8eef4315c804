/** A limit on tokens or money binds also within one reply: it is asked to be no longer than what is left, and not asked for without room. */
import fc from 'fast-check';
import { describe, expect, it, onTestFinished } from 'vitest';
import { commandsFor, parseCommandLine, pauseLines } from '#cli';
import { PilotageError } from '#core';
import { createModelRegistry, estimateTokens } from '#model';
import { openaiCompatible } from '#model/openai-compatible';
import { react } from '#planners/react';
import { openaiServer, type ReplyFunction, type ScriptedModel, type ScriptedReply, scriptedModel } from '#testing';
import { finish, script, watched } from '../kit/decisions.ts';
import { collect } from '../kit/events.ts';
import { entriesOf, pausesOf } from '../kit/run-record.ts';
import { echo, make } from '../kit/tools.ts';
import { gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const PRICES = { input: 1, output: 3 };
const LIMIT = 6_000;

/** Reads what it is sent, and writes as much as it may, or as it would. It calls a tool in each reply. */
const wordy =
  (would: number): ReplyFunction =>
  (request, n) => {
    const outputTokens = Math.min(would, request.maxOutputTokens ?? Number.POSITIVE_INFINITY);
    return { calls: [{ tool: 'echo', args: { n } }], usage: { inputTokens: estimateTokens(request), outputTokens } };
  };

function play(model: ScriptedModel, limits: object, tools = [echo]) {
  return start(world({ planner: react({ model, prices: PRICES }), tools }), { limits: { steps: 60, ...limits } });
}

describe('a reply', () => {
  it('is asked to be no longer than what is left, in what is sent to the provider', async () => {
    const server = await openaiServer(() => ({ text: 'Done.', usage: { inputTokens: 200, outputTokens: 5 } }));
    onTestFinished(() => server.close());
    const model = openaiCompatible({ baseUrl: server.url, model: 'm' });
    const made = world({ planner: react({ model, prices: PRICES, maxOutputTokens: 100_000 }) });
    await (await start(made, { limits: { tokens: LIMIT } })).result();
    await (await start(made, { limits: { costUsd: LIMIT / 1e6 } })).result();
    await (await start(made)).result();
    const [byTokens, byMoney, free] = server.requests.map(({ body }) =>
      Number((body as { max_tokens?: number }).max_tokens),
    );
    expect(byTokens).toBeGreaterThan(LIMIT / 2);
    expect(byTokens).toBeLessThan(LIMIT);
    expect(byMoney).toBeGreaterThan(LIMIT / PRICES.output / 2);
    expect(byMoney).toBeLessThan(LIMIT / PRICES.output);
    expect(free).toBe(100_000);
  });

  it('has no room behind a request whose price in the cache is higher', async () => {
    const prices = { input: 4, cacheWriteInput: 5, output: 15 };
    const model = scriptedModel((request) => {
      const inputTokens = estimateTokens(request);
      const usage = { inputTokens, cacheWriteInputTokens: inputTokens, outputTokens: request.maxOutputTokens ?? 0 };
      return { text: 'Done.', usage };
    });
    const made = world({ planner: react({ model, prices, systemPrompt: 'Be kind. '.repeat(200) }) });
    const result = await (await start(made, { limits: { costUsd: 0.01 } })).result();
    expect(result).toMatchObject({ reason: 'goal' });
    expect(result.usage.costMicroUsd).toBeGreaterThan(9_900);
    expect(result.usage.costMicroUsd).toBeLessThanOrEqual(10_000);
  });

  it('property: whatever a model would write, no limit is overshot, watched or not', async () => {
    const cases = fc.record({
      would: fc.integer({ min: 1, max: 20_000 }),
      tokens: fc.option(fc.integer({ min: 1, max: 20_000 }), { nil: undefined }),
      microUsd: fc.option(fc.integer({ min: 1, max: 40_000 }), { nil: undefined }),
      watched: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(cases, async ({ would, tokens, microUsd, watched }) => {
        const model = scriptedModel(wordy(would));
        const limits = {
          ...(tokens === undefined ? {} : { tokens }),
          ...(microUsd === undefined ? {} : { costUsd: microUsd / 1e6 }),
        };
        const run = await play(model, { steps: 10, ...limits });
        if (watched) await collect(run);
        const result = await run.result();
        const { inputTokens, outputTokens, costMicroUsd } = result.usage;
        expect(inputTokens + outputTokens).toBeLessThanOrEqual(tokens ?? Number.POSITIVE_INFINITY);
        expect(costMicroUsd).toBeLessThanOrEqual(microUsd ?? Number.POSITIVE_INFINITY);
        expect(result).toMatchObject({ reason: expect.stringMatching(/^max_(tokens|cost|steps)$/) });
      }),
      { numRuns: 60 },
    );
  });
});

describe('a request without room', () => {
  it('is no failure of the model that was not asked', async () => {
    const models = createModelRegistry([scriptedModel([])]);
    const before = models.export();
    const made = world({ planner: react({ model: models }) });
    expect(await (await start(made, { limits: { tokens: 100 } })).result()).toMatchObject({ reason: 'max_tokens' });
    expect(models.export()).toEqual(before);
  });

  const first: ScriptedReply = {
    calls: [{ tool: 'echo', args: {} }],
    usage: { inputTokens: 5_500, outputTokens: 400 },
  };
  const last: ScriptedReply = { text: 'Here it is.', usage: { inputTokens: 300, outputTokens: 5 } };

  it('is not made: the run ends at its limit, with what it has used', async () => {
    const model = scriptedModel([first]);
    const result = await (await play(model, { tokens: LIMIT })).result();
    expect(result).toMatchObject({
      reason: 'max_tokens',
      metadata: { budget: 'tokens', left: 100, needs: expect.any(Number) },
      usage: { inputTokens: 5_500 },
    });
    expect(model.calls).toHaveLength(1);
  });

  it('is made once the limit is raised, by so much as the pause says', async () => {
    const model = scriptedModel([first, last]);
    const run = await play(model, { tokens: LIMIT, onCeiling: 'pause' });
    const asked = async () => {
      expect((await run.result()).status).toBe('paused');
      return (await run.state()).pauses[0]?.payload;
    };
    const payload = await asked();
    expect(payload).toMatchObject({ budget: 'tokens', limit: LIMIT, used: 5_900, left: 100 });
    const { raise } = payload as { raise: { tokens: number } };
    const parsed = parseCommandLine(['resume', run.id]);
    if (parsed.kind !== 'command') throw new Error('No command.');
    const lines = pauseLines(run.id, await pausesOf(run), commandsFor(run.id, parsed.options));
    const shown = lines.map(({ text }) => text).join('\n');
    expect(shown).toMatch(/no room for the next request to the model, which needs \d+; 100 is left\./);
    expect(shown).toContain(`--max-tokens ${2 * LIMIT}`);
    // Resumed without a raise it asks again.
    await run.resume();
    expect(await asked()).toEqual(payload);
    expect(model.calls).toHaveLength(1);
    await run.resume({ limits: raise });
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'Here it is.' });
    expect(model.calls[1]?.maxOutputTokens).toBe(16);
  });

  it('takes the reserve of the last move', async () => {
    const model = scriptedModel([{ ...first, usage: { inputTokens: 2_000, outputTokens: 50 } }, last]);
    const result = await (await play(model, { tokens: LIMIT, onCeiling: 'answer' })).result();
    expect(result).toMatchObject({ reason: 'max_tokens', payload: 'Here it is.' });
    expect(model.calls).toHaveLength(2);
  });

  it('is not made again when a try that failed has used the rest; what that try used counts', async () => {
    const broken: ScriptedReply = { text: 'half '.repeat(5_000), error: unavailable() };
    const model = scriptedModel([broken]);
    const made = world({ planner: react({ model, prices: PRICES }), random: () => 0 });
    const run = await start(made, { limits: { tokens: LIMIT } });
    await collect(run);
    const { usage, ...result } = await run.result();
    expect(result).toMatchObject({ reason: 'max_tokens', metadata: { budget: 'tokens' } });
    expect(usage.outputTokens).toBeGreaterThan(5_000);
    expect(model.calls).toHaveLength(1);
  });

  it('of the last move waits for what a task in the background gives back', async () => {
    const held = gate();
    const helper = {
      name: 'helper',
      planner: { name: 'helper', next: script({ kind: 'call_tool', tool: 'hold', args: {} }, finish('helped')) },
      tools: [make('hold', () => held.opened)],
      limits: { tokens: 3_000 },
    };
    const inputSchema = { type: 'object' as const };
    const help = { name: 'help', description: 'h', inputSchema, background: true as const, agent: helper };
    const model = scriptedModel([
      { calls: [{ tool: 'help', args: {} }], usage: { inputTokens: 300, outputTokens: 20 } },
      { ...first, usage: { inputTokens: 3_680, outputTokens: 10 } },
      { text: 'Here it is.', usage: { inputTokens: 3_700, outputTokens: 5 } },
    ]);
    const made = world({ planner: react({ model }), tools: [help, echo] });
    const run = await start(made, { limits: { tokens: 8_000, onCeiling: 'answer' } });
    await until(async () => (await made.journal.get(run.id))?.status === 'waiting');
    expect(model.calls).toHaveLength(2);
    held.open();
    expect(await run.result()).toMatchObject({ reason: 'max_tokens', payload: 'Here it is.' });
  });

  it('waits for what a task in the background gives back', async () => {
    const held = gate();
    const helper = {
      name: 'helper',
      planner: { name: 'helper', next: script({ kind: 'call_tool', tool: 'hold', args: {} }, finish('helped')) },
      tools: [make('hold', () => held.opened)],
      limits: { tokens: 600 },
    };
    const model = scriptedModel([
      { calls: [{ tool: 'help', args: {} }], usage: { inputTokens: 750, outputTokens: 50 } },
      last,
      last,
    ]);
    const help = {
      name: 'help',
      description: 'h',
      inputSchema: { type: 'object' as const },
      background: true as const,
      agent: helper,
    };
    // The request takes more than half of what is left then, which the task has.
    const systemPrompt = 'Be kind. '.repeat(200);
    const reacts = react({ model, systemPrompt });
    const next = watched((run, signal) => reacts.next(run, signal));
    const made = world({ planner: { ...reacts, next }, tools: [help] });
    const run = await start(made, { limits: { tokens: 2_000 } });
    await until(async () => (await made.journal.get(run.id))?.status === 'waiting');
    await quiet();
    // Nobody is asked meanwhile.
    const { length } = next.views;
    await quiet();
    expect(next.views).toHaveLength(length);
    expect(model.calls).toHaveLength(1);
    held.open();
    expect(await run.result()).toMatchObject({ status: 'finished', payload: 'Here it is.' });
    expect((await entriesOf(made.journal, run, 'moved')).length).toBe(2);
  });
});

it('a planner that says so of itself, and not of a limit of the run, has failed', async () => {
  const planner = () => {
    throw new PilotageError('budget_exceeded', 'My own money.', { data: { axis: 'cost', needs: 7 } });
  };
  const made = world({ planner, tools: [] });
  const result = await (await start(made)).result();
  expect(result).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('My own money.') } });
});

function unavailable(): Error {
  return Object.assign(new Error('Overloaded.'), { statusCode: 503, isRetryable: true });
}

describe('a reply that is stopped', () => {
  it.each(['cancel', 'deadline'] as const)('by a %s counts what it had used, by an estimate', async (why) => {
    const model = scriptedModel([{ text: 'One two three four five.', stall: true }]);
    const made = world({ planner: react({ model, prices: PRICES }) });
    const limits = why === 'deadline' ? { deadlineAt: made.clock.now() + 60_000 } : {};
    const run = await start(made, { limits });
    const said: string[] = [];
    const reading = (async () => {
      for await (const event of run.events()) if (event.type === 'token') said.push(event.text);
    })();
    await until(() => said.join('') === 'One two three four five.');
    if (why === 'cancel') await run.cancel();
    else made.clock.advance(60_000);
    const result = await run.result();
    await reading;
    expect(result).toMatchObject({
      reason: why === 'cancel' ? 'cancelled' : 'deadline_exceeded',
      usage: { estimated: true, outputTokens: 7 },
    });
    const { inputTokens, outputTokens, costMicroUsd } = result.usage;
    expect(inputTokens).toBeGreaterThan(200);
    expect(costMicroUsd).toBe(inputTokens + 3 * outputTokens);
  });

  it('is not counted where nothing had come of it yet', async () => {
    const model = scriptedModel([{ stall: true }]);
    const run = await start(world({ planner: react({ model }) }));
    await until(() => model.calls.length === 1);
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled', usage: { inputTokens: 0 } });
  });

  it('of a planner that gives piece after piece all the same is let go of', async () => {
    let given = 0;
    const made = world({
      planner: async function* (_, signal) {
        for (;;) {
          given += 1;
          yield { type: 'text', text: 'and ' } as const;
          await new Promise((resolve) => setImmediate(resolve));
          if (signal.aborted && given > 1_000) throw new Error('It was never let go of.');
        }
      },
      tools: [],
    });
    const run = await start(made);
    const reading = collect(run);
    await until(() => given > 5);
    await run.cancel();
    expect(await run.result()).toMatchObject({ reason: 'cancelled' });
    await reading;
    const last = given;
    await quiet();
    expect(given).toBe(last);
  });
});
