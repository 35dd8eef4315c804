/**
 * The process is killed between two pieces of a reply, twice: while the rest of what was cut off is asked for, and while the rest of that is.
 * Each next process asks what the one before it asked, and the answer is whole.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { JsonObject } from '#core';
import { builtFile } from '../kit/built.ts';
import { bear } from '../kit/lives.ts';
import { KILLED, type Killed, LAST, PIECES } from './killed.ts';
import { answerOf, anywhere } from './pieces.ts';

const CHILD = builtFile('test/wire/kill-child.ts');
const folder = mkdtempSync(join(tmpdir(), 'pilotage-pieces-'));
/** The requests of each run, in all of its lives. */
const asked = new Map<string, JsonObject[]>(KILLED.map(({ id }) => [id, []]));
const answers: string[] = [];
/** How many pieces are given before the process dies: its next request gets no answer. */
let given = 1;
let onHung: () => void = () => {};

const server = createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  const { id, provider, stream } = KILLED.find((each) => request.url?.startsWith(`/${each.id}/`)) as Killed;
  asked.get(id)?.push(JSON.parse(text) as JsonObject);
  const saying = [...PIECES(provider), LAST][pieceOf(id)];
  if (saying === undefined || pieceOf(id) >= given) return void onHung();
  const { mime, status, body } = answerOf(provider, saying, stream);
  response.writeHead(status, { 'content-type': mime });
  for (const piece of anywhere(11)(body)) response.write(piece);
  response.end();
});

/** Requests that got no answer are made again by the next process. */
const hung = new Map<string, number>();
function pieceOf(id: string): number {
  return (asked.get(id)?.length ?? 0) - 1 - (hung.get(id) ?? 0);
}

/** Lives until all runs wait for an answer, or to the end. @returns whether it was killed. */
function live(url: string, life: string, pieces: number): Promise<boolean> {
  given = pieces;
  let waiting = KILLED.length;
  onHung = () => {
    waiting -= 1;
    if (waiting > 0) return;
    for (const { id } of KILLED) hung.set(id, (hung.get(id) ?? 0) + 1);
    child.kill('SIGKILL');
  };
  const { child, end } = bear({ program: CHILD, folder, args: [url, life] }, (line) => {
    if (line.startsWith('answer')) answers.push(line);
  });
  return end;
}

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect(await live(url, 'calls', 1)).toBe(true);
  expect(await live(url, 'request', 2)).toBe(true);
  expect(await live(url, 'end', Infinity)).toBe(false);
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

it.each(KILLED.map((each) => [each.provider.name, each.stream, each] as const))('%s (streamed: %s)', (_name, _stream, {
  id,
}) => {
  const [, second, again, third, last, ...more] = asked.get(id) ?? [];
  expect(more).toEqual([]);
  expect(again).toEqual(second);
  expect(last).toEqual(third);
  expect(answers).toContain(`answer ${id} One, two, It is sunny.`);
});
