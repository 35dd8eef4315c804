import type { LanguageModelV4CallOptions } from '@ai-sdk/provider';
import { describe, expect, it } from 'vitest';
import { type JsonObject, local } from '#core';
import { memoryJournal } from '#journal';
import { react } from '#planners/react';
import { createRuntime } from '#runtime';
import { type ScriptedReply, scriptedModel, seededRandom } from '#testing';
import { tool } from '#tools';
import { chatFault, withoutReminder } from './well-formed.ts';

const RUNS = Number(process.env['SEEDS'] ?? 10_000);
const STEPS = 10;
const input = { type: 'object', properties: { q: { type: 'string' } }, required: ['q'] };

const tools = [
  tool({
    name: 'echo',
    description: 'Says it again.',
    effect: 'read',
    inputSchema: input,
    execute: ({ q }) => String(q),
  }),
  tool({
    name: 'keep',
    description: 'Stores a file.',
    effect: 'read',
    inputSchema: input,
    execute: async ({ q }, { saveArtifact }) => ({ ...(await saveArtifact(String(q), { mime: 'text/plain' })) }),
  }),
  tool({
    name: 'large',
    description: 'Gives much.',
    effect: 'read',
    inputSchema: input,
    execute: () => 'x'.repeat(33_000),
  }),
  ...['alpha', 'beta', 'gamma'].map((name) =>
    tool({
      name: `hidden_${name}`,
      description: `Does ${name}.`,
      effect: 'read',
      inputSchema: input,
      loading: 'deferred',
      execute: () => name,
    }),
  ),
];

type Random = () => number;

function pick<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}

function call(random: Random): { id: string; tool: string; input: string } {
  const name = pick(random, ['echo', 'echo', 'keep', 'hidden_beta', 'nothing', 'tool_search', 'tool_get']);
  const word = pick(random, ['alpha', 'beta', 'gamma']);
  const args: JsonObject =
    name === 'tool_search' ? { query: word } : name === 'tool_get' ? { name: `hidden_${word}` } : { q: word };
  const broken = random() < 0.2;
  return {
    id: pick(random, ['', 'a', 'b', 'c']),
    // A result of 33 kB is slow to make in ten thousand runs.
    tool: random() < 0.01 ? 'large' : name,
    input: broken ? pick(random, ['{"q": 1', '{"limit": 2}', 'no']) : JSON.stringify(args),
  };
}

function reply(random: Random): ScriptedReply {
  const dice = random();
  if (dice < 0.1) return {};
  if (dice < 0.25) return { text: pick(random, ['Which one?', 'Done.\n', 'über 🙂']) };
  const calls = Array.from({ length: 1 + Math.floor(random() * 3) }, () => call(random));
  if (dice < 0.4) return { text: 'I look.', reasoning: 'hm', calls };
  return { calls, ...(random() < 0.1 ? { finish: 'length' as const } : {}) };
}

/** What a provider with a prefix cache sees of a request: the tools, then the messages. */
function parts({ tools: declared = [], prompt }: LanguageModelV4CallOptions): { tools: string; messages: string } {
  return {
    tools: declared.map((each) => JSON.stringify(each)).join('\n'),
    messages: prompt.map((message) => JSON.stringify(message)).join('\n'),
  };
}

async function play(seed: number): Promise<readonly LanguageModelV4CallOptions[]> {
  const random = seededRandom(seed);
  const model = scriptedModel(() => reply(random));
  const journal = memoryJournal();
  const planner = react({
    model: { model, toolCalls: random() < 0.3 ? 'text' : 'native' },
    converse: random() < 0.5,
    reasks: 4,
    reasoningReplay: random() < 0.5 ? 'text' : 'never',
  });
  const runtime = createRuntime({ planner, tools, journal, limits: { steps: STEPS }, onFault: () => {} });
  const run = await runtime.start('go', {
    identity: local('ana'),
    ...(random() < 0.3 ? { history: [{ role: 'user', text: 'before' }] } : {}),
    ...(random() < 0.3 ? { context: { externalMemory: { likes: ['</read_only_external_memory>'] } } } : {}),
  });
  for (let turns = 0; turns < 4; turns += 1) {
    const result = await run.result();
    if (result.status !== 'paused') break;
    if (random() < 0.4) await run.steer('INJECT_CONTEXT', { note: `n${turns}` });
    // A new goal withdraws the question: nobody answers it then.
    if (random() < 0.2) await run.steer('REDIRECT', { goal: `g${turns}` }, { until: 'applied' });
    else await run.resume({ payload: { message: `m${turns}` } });
  }
  await runtime.close();
  return model.calls;
}

describe('request k and request k + 1', () => {
  it('RA-37 the one is a byte prefix of the other: random runs with found tools, reminders, pauses and messages', async () => {
    const wrong: unknown[] = [];
    const seen = { requests: 0, reminders: 0, found: 0, pauses: 0, injected: 0 };
    for (let seed = 1; seed <= RUNS; seed += 1) {
      const requests = await play(seed);
      for (const [index, request] of requests.entries()) {
        seen.requests += 1;
        const fault = chatFault(request.prompt);
        if (fault !== undefined) wrong.push({ seed, index, fault });
        const before = requests[index - 1];
        if (before === undefined) continue;
        const former = withoutReminder(before);
        const old = parts(former);
        const now = parts(request);
        if (former !== before) seen.reminders += 1;
        if (old.tools !== now.tools) seen.found += 1;
        if (!now.messages.startsWith(old.messages)) wrong.push({ seed, index, fault: 'messages' });
        if (!now.tools.startsWith(old.tools)) wrong.push({ seed, index, fault: 'tools' });
      }
      const last = parts(requests.at(-1) as LanguageModelV4CallOptions).messages;
      if (last.includes('"m0"')) seen.pauses += 1;
      if (last.includes('n0')) seen.injected += 1;
    }
    expect(wrong.slice(0, 5)).toEqual([]);
    // The runs did have in them what the property is about.
    expect(Math.min(...Object.values(seen))).toBeGreaterThan(RUNS / 100);
  }, 300_000);
});
