/**
 * Old pictures leave the history in one go. Each request begins with the whole of the one before, but where that happens; and every process
 * leaves out the same.
 */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type JsonObject, local } from '#core';
import { type Journal, memoryJournal } from '#journal';
import { react } from '#planners/react';
import { createRuntime, type Runtime } from '#runtime';
import { builtFile } from '../kit/built.ts';
import { bear } from '../kit/lives.ts';
import { base64, pathsOf, png, storedShot } from './pictures.ts';
import { answerOf, type Wire, whole, wire } from './pieces.ts';
import { anthropic } from './replies/anthropic.ts';
import type { Said } from './replies/saying.ts';

const STEPS = 40;
/** So many stay when the others leave, and twice as many are the most. */
const KEPT = 8;
const LAST = { said: [{ text: 'Done.' }], stop: 'end' } as const;

function calls(step: number, many = 1): readonly Said[] {
  return Array.from({ length: many }, (_, at) => ({
    call: `call_${step}_${at}`,
    args: `{"city":"${step * many + at}"}`,
  }));
}

/** A run that takes pictures at each step. */
function looking(journal: Journal, many = 1): { readonly runtime: Runtime; readonly sent: Wire } {
  const said = Array.from({ length: STEPS }, (_, step) => ({ said: calls(step, many), stop: 'calls' as const }));
  const sent = wire(
    [...said, LAST].map((saying) => answerOf(anthropic, saying, false)),
    whole,
  );
  const model = anthropic.model({ baseURL: 'http://provider.test', fetch: sent.fetch });
  const runtime = createRuntime({ planner: react({ model }), tools: [storedShot()], journal });
  return { runtime, sent };
}

/** The messages of a request, without the marks of the cache, which move. */
function messagesOf(body: JsonObject | undefined): readonly string[] {
  const messages = body?.['messages'] as readonly JsonObject[];
  return messages.map((message) =>
    JSON.stringify(message, (key, value) => (key === 'cache_control' ? undefined : value)),
  );
}

const picturesIn = (body: JsonObject | undefined): number => pathsOf(body?.['messages'] as never, 'iVBORw0KGgo').length;

it('of one picture a step: at most twice as many as stay, and the beginning changes only when the old ones leave', async () => {
  const { runtime, sent } = looking(memoryJournal());
  const run = await runtime.start('Watch.', { identity: local('ana'), limits: { steps: 100 } });
  expect(await run.result()).toMatchObject({ answer: 'Done.' });
  const bodies = sent.requests.map(({ body }) => body);
  const counts = bodies.map(picturesIn);
  const breaks = bodies.flatMap((body, index) => {
    const before = index === 0 ? [] : messagesOf(bodies[index - 1]);
    return messagesOf(body).slice(0, before.length).join() === before.join() ? [] : [index];
  });
  expect(Math.max(...counts)).toBe(2 * KEPT);
  expect(counts.slice(0, 18)).toEqual([...Array.from({ length: 17 }, (_, step) => step), KEPT]);
  expect(breaks).toEqual([17, 26, 35]);
  // The newest is always there, and what left is told by its reference.
  for (const [step, body] of bodies.entries())
    if (step > 0) expect(pathsOf(body, base64(png(step - 1)))).toHaveLength(1);
  expect(JSON.stringify(bodies[17])).toContain('A file of this result, by reference:');
});

it('the pictures of the newest step are all shown', async () => {
  const { runtime, sent } = looking(memoryJournal(), 20);
  const run = await runtime.start('Watch.', { identity: local('ana'), limits: { steps: 3 } });
  await run.result();
  expect(sent.requests.map(({ body }) => picturesIn(body))).toEqual([0, 20, 20]);
});

describe('killed in the middle', () => {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-old-pictures-'));
  const identity = local('ana', { run: 'run_watch' });
  const asked = new Map<number, string[]>();
  const lines: string[] = [];
  /** The request with so many pictures taken is not answered. */
  let hangs = Number.POSITIVE_INFINITY;
  let onHanging = (): void => {};
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const body = JSON.parse(text) as JsonObject;
    const taken = text.split('"tool_use_id"').length - 1;
    asked.set(taken, [...(asked.get(taken) ?? []), messagesOf(body).join()]);
    if (taken === hangs) return onHanging();
    const saying = taken < STEPS ? { said: calls(taken), stop: 'calls' as const } : LAST;
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(anthropic.whole(saying)));
  });

  /** @returns whether it was killed: when it says the line, or when its request hangs. */
  function live(url: string, hold: string): Promise<boolean> {
    const { child, end } = bear(
      { program: builtFile('test/wire/pictures-child.ts'), folder, args: [url, hold] },
      (line) => {
        lines.push(line);
        if (line === `entered ${hold}`) child.kill('SIGKILL');
      },
    );
    onHanging = () => child.kill('SIGKILL');
    return end;
  }

  afterAll(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('in a call, and while the model replies: each process asks the same, and what a model reads is found out once', async () => {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await live(url, '12')).toBe(true);
    hangs = 20;
    expect(await live(url, 'none')).toBe(true);
    hangs = Number.POSITIVE_INFINITY;
    expect(await live(url, 'none')).toBe(false);
    expect(lines.at(-1)).toBe('ended finished Done.');
    const alone = looking(memoryJournal());
    await (await alone.runtime.start('Watch.', { identity, limits: { steps: 100 } })).result();
    for (const [taken, { body }] of alone.sent.requests.entries()) {
      const all = asked.get(taken) ?? [];
      expect(new Set(all)).toEqual(new Set([messagesOf(body).join()]));
    }
    const told = lines.filter((line) => line.startsWith('told '));
    expect(told).toHaveLength(STEPS);
    expect(new Set(told).size).toBe(STEPS);
  });
});
