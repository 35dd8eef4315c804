/** Providers on the wire: a loopback server that gives recorded answers, our agent and the AI SDK's own loop on the same bytes. */
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { LanguageModelV4 } from '@ai-sdk/provider';
import { generateText, jsonSchema, tool as sdkTool, stepCountIs, streamText } from 'ai';
import type { Json, JsonObject } from '#core';
import { react } from '#planners/react';
import type { Run, RunResult } from '#runtime';
import { tool } from '#tools';
import { start, world } from '../kit/world.ts';
import { CITY, QUERY, WEATHER } from './weather.ts';

export interface WireAnswer {
  readonly status?: number;
  /** A reply in one piece. */
  readonly json?: Json;
  /** The data of the events of a stream. A text goes out as it is, such as `[DONE]`. */
  readonly events?: readonly Json[];
  /** Names of the events, for protocols that have them: the `type` of each. */
  readonly named?: boolean;
}

export interface WireRequest {
  readonly path: string;
  readonly body: JsonObject;
}

export interface WireServer {
  readonly url: string;
  readonly requests: readonly WireRequest[];
  close(): Promise<void>;
}

/** Each request gets the next answer; the last one is for all that come after it. */
export async function wireServer(answers: readonly WireAnswer[]): Promise<WireServer> {
  const requests: WireRequest[] = [];
  const server = createServer(async (request, response) => {
    const body = JSON.parse(await textOf(request)) as JsonObject;
    requests.push({ path: request.url ?? '', body });
    const { status = 200, json, events, named = false } = answers[Math.min(requests.length, answers.length) - 1] ?? {};
    if (events === undefined) {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json ?? {}));
      return;
    }
    response.writeHead(status, { 'content-type': 'text/event-stream' });
    for (const event of events) {
      const data = typeof event === 'string' ? event : JSON.stringify(event);
      const name = named ? `event: ${String((event as JsonObject)['type'])}\n` : '';
      response.write(`${name}data: ${data}\n\n`);
    }
    response.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

export interface Exchange {
  readonly requests: readonly WireRequest[];
  readonly result: RunResult;
  readonly state: Awaited<ReturnType<Run['state']>>;
}

export interface WireCase {
  readonly answers: readonly WireAnswer[];
  readonly model: (url: string) => LanguageModelV4;
  readonly stream?: boolean;
}

/** Our agent with one tool, `weather`, which says that it is sunny. */
export async function ours({ answers, model, stream = false }: WireCase): Promise<Exchange> {
  const server = await wireServer(answers);
  try {
    const weather = tool({ ...WEATHER, effect: 'read', inputSchema: CITY, execute: () => 'sunny' });
    const made = world({ planner: react({ model: model(server.url) }), tools: [weather] });
    const run = await start(made, { query: QUERY });
    // Whoever reads a run's events has its replies streamed.
    if (stream) for await (const _ of run.events());
    return { requests: server.requests, result: await run.result(), state: await run.state() };
  } finally {
    await server.close();
  }
}

/** The AI SDK's own loop on the same answers. */
export async function theirs({ answers, model, stream = false }: WireCase): Promise<readonly WireRequest[]> {
  const server = await wireServer(answers);
  try {
    const options = {
      model: model(server.url),
      maxRetries: 0,
      stopWhen: stepCountIs(8),
      prompt: QUERY,
      tools: {
        weather: sdkTool({
          description: WEATHER.description,
          inputSchema: jsonSchema(CITY as never),
          execute: async () => 'sunny',
        }),
      },
    };
    if (stream) await streamText(options).consumeStream();
    else await generateText(options);
    return server.requests;
  } finally {
    await server.close();
  }
}
