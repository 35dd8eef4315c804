/**
 * One side of the measure of the server, in a process of its own: ours on an SQLite file, the same chunks written by hand, and the AI SDK's own
 * `toUIMessageStreamResponse`. All say the words of one made-up model: `said <count> <first> <gap>`, the last two in milliseconds, where a gap of 0 is one turn of the event loop.
 */
import { createServer } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { streamText } from 'ai';
import { sqliteJournal } from '#journal/sqlite';
import { createRuntime, type Planner } from '#pilotage';
import { createHandler } from '#server';
import { aiSdk } from '#server/ai-sdk';

const [side = '', path = ''] = process.argv.slice(2);
const MANY = 10_000;

async function pause(ms: number): Promise<void> {
  if (ms === 0) await new Promise((resolve) => setImmediate(resolve));
  else await new Promise((resolve) => setTimeout(resolve, ms));
}

async function* wordsOf(query: string): AsyncGenerator<string, string> {
  const [count = 0, firstMs = 0, gapMs = 0] = query.split(' ').slice(1).map(Number);
  let text = '';
  for (let index = 0; index < count; index += 1) {
    await pause(index === 0 ? firstMs : gapMs);
    const word = `word${index} `;
    text += word;
    yield word;
  }
  return text;
}

const planner: Planner = {
  name: 'said',
  async *next({ query }) {
    const words = wordsOf(query);
    for (;;) {
      const { done, value } = await words.next();
      if (done === true) return { decision: { kind: 'finish', reason: 'goal', payload: value }, text: value };
      yield { type: 'text', text: value };
    }
  },
};

interface ChatRequest {
  readonly id: string;
  readonly messages: readonly { readonly parts: readonly { readonly text: string }[] }[];
}

function queryOf({ messages }: ChatRequest): string {
  return messages.at(-1)?.parts[0]?.text ?? '';
}

/** What a program without a runtime would write: the same chunks, and nothing kept. */
function byHand(): ReturnType<typeof createServer> {
  return createServer(async (request, response) => {
    let body = '';
    for await (const part of request) body += part;
    const asked = JSON.parse(body) as ChatRequest;
    response.writeHead(200, { 'content-type': 'text/event-stream', 'x-vercel-ai-ui-message-stream': 'v1' });
    const send = (chunk: object): void => void response.write(`data: ${JSON.stringify(chunk)}\n\n`);
    const id = crypto.randomUUID();
    send({ type: 'start', messageId: id, messageMetadata: { run: id, turn: 1 } });
    send({ type: 'start-step' });
    send({ type: 'text-start', id: 'text-0' });
    for await (const delta of wordsOf(queryOf(asked))) send({ type: 'text-delta', id: 'text-0', delta });
    send({ type: 'text-end', id: 'text-0' });
    send({ type: 'finish-step' });
    send({ type: 'finish', finishReason: 'stop' });
    response.end('data: [DONE]\n\n');
  });
}

function ofAiSdk(): ReturnType<typeof createServer> {
  const answer = async (request: Request): Promise<Response> => {
    const asked = (await request.json()) as ChatRequest;
    const words = wordsOf(queryOf(asked));
    return streamText({ model: modelOf(words), prompt: queryOf(asked) }).toUIMessageStreamResponse();
  };
  return createServer(getRequestListener(answer));
}

type Model = Exclude<Parameters<typeof streamText>[0]['model'], string>;

function modelOf(words: AsyncGenerator<string, string>): Model {
  const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
  const stream = new ReadableStream({
    start: (controller) => {
      controller.enqueue({ type: 'stream-start', warnings: [] });
      controller.enqueue({ type: 'text-start', id: '0' });
    },
    pull: async (controller) => {
      const { done, value } = await words.next();
      if (done !== true) return controller.enqueue({ type: 'text-delta', id: '0', delta: value });
      controller.enqueue({ type: 'text-end', id: '0' });
      controller.enqueue({ type: 'finish', finishReason: { unified: 'stop' }, usage });
      controller.close();
    },
  });
  return {
    specificationVersion: 'v4',
    provider: 'bench',
    modelId: 'said',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('not used')),
    doStream: () => Promise.resolve({ stream }),
  } as unknown as Model;
}

function ours(): ReturnType<typeof createServer> {
  const runtime = createRuntime({
    planner,
    journal: sqliteJournal({ path }),
    maxLiveRuns: MANY,
    maxLiveRunsPerTenant: MANY,
  });
  const handler = createHandler({ runtime, parts: [aiSdk()], maxStreamsPerUser: MANY });
  return createServer(getRequestListener(handler));
}

const server = side === 'ours' ? ours() : side === 'hand' ? byHand() : ofAiSdk();
server.listen(0, '127.0.0.1', () => process.send?.({ port: (server.address() as { port: number }).port }));
process.on('message', () => {
  globalThis.gc?.();
  process.send?.({ cpu: process.cpuUsage(), rss: process.memoryUsage().rss });
});
process.on('disconnect', () => process.exit());
