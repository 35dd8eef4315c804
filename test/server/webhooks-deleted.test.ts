/** Runs that are deleted, by retention or with their session, while webhooks know how far they are delivered. */
import { expect, it, onTestFinished } from 'vitest';
import { memoryJournal } from '#journal';
import { webhooks } from '#server';
import { finish } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { until } from '../kit/waiting.ts';
import { world } from '../kit/world.ts';
import { type Receiver, receiver } from './receiver.ts';

const identity = { tenant: 'acme', user: 'ana', session: 's', run: 'again' };

function posting(to: Receiver, isHeard: boolean) {
  const stored = memoryJournal();
  const journal = isHeard ? stored : changed(stored, { watchRuns: () => () => {} });
  const { runtime } = world({ journal, planner: () => finish() });
  const faults: unknown[] = [];
  const onFault = (error: unknown) => void faults.push(error);
  const pollMs = isHeard ? 3_600_000 : 10;
  const hooks = webhooks({ runtime, allowHosts: [to.host], pollMs, backoff: { baseMs: 5, maxMs: 20 }, onFault });
  const work = () => {
    const stop = hooks.work();
    onTestFinished(() => stop());
    return stop;
  };
  return { runtime, hooks, work, faults };
}

it.each([
  ['is heard of', 'the same process', true],
  ['is found by looking', 'the same process', false],
  ['is heard of', 'another process', true],
  ['is found by looking', 'another process', false],
])('a run under an id that was deleted %s by %s, and posted from its start', async (_, process, isHeard) => {
  const to = await receiver();
  const { runtime, hooks, work } = posting(to, isHeard);
  await hooks.put({ id: 'all', tenant: 'acme', url: to.url });
  const first = work();
  const isDone = async () => (await hooks.deliveries('acme', 'all'))[0]?.done === true;
  await (await runtime.start('first', { identity })).result();
  await until(isDone);
  const before = to.received.length;
  if (process === 'another process') await first();
  await runtime.sessions.delete(identity);
  const run = await runtime.start('second', { identity });
  await run.result();
  if (process === 'another process') work();
  const { events } = await run.recorded();
  await until(() => to.received.length >= before + events.length);
  expect(to.received.slice(before).map(({ body }) => body.data.seq)).toEqual(events.map(({ seq }) => seq));
  // Who leaves out what it knows takes them.
  expect(new Set(to.received.map(({ headers }) => headers['webhook-id'])).size).toBe(to.received.length);
});

it('a run that is deleted before its receiver has taken it is told, and nothing of it is kept', async () => {
  const to = await receiver();
  const { runtime, hooks, work, faults } = posting(to, true);
  to.answers = Array.from({ length: 1_000 }, () => 500);
  await hooks.put({ id: 'all', tenant: 'acme', url: to.url });
  work();
  await (await runtime.start('first', { identity })).result();
  await until(async () => ((await hooks.deliveries('acme', 'all'))[0]?.attempts ?? 0) > 1);
  await runtime.sessions.delete(identity);
  await until(async () => (await hooks.deliveries('acme', 'all')).length === 0);
  expect(faults).toMatchObject([
    { code: 'run_not_found', message: expect.stringMatching(/again was deleted before .* 500/) },
  ]);
});

it('a webhook with very many deliveries is deleted with them in parts, so that nobody waits long', async () => {
  const to = await receiver();
  const journal = memoryJournal();
  const sizes: number[] = [];
  const store = changed(journal.store, {
    write: (writes) => {
      sizes.push(writes.length);
      return journal.store.write(writes);
    },
  });
  const { runtime } = world({ journal: changed(journal, { store }), planner: () => finish() });
  const hooks = webhooks({ runtime, allowHosts: [to.host] });
  await hooks.put({ id: 'all', tenant: 'acme', url: to.url });
  const namespace = ['pilotage:webhooks.runs', 'acme', 'all'];
  const keys = Array.from({ length: 1_300 }, (_, run) => `run_${run}`);
  await journal.store.write(keys.map((key) => ({ namespace, key, value: { position: 1, done: true } })));
  expect(await hooks.deliveries('acme', 'all')).toHaveLength(1_300);
  expect(await hooks.delete('acme', 'all')).toBe(true);
  expect(await hooks.deliveries('acme', 'all')).toEqual([]);
  expect(await hooks.get('acme', 'all')).toBeUndefined();
  expect(Math.max(...sizes)).toBeLessThanOrEqual(500);
});
