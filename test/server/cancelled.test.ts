/** A cancel of any protocol is answered when the run has ended: what a client does right behind it is about a run that is over. */
import { expect, it, onTestFinished } from 'vitest';
import type { JsonObject } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { createHandler } from '#server';
import { a2a } from '#server/a2a';
import { agUi } from '#server/ag-ui';
import { mcp } from '#server/mcp';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { until } from '../kit/waiting.ts';

/** Without a network between, so that nothing else gives the run time to end. */
function served() {
  const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal: memoryJournal() });
  const parts = [agUi(), a2a(), mcp({ secret: 'a secret of the tests, long enough' })];
  const handler = createHandler({ runtime, parts });
  onTestFinished(() => runtime.close());
  const ask = async (path: string, body: object, headers: Record<string, string> = {}): Promise<string> => {
    const given = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers };
    const request = { method: 'POST', headers: given, body: JSON.stringify(body) };
    return (await handler(new Request(`http://localhost${path}`, request))).text();
  };
  return { runtime, ask };
}
type Served = ReturnType<typeof served>;

const say = ({ ask }: Served, text: string): Promise<string> => {
  const messages = [{ id: text, role: 'user', content: text }];
  return ask('/ag-ui', { threadId: 'talk', runId: text, messages, tools: [], context: [] });
};

function rpc({ ask }: Served, path: '/a2a' | '/mcp', method: string, params: JsonObject): Promise<string> {
  const body = { jsonrpc: '2.0', id: 1, method };
  if (path === '/a2a') return ask(path, { ...body, params }, { 'a2a-version': '1.0' });
  const version = '2026-07-28';
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
  };
  const headers = { 'mcp-protocol-version': version, 'mcp-method': method };
  return ask(path, { ...body, params: { ...params, _meta } }, headers);
}

const CANCELS: Readonly<Record<string, (server: Served, run: string) => Promise<string>>> = {
  'AG-UI': (server) => server.ask('/ag-ui/cancel', { threadId: 'talk' }),
  A2A: (server, id) => rpc(server, '/a2a', 'CancelTask', { id }),
  MCP: (server, taskId) => rpc(server, '/mcp', 'tasks/cancel', { taskId }),
};

it.each(
  Object.entries(CANCELS),
)('%s: the run has ended, whether it asked something or was at work', async (_, cancel) => {
  for (const query of ['refund A-17', 'slow 500']) {
    const server = served();
    void say(server, query);
    const status = async () => (await server.runtime.list())[0]?.status;
    await until(async () => (await status()) === (query === 'slow 500' ? 'running' : 'paused'));
    const [run] = await server.runtime.list();
    expect(await cancel(server, run?.identity.run ?? '')).not.toContain('rror');
    expect(await status()).toBe('cancelled');
  }
});

it('AG-UI: a message right behind the cancel of a turn that asked something begins the next turn', async () => {
  const server = served();
  await say(server, 'refund A-17');
  expect(JSON.parse(await server.ask('/ag-ui/cancel', { threadId: 'talk' }))).toEqual({ cancelled: true });
  const told = await say(server, 'say hello');
  expect(told).not.toContain('RUN_ERROR');
  expect(told).toContain('"result":"hello"');
});
