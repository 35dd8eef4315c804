/** Runs that go on after they had ended and were delivered whole. */
import { expect, it } from 'vitest';
import { RESERVED_PART } from '#core';
import { memoryJournal } from '#journal';
import { webhooks } from '#server';
import { VirtualClock } from '#testing';
import { finish } from '../kit/decisions.ts';
import { changed } from '../kit/journals.ts';
import { until } from '../kit/waiting.ts';
import { world } from '../kit/world.ts';
import { receiver } from './receiver.ts';

it.each([
  'whoever begins to post',
  'whoever posts already, and looks now and then',
])('%s finds a run that has gone on and ended again unheard, and posts what is new of it', async (who) => {
  const to = await receiver();
  const clock = new VirtualClock();
  // No news are heard.
  const journal = changed(memoryJournal({ clock }), { watchRuns: () => () => {} });
  let fails = true;
  const { runtime } = world({
    journal,
    clock,
    planner: () => {
      if (fails) throw new Error('away');
      return finish();
    },
  });
  const hooks = webhooks({ runtime, allowHosts: [to.host], pollMs: 10 });
  await hooks.put({ id: 'all', tenant: 'acme', url: to.url });
  const first = hooks.work();
  const identity = { tenant: 'acme', user: 'ana', session: 's', run: 'old' };
  const run = await runtime.start('q', { identity });
  expect((await run.result()).status).toBe('failed');
  await until(async () => (await hooks.deliveries('acme', 'all'))[0]?.done === true);
  const before = to.received.length;
  // It is far behind the runs that are looked at because they are new.
  clock.advance(300_000);
  await (await runtime.start('q', { identity: { ...identity, session: 't', run: 'new' } })).result();
  await until(async () => (await hooks.deliveries('acme', 'all')).filter(({ done }) => done).length === 2);
  if (who.startsWith('whoever begins')) await first();
  fails = false;
  await run.resume();
  expect((await run.result()).status).toBe('finished');
  const { events } = await run.recorded({ from: (to.received[before - 1]?.body.data.seq ?? 0) + 1 });
  const second = who.startsWith('whoever begins') ? hooks.work() : first;
  const told = () => to.received.slice(before).filter(({ body }) => body.data.run === 'old');
  await until(() => told().length >= events.length);
  expect(told().map(({ body }) => body.data.seq)).toEqual(events.map(({ seq }) => seq));
  await second();
  // What is kept beside the run names its user.
  const notes = { namespace: [`${RESERVED_PART}webhooks.reopened`, 'acme'], limit: 10 };
  expect((await journal.store.list(notes)).map(({ key }) => key)).toEqual(['old']);
  await runtime.erase({ tenant: 'acme', user: 'ana' });
  expect(await journal.store.list(notes)).toEqual([]);
});

it('a webhook of one run ends with it, and goes on where it was when it is put again', async () => {
  const to = await receiver();
  let fails = true;
  const { runtime } = world({
    planner: () => {
      if (fails) throw new Error('away');
      return finish();
    },
  });
  const hooks = webhooks({ runtime, allowHosts: [to.host] });
  const stop = hooks.work();
  const run = await runtime.start('q', { identity: { tenant: 'acme', user: 'ana', session: 's', run: 'one' } });
  const put = () => hooks.put({ id: 'one', tenant: 'acme', run: run.id, url: to.url });
  await put();
  expect((await run.result()).status).toBe('failed');
  await until(async () => (await hooks.deliveries('acme', 'one'))[0]?.done === true);
  const before = to.received.length;
  const told = () => to.received.slice(before).map(({ body }) => body.data.seq);
  fails = false;
  await run.resume();
  expect((await run.result()).status).toBe('finished');
  await put();
  const { events } = await run.recorded({
    from: (await run.recorded()).events.findLast(({ type }) => type === 'run.reopened')?.seq ?? 1,
  });
  await until(() => told().length >= events.length);
  expect(told()).toEqual(events.map(({ seq }) => seq));
  await stop();
});
