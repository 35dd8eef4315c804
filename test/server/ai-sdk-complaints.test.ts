/** What users of the AI SDK complain about elsewhere: each complaint has its test here, or in the file of chats under the same word. */
import {
  createAgentUIStream,
  DefaultChatTransport,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  safeValidateUIMessages,
  type UIMessage,
} from 'ai';
import { expect, it, onTestFinished } from 'vitest';
import type { Move, Planner, SpokenDelta } from '#core';
import { memoryJournal } from '#journal';
import { agent, agentTool } from '#pilotage';
import { react } from '#planners/react';
import { createRuntime, type RuntimeOptions } from '#runtime';
import { asAgent } from '#server/ai-sdk';
import { scriptedModel } from '#testing';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { call, finish, script } from '../kit/decisions.ts';
import { TcpProxy } from '../kit/tcp-proxy.ts';
import { ANY, echo, holding, make } from '../kit/tools.ts';
import { Chat, historyOf, plain, serveChats } from '../kit/ui-chat.ts';
import { chunksIn } from '../kit/ui-stream.ts';
import { until } from '../kit/waiting.ts';

const automatic = { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses };

async function served(options: Omit<RuntimeOptions, 'journal'>) {
  const runtime = createRuntime({ ...options, journal: memoryJournal() });
  onTestFinished(() => runtime.close());
  return { runtime, url: await serveChats(runtime) };
}

async function scenario() {
  const effects = new Effects();
  return { effects, ...(await served({ agents: [scenarioAgent(effects)] })) };
}

it('complaint: duplicated assistant message after resume or from history, two ids for one message (cloudflare/agents#958, mastra#21185)', async () => {
  const { url } = await scenario();
  const chat = new Chat(url);
  const sent = chat.sendMessage({ text: 'slow 10' });
  await until(() => chat.said.at(-1)?.includes('w2') === true);
  // Pages that have the message in part, with its id: of the history, and of another page.
  const pages = [await historyOf(url), structuredClone(chat.messages), chat.messages.slice(0, 1)].map(
    (messages) => new Chat(url, { messages }),
  );
  await Promise.all(pages.map((page) => page.resumeStream()));
  await sent;
  await chat.resumeStream();
  const told = await historyOf(url);
  expect(told.map(({ role }) => role)).toEqual(['user', 'assistant']);
  for (const each of [chat, ...pages]) expect(each.messages.map(({ id }) => id)).toEqual(told.map(({ id }) => id));
});

it('complaint: reasoning or parts lost on fast replay (cloudflare/agents#896)', async () => {
  const { tool, entered, release } = holding();
  const planner: Planner = {
    name: 'thinks',
    async *next({ trajectory: { count } }): AsyncGenerator<SpokenDelta, Move> {
      for (const word of ['I ', 'think ', `${count}.`]) yield { type: 'reasoning', text: word };
      for (const word of ['I ', 'say ', `${count}.`]) yield { type: 'text', text: word };
      const said = { reasoning: `I think ${count}.`, text: `I say ${count}.` };
      if (count < 20) return { decision: call('echo', { count }), ...said };
      return count === 20 ? { decision: call('hold'), ...said } : { decision: finish(said.text), ...said };
    },
  };
  const { url } = await served({ planner, tools: [echo, tool] });
  const chat = new Chat(url);
  const sent = chat.sendMessage({ text: 'go' });
  await entered;
  await until(() => chat.calls.length === 21);
  // All that was said so far comes at once.
  const late = new Chat(url, { messages: chat.messages.slice(0, 1) });
  const resumed = late.resumeStream();
  await until(() => late.calls.length === 21);
  release();
  await Promise.all([sent, resumed]);
  const parts = chat.messages[1]?.parts.map(({ type }) => type) ?? [];
  expect(parts.filter((type) => type === 'reasoning')).toHaveLength(22);
  expect(plain(late.messages.slice(1))).toEqual(plain(chat.messages.slice(1)));
  expect(plain((await historyOf(url)).slice(1))).toEqual(plain(chat.messages.slice(1)));
});

it('complaint: resume only on mount, not after a drop (vercel/ai#6633)', async () => {
  const { url } = await scenario();
  const proxy = await TcpProxy.start(Number(new URL(url).port));
  onTestFinished(() => proxy.close());
  const chat = new Chat(`http://127.0.0.1:${proxy.port}`);
  const sent = chat.sendMessage({ text: 'slow 20' });
  await until(() => chat.said.at(-1)?.includes('w3') === true);
  proxy.cutAfter('down', 0);
  await sent;
  expect(chat.status).toBe('error');
  await chat.resumeStream();
  const whole = Array.from({ length: 20 }, (_, index) => `w${index}`).join(' ');
  expect([chat.status, ...chat.said]).toEqual(['ready', 'user: slow 20', `assistant: ${whole}`]);
});

it('complaint: approving does nothing when the card is on an earlier message (mastra#19528)', async () => {
  let paid = 0;
  const pay = make('pay', () => `paid ${++paid}`, { needsApproval: true });
  const clerk = agent({
    name: 'clerk',
    planner: script(call('pay', { amount: 3 }), finish('clerk is done')),
    tools: [pay],
  });
  const desk = agentTool(clerk, { name: 'clerk', description: 'Pays.', inputSchema: ANY, background: true });
  const planner: Planner = {
    name: 'talks',
    next: ({ trajectory: { count, steering } }) =>
      count === 0
        ? { decision: call('clerk') }
        : { decision: { kind: 'request_pause', reason: 'await_input' }, text: `I heard ${steering.length}.` },
  };
  const { url } = await served({ planner, tools: [desk] });
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'go' });
  await until(async () => JSON.stringify(await historyOf(url)).includes('approval-requested'));
  const page = new Chat(url, { messages: await historyOf(url) });
  await page.sendMessage({ text: 'hello' });
  expect([page.status, page.messages.map(({ role }) => role)]).toEqual([
    'ready',
    ['user', 'assistant', 'user', 'assistant'],
  ]);
  const [card = ''] = page.approvals;
  expect(JSON.stringify(page.messages[1])).toContain(card);
  await page.addToolApprovalResponse({ id: card, approved: true });
  await page.sendMessage();
  expect([page.status, page.error]).toEqual(['ready', undefined]);
  await until(async () => paid === 1 && !JSON.stringify(await historyOf(url)).includes('approval-responded'));
  const told = await historyOf(url);
  expect(told[1]?.parts).toContainEqual(expect.objectContaining({ toolName: 'pay', state: 'output-available' }));
  expect(told.map(({ id }) => id).slice(0, 4)).toEqual(page.messages.map(({ id }) => id).slice(0, 4));
});

it('complaint: approve, then provider error: tool call without result (vercel/ai#12709 #13057, eve#236, ai#9968)', async () => {
  let paid = 0;
  const pay = make('pay', () => `paid ${++paid}`, { needsApproval: true });
  const model = scriptedModel([
    { calls: [{ id: 'c1', tool: 'pay', args: { amount: 3 } }] },
    { error: Object.assign(new Error('overloaded'), { isRetryable: false }), errorAt: 'call' },
    { text: 'All is well.' },
  ]);
  const { url } = await served({ planner: react({ model }), tools: [pay] });
  const chat = new Chat(url, automatic);
  await chat.sendMessage({ text: 'pay' });
  await chat.addToolApprovalResponse({ id: chat.approvals[0] ?? '', approved: true });
  await until(
    () => chat.status === 'error' || (chat.status === 'ready' && chat.calls[0]?.state !== 'approval-responded'),
  );
  expect([chat.status, chat.calls[0]?.state, paid]).toEqual(['error', 'output-available', 1]);
  const messages = await historyOf(url);
  expect(await safeValidateUIMessages({ messages })).toMatchObject({ success: true });
  // Both the open page and one that is loaded go on, and the model is told of the call with its result.
  await chat.sendMessage({ text: 'and?' });
  expect([chat.status, chat.said.at(-1), paid]).toEqual(['ready', 'assistant: All is well.', 1]);
  const prompt =
    model.calls.at(-1)?.prompt.flatMap(({ content }) => (typeof content === 'string' ? [] : [...content])) ?? [];
  const calls = prompt.flatMap((part) => (part.type === 'tool-call' ? [part.toolCallId] : []));
  const results = prompt.flatMap((part) => (part.type === 'tool-result' ? [part.toolCallId] : []));
  expect(calls).toHaveLength(1);
  expect(results).toEqual(calls);
});

it('complaint: message instead of an answer, and the model invents results (vercel/ai#12709, eve#2466, n8n#36737)', async () => {
  const pay = make('pay', () => 'paid', { needsApproval: true });
  const model = scriptedModel([{ calls: [{ id: 'c1', tool: 'pay', args: {} }] }, { text: 'I leave it.' }]);
  const { url } = await served({ planner: react({ model }), tools: [pay] });
  const chat = new Chat(url, automatic);
  await chat.sendMessage({ text: 'pay' });
  await chat.sendMessage({ text: 'leave it' });
  expect([chat.status, chat.said.at(-1)]).toEqual(['ready', 'assistant: I leave it.']);
  const prompt = JSON.stringify(model.calls.at(-1)?.prompt);
  expect(prompt.match(/"type":"tool-result"/g)).toHaveLength(1);
  expect(prompt).toContain('leave it');
  expect(prompt).not.toContain('"value":"paid"');
});

it('complaint: stream never closes after an approval when onFinish is set (vercel/ai#10169)', async () => {
  const { url, runtime } = await scenario();
  const ended: string[] = [];
  const chat = new Chat(url, {
    ...automatic,
    onFinish: ({ message, finishReason }) => void ended.push(`${message.id} ${finishReason}`),
  });
  await chat.sendMessage({ text: 'refund A-17' });
  const id = chat.messages[1]?.id;
  await chat.addToolApprovalResponse({ id: chat.approvals[0] ?? '', approved: true });
  await until(() => ended.length === 2);
  expect([chat.status, ended]).toEqual(['ready', [`${id} tool-calls`, `${id} stop`]]);
  // The same with the agent in the AI SDK's own server.
  const made = asAgent(runtime, { agent: 'scenario' });
  const ends: string[] = [];
  const streamed = async (uiMessages: UIMessage[]): Promise<void> => {
    const onEnd = ({ responseMessage }: { responseMessage: UIMessage }): void => {
      messages = [messages[0] as UIMessage, responseMessage];
      ends.push(responseMessage.id);
    };
    const stream = await createAgentUIStream({
      agent: made,
      uiMessages,
      originalMessages: uiMessages,
      generateMessageId: () => 'a1',
      onEnd,
    });
    for await (const _ of stream);
  };
  let messages: UIMessage[] = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'refund B-18' }] }];
  await streamed(messages);
  for (const part of messages[1]?.parts ?? [])
    if (isToolUIPart(part) && part.state === 'approval-requested')
      Object.assign(part, { state: 'approval-responded', approval: { ...part.approval, approved: true } });
  await streamed(messages);
  expect(ends).toEqual(['a1', 'a1']);
  expect(messages[1]?.parts.at(-1)).toMatchObject({ text: 'B-18 is refunded.' });
});

it('complaint: approval signature dropped, and every signed approval fails (vercel/ai#16334 #17358): there is none to lose', async () => {
  const { url, effects } = await scenario();
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'refund A-17' });
  const { approval, toolCallId } = chat.calls[0] ?? {};
  expect(approval).toEqual({ id: approval?.id });
  // All that counts is which question is answered, and how.
  const part = {
    type: 'tool-refund',
    toolCallId,
    state: 'approval-responded',
    approval: { id: approval?.id, approved: true },
  };
  const message = { id: chat.messages[1]?.id, role: 'assistant', parts: [part] };
  const answer = await fetch(`${url}/api/chat`, { method: 'POST', body: JSON.stringify({ id: 'talk', message }) });
  expect((await chunksIn(await answer.text())).at(-1)).toEqual({ type: 'finish', finishReason: 'stop' });
  expect(effects.count('refund')).toBe(1);
});

it('complaint: stop() does nothing while the chat waits for an approval (vercel/ai#12924 #14350): the call is denied as stopped', async () => {
  const { url, effects } = await scenario();
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'refund A-17' });
  expect(await (await fetch(`${url}/api/chat/talk/stop`, { method: 'POST' })).json()).toEqual({ stopped: true });
  const [, answer] = await historyOf(url);
  expect(answer?.parts.at(-1)).toMatchObject({
    state: 'output-denied',
    approval: { approved: false, reason: 'It was stopped before anybody answered.' },
  });
  // The card that the page still shows runs nothing.
  await chat.addToolApprovalResponse({ id: chat.approvals[0] ?? '', approved: true });
  await chat.sendMessage();
  expect([chat.error?.message, effects.count('refund')]).toEqual(['It was stopped before anybody answered.', 0]);
});

it('answers an edit, and another answer, that come while an approval is open', async () => {
  const { url, effects } = await scenario();
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'refund A-17' });
  await chat.sendMessage({ text: 'say other', messageId: chat.messages[0]?.id ?? '' });
  expect(chat.said).toEqual(['user: say other', 'assistant: other']);
  await chat.sendMessage({ text: 'refund B-18' });
  await chat.regenerate();
  expect([chat.status, chat.approvals.length, effects.count('refund')]).toEqual(['ready', 1, 0]);
  expect(plain((await historyOf(url)).slice(-1))).toEqual(plain(chat.messages.slice(-1)));
});

it('has the card of a task that asked after the stream had ended, with the next answer', async () => {
  const held = holding();
  const pay = make('pay', () => 'paid', { needsApproval: true });
  const clerk = agent({
    name: 'clerk',
    planner: script(call('hold'), call('pay'), finish('done')),
    tools: [held.tool, pay],
  });
  const desk = agentTool(clerk, { name: 'clerk', description: 'Pays.', inputSchema: ANY });
  const asks = make('asks', () => 'made', { needsApproval: true });
  const planner = script(
    {
      kind: 'call_parallel',
      branches: [
        { tool: 'clerk', args: {} },
        { tool: 'asks', args: {} },
      ],
    },
    finish('all done'),
  );
  const { url } = await served({ planner, tools: [desk, asks] });
  const chat = new Chat(url, { transport: new DefaultChatTransport({ api: `${url}/api/chat` }) });
  await chat.sendMessage({ text: 'go' });
  expect(chat.approvals).toHaveLength(1);
  held.release();
  await until(async () => JSON.stringify(await historyOf(url)).match(/approval-requested/g)?.length === 2);
  await chat.addToolApprovalResponse({ id: chat.approvals[0] ?? '', approved: true });
  await chat.sendMessage();
  expect([chat.status, chat.error, chat.approvals.length]).toEqual(['ready', undefined, 1]);
  await chat.addToolApprovalResponse({ id: chat.approvals[0] ?? '', approved: true });
  await chat.sendMessage();
  expect([chat.status, chat.said.at(-1)]).toEqual(['ready', 'assistant: all done']);
});

it('tells no conflict with an answer of an earlier turn, which the page has kept as it gave it', async () => {
  const { url, effects } = await scenario();
  const chat = new Chat(url, automatic);
  await chat.sendMessage({ text: 'refund A-17 and B-18' });
  const [first = ''] = chat.approvals;
  // The page waits for the second answer before it sends the first one, and then somebody stops the chat.
  await chat.addToolApprovalResponse({ id: first, approved: true });
  expect(await (await fetch(`${url}/api/chat/talk/stop`, { method: 'POST' })).json()).toEqual({ stopped: true });
  await chat.sendMessage({ text: 'refund C-19' });
  await chat.addToolApprovalResponse({ id: chat.approvals.at(-1) ?? '', approved: true });
  await until(() => chat.status === 'ready' || chat.status === 'error');
  expect([chat.status, chat.said.at(-1), effects.count('refund')]).toEqual([
    'ready',
    'assistant: C-19 is refunded.',
    1,
  ]);
});

it('goes on with a chat of more than 100 turns in which the page still has an answer of the first', async () => {
  const { url, runtime } = await scenario();
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'refund A-17' });
  await chat.addToolApprovalResponse({ id: chat.approvals[0] ?? '', approved: true });
  await fetch(`${url}/api/chat/talk/stop`, { method: 'POST' });
  const session = runtime.session('talk');
  for (let turn = 0; turn < 100; turn += 1) await session.send(`say ${turn}`);
  await session.result();
  await chat.sendMessage({ text: 'say more' });
  expect([chat.status, chat.said.at(-1)]).toEqual(['ready', 'assistant: more']);
});

it('tells a message to the agent at once that waits for an answer, also while another call of it is carried out', async () => {
  const { url, effects } = await scenario();
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'refund A-17 and B-18' });
  const [first = ''] = chat.approvals;
  const body = JSON.stringify({ approvalId: first, approved: true });
  await fetch(`${url}/api/chat/talk/approvals`, { method: 'POST', body });
  await until(() => effects.count('refund') === 1);
  await chat.sendMessage({ text: 'say never mind' });
  expect(chat.said.at(-1)).toBe('assistant: A-17 is refunded. B-18 is not refunded.');
});

it('goes on in a page that still has an answer to a question of a branch which another page has left', async () => {
  const { url, effects } = await scenario();
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'refund A-17' });
  const other = new Chat(url, { messages: structuredClone(chat.messages) });
  await chat.addToolApprovalResponse({ id: chat.approvals[0] ?? '', approved: true });
  await other.sendMessage({ text: 'say edited', messageId: other.messages[0]?.id ?? '' });
  await chat.sendMessage({ text: 'say more' });
  expect([chat.status, chat.said.at(-1), effects.count('refund')]).toEqual(['ready', 'assistant: more', 0]);
  // What nobody has asked is refused.
  const forged = JSON.parse(JSON.stringify(chat.messages).replaceAll(/pause_[0-9a-f]+/g, 'pause_of_mine'));
  const refused = new Chat(url, { messages: forged });
  await refused.sendMessage({ text: 'say no' });
  expect(refused.error?.message).toContain('pause_not_found');
});

it.each([
  ['edited', 'say edited'],
  ['asked for once more', undefined],
])('answers a message once that is %s while it waits for its turn', async (_, edited) => {
  const { url, runtime } = await scenario();
  const page = new Chat(url);
  const first = page.sendMessage({ text: 'slow 30' });
  await until(() => page.said.at(-1)?.includes('w2') === true);
  const other = new Chat(url, { messages: await historyOf(url) });
  const second = other.sendMessage({ text: 'say two' });
  const identity = { tenant: 'local', user: 'local' };
  await until(async () => (await runtime.sessions.get({ ...identity, session: 'talk' }))?.waiting === 1);
  const loaded = new Chat(url, { messages: await historyOf(url) });
  const { id = '' } = loaded.messages.at(-1) ?? {};
  await (edited === undefined
    ? loaded.regenerate({ messageId: id })
    : loaded.sendMessage({ text: edited, messageId: id }));
  await Promise.all([first, second]);
  await until(async () => (await runtime.sessions.get({ ...identity, session: 'talk' }))?.live === undefined);
  // What was under way goes on to its end.
  expect(page.said.at(-1)).toMatch(/w29$/);
  const told = await historyOf(url);
  expect(told.filter(({ role }) => role === 'user').map((message) => message.id)).toEqual([page.messages[0]?.id, id]);
  expect(new Chat(url, { messages: told }).said.filter((line) => line.startsWith('user: '))).toEqual([
    'user: slow 30',
    `user: ${edited ?? 'say two'}`,
  ]);
  // What it said before was withdrawn, and nobody has worked at it.
  const statuses = (await runtime.list({ limit: 200 })).map(({ status }) => status);
  expect(statuses.sort()).toEqual(['cancelled', 'finished', 'finished']);
});
