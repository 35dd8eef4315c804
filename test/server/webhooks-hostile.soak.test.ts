/** Receivers that do not behave, and clocks, floods and deletions: they delay themselves alone, and what is promised holds. */
import { createServer as createHttp } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { type WebhooksOptions, webhooks } from '#server';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { changed } from '../kit/journals.ts';
import { longJournal } from '../kit/long-runs.ts';
import { until } from '../kit/waiting.ts';
import { type Receiver, receiver } from './receiver.ts';

type Webhooks = ReturnType<typeof webhooks>;
/** It looks by itself after an hour: what comes, comes by news. */
const FAST = { pollMs: 3_600_000, backoff: { baseMs: 5, maxMs: 20 }, leaseMs: 500 };

function hooked(more: Partial<WebhooksOptions> = {}, journal: Journal = memoryJournal({ clock: systemClock })) {
  const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal, maxLiveRunsPerTenant: 100 });
  const faults: unknown[] = [];
  const make = (): Webhooks =>
    webhooks({ runtime, allowHosts: ['127.0.0.1'], onFault: (error) => void faults.push(error), ...FAST, ...more });
  const hooks = make();
  const start = (query: string, tenant = 'acme', user = 'ann') =>
    runtime.start(query, { identity: { tenant, user, session: crypto.randomUUID(), run: crypto.randomUUID() } });
  onTestFinished(() => runtime.close());
  return { journal, runtime, hooks, start, faults, make };
}

function working(hooks: Webhooks): () => Promise<void> {
  const stop = hooks.work();
  onTestFinished(() => stop());
  return stop;
}

async function listening(server: Server): Promise<string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => sockets.add(socket.on('error', () => {})));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Takes posts and never answers; counts those that are under way. */
async function mute() {
  const posts = { now: 0, most: 0, ever: 0 };
  const server = createHttp((request) => {
    posts.ever += 1;
    posts.now += 1;
    posts.most = Math.max(posts.most, posts.now);
    request.socket.once('close', () => {
      posts.now -= 1;
    });
  });
  return { posts, url: `http://${await listening(server)}/` };
}

const runsIn = (to: Receiver): string[] => [...new Set(to.received.map(({ body }) => body.data.run as string))];
const endsIn = (to: Receiver): number => to.received.filter(({ body }) => body.type === 'planner.finish').length;

describe('a receiver that never answers', () => {
  it('delays its own tenant at most: others get all while its posts hang', async () => {
    const to = await receiver();
    const dead = await mute();
    const { hooks, start } = hooked({ maxPosts: 8, maxPostsPerTenant: 3, timeoutMs: 100_000 });
    await hooks.put({ id: 'dead', tenant: 'sad', url: dead.url });
    await hooks.put({ id: 'good', tenant: 'acme', url: to.url });
    working(hooks);
    const sad = await Promise.all(Array.from({ length: 10 }, () => start('say a', 'sad')));
    await until(() => dead.posts.now === 3);
    const runs = await Promise.all(Array.from({ length: 10 }, () => start('say b')));
    await until(() => endsIn(to) === runs.length);
    expect([dead.posts.most, sad.length, runsIn(to).length]).toEqual([3, 10, 10]);
  });

  it('leaves half of the places to others once it has failed, however many tenants have such receivers', async () => {
    const to = await receiver();
    const dead = await mute();
    const { hooks, start } = hooked({ maxPosts: 4, timeoutMs: 200 });
    working(hooks);
    for (let tenant = 0; tenant < 12; tenant += 1) {
      await hooks.put({ id: 'dead', tenant: `sad${tenant}`, url: dead.url });
      await start('say a', `sad${tenant}`);
    }
    await until(async () => {
      const states = await Promise.all(Array.from({ length: 12 }, (_, tenant) => hooks.state(`sad${tenant}`, 'dead')));
      return states.every((state) => state?.failing === 1 && (state.last?.attempts ?? 0) >= 2);
    });
    dead.posts.most = 0;
    await hooks.put({ id: 'good', tenant: 'acme', url: to.url });
    const runs = await Promise.all(Array.from({ length: 5 }, () => start('say b')));
    await until(() => endsIn(to) === runs.length);
    expect(dead.posts.most).toBeLessThanOrEqual(2);
  });

  it('is told nothing more when its webhook is deleted while a post is on its way, and leaves nothing behind', async () => {
    const dead = await mute();
    const { hooks, start, runtime } = hooked({ timeoutMs: 100 });
    await hooks.put({ id: 'dead', tenant: 'acme', url: dead.url });
    working(hooks);
    await start('say a');
    await until(() => dead.posts.now === 1);
    await hooks.delete('acme', 'dead');
    await until(() => dead.posts.now === 0);
    const to = await receiver();
    await hooks.put({ id: 'good', tenant: 'acme', url: to.url });
    await (await start('say b')).result();
    await until(() => endsIn(to) === 1);
    expect(dead.posts.ever).toBe(1);
    expect(await hooks.deliveries('acme', 'dead')).toEqual([]);
    expect(await runtime.list({ tenant: 'acme' })).toHaveLength(2);
  });
});

describe('a receiver that', () => {
  const answering = (answer: string) => () =>
    listening(createServer((socket) => socket.once('data', () => socket.end(answer))));
  const cases: Record<string, () => Promise<string>> = {
    'answers a byte now and then': () =>
      listening(
        createServer((socket) => {
          const timer = setInterval(() => socket.write('x'), 30);
          socket.write('HTTP/1.1 200 OK\r\nx-slow: ');
          socket.on('close', () => clearInterval(timer));
        }),
      ),
    'closes at once': () => listening(createServer((socket) => socket.destroy())),
    'speaks no HTTP': answering('hello\r\n\r\n'),
    'sends headers without an end': () =>
      listening(createServer((socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(1_000_000)}`))),
  };

  it.each(Object.entries(cases))('%s is a failure with a reason, and others get all', async (_, made) => {
    const to = await receiver();
    const { hooks, start } = hooked({ timeoutMs: 300 });
    await hooks.put({ id: 'bad', tenant: 'acme', url: `http://${await made()}/` });
    await hooks.put({ id: 'good', tenant: 'acme', url: to.url });
    working(hooks);
    await start('say a');
    await until(() => endsIn(to) === 1);
    await until(async () => (await hooks.state('acme', 'bad'))?.failing === 1);
    const state = await hooks.state('acme', 'bad');
    expect(state?.last?.error).toMatch(/\w/);
    expect(state).toMatchObject({ open: 1, gaveUp: 0, last: { position: 0, failedAt: expect.any(Number) } });
  });

  it('speaks no TLS where it should is a failure with a reason', async () => {
    const to = await receiver();
    const { hooks, start } = hooked();
    await hooks.put({ id: 'bad', tenant: 'acme', url: to.url.replace('http:', 'https:') });
    working(hooks);
    await start('say a');
    await until(async () => (await hooks.state('acme', 'bad'))?.failing === 1);
    expect((await hooks.state('acme', 'bad'))?.last?.error).toMatch(/ssl|tls|protocol|packet/i);
    expect(to.received).toEqual([]);
  });

  it('redirects is not followed: what it names gets nothing', async () => {
    const inner = await receiver();
    const outer = await listening(createHttp((_, response) => response.writeHead(307, { location: inner.url }).end()));
    const { hooks, start } = hooked({ allowHosts: [outer, inner.host] });
    await hooks.put({ id: 'bad', tenant: 'acme', url: `http://${outer}/` });
    working(hooks);
    await start('say a');
    await until(async () => ((await hooks.state('acme', 'bad'))?.last?.attempts ?? 0) > 1);
    expect((await hooks.state('acme', 'bad'))?.last?.error).toContain('307');
    expect(inner.received).toEqual([]);
  });

  it.each([
    ['120', 120_000],
    [new Date(Date.now() + 600_000).toUTCString(), 500_000],
    ['999999999', 3_500_000],
  ])('answers 429 with Retry-After %s is asked again no sooner', async (header, leastMs) => {
    const busy = await listening(createHttp((_, response) => response.writeHead(429, { 'retry-after': header }).end()));
    const { hooks, start } = hooked();
    await hooks.put({ id: 'busy', tenant: 'acme', url: `http://${busy}/` });
    working(hooks);
    await start('say a');
    await until(async () => (await hooks.state('acme', 'busy'))?.failing === 1);
    const { nextAt = 0, last } = (await hooks.state('acme', 'busy')) ?? {};
    expect(nextAt - (last?.failedAt ?? 0)).toBeGreaterThanOrEqual(leastMs);
    // An hour is the most that it may ask for.
    expect(nextAt - (last?.failedAt ?? 0)).toBeLessThanOrEqual(3_600_000);
  });
});

describe('clocks', () => {
  it('that are set back a day delay no retry, here and in the next process', async () => {
    const to = await receiver();
    let aheadMs = 86_400_000;
    const clock = { ...systemClock, now: () => Date.now() + aheadMs };
    const journal = memoryJournal({ clock });
    const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal, clock });
    onTestFinished(() => runtime.close());
    const make = () => webhooks({ runtime, allowHosts: [to.host], ...FAST, backoff: { baseMs: 300, maxMs: 300 } });
    to.answers = [500, 503];
    const hooks = make();
    await hooks.put({ id: 'all', tenant: 'acme', url: to.url });
    const stop = working(hooks);
    const run = await runtime.start('say a', { identity: { tenant: 'acme', user: 'ann', session: 's', run: 'r' } });
    // All of it has happened when the clock is set back.
    await run.result();
    const attempts = async () => (await hooks.deliveries('acme', 'all'))[0]?.attempts;
    await until(async () => (await attempts()) === 1);
    aheadMs = 0;
    await until(async () => (await attempts()) === 2);
    aheadMs = 86_400_000;
    await stop();
    aheadMs = 0;
    working(make());
    await until(() => endsIn(to) === 1);
  });

  it.each(['are told', 'are found by looking'])('that are set back a day lose nothing of runs that %s', async (how) => {
    const to = await receiver();
    let aheadMs = 86_400_000;
    const clock = { ...systemClock, now: () => Date.now() + aheadMs };
    const told = memoryJournal({ clock });
    const journal = how === 'are told' ? told : changed(told, { watchRuns: () => () => {} });
    const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal, clock });
    onTestFinished(() => runtime.close());
    const pollMs = how === 'are told' ? FAST.pollMs : 1;
    const hooks = webhooks({ runtime, allowHosts: [to.host], ...FAST, pollMs });
    const start = (run: string, query: string) =>
      runtime.start(query, { identity: { tenant: 'acme', user: 'ann', session: run, run } });
    await hooks.put({ id: 'all', tenant: 'acme', url: to.url });
    working(hooks);
    const open = await start('open', 'refund A-17');
    await open.result();
    await until(() => to.received.at(-1)?.body.type === 'pause.requested');
    aheadMs = 0;
    for (const run of ['b', 'c']) await (await start(run, 'say a')).result();
    await open.approve();
    await open.result();
    await until(() => endsIn(to) === 3);
    // The entry that was under way when the webhook was changed may come again.
    const once = new Map(to.received.map(({ headers, body }) => [headers['webhook-id'], body.data]));
    for (const run of ['open', 'b', 'c']) {
      const seqs = [...once.values()].filter((each) => each.run === run).map(({ seq }) => seq as number);
      const { events } = await runtime.run(run).recorded();
      expect(seqs).toEqual(events.map(({ seq }) => seq));
    }
  });
});

describe('much', () => {
  it('300 events of one run come once and in order, and another run of the webhook does not wait for them', async () => {
    const to = await receiver();
    const { hooks, journal, start } = hooked();
    const entries = longJournal(100).map((entry) =>
      entry.kind === 'started'
        ? { ...entry, identity: { tenant: 'acme', user: 'ann', session: 's', run: 'long' } }
        : entry,
    );
    await journal.create({
      identity: { tenant: 'acme', user: 'ann', session: 's', run: 'long' },
      priority: 0,
      entries,
    });
    await hooks.putAs({ id: 'all', tenant: 'acme', url: to.url }, { format: 'events', since: 0 });
    working(hooks);
    await until(() => to.received.length > 0);
    await start('say a');
    const of = (run: string) => to.received.filter(({ body }) => body.data.run === run);
    await until(() => endsIn(to) === 1);
    const before = of('long').length;
    // Also those of the other run, which has no fewer than four.
    await until(() => to.received.length >= 304);
    await until(async () => (await hooks.state('acme', 'all'))?.posting === 0);
    const seqs = of('long').map(({ body }) => body.data.seq as number);
    expect(seqs).toEqual(seqs.toSorted((left, right) => left - right));
    expect(new Set(of('long').map(({ headers }) => headers['webhook-id'])).size).toBe(of('long').length);
    expect(before).toBeLessThan(298);
  });

  it('runs that ended before a webhook was made cost it nothing, in the next process either', async () => {
    const to = await receiver();
    let aheadMs = -86_400_000;
    const clock = { ...systemClock, now: () => Date.now() + aheadMs };
    const runtime = createRuntime({
      agents: [scenarioAgent(new Effects())],
      journal: memoryJournal({ clock }),
      clock,
    });
    onTestFinished(() => runtime.close());
    const hooks = webhooks({ runtime, allowHosts: [to.host], ...FAST });
    const start = (run: string) =>
      runtime.start('say a', { identity: { tenant: 'acme', user: 'ann', session: run, run } });
    await hooks.put({ id: 'first', tenant: 'acme', url: to.url });
    for (const run of ['a', 'b']) await (await start(run)).result();
    aheadMs = 0;
    await hooks.put({ id: 'second', tenant: 'acme', url: to.url });
    await (await start('c')).result();
    working(hooks);
    const done = async (id: string) =>
      (await hooks.deliveries('acme', id)).filter((each) => each.done).map(({ run }) => run);
    await until(async () => (await done('first')).length === 3 && (await done('second')).includes('c'));
    expect(await done('second')).toEqual(['c']);
  });

  it('3,000 webhooks: a run is told to the one of its user, and one that nobody wants costs no look at the store', async () => {
    const to = await receiver();
    const asked: string[] = [];
    const journal = memoryJournal({ clock: systemClock });
    const counted = changed(journal, {
      store: new Proxy(journal.store, {
        get: (target, key) => {
          const own: unknown = Reflect.get(target, key);
          if (typeof own !== 'function') return own;
          return (...args: unknown[]) => {
            if (key !== 'watch') asked.push(String(key));
            return own.apply(target, args);
          };
        },
      }),
    });
    const { hooks, start } = hooked({}, counted);
    for (let user = 0; user < 3_000; user += 1)
      await hooks.put({ id: `of-${user}`, tenant: 'acme', user: `u${user}`, url: `${to.url}/${user}` });
    working(hooks);
    await (await start('say a', 'acme', 'u1234')).result();
    await until(() => endsIn(to) === 1);
    await until(async () => (await hooks.deliveries('acme', 'of-1234'))[0]?.done === true);
    expect(new Set(to.received.map(({ body }) => body.data.user))).toEqual(new Set(['u1234']));
    asked.length = 0;
    await (await start('slow 5', 'acme', 'nobody')).result();
    await (await start('say a', 'other', 'nobody')).result();
    expect(asked).toEqual([]);
  });
});
