/** The function from a request to its response: who is let in, what is answered, and what nobody is told. */
import { createServer } from 'node:http';
import { describe, expect, it, onTestFinished } from 'vitest';
import { PilotageError } from '#core';
import { createHandler, type Part, serve } from '#server';
import { call, finish, script } from '../kit/decisions.ts';
import { make } from '../kit/tools.ts';
import { gate, until } from '../kit/waiting.ts';
import { start, world } from '../kit/world.ts';

/** Routes that show what the foundation gives to every part. */
const trial: Part = {
  name: 'trial',
  open: ['/card'],
  routes: (app) => {
    app.get('/me', (context) => context.json(context.get('visit').owner));
    app.get('/card', (context) => context.json({ name: 'card' }));
    app.post('/echo', async (context) => context.json({ bytes: (await context.req.text()).length }));
    app.get('/run/:id', async (context) => {
      const { record } = await context.get('visit').run(context.req.param('id'));
      return context.json({ status: record.status });
    });
    app.get('/broken', () => {
      throw new Error('secret of /etc/keys');
    });
    app.get('/away', () => {
      throw new PilotageError('journal_unavailable', 'postgres://user:pass@host does not answer.');
    });
    app.get('/events/:id', async (context) => {
      const visit = context.get('visit');
      const { run } = await visit.run(context.req.param('id'));
      return visit.stream(async function* (signal) {
        for await (const { type } of run.events({ signal })) yield { data: JSON.stringify({ type }) };
      });
    });
  },
};

const codeOf = async (answer: Response) => ((await answer.json()) as { code: string }).code;

const authenticate = (request: Request) => {
  const user = request.headers.get('authorization')?.replace('Bearer ', '');
  if (user === undefined) return new Response('who?', { status: 401, headers: { 'www-authenticate': 'Bearer' } });
  return { identity: { tenant: 'acme', user } };
};
const as = (user: string, headers: Record<string, string> = {}) => ({
  headers: { authorization: `Bearer ${user}`, ...headers },
});

function served(options: Partial<Parameters<typeof createHandler>[0]> = {}) {
  const held = gate();
  const hold = make('hold', async () => held.opened);
  const made = world({ planner: script(call('hold'), finish('done')), tools: [hold] });
  const handler = createHandler({ runtime: made.runtime, parts: [trial], ...options });
  const ask = (path: string, init: RequestInit = {}) => handler(new Request(`http://localhost:4400${path}`, init));
  return { ...made, handler, ask, release: () => held.open() };
}

describe('a handler', () => {
  it('without authenticate answers this machine alone, as the user local', async () => {
    const { ask, handler } = served();
    expect(await (await ask('/me')).json()).toEqual({ tenant: 'local', user: 'local' });
    const elsewhere = await handler(new Request('http://evil.example:4400/me'));
    expect([elsewhere.status, await codeOf(elsewhere)]).toEqual([403, 'forbidden']);
    const beyond = await handler(new Request('http://localhost:4400/me'), {
      incoming: { socket: { remoteAddress: '10.0.0.7' } },
    });
    expect(beyond.status).toBe(403);
    // A proxy on this machine, or a platform that names no connection: what they say of the address a client may have written.
    const forwarded = await ask('/me', { headers: { 'x-forwarded-for': '127.0.0.1' } });
    expect([forwarded.status, await forwarded.json()]).toMatchObject([
      403,
      { detail: expect.stringContaining('Give createHandler authenticate') },
    ]);
  });

  it('asks authenticate before everything but open paths, and gives its response as it is', async () => {
    const { ask } = served({ authenticate });
    const refused = await ask('/me');
    expect([refused.status, refused.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect((await ask('/nowhere')).status).toBe(401);
    expect(await (await ask('/card')).json()).toEqual({ name: 'card' });
    expect(await (await ask('/me', as('ana'))).json()).toEqual({ tenant: 'acme', user: 'ana' });
  });

  it('finds the runs of a visitor, and none of others', async () => {
    const made = served({ authenticate });
    const run = await start(made, { identity: { tenant: 'acme', user: 'ana', session: 's', run: 'run_of_ana' } });
    expect((await made.ask(`/run/${run.id}`, as('ana'))).status).toBe(200);
    const foreign = await made.ask(`/run/${run.id}`, as('ben'));
    const missing = await made.ask('/run/run_of_nobody', as('ben'));
    expect([foreign.status, missing.status]).toEqual([404, 404]);
    const words = async (answer: Response): Promise<string> => (await answer.text()).replaceAll(/run_of_\w+/g, '');
    // Nobody finds out which runs others have.
    expect(await words(foreign)).toBe(await words(missing));
    made.release();
  });

  it('says nothing of what is wrong inside, and tells onFault of it', async () => {
    const faults: unknown[] = [];
    const { ask } = served({ onFault: (error) => void faults.push(error) });
    for (const path of ['/broken', '/away']) {
      const answer = await ask(path);
      const text = await answer.text();
      expect(answer.status).toBeGreaterThanOrEqual(500);
      expect(answer.headers.get('content-type')).toBe('application/problem+json');
      expect(text).not.toMatch(/secret|pass|etc/);
    }
    expect(faults.map(String)).toEqual([expect.stringContaining('secret'), expect.stringContaining('does not answer')]);
  });

  it('refuses pages of other origins, bodies that are too large, and names of hosts that are not its own', async () => {
    const { ask } = served({ origins: ['https://app.example.com'], maxBodyBytes: 10 });
    const post = (body: string, headers: Record<string, string> = {}) =>
      ask('/echo', { method: 'POST', body, headers });
    expect((await post('0123456789')).status).toBe(200);
    const large = await post('0123456789+');
    expect([large.status, await codeOf(large)]).toEqual([413, 'request_too_large']);
    const pieces = new ReadableStream({
      start: (controller) => {
        for (const piece of ['01234', '56789', '+']) controller.enqueue(new TextEncoder().encode(piece));
        controller.close();
      },
    });
    expect((await ask('/echo', { method: 'POST', body: pieces, duplex: 'half' } as RequestInit)).status).toBe(413);
    expect((await post('1', { origin: 'https://evil.example' })).status).toBe(403);
    const allowed = await post('1', { origin: 'https://app.example.com' });
    expect(allowed.headers.get('access-control-allow-origin')).toBe('https://app.example.com');
    const own = await post('1', { origin: 'http://localhost:4400', host: 'localhost:4400' });
    expect([own.status, own.headers.get('access-control-expose-headers')]).toEqual([200, null]);
    // A cache may keep it, and give it to a page of another origin.
    expect((await ask('/me')).headers.get('vary')).toBe('Origin');
    const ports = served({ origins: ['http://localhost:*'] });
    const from = async (origin: string) =>
      (await ports.ask('/me', { headers: { origin, host: 'localhost:4400' } })).status;
    expect(await from('http://localhost:5173')).toBe(200);
    expect(await from('http://localhost.evil.example:5173')).toBe(403);
    expect(await from('https://localhost:5173')).toBe(403);
    const named = served({ hosts: ['api.example.com'] });
    expect((await named.handler(new Request('http://api.example.com/me'))).status).toBe(200);
    expect((await named.handler(new Request('http://localhost/me'))).status).toBe(403);
  });

  it('takes bodies that do not say how long they are, and counts them', async () => {
    const { handler } = served({ maxBodyBytes: 10 });
    const { port, close } = await serve(handler, { port: 0 });
    onTestFinished(close);
    const post = (pieces: readonly string[], method = 'POST') =>
      fetch(`http://127.0.0.1:${port}/echo`, {
        method,
        body: ReadableStream.from(pieces.map((piece) => new TextEncoder().encode(piece))),
        duplex: 'half',
      } as RequestInit);
    const taken = await post(['01234', '56789']);
    expect([taken.status, await taken.json()]).toEqual([200, { bytes: 10 }]);
    const large = await post(['01234', '56789', '+']);
    expect([large.status, await codeOf(large)]).toEqual([413, 'request_too_large']);
    // Node sends neither a length nor a body.
    expect((await fetch(`http://127.0.0.1:${port}/echo`, { method: 'DELETE' })).status).toBe(404);
  });

  it('gives a user so many streams and no more, until one is left', async () => {
    const made = served({ authenticate, maxStreamsPerUser: 1 });
    const run = await start(made, { identity: { tenant: 'acme', user: 'ana', session: 's', run: 'run_of_ana' } });
    const { port, close } = await serve(made.handler, { port: 0 });
    onTestFinished(close);
    const url = `http://127.0.0.1:${port}/events/${run.id}`;
    const left = new AbortController();
    const first = await fetch(url, { ...as('ana'), signal: left.signal });
    const reader = first.body?.getReader();
    expect(new TextDecoder().decode((await reader?.read())?.value)).toContain('run.started');
    expect((await fetch(url, as('ana'))).status).toBe(429);
    left.abort();
    await until(async () => (await fetch(url, { ...as('ana'), method: 'HEAD' })).status === 200);
    made.release();
    const text = await (await fetch(url, as('ana'))).text();
    expect(text).toMatch(/planner\.finish"}\n\n$/);
    expect(await run.result()).toMatchObject({ status: 'finished' });
  });

  it('takes a body in pieces, and requests without one, also under Node', async () => {
    const { port, close } = await serve(served().handler, { port: 0 });
    onTestFinished(close);
    const body = new ReadableStream({
      start: (controller) => {
        controller.enqueue(new TextEncoder().encode('01234'));
        controller.close();
      },
    });
    const url = `http://127.0.0.1:${port}/echo`;
    expect(await (await fetch(url, { method: 'POST', body, duplex: 'half' } as RequestInit)).json()).toEqual({
      bytes: 5,
    });
    expect((await fetch(url, { method: 'DELETE' })).status).toBe(404);
  });

  it('is served by Node’s http in a program of the user’s own', async () => {
    const { handler } = served({ authenticate });
    const { getRequestListener } = await import('@hono/node-server');
    const server = createServer(getRequestListener(handler));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const address = server.address() as { port: number };
    const answer = await fetch(`http://127.0.0.1:${address.port}/me`, as('ana'));
    expect(await answer.json()).toEqual({ tenant: 'acme', user: 'ana' });
  });
});
