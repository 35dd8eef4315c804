/** Runs as tasks of MCP's extension, with the client helpers of its own package. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { createTaskSessionFromClient } from '@modelcontextprotocol/ext-tasks/client';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { JsonObject } from '#core';
import { agent } from '#pilotage';
import { finish, named, parallel, script } from '../kit/decisions.ts';
import { mcpServed, modern } from '../kit/mcp.ts';
import { make } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';

const EXTENSION = { extensions: { 'io.modelcontextprotocol/tasks': {} } };
const ASKABLE = { elicitation: { form: {} } };
const ACCEPT = { action: 'accept' as const, content: {} };

/** @param onInput absent: the client cannot be asked. */
async function session(url: URL, onInput?: (params: JsonObject) => JsonObject) {
  const clientInfo = { name: 'test', version: '1.0.0' };
  const clientCapabilities = onInput === undefined ? {} : ASKABLE;
  const client = new Client(clientInfo, { capabilities: clientCapabilities, versionNegotiation: { mode: 'auto' } });
  await client.connect(new StreamableHTTPClientTransport(url));
  const made = createTaskSessionFromClient(client, {
    endpointId: 'test',
    rawDispatch: async (request: unknown) => {
      const { method, params } = request as { method: string; params: JsonObject };
      const { result, error } = await modern(url, method, params);
      if (error !== undefined) return { kind: 'error', error: error as never };
      return { kind: 'result', result: result as never };
    },
    v2RequestFraming: { protocolVersion: '2026-07-28', clientInfo, clientCapabilities },
    ...(onInput && { onInputRequest: async ({ params }: { params: JsonObject }) => onInput(params) }),
  } as unknown as Parameters<typeof createTaskSessionFromClient>[1]);
  onTestFinished(async () => {
    await made.close();
    await client.close();
  });
  return made;
}

describe('MCP, long runs: a call of a client that has the tasks extension', () => {
  it('is a task, whose id is that of a run that is stored, and has its result in the end', async () => {
    const { url, runtime } = await mcpServed();
    const tasks = await session(url);
    const execution = await tasks.callTool('scenario', { input: 'weather in Oslo' });
    const { outcome } = await execution.settle();
    expect(outcome).toMatchObject({ result: { content: [{ text: 'It is 7 degrees in Oslo.' }] } });
    expect(await runtime.list()).toMatchObject([{ status: 'finished' }]);
  });

  it('asks for an approval on the way', async () => {
    const { url, effects } = await mcpServed();
    const asked: JsonObject[] = [];
    const tasks = await session(url, (params) => {
      asked.push(params);
      return ACCEPT;
    });
    const { outcome } = await (await tasks.callTool('scenario', { input: 'refund A-17 and B-18' })).settle();
    expect(outcome).toMatchObject({ result: { content: [{ text: 'A-17 is refunded. B-18 is refunded.' }] } });
    expect([asked.length, effects.count('refund')]).toEqual([2, 2]);
  });
});

describe('MCP, long runs: the extension io.modelcontextprotocol/tasks', () => {
  const call = { name: 'scenario', arguments: { input: 'refund A-17' } };

  async function begun() {
    const served = await mcpServed();
    const ask = (method: string, params: JsonObject, capabilities: JsonObject = { ...EXTENSION, ...ASKABLE }) =>
      modern(served.url, method, params, { capabilities });
    const { result = {} } = await ask('tools/call', call);
    const taskId = String(result['taskId']);
    return { ...served, ask, taskId, result };
  }

  it('is announced, and answers a call with a task only for who declares it', async () => {
    const { ask, result, taskId, runtime } = await begun();
    expect(result).toMatchObject({
      resultType: 'task',
      status: 'working',
      ttlMs: null,
      pollIntervalMs: expect.any(Number),
    });
    expect((await runtime.run(taskId).record()).identity.run).toBe(taskId);
    expect(await ask('server/discover', {})).toMatchObject({ result: { capabilities: EXTENSION } });
    expect(await ask('tools/call', call, ASKABLE)).toMatchObject({ result: { resultType: 'input_required' } });
    expect(await ask('tasks/get', { taskId }, {})).toMatchObject({ status: 400, error: { code: -32_021 } });
  });

  it('tells where a run stands: what it asks, what it has come to, also when it failed or was cancelled', async () => {
    const { ask, taskId, effects } = await begun();
    await until(async () => (await ask('tasks/get', { taskId })).result?.['status'] === 'input_required');
    const { result = {} } = await ask('tasks/get', { taskId });
    const [token = ''] = Object.keys(result['inputRequests'] as JsonObject);
    expect(result).toMatchObject({
      resultType: 'complete',
      inputRequests: { [token]: { method: 'elicitation/create', params: { mode: 'form' } } },
    });
    // Whoever cannot be asked is told, and waits.
    expect(await ask('tasks/get', { taskId }, EXTENSION)).toMatchObject({
      result: { status: 'working', statusMessage: expect.stringContaining('May refund be called') },
    });
    // Answers to what nobody asks, and the same answer again, change nothing.
    const answer = { taskId, inputResponses: { other: ACCEPT, [token]: ACCEPT } };
    expect(await ask('tasks/update', answer)).toMatchObject({ result: { resultType: 'complete' } });
    expect(await ask('tasks/update', answer)).toMatchObject({ result: { resultType: 'complete' } });
    await until(async () => (await ask('tasks/get', { taskId })).result?.['status'] === 'completed');
    expect(await ask('tasks/get', { taskId })).toMatchObject({
      result: {
        result: { resultType: 'complete', structuredContent: { status: 'finished', answer: 'A-17 is refunded.' } },
      },
    });
    expect(effects.count('refund')).toBe(1);
    const { result: failing = {} } = await ask('tools/call', { name: 'scenario', arguments: { input: 'fail' } });
    const failed = { taskId: String(failing['taskId']) };
    await until(async () => (await ask('tasks/get', failed)).result?.['status'] === 'completed');
    expect(await ask('tasks/get', failed)).toMatchObject({ result: { result: { isError: true } } });
  });

  it('takes the answer to one question while the call of another is carried out', async () => {
    const { ask, effects } = await begun();
    const both = { name: 'scenario', arguments: { input: 'refund A-17 and B-18' } };
    const taskId = String((await ask('tools/call', both)).result?.['taskId']);
    await until(async () => (await ask('tasks/get', { taskId })).result?.['status'] === 'input_required');
    const [one = '', two = ''] = Object.keys(
      (await ask('tasks/get', { taskId })).result?.['inputRequests'] as JsonObject,
    );
    await ask('tasks/update', { taskId, inputResponses: { [one]: ACCEPT } });
    await until(() => effects.count('refund') === 1);
    await ask('tasks/update', { taskId, inputResponses: { [two]: ACCEPT } });
    await until(async () => (await ask('tasks/get', { taskId })).result?.['status'] !== 'working');
    expect(await ask('tasks/get', { taskId })).toMatchObject({
      result: { status: 'completed', result: { structuredContent: { answer: 'A-17 is refunded. B-18 is refunded.' } } },
    });
  });

  it('asks while other calls of the run are under way, and not again once it has the answer', async () => {
    const mayEnd = gate();
    const [pay, hold] = [make('pay', () => 'paid', { needsApproval: true }), make('hold', () => mayEnd.opened)];
    const planner = script(parallel(named('pay', 'hold')), finish('done'));
    const main = agent({ name: 'scenario', planner, tools: [pay, hold] });
    const { url, runtime } = await mcpServed({ runtime: { agents: [main] } });
    const ask = async (method: string, params: JsonObject, capabilities: JsonObject = { ...EXTENSION, ...ASKABLE }) =>
      (await modern(url, method, params, { capabilities })).result ?? {};
    const taskId = String((await ask('tools/call', call))['taskId']);
    await until(async () => (await ask('tasks/get', { taskId }))['status'] === 'input_required');
    const { inputRequests } = (await ask('tasks/get', { taskId })) as { inputRequests: JsonObject };
    expect((await runtime.run(taskId).record()).status).toBe('running');
    expect(await ask('tasks/get', { taskId }, EXTENSION)).toMatchObject({
      status: 'working',
      statusMessage: expect.stringContaining('May pay be called'),
    });
    const [token = ''] = Object.keys(inputRequests);
    await ask('tasks/update', { taskId, inputResponses: { [token]: ACCEPT } });
    expect(await ask('tasks/get', { taskId })).toMatchObject({ status: 'working' });
    mayEnd.open();
    await until(async () => (await ask('tasks/get', { taskId }))['status'] === 'completed');
  });

  it('cancels a run, and only when it is told so: closing a connection is no word', async () => {
    const { ask, url, runtime } = await begun();
    const left = new AbortController();
    const slow = { name: 'scenario', arguments: { input: 'slow 500' }, _meta: { 'pilotage/idempotencyKey': 'slow' } };
    const { result = {} } = await ask('tools/call', slow);
    const taskId = String(result['taskId']);
    const closed = modern(url, 'tasks/get', { taskId }, { capabilities: EXTENSION, signal: left.signal });
    left.abort();
    await expect(closed).rejects.toThrow();
    // The same call again is the same task.
    expect(await ask('tools/call', slow)).toMatchObject({ result: { taskId } });
    expect((await runtime.run(taskId).record()).status).toBe('running');
    expect(await ask('tasks/cancel', { taskId })).toMatchObject({ result: { resultType: 'complete' } });
    await until(async () => (await ask('tasks/get', { taskId })).result?.['status'] === 'cancelled');
    expect(await ask('tasks/cancel', { taskId })).toMatchObject({ result: { resultType: 'complete' } });
  });

  it('has no methods but its own, whatever a method is called', async () => {
    const { ask, faults } = await begun();
    for (const method of ['tasks/result', 'constructor', 'valueOf', 'toString', '__proto__'])
      expect(await ask(method, {})).toEqual({
        ...{ status: 404, jsonrpc: '2.0', id: 1 },
        error: { code: -32_601, message: 'Method not found' },
      });
    expect(faults).toEqual([]);
  });

  it('finds no task that is not there, or is of somebody else, and takes no headers that say otherwise', async () => {
    const { ask, url, taskId } = await begun();
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      expect(await ask(method, { taskId: 'run_other', inputResponses: {} })).toMatchObject({
        error: { code: -32_602, message: 'Task not found' },
      });
    const foreign = await mcpServed({
      runtime: {},
      handler: { authenticate: () => ({ identity: { tenant: 'other', user: 'other' } }) },
    });
    expect(await modern(foreign.url, 'tasks/get', { taskId }, { capabilities: EXTENSION })).toMatchObject({
      error: { message: 'Task not found' },
    });
    const headers = { 'mcp-name': 'other' };
    expect(await modern(url, 'tasks/get', { taskId }, { capabilities: EXTENSION, headers })).toMatchObject({
      status: 400,
      error: { code: -32_020 },
    });
    const refused = await modern(url, 'tools/call', call, { capabilities: EXTENSION, headers });
    expect(refused).toMatchObject({ status: 400, error: { code: -32_020 } });
  });
});
