/** What tells providers' caches what to keep, as it arrives on the wire with the real packages. */
import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock';
import { createAmazonBedrockAnthropic } from '@ai-sdk/amazon-bedrock/anthropic';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createAzure } from '@ai-sdk/azure';
import { createMistral } from '@ai-sdk/mistral';
import { createMoonshotAI } from '@ai-sdk/moonshotai';
import { createOpenAI } from '@ai-sdk/openai';
import type { LanguageModelV4, LanguageModelV4Message } from '@ai-sdk/provider';
import { createXai } from '@ai-sdk/xai';
import { describe, expect, it } from 'vitest';
import { isJsonObject, type Json, type JsonObject, local } from '#core';
import type { Journal } from '#journal';
import { openaiCompatible } from '#model/openai-compatible';
import { type ReactOptions, react } from '#planners/react';
import type { RunResult } from '#runtime';
import { tool } from '#tools';
import { start, world } from '../kit/world.ts';
import { type WireAnswer, type WireRequest, wireServer } from './kit.ts';

const apiKey = 'k';
const weather = tool({
  name: 'weather',
  description: 'The weather in a city.',
  effect: 'read',
  inputSchema: { type: 'object', properties: { city: { type: 'string' } } },
  execute: () => 'sunny',
});
const CLOCK = { name: 'clock', description: 'The time.', effect: 'read', inputSchema: { type: 'object' } } as const;
const clock = tool({ ...CLOCK, execute: () => 'noon' });

interface Played {
  readonly requests: readonly WireRequest[];
  readonly results: readonly RunResult[];
}

/** A run for each of the sessions, one after another. */
async function play(
  answers: readonly WireAnswer[],
  model: (url: string) => ReactOptions['model'],
  { sessions = ['s'], ...more }: Partial<ReactOptions> & { readonly sessions?: readonly string[] } = {},
): Promise<Played> {
  const server = await wireServer(answers);
  try {
    const made = world({ planner: react({ model: model(server.url), ...more }), tools: [weather, clock] });
    const results: RunResult[] = [];
    for (const session of sessions) {
      const run = await start(made, { query: 'What is the weather?', identity: local('ana', { session }) });
      results.push(await run.result());
    }
    await made.runtime.close();
    return { requests: server.requests, results };
  } finally {
    await server.close();
  }
}

function message(content: readonly Json[], usage: JsonObject = { input_tokens: 9, output_tokens: 5 }): WireAnswer {
  const said = { type: 'message', id: 'm', role: 'assistant', model: 'claude-x', content, stop_sequence: null, usage };
  return { json: { ...said, stop_reason: 'end_turn' } };
}

const call = (id: string, name = 'weather'): Json => ({ type: 'tool_use', id, name, input: {} });
const done = message([{ type: 'text', text: 'Sunny.' }]);
const claude = (url: string, id = 'claude-sonnet-4-5'): LanguageModelV4 =>
  createAnthropic({ apiKey, baseURL: url })(id);

/** Where marks stand in a body of Anthropic's protocol: `tools 1`, `system 0`, or the number of a block counted over all messages. */
function marksIn({ body }: WireRequest): Readonly<Record<string, Json>> {
  const { tools = [], system = [], messages } = body as Record<string, JsonObject[]>;
  const blocks = (messages ?? []).flatMap(({ content }) => content as JsonObject[]);
  const all = { tools, system, block: blocks };
  return Object.fromEntries(
    Object.entries(all).flatMap(([where, items]) =>
      items.flatMap((item, index) =>
        item['cache_control'] === undefined ? [] : [[`${where} ${index}`, item['cache_control']]],
      ),
    ),
  );
}

const placesIn = (request: WireRequest | undefined): readonly string[] =>
  request === undefined ? [] : Object.keys(marksIn(request));

/** The blocks in the order in which a cache takes them, each with the role of its message, without marks. */
function blocksOf({ body }: WireRequest): readonly string[] {
  const messages = (body['messages'] as JsonObject[]).flatMap(({ role, content }) =>
    (content as JsonObject[]).map((block) => [role, block]),
  );
  return [body['tools'], body['system'], ...messages].map((part) => JSON.stringify(unmarked(part as Json)));
}

function unmarked(value: Json): Json {
  if (Array.isArray(value)) return value.map(unmarked);
  if (!isJsonObject(value)) return value;
  const kept = Object.entries(value).filter(([key]) => key !== 'cache_control');
  return Object.fromEntries(kept.map(([key, each]) => [key, unmarked(each as Json)]));
}

describe('marks for the cache of Anthropic', () => {
  it('stand at the tools, the system prompt, where the request before ended, and the end', async () => {
    const { requests } = await play([message([call('a')]), message([call('b'), call('c', 'clock')]), done], claude);
    const five = { type: 'ephemeral' };
    expect(requests.map(marksIn)).toEqual([
      { 'tools 1': five, 'system 0': five, 'block 0': five },
      { 'tools 1': five, 'system 0': five, 'block 0': five, 'block 2': five },
      { 'tools 1': five, 'system 0': five, 'block 2': five, 'block 6': five },
    ]);
  });

  it('move without a change of what stands before them, and never behind a reminder', async () => {
    const { requests } = await play([message([call('a')]), message([]), message([call('b')]), done], claude);
    expect(requests).toHaveLength(4);
    const bodies = requests.map(blocksOf);
    // The third has a reminder, which no later request has.
    const [first, second, third, fourth] = bodies as [string[], string[], string[], string[]];
    expect(third.at(-1)).toContain('reminder');
    expect(second.slice(0, first.length)).toEqual(first);
    expect(third.slice(0, second.length)).toEqual(second);
    expect(fourth.slice(0, third.length - 1)).toEqual(third.slice(0, -1));
    const end = third.length - 4;
    expect(placesIn(requests[2])).toContain(`block ${end}`);
    expect(placesIn(requests[2])).not.toContain(`block ${end + 1}`);
    expect(requests.every((request) => placesIn(request).length <= 4)).toBe(true);
  });

  it('are the same in another process', async () => {
    const asks = tool({ ...CLOCK, needsApproval: true, execute: () => 'noon' });
    const bodies: Json[] = [];
    for (const elsewhere of [false, true]) {
      const server = await wireServer([
        message([call('a')]),
        message([call('b', 'clock')]),
        message([call('c')]),
        done,
      ]);
      const begin = (journal?: Journal) =>
        world({ planner: react({ model: claude(server.url) }), tools: [weather, asks], ...(journal && { journal }) });
      const first = begin();
      const identity = local('ana', { run: 'run_asks' });
      const run = await start(first, { identity });
      expect((await run.result()).status).toBe('paused');
      const second = elsewhere ? begin(first.journal) : first;
      const answered = second.runtime.run(run.id);
      await answered.approve();
      expect((await answered.result()).status).toBe('finished');
      bodies.push(server.requests.map(({ body }) => body));
      for (const { runtime } of new Set([first, second])) await runtime.close();
      await server.close();
    }
    expect(bodies[1]).toEqual(bodies[0]);
    expect(bodies[1]).toHaveLength(4);
  });

  it('last an hour when the entry says so, and are not set when it says false', async () => {
    const hour = await play([done], (url) => ({ model: claude(url), cache: { ttl: '1h' } }));
    expect(
      new Set(Object.values(marksIn(hour.requests[0] as WireRequest)).map((mark) => JSON.stringify(mark))),
    ).toEqual(new Set(['{"type":"ephemeral","ttl":"1h"}']));
    const none = await play([message([call('a')]), done], (url) => ({ model: claude(url), cache: false }));
    expect(none.requests.flatMap(placesIn)).toEqual([]);
  });

  it('are set behind Bedrock too, for models that it caches', async () => {
    const bedrock = (url: string, id: string) =>
      createAmazonBedrockAnthropic({ apiKey, baseURL: url, region: 'x' })(id);
    const { requests } = await play([message([call('a')]), done], (url) =>
      bedrock(url, 'eu.anthropic.claude-sonnet-4-5-v1:0'),
    );
    expect(placesIn(requests[1])).toEqual(['tools 1', 'system 0', 'block 0', 'block 2']);
    const old = await play([done], (url) => bedrock(url, 'anthropic.claude-3-haiku-20240307-v1:0'));
    expect(placesIn(old.requests[0])).toEqual([]);
  });
});

describe("the user's own marks", () => {
  const user = (text: string, cacheControl?: JsonObject): LanguageModelV4Message => ({
    role: 'user',
    content: [{ type: 'text', text, ...(cacheControl && { providerOptions: { anthropic: { cacheControl } } }) }],
  });
  const mark = { type: 'ephemeral' };

  it('stay, and leave the rest of the four to ours', async () => {
    const { requests } = await play([message([call('a')]), done], claude, {
      buildPrompt: (_, messages) => {
        const [system, ...rest] = messages();
        return [system as LanguageModelV4Message, user('one', mark), user('two', mark), user('three'), ...rest];
      },
    });
    expect(requests.map(placesIn)).toEqual([
      ['system 0', 'block 0', 'block 1', 'block 3'],
      ['system 0', 'block 0', 'block 1', 'block 5'],
    ]);
  });

  it('may be all four', async () => {
    const { requests } = await play([done], claude, {
      buildPrompt: (_, messages) => [...messages(), ...['a', 'b', 'c', 'd'].map((text) => user(text, mark)), user('e')],
    });
    expect(requests.map(placesIn)).toEqual([['block 1', 'block 2', 'block 3', 'block 4']]);
  });

  it('of an hour have marks of an hour before them, as the provider wants it', async () => {
    const { requests } = await play([done], claude, {
      buildPrompt: (_, messages) => {
        const [system, ...rest] = messages();
        return [system as LanguageModelV4Message, user('one', { ...mark, ttl: '1h' }), ...rest];
      },
    });
    const hour = { ...mark, ttl: '1h' };
    expect(requests.map(marksIn)).toEqual([{ 'tools 1': hour, 'system 0': hour, 'block 0': hour, 'block 1': mark }]);
  });

  it('of the whole request keep the end for themselves', async () => {
    const { requests } = await play([message([call('a')]), done], claude, {
      providerOptions: { anthropic: { cacheControl: mark } },
    });
    expect(requests.map(({ body }) => body['cache_control'])).toEqual([mark, mark]);
    expect(requests.map(placesIn)).toEqual([
      ['tools 1', 'system 0'],
      ['tools 1', 'system 0', 'block 0'],
    ]);
  });
});

describe('cache points of Bedrock', () => {
  const answer: WireAnswer = {
    json: {
      output: { message: { role: 'assistant', content: [{ text: 'Sunny.' }] } },
      stopReason: 'end_turn',
      usage: { inputTokens: 9, outputTokens: 5, totalTokens: 14 },
    },
  };
  const first: WireAnswer = {
    json: {
      ...(answer.json as JsonObject),
      output: {
        message: { role: 'assistant', content: [{ toolUse: { toolUseId: 'a', name: 'weather', input: {} } }] },
      },
      stopReason: 'tool_use',
    },
  };
  const model = (url: string, id: string) => createAmazonBedrock({ apiKey, baseURL: url, region: 'x' })(id);
  const pointsIn = ({ body }: WireRequest): Json => {
    const { system, messages } = body as Record<string, JsonObject[]>;
    const contents = (messages ?? []).map(({ content }) => content as JsonObject[]);
    return [system ?? [], ...contents].map((items) =>
      items.map((item) => item['cachePoint'] ?? Object.keys(item)[0] ?? null),
    );
  };

  it('follow the system prompt, where the request before ended, and the end', async () => {
    const { requests } = await play([first, answer], (url) => model(url, 'us.anthropic.claude-sonnet-4-5-v1:0'));
    const point = { type: 'default' };
    expect(requests.map(pointsIn)).toEqual([
      [
        ['text', point],
        ['text', point],
      ],
      [['text', point], ['text', point], ['toolUse'], ['toolResult', point]],
    ]);
  });

  it('are set for models that may refuse them only when the entry says so', async () => {
    const nova = await play([answer], (url) => model(url, 'amazon.nova-pro-v1:0'));
    expect(JSON.stringify(nova.requests)).not.toContain('cachePoint');
    const asked = await play([answer], (url) => ({ model: model(url, 'amazon.nova-pro-v1:0'), cache: { ttl: '5m' } }));
    expect(pointsIn(asked.requests[0] as WireRequest)).toEqual([
      ['text', { type: 'default' }],
      ['text', { type: 'default' }],
    ]);
  });
});

describe('the key of the cache', () => {
  const chat: WireAnswer = {
    json: {
      id: 'c',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Sunny.' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 },
    },
  };
  const text = { type: 'output_text', text: 'Sunny.', annotations: [] };
  const responses: WireAnswer = {
    json: {
      id: 'r',
      object: 'response',
      created_at: 1,
      status: 'completed',
      model: 'm',
      output: [{ type: 'message', id: 'm', role: 'assistant', status: 'completed', content: [text] }],
      usage: { input_tokens: 9, output_tokens: 5, total_tokens: 14 },
    },
  };
  const openai = (baseURL: string) => createOpenAI({ apiKey, baseURL });
  const azure = (baseURL: string) => createAzure({ apiKey, baseURL });
  const providers: Readonly<Record<string, readonly [WireAnswer, (url: string) => LanguageModelV4]>> = {
    'openai chat': [chat, (url) => openai(url).chat('gpt-5')],
    'openai responses': [responses, (url) => openai(url).responses('gpt-5')],
    'azure chat': [chat, (url) => azure(url).chat('gpt-5')],
    'azure responses': [responses, (url) => azure(url).responses('gpt-5')],
    mistral: [chat, (url) => createMistral({ apiKey, baseURL: url })('mistral-large-latest')],
    moonshotai: [chat, (url) => createMoonshotAI({ apiKey, baseURL: url })('kimi-k2')],
    xai: [responses, (url) => createXai({ apiKey, baseURL: url }).responses('grok-4')],
  };
  const keysOf = ({ requests }: Played): Json[] => requests.map(({ body }) => body['prompt_cache_key'] ?? null);

  it.each(Object.entries(providers))('is that of the session, and tells nobody: %s', async (_, [answer, model]) => {
    const [first, second, other] = keysOf(await play([answer], model, { sessions: ['s', 's', 't'] }));
    expect(first).toMatch(/^[\w-]{43}$/);
    expect(second).toBe(first);
    expect(other).not.toBe(first);
    const off = await play([answer], (url) => ({ model: model(url), cache: false }));
    expect(keysOf(off)).toEqual([null]);
  });

  it.each([
    'openai chat',
    'openai responses',
    'azure chat',
    'azure responses',
  ])("is the user's own where there is one: %s", async (name) => {
    const [answer, model] = providers[name] as [WireAnswer, (url: string) => LanguageModelV4];
    const given = { openai: { promptCacheKey: 'mine', store: false } };
    expect(keysOf(await play([answer], model, { providerOptions: given }))).toEqual(['mine']);
  });

  it("leaves Azure's other options where they are", async () => {
    const [answer, model] = providers['azure responses'] as [WireAnswer, (url: string) => LanguageModelV4];
    for (const name of ['openai', 'azure']) {
      const providerOptions = { [name]: { store: false } };
      const { requests } = await play([answer], model, { providerOptions, parallelToolCalls: false });
      const sent = { store: false, parallel_tool_calls: false, prompt_cache_key: expect.any(String) };
      expect(requests[0]?.body).toMatchObject(sent);
    }
  });

  it('is not sent to servers that are not known to take it', async () => {
    expect(keysOf(await play([chat], (url) => openaiCompatible({ baseUrl: url, model: 'm' })))).toEqual([null]);
  });
});

describe('what was read and written', () => {
  it('is in the usage and in the cost, by the prices that the maker publishes', async () => {
    const usage = {
      input_tokens: 100,
      cache_read_input_tokens: 8_000,
      cache_creation_input_tokens: 900,
      output_tokens: 10,
    };
    const { results } = await play([message([{ type: 'text', text: 'Sunny.' }], usage)], (url) => ({
      model: claude(url),
      prices: { input: 3, output: 15 },
    }));
    expect(results[0]?.usage).toMatchObject({
      inputTokens: 9_000,
      cachedInputTokens: 8_000,
      cacheWriteInputTokens: 900,
      costMicroUsd: 300 + 8_000 * 0.3 + 900 * 3.75 + 150,
    });
  });
});
