/** Interrupts of AG-UI: they are answered once, in whole, by whoever may, and never by anything else. */
import { describe, expect, it, vi } from 'vitest';
import type { Json, PlannerFunction, RunView } from '#core';
import { agent as agentOf, clientTool } from '#tools';
import { agUiServer, type Client, client, posted, rolesOf, say, textOf } from '../kit/ag-ui.ts';
import { asks, call, finish, named, parallel, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { until } from '../kit/waiting.ts';

const yes = (id: string, payload: unknown = { approved: true }) => ({
  interruptId: id,
  status: 'resolved' as const,
  payload,
});
const no = (id: string) => ({ interruptId: id, status: 'cancelled' as const });
const idsOf = (agent: Client): string[] => agent.pendingInterrupts.map(({ id }) => id);

/** The events of an answer. */
const eventsOf = async (url: string, body: object) => (await posted(`${url}/ag-ui`, body)).events;

describe('AG-UI approvals: interrupts of a thread', () => {
  it('come together for two calls of one step (mastra#19528), and are answered each its way: editedArgs replace the arguments (approve with other arguments)', async () => {
    const { url, effects } = await agUiServer();
    const agent = client(url);
    await say(agent, 'refund A-17 and B-18');
    const [one = '', two = ''] = idsOf(agent);
    expect(agent.pendingInterrupts.map(({ toolCallId }) => toolCallId)).toEqual(
      (agent.messages.at(-1) as { toolCalls: { id: string }[] }).toolCalls.map(({ id }) => id),
    );
    const edited = { approved: true, editedArgs: { order: 'A-17', amount: 5 } };
    await agent.runAgent({ resume: [yes(one, edited), no(two)] });
    expect(rolesOf(agent)).toEqual(['user', 'assistant', 'tool', 'tool', 'assistant']);
    const results = agent.messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
    expect(results.toSorted()).toEqual(['It was not approved.', '{"order":"A-17","refunded":5}']);
    expect(textOf(agent)).toBe('A-17 is refunded. B-18 is not refunded.');
    expect(effects.count('refund')).toBe(1);
  });

  it('are answered by resume for all open ones: partial coverage, an unknown interrupt and unclear words are RUN_ERROR', async () => {
    const { url, effects } = await agUiServer();
    const agent = client(url);
    const { threadId } = agent;
    await say(agent, 'refund A-17 and B-18');
    const [one = '', two = ''] = idsOf(agent);
    const refusals = [
      [yes(one)],
      [yes(one), yes(two), yes('pause_of_another')],
      [yes(one), yes(two, {})],
      [yes(one), yes(two, { approved: 'true' })],
    ];
    for (const resume of refusals) {
      const told = await eventsOf(url, { threadId, messages: agent.messages, resume });
      expect(told.map(({ type }) => type)).toEqual(['RUN_STARTED', 'RUN_ERROR']);
    }
    expect(await eventsOf(url, { threadId, resume: refusals[0] })).toContainEqual(
      expect.objectContaining({ code: 'payload_invalid', message: expect.stringContaining(two) }),
    );
    expect(effects.count('refund')).toBe(0);
    await agent.runAgent({ resume: [yes(one), yes(two)] });
    expect(textOf(agent)).toBe('A-17 is refunded. B-18 is refunded.');
    expect(effects.count('refund')).toBe(2);
  });

  it('are not answered by two entries of one resume, of which nobody knows which one holds', async () => {
    const { url, effects } = await agUiServer();
    const agent = client(url);
    await say(agent, 'refund A-17');
    const [id = ''] = idsOf(agent);
    const resume = [yes(id, { approved: false }), yes(id)];
    const told = await eventsOf(url, { threadId: agent.threadId, messages: agent.messages, resume });
    expect(told.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'payload_invalid' });
    await agent.runAgent({ resume: [no(id)] });
    expect([textOf(agent), effects.count('refund')]).toEqual(['A-17 is not refunded.', 0]);
  });

  it('make input without resume RUN_ERROR: a message in place of an answer breaks nothing (n8n#36737, ai#12709)', async () => {
    const { url, effects } = await agUiServer();
    const agent = client(url);
    await say(agent, 'refund A-17');
    const messages = [...agent.messages, { id: 'next', role: 'user', content: 'say hello' }];
    const told = await eventsOf(url, { threadId: agent.threadId, messages });
    expect(told.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'run_paused' });
    await agent.runAgent({ resume: [yes(idsOf(agent)[0] ?? '')] });
    expect(textOf(agent)).toBe('A-17 is refunded.');
    expect(effects.count('refund')).toBe(1);
  });

  it('may be passed by with a new message: all are cancelled, and the turn hears it', async () => {
    const { url, effects } = await agUiServer();
    const agent = client(url);
    await say(agent, 'refund A-17');
    agent.addMessage({ id: 'instead', role: 'user', content: 'say never mind' });
    await agent.runAgent({ resume: [no(idsOf(agent)[0] ?? '')] });
    expect(effects.count('refund')).toBe(0);
    expect(agent.messages.filter(({ id }) => id === 'instead')).toHaveLength(1);
    expect(agent.types.at(-1)).toBe('RUN_FINISHED');
    const other = client(url, { threadId: agent.threadId });
    await other.connectAgent();
    expect(other.messages.map(({ id }) => id).toSorted()).toEqual(agent.messages.map(({ id }) => id).toSorted());
  });

  it('take the same resume again safely, also at the same time, without a duplicate tool result (CopilotKit#6470); a different second answer is refused', async () => {
    const { url, effects } = await agUiServer();
    const agent = client(url);
    await say(agent, 'refund A-17');
    const [id = ''] = idsOf(agent);
    const again = { threadId: agent.threadId, messages: agent.messages, resume: [yes(id)] };
    const told = await Promise.all([eventsOf(url, again), eventsOf(url, again), eventsOf(url, again)]);
    told.push(await eventsOf(url, again));
    for (const events of told) {
      expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', result: 'A-17 is refunded.' });
      expect(events.filter(({ type }) => type === 'TOOL_CALL_RESULT')).toHaveLength(1);
      expect(events.filter(({ type }) => type === 'TOOL_CALL_START')).toHaveLength(0);
    }
    expect((await eventsOf(url, { ...again, resume: [no(id)] })).at(-1)).toMatchObject({
      type: 'RUN_ERROR',
      code: 'pause_not_found',
    });
    expect(
      (
        await eventsOf(url, { ...again, resume: [yes(id, { approved: true, editedArgs: { order: 'B', amount: 1 } })] })
      ).at(-1),
    ).toMatchObject({ type: 'RUN_ERROR' });
    expect(effects.count('refund')).toBe(1);
  });

  it('come again after a reload while they are open (CopilotKit#1397, CopilotKit#2418, CopilotKit#6891), and never once resolved (agentscope-java#2911, CopilotKit#6470)', async () => {
    const { url, effects } = await agUiServer();
    const agent = client(url);
    await say(agent, 'refund A-17');
    const reloaded = client(url, { threadId: agent.threadId });
    await reloaded.connectAgent();
    expect(idsOf(reloaded)).toEqual(idsOf(agent));
    expect(reloaded.messages).toEqual(agent.messages);
    await reloaded.runAgent({ resume: [yes(idsOf(agent)[0] ?? '')] });
    expect(textOf(reloaded)).toBe('A-17 is refunded.');
    const later = client(url, { threadId: agent.threadId });
    await later.connectAgent();
    expect(idsOf(later)).toEqual([]);
    expect(later.messages).toEqual(reloaded.messages);
    expect(later.types.filter((type) => type === 'TOOL_CALL_RESULT')).toHaveLength(1);
    expect(effects.count('refund')).toBe(1);
  });

  it('are never shown in another thread, nor answered from there (CopilotKit#1510)', async () => {
    const { url, effects } = await agUiServer();
    const [agent, other] = [client(url), client(url)];
    await say(agent, 'refund A-17');
    await say(other, 'say hello');
    expect(idsOf(other)).toEqual([]);
    const resume = [yes(idsOf(agent)[0] ?? '')];
    expect((await eventsOf(url, { threadId: other.threadId, resume })).at(-1)).toMatchObject({
      code: 'pause_not_found',
    });
    expect((await eventsOf(url, { threadId: 'nowhere', resume })).at(-1)).toMatchObject({ code: 'pause_not_found' });
    expect(effects.count('refund')).toBe(0);
  });

  it('go on when the client that has answered is gone (the client going away)', async () => {
    const { url, effects } = await agUiServer();
    const agent = client(url);
    await say(agent, 'refund A-17');
    const resuming = agent.runAgent({ resume: [yes(idsOf(agent)[0] ?? '')] }).catch(() => {});
    await until(() => agent.types.filter((type) => type === 'RUN_STARTED').length === 2);
    vi.spyOn(console, 'error').mockImplementation(() => {});
    agent.abortRun();
    await resuming;
    const later = client(url, { threadId: agent.threadId });
    await later.connectAgent();
    expect(textOf(later)).toBe('A-17 is refunded.');
    expect(effects.count('refund')).toBe(1);
  });

  it('carry expiresAt; an expired interrupt may be cancelled to go on, and resolving it is RUN_ERROR', async () => {
    const refund = make('refund', () => 'paid', { effect: 'once', needsApproval: { expiresInMs: 30 } });
    const { url } = await agUiServer({
      agents: [agentOf({ name: 'hasty', planner: script(call('refund')), tools: [refund] })],
    });
    const agent = client(url);
    await say(agent, 'go');
    const [interrupt] = agent.pendingInterrupts;
    expect(Date.parse(interrupt?.expiresAt ?? '')).toBeGreaterThan(0);
    const { threadId, messages } = agent;
    const id = interrupt?.id ?? '';
    await until(async () => {
      const other = client(url, { threadId });
      await other.connectAgent();
      return other.pendingInterrupts.length === 0;
    });
    expect((await eventsOf(url, { threadId, messages, resume: [yes(id)] })).at(-1)).toMatchObject({
      code: 'pause_expired',
    });
    await agent.runAgent({ resume: [no(id)] });
    expect(agent.messages[2]?.content).toBe('Nobody approved it in time, and it was not done.');
    expect(textOf(agent)).toBe('done');
  });

  it('of the planner with a schema are forms, and what was filled in is the answer', async () => {
    const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
    for (const reason of ['external_event', 'constraints_conflict', 'await_input'] as const) {
      const planner = script(
        { kind: 'request_pause', reason, payload: { message: 'How many?' }, schema },
        finish('done'),
      );
      const { url } = await agUiServer({ agents: [agentOf({ name: 'asks', planner })] });
      const agent = client(url);
      await say(agent, 'go');
      expect(agent.pendingInterrupts).toMatchObject([{ message: 'How many?', responseSchema: schema }]);
      const [id = ''] = idsOf(agent);
      const resume = [yes(id, { n: 'three' })];
      expect(await eventsOf(url, { threadId: agent.threadId, resume })).toContainEqual(
        expect.objectContaining({ type: 'RUN_ERROR', code: 'payload_invalid' }),
      );
      await agent.runAgent({ resume: [yes(id, { n: 3 })] });
      expect(textOf(agent)).toBe('done');
    }
  });

  it('hold for questions to come where the answer says so (remember)', async () => {
    let paid = 0;
    const pay = make('pay', () => `paid ${++paid}`, { needsApproval: true, effect: 'once' });
    const planner = script(call('pay'), call('pay'), finish('done'));
    const { url } = await agUiServer({ agents: [agentOf({ name: 'clerk', planner, tools: [pay] })] });
    const agent = client(url);
    await say(agent, 'go');
    const [id = ''] = idsOf(agent);
    const wrong = yes(id, { approved: true, remember: { scope: 'ever' } });
    expect(await eventsOf(url, { threadId: agent.threadId, resume: [wrong] })).toContainEqual(
      expect.objectContaining({ type: 'RUN_ERROR', code: 'payload_invalid' }),
    );
    await agent.runAgent({ resume: [yes(id, { approved: true, remember: { scope: 'session', match: 'tool' } })] });
    expect([idsOf(agent), textOf(agent), paid]).toEqual([[], 'done', 2]);
  });

  it('that are questions of calls without a schema give the call the words, as of every client', async () => {
    const tool = make('asks', async (_, { ask }) => ({ said: await ask({ question: 'How many nights?' }) }));
    const { url } = await agUiServer({
      agents: [agentOf({ name: 'hotel', planner: script(call('asks'), finish('done')), tools: [tool] })],
    });
    const agent = client(url);
    await say(agent, 'go');
    expect(agent.pendingInterrupts[0]).toMatchObject({
      message: 'How many nights?',
      responseSchema: { required: ['text'] },
    });
    await agent.runAgent({ resume: [yes(idsOf(agent)[0] ?? '', { text: 'three' })] });
    expect(agent.messages.find(({ role }) => role === 'tool')).toMatchObject({ content: '{"said":"three"}' });
  });

  it('that are questions (a pause that is not a tool call, input_required) take words, by resume or by a message', async () => {
    const planner = script(asks);
    const { url } = await agUiServer({ agents: [agentOf({ name: 'asker', planner })] });
    const [one, two] = [client(url), client(url)];
    for (const agent of [one, two]) {
      await say(agent, 'go');
      expect(agent.pendingInterrupts).toMatchObject([{ reason: 'input_required' }]);
    }
    await one.runAgent({ resume: [yes(idsOf(one)[0] ?? '', { text: 'blue' })] });
    expect(textOf(one)).toBe('done');
    const messages = [{ id: 'answer', role: 'user', content: 'blue' }];
    const told = await eventsOf(url, { threadId: two.threadId, messages });
    expect(told.at(-1)).toMatchObject({ type: 'RUN_FINISHED', result: 'done' });
  });
});

describe('AG-UI: an input that answers an interrupt and has the result of a tool of the client', () => {
  const results = ({ trajectory }: RunView): Json =>
    (trajectory.step(0)?.calls ?? []).map(({ outcome }) => (outcome?.kind === 'value' ? outcome.value : null));
  const planner: PlannerFunction = (run) => {
    if (run.trajectory.count > 0) return finish(JSON.stringify(results(run)));
    return parallel(named('pay', 'pick'));
  };

  async function both() {
    let paid = 0;
    const pay = make('pay', () => `paid ${++paid}`, { effect: 'once', needsApproval: true });
    const pick = clientTool({ name: 'pick', description: 'Picks.', effect: 'read', inputSchema: { type: 'object' } });
    const { url } = await agUiServer({ agents: [agentOf({ name: 'desk', planner, tools: [pay, pick] })] });
    const agent = client(url);
    await say(agent, 'go');
    const { toolCalls = [] } = agent.messages.at(-1) as { toolCalls?: { id: string }[] };
    agent.addMessage({ id: 't1', role: 'tool', toolCallId: toolCalls[1]?.id ?? '', content: 'blue' });
    const { threadId, messages } = agent;
    const resume = [yes(idsOf(agent)[0] ?? '')];
    return { url, agent, resume, input: { threadId, messages: [...messages] }, paid: () => paid };
  }
  const END = { type: 'RUN_FINISHED', result: '["paid 1","blue"]' };

  it('has both taken, once, also when it is sent again', async () => {
    const { url, agent, resume, input, paid } = await both();
    await agent.runAgent({ resume });
    expect(agent.seen.at(-1)).toMatchObject(END);
    expect((await eventsOf(url, { ...input, resume })).at(-1)).toMatchObject(END);
    expect(paid()).toBe(1);
  });

  it('has both taken when one of them, or both, is given by somebody else at the same moment', async () => {
    for (const other of ['resume', 'result', 'both']) {
      const { url, resume, input, paid } = await both();
      const given = other === 'resume' ? { ...input, messages: [], resume } : input;
      const told = await Promise.all([
        eventsOf(url, other === 'both' ? { ...input, resume } : given),
        eventsOf(url, { ...input, resume }),
      ]);
      expect(told[1].at(-1), other).toMatchObject(END);
      expect(
        told[0].some(({ type }) => type === 'RUN_ERROR'),
        other,
      ).toBe(false);
      expect(paid()).toBe(1);
    }
  });

  it('is told once more what came of it when its result was taken before, and its answer was not', async () => {
    const { url, resume, input, paid } = await both();
    const first = await eventsOf(url, input);
    expect(first.at(-1)).toMatchObject({ outcome: { interrupts: [{ id: resume[0]?.interruptId }] } });
    expect((await eventsOf(url, { ...input, resume })).at(-1)).toMatchObject(END);
    expect(paid()).toBe(1);
  });
});
