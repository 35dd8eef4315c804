/** Chats of the AI SDK, with its own client over HTTP. */
import {
  lastAssistantMessageIsCompleteWithApprovalResponses,
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
  it('streams words, calls and data, and loads the same messages', async () => {
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

  it('approves two calls of one step, in the same message, once each', async () => {
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
});
