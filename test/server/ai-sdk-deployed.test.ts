/** Chats of the AI SDK that wait for somebody while the server is replaced by one whose agent is another one. */
import { lastAssistantMessageIsCompleteWithApprovalResponses, lastAssistantMessageIsCompleteWithToolCalls } from 'ai';
import { expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { clientTool, createRuntime } from '#pilotage';
import type { RuntimeOptions } from '#runtime';
import { call, finish } from '../kit/decisions.ts';
import { ANY, make } from '../kit/tools.ts';
import { Chat, historyOf, serveChats } from '../kit/ui-chat.ts';
import { until } from '../kit/waiting.ts';

const pick = clientTool({ name: 'pick', description: 'Picks.', effect: 'read', inputSchema: ANY });
const NOT_TAKEN = 'The answer is kept, but nobody can go on with it now. It is taken as soon as somebody can.';

/** Servers on one journal, each with an agent of its own; the first one is closed. */
async function deployed(tool: string) {
  const journal = memoryJournal();
  const paid: unknown[] = [];
  const pay = make('pay', (args) => paid.push(args), { effect: 'once', needsApproval: true });
  const serve = (version: string, tools: NonNullable<RuntimeOptions['tools']> = [pay, pick]) => {
    const planner = {
      name: 'desk',
      version,
      next: ({ trajectory: { count }, query }: { trajectory: { count: number }; query: string }) =>
        count === 0 && query === 'go' ? call(tool, {}, 'c1') : finish(`over: ${query}`),
    };
    const runtime = createRuntime({ planner, tools, journal, onFault: () => {} });
    onTestFinished(() => runtime.close());
    return { runtime, url: serveChats(runtime) };
  };
  const first = serve('1');
  await new Chat(await first.url).sendMessage({ text: 'go' });
  await first.runtime.close();
  return { paid, serve };
}

it('a person who answers is told that nobody can go on, and is not asked to answer for ever', async () => {
  const answer = async (tool: string) => {
    const { serve, paid } = await deployed(tool);
    const url = await serve('2').url;
    const sendAutomaticallyWhen =
      tool === 'pay'
        ? lastAssistantMessageIsCompleteWithApprovalResponses
        : lastAssistantMessageIsCompleteWithToolCalls;
    const chat = new Chat(url, { sendAutomaticallyWhen, messages: await historyOf(url) });
    if (tool === 'pay') await chat.addToolApprovalResponse({ id: chat.approvals[0] ?? '', approved: true });
    else await chat.addToolOutput({ tool, toolCallId: chat.calls[0]?.toolCallId ?? '', output: 'red' } as never);
    await until(() => chat.status === 'error');
    return [chat.error?.message, paid];
  };
  expect(await Promise.all(['pay', 'pick'].map(answer))).toEqual([
    [NOT_TAKEN, []],
    [NOT_TAKEN, []],
  ]);
});

it('the answer goes on in the page when a process with the code of the run takes it', async () => {
  const { serve, paid } = await deployed('pay');
  const url = await serve('2').url;
  const chat = new Chat(url, { messages: await historyOf(url) });
  await chat.addToolApprovalResponse({ id: chat.approvals[0] ?? '', approved: true });
  const answered = chat.sendMessage();
  const { runtime: old } = serve('1');
  await until(async () => (await old.waiting({ session: 'talk' }))[0]?.answered === true);
  old.work();
  await answered;
  expect([chat.status, chat.error, chat.said.at(-1)]).toEqual(['ready', undefined, 'assistant: over: go']);
  expect(paid).toEqual([{}]);
});

it('a person may stop what nobody can go on with, and go on talking', async () => {
  const { serve, paid } = await deployed('pay');
  const url = await serve('2', [pick]).url;
  await fetch(`${url}/api/chat/talk/stop`, { method: 'POST' });
  const chat = new Chat(url, { messages: await historyOf(url) });
  expect(chat.calls[0]?.state).toBe('output-denied');
  await chat.sendMessage({ text: 'and now?' });
  expect([chat.status, chat.said.at(-1), paid]).toEqual(['ready', 'assistant: over: and now?', []]);
});
