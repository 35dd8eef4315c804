/** Results of a page's own tools, and files, that do not come as they should: too late, twice, from a page that is behind. */
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithToolCalls, type UIMessage } from 'ai';
import { expect, it, onTestFinished } from 'vitest';
import type { Planner, PlannerFunction } from '#core';
import { memoryJournal } from '#journal';
import { clientTool, createRuntime } from '#pilotage';
import { call, finish, script } from '../kit/decisions.ts';
import { ANY, make } from '../kit/tools.ts';
import { Chat, historyOf, serveChats } from '../kit/ui-chat.ts';
import { until } from '../kit/waiting.ts';

const color = { type: 'object', properties: { color: { type: 'string' } }, required: ['color'] };
const pick = clientTool({ name: 'pick', description: 'Picks.', effect: 'read', inputSchema: ANY, outputSchema: color });
const pay = make('pay', () => 'paid', {
  effect: 'once',
  needsApproval: true,
  inputSchema: { type: 'object', properties: { amount: { type: 'number' } }, required: ['amount'] },
});
const automatic = { sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls };

async function served(planner: Planner | PlannerFunction) {
  const runtime = createRuntime({ planner, tools: [pick, pay], journal: memoryJournal() });
  onTestFinished(() => runtime.close());
  const url = await serveChats(runtime);
  const page = async (): Promise<Chat> => new Chat(url, { ...automatic, messages: await historyOf(url) });
  return { url, page };
}

/** Asks the page to pick under the same id in each turn, as the servers of some models do, and says what came of it. */
const picking = script(call('pick', {}, 'call_1'), finish('picked'));

async function answer(chat: Chat, output: unknown): Promise<void> {
  const { toolCallId = '' } = chat.calls.at(-1) ?? {};
  await chat.addToolOutput({ tool: 'pick', toolCallId, output } as never);
  await until(
    () => chat.status === 'error' || (chat.status === 'ready' && chat.said.at(-1)?.includes('picked') === true),
  );
}

it('tells a page whose result comes when another page has given one what was taken, with all that came of it', async () => {
  const { url, page } = await served(picking);
  const chat = new Chat(url, automatic);
  await chat.sendMessage({ text: 'go' });
  const late = await page();
  await answer(chat, { color: 'red' });
  await answer(late, { color: 'blue' });
  expect(late.error?.message).toBe('It was answered before, with another result.');
  expect(late.messages.slice(1)).toEqual((await page()).messages.slice(1));
  expect(late.said[1]).toBe('assistant: picked');
});

it('takes the results of calls that have the same id in two turns', async () => {
  const { url, page } = await served(picking);
  const chat = new Chat(url, automatic);
  for (const color of ['red', 'blue']) {
    await chat.sendMessage({ text: 'go' });
    await answer(chat, { color });
  }
  const outputs = (calls: Chat['calls']) => calls.map((part) => ('output' in part ? part.output : undefined));
  expect(outputs(chat.calls)).toEqual([{ color: 'red' }, { color: 'blue' }]);
  expect(outputs((await page()).calls)).toEqual(outputs(chat.calls));
});

it('tells a page that gives the result once more what came of it, and no error', async () => {
  const { url, page } = await served(picking);
  const chat = new Chat(url, automatic);
  await chat.sendMessage({ text: 'go' });
  const late = await page();
  await answer(chat, { color: 'red' });
  await answer(late, { color: 'red' });
  expect([late.error, late.said[1]]).toEqual([undefined, 'assistant: picked']);
});

it('tells two pages that answer at once both how it goes on', async () => {
  const { url, page } = await served(picking);
  const chat = new Chat(url, automatic);
  await chat.sendMessage({ text: 'go' });
  const other = await page();
  await Promise.all([answer(chat, { color: 'red' }), answer(other, { color: 'blue' })]);
  const told = (await page()).said;
  expect([chat.said, other.said]).toEqual([told, told]);
  expect(chat.calls).toEqual(other.calls);
});

it('ends the requests of a page whose result came when its call was over', async () => {
  const { url, page } = await served(picking);
  await new Chat(url).sendMessage({ text: 'go' });
  const late = await page();
  await fetch(`${url}/api/chat/talk/stop`, { method: 'POST' });
  await answer(late, { color: 'blue' });
  expect(late.error?.message).toBe('It came too late: the call was over.');
});

it('ends the requests of a page when nothing comes behind its result', async () => {
  const silent: Planner = {
    name: 'silent',
    version: '1',
    next: ({ trajectory: { count } }, signal) =>
      count === 0
        ? call('pick', {}, 'call_1')
        : new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
  };
  const { url } = await served(silent);
  const chat = new Chat(url, automatic);
  await chat.sendMessage({ text: 'go' });
  const answered = answer(chat, { color: 'red' });
  await until(() => chat.status === 'streaming' && chat.calls[0]?.state === 'output-available');
  await fetch(`${url}/api/chat/talk/stop`, { method: 'POST' });
  await answered;
  expect(chat.error?.message).toBe('Nothing more comes of this answer.');
});

it('takes no result of another branch for that of a call which has the same id', async () => {
  const { url, page } = await served(picking);
  const chat = new Chat(url, automatic);
  await chat.sendMessage({ text: 'go' });
  await answer(chat, { color: 'red' });
  const behind = await page();
  await chat.regenerate();
  expect(chat.calls.map(({ state }) => state)).toEqual(['input-available']);
  await behind.sendMessage({ text: 'and now?' });
  expect((await page()).calls[0]).toMatchObject({ state: 'output-error' });
});

it('takes new words beside a result, and beside an approval, that do not fit', async () => {
  const { url } = await served(script(call('pick', {}, 'call_1'), call('pay', { amount: 1 }), finish('over')));
  const chat = new Chat(url, automatic);
  await chat.sendMessage({ text: 'go' });
  await answer(chat, 'red');
  expect([chat.status, chat.error?.message]).toEqual(['error', expect.stringContaining('payload_invalid')]);
  await chat.sendMessage({ text: 'never mind' });
  expect([chat.status, chat.error]).toEqual(['ready', undefined]);
  const [token = ''] = chat.approvals;
  const body = { edits: { [token]: { amount: 'much' } } };
  await chat.addToolApprovalResponse({ id: token, approved: true });
  await chat.sendMessage(undefined, { body });
  expect([chat.status, chat.error?.message]).toEqual(['error', expect.stringContaining('payload_invalid')]);
  await chat.sendMessage({ text: 'leave it' }, { body });
  expect([chat.status, chat.error, chat.said.at(-1)]).toEqual(['ready', undefined, 'assistant: over']);
});

it('takes new words beside an answer that somebody else has to give', async () => {
  const runtime = createRuntime({
    planner: script(call('pay', { amount: 1 }), finish('over')),
    tools: [make('pay', () => 'paid', { effect: 'once', needsApproval: { approver: 'another' } })],
    journal: memoryJournal(),
  });
  onTestFinished(() => runtime.close());
  const chat = new Chat(await serveChats(runtime));
  await chat.sendMessage({ text: 'go' });
  await chat.addToolApprovalResponse({ id: chat.approvals[0] ?? '', approved: true });
  await chat.sendMessage();
  expect([chat.status, chat.error?.message]).toEqual(['error', expect.stringContaining('approver_refused')]);
  await chat.sendMessage({ text: 'leave it' });
  expect([chat.status, chat.error, chat.said.at(-1)]).toEqual(['ready', undefined, 'assistant: over']);
});

it('tells a page that says no when another page has said yes at the same time', async () => {
  const { url, page } = await served(script(call('pay', { amount: 1 }), finish('over')));
  await new Chat(url).sendMessage({ text: 'go' });
  const [yes, no] = await Promise.all([page(), page()]);
  for (const each of [yes, no])
    await each.addToolApprovalResponse({ id: each.approvals[0] ?? '', approved: each === yes });
  await Promise.all([yes.sendMessage(), no.sendMessage()]);
  const told = (await page()).said;
  expect([yes.said, no.said]).toEqual([told, told]);
  expect([yes, no].flatMap(({ error }) => error?.message ?? [])).toEqual([
    expect.stringMatching(/^It was answered before, with (yes|no)\.$/),
  ]);
});

it.each([
  ['of a recording', 'data:audio/webm;codecs=opus;base64,aGVsbG8=', 'audio/webm'],
  ['with a charset', 'data:text/plain;charset=utf-8;base64,aGVsbG8=', 'text/plain'],
  ['that is not base64', 'data:text/plain;charset=utf-8,hello', 'text/plain'],
  ['in capitals', 'DATA:text/plain;BASE64,aGVsbG8=', 'text/plain'],
])('takes a file by a data URL %s', async (_, data, mediaType) => {
  const { url, page } = await served(script(finish('over')));
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'hear', files: [{ type: 'file', mediaType, url: data }] });
  expect(chat.error).toBeUndefined();
  const file = (await page()).messages[0]?.parts.find(({ type }) => type === 'file');
  expect(file).toMatchObject({ mediaType });
  const address = file !== undefined && 'url' in file ? file.url : '';
  expect(await (await fetch(new URL(address, url))).text()).toBe('hello');
});

it('takes more pictures than a request may have, and edited approvals, from a page that sends its last two messages', async () => {
  const seen: number[] = [];
  const paid: unknown[] = [];
  const runtime = createRuntime({
    planner: ({ inputs, query, trajectory: { count } }) => {
      seen.push(inputs.length);
      return query === 'pay' && count === 0 ? call('pay', { amount: 1 }) : finish('over');
    },
    tools: [{ ...pay, execute: async (args: unknown) => paid.push(args) }],
    journal: memoryJournal(),
  });
  onTestFinished(() => runtime.close());
  const url = await serveChats(runtime, {}, { maxBodyBytes: 12_000 });
  const edits: Record<string, unknown> = {};
  const transport = new DefaultChatTransport<UIMessage>({
    api: `${url}/api/chat`,
    body: () => ({ edits }),
    prepareSendMessagesRequest: ({ body, id, trigger, messageId, messages }) => ({
      body: { ...body, id, trigger, messageId, messages: messages.slice(-2) },
    }),
  });
  const chat = new Chat(url, { transport });
  const picture = `data:image/png;base64,${Buffer.alloc(6_000, 1).toString('base64')}`;
  const files = [{ type: 'file', mediaType: 'image/png', url: picture }] as const;
  for (const text of ['one', 'two', 'three']) await chat.sendMessage({ text, files: [...files] });
  await chat.sendMessage({ text: 'pay', files: [...files] });
  const [id = ''] = chat.approvals;
  edits[id] = { amount: 2 };
  await chat.addToolApprovalResponse({ id, approved: true });
  await chat.sendMessage();
  await chat.regenerate();
  expect([chat.error, chat.said.at(-2), seen, paid]).toEqual([
    undefined,
    'user: pay',
    [1, 1, 1, 1, 1, 1],
    [{ amount: 2 }],
  ]);
});
