/** Processes that stand still for longer than their lease, and go on when another has the run: what is done is done once. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type How, readLines } from './standing-agent.ts';

const AGENT = join(import.meta.dirname, 'standing-agent.ts');

let folder: string;
let children: ChildProcess[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'pilotage-standstill-'));
  children = [];
});
afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

interface Process {
  readonly child: ChildProcess;
  /** Ends well, with the result of the run. */
  result(): Promise<unknown>;
}

function begin(how: How): Process {
  const child = spawn(process.execPath, [AGENT, folder, how], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), 'pilotage-standstill-compiled') },
  });
  children.push(child);
  const ended = once(child, 'close');
  const said = { out: '', err: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (said.out += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (said.err += text));
  const result = async (): Promise<unknown> => {
    const [code] = await ended;
    if (code !== 0) throw new Error(`The agent ended with ${code}: ${said.err}`);
    return JSON.parse(said.out);
  };
  return { child, result };
}

const said = (what: string): readonly string[] =>
  readLines(folder).flatMap((line) => (line.what === what ? [`${line.who}${line.told ? `: ${line.told}` : ''}`] : []));
const until = (holds: () => void): Promise<void> => vi.waitFor(holds, { timeout: 30_000, interval: 10 });

it('works synchronously for longer than its lease: the heir does not believe that nothing has happened', async () => {
  const first = begin('works');
  await until(() => expect(said('standing')).toHaveLength(1));
  const heir = begin('heir');
  expect(await heir.result()).toMatchObject({ status: 'finished', payload: 'works' });
  await first.result();
  expect(said('paid')).toEqual(['works']);
  expect(said('asked')).toEqual(['heir: not_done', 'heir: done']);
  expect(said('fault')).toEqual(['works: lease_lost']);
}, 60_000);

it('is stopped between the beginning of a call and the call: it does not make it when it goes on', async () => {
  const first = begin('stopped');
  await until(() => expect(said('standing')).toHaveLength(1));
  const heir = begin('heir');
  expect(await heir.result()).toMatchObject({ status: 'finished', payload: 'heir' });
  first.child.kill('SIGCONT');
  expect(await first.result()).toMatchObject({ status: 'finished', payload: 'heir' });
  expect(said('paid')).toEqual(['heir']);
  expect(said('fault')).toEqual(['stopped: lease_lost']);
}, 60_000);

it('has its loop blocked there: the same', async () => {
  const first = begin('blocked');
  await until(() => expect(said('standing')).toHaveLength(1));
  const heir = begin('heir');
  expect(await heir.result()).toMatchObject({ status: 'finished', payload: 'heir' });
  await first.result();
  expect(said('paid')).toEqual(['heir']);
  expect(said('fault')).toEqual(['blocked: lease_lost']);
}, 60_000);

it('is stopped in the middle of the call, and goes on within the grace: what it does counts', async () => {
  const first = begin('stopped inside');
  await until(() => expect(said('standing')).toHaveLength(1));
  const heir = begin('heir');
  await until(() => expect(said('asked')).toHaveLength(1));
  first.child.kill('SIGCONT');
  expect(await heir.result()).toMatchObject({ status: 'finished', payload: 'stopped inside' });
  await first.result();
  expect(said('paid')).toEqual(['stopped inside']);
  expect(said('asked')).toEqual(['heir: not_done', 'heir: done']);
}, 60_000);

it('is dead, which a process of the same machine can see: nothing is waited for', async () => {
  const first = begin('stopped inside');
  await until(() => expect(said('standing')).toHaveLength(1));
  first.child.kill('SIGKILL');
  await once(first.child, 'close');
  const heir = begin('heir');
  expect(await heir.result()).toMatchObject({ status: 'finished', payload: 'heir' });
  expect(said('asked')).toEqual(['heir: not_done']);
  expect(said('paid')).toEqual(['heir']);
}, 60_000);
