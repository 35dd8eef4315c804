/** Chats of the AI SDK, with its own client over HTTP. */
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
  lastAssistantMessageIsCompleteWithToolCalls,
  safeValidateUIMessages,
  type UIMessage,
} from 'ai';
import { describe, expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { Chat, historyOf, plain, serveChats } from '../kit/ui-chat.ts';
import { until } from '../kit/waiting.ts';

const automatic = { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses };

async function scenario(options: Parameters<typeof serveChats>[1] = {}) {
  const effects = new Effects();
  const runtime = createRuntime({ agents: [scenarioAgent(effects)], journal: memoryJournal() });
  onTestFinished(() => runtime.close());
  const url = await serveChats(runtime, options);
  return { effects, runtime, url };
}

/** The history has what was streamed: the user's messages have metadata of ours beside. */
async function expectHistory(url: string, chat: Chat): Promise<UIMessage[]> {
  const history = await historyOf(url);
  const strip = (messages: readonly UIMessage[]) =>
    (plain(messages) as UIMessage[]).map(({ role, parts, metadata, ...rest }) => ({
      ...rest,
      role,
      ...(role === 'user' ? { parts: parts.map((part) => ({ ...part, state: 'done' })) } : { parts, metadata }),
    }));
  expect(strip(history)).toEqual(strip(chat.messages));
  expect(await safeValidateUIMessages({ messages: history })).toMatchObject({ success: true });
  return history;
}

describe('useChat on a session', () => {
  it('history: what is loaded is what was streamed: words, calls, states and data, with the same ids', async () => {
    const { url } = await scenario();
    const chat = new Chat(url);
    for (const text of ['say one two three', 'weather in Oslo', 'data']) await chat.sendMessage({ text });
    expect(chat.said).toEqual([
      'user: say one two three',
      'assistant: one two three',
      'user: weather in Oslo',
      'assistant: It is 7 degrees in Oslo.',
      'user: data',
      'assistant: All is reported.',
    ]);
    expect(chat.messages.at(-1)?.parts).toContainEqual({ type: 'data-progress', id: 'p1', data: { percent: 100 } });
    expect(chat.data).toContainEqual({ type: 'data-note', data: { text: 'It begins.' }, transient: true });
    await expectHistory(url, chat);
  });

  it('complaint: approving two calls at once does nothing, or in another message (mastra#19528)', async () => {
    const { url, effects } = await scenario();
    const chat = new Chat(url, automatic);
    await chat.sendMessage({ text: 'refund A-17 and B-18' });
    expect(chat.status).toBe('ready');
    const [first = '', second = ''] = chat.approvals;
    await expectHistory(url, chat);
    const id = chat.messages[1]?.id;
    await chat.addToolApprovalResponse({ id: first, approved: true });
    await chat.addToolApprovalResponse({ id: second, approved: false, reason: 'too much' });
    await until(() => chat.status === 'ready' && chat.said.at(-1)?.includes('B-18') === true);
    expect(chat.said).toEqual(['user: refund A-17 and B-18', 'assistant: A-17 is refunded. B-18 is not refunded.']);
    expect(chat.messages[1]?.id).toBe(id);
    expect(chat.calls.map(({ state }) => state)).toEqual(['output-available', 'output-denied']);
    expect(effects.count('refund')).toBe(1);
    await expectHistory(url, chat);
  });

  it('complaint: a refresh while it streams gives a spinner for ever, or nothing (cloudflare/agents#999 #1000): the whole message from its start, 204 when nothing is under way', async () => {
    const { url } = await scenario();
    const chat = new Chat(url);
    const sent = chat.sendMessage({ text: 'slow 12' });
    await until(() => chat.said.at(-1)?.includes('w3') === true);
    const page = new Chat(url, { messages: await historyOf(url) });
    const resumed = page.resumeStream();
    await Promise.all([sent, resumed]);
    expect(page.said).toEqual(chat.said);
    expect(plain(page.messages.slice(1))).toEqual(plain(chat.messages.slice(1)));
    await expectHistory(url, page);
    await page.resumeStream();
    expect([page.status, page.messages.length]).toEqual(['ready', 2]);
    expect((await fetch(`${url}/api/chat/talk/stream`)).status).toBe(204);
    expect((await fetch(`${url}/api/chat/nobody/stream`)).status).toBe(204);
    expect(await historyOf(url, 'nobody')).toEqual([]);
  });

  it('complaint: abort vs resume, a refresh kills the run or stop() does nothing (vercel/ai#12924 #14350 #15091)', async () => {
    const { url, runtime } = await scenario();
    const chat = new Chat(url);
    const sent = chat.sendMessage({ text: 'slow 10' });
    await until(() => chat.said.at(-1)?.includes('w2') === true);
    await chat.stop();
    await sent;
    expect((await runtime.session('talk').result())?.status).toBe('finished');
    const again = new Chat(url, { messages: await historyOf(url) });
    expect(again.said.at(-1)).toContain('w9');
    const long = again.sendMessage({ text: 'slow 1000' });
    await until(() => again.said[3]?.includes('w2') === true);
    const stopped = await fetch(`${url}/api/chat/talk/stop`, { method: 'POST' });
    expect(await stopped.json()).toEqual({ stopped: true });
    await long;
    expect(again.status).toBe('ready');
    // What was said before stays, live and in the history.
    expect(again.said[3]).toMatch(/^assistant: w0 w1 w2/);
    await expectHistory(url, again);
    expect((await fetch(`${url}/api/chat/talk/stream`)).status).toBe(204);
    expect(await (await fetch(`${url}/api/chat/talk/stop`, { method: 'POST' })).json()).toEqual({ stopped: false });
  });

  it('errors: words for a person, and never a stack, a path or a key', async () => {
    const { url } = await scenario();
    const chat = new Chat(url);
    await chat.sendMessage({ text: 'fail' });
    expect([chat.status, chat.error?.message]).toEqual(['error', 'Something went wrong (planner_failed).']);
    expect(JSON.stringify(await historyOf(url))).not.toMatch(/secret|sk-|db\.ts/);
    await chat.sendMessage({ text: 'say more' });
    expect([chat.status, chat.said.at(-1)]).toEqual(['ready', 'assistant: more']);
  });

  it('busy: a second message while it is at work is answered when its turn comes, once', async () => {
    const { url } = await scenario();
    const chat = new Chat(url);
    const first = chat.sendMessage({ text: 'slow 8' });
    await until(() => chat.said.at(-1)?.includes('w1') === true);
    const second = chat.sendMessage({ text: 'say two' });
    await Promise.all([first, second]);
    const history = await historyOf(url);
    expect(history.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    expect(new Chat(url, { messages: history }).said.at(-1)).toBe('assistant: two');
    const other = new Chat(url, { id: 'other' });
    const busy = other.sendMessage({ text: 'slow 1000' });
    await until(() => other.said.at(-1)?.includes('w1') === true);
    const body = { id: 'other', message: { id: 'm2', role: 'user', parts: [{ type: 'text', text: 'say now' }] } };
    const post = (more: object) =>
      fetch(`${url}/api/chat`, { method: 'POST', body: JSON.stringify({ ...body, ...more }) });
    const waits = await post({});
    await fetch(`${url}/api/chat/other/stop`, { method: 'POST' });
    expect(await waits.text()).toContain('now');
    await busy;
    // The same message once more changes nothing, and is answered the same.
    expect(await (await post({})).text()).toContain('now');
    expect((await historyOf(url, 'other')).filter(({ role }) => role === 'user')).toHaveLength(2);
  });

  it('edits a message, and regenerates, on branches of the session', async () => {
    const { url, runtime } = await scenario();
    const chat = new Chat(url);
    await chat.sendMessage({ text: 'say one' });
    await chat.sendMessage({ text: 'say two' });
    await chat.sendMessage({ text: 'say other', messageId: chat.messages[2]?.id ?? '' });
    expect(chat.said).toEqual(['user: say one', 'assistant: one', 'user: say other', 'assistant: other']);
    await expectHistory(url, chat);
    const before = chat.messages.at(-1)?.id;
    await chat.regenerate();
    expect(chat.messages.at(-1)?.id).not.toBe(before);
    await chat.regenerate({ messageId: chat.messages[1]?.id ?? '' });
    expect(chat.said).toEqual(['user: say one', 'assistant: one']);
    await expectHistory(url, chat);
    expect(await runtime.session('talk').branches()).toHaveLength(4);
  });

  it('endpoints: an app may send only its last message, in place of all', async () => {
    const { url } = await scenario();
    for (const [id, word] of Object.entries({ m1: 'one', m2: 'two' })) {
      const message = { id, role: 'user', parts: [{ type: 'text', text: `say ${word}` }] };
      const answer = await fetch(`${url}/api/chat`, { method: 'POST', body: JSON.stringify({ id: 'talk', message }) });
      expect(answer.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
      expect(await answer.text()).toMatch(/data: \[DONE\]\n\n$/);
    }
    expect((await historyOf(url)).map(({ id }) => id)).toEqual(['m1', expect.any(String), 'm2', expect.any(String)]);
  });
});

describe('tools of the client', () => {
  it('are carried out by the page, and what they came to is taken once', async () => {
    const { url } = await scenario();
    const chat = new Chat(url, { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls });
    await chat.sendMessage({ text: 'pick a color' });
    const [call] = chat.calls;
    expect([chat.status, call?.toolName, call?.state]).toEqual(['ready', 'pickColor', 'input-available']);
    await expectHistory(url, chat);
    const { toolCallId = '' } = call ?? {};
    await chat.addToolOutput({ tool: 'pickColor', toolCallId, output: 'red' } as never);
    await until(() => chat.status === 'ready' && chat.said[1]?.includes('picked') === true);
    expect(chat.said[1]).toBe('assistant: You picked "red".');
    await expectHistory(url, chat);
    await chat.sendMessage({ text: 'pick a color' });
    const other = chat.calls[1]?.toolCallId ?? '';
    await chat.addToolOutput({
      state: 'output-error',
      tool: 'pickColor',
      toolCallId: other,
      errorText: 'no eyes',
    } as never);
    await until(() => chat.status === 'ready' && chat.said[3]?.includes('picked') === true);
    expect(chat.said[3]).toBe('assistant: No color was picked.');
  });
});

describe('approvals', () => {
  it('complaint: approval lost on reload (assistant-ui#5046, CopilotKit#1397): 204, the question is in the history, and another page answers it once', async () => {
    const { url, effects } = await scenario();
    await new Chat(url).sendMessage({ text: 'refund A-17' });
    expect((await fetch(`${url}/api/chat/talk/stream`)).status).toBe(204);
    const page = new Chat(url, { ...automatic, messages: await historyOf(url) });
    const stale = new Chat(url, { ...automatic, messages: await historyOf(url) });
    await page.addToolApprovalResponse({ id: page.approvals[0] ?? '', approved: true });
    await until(() => page.status === 'ready' && page.said.length === 2 && page.said[1]?.includes('refunded') === true);
    await expectHistory(url, page);
    // The same answer again: the same message, and nothing is run.
    await stale.addToolApprovalResponse({ id: stale.approvals[0] ?? '', approved: true });
    await until(() => stale.status === 'ready' && stale.said[1]?.includes('refunded') === true);
    expect(plain(stale.messages)).toEqual(plain(page.messages));
    expect(effects.count('refund')).toBe(1);
  });

  it('approvals: a different second answer is refused, and told with what has come of the first', async () => {
    const { url, effects } = await scenario();
    await new Chat(url).sendMessage({ text: 'refund A-17' });
    const page = new Chat(url, { ...automatic, messages: await historyOf(url) });
    const stale = new Chat(url, { ...automatic, messages: await historyOf(url) });
    await page.addToolApprovalResponse({ id: page.approvals[0] ?? '', approved: false });
    await until(() => page.status === 'ready' && page.said[1]?.includes('not refunded') === true);
    await stale.addToolApprovalResponse({ id: stale.approvals[0] ?? '', approved: true });
    await until(() => stale.status === 'error');
    expect(stale.error?.message).toBe('It was answered before, with no.');
    expect(stale.calls[0]?.state).toBe('output-denied');
    expect(effects.count('refund')).toBe(0);
    const again = await fetch(`${url}/api/chat/talk/approvals`, {
      method: 'POST',
      body: JSON.stringify({ approvalId: page.calls[0]?.approval?.id, approved: true }),
    });
    expect(again.status).toBe(409);
  });

  it('approvals: an unknown, forged or altered answer runs nothing; the arguments come from the journal', async () => {
    const { url, effects } = await scenario();
    const chat = new Chat(url);
    await chat.sendMessage({ text: 'refund A-17' });
    const [token = ''] = chat.approvals;
    const [user, assistant] = chat.messages;
    const answered = (id: string) => ({
      ...assistant,
      parts: assistant?.parts.map((part) =>
        part.type === 'dynamic-tool'
          ? {
              ...part,
              input: { order: 'A-17', amount: 9000 },
              state: 'approval-responded',
              approval: { id, approved: true },
            }
          : part,
      ),
    });
    const post = (id: string, approval: string, path = '') =>
      fetch(`${url}/api/chat${path}`, {
        method: 'POST',
        body: JSON.stringify({
          id,
          messages: [user, answered(approval)],
          messageId: assistant?.id,
          trigger: 'submit-message',
        }),
      });
    expect((await post('talk', 'pause_forged')).status).toBe(404);
    expect((await post('elsewhere', token)).status).toBe(404);
    const unknown = await fetch(`${url}/api/chat/elsewhere/approvals`, {
      method: 'POST',
      body: JSON.stringify({ approvalId: token, approved: true }),
    });
    expect(unknown.status).toBe(404);
    expect(effects.count('refund')).toBe(0);
    // Arguments are those of the journal, whatever the client says that they were.
    expect(await (await post('talk', token)).text()).toContain('"refunded":90');
  });

  it('approvals: with other arguments, in the body of the request or by an endpoint of their own', async () => {
    const { url } = await scenario();
    const chat = new Chat(url, automatic);
    await chat.sendMessage({ text: 'refund A-17' });
    const [token = ''] = chat.approvals;
    const edits = { [token]: { order: 'A-17', amount: 5 } };
    await chat.addToolApprovalResponse({ id: token, approved: true, options: { body: { edits } } });
    await until(() => chat.status === 'ready' && chat.said[1]?.includes('refunded') === true);
    expect(chat.calls[0]).toMatchObject({
      input: { amount: 5 },
      output: { refunded: 5 },
      approval: { approved: true },
    });
    await expectHistory(url, chat);
    await chat.sendMessage({ text: 'refund B-18' });
    const [other = ''] = chat.approvals;
    const posted = await fetch(`${url}/api/chat/talk/approvals`, {
      method: 'POST',
      body: JSON.stringify({ approvalId: other, approved: true, args: { order: 'B-18', amount: 7 } }),
    });
    expect(await posted.json()).toEqual({ approvalId: other });
    await chat.addToolApprovalResponse({ id: other, approved: true });
    await until(() => chat.status === 'ready' && chat.said[3]?.includes('refunded') === true);
    expect(chat.calls[1]).toMatchObject({ input: { amount: 7 }, output: { refunded: 7 } });
    await expectHistory(url, chat);
  });

  it('complaint: a message in place of an answer breaks the chat (vercel/ai#12709, eve#2466, n8n#36737): it withdraws the question, and the history stays whole', async () => {
    const { url, effects } = await scenario();
    const chat = new Chat(url, automatic);
    await chat.sendMessage({ text: 'refund A-17' });
    const [token = ''] = chat.approvals;
    await chat.sendMessage({ text: 'leave it' });
    expect(chat.status).toBe('ready');
    expect(chat.said.at(-1)).toBe('assistant: A-17 is not refunded.');
    const history = await historyOf(url);
    expect(history.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'assistant']);
    expect(history[3]?.id).toBe(chat.messages[3]?.id);
    expect(await safeValidateUIMessages({ messages: history })).toMatchObject({ success: true });
    // The card is still on the page, on an earlier message.
    const late = chat.addToolApprovalResponse({ id: token, approved: true });
    await late;
    await chat.sendMessage();
    expect(chat.error?.message).toBe('It was not asked any more: the user wrote while it waited for an answer.');
    expect(chat.calls[0]?.state).toBe('output-denied');
    expect(chat.messages.map(({ id }) => id)).toEqual(history.map(({ id }) => id));
    expect(effects.count('refund')).toBe(0);
  });
});
