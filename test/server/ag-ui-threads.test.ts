/** Threads of AG-UI: tools of the client, ids, late readers, clients that go, threads of others, tasks, plans, and what is taken back. */
import type { Message, Tool } from '@ag-ui/client';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Planner } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { createHandler, serve } from '#server';
import { agUi } from '#server/ag-ui';
import { agent as agentOf } from '#tools';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { agUiServer, type Client, client, rolesOf, say, textOf, type Version } from '../kit/ag-ui.ts';
import { call, finish, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';

/** The agent has it too, as a tool that its client carries out; another one is the page's own. */
const PICK: Tool = { name: 'pickColor', description: 'Lets the user pick a color.', parameters: { type: 'object' } };
const SCROLL: Tool = { name: 'scroll', description: '', parameters: { type: 'object' } };
const count = (agent: Client, type: string): number => agent.types.filter((each) => each === type).length;

describe.each<Version>(['1.0.0', '0.0.59'])('AG-UI frontend tools: a client of %s', (version) => {
  it('gets the call, ends the run with success (pendingToolCallIds for 1.0 alone), and answers with a role:tool message in the next run', async () => {
    const { url } = await agUiServer();
    const agent = client(url, { version });
    agent.addMessage({ id: 'm1', role: 'user', content: 'pick a color' });
    await agent.runAgent({ tools: [SCROLL, PICK] });
    const ended = agent.seen.at(-1) as { outcome?: { type: string; pendingToolCallIds?: string[] } };
    const { toolCalls = [] } = agent.messages.at(-1) as { toolCalls?: { id: string }[] };
    expect(ended.outcome?.type).toBe('success');
    expect(ended.outcome?.pendingToolCallIds).toEqual(version === '1.0.0' ? [toolCalls[0]?.id] : undefined);
    agent.addMessage({ id: 't1', role: 'tool', toolCallId: toolCalls[0]?.id ?? '', content: '"teal"' });
    await agent.runAgent({ tools: [SCROLL, PICK] });
    expect(rolesOf(agent)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(textOf(agent)).toBe('You picked "teal".');
    // The same again: nothing is called, and nothing comes twice.
    await agent.runAgent({ tools: [SCROLL, PICK] });
    expect(rolesOf(agent)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    const other = client(url, { version, threadId: agent.threadId });
    await other.connectAgent();
    expect(rolesOf(other)).toEqual(rolesOf(agent));
    expect(other.messages[2]).toMatchObject({ role: 'tool', toolCallId: toolCalls[0]?.id, content: 'teal' });
  });

  it('may say that it has failed, or write something else', async () => {
    const { url } = await agUiServer();
    const [failed, forgot] = [client(url, { version }), client(url, { version })];
    for (const agent of [failed, forgot]) {
      agent.addMessage({ id: 'm1', role: 'user', content: 'pick a color' });
      await agent.runAgent({ tools: [SCROLL, PICK] });
    }
    const { toolCalls = [] } = failed.messages.at(-1) as { toolCalls?: { id: string }[] };
    const error = { error: 'The window was closed.', content: '' };
    failed.addMessage({ id: 't1', role: 'tool', toolCallId: toolCalls[0]?.id ?? '', ...error });
    await failed.runAgent({ tools: [SCROLL, PICK] });
    expect(textOf(failed)).toBe('No color was picked.');
    await say(forgot, 'never mind');
    expect(textOf(forgot)).toBe('No color was picked.');
    expect(forgot.types.at(-1)).toBe('RUN_FINISHED');
  });
});

describe('AG-UI: a thread', () => {
  it('answers the same message, and the same runId, once; ids of messages are stable (ids)', async () => {
    const { url, effects, runtime } = await agUiServer();
    const agent = client(url);
    const message: Message = { id: 'm1', role: 'user', content: 'weather in Oslo' };
    agent.addMessage(message);
    await Promise.all([
      agent.runAgent({ runId: 'r1' }),
      client(url, { threadId: agent.threadId })
        .runAgent({ runId: 'r0' })
        .catch(() => {}),
    ]);
    const again = client(url, { threadId: agent.threadId });
    again.setMessages([message]);
    await again.runAgent({ runId: 'r2' });
    const other = client(url, { threadId: agent.threadId });
    other.setMessages([{ ...message, id: 'm2' }]);
    await other.runAgent({ runId: 'r1' });
    await agent.runAgent({ runId: 'r3' });
    for (const each of [agent, again]) expect(rolesOf(each)).toEqual(['user', 'assistant', 'tool', 'assistant']);
    expect(again.messages).toEqual(agent.messages);
    expect(textOf(other)).toBe('It is 7 degrees in Oslo.');
    expect(await runtime.list()).toHaveLength(1);
    expect(effects.count('weather')).toBe(1);
  });

  it('gives a late reader the text so far, then what comes, without gap or repeat (reattaching)', async () => {
    const { url } = await agUiServer();
    const agent = client(url);
    const saying = say(agent, 'slow 25');
    await until(() => count(agent, 'TEXT_MESSAGE_CONTENT') > 4);
    const late = client(url, { threadId: agent.threadId });
    // One that has lost its connection in the middle holds a part of the answer.
    const torn = client(url, { threadId: agent.threadId });
    torn.setMessages(structuredClone(agent.messages));
    await Promise.all([saying, late.connectAgent(), torn.connectAgent()]);
    const words = Array.from({ length: 25 }, (_, index) => `w${index}`).join(' ');
    for (const each of [agent, late, torn]) expect(textOf(each)).toBe(words);
    expect(late.messages).toEqual(agent.messages);
    expect(torn.messages).toEqual(agent.messages);
    expect(count(late, 'TEXT_MESSAGE_CONTENT')).toBeLessThan(25);
    await late.connectAgent();
    expect(late.messages).toEqual(agent.messages);
  });

  it('goes on when abortRun() disconnects, and ends as cancelled at the cancel endpoint (abort, the client going away)', async () => {
    vi.spyOn(console, 'error').mockImplementation(() => {});
    const { url } = await agUiServer();
    const agent = client(url);
    const saying = say(agent, 'slow 20').catch(() => {});
    await until(() => count(agent, 'TEXT_MESSAGE_CONTENT') > 1);
    agent.abortRun();
    await saying;
    const later = client(url, { threadId: agent.threadId });
    await later.connectAgent();
    expect(textOf(later)).toMatch(/^w0 .* w19$/);
    later.seen.length = 0;
    const next = say(later, 'slow 200');
    await until(() => count(later, 'TEXT_MESSAGE_CONTENT') > 8);
    const cancel = () =>
      fetch(`${url}/ag-ui/cancel`, { method: 'POST', body: JSON.stringify({ threadId: agent.threadId }) });
    expect(await (await cancel()).json()).toEqual({ cancelled: true });
    await next;
    expect(later.seen.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
    expect(await (await cancel()).json()).toEqual({ cancelled: false });
  });

  it('takes messages one after another while it is busy', async () => {
    const { url } = await agUiServer();
    const agent = client(url);
    const other = client(url, { threadId: agent.threadId });
    const first = say(agent, 'slow 10');
    await until(() => agent.types.includes('RUN_STARTED'));
    const second = say(other, 'say two');
    await Promise.all([first, second]);
    expect(textOf(other)).toBe('two');
    const all = client(url, { threadId: agent.threadId });
    await all.connectAgent();
    expect(rolesOf(all)).toEqual(['user', 'assistant', 'user', 'assistant']);
  });

  it('is its owner’s: 401 and 403 before any stream, and others have another thread of the same name (auth)', async () => {
    const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal: memoryJournal() });
    const authenticate = (request: Request) => {
      const user = request.headers.get('authorization');
      if (user === null) return new Response('who?', { status: 401 });
      return { identity: { tenant: 'acme', user }, may: (action: string) => user !== 'reader' || action === 'read' };
    };
    const handler = createHandler({ runtime, parts: [agUi()], authenticate });
    const { url, close } = await serve(handler, { port: 0 });
    onTestFinished(async () => {
      await close();
      await runtime.close();
    });
    const as = (user: string): Client =>
      Object.assign(client(url, { threadId: 't' }), { headers: { authorization: user } });
    const [ana, ben] = [as('ana'), as('ben')];
    await say(ana, 'refund A-17');
    await ben.connectAgent();
    expect(ben.messages).toEqual([]);
    const resume = [
      { interruptId: ana.pendingInterrupts[0]?.id ?? '', status: 'resolved' as const, payload: { approved: true } },
    ];
    await ben.runAgent({ resume });
    expect(ben.seen.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'pause_not_found' });
    vi.spyOn(console, 'error').mockImplementation(() => {});
    await expect(say(as('reader'), 'say hi')).rejects.toThrow('403');
    await expect(say(client(url), 'say hi')).rejects.toThrow('401');
    const wrong = await fetch(`${url}/ag-ui`, {
      method: 'POST',
      headers: { authorization: 'ana' },
      body: '{"threadId":1}',
    });
    expect(wrong.status).toBe(400);
    const source = { type: 'data', value: 'aGk***', mimeType: 'text/plain' };
    const broken = { id: 'broken', role: 'user', content: [{ type: 'document', source }] };
    const told = await fetch(`${url}/ag-ui`, {
      ...{ method: 'POST', headers: { authorization: 'Bearer acme/ana' } },
      body: JSON.stringify({ threadId: 'broken', runId: 'broken', messages: [broken] }),
    });
    expect(await told.text()).toContain('The data of a file must be base64.');
  });

  it('keeps what only the client has: greetings, instructions, and state of its own', async () => {
    const { url } = await agUiServer();
    const agent = client(url);
    agent.setMessages([
      { id: 's', role: 'system', content: 'Be kind.' },
      { id: 'g', role: 'assistant', content: 'How can I help?' },
    ]);
    agent.setState({ theme: 'dark', tasks: { old: {} } });
    await say(agent, 'refund A-17');
    expect(agent.messages.map(({ content }) => content)).toEqual([
      'Be kind.',
      'How can I help?',
      'refund A-17',
      undefined,
    ]);
    expect(agent.state).toEqual({ theme: 'dark' });
  });
});

describe('AG-UI: a turn', () => {
  it('calls tools that only the page has', async () => {
    const planner = script(call('scroll', { to: 'top' }, 'c1'), finish('done'));
    const { url } = await agUiServer({ agents: [agentOf({ name: 'pages', planner })] });
    const agent = client(url);
    // The servers of some models number the calls of each reply anew.
    for (const turn of [1, 2]) {
      agent.addMessage({ id: `m${turn}`, role: 'user', content: 'up' });
      await agent.runAgent({ tools: [SCROLL] });
      const asking = agent.messages.at(-1);
      const [made, ...others] = (asking?.role === 'assistant' && asking.toolCalls) || [];
      expect([made?.function, others]).toEqual([{ name: 'scroll', arguments: '{"to":"top"}' }, []]);
      agent.addMessage({ id: `t${turn}`, role: 'tool', toolCallId: made?.id ?? '', content: 'ok' });
      await agent.runAgent({ tools: [SCROLL] });
      expect(agent.messages.at(-1)).toMatchObject({ role: 'assistant', content: 'done' });
    }
    expect(agent.messages.filter(({ role }) => role === 'tool')).toHaveLength(2);
  });

  it('shows interrupts of tasks under subagentRunId, and goes on with them when they are answered (subagents suspended)', async () => {
    const refund = make('refund', () => 'paid', { effect: 'once', needsApproval: true });
    const child = agentOf({ name: 'child', planner: script(call('refund'), finish('found it')), tools: [refund] });
    const spawn = {
      kind: 'spawn_task',
      task: 'foreground',
      spec: { description: 'Look.', query: 'look', agent: 'child' },
    } as const;
    const parent = agentOf({ name: 'parent', planner: script(spawn, finish('done')) });
    const { url } = await agUiServer({ agents: [parent, child] });
    const agent = client(url);
    await say(agent, 'go');
    const [interrupt] = agent.pendingInterrupts;
    expect(interrupt?.subagentRunId).toBeDefined();
    expect(agent.messages).toContainEqual(
      expect.objectContaining({ toolCalls: [expect.objectContaining({ id: interrupt?.toolCallId })] }),
    );
    expect(agent.seen).toContainEqual(
      expect.objectContaining({ type: 'SUBAGENT_FINISHED', outcome: { type: 'suspended' } }),
    );
    agent.seen.length = 0;
    await agent.runAgent({
      resume: [{ interruptId: interrupt?.id ?? '', status: 'resolved', payload: { approved: true } }],
    });
    expect(agent.types).not.toContain('TOOL_CALL_START');
    expect(count(agent, 'SUBAGENT_STARTED')).toBe(1);
    expect(agent.messages.map(({ content }) => content)).toEqual(['go', undefined, 'paid', 'found it', 'done']);
    const other = client(url, { threadId: agent.threadId });
    await other.connectAgent();
    expect(other.messages).toEqual(agent.messages);
  });

  it('takes back what a model said before it failed with MESSAGES_SNAPSHOT (token.reset)', async () => {
    const planner: Planner = {
      name: 'reset',
      async *next() {
        yield { type: 'reasoning', text: 'hm' };
        yield { type: 'text', text: 'wrong ' };
        yield { type: 'reset' };
        yield { type: 'text', text: 'right' };
        return { decision: finish('right'), text: 'right' };
      },
    };
    const { url } = await agUiServer({ agents: [agentOf({ name: 'reset', planner })] });
    const agent = client(url);
    await say(agent, 'go');
    expect(textOf(agent)).toBe('right');
    expect(agent.types).toContain('MESSAGES_SNAPSHOT');
  });

  it('shows tasks as SUBAGENT_*, with consistent subagent tags (mapping)', async () => {
    const held = gate();
    const child = agentOf({
      name: 'child',
      planner: script(call('hold'), finish('found it')),
      tools: [make('hold', async () => held.opened)],
    });
    const planner = script(
      { kind: 'spawn_task', task: 'foreground', spec: { description: 'Look.', query: 'look', agent: 'child' } },
      finish('done'),
    );
    const parent = agentOf({ name: 'parent', planner });
    const { url } = await agUiServer({ agents: [parent, child] });
    const agent = client(url);
    const saying = say(agent, 'go');
    await until(() => agent.types.includes('SUBAGENT_STARTED'));
    held.open();
    await saying;
    const started = agent.seen.find(({ type }) => type === 'SUBAGENT_STARTED') as unknown as { subagentRunId: string };
    expect(started).toMatchObject({ name: 'child' });
    expect(agent.seen).toContainEqual(
      expect.objectContaining({ type: 'SUBAGENT_FINISHED', subagentRunId: started.subagentRunId }),
    );
    expect(agent.messages).toContainEqual(
      expect.objectContaining({ content: 'found it', subagentRunId: started.subagentRunId }),
    );
    expect(agent.state).toMatchObject({ tasks: { [started.subagentRunId]: { status: 'complete' } } });
    const other = client(url, { threadId: agent.threadId });
    await other.connectAgent();
    expect(other.messages).toEqual(agent.messages);
  });

  it('shows a plan as state and as ACTIVITY_* (mapping)', async () => {
    const nodes = [
      { id: 'a', tool: 'constructor', args: {} },
      { id: 'b', tool: 'two', args: {}, after: ['a'] },
      { id: 'm', tool: '_message', args: { text: 'hi' } },
    ];
    const planner = script({ kind: 'call_parallel', plan: 'p', branches: nodes } as never, finish('done'));
    const tools = [make('constructor', async () => 1), make('two', async () => Promise.reject(new Error('no')))];
    const { url } = await agUiServer({ agents: [agentOf({ name: 'planned', planner, tools })] });
    const agent = client(url);
    await say(agent, 'go');
    const activity = agent.messages.find(({ role }) => role === 'activity');
    expect(activity).toMatchObject({
      activityType: 'plan',
      content: {
        nodes: [{ tool: 'constructor', status: 'done' }, { tool: 'two', status: 'failed' }, { status: 'done' }],
      },
    });
    expect(agent.state).toMatchObject({ plan: { id: 'p', nodes: [{ status: 'done' }, { status: 'failed' }, {}] } });
    expect(JSON.stringify(agent.messages)).not.toContain('"_message"');
  });
});
