/** MCP over HTTP, with the clients that people have: what a call gives, asks and tells, in both eras of the protocol. */
import { describe, expect, it } from 'vitest';
import type { JsonObject } from '#core';
import { CLIENT_NAMES, type ClientName, mcpClient, mcpServed, noting } from '../kit/mcp.ts';
import { until } from '../kit/waiting.ts';

const REFUNDED = {
  content: [{ type: 'text', text: 'A-17 is refunded.' }],
  structuredContent: { status: 'finished', answer: 'A-17 is refunded.' },
};
const accept = (content: JsonObject = {}) => ({ action: 'accept', content });
/** Those that can be told of progress and be aborted. */
const SDKS = CLIENT_NAMES.filter((name) => name !== '@ai-sdk/mcp');

describe.each(CLIENT_NAMES)('MCP, %s', (name: ClientName) => {
  it('runs as tools: finds each agent as a tool with its schemas and annotations, all of them in one order, and calls it (structuredContent)', async () => {
    const { url, effects, faults } = await mcpServed();
    const client = await mcpClient(name, url);
    const tools = await client.tools();
    expect(tools.map((tool) => tool['name'])).toEqual(['scenario', 'run_result']);
    expect(tools).toEqual(await client.tools());
    expect(tools[0]).toMatchObject({
      description: expect.any(String),
      inputSchema: { type: 'object', properties: { input: { type: 'string' } } },
      outputSchema: { required: ['runId', 'status'] },
      annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false },
    });
    expect(tools[1]).toMatchObject({ annotations: { readOnlyHint: true } });
    expect(await client.call('weather in Oslo')).toMatchObject({
      content: [{ type: 'text', text: 'It is 7 degrees in Oslo.' }],
      structuredContent: { status: 'finished', answer: 'It is 7 degrees in Oslo.', runId: expect.any(String) },
    });
    expect(effects.count('weather')).toBe(1);
    expect(faults).toEqual([]);
  });

  it('approvals: is asked, and what a person says counts', async () => {
    const { url, effects, faults } = await mcpServed();
    const asked: JsonObject[] = [];
    const says = [accept(), { action: 'decline' }];
    const client = await mcpClient(name, url, { onAsked: noting(asked, () => says.shift() ?? {}) });
    expect(await client.call('refund A-17')).toMatchObject(REFUNDED);
    expect(asked).toMatchObject([{ message: 'May refund be called with {"order":"A-17","amount":90}?' }]);
    expect(await client.call('refund A-17')).toMatchObject({ content: [{ text: 'A-17 is not refunded.' }] });
    expect(effects.count('refund')).toBe(1);
    expect(faults).toEqual([]);
  });

  it('approvals: is asked for two calls of one step, and each has its answer', async () => {
    const { url, effects } = await mcpServed();
    const onAsked = ({ message }: JsonObject) => (String(message).includes('A-17') ? { action: 'decline' } : accept());
    const client = await mcpClient(name, url, { onAsked });
    const { content } = await client.call('refund A-17 and B-18');
    expect(content[0]?.text).toBe('A-17 is not refunded. B-18 is refunded.');
    expect(effects.count('refund')).toBe(1);
  });

  it('approve with other arguments: they are fields of the form', async () => {
    const { url, runtime } = await mcpServed();
    const asked: JsonObject[] = [];
    const client = await mcpClient(name, url, {
      onAsked: noting(asked, () => accept({ order: 'A-17', amount: 40 })),
    });
    const { structuredContent } = await client.call('refund A-17');
    expect(asked).toMatchObject([{ requestedSchema: { properties: { amount: { type: 'number', default: 90 } } } }]);
    const { steps } = await runtime.run(String(structuredContent?.['runId'])).state();
    expect(steps[0]?.calls[0]).toMatchObject({ outcome: { value: { refunded: 40 } } });
  });

  it('approvals, clients without elicitation: one that cannot be asked never hangs, it is told what the run waits for and how to answer, and asks for the end later (kilocode#14355, pulsemcp#384, opencode#23066)', async () => {
    const { url, runtime, effects } = await mcpServed({
      howToAnswer: ({ run, token }) => `Go to /answer/${run}/${token}.`,
    });
    const client = await mcpClient(name, url);
    const { content, structuredContent = {}, isError } = await client.call('refund A-17');
    expect(structuredContent).toMatchObject({ status: 'waiting', waitsFor: [{ reason: 'approval_required' }] });
    expect(isError ?? false).toBe(false);
    const run = String(structuredContent['runId']);
    expect(content[0]?.text).toContain(`Go to /answer/${run}/pause_`);
    await runtime.run(run).approve();
    expect(await client.call({ runId: run }, { tool: 'run_result' })).toMatchObject(REFUNDED);
    expect(effects.count('refund')).toBe(1);
  });

  it('a pause that is not a tool call of ours: a tool that is the client’s own is carried out by a form', async () => {
    const { url } = await mcpServed();
    const asked: JsonObject[] = [];
    const client = await mcpClient(name, url, { onAsked: noting(asked, () => accept({ answer: 'blue' })) });
    expect((await client.call('pick a color')).content[0]?.text).toBe('You picked "blue".');
    expect(asked).toMatchObject([{ message: expect.stringContaining('pickColor') }]);
  });

  it('approvals: a person who does not want to decide now ends the call, and the run waits on', async () => {
    const { url, runtime } = await mcpServed();
    const client = await mcpClient(name, url, { onAsked: () => ({ action: 'cancel' }) });
    const { structuredContent = {} } = await client.call('refund A-17');
    expect(structuredContent).toMatchObject({ status: 'waiting' });
    expect(await runtime.run(String(structuredContent['runId'])).record()).toMatchObject({ status: 'paused' });
  });

  it('runs as tools, errors: a failure is a result (isError), with no stack, path or key', async () => {
    const { url } = await mcpServed({ handler: { errorText: ({ code }) => `It failed: ${code}` } });
    const client = await mcpClient(name, url);
    const failed = await client.call('fail');
    expect(failed).toMatchObject({
      isError: true,
      content: [{ text: 'It failed: planner_failed' }],
      structuredContent: { status: 'failed' },
    });
    expect(JSON.stringify(failed)).not.toMatch(/srv|sk-|at connect/);
  });
});

describe.each(SDKS)('MCP, %s', (name: ClientName) => {
  it('runs as tools, progress: it is told only with a progressToken, strictly increases, and its message is the step', async () => {
    const { url } = await mcpServed();
    const heard: { readonly progress: number; readonly message?: string | undefined }[] = [];
    const client = await mcpClient(name, url, { onAsked: () => accept() });
    await client.call('refund A-17', { onProgress: (each) => heard.push(each) });
    // The client tells of its own rounds by the same way.
    if (name === 'client 2.4, auto') expect(heard.splice(2, 1)).toMatchObject([{ progress: 1 }]);
    const numbers = heard.map(({ progress }) => progress);
    expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other));
    expect(heard.map(({ message }) => message)).toEqual([
      'It begins.',
      'Step 1: refund',
      'refund is done.',
      'Step 2: Finish',
    ]);
  });

  it('runs as tools, errors: arguments that do not fit, or a tool that is not there, begin nothing', async () => {
    const { url, runtime } = await mcpServed();
    const client = await mcpClient(name, url);
    expect(await client.call({ other: 1 })).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('input') }],
    });
    await expect(client.call('x', { tool: 'nobody' })).rejects.toThrow(/nobody/);
    expect(await runtime.list()).toEqual([]);
  });

  it('cancellation: closing the stream (2026) or notifications/cancelled (2025) cancels the call, and with it the run', async () => {
    const { url, runtime, faults } = await mcpServed();
    const client = await mcpClient(name, url);
    const left = new AbortController();
    const called = client.call('slow 500', { signal: left.signal, onProgress: () => left.abort() });
    await expect(called).rejects.toThrow();
    await until(async () => (await runtime.list())[0]?.status === 'cancelled');
    expect(await client.call('say that it goes on')).toMatchObject({ content: [{ text: 'that it goes on' }] });
    expect(faults).toEqual([]);
  });
});
