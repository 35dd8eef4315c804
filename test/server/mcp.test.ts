/** MCP over HTTP with the clients that people have, unmodified: both eras, approvals, progress, cancellation, tasks. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createHandler, serve } from '#server';
import { type McpOptions, mcp } from '#server/mcp';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { createRuntime } from '#runtime';
import { memoryJournal } from '#journal';

const SECRET = 'a secret of the tests, long enough';

async function served(options: Partial<McpOptions> = {}) {
  const effects = new Effects();
  const runtime = createRuntime({ agents: [scenarioAgent(effects)], journal: memoryJournal(), onFault: (error) => console.log('FAULT', error) });
  const handler = createHandler({ runtime, parts: [mcp({ secret: SECRET, ...options })], onFault: (error) => console.log('FAULT2', error) });
  const { url, close } = await serve(handler, { port: 0 });
  onTestFinished(async () => {
    await close();
    await runtime.close();
  });
  return { effects, runtime, url: new URL(`${url}/mcp`) };
}

type Answers = (params: { message: string }) => unknown;

async function connected(url: URL, mode: 'legacy' | 'auto', onElicit?: Answers) {
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities: onElicit ? { elicitation: { form: {}, url: {} } } : {}, ...(mode === 'auto' ? { versionNegotiation: { mode } } : {}) },
  );
  if (onElicit) client.setRequestHandler('elicitation/create', async ({ params }) => onElicit(params) as never);
  await client.connect(new StreamableHTTPClientTransport(url));
  onTestFinished(() => client.close());
  return client;
}

describe.each(['legacy', 'auto'] as const)('the client of version 2, %s', (mode) => {
  it('lists agents, and calls one', async () => {
    const { url } = await served();
    const client = await connected(url, mode);
    const { tools } = await client.listTools();
    console.log(JSON.stringify(tools), client.getProtocolEra?.());
    const heard: unknown[] = [];
    const result = await client.callTool({ name: 'scenario', arguments: { input: 'weather in Oslo' } }, { onprogress: (p) => heard.push(p) });
    console.log(JSON.stringify(result), heard);
  });
  it('approves', async () => {
    const { url, effects } = await served();
    const client = await connected(url, mode, (params) => { console.log(params); return { action: 'accept', content: {} }; });
    const result = await client.callTool({ name: 'scenario', arguments: { input: 'refund A-17 and B-18' } });
    console.log(JSON.stringify(result), effects.count('refund'));
  });
  it('is told when it cannot be asked', async () => {
    const { url } = await served();
    const client = await connected(url, mode);
    console.log(JSON.stringify(await client.callTool({ name: 'scenario', arguments: { input: 'refund A-17' } })));
    console.log(JSON.stringify(await client.callTool({ name: 'scenario', arguments: { input: 'fail' } })));
    console.log(JSON.stringify(await client.callTool({ name: 'scenario', arguments: { other: 'fail' } })));
  });
});
