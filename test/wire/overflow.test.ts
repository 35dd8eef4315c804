/** A request that does not fit is no end: with the packages of providers, on the wire, in one piece and streamed. */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createGroq } from '@ai-sdk/groq';
import { createMistral } from '@ai-sdk/mistral';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { afterEach, describe, expect, it } from 'vitest';
import { type ReactOptions, react } from '#planners/react';
import { tool } from '#tools';
import { entriesOf } from '../kit/run-record.ts';
import { start, type WorldOptions, world } from '../kit/world.ts';
import {
  anthropic,
  chat,
  google,
  type Protocol,
  responses,
  type Said,
  type WindowOptions,
  type WindowServer,
  windowServer,
} from './window-server.ts';

const apiKey = 'k';
const PAGES = 12;

interface Provider {
  readonly protocol: Protocol;
  readonly model: (url: string) => LanguageModelV4;
  readonly refuse: WindowOptions['refuse'];
}

const compatible = (url: string) => createOpenAICompatible({ name: 'local', apiKey, baseURL: url })('m');

const PROVIDERS: Readonly<Record<string, Provider>> = {
  Anthropic: {
    protocol: anthropic,
    model: (url) => createAnthropic({ apiKey, baseURL: url })('claude-sonnet-4-5'),
    refuse: (tokens, window) => ({
      status: 400,
      body: {
        type: 'error',
        error: { type: 'invalid_request_error', message: `prompt is too long: ${tokens} tokens > ${window} maximum` },
      },
    }),
  },
  'OpenAI chat': {
    protocol: chat,
    model: (url) => createOpenAI({ apiKey, baseURL: url }).chat('gpt-4o'),
    refuse: (tokens, window) => ({
      status: 400,
      body: {
        error: {
          message: `This model's maximum context length is ${window} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`,
          type: 'invalid_request_error',
          param: 'messages',
          code: 'context_length_exceeded',
        },
      },
    }),
  },
  'OpenAI responses, without a number': {
    protocol: responses,
    model: (url) => createOpenAI({ apiKey, baseURL: url }).responses('gpt-4o'),
    refuse: () => ({
      status: 400,
      body: {
        error: {
          message: 'Your input exceeds the context window of this model. Please adjust your input and try again.',
          type: 'invalid_request_error',
          param: 'input',
          code: 'context_length_exceeded',
        },
      },
    }),
  },
  Google: {
    protocol: google,
    model: (url) => createGoogle({ apiKey, baseURL: url })('gemini-2.5-flash'),
    refuse: (tokens, window) => ({
      status: 400,
      body: {
        error: {
          code: 400,
          message: `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${window}).`,
          status: 'INVALID_ARGUMENT',
        },
      },
    }),
  },
  Mistral: {
    protocol: chat,
    model: (url) => createMistral({ apiKey, baseURL: url })('mistral-small-latest'),
    refuse: (tokens, window) => ({
      status: 400,
      body: {
        object: 'error',
        message: `Prompt contains ${tokens} tokens and 0 draft tokens, too large for model with ${window} maximum context length`,
        type: 'invalid_request_error',
        param: null,
        code: '3051',
      },
    }),
  },
  'Groq, without a number': {
    protocol: chat,
    model: (url) => createGroq({ apiKey, baseURL: url })('llama-3.3-70b-versatile'),
    refuse: () => ({
      status: 400,
      body: {
        error: {
          message: 'Please reduce the length of the messages or completion.',
          type: 'invalid_request_error',
          param: 'messages',
          code: 'context_length_exceeded',
        },
      },
    }),
  },
  'llama.cpp': {
    protocol: chat,
    model: compatible,
    refuse: (tokens, window) => ({
      status: 400,
      body: {
        error: {
          code: 400,
          message: 'the request exceeds the available context size, try increasing it',
          type: 'exceed_context_size_error',
          n_prompt_tokens: tokens,
          n_ctx: window,
        },
      },
    }),
  },
  'LM Studio': {
    protocol: chat,
    model: compatible,
    refuse: (tokens, window) => ({
      status: 400,
      body: {
        error: `Trying to keep the first ${tokens} tokens when context the overflows. However, the model is loaded with context length of only ${window} tokens, which is not enough.`,
      },
    }),
  },
};

const open: WindowServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function serve(options: WindowOptions): Promise<WindowServer> {
  const server = await windowServer(options);
  open.push(server);
  return server;
}

const INPUT = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } as const;
/** About a thousand tokens. */
const page = tool({
  name: 'page',
  description: 'Reads a page.',
  effect: 'read',
  inputSchema: INPUT,
  execute: ({ n }) => `page ${String(n)} ${'word '.repeat(800)}`,
});

/** Reads so many pages, one a step, and is done. */
const reader =
  (pages: number) =>
  (index: number): Said =>
    index < pages ? { tool: 'page', args: { n: index } } : { text: 'All pages are read.' };

interface Played extends Partial<WorldOptions> {
  readonly stream?: boolean;
  readonly react?: Partial<ReactOptions>;
}

async function play(model: ReactOptions['model'], { stream = false, react: options, ...more }: Played = {}) {
  const made = world({ planner: react({ model, retries: 0, ...options }), tools: [page], patienceMs: 0, ...more });
  const run = await start(made, { query: 'Read the pages.' });
  // Whoever reads a run's events has its replies streamed.
  if (stream) for await (const _ of run.events());
  return { run, made, result: await run.result() };
}

describe.each(Object.entries(PROVIDERS))('%s', (_, { protocol, model, refuse }) => {
  it.each([false, true])('goes on with a shorter history, streamed: %s', async (stream) => {
    const server = await serve({ protocol, window: 7_000, refuse, says: reader(PAGES) });
    const { result, run, made } = await play(model(server.url), { stream });
    expect(result).toMatchObject({ status: 'finished', reason: 'goal', answer: 'All pages are read.' });
    const refused = server.seen.filter((each) => each.refused);
    expect(refused.length).toBeGreaterThan(0);
    // The pieces that are summed up fit, and what was learnt holds: the window is run into once, or a few times where nobody names it.
    expect(refused.every((each) => !each.isSummary)).toBe(true);
    expect(refused.length).toBeLessThanOrEqual(2);
    expect(server.seen.some((each) => each.isSummary)).toBe(true);
    const [first] = await entriesOf(made.journal, run, 'overflowed');
    expect(first).toMatchObject({ overflow: { kind: 'input' }, error: { code: 'context_window_exceeded' } });
    expect(result.usage.steps).toBe(PAGES);
  });
});
