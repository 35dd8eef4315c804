/** One model asked by our agent and by the AI SDK's own loop, and what each of them came to. */
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { generateText, jsonSchema, type LanguageModelUsage, tool as sdkTool, stepCountIs, streamText } from 'ai';
import type { Json } from '#core';
import { react } from '#planners/react';
import type { Run, RunResult } from '#runtime';
import { tool } from '#tools';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { start, world } from '../kit/world.ts';
import { CITY, QUERY, WEATHER } from './kit.ts';

export interface Ours {
  readonly result: RunResult;
  readonly state: Awaited<ReturnType<Run['state']>>;
  /** Calls that were carried out: the arguments of each. */
  readonly made: readonly Json[];
}

/** Our agent asks that model. Nobody waits between its tries. */
export async function askOurs(model: LanguageModelV4, stream: boolean): Promise<Ours> {
  const made: Json[] = [];
  const weather = tool({
    ...WEATHER,
    effect: 'read',
    inputSchema: CITY,
    execute: (args) => {
      made.push(args as Json);
      return 'sunny';
    },
  });
  const planner = react({ model, clock: new ImpatientClock() });
  const run = await start(world({ planner, tools: [weather] }), { query: QUERY });
  // Whoever reads a run's events has its replies streamed.
  if (stream) for await (const _ of run.events());
  return { result: await run.result(), state: await run.state(), made };
}

/** What the AI SDK's loop came to. */
export interface Theirs {
  readonly made: readonly Json[];
  readonly text?: string;
  readonly usage?: LanguageModelUsage;
  /** Why each of its model calls ended. */
  readonly finishes?: readonly string[];
  /** What it threw, or told as the error of its stream. */
  readonly error?: unknown;
}

/** The AI SDK's own loop asks that model, and makes each request once. */
export async function askTheirs(model: LanguageModelV4, stream: boolean): Promise<Theirs> {
  const made: Json[] = [];
  let failure: { readonly error: unknown } | undefined;
  const options = {
    model,
    maxRetries: 0,
    stopWhen: stepCountIs(8),
    prompt: QUERY,
    tools: {
      weather: sdkTool({
        description: WEATHER.description,
        inputSchema: jsonSchema(CITY as never),
        execute: async (args) => {
          made.push(args as Json);
          return 'sunny';
        },
      }),
    },
  };
  try {
    const asked = stream
      ? streamText({
          ...options,
          onError: (told) => {
            failure = told;
          },
        })
      : await generateText(options);
    if ('consumeStream' in asked) await asked.consumeStream();
    const [text, usage, steps] = await Promise.all([asked.text, asked.totalUsage, asked.steps]);
    return { made, text, usage, finishes: steps.map(({ finishReason }) => finishReason), ...failure };
  } catch (error) {
    return { made, error, ...failure };
  }
}
