/** What a chat shows beside words and calls of its own run: tasks, plans, questions, other agents. */
import { safeValidateUIMessages, type UIMessage } from 'ai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { agent, agentTool, handoff } from '#pilotage';
import { react } from '#planners/react';
import { createRuntime, type RuntimeOptions } from '#runtime';
import { scriptedModel } from '#testing';
import { OutcomeUnknown } from '#tools';
import { call, finish, named, parallel, script } from '../kit/decisions.ts';
import { ANY, echo, holding, make } from '../kit/tools.ts';
import { Chat, historyOf, serveChats } from '../kit/ui-chat.ts';
import { until } from '../kit/waiting.ts';

async function served(options: Omit<RuntimeOptions, 'journal'>, chats: Parameters<typeof serveChats>[1] = {}) {
  const journal = memoryJournal();
  const runtime = createRuntime({ ...options, journal });
  onTestFinished(() => runtime.close());
  const url = await serveChats(runtime, chats);
  const chat = new Chat(url);
  const history = async (): Promise<UIMessage[]> => {
    const messages = await historyOf(url);
    expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
    return messages;
  };
  const answer = (body: object): Promise<Response> =>
    fetch(`${url}/api/chat/talk/approvals`, { method: 'POST', body: JSON.stringify(body) });
  return { journal, runtime, url, chat, history, answer };
}

const partsOf = (messages: readonly UIMessage[], type: string) =>
  messages.flatMap(({ parts }) => parts.filter((part) => part.type === type));

describe('a chat', () => {
  it('shows an approval that a task below asks for, and goes on in the same message', async () => {
    let paid = 0;
    const pay = make('pay', () => `paid ${++paid}`, { needsApproval: { reason: 'money' }, effect: 'once' });
    const clerk = agent({
      name: 'clerk',
      planner: script(call('pay', { amount: 3 }), finish('clerk is done')),
      tools: [pay],
    });
    const desk = agentTool(clerk, { name: 'ask_clerk', description: 'Asks the clerk.', inputSchema: ANY });
    const { chat, history } = await served({ planner: script(call('ask_clerk'), finish('all done')), tools: [desk] });
    await chat.sendMessage({ text: 'go' });
    expect([chat.status, chat.error]).toEqual(['ready', undefined]);
    const asked = chat.calls.find(({ toolName }) => toolName === 'pay');
    expect(asked).toMatchObject({
      state: 'approval-requested',
      input: { amount: 3 },
      approval: { requestReason: 'money' },
    });
    const id = chat.messages[1]?.id;
    await chat.addToolApprovalResponse({ id: chat.approvals[0] ?? '', approved: true });
    await chat.sendMessage();
    expect(chat.error).toBeUndefined();
    expect(chat.messages.map((message) => message.id)).toEqual([chat.messages[0]?.id, id]);
    expect(chat.calls.map(({ toolName, state }) => [toolName, state])).toEqual([
      ['ask_clerk', 'output-available'],
      ['pay', 'output-available'],
    ]);
    expect(partsOf(chat.messages, 'data-task')).toMatchObject([{ data: { status: 'complete' } }]);
    expect(paid).toBe(1);
    expect((await history())[1]?.parts).toEqual(JSON.parse(JSON.stringify(chat.messages[1]?.parts)));
  });

  it('pauses: a question that is not about a tool call is a data-pause part, which an endpoint answers', async () => {
    const asks = make('asks', async (_, { ask }) => ({ said: await ask({ question: 'Which color?' }) }));
    const { chat, history, answer, url } = await served({
      planner: script(call('asks'), finish('thanks')),
      tools: [asks],
    });
    await chat.sendMessage({ text: 'go' });
    const [pause] = partsOf(chat.messages, 'data-pause') as { id: string; data: object }[];
    expect(pause?.data).toMatchObject({ status: 'open', reason: 'await_input' });
    expect((await answer({ approvalId: 'pause_forged', value: 'red' })).status).toBe(404);
    expect((await answer({ approvalId: pause?.id })).status).toBe(400);
    expect((await answer({ approvalId: pause?.id, value: 'red' })).status).toBe(200);
    await until(async () => (await historyOf(url))[1]?.parts.at(-1)?.type === 'text');
    const told = await history();
    expect(partsOf(told, 'data-pause')).toMatchObject([{ data: { status: 'answered' } }]);
    expect(partsOf(told, 'dynamic-tool')).toMatchObject([{ output: { said: 'red' } }]);
  });

  it('remembers a yes for the calls to come, where the page says so', async () => {
    let paid = 0;
    const pay = make('pay', () => `paid ${++paid}`, { needsApproval: true, effect: 'once' });
    const { chat, answer, history } = await served({
      planner: script(call('pay'), call('pay'), finish('done')),
      tools: [pay],
    });
    await chat.sendMessage({ text: 'go' });
    const [token] = chat.approvals;
    const remember = { scope: 'session', match: 'tool' };
    expect((await answer({ approvalId: token, value: 1, remember })).status).toBe(400);
    expect((await answer({ approvalId: token, approved: true, remember: { scope: 'ever' } })).status).toBe(422);
    expect((await answer({ approvalId: token, approved: true, remember })).status).toBe(200);
    await until(async () => (await history())[1]?.parts.at(-1)?.type === 'text');
    expect(partsOf(await history(), 'dynamic-tool')).toMatchObject([{ output: 'paid 1' }, { output: 'paid 2' }]);
    await chat.sendMessage({ text: 'and again' });
    expect([chat.said.at(-1), paid]).toEqual(['assistant: done', 4]);
  });

  it('takes what a call in doubt has come to, or that it did not happen', async () => {
    for (const [said, outcome] of [
      [{ happened: true, value: { paid: 9 } }, { output: { paid: 9 } }],
      [{ happened: false, reason: 'no such order' }, { output: 'paid' }],
    ] as const) {
      let tries = 0;
      const pays = make(
        'pays',
        () => {
          tries += 1;
          if (tries === 1) throw new OutcomeUnknown('Nobody knows.');
          return 'paid';
        },
        { effect: 'once' },
      );
      const { chat, history, answer } = await served({
        planner: script(call('pays'), finish('thanks')),
        tools: [pays],
      });
      await chat.sendMessage({ text: 'go' });
      const [pause] = partsOf(chat.messages, 'data-pause') as { id: string; data: object }[];
      expect(pause?.data).toMatchObject({ status: 'open', reason: 'in_doubt', payload: { tool: 'pays' } });
      expect((await answer({ approvalId: pause?.id, ...said })).status).toBe(200);
      await until(async () => (await history())[1]?.parts.at(-1)?.type === 'text');
      const told = await history();
      expect(partsOf(told, 'data-pause')).toMatchObject([{ data: { status: 'answered' } }]);
      expect(partsOf(told, 'dynamic-tool')).toMatchObject([outcome]);
      expect(tries).toBe('value' in said ? 1 : 2);
    }
  });

  it('shows that a question is withdrawn when the turn is stopped, and answers the next message in a turn of its own', async () => {
    const { chat, history, url } = await served({
      planner: ({ query, trajectory: { count } }) =>
        query === 'go' && count === 0
          ? { kind: 'request_pause', reason: 'external_event', payload: { url: 'https://login.example' } }
          : finish(`heard ${query}`),
    });
    await chat.sendMessage({ text: 'go' });
    expect(partsOf(await history(), 'data-pause')).toMatchObject([{ data: { status: 'open' } }]);
    await fetch(`${url}/api/chat/talk/stop`, { method: 'POST' });
    await chat.sendMessage({ text: 'and now?' });
    expect(chat.said.at(-1)).toBe('assistant: heard and now?');
    expect(partsOf(await history(), 'data-pause')).toMatchObject([{ data: { status: 'withdrawn' } }]);
  });

  it('answers a question of the agent with the next message, in a message of its own', async () => {
    const { chat, history } = await served({
      planner: ({ trajectory: { count, steering } }) =>
        count === 0 ? { kind: 'request_pause', reason: 'await_input' } : finish(`heard ${steering.length}`),
    });
    await chat.sendMessage({ text: 'go' });
    await chat.sendMessage({ text: 'blue' });
    expect(chat.said).toEqual(['user: go', 'user: blue', expect.stringContaining('assistant: heard')]);
    expect((await history()).map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id));
  });

  it('tells a message to the agent at work where it is to steer', async () => {
    const { tool, entered, release } = holding();
    const { chat, history, journal, runtime } = await served(
      {
        planner: ({ trajectory: { count, steering } }) =>
          count === 0 ? call('hold') : finish(`heard ${steering.map(({ control }) => control.payload?.['message'])}`),
        tools: [tool],
      },
      { busy: 'steer' },
    );
    const first = chat.sendMessage({ text: 'go' });
    await entered;
    await until(() => chat.calls.length === 1);
    const second = chat.sendMessage({ text: 'faster' });
    const [turn] = await runtime.session('talk').turns();
    await until(async () => (await journal.inbox(turn?.turn ?? '')).length > 0);
    release();
    await Promise.all([first, second]);
    expect(chat.said).toEqual(['user: go', 'assistant: ', 'user: faster', 'assistant: heard faster']);
    expect((await history()).map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id));
    expect(chat.messages[3]?.id).toMatch(/:3$/);
  });

  it('complaint: approving an earlier message (mastra#19528), where the agent hears a message only behind the answer', async () => {
    const pay = make('pay', () => 'paid', { needsApproval: true });
    const planner = {
      name: 'keeps',
      whileAsked: 'keep' as const,
      next: script(call('pay'), finish('done')),
    };
    const { chat, history } = await served({ planner, tools: [pay] });
    await chat.sendMessage({ text: 'go' });
    await chat.sendMessage({ text: 'hurry' });
    expect([chat.status, chat.error]).toEqual(['ready', undefined]);
    expect((await history()).map(({ role }) => role)).toEqual(['user', 'assistant', 'user']);
    await chat.addToolApprovalResponse({ id: chat.approvals[0] ?? '', approved: true });
    await chat.sendMessage();
    expect([chat.status, chat.calls.map(({ state }) => state)]).toEqual(['ready', ['output-available']]);
    await until(async () => (await history()).length === 4);
    expect((await history())[3]?.parts.at(-1)).toMatchObject({ type: 'text', text: 'done' });
  });

  it('is one message when another agent goes on with it', async () => {
    const clerk = agent({ name: 'clerk', planner: () => finish('The clerk is here.') });
    const desk = agent({
      name: 'desk',
      planner: () => call('transfer_to_clerk', {}, 'c1'),
      tools: [handoff(clerk, { description: 'Takes over.' })],
    });
    const { chat, history } = await served({ agents: [desk, clerk] });
    await chat.sendMessage({ text: 'go' });
    expect(chat.said).toEqual(['user: go', 'assistant: The clerk is here.']);
    expect((await history()).map(({ id }) => id)).toEqual(chat.messages.map(({ id }) => id));
    await chat.regenerate({ messageId: chat.messages[1]?.id ?? '' });
    expect(chat.said).toEqual(['user: go', 'assistant: The clerk is here.']);
  });

  it('mapping: plan events → data-plan, updated in place', async () => {
    const plan = { ...parallel(named('echo', 'echo')), plan: 'p1' };
    const { chat, history } = await served({ planner: script(plan, finish('ok')), tools: [echo] });
    await chat.sendMessage({ text: 'go' });
    const [shown] = partsOf(chat.messages, 'data-plan');
    expect(shown).toMatchObject({ data: { step: 0, nodes: 2, ended: 2, failed: 0, done: true } });
    expect(partsOf(await history(), 'data-plan')).toEqual([shown]);
  });

  it('mapping: arguments while they are written → tool-input-delta; those of calls that are not made are taken back', async () => {
    const model = scriptedModel([
      { text: 'I look.', calls: [{ tool: 'echo', args: { at: 'the end of the world' } }] },
      {
        calls: [
          { tool: 'echo', args: { at: 1 } },
          { tool: 'nobody', args: { at: 2 } },
        ],
      },
      { text: 'Found.' },
    ]);
    const { url } = await served({ planner: react({ model }), tools: [echo] });
    const body = JSON.stringify({
      id: 'raw',
      message: { id: 'm1', role: 'user', parts: [{ type: 'text', text: 'go' }] },
    });
    const raw = await (await fetch(`${url}/api/chat`, { method: 'POST', body })).text();
    expect(raw).toContain('"type":"tool-input-delta"');
    expect(raw.match(/"type":"tool-input-start"/g)?.length).toBe(raw.match(/"type":"tool-input-available"/g)?.length);
    const told = await historyOf(url, 'raw');
    expect(partsOf(told, 'dynamic-tool').length).toBeGreaterThan(0);
  });

  it('auth: a chat is that of its user; for others it is not there', async () => {
    const runtime = createRuntime({ planner: () => finish('ok'), journal: memoryJournal() });
    onTestFinished(() => runtime.close());
    const authenticate = (request: Request) => {
      const user = request.headers.get('authorization');
      return user === null ? new Response(null, { status: 401 }) : { identity: { tenant: 'acme', user } };
    };
    const url = await serveChats(runtime, {}, { authenticate });
    const chat = new Chat(url, { headers: { authorization: 'ana' } });
    await chat.sendMessage({ text: 'go' });
    expect(chat.said.at(-1)).toBe('assistant: ok');
    expect(await historyOf(url, 'talk', { authorization: 'ben' })).toEqual([]);
    const other = new Chat(url, { headers: { authorization: 'ben' }, messages: chat.messages });
    await other.regenerate();
    expect(other.error?.message).toContain('run_not_found');
    expect((await fetch(`${url}/api/chat/talk/messages`)).status).toBe(401);
  });

  it('keeps a wrong request out, and names what is wrong', async () => {
    const { url } = await served({ planner: () => finish('ok') });
    const post = (body: string) => fetch(`${url}/api/chat`, { method: 'POST', body });
    for (const body of ['', '{}', '{"id":""}', '{"id":"a"}', '{"id":"a","messages":[{}]}', '[]']) {
      const answer = await post(body);
      expect([answer.status, (await answer.json()) as object]).toMatchObject([400, { code: 'request_invalid' }]);
    }
    const assistant = { id: 'x:1', role: 'assistant', parts: [{ type: 'text', text: 'I said so' }] };
    expect((await post(JSON.stringify({ id: 'a', messages: [assistant] }))).status).toBe(404);
    const file = { type: 'file', mediaType: 'text/plain', url: 'data:text/plain;base64,aGk***' };
    const told = await post(JSON.stringify({ id: 'a', messages: [{ id: 'm', role: 'user', parts: [file] }] }));
    expect(await told.json()).toMatchObject({ code: 'request_invalid', detail: 'The data of a file must be base64.' });
    expect((await fetch(`${url}/api/chat/a/messages?limit=no`)).status).toBe(400);
  });
});
