/** Our own API over real HTTP, with the client of `pilotage/client`. */
import { describe, expect, it } from 'vitest';
import { call, finish, pause, sayingHello, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { gate } from '../kit/waiting.ts';
import { world } from '../kit/world.ts';
import { serveApi, taken } from './api-kit.ts';

describe('runs', () => {
  it('are started, waited for, looked at and listed', async () => {
    const made = world({
      planner: script(call('echo', { a: 1 }), finish('done')),
      tools: [make('echo', async (args) => args as never)],
    });
    const { as } = await serveApi(made);
    const ana = as('acme/ana');
    const run = await ana.runs.start('say it', { labels: { order: '17' }, session: 's' });
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'done' });
    expect(await run.record()).toMatchObject({ identity: { tenant: 'acme', user: 'ana', session: 's', run: run.id } });
    expect((await run.state()).steps).toHaveLength(1);
    expect((await run.trajectory()).query).toBe('say it');
    expect(await run.payload()).toBe('done');
    const { items } = await ana.runs.list({ labels: { order: '17' }, status: ['finished'] });
    expect(items.map(({ identity }) => identity.run)).toEqual([run.id]);
    expect((await ana.runs.list({ labels: { order: '18' } })).items).toEqual([]);
    expect((await as('acme/ben').runs.list()).items).toEqual([]);
    expect((await as('acme/ben').runs.list({ user: 'ana' })).items).toEqual([]);
    expect((await as('other/root/admin').runs.list()).items).toHaveLength(1);
    await expect(as('acme/ben').run(run.id).state()).rejects.toMatchObject({ code: 'run_not_found', status: 404 });
    const types = (await taken(run.events())).map(({ type }) => type);
    expect(types[0]).toBe('run.started');
    expect(types.at(-1)).toBe('planner.finish');
  });

  it('are started once under an idempotency key', async () => {
    const made = world({ planner: script(finish('done')) });
    const { ask } = await serveApi(made);
    const post = (body: object, key = 'k') =>
      ask('/runs', { method: 'POST', body: JSON.stringify(body), headers: { 'idempotency-key': key } });
    const [first, again] = [await post({ query: 'a' }), await post({ query: 'a' })];
    expect([first.status, first.headers.get('location')]).toEqual([201, expect.stringMatching(/^\/runs\/run_/)]);
    expect(await again.json()).toEqual(await first.json());
    const other = await post({ query: 'b' });
    expect([other.status, ((await other.json()) as { code: string }).code]).toEqual([409, 'idempotency_conflict']);
    expect(await made.runtime.list()).toHaveLength(1);
  });

  it('answer 202 to who waits too short, and go on', async () => {
    const held = gate();
    const made = world({
      planner: script(call('hold'), finish('done')),
      tools: [make('hold', async () => held.opened)],
    });
    const { ask, as } = await serveApi(made);
    const run = await as('acme/ana').runs.start('q');
    const soon = await ask(`/runs/${run.id}/result?waitMs=20`);
    expect([soon.status, await soon.json()]).toEqual([202, { status: 'running' }]);
    held.open();
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('are approved with the arguments that a person gives, and refused an answer that comes too late', async () => {
    const refund = make('refund', async (args) => args as never, { effect: 'once', needsApproval: true });
    const made = world({ planner: script(call('refund', { amount: 120 }), finish('paid')), tools: [refund] });
    const { as } = await serveApi(made);
    const ana = as('acme/ana');
    const run = await ana.runs.start('refund it');
    const asked = await run.result();
    expect(asked.status).toBe('paused');
    const { items } = await ana.waiting();
    const [{ token, kinds } = { token: '', kinds: [] }] = items;
    expect(kinds).toContain('approve');
    expect((await as('acme/ben').waiting()).items).toEqual([]);
    await run.approve(token, { args: { amount: 90 } });
    expect(await run.result()).toMatchObject({ status: 'finished' });
    expect((await run.state()).steps[0]?.calls[0]?.outcome).toMatchObject({ kind: 'value', value: { amount: 90 } });
    await expect(run.approve(token)).rejects.toMatchObject({ status: 409, code: 'run_ended' });
    const answered = await ana.answer([
      { run: run.id, token: token ?? '', answer: { kind: 'approve' } },
      { run: 'run_of_nobody', answer: { kind: 'reject' } },
    ]);
    expect(answered.map(({ taken: isTaken, refused }) => [isTaken, refused?.code])).toEqual([
      [false, 'run_ended'],
      [false, 'run_not_found'],
    ]);
  });

  it('are paused, resumed, told, cancelled, forked, replayed and compared', async () => {
    const made = world({ planner: script(pause, finish('done')) });
    const { as } = await serveApi(made);
    const ana = as('acme/ana');
    const run = await ana.runs.start('q');
    await run.result();
    await run.resume();
    expect(await run.result()).toMatchObject({ status: 'finished' });
    const fork = await run.fork({ step: 1 });
    expect(await fork.result()).toMatchObject({ status: 'finished' });
    expect((await ana.runs.compare(run.id, fork.id)).firstDivergence).toBeUndefined();
    expect(await run.replay()).toMatchObject({ run: run.id });
    const other = await ana.runs.start('q');
    await other.result();
    await other.cancel({ reason: 'enough' });
    expect(await other.result()).toMatchObject({ status: 'finished', reason: 'cancelled' });
    await expect(as('acme/ben').run(run.id).cancel()).rejects.toMatchObject({ code: 'run_not_found' });
  });

  it('tell nothing of what an error of theirs says', async () => {
    const broken = make('broken', async () => {
      throw new Error('at /etc/secret.ts:1 key sk-123456789');
    });
    const fails = () => {
      throw new Error('at /etc/secret.ts:1');
    };
    for (const planner of [script(call('broken'), finish('done')), fails]) {
      const { as, ask } = await serveApi(world({ planner, tools: [broken] }));
      const run = await as('acme/ana').runs.start('q', { session: 's' });
      await run.result();
      for (const path of ['result', 'state', 'events', 'trajectory', '', 'plan']) {
        const text = await (await ask(`/runs/${run.id}/${path}`.replace(/\/$/, ''))).text();
        expect(text).not.toMatch(/secret|sk-1/);
      }
      expect(await (await ask('/sessions/s/messages')).text()).not.toMatch(/secret|sk-1/);
      expect(await (await ask('/runs')).text()).not.toMatch(/secret|sk-1/);
    }
  });
});

describe('events', () => {
  it('have what was said before the first reader came, also where nobody read the run when its step began', async () => {
    const { planner, begun, more } = sayingHello();
    const { as } = await serveApi(world({ planner }));
    const run = await as('acme/ana').runs.start('say it');
    await begun.opened;
    const tokens: string[] = [];
    for await (const event of run.events()) {
      if (event.type !== 'token') continue;
      tokens.push(event.text);
      more.open();
    }
    expect(tokens).toEqual(['Hel', 'lo']);
  });

  it('go on behind the last one that a reader has, wherever that was', async () => {
    const made = world({ planner: script(call('echo'), pause, finish('done')), tools: [make('echo', async () => 1)] });
    const { as, ask } = await serveApi(made);
    const run = await as('acme/ana').runs.start('q');
    await run.result();
    await run.resume();
    await run.result();
    const page = (await (await ask(`/runs/${run.id}/events`)).json()) as { items: { id: string; type: string }[] };
    const all = page.items.map(({ id, type }) => [id, type].join(' '));
    expect(new Set(all).size).toBe(all.length);
    for (const [index, { id }] of page.items.entries()) {
      const rest = await ask(`/runs/${run.id}/events?overPauses=true`, {
        headers: { accept: 'text/event-stream', 'last-event-id': id },
      });
      const text = await rest.text();
      const ids = [...text.matchAll(/^id: (.+)$/gm)].map(([, each]) => each);
      expect(ids).toEqual(page.items.slice(index + 1).map((each) => each.id));
    }
    const paged: string[] = [];
    for (let after: string | undefined = '0'; after !== undefined; ) {
      const part = (await (await ask(`/runs/${run.id}/events?limit=2&after=${after}`)).json()) as typeof page & {
        next?: string;
      };
      paged.push(...part.items.map(({ id }) => id));
      after = part.next;
    }
    expect(paged).toEqual(page.items.map(({ id }) => id));
  });
});

describe('sessions', () => {
  it('take messages once, and are shown, edited, switched, listed and deleted', async () => {
    let count = 0;
    const made = world({ planner: () => finish(`answer ${++count}`) as never });
    const { as, ask } = await serveApi(made);
    const ana = as('acme/ana');
    const session = ana.session('chat/1');
    const sent = await session.send('hello', { id: 'm1' });
    expect(await sent.result()).toMatchObject({ answer: 'answer 1' });
    expect(await session.send('hello', { id: 'm1' })).toMatchObject({ turn: sent.turn, as: 'known' });
    const position = await session.position();
    await (await session.edit(sent.turn, 'hello there')).result();
    await (await session.regenerate((await session.turns()).at(-1)?.turn ?? '')).result();
    expect((await session.branches()).length).toBeGreaterThan(1);
    expect((await session.turns()).map(({ exchanges }) => exchanges[0]?.assistant)).toEqual(['answer 3']);
    await session.switchTo(sent.turn);
    expect((await session.uiMessages()).map(({ role }) => role)).toEqual(['user', 'assistant']);
    await ana.sessions.setTitle('chat/1', 'Greetings');
    expect((await ana.sessions.list({ text: 'greet' })).items).toMatchObject([
      { session: 'chat/1', title: 'Greetings' },
    ]);
    const left = new AbortController();
    const later = await taken(
      session.events({ from: position + 1, signal: left.signal }),
      ({ type }) => type === 'planner.finish',
    );
    expect(later[0]?.type).toBe('run.started');
    expect((await as('acme/ben').sessions.list()).items).toEqual([]);
    expect(await as('acme/ben').session('chat/1').turns()).toEqual([]);
    await expect(as('acme/ben').sessions.get('chat/1')).rejects.toMatchObject({ code: 'run_not_found' });
    const guest = as('acme/ana/session_user');
    const [turn] = await ana.session('chat/1').turns();
    const refused = { code: 'forbidden' };
    await expect(guest.sessions.delete('chat/1')).rejects.toMatchObject(refused);
    await expect(guest.session('chat/1').switchTo(turn?.turn ?? '')).rejects.toMatchObject(refused);
    const slice = { method: 'POST', body: '{"forMs":1000}', headers: { 'content-type': 'application/json' } };
    expect((await ask(`/runs/${turn?.turn}/advance`, { ...slice, who: 'acme/ana/session_user' })).status).toBe(403);
    expect(await ana.sessions.delete('chat/1')).toBe(3);
  });
});
