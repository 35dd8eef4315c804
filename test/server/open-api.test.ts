/** The description of our own API: it fits the routes that there are, and what they answer fits it. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { local } from '#core';
import { schemaErrors } from '#schema';
import { webhooks } from '#server';
import { call, finish, script } from '../kit/decisions.ts';
import { projectDir } from '../kit/project.ts';
import { make } from '../kit/tools.ts';
import { world } from '../kit/world.ts';
import { serveApi } from './api-kit.ts';

interface Operation {
  readonly operationId: string;
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly schema: object }[];
  readonly responses: Readonly<
    Record<string, { readonly $ref?: string; readonly content?: Readonly<Record<string, { schema: object }>> }>
  >;
}
interface Document {
  readonly openapi: string;
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

function refsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, part]) => (key === '$ref' ? [String(part)] : refsIn(part)));
}

function resolve(document: object, ref: string): unknown {
  return ref
    .replace('#/', '')
    .split('/')
    .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document);
}

describe('the description', () => {
  it('is OpenAPI 3.1 whose references lead somewhere, of exactly the routes that there are', async () => {
    const { ask, handler } = await serveApi(world({ planner: script(finish()) }), { path: '/api' });
    const answer = await ask('/openapi.json', { who: '' });
    const document = (await answer.json()) as Document;
    expect(document.openapi).toBe('3.1.0');
    for (const ref of refsIn(document)) expect(resolve(document, ref), ref).toBeTypeOf('object');
    const described = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path.replace(/\{(\w+)\}/g, ':$1')}`),
    );
    const served = handler.app.routes
      .filter(({ method, path }) => METHODS.includes(method.toLowerCase()) && path.startsWith('/api'))
      .map(({ method, path }) => `${method.toLowerCase()} ${path}`);
    expect([...described].sort()).toEqual([...served].sort());
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
    for (const { responses, operationId } of operations) {
      expect(responses['default'], operationId).toEqual({ $ref: '#/components/responses/Problem' });
      expect(
        Object.keys(responses).some((status) => status.startsWith('2')),
        operationId,
      ).toBe(true);
    }
    const page = readFileSync(join(projectDir, 'docs/server.md'), 'utf8');
    for (const path of Object.keys(document.paths)) expect(page).toContain(`${path.replace('/api', '')}\``);
    for (const [path, methods] of Object.entries(document.paths))
      for (const { parameters } of Object.values(methods))
        expect(parameters.filter((each) => each.in === 'path').map(({ name }) => `{${name}}`)).toEqual(
          path.match(/\{\w+\}/g) ?? [],
        );
  });

  it('is shown by a page of ours that asks nobody else', async () => {
    const { ask } = await serveApi(world({ planner: script(finish()) }));
    const page = await ask('/docs', { who: '' });
    const text = await page.text();
    expect(page.headers.get('content-security-policy')).toMatch(/default-src 'none'/);
    expect(text).not.toMatch(/https?:\/\//);
    expect(text.length).toBeLessThan(6_000);
  });

  it('fits what is answered', async () => {
    const approved = make('pay', async () => 1, { needsApproval: true });
    const made = world({ planner: script(call('pay'), finish('done')), tools: [approved] });
    const { ask } = await serveApi(made);
    const document = (await (await ask('/openapi.json')).json()) as Document;
    const tried = new Set<string>();
    /** @returns the body. */
    const fits = async (
      method: string,
      path: string,
      ids: Record<string, string> = {},
      body?: object,
      query = '',
      who = 'acme/ana',
    ) => {
      tried.add(`${method} ${path}`);
      const url = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? ''));
      const init = body === undefined ? {} : { body: JSON.stringify(body) };
      const answer = await ask(`${url}${query}`, { method: method.toUpperCase(), who, ...init });
      const operation = document.paths[path]?.[method];
      const text = await answer.text();
      const said = operation?.responses[String(answer.status)];
      expect(said, `${method} ${path}: ${answer.status} ${text}`).toBeDefined();
      const schema = said?.content?.['application/json']?.schema;
      if (answer.status === 204) return expect(text).toBe('');
      const value: unknown = JSON.parse(text);
      const whole = { ...schema, components: document.components };
      expect(schemaErrors(whole as never, value as never), `${method} ${path}: ${text}`).toEqual([]);
      return value;
    };
    const { run } = (await fits('post', '/runs', {}, { query: 'q', session: 's' })) as { run: string };
    await fits('get', '/runs/{run}/result', { run }, undefined, '?waitMs=5000');
    await fits('get', '/waiting');
    await fits('post', '/runs/{run}/answer', { run }, { answer: { kind: 'approve', remember: { scope: 'session' } } });
    await fits('post', '/answers', {}, { answers: [{ run, answer: { kind: 'approve' } }] });
    await fits('get', '/runs/{run}/result', { run }, undefined, '?waitMs=5000');
    const [rule] = ((await fits('get', '/rules')) as { items: { id: string }[] }).items;
    await fits('delete', '/rules/{rule}', { rule: rule?.id ?? '' });
    for (const what of ['', '/state', '/trajectory', '/plan', '/streams', '/events', '/streams/{stream}'])
      await fits('get', `/runs/{run}${what}`, { run, stream: 'log' });
    const fork = (await fits('post', '/runs/{run}/fork', { run }, { step: 0 })) as { run: string };
    await fits('post', '/runs/{run}/replay', { run });
    await fits('get', '/compare', {}, undefined, `?a=${run}&b=${fork.run}`);
    await fits('post', '/runs/{run}/cancel', { run: fork.run }, { reason: 'enough' });
    await fits('get', '/runs');
    const { turn } = (await fits('post', '/sessions/{session}/messages', { session: 'c' }, { text: 'hello' })) as {
      turn: string;
    };
    for (const what of ['', '/messages', '/turns', '/branches'])
      await fits('get', `/sessions/{session}${what}`, { session: 'c' });
    await fits('get', '/sessions/{session}/result', { session: 'c' }, undefined, '?waitMs=5000');
    await fits('patch', '/sessions/{session}', { session: 'c' }, { title: 'A talk' });
    await fits('post', '/sessions/{session}/cancel', { session: 'c' }, { waiting: true });
    await fits('post', '/sessions/{session}/turns/{turn}/regenerate', { session: 'c', turn }, {});
    await fits('post', '/sessions/{session}/turns/{turn}/edit', { session: 'c', turn }, { text: 'hello again' });
    await fits('post', '/sessions/{session}/cancel', { session: 'c' }, { waiting: true });
    await made.runtime.session('c', { identity: { tenant: 'acme', user: 'ana' } }).result();
    await fits('post', '/sessions/{session}/switch', { session: 'c' }, { turn });
    await fits('get', '/sessions');
    await fits('put', '/schedules/{schedule}', { schedule: 'daily' }, { query: 'q', cron: '0 8 * * *' });
    await fits('get', '/schedules');
    for (const [method, what] of [
      ['get', ''],
      ['post', '/pause'],
      ['post', '/resume'],
      ['post', '/trigger'],
      ['delete', ''],
    ] as const)
      await fits(method, `/schedules/{schedule}${what}`, { schedule: 'daily' });
    await fits('post', '/events/{key}', { key: 'order-17' }, { paid: true });
    await fits('get', '/runs/{run}/diagnosis', { run }, undefined, '', 'acme/boss/admin');
    await fits('post', '/runs/{run}/repair', { run }, {}, '', 'acme/boss/admin');
    await webhooks({ runtime: made.runtime, allowHosts: ['127.0.0.1'] }).put({
      id: 'all',
      tenant: 'acme',
      url: 'http://127.0.0.1/',
    });
    for (const path of ['/webhooks', '/webhooks/{webhook}'])
      await fits('get', path, { webhook: 'all' }, undefined, '', 'acme/boss/admin');
    await made.runtime.store.of({ tenant: 'acme', user: 'ana' }).put(['memory', 'facts'], 'color', { text: 'blue' });
    await fits('get', '/memory', {}, undefined, '?limit=1');
    for (const method of ['get', 'delete'])
      await fits(method, '/memory/{key}', { key: 'color' }, undefined, '?namespace=memory&namespace=facts');
    await fits('post', '/runs/{run}/advance', { run }, { forMs: 50 });
    await fits('post', '/erase', {}, { user: 'nobody' }, '', 'acme/boss/admin');
    for (const path of ['/agents', '/healthz', '/readyz', '/openapi.json']) await fits('get', path);
    const left = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods)
        .map((method) => `${method} ${path}`)
        .filter((route) => !tried.has(route)),
    );
    const elsewhere = ['cancel-call', 'pause', 'resume', 'retry', 'send', 'steer'].map(
      (what) => `post /runs/{run}/${what}`,
    );
    const others = [
      'get /sessions/{session}/events',
      'get /runs/{run}/artifacts/{artifact}',
      'delete /sessions/{session}',
      'post /advance',
      'get /docs',
    ];
    expect(left.sort()).toEqual([...elsewhere, ...others].sort());
    expect(local('x').tenant).toBe('local');
  });
});
