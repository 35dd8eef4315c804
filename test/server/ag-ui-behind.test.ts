/** Threads of AG-UI on which messages wait behind the turn under way. */
import { expect, it, vi } from 'vitest';
import { memoryJournal } from '#journal';
import { agent as agentOf } from '#tools';
import { agUiServer, type Client, client, posted, say, textOf } from '../kit/ag-ui.ts';
import { script } from '../kit/decisions.ts';
import { quiet, until } from '../kit/waiting.ts';

const words = (agent: Client): string => JSON.stringify(agent.seen);

it('stops the turn under way, and not the one that waits behind it', async () => {
  const { url } = await agUiServer();
  const [first, second] = [client(url, { threadId: 'talk' }), client(url, { threadId: 'talk' })];
  const slow = say(first, 'slow 1000');
  await until(() => words(first).includes('w2'));
  const behind = say(second, 'say behind');
  await until(() => second.types.includes('RUN_STARTED'));
  await fetch(`${url}/ag-ui/cancel`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ threadId: 'talk' }),
  });
  await slow;
  expect(first.seen.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'cancelled' } });
  await behind;
  expect(textOf(second)).toBe('behind');
});

it('takes the answer to an interrupt while a message waits behind it, and no message in its place', async () => {
  const { url, effects } = await agUiServer();
  const [first, second, third] = [0, 1, 2].map(() => client(url, { threadId: 'talk' })) as [Client, Client, Client];
  const slow = say(first, 'slow 8');
  await until(() => words(first).includes('w1'));
  const asked = say(second, 'refund A-17');
  await until(() => second.types.includes('RUN_STARTED'));
  const behind = say(third, 'say behind');
  await Promise.all([slow, asked]);
  const [interrupt] = second.pendingInterrupts;
  await say(first, 'say now');
  expect(first.seen.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'run_paused' });
  const resume = [{ interruptId: interrupt?.id ?? '', status: 'resolved' as const, payload: { approved: true } }];
  await second.runAgent({ resume });
  expect(textOf(second)).toContain('A-17 is refunded.');
  await behind;
  expect(textOf(third)).toBe('behind');
  expect(effects.count('refund')).toBe(1);
});

it('is told what came of the same resume that somebody sends at the same moment (answers are idempotent)', async () => {
  const { url, effects } = await agUiServer();
  const agent = client(url);
  await say(agent, 'refund A-17 and B-18');
  const resume = agent.pendingInterrupts.map(({ id }) => ({
    interruptId: id,
    status: 'resolved' as const,
    payload: { approved: true, editedArgs: { order: 'A-17', amount: 5 } },
  }));
  const { threadId, messages } = agent;
  const streams = await Promise.all(
    [1, 2, 3, 4].map(async (each) => {
      const body = JSON.stringify({ threadId, runId: `same-${each}`, messages, resume });
      const answer = await fetch(`${url}/ag-ui`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body,
      });
      return answer.text();
    }),
  );
  for (const stream of streams) {
    expect(stream).toContain('"RUN_FINISHED"');
    expect(stream).not.toContain('"RUN_ERROR"');
  }
  expect(effects.count('refund')).toBe(2);
});

it('is told what came of an answer that somebody else has stored and no process has taken yet (answers are idempotent)', async () => {
  const journal = memoryJournal();
  const first = await agUiServer({ journal });
  const agent = client(first.url, { threadId: 'talk' });
  await say(agent, 'refund A-17');
  await first.runtime.close();
  // It does not have the agent, so that nobody goes on with the run.
  const { url } = await agUiServer({ journal, agents: [agentOf({ name: 'another', planner: script() })] });
  const looks = vi.spyOn(journal, 'inbox');
  const resume = agent.pendingInterrupts.map(({ id }) => ({
    interruptId: id,
    status: 'resolved',
    payload: { approved: true },
  }));
  const answers = [1, 2].map(() => posted(`${url}/ag-ui`, { threadId: 'talk', messages: agent.messages, resume }));
  await until(() => looks.mock.calls.length >= 2);
  await quiet();
  const { runtime, effects } = await agUiServer({ journal });
  runtime.work();
  for (const { events } of await Promise.all(answers))
    expect(events.at(-1)).toMatchObject({ type: 'RUN_FINISHED', result: 'A-17 is refunded.' });
  expect(effects.count('refund')).toBe(1);
});

it('loads a thread of more than a hundred turns from its beginning', async () => {
  const { url, runtime } = await agUiServer();
  const session = runtime.session('long', { identity: { tenant: 'local', user: 'local' } });
  for (let turn = 0; turn < 102; turn += 1) await (await session.send(`say ${turn}`)).result();
  const agent = client(url, { threadId: 'long' });
  await agent.connectAgent();
  expect(agent.messages).toHaveLength(204);
  expect(agent.messages[0]).toMatchObject({ role: 'user', content: 'say 0' });
}, 30_000);
