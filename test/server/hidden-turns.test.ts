/** Turns of a session whose runs a program's own `may` hides: nothing of them is shown, whichever way the session is read. */
import { expect, it } from 'vitest';
import type { Agent } from '#pilotage';
import type { Access } from '#server';
import { agent, handoff } from '#tools';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { call, finish, script } from '../kit/decisions.ts';
import { world } from '../kit/world.ts';
import { serveApi, taken } from './api-kit.ts';
import { bearerWhoMay } from './bearer.ts';

const ANA = { tenant: 'acme', user: 'ana' };

async function served(may: Access['may'] & object, agents: readonly Agent[]) {
  const made = world({ agents });
  const { ask, as } = await serveApi(made, {}, { authenticate: bearerWhoMay(may) });
  const session = made.runtime.session('s', { identity: ANA });
  const say = async (text: string) => (await session.send(text)).result();
  const read = async (what: string) => {
    const answer = await ask(`/sessions/s/${what}`);
    return { status: answer.status, text: await answer.text() };
  };
  return { ...made, ask, as, say, read, client: as('acme/ana').session('s') };
}

it('hides a turn in messages, turns, branches, events and the result', async () => {
  let isAll = true;
  const { say, client, read, runtime } = await served(
    (action, { run }) => isAll || action !== 'read' || !run?.query.includes('secret'),
    [scenarioAgent(new Effects())],
  );
  for (const text of ['say one', 'say secret', 'say two']) await say(text);
  const whole = { messages: await client.uiMessages(), turns: await client.turns() };
  expect([whole.messages.length, whole.turns.length]).toEqual([6, 3]);
  isAll = false;
  expect(await client.uiMessages()).toEqual([...whole.messages.slice(0, 2), ...whole.messages.slice(4)]);
  expect(await client.turns()).toEqual([whole.turns[0], whole.turns[2]]);
  expect(await client.branches()).toHaveLength(1);
  expect(await client.result()).toMatchObject({ answer: 'two' });
  const isLast = ({ type, identity: { run } }: { type: string; identity: { run: string } }) =>
    type === 'planner.finish' && run === whole.turns[2]?.turn;
  const events = await taken(client.events(), isLast);
  expect(JSON.stringify(events)).not.toContain('secret');
  expect(new Set(events.map(({ identity }) => identity.run))).toEqual(
    new Set([whole.turns[0]?.turn, whole.turns[2]?.turn]),
  );
  await say('say secret');
  expect(await client.branches()).toEqual([]);
  const refused = await read('result');
  const [last] = await runtime.list({ limit: 1 });
  expect([refused.status, refused.text.includes(`${last?.identity.run}`)]).toEqual([404, false]);
  for (const what of ['messages', 'turns', 'branches']) expect((await read(what)).text).not.toContain('secret');
});

it('lists no turn of which one run may not be read, and of its messages shows what came before that run', async () => {
  const clerk = agent({ name: 'clerk', planner: script(finish('of the clerk')) });
  const desk = agent({
    name: 'desk',
    planner: script(call('transfer_to_clerk', {}), finish('of the desk')),
    tools: [handoff(clerk, { description: 'Takes over.' })],
  });
  let hidden = 'nobody';
  const may: Access['may'] = (action, { agent: of }) => action !== 'read' || of !== hidden;
  const { say, client, runtime } = await served(may, [desk, clerk]);
  await say('a bill');
  const agents = async () => [(await client.turns()).length, (await client.uiMessages()).length];
  expect((await runtime.list()).map((record) => record.agent)).toEqual(['clerk', 'desk']);
  expect(await agents()).toEqual([1, 2]);
  hidden = 'desk';
  expect(await agents()).toEqual([0, 0]);
  // What was said before the handover is of a run that may be read.
  hidden = 'clerk';
  expect(await agents()).toEqual([0, 2]);
});

async function threeSessions(may: Access['may'] & object) {
  const made = await served(may, [scenarioAgent(new Effects())]);
  for (const [session, text] of [
    ['a', 'say one'],
    ['b', 'say two'],
    ['c', 'say secret'],
    ['a', 'say three'],
    ['b', 'say secret'],
  ] as const) {
    await made.clock.advance(1_000);
    await (await made.runtime.session(session, { identity: ANA }).send(text)).result();
  }
  return { ...made, client: made.as('acme/ana') };
}

it('lists sessions with the counts, the times and the order of the turns that may be read', async () => {
  let hidden = 'nothing';
  const { client, ask, runtime } = await threeSessions(
    (action, { run }) => action !== 'read' || !run?.query.includes(hidden),
  );
  const { sessions } = client;
  const whole = (await sessions.list()).items;
  expect(whole.map(({ session, turns }) => `${session}${turns}`)).toEqual(['b2', 'a2', 'c1']);
  expect(whole).toEqual(await runtime.sessions.list({ tenant: 'acme' }));
  const [, secret] = await client.session('b').turns();
  await runtime.session('b', { identity: ANA }).switchTo(secret?.turn ?? '');
  hidden = 'secret';
  const [first] = await client.session('b').turns();
  const b = { ...ANA, session: 'b', turns: 1, waiting: 0, createdAt: first?.createdAt, updatedAt: first?.createdAt };
  expect((await sessions.list()).items).toEqual([whole[1], b]);
  expect(await sessions.get('b')).toEqual(b);
  expect((await sessions.list({ since: whole[1]?.updatedAt ?? 0 })).items).toEqual([whole[1]]);
  expect((await ask('/sessions/c')).status).toBe(404);
  const page = await sessions.list({ limit: 1 });
  const rest = await sessions.list({ limit: 1, after: page.next ?? '' });
  expect([page.items, rest]).toEqual([[whole[1]], { items: [b] }]);
});

it('deletes a session whose runs may all be stopped by the visitor, and no other', async () => {
  let denied = 'control';
  const { client, ask, runtime } = await threeSessions(
    (action, { run }) => action !== denied || !run?.query.includes('secret'),
  );
  for (denied of ['control', 'read']) {
    for (const session of ['b', 'c']) {
      const refused = await ask(`/sessions/${session}`, { method: 'DELETE' });
      const text = await refused.text();
      expect([refused.status, JSON.parse(text)]).toMatchObject([403, { code: 'forbidden' }]);
      expect(text).not.toMatch(/run_|secret/);
    }
  }
  expect(await client.sessions.delete('a')).toBe(2);
  expect((await runtime.list()).length).toBe(3);
  denied = 'nothing';
  expect(await client.sessions.delete('b')).toBe(2);
});
