/** Tools that a client of MCP gives, whose server goes away in the middle of a call. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createMCPClient, type MCPClient } from '@ai-sdk/mcp';
import { Experimental_StdioMCPTransport as StdioTransport } from '@ai-sdk/mcp/mcp-stdio';
import { jsonSchema } from 'ai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { withTools } from '#pilotage/tools';
import { createRuntime } from '#runtime';
import { call, finish, script } from '../kit/decisions.ts';

/** What a server answers to a request, but for calls. */
const RESULTS = `({
  initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'bank', version: '1' } },
  'tools/list': { tools: ['pay', 'refuse', 'fail'].map((name) => ({ name, inputSchema: { type: 'object' } })) },
})`;
const UNKNOWN = { code: -32601, message: 'No such method.' };
const FAILURE = { content: [{ type: 'text', text: 'There is no order B-18.' }], isError: true };
const REFUSAL = { code: -32602, message: 'No such account.' };

/** Ends in the middle of `pay`. */
const ON_STDIO = `
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    const result = ${RESULTS}[method];
    if (result !== undefined) say({ id, result });
    else if (params?.name === 'refuse') say({ id, error: ${JSON.stringify(REFUSAL)} });
    else if (params?.name === 'pay') process.exit(1);
  });
`;

async function onHttp(
  pay: (request: IncomingMessage, response: ServerResponse) => unknown,
): Promise<{ url: string; stop: () => void }> {
  const results: Record<string, unknown> = new Function(`return ${RESULTS}`)();
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = (await request.toArray()).join('');
    if (request.method !== 'POST') return void response.writeHead(405).end();
    const { id, method, params } = JSON.parse(body);
    if (id === undefined) return void response.writeHead(202).end();
    if (params?.name === 'pay') return void pay(request, response);
    const result = params?.name === 'fail' ? FAILURE : results[method];
    const said = result === undefined ? { error: params?.name === 'refuse' ? REFUSAL : UNKNOWN } : { result };
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ jsonrpc: '2.0', id, ...said }));
  };
  const server = createServer((request, response) => void answer(request, response)).listen(0, '127.0.0.1');
  const stop = (): void => {
    server.close();
    server.closeAllConnections();
  };
  onTestFinished(stop);
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}

async function overHttp(pay: Parameters<typeof onHttp>[0]): Promise<MCPClient> {
  const { url } = await onHttp(pay);
  return createMCPClient({ transport: { type: 'http', url } });
}

const CLIENTS: readonly (readonly [string, () => Promise<MCPClient>])[] = [
  [
    'over stdio',
    () => createMCPClient({ transport: new StdioTransport({ command: process.execPath, args: ['-e', ON_STDIO] }) }),
  ],
  ['over HTTP', () => overHttp((request) => request.socket.destroy())],
  ['over HTTP through a gateway', () => overHttp((_, response) => response.writeHead(502).end())],
];

/** @param before what happens between the list of the tools and the calls. */
async function carriedOut(client: MCPClient, calls: readonly string[], before?: () => unknown) {
  const planner = script(...calls.map((name) => call(name)), finish('done'));
  const runtime = createRuntime({ planner, tools: await client.tools(), journal: memoryJournal() });
  onTestFinished(async () => {
    await runtime.close();
    await client.close();
  });
  await before?.();
  const run = await runtime.start('Pay.');
  return { result: await run.result(), outcome: (await run.state()).steps[0]?.calls[0]?.outcome };
}

describe.each(CLIENTS)('a tool of a client of MCP %s', (_, connect) => {
  it('is in doubt when the server has gone before it answered', async () => {
    const { result } = await carriedOut(await connect(), ['pay']);
    expect(result).toMatchObject({ status: 'paused', pauses: [{ reason: 'in_doubt', payload: { tool: 'pay' } }] });
  });

  it('has failed when the server says so', async () => {
    const { result, outcome } = await carriedOut(await connect(), ['refuse']);
    expect(result).toMatchObject({ status: 'finished' });
    expect(outcome).toMatchObject({ kind: 'error', error: { code: 'tool_failed', message: REFUSAL.message } });
  });

  it('has failed when the client was closed before', async () => {
    const client = await connect();
    const { result, outcome } = await carriedOut(client, ['pay'], () => client.close());
    expect(result).toMatchObject({ status: 'finished' });
    expect(outcome).toMatchObject({ kind: 'error', error: { code: 'tool_failed' } });
  });
});

it('a tool of a client of MCP whose server cannot be reached has failed', async () => {
  const { url, stop } = await onHttp(() => {});
  const client = await createMCPClient({ transport: { type: 'http', url } });
  const { outcome } = await carriedOut(client, ['pay'], stop);
  expect(outcome).toMatchObject({ kind: 'error', error: { code: 'tool_failed' } });
});

describe('a tool of a client of MCP that has an output schema', () => {
  it('fails in the words of its server', async () => {
    const client = await overHttp(() => {});
    const outputSchema = jsonSchema({ type: 'object', properties: { paid: { type: 'number' } }, required: ['paid'] });
    const tools = await client.tools({
      schemas: { fail: { inputSchema: jsonSchema({ type: 'object' }), outputSchema } },
    });
    const runtime = createRuntime({
      planner: script(call('fail'), finish('done')),
      tools: withTools(tools, { fail: { effect: 'keyed' } }),
      journal: memoryJournal(),
    });
    onTestFinished(async () => {
      await runtime.close();
      await client.close();
    });
    const run = await runtime.start('Pay.');
    await run.result();
    expect((await run.state()).steps[0]?.calls[0]).toMatchObject({
      attempts: 1,
      outcome: { kind: 'error', error: { code: 'tool_failed', message: 'There is no order B-18.' } },
    });
  });
});
