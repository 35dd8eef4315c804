/** What the protocol says of runs of AG-UI, by what goes over the wire: the endpoint, order, strictness, mapping, and what holds for all protocols. */
import { describe, expect, it } from 'vitest';
import type { Planner, PlannerFunction } from '#core';
import { agent as agentOf } from '#tools';
import { agUiServer, type Client, client, type Posted, posted, say, textOf, type Version } from '../kit/ag-ui.ts';
import { call, finish, pause, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';

const VERSIONS: readonly Version[] = ['1.0.0', '0.0.59'];
const words = (content: string) => [{ id: 'm1', role: 'user', content }];
const typesOf = ({ events }: Posted): readonly string[] => events.map(({ type }) => type);
const yes = (agent: Client) =>
  agent.pendingInterrupts.map(({ id }) => ({
    interruptId: id,
    status: 'resolved' as const,
    payload: { approved: true },
  }));
const pick = { name: 'pickColor', description: 'Lets the user pick a color.', parameters: { type: 'object' } };

/** Thinks, speaks, and says what it has cost. */
const thinking: Planner = {
  name: 'thinking',
  async *next() {
    yield { type: 'reasoning', text: 'hm' };
    yield { type: 'text', text: 'well' };
    const usage = { inputTokens: 7, outputTokens: 3, costMicroUsd: 0, cachedInputTokens: 2, cacheWriteInputTokens: 4 };
    return { decision: finish('well'), text: 'well', reasoningTrace: 'hm', usage };
  },
};

describe('AG-UI endpoint', () => {
  it('answers POST RunAgentInput with SSE that no proxy holds back (SSE), and there is no GET', async () => {
    const { url } = await agUiServer();
    const { status, headers, events } = await posted(`${url}/ag-ui`, { threadId: 't', messages: words('say hi') });
    expect(status).toBe(200);
    expect(headers.get('content-type')).toMatch(/^text\/event-stream/);
    expect(headers.get('cache-control')).toContain('no-cache');
    expect(headers.get('x-accel-buffering')).toBe('no');
    expect(events.length).toBeGreaterThan(2);
    expect((await fetch(`${url}/ag-ui`)).status).toBe(404);
  });
});

describe('AG-UI order', () => {
  it.each([
    'say one two',
    'weather in Oslo',
    'refund A-17 and B-18',
    'data',
    'fail',
    'pick a color',
  ])('of "%s": first RUN_STARTED of the input, last RUN_FINISHED or RUN_ERROR, all that is opened is closed, no null tags', async (text) => {
    const { url } = await agUiServer();
    const ids = { threadId: 't', runId: 'r' };
    const given = { ...ids, protocolVersion: '1.0', messages: words(text), tools: [pick] };
    for (const told of [await posted(`${url}/ag-ui`, given), await posted(`${url}/ag-ui/connect`, given)]) {
      const types = typesOf(told);
      expect(told.events[0]).toEqual({ type: 'RUN_STARTED', ...ids, protocolVersion: '1.0' });
      const ends = types.flatMap((type, at) => (type === 'RUN_FINISHED' || type === 'RUN_ERROR' ? [at] : []));
      expect(ends).toEqual([types.length - 1]);
      const count = (type: string): number => types.filter((each) => each === type).length;
      for (const kind of ['TEXT_MESSAGE', 'TOOL_CALL', 'REASONING'])
        expect(count(`${kind}_START`)).toBe(count(`${kind}_END`));
      const steps = told.events.filter(({ type }) => type.startsWith('STEP_'));
      expect(count('STEP_STARTED')).toBe(count('STEP_FINISHED'));
      // Steps of one run follow each other: a name is never opened twice.
      for (const [at, { type, stepName }] of steps.entries())
        if (type === 'STEP_STARTED') expect(steps[at + 1]).toEqual({ type: 'STEP_FINISHED', stepName });
      for (const event of told.events) expect(Object.values(event)).not.toContain(null);
    }
  });
});

describe('AG-UI strictness', () => {
  it('tells fields of 1.0 (protocolVersion, pendingToolCallIds, outcome cancelled, cacheWriteInputTokens) to whoever says protocolVersion 1.0, and to nobody else', async () => {
    const { url, runtime } = await agUiServer();
    const thought = await agUiServer({ agents: [agentOf({ name: 'thinking', planner: thinking })] });
    const session = runtime.session('stopped', { identity: { tenant: 'local', user: 'local' } });
    const { turn } = await session.send('slow 1000');
    await runtime.run(turn).cancel();
    await session.result();
    const told = async (version: object): Promise<string> => {
      const runId = JSON.stringify(version);
      const all = [
        await posted(`${url}/ag-ui`, {
          ...version,
          threadId: `pick ${runId}`,
          messages: words('pick a color'),
          tools: [pick],
        }),
        await posted(`${url}/ag-ui/connect`, { ...version, threadId: 'stopped' }),
        await posted(`${thought.url}/ag-ui`, { ...version, threadId: `think ${runId}`, messages: words('go') }),
      ];
      return JSON.stringify(all.map(({ events }) => events));
    };
    const fields = [
      /"protocolVersion"/,
      /"pendingToolCallIds"/,
      /"outcome":{"type":"cancelled"}/,
      /"cacheWriteInputTokens":4/,
    ];
    const [first, old] = [await told({ protocolVersion: '1.0' }), await told({})];
    for (const field of fields) {
      expect(first).toMatch(field);
      expect(old).not.toMatch(field);
    }
    const agent = client(url, { version: '0.0.59', threadId: 'stopped' });
    await agent.connectAgent();
    expect(agent.types.at(-1)).toBe('RUN_FINISHED');
  });
});

describe.each(VERSIONS)('AG-UI mapping for a client of %s', (version) => {
  it('planner.finish is RUN_FINISHED with result, outcome and usage, tokens of thinking are REASONING_*', async () => {
    const { url } = await agUiServer({ agents: [agentOf({ name: 'thinking', planner: thinking })] });
    const agent = client(url, { version });
    await say(agent, 'go');
    expect(agent.messages.map(({ role, content }) => [role, content])).toEqual([
      ['user', 'go'],
      ['reasoning', 'hm'],
      ['assistant', 'well'],
    ]);
    const usage = { inputTokens: 7, outputTokens: 3, totalTokens: 10, cachedInputTokens: 2 };
    const end = { type: 'RUN_FINISHED', result: 'well', outcome: { type: 'success' } };
    expect(agent.seen.at(-1)).toMatchObject({ ...end, usage: [usage] });
  });

  it('planner.error is RUN_ERROR with message, code and usage', async () => {
    const failing: Planner = {
      name: 'failing',
      async *next({ trajectory }) {
        yield { type: 'text', text: 'well' };
        if (trajectory.count > 0) throw new Error('secret');
        const usage = { inputTokens: 7, outputTokens: 3, costMicroUsd: 0 };
        return { decision: call('look'), text: 'well', usage };
      },
    };
    const { url } = await agUiServer({
      agents: [agentOf({ name: 'failing', planner: failing, tools: [make('look', () => 'seen')] })],
    });
    const agent = client(url, { version });
    await say(agent, 'go').catch(() => {});
    const usage = [{ inputTokens: 7, outputTokens: 3, totalTokens: 10 }];
    expect(agent.seen.at(-1)).toMatchObject({
      type: 'RUN_ERROR',
      message: expect.any(String),
      code: expect.any(String),
      usage,
    });
    // Approve or call, then an error: the call has its result (vercel/ai#12709).
    expect(agent.messages).toContainEqual(expect.objectContaining({ role: 'tool', content: 'seen' }));
  });
});

describe('AG-UI approvals', () => {
  it('the token of the pause is Interrupt.id, and what is done comes from the journal, never from the request', async () => {
    const { url, effects, runtime } = await agUiServer();
    const agent = client(url);
    await say(agent, 'refund A-17');
    const [interrupt] = agent.pendingInterrupts;
    const [waiting] = await runtime.waiting({ tenant: 'local' });
    expect(interrupt?.id).toBe(waiting?.token);
    const messages = JSON.parse(JSON.stringify(agent.messages).replaceAll('A-17', 'Z-99').replaceAll('90', '9000'));
    const resume = [{ interruptId: interrupt?.id, status: 'resolved', payload: { approved: true } }];
    const { events } = await posted(`${url}/ag-ui`, { threadId: agent.threadId, messages, resume });
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'TOOL_CALL_RESULT', content: '{"order":"A-17","refunded":90}' }),
    );
    expect(effects.count('refund')).toBe(1);
  });

  it('of calls that a provider fails after (approve, then provider error) leave no call without a result', async () => {
    const planner: PlannerFunction = ({ trajectory }) => {
      if (trajectory.count > 0) throw new Error('503');
      return call('refund');
    };
    const refund = make('refund', () => 'paid', { effect: 'once', needsApproval: true });
    const { url } = await agUiServer({ agents: [agentOf({ name: 'failing', planner, tools: [refund] })] });
    const agent = client(url);
    await say(agent, 'go');
    await agent.runAgent({ resume: yes(agent) }).catch(() => {});
    expect(agent.types.at(-1)).toBe('RUN_ERROR');
    const later = client(url, { threadId: agent.threadId });
    await later.connectAgent();
    for (const each of [agent, later]) expect(each.messages.at(-1)).toMatchObject({ role: 'tool', content: 'paid' });
  });
});

describe('AG-UI: a pause that is not a tool call', () => {
  it('of a planner is a confirmation', async () => {
    const { url } = await agUiServer({ agents: [agentOf({ name: 'asks', planner: script(pause) })] });
    const agent = client(url);
    await say(agent, 'go');
    expect(agent.pendingInterrupts).toMatchObject([{ reason: 'confirmation' }]);
    await agent.runAgent({ resume: yes(agent) });
    expect(textOf(agent)).toBe('done');
  });

  it('of a budget has the reason pilotage:budget and says how much is used', async () => {
    const planner = script(call('look'), call('look'), finish('seen'));
    const looks = agentOf({ name: 'looks', planner, tools: [make('look', () => 'seen')] });
    const turn = () => ({ limits: { steps: 1, onCeiling: 'pause' as const } });
    const { url, runtime } = await agUiServer({ agents: [looks], agUi: { turn } });
    const agent = client(url);
    await say(agent, 'go');
    expect(agent.pendingInterrupts).toMatchObject([
      {
        reason: 'pilotage:budget',
        message: 'The run has reached its limit of steps, which is 1.',
        metadata: { budget: 'steps', used: 1 },
      },
    ]);
    // A yes gives it no more.
    await agent.runAgent({ resume: yes(agent) });
    expect(agent.pendingInterrupts).toMatchObject([{ reason: 'pilotage:budget' }]);
    const [waiting] = await runtime.waiting({ tenant: 'local' });
    await runtime.run(waiting?.run ?? '').resume({ limits: { steps: 9 } });
    const later = client(url, { threadId: agent.threadId });
    await later.connectAgent();
    expect(textOf(later)).toBe('seen');
    expect(later.pendingInterrupts).toEqual([]);
  });
});

describe('AG-UI auth', () => {
  it('leaves out of connect, snapshots and cancel the turns for which may("read", { run }) is false', async () => {
    const { url, runtime } = await agUiServer({
      may: (action, { run }) => action !== 'read' || run?.labels?.['secret'] === undefined,
    });
    const session = (labels: Record<string, string>) =>
      runtime.session('t', { identity: { tenant: 'local', user: 'local' }, labels });
    await (await session({}).send('say one')).result();
    await (await session({ secret: 'yes' }).send('say two')).result();
    const agent = client(url, { threadId: 't' });
    await agent.connectAgent();
    expect(JSON.stringify(agent.seen)).not.toContain('two');
    await say(agent, 'refund A-17');
    expect(agent.messages.map(({ content }) => content)).toEqual(['say one', 'one', 'refund A-17', undefined]);
    expect(JSON.stringify(agent.seen)).not.toContain('two');
  });
});
