/** What a tool uses beside its call's own price: models that it asks, and what it tells. It counts against the run's limits. */
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { generateText, streamText } from 'ai';
import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import type { Limits, PlannerFunction } from '#core';
import { local } from '#core';
import { edge, flow, node } from '#flow';
import { memoryJournal } from '#journal';
import { openaiCompatible } from '#model/openai-compatible';
import { graph } from '#planners/graph';
import { react } from '#planners/react';
import { type OpenAIServer, openaiServer, type ServerReply, scriptedModel } from '#testing';
import { type AgentTool, agent, type ToolContext } from '#tools';
import { call, finish, script } from '../kit/decisions.ts';
import { collect, only } from '../kit/events.ts';
import { placed } from '../kit/flows.ts';
import { changed } from '../kit/journals.ts';
import { entriesOf } from '../kit/run-record.ts';
import { ANY, make, type Runs } from '../kit/tools.ts';
import { advanceUntil, gate, quiet, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

const servers: OpenAIServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function served(reply: ServerReply) {
  const server = await openaiServer(() => reply);
  servers.push(server);
  return { server, model: openaiCompatible({ baseUrl: server.url, model: 'small' }) };
}

const PRICES = { input: 1, output: 2 };

/** A run of one call of a tool, which then ends. */
async function play(ask: Runs, limits: Limits = {}, more: object = {}) {
  const tool = make('ask', ask, { effect: 'read', ...more });
  const made = world({ planner: script(call('ask'), finish('done')), tools: [tool], limits });
  const run = await start(made);
  const result = await run.result();
  const [outcome] = (await run.state()).steps[0]?.calls ?? [];
  return { ...made, run, result, outcome };
}

describe('a model that a tool asks', () => {
  it('is counted, with its price, in the run, in the call and for readers, and gives the tool its reply', async () => {
    const { server, model } = await served({ text: 'Oslo', usage: { inputTokens: 100, outputTokens: 20 } });
    const { result, outcome, run, journal } = await play(async (_, context) => {
      const { text } = await generateText({ model: context.model({ model, prices: PRICES }), prompt: 'Where?' });
      return text;
    });
    expect(outcome).toMatchObject({
      outcome: { kind: 'value', value: 'Oslo' },
      usage: { inputTokens: 100, outputTokens: 20, costMicroUsd: 140 },
    });
    expect(result).toMatchObject({
      reason: 'goal',
      usage: { inputTokens: 100, outputTokens: 20, costMicroUsd: 140 },
    });
    expect(await entriesOf(journal, run, 'call_spent')).toMatchObject([{ step: 0, call: 0, model: 'small' }]);
    expect(only(await collect(run), 'tool.spent')).toMatchObject([{ model: 'small', usage: { costMicroUsd: 140 } }]);
    // A replay reads what was recorded, and asks nobody.
    expect(await run.replay()).not.toHaveProperty('divergence');
    expect(server.requests).toHaveLength(1);
  });

  it('ends the run at its limit, whatever it used at once', async () => {
    const { model } = await served({ text: 'x', usage: { inputTokens: 1_000_000, outputTokens: 1 } });
    const { result } = await play(
      async (_, context) => (await generateText({ model: context.model(model), prompt: 'Where?' })).text,
      { tokens: 1_000 },
    );
    expect(result).toMatchObject({ status: 'finished', reason: 'max_tokens', usage: { inputTokens: 1_000_000 } });
  });

  it('is asked for no longer reply than is left, and not at all when nothing is', async () => {
    const { server, model } = await served({ text: 'x', usage: { inputTokens: 10, outputTokens: 85 } });
    let caught: unknown;
    const { outcome, result } = await play(
      async (_, context) => {
        const asked = context.model(model);
        await generateText({ model: asked, prompt: 'Where?', maxOutputTokens: 5_000 });
        await generateText({ model: asked, prompt: 'Where?' }).catch((error: unknown) => {
          caught = error;
          throw error;
        });
      },
      { tokens: 100 },
    );
    expect(server.requests).toHaveLength(1);
    const [request] = server.requests;
    expect(Number(request?.body['max_tokens'])).toBeLessThan(100);
    expect(caught).toMatchObject({ code: 'budget_exceeded', data: { axis: 'tokens' } });
    expect(outcome).toMatchObject({
      outcome: { kind: 'error', error: { code: 'budget_exceeded' } },
      usage: { outputTokens: 85 },
    });
    expect(result).toMatchObject({ usage: { inputTokens: 10, outputTokens: 85 } });
  });

  it('is not asked where the reply could have a few tokens alone, unless it is asked for no more', async () => {
    const { server, model } = await served({ text: 'x', usage: { inputTokens: 10, outputTokens: 70 } });
    const { outcome } = await play(
      async (_, context) => {
        const asked = context.model(model);
        await generateText({ model: asked, prompt: 'Where?' });
        await generateText({ model: asked, prompt: 'Where?', maxOutputTokens: 3 });
      },
      { tokens: 100 },
    );
    expect(outcome).toMatchObject({ outcome: { kind: 'value' } });
    expect(server.requests.map(({ body }) => body['max_tokens'])).toEqual([expect.any(Number), 3]);
    const refused = await play(
      async (_, context) => {
        const asked = context.model(model);
        await generateText({ model: asked, prompt: 'Where?' });
        await generateText({ model: asked, prompt: 'Where?' });
      },
      { tokens: 100 },
    );
    expect(refused.outcome).toMatchObject({ outcome: { error: { code: 'budget_exceeded' } } });
    expect(server.requests).toHaveLength(3);
  });

  it('waits for a planner that is still writing its plan: both may not use all that is left', async () => {
    const small = scriptedModel(({ maxOutputTokens = 0 }) => ({
      text: 'x',
      usage: { inputTokens: 10, outputTokens: maxOutputTokens },
    }));
    const asked = gate();
    const ask = make(
      'ask',
      (_, context) => {
        asked.open();
        return generateText({ model: context.model(small), prompt: 'Where?' }).then(({ text }) => text);
      },
      { effect: 'read' },
    );
    const branches = [{ id: 'a', tool: 'ask', args: {} }];
    const planner: PlannerFunction = async function* ({ trajectory: { count } }) {
      if (count > 0) return finish('done');
      yield { type: 'branches', plan: 'p', branches };
      await asked.opened;
      await quiet();
      expect(small.calls).toHaveLength(0);
      const decision = { kind: 'call_parallel', plan: 'p', branches, onInvalid: 'per_branch' } as const;
      return { decision, usage: { inputTokens: 500, outputTokens: 300 } };
    };
    const run = await start(world({ planner, tools: [ask], limits: { tokens: 1_000 } }));
    expect(await run.result()).toMatchObject({
      reason: 'max_tokens',
      usage: { inputTokens: 510, outputTokens: expect.any(Number) },
    });
    expect(small.calls[0]?.maxOutputTokens).toBeLessThan(200);
  });

  it('is counted with the arguments of a call that it was in the middle of', async () => {
    const args = { text: 'word '.repeat(400) };
    const model = scriptedModel([{ calls: [{ tool: 'write', args }], stall: true }]);
    const { result } = await play(async (_, context) => {
      const { stream } = await context.model(model).doStream({
        prompt: [{ role: 'user', content: [{ type: 'text', text: 'Write.' }] }],
      });
      let said = '';
      for await (const part of stream) {
        if (part.type === 'tool-input-delta') said += part.delta;
        if (said.length > 1_500) break;
      }
    });
    expect(result.usage.outputTokens).toBeGreaterThan(300);
  });

  it('is not asked in vain: a refusal by the budget ends the call with its own code, also after other attempts', async () => {
    const { server, model } = await served({ text: 'x', usage: { inputTokens: 70, outputTokens: 30 } });
    let attempts = 0;
    const ask = make(
      'ask',
      async (_, context) => {
        attempts += 1;
        await generateText({ model: context.model(model), prompt: 'Where?' });
        throw Object.assign(new Error('try again'), { retryable: true });
      },
      { effect: 'read', retries: 3, backoff: { baseMs: 1 } },
    );
    const made = world({ planner: script(call('ask'), finish('done')), tools: [ask], limits: { tokens: 100 } });
    const run = await start(made);
    await advanceUntil(made.clock, async () => (await run.state()).ending !== null);
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({
      attempts: 2,
      outcome: { kind: 'error', error: { code: 'budget_exceeded', data: { axis: 'tokens' } } },
    });
    expect([attempts, server.requests.length]).toEqual([2, 1]);
  });

  it('is bound by money too, and refused without prices where money is limited', async () => {
    const { server, model } = await served({ text: 'x', usage: { inputTokens: 10, outputTokens: 10 } });
    const ask: Runs = async (_, context) => {
      const asked = context.model({ model, prices: { input: 10, output: 10 } });
      for (let times = 0; times < 10; times += 1) await generateText({ model: asked, prompt: 'Where?' });
    };
    const { outcome } = await play(ask, { costUsd: 0.0005 });
    expect(outcome).toMatchObject({ outcome: { error: { code: 'budget_exceeded', data: { axis: 'cost' } } } });
    expect(server.requests.length).toBeLessThan(4);
    // The last reply may have been cut to what was left, by a server that heeds it.
    expect(server.requests.at(-1)?.body).toMatchObject({ max_tokens: expect.any(Number) });
    expect(outcome?.usage?.costMicroUsd).toBeLessThan(1_000);
    const unpriced = await play(
      async (_, context) => (await generateText({ model: context.model(model), prompt: 'Where?' })).text,
      { costUsd: 1 },
    );
    expect(unpriced.outcome).toMatchObject({ outcome: { error: { code: 'price_missing' } } });
  });

  it('waits for what others under way leave, so that many at once do not go beyond the limit', async () => {
    let most = 0;
    let now = 0;
    const model = scriptedModel(() => ({ text: 'x', usage: { inputTokens: 10, outputTokens: 10 } }));
    const slow = {
      ...model,
      doGenerate: async (options: Parameters<typeof model.doGenerate>[0]) => {
        now += 1;
        most = Math.max(most, now);
        await new Promise(setImmediate);
        now -= 1;
        return model.doGenerate(options);
      },
    };
    const { outcome, result } = await play(
      async (_, context) => {
        const asked = context.model(slow);
        const all = await Promise.allSettled(
          Array.from({ length: 20 }, () => generateText({ model: asked, prompt: 'Where?' })),
        );
        return all.filter(({ status }) => status === 'fulfilled').length;
      },
      { tokens: 100 },
    );
    expect(most).toBe(1);
    expect(outcome).toMatchObject({ outcome: { kind: 'value' } });
    expect(result.usage.inputTokens + result.usage.outputTokens).toBeLessThanOrEqual(100);
    expect(result.usage.inputTokens).toBeGreaterThan(20);
  });

  it('streams to readers of the run, and counts what it used also when nobody reads on', async () => {
    const { model } = await served({ text: 'one two three', usage: { inputTokens: 7, outputTokens: 3 } });
    const heard: unknown[] = [];
    const tool = make('ask', async (_, context) => streamText({ model: context.model(model), prompt: 'Count' }).text, {
      effect: 'read',
    });
    const made = world({ planner: script(call('ask'), finish('done')), tools: [tool] });
    const run = await start(made);
    for await (const event of run.events()) if (event.type === 'tool.chunk') heard.push(event.chunk);
    expect(heard.map((chunk) => (chunk as { text: string }).text).join('')).toBe('one two three');
    expect(heard[0]).toMatchObject({ model: 'small' });
    expect(await run.result()).toMatchObject({ usage: { inputTokens: 7, outputTokens: 3 } });
    const left = await play(async (_, context) => {
      const { stream } = await context.model(model).doStream({
        prompt: [{ role: 'user', content: [{ type: 'text', text: 'Count' }] }],
      });
      const reader = stream.getReader();
      await reader.read();
      await reader.cancel();
    });
    expect(left.result.usage).toMatchObject({ estimated: true });
    expect(left.result.usage.inputTokens).toBeGreaterThan(0);
  });

  const PROMPT = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'q '.repeat(200) }] }];
  const LONG = { text: 'one two three four five', usage: { inputTokens: 250, outputTokens: 50 } };

  it.each([
    'value',
    'error',
  ])('is counted by an estimate when the call ends with a %s and leaves its stream', async (end) => {
    const { result } = await play(
      async (_, context) => {
        const { stream } = await context.model(scriptedModel(() => LONG)).doStream({ prompt: PROMPT });
        await stream.getReader().read();
        if (end === 'error') throw new Error('parse failed');
        return 'saw it';
      },
      { tokens: 5_000 },
    );
    expect(result.usage).toMatchObject({ estimated: true });
    expect(result.usage.inputTokens).toBeGreaterThan(50);
  });

  it('has room set aside for its thoughts, too: a second one waits for what they leave', async () => {
    let [under, most] = [0, 0];
    const claude = {
      ...scriptedModel(() => LONG),
      ...{ provider: 'anthropic.messages', modelId: 'claude-x' },
      doGenerate: async (options: LanguageModelV4CallOptions) => {
        under += 1;
        most = Math.max(most, under);
        await new Promise((resolve) => setImmediate(resolve));
        under -= 1;
        return scriptedModel(() => LONG).doGenerate(options);
      },
    };
    const providerOptions = { anthropic: { thinking: { type: 'enabled', budgetTokens: 2_000 } } };
    const { result } = await play(
      async (_, context) => {
        const request = { prompt: PROMPT, maxOutputTokens: 100, providerOptions };
        await Promise.all([1, 2].map(() => context.model(claude).doGenerate(request)));
      },
      { tokens: 3_500 },
    );
    expect([most, result.usage.inputTokens]).toEqual([1, 500]);
  });

  it('does not hold up the next request of its call with a stream that nobody reads', async () => {
    let asked = 0;
    const model = scriptedModel(() => {
      asked += 1;
      return LONG;
    });
    const { outcome, result } = await play(
      async (_, context) => {
        for (let times = 0; times < 9; times += 1) {
          const { stream } = await context.model(model).doStream({ prompt: PROMPT });
          await stream.getReader().read();
        }
      },
      { tokens: 800 },
    );
    expect(outcome).toMatchObject({ outcome: { error: { code: 'budget_exceeded' } } });
    expect(asked).toBeLessThan(4);
    expect(result.usage.inputTokens).toBe(asked * 250);
  });

  it('is counted by an estimate of the prompt when its call is aborted before the reply', async () => {
    const model = scriptedModel(() => LONG);
    const entered = gate();
    const deaf = {
      ...model,
      doGenerate: () => {
        entered.open();
        return new Promise<never>(() => {});
      },
    };
    const tool = make('ask', (_, context) => context.model(deaf).doGenerate({ prompt: PROMPT }), {
      effect: 'read',
      timeoutMs: 1_000,
      retries: 0,
    });
    const made = world({ planner: script(call('ask'), finish('done')), tools: [tool] });
    const run = await start(made);
    await entered.opened;
    made.clock.advance(1_000);
    const { usage } = await run.result();
    expect(usage).toMatchObject({ estimated: true });
    expect(usage.inputTokens).toBeGreaterThan(50);
  });

  it('is one of its agent by name, or of another agent; a name that none has is refused', async () => {
    const model = scriptedModel([
      { calls: [{ tool: 'ask', args: {} }], usage: { inputTokens: 5, outputTokens: 5 } },
      { text: 'from the tool', usage: { inputTokens: 3, outputTokens: 3 } },
      { text: 'done', usage: { inputTokens: 5, outputTokens: 5 } },
    ]);
    const tool = make(
      'ask',
      async (_, context) => {
        const unknown = await Promise.resolve()
          .then(() => context.model('nobody'))
          .catch((error: unknown) => error);
        expect(unknown).toMatchObject({ code: 'invalid_config' });
        expect(() => context.model({} as never)).toThrow(expect.objectContaining({ code: 'invalid_config' }));
        return (await generateText({ model: context.model('big'), prompt: 'q' })).text;
      },
      { effect: 'read' },
    );
    const made = world({ planner: react({ model: { model, name: 'big' } }), tools: [tool] });
    const run = await start(made);
    const result = await run.result();
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({ outcome: { value: 'from the tool' } });
    expect(result).toMatchObject({ usage: { inputTokens: 13, outputTokens: 13 } });
  });

  it('is counted when the call fails afterwards, and when its process dies', async () => {
    const { model } = await served({ text: 'x', usage: { inputTokens: 50, outputTokens: 5 } });
    const failed = await play(async (_, context) => {
      await generateText({ model: context.model(model), prompt: 'q' });
      throw new Error('broken');
    });
    expect(failed).toMatchObject({
      outcome: { outcome: { kind: 'error' }, usage: { inputTokens: 50 } },
      result: { usage: { inputTokens: 50 } },
    });
    const journal = memoryJournal();
    const asked = gate();
    const tool = make(
      'ask',
      async (_, context) => {
        await generateText({ model: context.model(model), prompt: 'q' });
        asked.open();
        await new Promise(() => {});
      },
      { effect: 'read' },
    );
    let isDead = false;
    const dying = world({
      planner: script(call('ask')),
      tools: [tool],
      journal: changed(journal, {
        append: (request) => (isDead ? Promise.reject(new Error('dead')) : journal.append(request)),
      }),
    });
    const run = await start(dying);
    await asked.opened;
    isDead = true;
    const { totals } = await dying.runtime.run(run.id).state();
    expect(totals).toMatchObject({ inputTokens: 50, outputTokens: 5 });
  });

  it('asks nothing any more when the call has ended', async () => {
    const { server, model } = await served({ text: 'x', usage: { inputTokens: 1, outputTokens: 1 } });
    let kept: ToolContext | undefined;
    await play((_, context) => {
      kept = context;
      return 1;
    });
    await expect(generateText({ model: (kept as ToolContext).model(model), prompt: 'q' })).rejects.toMatchObject({
      code: 'cancelled',
    });
    expect(server.requests).toHaveLength(0);
  });
});

describe('a context that is kept for longer than its call', () => {
  it('takes nothing for the call any more: it stores nothing', async () => {
    let kept: ToolContext | undefined;
    const later = make('later', async () => {
      const context = kept as ToolContext;
      // Nobody is told.
      context.emit('too late');
      const saved = await context.saveArtifact('text', { mime: 'text/plain' }).catch((error: unknown) => error);
      expect(saved).toMatchObject({ code: 'cancelled', message: expect.stringContaining('The call of ask has ended') });
      // What nobody waits for does not end the process.
      void context.saveArtifact('text', { mime: 'text/plain' });
    });
    const ask = make('ask', (_, context) => {
      kept = context;
      context.emit('in time');
    });
    const made = world({ planner: script(call('ask'), call('later'), finish('done')), tools: [ask, later] });
    const run = await made.runtime.start('q', { identity: local('ana') });
    expect(await run.result()).toMatchObject({ reason: 'goal' });
    const [, outcome] = (await run.state()).steps.map(({ calls }) => calls[0]?.outcome);
    expect(outcome).toMatchObject({ kind: 'value' });
  });

  it('still counts what was spent while the run goes on, and nothing when it has ended', async () => {
    let kept: ToolContext | undefined;
    const ask = make('ask', (_, context) => {
      kept = context;
    });
    const later = make('later', () => (kept as ToolContext).spent({ tokens: 7 }));
    const made = world({ planner: script(call('ask'), call('later'), finish('done')), tools: [ask, later] });
    const run = await start(made);
    expect(await run.result()).toMatchObject({ reason: 'goal', usage: { inputTokens: 7 } });
    expect(await entriesOf(made.journal, run, 'call_spent')).toMatchObject([{ step: 0, call: 0 }]);
    const before = (await made.journal.read(run.id)).length;
    await expect((kept as ToolContext).spent({ tokens: 1 })).rejects.toMatchObject({
      code: 'cancelled',
      message: expect.stringContaining('The call of ask has ended'),
    });
    void (kept as ToolContext).spent({ tokens: 1 });
    await expect((kept as ToolContext).spent({ tokens: -1 })).rejects.toMatchObject({ code: 'invalid_config' });
    expect(await made.journal.read(run.id)).toHaveLength(before);
    expect(made.faults).toEqual([]);
  });

  it('counts nothing that the end of the run overtakes', async () => {
    const [ending, go] = [gate(), gate()];
    const journal = memoryJournal();
    const late: Promise<unknown>[] = [];
    let kept: ToolContext | undefined;
    const ask = make('ask', (_, context) => {
      kept = context;
    });
    const made = world({
      planner: script(call('ask'), finish('done')),
      tools: [ask],
      journal: changed(journal, {
        append: async (request) => {
          if (request.entries.at(-1)?.kind === 'finished') {
            ending.open();
            await go.opened;
          }
          return journal.append(request);
        },
      }),
    });
    const run = await start(made);
    await ending.opened;
    late.push((kept as ToolContext).spent({ tokens: 1 }).catch((error: unknown) => error));
    go.open();
    expect(await run.result()).toMatchObject({ reason: 'goal', usage: { inputTokens: 0 } });
    expect(await Promise.all(late)).toMatchObject([{ code: 'cancelled' }]);
    expect(made.faults).toEqual([]);
  });
});

describe('what a tool says that it has used', () => {
  it('is counted at once, and the limit binds by it', async () => {
    const { result, outcome } = await play(
      async (_, context) => {
        await context.spent({ tokens: 1_000_001, usd: 0.25 });
        throw new Error('broken all the same');
      },
      { tokens: 1_000 },
    );
    expect(result).toMatchObject({ reason: 'max_tokens', usage: { inputTokens: 1_000_001, costMicroUsd: 250_000 } });
    expect(outcome).toMatchObject({ usage: { costMicroUsd: 250_000 } });
  });

  it('is counted although nobody waits for it', async () => {
    const { result } = await play((_, context) => {
      context.spent({ usd: 0.5 }).catch(() => {});
      return 'x';
    });
    expect(result.usage.costMicroUsd).toBe(500_000);
  });

  it.each([
    { tokens: -1 },
    { tokens: Number.NaN },
    { usd: Number.POSITIVE_INFINITY },
    { usd: '1' },
    { token: 1 },
    { tokens: 1e17 },
    { usd: 1e10 },
  ])('is a number from 0 up: %j is refused, and nothing is counted', async (given) => {
    const { result, outcome } = await play((_, context) => context.spent(given as never));
    expect(outcome).toMatchObject({ outcome: { error: { code: 'invalid_config' } } });
    expect(result.usage).toMatchObject({ inputTokens: 0, costMicroUsd: 0 });
  });

  it('is counted in parts of a millionth of a dollar, too, each rounded up, and exact amounts as they are', async () => {
    const { result } = await play(
      async (_, context) => {
        for (let asked = 0; asked < 200; asked += 1) await context.spent({ usd: 0.0000004 });
        await context.spent({ usd: 1.1 });
      },
      { costUsd: 2 },
    );
    expect(result.usage.costMicroUsd).toBe(1_100_200);
  });

  it('leaves less for priced calls and for tasks beside it', async () => {
    const told = gate();
    const spender = make(
      'ask',
      async (_, context) => {
        await context.spent({ usd: 0.9 });
        told.open();
      },
      { effect: 'read' },
    );
    const dear = make('dear', () => 'bought', { effect: 'read', costUsd: 0.5 });
    const steps = [
      { id: 'ask', type: 'tool' as const, toolId: 'ask', after: [] },
      { id: 'dear', type: 'tool' as const, toolId: 'dear', after: ['ask'] },
    ];
    const made = world({ planner: graph({ plan: { steps } }), tools: [spender, dear], limits: { costUsd: 1 } });
    const run = await start(made);
    await run.result();
    const [, second] = (await run.state()).steps[0]?.calls ?? [];
    expect(second).toMatchObject({ outcome: { error: { code: 'budget_exceeded' } } });
  });
});

describe('in a task', () => {
  it('it counts against the share that the owner lent, and in the owner', async () => {
    const model = scriptedModel(() => ({ text: 'x', usage: { inputTokens: 30, outputTokens: 10 } }));
    const ask = make(
      'ask',
      async (_, context) => {
        for (let times = 0; times < 9; times += 1) await generateText({ model: context.model(model), prompt: 'q' });
      },
      { effect: 'read' },
    );
    const helper = agent({
      name: 'helper',
      planner: { name: 'inner', next: script(call('ask'), finish('done')) },
      tools: [ask],
      limits: { tokens: 100 },
    });
    const help: AgentTool = { name: 'help', description: 'help', inputSchema: ANY, effect: 'read', agent: helper };
    const made = world({ planner: script(call('help'), finish('done')), tools: [help], limits: { tokens: 1_000 } });
    const run = await start(made);
    const { usage } = await run.result();
    const used = usage.inputTokens + usage.outputTokens;
    expect(used).toBeGreaterThanOrEqual(40);
    expect(used).toBeLessThanOrEqual(120);
  });

  it('and in a node of a flow, whose budget binds', async () => {
    const model = scriptedModel(() => ({ text: 'x', usage: { inputTokens: 30, outputTokens: 10 } }));
    const ask = node('ask', {
      effect: 'read',
      execute: async (n: number, context) => {
        for (let times = 0; times < n; times += 1) await generateText({ model: context.model(model), prompt: 'q' });
        return n;
      },
    });
    const again = node('again', {
      effect: 'read',
      execute: async (n: number, context) => (await generateText({ model: context.model(model), prompt: `${n}` })).text,
    });
    const asks = flow({
      name: 'asks',
      inputSchema: z.number(),
      entry: ask,
      exit: again,
      budget: { tokens: 84 },
      edges: [edge(ask, again)],
    });
    const runtime = placed([asks]);
    const run = await asks.start(runtime, 2, { identity: local('ana') });
    expect(await run.result()).toMatchObject({ status: 'failed', error: { data: { node: 'again' } } });
    await until(async () => (await run.state()).ending !== null);
    expect((await run.state()).totals).toMatchObject({ inputTokens: 60, outputTokens: 20 });
  });
});
