/** How long a process lives whose runtime is open: as long as it drives a run or somebody in it waits for one. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import { sqliteJournal } from '#journal/sqlite';
import { builtFile } from '../kit/built.ts';
import { turn } from '../kit/waiting.ts';

const CHILD = builtFile('test/runtime/watching-child.ts');
const folder = mkdtempSync(join(tmpdir(), 'pilotage-watching-'));
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Process {
  readonly ready: Promise<void>;
  readonly over: Promise<{ readonly code: number | null; readonly words: readonly string[] }>;
}

function processOf(does: string, path: string): Process {
  const child = spawn(process.execPath, [CHILD, does, path, 'run_1'], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const ready = Promise.withResolvers<void>();
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
    if (text.includes('ready\n')) ready.resolve();
  });
  const over = new Promise<Awaited<Process['over']>>((resolve, reject) => {
    child.on('error', reject).on('close', (code) => resolve({ code, words: text.split('\n').slice(0, -1) }));
  });
  return { ready: ready.promise, over };
}

it('lives until the run ends that it follows, which lives elsewhere', async () => {
  const path = join(folder, 'follows.db');
  const driver = processOf('drive', path);
  await driver.ready;
  const watchers = ['result', 'events', 'resume', 'applied'].map((does) => processOf(does, path));
  for (const { ready } of watchers) await ready;
  expect(await processOf('stored', path).over).toEqual({ code: 0, words: ['stored'] });
  // What is stored after the last look of the run's process would not be taken any more.
  const journal = sqliteJournal({ path, readOnly: true });
  while ((await journal.inbox('run_1')).length < 2) await turn();
  await journal.close();
  writeFileSync(`${path}.go`, '');
  const [result, events, resume, applied] = await Promise.all(watchers.map(({ over }) => over));
  expect(result).toEqual({ code: 0, words: ['ready', 'finished'] });
  expect(events?.code).toBe(0);
  expect(events?.words.at(-1)).toBe('planner.finish');
  expect(resume).toEqual({ code: 0, words: ['ready', 'finished'] });
  expect(applied).toEqual({ code: 0, words: ['ready', 'applied'] });
  expect(await driver.over).toEqual({ code: 0, words: ['ready', 'finished'] });
});

it('ends when nobody in it waits, whatever it has looked at', async () => {
  const path = join(folder, 'leaves.db');
  const driver = processOf('drive', path);
  await driver.ready;
  expect(await processOf('look and leave', path).over).toEqual({ code: 0, words: ['1', 'null'] });
  expect(await processOf('leave a stream', path).over).toEqual({ code: 0, words: ['run.started'] });
  writeFileSync(`${path}.go`, '');
  expect(await driver.over).toMatchObject({ code: 0 });
  expect(await processOf('be refused', path).over).toEqual({ code: 0, words: ['run_ended', 'run_not_found'] });
});

it('is not kept alive by a paused run that it has started, and goes on with it when it lives on', async () => {
  const left = processOf('leave a paused run', join(folder, 'paused.db'));
  expect(await left.over).toEqual({ code: 0, words: ['paused'] });
  const stayed = processOf('stay for a while', join(folder, 'stays.db'));
  expect(await stayed.over).toEqual({ code: 0, words: ['paused', 'finished'] });
});
