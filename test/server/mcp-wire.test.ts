/** What MCP's rules ask of the server on the wire, of its streams and of restarts: as the protocol's own clients see it, or byte by byte. */
import { request } from 'node:http';
import { describe, expect, it } from 'vitest';
import { type Json, type JsonObject, PilotageError } from '#core';
import { memoryJournal } from '#journal';
import type { Access } from '#server';
import { CLIENT_NAMES, type ClientName, mcpClient, mcpServed, modern, older, olderSession } from '../kit/mcp.ts';
import { gate, until } from '../kit/waiting.ts';

const ERAS: readonly ClientName[] = ['client 2.4, 2025-11-25', 'client 2.4, auto'];
const call = (input: string, more: JsonObject = {}): JsonObject => ({
  name: 'scenario',
  arguments: { input },
  ...more,
});

/** Who asks the server, by what. */
function noted() {
  const sent: { readonly method: string; readonly rpc: string; readonly headers: Headers }[] = [];
  const noting: typeof fetch = async (url, init) => {
    const rpc =
      typeof init?.body === 'string' ? String((JSON.parse(init.body) as JsonObject)['method'] ?? 'answer') : '';
    sent.push({ method: init?.method ?? 'GET', rpc, headers: new Headers(init?.headers) });
    return fetch(url, init);
  };
  return { sent, fetch: noting };
}

describe('MCP, two eras', () => {
  it('two eras: a client of 2026-07-28 discovers the server, without initialize, session, GET stream or Last-Event-ID', async () => {
    const { url } = await mcpServed();
    const { sent, fetch } = noted();
    const client = await mcpClient('client 2.4, auto', url, { fetch });
    await client.call('say hello');
    expect(sent.map(({ method, rpc }) => `${method} ${rpc}`)).toEqual(['POST server/discover', 'POST tools/call']);
    expect(sent.some(({ headers }) => headers.has('mcp-session-id'))).toBe(false);
  });

  it('two eras: clients that begin with the handshake of 2025 are served beside them, in sessions', async () => {
    const { url } = await mcpServed();
    for (const name of ['client 2.4, 2025-11-25', 'sdk 1.32'] as const) {
      const { sent, fetch } = noted();
      const client = await mcpClient(name, url, { fetch });
      await client.call('say hello');
      expect(sent[0]).toMatchObject({ method: 'POST', rpc: 'initialize' });
      expect(sent.find(({ rpc }) => rpc === 'tools/call')?.headers.get('mcp-session-id')).toEqual(expect.any(String));
    }
  });

  it('two eras: server/discover says the versions, who the server is and what it can do', async () => {
    const { url } = await mcpServed({ name: 'shop' });
    const { result } = await modern(url, 'server/discover', {});
    expect(result).toMatchObject({
      resultType: 'complete',
      supportedVersions: expect.arrayContaining(['2026-07-28']),
      capabilities: { tools: {} },
    });
    expect(JSON.stringify(result)).toContain('"shop"');
  });

  it('two eras: 2026-07-28 has no initialize, no session and no stream by GET', async () => {
    const { url } = await mcpServed();
    const params = { protocolVersion: '2026-07-28', capabilities: {}, clientInfo: { name: 'x', version: '1' } };
    expect(await modern(url, 'initialize', params)).toMatchObject({ status: 404, error: { code: -32_601 } });
    const headers = { 'mcp-protocol-version': '2026-07-28', accept: 'text/event-stream' };
    expect((await fetch(url, { headers })).status).toBe(405);
    expect((await fetch(url, { method: 'DELETE', headers })).status).toBe(405);
  });
});

const META = 'io.modelcontextprotocol/';
/** A request that is right but for what is given. */
async function sent(
  headers: Record<string, string | undefined>,
  more: JsonObject = {},
  without: readonly string[] = [],
) {
  const { url } = await mcpServed();
  const own: JsonObject = {
    [`${META}protocolVersion`]: '2026-07-28',
    [`${META}clientInfo`]: { name: 'test', version: '1' },
    [`${META}clientCapabilities`]: {},
    ...more,
  };
  const meta = Object.fromEntries(Object.entries(own).filter(([key]) => !without.includes(key.replace(META, ''))));
  const usual = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
    'mcp-protocol-version': '2026-07-28',
    'mcp-method': 'tools/call',
    'mcp-name': 'scenario',
  };
  const all = Object.entries({ ...usual, ...headers }).filter(
    (each): each is [string, string] => each[1] !== undefined,
  );
  const body = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: call('say hello', { _meta: meta }) };
  const response = await fetch(url, { method: 'POST', headers: all, body: JSON.stringify(body) });
  const text = await response.text();
  const json = (text.startsWith('{') ? text : (/^data: (\{.*)$/m.exec(text)?.[1] ?? '{}')) as string;
  return {
    status: response.status,
    headers: response.headers,
    ...(JSON.parse(json) as { error?: { code: number; data?: Json }; result?: JsonObject }),
  };
}

describe('MCP, wire 2026', () => {
  it('wire 2026: headers that say something else than the body are refused (400, -32020)', async () => {
    expect((await sent({})).status).toBe(200);
    for (const wrong of [
      { 'mcp-method': 'tools/list' },
      { 'mcp-method': undefined },
      { 'mcp-name': 'other' },
      { 'mcp-name': undefined },
      { 'mcp-protocol-version': '2025-11-25' },
    ])
      expect([wrong, await sent(wrong)]).toMatchObject([wrong, { status: 400, error: { code: -32_020 } }]);
  });

  it('wire 2026: a version that there is not is refused, with those that there are (400, -32022)', async () => {
    const version = '2030-01-01';
    const answer = await sent({ 'mcp-protocol-version': version }, { [`${META}protocolVersion`]: version });
    expect(answer).toMatchObject({ status: 400, error: { code: -32_022 } });
    expect(answer.error?.data).toMatchObject({ supported: expect.arrayContaining(['2026-07-28']) });
  });

  it('wire 2026: each request says in _meta who the client is and what it can do', async () => {
    const missing = await sent({}, {}, ['clientCapabilities']);
    expect(missing).toMatchObject({ status: 400, error: { code: -32_602 } });
  });

  it('wire 2026: an unknown method is 404 (-32601), a capability that was not declared -32021', async () => {
    const { url } = await mcpServed();
    expect(await modern(url, 'tools/none', {})).toMatchObject({ status: 404, error: { code: -32_601 } });
    expect(await modern(url, 'tasks/get', { taskId: 'x' })).toMatchObject({ status: 400, error: { code: -32_021 } });
  });

  it('wire 2026: results carry resultType; lists carry ttlMs and cacheScope, and have a fixed order', async () => {
    const { url } = await mcpServed();
    const list = () => modern(url, 'tools/list', {});
    const { result } = await list();
    expect(result).toMatchObject({ resultType: 'complete', ttlMs: 0, cacheScope: 'private' });
    expect((await list()).result).toEqual(result);
    expect((await modern(url, 'tools/call', call('say hello'))).result).toMatchObject({ resultType: 'complete' });
    const capabilities = { elicitation: { form: {} } };
    const asked = await modern(url, 'tools/call', call('refund A-17'), { capabilities });
    expect(asked.result).toMatchObject({ resultType: 'input_required' });
  });

  it('wire 2026, auth: a page of another origin and a host of another name are refused before anything (403)', async () => {
    const { url, runtime } = await mcpServed();
    const evil = { headers: { origin: 'https://evil.example' } };
    for (const method of ['server/discover', 'tools/list'])
      expect((await modern(url, method, {}, evil)).status).toBe(403);
    expect((await modern(url, 'tools/call', call('say hello'), evil)).status).toBe(403);
    // By a name that leads to this machine (DNS rebinding).
    const status = await new Promise((resolve, reject) => {
      const headers = { host: 'evil.example', 'content-type': 'application/json' };
      const asking = request(url, { method: 'POST', headers }, (response) => resolve(response.statusCode));
      asking.on('error', reject).end('{}');
    });
    expect([status, await runtime.list()]).toEqual([403, []]);
  });
});

it('MCP, SSE: the streams of both eras are neither cached nor held back by proxies', async () => {
  const { url } = await mcpServed();
  const session = { 'mcp-session-id': await olderSession(url) };
  const response = await older(url, { id: 1, method: 'tools/call', params: call('say hello') }, session);
  await response.text();
  for (const { headers } of [response, await sent({})]) {
    expect(headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(headers.get('cache-control')).toMatch(/no-cache/);
    expect(headers.get('x-accel-buffering')).toBe('no');
  }
});

describe.each(CLIENT_NAMES)('MCP, %s', (name) => {
  it('server restart kills no session, tools work on without a reconnect, and nothing is answered with 503 (fastmcp#3073, claude-code#59442, neotoma#1923, qwen-code#9962)', async () => {
    const journal = memoryJournal();
    const first = await mcpServed({ runtime: { journal } });
    const client = await mcpClient(name, first.url, { onAsked: () => ({ action: 'accept', content: {} }) });
    const tools = await client.tools();
    expect(await client.call('say one')).toMatchObject({ content: [{ text: 'one' }] });
    await first.close();
    await first.runtime.close();
    await expect(client.tools()).rejects.toThrow();
    const second = await mcpServed({ runtime: { journal }, port: Number(first.url.port) });
    expect(await client.tools()).toEqual(tools);
    expect(await client.call('say two')).toMatchObject({ content: [{ text: 'two' }] });
    expect(await client.call('refund A-17')).toMatchObject({ content: [{ text: 'A-17 is refunded.' }] });
    expect([second.effects.count('refund'), first.faults, second.faults]).toEqual([1, [], []]);
  });

  it('tools/list is never cached while incomplete: the next one has what came meanwhile (claude-code#83147)', async () => {
    let may: Access['may'] & object = (action) => action !== 'start';
    const identity = { tenant: 'acme', user: 'ana' };
    const authenticate = () => ({ identity, may: (...about: Parameters<typeof may>) => may(...about) });
    const { url, faults } = await mcpServed({ handler: { authenticate } });
    const client = await mcpClient(name, url);
    const names = async () => (await client.tools()).map((tool) => tool['name']);
    expect(await names()).toEqual(['run_result']);
    may = () => true;
    expect(await names()).toEqual(['scenario', 'run_result']);
    // A list that could not be made whole is an error, and none that lacks something.
    may = () => {
      throw new PilotageError('journal_busy', 'The database is away.');
    };
    await expect(client.tools()).rejects.toThrow(/cannot do this now|failed/);
    may = () => true;
    expect(await names()).toEqual(['scenario', 'run_result']);
    expect(faults).toHaveLength(1);
  });
});

describe.each(ERAS)('MCP, %s', (name) => {
  it('a pause that is not a tool call (an operator’s): the client is asked, and its yes lets the run go on', async () => {
    const { url, runtime } = await mcpServed();
    const asked: JsonObject[] = [];
    const client = await mcpClient(name, url, {
      onAsked: (params) => {
        asked.push(params);
        return { action: 'accept', content: {} };
      },
    });
    const called = client.call('weather in Oslo');
    await until(async () => (await runtime.list()).length === 1);
    const [record] = await runtime.list();
    await runtime.run(record?.identity.run ?? '').pause();
    expect(await called).toMatchObject({ content: [{ text: 'It is 7 degrees in Oslo.' }] });
    expect(asked).toMatchObject([{ mode: 'form', requestedSchema: { properties: {} } }]);
  });

  it('approvals: when the client goes while it is asked, the run stays paused, and is answered elsewhere', async () => {
    const { url, runtime, effects } = await mcpServed({ onClosedCall: 'leave' });
    const asked = gate();
    const client = await mcpClient(name, url, {
      onAsked: () => {
        asked.open();
        return new Promise(() => {});
      },
    });
    client.call('refund A-17').catch(() => {});
    await asked.opened;
    await client.close();
    const [record] = await runtime.list();
    const run = runtime.run(record?.identity.run ?? '');
    expect(record?.status).toBe('paused');
    await run.approve();
    const later = await mcpClient(name, url);
    const answer = await later.call({ runId: run.id }, { tool: 'run_result' });
    expect([answer.content[0]?.text, effects.count('refund')]).toEqual(['A-17 is refunded.', 1]);
  });

  it('auth: who may not answer is told that the run waits, and runs nothing', async () => {
    const identity = { tenant: 'acme', user: 'ana' };
    const may: Access['may'] = (action) => action !== 'answer';
    const { url, runtime, effects } = await mcpServed({ handler: { authenticate: () => ({ identity, may }) } });
    const client = await mcpClient(name, url, { onAsked: () => ({ action: 'accept', content: {} }) });
    const called = client.call('refund A-17').then(
      ({ structuredContent }) => structuredContent?.['status'],
      (error: Error) => error.message,
    );
    expect(await called).toMatch(/waiting|may not do this/);
    expect([(await runtime.list())[0]?.status, effects.count('refund')]).toEqual(['paused', 0]);
  });

  it('auth: a run of somebody else is not found, in the words for one that never was', async () => {
    const authenticate = (request: Request) => ({
      identity: { tenant: 'acme', user: request.headers.get('authorization') ?? '' },
    });
    const { url } = await mcpServed({ handler: { authenticate } });
    const [ana, ben] = [
      await mcpClient(name, url, { headers: { authorization: 'ana' } }),
      await mcpClient(name, url, { headers: { authorization: 'ben' } }),
    ];
    const { structuredContent } = await ana.call('say secret');
    const runId = String(structuredContent?.['runId']);
    const [foreign, never] = [
      await ben.call({ runId }, { tool: 'run_result' }),
      await ben.call({ runId: 'run_never' }, { tool: 'run_result' }),
    ];
    expect(foreign).toMatchObject({ isError: true, content: [{ text: `There is no run ${runId}.` }] });
    expect(never).toMatchObject({ isError: true, content: [{ text: 'There is no run run_never.' }] });
  });
});

it('MCP, cancellation: closing the stream of a call cancels nothing for whoever may not cancel, and is no fault', async () => {
  const identity = { tenant: 'acme', user: 'ana' };
  for (const access of [
    { identity, may: ((action) => action !== 'control') as Access['may'] },
    { identity, as: 'session_user' },
  ]) {
    const { url, runtime, faults } = await mcpServed({ handler: { authenticate: () => access as Access } });
    const left = new AbortController();
    const called = modern(url, 'tools/call', call('weather in Oslo'), { signal: left.signal });
    await until(async () => (await runtime.list()).length === 1);
    left.abort();
    await expect(called).rejects.toThrow();
    await until(async () => (await runtime.list())[0]?.status === 'finished');
    expect(faults).toEqual([]);
  }
});
