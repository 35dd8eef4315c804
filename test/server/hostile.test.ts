/** Requests that are wrong in every way, on every route: typed answers, nothing of others, nothing left behind. */
import { connect } from 'node:net';
import fc from 'fast-check';
import { expect, it, onTestFinished } from 'vitest';
import { serve } from '#server';
import { call, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';
import { world } from '../kit/world.ts';
import { serveApi } from './api-kit.ts';
import { shoot, shots, target, theirs } from './hostile-requests.ts';

it('answers malformed requests with what is wrong with them, and tells nothing of others', async () => {
  const made = await target();
  let fired = 0;
  await fc.assert(
    fc.asyncProperty(shots, async (shot) => {
      if (fired++ % 50 === 0) await theirs(made.runtime);
      const wrong = await shoot(made, shot);
      if (wrong !== undefined) throw new Error(wrong);
    }),
    { seed: 27, numRuns: 1_200 },
  );
  expect(made.faults).toEqual([]);
  expect(made.effects()).toBe(0);
  expect((await made.run.record()).status).toBe('paused');
});

it('answers an admin, who reaches everything, in the same way', async () => {
  const made = await target();
  for (const shot of fc.sample(shots, { seed: 28, numRuns: 600 }))
    expect(await shoot(made, { ...shot, who: 'acme/boss/admin' })).toBeUndefined();
  expect(made.faults).toEqual([]);
});

it('closes connections that send half a request, and keeps nothing of them', async () => {
  const made = await target();
  const { port, server, close } = await serve(made.handler, { port: 0, requestTimeoutMs: 300 });
  onTestFinished(close);
  const halves = [
    'GET /runs HTTP/1.1\r\nHost: localhost\r\n',
    'POST /runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer acme/eve\r\nContent-Length: 100\r\n\r\n{"query":',
    'POST /runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer acme/eve\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"que\r\n',
    '',
  ];
  const closed = halves.map(
    (half) =>
      new Promise<void>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => socket.write(half));
        socket.resume().on('error', () => {});
        socket.on('close', () => resolve());
        if (half === '') socket.end();
      }),
  );
  await Promise.all(closed);
  await until(() => new Promise<boolean>((resolve) => server.getConnections((_, count) => resolve(count === 0))));
  expect(await made.runtime.list({ tenant: 'acme', user: 'eve' })).toEqual([]);
  expect(made.faults).toEqual([]);
});

it('leaves nothing behind when somebody stops waiting for a result', async () => {
  const held = gate();
  const made = world({ planner: script(call('hold')), tools: [make('hold', async () => held.opened)] });
  const { ask, as } = await serveApi(made);
  const run = await as('acme/ana').runs.start('q');
  const watches = { open: 0 };
  const { journal } = made;
  const watch = journal.watch.bind(journal);
  journal.watch = (id, onNews) => {
    watches.open += 1;
    const stop = watch(id, onNews);
    return () => {
      watches.open -= 1;
      stop();
    };
  };
  for (let count = 0; count < 5; count += 1) expect((await ask(`/runs/${run.id}/result?waitMs=5`)).status).toBe(202);
  const left = new AbortController();
  const waits = ask(`/runs/${run.id}/result?waitMs=60000`, { signal: left.signal });
  await until(() => watches.open > 0);
  left.abort();
  await expect(waits).rejects.toThrow();
  await until(() => watches.open === 0);
  held.open();
  expect(await run.result()).toMatchObject({ status: 'finished' });
});
