/** Chats of the AI SDK that something else is done to meanwhile: they are stopped, answered by two, or have no place for one more stream. */
import { safeValidateUIMessages } from 'ai';
import { expect, it, onTestFinished } from 'vitest';
import type { Planner } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { finish } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { Chat, historyOf, plain, serveChats } from '../kit/ui-chat.ts';
import { aborted, until } from '../kit/waiting.ts';

async function scenario(more: Parameters<typeof serveChats>[2] = {}) {
  const effects = new Effects();
  const runtime = createRuntime({ agents: [scenarioAgent(effects)], journal: memoryJournal() });
  onTestFinished(() => runtime.close());
  return { effects, url: await serveChats(runtime, {}, more) };
}

function post(url: string, body: unknown): Promise<Response> {
  const headers = { 'content-type': 'application/json' };
  return fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
}

async function saidBy(url: string, id?: string): Promise<unknown> {
  return (plain(await historyOf(url, id)) as { role: string; parts: { type: string; text?: string }[] }[]).map(
    ({ role, parts }) => `${role}: ${parts.map(({ text = '' }) => text).join('')}`,
  );
}

it('stop: what was said before it was stopped is kept, also after a reload', async () => {
  const { url } = await scenario();
  const chat = new Chat(url);
  const sent = chat.sendMessage({ text: 'slow 1000' });
  await until(() => chat.said.at(-1)?.includes('w2') === true);
  await post(`${url}/api/chat/talk/stop`, {});
  await sent;
  expect(chat.said.at(-1)).toMatch(/^assistant: w0 w1 w2/);
  expect(await saidBy(url)).toEqual(chat.said);
  const [, answer] = await historyOf(url);
  expect(plain([answer ?? []].flat())).toEqual(plain(chat.messages.slice(1)));
  expect(await safeValidateUIMessages({ messages: await historyOf(url) })).toMatchObject({ success: true });
});

it('keeps what was said before the agent failed, also after a reload', async () => {
  const { url } = await scenario();
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'fail' });
  expect(chat.said.at(-1)).toBe('assistant: This will not end well.');
  const [, answer] = await historyOf(url);
  expect(plain([answer ?? []].flat())).toEqual(plain(chat.messages.slice(1)));
  await chat.sendMessage({ text: 'say more' });
  expect(await saidBy(url)).toEqual(chat.said);
});

it('says so when a call was approved before with other arguments', async () => {
  const { url, effects } = await scenario();
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'refund A-17' });
  const approve = (amount: number) =>
    post(`${url}/api/chat/talk/approvals`, {
      approvalId: chat.approvals[0],
      approved: true,
      args: { order: 'A-17', amount },
    });
  expect((await approve(50)).status).toBe(200);
  await until(async () => JSON.stringify(await historyOf(url)).includes('is refunded'));
  expect((await approve(50)).status).toBe(200);
  const other = await approve(90);
  expect(other.status).toBe(409);
  expect(await other.json()).toMatchObject({ detail: 'It was answered before, with other arguments.' });
  expect(effects.count('refund')).toBe(1);
});

it('takes what a tool of the page came to when the user writes before it was sent', async () => {
  const { url } = await scenario();
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'pick a color' });
  const [{ toolCallId = '' } = {}] = chat.calls;
  await chat.addToolOutput({ tool: 'pickColor', toolCallId, output: 'blue' });
  await chat.sendMessage({ text: 'say thanks' });
  expect(JSON.stringify(await historyOf(url))).toContain('"output":"blue"');
});

it('does not take a message of another chat for one of its own', async () => {
  const { url } = await scenario();
  const [one, other] = [new Chat(url, { id: 'one' }), new Chat(url, { id: 'other' })];
  await one.sendMessage({ text: 'say one' });
  await other.sendMessage({ text: 'say other' });
  const body = { id: 'one', messages: one.messages, trigger: 'regenerate-message', messageId: other.messages[1]?.id };
  expect((await post(`${url}/api/chat`, body)).status).toBe(404);
});

it('does nothing for whom there is no stream left', async () => {
  const { url, effects } = await scenario({ maxStreamsPerUser: 1 });
  const asking = new Chat(url, { id: 'asking' });
  await asking.sendMessage({ text: 'refund A-17' });
  const slow = new Chat(url, { id: 'slow' });
  const sent = slow.sendMessage({ text: 'slow 1000' });
  await until(() => slow.said.at(-1)?.includes('w2') === true);
  const late = new Chat(url, { id: 'late' });
  await late.sendMessage({ text: 'say late' });
  expect(late.error?.message).toContain('streams_full');
  expect(await historyOf(url, 'late')).toEqual([]);
  await asking.addToolApprovalResponse({ id: asking.approvals[0] ?? '', approved: true });
  await asking.sendMessage();
  expect(asking.error?.message).toContain('streams_full');
  expect(JSON.stringify(await historyOf(url, 'asking'))).toContain('approval-requested');
  await post(`${url}/api/chat/slow/stop`, {});
  await sent;
  await late.regenerate().catch(() => {});
  await late.sendMessage({ text: 'say now' });
  expect(late.said.at(-1)).toBe('assistant: now');
  expect(effects.count('refund')).toBe(0);
});

it('edits a message that was said more than a hundred turns ago', async () => {
  const { url } = await scenario();
  const chat = new Chat(url);
  for (let turn = 0; turn < 102; turn += 1) await chat.sendMessage({ text: `say ${turn}` });
  await chat.sendMessage({ text: 'say edited', messageId: chat.messages[0]?.id ?? '' });
  expect(chat.said).toEqual(['user: say edited', 'assistant: edited']);
  expect(await saidBy(url)).toEqual(chat.said);
}, 30_000);

it('stop: arguments of a call that was never made are taken back, and what was said beside them is kept', async () => {
  for (const said of ['', 'I write it down.']) {
    const planner: Planner = {
      name: 'writes',
      async *next(_, signal) {
        if (said !== '') yield { type: 'text', text: said };
        yield { type: 'input', callId: 'c1', tool: 'note', text: '{"text":"half' };
        await aborted(signal);
        return finish();
      },
    };
    const runtime = createRuntime({ planner, tools: [make('note', () => 'noted')], journal: memoryJournal() });
    onTestFinished(() => runtime.close());
    const url = await serveChats(runtime);
    const chat = new Chat(url);
    const sent = chat.sendMessage({ text: 'go' });
    await until(() => chat.calls[0]?.state === 'input-streaming');
    await post(`${url}/api/chat/talk/stop`, {});
    await sent;
    expect([chat.calls, chat.said.at(-1)]).toEqual([[], `assistant: ${said}`]);
    const loaded = (await historyOf(url)).slice(1);
    expect(plain(chat.messages.slice(1).filter(({ parts }) => parts.length > 1))).toEqual(plain(loaded));
  }
});
