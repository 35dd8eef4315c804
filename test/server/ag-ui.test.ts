/** AG-UI with its own clients, unmodified: their verifiers throw at every event that is out of order. */
import { describe, expect, it } from 'vitest';
import { agUiServer, client, rolesOf, say, textOf, type Version } from '../kit/ag-ui.ts';

const VERSIONS: readonly Version[] = ['1.0.0', '0.0.59'];

describe.each(VERSIONS)('AG-UI: a client of %s', (version) => {
  it('gets tokens as TEXT_MESSAGE_* as they come, the answer once, first RUN_STARTED, last RUN_FINISHED (order, mapping)', async () => {
    const { url } = await agUiServer();
    const agent = client(url, { version });
    const { result, newMessages } = await say(agent, 'say one two three');
    expect(textOf(agent)).toBe('one two three');
    expect(result).toBe('one two three');
    expect(newMessages).toHaveLength(1);
    expect(agent.types.filter((type) => type === 'TEXT_MESSAGE_CONTENT')).toHaveLength(3);
    expect(agent.types[0]).toBe('RUN_STARTED');
    expect(agent.types.at(-1)).toBe('RUN_FINISHED');
  });

  it('sees tool.invoked as TOOL_CALL_START/ARGS/END and its outcome as TOOL_CALL_RESULT (mapping)', async () => {
    const { url, effects } = await agUiServer();
    const agent = client(url, { version });
    await say(agent, 'weather in Oslo');
    expect(rolesOf(agent)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    const [, asked, answered] = agent.messages;
    expect(asked).toMatchObject({ toolCalls: [{ function: { name: 'weather', arguments: '{"city":"Oslo"}' } }] });
    expect(JSON.parse(String(answered?.content))).toEqual({ city: 'Oslo', celsius: 7 });
    expect(textOf(agent)).toBe('It is 7 degrees in Oslo.');
    expect(effects.count('weather')).toBe(1);
  });

  it('approves: STATE_SNAPSHOT and MESSAGES_SNAPSHOT before the interrupt, and the resumed run does not repeat TOOL_CALL_START (approvals)', async () => {
    const { url, effects } = await agUiServer();
    const agent = client(url, { version });
    await say(agent, 'refund A-17');
    const [interrupt] = agent.pendingInterrupts;
    expect(interrupt).toMatchObject({ reason: 'tool_call', responseSchema: { required: ['approved'] } });
    expect(agent.types.slice(-3)).toEqual(['STATE_SNAPSHOT', 'MESSAGES_SNAPSHOT', 'RUN_FINISHED']);
    expect(effects.count('refund')).toBe(0);
    const call = agent.messages.at(-1);
    expect(call).toMatchObject({ role: 'assistant', toolCalls: [{ id: interrupt?.toolCallId }] });
    agent.seen.length = 0;
    await agent.runAgent({
      resume: [{ interruptId: String(interrupt?.id), status: 'resolved', payload: { approved: true } }],
    });
    expect(agent.types).not.toContain('TOOL_CALL_START');
    expect(agent.types).toContain('TOOL_CALL_RESULT');
    expect(rolesOf(agent)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(textOf(agent)).toBe('A-17 is refunded.');
    expect(effects.count('refund')).toBe(1);
    expect(agent.pendingInterrupts).toEqual([]);
  });

  it('sees progress as STATE_SNAPSHOT and STATE_DELTA that applies, and what is emitted as CUSTOM (mapping)', async () => {
    const { url } = await agUiServer();
    const agent = client(url, { version });
    await say(agent, 'data');
    expect(agent.state).toEqual({ progress: { percent: 100 } });
    expect(agent.seen).toContainEqual(expect.objectContaining({ type: 'CUSTOM', name: 'data-note' }));
    expect(textOf(agent)).toBe('All is reported.');
  });

  it('is told of planner.error as RUN_ERROR without stack, path or key (errors)', async () => {
    const { url } = await agUiServer();
    const agent = client(url, { version });
    await say(agent, 'fail');
    const last = agent.seen.at(-1);
    expect(last).toMatchObject({ type: 'RUN_ERROR' });
    expect(JSON.stringify(agent.seen)).not.toMatch(/secret|sk-|srv|connect/);
  });

  it('verifies a history of several runs in one stream with an old RUN_ERROR (CopilotKit#4943), and goes on with it', async () => {
    const { url } = await agUiServer();
    const agent = client(url, { version });
    await say(agent, 'weather in Oslo');
    await say(agent, 'fail').catch(() => {});
    await say(agent, 'say one two');
    const other = client(url, { version, threadId: agent.threadId });
    await other.connectAgent();
    expect(other.messages).toEqual(agent.messages);
    expect(other.types.filter((type) => type === 'RUN_STARTED')).toHaveLength(3);
    expect(other.types).toContain('RUN_ERROR');
    await say(other, 'say three');
    expect(textOf(other)).toBe('three');
    await agent.connectAgent();
    expect(textOf(agent)).toBe('three');
    expect(new Set(agent.messages.map(({ id }) => id)).size).toBe(agent.messages.length);
  });
});
