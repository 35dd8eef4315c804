/**
 * The process is killed among calls of tools that providers define, and while their provider waits for leave; its successor while the
 * second request is under way. Each next process asks what an undisturbed run asks; a shell's call that may have happened is not made again.
 */
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Json, type JsonObject, local } from '#core';
import { react } from '#planners/react';
import { builtFile } from '../kit/built.ts';
import { bear } from '../kit/lives.ts';
import { start, world } from '../kit/world.ts';
import { withoutMadeIds } from './both.ts';
import { answerIfAsked, answersOf, KILLED_OWN, type KilledOwn } from './own/killed.ts';
import { QUERY } from './own/play.ts';
import { anywhere, wire } from './pieces.ts';

type Life = 'calls' | 'request' | 'end';

const CHILD = builtFile('test/wire/kill-own-child.ts');
const folder = mkdtempSync(join(tmpdir(), 'pilotage-own-'));
/** The requests of each run, in all of its lives. */
const asked = new Map<string, JsonObject[]>(KILLED_OWN.map(({ id }) => [id, []]));
const said: string[] = [];
let life: Life = 'calls';
let onRequest: () => void = () => {};

const server = createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  const killed = KILLED_OWN.find((each) => request.url?.startsWith(`/${each.id}/`)) as KilledOwn;
  asked.get(killed.id)?.push(JSON.parse(text) as JsonObject);
  onRequest();
  if (life === 'request') return;
  const { mime, status, body } = answersOf(killed)[life === 'calls' ? 0 : 1];
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
    said.push(`${now}: ${line}`);
    count('lines');
  });
  return end;
}

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await live(url, 'calls', KILLED_OWN.length, Infinity)).toBe(true);
  expect(await live(url, 'request', Infinity, KILLED_OWN.length)).toBe(true);
  expect(await live(url, 'end', Infinity, Infinity)).toBe(false);
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

it.each(KILLED_OWN.map((each) => [each.id, each] as const))('%s', async (id, killed) => {
  const { fetch, requests } = wire(answersOf(killed), anywhere(11));
  const model = killed.protocol.model({ baseURL: 'http://provider.test', fetch });
  // What was under way at the kill is settled with the value that it has here.
  const made = world({ planner: react({ model }), tools: killed.tools((value) => Promise.resolve(value)) });
  const run = await start(made, { query: QUERY, identity: local('ana', { run: id }) });
  if (killed.stream) for await (const _ of run.events());
  await answerIfAsked(run, killed);
  if (killed.stream) for await (const _ of run.events());
  await run.result();
  const [first, second] = requests.map(({ body }) => body);
  const [before, resumed, ...again] = asked.get(id) ?? [];
  expect(again).toEqual([resumed]);
  expect(settled([before, resumed])).toEqual(settled([first, second]));
  expect(said).toContain(`end: ended ${id} finished`);
  const entered = said.filter((line) => line.endsWith(`entered ${id}`)).length;
  expect(entered).toBe({ leave: 0, once: 1 }[id.split('_')[1] ?? ''] ?? 2);
});

it('nothing of what only the provider is told is on the disk', () => {
  for (const name of readdirSync(folder).filter((each) => each.startsWith('pilotage.db')))
    expect(readFileSync(join(folder, name)).includes('never-recorded')).toBe(false);
});

/** Of an undisturbed run the clock is another one, and so are ids that a package makes up. */
function settled(bodies: readonly (JsonObject | undefined)[]): Json {
  const text = JSON.stringify(bodies).replaceAll(/Today is \d{4}-\d\d-\d\d/g, 'Today');
  return withoutMadeIds(JSON.parse(text) as Json);
}
