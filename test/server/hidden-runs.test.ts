/** Runs that a program's own `may` keeps from a visitor: below a run, behind it, and under way in a session. */
import { expect, it } from 'vitest';
import type { Agent } from '#pilotage';
import { type Access, api } from '#server';
import { agUi } from '#server/ag-ui';
import { aiSdk } from '#server/ai-sdk';
import { agent, agentTool, handoff } from '#tools';
import { asks, call, finish, pause, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { world } from '../kit/world.ts';
import { serveApi, taken } from './api-kit.ts';
import { bearerWhoMay } from './bearer.ts';

const ANA = { tenant: 'acme', user: 'ana' };
const ASK = { method: 'POST', headers: { 'content-type': 'application/json' } };

async function served(agents: readonly Agent[], may: Access['may'] & object) {
  const made = world({ agents });
  const handler = await serveApi(made, {}, { authenticate: bearerWhoMay(may), parts: [api(), aiSdk(), agUi()] });
  return { ...made, ...handler, client: handler.as('acme/ana') };
}

function deskWithClerk() {
  const pay = make('pay', () => 'secret receipt', { needsApproval: true });
  const clerk = agent({ name: 'clerk', planner: script(call('pay', {}), finish('paid')), tools: [pay] });
  const ask = agentTool(clerk, { name: 'ask_clerk', description: 'Asks the clerk.' });
  const desk = agent({
    name: 'desk',
    planner: script(call('ask_clerk', { input: 'x' }), finish('done')),
    tools: [ask],
  });
  return [desk, clerk];
}

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => 'done',
    (error: { code?: string }) => error.code,
  );

it('leaves the events of a task out of those of the run above it, of its session, chat and thread', async () => {
  let hidden = 'nobody';
  const { client, runtime, ask } = await served(
    deskWithClerk(),
    (action, { agent: of }) => action !== 'read' || of !== hidden,
  );
  const session = runtime.session('s', { identity: ANA, agent: 'desk' });
  const { turn } = await session.send('q');
  await runtime.run(turn).result();
  await runtime.run(turn).approve();
  await runtime.run(turn).result();
  const events = async () => {
    const all = await taken(client.run(turn).events({ tasks: true }));
    return [...new Set(all.map(({ identity }) => identity.run === turn))];
  };
  const texts = async () => {
    const pages = [
      await ask(`/runs/${turn}/events?tasks=true`),
      await ask('/sessions/s/messages'),
      await ask('/api/chat/s/messages'),
      await ask('/ag-ui/connect', { ...ASK, body: JSON.stringify({ threadId: 's' }) }),
    ];
    return Promise.all(pages.map(async (page) => (await page.text()).includes('secret receipt')));
  };
  expect(await events()).toEqual([true, false]);
  const before = await texts();
  expect(before[0]).toBe(true);
  hidden = 'clerk';
  expect(await events()).toEqual([true]);
  expect(await texts()).toEqual([false, false, false, false]);
});

it('asks about the task before its question is answered through the run above it', async () => {
  const { client, runtime } = await served(
    deskWithClerk(),
    (action, { agent: of }) => action !== 'answer' || of !== 'clerk',
  );
  const run = await runtime.start('q', { agent: 'desk', identity: { ...ANA, session: 's', run: 'run_desk' } });
  await run.result();
  expect(await codeOf(client.run(run.id).approve())).toBe('forbidden');
  expect((await run.result()).status).toBe('paused');
});

it('ends the events of a conversation before a run that goes on with it and may not be read', async () => {
  const clerk = agent({ name: 'clerk', planner: script(finish('secret')) });
  const desk = agent({
    name: 'desk',
    planner: script(call('transfer_to_clerk', {}), finish('of the desk')),
    tools: [handoff(clerk, { description: 'Takes over.' })],
  });
  const { ask, runtime } = await served([desk, clerk], (action, { agent: of }) => action !== 'read' || of !== 'clerk');
  const run = await runtime.start('q', { agent: 'desk', identity: { ...ANA, session: 's', run: 'run_desk' } });
  await run.result();
  for (const accept of ['application/json', 'text/event-stream']) {
    const events = await ask(`/runs/${run.id}/events?tasks=true`, { headers: { accept } });
    expect([events.status, (await events.text()).includes('secret')]).toEqual([200, false]);
  }
  for (const what of ['state', 'result', 'plan']) {
    const answer = await ask(`/runs/${run.id}/${what}`);
    expect([what, answer.status, (await answer.text()).includes('secret')]).toEqual([what, 404, false]);
  }
});

it('asks once about each run that a conversation goes on with, and about each of their tasks', async () => {
  const pay = make('pay', () => 'receipt');
  const helper = agent({ name: 'helper', planner: script(call('pay', {}), finish('secret')), tools: [pay] });
  const help = agentTool(helper, { name: 'ask_helper', description: 'Helps.' });
  const last = agent({ name: 'last', planner: script(finish('of the last')) });
  const clerk = agent({
    name: 'clerk',
    planner: script(call('ask_helper', { input: 'x' }), call('transfer_to_last', {})),
    tools: [help, handoff(last, { description: 'Ends it.' })],
  });
  const desk = agent({
    name: 'desk',
    planner: script(call('transfer_to_clerk', {})),
    tools: [handoff(clerk, { description: 'Takes over.' })],
  });
  const { runtime } = world({ agents: [desk, clerk, last, helper] });
  const run = await runtime.start('q', { agent: 'desk', identity: { ...ANA, session: 's', run: 'run_desk' } });
  await run.result();
  const agents = new Map((await runtime.list()).map(({ identity, agent: of }) => [identity.run, of]));
  for (const hidden of ['nobody', 'helper', 'last']) {
    const asked: (string | undefined)[] = [];
    const gate = {
      mayRead: async (id: string) => {
        asked.push(agents.get(id));
        return agents.get(id) !== hidden;
      },
      assertMaySend: async () => {},
    };
    const events = await taken(runtime.run('run_desk', { gate }).events({ tasks: true }));
    const told = new Set(events.map(({ identity }) => agents.get(identity.run)));
    expect(asked).toEqual(['desk', 'clerk', 'helper', 'last']);
    expect([...told]).toEqual(['desk', 'clerk', 'helper', 'last'].filter((each) => each !== hidden));
  }
});

it('names no run that may not be read as the place where a page of a list ends', async () => {
  const asking = agent({ name: 'asking', planner: script(pause, finish('done')) });
  const { runtime, ask } = await served(
    [asking],
    (action, { run }) => action !== 'read' || !run?.query.includes('secret'),
  );
  for (const [index, query] of ['one', 'secret', 'two', 'secret', 'secret'].entries()) {
    const run = await runtime.start(query, { identity: { ...ANA, session: 's', run: `run_${query}_${index}` } });
    await run.result();
  }
  for (const path of ['/runs', '/waiting']) {
    const found: number[] = [];
    for (let after = ''; ; ) {
      const page = (await (await ask(`${path}?limit=1${after}`)).json()) as { items: unknown[]; next?: string };
      expect(JSON.stringify(page)).not.toContain('secret');
      found.push(page.items.length);
      if (page.next === undefined) break;
      after = `&after=${page.next}`;
    }
    // How many there are of the others does not show in the number of pages.
    expect([path, found]).toEqual([path, [1, 1]]);
  }
});

it('neither stops nor tells a turn that may not be read', async () => {
  const asking = agent({ name: 'asking', planner: script(asks, finish('done')) });
  const { ask, runtime } = await served(
    [asking],
    (action, { run }) => action !== 'read' || !run?.query.includes('secret'),
  );
  const { turn } = await runtime.session('s', { identity: ANA }).send('secret');
  await runtime.run(turn).result();
  const post = async (path: string, body: unknown) => {
    const answer = await ask(path, { ...ASK, body: JSON.stringify(body) });
    return answer.json().catch(() => answer.status);
  };
  expect(await post('/sessions/s/cancel', { waiting: true })).toBe(204);
  expect(await post('/api/chat/s/stop', {})).toMatchObject({ code: 'run_not_found' });
  expect(await post('/ag-ui/cancel', { threadId: 's' })).toEqual({ cancelled: false });
  for (const busy of ['queue', 'steer', 'interrupt'])
    expect(await post('/sessions/s/messages', { text: 'hello', busy })).toMatchObject({ as: 'queued' });
  expect((await runtime.run(turn).result()).status).toBe('paused');
  expect((await runtime.run(turn).state()).pauses).toHaveLength(1);
});

it('tells of an agent that may not be started as of one that there is not, and names no others', async () => {
  const { client, ask } = await served(deskWithClerk(), (_, { agent: of }) => of !== 'clerk');
  expect(await client.agents()).toMatchObject([{ name: 'desk' }]);
  const cron = '0 8 * * *';
  const told = async (agent: string) => {
    const asked = [
      ask('/runs', { ...ASK, body: JSON.stringify({ query: 'q', agent }) }),
      ask('/sessions/s/messages', { ...ASK, body: JSON.stringify({ text: 'q', agent }) }),
      ask('/schedules/daily', { ...ASK, method: 'PUT', body: JSON.stringify({ query: 'q', cron, agent }) }),
    ];
    return Promise.all((await Promise.all(asked)).map((answer) => answer.text()));
  };
  const unknown = await told('nobody');
  for (const text of unknown) {
    expect(JSON.parse(text)).toMatchObject({ status: 404, code: 'agent_unknown', data: { agent: 'nobody' } });
    expect(text).not.toMatch(/clerk|createRuntime/);
  }
  expect(await told('clerk')).toEqual(unknown.map((text) => text.replaceAll('nobody', 'clerk')));
  // Who names no agent is told what it is about, and no agent is named.
  const guest = await served(deskWithClerk(), (action) => action === 'read');
  const refused = await guest.ask('/runs', { ...ASK, body: JSON.stringify({ query: 'q' }) });
  const text = await refused.text();
  expect([refused.status, JSON.parse(text).code]).toEqual([403, 'forbidden']);
  expect(text).not.toMatch(/desk/);
});
