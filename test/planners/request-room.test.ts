/** How many tokens a request and its reply take at most: what a provider has counted, what its package adds, and what tries before have used. */
import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock';
import { createAnthropic } from '@ai-sdk/anthropic';
import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { describe, expect, it, onTestFinished } from 'vitest';
import { estimateTokens } from '#model';
import { openaiCompatible } from '#model/openai-compatible';
import { type ReactOptions, react } from '#planners/react';
import { openaiServer, type ReplyFunction, type ServerHandler, scriptedModel, VirtualClock } from '#testing';
import { collect } from '../kit/events.ts';
import { echo, make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';
import { type WireAnswer, wireServer } from '../wire/kit.ts';
import { anthropic } from '../wire/replies/anthropic.ts';

const PRICES = { input: 1, output: 3 };

/** Calls a tool in each reply, and writes as much as it may. */
const greedy =
  (count: (request: LanguageModelV4CallOptions) => number): ReplyFunction =>
  (request, n) => ({
    calls: [{ tool: 'look', args: { n } }],
    usage: { inputTokens: count(request), outputTokens: Math.min(request.maxOutputTokens ?? 9_999, 150) },
  });

/** Tokens over the limit, for limits one after the other. */
async function overshoots(count: (request: LanguageModelV4CallOptions) => number, found: string): Promise<number[]> {
  const over: number[] = [];
  for (let tokens = 3_000; tokens <= 12_000; tokens += 750) {
    const planner = react({ model: scriptedModel(greedy(count)) });
    const look = make('look', () => found, { effect: 'read' });
    const made = world({ planner, tools: [look] });
    const { reason, usage } = await (await start(made, { limits: { tokens } })).result().then((result) => {
      if (result.status !== 'finished') throw new Error(JSON.stringify(result));
      return result;
    });
    expect(reason).toBe('max_tokens');
    over.push(Math.max(0, usage.inputTokens + usage.outputTokens - tokens));
  }
  return over;
}

describe('a limit on tokens is kept', () => {
  it('where a script has a token for each character', async () => {
    // Chinese by the character, everything else as we count it.
    const count = (request: LanguageModelV4CallOptions): number => {
      const chinese = JSON.stringify(request.prompt).match(/\p{Script=Han}/gu)?.length ?? 0;
      return estimateTokens(request) + chinese - Math.floor(estimateTokens({ prompt: [user('文'.repeat(chinese))] }));
    };
    expect(Math.max(...(await overshoots(count, '在奥斯陆今天是晴天'.repeat(60))))).toBeLessThan(20);
  });

  it('where a provider counts otherwise than we do: its own count of the last request is known', async () => {
    const over = await overshoots((request) => Math.ceil(estimateTokens(request) * 1.4), 'sunny '.repeat(50));
    // What was added since is an estimate.
    expect(Math.max(...over)).toBeLessThan(60);
  });
});

function user(text: string) {
  return { role: 'user' as const, content: [{ type: 'text' as const, text }] };
}

describe('a provider that adds the budget of thoughts to the longest reply', () => {
  const DONE = { json: anthropic.whole({ said: [{ text: 'Done.' }], stop: 'end' }) };
  const thinking = (budgetTokens: number) => ({ anthropic: { thinking: { type: 'enabled', budgetTokens } } });
  const sonnet = (baseURL: string) => createAnthropic({ apiKey: 'k', baseURL })('claude-sonnet-4-5');
  const bedrock = (baseURL: string) =>
    createAmazonBedrock({ apiKey: 'k', baseURL })('anthropic.claude-sonnet-4-5-20250929-v1:0');

  async function serving(answer: WireAnswer = DONE) {
    const server = await wireServer([answer]);
    onTestFinished(() => server.close());
    return server;
  }

  async function asked(model: ReactOptions['model'], providerOptions: ReactOptions['providerOptions'], limits: object) {
    const made = world({ planner: react({ model, prices: PRICES, ...(providerOptions && { providerOptions }) }) });
    return (await start(made, { limits })).result();
  }

  it('is asked for so much less', async () => {
    const { url, requests } = await serving();
    await asked(sonnet(url), thinking(2_000), { tokens: 6_000 });
    await asked(sonnet(url), { anthropic: { thinking: { type: 'enabled' } } }, { costUsd: 0.006 });
    await asked(sonnet(url), undefined, { tokens: 6_000 });
    await asked(sonnet(url), { anthropic: { thinking: { type: 'disabled' } } }, { tokens: 6_000 });
    const [most, byDefault, without, disabled] = requests.map(({ body }) => Number(body['max_tokens']));
    expect(requests[0]?.body['thinking']).toMatchObject({ budget_tokens: 2_000 });
    expect(most).toBe(without);
    expect(disabled).toBe(without);
    expect(most).toBeLessThan(6_000);
    expect(byDefault).toBeLessThan(2_000);
  });

  it('behind Bedrock too', async () => {
    const { url, requests } = await serving({ status: 400, json: { message: 'no' } });
    const providerOptions = { bedrock: { reasoningConfig: { type: 'enabled', budgetTokens: 2_000 } } };
    await asked(bedrock(url), providerOptions, { tokens: 6_000 });
    const { inferenceConfig } = requests[0]?.body as { inferenceConfig: { maxTokens: number } };
    expect(inferenceConfig.maxTokens).toBeGreaterThan(4_000);
    expect(inferenceConfig.maxTokens).toBeLessThan(6_000);
  });

  it('is not asked without room for its thoughts', async () => {
    const { url, requests } = await serving();
    const result = await asked(sonnet(url), thinking(8_000), { tokens: 6_000 });
    expect(result).toMatchObject({ reason: 'max_tokens', metadata: { budget: 'tokens', needs: expect.any(Number) } });
    expect(requests).toHaveLength(0);
    const needs = result.status === 'finished' ? Number(result.metadata?.['needs']) : 0;
    expect(needs).toBeGreaterThan(8_016);
    expect(await asked(sonnet(url), thinking(8_000), { tokens: needs })).toMatchObject({ reason: 'goal' });
    expect(requests[0]?.body['max_tokens']).toBe(8_016);
  });
});

describe('a stream that breaks off, and is then refused', () => {
  const TEXT = 'one two three four five six seven eight';
  const broken = { text: TEXT, breakAfterEvents: 5 };
  const refused = { error: { status: 400, message: 'Unknown parameter.' } };

  async function play(replies: ServerHandler, options: Partial<ReactOptions> = {}, limits: object = {}) {
    const server = await openaiServer(replies);
    onTestFinished(() => server.close());
    const model = openaiCompatible({ baseUrl: server.url, model: 'm' });
    const planner = react({ model, prices: PRICES, ...options });
    const made = world({ planner, tools: [echo], random: () => 0 });
    const run = await start(made, { limits });
    return { made, run, server };
  }

  it('counts what it had used, and says what was wrong', async () => {
    const { run } = await play((_, index) => (index === 0 ? broken : refused));
    const reading = collect(run);
    const result = await run.result();
    await reading;
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'planner_failed', message: expect.stringContaining('Unknown parameter.') },
      usage: { estimated: true },
    });
    expect(result.usage.inputTokens).toBeGreaterThan(200);
    expect(result.usage.costMicroUsd).toBe(result.usage.inputTokens + 3 * result.usage.outputTokens);
  });

  it('so does an error in the middle of it that no other try can mend', async () => {
    const { run } = await play(() => ({ text: TEXT, errorEvent: { afterEvents: 4, message: 'Too odd.', code: 400 } }));
    const reading = collect(run);
    const result = await run.result();
    await reading;
    expect(result).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('Too odd.') } });
    expect(result.usage.inputTokens).toBeGreaterThan(200);
  });

  it('counts also where the request is made again in another format, and what is left is less', async () => {
    const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] } as const;
    const most: number[] = [];
    const replies: ServerHandler = ({ max_tokens }, index) => {
      most.push(Number(max_tokens));
      return [broken, refused][index] ?? { text: '{"n": 1}', usage: { inputTokens: 300, outputTokens: 10 } };
    };
    const { run, server } = await play(replies, { answerSchema: schema }, { tokens: 5_000 });
    const reading = collect(run);
    const result = await run.result();
    await reading;
    expect(result).toMatchObject({ reason: 'goal', usage: { estimated: true } });
    expect(server.requests).toHaveLength(3);
    expect(result.usage.inputTokens).toBeGreaterThan(500);
    expect(most[2]).toBeLessThan((most[0] ?? 0) - 200);
  });

  it('counts when a cancel comes before the next try', async () => {
    let waits = false;
    class Waiting extends VirtualClock {
      override after(delayMs: number, wake: () => void): () => void {
        // Everything else of a model call takes minutes.
        waits ||= delayMs <= 500;
        return super.after(delayMs, wake);
      }
    }
    const { run, made } = await play(() => broken, { clock: new Waiting() });
    const reading = collect(run);
    await until(() => waits);
    await run.cancel();
    const result = await run.result();
    await reading;
    expect(result).toMatchObject({ reason: 'cancelled', usage: { estimated: true } });
    expect(made.faults).toEqual([]);
  });
});
