/** Tools that wait: for an answer of the user, for a time, for an event. For models, for plans, and for steps that a program writes. */
import type { JsonObject } from '#core';
import { type Tool, tool } from './tool.ts';

/** Asks the user, and gives the answer: words, or a value that fits `schema`. Value: the answer. */
export const askUser: Tool = tool({
  name: 'ask_user',
  description:
    'Asks the user a question and gives the answer. Ask when only the user can know or decide it, and what you do depends on it. With a JSON Schema the answer is a value that fits it; without one it is words.',
  effect: 'pure',
  inputSchema: {
    type: 'object',
    properties: {
      question: {
        type: 'string',
        minLength: 1,
        maxLength: 4_096,
        description: 'The whole question, understood by itself.',
      },
      schema: {
        type: 'object',
        description: 'JSON Schema of the answer, such as {"type":"boolean"}. Leave it out for words.',
      },
    },
    required: ['question'],
    additionalProperties: false,
  },
  execute: ({ question, schema }, context) =>
    context.ask({ question: question as string, ...(schema === undefined ? {} : { schema: schema as JsonObject }) }),
});

/** Waits until a time, or for some seconds. Value: `{ woke: true }`. */
export const sleep: Tool = tool({
  name: 'sleep',
  description:
    'Waits until a time, or for a number of seconds, before you go on: minutes, days or weeks. Give either until or seconds. The wait ends early when the user writes.',
  effect: 'pure',
  inputSchema: {
    type: 'object',
    properties: {
      until: { type: 'string', description: 'An ISO time with its zone, such as 2027-01-31T09:00:00Z.' },
      seconds: { type: 'number', minimum: 0, description: 'How long.' },
    },
    additionalProperties: false,
  },
  execute: async ({ until, seconds }, context) => {
    await context.sleep({
      ...(until === undefined ? {} : { until: until as string }),
      ...(seconds === undefined ? {} : { forMs: Number(seconds) * 1_000 }),
    } as Parameters<typeof context.sleep>[0]);
    return { woke: true };
  },
});

/** Waits for an event of the outside, which `runtime.signal(key, payload)` tells; a payload that does not fit `schema` is refused there. Value: the payload. */
export const waitForEvent: Tool = tool({
  name: 'wait_for_event',
  description:
    'Waits for an event from outside, known by its key, such as "order-17", and gives what came with it. The wait ends early when the user writes.',
  effect: 'pure',
  inputSchema: {
    type: 'object',
    properties: {
      key: { type: 'string', minLength: 1, maxLength: 512 },
      timeout_seconds: {
        type: 'number',
        minimum: 0,
        description: 'When to give up. Leave it out to wait as long as it takes.',
      },
      schema: {
        type: 'object',
        description:
          'JSON Schema of what comes with it: anything else is refused. Leave it out to take whatever comes.',
      },
    },
    required: ['key'],
    additionalProperties: false,
  },
  execute: ({ key, timeout_seconds: seconds, schema }, context) =>
    context.event({
      key: key as string,
      ...(seconds === undefined ? {} : { timeoutMs: Number(seconds) * 1_000 }),
      ...(schema === undefined ? {} : { schema: schema as JsonObject }),
    }),
});
