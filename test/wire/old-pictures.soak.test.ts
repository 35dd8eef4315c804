/** Old pictures in the requests of processes that are killed. */
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type JsonObject, local } from '#core';
import { memoryJournal } from '#journal';
import { builtFile } from '../kit/built.ts';
import { bear } from '../kit/lives.ts';
import { calls, LAST, looking, messagesOf, STEPS } from './old-pictures.ts';
import { anthropic } from './replies/anthropic.ts';

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
