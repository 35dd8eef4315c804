/** Files by their URLs: fetched once, when they are accepted, from where this process may look. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { local } from '#core';
import type { FileOptions } from '#messages';
import { react } from '#planners/react';
import { fetchFile, isPublicAddress } from '#runtime/fetch-file';
import { scriptedModel } from '#testing';
import { asks, finish, script } from '../kit/decisions.ts';
import { entriesOf } from '../kit/run-record.ts';
import { start, world } from '../kit/world.ts';

const PNG = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
type Answers = (request: IncomingMessage, response: ServerResponse) => void;

const asked: string[] = [];
const answers: Record<string, Answers> = {
  '/a%20b.png': (_, response) => response.setHeader('content-type', 'image/jpeg').end(PNG),
  '/page': (_, response) => response.setHeader('content-type', 'text/html; charset=utf-8').end('<html>'),
  '/fake.png': (_, response) => response.setHeader('content-type', 'image/png').end('not a picture'),
  '/large': (_, response) => response.setHeader('content-length', '5000').end(Buffer.alloc(5_000)),
  '/larger': (_, response) => {
    for (let piece = 0; piece < 50; piece += 1) response.write(Buffer.alloc(100));
    response.end();
  },
  '/empty': (_, response) => void response.end(),
  '/gone': (_, response) => response.writeHead(404).end('gone'),
  '/packed': (_, response) => response.setHeader('content-encoding', 'gzip').end('x'),
  '/slow': (_, response) => response.writeHead(200).flushHeaders(),
  '/once': (_, response) => response.writeHead(302, { location: '/a%20b.png' }).end(),
  '/round': (_, response) => response.writeHead(302, { location: '/round' }).end(),
  '/inside': (_, response) => response.writeHead(302, { location: 'http://127.0.0.2/secret' }).end(),
  '/name': (_, response) => response.writeHead(307, { location: 'http://localhost/secret' }).end(),
  '/file': (_, response) => response.writeHead(301, { location: 'file:///etc/passwd' }).end(),
  '/known': (_, response) => response.writeHead(301, { location: 'http://me:pw@127.0.0.1/' }).end(),
};

let server: Server;
let base = '';
let port = 0;
beforeAll(async () => {
  server = createServer((request, response) => {
    asked.push(request.url ?? '');
    (answers[request.url ?? ''] ?? answers['/gone'])?.(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  ({ port } = server.address() as AddressInfo);
  base = `http://127.0.0.1:${port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const ALLOWED: FileOptions = { fetch: { allowHosts: ['127.0.0.1'] } };

describe('a file by its URL', () => {
  it('is fetched once when a run is started, kept as an artifact, and called what its bytes are', async () => {
    const model = scriptedModel([{ text: 'done' }]);
    const made = world({ planner: react({ model: { model, inputs: ['image/*'] } }), files: ALLOWED });
    const before = asked.length;
    const run = await start(made, { query: 'See.', inputs: [{ url: `${base}/a%20b.png` }] });
    await run.result();
    expect(asked.slice(before)).toEqual(['/a%20b.png']);
    expect(model.calls[0]?.prompt.at(-1)?.content).toMatchObject([
      { text: 'See.' },
      { type: 'file', mediaType: 'image/png', filename: 'a b.png', data: { data: new Uint8Array(PNG) } },
    ]);
    expect((await run.state()).context.inputs).toMatchObject([
      { mime: 'image/png', fileName: 'a b.png', sizeBytes: 8 },
    ]);
  });

  it('is fetched for a message, by the names that are given, also behind redirects', async () => {
    const made = world({ planner: script(asks), files: ALLOWED });
    const run = await start(made);
    await run.result();
    await run.send({
      inputs: [{ url: `${base}/once`, mime: 'image/png', fileName: 'own.png' }, { url: `${base}/page` }],
    });
    await run.result();
    const [control] = await entriesOf(made.journal, run, 'control');
    expect(control?.control.payload).toMatchObject({
      inputs: [{ fileName: 'own.png' }, { fileName: 'page', mime: 'text/html' }],
    });
  });

  it('that is no picture is not kept as one', async () => {
    expect(await fetchFile({ url: `${base}/fake.png` }, ALLOWED)).toMatchObject({ mime: 'application/octet-stream' });
  });

  it.each([
    ['/large', { maxBytes: 1_000 }, 'url_refused', 'larger than 1000 bytes'],
    ['/larger', { maxBytes: 1_000 }, 'url_refused', 'larger than 1000 bytes'],
    ['/empty', {}, 'url_failed', 'empty'],
    ['/gone', {}, 'url_failed', 'status 404'],
    ['/packed', {}, 'url_failed', 'gzip'],
    ['/slow', { timeoutMs: 50 }, 'url_failed', 'longer than 50 ms'],
    ['/round', {}, 'url_failed', 'more than 3 times'],
    ['/inside', {}, 'url_refused', '127.0.0.2 is not among the hosts'],
    ['/file', {}, 'url_refused', 'leads to file:'],
    ['/known', {}, 'url_refused', 'user name or a password'],
  ])('is refused when it is not to be had: %s', async (path, options, code, says) => {
    const files = { fetch: { allowHosts: ['127.0.0.1'], ...options } };
    const error: Error & { code?: string } = await fetchFile({ url: `${base}${path}` }, files).then(
      () => new Error('It was fetched.'),
      (thrown) => thrown,
    );
    expect(error.code).toBe(code);
    expect(error.message).toContain(says);
  });

  it('says nothing of what stands behind its path, where keys are', async () => {
    const error = await fetchFile({ url: `${base}/gone?key=secret` }, ALLOWED).catch((thrown: Error) => thrown);
    expect((error as Error).message).toContain(`${base}/gone could not be fetched`);
    expect((error as Error).message).not.toContain('secret');
  });

  it('is refused where the runtime fetches none, and then nothing is started', async () => {
    const made = world({ planner: () => finish() });
    await expect(start(made, { inputs: [{ url: `${base}/page` }] })).rejects.toMatchObject({
      code: 'url_refused',
      message: expect.stringContaining('files: { fetch:'),
    });
    expect(await made.journal.list({})).toEqual([]);
    expect((await made.journal.artifacts.list(local('ana'), 5)).total).toBe(0);
  });

  it.each([
    'http://127.0.0.1/',
    'http://0x7f.1/',
    'http://2130706433/',
    'http://[::1]/',
    'http://[::ffff:127.0.0.1]/',
    'http://169.254.169.254/latest/meta-data',
    'http://[fd00::1]/',
    'http://0.0.0.0/',
    'http://localhost/',
  ])('of a private address is refused with fetch: true: %s', async (url) => {
    await expect(fetchFile({ url }, { fetch: true })).rejects.toMatchObject({ code: 'url_refused' });
  });

  it('of a name that leads to a private address is refused, also when the name is listed and a redirect leads there', async () => {
    const files = { fetch: { allowHosts: ['localhost', '127.0.0.1'] } };
    await expect(fetchFile({ url: `http://localhost:${port}/page` }, files)).rejects.toMatchObject({
      message: expect.stringMatching(/^.*localhost does not lead to a public address\.$/),
    });
    await expect(fetchFile({ url: `${base}/name` }, files)).rejects.toMatchObject({ code: 'url_refused' });
  });

  it('is read from the address that was checked, and the name is not asked for again', async () => {
    const names: string[] = [];
    const ports = {
      resolve: async (host: string) => {
        names.push(host);
        return [{ address: '127.0.0.1', family: 4 }];
      },
      isPublic: () => true,
    };
    // No name server knows the name: the connection is made to what the port has said.
    const file = await fetchFile({ url: `http://files.invalid:${port}/page` }, { fetch: true }, ports);
    expect(Buffer.from(file.bytes).toString()).toBe('<html>');
    expect(names).toEqual(['files.invalid']);
    const mixed = {
      ...ports,
      resolve: async () => [
        { address: '1.1.1.1', family: 4 },
        { address: '10.0.0.1', family: 4 },
      ],
    };
    await expect(
      fetchFile({ url: 'http://files.invalid/' }, { fetch: true }, { ...mixed, isPublic: isPublicAddress }),
    ).rejects.toMatchObject({ message: expect.stringMatching(/invalid does not lead to a public address\.$/) });
  });

  it.each([
    'ftp://a.example/x',
    'file:///etc/passwd',
    'data:text/plain,x',
    'nothing',
    'http://u:p@a.example/',
  ])('must be an address on the web without a password: %s', async (url) => {
    await expect(fetchFile({ url }, { fetch: true })).rejects.toMatchObject({ code: 'url_refused' });
  });
});

it.each([
  ['1.1.1.1', true],
  ['172.32.0.1', true],
  ['100.63.255.255', true],
  ['2606:4700::1111', true],
  ['172.31.0.1', false],
  ['100.64.0.1', false],
  ['192.168.1.1', false],
  ['198.18.0.1', false],
  ['224.0.0.1', false],
  ['255.255.255.255', false],
  ['::', false],
  ['::1', false],
  ['fe80::1', false],
  ['fc00::1', false],
  ['ff02::1', false],
  ['::ffff:1.1.1.1', false],
  ['64:ff9b::7f00:1', false],
  ['2002:7f00:1::', false],
  ['2001::1', false],
  ['a.example', false],
])('the address %s is public: %s', (address, is) => {
  expect(isPublicAddress(address)).toBe(is);
});

it('the options are checked', () => {
  for (const files of [{ fetch: 'yes' }, { fetch: { hosts: [] } }, { fetch: { allowHosts: [1] } }, { other: true }]) {
    expect(() => world({ planner: () => finish(), files: files as never })).toThrowError(
      expect.objectContaining({ code: 'invalid_config' }),
    );
  }
});
