/** Who is let in, and what a program's own `may` leaves of that, whichever way something is asked for. */
import { describe, expect, it } from 'vitest';
import { systemClock } from '#core';
import { agent } from '#pilotage';
import { type Access, api, createHandler, proxyHeader } from '#server';
import { a2a } from '#server/a2a';
import { agUi } from '#server/ag-ui';
import { aiSdk } from '#server/ai-sdk';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { finish, script } from '../kit/decisions.ts';
import { world } from '../kit/world.ts';

const ANA = { tenant: 'acme', user: 'ana' };
const other = agent({ name: 'other', planner: script(finish('done')) });

function served(authenticate: () => unknown) {
  const made = world({ agents: [scenarioAgent(new Effects()), other], clock: systemClock as never });
  const faults: unknown[] = [];
  const handler = createHandler({
    runtime: made.runtime,
    parts: [api(), aiSdk(), agUi(), a2a({ agent: 'scenario' })],
    authenticate: authenticate as () => Access,
    onFault: (error) => void faults.push(error),
  });
  const ask = async (way: string, body?: object | string) => {
    const [method = '', path = ''] = way.split(' ');
    const headers = { 'content-type': 'application/json', 'a2a-version': '1.0' };
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    const init = body === undefined ? { method, headers } : { method, headers, body: text };
    const response = await handler(new Request(`http://127.0.0.1${path}`, init));
    const said = await response.text();
    return { status: response.status, said, json: said.startsWith('{') ? JSON.parse(said) : undefined };
  };
  return { ...made, ask, faults };
}

const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: 1, method, params });

describe('authenticate', () => {
  it('that names nobody, or half of somebody, lets nobody in', async () => {
    let access: unknown;
    const { ask, faults, runtime } = served(() => access);
    await (await runtime.start('say secret', { identity: { ...ANA, session: 's', run: 'r' } })).result();
    const given = [undefined, {}, { identity: {} }, { identity: { tenant: 'acme' } }, { identity: { user: 'ana' } }];
    const more = [
      { identity: { ...ANA, session: '' } },
      { identity: ANA, as: 'root' },
      { identity: { ...ANA, user: 5 } },
    ];
    for (access of [...given, ...more])
      for (const way of ['GET /runs', 'GET /sessions?tenant=acme', 'GET /waiting', 'GET /runs/r'])
        expect(await ask(way)).toMatchObject({ status: 500, json: { code: 'server_failed' } });
    expect(faults).toHaveLength(32);
  });

  it('by a proxy takes no range whose size is missing, which would be everybody, and no header that cannot be', () => {
    for (const trusted of ['10.0.0.0/', '::1/', '10.0.0.0/8/8', '10.0.0.0/ 8', '10.0.0.0/1e1'])
      expect(() => proxyHeader({ header: 'x-user', tenant: 'acme', trusted: [trusted] })).toThrow(/cannot trust/);
    for (const wrong of [{ header: 'x user' }, { header: '' }, { tenant: ' ' }, { tenant: { header: '' } }])
      expect(() => proxyHeader({ header: 'x-user', tenant: 'acme', ...wrong })).toThrow(/takes the name of a header/);
  });
});

describe('a body that does not end', () => {
  it('is not waited for, and not kept, for whoever is not let in', async () => {
    let asked = 0;
    const body = new ReadableStream({
      pull: (controller) => {
        asked += 1;
        if (asked < 10) controller.enqueue(new Uint8Array(1_000));
        return asked < 10 ? undefined : new Promise(() => {});
      },
    });
    const { runtime } = world({ agents: [other] });
    const handler = createHandler({ runtime, parts: [api()], authenticate: () => new Response(null, { status: 401 }) });
    const request = new Request('http://127.0.0.1/runs', { method: 'POST', body, duplex: 'half' } as RequestInit);
    expect((await handler(request)).status).toBe(401);
    expect(asked).toBeLessThan(3);
  });
});

describe('may', () => {
  it.each([undefined, null, 0, 'yes', {}])('that gives %j allows nothing', async (given) => {
    let answer: unknown = true;
    const { ask, runtime } = served(() => ({ identity: ANA, may: () => answer }));
    const { run } = (await ask('POST /runs', { query: 'say a' })).json;
    for (const gives of [() => given, async () => given]) {
      answer = gives();
      expect((await ask('POST /runs', { query: 'say b' })).status).toBe(403);
      expect((await ask(`GET /runs/${run}`)).status).toBe(404);
      expect((await ask('GET /runs')).status).toBe(403);
    }
    expect(await runtime.list()).toHaveLength(1);
  });

  it.each([
    { may: null },
    { may: 'all' },
    { scopes: 'orders' },
  ])('and scopes that cannot be (%j) let nobody in', async (access) => {
    const { ask, faults } = served(() => ({ identity: ANA, ...access }));
    expect((await ask('GET /runs')).status).toBe(500);
    expect(String(faults[0])).toMatch(/authenticate/);
  });

  it('is asked of the agent that begins, also when the request names none', async () => {
    let isFree = false;
    const may: Access['may'] = (action, about) => isFree || action !== 'start' || about.agent === 'other';
    const { ask, runtime } = served(() => ({ identity: ANA, may }));
    const said = { role: 'user', id: 'm1' };
    const chat = { id: 'c', messages: [{ ...said, parts: [{ type: 'text', text: 'say a' }] }] };
    const thread = { threadId: 't', runId: 'r1', state: {}, tools: [], context: [], forwardedProps: {} };
    const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'say a' }] };
    const scheduled = { query: 'say a', everyMs: 3_600_000 };
    // An agent that is named and may not begin is told from none that there is not.
    for (const [more, status] of [
      [{}, 403],
      [{ agent: 'scenario' }, 404],
    ] as const) {
      expect((await ask('POST /runs', { query: 'say a', ...more })).status).toBe(status);
      expect((await ask('POST /sessions/s/messages', { text: 'say a', ...more })).status).toBe(status);
      expect((await ask('PUT /schedules/a', { ...scheduled, ...more })).status).toBe(status);
    }
    expect((await ask('POST /api/chat', chat)).status).toBe(403);
    expect((await ask('POST /ag-ui', { ...thread, messages: [{ ...said, content: 'say a' }] })).status).toBe(403);
    expect((await ask('POST /a2a', rpc('SendMessage', { message }))).json).toHaveProperty('error');
    expect(await runtime.list()).toEqual([]);
    expect((await ask('PUT /schedules/b', { ...scheduled, agent: 'other' })).status).toBe(200);
    expect((await ask('POST /schedules/b/trigger')).status).toBe(201);
    // The agent that has a conversation goes on with it, whichever is named.
    isFree = true;
    const { turn } = (await ask('POST /sessions/s/messages', { text: 'say a' })).json;
    expect((await ask('PUT /schedules/c', scheduled)).status).toBe(200);
    isFree = false;
    expect((await ask('POST /sessions/s/messages', { text: 'say b', agent: 'other' })).status).toBe(404);
    for (const way of ['edit', 'regenerate'])
      expect((await ask(`POST /sessions/s/turns/${turn}/${way}`, { text: 'say b' })).status).not.toBe(201);
    expect((await ask('POST /schedules/c/trigger')).status).toBe(403);
  });

  it('hides a run in every list, and a session of which nothing may be read in the list of sessions', async () => {
    const may: Access['may'] = (action, { run, session }) =>
      action !== 'read' || !(run?.query.includes('secret') || session === 'hidden');
    const { ask, runtime } = served(() => ({ identity: ANA, may }));
    const start = async (query: string, session: string) =>
      (
        await runtime.start(query, { agent: 'scenario', identity: { ...ANA, session, run: `run-${session}` } })
      ).result();
    await start('refund secret-1', 'one');
    await start('say ok', 'two');
    await start('say title', 'hidden');
    expect((await ask('GET /waiting')).json).toEqual({ items: [] });
    const { tasks } = (await ask('POST /a2a', rpc('ListTasks', {}))).json.result;
    expect(tasks.map(({ id }: { id: string }) => id)).toEqual(['run-two']);
    const { items } = (await ask('GET /sessions')).json;
    expect(items.map(({ session }: { session: string }) => session)).toEqual(['two']);
  });
});

describe('a visitor of one session', () => {
  it('finds it behind all others, and is told of none of them', async () => {
    const { ask, runtime } = served(() => ({ identity: { ...ANA, session: 'own' } }));
    for (const session of ['own', 'private-1', 'private-2'])
      await (await runtime.start('say a', { identity: { ...ANA, session, run: session } })).result();
    const { json } = await ask('GET /sessions?limit=1');
    expect(json.items).toMatchObject([{ session: 'own' }]);
    expect(json).not.toHaveProperty('next');
  });
});

describe('a body that nobody can write down', () => {
  it('is the fault of whoever sends it', async () => {
    const { ask, faults } = served(() => ({ identity: ANA }));
    const deep = `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`;
    const said = `{"messageId":"m","role":"ROLE_USER","parts":[{"data":${deep}}]}`;
    const call = `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":${said}}}`;
    expect((await ask('POST /a2a', call)).json.error.code).toBe(-32_602);
    const thread = `{"threadId":"t","runId":"r","messages":[],"tools":[],"context":[],"state":${deep},"forwardedProps":{}}`;
    expect((await ask('POST /ag-ui', thread)).status).toBe(400);
    const clientTools = [{ name: ' ', description: 'x', inputSchema: { type: 'object' } }];
    expect((await ask('POST /runs', { query: 'say a', clientTools })).status).toBe(422);
    const taken = [{ name: 'refund', description: 'x', inputSchema: { type: 'object' } }];
    const unfit = [{ name: 'own', description: 'x', inputSchema: { properties: { a: { pattern: '(' } } } }];
    expect((await ask('POST /runs', { query: 'say a', clientTools: unfit })).json.code).toBe('tool_schema_invalid');
    expect((await ask('POST /runs', { query: 'say a', clientTools: taken })).json.code).toBe('tool_name_taken');
    expect(faults).toEqual([]);
  });
});
