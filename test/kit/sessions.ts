/** A session whose models are servers on loopback, on a journal in a file: each life is a runtime of its own. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { onTestFinished } from 'vitest';
import { isJsonObject, type Json, type JsonObject, local } from '#core';
import { sqliteJournal } from '#journal/sqlite';
import { type ReactOptions, react } from '#planners/react';
import type { StartOptions } from '#runtime';
import type { Tool } from '#tools';
import { type WireAnswer, type WireRequest, wireServer } from '../wire/kit.ts';
import { make } from './tools.ts';
import { start, type World, type WorldOptions, world } from './world.ts';

const apiKey = 'k';

/** A reply of Anthropic's server. */
export function claudeSays(...content: readonly Json[]): WireAnswer {
  const calls = content.some((part) => isJsonObject(part) && part['type'] === 'tool_use');
  const usage = { input_tokens: 9, output_tokens: 5 };
  const stop = { stop_reason: calls ? 'tool_use' : 'end_turn', stop_sequence: null };
  return { json: { type: 'message', id: 'm1', role: 'assistant', model: 'claude-x', content, ...stop, usage } };
}

export const text = (said: string): JsonObject => ({ type: 'text', text: said });
export const use = (id: string, name: string, input: JsonObject): JsonObject => ({ type: 'tool_use', id, name, input });
export const thinking = (thought: string): JsonObject => ({ type: 'thinking', thinking: thought, signature: 'c2ln' });

/** A reply of a server with OpenAI's chat completions. */
export function chatSays(
  said: string,
  calls: readonly { id: string; name: string; args: JsonObject }[] = [],
): WireAnswer {
  const asked = calls.map(({ id, name, args }) => ({
    ...{ id, type: 'function' },
    function: { name, arguments: JSON.stringify(args) },
  }));
  const message = { role: 'assistant', content: said, ...(asked.length === 0 ? {} : { tool_calls: asked }) };
  const choices = [{ index: 0, message, finish_reason: asked.length === 0 ? 'stop' : 'tool_calls' }];
  const usage = { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 };
  return { json: { id: 'c', object: 'chat.completion', created: 1, model: 'm', choices, usage } };
}

export interface Life extends World {
  readonly requests: readonly WireRequest[];
  /** A turn of the session, to its end. */
  say(
    query: string,
    options?: Partial<StartOptions>,
  ): Promise<Awaited<ReturnType<Awaited<ReturnType<typeof start>>['result']>>>;
  close(): Promise<void>;
}

export interface LifeOptions {
  readonly path: string;
  readonly answers: readonly WireAnswer[];
  readonly with?: 'anthropic' | 'openai';
  readonly tools?: readonly Tool[];
  readonly react?: Partial<ReactOptions>;
  readonly more?: Partial<WorldOptions>;
}

let runs = 0;

/** A process of the session, as far as what it knows goes. */
export async function life({ path, answers, with: provider = 'anthropic', ...options }: LifeOptions): Promise<Life> {
  const server = await wireServer(answers);
  onTestFinished(() => server.close().catch(() => {}));
  const model =
    provider === 'anthropic'
      ? createAnthropic({ apiKey, baseURL: server.url })('claude-sonnet-4-5')
      : createOpenAI({ apiKey, baseURL: server.url }).chat('gpt-4o');
  const journal = sqliteJournal({ path });
  const made = world({
    planner: react({ model, ...options.react } as ReactOptions),
    tools: options.tools ?? [],
    memory: { strategy: 'window' },
    journal,
    ...options.more,
  });
  return {
    ...made,
    requests: server.requests,
    say: async (query, more = {}) => {
      runs += 1;
      const run = await start(made, { query, identity: local('ana', { session: 's', run: `turn-${runs}` }), ...more });
      return run.result();
    },
    close: async () => {
      await made.runtime.close();
      await journal.close();
    },
  };
}

/** Books, and pays by the id that the booking gave. */
export function bookings(): { readonly tools: readonly Tool[]; readonly paid: Json[] } {
  const paid: Json[] = [];
  let booked = 0;
  const book = make('book', ({ what }) => {
    booked += 1;
    return { booking: `bk-${booked}`, what };
  });
  const pay = make('pay', ({ booking }) => {
    paid.push(booking as Json);
    return 'paid';
  });
  return {
    tools: [
      { ...book, effect: 'once' },
      { ...pay, effect: 'once' },
    ] as readonly Tool[],
    paid,
  };
}

/** The messages of a request without marks for a cache, which move on. */
export function messagesOf(request: WireRequest | undefined): readonly JsonObject[] {
  return unmarked(request?.body['messages'] ?? []) as readonly JsonObject[];
}

function unmarked(value: Json): Json {
  if (Array.isArray(value)) return value.map(unmarked);
  if (!isJsonObject(value)) return value;
  const kept = Object.entries(value).filter(([key]) => key !== 'cache_control');
  return Object.fromEntries(kept.map(([key, each]) => [key, unmarked(each as Json)]));
}
