/** A run that a client of a protocol starts is in the trace that its request names. */
import { expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { agent, createRuntime } from '#pilotage';
import { createHandler } from '#server';
import { a2a } from '#server/a2a';
import { agUi } from '#server/ag-ui';
import { mcp } from '#server/mcp';
import { finish, script } from '../kit/decisions.ts';
import { traced } from '../kit/spans.ts';
import { until } from '../kit/waiting.ts';

const PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const VERSION = '2026-07-28';

interface Asked {
  readonly path: string;
  readonly body: object;
  readonly headers: Readonly<Record<string, string>>;
}

const REQUESTS: Readonly<Record<string, Asked>> = {
  'AG-UI, by its header': {
    path: '/ag-ui',
    body: { threadId: 't', runId: 'r', messages: [{ id: 'm', role: 'user', content: 'go' }], tools: [], context: [] },
    headers: { traceparent: PARENT },
  },
  'A2A, by its header': {
    path: '/a2a',
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'go' }] } },
    },
    headers: { traceparent: PARENT, 'a2a-version': '1.0' },
  },
  'MCP, by _meta, before its header': {
    path: '/mcp',
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: {
        name: 'helper',
        arguments: { input: 'go' },
        _meta: {
          'io.modelcontextprotocol/protocolVersion': VERSION,
          'io.modelcontextprotocol/clientCapabilities': {},
          traceparent: PARENT,
        },
      },
    },
    headers: {
      'mcp-protocol-version': VERSION,
      'mcp-method': 'tools/call',
      'mcp-name': 'helper',
      traceparent: PARENT.replace('0af', '1af').replace('b7ad', 'c7ad'),
    },
  },
};

it.each(Object.entries(REQUESTS))('%s', async (_, { path, body, headers }) => {
  const { telemetry, spans } = traced();
  const helper = agent({ name: 'helper', planner: script(finish('ok')) });
  const runtime = createRuntime({ agents: [helper], journal: memoryJournal(), telemetry });
  onTestFinished(() => runtime.close());
  const parts = [agUi(), a2a(), mcp({ secret: 'a secret of the tests, long enough' })];
  const handler = createHandler({ runtime, parts });
  const given = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers };
  const request = new Request(`http://localhost${path}`, {
    method: 'POST',
    headers: given,
    body: JSON.stringify(body),
  });
  const answer = await (await handler(request)).text();
  expect(answer).not.toContain('"error"');
  const whole = () => spans().find(({ name }) => name === 'invoke_agent helper');
  await until(() => whole() !== undefined);
  expect(whole()?.parentSpanContext?.spanId).toBe('b7ad6b7169203331');
  expect(whole()?.spanContext().traceId).toBe('0af7651916cd43dd8448eb211c80319c');
});
