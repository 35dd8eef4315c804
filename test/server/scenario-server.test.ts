/** The server for trying clients: what it counts is what is there. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';
import { effectsFileOf } from '../../examples/scenario-agent.ts';

async function started(): Promise<string> {
  const server = spawn(process.execPath, ['examples/scenario-server.ts', '--port', '0'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(async () => {
    server.kill('SIGKILL');
    await once(server, 'exit');
  });
  const [line] = (await once(createInterface({ input: server.stdout }), 'line')) as [string];
  return line.replace('Listening at ', '');
}

it('counts all runs that are under way, also when there are many', async () => {
  const url = await started();
  const headers = { authorization: 'Bearer good', 'content-type': 'application/json' };
  const start = async (query: string) => {
    const at = Date.now() + 3_600_000;
    const answer = await fetch(`${url}/runs`, { method: 'POST', headers, body: JSON.stringify({ query, at }) });
    expect([answer.status, await answer.text()]).toEqual([201, expect.any(String)]);
  };
  for (let from = 0; from < 210; from += 30)
    await Promise.all(Array.from({ length: 30 }, (_, index) => start(`say ${from + index}`)));
  expect(await (await fetch(`${url}/active`)).json()).toEqual({ active: 210 });
});

it('keeps the effects in a file, whatever the journal is', () => {
  expect(effectsFileOf('runs/scenario.db')).toBe('runs/scenario.db.effects');
  expect(effectsFileOf('postgres://app:secret@db.internal:5432/trial?sslmode=require')).toBe('trial.effects');
  expect(effectsFileOf('postgresql://db.internal')).toBe('scenario.effects');
});

it('is tried with a page of less than 150 lines', () => {
  expect(readFileSync('examples/chat/page.tsx', 'utf8').split('\n').length).toBeLessThanOrEqual(150);
});
