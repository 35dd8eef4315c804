/** The client of our own API beside the runtime that it stands for. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, expectTypeOf, it, onTestFinished, vi } from 'vitest';
import { Seen } from '#client';
import type { RunEvent } from '#core';
import type { ClientRun, ClientSession } from '#pilotage/client';
import { createClient } from '#pilotage/client';
import type { Run, Session } from '#runtime';
import { call, finish, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { world } from '../kit/world.ts';
import { serveApi, taken } from './api-kit.ts';

describe('a handle of the client', () => {
  it('has the methods of the runtime’s own', () => {
    // Pages of events are a route.
    expectTypeOf<Exclude<keyof Run, keyof ClientRun>>().toEqualTypeOf<'recorded'>();
    expectTypeOf<ReturnType<ClientRun['repair']>>().toEqualTypeOf<ReturnType<Run['repair']>>();
    // The messages that the model is told hold errors in their own words; `uiMessages` is what clients show.
    expectTypeOf<Exclude<keyof Session, keyof ClientSession>>().toEqualTypeOf<'messages'>();
    expectTypeOf<ReturnType<ClientRun['result']>>().toEqualTypeOf<ReturnType<Run['result']>>();
    expectTypeOf<ReturnType<ClientRun['state']>>().toEqualTypeOf<ReturnType<Run['state']>>();
    expectTypeOf<ReturnType<ClientRun['events']>>().toEqualTypeOf<ReturnType<Run['events']>>();
    expectTypeOf<ReturnType<ClientRun['stream']>>().toEqualTypeOf<ReturnType<Run['stream']>>();
    expectTypeOf<Parameters<ClientRun['answer']>>().toEqualTypeOf<Parameters<Run['answer']>>();
    expectTypeOf<Parameters<ClientRun['approve']>>().toEqualTypeOf<Parameters<Run['approve']>>();
    expectTypeOf<ReturnType<ClientSession['events']>>().toEqualTypeOf<ReturnType<Session['events']>>();
  });

  it('reads streams of tools, and files whole and in part', async () => {
    const bytes = new TextEncoder().encode('<script>alert(1)</script>');
    let ref = '';
    const tool = make('work', async (_, { stream, saveArtifact }) => {
      await stream('log').write('one');
      await stream('log').write('two');
      ref = (await saveArtifact(bytes, { mime: 'text/html' })).artifactRef;
      return null;
    });
    const { as, ask } = await serveApi(world({ planner: script(call('work'), finish('done')), tools: [tool] }));
    const run = await as('acme/ana').runs.start('q');
    await run.result();
    expect((await taken(run.stream('log', { from: 2 }))).map(({ index, value }) => [index, value])).toEqual([
      [2, 'two'],
    ]);
    expect(await taken(run.stream('log', { follow: false }))).toHaveLength(2);
    expect((await run.streams()).map(({ name }) => name)).toEqual(['log']);
    const file = await run.artifact(ref);
    expect([file?.mime, file?.bytes]).toEqual(['application/octet-stream', bytes]);
    expect(await run.artifact('art_00')).toBeUndefined();
    const path = `/runs/${run.id}/artifacts/${ref}`;
    const part = async (range: string) => {
      const answer = await ask(path, { headers: { range } });
      return [answer.status, answer.headers.get('content-range'), await answer.text()];
    };
    expect(await part('bytes=1-6')).toEqual([206, 'bytes 1-6/25', 'script']);
    expect(await part('bytes=-9')).toEqual([206, 'bytes 16-24/25', '</script>']);
    expect(await part('bytes=25-')).toEqual([416, 'bytes */25', '']);
    expect(await part('bytes=6-1')).toEqual([200, null, '<script>alert(1)</script>']);
    const whole = await ask(path);
    for (const [name, value] of [
      ['content-disposition', 'attachment'],
      ['x-content-type-options', 'nosniff'],
    ])
      expect(whole.headers.get(name ?? '')).toBe(value);
    expect((await ask(path, { headers: { 'if-none-match': whole.headers.get('etag') ?? '' } })).status).toBe(304);
    expect((await ask(path, { who: 'acme/ben' })).status).toBe(404);
  });

  it('reads whatever a text holds, also what ends a line elsewhere', async () => {
    const text = 'a\u2028b\u2029c\r\u0085\u000b\u000c: d\n\ndata: e';
    const tool = make('say', async (_, { stream }) => {
      await stream('log').write({ text });
      return text;
    });
    const { runtime } = world({ planner: script(call('say', { text }), finish(text)), tools: [tool] });
    const { as } = await serveApi({ runtime });
    const run = await as('acme/ana').runs.start(text);
    await run.result();
    expect(await taken(run.events())).toMatchObject(await taken(runtime.run(run.id).events()));
    expect((await taken(run.stream('log'))).map(({ value }) => value)).toEqual([{ text }]);
  });

  it('tells schedules, signals and agents apart by whom they are of', async () => {
    const { as, ask } = await serveApi(world({ planner: script(finish('done')) }));
    const [ana, ben, boss] = [as('acme/ana'), as('acme/ben'), as('acme/boss/admin')];
    expect(await ana.schedules.put({ id: 'daily', query: 'q', cron: '0 8 * * *' })).toMatchObject({
      user: 'ana',
      status: 'active',
    });
    expect(await ana.schedules.pause('daily')).toMatchObject({ status: 'paused' });
    await expect(ben.schedules.get('daily')).rejects.toMatchObject({ code: 'schedule_not_found' });
    await expect(ben.schedules.put({ id: 'daily', query: 'mine', cron: '0 8 * * *' })).rejects.toMatchObject({
      code: 'forbidden',
    });
    expect((await ben.schedules.list()).items).toEqual([]);
    expect((await boss.schedules.list()).items).toHaveLength(1);
    expect(await (await ana.schedules.trigger('daily')).result()).toMatchObject({ status: 'finished' });
    await ana.schedules.delete('daily');
    expect(await ana.signal('order-17', { paid: true }, { id: 's1' })).toMatchObject({ isNew: true, kept: true });
    expect(await ana.signal('order-17', { paid: true }, { id: 's1' })).toMatchObject({ isNew: false });
    const asSessionUser = await ask('/events/order-17', { method: 'POST', body: 'null', who: 'acme/ana/session_user' });
    expect(asSessionUser.status).toBe(403);
  });

  it('reads on while nothing happens and a proxy cuts every connection after some minutes', async () => {
    const sockets: ServerResponse[] = [];
    const server = createServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      sockets.push(response);
    }).listen(0, '127.0.0.1');
    onTestFinished(() => void server.close());
    await once(server, 'listening');
    vi.useFakeTimers({ toFake: ['performance'] });
    onTestFinished(() => void vi.useRealTimers());
    const { port } = server.address() as AddressInfo;
    // Called when the client has seen the headers.
    let begun = (): void => {};
    const client = createClient({
      url: `http://127.0.0.1:${port}`,
      fetch: async (...request) => {
        const response = await fetch(...request);
        setImmediate(() => begun());
        return response;
      },
    });
    const events = taken(client.session('s1').events());
    const connection = () =>
      Promise.race([
        events,
        new Promise<void>((resolve) => {
          begun = resolve;
        }),
      ]);
    for (let minutes = 0; minutes < 10; minutes += 5) {
      await connection();
      vi.advanceTimersByTime(300_000);
      sockets.at(-1)?.destroy();
    }
    await connection();
    sockets.at(-1)?.end('event: end\ndata: {}\n\n');
    expect(await events).toEqual([]);
    expect(sockets).toHaveLength(3);
  });

  it('says so when the server cannot be reached', async () => {
    const client = createClient({ url: 'http://127.0.0.1:9', patienceMs: 0 });
    await expect(client.runs.list()).rejects.toMatchObject({
      name: 'ClientError',
      code: 'connection_failed',
      status: 0,
    });
  });
});

describe('what a reader has had', () => {
  const identity = { tenant: 't', user: 'u', session: 's', run: 'r' };
  const token = (text: string, offset: number) =>
    ({ type: 'token', identity, seq: 1, occurredAt: 0, step: 0, channel: 'text', text, offset }) as RunEvent;
  const textOf = (events: readonly RunEvent[]) =>
    events.reduce(
      (text, event) => (event.type === 'token' ? text + event.text : event.type === 'token.reset' ? '' : text),
      '',
    );

  it('comes once when it comes again, in whichever pieces', () => {
    const seen = new Seen();
    const events = ['abc', 'def'].flatMap((text, index) => seen.fresh(token(text, index * 3)));
    seen.again();
    for (const [text, offset] of [
      ['ab', 0],
      ['cdefg', 2],
      ['h', 7],
    ] as const)
      events.push(...seen.fresh(token(text, offset)));
    expect(textOf(events)).toBe('abcdefgh');
    expect(events.every(({ type }) => type === 'token')).toBe(true);
  });

  it('is taken back when the model says something else now', () => {
    const seen = new Seen();
    const events = [...seen.fresh(token('abcdef', 0))];
    seen.again();
    for (const [text, offset] of [
      ['abx', 0],
      ['yz', 3],
    ] as const)
      events.push(...seen.fresh(token(text, offset)));
    expect(events.map(({ type }) => type)).toEqual(['token', 'token.reset', 'token', 'token']);
    expect(textOf(events)).toBe('abxyz');
  });

  it('is told apart for each task', () => {
    const seen = new Seen();
    const ofTask = (seq: number) =>
      ({ type: 'message', identity: { ...identity, run: 'task' }, seq, path: [{}] }) as unknown as RunEvent;
    const fresh = () => [2, 2, 3].map((seq) => seen.fresh(ofTask(seq)).length);
    expect(fresh()).toEqual([1, 1, 1]);
    seen.again();
    expect(fresh()).toEqual([0, 0, 0]);
    expect(seen.fresh(ofTask(4))).toHaveLength(1);
  });
});
