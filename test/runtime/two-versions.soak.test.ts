/** Real processes of two versions on one file: a run waits for the one that can carry it out, and for nobody else. */
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { expect, it, onTestFinished } from 'vitest';
import { local } from '#core';
import type { Journal } from '#journal';
import { createRuntime } from '#runtime';
import { builtFile } from '../kit/built.ts';
import { call, script } from '../kit/decisions.ts';
import { temporaryFile } from '../kit/files.ts';
import { changed } from '../kit/journals.ts';
import { openJournal } from '../kit/sqlite.ts';
import { echo } from '../kit/tools.ts';

/** Resolves when it has begun to look for runs. */
async function worker(version: string, path: string, said: string[]): Promise<void> {
  const child = spawn(process.execPath, [builtFile('test/runtime/version-child.ts'), version, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  const lines = createInterface({ input: child.stdout });
  await new Promise<void>((resolve) => lines.once('line', () => resolve()));
  lines.on('line', (line) => said.push(line));
}

it('20 of 20 runs end, whichever process looks at them first', async () => {
  const path = temporaryFile();
  const journal = openJournal(path);
  const create: Journal['create'] = ({ claim: _, ...run }) => journal.create(run);
  const idle = changed(journal, { create, claim: async () => undefined });
  for (const version of ['1', '2']) {
    const runtime = createRuntime({
      planner: { name: 'p', version, next: script(call('echo')) },
      tools: [echo],
      journal: idle,
    });
    for (let index = 0; index < 10; index += 1) {
      await runtime.start('q', { identity: local('ana', { run: `v${version}_${index}` }) });
    }
    await runtime.close();
  }
  const said: string[] = [];
  await worker('2', path, said);
  await worker('1', path, said);
  const ended = async (): Promise<number> => (await journal.list({ status: ['finished'], limit: 200 })).length;
  await expect.poll(ended, { timeout: 60_000, interval: 20 }).toBe(20);
  expect((await journal.list({ limit: 200 })).filter(({ problem }) => problem !== undefined)).toEqual([]);
  expect(said.filter((line) => line !== 'run_changed')).toEqual([]);
});
