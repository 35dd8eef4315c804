/** Questions that have lost a race, over each protocol: a late answer is told what is true, and nobody waits for what does not come. */
import { expect, it, onTestFinished } from 'vitest';
import type { Decision, Planner, RunView } from '#core';
import { memoryJournal } from '#journal';
import { createClient } from '#pilotage/client';
import { askUser } from '#pilotage/tools';
import { createRuntime, type RunResult } from '#runtime';
import { api, createHandler, serve } from '#server';
import { a2a } from '#server/a2a';
import { agUi } from '#server/ag-ui';
import { aiSdk } from '#server/ai-sdk';
import { agent } from '#tools';
import { client as agUiClient, posted, say } from '../kit/ag-ui.ts';
import { call, finish, parallel } from '../kit/decisions.ts';
import { type McpClient, mcpClient, mcpServed } from '../kit/mcp.ts';
import { make } from '../kit/tools.ts';
import { Chat, historyOf } from '../kit/ui-chat.ts';
import { gate, until } from '../kit/waiting.ts';
import { clientAt, data, said, sendFor, wordsOf } from './a2a-kit.ts';

const wait = make('wait', async (_, { event }) => {
  await event({ key: 'bell' });
  return 'rung';
});
const pay = make('pay', () => 'paid', { effect: 'once', needsApproval: true });
const tools = [askUser, wait, pay];
const approval = { tool: 'pay', args: {} };
const question = { tool: 'ask_user', args: { question: 'May it be paid?' } };
const again = call('ask_user', { question: 'And now?' });
const racing = (first: { readonly tool: string; readonly args: { question?: string } }): Decision =>
  parallel([first, { tool: 'wait', args: {} }], { join: { kind: 'first_success' } });
const clerk = (...decisions: readonly Decision[]) => {
  const planner: Planner = {
    name: 'races',
    next: ({ trajectory: { count } }: RunView) => ({ decision: decisions[count] ?? finish('over') }),
  };
  return agent({ name: 'clerk', planner, tools });
};
const WHY = 'before anybody answered, since another branch of its step was faster (wait)';
/** With another question behind the race, or with its end. */
const ENDINGS = [
  ['goes on', [again]],
  ['has ended', []],
] as const;

type Runtime = ReturnType<typeof createRuntime>;

async function served(...decisions: readonly Decision[]) {
  const runtime = createRuntime({ agents: [clerk(...decisions)], journal: memoryJournal() });
  const parts = [aiSdk(), agUi(), a2a(), api()];
  const { url, close } = await serve(createHandler({ runtime, parts }), { port: 0 });
  onTestFinished(async () => {
    await close();
    await runtime.close();
  });
  return { runtime, url };
}

/** Once the race is there, the other branch wins it. @returns the token of the question that has lost. */
async function rung(runtime: Runtime): Promise<string> {
  await until(async () => (await runtime.waiting()).length === 2);
  const [{ token = '', run = '' } = {}] = await runtime.waiting({ for: 'answer' });
  await runtime.signal('bell');
  await until(async () =>
    (await runtime.waiting({ run })).every((each) => each.for === 'answer' && each.token !== token),
  );
  await runtime.run(run).result();
  return token;
}

it.each(ENDINGS)('our API says so when the run %s', async (_, then) => {
  const { runtime, url } = await served(racing(question), ...then);
  const ana = createClient({ url });
  const run = await ana.runs.start('q');
  const token = await rung(runtime);
  for (const answer of [{ kind: 'answer', value: 'yes' }, { kind: 'reject' }] as const) {
    const late = { status: 409, code: 'superseded', message: expect.stringContaining(WHY) };
    await expect(run.answer(token, answer)).rejects.toMatchObject(late);
  }
  const [told] = await ana.answer([{ run: run.id, token, answer: { kind: 'approve' } }]);
  expect(told).toMatchObject({ taken: false, refused: { code: 'superseded', detail: expect.stringContaining(WHY) } });
});

it.each(ENDINGS)('A2A says so when the task %s', async (_, then) => {
  const { runtime, url } = await served(racing(question), ...then);
  const client = await clientAt(url, 'JSONRPC');
  const { id: taskId, contextId } = await sendFor(client, said('go'), { returnImmediately: true });
  const token = await rung(runtime);
  const late = data({ token, value: 'yes' }, { taskId, contextId });
  const told = await sendFor(client, late).then(
    ({ status }) => wordsOf(status?.message?.parts),
    ({ message }: Error) => message,
  );
  expect(told).toContain(WHY);
});

it.each(ENDINGS)('AG-UI says so when the run %s, and takes a refusal', async (_, then) => {
  const { runtime, url } = await served(racing(question), ...then);
  const page = agUiClient(url);
  await say(page, 'go');
  const [{ id = '' } = {}] = page.pendingInterrupts;
  expect(await rung(runtime)).toBe(id);
  const answered = async (more: object) =>
    (await posted(`${url}/ag-ui`, { threadId: page.threadId, resume: [{ interruptId: id, ...more }] })).events.at(-1);
  expect(await answered({ status: 'resolved', payload: { text: 'yes' } })).toMatchObject({
    ...{
      type: 'RUN_ERROR',
      code: 'superseded',
      message: expect.stringMatching(
        /not asked any more.*since another branch of its step was faster \(wait\)\. Cancel it/,
      ),
    },
  });
  expect((await answered({ status: 'cancelled' }))?.type).toBe('RUN_FINISHED');
});

it.each(
  ENDINGS,
)('a page of useChat is told so when the turn %s, for an approval and for a question', async (_, then) => {
  for (const first of [approval, question]) {
    const { runtime, url } = await served(racing(first), ...then);
    const chat = new Chat(url);
    await chat.sendMessage({ text: 'go' });
    const token = await rung(runtime);
    const told = first === approval ? 'It was stopped before anybody answered.' : 'It was not asked any more';
    if (first === approval) {
      await chat.addToolApprovalResponse({ id: token, approved: true });
      await chat.sendMessage();
      expect(chat.error?.message).toBe(told);
    }
    const answer = (body: object) =>
      fetch(`${url}/api/chat/talk/approvals`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
        body: JSON.stringify({ approvalId: token, ...body }),
      });
    const late = await answer(first === approval ? { approved: true } : { value: 'yes' });
    expect([late.status, await late.json()]).toEqual([
      409,
      expect.objectContaining({ detail: expect.stringContaining(told) }),
    ]);
    expect((await answer({ approved: false })).status).toBe(200);
    const parts = (await historyOf(url)).flatMap((message) => message.parts);
    const open = parts.filter(
      (part) => part.type === 'data-pause' && (part.data as { status: string }).status === 'open',
    );
    expect(open).toHaveLength(then.length);
  }
});

it.each([
  'client 2.4, 2025-11-25',
  'client 2.4, auto',
] as const)('MCP (%s) does not wait for an answer that nobody gives, and goes on with what the run asks next', async (name) => {
  const { runtime, url } = await mcpServed({ runtime: { agents: [clerk(racing(question), again)] } });
  const asked: unknown[] = [];
  const mayAnswer = gate();
  const client: McpClient = await mcpClient(name, url, {
    onAsked: async ({ message }) => {
      asked.push(message);
      if (asked.length === 1) await mayAnswer.opened;
      return { action: 'accept', content: { answer: 'yes' } };
    },
  });
  const going = client.call('go', { tool: 'clerk' });
  await until(() => asked.length === 1);
  await rung(runtime);
  mayAnswer.open();
  expect((await going).structuredContent).toMatchObject({ status: 'finished', answer: 'over' });
  expect(asked.map(String)).toEqual([expect.stringContaining('May it'), expect.stringContaining('And now?')]);
});

it('events say that nobody answers it any more, live and from the journal', async () => {
  const { runtime } = await served(racing(question), again);
  const run = await runtime.start('q');
  const token = await rung(runtime);
  const closed = [];
  for await (const event of run.events({ follow: false }))
    if (event.type === 'pause.resumed') closed.push([event.token, event.verdict, event.payload]);
  expect(closed).toEqual([[token, 'superseded', { reason: 'another branch of its step was faster (wait)' }]]);
  expect(((await run.result()) as Extract<RunResult, { status: 'paused' }>).pauses).toHaveLength(1);
});

it('a page whose approval a message has withdrawn is told so, and not that somebody has said no', async () => {
  const { runtime, url } = await served(call('pay'), again);
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'go' });
  const [{ token = '', run = '' } = {}] = await runtime.waiting({ for: 'answer' });
  await runtime.run(run).steer('USER_MESSAGE', { message: 'Wait.' });
  await until(async () => (await runtime.waiting({ for: 'answer' })).every((each) => each.token !== token));
  await chat.addToolApprovalResponse({ id: token, approved: true });
  await chat.sendMessage();
  expect(chat.error?.message).toBe('It was not asked any more: the user wrote while it waited for an answer.');
});

it('a page whose approval somebody else has refused with the words of a withdrawal is told that it was a no', async () => {
  const { runtime, url } = await served(call('pay'), again);
  const chat = new Chat(url);
  await chat.sendMessage({ text: 'go' });
  const [{ token = '', run = '' } = {}] = await runtime.waiting({ for: 'answer' });
  await runtime.run(run).reject(token, { reason: 'It was stopped before anybody answered.' });
  await chat.addToolApprovalResponse({ id: token, approved: true });
  await chat.sendMessage();
  expect(chat.error?.message).toBe('It was answered before, with no.');
});
