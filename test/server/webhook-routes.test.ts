/** Webhooks over our own API: an admin sees which there are and how they stand, and nobody sees their keys. */
import { expect, it, onTestFinished } from 'vitest';
import { systemClock } from '#core';
import { memoryJournal } from '#journal';
import { createRuntime } from '#runtime';
import { webhooks } from '#server';
import { Effects, scenarioAgent } from '../../examples/scenario-agent.ts';
import { until } from '../kit/waiting.ts';
import { serveApi } from './api-kit.ts';
import { receiver } from './receiver.ts';

it('tells an admin which webhooks there are, what is open, failing and why, and nobody their keys', async () => {
  const to = await receiver();
  const journal = memoryJournal({ clock: systemClock });
  const runtime = createRuntime({ agents: [scenarioAgent(new Effects())], journal });
  onTestFinished(() => runtime.close());
  const hooks = webhooks({ runtime, allowHosts: [to.host], backoff: { baseMs: 60_000 } });
  const { secret, since } = await hooks.put({ id: 'b', tenant: 'acme', url: `${to.url}/key-17?token=key-17` });
  const events = ['planner.finish'] as const;
  await hooks.put({ id: 'a', tenant: 'acme', user: 'ben', url: to.url, events });
  await hooks.putAs({ id: 'c', tenant: 'other', url: to.url }, { format: 'a2a', headers: { authorization: 'key-17' } });
  const { as, ask } = await serveApi({ runtime });
  const boss = as('acme/boss/admin');

  const origin = `http://${to.host}`;
  const common = { tenant: 'acme', format: 'events', origin, since: expect.any(Number) };
  const [a, b] = [
    { ...common, id: 'a', user: 'ben', events: [...events] },
    { ...common, id: 'b', since },
  ];
  expect(await boss.webhooks.list()).toEqual({ items: [a, b] });
  expect(await boss.webhooks.list({ limit: 1 })).toEqual({ items: [a], next: 'a' });
  expect(await boss.webhooks.list({ limit: 1, after: 'a' })).toEqual({ items: [b] });
  expect((await boss.webhooks.list({ tenant: 'other' })).items.map(({ id }) => id)).toEqual(['c']);
  expect((await boss.webhooks.get('a')).state).toEqual({ open: 0, posting: 0, failing: 0, gaveUp: 0 });

  to.answers = [503];
  const stop = hooks.work();
  onTestFinished(() => stop());
  const run = await runtime.start('say a', { identity: { tenant: 'acme', user: 'ana', session: 's', run: 'run-1' } });
  await run.result();
  await until(async () => (await boss.webhooks.get('b')).state.failing === 1);
  const { state, ...shown } = await boss.webhooks.get('b');
  expect(shown).toEqual(b);
  const last = { run: 'run-1', position: 0, attempts: 1, error: 'The receiver answered with the status 503.' };
  expect(state).toMatchObject({ open: 1, gaveUp: 0, nextAt: expect.any(Number), last });

  for (const path of ['/webhooks', '/webhooks/b', '/webhooks?tenant=other', '/webhooks/c?tenant=other']) {
    const told = await ask(path, { who: 'acme/boss/admin' });
    expect([path, told.status]).toEqual([path, 200]);
    const text = await told.text();
    expect(text).not.toContain('key-17');
    expect(text).not.toContain(secret);
    expect((await ask(path)).status).toBe(403);
  }
  await expect(boss.webhooks.get('c')).rejects.toMatchObject({ code: 'run_not_found', status: 404 });
});
