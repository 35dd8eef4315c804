/** The server dies in the middle, and another one answers on the same journal: who reads and waits comes to the right end, once. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { RunEvent } from '#core';
import { createClient } from '#pilotage/client';
import { Effects } from '../../examples/scenario-agent.ts';
import { builtFile } from '../kit/built.ts';
import { until } from '../kit/waiting.ts';

const CHILD = builtFile('test/server/api-child.ts');

async function killable() {
  const folder = mkdtempSync(join(tmpdir(), 'pilotage-server-'));
  const journal = join(folder, 'runs.db');
  let child: ChildProcess | undefined;
  let port = '0';
  const kill = async (): Promise<void> => {
    const ended = new Promise((resolve) => child?.once('exit', resolve));
    child?.kill('SIGKILL');
    await ended;
  };
  onTestFinished(async () => {
    await kill();
    rmSync(folder, { recursive: true });
  });
  const begin = async (): Promise<void> => {
    child = spawn(process.execPath, [CHILD, journal, port], { stdio: ['ignore', 'pipe', 'inherit'] });
    port = await new Promise((resolve) => child?.stdout?.once('data', (line) => resolve(String(line).trim())));
  };
  await begin();
  const client = createClient({ url: `http://127.0.0.1:${port}`, headers: { authorization: 'Bearer acme/ana' } });
  const effects = new Effects(`${journal}-effects`);
  return { client, effects, journal, kill, begin, again: () => kill().then(begin) };
}

/** What a page would show of the texts of the run. */
function shown(events: readonly RunEvent[]): string {
  let text = '';
  for (const event of events) {
    if (event.type === 'token.reset') text = '';
    // Who has missed some of the text has all of it here.
    if (event.type === 'planner.decision') text = event.text ?? text;
    if (event.type === 'token') {
      expect(event.offset).toBe(text.length);
      text += event.text;
    }
  }
  return text;
}

const slow = (count: number) => Array.from({ length: count }, (_, index) => `w${index}`).join(' ');
const countOf = (events: readonly RunEvent[], type: string) => events.filter((event) => event.type === type).length;

describe('a server that is killed', () => {
  it('while text streams: its readers get the whole text once, and the end', async () => {
    const { client, again } = await killable();
    const session = client.session('talk');
    const sending = session.send('slow 25');
    const result = sending.then((sent) => sent.result());
    const late: RunEvent[] = [];
    let readLate: Promise<void> | undefined;
    const events: RunEvent[] = [];
    let isKilled = false;
    for await (const event of session.events()) {
      events.push(event);
      if (event.type === 'planner.finish') break;
      if (isKilled || countOf(events, 'token') < 5) continue;
      isKilled = true;
      const run = client.run((await sending).turn);
      readLate = (async () => {
        for await (const each of run.events()) late.push(each);
      })();
      await until(() => countOf(late, 'token') > 0);
      await again();
    }
    expect(await result).toMatchObject({ status: 'finished', answer: slow(25) });
    expect(shown(events)).toBe(slow(25));
    await readLate;
    expect(shown(late)).toBe(slow(25));
    expect(countOf(late, 'planner.finish')).toBe(1);
    expect([countOf(events, 'run.started'), countOf(events, 'planner.finish')]).toEqual([1, 1]);
  });

  it('while a tool runs: its effect happens once, and who waits has the result', async () => {
    const { client, effects, again } = await killable();
    const session = client.session('shop');
    const sent = await session.send('refund A-17', { id: 'm1' });
    await sent.result();
    const [asked] = (await client.waiting()).items;
    await client.run(sent.turn).approve(asked?.token);
    const result = session.result();
    await until(() => effects.count('refund') > 0);
    await again();
    expect(await result).toMatchObject({ status: 'finished', answer: 'A-17 is refunded.' });
    expect(await session.send('refund A-17', { id: 'm1' })).toMatchObject({ turn: sent.turn, as: 'known' });
    expect(effects.count('refund')).toBe(1);
    expect((await session.uiMessages()).map(({ role }) => role)).toEqual(['user', 'assistant']);
  });

  it('while an approval waits: it is answered by way of the next server, and nothing comes twice', async () => {
    const { client, effects, kill, begin } = await killable();
    const run = await client.runs.start('refund A-17 and B-18');
    const asked = await run.result();
    const tokens = asked.status === 'paused' ? asked.pauses.map(({ token }) => token) : [];
    expect(tokens).toHaveLength(2);
    const types: string[] = [];
    const read = (async () => {
      for await (const { type } of run.events({ overPauses: true })) types.push(type);
    })();
    await until(() => types.includes('pause.requested'));
    await kill();
    // Asked for while nobody answers: the client waits for the server.
    const other = client.runs.start('say hello', { idempotencyKey: 'k' });
    await begin();
    await run.answerAll({ [tokens[0] ?? '']: { kind: 'approve' }, [tokens[1] ?? '']: { kind: 'reject' } });
    expect(await run.result()).toMatchObject({ status: 'finished', answer: 'A-17 is refunded. B-18 is not refunded.' });
    await read;
    expect(types.filter((type) => type === 'run.started' || type === 'planner.finish')).toHaveLength(2);
    expect(types.filter((type) => type === 'tool.approval_requested')).toHaveLength(2);
    expect(effects.count('refund')).toBe(1);
    expect(await (await other).result()).toMatchObject({ answer: 'hello' });
    expect((await client.runs.list()).items).toHaveLength(2);
  });
});
