/** One model asked by our agent and by the AI SDK's own loop, and what each of them came to. */
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { generateText, jsonSchema, type LanguageModelUsage, tool as sdkTool, stepCountIs, streamText } from 'ai';
import { defined, type Json, local } from '#core';
import { type ReactOptions, react } from '#planners/react';
import type { Run, RunResult } from '#runtime';
import { tool } from '#tools';
import { ImpatientClock } from '../kit/impatient-clock.ts';
import { start, world } from '../kit/world.ts';
import { CITY, QUERY, WEATHER } from './weather.ts';

export interface Ours {
  readonly result: RunResult;
  readonly state: Awaited<ReturnType<Run['state']>>;
  /** Calls that were carried out: the arguments of each. */
  readonly made: readonly Json[];
}

/** Our agent asks that model, as a run of this id. Nobody waits between its tries. */
export async function askOurs(model: ReactOptions['model'], stream: boolean, id?: string): Promise<Ours> {
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
  const run = await start(world({ planner, tools: [weather] }), {
    query: QUERY,
    identity: local('ana', defined({ run: id })),
  });
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

/** Ids that a package makes up for itself are others each time. */
export function withoutMadeIds(value: Json): Json {
  const ids = new Map<string, string>();
  const text = JSON.stringify(value).replace(/"((?:call_)?[A-Za-z0-9]{16})"/g, (_, id: string) => {
    if (!ids.has(id)) ids.set(id, `"made-${ids.size}"`);
    return ids.get(id) as string;
  });
  return JSON.parse(text) as Json;
}
