/**
 * The process is killed between a reply with calls and the second request, and its successor while that request is under way: each next
 * process asks what an undisturbed run asks. One process has the runs of all providers; their models are behind a loopback server.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Json, JsonObject } from '#core';
import { builtFile } from '../kit/built.ts';
import { bear } from '../kit/lives.ts';
import { askOurs, withoutMadeIds } from './both.ts';
import { fullReply, KILLED, type Killed, LAST } from './killed.ts';
import { answerOf, anywhere, wire } from './pieces.ts';

/** The first process hangs in the calls, the second waits for the answer to its request, the third comes to the end. */
type Life = 'calls' | 'request' | 'end';

const CHILD = builtFile('test/wire/kill-child.ts');
const folder = mkdtempSync(join(tmpdir(), 'pilotage-wire-'));
/** The requests of each run, in all of its lives. */
const asked = new Map<string, JsonObject[]>(KILLED.map(({ id }) => [id, []]));
const ends: string[] = [];
let life: Life = 'calls';
let onRequest: () => void = () => {};

const server = createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  const { id, provider, stream } = KILLED.find((each) => request.url?.startsWith(`/${each.id}/`)) as Killed;
  asked.get(id)?.push(JSON.parse(text) as JsonObject);
  onRequest();
  if (life === 'request') return;
  const { mime, status, body } = answerOf(provider, life === 'calls' ? fullReply(provider) : LAST, stream);
  response.writeHead(status, { 'content-type': mime });
  for (const piece of anywhere(11)(body)) response.write(piece);
  response.end();
});

/** Lives until it has come to the end, or so many lines or requests have come. @returns whether it was killed. */
function live(url: string, now: Life, lines: number, requests: number): Promise<boolean> {
  life = now;
  const left = { lines, requests };
  const count = (what: keyof typeof left): void => {
    left[what] -= 1;
    if (left[what] === 0) child.kill('SIGKILL');
  };
  onRequest = () => count('requests');
  const { child, end } = bear({ program: CHILD, folder, args: [url, now] }, (line) => {
    if (line.startsWith('ended')) ends.push(line);
    else count('lines');
  });
  return end;
}

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const calls = 2 * KILLED.length;
  expect(await live(url, 'calls', calls, Infinity)).toBe(true);
  expect(await live(url, 'request', Infinity, KILLED.length)).toBe(true);
  expect(await live(url, 'end', Infinity, Infinity)).toBe(false);
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

it.each(
  KILLED.map((each) => [each.provider.name, each.stream, each] as const),
)('%s (streamed: %s)', async (_name, _stream, { id, provider, stream }) => {
  const answers = [fullReply(provider), LAST].map((saying) => answerOf(provider, saying, stream));
  const { fetch, requests } = wire(answers, anywhere(11));
  await askOurs(provider.model({ baseURL: 'http://provider.test', fetch }), stream, id);
  const [first, second] = requests.map(({ body }) => body);
  const [before, resumed, ...again] = asked.get(id) ?? [];
  expect(again).toEqual([resumed]);
  expect(settled([before, resumed])).toEqual(settled([first, second]));
  expect(ends).toContain(`ended ${id} finished`);
});

/** Of an undisturbed run the clock is another one, and so are ids that a package makes up. */
function settled(bodies: readonly (JsonObject | undefined)[]): Json {
  const text = JSON.stringify(bodies).replaceAll(/Today is \d{4}-\d\d-\d\d/g, 'Today');
  return withoutMadeIds(JSON.parse(text) as Json);
}
