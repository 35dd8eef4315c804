/** Webhooks: at least once, in the order of each run, signed, kept over failures, and never to an address that nobody meant. */
import { type AddressInfo, createServer } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { post, type WebhooksOptions, webhooks } from '#server';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { until } from '../kit/waiting.ts';
import { type Receiver, receiver } from './receiver.ts';

/** It looks by itself after an hour: what comes, comes by news. */
const FAST = { pollMs: 3_600_000, backoff: { baseMs: 5, maxMs: 20 }, leaseMs: 500 };

function hooked(to: Receiver, more: Partial<WebhooksOptions> = {}) {
  const journal = memoryJournal({ clock: systemClock });
  const effects = new Effects();
  const runtime = createRuntime({ agents: [scenarioAgent(effects)], journal });
  const faults: unknown[] = [];
  const onFault = (error: unknown) => void faults.push(error);
  const hooks = webhooks({ runtime, allowHosts: [to.host], onFault, ...FAST, ...more });
  const start = (query: string, user = 'ann') =>
    runtime.start(query, {
      identity: { tenant: 'acme', user, session: `s-${user}`, run: `run-${crypto.randomUUID()}` },
    });
  onTestFinished(() => runtime.close());
  return { journal, runtime, hooks, start, faults };
}

function working({ hooks }: Pick<ReturnType<typeof hooked>, 'hooks'>) {
  const stop = hooks.work();
  onTestFinished(() => stop());
  return stop;
}

/** The positions of what came of a run, in the order in which they came. */
function positions(to: Receiver, run: string): readonly number[] {
  return to.received.filter(({ body }) => body.data.run === run).map(({ body }) => body.data.seq);
}

/** What a receiver takes that leaves out what it knows: a process that is stopped may not know that its last post was taken. */
function positionsOnce(to: Receiver, run: string): readonly number[] {
  const first = new Map(to.received.toReversed().map((each) => [each.headers['webhook-id'], each]));
  return positions({ received: to.received.filter((each) => [...first.values()].includes(each)) } as Receiver, run);
}

function isSorted(numbers: readonly number[]): boolean {
  return numbers.every((number, index) => index === 0 || number >= (numbers[index - 1] ?? 0));
}

describe('webhooks', () => {
  it('post every recorded event once and in order, signed as standard-webhooks, with its journal position', async () => {
    const to = await receiver();
    const made = hooked(to);
    const { secret } = await made.hooks.put({ id: 'all', tenant: 'acme', url: to.url });
    working(made);
    const run = await made.start('weather in Oslo');
    await run.result();
    const { events } = await run.recorded();
    await until(() => to.received.length >= events.length);
    expect(to.received.map(({ body }) => [body.type, body.data.seq])).toEqual(
      events.map(({ type, seq }) => [type, seq]),
    );
    for (const { headers, text } of to.received) new Webhook(secret).verify(text, headers as Record<string, string>);
    expect(new Set(to.received.map(({ headers }) => headers['webhook-id'])).size).toBe(events.length);
    expect(to.received[0]?.body).toMatchObject({
      type: 'run.started',
      data: { tenant: 'acme', user: 'ann', run: run.id },
    });
    const forged = to.received[0]?.text.replace('ann', 'ben') ?? '';
    expect(() => new Webhook(secret).verify(forged, to.received[0]?.headers as Record<string, string>)).toThrow();
  });

  it('post the kinds and the runs that were asked for, and no error of the inside', async () => {
    const to = await receiver();
    const made = hooked(to);
    const events = ['planner.finish', 'planner.error', 'pause.requested'] as const;
    await made.hooks.put({ id: 'ends', tenant: 'acme', user: 'ann', url: to.url, events });
    working(made);
    const other = await made.start('say no', 'ben');
    await other.result();
    for (const query of ['say yes', 'fail', 'refund A-17']) await (await made.start(query)).result();
    await until(() => to.received.length >= 3);
    expect(to.received.map(({ body }) => body.type).sort()).toEqual([
      'pause.requested',
      'planner.error',
      'planner.finish',
    ]);
    expect(JSON.stringify(to.received)).not.toMatch(/srv|sk-|run-of-ben/);
    expect(positions(to, other.id)).toEqual([]);
  });

  it('post again what fails, is slow or is away, in order, and hold up no other run', async () => {
    const to = await receiver();
    const made = hooked(to, { timeoutMs: 100 });
    to.answers = [500, 'hang', 404, 503, 200, 302];
    await made.hooks.put({ id: 'all', tenant: 'acme', url: to.url });
    working(made);
    const runs = await Promise.all(['say a', 'weather in Rome', 'say c'].map((query) => made.start(query)));
    await Promise.all(runs.map((run) => run.result()));
    await to.close();
    const late = await made.start('say late');
    await late.result();
    await until(async () => (await made.hooks.deliveries('acme', 'all')).some(({ attempts = 0 }) => attempts > 1));
    await to.open();
    for (const run of [...runs, late]) {
      const { events } = await run.recorded();
      await until(() => new Set(positions(to, run.id)).size === new Set(events.map(({ seq }) => seq)).size);
      expect(isSorted(positions(to, run.id))).toBe(true);
    }
    await until(async () => (await made.hooks.deliveries('acme', 'all')).every(({ done }) => done === true));
  });

  it('give a run up after so long, which is seen and told, and take it up again', async () => {
    const to = await receiver();
    const made = hooked(to, { giveUpAfterMs: 40 });
    to.answers = Array.from({ length: 1_000 }, () => 500);
    await made.hooks.put({ id: 'all', tenant: 'acme', url: to.url });
    working(made);
    const run = await made.start('say a');
    await run.result();
    const given = async () => (await made.hooks.deliveries('acme', 'all'))[0];
    await until(async () => (await given())?.gaveUpAt !== undefined);
    expect(await given()).toMatchObject({ run: run.id, position: 0, error: expect.stringContaining('500') });
    expect(made.faults.map(String)).toEqual([expect.stringContaining('gave run')]);
    to.answers = [];
    expect(await made.hooks.retry('acme', 'all')).toBe(1);
    await until(() => positions(to, run.id).length === 4 || to.received.at(-1)?.body.type === 'planner.finish');
    await until(async () => (await given())?.done === true);
    // One that is gone for good is told so at once.
    to.answers = [410];
    const gone = await made.start('say b');
    await gone.result();
    await until(async () =>
      (await made.hooks.deliveries('acme', 'all')).some((each) => each.run === gone.id && each.gaveUpAt),
    );
  });

  it('go on in another process, one at a time, from where the first one was', async () => {
    const to = await receiver();
    const made = hooked(to);
    await made.hooks.put({ id: 'all', tenant: 'acme', url: to.url });
    const stop = working(made);
    const second = webhooks({ runtime: made.runtime, allowHosts: [to.host], ...FAST });
    working({ hooks: second });
    const waits = await made.start('refund A-17');
    await waits.result();
    const { events: before } = await waits.recorded();
    await until(() => positionsOnce(to, waits.id).length === before.length);
    await stop();
    await waits.approve();
    await waits.result();
    const { events } = await waits.recorded();
    await until(() => positionsOnce(to, waits.id).length === events.length);
    expect(positionsOnce(to, waits.id)).toEqual(events.map(({ seq }) => seq));
  });

  it('that several processes put at once have one secret, which each of them is given', async () => {
    const to = await receiver();
    const { journal, hooks } = hooked(to);
    const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal });
    onTestFinished(() => runtime.close());
    const other = webhooks({ runtime, allowHosts: [to.host] });
    const put = (by: typeof hooks) => by.put({ id: 'crm', tenant: 'acme', url: to.url });
    const secrets = (await Promise.all([put(hooks), put(other), put(hooks)])).map(({ secret }) => secret);
    expect(new Set(secrets)).toEqual(new Set([(await hooks.get('acme', 'crm'))?.secret]));
  });

  it('that are retried while another process delivers are not put back to where they were', async () => {
    const to = await receiver();
    to.answers = [410];
    const made = hooked(to);
    await made.hooks.put({ id: 'crm', tenant: 'acme', url: to.url });
    working(made);
    const run = await made.start('say a');
    await run.result();
    await until(async () => (await made.hooks.state('acme', 'crm'))?.gaveUp === 1);
    const end = (await made.runtime.run(run.id).record()).head;
    // Another one has looked at what has failed, and meanwhile it is delivered.
    const { store } = made.journal;
    const slow: typeof store = new Proxy(store, {
      get: (target, key) => {
        if (key !== 'list') return Reflect.get(target, key).bind(target);
        return async (...args: Parameters<typeof store.list>) => {
          const page = await target.list(...args);
          await made.hooks.retry('acme', 'crm');
          await until(async () => (await made.hooks.deliveries('acme', 'crm'))[0]?.done === true);
          return page;
        };
      },
    });
    const journal: Journal = new Proxy(made.journal, {
      get: (target, key) => {
        const own: unknown = Reflect.get(target, key);
        if (key === 'store') return slow;
        return typeof own === 'function' ? own.bind(target) : own;
      },
    });
    const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal });
    onTestFinished(() => runtime.close());
    expect(await webhooks({ runtime, allowHosts: [to.host] }).retry('acme', 'crm')).toBe(0);
    expect(await made.hooks.deliveries('acme', 'crm')).toMatchObject([{ run: run.id, position: end, done: true }]);
  });

  it('are looked at no more when their one run has ended, and are erased with their user', async () => {
    const to = await receiver();
    const made = hooked(to);
    working(made);
    const run = await made.start('refund A-17');
    await run.result();
    await made.hooks.put({ id: 'one', tenant: 'acme', user: 'ann', run: run.id, url: to.url });
    await run.reject();
    await run.result();
    await until(async () => (await made.hooks.deliveries('acme', 'one'))[0]?.done === true);
    await until(async () => (await made.hooks.list('acme', { run: run.id })).length === 1);
    expect(to.received.at(-1)?.body.type).toBe('planner.finish');
    // What had happened before it was put is not told.
    expect(to.received.some(({ body }) => body.type === 'run.started')).toBe(false);
    await made.runtime.erase({ tenant: 'acme', user: 'ann' });
    expect(await made.hooks.get('acme', 'one')).toBeUndefined();
    expect(await made.hooks.delete('acme', 'one')).toBe(false);
  });

  it('hold no place for a receiver that answers with another protocol', async () => {
    const server = createServer((socket) => {
      socket.on('data', () => socket.write('HTTP/1.1 101 Other\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n'));
      socket.on('error', () => {});
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const message = { id: 'm', body: '{}', type: 'application/json', headers: {}, secret: 'whsec_' };
    const signal = new AbortController().signal;
    expect(await post(url, message, { allowHosts: ['127.0.0.1'] }, signal)).toMatchObject({ isGone: false });
  });

  it('never post to this machine or its network, unless the program allows the host', async () => {
    const to = await receiver();
    const made = hooked(to, { allowHosts: [] });
    const put = (url: string) => made.hooks.put({ id: 'x', tenant: 'acme', url });
    for (const url of [
      to.url,
      'https://127.0.0.1/x',
      'https://localhost/x',
      'https://[::1]/',
      'https://169.254.169.254/latest',
      'https://10.0.0.7/',
      'http://192.0.2.1/',
      'https://user:pass@example.com/',
      'file:///etc/passwd',
      'not a url',
    ]) {
      await expect(put(url), url).rejects.toThrow(expect.objectContaining({ code: 'url_refused' }));
    }
    for (const [type, words] of [
      ['token', 'are not recorded'],
      ['planner.finnish', 'no events of the kind planner.finnish'],
    ] as const) {
      const refused = made.hooks.put({ id: 'x', tenant: 'acme', url: to.url, events: [type as 'token'] });
      await expect(refused).rejects.toMatchObject({ code: 'invalid_config', message: expect.stringContaining(words) });
    }
  });
});
