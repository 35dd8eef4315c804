/** The same tools of a provider, given to our agent and to the AI SDK's own loop, on the same bytes. */
import type { SharedV4ProviderOptions } from '@ai-sdk/provider';
import { generateText, type ToolSet as SdkTools, stepCountIs, streamText } from 'ai';
import { asJson, defined, isJsonObject, type Json, type JsonObject } from '#core';
import type { RunEvent } from '#pilotage';
import { react } from '#planners/react';
import type { Run, RunResult } from '#runtime';
import type { ToolSet } from '#tools';
import { start, world } from '../../kit/world.ts';
import { withoutMadeIds } from '../both.ts';
import type { WireRequest } from '../kit.ts';
import { type Answer, type Cut, wire } from '../pieces.ts';
import type { OwnProtocol } from './protocols.ts';

export const QUERY = 'Do it.';

export interface Asked {
  readonly protocol: OwnProtocol;
  readonly answers: readonly Answer[];
  readonly stream: boolean;
  readonly cut: Cut;
  readonly providerOptions?: SharedV4ProviderOptions;
}

export interface Played {
  readonly requests: readonly WireRequest[];
  readonly result: RunResult;
  readonly events: readonly RunEvent[];
  readonly run: Run;
}

/** @param before what is done between the first pause of the run and its end. */
export async function ours(tools: ToolSet, asked: Asked, before?: (run: Run) => Promise<unknown>): Promise<Played> {
  const { protocol, answers, stream, cut, providerOptions } = asked;
  const { fetch, requests } = wire(answers, cut);
  const model = protocol.model({ baseURL: 'http://127.0.0.1/v1', fetch });
  const run = await start(world({ planner: react({ model, ...defined({ providerOptions }) }), tools }), {
    query: QUERY,
  });
  // Whoever reads a run's events has its replies streamed.
  if (stream) for await (const _ of run.events());
  let result = await run.result();
  if (result.status === 'paused' && before !== undefined) {
    await before(run);
    if (stream) for await (const _ of run.events());
    result = await run.result();
  }
  const events: RunEvent[] = [];
  for await (const event of run.events()) events.push(event);
  return { requests, result, events, run };
}

export async function theirs(
  tools: SdkTools,
  { protocol, answers, stream, cut, providerOptions }: Asked,
): Promise<readonly WireRequest[]> {
  const { fetch, requests } = wire(answers, cut);
  const model = protocol.model({ baseURL: 'http://127.0.0.1/v1', fetch });
  const options = {
    model,
    tools,
    maxRetries: 0,
    stopWhen: stepCountIs(8),
    prompt: QUERY,
    ...defined({ providerOptions }),
  };
  if (stream) await streamText({ ...options, onError: () => {} }).consumeStream();
  else await generateText(options);
  return requests;
}

/** What the request tells after the user's words, and what it offers in any order, without the provider's words for its cache. */
export function toldIn({ body }: WireRequest): Json {
  const items = (body['input'] ?? body['inputs'] ?? body['messages'] ?? body['contents'] ?? []) as readonly Json[];
  const asked = items.findIndex((item) => JSON.stringify(item).includes(QUERY));
  const { toolConfig } = body;
  const tools = (body['tools'] ??
    (isJsonObject(toolConfig) ? toolConfig['tools'] : undefined) ??
    []) as readonly Json[];
  const offered = tools.map((tool) => JSON.stringify(unmarked(tool))).sort();
  return unmarked(asJson([items.slice(asked + 1), offered]));
}

export function toldInAll(requests: readonly WireRequest[]): Json {
  return withoutMadeIds(requests.map(toldIn));
}

function unmarked(value: Json): Json {
  if (Array.isArray(value))
    return value.filter((each) => !isJsonObject(each) || each['cachePoint'] === undefined).map(unmarked);
  if (!isJsonObject(value)) return value;
  const kept = Object.entries(value).filter(([key]) => key !== 'cache_control');
  return Object.fromEntries(kept.map(([key, each]): [string, Json] => [key, unmarked(each as Json)])) as JsonObject;
}
