/** The handler where others serve it: in an app of Express 5, and as a route handler such as those of Next. */

import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import express from 'express';
import { expect, it, onTestFinished } from 'vitest';
import { createClient } from '#pilotage/client';
import { api, createHandler } from '#server';
import { finish, script } from '../kit/decisions.ts';
import { world } from '../kit/world.ts';
import { bearer, taken } from './api-kit.ts';

const headers = { authorization: 'Bearer acme/ana' };

it('answers behind a path of an app of Express 5', async () => {
  const { runtime } = world({ planner: script(finish('done')) });
  const handler = createHandler({ runtime, parts: [api({ path: '/agents' })], authenticate: bearer });
  const app = express();
  app.get('/own', (_, response) => void response.send('own'));
  // Without app.use('/agents', …), which would take the path away.
  app.use(getRequestListener(handler));
  const server = app.listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once('listening', resolve));
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await (await fetch(`${origin}/own`)).text()).toBe('own');
  const client = createClient({ url: `${origin}/agents`, headers });
  const run = await client.runs.start('q');
  expect(await run.result()).toMatchObject({ status: 'finished' });
  expect((await taken(run.events())).at(-1)?.type).toBe('planner.finish');
});

it('answers as a route handler, which is a function from a request to a response', async () => {
  const { runtime } = world({ planner: script(finish('done')) });
  const handler = createHandler({ runtime, parts: [api({ path: '/api/agents' })], authenticate: bearer });
  // app/api/agents/[...path]/route.ts
  const route = { GET: handler, POST: handler };
  const client = createClient({
    url: 'http://localhost:3000/api/agents',
    headers,
    fetch: (url, init) => {
      const request = new Request(url, init);
      return route[request.method as 'GET' | 'POST'](request, { params: Promise.resolve({ path: [] }) });
    },
  });
  const run = await client.runs.start('q');
  expect(await run.result()).toMatchObject({ status: 'finished' });
  expect((await taken(run.events())).at(-1)?.type).toBe('planner.finish');
});
