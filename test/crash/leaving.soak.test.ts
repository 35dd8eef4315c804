/** What a played process leaves behind when it is killed does not hold the process that played it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import { builtFile } from '../kit/built.ts';

const CHILD = builtFile('test/crash/leaving-child.ts');
const folder = mkdtempSync(join(tmpdir(), 'pilotage-leaving-'));
const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

it.each([
  'pauses',
  'a task that asks somebody, twice',
])('the process ends by itself when the last crash was played: %s', async (scenario) => {
  const child = spawn(process.execPath, [CHILD, folder, scenario], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    text += piece;
  });
  const code = await new Promise((resolve, reject) => child.on('error', reject).on('close', resolve));
  expect([text, code]).toEqual(['over\n', 0]);
});
